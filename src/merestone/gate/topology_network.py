"""A network of lines: which ends meet nothing, which meet a line where it has no vertex, and which stretches exist twice.

Not here: words (`topology`), edges and pairs of them (`topology_edges`).

An end is joined where another end, or a vertex of a line, lies at the same place. Lines may cross without a common vertex: bridges do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from merestone.gate.topology_edges import Edges, Floats, Ints, edges_of, grouped, near_pairs, numbered, shapes_on_grid, turn
from merestone.gate.topology_pairs import Pairs
from merestone.geometry import kernel


@dataclass(frozen=True, slots=True)
class Ends:
    """Loose ends: the row, the position in grid units, the nearest other row (-1: none was looked for or found) and its distance."""

    row: Ints
    x: Floats
    y: Floats
    other: Ints
    distance: Floats

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class Network:
    """What is wrong with a network; sizes of duplicates are shared lengths."""

    dangles: Ends
    unconnected: Ends
    duplicates: Pairs


def check_network(
    wkb: pa.Array | pa.ChunkedArray, precision: int, *, near: float, dead_ends: bool = False, tolerance: float = 0.0
) -> Network:
    """Judge a network.

    Args:
        wkb: pyarrow binary array of lines in canonical form; other geometries have no part in it.
        precision: decimals of the grid.
        near: in units of the CRS: a loose end that lies this near to another line should have met it, and is unconnected.
        dead_ends: whether a loose end is not a fault where nothing is near and its line is longer than `near`.
        tolerance: in units of the CRS: ends at most this far from another line count as joined.
    """
    scale = 10.0**precision
    edges = edges_of(wkb, precision, areas=False)
    edge, ahead = _loose(edges)
    ends = _nearest(wkb, precision, edges, edge, ahead, max(near, tolerance) * scale)
    length = _lengths(edges)[edges.line[edge]]
    touching = ends.distance == 0
    close = ends.distance <= near * scale
    joined = ends.distance <= tolerance * scale if tolerance > 0 else np.zeros(len(ends), np.bool_)
    unconnected = np.flatnonzero((touching | close) & ~joined)
    allowed = dead_ends & (length > near * scale)
    dangles = np.flatnonzero(~touching & ~close & ~joined & ~allowed)
    return Network(_some(ends, dangles), _some(ends, unconnected), _doubles(edges))


def _some(ends: Ends, at: Ints) -> Ends:
    return Ends(ends.row[at], ends.x[at], ends.y[at], ends.other[at], ends.distance[at])


def _limits(edges: Edges) -> tuple[Ints, Ints]:
    """The first and the last edge of each line."""
    change = np.flatnonzero(np.diff(edges.line)) + 1
    return np.concatenate(([0], change)), np.concatenate((change - 1, [len(edges) - 1]))


def _lengths(edges: Edges) -> Floats:
    """The length of each line, by its number."""
    out: Floats = np.bincount(edges.line, np.hypot((edges.x1 - edges.x0).astype(float), (edges.y1 - edges.y0).astype(float))).astype(float)
    return out


def _loose(edges: Edges) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The ends of lines that have their place for themselves: the edge (ascending), and whether it is its last vertex or its first."""
    if not len(edges):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    first, last = _limits(edges)
    # Each vertex once: the first of every edge, and the last of every line.
    vertex, count = numbered(np.concatenate([edges.x0, edges.x1[last]]), np.concatenate([edges.y0, edges.y1[last]]))
    there = np.bincount(vertex, minlength=count)
    begins, stops = first[there[vertex[first]] == 1], last[there[vertex[len(edges) :]] == 1]
    edge = np.concatenate([begins, stops])
    order = np.argsort(edge, kind="stable")
    return edge[order], (np.arange(len(edge)) >= len(begins))[order]


