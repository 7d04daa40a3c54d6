"""Arrow columns as a digest sees them: one plain type per tag of fingerprint layout 2, text in NFC, nested values encoded.

Not here: the bytes of a field and of a geometry (`geometry.kernel`), which columns count (`digest.Layout`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import plain
from merestone.columnar.hashed_values import HashedColumn
from merestone.columnar.rounding import NumberGrid, number_column
from merestone.columnar.unicode import nfc
from merestone.contract.contract import FieldType
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.text import nfc_name
from merestone.normalise.values import arrow_type

_SCALARS = {"string", "integer", "number", "boolean", "date", "time", "timestamp", "timestamp_local", "decimal"}
_AS_IS = Shape()
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def kept(array: pa.Array, grid: NumberGrid | None) -> pa.Array:
    """The numbers of a column as they are stored, rounded to its decimals or digits; other columns as they are."""
    return array if grid is None or not pa.types.is_floating(array.type) else number_column(array, grid)[0]


def to_microseconds(array: pa.Array) -> pa.Array:
    """A time or timestamp of any unit as int64 microseconds; what is finer is cut off downwards.

    Raises:
        ValueError: an instant that int64 microseconds cannot hold.
    """
    kind = array.type
    count = array.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    scale = _PER_SECOND[kind.unit]
    if scale < 1_000_000:
        return pc.multiply_checked(count.cast(pa.int64()), 1_000_000 // scale)
    if scale == 1_000_000:
        return count
    values = np.floor_divide(np.asarray(count.fill_null(0)), scale // 1_000_000)
    return pa.array(values, mask=np.asarray(count.is_null()))


def column_of(
    name: str, array: pa.Array, kind: FieldType | None = None, grid: Grid | None = None, shape: Shape = _AS_IS
) -> HashedColumn | None:
    """One attribute for `kernel.digest`; None where its type holds nothing but nulls.

    Args:
        name: the column's name, in any normalisation.
        array: pyarrow array of any supported type.
        kind: the contract's type; without it the tag comes from the Arrow type.
        grid: of a second geometry.
        shape: of a second geometry: the dimensions that count.

    Raises:
        ValueError: a type that fingerprint layout 2 has no tag for.
    """
    array = plain(array)
    if kind is not None:
        array = _agreed(array, kind)
    there = array.type
    if pa.types.is_null(there):
        return None
    if kind is not None and kind.kind == "geometry":
        return HashedColumn(nfc_name(name), "g", kernel.encode(array, grid or Grid(0), shape))
    for fits, make in _MAKERS:
        if fits(there):
            return make(name, array, kind)
    raise ValueError(f"attribute {name!r} is of type {there}, which has no place in a digest")


def _agreed(array: pa.Array, kind: FieldType) -> pa.Array:
    """The array in the contract's type, where the digest would differ. Nothing is lost: what does not fit is an error of the caller."""
    there, wanted = array.type, arrow_type(kind)
    if there == wanted or pa.types.is_null(there) or kind.kind not in _SCALARS:
        return array
    if kind.kind == "string" and pa.types.is_large_string(there):
        return array
    clocks = pa.types.is_timestamp if kind.kind in ("timestamp", "timestamp_local") else pa.types.is_time
    if kind.kind in ("timestamp", "timestamp_local", "time") and clocks(there):
        return to_microseconds(array).cast(wanted)
    return array.cast(wanted)


def _text(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "s", nfc(array))


def _integer(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "i", array)


def _float(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "f", array.cast(pa.float32()) if pa.types.is_float16(array.type) else array)


def _boolean(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "b", array)


def _date(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "d", array.cast(pa.date32()))


def _clock(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    kind = array.type
    tag = "t" if pa.types.is_time(kind) else "L" if kind.tz is None else "T"
    return HashedColumn(nfc_name(name), tag, to_microseconds(array))


def _decimal(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    kind = array.type
    return HashedColumn(nfc_name(name), "D", array if pa.types.is_decimal128(kind) else array.cast(pa.decimal128(38, kind.scale)))


def _bytes(name: str, array: pa.Array, _kind: FieldType | None) -> HashedColumn:
    return HashedColumn(nfc_name(name), "x", array)


def _list(name: str, array: pa.Array, kind: FieldType | None) -> HashedColumn:
    there = array.type
    if pa.types.is_map(there):  # a list of pairs
        pair = pa.struct([("key", there.key_type), ("value", there.item_type)])
        array = array.cast(pa.list_(pa.field("item", pair)))
    elif pa.types.is_fixed_size_list(there) or not (pa.types.is_list(there) or pa.types.is_large_list(there)):
        array = array.cast(pa.list_(there.value_type))
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    values = array.values.slice(first, last - first)
    member = kind.members[0][1] if kind is not None and kind.members else None
    inner = column_of("", values, member)
    encoded = hashing.elements(inner if inner is not None else HashedColumn(b"", "s", values.cast(pa.string())))
    starts = pa.array(np.asarray(array.offsets).astype(np.int64) - first)
    mask = array.is_null() if array.null_count else None
    framed = pa.LargeListArray.from_arrays(starts, pa.nulls(len(values)), mask=mask)
    return HashedColumn(nfc_name(name), "l", framed, encoded)


def _struct(name: str, array: pa.Array, kind: FieldType | None) -> HashedColumn:
    kinds = dict(kind.members) if kind is not None else {}
    names = [array.type.field(place).name for place in range(array.type.num_fields)]
    inner = [column_of(each, values, kinds.get(each)) for each, values in zip(names, array.flatten(), strict=True)]
    body = hashing.attributes(sorted_columns(inner), len(array))
    valid = pc.is_valid(array)
    return HashedColumn(nfc_name(name), "r", body if array.null_count == 0 else pc.if_else(valid, body, pa.scalar(None, body.type)))


def sorted_columns(columns: list[HashedColumn | None]) -> list[HashedColumn]:
    """Columns by the bytes of their names, as a digest wants them.

    Raises:
        ValueError: two names that are the same text.
    """
    there = sorted((each for each in columns if each is not None), key=lambda each: each.name)
    for one, other in pairwise(there):
        if one.name == other.name:
            raise ValueError(f"two columns are called {one.name.decode()!r}")
    return there


_Fits = Callable[[pa.DataType], bool]
_Make = Callable[[str, pa.Array, FieldType | None], HashedColumn]
_MAKERS: tuple[tuple[_Fits, _Make], ...] = (
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date, _date),
    (lambda kind: pa.types.is_time(kind) or pa.types.is_timestamp(kind), _clock),
    (pa.types.is_decimal, _decimal),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind), _bytes),
    (pa.types.is_struct, _struct),
    (lambda kind: pa.types.is_nested(kind) and not pa.types.is_union(kind), _list),
)
