"""The checkpoint of the feature index: every feature of a version in one Parquet file, in the order of the delivery that it was made from.

Key hash, source digest and partition lie in it uncompressed, one page a row group: they are mapped and looked at where they lie,
without reading the rest. The footer says what the CRC-32 of each is. Key bytes, published digest and version stand beside them, compressed.

Not here: writing one (`writer.checkpoint`), the logs after it (`index`), how rows are found in it (`columnar.lookup`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.entries import Entries
from merestone.dataset.manifest import ObjectRef
from merestone.dataset.proved import ProvedFile, altered, opened, proving
from merestone.dataset.tables import CheckpointRows, IndexRows
from merestone.document.json_reader import parse_json
from merestone.storage.port import Store

SHIFT = 17
GROUP = 1 << SHIFT
"""Rows of a row group; the last one has what is left."""
MAPPED = ("key_hash", "source_digest", "partition")
"""The columns that are mapped."""
WIDTH = (16, 16, 4)
PARTITIONS, CHECKSUMS = b"partitions", b"crc32"
"""What the footer says beside the schema: the names that the codes of partitions stand for, and the CRC-32 of each mapped column by row group; JSON."""
_HEADER = 64  # bytes that the header of a page has at most


def mapped(store: Store, ref: ObjectRef) -> tuple[Entries, list[str]]:
    """The entries of a checkpoint where they lie, and the names of their partitions' codes.

    Raises:
        CorruptError: it is missing, cut or altered; also when a group is first read.
    """
    with opened(store, ref) as file:
        said = file.metadata.metadata or {}
        with proving(ref):
            names, sums = parse_json(said[PARTITIONS]), parse_json(said[CHECKSUMS])
            starts = _starts(file)
    try:
        view = store.buffer(ref.path)
    except FileNotFoundError as fault:
        raise altered(ref, "is missing") from fault
    if view.nbytes != ref.bytes:
        raise altered(ref, f"has {view.nbytes} bytes where the manifest says {ref.bytes}")

    def prove(group: int) -> None:
        rows = min(GROUP, ref.rows - group * GROUP)
        for start, width, wanted in zip(starts[:, group].tolist(), WIDTH, sums[group], strict=True):
            if zlib.crc32(view[start : start + rows * width]) != wanted:
                raise altered(ref)

    return Entries(view, starts, SHIFT, ref.rows, prove, np.zeros(starts.shape[1], np.uint8)), names


def _starts(file: ProvedFile) -> npt.NDArray[np.int64]:
    """Where the values of each mapped column begin in each row group: int64 (3, groups). Raises ValueError where they do not lie so."""
    meta = file.metadata
    starts = np.zeros((len(MAPPED), meta.num_row_groups), np.int64)
    at = [meta.schema.names.index(name) for name in MAPPED]
    left = meta.num_rows
    for group in range(meta.num_row_groups):
        rows = meta.row_group(group)
        if rows.num_rows != min(GROUP, left):
            raise ValueError("its row groups have other sizes")
        left -= rows.num_rows
        for n, (column, width) in enumerate(zip(at, WIDTH, strict=True)):
            chunk = rows.column(column)
            header = chunk.total_compressed_size - rows.num_rows * width
            if chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page or not 0 < header <= _HEADER:
                raise ValueError(f"{MAPPED[n]} does not lie as it is read")
            starts[n, group] = chunk.data_page_offset + header
    return starts


def rows_at(store: Store, ref: ObjectRef, wanted: npt.NDArray[np.int64], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a checkpoint at some places (ascending), as batches of IndexRows or some of its columns; others are not read.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    with opened(store, ref) as file:
        names = columns or IndexRows.schema.names
        said = file.metadata.metadata or {}
        with proving(ref):
            partitions = pa.array(parse_json(said[PARTITIONS]), pa.string())
        read = [name for name in CheckpointRows.schema.names if name in names or (name == "source_digest" and "digest" in names)]
        groups = np.unique(wanted >> SHIFT)
        for group, table in zip(groups.tolist(), file.groups(read, groups.tolist()), strict=True):
            low, high = np.searchsorted(wanted, (group << SHIFT, (group + 1) << SHIFT))
            rows = table.take(pa.array(wanted[low:high] - (group << SHIFT))).combine_chunks()
            with proving(ref):
                yield pa.RecordBatch.from_arrays([_column(rows, name, partitions) for name in names], names=list(names))


def _column(rows: pa.Table, name: str, partitions: pa.Array) -> pa.Array:
    column = rows.column(name).combine_chunks()
    if name == "partition":
        return pa.DictionaryArray.from_arrays(column, partitions)
    if name == "digest":
        column = pc.coalesce(column, rows.column("source_digest").combine_chunks())
    return column


def footer_words(partitions: Sequence[str], sums: Sequence[Sequence[int]]) -> dict[str, str]:
    """What the footer of a checkpoint says beside its schema."""
    return {PARTITIONS.decode(): json.dumps(list(partitions)), CHECKSUMS.decode(): json.dumps([list(each) for each in sums])}
