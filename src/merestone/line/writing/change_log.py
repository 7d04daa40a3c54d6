"""The change log of a version, in the order of its keys, cut into pieces: it is also the index's newest page and the feed.

Not here: one piece (`log_piece`), the classes (`change.classes`), where the file goes (`writer.files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.classes import Before
from merestone.dataset.known import Halves
from merestone.dataset.tables import IndexRows
from merestone.line.step_events import BatchTerms
from merestone.line.writing.log_piece import FIELDS, LogCandidates, LogTerms, LogUnit

PIECE = 131_072  # rows of the log that are built at a time


@dataclass(frozen=True, slots=True)
class Labels:
    """What the change log says of the candidates besides their class; arrays over all candidates.

    move: float64, the size of the change where `geometry` is true (NaN where it has none). fields: attribute names, each with the
    candidates in which it changed.
    """

    reversed: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.bool_]
    geometry: npt.NDArray[np.bool_]
    rekeyed: npt.NDArray[np.bool_]
    move: npt.NDArray[np.float64]
    fields: list[tuple[str, npt.NDArray[np.int64]]]


@dataclass(frozen=True, slots=True)
class LogContent:
    """Everything that a change log says.

    rows: int64, the candidates that it speaks of, ascending. codes, labels, digest, source, before and partition are over all candidates.
    removed: the index rows of the features that were not delivered any more; removed_rekeyed: bool over them.
    """

    rows: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int16]
    labels: Labels
    digest: Halves
    source: Halves
    before: Before
    partition: npt.NDArray[np.int32]
    removed: IndexRows
    removed_rekeyed: npt.NDArray[np.bool_]


def log_units(
    content: LogContent,
    ordered: Iterable[tuple[pa.Array, npt.NDArray[np.int64]]],
    terms: LogTerms,
    lineage: Callable[[int], BatchTerms | None],
) -> Iterator[LogUnit]:
    """The log in pieces, ordered by key bytes within and across them.

    Args:
        content: what it says.
        ordered: the canonical keys in ascending order, a range at a time, with their places: in `content.rows`, and beyond these in `content.removed`.
        terms: what all pieces have in common.
        lineage: gives what the events of the n-th piece say alike.
    """
    count, fields, number = len(content.rows), _Fields(content.labels.fields), 0
    for key_bytes, places in ordered:
        for start in range(0, len(places), PIECE):
            here = places[start : start + PIECE]
            gone = here >= count
            yield LogUnit(
                terms,
                key_bytes.slice(start, PIECE),
                gone,
                _candidates(content, content.rows[here[~gone]], fields),
                IndexRows(content.removed.table.take(pa.array(here[gone] - count)).combine_chunks()),
                content.removed_rekeyed[here[gone] - count],
                lineage(number),
            )
            number += 1


def _candidates(content: LogContent, rows: npt.NDArray[np.int64], fields: _Fields) -> LogCandidates:
    labels, before = content.labels, content.before
    return LogCandidates(
        code=content.codes[rows].astype(np.int8),
        reversed=labels.reversed[rows],
        rekeyed=labels.rekeyed[rows],
        attributes=labels.attributes[rows],
        geometry=labels.geometry[rows],
        move=labels.move[rows],
        fields=fields.lists(rows),
        digest=content.digest[rows],
        source=content.source[rows],
        before=Before(before.digest[rows], before.source[rows], before.partition[rows]),
        partition=content.partition[rows],
    )


class _Fields:
    """Which attributes changed, by candidate: sorted once, cut into list columns as the log is built."""

    def __init__(self, fields: list[tuple[str, npt.NDArray[np.int64]]]) -> None:
        self._names = sorted({name for name, _ in fields})
        row = np.concatenate([each for _, each in fields]) if fields else np.zeros(0, np.int64)
        what = (
            np.concatenate([np.full(len(each), self._names.index(name), np.int32) for name, each in fields])
            if fields
            else np.zeros(0, np.int32)
        )
        order = np.lexsort((what, row))
        self._row, self._what = row[order], what[order]

    def lists(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """The list column of some candidates, null where no attribute changed."""
        if not len(self._row):
            return pa.nulls(len(rows), FIELDS)
        start, end = np.searchsorted(self._row, rows), np.searchsorted(self._row, rows, side="right")
        counts = end - start
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], counts)
        values = pa.array(self._names, pa.string()).take(pa.array(self._what[at]))
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=pa.array(counts == 0))
