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
from merestone.dataset.known import INDEX_SCHEMA, Known, find, halves, sort_by_hash
from merestone.dataset.manifest import IndexRef, ObjectRef
from merestone.dataset.partition import Partitions
from merestone.dataset.proved import opened
from merestone.errors import CorruptError
from merestone.storage.port import Store


def _files(index: IndexRef) -> list[ObjectRef]:
    return [*([index.checkpoint] if index.checkpoint else []), *(ref for _, ref in index.log)]


def _read(store: Store, ref: ObjectRef, columns: list[str], *, prove: bool = False) -> Iterator[Any]:
    """One file of the index as record batches; `prove` it when it is first read.

    Raises:
        CorruptError: the file is missing, cut or not what the manifest says.
    """
    with opened(store, ref, whole=prove) as file:
        for table in file.groups(columns):
            yield from table.to_batches()


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


def _load(store: Store, ref: ObjectRef, base: int, partitions: Partitions) -> tuple[Known, npt.NDArray[np.bool_]]:
    """One file of the index in file order, and which of its rows are removals."""
    rows = ref.rows
    known = Known(
        np.empty((rows, 2), np.uint64),
        np.empty((rows, 2), np.uint64),
        np.arange(base, base + rows, dtype=np.int32),
        np.empty(rows, np.int32),
    )
    gone = np.zeros(rows, bool)
    is_log = ref.path.startswith("_changes/")
    columns = ["key", "source_digest", "partition", *(["class"] if is_log else [])]
    at = 0
    for batch in _read(store, ref, columns, prove=True):
        end = at + batch.num_rows
        known.hash[at:end] = halves(hashing.blake2b16(batch.column("key")))
        known.source[at:end] = halves(batch.column("source_digest"))
        known.partition[at:end] = _codes(batch.column("partition"), partitions)
        if is_log:
            gone[at:end] = np.asarray(pc.equal(batch.column("class").cast(pa.string()), "removed"))
        at = end
    return known, gone


def load(store: Store, index: IndexRef, partitions: Partitions) -> Known:
    """Every published feature, ordered by key hash: the oldest file, and what the logs after it add up to.

    Raises:
        CorruptError: a file of the index is missing, cut or not what the manifest says.
    """
    files = _files(index)
    if not files:
        return Known.nothing()
    known, gone = _load(store, files[0], 0, partitions)
    if gone.any():
        raise CorruptError(
            f"{files[0].path} removes features of a dataset that had none",
            field=files[0].path,
            hint="see «verify(DATASET)» for what else is damaged",
        )
    _arrange(known, sort_by_hash(known.hash))
    base, logs = files[0].rows, []
    for ref in files[1:]:
        logs.append(_load(store, ref, base, partitions))
        base += ref.rows
    if logs:
        _apply(known, *_last_words(logs))
    return known


def _arrange(known: Known, rows: npt.NDArray[np.int64]) -> None:
    """Keep some rows, or put them in another order, one column at a time: two whole indexes at once would be half of the memory."""
    known.hash = known.hash[rows]
    known.source = known.source[rows]
    known.position = known.position[rows]
    known.partition = known.partition[rows]


def _last_words(logs: list[tuple[Known, npt.NDArray[np.bool_]]]) -> tuple[Known, npt.NDArray[np.bool_]]:
    """What all logs together say of each key that they name: the newest row stands. Ordered by key hash."""
    net = Known(*(np.concatenate([getattr(log, name) for log, _ in logs]) for name in ("hash", "source", "position", "partition")))
    gone = np.concatenate([each for _, each in logs])
    order = np.lexsort((np.arange(len(gone)), net.hash[:, 1], net.hash[:, 0]))
    ordered = net.hash[order]
    newest = np.ones(len(order), bool)
    newest[:-1] = (ordered[1:] != ordered[:-1]).any(axis=1)
    _arrange(net, order[newest])
    return net, gone[order[newest]]


