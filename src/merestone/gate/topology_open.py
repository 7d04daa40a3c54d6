"""Whether ground that was open stays open when some polygons of a coverage are exchanged for others, judged by what lies near them.

Not here: gaps that lie near the change as a whole (`topology_gaps`), what is judged near a change (`topology`).

Before the change all uncovered ground was no gap: it led out of the coverage or, where a width is named, a circle of that width fitted into it.
Windows around the change hold all ground that changes. A window's ground that was open and connected, and still is but for pieces that end
within the window, can be crossed as before; so ground outside of the windows is connected as before, too, and none of it is cut off.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import shapely

from merestone.gate.topology_cover import no_wider
from merestone.gate.topology_edges import Edges, Floats, Ints, Mask, diagonals, shapes_on_grid
from merestone.geometry.kernel_values import Shapes

_INTERIORS_MEET = "T********"
_CLEARLY = 1.05  # how much wider than the width named ground has to be, since circles are drawn with corners


def stays_open(
    leaving: pa.Array, arriving: pa.Array, staying: pa.Array, changes: Edges, boxes: Floats, precision: int, gap_width: float | None
) -> bool:
    """Whether no ground that reaches beyond the change has become a gap; False where nothing near by proves it.

    Args:
        leaving: pyarrow binary array of polygons in canonical form that are gone.
        arriving: those that are new. They overlap nothing.
        staying: all others that come nearer to the first two than a grid unit beyond `gap_width`.
        changes: the edges of the outline that come or go.
        boxes: (k, 4) boxes around `leaving` and `arriving`, in units of the CRS.
        precision: decimals of the grid.
        gap_width: as for `check_planar`.
    """
    scale = 10.0**precision
    margin = 0.5 + (0.0 if gap_width is None else gap_width * scale)
    windows = shapely.get_parts(shapely.union_all(shapely.box(*(np.rint(boxes * scale) + np.array([-margin, -margin, margin, margin])).T)))
    touched = shapely.STRtree(windows).query(diagonals(changes.x0, changes.y0, changes.x1, changes.y1), predicate="intersects")[1]
    window = shapely.union_all(windows[np.unique(touched)])
    try:
        before, after = (_uncovered(window, pa.concat_arrays([each, staying]), precision) for each in (leaving, arriving))
    except shapely.errors.GEOSException:  # where the neighbourhood does not decide, the whole does
        return False
    old, new = shapely.STRtree(after).query(before, predicate="intersects")
    meet = np.array(shapely.relate_pattern(before[old], after[new], _INTERIORS_MEET), np.bool_)
    old, new = old[meet], new[meet]
    same = _alone(old) & _alone(new) & np.array(shapely.equals(before[old], after[new]), np.bool_)
    rim = shapely.boundary(window)
    led_out, leads_out = (np.array(shapely.intersects(each, rim), np.bool_) for each in (before, after))
    out = ~same & led_out[old] & leads_out[new]
    parted = not _alone(old[out]).all()
    return not parted and (gap_width is None or not no_wider(after[new[out]], gap_width * scale * _CLEARLY).any())


def _uncovered(window: shapely.Geometry, wkb: pa.Array | pa.ChunkedArray, precision: int) -> Shapes:
    """The connected pieces of a window that no polygon covers, in grid units."""
    shapes = shapes_on_grid(wkb, precision)
    near = shapes[np.unique(shapely.STRtree(shapes).query(window))]
    left = shapely.get_parts(shapely.difference(window, shapely.union_all(near)))
    pieces: Shapes = left[shapely.get_dimensions(left) == 2]
    return pieces


def _alone(values: Ints) -> Mask:
    """Which values stand only once."""
    _, at, count = np.unique(values, return_inverse=True, return_counts=True)
    alone: Mask = count[at] == 1
    return alone
