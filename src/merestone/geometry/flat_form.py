"""The canonical form of flat arrays, rounded and ordered with NumPy for many rows at once, and its bytes: G and the stored WKB.

Not here: reading WKB into flat arrays (`flat`), rows that `flat` does not read (`single`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from merestone.columnar.rounding import NO_MEASURE, from_grid, on_grid, to_grid
from merestone.geometry import kernel_values, single
from merestone.geometry.flat import Bytes, Flat, Floats, Ints, Mask, anywhere, first_of, vertices

_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Canonical:
    """Rows in their canonical form: integer vertices (width, n) run by run in canonical order, and what has to be written around them.

    parts: (rows,) without empty ones; part_rings: (parts,) rings of a polygon; run_size: (runs,); flags: (rows,) of `kernel.canonical`.
    """

    row: Ints
    kind: Ints  # single types: POINT, LINE, POLYGON
    bits: int
    parts: Ints
    part_rings: Ints
    run_size: Ints
    q: Ints
    flags: npt.NDArray[np.uint8]


def canonical(flat: Flat, grid: kernel_values.Grid, shape: kernel_values.Shape) -> Canonical:
    """Round, drop repeats, turn, rotate and sort."""
    z, m = flat.z and shape.keep_z, flat.m and shape.keep_m
    kind = np.where(flat.kind > single.POLYGON, flat.kind - 3, flat.kind)
    flags = np.full(
        len(flat.row), (kernel_values.DROPPED_Z if flat.z and not z else 0) | (kernel_values.DROPPED_M if flat.m and not m else 0), np.uint8
    )
    q, bad = _rounded(vertices(flat), flat, grid, z, m)
    run_row = flat.part_row[flat.run_part]
    if bad is not None:
        _flag(flags, run_row[np.repeat(np.arange(len(run_row)), flat.run_size)[bad]], kernel_values.BAD_ORDINATE)
    run_kind = kind[run_row]
    size, q = _without_repeats(q, flat.run_size, run_kind)
    # Rings of no vertices go, but for the exterior of a polygon that has holes.
    there = size > 0
    part_has = np.zeros(len(flat.part_row), np.bool_)
    part_has[flat.run_part[there]] = True
    kept = there | ((run_kind == single.POLYGON) & flat.exterior & part_has[flat.run_part])
    _flag(flags, run_row[kept & ~there], kernel_values.COLLAPSED)
    q, collapsed = _turned(_Runs(q, size[there], run_kind[there]), flat.exterior[there], shape, 2 + z, whole=bad is None)
    _flag(flags, run_row[there][collapsed], kernel_values.COLLAPSED)
    new_part = np.cumsum(part_has) - 1
    ordered = Canonical(
        row=flat.row,
        kind=kind,
        bits=z | m << 1,
        flags=flags,
        parts=np.bincount(flat.part_row[part_has], minlength=len(flat.row)),
        part_rings=np.bincount(new_part[flat.run_part[kept]], minlength=int(part_has.sum())),
        run_size=size[kept],
        q=q,
    )
    return _sorted(ordered)


def _flag(flags: npt.NDArray[np.uint8], rows: Ints, bit: int) -> None:
    flags[rows] |= np.uint8(bit)


def _rounded(floats: Floats, flat: Flat, grid: kernel_values.Grid, z: bool, m: bool) -> tuple[Ints, Mask | None]:
    """Integer vertices of the dimensions that are kept, and which of them hold an ordinate that no grid can (None: none does)."""
    q = np.empty((2 + z + m, floats.shape[1]), np.int64)
    whole = to_grid(floats[0], grid.precision, q[0]) & to_grid(floats[1], grid.precision, q[1])
    if z:
        whole &= to_grid(floats[2], grid.z, q[2])
    if m:
        to_grid(floats[2 + flat.z], grid.m, q[2 + z])
        unmeasured = np.isnan(floats[2 + flat.z])
        q[2 + z][unmeasured] = NO_MEASURE
        whole &= bool(on_grid(q[2 + z])[~unmeasured].all())
    if whole:
        return q, None
    bad: Mask = np.logical_not(np.asarray(on_grid(q[: 2 + z]).all(axis=0)))
    if m:
        bad |= ~on_grid(q[2 + z]) & ~unmeasured
    return q, bad


def _without_repeats(q: Ints, size: Ints, kind: Ints) -> tuple[Ints, Ints]:
    """Sizes and vertices without consecutive repeats in lines and rings, and without the closing vertices of rings."""
    repeats = np.zeros(q.shape[1], np.bool_)
    repeats[1:] = (q[:, 1:] == q[:, :-1]).all(axis=0)
    if repeats.any():
        run = np.repeat(np.arange(len(size)), size)
        repeats[1:] &= (run[1:] == run[:-1]) & (kind[run[1:]] != single.POINT)
        q = q[:, ~repeats]
        size = np.bincount(run[~repeats], minlength=len(size))
    first = first_of(size)
    long = np.flatnonzero((kind == single.POLYGON) & (size > 1))
    last = first[long] + size[long] - 1
    closed = (q[:, first[long]] == q[:, last]).all(axis=0)
    keep = np.ones(q.shape[1], np.bool_)
    keep[last[closed]] = False
    size = size.copy()
    size[long[closed]] -= 1
    return size, q[:, keep]


class _Runs:
    """Runs of vertices, none empty, and where each begins; `run` is the run of each vertex."""

    def __init__(self, q: Ints, size: Ints, kind: Ints) -> None:
        self.q, self.size, self.kind = q, size, kind
        self.first = first_of(size)
        self.run = np.repeat(np.arange(len(size)), size)

    def some(self, chosen: Mask) -> _Runs:
        """Only these runs."""
        return _Runs(self.q[:, chosen[self.run]], self.size[chosen], self.kind[chosen])


def _turned(runs: _Runs, exterior: Mask, shape: kernel_values.Shape, positions_in: int, *, whole: bool) -> tuple[Ints, Mask]:
    """Vertices with each ring in its direction and from its start, and lines in theirs; and which runs have collapsed."""
    q, size, first, run = runs.q, runs.size, runs.first, runs.run
    if not len(size):
        return q, np.zeros(0, np.bool_)
    ring = runs.kind == single.POLYGON
    start, backwards, odd = np.zeros(len(size), np.int64), np.zeros(len(size), np.bool_), np.zeros(len(size), np.bool_)
    doubtful = runs.kind == single.LINE  # runs that may have too few positions: with an area there are three at least
    if ring.any():
        sign, large = _signs(runs, whole=whole)
        doubtful |= ring & (sign == 0)
        backwards = ring & ((sign > 0) != exterior)
        start, tied = _starts(runs)
        odd = ring & (tied | large | (sign == 0))  # rings for `single`
        start[~ring] = 0
    if shape.either_way:
        backwards |= (runs.kind == single.LINE) & _backwards_is_less(runs)
    collapsed = doubtful.copy()
    collapsed[doubtful] = _collapsed(runs.some(doubtful), positions_in) if doubtful.any() else False
    # A line read backwards starts at its end; a ring's rotation wraps around.
    start = np.where(backwards & ~ring, size - 1, start)
    inner = np.arange(q.shape[1]) - first[run]
    inner = start[run] + np.where(backwards[run], -inner, inner) if backwards.any() else inner + start[run]
    length = size[run]
    inner += np.where(inner < 0, length, 0) - np.where(inner >= length, length, 0)
    out = q[:, first[run] + inner]
    for each in np.flatnonzero(odd):
        here = slice(first[each], first[each] + size[each])
        rows = list(zip(*q[:, here].tolist(), strict=True))
        out[:, here] = np.array(single.turned(rows, hole=not exterior[each]), np.int64).T
    return out, collapsed


def _collapsed(runs: _Runs, positions_in: int) -> Mask:
    """Which lines and rings have too few different positions."""
    position, first, run = runs.q[:positions_in], runs.first, runs.run
    n = position.shape[1]
    other = (position != position[:, first[run]]).any(axis=0)
    second = np.minimum.reduceat(np.where(other, np.arange(n), n), first)
    has_second = second < n
    third = other & (position != position[:, np.where(has_second, second, 0)[run]]).any(axis=0)
    has_third = np.logical_or.reduceat(third, first)
    few: Mask = np.where(runs.kind == single.POLYGON, ~has_third, ~has_second)
    return few


def _signs(runs: _Runs, *, whole: bool) -> tuple[Ints, Mask]:
    """The sign of each run's exact area where int64 can hold it or doubles leave no doubt, and which need larger numbers; 0 off the grid."""
    first, run = runs.first, runs.run
    x, y = runs.q[:2]
    held = np.ones(len(first), np.bool_) if whole else np.logical_and.reduceat(on_grid(x) & on_grid(y), first)
    x, y = x - x[first[run]], y - y[first[run]]
    largest = np.maximum.reduceat(np.maximum(np.abs(x), np.abs(y)), first).astype(np.float64)
    small = held & (2.0 * runs.size * largest * largest < 2.0**62)
    if not small.all():
        x, y = np.where(small[run], x, 0), np.where(small[run], y, 0)
    next_x, next_y = np.empty_like(x), np.empty_like(y)
    next_x[:-1], next_y[:-1] = x[1:], y[1:]
    last = first + runs.size - 1
    next_x[last], next_y[last] = x[first], y[first]
    sign = np.sign(np.add.reduceat(x * next_y - next_x * y, first))
    large = held & ~small
    if large.any():
        sign[large] = _clear_signs(runs.some(large))
    return sign, large & (sign == 0)


