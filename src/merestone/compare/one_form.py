"""Values of two types in one form of text; equal values are equal texts.

A date in GeoJSON is text, in GeoPackage it may be a timestamp at midnight: both are "2024-05-20" here.
Not here: which columns need it (`terms`), casts that a contract asks for (`normalise`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from merestone.contract.contract import FieldType
from merestone.normalise import values

TIMES = frozenset({"date", "time", "timestamp", "timestamp_local"})
_READ_AS = (FieldType("date"), FieldType("timestamp_local"), FieldType("timestamp"), FieldType("time"))


def as_text(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """How arrays of an Arrow type become text."""
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return _as_json
    return lambda array: array.cast(pa.string())


def times_as_text(array: pa.Array) -> pa.Array:
    """Dates and times as text: a date, or date and time in UTC, or a time, without zeros at the end; text that is none of these stays.

    Args:
        array: dates, times, timestamps (those without a zone are not shifted), or text that may hold some in ISO 8601.
    """
    if not pa.types.is_string(array.type):
        return _written(array)
    out = pa.nulls(len(array), pa.string())
    for kind in _READ_AS:
        read, bad = values.cast(array, kind, json_text=False, utc=False)
        out = pc.coalesce(out, pc.if_else(pa.array(bad), pa.scalar(None, pa.string()), _written(read)))
    texts: pa.Array = pc.coalesce(out, array)
    return texts


def _written(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        text = pc.strftime(array.cast(pa.timestamp("us", array.type.tz)), format="%Y-%m-%dT%H:%M:%S")
    elif pa.types.is_date(array.type):
        text = pc.strftime(array.cast(pa.date32()).cast(pa.timestamp("s")), format="%Y-%m-%d")
    else:
        text = array.cast(pa.string())
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+$", r"\1")
    return pc.replace_substring_regex(pc.replace_substring_regex(text, r"\.$", ""), r"T00:00:00$", "")


def _as_json(array: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else json.dumps(value, default=_hex, sort_keys=True, ensure_ascii=False) for value in array.to_pylist()],
        pa.string(),
    )


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
