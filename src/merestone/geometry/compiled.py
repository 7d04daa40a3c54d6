"""The compiled kernel behind `kernel`: Arrow buffers handed to C.

Not here: the C code (`_kernel.c`), the public functions and their documentation (`kernel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import merestone.geometry._kernel as _kernel  # noqa: PLR0402 - mypy finds the stub of a C module in this form only
from merestone.geometry import fallback
from merestone.geometry.form import WANTED, Column, Entry, Grid, Piece, Scan, Shape, empty_scan

NAME = "compiled"
if getattr(_kernel, "CALLS", 1) != 3:
    raise ImportError("the compiled kernel was built from other sources than these; build it again")

_SIGNED, _UNSIGNED, _FLOAT, _BOOLEAN, _FIXED, _VARIABLE, _LIST, _CODED = range(8)
_Owned = tuple[int, int, object]
_Given = tuple[int, int, bytes, Any, Any, Any, Any, int, int]


def _binary(array: Any, name: bytes = b"", tag: str = "x") -> _Given:
    """A binary, string or large variant as the kernel takes it."""
    validity, offsets, data = array.buffers()
    width = 8 if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type) else 4
    return (_VARIABLE, ord(tag), name, validity, offsets, data, None, array.offset, width)


def _column(column: Column) -> _Given:
    array, kind, tag = column.array, column.array.type, ord(column.tag)
    if column.elements is not None:
        validity, offsets = array.buffers()[:2]
        starts, data = _wide_offsets(column.elements)
        return (_LIST, tag, column.name, validity, offsets, data, starts, array.offset, 8 if pa.types.is_large_list(kind) else 4)
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return _binary(array, column.name, column.tag)
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


def _wide_offsets(array: Any) -> tuple[Any, Any]:
    """Offsets of a binary array as int64 from its first row on, and its data."""
    _, offsets, data = array.buffers()
    wide = pa.types.is_large_binary(array.type)
    starts = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return np.ascontiguousarray(starts, np.int64), data


def _joined(offsets: npt.NDArray[np.int64], data: _Owned, like: Any = None) -> Any:
    """A binary array over the kernel's output, with the nulls of `like`; large only where 2 GiB are not enough."""
    n, (address, size, owner) = len(offsets) - 1, data
    large = size >= 2**31
    mask = None if like is None or like.null_count == 0 else pa.compute.is_valid(like).buffers()[1]
    kind = pa.large_binary() if large else pa.binary()
    starts = offsets if large else offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, n, [mask, pa.py_buffer(starts), pa.foreign_buffer(address, size, owner)])


def _form(grid: Grid, shape: Shape) -> tuple[int, int, int, bool, bool, bool]:
    return (grid.precision, grid.z, grid.m, shape.keep_z, shape.keep_m, shape.either_way)


def scan(wkb: Any) -> Scan:
    """See `kernel.scan`."""
    out = empty_scan(len(wkb))
    _kernel.scan(_binary(wkb), len(wkb), out.kind, out.has_z, out.has_m, out.empty, out.parts, out.vertices, out.bounds, out.flags)
    return out


def decimals(wkb: Any, bounds: tuple[float, float, float, float] | None) -> npt.NDArray[np.int64]:
    """See `kernel.decimals`."""
    counts = np.zeros((2, 17), np.int64)
    _kernel.decimals(_binary(wkb), len(wkb), counts, bounds is not None, bounds or (0.0, 0.0, 0.0, 0.0))
    return counts


