"""Lossless casts of one Arrow column to one contract type: what fits exactly passes, what does not is a fault of its row.

Not here: which columns a delivery has (`cast`), keys and digests (`identity`).
Every function takes an array without dictionary encoding and returns the cast array, null where a value did not fit, and a mask of
the rows that did not fit.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.unicode import nfc
from merestone.contract.contract import FieldType
from merestone.document.json_reader import parse_json
from merestone.json_value import Json

Mask = npt.NDArray[np.bool_]
Cast = tuple[pa.Array, Mask]
Value: TypeAlias = object
"""A value of a contract type, as Python has it."""

_TIMES = {"date", "time", "timestamp", "timestamp_local"}
_FROM_JSON = {"string", "list", "struct", *_TIMES}
_EXACT = 2**53  # beyond it a float may stand for several integers
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)$"
_ZONELESS = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_MIDNIGHT = r"^(\d{4}-\d{2}-\d{2})[T ]00:00(:00(\.0+)?)?(Z|[+-]00:?00)?$"  # a date, in formats that have times alone
_UTC = frozenset({None, "UTC", "Etc/UTC", "Z", "+00:00"})
_PLAIN_NUMBER = r"^-?\d+(\.\d+)?$"
_CLOCK = r"^\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"


def arrow_type(kind: FieldType) -> pa.DataType:
    """The Arrow type in which a contract type is processed and stored."""
    if kind.kind == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind == "list":
        return pa.list_(arrow_type(kind.members[0][1]))
    if kind.kind == "struct":
        return pa.struct([(name, arrow_type(member)) for name, member in kind.members])
    return {
        "string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
        "time": pa.time64("us"), "timestamp": pa.timestamp("us", "UTC"), "timestamp_local": pa.timestamp("us"),
        "binary": pa.binary(), "geometry": pa.binary(),
    }[kind.kind]  # fmt: skip


def delivered_kind(given: pa.DataType, *, json_text: bool = False, utc: bool = False) -> FieldType:
    """The contract type that says what an Arrow type is: for messages, and for columns that no contract types."""
    if json_text:
        return FieldType("json")
    if pa.types.is_dictionary(given):
        return delivered_kind(given.value_type)
    if pa.types.is_decimal(given):
        return FieldType("decimal", given.precision, given.scale)
    if pa.types.is_timestamp(given):
        return FieldType("timestamp" if utc or given.tz is not None else "timestamp_local")
    if is_listlike(given):
        return FieldType("list", members=(("item", delivered_kind(given.value_type)),))
    if pa.types.is_struct(given):
        return FieldType("struct", members=tuple((each.name, delivered_kind(each.type)) for each in given))
    tests: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
        (pa.types.is_null, "null"), (is_text, "string"), (pa.types.is_integer, "integer"), (pa.types.is_floating, "number"),
        (pa.types.is_boolean, "boolean"), (pa.types.is_date, "date"), (pa.types.is_time, "time"), (is_bytes, "binary"),
    )  # fmt: skip
    return FieldType(next((name for test, name in tests if test(given)), str(given)))


def never(given: pa.DataType, kind: FieldType, *, json_text: bool, utc: bool) -> str | None:
    """Why no value of a delivered type can become the contract's type without loss or guess, None where some can."""
    found = delivered_kind(given, json_text=json_text, utc=utc)
    agreed, there = kind.kind, found.kind
    if there == "json" and agreed not in _FROM_JSON:
        return f"values of mixed types where {kind} is agreed"  # GDAL gives 1 and "1" the same text there
    if there in {"null", "json"}:
        return None
    if agreed == "timestamp" and there == "timestamp_local":
        return "no time zone: timestamp_local where timestamp (an instant) is agreed"
    if agreed == "date" and there == "timestamp" and given.tz not in _UTC:
        return f"{found} in the zone {given.tz} where date is agreed"
    if agreed == "list" and there == "list":
        inner = never(given.value_type, kind.members[0][1], json_text=False, utc=utc)
        return None if inner is None else f"{found} where {kind} is agreed"
    if agreed == "struct" and there == "struct":
        return _never_struct(given, kind, utc=utc)
    fitting = {
        "string": {"string"},
        "integer": {"integer", "number", "decimal"},
        "number": {"integer", "number", "decimal"},
        "boolean": {"boolean", "integer", "number", "decimal"},
        "date": {"date", "string", "timestamp", "timestamp_local"},
        "time": {"time", "string"},
        "timestamp": {"timestamp", "string"},
        "timestamp_local": {"timestamp_local", "string"},
        "decimal": {"decimal", "integer", "number", "string"},
        "binary": {"binary"},
        "geometry": {"binary"},
    }.get(agreed, set())
    return None if there in fitting else f"{found} where {kind} is agreed"


