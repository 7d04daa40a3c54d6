"""The event store: what seal writes, and that nothing counts before it."""

import hashlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.errors import ConflictError, UsageError
from merestone.lineage.event import merkle
from merestone.lineage.event.checked_json import said
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent, make_sequence
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, SCHEMA, schema_text
from merestone.lineage.proof.inclusion import verify_runs
from merestone.lineage.store.deduplication import deduplicate, deduplicate_report
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.run_manifest import attempts_of, sealed_runs
from merestone.lineage.store.verdict import conformance_summary
from merestone.lineage.store.writing import Besides, RunWriter
from merestone.results.finding import PASS, REJECT, Steps
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, 0, tzinfo=UTC)
DAY = date(2026, 3, 3)
SEAL = {"run_date": DAY, "plan": ["attr_cast", "validate"], "tool": {"merestone": "0.1.0"}, "time": TIME}


def batch(run_id, ids, *, attempt=1, number=0, refused=(), target="EPSG:4326"):
    """The compact events of two stages over some features."""
    collector = LineageCollector()
    verdict = np.array([REJECT if each in refused else PASS for each in ids], np.uint8)
    reason = pa.array(["bow-tie" if each in refused else None for each in ids], pa.string())
    collector.add_columns(
        pa.array(ids),
        [
            Steps("attr_cast", "CAST", np.zeros(len(ids), np.uint8), pa.nulls(len(ids), pa.string()), "EPSG:25832", target),
            Steps("validate", "VALIDATE", verdict, reason, target, target),
        ],
        run_id=run_id,
        attempt=attempt,
        batch=number,
        time=TIME,
    )
    return collector.drain()


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "dataset")


def files(store):
    return [name for name, _ in store.list("_lineage/")]


