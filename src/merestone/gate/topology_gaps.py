"""Ground that a coverage leaves uncovered: enclosed by it, or in open strips between two of its features.

Not here: the edges that bound it (`topology_borders`, `topology_faces`).
"""

from __future__ import annotations

import numpy as np
import shapely

from merestone.gate.topology_cover import Cover, no_wider, widths
from merestone.gate.topology_edges import Edges, Floats, Ints, box_tree, diagonals, near_pairs
from merestone.gate.topology_faces import Chain
from merestone.gate.topology_pairs import Pairs
from merestone.geometry.kernel_values import Shapes

LONG = 3.0
"""How many times longer than wide an open strip of uncovered ground is to be a gap between its neighbours, and not the end of a street."""
_LONG_CORNER = 20.0
_DUST = 1e-6  # square grid units: what floating point leaves of two equal outlines with corners off the grid


def gaps_of(chain: Chain, cover: Cover, spoilt: Ints, gap_width: float | None, tolerance: float) -> Pairs:
    """Uncovered ground: enclosed, and open where a width is named.

    Args:
        chain: the cycles of the edges that are left.
        cover: all polygons.
        spoilt: rows that may overlap others.
        gap_width: in grid units, as for `check_planar`.
        tolerance: in grid units.
    """
    holes = _holes(chain, cover, spoilt)
    if gap_width is not None:
        holes = holes[no_wider(holes, gap_width)]
    if tolerance > 0:
        holes = holes[~no_wider(holes, tolerance)]
    where, beside = shapely.point_on_surface(holes), _beside(chain.edges, holes)
    found = Pairs(beside[:, 0], beside[:, 1], shapely.get_x(where), shapely.get_y(where), shapely.area(holes), widths(holes))
    if gap_width is None:
        return found
    strips = _strips(chain.edges, gap_width, tolerance)
    if len(holes) and len(strips):
        inside = shapely.STRtree(holes).query(shapely.points(strips.x, strips.y), predicate="within")[0]
        strips = strips.some(np.setdiff1d(np.arange(len(strips)), inside))
    return Pairs.joined([found, strips])


# --- enclosed --------------------------------------------------------------------------------------------------------------------------


def _holes(chain: Chain, cover: Cover, spoilt: Ints) -> Shapes:
    """Enclosed ground that nothing covers: polygons in grid units.

    A hole has a clockwise cycle around it, or several that take part in overlaps and say nothing by themselves. Edges in the boxes of such
    cycles, and of those that touch, bound its whole face; a single point decides whether that is covered.
    """
    around = np.isin(chain.label, np.concatenate([chain.clockwise(), chain.label[np.isin(chain.edges.owner, spoilt)]]))
    if not around.any():
        return np.zeros(0, dtype=object)
    boxes = _boxes(chain.edges.take(around), chain.label[around])
    boxes = shapely.bounds(shapely.get_parts(shapely.union_all(shapely.box(*boxes.T))))
    lines = _lines(chain.edges)
    near = lines[np.unique(box_tree(boxes).query(lines)[0])]
    faces = shapely.get_parts(
        shapely.polygonize(shapely.get_parts(shapely.union_all(near)))
    )  # edges of polygons that overlap cross each other
    faces = faces[shapely.area(faces) > _DUST]
    where = shapely.point_on_surface(faces)
    covered, _ = cover.covering(shapely.get_x(where), shapely.get_y(where), np.full(len(faces), -1))
    return np.delete(faces, covered)


def _boxes(edges: Edges, group: Ints) -> Floats:
    """The box (k, 4) around each group of edges, in the order of the groups."""
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.concatenate(([True], np.diff(group[order]) != 0)))
    ends = ((edges.x0, edges.x1), (edges.y0, edges.y1))
    low = (np.minimum.reduceat(np.minimum(*each)[order], begins) for each in ends)
    high = (np.maximum.reduceat(np.maximum(*each)[order], begins) for each in ends)
    return np.column_stack([*low, *high]).astype(float)


def _lines(edges: Edges) -> Shapes:
    return diagonals(edges.x0, edges.y0, edges.x1, edges.y1)


def _beside(rest: Edges, holes: Shapes) -> Ints:
    """The two features with the most outline around each hole (k, 2), the lesser first; -1 in place of the second where one alone encloses it."""
    if not len(holes):
        return np.zeros((0, 2), np.int64)
    rings, of = shapely.get_rings(holes, return_index=True)
    xy, ring = shapely.get_coordinates(rings, return_index=True)
    at = np.flatnonzero(ring[1:] == ring[:-1])
    hole, length = of[ring[at]], np.hypot(*(xy[at + 1] - xy[at]).T)
    edge = shapely.STRtree(_lines(rest)).query_nearest(shapely.points((xy[at] + xy[at + 1]) / 2), all_matches=False)[1]
    share, into = np.unique(np.column_stack([hole, rest.owner[edge]]), axis=0, return_inverse=True)
    order = np.lexsort((-np.bincount(into.ravel(), length), share[:, 0]))
    hole, owner = share[order].T
    first = np.searchsorted(hole, np.arange(len(holes)))
    second = np.minimum(first + 1, len(hole) - 1)
    other = np.where((second > first) & (hole[second] == hole[first]), owner[second], -1)
    one = owner[first]
    return np.column_stack([np.where(other < 0, one, np.minimum(one, other)), np.where(other < 0, -1, np.maximum(one, other))])


# --- open ------------------------------------------------------------------------------------------------------------------------------


def _strips(rest: Edges, gap_width: float, tolerance: float) -> Pairs:
    """Open strips of uncovered ground between two features.

    Edges that face each other, nearer than `gap_width`, over a stretch that is `LONG` times longer than wide.
    """
    return Pairs.joined([_facing(rest, one, other, gap_width, tolerance) for one, other in near_pairs(rest, gap_width)]).per_pair()


def _facing(rest: Edges, one: Ints, other: Ints, gap_width: float, tolerance: float) -> Pairs:
    """The strips between pairs of edges of different features."""
    apart = rest.owner[one] != rest.owner[other]
    one, other = one[apart], other[apart]
    p, q = rest.take(one), rest.take(other)
    ux, uy = (p.x1 - p.x0).astype(float), (p.y1 - p.y0).astype(float)
    length = np.hypot(ux, uy)
    ux, uy = ux / length, uy / length
    # The ends of q along p, and how far to the right of p they lie; q has to run the other way; both see the ground between.
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
    return Pairs(np.minimum(a, b)[hit], np.maximum(a, b)[hit], x, y, (stretch * width)[hit], width[hit])
