"""The NumPy path behind `hashing`, for machines without a C compiler: the same answers, slower.

Not here: the compiled path (`compiled`), the public functions and their documentation (`hashing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import binary, places
from merestone.columnar.hashed_values import HashedColumn, JoinedText, Piece

_EXACT = 2.0**53
_NOTHING = pa.scalar(b"", pa.binary())


def _hashed(values: pa.Array, size: int) -> pa.Array:
    raw, start, end, rows = places(values)
    view = memoryview(raw.data)
    digests = np.zeros((len(values), size), np.uint8)
    bounds = zip(start[rows].tolist(), end[rows].tolist(), strict=True)
    found = b"".join([hashlib.blake2b(view[low:high], digest_size=size).digest() for low, high in bounds])
    digests[rows] = np.frombuffer(found, np.uint8).reshape(-1, size)
    mask = None if values.null_count == 0 else pa.py_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    return pa.Array.from_buffers(pa.binary(size), len(values), [mask, pa.py_buffer(digests)])


def blake2b16(values: pa.Array) -> pa.Array:
    """See `hashing.blake2b16`."""
    return _hashed(values, 16)


def joined(pieces: Sequence[Piece], n: int) -> pa.Array:
    """See `hashing.joined`."""
    laid: list[pa.Scalar | pa.Array] = [pa.scalar(each, pa.binary()) if isinstance(each, bytes) else _written(each) for each in pieces]
    if not n:
        return pa.array([], pa.binary())
    constant = [each.as_py() for each in laid if isinstance(each, pa.Scalar)]
    if len(constant) == len(laid):
        return pa.repeat(pa.scalar(b"".join(constant), pa.binary()), n)
    found: pa.Array = pc.binary_join_element_wise(*laid, _NOTHING, null_handling="replace", null_replacement=b"")
    return found


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """See `hashing.hashed`."""
    found = _hashed(joined(pieces, n), size)
    return np.frombuffer(found.buffers()[1], np.uint8).reshape(n, size) if n else np.empty((0, size), np.uint8)


def _written(piece: JoinedText | pa.Array) -> pa.Array:
    """A piece that differs by row, as binary; null where it writes nothing."""
    array = piece.array if isinstance(piece, JoinedText) else piece
    if isinstance(array, pa.DictionaryArray):
        if len(array.dictionary) > len(array):
            return _written(JoinedText(piece.name, _dense(array)) if isinstance(piece, JoinedText) else _dense(array))
        values = _written(JoinedText(piece.name, array.dictionary) if isinstance(piece, JoinedText) else array.dictionary)
        return pc.cast(pa.DictionaryArray.from_arrays(array.indices, values), pa.binary())
    if not isinstance(piece, JoinedText):
        return pc.cast(array, pa.binary())
    text = pc.cast(_text(array), pa.binary())
    length = pc.cast(pc.cast(pc.binary_length(text), pa.string()), pa.binary())
    found: pa.Array = pc.binary_join_element_wise(piece.name + b":", length, b":", text, b",", _NOTHING)
    return found


def _dense(array: pa.Array) -> pa.Array:
    return pc.cast(array, array.dictionary.type)


def _text(array: pa.Array) -> pa.Array:
    """The values of an entry as text."""
    if not pa.types.is_fixed_size_binary(array.type):
        return array if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) else pc.cast(array, pa.string())
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    digits = np.frombuffer(data.tobytes().hex().encode(), np.uint8)
    offsets = np.arange(len(array) + 1, dtype=np.int32) * (2 * width)
    mask = None if array.null_count == 0 else array.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(array), [mask, pa.py_buffer(offsets), pa.py_buffer(digits)])


def attributes(columns: Sequence[HashedColumn], n: int) -> pa.Array:
    """See `hashing.attributes`."""
    return pc.binary_join_element_wise(*fields(columns, n), _NOTHING) if n else pa.array([], pa.binary())


def elements(column: HashedColumn) -> pa.Array:
    """See `hashing.elements`."""
    value = _valued(column, b"")
    return pc.fill_null(value, b"\x00")


def fields(columns: Sequence[HashedColumn], n: int) -> list[pa.Array]:
    """The attribute section in pieces to be joined row by row: the count, then each field, empty where it has no value."""
    fields = [_valued(each, len(each.name).to_bytes(4, "little") + each.name) for each in columns]
    count = np.zeros(n, np.uint32)
    for each in fields:
        count += np.asarray(each.is_valid()) if each.null_count else True
    return [_fixed(count.astype("<u4").view(np.uint8).reshape(n, 4)), *(pc.fill_null(each, b"") for each in fields)]


def _fixed(rows: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Rows of one width as a binary array."""
    n, width = len(rows), rows.shape[1]
    return binary(np.arange(n + 1, dtype=np.int64) * width, np.ascontiguousarray(rows), None if valid is None or valid.all() else ~valid)


