"""The task of the change log: one piece of it, what it does to the digest of the set, and its events, by themselves and in any process.

Not here: which rows the pieces have and their order (`change_log`), where the file goes (`writer.files`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change import classes
from merestone.change.classes import Before
from merestone.columnar import hashing
from merestone.dataset.known import CHANGE_CLASSES, CHANGES_SCHEMA, Halves, Sum, halves, unhalves
from merestone.identity import key as keys
from merestone.line.step_events import BatchTerms
from merestone.results.finding import PASS, WARN, Steps

FIELDS = pa.list_(pa.string())
_NAME = CHANGES_SCHEMA.field("partition").type


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
    """What a piece says of n candidates; see `change_log.LogContent`. labels: reversed, rekeyed, attributes, geometry. fields: a list column."""

    code: npt.NDArray[np.int8]
    labels: tuple[npt.NDArray[np.bool_], ...]
    move: npt.NDArray[np.float64]
    fields: Any
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
        removed: pyarrow.Table of INDEX_SCHEMA, the others; removed_rekeyed: bool over them.
        lineage: what its events say alike; None where nobody keeps events.
    """

    terms: LogTerms
    keys: Any
    gone: npt.NDArray[np.bool_]
    candidates: LogCandidates
    removed: Any
    removed_rekeyed: npt.NDArray[np.bool_]
    lineage: BatchTerms | None


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A piece: pyarrow.Table of CHANGES_SCHEMA; what it adds to the digest of the set; its events, None where it has none."""

    table: Any
    difference: Sum
    events: Any


def log_piece(unit: LogUnit) -> LogPiece:
    """Build one piece."""
    table = _table(unit)
    difference = Sum()
    for side, sign in (("old_digest", -1), ("digest", 1)):
        rows = table.filter(pc.is_valid(table.column(side)))
        if rows.num_rows:
            difference.add(halves(hashing.blake2b16(rows.column("key").combine_chunks())), halves(rows.column(side)), sign)
    return LogPiece(table, difference, _events(unit, table) if unit.lineage is not None else None)


def _table(unit: LogUnit) -> pa.Table:
    gone = unit.gone
    if not gone.any():
        return _delivered(unit, unit.keys)
    mine, lost = _delivered(unit, unit.keys.filter(pa.array(~gone))), _removed(unit)
    back = np.empty(len(gone), np.int64)
    back[~gone], back[gone] = np.arange(mine.num_rows), mine.num_rows + np.arange(lost.num_rows)
    return pa.concat_tables([mine, lost]).unify_dictionaries().combine_chunks().take(pa.array(back))


def _delivered(unit: LogUnit, key_bytes: pa.Array) -> pa.Table:
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
    measured = rows.labels[-1] & np.isfinite(rows.move)
    return pa.Table.from_arrays(
        [
            key_bytes,
            _classes(code),
            *(pa.array(each) for each in rows.labels),
            pa.array(rows.move, mask=~measured),
            rows.fields,
            _masked(digest, there),
            _masked(source, there),
            _masked(before.digest, known),
            _named(place, terms.names, there),
            _named(before.partition, terms.names, known),
        ],
        schema=CHANGES_SCHEMA,
    )


def _removed(unit: LogUnit) -> pa.Table:
    gone, size = unit.removed, unit.removed.num_rows
    no = pa.array(np.zeros(size, bool))
    return pa.Table.from_arrays(
        [
            gone.column("key").cast(pa.binary()),
            _classes(np.full(size, classes.REMOVED, np.int8)),
            no,
            pa.array(unit.removed_rekeyed),
            no,
            no,
            pa.nulls(size, pa.float64()),
            pa.nulls(size, FIELDS),
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


def _events(unit: LogUnit, log: pa.Table) -> Any:
    """One event of stage `publish` for each feature that was removed or held, or has another partition: it names both partitions."""
    names = log.column("class").cast(pa.string())
    there, before = log.column("partition").cast(pa.string()), log.column("old_partition").cast(pa.string())
    named = log.filter(pc.or_(pc.is_in(names, pa.array(["removed", "held"])), pc.fill_null(pc.not_equal(there, before), False)))
    if unit.lineage is None or not named.num_rows:
        return None
    part = named.combine_chunks()
    kind = part.column("class").cast(pa.string()).combine_chunks()
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
            "from_partition": part.column("old_partition").cast(pa.string()).combine_chunks(),
            "to_partition": part.column("partition").cast(pa.string()).combine_chunks(),
        },
    )
    return unit.lineage.events(keys.ids_of(part.column("key").combine_chunks()), [step])