def _clear_signs(runs: _Runs) -> Ints:
    """The sign of each run's area where doubles tell it in spite of their rounding; 0 where they do not."""
    following = np.arange(len(runs.run)) + 1
    following[runs.first + runs.size - 1] = runs.first
    x, y = ((each - each[runs.first[runs.run]]).astype(np.float64) for each in runs.q[:2])
    one, other = x * y[following], x[following] * y
    twice = np.add.reduceat(one - other, runs.first)
    # A product is off by 3 roundings (2^-53 each) of itself, the difference by one more, the sum by one for each term; this is twice that.
    doubt = (runs.size + 8) * 2.0**-52 * np.add.reduceat(np.abs(one) + np.abs(other), runs.first)
    return np.where(np.abs(twice) > doubt, np.sign(twice), 0).astype(np.int64)


def _starts(runs: _Runs) -> tuple[Ints, Mask]:
    """Where each run has its least vertex, and which runs have it more than once."""
    first, run = runs.first, runs.run
    candidate = np.ones(len(run), np.bool_)
    for column in runs.q:
        # No ordinate has the largest integer's bits, so what was out stays out.
        value = np.where(candidate, column, _LARGEST)
        candidate &= value == np.minimum.reduceat(value, first)[run]
        places = np.flatnonzero(candidate)
        if len(places) == len(first):
            return places - first, np.zeros(len(first), np.bool_)
    owner = run[places]
    start = np.empty(len(first), np.int64)
    start[owner[::-1]] = places[::-1]  # the first of each run is written last
    return start - first, np.bincount(owner, minlength=len(first)) > 1