def _never_struct(given: pa.DataType, kind: FieldType, *, utc: bool) -> str | None:
    members = dict(kind.members)
    for each in given:
        name = unicodedata.normalize("NFC", each.name)
        if name not in members:
            return f"member {name} of the struct is not in {kind}"
        if never(each.type, members[name], json_text=False, utc=utc) is not None:
            return f"{delivered_kind(given)} where {kind} is agreed"
    return None


def decoded(array: pa.Array) -> pa.Array:
    """The array without dictionary or run-end encoding."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def cast(array: pa.Array, kind: FieldType, *, json_text: bool, utc: bool) -> Cast:
    """One column in the contract's type; the caller has seen that `never` is None.

    Args:
        array: a pyarrow array, decoded.
        kind: the contract's type.
        json_text: each value is one JSON text.
        utc: the format fixes timestamps without a zone as UTC.
    """
    none = np.zeros(len(array), dtype=bool)
    if array.null_count == len(array):
        return pa.nulls(len(array), arrow_type(kind)), none
    if json_text and kind.kind not in _TIMES:
        return _from_json(array, kind)
    if kind.kind == "string":
        return _text(array), none
    if kind.kind == "boolean":
        return _boolean(array)
    if kind.kind in {"binary", "geometry"}:
        return array.cast(pa.binary()), none
    if kind.kind == "integer":
        return _integer(array)
    if kind.kind == "number":
        return _number(array)
    if kind.kind == "decimal":
        return _decimal(array, kind)
    if kind.kind in _TIMES:
        return _from_text(array, kind) if is_text(array.type) else _instant(array, kind)
    return _list(array, kind, utc=utc) if kind.kind == "list" else _struct(array, kind, utc=utc)


def is_text(given: pa.DataType) -> bool:
    """Whether an Arrow type is text, of any layout."""
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))


def is_bytes(given: pa.DataType) -> bool:
    """Whether an Arrow type is bytes, of any layout."""
    views = (
        pa.types.is_binary(given),
        pa.types.is_large_binary(given),
        pa.types.is_fixed_size_binary(given),
        pa.types.is_binary_view(given),
    )
    return any(views)


def is_listlike(given: pa.DataType) -> bool:
    """Whether an Arrow type is a list, of any layout."""
    return bool(pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given))


def _text(array: pa.Array) -> pa.Array:
    return nfc(array.cast(pa.string()))


def _boolean(array: pa.Array) -> Cast:
    """Flags, also as 1 and 0: what formats without booleans hold in their place."""
    if pa.types.is_boolean(array.type):
        return array, np.zeros(len(array), dtype=bool)
    broken = np.zeros(len(array), dtype=bool)
    if pa.types.is_decimal(array.type):
        array, broken = _attempt(array, lambda part: part.cast(pa.int64()))
    elif pa.types.is_floating(array.type):
        values, missing = _floats(array)
        array = pa.array(values, mask=missing)
    one, zero = (pc.equal(array, pa.scalar(value, array.type)) for value in (1, 0))
    bad = broken | ~np.asarray(pc.fill_null(pc.or_(one, zero), True))
    return pc.if_else(bad, pa.scalar(None, pa.bool_()), one), bad


def _integer(array: pa.Array) -> Cast:
    if pa.types.is_uint64(array.type):
        large = np.asarray(pc.fill_null(pc.greater(array, pa.scalar(2**63 - 1, pa.uint64())), False))
        return pc.if_else(large, None, array).cast(pa.int64()), large
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64()), np.zeros(len(array), dtype=bool)
    if pa.types.is_decimal(array.type):
        return _attempt(array, lambda part: part.cast(pa.int64()))
    values, missing = _floats(array)
    fits = (np.abs(values) < _EXACT) & (values == np.rint(values))
    bad = ~missing & ~fits
    return pa.array(np.where(fits, values, 0.0).astype(np.int64), mask=missing | bad), bad


def _number(array: pa.Array) -> Cast:
    none = np.zeros(len(array), dtype=bool)
    if pa.types.is_floating(array.type):
        values, missing = _floats(array)
        return pa.array(values, mask=missing), none
    if pa.types.is_decimal(array.type):
        floats = array.cast(pa.float64())
        again, bad = _attempt(floats, lambda part: part.cast(array.type))
        bad = bad | np.asarray(pc.fill_null(pc.not_equal(again, array), False))
        return pc.if_else(bad, None, floats), bad
    floats = pa.array(np.asarray(array.fill_null(0)).astype(np.float64), mask=np.asarray(array.is_null()))
    bad = none
    for row in np.flatnonzero(np.abs(np.asarray(floats.fill_null(0.0))) >= _EXACT):
        bad[row] = int(floats[row].as_py()) != array[row].as_py()
    return (pc.if_else(bad, None, floats) if bad.any() else floats), bad


def _floats(array: pa.Array) -> tuple[npt.NDArray[np.float64], Mask]:
    """Values and what is missing: a NaN in an attribute is the same missing number as a null (formats differ in which they can hold)."""
    values = np.asarray(array.cast(pa.float64()).fill_null(np.nan), dtype=np.float64)
    missing = np.isnan(values)
    return np.where(missing, 0.0, values), missing


def _decimal(array: pa.Array, kind: FieldType) -> Cast:
    wanted = arrow_type(kind)
    if pa.types.is_decimal(array.type):
        return _attempt(array, lambda part: part.cast(wanted))
    if pa.types.is_integer(array.type):
        return _attempt(array, lambda part: part.cast(pa.decimal128(20, 0)).cast(wanted))
    if is_text(array.type):  # what formats without decimals keep them as
        array = array.cast(pa.string())
        shaped = pc.match_substring_regex(array, _PLAIN_NUMBER)
        out, bad = _attempt(pc.if_else(shaped, array, pa.scalar(None, pa.string())), lambda part: part.cast(wanted))
        return out, bad | ~np.asarray(pc.fill_null(shaped, True))
    values, missing = _floats(array)
    with np.errstate(over="ignore"):
        scaled = np.rint(values * 10.0**kind.scale)
    # exact means: the shortest decimal of this scale is the one that the float stands for
    fits = (np.abs(scaled) < min(_EXACT, 10**kind.precision)) & (scaled / 10.0**kind.scale == values)
    bad = ~missing & ~fits
    low = np.where(fits, scaled, 0.0).astype(np.int64)
    body = np.column_stack([low, low >> 63]).tobytes()
    exact = pa.Array.from_buffers(wanted, len(low), [None, pa.py_buffer(body)])
    return pc.if_else(missing | bad, pa.scalar(None, wanted), exact), bad


def _instant(array: pa.Array, kind: FieldType) -> Cast:
    """Dates, times and timestamps of any unit as days or microseconds; a part below the unit is a loss."""
    wanted = arrow_type(kind)
    if pa.types.is_date32(array.type):
        return array, np.zeros(len(array), dtype=bool)
    missing = np.asarray(array.is_null())
    is_narrow = pa.types.is_time32(array.type)
    ticks = np.asarray(array.view(pa.int32() if is_narrow else pa.int64()).fill_null(0)).astype(np.int64)
    if pa.types.is_date64(array.type):
        whole, rest = np.divmod(ticks, 86_400_000)
        bad = rest != 0
        return pa.array(whole.astype(np.int32), pa.int32(), mask=missing | bad).view(wanted), bad & ~missing
    per_second = _PER_SECOND[array.type.unit]
    if kind.kind == "date":  # a timestamp of midnight, which formats without dates hold in their place
        whole, rest = np.divmod(ticks, 86_400 * per_second)
        bad = (rest != 0) | (np.abs(whole) >= 2**31)
        return pa.array(np.where(bad, 0, whole).astype(np.int32), pa.int32(), mask=missing | bad).view(wanted), bad & ~missing
    if per_second > 1_000_000:
        whole, rest = np.divmod(ticks, per_second // 1_000_000)
        bad = rest != 0
    else:
        factor = 1_000_000 // per_second
        bad = np.abs(ticks) > (2**63 - 1) // factor
        whole = np.where(bad, 0, ticks) * factor
    return pa.array(whole, pa.int64(), mask=missing | bad).view(wanted), bad & ~missing


def _from_text(array: pa.Array, kind: FieldType) -> Cast:
    """ISO 8601 text: what formats without such types (GeoJSON) deliver. Without a zone it is not an instant."""
    pattern = {"date": _DAY, "time": _CLOCK, "timestamp": _ZONED, "timestamp_local": _ZONELESS}[kind.kind]
    wanted = arrow_type(kind)
    array = array.cast(pa.string())
    if kind.kind == "date":
        array = pc.replace_substring_regex(array, _MIDNIGHT, r"\1")
    shaped = pc.match_substring_regex(array, pattern)
    # zeros beyond the microsecond say nothing; other digits there would be lost, and fail below
    text = pc.replace_substring_regex(array, r"(\.\d{6})0+", r"\1")
    text = pc.if_else(shaped, text, pa.scalar(None, pa.string()))
    out, bad = _attempt(text, _clock if kind.kind == "time" else lambda part: part.cast(wanted))
    return out, bad | ~np.asarray(pc.fill_null(shaped, True))


def _clock(text: pa.Array) -> pa.Array:
    """Times of day, which Arrow parses only as part of a date."""
    on_a_day: pa.Array = pc.binary_join_element_wise("1970-01-01T", text, "")
    return on_a_day.cast(pa.timestamp("us")).view(pa.int64()).view(pa.time64("us"))


def _list(array: pa.Array, kind: FieldType, *, utc: bool) -> Cast:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = np.asarray(array.offsets)
    items = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    out, bad_items = cast(decoded(items), kind.members[0][1], json_text=False, utc=utc)
    bad = np.zeros(len(array), dtype=bool)
    bad[np.repeat(np.arange(len(array)), np.diff(offsets))[bad_items]] = True
    bad &= np.asarray(array.is_valid())
    lists = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), out, type=arrow_type(kind), mask=array.is_null())
    return (pc.if_else(bad, pa.scalar(None, lists.type), lists) if bad.any() else lists), bad


def _struct(array: pa.Array, kind: FieldType, *, utc: bool) -> Cast:
    held = {unicodedata.normalize("NFC", each.name): at for at, each in enumerate(array.type)}
    bad = np.zeros(len(array), dtype=bool)
    children = []
    for name, member in kind.members:
        if name not in held:
            children.append(pa.nulls(len(array), arrow_type(member)))
            continue
        out, bad_members = cast(decoded(array.field(held[name])), member, json_text=False, utc=utc)
        children.append(out)
        bad |= bad_members
    bad &= np.asarray(array.is_valid())
    empty = pc.or_(array.is_null(), pa.array(bad))
    return pa.StructArray.from_arrays(children, fields=list(arrow_type(kind)), mask=empty), bad


def _from_json(array: pa.Array, kind: FieldType) -> Cast:
    """JSON texts, one Python value each: GDAL writes them only for columns of objects and of mixed types, at a speed below this one's.

    In a column of mixed types it writes strings without quotes: what is not JSON is a string, and what could be a string or a number is
    neither.
    """
    out, bad = [], np.zeros(len(array), dtype=bool)
    for row, text in enumerate(array.to_pylist()):
        try:
            value = None if text is None else parse_json(text, parse_float=Decimal, parse_constant=_no_number)
        except ValueError:  # no JSON: a text that stands for itself
            value = text
        try:
            out.append(_typed(value, kind))
        except (ValueError, ArithmeticError):  # not a value of the type: a finding names the row
            out.append(None)
            bad[row] = True
    return pa.array(out, arrow_type(kind)), bad


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)  # JSON has neither NaN nor Infinity


def _typed(value: Json | Decimal, kind: FieldType) -> Value:
    """A JSON value as a value of a contract type.

    Raises:
        ValueError: it is none.
    """
    if value is None:
        return None
    if kind.kind == "string" and isinstance(value, dict | list):
        # a contract that calls an object text keeps it as JSON text; members are sorted, since their order says nothing (RFC 8259)
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=float)
    if kind.kind == "string" and isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if kind.kind == "boolean" and value in (0, 1):
        return bool(value)
    if kind.kind == "decimal" and isinstance(value, str) and re.fullmatch(_PLAIN_NUMBER, value):
        return _typed_number(Decimal(value), kind)
    if kind.kind in _TIMES and isinstance(value, str):
        (moment,), (bad,) = _from_text(pa.array([value]), kind)
        if not bad:
            return moment.as_py()
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _typed_number(value, kind)
    if kind.kind == "list" and isinstance(value, list):
        return [_typed(each, kind.members[0][1]) for each in value]
    if kind.kind == "struct" and isinstance(value, dict):
        members = dict(kind.members)
        given = {unicodedata.normalize("NFC", name): each for name, each in value.items()}
        if given.keys() <= members.keys():
            return {name: _typed(given.get(name), member) for name, member in kind.members}
    raise ValueError(value)


def _typed_number(value: int | Decimal, kind: FieldType) -> Value:
    if kind.kind == "integer" and value == int(value) and -(2**63) <= value < 2**63:
        return int(value)
    if kind.kind == "number" and (isinstance(value, Decimal) or int(float(value)) == value):
        return float(value)
    if kind.kind == "decimal":
        exact = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
        if exact == value and abs(exact) < Decimal(10) ** (kind.precision - kind.scale):
            return exact
    raise ValueError(value)


def _attempt(array: pa.Array, parse: Callable[[pa.Array], pa.Array]) -> Cast:
    """Cast a column at once; where that fails, halve it until the rows that fail stand alone."""
    try:
        return parse(array), np.zeros(len(array), dtype=bool)
    except pa.ArrowInvalid:
        if len(array) == 1:
            return parse(pa.nulls(1, array.type)), np.ones(1, dtype=bool)
    middle = len(array) // 2
    left, bad_left = _attempt(array.slice(0, middle), parse)
    right, bad_right = _attempt(array.slice(middle), parse)
    return pa.concat_arrays([left, right]), np.concatenate([bad_left, bad_right])
