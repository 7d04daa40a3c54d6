"""The task of the change log: one piece of it, what it does to the digest of the set, and its events, by themselves and in any process.

Not here: which rows the pieces have and their order (`change_log`), where the file goes (`writer.files`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change import classes
from merestone.change.classes import Before
from merestone.columnar import hashing
from merestone.dataset.known import CHANGE_CLASSES, Halves, Sum, halves, unhalves
from merestone.dataset.tables import DIGEST, PARTITION_NAME, ChangeLog, IndexRows
from merestone.identity import key as keys
from merestone.line.step_events import BatchTerms
from merestone.results.finding import PASS, WARN, Steps

FIELDS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class LogTerms:
    """What all pieces have in common.

    Args:
        names: the name of each partition code.
        crs: of the contract.
        tool: the version of the software, for events.
        same_domain: digests are of the last version's domain; else a held feature has a new one.
        same_rules: what was delivered is judged as in the last version; else nobody knows how the delivery that a held feature was
            accepted from would be judged now, and its source digest is forgotten.
    """

    names: tuple[str, ...]
    crs: str
    tool: str
    same_domain: bool
    same_rules: bool


@dataclass(frozen=True, slots=True)
class LogCandidates:
    """What a piece says of n candidates; see `change_log.LogContent`. fields: a list column."""

    code: npt.NDArray[np.int8]
    reversed: npt.NDArray[np.bool_]
    rekeyed: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.bool_]
    geometry: npt.NDArray[np.bool_]
    move: npt.NDArray[np.float64]
    fields: pa.Array
    digest: Halves
    source: Halves
    before: Before
    partition: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LogUnit:
    """One piece.

    Args:
        terms: what it has in common with the others.
        keys: pyarrow binary array, the key bytes of its rows in their order.
        gone: bool, which of them were not delivered any more; the others are candidates.
        candidates: what is said of these, in their order.
        removed: the index rows of the others; removed_rekeyed: bool over them.
        lineage: what its events say alike; None where nobody keeps events.
    """

    terms: LogTerms
    keys: pa.Array
    gone: npt.NDArray[np.bool_]
    candidates: LogCandidates
    removed: IndexRows
    removed_rekeyed: npt.NDArray[np.bool_]
    lineage: BatchTerms | None


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A piece: its rows; what it adds to the digest of the set; its events, None where it has none."""

    log: ChangeLog
    difference: Sum
    events: pa.Table | None


def log_piece(unit: LogUnit) -> LogPiece:
    """Build one piece."""
    log = _rows(unit)
    difference = Sum()
    for digests, sign in ((log.old_digest, -1), (log.digest, 1)):
        there = pc.is_valid(digests)
        counted = digests.filter(there)
        if len(counted):
            difference.add(halves(hashing.blake2b16(log.key.filter(there).combine_chunks())), halves(counted), sign)
    return LogPiece(log, difference, _events(unit, log) if unit.lineage is not None else None)


def _rows(unit: LogUnit) -> ChangeLog:
    gone = unit.gone
    if not gone.any():
        return _delivered(unit, unit.keys)
    mine, lost = _delivered(unit, unit.keys.filter(pa.array(~gone))), _removed(unit)
    back = np.empty(len(gone), np.int64)
    back[~gone], back[gone] = np.arange(len(mine)), len(mine) + np.arange(len(lost))
    both = pa.concat_tables([mine.table, lost.table]).unify_dictionaries().combine_chunks()
    return ChangeLog(both.take(pa.array(back)))