def test_nothing_is_in_the_store_before_seal(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12", part_rows=4)
    for number in range(5):
        writer.write(batch("r1", ["a", "b", "c"], number=number))
    assert files(store) == []
    assert len(os.listdir(scratch)) == 4  # noqa: PTH208 - scratch is a str; the fifth batch waits in memory
    assert writer.counts() == {"total_events": 30, "passed": 30, "rejected": 0, "warned": 0}


def test_a_sealed_run(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12")
    writer.write(batch("r1", ["b", "ä", "a"], refused=["b"]))
    writer.write(batch("r1", ["c"], number=1))
    before = {"run_manifest": "_lineage/_runs/r0-1.json", "sha256": "00" * 32, "events": 1, "root": "00" * 32}
    sealed = writer.seal(store, **SEAL, besides=Besides([before], findings=[{"rule": "null"}]), about={"dataset": "parcels"})
    part = "run_date=2026-03-03/run_id=r1/target_crs=EPSG%3A4326/part-1-ab12-00000.parquet"
    assert files(store) == ["_lineage/_runs/r1-1.json", f"_lineage/_schemas/{SCHEMA.version}.yaml", f"_lineage/{part}"]
    assert os.listdir(scratch) == []  # noqa: PTH208 - scratch is a str
    manifest = store.get("_lineage/_runs/r1-1.json")
    doc = json.loads(manifest)
    assert sealed.to_json() == {
        "run_manifest": "_lineage/_runs/r1-1.json",
        "sha256": hashlib.sha256(manifest).hexdigest(),
        "events": 8,
        "root": doc["root"],
    }
    assert doc["counts"] == sealed.counts == {"total_events": 8, "passed": 7, "rejected": 1, "warned": 0}
    schema = schema_text().encode()
    assert doc["steps"] == [
        {"stage": "attr_cast", "event_type": "CAST", "outcome": "PASS", "events": 4},
        {"stage": "validate", "event_type": "VALIDATE", "outcome": "PASS", "events": 3},
        {"stage": "validate", "event_type": "VALIDATE", "outcome": "REJECT", "events": 1},
    ]
    assert {
        each: doc[each]
        for each in (
            "format",
            "run_id",
            "attempt",
            "run_date",
            "sealed_utc",
            "schema_version",
            "plan",
            "tool",
            "heads",
            "origin",
            "findings",
            "objects",
            "about",
        )
    } == {
        "format": 1,
        "run_id": "r1",
        "attempt": 1,
        "run_date": "2026-03-03",
        "sealed_utc": "2026-03-03T01:00:00.000000Z",
        "schema_version": "1.3.0",
        "plan": ["attr_cast", "validate"],
        "tool": {"merestone": "0.1.0"},
        "heads": [before],
        "origin": "own",
        "findings": [{"rule": "null"}],
        "objects": [{"path": "_lineage/_schemas/1.3.0.yaml", "bytes": len(schema), "sha256": hashlib.sha256(schema).hexdigest()}],
        "about": {"dataset": "parcels"},
    }
    data = store.get(f"_lineage/{part}")
    table = pq.read_table(pa.BufferReader(data), partitioning=None)
    assert table.schema.equals(LINEAGE_ARROW_SCHEMA, check_metadata=True)
    assert table.column("feature_id").to_pylist() == ["a", "a", "b", "b", "c", "c", "ä", "ä"]
    assert table.column("sequence").to_pylist() == [
        make_sequence(1, *each) for each in [(0, 4), (0, 5), (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]
    ]
    root = merkle.root_of(merkle.leaves(table))
    assert doc["parts"] == [
        {
            "path": part,
            "rows": 8,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "root": root.hex(),
            "target_crs": "EPSG:4326",
            "first_feature": "a",
            "last_feature": "ä",
        }
    ]
    assert doc["root"] == merkle.root_of_run([root], said(doc)).hex()


def test_what_went_in_is_what_is_read(store, scratch):
    collector = LineageCollector()
    for n in range(7):
        collector.add(
            LineageEvent(
                run_id="r1",
                sequence=n,
                event_time_utc=TIME,
                stage="crs_normalize",
                event_type="TRANSFORM",
                feature_id=f"p{n % 3}",
                source_crs="EPSG:25832",
                target_crs=("EPSG:4326", "EPSG:25832")[n % 2],
                outcome="WARN",
                rejection_reason=f"r{n}\x00\n",
                accuracy_m=0.1 * n,
                strategy_index=n,
            )
        )
    table = collector.to_table()
    writer = RunWriter(scratch, "r1", 0, "ab12")
    writer.write(table)
    sealed = writer.seal(store, **SEAL)
    assert {each.target_crs for each in sealed.parts} == {"EPSG:4326", "EPSG:25832"}
    assert read_run(store, "r1").sort_by("sequence").equals(table)


def test_parts_flush_in_bounded_batches_and_keep_everything(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12", part_rows=50, group_rows=16)
    expected = []
    for number in range(9):
        ids = [f"{each:03d}" for each in range(number, 200, 9)]
        table = batch("r1", ids, number=number)
        expected += table.column("sequence").to_pylist()
        writer.write(table)
        assert sum(each.num_rows for each in writer._waiting) <= 50
    sealed = writer.seal(store, **SEAL)
    assert len(sealed.parts) > 4
    assert sealed.events == len(expected) == 400
    assert sorted(read_run(store, "r1").column("sequence").to_pylist()) == sorted(expected)
    for each in sealed.parts:
        reader = pq.ParquetFile(store.open(f"_lineage/{each.path}"))
        assert reader.metadata.row_group(0).num_rows == 16
        assert reader.read().sort_by([("feature_id", "ascending"), ("sequence", "ascending")]).equals(reader.read())


def test_a_part_holds_no_more_than_it_may_unless_one_batch_does(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12", part_rows=50)
    for number, features in enumerate((10, 10, 10, 40, 3)):  # two events each
        writer.write(batch("r1", [f"{number}-{each}" for each in range(features)], number=number))
    assert [each.rows for each in writer.seal(store, **SEAL).parts] == [40, 20, 80, 6]


def test_batches_that_come_out_of_turn_are_sorted_by_sequence(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12")
    for number in (2, 0, 1):
        writer.write(batch("r1", ["b", "a"], number=number))
    writer.seal(store, **SEAL)
    rows = read_run(store, "r1").to_pylist()
    assert [each["feature_id"] for each in rows] == ["a"] * 6 + ["b"] * 6
    for feature in "ab":
        mine = [each["sequence"] for each in rows if each["feature_id"] == feature]
        assert mine == sorted(mine)


def test_a_run_id_of_any_text_stays_text(store, scratch):
    for run in ("007", "7", "a/b", "..", "r%2F1", "ä ö"):
        writer = RunWriter(scratch, run, 1, "ab12")
        writer.write(batch(run, ["a"]))
        writer.seal(store, **SEAL)
        assert set(read_run(store, run).column("run_id").to_pylist()) == {run}
    assert len(sealed_runs(store)) == 6
    assert "_lineage/run_date=2026-03-03/run_id=a%2Fb/target_crs=EPSG%3A4326/part-1-ab12-00000.parquet" in files(store)


def test_run_ids_that_begin_alike_are_told_apart(store, scratch):
    for run, attempt in (("r", 1), ("r-1", 1), ("r-1", 2)):
        writer = RunWriter(scratch, run, attempt, "ab12")
        writer.write(batch(run, ["a"], attempt=attempt))
        writer.seal(store, **SEAL)
    assert [(each.run_id, each.attempt) for each in attempts_of(store, "r")] == [("r", 1)]
    assert [(each.run_id, each.attempt) for each in attempts_of(store, "r-1")] == [("r-1", 1), ("r-1", 2)]


def test_a_run_without_events_can_be_sealed(store, scratch):
    sealed = RunWriter(scratch, "r1", 1, "ab12").seal(store, **SEAL)
    assert sealed.events == 0
    assert sealed.parts == ()
    assert read_run(store, "r1").num_rows == 0
    assert conformance_summary(Path(store.root) / "_lineage", "r1")["total_events"] == 0


def test_an_attempt_is_sealed_once(store, scratch):
    RunWriter(scratch, "r1", 1, "ab12").seal(store, **SEAL)
    with pytest.raises(ConflictError, match="attempt 1 is sealed already"):
        RunWriter(scratch, "r1", 1, "cd34").seal(store, **SEAL)
    done = RunWriter(scratch, "r1", 2, "cd34")
    done.seal(store, **SEAL)
    with pytest.raises(ValueError, match="is sealed"):
        done.write(batch("r1", ["a"]))


def test_events_of_another_run_or_schema_are_refused(scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12")
    with pytest.raises(ValueError, match="'r2', not of run 'r1'"):
        writer.write(batch("r2", ["a"]))
    with pytest.raises(ValueError, match="not of the lineage schema"):
        writer.write(pa.table({"run_id": ["r1"]}))
    holes = LineageCollector()
    holes.add(
        LineageEvent(
            run_id="r1",
            sequence=1,
            event_time_utc=TIME,
            stage="validate",
            event_type="VALIDATE",
            feature_id="a",
            source_crs="EPSG:4326",
            target_crs="EPSG:4326",
            outcome="PASS",
        )
    )
    table = holes.to_table()
    place = LINEAGE_ARROW_SCHEMA.get_field_index("stage")
    with pytest.raises(ValueError, match="stage is missing in 1 rows"):
        writer.write(table.set_column(place, LINEAGE_ARROW_SCHEMA.field("stage"), pa.nulls(1, pa.string())))
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        writer.write(table.set_column(0, LINEAGE_ARROW_SCHEMA.field("event_id"), pa.array(["XY"])))
    for bad in ("", "r\n", "Cafe\u0301"):
        with pytest.raises(ValueError, match="run_id"):
            RunWriter(scratch, bad, 1, "ab12")


def test_files_that_no_sealed_run_lists_are_not_there(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12")
    writer.write(batch("r1", ["a"]))
    sealed = writer.seal(store, **SEAL)
    folder = "_lineage/run_date=2026-03-03/run_id=r1/target_crs=EPSG%3A4326"
    whole = store.get(f"_lineage/{sealed.parts[0].path}")
    store.create(f"{folder}/part-1-dead-00000.parquet", whole)
    store.create(f"{folder}/part-2-dead-00000.parquet", whole[:100])
    store.create(f"{folder}/notes.txt", b"?")
    assert read_run(store, "r1").num_rows == 2
    assert conformance_summary(Path(store.root) / "_lineage", "r1")["total_events"] == 2


NEVER = 1_000
PLAN = (("attr_cast", "CAST"), ("snap", "SNAP"), ("validate", "VALIDATE"))


@st.composite
def nights(draw):
    """Batches of features, and attempts at them: verdicts, the order in which workers finish, batches that come twice, where it breaks off."""
    features = [f"f{each}" for each in range(draw(st.integers(1, 9)))]
    cuts = sorted(draw(st.lists(st.integers(0, len(features)), max_size=3)))
    batches = [features[start:end] for start, end in zip([0, *cuts], [*cuts, len(features)], strict=True)]
    attempts = []
    for _ in range(draw(st.integers(1, 3))):
        verdicts = {(each, stage): draw(st.sampled_from(["PASS", "PASS", "WARN", "REJECT"])) for each in features for stage, _ in PLAN}
        order = draw(st.permutations(range(len(batches))))
        again = draw(st.lists(st.sampled_from(range(len(batches))), max_size=2))
        attempts.append((verdicts, [*order, *again], draw(st.just(NEVER) | st.integers(0, 14))))
    return batches, attempts, draw(st.integers(1, 12))


class Breaking(LocalStore):
    """Breaks off at a moment: each batch is one, and each side of each write."""

    def __init__(self, root, left):
        super().__init__(root)
        self.left = left

    def reach(self):
        if self.left == 0:
            raise BrokenPipeError
        self.left -= 1

    def create(self, name, data):
        self.reach()
        super().create(name, data)
        self.reach()

    def create_from(self, name, local_path):
        self.reach()
        super().create_from(name, local_path)
        self.reach()


def told(verdicts, attempt, number, features):
    """What a worker makes of one batch (compact events), and the same as a plain list."""
    words = ("PASS", "WARN", "REJECT")
    steps = [
        Steps(
            stage,
            kind,
            np.array([words.index(verdicts[each, stage]) for each in features], np.uint8),
            pa.array([None if verdicts[each, stage] == "PASS" else f"{stage} in attempt {attempt}" for each in features], pa.string()),
            "EPSG:25832",
            "EPSG:4326",
        )
        for stage, kind in PLAN
    ]
    collector = LineageCollector()
    collector.add_columns(pa.array(features, pa.string()), steps, run_id="r1", attempt=attempt, batch=number, time=TIME)
    plain, n = [], 0
    for each in features:
        for stage, _ in PLAN:
            plain.append((each, stage, verdicts[each, stage], make_sequence(attempt, number, n)))
            n += 1
            if verdicts[each, stage] == "REJECT":
                break
    return collector.drain(), plain


@settings(deadline=None, max_examples=30)
@given(nights())
def test_no_event_is_lost_and_none_counts_twice_whatever_breaks(tmp_path_factory, night):
    batches, attempts, part_rows = night
    folder = tmp_path_factory.mktemp("night")
    store, sealed_events = LocalStore(folder / "dataset"), []
    for attempt, (verdicts, order, breaks) in enumerate(attempts, 1):
        writer = RunWriter(str(folder), "r1", attempt, f"n{attempt}", part_rows=part_rows, group_rows=4)
        with ThreadPoolExecutor(3) as workers:
            done = list(workers.map(lambda number, a=attempt, v=verdicts: told(v, a, number, batches[number]), order))
        plain, breaking = [], Breaking(store.root, breaks)
        try:
            for table, events in done:
                breaking.reach()
                writer.write(table)
                plain += events
            writer.seal(breaking, **SEAL)
        except BrokenPipeError:
            pass  # as a killed process: what it left is in the store or in the scratch folder, and nobody tidies up
        if any(each.attempt == attempt for each in sealed_runs(store)):
            sealed_events += plain
    if not sealed_events:
        assert all(each.counts["total_events"] == 0 for each in sealed_runs(store))
        return
    rows = read_run(store, "r1")
    assert Counter((each["feature_id"], each["stage"], each["outcome"], each["sequence"]) for each in rows.to_pylist()) == Counter(
        sealed_events
    )
    model = {}
    for feature, stage, outcome, sequence in sealed_events:
        if sequence >= model.get((feature, stage), ("", -1))[1]:
            model[feature, stage] = (outcome, sequence)
    stands = [(each["feature_id"], each["stage"], each["outcome"], each["sequence"]) for each in deduplicate(rows).to_pylist()]
    assert sorted(stands) == sorted((*key, *value) for key, value in model.items())
    report = deduplicate_report(rows)
    assert (report.conflicts, report.standing + report.replays + report.corrections) == (0, len(sealed_events))
    rejects = {(feature, stage, sequence >> 48) for feature, stage, outcome, sequence in sealed_events if outcome == "REJECT"}
    later = {(feature, stage): sequence >> 48 for feature, stage, _, sequence in stands}
    standing = {(feature, stage) for feature, stage, outcome, _ in stands if outcome == "REJECT"}
    assert all((feature, stage) in standing or later[feature, stage] > attempt for feature, stage, attempt in rejects)
    outcomes = Counter(outcome for outcome, _ in model.values())
    summary = conformance_summary(Path(store.root) / "_lineage", "r1")
    assert (summary["total_events"], summary["passed"], summary["warned"], summary["rejected"]) == (
        len(model),
        outcomes["PASS"],
        outcomes["WARN"],
        outcomes["REJECT"],
    )
    assert verify_runs(store) == []


VICTIM = """
import os, signal, sys
from datetime import UTC, date, datetime
import numpy as np, pyarrow as pa
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.store.writing import RunWriter
from merestone.results.finding import Steps
from merestone.storage.local import LocalStore

def work(store, scratch, attempt, nonce):
    time = datetime(2026, 3, 3, tzinfo=UTC)
    writer = RunWriter(scratch, "r1", attempt, nonce, part_rows=20)
    for number in range(2):
        ids = pa.array([f"{number}-{each}" for each in range(30)])
        collector = LineageCollector()
        collector.add_columns(ids, [Steps("validate", "VALIDATE", np.zeros(30, np.uint8), pa.nulls(30, pa.string()), "EPSG:4326", "EPSG:4326")],
                              run_id="r1", attempt=attempt, batch=number, time=time)
        writer.write(collector.drain())
    writer.seal(store, run_date=date(2026, 3, 3), plan=["validate"], tool={}, time=time)

class Fatal(LocalStore):
    left = 0
    def reach(self):
        if Fatal.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        Fatal.left -= 1
    def create(self, name, data):
        self.reach(); super().create(name, data); self.reach()
    def create_from(self, name, path):
        self.reach(); super().create_from(name, path); self.reach()

if __name__ == "__main__":
    store, Fatal.left, sync = Fatal(sys.argv[1]), int(sys.argv[3]), os.fsync
    def fatal_sync(file):
        store.reach(); sync(file)  # a file is written and has no name yet
    os.fsync = fatal_sync
    work(store, sys.argv[2], 1, "aa")
"""


@pytest.mark.parametrize("step", range(15))
def test_a_kill_at_any_write_leaves_all_or_nothing_and_the_retry_completes(store, scratch, tmp_path, step):
    before = RunWriter(scratch, "r0", 1, "ab12")
    before.write(batch("r0", ["a", "b"]))
    before.seal(store, **SEAL)
    code = tmp_path / "victim.py"
    code.write_text(VICTIM)
    done = subprocess.run(
        [sys.executable, str(code), str(store.root), scratch, str(step)],
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).returncode
    # Each of three objects: before it, its file, its folder, behind it; and two folders that are new.
    assert done == (-signal.SIGKILL if step < 14 else 0)
    assert read_run(store, "r0").num_rows == 4
    sealed = "r1" in {each.run_id for each in sealed_runs(store)}
    assert sealed == (step >= 12)  # the run manifest has its name
    if sealed:
        assert read_run(store, "r1").num_rows == 60
    else:
        with pytest.raises(UsageError, match="no sealed run 'r1'"):
            read_run(store, "r1")
    runpy.run_path(str(code))["work"](store, scratch, 2, "bb")
    summary = conformance_summary(Path(store.root) / "_lineage", "r1")
    assert summary["total_events"] == summary["features"] == summary["passed"] == 60
    assert [each.attempt for each in attempts_of(store, "r1")] == ([1, 2] if sealed else [2])
    assert read_run(store, "r0").num_rows == 4
    assert verify_runs(store) == []


def test_an_event_costs_about_twenty_five_bytes(store, scratch):
    writer = RunWriter(scratch, "r1", 1, "ab12")
    writer.write(batch("r1", [f"{each * 7919 % 1_000_003:08d}" for each in range(50_000)]))
    sealed = writer.seal(store, **SEAL)
    assert sum(each.bytes for each in sealed.parts) / sealed.events < 30
