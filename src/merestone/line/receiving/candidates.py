"""Candidates: the delivered rows that go on, in columns beside the spool that holds them.

Not here: which rows they are (`receive`), what becomes of them (`process`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.dataset.known import Halves
from merestone.geometry import kernel
from merestone.results.finding import RowFaults
from merestone.rules import catalogue
from merestone.scratch.spool import Spool

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """The candidates of one batch: `rows` in the spool's schema, and their stretch of each column of `Candidates`, counted from its beginning.

    absent: fields without values that can be judged: a finding on the delivery says so. miscast: their values that could not be cast. faults:
    what else pass 1 found wrong with them. scan: of their geometry as delivered, None where they come from a spool.
    """

    rows: Any
    row: npt.NDArray[np.int32]
    hash: Halves
    source: Halves
    slot: npt.NDArray[np.int32]
    trusted: npt.NDArray[np.bool_]
    faulty: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int32]
    absent: frozenset[str]
    miscast: list[RowFaults]
    faults: list[RowFaults]
    scan: kernel.Scan | None


@dataclass(slots=True)
class Candidates:
    """The rows that go on, in columns of the same length as the spool.

    row: int32, from 1. hash, source: uint64 (n, 2). slot: int32, its slot in `Known` or -1. trusted: the probe knows the source digest, only
    the place differs. faulty: refused in pass 1. partition: int32, code of a column's value, -1 under other schemes. absent: fields without
    values that can be judged. miscast: field names, each with the candidates whose value could not be cast (it is null in the spool, and was
    none in the delivery). faults: what else pass 1 found wrong, by candidate.
    """

    spool: Spool
    row: npt.NDArray[np.int32]
    hash: Halves
    source: Halves
    slot: npt.NDArray[np.int32]
    trusted: npt.NDArray[np.bool_]
    faulty: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int32]
    absent: frozenset[str]
    miscast: list[tuple[str, Rows]] = field(default_factory=list)
    faults: list[RowFaults] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row)

    def batches(self, *, skipped: int = 0) -> Iterator[CandidateBatch]:
        """The candidates in the spool, batch after batch; `skipped` candidates stand before the first row of the spool."""
        start = skipped
        for batch in self.spool.batches():
            here = slice(start, start + batch.num_rows)
            start = here.stop
            yield CandidateBatch(
                batch,
                self.row[here],
                self.hash[here],
                self.source[here],
                self.slot[here],
                self.trusted[here],
                self.faulty[here],
                self.partition[here],
                self.absent,
                _miscast(self.miscast, here),
                _among(self.faults, here),
                None,
            )

    def refuse(self, faults: Sequence[RowFaults]) -> None:
        """Note what the whole delivery gives away of some candidates: they are refused."""
        for each in faults:
            self.faults.append(each)
            self.faulty[each.rows] = True
            self.trusted[each.rows] = False

    def some(self, rows: Rows, folder: str) -> Candidates:
        """Some of the candidates (ascending), by themselves."""
        spool, at = Spool(folder, "candidates", self.spool.schema), 0
        for batch in self.spool.batches():
            low, high = np.searchsorted(rows, (at, at + batch.num_rows))
            if high > low:
                spool.write(batch.take(pa.array(rows[low:high] - at)))
            at += batch.num_rows
        spool.close()
        faults = [
            replace(each, rows=np.flatnonzero(np.isin(rows, each.rows)), observed=each.observed.filter(pa.array(np.isin(each.rows, rows))))
            for each in self.faults
        ]
        return Candidates(
            spool,
            self.row[rows],
            self.hash[rows],
            self.source[rows],
            self.slot[rows],
            self.trusted[rows],
            self.faulty[rows],
            self.partition[rows],
            self.absent,
            [(name, np.flatnonzero(np.isin(rows, places))) for name, places in self.miscast],
            faults,
        )


class CandidateColumns:
    """The columns of `Candidates` while they grow. Room that is not used yet costs no memory: the system hands pages out when touched."""

    def __init__(self, room: int, *, digest_width: int) -> None:
        """Start.

        Args:
            room: how many candidates are expected.
            digest_width: 2, or 0 where rows have no source digest.
        """
        self._used = 0
        self._miscast: list[tuple[str, Rows]] = []
        self._faults: list[RowFaults] = []
        kinds = (
            (np.int32, ()),
            (np.uint64, (2,)),
            (np.uint64, (digest_width,)),
            (np.int32, ()),
            (np.bool_, ()),
            (np.bool_, ()),
            (np.int32, ()),
        )
        self._arrays: list[npt.NDArray[Any]] = [np.empty((max(room, 1), *shape), kind) for kind, shape in kinds]

    def __len__(self) -> int:
        return self._used

    def append(self, batch: CandidateBatch) -> None:
        """Take in the candidates of the next batch."""
        parts = (batch.row, batch.hash, batch.source, batch.slot, batch.trusted, batch.faulty, batch.partition)
        self._miscast += [(each.field, self._used + each.rows) for each in batch.miscast]
        self._faults += [replace(each, rows=self._used + each.rows) for each in batch.faults]
        end = self._used + len(batch.row)
        for n, part in enumerate(parts):
            if end > len(self._arrays[n]):
                larger = np.empty((max(end, 2 * len(self._arrays[n])), *self._arrays[n].shape[1:]), self._arrays[n].dtype)
                larger[: self._used] = self._arrays[n][: self._used]
                self._arrays[n] = larger
            self._arrays[n][self._used : end] = part
        self._used = end

    def candidates(self, spool: Spool, absent: frozenset[str]) -> Candidates:
        """All of them; `spool` holds their rows, `absent` are the fields without values that can be judged."""
        row, hashes, source, slot, trusted, faulty, partition = (each[: self._used] for each in self._arrays)
        return Candidates(spool, row, hashes, source, slot, trusted, faulty, partition, absent, self._miscast, self._faults)


def _among(faults: list[RowFaults], here: slice) -> list[RowFaults]:
    """The faults of a stretch of rows, counted from its beginning."""
    found = []
    for each in faults:
        mine = (each.rows >= here.start) & (each.rows < here.stop)
        if mine.any():
            found.append(replace(each, rows=each.rows[mine] - here.start, observed=each.observed.filter(pa.array(mine))))
    return found


def _miscast(cells: list[tuple[str, Rows]], here: slice) -> list[RowFaults]:
    """The cells of a stretch of rows that could not be cast: pass 1 has reported them, and they are not nulls."""
    found = []
    for name, rows in cells:
        mine = rows[(rows >= here.start) & (rows < here.stop)] - here.start
        if len(mine):
            found.append(catalogue.TYPE.faults(name, mine, pa.nulls(len(mine), pa.string()), kind=""))
    return found