def _backwards_is_less(runs: _Runs) -> Mask:
    """Whether each run read from its end is less than read from its start."""
    q, first, run = runs.q, runs.first, runs.run
    n = q.shape[1]
    other = q[:, first[run] + runs.size[run] - 1 - (np.arange(n) - first[run])]
    where = np.minimum.reduceat(np.where((q != other).any(axis=0), np.arange(n), n), first)
    at = np.where(where < n, where, 0)
    column = (q[:, at] != other[:, at]).argmax(axis=0)
    less: Mask = other[column, at] < q[column, at]
    less &= where < n
    return less


def _sorted(canonical: Canonical) -> Canonical:
    """Holes and parts in the order of their bytes: by how many vertices they have and the first of these, which leaves a few rows to `_by_bytes`."""
    part_row = np.repeat(np.arange(len(canonical.parts)), canonical.parts)
    several = canonical.parts > 1
    several[part_row[canonical.part_rings > 2]] = True
    if not several.any():
        return canonical
    part_kind = canonical.kind[part_row]
    run_first, part_first = first_of(canonical.run_size), first_of(canonical.part_rings)
    run_part = np.repeat(np.arange(len(canonical.part_rings)), canonical.part_rings)
    hole = np.arange(len(run_part)) != part_first[run_part]
    filled = canonical.run_size > 0
    vertex = np.zeros(
        (len(canonical.q), len(filled)), np.int64
    )  # an empty run has none: it is like any other, until all bytes are compared
    vertex[:, filled] = canonical.q[:, run_first[filled]]
    heads = [_as_bytes(canonical.run_size, 4), *(_as_bytes(column, 8) for column in vertex)]
    rings, unsure_rings = _ordered([run_part, hole, *heads])
    bodies = [_as_bytes(np.where(part_kind == single.POLYGON, canonical.part_rings, 0), 4), *(each[part_first] for each in heads)]
    parts, unsure_parts = _ordered([part_row, *bodies])
    count = canonical.part_rings[parts]
    runs = rings[np.repeat(part_first[parts] - first_of(count), count) + np.arange(len(run_part))]
    # The vertex of a point decides; lines and rings that begin alike go on.
    doubtful = np.unique(
        np.concatenate([part_row[run_part[unsure_rings]], part_row[unsure_parts[part_kind[unsure_parts] != single.POINT]]])
    )
    _by_bytes(canonical, doubtful, part_kind, runs, parts)
    size = canonical.run_size[runs]
    place = np.repeat(run_first[runs] - first_of(size), size) + np.arange(canonical.q.shape[1])
    return replace(canonical, part_rings=canonical.part_rings[parts], run_size=size, q=canonical.q[:, place])


