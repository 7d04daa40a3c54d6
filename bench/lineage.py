"""Lineage against the textbook collector: one dataclass per event, lists of values, `to_pylist` and a dict for deduplication.

Usage: python bench/lineage.py [EVENTS]        (default 1,000,000; four stages a feature)

Both do the same job: event ids by the same recipe, the same columns, Parquet on disk. What differs is printed as ratios. The textbook table
is written by `pyarrow.parquet.write_table` with zstd, unsorted; ours is sorted, hashed into a Merkle tree and sealed.
"""

import hashlib
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from merestone.lineage.collector import LineageCollector
from merestone.lineage.reading import conformance_summary, deduplicate, history, read_run
from merestone.lineage.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store import RunWriter
from merestone.outcome import Steps
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, tzinfo=UTC)
RUN = "parcels-20260303-8c1f0a"
STAGES = (("attr_cast", "CAST"), ("crs_normalize", "TRANSFORM"), ("snap", "SNAP"), ("validate", "VALIDATE"))
BATCH = 65_536
NIGHTS = 30


@dataclass
class Event:
    """The record as a textbook writes it."""

    event_id: str
    run_id: str
    sequence: int
    event_time_utc: datetime
    stage: str
    event_type: str
    feature_id: str
    source_crs: str
    target_crs: str
    outcome: str
    strategy_index: int | None = None
    accuracy_m: float | None = None
    rejection_reason: str | None = None
    tool_version: str | None = None
    audit_tag: str | None = None
    change_class: str | None = None
    from_partition: str | None = None
    to_partition: str | None = None
    contract_version: str | None = None


class Textbook:
    """A list of records, turned into columns at the end."""

    def __init__(self, features):
        self.events = []
        sequence = 0
        for feature in features:
            for stage, kind in STAGES:
                name = hashlib.blake2b(f"{RUN}\x1f{stage}\x1f{feature}\x1f{kind}".encode(), digest_size=16).hexdigest()
                self.events.append(Event(name, RUN, sequence, TIME, stage, kind, feature, "EPSG:28992", "EPSG:4326", "PASS", 0, 0.1,
                                         tool_version="pyproj 3.7.1, PROJ 9.5.1", audit_tag="nightly", contract_version="1.0.0"))
                sequence += 1

    def to_table(self):
        """Column by column, from the records."""
        return pa.Table.from_arrays([pa.array([getattr(each, field.name) for each in self.events], field.type)
                                     for field in LINEAGE_ARROW_SCHEMA], schema=LINEAGE_ARROW_SCHEMA)


def textbook_deduplicate(table):
    best = {}
    for row in table.to_pylist():
        if row["event_id"] not in best or row["sequence"] > best[row["event_id"]]["sequence"]:
            best[row["event_id"]] = row
    return pa.Table.from_pylist(list(best.values()), schema=LINEAGE_ARROW_SCHEMA)


def textbook_summary(table):
    found = {"PASS": 0, "WARN": 0, "REJECT": 0}
    for row in table.to_pylist():
        found[row["outcome"]] += 1
    return found


def steps(rows):
    return [Steps(stage, kind, np.zeros(rows, np.uint8), pa.nulls(rows, pa.string()), "EPSG:28992", "EPSG:4326", strategy_index=0,
                  accuracy_m=0.1, tool_version="pyproj 3.7.1, PROJ 9.5.1") for stage, kind in STAGES]


