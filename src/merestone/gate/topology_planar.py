"""A planar coverage: which polygons overlap, where ground is left uncovered between them, and where neighbours' borders do not match.

Not here: words (`topology`), edges and pairs of them (`topology_edges`), the validity of a single polygon (`feature`).

How many polygons cover a point (its depth) changes only where it crosses an edge that is not cancelled by an equal edge of a neighbour in
the other direction. So all depths are decided by the edges that are left, and in a good coverage those are few:

1. Edges are grouped by their ends; a pair in opposite directions cancels. Two in one direction are an overlap.
2. Edges that are left are compared with those near them. A proper crossing is an overlap. Where a vertex lies on an edge, the edge is split
   there; pieces that then cancel were a border with different vertices (`mismatched_edge`).
3. What is left has to alternate around every vertex between edges that leave and edges that arrive; otherwise the depth there is above 1.
4. The edges form cycles. No other polygon may cover the middle of an edge of a cycle: it would lie inside of another.
5. A cycle that runs clockwise encloses ground that nothing covers: a gap.

The steps 1 to 4 find an overlap in every region that is covered twice, if there is one; all pairs that share ground with a polygon found are
then looked up until none is left, so that the count is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from merestone.gate.topology_edges import (
    Edges,
    Floats,
    Ints,
    Mask,
    box_tree,
    cross_sign,
    diagonals,
    edges_of,
    grouped,
    joined,
    near_pairs,
    numbered,
    shapes_on_grid,
    turn,
)
from merestone.geometry import kernel

LONG = 3.0
"""How many times longer than wide an open strip of uncovered ground is to be a gap between its neighbours, and not the end of a street."""
_LONG_CORNER = 20.0
_INTERIORS_MEET = "T********"
_DUST = 1e-6  # square grid units: what floating point leaves of two equal outlines with corners off the grid
_LOOKED_UP = 1 << 16  # polygons whose neighbours are looked up at a time


@dataclass(frozen=True, slots=True)
class Pairs:
    """Faults between two features: rows `one` and `other` (-1: none), a position in grid units, and a size (area, length) in grid units."""

    one: Ints
    other: Ints
    x: Floats
    y: Floats
    size: Floats
    width: Floats

    def __len__(self) -> int:
        return len(self.one)


@dataclass(frozen=True, slots=True)
class Planar:
    """What is wrong with a coverage; sizes are areas of overlaps and gaps, and lengths of borders that do not match."""

    overlaps: Pairs
    gaps: Pairs
    mismatches: Pairs


@dataclass(slots=True)
class _Seeds:
    """Rows that are known or suspected to overlap something."""

    rows: list[Ints]

    def add(self, *rows: Ints) -> None:
        self.rows.extend(rows)

    def unique(self) -> Ints:
        return np.unique(np.concatenate([np.zeros(0, np.int64), *self.rows]))


def check_planar(wkb: Any, precision: int, *, gap_width: float | None = None, tolerance: float = 0.0) -> Planar:
    """Judge a coverage.

    Args:
        wkb: pyarrow binary array of valid polygons in canonical form; other geometries have no part in it.
        precision: decimals of the grid.
        gap_width: in units of the CRS: only gaps into which no circle of this diameter fits are faults, and open strips between two
            features that are narrower are, too. None: all ground that polygons enclose and none covers is a gap.
        tolerance: in units of the CRS: overlaps and gaps into which no circle of this diameter fits are none, and borders need not share
            their vertices.
    """
    scale = 10.0**precision
    edges = edges_of(wkb, precision, areas=True)
    left, same_side = _cancelled(edges)
    seeds = _Seeds([])
    seeds.add(edges.owner[same_side].ravel())
    rest = edges.take(left)
    del edges
    noded, crossing = _noded(rest, seeds)
    mismatches, doubled = _none(), np.zeros(0, np.int64)
    if len(noded[0]) or len(same_side):
        rest, mismatches, doubled = _matched(rest, noded, seeds)
    chain = _Chain.of(rest, seeds)
    cover = _Cover(wkb, precision)
    chain.probe(cover, seeds)
    width = tolerance * scale
    overlaps = _all_overlaps(cover, seeds.unique(), width)
    tainted = np.isin(rest.owner, np.concatenate([crossing, doubled, overlaps.one, overlaps.other]))
    gaps = _gaps(rest, chain, cover, tainted, None if gap_width is None else gap_width * scale, width)
    if tolerance > 0:
        mismatches = _none()
    return Planar(overlaps, gaps, mismatches)


def boundary_changes(before: Any, after: Any, precision: int) -> bool:
    """Whether exchanging some polygons for others changes the outline of what they cover together; equal outlines leave every gap as it was.

    Args:
        before: pyarrow binary array of polygons in canonical form.
        after: those in their place.
        precision: decimals of the grid.
    """
    old, new = edges_of(before, precision, areas=True), edges_of(after, precision, areas=True)
    lines = int(new.line.max(initial=-1)) + 1
    both = joined([new, Edges(old.x1, old.y1, old.x0, old.y0, ~old.owner, old.line + lines)])  # rows before and after have nothing in common
    left, _ = _cancelled(both)
    rest, ignored = both.take(left), _Seeds([])
    rest, _, _ = _matched(rest, _noded(rest, ignored)[0], ignored)  # a vertex on a straight outline is no change of it
    return bool(len(rest))


# --- step 1: equal edges cancel --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Groups:
    """Edges with the same ends: `order` brings them together, `begins` says where in it each group begins, `size` how many it has."""

    order: Ints
    begins: Ints
    size: Ints

    @classmethod
    def of(cls, edges: Edges) -> _Groups:
        ahead = edges.forward
        order, begins = grouped(np.where(ahead, edges.x0, edges.x1), np.where(ahead, edges.y0, edges.y1),
                                np.where(ahead, edges.x1, edges.x0), np.where(ahead, edges.y1, edges.y0))
        return cls(order, begins, np.diff(np.append(begins, len(order))))

    def members(self, which: Ints) -> tuple[Ints, Ints]:
        """The edges of some groups, and the group of each."""
        size = self.size[which]
        return self.order[np.repeat(self.begins[which], size) + _within(size)], np.repeat(which, size)

    def pairs(self) -> tuple[Ints, Ints]:
        """All pairs of edges of one group."""
        here, there = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        step = 1
        while (self.size > step).any():
            large = self.size > step
            count = self.size[large] - step
            at = np.repeat(self.begins[large], count) + _within(count)
            here.append(self.order[at])
            there.append(self.order[at + step])
            step += 1
        return np.concatenate(here), np.concatenate(there)


def _cancelled(edges: Edges) -> tuple[Ints, Ints]:
    """The edges that have no partner of their own in the other direction (ascending), and pairs (k, 2) of edges in one direction.

    Where more than two edges meet, all of them stay for now: which of them are partners is not decided by their order.
    """
    if not len(edges):
        return np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    groups, ahead = _Groups.of(edges), edges.forward
    two = groups.begins[groups.size == 2]
    cancels = ahead[groups.order[two]] != ahead[groups.order[two + 1]]
    odd = np.concatenate([np.flatnonzero(groups.size > 2), np.flatnonzero(groups.size == 2)[~cancels]])
    member, group = groups.members(odd)
    by = np.lexsort((ahead[member], group))
    side, sorted_member = (group * 2 + ahead[member])[by], member[by]
    twice = np.flatnonzero(side[1:] == side[:-1])
    alone = groups.order[groups.begins[groups.size == 1]]
    return np.sort(np.concatenate([alone, member])), np.column_stack([sorted_member[twice], sorted_member[twice + 1]])


def _net(edges: Edges) -> Ints:
    """What is left (ascending) when each edge cancels one in the other direction."""
    if not len(edges):
        return np.zeros(0, np.int64)
    groups, ahead = _Groups.of(edges), edges.forward
    member, group = groups.members(np.arange(len(groups.size)))
    by = np.lexsort((ahead[member], group))
    member, side = member[by], (group * 2 + ahead[member])[by]
    rank = np.arange(len(side)) - np.searchsorted(side, side)
    counts = np.bincount(side, minlength=2 * len(groups.size))
    return np.sort(member[rank >= counts[side ^ 1]])


def _within(sizes: Ints) -> Ints:
    """0, 1, 2 ... within each of several groups."""
    out: Ints = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out


# --- step 2: edges near each other -----------------------------------------------------------------------------------------------------


def _noded(rest: Edges, seeds: _Seeds) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    """Where vertices lie on edges of others (edge, x, y), and the rows whose edges cross properly."""
    at, xs, ys, crossing = [], [], [], [np.zeros(0, np.int64)]
    for one, other in near_pairs(rest):
        p, q = rest.take(one), rest.take(other)
        sides = (turn(p.x0, p.y0, p.x1, p.y1, q.x0, q.y0), turn(p.x0, p.y0, p.x1, p.y1, q.x1, q.y1),
                 turn(q.x0, q.y0, q.x1, q.y1, p.x0, p.y0), turn(q.x0, q.y0, q.x1, q.y1, p.x1, p.y1))
        cross = np.flatnonzero((sides[0] * sides[1] < 0) & (sides[2] * sides[3] < 0))
        if len(cross):
            crossing += [p.owner[cross], q.owner[cross]]
        for side, edge, line, x, y in ((sides[0], one, p, q.x0, q.y0), (sides[1], one, p, q.x1, q.y1),
                                       (sides[2], other, q, p.x0, p.y0), (sides[3], other, q, p.x1, p.y1)):
            on = np.flatnonzero((side == 0) & _strictly_between(line, x, y))
            at.append(edge[on])
            xs.append(x[on])
            ys.append(y[on])
    rows = np.unique(np.concatenate(crossing))
    seeds.add(rows)
    none = [np.zeros(0, np.int64)]
    return (np.concatenate(at or none), np.concatenate(xs or none), np.concatenate(ys or none)), rows


def _strictly_between(edges: Edges, x: Ints, y: Ints) -> Mask:
    """Whether points on the lines of edges lie between their ends, and on neither."""
    inside_x = (np.minimum(edges.x0, edges.x1) <= x) & (x <= np.maximum(edges.x0, edges.x1))
    inside_y = (np.minimum(edges.y0, edges.y1) <= y) & (y <= np.maximum(edges.y0, edges.y1))
    end = ((x == edges.x0) & (y == edges.y0)) | ((x == edges.x1) & (y == edges.y1))
    inside: Mask = inside_x & inside_y & ~end
    return inside


def _matched(rest: Edges, noded: tuple[Ints, Ints, Ints], seeds: _Seeds) -> tuple[Edges, Pairs, Ints]:
    """The edges that are left once those with vertices of others on them are split, the borders that match only then, and rows with edges twice."""
    at, x, y = noded
    split = np.unique(at)
    whole = rest.take(np.setdiff1d(np.arange(len(rest)), split, assume_unique=True))
    cut = rest.take(split)
    # Ends and the points between them, along each edge: on a line, the order by x and y is the order along it.
    edge = np.concatenate([np.arange(len(split)), np.searchsorted(split, at), np.arange(len(split))])
    px, py = np.concatenate([cut.x0, x, cut.x1]), np.concatenate([cut.y0, y, cut.y1])
    sign = np.where(cut.forward, 1, -1)[edge]
    order = np.lexsort((py * sign, px * sign, edge))
    edge, px, py = edge[order], px[order], py[order]
    next_one = np.flatnonzero((edge[1:] == edge[:-1]) & ((px[1:] != px[:-1]) | (py[1:] != py[:-1])))
    of = edge[next_one]
    pieces = Edges(px[next_one], py[next_one], px[next_one + 1], py[next_one + 1], cut.owner[of], cut.line[of])
    both = joined([pieces, whole])
    if not len(both):
        return both, _none(), np.zeros(0, np.int64)
    one, other = _Groups.of(both).pairs()
    opposite = both.forward[one] != both.forward[other]
    foreign = both.owner[one] != both.owner[other]
    doubled = np.concatenate([both.owner[one[~opposite]], both.owner[other[~opposite]]])
    seeds.add(doubled)
    matched = opposite & foreign & ((one < len(pieces)) | (other < len(pieces)))
    return both.take(_net(both)), _mismatches(both, one[matched], other[matched]), doubled


def _mismatches(edges: Edges, here: Ints, there: Ints) -> Pairs:
    """One fault for each pair of features, at the middle of the longest stretch of border that they share without its vertices."""
    one = np.minimum(edges.owner[here], edges.owner[there])
    other = np.maximum(edges.owner[here], edges.owner[there])
    length = np.hypot((edges.x1 - edges.x0)[here].astype(float), (edges.y1 - edges.y0)[here].astype(float))
    x, y = (edges.x0[here] + edges.x1[here]) / 2, (edges.y0[here] + edges.y1[here]) / 2
    return _per_pair(one, other, x, y, length)


def _per_pair(one: Ints, other: Ints, x: Floats, y: Floats, length: Floats, width: Floats | None = None) -> Pairs:
    """Stretches, merged by pair of features: the lengths added up, at the place of the longest."""
    if not len(one):
        return _none()
    width = np.zeros(len(one)) if width is None else width
    order = np.lexsort((-length, other, one))
    one, other, x, y, length, width = one[order], other[order], x[order], y[order], length[order], width[order]
    begins = np.flatnonzero(np.concatenate(([True], (one[1:] != one[:-1]) | (other[1:] != other[:-1]))))
    return Pairs(one[begins], other[begins], x[begins], y[begins], np.add.reduceat(length, begins), width[begins])


# --- steps 3 to 5: cycles --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chain:
    """The cycles of the edges that are left.

    `label` is the first edge of each edge's cycle, `follows` the edge after each; `broken` cycles go through a vertex where edges do not
    alternate, or lie inside of a polygon.
    """

    edges: Edges
    follows: Ints
    label: Ints
    broken: Mask

    @classmethod
    def of(cls, edges: Edges, seeds: _Seeds) -> _Chain:
        """Link the edges around each vertex so that the uncovered ground to their right stays to the right."""
        n = len(edges)
        vertex, count = numbered(np.concatenate([edges.x0, edges.x1]), np.concatenate([edges.y0, edges.y1]))
        start, end = vertex[:n], vertex[n:]
        leaving, arriving = np.bincount(start, minlength=count), np.bincount(end, minlength=count)
        leaves = np.zeros(count, np.int64)
        leaves[start] = np.arange(n)
        follows = leaves[end]
        knot = (leaving != 1) | (arriving != 1)
        broken = np.zeros(n, np.bool_)
        if knot.any():
            follows = _through_knots(edges, start, end, knot, follows, broken, seeds)
        label = _labels(follows)
        if broken.any():
            bad = np.zeros(n, np.bool_)
            bad[label[broken]] = True
            broken = bad[label]
        return cls(edges, follows, label, broken)

    def probe(self, cover: _Cover, seeds: _Seeds) -> None:
        """No polygon may cover the middle of an edge that is left, but the edge's own."""
        first = np.unique(self.label)
        some = self.edges.take(first)
        point, polygon = cover.covering((some.x0 + some.x1) / 2, (some.y0 + some.y1) / 2, some.owner)
        seeds.add(some.owner[point], polygon)
        self.broken |= np.isin(self.label, first[point])

    def clockwise(self) -> Ints:
        """The labels of sound cycles that enclose uncovered ground."""
        sound = np.flatnonzero(~self.broken)
        if not len(sound):
            return np.zeros(0, np.int64)
        some, label = self.edges.take(sound), self.label[sound]
        x, y = self.edges.x0[label], self.edges.y0[label]
        ax, ay, bx, by = ((one - other).astype(np.float64) for one, other in
                          ((some.x0, x), (some.y0, y), (some.x1, x), (some.y1, y)))
        names, at = np.unique(label, return_inverse=True)
        area = np.bincount(at, ax * by - ay * bx)
        error = np.bincount(at, np.abs(ax * by) + np.abs(ay * bx)) * 1e-12
        doubtful = np.flatnonzero(np.abs(area) <= error)
        for each in doubtful.tolist():
            mine = np.flatnonzero(at == each)
            c = [value[mine].astype(object) for value in (some.x0 - x, some.y0 - y, some.x1 - x, some.y1 - y)]
            area[each] = float(np.sign(int((c[0] * c[3] - c[1] * c[2]).sum())))
        return names[area < 0]

    def outline(self, label: int) -> Any:
        """The ground that a cycle encloses, as a geometry in grid units."""
        at, walk = label, []
        while True:
            walk.append(at)
            at = int(self.follows[at])
            if at == label:
                break
        shape = shapely.polygons(np.column_stack([self.edges.x0[walk], self.edges.y0[walk]]).astype(float))
        return shape if shapely.is_valid(shape) else shapely.make_valid(shape)