def _as_bytes(values: Ints, width: int) -> npt.NDArray[np.uint64]:
    """Numbers that are ordered as the little-endian bytes of `values` are."""
    return values.astype(f"<i{width}").view(f">u{width}").astype(np.uint64)


def _ordered(columns: Sequence[npt.NDArray[Any]]) -> tuple[Ints, Ints]:
    """Places in the order of the columns, the first before the second, and those that are alike in all columns as the one before."""
    order = np.lexsort(columns[::-1])
    alike = np.logical_and.reduce([each[order[1:]] == each[order[:-1]] for each in columns])
    return order, order[1:][alike]


def _by_bytes(canonical: Canonical, rows: Ints, part_kind: Ints, runs: Ints, parts: Ints) -> None:
    """Put the runs and parts of some rows in the order of all their bytes, one row after the other."""
    run_first, part_first, row_first = first_of(canonical.run_size), first_of(canonical.part_rings), first_of(canonical.parts)
    for row in rows:
        bodies = []
        for part in range(row_first[row], row_first[row] + canonical.parts[row]):
            order = list(range(part_first[part], part_first[part] + canonical.part_rings[part]))
            packed = [_packed(canonical, run_first[run], canonical.run_size[run], counted=part_kind[part] != single.POINT) for run in order]
            holes = sorted(range(1, len(order)), key=packed.__getitem__)
            picked = [0, *holes]
            rings = len(order).to_bytes(4, "little") if part_kind[part] == single.POLYGON else b""
            bodies.append((rings + b"".join(packed[place] for place in picked), part, [order[place] for place in picked]))
        there = slice(row_first[row], row_first[row] + canonical.parts[row])
        run_there = slice(part_first[bodies[0][1]], part_first[bodies[-1][1]] + canonical.part_rings[bodies[-1][1]])
        bodies.sort(key=lambda body: body[0])
        parts[there] = [body[1] for body in bodies]
        runs[run_there] = [run for body in bodies for run in body[2]]


