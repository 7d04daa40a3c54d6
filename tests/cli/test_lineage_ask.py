"""`lineage history`, `rejects`, `runs`, `query`, `scorecard` and `check-complete`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from cli.products import rows
from estate import save
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA


@pytest.fixture
def refused(published, merestone, tmp_path):
    """The id of a run that was refused for one row, after two versions."""
    published.terms["schema_fields"][1]["nullable"] = False
    published.stamp("v1.1.0")
    published.write(published.first)
    ended = merestone("publish", published.file, "--source", save(rows(p3={"owner": None}), tmp_path / "bad.gpkg"), "--json")
    assert ended.code == 1
    return ended.doc["run_id"]


def test_history_tells_every_run_that_met_a_feature(published, merestone, refused):
    doc = merestone("lineage", "history", published.file, "p3", "--json").doc
    assert list(dict.fromkeys(each["run_id"] for each in doc["events"])) == [
        published.manifest(1).run_id,
        published.manifest(2).run_id,
        refused,
    ]
    assert doc["events"][-1]["outcome"] == "REJECT"
    said = merestone("lineage", "history", published.file, "p3").out
    assert "(v2)" in said
    assert f"run {refused} (REFUSED by its contract, nothing published)" in said
    assert "REJECT" in said
    assert merestone("lineage", "history", published.file, "nix").code == 2


@pytest.mark.parametrize("ending", ["parquet", "arrow", "ndjson"])
def test_events_are_written_for_other_tools(published, merestone, tmp_path, ending):
    out = tmp_path / f"events.{ending}"
    doc = merestone("lineage", "query", published.file, "--stage", "validate", "--limit", "2", "--out", out, "--json").doc
    assert (doc["count"], len(doc["events"]), doc["out"]) == (43, 2, str(out))
    if ending == "ndjson":
        found = [json.loads(line) for line in out.read_text().splitlines()]
        assert found[:2] == doc["events"]
        assert len(found) == 43
    else:
        table = pq.read_table(out) if ending == "parquet" else pa.ipc.open_file(out).read_all()
        assert table.num_rows == 43
        assert table.schema.equals(LINEAGE_ARROW_SCHEMA)
    assert merestone("lineage", "query", published.file, "--out", tmp_path / "events.xls").code == 2


def test_rejects_tell_features_and_reasons(published, merestone, refused):
    assert merestone("lineage", "rejects", published.file, "--json").doc["count"] == 0
    doc = merestone("lineage", "rejects", published.file, "--run", refused, "--json").doc
    assert [(each["feature_id"], each["outcome"]) for each in doc["events"]] == [("p3", "REJECT")]
    assert "owner" in merestone("lineage", "rejects", published.file, "--run", refused).out
    assert merestone("lineage", "rejects", published.file, "--run", refused, "--stage", "snap", "--json").doc["count"] == 0
    assert merestone("lineage", "rejects", published.file, "--run", "nix").code == 2


def test_runs_are_listed_newest_first(published, merestone, refused):
    doc = merestone("lineage", "runs", published.file, "--json").doc
    assert [(each["run_id"], each["version"]) for each in doc["runs"]] == [
        (refused, None),
        (published.manifest(2).run_id, 2),
        (published.manifest(1).run_id, 1),
    ]
    assert refused in merestone("lineage", "runs", published.file).out


def ended(product, merestone, tmp_path, how):
    """A third night that brings no version, and its run."""
    if how == "guard":
        path = save(rows(**{f"p{n}": {"owner": "z"} for n in range(30)}), tmp_path / "mass.gpkg")
        return merestone("publish", product.file, "--source", path, "--json").doc["run_id"]
    if how == "contract":
        path = save([*rows(), *rows(1)], tmp_path / "twice.gpkg")
        return merestone("publish", product.file, "--source", path, "--json").doc["run_id"]
    if how == "unchanged":
        product.settings["rejects"] = {"max_fraction": 0.5}
        product.terms["schema_fields"][1]["nullable"] = False
        product.stamp("v1.1.0")
        product.write(product.second)
        path = save(
            rows(p3={"owner": "b"}, p5={"geometry": Point(5.1, 52.5)}, p7=None, p99={"rank": 99}, p2={"owner": None}), tmp_path / "r.gpkg"
        )
        merestone("publish", product.file, "--source", path, "--json")
        return merestone("publish", product.file, "--source", path, "--json").doc["run_id"]
    merestone("rollback", product.file, "--to", "1", "--reason", "wrong")
    return product.manifest(2).run_id


COMES_OF_IT = {
    "guard": ("refused", "guard", "STOPPED by a guard, nothing published", "guard.changed"),
    "contract": ("refused", "contract", "REFUSED by its contract, nothing published", "schema.key_duplicate"),
    "unchanged": ("unchanged", None, "unchanged", None),
    "rolled back": ("published", None, "v2, rolled back by v3", None),
}


@pytest.mark.parametrize("how", COMES_OF_IT)
def test_whoever_shows_a_run_says_what_came_of_it(published, merestone, tmp_path, how):
    """`why`, `history`, `runs`, `summary` and `scorecard`: events that passed are no version."""
    run = ended(published, merestone, tmp_path, how)
    status, by, words, why = COMES_OF_IT[how]
    feature = {"guard": "p1", "contract": None, "unchanged": "p2", "rolled back": "p3"}[how]
    asked = {
        "runs": ("lineage", "runs", published.file),
        "summary": ("lineage", "summary", published.file, "--run", run),
        "scorecard": ("lineage", "scorecard", published.file),
    }
    if feature is not None:
        asked |= {name: ("lineage", name, published.file, feature) for name in ("why", "history")}
    for name, line in asked.items():
        doc = merestone(*line, "--json").doc
        listed = doc.get("runs", [doc])
        (entry,) = [listed[run]] if name == "history" else [each for each in listed if each["run_id"] == run]
        assert (entry["status"], entry["refused_by"], entry["rolled_back_by"]) == (status, by, 3 if how == "rolled back" else None), name
        assert (entry["why"] or "").startswith(why or ""), name
        assert (entry["why"] is None) == (why is None), name
        said = merestone(*line).out
        assert words in said, (name, said)
        assert why is None or why in said, (name, said)
    if feature is not None:
        said = merestone("lineage", "why", published.file, feature).out
        assert ("the feature by itself: PASS" in said) == (how == "guard")


def test_query_meets_all_conditions(published, merestone):
    doc = merestone("lineage", "query", published.file, "--class", "removed", "--json").doc
    assert [each["feature_id"] for each in doc["events"]] == ["p7"]
    said = merestone("lineage", "query", published.file, "--limit", "1").out
    assert "more; --limit shows" in said


def test_the_scorecard_gates_by_exit_code(published, merestone, refused, tmp_path):
    ended = merestone(
        "lineage",
        "scorecard",
        published.file,
        "--max-rejected",
        "0",
        "--html",
        tmp_path / "s.html",
        "--junit",
        tmp_path / "s.xml",
        "--json",
    )
    assert ended.code == 1
    assert [each["run_id"] for each in ended.doc["runs"] if each["breaches"]] == [refused]
    assert "<svg" in (tmp_path / "s.html").read_text()
    assert "<failure" in (tmp_path / "s.xml").read_text()
    assert merestone("lineage", "scorecard", published.file, "--max-rejected", "0", "--run", published.manifest(1).run_id).code == 0
    assert merestone("lineage", "scorecard", published.file).code == 0
    assert len(merestone("lineage", "scorecard", published.file, "--last", "1", "--json").doc["runs"]) == 1
    assert merestone("lineage", "scorecard", published.file, "--max-rejected", "2").code == 2


def test_scorecard_and_summary_and_iso_record_agree(published, merestone):
    card = merestone("lineage", "scorecard", published.file, "--last", "1", "--json").doc["runs"][0]
    summary = merestone("lineage", "summary", published.file, "--json").doc
    assert (card["events"], card["features"], card["rejected"]) == (
        summary["total_events"],
        summary["features"],
        summary["features_rejected"],
    )
    record = merestone("lineage", "iso19115", published.file).out
    assert f"{card['features']} features met: {card['passed']} passed, {card['warned']} warned, {card['rejected']} rejected" in record


def test_lineage_is_complete_and_what_is_missing_fails(published, merestone):
    doc = merestone("lineage", "check-complete", published.file, "--json").doc
    assert (doc["status"], doc["features"], doc["gaps"]) == ("pass", 40, [])
    assert merestone("lineage", "check-complete", f"{published.file}@1").code == 0
    assert merestone("lineage", "check-complete", published.file, "--run", published.manifest(1).run_id, "--json").doc["runs"] == [
        published.manifest(1).run_id
    ]
