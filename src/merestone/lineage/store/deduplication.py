"""Which row stands where several tell of one event: deduplication at read time, and what it sets aside.

Not here: reading the rows (`reading`). Nothing is removed from the store.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.json_value import JsonObject
from merestone.lineage.event import columns, merkle
from merestone.lineage.event.record import ATTEMPT_BITS
from merestone.results.finding import SAMPLES

SEVERITY = {"PASS": 0, "WARN": 1, "REJECT": 2}
_UNPAYLOADED = ("sequence", "event_time_utc")  # what two deliveries of one event may differ in
_SLICE = 65_536  # rows encoded at a time
_STRETCH = 2_048  # rows: pieces of a table that are this long on average are not copied
_Whole = npt.NDArray[np.int32] | npt.NDArray[np.int64]  # codes of a dictionary column are int32, counted ones int64


@dataclass(frozen=True, slots=True)
class Conflict:
    """One event id with two payloads in one attempt: an alert. `columns` are the fields that differ."""

    event_id: str
    run_id: str
    stage: str
    feature_id: str
    attempt: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeduplicationReport:
    """What deduplication sets aside, in rows.

    `replays` repeat the payload of another row; `corrections` gave way to a later attempt with another payload; `conflicts` contradict a
    row of their own attempt (`samples`: up to 20 of them).
    """

    rows: int
    standing: int
    replays: int
    corrections: int
    conflicts: int
    samples: tuple[Conflict, ...]

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {
            "rows": self.rows,
            "standing": self.standing,
            "replays": self.replays,
            "corrections": self.corrections,
            "conflicts": self.conflicts,
            "samples": [
                {
                    "event_id": c.event_id,
                    "run_id": c.run_id,
                    "stage": c.stage,
                    "feature_id": c.feature_id,
                    "attempt": c.attempt,
                    "columns": list(c.columns),
                }
                for c in self.samples
            ],
        }


def deduplicate(table: pa.Table) -> pa.Table:
    """The rows that stand: per event_id the one with the highest sequence, in the order of the table. Never raises on a conflict.

    Where one sequence bears two rows of an event, the worse outcome stands, and no REJECT vanishes; among equals, the first row.
    """
    keep = _standing(table)
    return table if keep is None else _kept(table, keep)


def deduplicate_report(table: pa.Table) -> DeduplicationReport:
    """What `deduplicate` sets aside, and why; conflicts are an alert."""
    rows, codes = _sharing(table)
    if not len(rows):
        return DeduplicationReport(table.num_rows, table.num_rows, 0, 0, 0, ())
    ascending = np.argsort(rows)
    rows, codes = rows[ascending], codes[ascending]
    standing = table.num_rows - len(rows) + len(np.unique(codes))
    part = columns.conform(table.take(pa.array(rows)))
    sequence = _integers(part, "sequence")
    order = _by_event(codes, sequence, severity(part), rows)
    event, attempt, payload = codes[order], (sequence >> ATTEMPT_BITS)[order], _payload(part)[order]
    index = np.arange(len(order))
    top = _last_alike(event)
    top_of_attempt = _last_alike(event, attempt)
    conflict = payload != payload[top_of_attempt]
    passed_over = (index == top_of_attempt) & (index != top)
    correction = passed_over & (payload != payload[top])
    replay = ~conflict & ~correction & (index != top)
    samples = tuple(_conflict(part, int(order[at]), int(order[top_of_attempt[at]])) for at in np.flatnonzero(conflict)[:SAMPLES])
    return DeduplicationReport(table.num_rows, standing, int(replay.sum()), int(correction.sum()), int(conflict.sum()), samples)


def _sharing(table: pa.Table) -> tuple[npt.NDArray[np.int64], _Whole]:
    """The rows that share their event_id with another, in no order, and for each of them a number per event_id."""
    words = columns.words(table.column("event_id"))
    if words is not None:
        mixed = columns.mixed(words)
        ranked = np.sort(mixed)
        if not (ranked[1:] == ranked[:-1]).any():
            return np.empty(0, np.int64), np.empty(0, np.int64)
        order = np.argsort(mixed)
        alike = mixed[order[1:]] == mixed[order[:-1]]
        if (words[order[1:][alike]] == words[order[:-1][alike]]).all():  # as good as always: what mixes alike is alike
            number = np.concatenate([[0], np.cumsum(~alike)])
            shared = np.concatenate([alike, [False]]) | np.concatenate([[False], alike])
            return order[shared], number[shared]
    encoded = one_chunk(one_chunk(table.column("event_id")).dictionary_encode())
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
    rows = np.flatnonzero(np.bincount(codes)[codes] > 1)
    return rows, codes[rows]


def _standing(table: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Which rows stand, None for all."""
    rows, codes = _sharing(table)
    if not len(rows):
        return None
    stands = np.ones(len(rows), np.bool_)
    for value in (_integers(table, "sequence")[rows], severity(table)[rows], -rows):
        best = np.full(int(codes.max()) + 1, np.iinfo(np.int64).min)
        np.maximum.at(best, codes[stands], value[stands])
        stands &= value == best[codes]
    keep = np.ones(table.num_rows, np.bool_)
    keep[rows] = stands
    return keep


def _kept(table: pa.Table, keep: npt.NDArray[np.bool_]) -> pa.Table:
    """The rows for which `keep` is true. What is repeated are mostly whole batches: long stretches are cut out without a copy."""
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
    if len(edges) * _STRETCH > table.num_rows:
        return table.filter(pa.array(keep))
    return pa.concat_tables([table.slice(0, 0), *(table.slice(start, end - start) for start, end in edges.reshape(-1, 2).tolist())])


def _by_event(
    codes: _Whole, sequence: npt.NDArray[np.int64], severity: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """An order in which the row that stands comes last among the rows of its event."""
    return np.lexsort((-rows, severity, sequence, codes))


def _last_alike(*keys: _Whole) -> npt.NDArray[np.int64]:
    """For each row of sorted keys, the place of the last row with the same keys."""
    changes = np.zeros(len(keys[0]), np.bool_)
    for key in keys:
        changes[:-1] |= key[1:] != key[:-1]
    changes[-1:] = True
    ends = np.flatnonzero(changes)
    return np.repeat(ends, np.diff(ends, prepend=-1))


def _integers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(one_chunk(table.column(name)).fill_null(-1))


def severity(table: pa.Table) -> npt.NDArray[np.int32]:
    """The `SEVERITY` of each row's outcome: int32, shape (rows,)."""
    return np.asarray(pc.index_in(one_chunk(table.column("outcome")), pa.array(list(SEVERITY))).fill_null(-1))


def _payload(table: pa.Table) -> npt.NDArray[np.int32]:
    """A number per payload: all fields but sequence and event_time_utc."""
    pieces = [merkle.encode_events(table.slice(start, _SLICE), without=_UNPAYLOADED) for start in range(0, table.num_rows, _SLICE)]
    return np.asarray(one_chunk(pa.chunked_array(pieces, pa.binary()).dictionary_encode()).indices)


def _conflict(table: pa.Table, row: int, stands: int) -> Conflict:
    one, other = table.slice(row, 1).to_pylist()[0], table.slice(stands, 1).to_pylist()[0]
    return Conflict(
        one["event_id"],
        one["run_id"],
        one["stage"],
        one["feature_id"],
        one["sequence"] >> ATTEMPT_BITS,
        tuple(name for name in one if name not in _UNPAYLOADED and one[name] != other[name]),
    )
