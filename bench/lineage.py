"""Lineage against the textbook collector: one dataclass per event, lists of values, `to_pylist` and a dict for deduplication.

    python bench/lineage.py [EVENTS ...] [--nights 30]        (default 1,000,000 events; four stages a feature)

Both do the same job: event ids by the same recipe, the same columns, Parquet on disk. What differs is printed as ratios of processor seconds. The
textbook table is written by `pyarrow.parquet.write_table` with zstd, unsorted; ours is sorted, hashed into a Merkle tree and sealed. 5,000,000
events take the textbook about 15 GB of memory.

With --nights, the history of one feature over so many runs of 545,600 events each: a minute to write them, and the bytes that were read.
"""

import argparse
import hashlib
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.reading import history, read_run
from merestone.lineage.store.verdict import conformance_summary
from merestone.lineage.store.writing import RunWriter
from merestone.results.finding import Steps
from merestone.storage.local import LocalStore
from merestone.storage.open import open_store

TIME = datetime(2026, 3, 3, 1, tzinfo=UTC)
RUN = "parcels-20260303-8c1f0a"
STAGES = (("attr_cast", "CAST"), ("crs_normalize", "TRANSFORM"), ("snap", "SNAP"), ("validate", "VALIDATE"))
BATCH = 65_536
NIGHT = 545_600  # events: 0.4 % of 34.1 million features, four stages each


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
                self.events.append(
                    Event(
                        name,
                        RUN,
                        sequence,
                        TIME,
                        stage,
                        kind,
                        feature,
                        "EPSG:28992",
                        "EPSG:4326",
                        "PASS",
                        0,
                        0.1,
                        tool_version="pyproj 3.7.1, PROJ 9.5.1",
                        audit_tag="nightly",
                        contract_version="1.0.0",
                    )
                )
                sequence += 1

    def to_table(self):
        """Column by column, from the records."""
        return pa.Table.from_arrays(
            [pa.array([getattr(each, field.name) for each in self.events], field.type) for field in LINEAGE_ARROW_SCHEMA],
            schema=LINEAGE_ARROW_SCHEMA,
        )


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
    return [
        Steps(
            stage,
            kind,
            np.zeros(rows, np.uint8),
            pa.nulls(rows, pa.string()),
            "EPSG:28992",
            "EPSG:4326",
            strategy_index=0,
            accuracy_m=0.1,
            tool_version="pyproj 3.7.1, PROJ 9.5.1",
        )
        for stage, kind in STAGES
    ]


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
        collector.add_columns(
            part, steps(len(part)), run_id=run, attempt=1, batch=number, time=TIME, audit_tag="nightly", contract_version="1.0.0"
        )
        if writer is not None:
            writer.write(collector.drain())
    return collector if writer is None else None


def timed(work, times=1, clock=time.process_time):
    """The result, and the best of some times: the first one also pays for memory that the process never used before.

    Processor seconds of all threads: the textbook has one, so a busy machine is no help to either.
    """
    best = float("inf")
    for _ in range(times):
        result = None  # what the time before made is given back first
        begun = clock()
        result = work()
        best = min(best, clock() - begun)
    return result, best


def same(one, other):
    if one != other:
        raise SystemExit("the two do not give the same events")


def line(what, plain, ours):
    print(f"{what:<42}{plain:>9.2f} s{ours:>10.3f} s{plain / ours:>8.0f} x", flush=True)


def again(table, which):
    """The table with some of its rows delivered a second time: none, every fifth batch of 65,536 rows, or one event in ten, scattered."""
    if which == "batches":
        return pa.concat_tables([table, *(table.slice(start, BATCH) for start in range(0, table.num_rows, 5 * BATCH))])
    if which == "scattered":
        return pa.concat_tables([table, table.take(pa.array(np.sort(np.random.default_rng(1).permutation(table.num_rows)[::10])))])
    return table


