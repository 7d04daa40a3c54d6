"""How large one unit of a reference system is on the ground.

Not here: units of values in columns (`units`), where a system is used (`area`).
"""

from __future__ import annotations

import math
from typing import Final

from pyproj import CRS

from merestone.reference.systems import horizontal

METRES_PER_DEGREE: Final = 111_320.0
"""A degree on the ground, for rules that compare grids (docs/spec/fingerprint.md#two-digests)."""


def metres_per_unit(crs: CRS) -> float:
    """Metres on the ground for one unit of x and y; a degree counts as 111,320 m."""
    part = horizontal(crs)
    if not part.axis_info:
        return 1.0
    factor = float(part.axis_info[0].unit_conversion_factor)
    return METRES_PER_DEGREE * degrees_per_unit(part) if part.is_geographic else factor


def degrees_per_unit(crs: CRS) -> float:
    """Degrees in one unit of a geographic system: 1, or 0.9 for grads."""
    return float(f"{math.degrees(horizontal(crs).axis_info[0].unit_conversion_factor):.12g}")


def unit_name(crs: CRS) -> str:
    """The unit of x and y as people write it: m, degree, US survey foot."""
    name = str(horizontal(crs).axis_info[0].unit_name)
    return "m" if name == "metre" else name
