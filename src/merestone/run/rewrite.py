"""Pass 3, touched partitions: carried rows and candidates, sorted, written beside what is there, read back; and the change log.

Not here: which partitions are touched (`change.plan`), making it a version (`publish.commit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.change.plan import Plan
from merestone.dataset.known import CHANGE_CLASSES, CHANGES_SCHEMA, Halves, find, halves, sort_by_hash, unhalves
from merestone.dataset.manifest import DataFile
from merestone.dataset.rows import read_rows
from merestone.errors import InternalError
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.publish.files import Layout, sort_rows, write_partition
from merestone.publish.spool import Spool
from merestone.run.engine import run_units
from merestone.run.prepare import KEY
from merestone.run.process import CODE
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Job:
    """What pass 3 needs besides the rows: where to write, the layout, how objects are named, and what is already published."""

    store: Store
    layout: Layout
    key_columns: tuple[str, ...]
    stem: str
    version: int
    run_id: str
    files: tuple[DataFile, ...]
    names: list[str]


def rewrite(job: Job, plan: Plan, ready: list[Spool], leaving: Halves, *, workers: int) -> list[DataFile]:
    """Write every touched partition that still has rows.

    Args:
        job: where and how.
        plan: what has to come out, exactly.
        ready: spools of the rows to write, by bucket.
        leaving: key hashes of published rows that are not carried in their place, uint64 (k, 2).

    Raises:
        StoreError: the store refused, or a file does not read back as it was written.
        CorruptError: a published file is damaged.
        InternalError: a partition came out with another number of rows than planned; nothing is committed then.
    """
    gone = leaving[sort_by_hash(leaving)]
    by_name: dict[str, list[DataFile]] = {}
    for file in job.files:
        by_name.setdefault(file.partition, []).append(file)
    left = set(plan.touched)

    def units() -> Iterator[tuple[str, Any]]:
        for spool in ready:
            table = spool.table().combine_chunks()
            spool.drop()
            code = np.asarray(table.column(CODE))
            order = np.argsort(code, kind="stable")
            edges = np.flatnonzero(np.diff(code[order], prepend=-1))
            for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
                name = job.names[code[order[start]]]
                left.discard(name)
                yield name, table.take(pa.array(order[start:end]))
        for name in sorted(left):  # partitions that only lose rows
            yield name, None

    def task(unit: tuple[str, Any]) -> list[DataFile]:
        name, arriving = unit
        return _write(job, name, arriving, by_name.get(name, []), gone, plan.rows[name])

    return [file for files in run_units(task, units(), workers=workers) for file in files]


def _write(job: Job, name: str, arriving: Any, files: list[DataFile], gone: Halves, expected: int) -> list[DataFile]:
    schema = job.layout.row_schema
    rows = read_rows(job.store, files, schema).combine_chunks()
    canonical, _ = keys.key_bytes(rows, job.key_columns)
    stays = pa.array(find(gone, halves(kernel.blake2b16(canonical))) < 0)
    rows, key_bytes = rows.filter(stays), canonical.filter(stays)
    if arriving is not None:
        rows = pa.concat_tables([rows, arriving.select(schema.names).cast(schema)])
        key_bytes = pa.concat_arrays([key_bytes, arriving.column(KEY).combine_chunks().cast(key_bytes.type)])
    if rows.num_rows != expected:
        raise InternalError(f"partition {name or 'data'} came out with {rows.num_rows} rows, {expected} were planned; nothing was published",
                            field=name, hint="please report this, with the run record")
    return write_partition(job.store, sort_rows(rows.combine_chunks(), key_bytes, job.layout), job.layout, partition=name, stem=job.stem,
                           version=job.version, run_id=job.run_id)


@dataclass(frozen=True, slots=True)
class Labels:
    """What the change log says of the candidates besides their class; arrays over all candidates."""

    reversed: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.bool_]
    geometry: npt.NDArray[np.bool_]
    rekeyed: npt.NDArray[np.bool_]
    move: npt.NDArray[np.float64]
    fields: list[tuple[str, npt.NDArray[np.int64]]]


def change_log(
    *, key_bytes: Any, rows: npt.NDArray[np.int64], codes: npt.NDArray[np.int16], labels: Labels, digest: Halves, source: Halves,
    before: Before, partition: npt.NDArray[np.int32], names: list[str], removed: Any, removed_rekeyed: npt.NDArray[np.bool_],
) -> Any:
    """The change log of a version, ordered by key bytes (pyarrow.Table of CHANGES_SCHEMA).

    Args:
        key_bytes: pyarrow binary array, the canonical keys of `rows`.
        rows: int64, the candidates that the log speaks of.
        codes: int16 over all candidates, as are labels, digest, source, before and partition.
        labels: see `Labels`.
        digest: what would be stored.
        source: source digests.
        before: the index rows.
        partition: new partition codes.
        names: partition code to name.
        removed: pyarrow.Table of INDEX_SCHEMA, the features that were not delivered any more.
        removed_rekeyed: bool over `removed`.
    """
    code = codes[rows].astype(np.int8)
    keep_old = np.isin(code, (classes.SUPPRESSED, classes.HELD, classes.MOVED))
    new_digest = np.where(keep_old[:, None], before.digest[rows], digest[rows])
    held = code == classes.HELD
    new_source = np.where(held[:, None], before.source[rows], source[rows])
    stays = np.isin(code, (classes.SUPPRESSED, classes.HELD, classes.REFRESHED))
    place = np.where(stays, before.partition[rows], partition[rows]).astype(np.int32)
    refused = code == classes.REMOVED
    known = before.partition[rows] >= 0
    move = labels.move[rows]
    mine = pa.Table.from_arrays([
        key_bytes.cast(pa.binary()), _classes(code),
        *(pa.array(each[rows]) for each in (labels.reversed, labels.rekeyed, labels.attributes, labels.geometry)),
        pa.array(move, mask=np.isnan(move)), _field_lists(labels.fields, rows, len(codes)),
        _masked(unhalves(new_digest), ~refused), _masked(unhalves(new_source), ~refused), _masked(unhalves(before.digest[rows]), known),
        _named(place, names, ~refused), _named(before.partition[rows], names, known),
    ], schema=CHANGES_SCHEMA)
    gone = removed.num_rows
    none = np.zeros(gone, bool)
    lost = pa.Table.from_arrays([
        removed.column("key"), _classes(np.full(gone, classes.REMOVED, np.int8)), pa.array(none), pa.array(removed_rekeyed), pa.array(none),
        pa.array(none), pa.nulls(gone, pa.float64()), pa.nulls(gone, pa.list_(pa.string())),
        *(pa.nulls(gone, pa.binary(16)) for _ in range(2)), removed.column("digest"), pa.nulls(gone, CHANGES_SCHEMA.field("partition").type),
        removed.column("partition").cast(CHANGES_SCHEMA.field("old_partition").type),
    ], schema=CHANGES_SCHEMA)
    table = (pa.concat_tables([mine, lost]) if gone else mine).unify_dictionaries().combine_chunks()
    return table.take(pa.compute.sort_indices(table, sort_keys=[("key", "ascending")]))


def _classes(code: npt.NDArray[np.int8]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(CHANGE_CLASSES))


def _named(code: npt.NDArray[np.int32], names: list[str], valid: npt.NDArray[np.bool_]) -> Any:
    used, places = np.unique(code[valid], return_inverse=True)
    index = np.zeros(len(code), np.int32)
    index[valid] = places
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=~valid), pa.array([names[each] for each in used], pa.string()))


def _masked(values: Any, valid: npt.NDArray[np.bool_]) -> Any:
    if valid.all():
        return values
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.FixedSizeBinaryArray.from_buffers(values.type, len(values), [bitmap, values.buffers()[1]])


def _field_lists(fields: list[tuple[str, npt.NDArray[np.int64]]], rows: npt.NDArray[np.int64], size: int) -> Any:
    """The changed attributes of each row as a list column, null where there is none."""
    if not fields:
        return pa.nulls(len(rows), pa.list_(pa.string()))
    names = sorted({name for name, _ in fields})
    at = np.full(size, -1, np.int64)
    at[rows] = np.arange(len(rows))
    where = at[np.concatenate([each for _, each in fields])]
    what = np.concatenate([np.full(len(each), names.index(name), np.int32) for name, each in fields])
    kept = where >= 0
    where, what = where[kept], what[kept]
    order = np.lexsort((what, where))
    counts = np.bincount(where, minlength=len(rows))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    values = pa.array(names).take(pa.array(what[order]))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(counts == 0))
