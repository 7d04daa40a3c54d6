"""Edges between neighbouring vertices as whole numbers of the grid, exact questions about them, and pairs of edges that lie near each other.

Not here: what the edges of a coverage, a network or a shell must satisfy (`topology_planar`, `topology_network`, `topology_solid`).

Everything is an array over edges; no Python object stands for an edge or a feature. Differences of ordinates below 2^31 grid units are
multiplied in 64 bits, larger ones in Python's whole numbers; the sign of a turn is never a matter of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from merestone.geometry import kernel
from merestone.geometry.kernel_values import Shapes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Numbers = Ints | Floats

AREAS = (3, 6, 7)
"""Geometry types with polygons in them: Polygon, MultiPolygon, GeometryCollection."""
RUN = 8
"""Edges in a row that are looked up together."""
_CHUNK = 1 << 15  # rows whose geometries are built at a time
_PAIRS = 1 << 18  # pairs of edges that are compared at a time
_SMALL = 1 << 31
_LINE, _POLYGON, _MULTI_LINE, _MULTI_POLYGON = 2, 3, 5, 6


@dataclass(frozen=True, slots=True)
class Edges:
    """Directed edges from (x0, y0) to (x1, y1) in grid units, int64 (n,) each.

    `owner` is the row of the feature; `line` the ring or line that the edge is of: edges of one follow each other.
    """

    x0: Ints
    y0: Ints
    x1: Ints
    y1: Ints
    owner: Ints
    line: Ints

    def __len__(self) -> int:
        return len(self.x0)

    def take(self, at: Ints | Mask) -> Edges:
        """Some of the edges: indices or a mask."""
        return Edges(self.x0[at], self.y0[at], self.x1[at], self.y1[at], self.owner[at], self.line[at])

    @property
    def forward(self) -> Mask:
        """Whether the edge leads from its lesser end to its greater one (by x, then y)."""
        ahead: Mask = (self.x0 < self.x1) | ((self.x0 == self.x1) & (self.y0 < self.y1))
        return ahead


def joined(parts: list[Edges]) -> Edges:
    """All edges of several sets; lines must be numbered apart already."""
    if not parts:
        none = np.zeros(0, np.int64)
        return Edges(none, none, none, none, none, none)
    return Edges(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("x0", "y0", "x1", "y1", "owner", "line")))


# --- from WKB --------------------------------------------------------------------------------------------------------------------------


def edges_of(wkb: pa.Array | pa.ChunkedArray, precision: int, *, areas: bool) -> Edges:
    """The edges of the rings (`areas`) or of the lines of a column.

    Args:
        wkb: pyarrow binary array, canonical (rings wound by the right-hand rule: the inside is to the left of each edge).
        precision: decimals of the grid that all ordinates lie on.
        areas: rings of polygons, otherwise lines; other geometries of the column have no part in it.
    """
    scan = kernel.scan(wkb)
    single, multi = (_POLYGON, _MULTI_POLYGON) if areas else (_LINE, _MULTI_LINE)
    size = pa.compute.fill_null(pa.compute.binary_length(wkb), 0).to_numpy(zero_copy_only=False)
    stride = 8 * (2 + scan.has_z.astype(np.int64) + scan.has_m)
    # A value of exactly one run of vertices is known by its length, and needs no reading of its parts.
    head = 9 + 4 * areas
    one = (scan.kind == single) & (size == head + stride * scan.vertices)
    one |= (scan.kind == multi) & (size == 9 + head + stride * scan.vertices)
    parts, lines = [], 0
    whole = np.flatnonzero(one)
    for start in range(0, len(whole), _CHUNK):
        rows = whole[start : start + _CHUNK]
        xy = kernel.coordinates(wkb.take(pa.array(rows)))
        found = _edges(xy, np.repeat(np.arange(len(rows)), scan.vertices[rows]), rows, precision, lines)
        lines += len(rows)
        parts.append(found)
    rest = np.flatnonzero(~one & np.isin(scan.kind, (single, multi, 7)) & ~scan.empty)
    for start in range(0, len(rest), _CHUNK):
        rows = rest[start : start + _CHUNK]
        shapes, owner = _simple_parts(wkb.take(pa.array(rows)), rows)
        kept = shapely.get_type_id(shapes) == (3 if areas else 1)
        shapes, owner = shapes[kept], owner[kept]
        if areas:
            shapes, of = shapely.get_rings(shapes, return_index=True)
            owner = owner[of]
        xy, line = shapely.get_coordinates(shapes, return_index=True)
        parts.append(_edges(xy, line, owner, precision, lines))
        lines += len(shapes)
    return joined(parts)


def _simple_parts(wkb: pa.Array | pa.ChunkedArray, rows: Ints) -> tuple[Shapes, Ints]:
    """The simple geometries of some rows, however deep they lie, and the row of each."""
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False), on_invalid="ignore")
    there = np.array(shapely.is_geometry(shapes))
    shapes, owner = shapes[there], rows[there]
    while (shapely.get_type_id(shapes) > 3).any():
        shapes, of = shapely.get_parts(shapes, return_index=True)
        owner = owner[of]
    return shapes, owner


def _edges(xy: Floats, line: Ints, owner: Ints, precision: int, first_line: int) -> Edges:
    """Edges between neighbours of one line; `line` is the line of each vertex, `owner` the row of each line."""
    q = to_grid(xy, precision)
    here = np.flatnonzero((line[1:] == line[:-1]) & (q[1:] != q[:-1]).any(axis=1))
    of = line[here]
    return Edges(q[here, 0], q[here, 1], q[here + 1, 0], q[here + 1, 1], owner[of].astype(np.int64), of + first_line)


def to_grid(xy: Floats, precision: int) -> Ints:
    """Stored ordinates as whole numbers of the grid: each is q / 10^precision; nothing is lost."""
    out: Ints = np.rint(xy * 10.0**precision).astype(np.int64)
    return out


def shapes_on_grid(wkb: pa.Array | pa.ChunkedArray, precision: int) -> Shapes:
    """Geometries whose ordinates are the whole numbers of the grid, as GEOS can hold them exactly."""
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False), on_invalid="ignore")
    moved: Shapes = shapely.transform(shapes, lambda xy: np.rint(xy * 10.0**precision))
    return moved


# --- exact questions -------------------------------------------------------------------------------------------------------------------


def cross_sign(u1: Ints, v1: Ints, u2: Ints, v2: Ints) -> Ints:
    """The sign of u1 * v2 - v1 * u2, exact."""
    large = np.maximum(np.maximum(np.abs(u1), np.abs(v1)), np.maximum(np.abs(u2), np.abs(v2))) >= _SMALL
    if not large.any():
        out: Ints = np.sign(u1 * v2 - v1 * u2)
        return out
    keep = ~large
    out = np.sign(np.where(keep, u1, 0) * np.where(keep, v2, 0) - np.where(keep, v1, 0) * np.where(keep, u2, 0))
    a, b, c, d = (each[large].astype(object) for each in (u1, v2, v1, u2))
    out[large] = np.array([(value > 0) - (value < 0) for value in a * b - c * d], np.int64)
    return out


def turn(ax: Ints, ay: Ints, bx: Ints, by: Ints, cx: Ints, cy: Ints) -> Ints:
    """On which side of the line from a to b the point c lies: 1 left, -1 right, 0 on it; exact."""
    return cross_sign(bx - ax, by - ay, cx - ax, cy - ay)


def mixed(*columns: Ints) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row of several columns of whole numbers."""
    out = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        out = (out ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        out ^= out >> np.uint64(29)
        out *= np.uint64(0xBF58476D1CE4E5B9)
        out ^= out >> np.uint64(32)
    return out


def grouped(*columns: Ints) -> tuple[Ints, Ints]:
    """Rows with equal values: the order that brings them together, and where each group begins in it.

    Sorted by hash; where two different rows share one, by the values themselves.
    """
    n = len(columns[0])
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    hashes = mixed(*columns)
    order = np.argsort(hashes).astype(np.int64, copy=False)
    hashes = hashes[order]
    same = hashes[1:] == hashes[:-1]
    twins = np.flatnonzero(same)
    equal = np.ones(len(twins), np.bool_)
    for column in columns:
        equal &= column[order[twins]] == column[order[twins + 1]]
    if not equal.all():
        order = np.lexsort(columns)
        same = np.ones(n - 1, np.bool_)
        for column in columns:
            same &= column[order[1:]] == column[order[:-1]]
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    return order, begins


def numbered(*columns: Ints) -> tuple[Ints, int]:
    """A number for each row, equal where all values are; and how many there are."""
    order, begins = grouped(*columns)
    out = np.empty(len(order), np.int64)
    out[order] = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(order))))
    return out, len(begins)


