"""Where a reference system is used, and boxes moved from one system to another.

Not here: where the rows of a delivery lie (`gate.whereabouts`). Boxes are x, y minimum, then maximum; across the antimeridian the maximum
of x is beyond 180 in degrees.
"""

from __future__ import annotations

import math
from functools import lru_cache

from pyproj import Transformer
from pyproj.exceptions import CRSError, ProjError

from merestone.reference.ground import degrees_per_unit, metres_per_unit
from merestone.reference.systems import horizontal, system

Box = tuple[float, float, float, float]
BEYOND_M = 1e8
"""No projection of the Earth reaches so far, in metres; where a formula diverges (Mercator at a pole) PROJ returns such numbers."""
_HALF_GIRTH_M = 2.1e7  # half the circumference of the Earth: what is assumed of a projection without a known area


@lru_cache(maxsize=64)
def degrees_of_use(crs: str) -> Box | None:
    """The area of use in degrees: west, south, east, north; None where the EPSG dataset does not say."""
    area = system(crs).area_of_use
    if area is None:
        return None
    return area.west, area.south, area.east + (360.0 if area.east < area.west else 0.0), area.north


@lru_cache(maxsize=64)
def area_of_use(crs: str) -> Box | None:
    """The area of use in the system's own units; None where the EPSG dataset does not say, or the projection has no value there."""
    part, degrees = horizontal(system(crs)), degrees_of_use(crs)
    if degrees is None or part.geodetic_crs is None:
        return None
    if part.is_geographic:
        size = degrees_per_unit(part)
        return degrees[0] / size, degrees[1] / size, degrees[2] / size, degrees[3] / size
    west, south, east, north = degrees
    try:
        into = Transformer.from_crs(part.geodetic_crs.to_2d(), part.to_2d(), always_xy=True)
        box = into.transform_bounds(west, south, east - 360.0 if east > 180.0 else east, north)
    except ProjError:  # a projection without a place for its own area of use: the area says nothing then
        return None
    unit = metres_per_unit(part)
    known = all(math.isfinite(each) and abs(each) * unit < BEYOND_M for each in box)
    return (float(box[0]), float(box[1]), float(box[2]), float(box[3])) if known else None


def largest_ordinate(crs: str) -> float:
    """The largest absolute ordinate in the area of use, in the system's own units, for the range rule of grids.

    In a geographic system it is half a turn wherever that is used; a projected one without a known area may reach half around the Earth.
    """
    part = horizontal(system(crs))
    if part.is_geographic:
        return 180.0 / degrees_per_unit(part)
    box = area_of_use(crs)
    return _HALF_GIRTH_M / metres_per_unit(part) if box is None else max(abs(each) for each in box)


def box_in(box: Box, crs: str, other: str) -> Box | None:
    """The box around a box in another system, x before y; None where it has no place there.

    A box that crosses the antimeridian of a geographic system (west above east) is moved as it is.
    """
    try:
        found = Transformer.from_crs(system(crs), system(other), always_xy=True).transform_bounds(*box)
    except (CRSError, ProjError):  # no way from one to the other: the box has no place there
        return None
    return (float(found[0]), float(found[1]), float(found[2]), float(found[3])) if all(map(math.isfinite, found)) else None
