"""The compiled path behind `hashing`: Arrow buffers handed to C. `geometry.compiled` hands over its columns in the same form.

Not here: the C code (`_hashing.c`, `_columns.h`), the public functions and their documentation (`hashing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import merestone.columnar._hashing as _hashing  # noqa: PLR0402 - mypy finds the stub of a C module in this form only
from merestone.columnar.hashed_values import HashedColumn, JoinedText, Piece

NAME = "compiled"
if getattr(_hashing, "CALLS", 0) != 2:
    raise ImportError("the extension for hashing was built from other sources than these; build it again")

_SIGNED, _UNSIGNED, _FLOAT, _BOOLEAN, _FIXED, _VARIABLE, _LIST, _CODED = range(8)
Owned = tuple[int, int, object]
Given = tuple[int, int, bytes, Any, Any, Any, Any, int, int]


def given_binary(array: pa.Array, name: bytes = b"", tag: str = "x") -> Given:
    """A binary, string or large variant as the kernel takes it."""
    validity, offsets, data = array.buffers()
    width = 8 if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type) else 4
    return (_VARIABLE, ord(tag), name, validity, offsets, data, None, array.offset, width)


def given_column(column: HashedColumn) -> Given:
    """An attribute as the extensions take it."""
    array, kind, tag = column.array, column.array.type, ord(column.tag)
    if column.elements is not None:
        validity, offsets = array.buffers()[:2]
        starts, data = _wide_offsets(column.elements)
        return (_LIST, tag, column.name, validity, offsets, data, starts, array.offset, 8 if pa.types.is_large_list(kind) else 4)
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return given_binary(array, column.name, column.tag)
    validity, data = array.buffers()
    if pa.types.is_boolean(kind):
        return (_BOOLEAN, tag, column.name, validity, None, data, None, array.offset, 1)
    if pa.types.is_decimal128(kind):
        return (_FIXED, tag, column.name, validity, None, data, bytes([kind.scale & 0xFF]), array.offset, 16)
    if pa.types.is_fixed_size_binary(kind):
        return (_FIXED, tag, column.name, validity, None, data, None, array.offset, kind.byte_width)
    if pa.types.is_floating(kind):
        return (_FLOAT, tag, column.name, validity, None, data, None, array.offset, kind.bit_width // 8)
    if tag == ord("d"):  # days stay four bytes wide
        return (_FIXED, tag, column.name, validity, None, data, None, array.offset, 4)
    signed = _UNSIGNED if pa.types.is_unsigned_integer(kind) else _SIGNED
    return (signed, tag, column.name, validity, None, data, None, array.offset, kind.bit_width // 8)


def _wide_offsets(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Buffer]:
    """Offsets of a binary array as int64 from its first row on, and its data."""
    _, offsets, data = array.buffers()
    wide = pa.types.is_large_binary(array.type)
    starts = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return np.ascontiguousarray(starts, np.int64), data


def owned(offsets: npt.NDArray[np.int64], data: Owned, like: pa.Array | None = None) -> pa.Array:
    """A binary array over the kernel's output, with the nulls of `like`; large only where 2 GiB are not enough."""
    n, (address, size, owner) = len(offsets) - 1, data
    large = size >= 2**31
    mask = None if like is None or like.null_count == 0 else pa.compute.is_valid(like).buffers()[1]
    kind = pa.large_binary() if large else pa.binary()
    starts = offsets if large else offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, n, [mask, pa.py_buffer(starts), pa.foreign_buffer(address, size, owner)])


def attributes(columns: Sequence[HashedColumn], n: int) -> pa.Array:
    """See `hashing.attributes`."""
    offsets = np.zeros(n + 1, np.int64)
    return owned(offsets, _hashing.attributes(tuple(given_column(each) for each in columns), n, offsets))


def elements(column: HashedColumn) -> pa.Array:
    """See `hashing.elements`."""
    n = len(column.array)
    offsets = np.zeros(n + 1, np.int64)
    return owned(offsets, _hashing.elements(given_column(column), n, offsets))


def blake2b16(values: pa.Array) -> pa.Array:
    """See `hashing.blake2b16`."""
    out = hashed((values,), len(values), 16)
    mask = None if values.null_count == 0 else pa.compute.is_valid(values).buffers()[1]
    return pa.Array.from_buffers(pa.binary(16), len(values), [mask, pa.py_buffer(out)])


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """See `hashing.hashed`."""
    out = np.empty((n, size), np.uint8)
    _hashing.hashed(tuple(_piece(each) for each in pieces), n, out, size)
    return out


def joined(pieces: Sequence[Piece], n: int) -> pa.Array:
    """See `hashing.joined`."""
    offsets = np.zeros(n + 1, np.int64)
    return owned(offsets, _hashing.joined(tuple(_piece(each) for each in pieces), n, offsets))


def _piece(piece: Piece) -> Given:
    if isinstance(piece, bytes):
        return (_FIXED, ord("c"), piece, None, None, None, None, 0, 0)
    name, tag, array = (piece.name, "e", piece.array) if isinstance(piece, JoinedText) else (b"", "p", piece)
    kind = array.type
    if pa.types.is_dictionary(kind):
        validity, codes = array.buffers()
        _, offsets, data = array.dictionary.buffers()
        return (_CODED, ord(tag), name, validity, offsets, data, codes, array.offset, 4)
    if pa.types.is_fixed_size_binary(kind):
        validity, data = array.buffers()
        return (_FIXED, ord(tag), name, validity, None, data, None, array.offset, kind.byte_width)
    if pa.types.is_integer(kind):
        validity, data = array.buffers()
        return (_SIGNED, ord(tag), name, validity, None, data, None, array.offset, kind.bit_width // 8)
    return given_binary(array, name, tag)