def _through_knots(edges: Edges, start: Ints, end: Ints, knot: Mask, follows: Ints, broken: Mask, seeds: _Seeds) -> Ints:
    """Which edge follows at vertices where more than one leaves: the next counter-clockwise from the way back."""
    out, into = np.flatnonzero(knot[start]), np.flatnonzero(knot[end])
    edge = np.concatenate([out, into])
    kind = np.concatenate([np.ones(len(out), np.int64), np.zeros(len(into), np.int64)])
    vertex = np.concatenate([start[out], end[into]])
    dx = np.concatenate([(edges.x1 - edges.x0)[out], (edges.x0 - edges.x1)[into]])
    dy = np.concatenate([(edges.y1 - edges.y0)[out], (edges.y0 - edges.y1)[into]])
    order = _by_angle(vertex, dx, dy)
    edge, kind, vertex, dx, dy = edge[order], kind[order], vertex[order], dx[order], dy[order]
    first = np.searchsorted(vertex, vertex)
    last = np.searchsorted(vertex, vertex, side="right") - 1
    after = np.where(np.arange(len(vertex)) == last, first, np.arange(len(vertex)) + 1)
    clash = np.flatnonzero(kind == kind[after])
    if len(clash):
        # Around such a vertex some ground is covered twice; which pair covers it is looked up from all features that meet there.
        bad = np.isin(vertex, vertex[clash])
        broken[edge[bad]] = True
        seeds.add(edges.owner[edge[bad]])
    arrives = np.flatnonzero(kind == 0)
    follows = follows.copy()
    follows[edge[arrives]] = np.where(kind[after[arrives]] == 1, edge[after[arrives]], edge[arrives])
    return follows