# --- near each other -------------------------------------------------------------------------------------------------------------------


def near_pairs(edges: Edges, reach: float = 0.0) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of edges of different rings or lines whose boxes, grown by `reach` grid units, meet: indices one < other, in pieces.

    Edges that follow each other are looked up as one box; neither many small features nor a long border costs a square.
    """
    n = len(edges)
    if n < 2:
        return
    follows = (edges.line[1:] == edges.line[:-1]) & (edges.x1[:-1] == edges.x0[1:]) & (edges.y1[:-1] == edges.y0[1:])
    chain = np.concatenate(([0], np.cumsum(~follows)))
    begin = np.flatnonzero(np.concatenate(([True], ~follows)))
    place = np.arange(n) - begin[chain]
    first = np.flatnonzero(place % RUN == 0)
    size = np.diff(np.append(first, n))
    west, east = np.minimum(edges.x0, edges.x1), np.maximum(edges.x0, edges.x1)
    south, north = np.minimum(edges.y0, edges.y1), np.maximum(edges.y0, edges.y1)
    low_x, low_y = np.minimum.reduceat(west, first), np.minimum.reduceat(south, first)
    top_x, top_y = np.maximum.reduceat(east, first), np.maximum.reduceat(north, first)
    boxes = diagonals(low_x, low_y, top_x, top_y)
    tree = shapely.STRtree(boxes)
    line = edges.line[first]
    step = 1 << 14
    for start in range(0, len(first), step):
        here = slice(start, start + step)
        asked = boxes[here] if reach == 0 else diagonals(low_x[here] - reach, low_y[here] - reach, top_x[here] + reach, top_y[here] + reach)
        one, other = tree.query(asked)
        one = one + start
        keep = (one < other) & (line[one] != line[other])
        one, other = one[keep], other[keep]
        for a, b in _expanded(one, other, first, size):
            close = (
                (west[a] <= east[b] + reach)
                & (west[b] <= east[a] + reach)
                & (south[a] <= north[b] + reach)
                & (south[b] <= north[a] + reach)
            )
            if close.any():
                yield a[close], b[close]


def diagonals(west: Numbers, south: Numbers, east: Numbers, north: Numbers) -> Shapes:
    """Lines from corner to corner of boxes: a tree looks at boxes only, and lines of two vertices are made sooner than rings of five."""
    ends = np.stack([np.stack([west, south], axis=-1), np.stack([east, north], axis=-1)], axis=-2)
    out: Shapes = shapely.linestrings(ends.astype(float))
    return out


def box_tree(boxes: Floats) -> shapely.STRtree:
    """A tree over boxes (n, 4): xmin, ymin, xmax, ymax."""
    return shapely.STRtree(diagonals(*boxes.T))


def meeting(tree: shapely.STRtree, boxes: Floats) -> Ints:
    """Which of some boxes (n, 4) meet a box of a tree; rows without a box (NaN) meet none."""
    found: Ints = np.unique(tree.query(diagonals(*boxes.T))[0])
    return found


def _expanded(one: Ints, other: Ints, first: Ints, size: Ints) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of edges of pairs of runs."""
    product = size[one] * size[other]
    ends = np.cumsum(product)
    at = 0
    while at < len(one):
        stop = max(int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _PAIRS, side="right")), at + 1)
        a, b, many = one[at:stop], other[at:stop], product[at:stop]
        pair = np.repeat(np.arange(len(a)), many)
        inner = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        width = size[b][pair]
        yield first[a][pair] + inner // width, first[b][pair] + inner % width
        at = stop
