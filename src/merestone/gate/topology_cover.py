"""What covers what: the polygons of a coverage, asked which of them lie somewhere and which share ground.

Not here: which polygons are worth asking about (`topology_borders`, `topology_faces`), ground that nothing covers (`topology_gaps`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import shapely

from merestone.gate.topology_edges import AREAS, Floats, Ints, Mask, box_tree, diagonals, shapes_on_grid
from merestone.gate.topology_pairs import Pairs
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Shapes

_INTERIORS_MEET = "T********"
_LOOKED_UP = 1 << 16  # polygons whose neighbours are looked up at a time


class Cover:
    """All polygons, to be asked what lies where; geometries are built only for those that are asked about."""

    def __init__(self, wkb: pa.Array | pa.ChunkedArray, precision: int) -> None:
        self._wkb, self._precision = wkb, precision
        scan = kernel.scan(wkb)
        self.rows = np.flatnonzero(np.isin(scan.kind, AREAS) & ~scan.empty)
        self.boxes = np.rint(scan.bounds[self.rows] * 10.0**precision)
        self._tree: shapely.STRtree | None = None

    @property
    def tree(self) -> shapely.STRtree:
        """A tree over the boxes of all polygons."""
        if self._tree is None:
            self._tree = box_tree(self.boxes)
        return self._tree

    def shapes(self, rows: Ints) -> Shapes:
        """Geometries in grid units."""
        return shapes_on_grid(self._wkb.take(pa.array(rows)), self._precision)

    def boxes_of(self, rows: Ints) -> Floats:
        """The boxes (k, 4) of some polygons in grid units."""
        out: Floats = self.boxes[np.searchsorted(self.rows, rows)]
        return out

    def in_boxes(self, boxes: Floats) -> tuple[Ints, Ints]:
        """Which polygons' boxes meet which boxes: places in `boxes`, and rows."""
        if len(boxes) * len(self.rows) <= 1 << 26 and self._tree is None:
            hits = [
                np.flatnonzero(
                    (self.boxes[:, 0] <= east) & (self.boxes[:, 2] >= west) & (self.boxes[:, 1] <= north) & (self.boxes[:, 3] >= south)
                )
                for west, south, east, north in boxes.tolist()
            ]
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


def overlaps_of(cover: Cover, seeds: Ints, width: float) -> Pairs:
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
            counts = ~no_wider(shared, width) if width > 0 else np.ones(len(shared), np.bool_)
            found.append(_measured(one[counts], rows[counts], shared[counts]))
    pairs = Pairs.joined(found)
    _, first = np.unique(np.column_stack([pairs.one, pairs.other]), axis=0, return_index=True)  # looked up from either side
    return pairs.some(first)


def _measured(one: Ints, other: Ints, shared: Shapes) -> Pairs:
    where = shapely.point_on_surface(shared)
    area = shapely.area(shared)
    empty = shapely.is_empty(where)
    where = np.where(empty, shapely.centroid(shared), where)
    return Pairs(np.minimum(one, other), np.maximum(one, other), shapely.get_x(where), shapely.get_y(where), area, widths(shared))


def widths(shapes: Shapes) -> Floats:
    """The diameter of the largest circle that fits into each geometry, as far as twice its area over its outline can tell: never too large."""
    length = shapely.length(shapes)
    out: Floats = np.divide(2 * shapely.area(shapes), length, out=np.zeros(len(shapes)), where=length > 0)
    return out


def no_wider(shapes: Shapes, width: float) -> Mask:
    """Whether no circle of this diameter fits into each."""
    out: Mask = np.zeros(len(shapes), np.bool_)
    slim = np.flatnonzero(widths(shapes) < width)  # half of a circle's width in an outline is area over length at least
    out[slim] = shapely.is_empty(shapely.buffer(shapes[slim], -width / 2, quad_segs=16))
    return out
