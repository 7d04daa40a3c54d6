"""Reading: what stands after retries and replays, verdicts, histories."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.errors import CorruptError, UsageError
from merestone.lineage import reading
from merestone.lineage.collector import LineageCollector
from merestone.lineage.event import LineageEvent, make_sequence
from merestone.lineage.reading import (
    attempts_of,
    conformance_summary,
    deduplicate,
    deduplicate_report,
    history,
    read_run,
    run_summary,
    scan,
    sealed_runs,
    why,
)
from merestone.lineage.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store import RunWriter
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, 0, tzinfo=UTC)
CASES = Path(__file__).parents[1] / "cases"
KINDS = {"crs_normalize": "TRANSFORM", "snap": "SNAP", "validate": "VALIDATE", "publish": "VALIDATE"}


def event(feature, stage="validate", outcome="PASS", *, sequence=1, run="r1", **more):
    reason = None if outcome == "PASS" else more.pop("reason", f"{stage} says so")
    return LineageEvent(run_id=run, sequence=sequence, event_time_utc=more.pop("time", TIME), stage=stage, event_type=KINDS[stage],
                        feature_id=feature, source_crs="EPSG:25832", target_crs="EPSG:4326", outcome=outcome, rejection_reason=reason,
                        **more)


def table(events):
    collector = LineageCollector()
    for each in events:
        collector.add(each)
    return collector.to_table()


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "dataset")


@pytest.fixture
def seal(store, tmp_path):
    """Seal some events as one attempt of a run; the n-th call is a day later."""
    calls = []

    def sealing(run, events, attempt=1, **how):
        calls.append(run)
        scratch = tmp_path / f"scratch{len(calls)}"
        scratch.mkdir()
        writer = RunWriter(str(scratch), run, attempt, f"n{len(calls)}", **how)
        for each in [events] if isinstance(events, pa.Table) else events:
            writer.write(each)
        return writer.seal(store, run_date=date(2026, 3, len(calls)), plan=["crs_normalize", "snap", "validate"], tool={"PROJ": "9.5"},
                           time=TIME.replace(day=len(calls)))

    return sealing


def root(store):
    return f"{store.url}/_lineage"


streams = st.lists(st.tuples(
    st.sampled_from("abc"), st.sampled_from(["snap", "validate"]), st.sampled_from(["PASS", "WARN", "REJECT"]), st.integers(1, 3),
    st.integers(0, 2), st.sampled_from(["x", "y"])), max_size=30)


@settings(deadline=None)
@given(streams)
def test_deduplication_equals_a_plain_model(stream):
    events = [event(feature, stage, outcome, sequence=make_sequence(attempt, 0, n), **({} if outcome == "PASS" else {"reason": reason}))
              for feature, stage, outcome, attempt, n, reason in stream]
    given_rows = table(events)
    best = {}
    severity = ["PASS", "WARN", "REJECT"].index
    for place, each in enumerate(events):
        rank = (each.sequence, severity(each.outcome), -place)
        if each.event_id() not in best or rank > best[each.event_id()][0]:
            best[each.event_id()] = (rank, place)
    stands = sorted(place for _, place in best.values())
    assert deduplicate(given_rows).equals(given_rows.take(pa.array(stands, pa.int64())))

    top = {}
    for each in events:
        key = (each.event_id(), each.sequence >> 48)
        if key not in top or (each.sequence, severity(each.outcome)) > (top[key].sequence, severity(top[key].outcome)):
            top[key] = each
    fates = {"replays": 0, "corrections": 0, "conflicts": 0}

    def payload(each):
        return (each.outcome, each.rejection_reason)

    for place, each in enumerate(events):
        if place in stands:
            continue
        mine = top[each.event_id(), each.sequence >> 48]
        if payload(each) != payload(mine):
            fates["conflicts"] += 1
        elif each is not mine or payload(each) == payload(events[best[each.event_id()][1]]):
            fates["replays"] += 1
        else:
            fates["corrections"] += 1
    report = deduplicate_report(given_rows)
    assert {name: getattr(report, name) for name in fates} == fates
    assert report.rows == len(events)
    assert report.standing == len(stands)
    assert report.rows == report.standing + report.replays + report.corrections + report.conflicts
    assert deduplicate(deduplicate(given_rows)).equals(deduplicate(given_rows))


def test_replay_correction_and_conflict_are_told_apart():
    late = TIME.replace(hour=2)
    report = deduplicate_report(table([
        event("same", sequence=make_sequence(1, 0, 0)), event("same", sequence=make_sequence(1, 1, 0), time=late),
        event("again", sequence=make_sequence(1, 0, 1)), event("again", sequence=make_sequence(2, 0, 1)),
        event("mended", outcome="REJECT", sequence=make_sequence(1, 0, 2)), event("mended", sequence=make_sequence(2, 0, 2)),
        event("torn", sequence=make_sequence(1, 0, 3), accuracy_m=0.1),
        event("torn", "validate", "WARN", sequence=make_sequence(1, 0, 4), accuracy_m=0.2),
    ]))
    assert (report.replays, report.corrections, report.conflicts) == (2, 1, 1)
    [alert] = report.to_json()["samples"]
    assert alert["feature_id"] == "torn"
    assert alert["attempt"] == 1
    assert alert["columns"] == ["outcome", "accuracy_m", "rejection_reason"]


def test_deduplication_keeps_the_table_whatever_its_chunks():
    rows = table([event("a"), event("b", sequence=2), event("a", sequence=3, outcome="REJECT")])
    chunks = pa.concat_tables([rows.slice(each, 1) for each in range(3)])
    assert deduplicate(chunks).equals(rows.slice(1))
    assert deduplicate(LINEAGE_ARROW_SCHEMA.empty_table()).num_rows == 0
    assert deduplicate_report(LINEAGE_ARROW_SCHEMA.empty_table()).rows == 0


def test_the_verdict_of_a_run_counts_what_stands(store, seal):
    seal("007", table([
        event("a", "snap", run="007"), event("a", "validate", "REJECT", run="007", sequence=2),
        event("b", "snap", "WARN", run="007", sequence=3), event("b", run="007", sequence=4), event("b", run="007", sequence=5)]))
    first = {"total_events": 4, "passed": 2, "rejected": 1, "warned": 1,
             "features": 2, "features_passed": 0, "features_rejected": 1, "features_warned": 1}
    assert conformance_summary(root(store), "007") == first
    assert conformance_summary(Path(root(store)), "007") == first
    assert conformance_summary(LocalStore(root(store)), "007") == first
    seal("7", table([event("a", run="7")]))
    assert conformance_summary(root(store), "007") == first
    seal("007", table([event("a", run="007", sequence=make_sequence(2, 0, 0))]), attempt=2)
    assert conformance_summary(root(store), "007") == {
        "total_events": 4, "passed": 3, "rejected": 0, "warned": 1,
        "features": 2, "features_passed": 1, "features_rejected": 0, "features_warned": 1}
    assert read_run(store, "007", attempt=2).num_rows == 1


@pytest.mark.parametrize("run", ["r2", "r", "", "R1"])
def test_an_unknown_run_is_a_usage_error(store, seal, run):
    seal("r1", table([event("a")]))
    with pytest.raises(UsageError, match="no sealed run"):
        conformance_summary(root(store), run)
    with pytest.raises(UsageError, match="no sealed attempt 2"):
        read_run(store, "r1", attempt=2)


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


def test_the_summary_of_a_run(store, seal):
    seal("r1", table([
        event("a", "crs_normalize"), event("a", "snap", sequence=2), event("a", sequence=3),
        event("b", "crs_normalize", sequence=4), event("b", "snap", sequence=5),
        event("b", "validate", "REJECT", sequence=6, reason="bow-tie"),
        event("c", "publish", "WARN", sequence=7, reason="held", change_class="held")]))
    found = run_summary(store, "r1")
    assert found["attempts"] == [1]
    assert found["tool"] == {"PROJ": "9.5"}
    assert {name: found[name] for name in ("total_events", "passed", "rejected", "warned")} == {
        "total_events": 7, "passed": 5, "rejected": 1, "warned": 1}
    assert [(each["stage"], each["outcome"], each["events"]) for each in found["stages"]] == [
        ("crs_normalize", "PASS", 2), ("snap", "PASS", 2), ("validate", "PASS", 1), ("validate", "REJECT", 1), ("publish", "WARN", 1)]
    assert found["reasons"] == [{"stage": "publish", "outcome": "WARN", "reason": "held", "events": 1},
                                {"stage": "validate", "outcome": "REJECT", "reason": "bow-tie", "events": 1}]
    assert json.dumps(found)


def test_the_history_of_one_feature(store, seal):
    many = [event(f"{each:04d}", sequence=each) for each in range(1, 500)]
    seal("r1", table([*many, event("0123", "snap", sequence=1000)]), group_rows=64)
    seal("r2", table([event(f"{each:04d}", run="r2", sequence=each) for each in range(200, 300)]))
    seal("r3", table([event("0123", "validate", "REJECT", run="r3", reason="bow-tie"), event("0124", run="r3", sequence=2)]))
    seal("r3", table([event("0123", run="r3", sequence=make_sequence(2, 0, 0), change_class="changed")]), attempt=2)
    rows = history(store, "0123")
    assert [(each["run_id"], each["stage"], each["outcome"]) for each in rows.to_pylist()] == [
        ("r1", "validate", "PASS"), ("r1", "snap", "PASS"), ("r3", "validate", "REJECT"), ("r3", "validate", "PASS")]
    assert rows.column("event_id").to_pylist() == [
        event("0123").event_id(), event("0123", "snap").event_id(), event("0123", run="r3").event_id(), event("0123", run="r3").event_id()]
    assert history(store, "9999").num_rows == 0
    assert history(store, "0123x").num_rows == 0

    found = why(store, "0123", versions={"_lineage/_runs/r1-1.json": 1, "_lineage/_runs/r3-2.json": 2})
    assert [(each["run_id"], each["version"], each["outcome"], each["reason"], each["change_class"]) for each in found] == [
        ("r3", 2, "PASS", None, "changed"), ("r1", 1, "PASS", None, None)]
    assert found[0]["attempts"] == [1, 2]
    assert [each["stage"] for each in found[1]["events"]] == ["validate", "snap"]
    assert json.dumps(found)
    assert [each["run_id"] for each in why(store, "0123", limit=1)] == ["r3"]
    assert why(store, "9999") == []


def test_why_names_the_refusal(store, seal):
    seal("r1", table([event("a", "snap"), event("a", "validate", "REJECT", sequence=2, reason="bow-tie"),
                      event("a", "publish", "WARN", sequence=3, reason="last accepted row stays", change_class="held")]))
    [entry] = why(store, "a")
    assert (entry["version"], entry["outcome"], entry["stage"], entry["reason"], entry["change_class"]) == (
        None, "REJECT", "validate", "bow-tie", "held")


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
    for question in (lambda: read_run(store, "r1"), lambda: conformance_summary(root(store), "r1")):
        with pytest.raises(CorruptError, match=r"part-1-n1-00000\.parquet"):
            question()


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"format": 2}', b"\xff"])
def test_a_damaged_run_manifest_is_named(store, text):
    store.create("_lineage/_runs/r1-1.json", text)
    with pytest.raises(CorruptError, match=r"r1-1\.json"):
        sealed_runs(store)


@pytest.mark.parametrize(("version", "read"), [("1.2.0", True), ("1.99.0", True), ("2.0.0", False), ("0.9.0", False), ("1.x", False)])
def test_events_of_another_major_version_are_not_read_as_if_they_meant_the_same(store, seal, version, read):
    sealed = seal("r1", table([event("a")]))
    doc = json.loads(store.get(sealed.run_manifest))
    store.delete(sealed.run_manifest)
    store.create(sealed.run_manifest, json.dumps({**doc, "schema_version": version}).encode())
    if read:
        assert read_run(store, "r1").num_rows == 1
    else:
        with pytest.raises(CorruptError, match=f"is of lineage schema {version}"):
            read_run(store, "r1")


def test_a_run_manifest_with_another_checksum_is_named(store, seal):
    sealed = seal("r1", table([event("a")]))
    assert reading.read_manifest(store, sealed.run_manifest, sha256=sealed.sha256).root == sealed.root
    with pytest.raises(CorruptError, match="checksum differs"):
        reading.read_manifest(store, sealed.run_manifest, sha256="0" * 64)
    with pytest.raises(CorruptError, match="is missing"):
        reading.read_manifest(store, "_lineage/_runs/r9-1.json")


def test_files_of_other_minor_versions_are_read_in_the_compiled_schema():
    rows = table([event("a", change_class="moved")])
    assert reading.conform(rows.drop_columns(["change_class", "contract_version"])).column("change_class").to_pylist() == [None]
    assert reading.conform(rows.append_column("later", pa.array(["x"]))).schema.equals(LINEAGE_ARROW_SCHEMA)


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