def _valued(column: HashedColumn, intro: bytes) -> pa.Array:
    """`intro`, tag, length and value of each row as a binary array, null without a value."""
    array, kind, tag = column.array, column.array.type, column.tag.encode()
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if column.elements is not None:
        return _variable(_list_values(column, column.elements), intro + tag)
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return _variable(array.cast(pa.binary()), intro + tag)
    if pa.types.is_floating(kind):
        return _floats(np.asarray(array.fill_null(0)).astype(np.float64), valid, intro, tag)
    if pa.types.is_uint64(kind) and len(array) and (pc.max(array).as_py() or 0) >= 2**63:
        values = np.asarray(array.fill_null(0))
        large = values >= np.uint64(2**63)
        rows = np.zeros((len(array), 16), np.uint8)
        rows[:, :8] = values.astype("<u8").view(np.uint8).reshape(-1, 8)
        wide, narrow = _rows(intro + tag, rows), _rows(intro + tag, rows[:, :8])
        return _masked(pc.if_else(pa.array(large), _fixed(wide), _fixed(narrow)), valid)
    return _fixed(_rows(intro + tag, _plain(column)), valid)


def _plain(column: HashedColumn) -> npt.NDArray[np.uint8]:
    """The value bytes of a type of one width, (n, width)."""
    array, kind, n = column.array, column.array.type, len(column.array)
    if pa.types.is_boolean(kind):
        return np.asarray(array.fill_null(False)).astype(np.uint8).reshape(n, 1)
    if pa.types.is_date32(kind):
        return np.asarray(array.cast(pa.int32()).fill_null(0)).astype("<i4").view(np.uint8).reshape(n, 4)
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal128(kind):
        width = 16 if pa.types.is_decimal128(kind) else kind.byte_width
        raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)[array.offset * width : (array.offset + n) * width].reshape(n, width)
        if not pa.types.is_decimal128(kind):
            return raw
        return np.concatenate([np.full((n, 1), kind.scale & 0xFF, np.uint8), raw], axis=1)
    return np.asarray(array.fill_null(0)).astype("<i8").view(np.uint8).reshape(n, 8)


def _rows(intro: bytes, values: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Each value with intro and its length in front."""
    head = np.frombuffer(intro + values.shape[1].to_bytes(4, "little"), np.uint8)
    out = np.empty((len(values), len(head) + values.shape[1]), np.uint8)
    out[:, : len(head)] = head
    out[:, len(head) :] = values
    return out


def _floats(values: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_] | None, intro: bytes, tag: bytes) -> pa.Array:
    """Floats; whole ones below 2^53 are integers, and NaN is not a value."""
    whole = (np.abs(values) < _EXACT) & (values == np.rint(values))
    bits = np.where(whole, np.where(whole, values, 0).astype(np.int64), values.view(np.int64))
    rows = _rows(intro + tag, bits.astype("<i8").view(np.uint8).reshape(-1, 8))
    rows[whole, len(intro)] = ord("i")
    number = ~np.isnan(values)
    return _fixed(rows, number if valid is None else number & valid)


def _variable(values: pa.Array, intro: bytes) -> pa.Array:
    if len(values) == 0:
        return pa.array([], pa.binary())
    sizes = np.asarray(pc.binary_length(values).fill_null(0)).astype("<u4").view(np.uint8).reshape(-1, 4)
    head = np.empty((len(values), len(intro) + 4), np.uint8)
    head[:, : len(intro)] = np.frombuffer(intro, np.uint8)
    head[:, len(intro) :] = sizes
    found: pa.Array = pc.binary_join_element_wise(_fixed(head), values, _NOTHING)
    return found


def _list_values(column: HashedColumn, elements: pa.Array) -> pa.Array:
    """The count of each list and its elements, which stand encoded one after the other."""
    starts = np.asarray(column.array.offsets).astype(np.int64)
    raw, begin, end, _ = places(elements)
    edges = np.append(begin, end[-1] if len(end) else 0)[starts] if len(column.array) else starts
    whole = binary(edges - edges[0], raw[edges[0] : edges[-1]].copy()) if len(column.array) else pa.array([], pa.binary())
    counts = _fixed(np.diff(starts).astype("<u4").view(np.uint8).reshape(-1, 4))
    joined = pc.binary_join_element_wise(counts, whole.cast(pa.binary()), _NOTHING) if len(column.array) else whole
    return _masked(joined, np.asarray(column.array.is_valid()) if column.array.null_count else None)


def _masked(values: pa.Array, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    return values if valid is None else pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))
