"""Scans, histories, and why a feature is as it is."""

import json
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.events import TIME, event, table
from merestone.errors import CorruptError
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent, make_sequence
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.reading import history, read_run, scan, why
from merestone.lineage.store.run_manifest import attempts_of
from merestone.lineage.store.verdict import conformance_summary
from merestone.lineage.store.writing import RunWriter
from merestone.storage.local import LocalStore

CASES = Path(__file__).parents[2] / "cases"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.text("abcdé", min_size=1, max_size=2), max_size=8), max_size=6), st.integers(1, 12))
def test_a_scan_in_pieces_sees_each_row_once_with_its_feature(tmp_path_factory, batches, rows):
    folder = tmp_path_factory.mktemp("scan")
    store = LocalStore(folder / "dataset")
    writer = RunWriter(str(folder), "r1", 1, "ab", part_rows=5, group_rows=2)
    n, expected = 0, []
    for batch in batches:
        events = [event(feature, sequence=(n := n + 1)) for feature in batch]
        expected += [(each.feature_id, each.sequence) for each in events]
        writer.write(table(events))
    writer.seal(store, run_date=date(2026, 3, 3), plan=[], tool={}, time=TIME)
    pieces = [each.to_pylist() for each in scan(store, attempts_of(store, "r1"), names=("feature_id", "sequence"), rows=rows)]
    seen = [(each["feature_id"], each["sequence"]) for piece in pieces for each in piece]
    assert sorted(seen) == sorted(expected)
    homes = [{each["feature_id"] for each in piece} for piece in pieces]
    assert sum(map(len, homes)) == len(set().union(*homes))


def test_the_history_of_one_feature(store, seal):
    many = [event(f"{each:04d}", sequence=each) for each in range(1, 500)]
    seal("r1", table([*many, event("0123", "snap", sequence=1000)]), group_rows=64)
    seal("r2", table([event(f"{each:04d}", run="r2", sequence=each) for each in range(200, 300)]))
    seal("r3", table([event("0123", "validate", "REJECT", run="r3", reason="bow-tie"), event("0124", run="r3", sequence=2)]))
    seal("r3", table([event("0123", run="r3", sequence=make_sequence(2, 0, 0), change_class="changed")]), attempt=2)
    rows = history(store, "0123")
    assert [(each["run_id"], each["stage"], each["outcome"]) for each in rows.to_pylist()] == [
        ("r1", "validate", "PASS"),
        ("r1", "snap", "PASS"),
        ("r3", "validate", "REJECT"),
        ("r3", "validate", "PASS"),
    ]
    assert rows.column("event_id").to_pylist() == [
        event("0123").event_id(),
        event("0123", "snap").event_id(),
        event("0123", run="r3").event_id(),
        event("0123", run="r3").event_id(),
    ]
    assert history(store, "9999").num_rows == 0
    assert history(store, "0123x").num_rows == 0

    made = {"_lineage/_runs/r1-1.json": 1, "_lineage/_runs/r3-2.json": 2}
    found = why(store, "0123", fate=lambda attempts: {"version": made[attempts[-1].path]})
    assert [(each["run_id"], each["version"], each["outcome"], each["reason"], each["change_class"]) for each in found] == [
        ("r3", 2, "PASS", None, "changed"),
        ("r1", 1, "PASS", None, None),
    ]
    assert found[0]["attempts"] == [1, 2]
    assert [each["stage"] for each in found[1]["events"]] == ["validate", "snap"]
    assert json.dumps(found)
    assert [each["run_id"] for each in why(store, "0123", limit=1)] == ["r3"]
    assert why(store, "9999") == []


def test_why_names_the_refusal(store, seal):
    seal(
        "r1",
        table(
            [
                event("a", "snap"),
                event("a", "validate", "REJECT", sequence=2, reason="bow-tie"),
                event("a", "publish", "WARN", sequence=3, reason="last accepted row stays", change_class="held"),
            ]
        ),
    )
    [entry] = why(store, "a")
    assert (entry.get("version"), entry["outcome"], entry["stage"], entry["reason"], entry["change_class"]) == (
        None,
        "REJECT",
        "validate",
        "bow-tie",
        "held",
    )


@pytest.mark.parametrize("harm", ["missing", "torn", "short"])
def test_a_damaged_part_of_a_sealed_run_is_named(store, seal, harm):
    sealed = seal("r1", table([event("a"), event("b", sequence=2)]))
    path = f"_lineage/{sealed.parts[0].path}"
    data = store.get(path)
    store.delete(path)
    if harm == "torn":
        store.create(path, data[:-100])
    elif harm == "short":
        other = seal("r2", table([event("a", run="r2")]))
        store.create(path, store.get(f"_lineage/{other.parts[0].path}"))
    for question in (lambda: read_run(store, "r1"), lambda: conformance_summary(f"{store.url}/_lineage", "r1")):
        with pytest.raises(CorruptError, match=r"part-1-n1-00000\.parquet"):
            question()


def case(name):
    """The events of a case folder, a line each."""
    for line in (CASES / name / "events.jsonl").read_text(encoding="utf-8").splitlines():
        doc = json.loads(line)
        yield LineageEvent(**{**doc, "event_time_utc": datetime.fromisoformat(doc["event_time_utc"])})


def test_case_l03_one_folder_per_system_whatever_the_spelling(store, seal):
    collector, refused = LineageCollector(), []
    for number, each in enumerate(case("L03"), 1):
        try:
            collector.add(each)
        except ValueError as fault:
            refused.append((number, str(fault)))
    assert [number for number, _ in refused] == [9, 10, 11, 12]
    for words, (_, said) in zip(("utm32", "EPSG:999999", "../../x", "Site_Grid_7"), refused, strict=True):
        assert words in said
    targets = collector.to_table().column("target_crs").to_pylist()
    assert targets == ["EPSG:25832"] * 6 + ["EPSG:4326"] * 2
    seal("r1", collector.drain())
    folders = {name.split("/")[3] for name, _ in store.list("_lineage/run_date=2026-03-01/")}
    assert folders == {"target_crs=EPSG%3A25832", "target_crs=EPSG%3A4326"}


def test_case_l04_order_is_by_sequence_and_times_stay(store, seal):
    events = [each for each in case("L04") if each.run_id == "r1"]
    seal("r1", table(reversed(events)))
    rows = deduplicate(read_run(store, "r1")).sort_by("sequence").to_pylist()
    assert [each["feature_id"] for each in rows] == ["p1", "p2", "p3", "p4", "p5"]
    assert [each["event_time_utc"] for each in rows] == [each.event_time_utc for each in events]
    assert rows[2]["event_time_utc"] < rows[1]["event_time_utc"]
