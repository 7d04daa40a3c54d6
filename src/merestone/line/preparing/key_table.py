"""The file of old and new keys that `key_migration` names.

    CSV (UTF-8, a header) or Parquet. Columns `old` and `new`; where a key has several columns, `old.COLUMN` or `new.COLUMN` for each.

Not here: what the pairs explain (`change.migration`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar import hashing
from merestone.dataset.columns import stored_type
from merestone.dataset.known import Halves, halves
from merestone.errors import UsageError
from merestone.identity import key as keys
from merestone.json_value import JsonObject
from merestone.words import listed

_HINT = "write a CSV or Parquet file with the columns {columns}"
_NAMED = 5


def read_key_table(path: str, before: JsonObject, after: JsonObject) -> tuple[Halves, Halves]:
    """Old and new key hashes, pair by pair: uint64 (n, 2) each.

    Args:
        path: the file.
        before: the key rule of the last version, as its manifest has it.
        after: today's.

    Raises:
        UsageError: the file is missing or unreadable, lacks a column, has a null, a value that does not fit its key rule, or a key twice.
    """
    names = [*_columns("old", before), *_columns("new", after)]
    hint = _HINT.format(columns=", ".join(names))
    try:
        if path.lower().endswith((".parquet", ".geoparquet")):
            table = pq.read_table(path)
        else:
            from pyarrow import csv  # noqa: PLC0415 - few publications have such a table

            text = csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            table = csv.read_csv(path, convert_options=text)
    except (OSError, pa.ArrowException) as fault:
        raise UsageError(f"key_migration {path} cannot be read: {fault}", field="key_migration", hint=hint) from fault
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise UsageError(
            f"key_migration {path} has no column {', '.join(missing)}, it has {', '.join(table.column_names)}",
            field="key_migration",
            hint=hint,
        )
    return _side(path, table, "old", before), _side(path, table, "new", after)


def _columns(side: str, rule: JsonObject) -> list[str]:
    return [side] if len(rule["columns"]) == 1 else [f"{side}.{name}" for name in rule["columns"]]


def _side(path: str, table: pa.Table, side: str, rule: JsonObject) -> Halves:
    arrays = []
    for column, kind in zip(_columns(side, rule), rule["types"], strict=True):
        array = table.column(column).combine_chunks()
        try:
            arrays.append(array.cast(stored_type(kind)))
        except pa.ArrowException as fault:
            raise UsageError(
                f"key_migration {path}: {column} holds values that are not {kind}: {fault}",
                field="key_migration",
                hint=f"the key is {', '.join(rule['columns'])}",
            ) from fault
    typed = pa.table(dict(zip(rule["columns"], arrays, strict=True)))
    canonical, null = keys.key_bytes(typed.combine_chunks(), rule["columns"])
    if null.any():
        raise UsageError(
            f"key_migration {path}: {side} is empty in {int(null.sum()):,} rows (row {int(np.flatnonzero(null)[0]) + 1} first)",
            field="key_migration",
            hint="leave out rows that pair nothing",
        )
    counted = pc.value_counts(canonical)
    twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    if len(twice):
        shown = keys.ids_of(twice.slice(0, _NAMED)).to_pylist()
        raise UsageError(
            f"key_migration {path}: {listed(shown, len(twice))} {'is' if len(twice) == 1 else 'are'} repeated among the {side} keys",
            field="key_migration",
            hint="pair each key once; features that were split or merged are removed and added",
        )
    return halves(hashing.blake2b16(canonical))
