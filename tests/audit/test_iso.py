"""The ISO record of real versions and runs: valid, and its counts are those of the event store."""

import re
from collections import Counter
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from shapely import Point

from cli.products import FIELDS, rows
from estate import geoparquet, save
from merestone.audit.iso import record_of_run, record_of_version
from merestone.errors import UsageError
from merestone.line.rollback import roll_back
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.store import steps
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.verdict import conformance_summary
from merestone.lineage.store.writing import RunWriter
from merestone.render.iso19115 import ENCODINGS, render
from merestone.render.iso19115_lint import lint, read_record
from merestone.storage.local import LocalStore
from render.test_iso19115 import texts

TIME = datetime(2024, 5, 1, 10, tzinfo=UTC)


def two_nights(estate, folder):
    """Two nights in another CRS than delivered; in the second a row is rejected, and its text is hostile."""
    fields = [dict(each) for each in FIELDS]
    fields[1]["pattern"] = "[a-z]*"
    made = estate(fields, geometry_type="point", key=["pid"], epsg=28992, precision=3)
    made.by_place(10).agreed().settings["rejects"] = {"max_fraction": 0.5}
    made.settings["crs"] = {"accept": ["EPSG:4326"]}
    second = rows(p3={"owner": "b"}, p5={"geometry": Point(5.1, 52.1)}, p7=None, p9={"owner": "<&]]>\x07\u202e"}, p99={"rank": 99})
    for name, given in (("first", rows()), ("second", second)):
        assert made.publish(save(given, folder / f"{name}.gpkg")).status == "published"
    return made


@pytest.fixture
def nights(estate, tmp_path):
    return two_nights(estate, tmp_path)


def counted(text):
    """Events by stage, event type and outcome, as the record's steps tell them."""
    found = Counter()
    for said in texts(text, "description"):
        if match := re.match(r"(\S+)/(\w+):.*?; (\d+) PASS, (\d+) WARN, (\d+) REJECT\.", said):
            for outcome, number in zip(("PASS", "WARN", "REJECT"), match.groups()[2:], strict=True):
                found[match[1], match[2], outcome] += int(number)
    return +found


def stored(store, run_id):
    table = deduplicate(read_run(store, run_id))
    return Counter(zip(*(table.column(name).to_pylist() for name in ("stage", "event_type", "outcome")), strict=True))


def of_live(made, version):
    """The events of the live features of a version, each as told by the run that wrote its published row."""
    wrote = {}
    for number in range(1, version + 1):
        manifest = made.manifest(number)
        for key, line in made.log(number).items():
            if line["class"] == "removed":
                del wrote[key]
            elif line["class"] in ("added", "changed", "reprocessed"):
                wrote[key] = manifest.run_id
    found = Counter()
    for run in set(wrote.values()):
        table = deduplicate(read_run(made.dataset.store, run))
        for row in table.select(["feature_id", "stage", "event_type", "outcome"]).to_pylist():
            if wrote.get(row.pop("feature_id")) == run:
                found[tuple(row.values())] += 1
    return found


def test_after_a_night_of_removals_the_record_still_names_the_reprojection(nights, tmp_path, monkeypatch):
    given = rows(p3={"owner": "b"}, p5={"geometry": Point(5.1, 52.1)}, p7=None, p9={}, p99={"rank": 99}, p11=None, p12=None)
    assert nights.publish(save(given, tmp_path / "removals.gpkg")).result.delta.removed == 2
    opened = []
    real = steps.scan
    monkeypatch.setattr(
        steps, "scan", lambda store, attempts, *more, **how: (opened.append(attempts[-1].run_id), real(store, attempts, *more, **how))[1]
    )
    record = record_of_version(f"{nights.url}@3")
    assert [nights.manifest(each).run_id for each in (2, 1)] == opened[-2:], "the night of removals made no live feature"
    [transform] = [each for each in record.steps if each.event_type == "TRANSFORM"]
    assert (transform.source_crs, transform.target_crs) == ("EPSG:4326", "EPSG:28992")
    assert transform.passed == nights.manifest(3).features
    assert "proj=sterea" in transform.parameters
    assert (transform.first, transform.last) != (transform.last, transform.last)
    assert "which 2 runs made" in record.statement
    for encoding in ENCODINGS:
        assert counted(render(record, encoding)) == of_live(nights, 3)