def features(events, seed=0):
    """As in an estate of 34 million addresses, of which some changed: ids of 16 digits, in no order."""
    wanted, some = events // len(STAGES), np.random.default_rng(seed)
    drawn = np.unique(some.integers(0, 34_100_000, wanted + wanted // 10 + 1_000))
    return pa.array([f"{each:016d}" for each in some.permutation(drawn)[:wanted]])


def emit(ids, run, writer=None):
    """The columnar way, in batches; the events go to the writer or come back as one table."""
    collector = LineageCollector()
    for number, start in enumerate(range(0, len(ids), BATCH)):
        part = pa.concat_arrays([ids.slice(start, BATCH)])
        collector.add_columns(part, steps(len(part)), run_id=run, attempt=1, batch=number, time=TIME, audit_tag="nightly",
                              contract_version="1.0.0")
        if writer is not None:
            writer.write(collector.drain())
    return collector if writer is None else None


def timed(work, times=1):
    """The result, and the best of some times: the first one also pays for memory that the process never used before."""
    best = float("inf")
    for _ in range(times):
        result = None  # what the time before made is given back first
        begun = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begun)
    return result, best


def same(one, other):
    if one != other:
        raise SystemExit("the two do not give the same events")


def line(what, plain, ours):
    print(f"{what:<34}{plain:>10.2f} s{ours:>10.3f} s{plain / ours:>10.0f} x")


def against_the_textbook(events):
    ids = features(events)
    print(f"{events:,} events{'':<20}{'textbook':>12}{'merestone':>12}{'ratio':>12}")
    names = ids.to_pylist()
    textbook, plain_emit = timed(lambda: Textbook(names), 2)
    plain, plain_table = timed(textbook.to_table, 2)
    ours, our_emit = timed(lambda: emit(ids, RUN), 2)
    table, our_table = timed(ours.to_table, 2)
    same(table.column("event_id"), plain.column("event_id"))
    del textbook
    line("emit, to Arrow (ours: compact)", plain_emit + plain_table, our_emit)
    line("emit, to a table of plain columns", plain_emit + plain_table, our_emit + our_table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.parquet"
        _, plain_write = timed(lambda: pq.write_table(plain, path, compression="zstd"))
        plain_bytes = path.stat().st_size
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        store = LocalStore(Path(folder) / "dataset")
        writer = RunWriter(str(scratch), RUN, 1, "bench")
        compact = ours.drain()

        def seal():
            writer.write(compact)
            return writer.seal(store, run_date=date(2026, 3, 3), plan=[each for each, _ in STAGES], tool={}, time=TIME)

        sealed, our_write = timed(seal)
        line("write (ours: sort, Merkle, seal)", plain_write, our_write)
        for what, given in (("deduplicate, nothing repeated", 1), ("deduplicate, all events twice", 2)):
            plain_rows, plain_time = timed(lambda given=given: textbook_deduplicate(pa.concat_tables([plain] * given)), 2)
            our_rows, our_time = timed(lambda given=given: deduplicate(pa.concat_tables([table] * given)), 2)
            same(plain_rows.num_rows, our_rows.num_rows)
            line(what, plain_time, our_time)
        _, plain_summary = timed(lambda: textbook_summary(textbook_deduplicate(pq.read_table(path, schema=LINEAGE_ARROW_SCHEMA))))
        summary, our_summary = timed(lambda: conformance_summary(f"{store.url}/_lineage", RUN))
        same(summary["passed"], events)
        line("verdict from disk", plain_summary, our_summary)
        _, our_read = timed(lambda: read_run(store, RUN))
        print(f"read all back: {our_read:.2f} s; bytes an event on disk: {sum(each.bytes for each in sealed.parts) / events:.1f}"
              f" (textbook {plain_bytes / events:.1f})")


class Counting(LocalStore):
    """Counts the bytes that readers take."""

    def __init__(self, root):
        super().__init__(root)
        self.bytes = 0

    def open(self, name):
        """As the store, with a count of what is read."""
        counter = self

        class File(pa.PythonFile):
            pass

        inner = super().open(name)

        class Reader:
            closed = False

            def read(self, size=-1):
                data = inner.read(size if size >= 0 else None)
                counter.bytes += len(data)
                return data

            def seek(self, place, whence=0):
                return inner.seek(place, whence)

            def tell(self):
                return inner.tell()

            def close(self):
                self.closed = True
                inner.close()

        return File(Reader(), mode="r")


def history_over_nights(events):
    with tempfile.TemporaryDirectory() as folder:
        store = Counting(Path(folder) / "dataset")
        always = "0000000012345678"  # a feature that changes every night
        spent = 0.0
        for night in range(NIGHTS):
            scratch = Path(folder) / f"scratch{night}"
            scratch.mkdir()
            run = f"parcels-202603{night + 1:02d}"
            writer = RunWriter(str(scratch), run, 1, "bench")
            ids = pa.concat_arrays([features(events - len(STAGES), night), pa.array([always])])
            began = time.perf_counter()
            emit(ids, run, writer)
            writer.seal(store, run_date=date(2026, 3, night + 1), plan=[each for each, _ in STAGES], tool={}, time=TIME)
            spent += time.perf_counter() - began
        print(f"\n{NIGHTS} runs of {events:,} events: {spent / NIGHTS:.2f} s a run to emit, sort, write and seal")
        for what, feature in (("changed every night", always), ("never changed", "0000000012345678x")):
            LocalStore.open(store, next(name for name, _ in store.list("_lineage/run_date=2026-03-01/")))  # warm, as a cache would be
            best = min(timed(lambda feature=feature: history(LocalStore(store.url), feature))[1] for _ in range(3))
            store.bytes = 0
            rows = history(store, feature).num_rows
            print(f"history of a feature that {what:<20} {rows:>4} rows {best:.3f} s, {store.bytes / 1e6:.2f} MB read")


if __name__ == "__main__":
    against_the_textbook(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    history_over_nights(545_600)
