"""Faces of a coverage: the cycles that the edges left over form around ground that is covered otherwise than what lies beside it.

Not here: which edges are left (`topology_borders`), what the ground is covered by (`topology_cover`), gaps (`topology_gaps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from merestone.gate.topology_cover import Cover
from merestone.gate.topology_edges import Edges, Ints, Mask, cross_sign, numbered


@dataclass(frozen=True, slots=True)
class Chain:
    """The cycles of the edges that are left.

    `follows` is the edge after each, `label` the least edge of each one's cycle. Edges cross others only where their owner overlaps another.
    `torn` are edges after which the ground to the right is another: it is covered; their owner overlaps another.
    """

    edges: Edges
    follows: Ints
    label: Ints
    torn: Mask

    @classmethod
    def of(cls, edges: Edges) -> Chain:
        """Link the edges around each vertex so that the ground to their right stays the same."""
        n = len(edges)
        vertex, count = numbered(np.concatenate([edges.x0, edges.x1]), np.concatenate([edges.y0, edges.y1]))
        start, end = vertex[:n], vertex[n:]
        leaves = np.zeros(count, np.int64)
        leaves[start] = np.arange(n)
        follows, torn = leaves[end], np.zeros(n, np.bool_)
        knot = np.bincount(start, minlength=count) > 1  # as many arrive as leave
        if knot.any():
            _through_knots(edges, start, end, knot, follows, torn)
        return cls(edges, follows, _labels(follows), torn)

    def covered(self, cover: Cover, known: Ints) -> Ints:
        """Rows with an edge that another polygon covers, but for those known to overlap others: one edge stands for all around the same face.

        Edges of known rows may cross others and lead into another face. They cut a cycle into stretches.
        """
        apart = np.isin(self.edges.owner, known)
        stretch = _labels(np.where(apart[self.follows] | self.torn, np.arange(len(self.edges)), self.follows))
        first = np.unique(stretch[~apart])
        some = self.edges.take(first)
        point, _ = cover.covering((some.x0 + some.x1) / 2, (some.y0 + some.y1) / 2, some.owner)
        return np.unique(self.edges.owner[np.isin(stretch, first[point])])

    def clockwise(self) -> Ints:
        """The labels of cycles that run clockwise, and of any whose area is too small to tell."""
        x, y = self.edges.x0[self.label], self.edges.y0[self.label]
        ax, ay, bx, by = (
            (one - other).astype(np.float64)
            for one, other in ((self.edges.x0, x), (self.edges.y0, y), (self.edges.x1, x), (self.edges.y1, y))
        )
        names, at = np.unique(self.label, return_inverse=True)
        area, error = np.bincount(at, ax * by - ay * bx), np.bincount(at, np.abs(ax * by) + np.abs(ay * bx)) * 1e-12
        return names[area <= error]


def _through_knots(edges: Edges, start: Ints, end: Ints, knot: Mask, follows: Ints, torn: Mask) -> None:
    """Set which edge follows at vertices where more than one leaves: the next counter-clockwise from the way back.

    Where that one arrives as well, the ground between them is covered by its owner, and any that is free may follow.
    """
    out, into = np.flatnonzero(knot[start]), np.flatnonzero(knot[end])
    edge = np.concatenate([out, into])
    leaving = np.arange(len(edge)) < len(out)
    vertex = np.concatenate([start[out], end[into]])
    dx = np.concatenate([(edges.x1 - edges.x0)[out], (edges.x0 - edges.x1)[into]])
    dy = np.concatenate([(edges.y1 - edges.y0)[out], (edges.y0 - edges.y1)[into]])
    order = _by_angle(vertex, dx, dy)
    edge, leaving, vertex = edge[order], leaving[order], vertex[order]
    first = np.searchsorted(vertex, vertex)
    last = np.searchsorted(vertex, vertex, side="right") - 1
    after = np.where(np.arange(len(vertex)) == last, first, np.arange(len(vertex)) + 1)
    linked = np.flatnonzero(~leaving & leaving[after])
    follows[edge[linked]] = edge[after[linked]]
    stuck = np.setdiff1d(np.flatnonzero(~leaving), linked, assume_unique=True)
    free = np.setdiff1d(np.flatnonzero(leaving), after[linked], assume_unique=True)
    follows[edge[stuck]] = edge[free]  # both in the order of the vertices, and of each as many
    torn[edge[stuck]] = True


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
    """The least edge of those that follow each edge, itself among them: in a cycle the same for all."""
    label, jump = np.arange(len(follows)), follows
    while True:
        lower = np.minimum(label, label[jump])
        if np.array_equal(lower, label):
            return label
        label, jump = lower, jump[jump]