def test_each_version_has_a_record_of_its_own_that_names_the_one_before(nights):
    first, second = (record_of_version(f"{nights.url}@{each}") for each in (1, 2))
    assert first.resource == second.resource == nights.terms["product_id"]
    assert len({first.identifier, second.identifier, first.resource}) == 3
    assert (first.predecessor, second.predecessor) == (None, first.identifier)
    for encoding in ENCODINGS:
        assert first.identifier in render(second, encoding)


def test_many_ways_are_summed_in_one_step_that_says_so(nights, monkeypatch):
    whole = record_of_version(f"{nights.url}@2").steps
    monkeypatch.setattr(steps, "MOST_STEPS", 2)
    few = record_of_version(f"{nights.url}@2").steps
    assert len(few) == 3
    assert few[-1].stage == f"{len(whole) - 2} more steps"
    assert sum(each.passed for each in few) == sum(each.passed for each in whole)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_counts_of_a_version_are_those_of_its_events(nights, schemas, encoding):
    for version in (1, 2):
        text = render(record_of_version(f"{nights.url}@{version}"), encoding)
        assert schemas.faults(text, encoding) == []
        assert lint(read_record(text.encode(), "test")) == []
        manifest = nights.manifest(version)
        assert counted(text) == of_live(nights, version)
        (statement,) = texts(text, "statement")
        total = conformance_summary(f"{nights.url}/_lineage", manifest.run_id)
        assert f"{total['features']} features met: {total['features_passed']} passed, {total['features_warned']} warned, " in statement
        assert (
            f"{total['total_events']} lineage events: {total['passed']} PASS, {total['warned']} WARN, {total['rejected']} REJECT"
            in statement
        )
        assert manifest.lineage["root"] in statement
        assert str(nights.folder) not in text


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_it_tells_operation_software_and_reasons(nights, encoding):
    text = render(record_of_version(str(nights.url)), encoding)
    assert "EPSG:4326 to EPSG:28992" in text
    assert "proj=sterea" in text
    assert "accuracy_m 1" in text
    assert "PROJ 9" in text
    assert "1 changed, 1 held, 1 removed" not in text, "a held row is as an earlier run wrote it"
    of_run = render(record_of_run(str(nights.url), nights.manifest(2).run_id), encoding)
    assert "1 changed, 1 held, 1 removed" in of_run
    assert any("1 REJECT: owner pattern" in each for each in texts(of_run, "description"))
    assert counted(of_run) == stored(nights.dataset.store, nights.manifest(2).run_id)
    assert len(texts(text, "westBoundLongitude")) == 1


def test_the_same_version_gives_the_same_bytes(nights):
    for encoding in ENCODINGS:
        assert render(record_of_version(str(nights.url)), encoding) == render(record_of_version(f"{nights.url}@2"), encoding)


def test_behind_a_rollback_stands_the_run_that_made_the_content(nights):
    roll_back(nights.dataset, to=1, reason="wrong & export")
    record = record_of_version(str(nights.url))
    assert record.version == 3
    assert record.statement.startswith(
        f"Version 3 of product restores version 1 (wrong & export); that was made by run {nights.manifest(1).run_id}"
    )


def test_the_record_of_a_run_is_that_of_the_version_it_made(nights):
    of_run, of_version = record_of_run(str(nights.url), nights.manifest(1).run_id), record_of_version(f"{nights.url}@1")
    assert of_run.version == of_version.version == 1
    assert [each.passed for each in of_run.steps] == [each.passed for each in of_version.steps], "a first version is its run"