def _by_angle(vertex: Ints, dx: Ints, dy: Ints) -> Ints:
    """The order by vertex and counter-clockwise from east around it, exact: floats sort, whole numbers correct."""
    half = ((dy < 0) | ((dy == 0) & (dx < 0))).astype(np.int64)
    order = np.lexsort((np.arctan2(dy.astype(float), dx.astype(float)), half, vertex))
    for _ in range(len(order)):
        v, h, u, w = vertex[order], half[order], dx[order], dy[order]
        wrong = np.flatnonzero((v[1:] == v[:-1]) & (h[1:] == h[:-1]) & (cross_sign(u[:-1], w[:-1], u[1:], w[1:]) < 0))
        if not len(wrong):
            break
        apart = wrong[np.concatenate(([True], np.diff(wrong) > 1))]
        order[apart], order[apart + 1] = order[apart + 1], order[apart]
    return order


def _labels(follows: Ints) -> Ints:
    """The least edge of each edge's cycle."""
    label, jump = np.arange(len(follows)), follows
    for _ in range(64):
        lower = np.minimum(label, label[jump])
        jump = jump[jump]
        if np.array_equal(lower, label) and np.array_equal(label, label[follows]):
            break
        label = lower
    return label


# --- what covers what ------------------------------------------------------------------------------------------------------------------


