"""The versions of a dataset, newest first, without reading a manifest for each: the lines that the current manifest keeps.

Not here: what a line holds (`manifest`), writing chunks (`writer.history`).

A manifest cannot hold its own checksum, so its history ends with its parent; the pointer names the newest version. A chunk is a Parquet
object of `ChunkRows` with the versions before the newest few. Chunks of one size are merged: their number grows with the logarithm of the
number of versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.dataset.current import Current
from merestone.dataset.manifest import Chunk, HistoryLine, line_of
from merestone.dataset.proved import altered, proving, read_table
from merestone.document.json_reader import parse_json
from merestone.storage.port import Store


class ChunkRows(TableShape):
    """The rows of a chunk; `line` is the JSON object of a version, as in the manifest's `history.recent`."""

    version = TableColumn(pa.int64(), nullable=False)
    line = TableColumn(pa.string(), nullable=False)


def lines(store: Store, head: Current) -> Iterator[HistoryLine]:
    """Every version, newest first, the current one included; chunks are read when they are reached.

    Raises:
        CorruptError: a chunk is missing, altered, or does not hold the versions that the manifest says.
    """
    yield line_of(head.manifest, head.sha256)
    yield from reversed(head.manifest.history.recent)
    for chunk in reversed(head.manifest.history.chunks):
        yield from reversed(read_chunk(store, chunk))


def descent(newest_first: Iterable[HistoryLine], version: int) -> Iterator[HistoryLine]:
    """The lines of what a version follows, itself first: what a roll-back took back is passed over, the roll-back is not."""
    wanted: int | None = version
    for each in newest_first:
        if each.version == wanted:
            yield each
            wanted = each.parent if each.rollback is None else int(each.rollback["to"])


def line(store: Store, head: Current, version: int) -> HistoryLine | None:
    """The line of one version, None where the history has none; reads at most one chunk. Raises CorruptError as `lines` does."""
    if version == head.manifest.version:
        return line_of(head.manifest, head.sha256)
    history = head.manifest.history
    near = list(history.recent)
    for chunk in history.chunks:
        if chunk.first <= version <= chunk.last:
            near = read_chunk(store, chunk)
    return next((each for each in near if each.version == version), None)


def read_chunk(store: Store, chunk: Chunk) -> list[HistoryLine]:
    """The lines of a chunk, oldest first.

    Raises:
        CorruptError: it is missing, altered, or does not hold the versions that the manifest says.
    """
    rows = ChunkRows(read_table(store, chunk))
    with proving(chunk):
        found = [HistoryLine.from_json(parse_json(each)) for each in rows.line.to_pylist()]
    ends = (found[0].version, found[-1].version) if found else (0, 0)
    if ends != (chunk.first, chunk.last):
        raise altered(chunk, f"holds versions {ends[0]} to {ends[1]} where the manifest says {chunk.first} to {chunk.last}")
    return found


def chunk_table(found: Sequence[HistoryLine]) -> ChunkRows:
    """Lines as the rows of a chunk."""
    texts = [json.dumps(each.to_json(), ensure_ascii=False, allow_nan=False) for each in found]
    versions = [each.version for each in found]
    return ChunkRows.of({ChunkRows.version: pa.array(versions, pa.int64()), ChunkRows.line: pa.array(texts, pa.string())})