def measures(wkb: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """See `kernel.measures`."""
    area, length = np.empty(len(wkb)), np.empty(len(wkb))
    _kernel.measures(_binary(wkb), len(wkb), area, length)
    return area, length


def valid(wkb: Any) -> npt.NDArray[np.bool_]:
    """See `kernel.valid`. GEOS is asked for the few rows in which two segments come so close that they might meet."""
    doubtful = np.empty(len(wkb), np.bool_)
    _kernel.doubtful(_binary(wkb), len(wkb), doubtful)
    rows, out = np.flatnonzero(doubtful), ~doubtful
    if len(rows):
        out[rows] = fallback.valid(wkb.take(pa.array(rows)))
    return out


def encode(wkb: Any, grid: Grid, shape: Shape) -> Any:
    """See `kernel.encode`."""
    offsets = np.zeros(len(wkb) + 1, np.int64)
    return _joined(offsets, _kernel.encode(_binary(wkb), len(wkb), _form(grid, shape), offsets), wkb)


def canonical(wkb: Any, grid: Grid, shape: Shape) -> tuple[Any, npt.NDArray[np.uint8]]:
    """See `kernel.canonical`."""
    offsets, flags = np.zeros(len(wkb) + 1, np.int64), np.zeros(len(wkb), np.uint8)
    data = _kernel.canonical(_binary(wkb), len(wkb), _form(grid, shape), WANTED[shape.type], offsets, flags)
    return _joined(offsets, data, wkb), flags


def digest(columns: Sequence[Column], geometry: Any, grid: Grid, shape: Shape, n: int) -> Any:
    """See `kernel.digest`."""
    out = np.empty((n, 16), np.uint8)
    given = None if geometry is None else _binary(geometry)
    _kernel.digest(tuple(_column(each) for each in columns), given, n, _form(grid, shape), out)
    return pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(out)])


def attributes(columns: Sequence[Column], n: int) -> Any:
    """See `kernel.attributes`."""
    offsets = np.zeros(n + 1, np.int64)
    return _joined(offsets, _kernel.attributes(tuple(_column(each) for each in columns), n, offsets))


def elements(column: Column) -> Any:
    """See `kernel.elements`."""
    n = len(column.array)
    offsets = np.zeros(n + 1, np.int64)
    return _joined(offsets, _kernel.elements(_column(column), n, offsets))


def blake2b16(values: Any) -> Any:
    """See `kernel.blake2b16`."""
    out = hashed((values,), len(values), 16)
    mask = None if values.null_count == 0 else pa.compute.is_valid(values).buffers()[1]
    return pa.Array.from_buffers(pa.binary(16), len(values), [mask, pa.py_buffer(out)])


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """See `kernel.hashed`."""
    out = np.empty((n, size), np.uint8)
    _kernel.hashed(tuple(_piece(each) for each in pieces), n, out, size)
    return out


def joined(pieces: Sequence[Piece], n: int) -> Any:
    """See `kernel.joined`."""
    offsets = np.zeros(n + 1, np.int64)
    return _joined(offsets, _kernel.joined(tuple(_piece(each) for each in pieces), n, offsets))


def _piece(piece: Piece) -> _Given:
    if isinstance(piece, bytes):
        return (_FIXED, ord("c"), piece, None, None, None, None, 0, 0)
    name, tag, array = (piece.name, "e", piece.array) if isinstance(piece, Entry) else (b"", "p", piece)
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
    return _binary(array, name, tag)


def coordinates(wkb: Any) -> npt.NDArray[np.float64]:
    """See `kernel.coordinates`."""
    return np.frombuffer(_kernel.coordinates(_binary(wkb), len(wkb)), np.float64).reshape(-1, 2)


def with_coordinates(wkb: Any, xy: npt.NDArray[np.float64]) -> Any:
    """See `kernel.with_coordinates`."""
    offsets = np.zeros(len(wkb) + 1, np.int64)
    return _joined(offsets, _kernel.with_coordinates(_binary(wkb), len(wkb), np.ascontiguousarray(xy, np.float64), offsets), wkb)


def largest_move(before: Any, after: Any) -> npt.NDArray[np.float64]:
    """See `kernel.largest_move`."""
    out = np.empty(len(before))
    _kernel.largest_move(_binary(before), _binary(after), len(before), out)
    return out


def within(before: Any, after: Any, limits: tuple[float, float, float], shape: Shape) -> npt.NDArray[np.bool_]:
    """See `kernel.within`."""
    out = np.zeros(len(before), np.bool_)
    keep = shape.keep_z | shape.keep_m << 1
    _kernel.within(_binary(before), _binary(after), len(before), limits, keep, shape.either_way, out)
    return out


def hilbert(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    order: int,
) -> npt.NDArray[np.uint64]:
    """See `kernel.hilbert`."""
    out = np.empty(len(x), np.uint64)
    _kernel.hilbert(np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64), len(x), bounds, order, out)
    return out
