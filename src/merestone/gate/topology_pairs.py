"""Faults between two features of a coverage or a network: where each is, and how large.

Not here: which faults there are (`topology_planar`, `topology_network`), words (`topology`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from merestone.gate.topology_edges import Floats, Ints


@dataclass(frozen=True, slots=True)
class Pairs:
    """Faults between two features: rows `one` and `other` (-1: none), a position in grid units, and a size (area, length) in grid units.

    `width` is that of an overlap or a gap in grid units, 0 where the fault has none.
    """

    one: Ints
    other: Ints
    x: Floats
    y: Floats
    size: Floats
    width: Floats

    def __len__(self) -> int:
        return len(self.one)

    @classmethod
    def none(cls) -> Pairs:
        """No faults."""
        rows, numbers = np.zeros(0, np.int64), np.zeros(0)
        return cls(rows, rows, numbers, numbers, numbers, numbers)

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """All faults of several sets."""
        return cls(*(np.concatenate([getattr(each, name) for each in (cls.none(), *parts)]) for name in cls.__slots__))

    def some(self, at: Ints | npt.NDArray[np.bool_]) -> Pairs:
        """Some of them: indices or a mask."""
        return Pairs(self.one[at], self.other[at], self.x[at], self.y[at], self.size[at], self.width[at])

    def per_pair(self) -> Pairs:
        """One fault for each pair of features: the sizes added up, at the place of the largest."""
        if not len(self):
            return self
        order = np.lexsort((-self.size, self.other, self.one))
        mine = self.some(order)
        begins = np.flatnonzero(np.concatenate(([True], (mine.one[1:] != mine.one[:-1]) | (mine.other[1:] != mine.other[:-1]))))
        first = mine.some(begins)
        return Pairs(first.one, first.other, first.x, first.y, np.add.reduceat(mine.size, begins), first.width)