class _Cover:
    """All polygons, to be asked what lies where; geometries are built only for those that are asked about."""

    def __init__(self, wkb: Any, precision: int) -> None:
        self._wkb, self._precision = wkb, precision
        scan = kernel.scan(wkb)
        self.rows = np.flatnonzero(np.isin(scan.kind, (3, 6, 7)) & ~scan.empty)
        self.boxes = np.rint(scan.bounds[self.rows] * 10.0**precision)
        self._tree: Any = None

    @property
    def tree(self) -> Any:
        """A tree over the boxes of all polygons."""
        if self._tree is None:
            self._tree = box_tree(self.boxes)
        return self._tree

    def shapes(self, rows: Ints) -> npt.NDArray[Any]:
        """Geometries in grid units."""
        return shapes_on_grid(self._wkb.take(pa.array(rows)), self._precision)

    def in_boxes(self, boxes: Floats) -> tuple[Ints, Ints]:
        """Which polygons' boxes meet which boxes: places in `boxes`, and rows."""
        if len(boxes) * len(self.rows) <= 1 << 26 and self._tree is None:
            hits = [np.flatnonzero((self.boxes[:, 0] <= east) & (self.boxes[:, 2] >= west) & (self.boxes[:, 1] <= north) & (self.boxes[:, 3] >= south))
                    for west, south, east, north in boxes.tolist()]
            return np.repeat(np.arange(len(hits)), [len(each) for each in hits]), self.rows[np.concatenate([np.zeros(0, np.int64), *hits])]
        place, found = self.tree.query(diagonals(*boxes.T))
        return place, self.rows[found]

    def covering(self, x: Floats, y: Floats, owner: Ints) -> tuple[Ints, Ints]:
        """Which polygons, other than its owner, cover each point: places in `x`, and rows."""
        points, polygons = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start in range(0, len(x), _LOOKED_UP):
            here = slice(start, start + _LOOKED_UP)
            place, rows = self.in_boxes(np.column_stack([x[here], y[here], x[here], y[here]]))
            place = place + start
            other = rows != owner[place]
            place, rows = place[other], rows[other]
            asked, at = np.unique(rows, return_inverse=True)
            shapes = self.shapes(asked)
            often = np.bincount(at, minlength=len(asked)) > 8
            shapely.prepare(shapes[often])
            hit = np.array(shapely.intersects_xy(shapes[at], x[place], y[place]), np.bool_) if len(at) else np.zeros(0, np.bool_)
            points.append(place[hit])
            polygons.append(rows[hit])
        return np.concatenate(points), np.concatenate(polygons)


