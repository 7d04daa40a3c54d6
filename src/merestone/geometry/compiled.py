"""The compiled kernel behind `kernel`: columns of WKB handed to C.

Not here: the C code (`_kernel.c`), the public functions and their documentation (`kernel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import merestone.geometry._kernel as _kernel  # noqa: PLR0402 - mypy finds the stub of a C module in this form only
from merestone.columnar.compiled import given_binary, given_column, owned
from merestone.columnar.hashed_values import HashedColumn
from merestone.geometry.kernel_values import WANTED, Grid, Scan, Shape, empty_scan
from merestone.later import later

if TYPE_CHECKING:
    from merestone.geometry import fallback
else:
    fallback = later("merestone.geometry.fallback")

NAME = "compiled"
if getattr(_kernel, "CALLS", 1) != 5:
    raise ImportError("the compiled kernel was built from other sources than these; build it again")


def _form(grid: Grid, shape: Shape) -> tuple[int, int, int, bool, bool, bool]:
    return (grid.precision, grid.z, grid.m, shape.keep_z, shape.keep_m, shape.either_way)


def scan(wkb: pa.Array) -> Scan:
    """See `kernel.scan`."""
    out = empty_scan(len(wkb))
    _kernel.scan(given_binary(wkb), len(wkb), out.kind, out.has_z, out.has_m, out.empty, out.parts, out.vertices, out.bounds, out.flags)
    return out


def decimals(wkb: pa.Array, bounds: tuple[float, float, float, float] | None) -> npt.NDArray[np.int64]:
    """See `kernel.decimals`."""
    counts = np.zeros((2, 17), np.int64)
    _kernel.decimals(given_binary(wkb), len(wkb), counts, bounds is not None, bounds or (0.0, 0.0, 0.0, 0.0))
    return counts


def measures(wkb: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """See `kernel.measures`."""
    area, length = np.empty(len(wkb)), np.empty(len(wkb))
    _kernel.measures(given_binary(wkb), len(wkb), area, length)
    return area, length


def valid(wkb: pa.Array) -> npt.NDArray[np.bool_]:
    """See `kernel.valid`. GEOS is asked for the few rows in which two segments come so close that they might meet."""
    doubtful = np.empty(len(wkb), np.bool_)
    _kernel.doubtful(given_binary(wkb), len(wkb), doubtful)
    rows, out = np.flatnonzero(doubtful), ~doubtful
    if len(rows):
        out[rows] = fallback.valid(wkb.take(pa.array(rows)))
    return out


def encode(wkb: pa.Array, grid: Grid, shape: Shape) -> pa.Array:
    """See `kernel.encode`."""
    offsets = np.zeros(len(wkb) + 1, np.int64)
    return owned(offsets, _kernel.encode(given_binary(wkb), len(wkb), _form(grid, shape), offsets), wkb)


def canonical(wkb: pa.Array, grid: Grid, shape: Shape) -> tuple[pa.Array, npt.NDArray[np.uint8]]:
    """See `kernel.canonical`."""
    offsets, flags = np.zeros(len(wkb) + 1, np.int64), np.zeros(len(wkb), np.uint8)
    data = _kernel.canonical(given_binary(wkb), len(wkb), _form(grid, shape), WANTED[shape.type], offsets, flags)
    return owned(offsets, data, wkb), flags


def digest(columns: Sequence[HashedColumn], geometry: pa.Array | None, grid: Grid, shape: Shape, n: int) -> pa.Array:
    """See `kernel.digest`."""
    out = np.empty((n, 16), np.uint8)
    given = None if geometry is None else given_binary(geometry)
    _kernel.digest(tuple(given_column(each) for each in columns), given, n, _form(grid, shape), out)
    return pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(out)])


def coordinates(wkb: pa.Array) -> npt.NDArray[np.float64]:
    """See `kernel.coordinates`."""
    return np.frombuffer(_kernel.coordinates(given_binary(wkb), len(wkb)), np.float64).reshape(-1, 2)


def with_coordinates(wkb: pa.Array, xy: npt.NDArray[np.float64]) -> pa.Array:
    """See `kernel.with_coordinates`."""
    offsets = np.zeros(len(wkb) + 1, np.int64)
    return owned(offsets, _kernel.with_coordinates(given_binary(wkb), len(wkb), np.ascontiguousarray(xy, np.float64), offsets), wkb)


def largest_move(before: pa.Array, after: pa.Array) -> npt.NDArray[np.float64]:
    """See `kernel.largest_move`."""
    out = np.empty(len(before))
    _kernel.largest_move(given_binary(before), given_binary(after), len(before), out)
    return out


def within(before: pa.Array, after: pa.Array, limits: tuple[float, float, float], shape: Shape) -> npt.NDArray[np.bool_]:
    """See `kernel.within`."""
    out = np.zeros(len(before), np.bool_)
    keep = shape.keep_z | shape.keep_m << 1
    _kernel.within(given_binary(before), given_binary(after), len(before), limits, keep, shape.either_way, out)
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
