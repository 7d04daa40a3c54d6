"""The NumPy path behind `kernel`, for machines without a C compiler: the same answers, slower.

Common geometries go through `flat` many rows at a time, the rest through `single` one by one.

Not here: the compiled path (`compiled`), the public functions and their documentation (`kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from merestone.columnar.arrays import binary, places
from merestone.columnar.fallback import blake2b16, fields
from merestone.columnar.hashed_values import HashedColumn
from merestone.geometry import apart, flat, flat_form, single
from merestone.geometry.kernel_values import (
    CANONICAL_UNREADABLE,
    NULL_KIND,
    RAW_GRID,
    UNREADABLE,
    UNREADABLE_KIND,
    WANTED,
    WRONG_TYPE,
    Grid,
    Scan,
    Shape,
    empty_scan,
)

NAME = "numpy"
_DECIMALS = 16
_RINGED = (single.POLYGON, single.MULTIPOLYGON, single.TRIANGLE)
_STRETCH = 1 << 20

Ints = npt.NDArray[np.int64]


# ---- values of a binary column ----


def _value(raw: npt.NDArray[np.uint8], start: Ints, end: Ints, row: int) -> bytes:
    return raw[start[row] : end[row]].tobytes()


def _node(value: bytes | None) -> single.Node | None:
    if value is None:
        return None
    try:
        return single.read(value)[0]
    except single.UnreadableError:
        return None


class _Rows:
    """Values of rows, given group by group and in any order, put into the order of the column."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rows: list[Ints] = []
        self.values: list[pa.Array] = []

    def add(self, rows: Ints, offsets: Ints, data: Any) -> None:
        self.rows.append(rows)
        self.values.append(binary(offsets, data))

    def add_each(self, rows: Sequence[int], values: list[bytes]) -> None:
        if values:
            self.rows.append(np.asarray(rows, np.int64))
            self.values.append(pa.array(values, pa.binary()))

    def array(self) -> pa.Array:
        """One array; null where no value was given."""
        if not self.values:
            return pa.nulls(self.n, pa.binary())
        where = np.full(self.n, -1)
        where[np.concatenate(self.rows)] = np.arange(sum(map(len, self.rows)))
        if any(pa.types.is_large_binary(each.type) for each in self.values) or sum(each.nbytes for each in self.values) >= 2**31:
            self.values = [each.cast(pa.large_binary()) for each in self.values]
        given = pa.concat_arrays(self.values)
        if len(given) == self.n and (where == np.arange(self.n)).all():
            return given
        return given.take(pa.array(where, mask=where < 0))


def _each_flat(
    wkb: pa.Array,
    common: Callable[[flat.Flat], None],
    other: Callable[[int, bytes], None],
) -> None:
    """Hand the rows of a column to `common` by the many, and what `flat` does not read to `other` one by one."""
    raw, start, end, rows = places(wkb)
    for first, last in _stretches(end):
        here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)]
        left = np.zeros(last - first, np.bool_)
        left[here - first] = True
        for group in flat.parse(raw, start, end, here):
            if len(group.row):
                left[group.row - first] = False
                common(group)
        for row in (np.flatnonzero(left) + first).tolist():
            other(row, _value(raw, start, end, row))


def _stretches(end: Ints) -> list[tuple[int, int]]:
    """Rows of about a mebibyte at a time: what is worked on then stays in the processor's cache."""
    if not len(end):
        return []
    edges = np.searchsorted(end, np.arange(0, int(end[-1]), _STRETCH), side="right").tolist()
    edges = sorted({0, *edges, len(end)})
    return list(pairwise(edges))


# ---- geometry ----


def scan(wkb: pa.Array) -> Scan:
    """See `kernel.scan`."""
    out = empty_scan(len(wkb))
    ends = places(wkb)[2]

    def common(group: flat.Flat) -> None:
        flat.look(group, out, ends)

    def other(row: int, value: bytes) -> None:
        try:
            node, trailing = single.read(value)
        except single.UnreadableError:
            out.kind[row], out.flags[row] = UNREADABLE_KIND, UNREADABLE
            return
        seen = single.look(node, trailing=trailing)
        out.kind[row], out.has_z[row], out.has_m[row] = node.type, node.z, node.m
        out.empty[row], out.parts[row], out.vertices[row], out.flags[row] = seen.vertices == 0, seen.parts, seen.vertices, seen.flags
        out.bounds[row] = seen.bounds

    out.kind[:] = NULL_KIND
    _each_flat(wkb, common, other)
    return out