def _packed(canonical: Canonical, first: int, size: int, *, counted: bool) -> bytes:
    body = canonical.q[:, first : first + size].T.tobytes()
    return int(size).to_bytes(4, "little") + body if counted else body


# ---- bytes ----


class _Page:
    """Bytes to be filled at any place."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(size + 32, np.uint8)
        self.size = size

    def put(self, at: Ints, values: npt.NDArray[np.int64] | int, width: int) -> None:
        """Little-endian integers of 1 or 4 bytes."""
        for shift in range(width):
            self.data[at + shift] = np.asarray(values) >> (8 * shift) & 0xFF

    def put_rows(self, at: Ints, columns: npt.NDArray[np.int64] | Floats) -> None:
        """A row of 8-byte words at each place, from columns (width, n)."""
        item = f"V{8 * len(columns)}"
        anywhere(self.data, item)[at] = np.ascontiguousarray(columns.T).view(item).ravel()


def encoded(canonical: Canonical) -> tuple[Bytes, Ints]:
    """The bytes G of all rows, and where each begins and ends: offsets (rows + 1,)."""
    part_kind = np.repeat(canonical.kind, canonical.parts)
    run_part = np.repeat(np.arange(len(canonical.part_rings)), canonical.part_rings)
    run_head = np.where(part_kind[run_part] == single.POINT, 0, 4)
    part_head = np.where(part_kind == single.POLYGON, 4, 0)
    layout = _Layout(canonical, head=6, part_head=part_head, run_head=run_head, run_out=canonical.run_size)
    page = layout.page
    page.put(layout.row_at, canonical.kind + 3, 1)
    page.put(layout.row_at + 1, canonical.bits, 1)
    page.put(layout.row_at + 2, canonical.parts, 4)
    page.put(layout.part_at[part_head > 0], canonical.part_rings[part_head > 0], 4)
    page.put(layout.run_at[run_head > 0], canonical.run_size[run_head > 0], 4)
    page.put_rows(layout.vertex_at(canonical), canonical.q)
    return page.data[: page.size], layout.offsets


def stored(canonical: Canonical, grid: kernel_values.Grid, want: int) -> tuple[Bytes, Ints, npt.NDArray[np.uint8]]:
    """The stored WKB of all rows, offsets (rows + 1,), and flags with WRONG_TYPE added."""
    kind, parts = canonical.kind, canonical.parts
    right = np.ones(len(kind), np.bool_)
    if want not in (kernel_values.WANTED["any"], kernel_values.WANTED["multi"]):
        right = kind + 3 == want if want >= single.MULTIPOINT else (kind == want) & (parts <= 1)
    flags = np.where(right, canonical.flags, canonical.flags | kernel_values.WRONG_TYPE).astype(np.uint8)
    multi = (parts > 1) | (right & ((want == kernel_values.WANTED["multi"]) | (kind + 3 == want)))
    part_row = np.repeat(np.arange(len(parts)), parts)
    part_kind = kind[part_row]
    run_part = np.repeat(np.arange(len(canonical.part_rings)), canonical.part_rings)
    run_kind = part_kind[run_part]
    size = canonical.run_size
    ring = run_kind == single.POLYGON
    run_out = np.where(size == 0, 0, np.where(ring, np.maximum(size + 1, 4), np.where(run_kind == single.LINE, np.maximum(size, 2), size)))
    run_head = np.where(run_kind == single.POINT, 0, 4)
    member = np.where(multi[part_row], 5, 0)
    part_head = member + np.where(part_kind == single.POLYGON, 4, 0)
    width = len(canonical.q)
    empty = parts == 0
    body = np.where(empty & ~multi, np.where(kind == single.POINT, 8 * width, 4), 0)
    layout = _Layout(canonical, head=5 + np.where(multi, 4, 0) + body, part_head=part_head, run_head=run_head, run_out=run_out)
    page = layout.page
    code = 1000 * canonical.bits
    page.put(layout.row_at, 1, 1)
    page.put(layout.row_at + 1, np.where(multi, kind + 3, kind) + code, 4)
    page.put(layout.row_at[multi] + 5, parts[multi], 4)
    nowhere = layout.row_at[empty & ~multi & (kind == single.POINT)] + 5
    page.put_rows(nowhere, np.full((width, len(nowhere)), np.nan))
    has = member > 0
    page.put(layout.part_at[has], 1, 1)
    page.put(layout.part_at[has] + 1, part_kind[has] + code, 4)
    polygon = part_kind == single.POLYGON
    page.put(layout.part_at[polygon] + member[polygon], canonical.part_rings[polygon], 4)
    page.put(layout.run_at[run_head > 0], run_out[run_head > 0], 4)
    precisions = [grid.precision] * 2 + ([grid.z] if canonical.bits & 1 else []) + ([grid.m] if canonical.bits & 2 else [])
    floats = np.stack([from_grid(column, precision) for column, precision in zip(canonical.q, precisions, strict=True)])
    at = layout.vertex_at(canonical)
    page.put_rows(at, floats)
    first = first_of(size)
    for extra in range(4):  # closing and padding: the first vertex once more
        more = np.flatnonzero((run_out - size > extra) & (size > 0))
        page.put_rows(at[first[more]] + 8 * width * (size[more] + extra), floats[:, first[more]])
    return page.data[: page.size], layout.offsets, flags


class _Layout:
    """Where rows, parts and runs begin when each has a head and a run has `run_out` vertices of `width` ordinates."""

    def __init__(self, canonical: Canonical, head: Ints | int, part_head: Ints, run_head: Ints, run_out: Ints) -> None:
        width = len(canonical.q)
        part_row = np.repeat(np.arange(len(canonical.parts)), canonical.parts)
        run_part = np.repeat(np.arange(len(canonical.part_rings)), canonical.part_rings)
        heads = np.broadcast_to(np.asarray(head, np.int64), len(canonical.parts))
        run_bytes = run_head + run_out * 8 * width
        part_bytes = part_head + _summed(run_bytes, run_part, len(canonical.part_rings))
        row_bytes = heads + _summed(part_bytes, part_row, len(canonical.parts))
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(row_bytes)])
        self.row_at = self.offsets[:-1]
        before = first_of(part_bytes)
        self.part_at = self.row_at[part_row] + heads[part_row] + before - _of_first(before, first_of(canonical.parts), part_row)
        before = first_of(run_bytes)
        self.run_at = self.part_at[run_part] + part_head[run_part] + before - _of_first(before, first_of(canonical.part_rings), run_part)
        self._run_head = run_head
        self.page = _Page(int(self.offsets[-1]))

    def vertex_at(self, canonical: Canonical) -> Ints:
        """Where each vertex goes."""
        size, width = canonical.run_size, len(canonical.q)
        begin = self.run_at + self._run_head
        steps: Ints = np.arange(canonical.q.shape[1]) * (8 * width)
        return np.repeat(begin - first_of(size) * 8 * width, size) + steps


def _summed(values: Ints, group: Ints, n: int) -> Ints:
    """Sums by group; groups are runs of equal numbers."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    ends = np.cumsum(np.bincount(group, minlength=n))
    out: Ints = np.diff(total[np.concatenate([np.zeros(1, np.int64), ends])])
    return out


def _of_first(values: Ints, first: Ints, group: Ints) -> Ints:
    """For each entry the value of the first entry of its group."""
    return values[first[group]]
