"""Rows met again by their hash: first where the last delivery had them, then by search. A delivery keeps its order, nearly.

The compiled extension answers or, where it is missing, NumPy; both alike, and `NAME` says which one is at work.

A row is looked for at the entry after that of the row before it, after the last one that a search has found, and at the next few entries; so
rows that were left out, put in or moved in blocks cost no search, or one each. What is not there is searched for among the rows apart, and then
in a table that is made when it is first needed. The order of a delivery is a hint alone: hashes decide, and any order gives the same answer.

Not here: the two paths (`compiled_lookup`, `plain_lookup`), what entries are (`entries`), where they come from (`dataset.known`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from merestone.columnar import plain_lookup
from merestone.columnar.entries import Apart, Entries, Halves, Slots

at_work: Any
NAME: Literal["compiled", "numpy"]
try:
    from merestone.columnar import compiled_lookup as at_work
except ImportError:  # no C compiler when this was installed
    at_work, NAME = plain_lookup, "numpy"
else:
    NAME = "compiled"

DEAD, CLAIMED = 1, 2
"""The marks of a slot: its row is gone; a row of the delivery has it."""
SAME, AGAIN = 1, 2
"""What is said of a row: its digest is the entry's; its slot was claimed before."""
_MAIN, _OTHER, _MET, _SEARCHED, _WHY, _GROUP = range(6)
_DONE, _NO_PROOF, _NO_TABLE = range(3)
Room = Callable[[int], npt.NDArray[np.uint32]]
"""Gives so many numbers, all 0."""


def in_memory(numbers: int) -> npt.NDArray[np.uint32]:
    """So many numbers, all 0."""
    return np.zeros(numbers, np.uint32)


class Lookup:
    """Entries and rows apart, and how far a delivery has come along them.

    Args:
        entries: the rows that lie mapped; each hash is there once at most.
        apart: rows that lie in memory, with slots behind those of the entries; a hash that is among them is dead among the entries.
        state: uint8, the marks of every slot; DEAD is given, CLAIMED is noted here.
        room: where the table lies: 8 to 16 bytes for each entry.
    """

    def __init__(self, entries: Entries, apart: Apart, state: npt.NDArray[np.uint8], room: Room = in_memory) -> None:
        self.entries, self.apart, self.state, self._room = entries, apart, state, room
        self._cursor = np.array([0, -1, 0, 0, 0, 0], np.int64)
        self._table: Any = None

    @property
    def met(self) -> int:
        """How many rows were met where they were expected."""
        return int(self._cursor[_MET])

    @property
    def searched(self) -> int:
        """How many rows were found by a search."""
        return int(self._cursor[_SEARCHED])

    @property
    def has_table(self) -> bool:
        """Whether a search needed the table."""
        return self._table is not None

    def forget(self) -> None:
        """Give the table back."""
        self._table = None

    def meet(self, hashes: Halves, digests: Halves | None) -> tuple[Slots, Slots, npt.NDArray[np.uint8]]:
        """The next rows of a delivery; their slots are claimed.

        Args:
            hashes: uint64 (n, 2).
            digests: uint64 (n, 2), None where they say nothing.

        Returns:
            The slot of each row and the code that its entry has, -1 where the hash is new, int32 (n,); and SAME and AGAIN, uint8 (n,).
        """
        hashes = np.ascontiguousarray(hashes)
        digests = np.ascontiguousarray(digests) if digests is not None else None
        n = len(hashes)
        out = (np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.zeros(n, np.uint8))
        row = 0
        while True:
            row = at_work.meet(self.entries, self.apart, self.state, self._table, hashes, digests, row, out, self._cursor)
            if self._cursor[_WHY] == _NO_PROOF:
                self.entries.prove(int(self._cursor[_GROUP]))
            elif self._cursor[_WHY] == _NO_TABLE:
                self._make_table()
            else:
                return out

    def seek(self, hashes: Halves) -> Slots:
        """The slot of each hash, -1 where it is not there; int32 (n,). Nothing is claimed."""
        if len(hashes) and self.entries.rows:
            self._make_table()
        found: Slots = at_work.seek(self.entries, self.apart, self.state, self._table, np.ascontiguousarray(hashes))
        return found

    def _make_table(self) -> None:
        if self._table is None:
            self.entries.prove_all()
            self._table = at_work.table(self.entries, self._room)


def among(entries: Entries, wanted: Halves) -> Slots:
    """The entry of each of a few hashes (sorted), in one pass over all entries; -1 where there is none. int32 (m,)."""
    if not len(wanted) or not entries.rows:
        return np.full(len(wanted), -1, np.int32)
    entries.prove_all()
    found: Slots = at_work.among(entries, np.ascontiguousarray(wanted))
    return found