def decimals(wkb: pa.Array, bounds: tuple[float, float, float, float] | None) -> npt.NDArray[np.int64]:
    """See `kernel.decimals`."""
    xy = _positions(wkb, closing=False)
    if bounds is not None:
        x, y = xy.T
        xy = xy[(x >= bounds[0]) & (y >= bounds[1]) & (x <= bounds[2]) & (y <= bounds[3])]
    counts = np.zeros((2, _DECIMALS + 1), np.int64)
    for axis in (0, 1):
        left = xy[:, axis][np.isfinite(xy[:, axis])]
        for d in range(_DECIMALS):
            with np.errstate(over="ignore", invalid="ignore"):
                exact = np.rint(left * 10.0**d) / 10.0**d == left
            counts[axis, d] = exact.sum()
            left = left[~exact]
        counts[axis, _DECIMALS] = len(left)
    return counts


def measures(wkb: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """See `kernel.measures`."""
    with np.errstate(all="ignore"):  # NaN and infinity are findings elsewhere; here they are not a measure
        shapes = built(wkb)
        return np.asarray(shapely.area(shapes)), np.asarray(shapely.length(shapes))


def valid(wkb: pa.Array) -> npt.NDArray[np.bool_]:
    """See `kernel.valid`."""
    with np.errstate(all="ignore"):
        return np.asarray(shapely.is_valid(built(wkb)))


def built(wkb: pa.Array) -> npt.NDArray[np.object_]:
    """See `kernel.shapes`."""
    values: Any = wkb.to_numpy(zero_copy_only=False)  # NumPy's own types do not let `where` choose None
    # Not silenced: a curve stops shapely for the whole column. The others are built, and a curve is None as the kernel promises.
    try:
        return np.asarray(shapely.from_wkb(values, on_invalid="ignore"))
    except NotImplementedError:
        flags = canonical(wkb, RAW_GRID, Shape())[1]
        return np.asarray(shapely.from_wkb(np.where(flags & (CANONICAL_UNREADABLE | WRONG_TYPE), None, values), on_invalid="ignore"))


def encode(wkb: pa.Array, grid: Grid, shape: Shape) -> pa.Array:
    """See `kernel.encode`."""
    out = _Rows(len(wkb))
    rows: list[int] = []
    values: list[bytes] = []

    def common(group: flat.Flat) -> None:
        form = flat_form.canonical(group, grid, shape)
        data, offsets = flat_form.encoded(form)
        out.add(form.row, offsets, data)

    def other(row: int, value: bytes) -> None:
        rows.append(row)
        values.append(single.encode(value, grid, shape))

    _each_flat(wkb, common, other)
    out.add_each(rows, values)
    return out.array()


def canonical(wkb: pa.Array, grid: Grid, shape: Shape) -> tuple[pa.Array, npt.NDArray[np.uint8]]:
    """See `kernel.canonical`."""
    out, flags = _Rows(len(wkb)), np.zeros(len(wkb), np.uint8)
    rows: list[int] = []
    values: list[bytes] = []

    def common(group: flat.Flat) -> None:
        form = flat_form.canonical(group, grid, shape)
        data, offsets, found = flat_form.stored(form, grid, WANTED[shape.type])
        flags[form.row] = found
        out.add(form.row, offsets, data)

    def other(row: int, value: bytes) -> None:
        stored, found = single.canonical(value, grid, shape)
        flags[row] = found
        rows.append(row)
        values.append(stored)

    _each_flat(wkb, common, other)
    out.add_each(rows, values)
    return out.array(), flags


def coordinates(wkb: pa.Array) -> npt.NDArray[np.float64]:
    """See `kernel.coordinates`."""
    return _positions(wkb, closing=True)


def _positions(wkb: pa.Array, *, closing: bool) -> npt.NDArray[np.float64]:
    """The vertices of all rows, with or without the last of each ring, which repeats its first; (n, 2)."""
    found: list[tuple[Ints, npt.NDArray[np.float64]]] = []  # row of each vertex, position

    def common(group: flat.Flat) -> None:
        of_run = group.part_row[group.run_part]
        rows, xy = np.repeat(group.row[of_run], group.run_size), flat.vertices(group)[:2].T
        if not closing:
            rings = np.isin(group.kind[of_run], _RINGED) & (group.run_size > 1)
            last = (np.cumsum(group.run_size) - 1)[rings]
            rows, xy = np.delete(rows, last), np.delete(xy, last, axis=0)
        found.append((rows, xy))

    def other(row: int, value: bytes) -> None:
        node = _node(value)
        xy = [
            vertex[:2]
            for leaf, _ in (node.leaves() if node else ())
            for run in leaf.runs
            for vertex in (run[:-1] if not closing and leaf.type in _RINGED and len(run) > 1 else run)
        ]
        found.append((np.full(len(xy), row), np.array(xy, np.float64).reshape(-1, 2)))

    _each_flat(wkb, common, other)
    if not found:
        return np.zeros((0, 2))
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    return np.concatenate([xy for _, xy in found])[order]


def with_coordinates(wkb: pa.Array, xy: npt.NDArray[np.float64]) -> pa.Array:
    """See `kernel.with_coordinates`."""
    values: list[bytes | None] = []
    at = 0
    positions = [tuple(each) for each in xy.tolist()]
    for value in wkb.to_pylist():
        node = _node(value)
        if node is not None:
            for leaf, _ in node.leaves():
                for place, run in enumerate(leaf.runs):
                    leaf.runs[place] = [positions[at + k] + vertex[2:] for k, vertex in enumerate(run)]
                    at += len(run)
        values.append(value if node is None else single.write(node))
    return pa.array(values, pa.binary())


def largest_move(before: pa.Array, after: pa.Array) -> npt.NDArray[np.float64]:
    """See `kernel.largest_move`."""
    out = np.full(len(before), np.nan)
    for row, pair in enumerate(zip(before.to_pylist(), after.to_pylist(), strict=True)):
        one, other = map(_node, pair)
        if one is not None and other is not None:
            out[row] = apart.size_of_change(*(apart.outline(each, keep_z=False, keep_m=False) for each in (one, other)))
    return out


def within(delivered: pa.Array, published: pa.Array, limits: tuple[float, float, float], shape: Shape) -> npt.NDArray[np.bool_]:
    """See `kernel.within`."""
    near = apart.Near((limits[0], limits[0], limits[1], limits[2]), shape.either_way)
    out = np.zeros(len(delivered), np.bool_)
    for row, pair in enumerate(zip(delivered.to_pylist(), published.to_pylist(), strict=True)):
        one, other = map(_node, pair)
        if one is not None and other is not None:
            a, b = (apart.outline(each, keep_z=shape.keep_z, keep_m=shape.keep_m) for each in (one, other))
            out[row] = apart.is_near(a, b, near)
        else:
            out[row] = pair == (None, None)
    return out


def hilbert(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    order: int,
) -> npt.NDArray[np.uint64]:
    """See `kernel.hilbert`."""
    nowhere = np.isnan(x) | np.isnan(y)
    cx, cy = _cells(x, bounds[0], bounds[2], order), _cells(y, bounds[1], bounds[3], order)
    index = np.zeros(len(x), np.uint64)
    for level in range(order - 1, -1, -1):
        side = np.uint64(1 << level)
        right, top = (cx & side) != 0, (cy & side) != 0
        index += side * side * ((np.uint64(3) * right.astype(np.uint64)) ^ top.astype(np.uint64))
        last = side - np.uint64(1)
        cx, cy = cx & last, cy & last
        flip = right & ~top
        cx, cy = np.where(flip, last - cx, cx), np.where(flip, last - cy, cy)
        cx, cy = np.where(top, cx, cy), np.where(top, cy, cx)
    return np.where(nowhere, np.uint64(2**64 - 1), index)


def _cells(values: npt.NDArray[np.float64], low: float, high: float, order: int) -> npt.NDArray[np.uint64]:
    cells = 2.0**order
    with np.errstate(invalid="ignore", over="ignore"):
        at = np.floor((values - low) / (high - low) * cells) if high > low else np.zeros(len(values))
    inside: npt.NDArray[np.float64] = np.clip(np.nan_to_num(at, nan=0.0, posinf=cells, neginf=0.0), 0, cells - 1)
    return inside.astype(np.uint64)


# ---- digest ----


def digest(columns: Sequence[HashedColumn], geometry: pa.Array | None, grid: Grid, shape: Shape, n: int) -> pa.Array:
    """See `kernel.digest`."""
    section = pa.scalar(b"\x00", pa.binary()) if geometry is None else _section(encode(geometry, grid, shape))
    payload = pc.binary_join_element_wise(section, *fields(columns, n), _NOTHING) if n else pa.array([], pa.binary())
    return blake2b16(payload)


_NOTHING = pa.scalar(b"", pa.binary())


def _section(encoded: pa.Array) -> pa.Array:
    """The geometry section: 00 for null, 01 and G, or the unreadable bytes, which bring their 02 along."""
    if len(encoded) == 0:
        return encoded.cast(pa.binary())
    readable = pc.not_equal(pc.binary_slice(encoded, 0, 1), pa.scalar(b"\x02", encoded.type))
    intro = pc.if_else(pc.fill_null(readable, True), b"\x01", b"").cast(pa.binary())
    found: pa.Array = pc.binary_join_element_wise(intro, encoded.cast(pa.binary()), _NOTHING)
    return pc.fill_null(found, b"\x00")
