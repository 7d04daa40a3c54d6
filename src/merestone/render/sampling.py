"""Which of many changes a page draws, fairly of every class and every place, and how many there are in each cell of the map.

Not here: the page (`map`), where changes lie (`inspect.show`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

ACROSS: Final = 64
"""Cells along the longer side of the map; a power of two, since the page joins cells in twos."""
_NOWHERE: Final = -1

Places = npt.NDArray[np.float64]
"""(n, 2) x and y, NaN for what has no place."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts by place. Cell `row * ACROSS + column` begins at x + column * size, y + row * size.

    counts: for each cell that is not empty, its number and then how many of each class it holds.
    """

    x: float
    y: float
    size: float
    counts: Sequence[Sequence[int]]


def sample(kinds: npt.NDArray[np.int64], places: Places, room: int) -> npt.NDArray[np.int64]:
    """The rows to draw, ascending: all where there is room.

    A class below its fair share of the room is drawn whole, and so is a cell within its class; of the others there are as many as the room
    gives, spread over their rows.

    Args:
        kinds: (n,) the number of each row's class.
        places: where each row is; those without a place count as one cell.
        room: how many can be drawn.
    """
    if len(kinds) <= room:
        return np.arange(len(kinds))
    cell = _numbers(places, *_frame(places))
    chosen = []
    for rows, share in _shares([np.flatnonzero(kinds == kind) for kind in np.unique(kinds)], room):
        order = rows[np.argsort(cell[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(cell[order])) + 1
        chosen += [_spread(each, part) for each, part in _shares(np.split(order, starts), share)]
    return np.sort(np.concatenate(chosen))


def count_cells(kinds: npt.NDArray[np.int64], places: Places, classes: int) -> Cells | None:
    """How many rows of each class lie in each cell; None where no row has a place.

    Args:
        kinds: as for `sample`.
        places: as for `sample`.
        classes: how many classes there are.
    """
    x, y, size = _frame(places)
    if not size:
        return None
    cell = _numbers(places, x, y, size)
    there = cell != _NOWHERE
    numbers, at = np.unique(cell[there], return_inverse=True)
    table = np.zeros((len(numbers), classes), np.int64)
    np.add.at(table, (at, kinds[there]), 1)
    return Cells(x, y, size, np.column_stack([numbers, table]).tolist())


def _frame(places: Places) -> tuple[float, float, float]:
    """Where the cells begin, and the length of their sides; 0 where nothing has a place."""
    there = places[np.isfinite(places).all(axis=1)]
    if not len(there):
        return 0.0, 0.0, 0.0
    low, high = there.min(axis=0), there.max(axis=0)
    side = float((high - low).max()) / ACROSS or 1.0
    return float(low[0]), float(low[1]), side


def _numbers(places: Places, x: float, y: float, size: float) -> npt.NDArray[np.int64]:
    there = np.isfinite(places).all(axis=1)
    out = np.full(len(places), _NOWHERE, np.int64)
    if size:
        steps = np.floor((places[there] - np.array([x, y])) / size).astype(np.int64)
        column, row = np.clip(steps, 0, ACROSS - 1).T
        out[there] = row * ACROSS + column
    return out


def _shares(groups: Sequence[npt.NDArray[np.int64]], room: int) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Each group with its part of the room: the same for all, and what small ones leave for the others."""
    for waiting, rows in zip(range(len(groups), 0, -1), sorted(groups, key=len), strict=True):
        part = min(len(rows), room // waiting)
        room -= part
        yield rows, part


def _spread(rows: npt.NDArray[np.int64], part: int) -> npt.NDArray[np.int64]:
    """Some of the rows at equal distances."""
    return rows[np.arange(part) * len(rows) // max(part, 1)]