def _all_overlaps(cover: _Cover, seeds: Ints, width: float) -> Pairs:
    """Every pair of polygons whose interiors meet, from rows that may be part of one: looked up until no new row turns up."""
    done, waiting = np.zeros(0, np.int64), seeds
    found: list[Pairs] = []
    while len(waiting):
        now, waiting = waiting[:_LOOKED_UP], waiting[_LOOKED_UP:]
        done = np.union1d(done, now)
        shapes = cover.shapes(now)
        place, rows = cover.in_boxes(shapely.bounds(shapes))
        one = now[place]
        keep = rows != one
        place, one, rows = place[keep], one[keep], rows[keep]
        asked, at = np.unique(rows, return_inverse=True)
        others = cover.shapes(asked)
        meet = np.array(shapely.relate_pattern(shapes[place], others[at], _INTERIORS_MEET), np.bool_)
        place, one, rows, at = place[meet], one[meet], rows[meet], at[meet]
        if len(one):
            waiting = np.union1d(waiting, np.setdiff1d(rows, done))
            shared = shapely.intersection(shapes[place], others[at])
            counts = ~_no_wider(shared, width) if width > 0 else np.ones(len(shared), np.bool_)
            found.append(_measured(one[counts], rows[counts], shared[counts]))
    if not found:
        return _none()
    pairs = _joined_pairs(found)
    pairs = _some(pairs, np.lexsort((pairs.other, pairs.one)))
    same = (pairs.one[1:] == pairs.one[:-1]) & (pairs.other[1:] == pairs.other[:-1])  # looked up from either side
    return _some(pairs, np.flatnonzero(~np.concatenate((np.zeros(min(len(pairs), 1), np.bool_), same))))


