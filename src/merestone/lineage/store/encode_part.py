"""The task of sealing lineage: the events of one part, sorted, hashed and encoded as Parquet, by themselves and in any process.

Not here: which events a part has, where it goes and what makes it count (`writing`).
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar.arrays import one_chunk
from merestone.lineage.event import columns, merkle
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA

_DELTA = {
    "event_id": "DELTA_LENGTH_BYTE_ARRAY",
    "feature_id": "DELTA_BYTE_ARRAY",
    "sequence": "DELTA_BINARY_PACKED",
    "event_time_utc": "DELTA_BINARY_PACKED",
}
_WRITER_CAN_BLOOM = "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


@dataclass(frozen=True, slots=True)
class PartUnit:
    """The events of one part: compact, in the order in which they came, all with one target CRS. `group_rows` go into a row group."""

    events: pa.Table
    target_crs: str
    group_rows: int


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What is known of an encoded part; `root` is the Merkle root over its rows."""

    rows: int
    size: int
    sha256: str
    root: bytes
    target_crs: str
    first_feature: str
    last_feature: str


def part_units(events: pa.Table, group_rows: int) -> Iterator[PartUnit]:
    """The units of some events (a compact table of one chunk a column), one for each target CRS."""
    targets = one_chunk(events.column("target_crs"))
    for code, target in enumerate(targets.dictionary.to_pylist()):
        mine = events if len(targets.dictionary) == 1 else events.filter(pc.equal(targets.indices, code))
        if mine.num_rows:
            yield PartUnit(mine, target, group_rows)


def encode_part(unit: PartUnit) -> tuple[pa.Buffer, PartFacts]:
    """The Parquet file of a part (a pyarrow.Buffer), and what is known of it."""
    table, rows = unit.events, unit.group_rows
    order = pa.array(_order(table))
    tree, sink = merkle.Growing(), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, LINEAGE_ARROW_SCHEMA, **_parquet_options(rows)) as writer:
        for start in range(0, table.num_rows, rows):
            # Row group by row group: what is taken still lies in the processor's cache when it is hashed and encoded.
            piece = _taken(table, order.slice(start, rows))
            tree.add(merkle.leaves(piece))
            writer.write_table(columns.expand(piece), row_group_size=rows)
    data = sink.getvalue()
    features = table.column("feature_id")
    first, last = (features[order[at].as_py()].as_py() for at in (0, -1))
    return data, PartFacts(table.num_rows, data.size, hashlib.sha256(data).hexdigest(), tree.root(), unit.target_crs, first, last)


def _order(table: pa.Table) -> npt.NDArray[np.int64]:
    """The rows by the bytes of feature_id, then by sequence: positions."""
    features = one_chunk(table.column("feature_id"))
    ranks = np.empty(len(features.dictionary), np.int32)
    ranks[np.asarray(pc.sort_indices(features.dictionary))] = np.arange(len(ranks), dtype=np.int32)
    sequence = np.asarray(one_chunk(table.column("sequence")))
    rank = ranks[np.asarray(features.indices)]
    if bool((sequence[1:] >= sequence[:-1]).all()):
        return np.argsort(rank, kind="stable")
    return np.lexsort((sequence, rank))


def _taken(table: pa.Table, places: pa.Array) -> pa.Table:
    """Some rows of a compact table; a column that says one thing, or nothing, need not be looked up."""
    arrays = []
    for each in table.columns:
        column = one_chunk(each)
        alike = column.null_count == len(column) or columns.is_uniform(column)
        arrays.append(column.slice(0, len(places)) if alike else column.take(places))
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _parquet_options(group_rows: int) -> dict[str, Any]:
    names = columns.COMPACT_SCHEMA.names
    options: dict[str, Any] = {
        "version": "2.6",
        "compression": "zstd",
        "compression_level": 1,
        "data_page_version": "2.0",
        "use_dictionary": [each for each in names if each not in _DELTA],
        "column_encoding": _DELTA,
        # Statistics of the other columns would be most of the footer, which a question about one feature reads from every run.
        "write_statistics": ["feature_id", "sequence"],
        "write_page_checksum": True,
        "sorting_columns": [pq.SortingColumn(names.index("feature_id")), pq.SortingColumn(names.index("sequence"))],
    }
    if _WRITER_CAN_BLOOM:
        options["bloom_filter_options"] = {"feature_id": {"ndv": max(1, group_rows // 4), "fpp": 0.01}}
    return options
