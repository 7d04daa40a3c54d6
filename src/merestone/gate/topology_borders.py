"""Borders of a coverage: edges that neighbours share cancel each other, and of those that do not, where they cross, double or lack vertices.

Not here: what the edges that are left say about overlaps and gaps (`topology_faces`, `topology_gaps`), pairs of edges near each other
(`topology_edges`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from merestone.gate.topology_edges import AREAS, Edges, Ints, Mask, edges_of, grouped, joined, near_pairs, numbered, to_grid, turn
from merestone.gate.topology_pairs import Pairs
from merestone.geometry import kernel

_STRIP = 1 << 19  # vertices that are looked at together, more or less


@dataclass(frozen=True, slots=True)
class Noded:
    """Edges that meet others at their ends only, but for proper crossings.

    Args:
        edges: pieces of edges that were split where vertices of others lie on them, and edges that were not.
        mismatches: borders that two features share, but not the vertices along them.
        crossing: rows whose edges cross others' properly (they overlap).
        doubled: rows with an edge or a piece that another feature has in the same direction (they overlap).
    """

    edges: Edges
    mismatches: Pairs
    crossing: Ints
    doubled: Ints


# --- equal edges -----------------------------------------------------------------------------------------------------------------------


def _ends(edges: Edges) -> tuple[Ints, Ints, Ints, Ints]:
    """The lesser and the greater end of each edge (x, y, x, y): equal for equal edges, whatever their directions."""
    ahead = edges.forward
    return (
        np.where(ahead, edges.x0, edges.x1),
        np.where(ahead, edges.y0, edges.y1),
        np.where(ahead, edges.x1, edges.x0),
        np.where(ahead, edges.y1, edges.y0),
    )


@dataclass(frozen=True, slots=True)
class _Groups:
    """Edges with the same ends: `order` brings them together, `begins` says where in it each group begins, `size` how many it has."""

    order: Ints
    begins: Ints
    size: Ints

    @classmethod
    def of(cls, edges: Edges) -> _Groups:
        order, begins = grouped(*_ends(edges))
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


def outline(wkb: pa.Array | pa.ChunkedArray, precision: int) -> Edges:
    """The edges of a column of polygons that have no partner of their own in the other direction.

    Equal edges have equal places, so strips of the ground are looked at one after the other, and only a strip's edges are held at a time.

    Args:
        wkb: pyarrow binary array of polygons in canonical form.
        precision: decimals of the grid.
    """
    scan = kernel.scan(wkb)
    rows = np.flatnonzero(np.isin(scan.kind, AREAS) & ~scan.empty)
    west, east = (to_grid(scan.bounds[rows, side], precision) for side in (0, 2))
    limits = _limits(west, east, scan.vertices[rows])
    parts, lines = [], 0
    for low, high in pairwise(limits):
        mine = rows[(west < high) & (east >= low)]
        edges = edges_of(wkb.take(pa.array(mine)), precision, areas=True)
        begin = np.minimum(edges.x0, edges.x1)
        edges = edges.take((begin >= low) & (begin < high))
        left = edges.take(uncancelled(edges))
        parts.append(Edges(left.x0, left.y0, left.x1, left.y1, mine[left.owner], left.line + lines))
        lines += int(edges.line.max(initial=-1)) + 1
    return joined(parts)


def _limits(west: Ints, east: Ints, vertices: Ints) -> list[int]:
    """Where strips of about `_STRIP` vertices begin in x, and where the last one ends; fewer where polygons would be read twice on average."""
    order = np.argsort(west)
    passed = np.cumsum(vertices[order])
    count = -(-int(passed[-1]) // _STRIP) if len(west) else 1
    ends = [int(west.min(initial=0)), int(east.max(initial=0)) + 1]
    while count > 1:
        inner = np.unique(west[order[np.searchsorted(passed, passed[-1] * np.arange(1, count) // count)]])
        read = np.searchsorted(inner, east, side="right") - np.searchsorted(inner, west, side="right") + 1
        if int((read * vertices).sum()) <= 2 * int(passed[-1]):
            return sorted({*ends, *inner.tolist()})
        count //= 2
    return ends


def uncancelled(edges: Edges) -> Ints:
    """The edges that have no partner of their own in the other direction (ascending).

    Where more than two edges meet, all of them stay for now: which of them are partners is not decided by their order.
    """
    if not len(edges):
        return np.zeros(0, np.int64)
    groups, ahead = _Groups.of(edges), edges.forward
    two = groups.begins[groups.size == 2]
    stays = groups.size != 2
    stays[groups.size == 2] = ahead[groups.order[two]] == ahead[groups.order[two + 1]]
    return np.sort(groups.members(np.flatnonzero(stays))[0])


def _net(edges: Edges) -> Ints:
    """What is left (ascending) when each edge cancels one in the other direction."""
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


# --- edges near each other -------------------------------------------------------------------------------------------------------------


def noded(edges: Edges) -> Noded:
    """Split edges where vertices of others lie on them; of the pieces and the other edges, equal ones in opposite directions cancel."""
    at, x, y, crossing = _touched(edges)
    split = np.unique(at)
    whole = np.setdiff1d(np.arange(len(edges)), split, assume_unique=True)
    cut = edges.take(split)
    # Ends and the points between them, along each edge: on a line, the order by x and y is the order along it.
    edge = np.concatenate([np.arange(len(split)), np.searchsorted(split, at), np.arange(len(split))])
    px, py = np.concatenate([cut.x0, x, cut.x1]), np.concatenate([cut.y0, y, cut.y1])
    sign = np.where(cut.forward, 1, -1)[edge]
    order = np.lexsort((py * sign, px * sign, edge))
    edge, px, py = edge[order], px[order], py[order]
    next_one = np.flatnonzero((edge[1:] == edge[:-1]) & ((px[1:] != px[:-1]) | (py[1:] != py[:-1])))
    of = edge[next_one]
    pieces = Edges(px[next_one], py[next_one], px[next_one + 1], py[next_one + 1], cut.owner[of], cut.line[of])
    both = joined([pieces, edges.take(whole)])
    one, other = _Groups.of(both).pairs()
    opposite = both.forward[one] != both.forward[other]
    doubled = both.owner[np.concatenate([one[~opposite], other[~opposite]])]
    # Pieces of edges that are equal as a whole show no fault of theirs: a third feature's vertex has split both.
    unsplit = numbered(*_ends(edges))[0][np.concatenate([split[of], whole])]
    matched = opposite & (both.owner[one] != both.owner[other]) & (unsplit[one] != unsplit[other])
    return Noded(both.take(_net(both)), _mismatches(both, one[matched], other[matched]), crossing, doubled)


def _touched(edges: Edges) -> tuple[Ints, Ints, Ints, Ints]:
    """Where vertices lie on edges of other rings (edge, x, y), and the rows whose edges cross properly."""
    none = np.zeros(0, np.int64)
    at, xs, ys, crossing = [none], [none], [none], [none]
    for one, other in near_pairs(edges):
        p, q = edges.take(one), edges.take(other)
        sides = (
            turn(p.x0, p.y0, p.x1, p.y1, q.x0, q.y0),
            turn(p.x0, p.y0, p.x1, p.y1, q.x1, q.y1),
            turn(q.x0, q.y0, q.x1, q.y1, p.x0, p.y0),
            turn(q.x0, q.y0, q.x1, q.y1, p.x1, p.y1),
        )
        cross = np.flatnonzero((sides[0] * sides[1] < 0) & (sides[2] * sides[3] < 0))
        crossing += [p.owner[cross], q.owner[cross]]
        for side, edge, line, x, y in (
            (sides[0], one, p, q.x0, q.y0),
            (sides[1], one, p, q.x1, q.y1),
            (sides[2], other, q, p.x0, p.y0),
            (sides[3], other, q, p.x1, p.y1),
        ):
            on = np.flatnonzero((side == 0) & _strictly_between(line, x, y))
            at.append(edge[on])
            xs.append(x[on])
            ys.append(y[on])
    return np.concatenate(at), np.concatenate(xs), np.concatenate(ys), np.unique(np.concatenate(crossing))


def _strictly_between(edges: Edges, x: Ints, y: Ints) -> Mask:
    """Whether points on the lines of edges lie between their ends, and on neither."""
    inside_x = (np.minimum(edges.x0, edges.x1) <= x) & (x <= np.maximum(edges.x0, edges.x1))
    inside_y = (np.minimum(edges.y0, edges.y1) <= y) & (y <= np.maximum(edges.y0, edges.y1))
    end = ((x == edges.x0) & (y == edges.y0)) | ((x == edges.x1) & (y == edges.y1))
    inside: Mask = inside_x & inside_y & ~end
    return inside


def _mismatches(edges: Edges, here: Ints, there: Ints) -> Pairs:
    """One fault for each pair of features, at the middle of the longest stretch of border that they share without its vertices."""
    a, b = edges.owner[here], edges.owner[there]
    length = np.hypot((edges.x1 - edges.x0)[here].astype(float), (edges.y1 - edges.y0)[here].astype(float))
    x, y = (edges.x0[here] + edges.x1[here]) / 2, (edges.y0[here] + edges.y1[here]) / 2
    return Pairs(np.minimum(a, b), np.maximum(a, b), x, y, length, np.zeros(len(a))).per_pair()
