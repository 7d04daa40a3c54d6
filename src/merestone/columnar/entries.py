"""Entries of one width that lie mapped: hash, digest and code of each row, in groups of 2**shift rows; and rows apart, sorted by hash.

Not here: how a row is found among them (`lookup`), where the bytes come from and what proves them (`dataset.checkpoint`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Halves = npt.NDArray[np.uint64]  # (n, 2): the two halves of 16 bytes, big-endian
Slots = npt.NDArray[np.int32]
HASH, DIGEST, CODE = range(3)
_KINDS: tuple[tuple[str, tuple[int, ...]], ...] = ((">u8", (2,)), (">u8", (2,)), ("<i4", ()))


def _unproven(group: int) -> None:
    raise AssertionError(group)


@dataclass(slots=True)
class Entries:
    """Rows that lie in `data`, which is read-only.

    starts: int64 (3, groups), where the hashes, digests (16 bytes each) and codes (4 bytes, little-endian) of each group begin.
    prove: proves a group before it is first read; it raises what it likes. `proven` says which groups are.
    """

    data: Any
    starts: npt.NDArray[np.int64]
    shift: int
    rows: int
    prove_group: Callable[[int], None] = _unproven
    proven: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.starts.shape[1])

    def prove(self, group: int) -> None:
        """See that the bytes of a group are those that were written."""
        if not self.proven[group]:
            self.prove_group(group)
            self.proven[group] = 1

    def prove_all(self) -> None:
        """Prove every group that is not proven yet."""
        for group in np.flatnonzero(self.proven == 0).tolist():
            self.prove(group)

    def column(self, which: int, group: int) -> npt.NDArray[Any]:
        """One column of a group, as it lies (proved): HASH and DIGEST (n, 2) of big-endian halves, CODE (n,)."""
        self.prove(group)
        kind, shape = _KINDS[which]
        rows = min(1 << self.shift, self.rows - (group << self.shift))
        return np.ndarray((rows, *shape), np.dtype(kind), buffer=self.data, offset=int(self.starts[which, group]))

    def stretch(self, which: int, start: int, end: int) -> npt.NDArray[Any]:
        """A column from one row to before another."""
        parts = []
        for group in range(start >> self.shift, ((end - 1) >> self.shift) + 1 if end > start else start >> self.shift):
            base = group << self.shift
            parts.append(self.column(which, group)[max(start - base, 0) : end - base])
        return _native(np.concatenate(parts) if parts else np.zeros((0, *_KINDS[which][1]), _KINDS[which][0]))

    def take(self, which: int, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A column at some rows, in the order asked for."""
        out = np.zeros((len(slots), *_KINDS[which][1]), np.dtype(_KINDS[which][0]).newbyteorder("="))
        if not len(slots):
            return out
        group = slots >> self.shift
        if int(group[0]) == int(group.min()) == int(group.max()):
            out[:] = self.column(which, int(group[0]))[slots - (int(group[0]) << self.shift)]
            return out
        order = np.argsort(group, kind="stable")
        edges = np.flatnonzero(np.diff(group[order], prepend=-1))
        for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
            rows = order[start:end]
            here = int(group[rows[0]])
            out[rows] = self.column(which, here)[slots[rows] - (here << self.shift)]
        return out


def no_entries() -> Entries:
    """None at all."""
    return Entries(b"", np.zeros((3, 0), np.int64), 17, 0)


def _native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.astype(values.dtype.newbyteorder("="), copy=False)


@dataclass(slots=True)
class Apart:
    """Rows that lie in memory, sorted by hash: hash and digest uint64 (m, 2), slot and code int32 (m,)."""

    hash: Halves
    slot: Slots
    digest: Halves
    code: Slots

    @classmethod
    def nothing(cls) -> Apart:
        """No row."""
        return cls(np.zeros((0, 2), np.uint64), np.zeros(0, np.int32), np.zeros((0, 2), np.uint64), np.zeros(0, np.int32))
