"""`lineage ingest` and `lineage retain`."""

import json
import shlex
from datetime import UTC, datetime

EVENT = {
    "run_id": "f1",
    "sequence": 1,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "validate",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:25832",
    "target_crs": "EPSG:25832",
    "outcome": "PASS",
}


def test_events_of_another_tool_come_into_the_store_of_a_dataset(published, merestone, tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_text(json.dumps(EVENT) + "\n")
    doc = merestone("lineage", "ingest", published.file, file, "--plan", "validate, ", "--json").doc
    assert (doc["status"], doc["lines"], doc["events"], doc["quarantined"]) == ("done", 1, 1, 0)
    assert merestone("lineage", "summary", published.file, "--run", "f1", "--json").doc["passed"] == 1
    assert merestone("lineage", "runs", published.file, "--json").doc["runs"][0]["plan"] == ["validate"]
    assert merestone("lineage", "check-complete", published.file).code == 0
    assert merestone("lineage", "history", published.file, "p1", "--json").doc["events"][-1]["run_id"] == "f1"
    assert merestone("verify", published.file).code == 0


def test_lines_in_quarantine_exit_1_and_are_named(merestone, tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_text(json.dumps(EVENT) + "\nnonsense\n")
    ended = merestone("lineage", "ingest", tmp_path / "new", file)
    assert ended.code == 1
    assert "2 lines in, 1 event and 1 in quarantine" in ended.out
    assert "line 2" in ended.out
    assert merestone("lineage", "check-complete", tmp_path / "new", "--json").doc["gaps"][0]["rule"] == "no_plan"
    assert "known" in merestone("lineage", "ingest", tmp_path / "new", file).out
    assert merestone("lineage", "ingest", tmp_path / "new", tmp_path / "none.ndjson").code == 3
    assert merestone("lineage", "ingest", tmp_path / "new", tmp_path / "x.csv").code == 3


def test_a_store_of_events_alone_gives_the_verdict_of_a_run(merestone, tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_text(json.dumps(EVENT) + "\n")
    merestone("lineage", "ingest", tmp_path / "events", file)
    doc = merestone("lineage", "summary", tmp_path / "events", "--run", "f1", "--json").doc
    assert (doc["name"], doc["version"], doc["passed"]) == ("events", None, 1)
    assert merestone("lineage", "summary", tmp_path / "events", "--run", "f2").code == 2
    ended = merestone("lineage", "summary", tmp_path / "events")
    assert (ended.code, "no published dataset" in ended.err) == (2, True)
    doc = merestone("verify", tmp_path / "events", "--json").doc
    assert (doc["status"], doc["versions"], doc["objects"], doc["rows"]) == ("whole", [], 2, 1)
    part = next((tmp_path / "events").rglob("*.parquet"))
    part.unlink()
    ended = merestone("verify", tmp_path / "events")
    assert (ended.code, part.name in ended.out + ended.err) == (6, True)
    (tmp_path / "events" / "_manifests").mkdir()
    (tmp_path / "events" / "_manifests" / "v000001.json").write_text("{}")
    assert merestone("verify", tmp_path / "events").code == 6  # somebody took the pointer away: never whole


def test_nobody_tells_again_what_a_published_run_told(published, merestone, tmp_path):
    run = published.manifest(2).run_id
    before = merestone("lineage", "summary", published.file, "--json").doc
    file = tmp_path / "events.ndjson"
    file.write_text(
        "".join(
            json.dumps({**EVENT, "run_id": run, "sequence": 1 << 60, "stage": stage}) + "\n" for stage in ("validate", "publish", "ocr")
        )
    )
    doc = merestone("lineage", "ingest", published.file, file, "--plan", "ocr", "--json").doc
    assert (doc["events"], doc["quarantined"]) == (1, 2)
    after = merestone("lineage", "summary", published.file, "--json").doc
    assert after["total_events"] == before["total_events"] + 1
    assert merestone("verify", published.file).code == 0


def test_lineage_expires_after_a_dry_run_and_a_hold_stops_it(published, merestone, monkeypatch):
    terms = ("--window", "P1Y", "--basis", "the Act's year")
    assert "nothing expires" in merestone("lineage", "retain", published.file, *terms).out
    monkeypatch.setattr("merestone.line.environment.now", lambda: datetime(2100, 1, 1, tzinfo=UTC))
    placed = merestone("lineage", "retain", published.file, "--hold", "all", "--reason", "case 7").out
    number = placed.split()[1]
    assert f"kept by hold {number}" in merestone("lineage", "retain", published.file, *terms).out
    assert merestone("lineage", "retain", published.file, "--hold", "all").code == 2
    assert "is released" in merestone("lineage", "retain", published.file, "--release", number, "--reason", "closed").out
    said = merestone("lineage", "retain", published.file, *terms).out
    again = shlex.split(said.partition("next")[2].partition("\n")[0])
    assert again[-6:-1] == [*terms, "--confirm"]
    token = again[-1]
    assert "live features carried on to the baseline" in said
    assert merestone("lineage", "retain", published.file, *terms, "--confirm", "0").code == 2
    ended = merestone("lineage", "retain", published.file, *terms, "--confirm", token)
    assert ended.code == 0
    assert "expired" in ended.out
    assert "expired" in merestone("lineage", "summary", published.file).out
    assert "expired on 2100-01-01" in merestone("lineage", "runs", published.file).out
    assert merestone("verify", published.file).code == 0
    assert merestone("lineage", "check-complete", published.file).code == 0
    assert merestone("lineage", "retain", published.file).code == 2