def _delivered(unit: LogUnit, key_bytes: pa.Array) -> ChangeLog:
    terms, rows = unit.terms, unit.candidates
    code, before = rows.code, rows.before
    kept = (classes.SUPPRESSED, classes.HELD, classes.MOVED) if terms.same_domain else (classes.SUPPRESSED, classes.MOVED)
    keeps_digest = np.isin(code, kept)[:, None]
    held = (code == classes.HELD)[:, None]
    stays = np.isin(code, (classes.SUPPRESSED, classes.HELD, classes.REFRESHED))
    digest = np.where(keeps_digest, before.digest, rows.digest)
    source = np.where(held, before.source if terms.same_rules else np.uint64(0), rows.source)
    place = np.where(stays, before.partition, rows.partition).astype(np.int32)
    there, known = code != classes.REMOVED, before.partition >= 0
    return ChangeLog.of(
        {
            ChangeLog.key: key_bytes,
            ChangeLog.kind: _classes(code),
            ChangeLog.reversed: pa.array(rows.reversed),
            ChangeLog.rekeyed: pa.array(rows.rekeyed),
            ChangeLog.attributes: pa.array(rows.attributes),
            ChangeLog.geometry: pa.array(rows.geometry),
            ChangeLog.geometry_change: pa.array(rows.move, mask=~(rows.geometry & np.isfinite(rows.move))),
            ChangeLog.fields: rows.fields,
            ChangeLog.digest: _masked(digest, there),
            ChangeLog.source_digest: _masked(source, there & (source != digest).any(axis=1)),
            ChangeLog.old_digest: _masked(before.digest, known),
            ChangeLog.partition: _named(place, terms.names, there),
            ChangeLog.old_partition: _named(before.partition, terms.names, known),
        }
    )


def _removed(unit: LogUnit) -> ChangeLog:
    gone, size = unit.removed, len(unit.removed)
    no = pa.array(np.zeros(size, bool))
    return ChangeLog.of(
        {
            ChangeLog.key: gone.key.cast(pa.binary()),
            ChangeLog.kind: _classes(np.full(size, classes.REMOVED, np.int8)),
            ChangeLog.reversed: no,
            ChangeLog.rekeyed: pa.array(unit.removed_rekeyed),
            ChangeLog.attributes: no,
            ChangeLog.geometry: no,
            ChangeLog.geometry_change: pa.nulls(size, pa.float64()),
            ChangeLog.fields: pa.nulls(size, FIELDS),
            ChangeLog.digest: pa.nulls(size, DIGEST),
            ChangeLog.source_digest: pa.nulls(size, DIGEST),
            ChangeLog.old_digest: gone.digest,
            ChangeLog.partition: pa.nulls(size, PARTITION_NAME),
            ChangeLog.old_partition: gone.partition.cast(PARTITION_NAME),
        }
    )


def _classes(code: npt.NDArray[np.int8]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(CHANGE_CLASSES))


def _named(code: npt.NDArray[np.int32], names: tuple[str, ...], valid: npt.NDArray[np.bool_]) -> pa.Array:
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


def _events(unit: LogUnit, log: ChangeLog) -> pa.Table | None:
    """One event of stage `publish` for each feature that was removed or held, or has another partition: it names both partitions."""
    names = log.kind.cast(pa.string())
    there, before = log.partition.cast(pa.string()), log.old_partition.cast(pa.string())
    named = log.filter(pc.or_(pc.is_in(names, pa.array(["removed", "held"])), pc.fill_null(pc.not_equal(there, before), False)))
    if unit.lineage is None or not len(named):
        return None
    part = ChangeLog(named.table.combine_chunks())
    kind = part.kind.cast(pa.string()).combine_chunks()
    held = np.asarray(pc.equal(kind, "held"), dtype=bool)
    reason = pc.if_else(
        pa.array(held), pa.scalar("the delivered row was rejected; the last accepted one stays published"), pa.scalar(None, pa.string())
    )
    step = Steps(
        "publish",
        "VALIDATE",
        np.where(held, WARN, PASS).astype(np.uint8),
        reason,
        unit.terms.crs,
        unit.terms.crs,
        tool_version=unit.terms.tool,
        extra={
            "change_class": kind,
            "from_partition": part.old_partition.cast(pa.string()).combine_chunks(),
            "to_partition": part.partition.cast(pa.string()).combine_chunks(),
        },
    )
    return unit.lineage.events(keys.ids_of(part.key.combine_chunks()), [step])
