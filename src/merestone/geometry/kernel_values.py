"""The values that a kernel takes and gives: grid, wanted shape, the scan of a WKB column, flags.

Not here: the work itself (`kernel`, and behind it `compiled` or `fallback`), columns of attributes (`columnar.hashed_values`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from merestone.columnar.rounding import RAW_PRECISION

# Flags of `scan`, bits of a uint16.
NAN_XY = 1  # one of x and y is NaN (both NaN in a point is POINT EMPTY)
INFINITE = 2  # an infinite x, y, z or m
NAN_Z = 4
UNREADABLE = 8  # no WKB, or cut short; `kind` is 255
UNCLOSED_RING = 16  # first and last vertex differ in x or y
TRAILING_BYTES = 32  # bytes behind the geometry; they are ignored
SHORT_RING = 64  # 1 to 3 vertices as delivered, the closing one counted
SHORT_LINE = 128  # 1 vertex

# Flags of `canonical`, bits of a uint8.
COLLAPSED = 1  # after rounding, a line with less than 2 positions or a ring with less than 3
CANONICAL_UNREADABLE = 2  # the value comes back as it was
BAD_ORDINATE = 4  # NaN, infinite or beyond what the grid can hold; it keeps its own bits
WRONG_TYPE = 8  # the wanted type cannot be given; curves and surfaces come back as they were
DROPPED_Z = 16
DROPPED_M = 32

NULL_KIND, UNREADABLE_KIND = 0, 255

MOST_DECIMALS = 18

GeometryShape = Literal[
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geometry",
    "any",
    "multi",
]
ShapeDimensions = Literal["xy", "xyz", "xym", "xyzm", "as_is"]

Shapes = npt.NDArray[np.object_]
"""Shapely geometries, one a row; None where a row has none."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Decimals of x and y, of z and of m, in the units of the coordinates; negative for tens, hundreds and so on.

    None for z or m means the same as `precision`.
    """

    precision: int
    z_precision: int | None = None
    m_precision: int | None = None

    def __post_init__(self) -> None:
        for each in (self.precision, self.z, self.m):
            if abs(each) > MOST_DECIMALS and each != RAW_PRECISION:
                raise ValueError(f"a grid has -{MOST_DECIMALS} to {MOST_DECIMALS} decimals, not {each}")

    @property
    def z(self) -> int:
        """Decimals of z."""
        return self.precision if self.z_precision is None else self.z_precision

    @property
    def m(self) -> int:
        """Decimals of m."""
        return self.precision if self.m_precision is None else self.m_precision


RAW_GRID = Grid(RAW_PRECISION)  # each double as it is: for comparing values that already lie on a grid


@dataclass(frozen=True, slots=True)
class Shape:
    """What a contract wants of a geometry.

    `type` is the contract's geometry type; "geometry" and "any" leave it open (a single part is then stored as such), "multi" turns
    each geometry into its multi type. `dimensions` says which of Z and M are kept ("as_is": what is there).
    With `direction` "irrelevant" a line and its reverse are the same.
    """

    type: GeometryShape = "geometry"
    dimensions: ShapeDimensions = "as_is"
    direction: Literal["significant", "irrelevant"] = "significant"

    @property
    def keep_z(self) -> bool:
        """Whether Z counts."""
        return self.dimensions in ("xyz", "xyzm", "as_is")

    @property
    def keep_m(self) -> bool:
        """Whether M counts."""
        return self.dimensions in ("xym", "xyzm", "as_is")

    @property
    def either_way(self) -> bool:
        """Whether the direction of lines means nothing."""
        return self.direction == "irrelevant"


@dataclass(frozen=True, slots=True)
class Scan:
    """What lies in a WKB column of n rows, as NumPy arrays of length n.

    `kind`: 0 null, 1 to 7 the types of Simple Features, 8 to 12 curves, 15 to 17 surfaces, 255 unreadable. `parts` counts simple
    geometries that are not empty. `bounds` is (n, 4): xmin, ymin, xmax, ymax, NaN where there is none; NaN and infinite ordinates
    do not enter it.
    """

    kind: npt.NDArray[np.uint8]
    has_z: npt.NDArray[np.bool_]
    has_m: npt.NDArray[np.bool_]
    empty: npt.NDArray[np.bool_]
    parts: npt.NDArray[np.int32]
    vertices: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.float64]
    flags: npt.NDArray[np.uint16]

    @property
    def placed(self) -> npt.NDArray[np.bool_]:
        """(n,) the rows that have a position."""
        return placed(self.bounds)

    def take(self, rows: npt.NDArray[np.int64]) -> Scan:
        """What lies in some of the rows."""
        return Scan(*(getattr(self, each.name)[rows] for each in fields(self)))


def placed(bounds: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """The boxes (n, 4) with an extent on both axes, as those of a `Scan`: finite, or NaN at both ends of an axis."""
    return ~(np.isnan(bounds[:, 0]) | np.isnan(bounds[:, 1]))


def empty_scan(n: int) -> Scan:
    """Arrays for n rows, to be filled."""
    return Scan(
        kind=np.zeros(n, np.uint8),
        has_z=np.zeros(n, np.bool_),
        has_m=np.zeros(n, np.bool_),
        empty=np.zeros(n, np.bool_),
        parts=np.zeros(n, np.int32),
        vertices=np.zeros(n, np.int64),
        bounds=np.full((n, 4), np.nan),
        flags=np.zeros(n, np.uint16),
    )


WANTED: dict[str, int] = {
    "geometry": 0,
    "any": 0,
    "point": 1,
    "linestring": 2,
    "polygon": 3,
    "multipoint": 4,
    "multilinestring": 5,
    "multipolygon": 6,
    "geometrycollection": 7,
    "multi": 8,
}