def against_the_textbook(events):
    ids = features(events)
    times = 2 if events <= 1_000_000 else 1
    print(f"{events:,} events{'':<28}{'textbook':>12}{'merestone':>12}{'ratio':>10}", flush=True)
    names = ids.to_pylist()
    textbook, plain_emit = timed(partial(Textbook, names), times)
    plain, plain_table = timed(textbook.to_table, times)
    del textbook, names
    ours, our_emit = timed(lambda: emit(ids, RUN), 3)
    table, our_table = timed(ours.to_table, 3)
    same(table.column("event_id"), plain.column("event_id"))
    line("emit (ours: columns of codes, as written)", plain_emit + plain_table, our_emit)
    line("emit, to a table of plain columns", plain_emit + plain_table, our_emit + our_table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.parquet"
        _, plain_write = timed(partial(pq.write_table, plain, path, compression="zstd"))
        plain_bytes = path.stat().st_size
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        store = LocalStore(Path(folder) / "dataset")
        writer = RunWriter(str(scratch), RUN, 1, "bench")

        def seal():
            writer.write(ours.drain())
            return writer.seal(store, run_date=date(2026, 3, 3), plan=[each for each, _ in STAGES], tool={}, time=TIME)

        sealed, our_write = timed(seal)
        line("write (ours: sort, Merkle tree, seal)", plain_write, our_write)
        for which, what in (("", "nothing twice"), ("batches", "every fifth batch twice"), ("scattered", "one event in ten twice")):
            repeated = again(plain, which)
            plain_rows, plain_time = timed(lambda given=repeated: textbook_deduplicate(given))
            repeated = again(table, which)
            our_rows, our_time = timed(lambda given=repeated: deduplicate(given), 3)
            same(plain_rows.num_rows, our_rows.num_rows)
            line(f"deduplicate, {what}", plain_time, our_time)
        del plain, table, plain_rows, our_rows, repeated
        _, plain_summary = timed(lambda: textbook_summary(textbook_deduplicate(pq.read_table(path, schema=LINEAGE_ARROW_SCHEMA))))
        summary, our_summary = timed(lambda: conformance_summary(f"{store.url}/_lineage", RUN), 2)
        same(summary["passed"], events)
        line("verdict from disk", plain_summary, our_summary)
        _, our_read = timed(lambda: read_run(store, RUN))
        print(
            f"read all back: {our_read:.2f} s; bytes an event on disk: {sum(each.bytes for each in sealed.parts) / events:.1f}"
            f" (textbook {plain_bytes / events:.1f})\n",
            flush=True,
        )


class Counting(LocalStore):
    """Counts the bytes that readers take."""

    def __init__(self, root):
        super().__init__(root)
        self.bytes = 0

    def get(self, name):
        """As the store, with a count of what is read."""
        data = super().get(name)
        self.bytes += len(data)
        return data

    def open(self, name):
        """As the store, with a count of what is read."""
        return pa.PythonFile(Counted(super().open(name), self), mode="r")


class Counted:
    """An open file that tells its store what is read from it."""

    def __init__(self, file, store):
        self.file, self.store, self.closed = file, store, False

    def read(self, size=-1):
        """Bytes from here on."""
        data = self.file.read(size if size >= 0 else None)
        self.store.bytes += len(data)
        return data

    def seek(self, place, whence=0):
        """Go to a place."""
        return self.file.seek(place, whence)

    def tell(self):
        """The place."""
        return self.file.tell()

    def close(self):
        """Close the file below."""
        self.closed = True
        self.file.close()


def history_over_nights(nights, events):
    with tempfile.TemporaryDirectory() as folder:
        store = Counting(Path(folder) / "dataset")
        always = "0000000012345678"  # a feature that changes every night
        spent = 0.0
        for night in range(nights):
            scratch = Path(folder) / f"scratch{night}"
            scratch.mkdir()
            day = date(2026, 3, 1) + timedelta(night)
            run = f"parcels-{day:%Y%m%d}"
            writer = RunWriter(str(scratch), run, 1, "bench")
            ids = pa.concat_arrays([features(events - len(STAGES), night), pa.array([always])])
            began = time.perf_counter()
            emit(ids, run, writer)
            writer.seal(store, run_date=day, plan=[each for each, _ in STAGES], tool={}, time=TIME)
            spent += time.perf_counter() - began
        print(f"{nights} runs of {events:,} events: {spent / nights:.2f} s a run to emit, sort, write and seal")
        for what, feature in (("changed every night", always), ("never changed", "0000000012345678x")):
            best = min(timed(lambda feature=feature: history(open_store(store.url), feature), clock=time.perf_counter)[1] for _ in range(3))
            store.bytes = 0
            rows = history(store, feature).num_rows
            print(f"history of a feature that {what:<20} {rows:>4} rows {best:.3f} s, {store.bytes / 1e6:.2f} MB read")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, nargs="*", help="sizes to compare at (default 1,000,000; with --nights none)")
    parser.add_argument("--nights", type=int, default=0, help="how many runs the history goes over")
    chosen = parser.parse_args()
    for size in chosen.events or ([] if chosen.nights else [1_000_000]):
        against_the_textbook(size)
    if chosen.nights:
        history_over_nights(chosen.nights, NIGHT)