def _apply(known: Known, net: Known, gone: npt.NDArray[np.bool_]) -> None:
    """Bring the index up to what the logs add up to."""
    slot = find(known.hash, net.hash)
    stays = (slot >= 0) & ~gone
    known.source[slot[stays]] = net.source[stays]
    known.position[slot[stays]] = net.position[stays]
    known.partition[slot[stays]] = net.partition[stays]
    leaves = slot[(slot >= 0) & gone]
    if len(leaves):
        keep = np.ones(len(known), bool)
        keep[leaves] = False
        _arrange(known, keep)
    new = (slot < 0) & ~gone
    if not new.any():
        return
    at = np.searchsorted(known.hash[:, 0], net.hash[new, 0])
    known.hash = np.insert(known.hash, at, net.hash[new], axis=0)
    known.source = np.insert(known.source, at, net.source[new], axis=0)
    known.position = np.insert(known.position, at, net.position[new])
    known.partition = np.insert(known.partition, at, net.partition[new])
    first = known.hash[:, 0]
    if bool((first[1:] == first[:-1]).any()):  # equal first halves: settle them by the second
        _arrange(known, sort_by_hash(known.hash))


def _indexed(store: Store, index: IndexRef) -> Iterator[tuple[ObjectRef, Iterator[Any]]]:
    """The files of the index, each with its rows as record batches of the columns of INDEX_SCHEMA; they are read when they are asked for."""
    logged = INDEX_SCHEMA.names[:-1]
    if index.checkpoint:
        yield index.checkpoint, _read(store, index.checkpoint, INDEX_SCHEMA.names)
    for version, ref in index.log:
        yield ref, (_versioned(batch, version) for batch in _read(store, ref, logged))


def _versioned(batch: pa.RecordBatch, version: int) -> pa.RecordBatch:
    """The rows of a change log as those of the index: what the version's log says, the version made."""
    made = pa.array(np.full(batch.num_rows, version, np.int64))
    return pa.RecordBatch.from_arrays([*batch.columns, made], names=INDEX_SCHEMA.names)


def look_up(store: Store, index: IndexRef, positions: npt.NDArray[np.int32]) -> pa.Table:
    """The rows of the index at some positions, in the order asked for: pyarrow.Table with the columns of INDEX_SCHEMA."""
    order = np.argsort(positions, kind="stable")
    wanted = positions[order].astype(np.int64)
    parts = []
    base = at = 0
    for ref, batches in _indexed(store, index):
        if at < len(wanted) and wanted[at] < base + ref.rows:
            for batch in batches:
                end = int(np.searchsorted(wanted, base + batch.num_rows))
                if end > at:
                    # A checkpoint promises values where a log cannot: only names and types are common to both.
                    taken = batch.take(pa.array(wanted[at:end] - base))
                    parts.append(pa.RecordBatch.from_arrays(taken.columns, names=INDEX_SCHEMA.names))
                    at = end
                base += batch.num_rows
        else:
            base += ref.rows
    table = pa.Table.from_batches(parts).unify_dictionaries() if parts else INDEX_SCHEMA.empty_table()
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return table.take(pa.array(back))


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


def live_keys(store: Store, index: IndexRef, positions: npt.NDArray[np.int32]) -> Iterator[pa.Array]:
    """The canonical key bytes at some positions, in the order of the files: binary arrays, a batch of a file each."""
    wanted = np.sort(positions).astype(np.int64)
    base = at = 0
    for ref in _files(index):
        for batch in _read(store, ref, ["key"]):
            end = int(np.searchsorted(wanted, base + batch.num_rows))
            if end > at:
                yield batch.column("key").take(pa.array(wanted[at:end] - base))
            at, base = end, base + batch.num_rows


def load_table(store: Store, index: IndexRef) -> pa.Table:
    """The whole index, ordered by key bytes: pyarrow.Table of INDEX_SCHEMA. For checkpoints, roll-back and verification."""
    known = load(store, index, Partitions(None))
    table = look_up(store, index, np.sort(known.position)).combine_chunks()
    return table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")])).cast(INDEX_SCHEMA)


def needs_checkpoint(index: IndexRef, features: int) -> bool:
    """Whether the logs have grown so long that the next version should write the whole index again."""
    logged = sum(ref.rows for _, ref in index.log[0 if index.checkpoint else 1 :])
    return len(index.log) > 60 or logged > max(features // 2, 100_000)  # two months of nights, or half of the features