def _measured(one: Ints, other: Ints, shared: npt.NDArray[Any]) -> Pairs:
    where = shapely.point_on_surface(shared)
    area = shapely.area(shared)
    empty = shapely.is_empty(where)
    where = np.where(empty, shapely.centroid(shared), where)
    return Pairs(np.minimum(one, other), np.maximum(one, other), shapely.get_x(where), shapely.get_y(where), area, _widths(shared))


def _widths(shapes: npt.NDArray[Any]) -> Floats:
    """The diameter of the largest circle that fits into each geometry, as far as twice its area over its outline can tell: never too large."""
    length = shapely.length(shapes)
    out: Floats = np.divide(2 * shapely.area(shapes), length, out=np.zeros(len(shapes)), where=length > 0)
    return out


# --- gaps ------------------------------------------------------------------------------------------------------------------------------


def _gaps(rest: Edges, chain: _Chain, cover: _Cover, tainted: Mask, gap_width: float | None, tolerance: float) -> Pairs:
    """Uncovered ground: enclosed, and open where a width is named."""
    holes, owners = _holes(rest, chain, cover, tainted)
    if len(holes):
        narrow = np.ones(len(holes), np.bool_) if gap_width is None else _no_wider(holes, gap_width)
        wide = np.ones(len(holes), np.bool_) if tolerance == 0 else ~_no_wider(holes, tolerance)
        faulty = np.flatnonzero(narrow & wide)
        holes, owners = holes[faulty], owners[faulty]
    where = shapely.point_on_surface(holes)
    found = Pairs(owners[:, 0], owners[:, 1], shapely.get_x(where), shapely.get_y(where), shapely.area(holes), _widths(holes))
    if gap_width is None:
        return found
    strips = _strips(rest, gap_width, tolerance)
    if len(holes) and len(strips):
        inside = shapely.STRtree(holes).query(shapely.points(strips.x, strips.y), predicate="within")[0]
        strips = _some(strips, np.setdiff1d(np.arange(len(strips)), inside))
    return _joined_pairs([found, strips])


