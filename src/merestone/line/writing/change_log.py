"""The change log of a version, in the order of its keys, built a piece at a time: it is also the index's newest page and the feed.

Not here: the classes (`change.classes`), where the file goes (`writer.files`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.dataset.known import CHANGE_CLASSES, CHANGES_SCHEMA, Halves, unhalves

PIECE = 131_072  # rows of the log that are built at a time
_NAME = CHANGES_SCHEMA.field("partition").type
_FIELDS = pa.list_(pa.string())


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

    rows: int64, the candidates that it speaks of, ascending. codes, labels, digest, source, before and partition are over all candidates;
    names: partition code to name. removed: pyarrow.Table of INDEX_SCHEMA, the
    features that were not delivered any more; removed_rekeyed: bool over them. same_domain: digests are of the last version's domain; else
    a held feature has a new one. same_rules: what was delivered is judged as in the last version; else nobody knows how the delivery that a
    held feature was accepted from would be judged now, and its source digest is forgotten.
    """

    rows: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int16]
    labels: Labels
    digest: Halves
    source: Halves
    before: Before
    partition: npt.NDArray[np.int32]
    names: list[str]
    removed: Any
    removed_rekeyed: npt.NDArray[np.bool_]
    same_domain: bool = True
    same_rules: bool = True


def pieces(content: LogContent, ordered: Iterable[tuple[Any, npt.NDArray[np.int64]]]) -> Iterator[Any]:
    """The log in pieces (pyarrow.Table of CHANGES_SCHEMA), ordered by key bytes within and across them.

    Args:
        content: what it says.
        ordered: the canonical keys in ascending order, a range at a time, with their places: in `content.rows`, and beyond these in `content.removed`.
    """
    count, fields = len(content.rows), _Fields(content.labels.fields)
    for key_bytes, places in ordered:
        for start in range(0, len(places), PIECE):
            yield _piece(content, key_bytes.slice(start, PIECE), places[start : start + PIECE], count, fields)


def _piece(content: LogContent, key_bytes: pa.Array, here: npt.NDArray[np.int64], count: int, fields: _Fields) -> pa.Table:
    is_gone = here >= count
    if not is_gone.any():
        return _delivered(content, content.rows[here], key_bytes, fields)
    mine = _delivered(content, content.rows[here[~is_gone]], key_bytes.filter(pa.array(~is_gone)), fields)
    lost = _removed(content, here[is_gone] - count)
    back = np.empty(len(here), np.int64)
    back[~is_gone], back[is_gone] = np.arange(mine.num_rows), mine.num_rows + np.arange(lost.num_rows)
    return pa.concat_tables([mine, lost]).unify_dictionaries().combine_chunks().take(pa.array(back))


def _delivered(content: LogContent, rows: npt.NDArray[np.int64], key_bytes: pa.Array, fields: _Fields) -> pa.Table:
    code, before, labels = content.codes[rows].astype(np.int8), content.before, content.labels
    kept = (classes.SUPPRESSED, classes.HELD, classes.MOVED) if content.same_domain else (classes.SUPPRESSED, classes.MOVED)
    keeps_digest = np.isin(code, kept)[:, None]
    held = (code == classes.HELD)[:, None]
    stays = np.isin(code, (classes.SUPPRESSED, classes.HELD, classes.REFRESHED))
    digest = np.where(keeps_digest, before.digest[rows], content.digest[rows])
    source = np.where(held, before.source[rows] if content.same_rules else np.uint64(0), content.source[rows])
    place = np.where(stays, before.partition[rows], content.partition[rows]).astype(np.int32)
    there, known = code != classes.REMOVED, before.partition[rows] >= 0
    measured = labels.geometry[rows] & np.isfinite(labels.move[rows])
    return pa.Table.from_arrays(
        [
            key_bytes,
            _classes(code),
            *(pa.array(each[rows]) for each in (labels.reversed, labels.rekeyed, labels.attributes, labels.geometry)),
            pa.array(labels.move[rows], mask=~measured),
            fields.lists(rows),
            _masked(digest, there),
            _masked(source, there),
            _masked(before.digest[rows], known),
            _named(place, content.names, there),
            _named(before.partition[rows], content.names, known),
        ],
        schema=CHANGES_SCHEMA,
    )


def _removed(content: LogContent, rows: npt.NDArray[np.int64]) -> pa.Table:
    gone, size = content.removed.take(pa.array(rows)).combine_chunks(), len(rows)
    no = pa.array(np.zeros(size, bool))
    return pa.Table.from_arrays(
        [
            gone.column("key").cast(pa.binary()),
            _classes(np.full(size, classes.REMOVED, np.int8)),
            no,
            pa.array(content.removed_rekeyed[rows]),
            no,
            no,
            pa.nulls(size, pa.float64()),
            pa.nulls(size, _FIELDS),
            pa.nulls(size, pa.binary(16)),
            pa.nulls(size, pa.binary(16)),
            gone.column("digest"),
            pa.nulls(size, _NAME),
            gone.column("partition").cast(_NAME),
        ],
        schema=CHANGES_SCHEMA,
    )


def _classes(code: npt.NDArray[np.int8]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(CHANGE_CLASSES))


def _named(code: npt.NDArray[np.int32], names: list[str], valid: npt.NDArray[np.bool_]) -> pa.Array:
    used, places = np.unique(code[valid], return_inverse=True)
    index = np.zeros(len(code), np.int32)
    index[valid] = places
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=~valid), pa.array([names[each] for each in used], pa.string()))


def _masked(values: Halves, valid: npt.NDArray[np.bool_]) -> pa.Array:
    array = unhalves(values)
    if valid.all():
        return array
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.FixedSizeBinaryArray.from_buffers(array.type, len(array), [bitmap, array.buffers()[1]])


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
            return pa.nulls(len(rows), _FIELDS)
        start, end = np.searchsorted(self._row, rows), np.searchsorted(self._row, rows, side="right")
        counts = end - start
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], counts)
        values = pa.array(self._names, pa.string()).take(pa.array(self._what[at]))
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=pa.array(counts == 0))
