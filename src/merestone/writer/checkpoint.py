"""Writing a checkpoint of the feature index whose columns can be mapped.

Not here: the order of its rows (`line.writing.index_order`), its form (`dataset.checkpoint`).
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merestone.dataset.checkpoint import GROUP, MAPPED, WIDTH, footer_words
from merestone.dataset.manifest import ObjectRef
from merestone.dataset.tables import CheckpointRows
from merestone.storage.port import Store
from merestone.writer.files import store_file, writing

_ONE_PAGE = {"data_page_size": 16 * GROUP + 4096}
if "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters:  # before pyarrow 23 a page had no most rows
    _ONE_PAGE["max_rows_per_page"] = GROUP


def write_checkpoint(store: Store, name: str, pieces: Iterable[pa.RecordBatch], partitions: Sequence[str], folder: str) -> ObjectRef:
    """Write a checkpoint; it passes through the scratch folder.

    Args:
        store: where the dataset is.
        name: of the object.
        pieces: batches of CheckpointRows of any size, in the order of the delivery; a null digest is that of the source.
        partitions: the name of each partition code.
        folder: the scratch folder.

    Raises:
        StoreError: the store or the scratch folder cannot be written.
    """
    sums: list[list[int]] = []
    rows = 0
    with writing(name, folder) as local:
        options: dict[str, Any] = {
            "compression": {each: "none" if each in MAPPED else "zstd" for each in CheckpointRows.schema.names},
            "use_dictionary": ["version"],
            "column_encoding": {"key": "DELTA_BYTE_ARRAY"},
            "write_statistics": ["key", "version"],
            "write_page_checksum": True,
        }
        with pq.ParquetWriter(local, CheckpointRows.schema, **options, **_ONE_PAGE) as writer:
            for group in _groups(pieces):
                sums.append([zlib.crc32(_raw(group.column(each), width)) for each, width in zip(MAPPED, WIDTH, strict=True)])
                writer.write_table(group, row_group_size=GROUP)
                rows += group.num_rows
            writer.add_key_value_metadata(footer_words(partitions, sums))
    return store_file(store, name, local, rows)


def _groups(pieces: Iterable[pa.RecordBatch]) -> Iterable[pa.Table]:
    """The rows in tables of GROUP rows, the last one of what is left."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += piece.num_rows
        while held >= GROUP:
            table = pa.Table.from_batches(waiting, CheckpointRows.schema)
            yield table.slice(0, GROUP).combine_chunks()
            waiting = table.slice(GROUP).to_batches()
            held -= GROUP
    if held:
        yield pa.Table.from_batches(waiting, CheckpointRows.schema).combine_chunks()


def _raw(column: pa.ChunkedArray, width: int) -> memoryview:
    array = column.combine_chunks()
    return memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
