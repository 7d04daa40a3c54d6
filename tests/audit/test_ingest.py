"""Every line of a foreign file becomes an event or a row in quarantine, once, however often the file is taken in."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.audit.completeness import check_runs
from merestone.audit.ingest import ingest
from merestone.errors import SourceError, StoreError, UsageError
from merestone.line import environment
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.proof.inclusion import verify_runs
from merestone.lineage.store.hygiene import check_partitions
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.run_manifest import attempts_of, runs_of
from merestone.lineage.store.verdict import conformance_summary
from merestone.storage.local import LocalStore

MAPPING = """
mapping_version: 1
plan: [validate]
fields:
  run_id: {field: job}
  feature_id: {field: fid}
  event_time_utc: {field: ts}
  rejection_reason: {field: error}
  stage: {value: validate}
  source_crs: {value: "EPSG:25832"}
  target_crs: {value: "EPSG:25832"}
"""


def event(number, **more):
    return {
        "run_id": "r1",
        "sequence": number,
        "event_time_utc": "2024-05-01T10:00:00Z",
        "stage": "crs_normalize",
        "event_type": "TRANSFORM",
        "feature_id": f"p{number}",
        "source_crs": "EPSG:25832",
        "target_crs": "EPSG:4326",
        "outcome": "PASS",
        **more,
    }


def lines(folder, *values, name="events.ndjson"):
    path = folder / name
    path.write_bytes(b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in values))
    return str(path)


BAD = (
    b"",
    b"not json",
    b"[1]",
    b'{"a": NaN}',
    b'{"a": 1, "a": 2}',
    b"\xff\xfe",
    {},
    event(1, sequence=1.5),
    event(1, outcome="FINE"),
    event(1, event_time_utc="2024-05-01T10:00:00"),
    event(1, event_time_utc=5),
    event(1, target_crs="../../x"),
    event(1, color="red"),
    event(1, event_id="0" * 32),
    event(1, outcome="REJECT"),
    b"[" * 100_000,
    event(1, run_id="\U0001f600" * 60),
    event(1, run_id="r" * 201),
    event(1, feature_id="a\x00b"),
    event(1, stage="\ud800"),
)


def test_lines_are_events_or_quarantined(tmp_path):
    path = lines(tmp_path, event(1), *BAD, event(2, target_crs="urn:ogc:def:crs:EPSG::4326"))
    found = ingest(str(tmp_path / "store"), path, plan=["crs_normalize"])
    assert (found.lines, found.events, found.quarantined) == (len(BAD) + 2, 2, len(BAD))
    store = LocalStore(tmp_path / "store")
    kept = [json.loads(each) for each in store.get(found.quarantine).splitlines()]
    assert [each["line"] for each in kept] == list(range(2, len(BAD) + 2))
    assert all(each["reason"] for each in kept)
    assert kept[1]["text"] == "not json"
    table = read_run(store, "r1")
    assert table.column("target_crs").to_pylist() == ["EPSG:4326"] * 2
    assert table.column("sequence").to_pylist() == [1, 2]
    assert check_partitions(store, "_lineage") == []
    assert verify_runs(store) == []


def test_a_file_is_taken_in_once(tmp_path):
    path = lines(tmp_path, event(1), b"x", event(2, run_id="r2"))
    first, again = (ingest(str(tmp_path / "store"), path) for _ in range(2))
    assert [each["run_id"] for each in first.runs] == ["r1", "r2"]
    assert (again.runs, again.known) == ([], ["r1", "r2"])
    assert (again.lines, again.events, again.quarantined, again.quarantine) == (3, 2, 1, first.quarantine)
    assert conformance_summary(tmp_path / "store" / "_lineage", "r1")["total_events"] == 1


def test_a_broken_off_ingest_goes_on_where_it_was(tmp_path, monkeypatch):
    path = lines(tmp_path, event(1), event(2, run_id="r2"))
    real = LocalStore.create

    def breaks(self, name, data):
        if name.endswith("r2-0.json"):
            raise StoreError("full")
        real(self, name, data)

    monkeypatch.setattr(LocalStore, "create", breaks)
    with pytest.raises(StoreError, match="full"):
        ingest(str(tmp_path / "store"), path)
    monkeypatch.undo()
    again = ingest(str(tmp_path / "store"), path)
    assert ([each["run_id"] for each in again.runs], again.known) == (["r2"], ["r1"])


def test_a_rejection_log_through_its_mapping(tmp_path):
    (tmp_path / "map.yaml").write_text(MAPPING)
    log = [
        {"job": job, "fid": number, "ts": "2024-05-01T12:00:00+02:00", "error": f"e{number}"} for number in range(4) for job in ("a", "b")
    ]
    found = ingest(str(tmp_path / "store"), lines(tmp_path, *log, {"job": "a"}, name="log.jsonl"), mapping=str(tmp_path / "map.yaml"))
    assert (found.lines, found.events, found.quarantined) == (9, 8, 1)
    more = ingest(str(tmp_path / "store"), lines(tmp_path, {**log[0], "fid": 9}, name="more.jsonl"), mapping=str(tmp_path / "map.yaml"))
    assert more.runs[0]["attempt"] == 1
    store = LocalStore(tmp_path / "store")
    assert conformance_summary(tmp_path / "store" / "_lineage", "a") == {
        "total_events": 5,
        "passed": 0,
        "rejected": 5,
        "warned": 0,
        "features": 5,
        "features_passed": 0,
        "features_rejected": 5,
        "features_warned": 0,
    }
    assert [gap.rule for _, gap in check_runs(store, runs_of(store), now=environment.now()).gaps] == []
    assert attempts_of(store, "b")[0].plan == ("validate",)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_come_as_lines_do(tmp_path, ending):
    rows = [{**dict.fromkeys(LINEAGE_ARROW_SCHEMA.names), **event(number)} for number in range(3)]
    rows[1]["outcome"] = "FINE"
    for row in rows:
        row.pop("event_id")
        row["event_time_utc"] = pa.scalar(0, pa.timestamp("us", "UTC")).as_py()
    schema = pa.schema([each for each in LINEAGE_ARROW_SCHEMA if each.name != "event_id"])
    table = pa.Table.from_pylist(rows, schema=schema)
    path = tmp_path / f"events.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, schema) as writer:
            writer.write_table(table)
    found = ingest(str(tmp_path / "store"), str(path))
    assert (found.lines, found.events, found.quarantined) == (3, 2, 1)
    assert "FINE" in found.samples[0]["reason"]


def test_naive_times_in_columns_are_not_taken_for_utc(tmp_path):
    values = {**event(1), "event_time_utc": pa.scalar(0, pa.timestamp("us")).as_py()}
    pq.write_table(pa.Table.from_pylist([values]), tmp_path / "e.parquet")
    found = ingest(str(tmp_path / "store"), str(tmp_path / "e.parquet"))
    assert (found.events, found.quarantined) == (0, 1)
    assert "no time zone" in found.samples[0]["reason"]


def test_ingested_runs_are_chained(tmp_path):
    ingest(str(tmp_path / "store"), lines(tmp_path, event(1), event(2, run_id="r2")))
    ingest(str(tmp_path / "store"), lines(tmp_path, event(3, run_id="r3"), name="more.ndjson"))
    store = LocalStore(tmp_path / "store")
    heads = [attempts_of(store, run)[0].doc["heads"] for run in ("r1", "r2", "r3")]
    assert heads[0] == []
    assert [each["run_manifest"] for [each] in heads[1:]] == ["_lineage/_runs/r1-0.json", "_lineage/_runs/r2-0.json"]
    assert verify_runs(store) == []


def test_what_cannot_be_read_says_so(tmp_path):
    (tmp_path / "bad.yaml").write_text("mapping_version: 7")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    good = lines(tmp_path, event(1))
    for path, mapping, fault in (
        (tmp_path / "none.ndjson", None, SourceError),
        (tmp_path / "bad.parquet", None, SourceError),
        (tmp_path / "bad.yaml", None, UsageError),
        (good, tmp_path / "none.yaml", UsageError),
        (good, tmp_path / "bad.yaml", UsageError),
        (tmp_path / "bad.parquet", tmp_path / "bad.yaml", UsageError),
    ):
        with pytest.raises(fault):
            ingest(str(tmp_path / "store"), str(path), mapping=None if mapping is None else str(mapping))
    assert not (tmp_path / "store" / "_lineage" / "_runs").exists()


@given(st.lists(st.one_of(st.binary(max_size=30).filter(lambda data: b"\n" not in data), st.integers(0, 9)), max_size=12))
@settings(max_examples=15, deadline=None)
def test_nothing_is_lost_and_nothing_counted_twice(tmp_path_factory, given_lines):
    folder = tmp_path_factory.mktemp("ingest")
    path = lines(folder, *(each if isinstance(each, bytes) else event(each) for each in given_lines))
    found = ingest(str(folder / "store"), path)
    assert found.lines == found.events + found.quarantined == len(given_lines)
    assert found.events == sum(isinstance(each, int) for each in given_lines)
    if found.events:
        assert conformance_summary(folder / "store" / "_lineage", "r1")["total_events"] == len(
            {each for each in given_lines if isinstance(each, int)}
        )


def test_a_log_is_taken_in_anew_through_another_mapping_and_its_quarantine_is_kept(tmp_path):
    said = [{"job": "a", "fid": fid, "ts": "2024-05-01T12:00:00Z"} for fid in (1, 2)]
    log = lines(tmp_path, {**said[0], "error": "e"}, said[1], name="x.log")
    (tmp_path / "map.yaml").write_text(MAPPING)
    first = ingest(str(tmp_path / "store"), log, mapping=str(tmp_path / "map.yaml"))
    (tmp_path / "map.yaml").write_text(MAPPING.replace("{field: error}", "{field: error, default: no reason was logged}"))
    second = ingest(str(tmp_path / "store"), log, mapping=str(tmp_path / "map.yaml"))
    assert [(each.events, each.quarantined, each.runs[0]["attempt"]) for each in (first, second)] == [(1, 1, 0), (2, 0, 1)]
    about = attempts_of(LocalStore(tmp_path / "store"), "a")[0].doc["about"]["ingest"]
    assert (about["file"], about["lines"], about["quarantined"], about["quarantine"]) == ("x.log", 2, 1, first.quarantine)
    (tmp_path / "map.yaml").write_text(MAPPING.replace("{field: ts}", "{field: ts, unit: ms}"))
    third = ingest(str(tmp_path / "store"), log, mapping=str(tmp_path / "map.yaml"))
    assert (third.quarantined, third.quarantine == first.quarantine) == (2, False)
    assert LocalStore(tmp_path / "store").get(third.quarantine).count(b"\n") == 2


def test_memory_is_shared_by_the_runs_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("merestone.audit.ingest.PART_ROWS", 40)
    monkeypatch.setattr("merestone.audit.ingest._LEAST_ROWS", 2)
    monkeypatch.setattr("merestone.lineage.exchange.ingest.BATCH_ROWS", 10)
    path = lines(tmp_path, *(event(number, run_id=f"r{number % 4}") for number in range(80)))
    found = ingest(str(tmp_path / "store"), path)
    store = LocalStore(tmp_path / "store")
    assert [each["events"] for each in found.runs] == [20] * 4
    assert max(part.rows for run in ("r1", "r2", "r3") for part in attempts_of(store, run)[0].parts) <= 13
    assert sorted(read_run(store, "r1").column("sequence").to_pylist()) == list(range(1, 80, 4))
    assert verify_runs(store) == []