def _no_wider(shapes: npt.NDArray[Any], width: float) -> Mask:
    """Whether no circle of this diameter fits into each."""
    out: Mask = np.zeros(len(shapes), np.bool_)
    slim = np.flatnonzero(_widths(shapes) < width)  # half of a circle's width in an outline is area over length at least
    out[slim] = shapely.is_empty(shapely.buffer(shapes[slim], -width / 2, quad_segs=16))
    return out


def _holes(rest: Edges, chain: _Chain, cover: _Cover, tainted: Mask) -> tuple[npt.NDArray[Any], Ints]:
    """Enclosed ground that nothing covers, and two features beside each (-1 where one alone encloses it).

    Cycles that take part in an overlap say nothing by themselves; around them the polygons are united, and the holes of that looked at.
    """
    labels = chain.clockwise()
    spoilt = np.zeros(len(rest), np.bool_)
    spoilt[chain.label[tainted | chain.broken]] = True
    labels = labels[~spoilt[labels]]
    outlines = [chain.outline(int(each)) for each in labels]
    beside = [_beside(rest, chain.label == each) for each in labels] if len(labels) < 1000 else _beside_all(rest, chain.label, labels)
    if spoilt.any():
        for shape, two in _holes_of_union(rest, cover, spoilt[chain.label]):
            outlines.append(shape)
            beside.append(two)
    return _uncovered(outlines, beside, cover)


def _uncovered(outlines: list[Any], beside: list[tuple[int, int]], cover: _Cover) -> tuple[npt.NDArray[Any], Ints]:
    """What is left of each outline once everything that lies in it is taken away."""
    shapes = np.array(outlines, dtype=object)
    owners = np.array(beside, np.int64).reshape(-1, 2)
    if not len(shapes):
        return shapes, owners
    place, rows = cover.in_boxes(shapely.bounds(shapes))
    others = cover.shapes(rows)
    inside = np.array(shapely.relate_pattern(shapes[place], others, _INTERIORS_MEET), np.bool_)
    for each in np.unique(place[inside]).tolist():
        mine = inside & (place == each)
        shapes[each] = shapely.difference(shapes[each], shapely.union_all(others[mine]))
    # A hole that a sound cycle tells of shows in the union near by, too.
    known = np.column_stack([np.rint(shapely.bounds(shapes)), np.rint(shapely.area(shapes))])
    _, first = np.unique(known, axis=0, return_index=True)
    kept = np.sort(first)
    kept = kept[shapely.area(shapes[kept]) > _DUST]
    return shapes[kept], owners[kept]


def _beside(rest: Edges, mine: Mask) -> tuple[int, int]:
    """The two features with the most outline around a hole."""
    at = np.flatnonzero(mine)
    names, of = np.unique(rest.owner[at], return_inverse=True)
    length = np.bincount(of, np.hypot((rest.x1 - rest.x0)[at].astype(float), (rest.y1 - rest.y0)[at].astype(float)))
    most = names[np.argsort(-length, kind="stable")[:2]].tolist()
    return (min(most), max(most)) if len(most) == 2 else (most[0], -1)


def _beside_all(rest: Edges, label: Ints, labels: Ints) -> list[tuple[int, int]]:
    order = np.argsort(label, kind="stable")
    low, high = np.searchsorted(label[order], labels), np.searchsorted(label[order], labels, side="right")
    return [_beside(rest.take(order[a:b]), np.ones(b - a, np.bool_)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _holes_of_union(rest: Edges, cover: _Cover, spoilt: Mask) -> list[tuple[Any, tuple[int, int]]]:
    """The holes of the union of everything near the spoilt cycles, and the two features beside each."""
    part = rest.take(spoilt)
    rows = np.unique(cover.in_boxes(np.array([[part.x0.min(), part.y0.min(), part.x0.max(), part.y0.max()]], float))[1])
    shapes = cover.shapes(rows)
    whole = shapely.union_all(shapes)
    # Faces of the outline, not interior rings: polygons that touch in points enclose ground, and their union has no ring around it.
    outline = shapely.union_all(shapely.get_rings(shapely.get_parts(whole)))
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(outline)))
    open_ground = faces[~shapely.intersects(whole, shapely.point_on_surface(faces))]
    tree = shapely.STRtree(shapes)
    out: list[tuple[Any, tuple[int, int]]] = []
    for face in open_ground.tolist():
        around = tree.query(face, predicate="intersects")
        length = shapely.length(shapely.intersection(shapes[around], face))
        most = rows[around[np.argsort(-length, kind="stable")[:2]]].tolist()
        out.append((face, (min(most), max(most)) if len(most) == 2 else (most[0], -1)))
    return out


