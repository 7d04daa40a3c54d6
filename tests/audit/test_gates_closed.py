"""A gate that has nothing to judge does not pass, unless it was told that it may."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import merestone
from cli.products import FIELDS, rows
from estate import Estate, geoparquet, save
from merestone.api import lineage
from merestone.audit.ingest import ingest
from merestone.cli.main import root
from merestone.errors import MerestoneError
from merestone.render import text as render

EVENT = {
    "run_id": "f1",
    "sequence": 1,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "load",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:4326",
    "target_crs": "EPSG:4326",
    "outcome": "PASS",
}


@pytest.fixture
def published(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"])
    assert made.publish(save(rows(5), tmp_path / "0.gpkg")).status == "published"
    return made


def ended(*arguments):
    try:
        return root.main([str(each) for each in arguments], prog_name="merestone", standalone_mode=False)
    except MerestoneError as fault:
        return fault.exit_code


def of_events(folder, *events, plan=()):
    (folder / "events.ndjson").write_text("".join(json.dumps(EVENT | each) + "\n" for each in events))
    ingest(str(folder / "store"), str(folder / "events.ndjson"), plan=plan)
    return folder / "store"


def test_a_scorecard_of_an_emptied_store_fails(published):
    assert ended("lineage", "scorecard", published.url) == 0
    shutil.rmtree(published.url / "_lineage")
    assert ended("lineage", "scorecard", published.url) == 1
    result = lineage.scorecard(published.url)
    assert "is not there" in result.text
    assert ended("lineage", "scorecard", published.url, "--allow-empty") == 1, "a version names the run"


def test_a_scorecard_of_no_runs_fails_in_every_report(tmp_path):
    store = of_events(tmp_path, {})
    assert ended("lineage", "scorecard", store) == 0
    shutil.rmtree(store / "_lineage/_runs")
    (store / "_lineage/_runs").mkdir()
    junit = tmp_path / "junit.xml"
    assert ended("lineage", "scorecard", store, "--junit", junit) == 1
    assert 'failures="1"' in junit.read_text()
    assert ended("lineage", "scorecard", store, "--allow-empty") == 0
    assert ended("lineage", "check-complete", store) == 1
    assert ended("lineage", "check-complete", store, "--allow-empty") == 0


def test_a_delivery_that_was_refused_as_a_whole_breaks_the_threshold(published, tmp_path):
    bad = save([{**each, "pid": None} for each in rows(5)], tmp_path / "bad.gpkg")
    assert published.publish(bad).status == "refused"
    assert ended("lineage", "scorecard", published.url, "--max-rejected", "0.5") == 1
    assert ended("lineage", "scorecard", published.url) == 0


def test_a_run_without_a_plan_is_not_complete(tmp_path):
    store = of_events(tmp_path, {})
    assert ended("lineage", "check-complete", store) == 1
    assert ended("lineage", "check-complete", store, "--run", "f1") == 1
    assert ended("lineage", "check-complete", store, "--allow-no-plan") == 0


def test_sparse_numbers_of_another_tool_are_accepted(tmp_path):
    store = of_events(
        tmp_path, {"sequence": 10}, {"sequence": 4000, "feature_id": "p2"}, {"sequence": 1 << 49, "feature_id": "p3"}, plan=("load",)
    )
    assert ended("lineage", "check-complete", store) == 0
    [gap] = lineage.check_complete(store).gaps
    assert (gap["rule"], gap["severity"], gap["count"], gap["samples"]) == ("sequence_sparse", "warning", 3989, ["11 to 3999"])
    (tmp_path / "twice").mkdir()
    twice = of_events(tmp_path / "twice", {}, {"feature_id": "p2"}, plan=("load",))
    assert ended("lineage", "check-complete", twice) == 1, "one number on two events"


def test_a_version_without_a_run_is_not_complete(published):
    assert ended("lineage", "check-complete", published.url) == 0
    for each in (published.url / "_lineage/_runs").glob("*.json"):
        each.unlink()
    assert ended("lineage", "check-complete", published.url) == 6


def test_partitions_are_judged_by_their_rows(published):
    root = published.url / "_lineage"
    [part] = root.glob("run_date=*/**/*.parquet")
    assert ended("lineage", "check-partitions", "--root", root) == 0
    table = pq.ParquetFile(part).read()
    for folder, word in (
        ("run_id=other/target_crs=EPSG%3A4326", "run_id"),
        (f"{part.parent.parent.name}/target_crs=EPSG%3A25832", "target_crs"),
    ):
        place = root / "run_date=2026-01-01" / folder / "part-1-ab-00000.parquet"
        place.parent.mkdir(parents=True)
        pq.write_table(table, place)
        said = lineage.check_partitions(root).problems
        assert any(word in each and "its folder says" in each for each in said)
        assert any("is listed by no sealed run" in each for each in said)
        shutil.rmtree(root / "run_date=2026-01-01")
    for each in (root / "_runs").glob("*.json"):
        each.unlink()
    assert ended("lineage", "check-partitions", "--root", root) == 1, "nobody says which parts count"


def nothing(folder):
    columns = {"pid": pa.string(), "owner": pa.string(), "rank": pa.int64(), "area": pa.decimal128(8, 2)}
    return geoparquet(folder / "none.parquet", {**{name: pa.array([], kind) for name, kind in columns.items()}, "geometry": []})


@pytest.mark.parametrize("command", ["check", "diagnose"])
def test_a_check_of_no_rows_does_not_pass(published, tmp_path, command):
    asked = (command, nothing(tmp_path), "--contract", published.folder / "product.contract.yaml")
    assert ended(*asked) == 1
    assert ended(*asked, "--allow-empty") == 0


def test_a_check_of_no_rows_fails_in_every_report(published, tmp_path):
    merestone.check(
        nothing(tmp_path), contract=published.folder / "product.contract.yaml", junit=tmp_path / "j.xml", sarif=tmp_path / "s.json"
    )
    assert "the delivery has no rows" in (tmp_path / "j.xml").read_text()
    assert "schema.no_rows" in (tmp_path / "s.json").read_text()


def test_a_comparison_of_nothing_is_no_agreement(tmp_path):
    empty, full = nothing(tmp_path), save(rows(3), tmp_path / "3.gpkg")
    assert ended("diff", empty, empty, "--key", "pid") == 1
    assert "NOTHING was compared" in render.diff(merestone.diff(empty, empty, key=["pid"]))
    assert ended("diff", full, empty, "--key", "pid") == 0
