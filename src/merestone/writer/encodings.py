"""How each column of a data file is encoded, chosen by what its values are.

Not here: which columns there are and in what order their rows stand (`files`).

Only encodings of Parquet 2.6 that GDAL, DuckDB, Spark and old releases of Arrow read: byte-stream split is left out, since Spark's vectorized
reader refuses it. Source: Apache Parquet, "Encodings".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LEVEL: Final = 3
"""Of zstd, for data files."""
_SAMPLE: Final = 1_024  # neighbouring rows that are written each way
_WORTH: Final = 0.95  # of the plain size: a delta is slower to read, so it has to be smaller than that
_ROWS_A_VALUE: Final = 2  # on average; above that a dictionary is smaller than the values
_ROWS_AN_INTEGER: Final = 16  # the same, where deltas are the other choice


@dataclass(slots=True)
class Encodings:
    """Arguments for `pyarrow.parquet`: leaf columns with a dictionary, and the encoding of others. The rest is plain."""

    use_dictionary: list[str] = field(default_factory=list)
    column_encoding: dict[str, str] = field(default_factory=dict)


def encodings(table: pa.Table) -> Encodings:
    """What makes the columns of a data file small. The same rows give the same answer."""
    out = Encodings()
    for name, column in zip(table.schema.names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_nested(kind):
            out.use_dictionary += [path for path, leaf in _leaves(name, kind) if not pa.types.is_floating(leaf)]
        elif pa.types.is_binary(kind):
            _smaller(out, name, column)
        elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            if _repeats(column, _ROWS_AN_INTEGER):
                out.use_dictionary.append(name)
            else:
                out.column_encoding[name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_boolean(kind):
            continue
        elif _repeats(column, _ROWS_A_VALUE):
            out.use_dictionary.append(name)
        elif pa.types.is_string(kind):
            _smaller(out, name, column)
    return out


def _repeats(column: pa.ChunkedArray, times: int) -> bool:
    return bool(pc.count_distinct(column).as_py() * times <= len(column))


def _smaller(out: Encodings, name: str, column: pa.ChunkedArray) -> None:
    """Deltas of bytes where neighbours share enough of them, as points on a grid and sorted names do."""
    sample = pa.table([column.slice(max(0, (len(column) - _SAMPLE) // 2), _SAMPLE)], names=["sample"])
    if _size(sample, "DELTA_BYTE_ARRAY") < _WORTH * _size(sample, "PLAIN"):
        out.column_encoding[name] = "DELTA_BYTE_ARRAY"


def _size(sample: pa.Table, encoding: str) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(
        sample,
        sink,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=False,
        column_encoding={"sample": encoding},
        write_statistics=False,
        store_schema=False,
    )
    return int(sink.tell())


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The leaf columns of a field, as Parquet names them."""
    if pa.types.is_struct(kind):
        for each in kind:
            yield from _leaves(f"{path}.{each.name}", each.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind
