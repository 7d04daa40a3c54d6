"""Foreign lines and rows: the verdict in columns is that of `LineageEvent`, row by row, and sound rows never leave the columns."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.errors import SourceError, UsageError
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.exchange import ingest
from merestone.lineage.exchange.ingest import event_of, read_batches
from merestone.lineage.exchange.mapping import read_mapping, read_time, whole_times

SOUND = {
    "run_id": "r1",
    "sequence": 3,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "validate",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:25832",
    "target_crs": "EPSG:25832",
    "outcome": "WARN",
}
ANY = st.sampled_from(
    [
        None,
        "",
        "x",
        "é",
        "e\u0301",
        "a\x1fb",
        "a\x85b",
        "\ud800",
        " ",
        "\u00a0",
        "\u2003\x1c",
        "日本",
        1,
        0,
        -1,
        1 << 31,
        1 << 63,
        -1 << 70,
        10**400,
        1.5,
        1.0,
        -0.5,
        1e999,
        True,
        [],
        {},
        "EPSG:25832",
        "urn:ogc:def:crs:EPSG::4326",
        "EPSG:999999",
        "REJECT",
        "PASS",
        "CAST",
        "0" * 32,
    ]
)
TIMES = st.sampled_from(
    [
        "2024-05-01T10:00:00Z",
        "2024-05-01t10:00:00.5z",
        "2024-05-01 10:00:00+02:00",
        "2024-02-30T10:00:00Z",
        "2024-05-01T10:00:00",
        "2024-05-01",
        "2024-05-01T10:00:00.1234567Z",
        "2024-05-01T10:00:00.1234560Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "2024-05-01T10:00:60Z",
        "2024-05-01T10:00:00+24:00",
        "20240501T100000Z",
        "\uff12024-05-01T10:00:00Z",
        5,
        None,
    ]
)


def write(folder, *values, name="events.ndjson"):
    path = folder / name
    path.write_bytes(b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in values))
    return str(path)


def whole(path, mapping=None, **more):
    """All events of a file, and the quarantined rows."""
    batches = list(read_batches(path, mapping, **more))
    return pa.concat_tables([LINEAGE_ARROW_SCHEMA.empty_table(), *(each.events for each in batches)]), [
        one for each in batches for one in each.quarantined
    ]


def by_row(values):
    """What the row way says: an event, or the reason."""
    try:
        found = dict(values)
        if isinstance(found.get("event_time_utc"), str):
            found["event_time_utc"] = read_time(found["event_time_utc"])
        if type(found.get("accuracy_m")) is int and abs(found["accuracy_m"]) < 1 << 53:
            found["accuracy_m"] = float(found["accuracy_m"])
        collector = LineageCollector()
        collector.add(event_of(found))
        return collector.to_table().to_pylist()[0]
    except ValueError as fault:
        return str(fault)


CHANGES = st.dictionaries(st.sampled_from([*LINEAGE_ARROW_SCHEMA.names, "color"]), ANY, max_size=3)


@given(st.lists(st.tuples(CHANGES, st.one_of(st.just(None), TIMES)), max_size=8))
@settings(max_examples=150, deadline=None)
def test_columns_and_rows_agree_on_lines(tmp_path_factory, changes):
    lines = [{**SOUND, **change, **({} if time is None else {"event_time_utc": time})} for change, time in changes]
    path = tmp_path_factory.mktemp("lines") / "e.ndjson"
    path.write_text("".join(json.dumps(each).replace("Infinity", "1e999") + "\n" for each in lines))
    expected = [by_row(each) for each in lines]
    events, refused = whole(str(path))
    assert events.to_pylist() == [each for each in expected if isinstance(each, dict)]
    assert [(each.line, each.reason) for each in refused] == [(at, each) for at, each in enumerate(expected, 1) if isinstance(each, str)]


def test_columns_and_rows_agree_on_times():
    texts = ["2024-05-01T10:00:00Z", "2024-05-01T10:00:00.5+02:00", "2024-05-01", None, 7, "9999-12-31T23:59:59Z"]
    assert whole_times(texts).to_pylist()[:2] == [read_time(each) for each in texts[:2]]
    assert whole_times(texts).null_count == 4
    assert read_time(texts[-1]) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_sound_lines_and_rows_never_become_objects(tmp_path, monkeypatch):
    rows = [
        {**SOUND, "sequence": at, "feature_id": f"é{at}", "accuracy_m": at, "outcome": "REJECT", "rejection_reason": "環"}
        for at in range(500)
    ]
    path = write(tmp_path, *rows)
    log = write(tmp_path, *({"job": "r", "fid": at, "ts": at, "error": "e", "rule": "r1"} for at in range(500)), name="log.ndjson")
    table, _ = whole(path)
    pq.write_table(table, tmp_path / "e.parquet")
    monkeypatch.setattr(ingest, "event_of", None)
    monkeypatch.setattr(ingest, "_checked", None)
    assert whole(path)[0].num_rows == whole(str(tmp_path / "e.parquet"))[0].num_rows == 500
    events, _ = whole(log, MAPPING)
    assert events.num_rows == 500
    assert events.column("stage")[0].as_py() == "validate.r1"


MAPPING = read_mapping(
    {
        "mapping_version": 1,
        "fields": {
            "run_id": {"field": "job"},
            "feature_id": {"field": "fid"},
            "event_time_utc": {"field": "ts", "unit": "ms"},
            "rejection_reason": {"field": "error"},
            "stage": {"value": "validate"},
            "qualifier": {"field": "rule"},
            "source_crs": {"value": "EPSG:25832"},
            "target_crs": {"field": "crs", "default": "EPSG:25832"},
            "accuracy_m": {"field": "m"},
        },
    }
)


@given(st.lists(st.dictionaries(st.sampled_from(["job", "fid", "ts", "error", "rule", "crs", "m"]), ANY, max_size=4), max_size=8))
@settings(max_examples=100, deadline=None)
def test_columns_and_rows_agree_on_logs(tmp_path_factory, changes):
    lines = [{"job": "r", "fid": 1, "ts": 1_714_557_600_123, "error": "e", **change} for change in changes]
    path = tmp_path_factory.mktemp("log") / "e.ndjson"
    path.write_text("".join(json.dumps(each).replace("Infinity", "1e999") + "\n" for each in lines))
    expected = []
    for line in lines:
        try:
            collector = LineageCollector()
            collector.add(MAPPING.event(line, 0))
            expected += collector.to_table().to_pylist()
        except ValueError as fault:
            expected.append(str(fault))
    events, refused = whole(str(path), MAPPING)
    assert events.to_pylist() == [each for each in expected if isinstance(each, dict)]
    assert [(each.line, each.reason) for each in refused] == [(at, each) for at, each in enumerate(expected, 1) if isinstance(each, str)]


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": pa.array([1.5])},
        {"sequence": pa.array([1.0])},
        {"sequence": pa.array([1 << 63], pa.uint64())},
        {"sequence": pa.array([True])},
        {"event_time_utc": pa.array([0], pa.timestamp("us"))},
        {"event_time_utc": pa.array([1], pa.timestamp("ns", "UTC"))},
        {"event_time_utc": pa.array([5])},
        {"event_time_utc": pa.array([0], pa.date32())},
        {"feature_id": pa.array([7])},
        {"feature_id": pa.array([b"\xff"]).cast(pa.string(), safe=False)},
        {"feature_id": pa.array([b"p"])},
        {"strategy_index": pa.array([1 << 31])},
        {"accuracy_m": pa.array([float("nan")])},
        {"color": pa.array(["red"])},
        {"outcome": pa.array([None], pa.string())},
        {"event_id": pa.array(["0" * 32])},
    ],
)
def test_columns_of_another_kind_are_refused_not_coerced(tmp_path, change):
    table = sound_table()
    for name, values in change.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, values) if at >= 0 else table.append_column(name, values)
    pq.write_table(table, tmp_path / "e.parquet")
    events, refused = whole(str(tmp_path / "e.parquet"))
    assert (events.num_rows, [each.line for each in refused]) == (0, [1])
    assert refused[0].reason


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": pa.array([3], pa.int8())},
        {"sequence": pa.array([3], pa.uint64())},
        {"accuracy_m": pa.array([0.5], pa.float32())},
        {"event_time_utc": pa.array([1_714_557_600], pa.timestamp("s", "Europe/Berlin"))},
        {"feature_id": pa.array(["p1"]).dictionary_encode()},
        {"stage": pa.array(["validate"], pa.large_string())},
        {"audit_tag": pa.nulls(1)},
    ],
)
def test_columns_that_say_the_same_in_another_type_are_taken(tmp_path, change):
    table = sound_table()
    for name, values in change.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, values) if at >= 0 else table.append_column(name, values)
    pq.write_table(table, tmp_path / "e.parquet")
    events, refused = whole(str(tmp_path / "e.parquet"))
    assert refused == []
    assert {
        name: value for name, value in events.to_pylist()[0].items() if name in ("sequence", "event_time_utc", "feature_id", "stage")
    } == {"sequence": 3, "event_time_utc": datetime(2024, 5, 1, 10, tzinfo=UTC), "feature_id": "p1", "stage": "validate"}


def sound_table():
    values = {**SOUND, "event_time_utc": datetime(2024, 5, 1, 10, tzinfo=UTC)}
    return pa.Table.from_pylist([values], schema=pa.schema([each for each in LINEAGE_ARROW_SCHEMA if each.name in values]))


def test_long_lines_are_set_aside_unread_and_the_next_ones_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "LINE_BYTES", 300)
    path = write(tmp_path, {**SOUND, "audit_tag": "x" * 1000}, SOUND, {**SOUND, "feature_id": "p2", "audit_tag": "x" * 200}, b"y" * 5000)
    events, refused = whole(path)
    assert events.column("feature_id").to_pylist() == ["p1"]
    assert [(each.line, each.reason) for each in refused] == [(at, "the line is longer than 300 bytes") for at in (1, 3, 4)]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    events, refused = whole(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(SOUND).encode(), b"\xef\xbb\xbf" + json.dumps(SOUND).encode()))
    assert (events.num_rows, [each.line for each in refused]) == (1, [2])


def test_what_another_run_told_itself_is_set_aside(tmp_path):
    path = write(tmp_path, SOUND, {**SOUND, "stage": "validate.more"}, {**SOUND, "stage": "upstream"}, {**SOUND, "run_id": "r2"})
    events, refused = whole(path, reserved={"r1": frozenset({"validate", "publish"})})
    assert [(each["run_id"], each["stage"]) for each in events.to_pylist()] == [("r1", "upstream"), ("r2", "validate")]
    assert [each.line for each in refused] == [1, 2]
    assert "which recorded its stage validate itself" in refused[1].reason


def test_many_batches_are_numbered_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BATCH_ROWS", 3)
    path = write(tmp_path, *({**SOUND, "sequence": at} if at % 4 else b"x" for at in range(10)))
    events, refused = whole(path)
    assert [each.line for each in refused] == [1, 5, 9]
    assert events.column("sequence").to_pylist() == [1, 2, 3, 5, 6, 7, 9]
    pq.write_table(events, tmp_path / "e.parquet")
    again, none = whole(str(tmp_path / "e.parquet"))
    assert (again.equals(events), none) == (True, [])


def test_files_that_are_none_say_so(tmp_path):
    for name, fault in (("e.csv", UsageError), ("none.ndjson", SourceError), ("none.parquet", SourceError)):
        with pytest.raises(fault):
            whole(str(tmp_path / name))
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["stage", "stage"])
    with pa.ipc.new_file(tmp_path / "e.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SourceError, match="two columns of one name"):
        whole(str(tmp_path / "e.arrow"))


def test_the_future_is_told_as_it_was_logged(tmp_path):
    late = datetime(2031, 1, 1, tzinfo=UTC)
    events, _ = whole(write(tmp_path, {**SOUND, "event_time_utc": (late + timedelta(hours=0)).isoformat()}))
    assert events.column("event_time_utc").to_pylist() == [late]
