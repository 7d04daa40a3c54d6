"""The feature index: what every published feature's key, digests and partition are, as a log of change files with an optional checkpoint.

Not here: the features in memory (`known`), writing change logs (`writer.files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.entries import no_entries
from merestone.columnar.lookup import Room, among, in_memory
from merestone.dataset.checkpoint import mapped, rows_at
from merestone.dataset.known import Halves, Known, halves, sort_by_hash
from merestone.dataset.manifest import IndexRef, ObjectRef
from merestone.dataset.partition import Partitions
from merestone.dataset.proved import opened
from merestone.dataset.tables import IndexRows
from merestone.errors import CorruptError
from merestone.storage.port import Store

LOGGED = 100_000
"""Rows of logs that are read in a moment: a dataset of so few features needs no checkpoint."""
NIGHTS, SHARE = 60, 16
"""How many logs may follow a checkpoint, and of which part of the features they may speak."""
STRAYED, WEEK = 0.05, 7
"""Which share of a delivery may come in another order than the checkpoint, unless it is younger than so many versions: an export that is shuffled
each night never meets one."""


def _codes(column: pa.Array | pa.ChunkedArray, partitions: Partitions) -> npt.NDArray[np.int32]:
    """A dictionary column of partition names as codes; -1 for null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names = partitions.of_names(column.dictionary.to_pylist())
    places = np.asarray(column.indices.fill_null(-1), dtype=np.int64)
    if not len(names):
        return np.full(len(column), -1, np.int32)
    return np.where(places >= 0, names[places], np.int32(-1)).astype(np.int32)


def load(store: Store, index: IndexRef, partitions: Partitions, room: Room = in_memory) -> Known:
    """Every published feature: the checkpoint where it lies, and the logs after it in memory.

    Args:
        store: where the dataset is.
        index: of the version.
        partitions: names of partitions that are not known yet are added.
        room: where the table of a search lies, which is made when one is needed.

    Raises:
        CorruptError: a file of the index is missing, cut or not what the manifest says; of the checkpoint also when a part of it is first looked at.
    """
    entries, codes = no_entries(), np.zeros(0, np.int32)
    if index.checkpoint is not None:
        entries, names = mapped(store, index.checkpoint)
        codes = partitions.of_names(names)
    rows = sum(ref.rows for _, ref in index.log)
    later = (np.empty((rows, 2), np.uint64), np.empty((rows, 2), np.uint64), np.empty(rows, np.int32))
    removes = np.zeros(rows, bool)
    at = 0
    for _, ref in index.log:
        end = at + ref.rows
        _read_log(store, ref, partitions, tuple(each[at:end] for each in later), removes[at:end])
        if removes[at:end].any() and not at and not entries.rows:
            raise CorruptError(
                f"{ref.path} removes features of a dataset that had none",
                field=ref.path,
                hint="see «verify(DATASET)» for what else is damaged",
            )
        at = end
    gone = np.zeros(entries.rows + rows, bool)
    newest = _last_words(later[0])
    gone[entries.rows :] = removes
    gone[entries.rows :][np.isin(np.arange(rows), newest, invert=True)] = True
    before = among(entries, later[0][newest])
    gone[before[before >= 0]] = True
    return Known(entries, codes, later, gone, room)


def _read_log(
    store: Store, ref: ObjectRef, partitions: Partitions, out: tuple[npt.NDArray[Any], ...], removes: npt.NDArray[np.bool_]
) -> None:
    """What a change log says: key hashes, source digests, partition codes, and which of its rows are removals. Every byte of it is proven."""
    at = 0
    with opened(store, ref, whole=True) as file:
        for table in file.groups(["key", "digest", "source_digest", "partition", "class"]):
            for batch in table.to_batches():
                here = slice(at, at + batch.num_rows)
                out[0][here] = halves(hashing.blake2b16(batch.column("key")))
                out[1][here] = halves(_source(batch))
                out[2][here] = _codes(batch.column("partition"), partitions)
                removes[here] = np.asarray(pc.equal(batch.column("class").cast(pa.string()), "removed"))
                at = here.stop