def _strips(rest: Edges, gap_width: float, tolerance: float) -> Pairs:
    """Open strips of uncovered ground between two features.

    Edges that face each other, nearer than `gap_width`, over a stretch that is `LONG` times longer than wide.
    """
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    for one, other in near_pairs(rest, gap_width):
        found = _facing(rest, one, other, gap_width, tolerance)
        if len(found[0]):
            parts.append(found)
    if not parts:
        return _none()
    one, other, x, y, area, width = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _per_pair(one, other, x, y, area, width)


def _facing(rest: Edges, one: Ints, other: Ints, gap_width: float, tolerance: float) -> tuple[npt.NDArray[Any], ...]:
    """The strips between pairs of edges: features, position, area and width."""
    p, q = rest.take(one), rest.take(other)
    ux, uy = (p.x1 - p.x0).astype(float), (p.y1 - p.y0).astype(float)
    length = np.hypot(ux, uy)
    ux, uy = ux / length, uy / length
    # The ends of q along p, and how far to the right of p they lie; q has to run the other way, so that both see the ground between.
    sx, sy, ex, ey = (each.astype(float) for each in (q.x1 - p.x0, q.y1 - p.y0, q.x0 - p.x0, q.y0 - p.y0))
    t0, t1 = sx * ux + sy * uy, ex * ux + ey * uy
    d0, d1 = sx * uy - sy * ux, ex * uy - ey * ux
    # Two borders that part at a common corner make a strip only where they hardly part.
    corner = ((p.x0 == q.x1) & (p.y0 == q.y1)) | ((p.x1 == q.x0) & (p.y1 == q.y0))
    long = np.where(corner, _LONG_CORNER, LONG)
    facing = t1 > t0
    a, b = rest.owner[one[facing]], rest.owner[other[facing]]
    x0, y0 = p.x0[facing], p.y0[facing]
    t0, t1, d0, d1, length, ux, uy, long = (each[facing] for each in (t0, t1, d0, d1, length, ux, uy, long))
    slope = (d1 - d0) / (t1 - t0)
    low, high = np.maximum(t0, 0.0), np.minimum(t1, length)
    # Where the distance d0 + slope * (t - t0) lies between 0 and gap_width.
    with np.errstate(divide="ignore", invalid="ignore"):
        zero, full = t0 - d0 / slope, t0 + (gap_width - d0) / slope
    level = slope == 0
    outside = level & ((d0 <= 0) | (d0 >= gap_width))
    low = np.where(level, low, np.maximum(low, np.minimum(zero, full)))
    high = np.where(level, high, np.minimum(high, np.maximum(zero, full)))
    stretch = np.where(outside, 0.0, high - low)
    middle = (low + high) / 2
    width = d0 + slope * (middle - t0)
    hit = np.flatnonzero((stretch > 0) & (stretch >= long * width) & (width > max(tolerance, 0.0)))
    x = x0[hit] + ux[hit] * middle[hit] + uy[hit] * width[hit] / 2
    y = y0[hit] + uy[hit] * middle[hit] - ux[hit] * width[hit] / 2
    return np.minimum(a, b)[hit], np.maximum(a, b)[hit], x, y, (stretch * width)[hit], width[hit]


def _none() -> Pairs:
    rows, numbers = np.zeros(0, np.int64), np.zeros(0)
    return Pairs(rows, rows, numbers, numbers, numbers, numbers)


def _some(pairs: Pairs, at: npt.NDArray[Any]) -> Pairs:
    return Pairs(pairs.one[at], pairs.other[at], pairs.x[at], pairs.y[at], pairs.size[at], pairs.width[at])


def _joined_pairs(parts: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("one", "other", "x", "y", "size", "width")))