def _nearest(wkb: pa.Array | pa.ChunkedArray, precision: int, edges: Edges, edge: Ints, ahead: npt.NDArray[np.bool_], near: float) -> Ends:
    """Each loose end with the nearest line of another feature that is at most `near` away."""
    x, y = np.where(ahead, edges.x1[edge], edges.x0[edge]), np.where(ahead, edges.y1[edge], edges.y0[edge])
    row = edges.owner[edge]
    other, distance = np.full(len(row), -1, np.int64), np.full(len(row), np.inf)
    if len(row):
        rows = np.flatnonzero(np.isin(kernel.scan(wkb).kind, (2, 5, 7)))
        shapes = shapes_on_grid(wkb.take(pa.array(rows)), precision)
        points = shapely.points(x.astype(float), y.astype(float))
        tree = shapely.STRtree(shapes)
        at, line = tree.query(points, predicate="dwithin", distance=near)
        foreign = rows[line] != row[at]
        at, line = at[foreign], line[foreign]
        away = shapely.distance(points[at], shapes[line])
        away[shapely.intersects(points[at], shapes[line])] = 0.0  # exact, where a distance is rounded
        # A line that the feature meets elsewhere is near the end of a short one, and is none that it has missed.
        own = shapes[np.searchsorted(rows, row[at])]
        missed = (away == 0) | ~shapely.intersects(own, shapes[line])
        at, line, away = at[missed], line[missed], away[missed]
        order = np.lexsort((-line, -away, at))
        other[at[order]], distance[at[order]] = rows[line[order]], away[order]  # of several the nearest is written last
    return Ends(row, x.astype(float), y.astype(float), other, distance)


def _doubles(edges: Edges) -> Pairs:
    """Pairs of features that have a stretch in common, whatever their directions; a feature with itself where it runs over itself."""
    parts: list[Pairs] = []
    ahead = edges.forward
    lines = (
        np.where(ahead, edges.x0, edges.x1),
        np.where(ahead, edges.y0, edges.y1),
        np.where(ahead, edges.x1, edges.x0),
        np.where(ahead, edges.y1, edges.y0),
    )
    order, begins = grouped(*lines)
    size = np.diff(np.append(begins, len(order)))
    step = 1
    while (size > step).any():  # each member of a group with the one `step` places on
        large = size > step
        counts = size[large] - step
        here = np.repeat(begins[large], counts) + np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        here, there = order[here], order[here + step]
        parts.append(_stretches(edges, here, there, *(each[here] for each in lines)))
        step += 1
    for one, other in near_pairs(edges):
        p, q = edges.take(one), edges.take(other)
        flat = (turn(p.x0, p.y0, p.x1, p.y1, q.x0, q.y0) == 0) & (turn(p.x0, p.y0, p.x1, p.y1, q.x1, q.y1) == 0)
        parts.append(_overlapping(edges, lines, one[flat], other[flat]))
    return Pairs.joined(parts).per_pair()


def _overlapping(edges: Edges, lines: tuple[Ints, Ints, Ints, Ints], one: Ints, other: Ints) -> Pairs:
    """The stretches that edges on one line have in common, but for equal edges. `lines`: the lesser and the greater end of every edge."""
    # Along a line the order is that of x, and of y where x says nothing.
    upright = edges.x0[one] == edges.x1[one]
    along = [
        np.where(upright, each[1], each[0])
        for each in (
            (lines[0][one], lines[1][one]),
            (lines[2][one], lines[3][one]),
            (lines[0][other], lines[1][other]),
            (lines[2][other], lines[3][other]),
        )
    ]
    shared = np.maximum(along[0], along[2]) < np.minimum(along[1], along[3])
    same = (along[0] == along[2]) & (along[1] == along[3])
    hit = np.flatnonzero(shared & ~same)
    one, other = one[hit], other[hit]
    later = along[0][hit] >= along[2][hit]
    sooner = along[1][hit] <= along[3][hit]
    low = [np.where(later, lines[n][one], lines[n][other]) for n in (0, 1)]
    high = [np.where(sooner, lines[n][one], lines[n][other]) for n in (2, 3)]
    return _stretches(edges, one, other, *low, *high)


def _stretches(edges: Edges, one: Ints, other: Ints, x0: Ints, y0: Ints, x1: Ints, y1: Ints) -> Pairs:
    a, b = edges.owner[one], edges.owner[other]
    length = np.hypot((x1 - x0).astype(float), (y1 - y0).astype(float))
    return Pairs(np.minimum(a, b), np.maximum(a, b), (x0 + x1) / 2, (y0 + y1) / 2, length, np.zeros(len(length)))