def test_a_refused_run_claims_no_dataset(nights, schemas, tmp_path):
    nights.settings["rejects"] = {"max_fraction": 0}
    ended = nights.publish(save(rows(p1={"owner": "9"}), tmp_path / "bad.gpkg"))
    assert ended.status == "refused"
    record = record_of_run(str(nights.url), ended.result.run_id)
    assert (record.version, record.extent) == (None, None)
    assert "published no version" in record.statement
    assert record.identifier != record_of_version(str(nights.url)).identifier
    for encoding in ENCODINGS:
        text = render(record, encoding)
        assert schemas.faults(text, encoding) == []
        assert counted(text) == stored(nights.dataset.store, ended.result.run_id)


def test_a_run_that_is_not_there_is_wrong_usage(nights):
    with pytest.raises(UsageError, match="no sealed run 'nix'"):
        record_of_run(str(nights.url), "nix")


# --- a store of events alone -------------------------------------------------------------------------------------------------------------


def foreign_store(folder, events):
    """A store with the runs `empty`, r1 and r2, without any dataset."""
    store = LocalStore(folder / "events")
    for run in ("empty", "r1", "r2"):
        collector = LineageCollector()
        for each in events:
            if each["run_id"] == run:
                collector.add(LineageEvent(**each))
        writer = RunWriter(str(folder), run, 0, "ab")
        writer.write(collector.drain())
        writer.seal(store, run_date=date(2024, 5, 1), plan=["crs_normalize"], tool={}, time=TIME)
    return store


def event(run, number, **more):
    return {
        "run_id": run,
        "sequence": number,
        "stage": "crs_normalize",
        "event_type": "REJECT",
        "feature_id": f"p{number}",
        "source_crs": "EPSG:25832",
        "target_crs": "EPSG:4326",
        "outcome": "REJECT",
        "event_time_utc": TIME,
        "rejection_reason": f"reason {number}",
        **more,
    }


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_x03_records_at_the_edge(tmp_path, schemas, encoding):
    passed = {"event_type": "TRANSFORM", "outcome": "PASS", "rejection_reason": None}
    store = foreign_store(tmp_path, [*(event("r1", number) for number in (1, 2, 3)), event("r2", 1, **passed)])
    made = {run: render(record_of_run(store.url, run), encoding) for run in ("empty", "r1", "r2")}
    for run, text in made.items():
        assert schemas.faults(text, encoding) == []
        assert lint(read_record(text.encode(), "test")) == []
        assert render(record_of_run(store.url, run), encoding) == text
        assert "EX_GeographicBoundingBox" not in text
        assert "completed" not in text
    assert texts(made["empty"], "statement")[0].endswith("No processing was recorded.")
    assert "processStep" not in made["empty"]
    assert "3 features met: 0 passed, 0 warned, 3 rejected" in texts(made["r1"], "statement")[0]
    assert all(f"1 REJECT: reason {number}" in made["r1"] for number in (1, 2, 3))
    assert counted(made["r2"]) == {("crs_normalize", "TRANSFORM", "PASS"): 1}
    assert "2024-05-01T10:00:00Z" in texts(made["r2"], "DateTime" if encoding == "gmd" else "timePosition")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_x03_a_dataset_without_rows_has_no_extent(estate, tmp_path, schemas, encoding):
    made = estate(FIELDS, geometry_type="point", key=["pid"])
    kinds = {"pid": pa.string(), "owner": pa.string(), "rank": pa.int64(), "area": pa.decimal128(8, 2)}
    columns = {name: pa.array([], kind) for name, kind in kinds.items()}
    none = geoparquet(tmp_path / "none.parquet", {**columns, "geometry": []}, epsg=4326)
    assert made.publish(none, confirm=made.publish(none).result.confirm).status == "published"
    record = record_of_version(str(made.url))
    assert (record.extent, record.steps) == (None, ())
    assert record.statement.endswith("No processing was recorded.")
    text = render(record, encoding)
    assert schemas.faults(text, encoding) == []
    assert lint(read_record(text.encode(), "test")) == []