def _source(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The source digest of rows of a change log: the published one, where nothing else is said."""
    found: pa.Array | pa.ChunkedArray = pc.coalesce(rows.column("source_digest"), rows.column("digest"))
    return found


def _last_words(hashes: Halves) -> npt.NDArray[np.int64]:
    """The newest row of each key that the logs name, ordered by key hash."""
    order = sort_by_hash(hashes)
    ordered = hashes[order]
    newest = np.ones(len(order), bool)
    newest[:-1] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[newest]


def look_up(store: Store, index: IndexRef, slots: npt.NDArray[Any]) -> pa.Table:
    """The rows of the index at some slots, in the order asked for: pyarrow.Table with the columns of IndexRows."""
    order = np.argsort(slots, kind="stable")
    wanted = slots[order].astype(np.int64)
    # A checkpoint promises values where a log cannot: only names and types are common to both.
    parts = [
        pa.RecordBatch.from_arrays(each.columns, names=IndexRows.schema.names)
        for each in live_rows(store, index, wanted, IndexRows.schema.names)
    ]
    table = pa.Table.from_batches(parts).unify_dictionaries() if parts else IndexRows.schema.empty_table()
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return table.take(pa.array(back))


def live_keys(store: Store, index: IndexRef, slots: npt.NDArray[Any]) -> Iterator[pa.Array]:
    """The canonical key bytes at some slots, in the order of the files: binary arrays, a row group of a file each."""
    for batch in live_rows(store, index, np.sort(slots), ["key"]):
        yield batch.column("key")


def live_rows(store: Store, index: IndexRef, slots: npt.NDArray[Any], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows at some slots (ascending): batches of some columns of IndexRows. Only row groups that hold one are read."""
    wanted = slots.astype(np.int64)
    base = at = 0
    if index.checkpoint is not None:
        base = index.checkpoint.rows
        at = int(np.searchsorted(wanted, base))
        if at:
            yield from rows_at(store, index.checkpoint, wanted[:at], columns)
    for version, ref in index.log:
        end = int(np.searchsorted(wanted, base + ref.rows))
        if end > at:
            yield from _logged(store, ref, version, wanted[at:end] - base, columns)
        base, at = base + ref.rows, end


def _logged(store: Store, ref: ObjectRef, version: int, wanted: npt.NDArray[np.int64], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows of a change log as those of the index: what the version's log says, the version made."""
    with opened(store, ref) as file:
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        edges = np.searchsorted(wanted, starts)
        near = np.flatnonzero(np.diff(edges)).tolist()
        read = [name for name in IndexRows.schema.names if name in columns or (name == "digest" and "source_digest" in columns)]
        for number, table in zip(near, file.groups([name for name in read if name != "version"], near), strict=True):
            rows = table.take(pa.array(wanted[edges[number] : edges[number + 1]] - starts[number])).combine_chunks()
            rows = rows.append_column("version", pa.array(np.full(rows.num_rows, version, np.int64)))
            found = [_source(rows) if name == "source_digest" else rows.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays([_one(each) for each in found], names=columns)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def rows_of_keys(store: Store, ref: ObjectRef, wanted: Any, columns: list[str] | None = None) -> pa.Table:
    """The rows of a change log or checkpoint that hold some keys: pyarrow.Table.

    Args:
        store: where the dataset is.
        ref: the change log or checkpoint; it is ordered by key.
        wanted: canonical key bytes, a binary array.
        columns: names; None for all. `key` has to be among them.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    low, high = (each.as_py() for each in (pc.min(wanted), pc.max(wanted)))
    with opened(store, ref) as file:
        at = file.schema.get_field_index("key")
        near = []
        for number in range(file.metadata.num_row_groups):
            spread = file.metadata.row_group(number).column(at).statistics
            if spread is None or not spread.has_min_max or (spread.min <= high and spread.max >= low):
                near.append(number)
        parts = [table.filter(pc.is_in(table.column("key"), value_set=wanted)) for table in file.groups(columns, near)]
        return pa.concat_tables(parts) if parts else file.schema.empty_table().select(columns or file.schema.names)


def load_table(store: Store, index: IndexRef) -> pa.Table:
    """The whole index, ordered by key bytes: pyarrow.Table of IndexRows. For checkpoints, roll-back and verification."""
    table = look_up(store, index, load(store, index, Partitions(None)).slots()).combine_chunks()
    return table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")])).cast(IndexRows.schema)


def needs_checkpoint(index: IndexRef, features: int, strayed: float = 0.0) -> bool:
    """Whether the next version should write the whole index again.

    Args:
        index: the index with the log of the next version.
        features: how many the next version has.
        strayed: which share of the delivered rows was not met where the checkpoint has them.
    """
    logged = sum(ref.rows for _, ref in index.log)
    if len(index.log) > NIGHTS or logged > max(features // SHARE, LOGGED):
        return True
    return features > LOGGED and (index.checkpoint is None or (strayed > STRAYED and len(index.log) >= WEEK))
