"""The questions that are asked of whole WKB columns, answered by the compiled kernel or, where that is missing, by NumPy.

Both answer alike, byte for byte; `NAME` says which one is at work. All functions take pyarrow arrays (binary,
large_binary; chunked or sliced; nulls allowed), work without a Python object per row, and hold for any bytes: what is not WKB is
reported as such and never read beyond its end.

WKB: ISO 19125-1 and OGC 06-103r4 with the codes of ISO (1001, 2001, 3001) and EWKB, either byte order, members in their own order.

Not here: the two implementations (`compiled`, `fallback`), their values (`kernel_values`), bytes and hashes of attributes (`columnar`),
keys and digests (`identity`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import one_binary
from merestone.columnar.hashed_values import HashedColumn
from merestone.columnar.hashing import proved_columns
from merestone.geometry.kernel_values import (
    BAD_ORDINATE,
    CANONICAL_UNREADABLE,
    COLLAPSED,
    DROPPED_M,
    DROPPED_Z,
    INFINITE,
    NAN_XY,
    NAN_Z,
    RAW_GRID,
    SHORT_LINE,
    SHORT_RING,
    TRAILING_BYTES,
    UNCLOSED_RING,
    UNREADABLE,
    WRONG_TYPE,
    Grid,
    Scan,
    Shape,
)
from merestone.later import later

if TYPE_CHECKING:
    from merestone.geometry import fallback
else:
    fallback = later("merestone.geometry.fallback")

__all__ = [
    "BAD_ORDINATE",
    "CANONICAL_UNREADABLE",
    "COLLAPSED",
    "DROPPED_M",
    "DROPPED_Z",
    "INFINITE",
    "NAME",
    "NAN_XY",
    "NAN_Z",
    "SHORT_LINE",
    "SHORT_RING",
    "TRAILING_BYTES",
    "UNCLOSED_RING",
    "UNREADABLE",
    "WRONG_TYPE",
    "Grid",
    "Scan",
    "Shape",
    "canonical",
    "coordinates",
    "decimals",
    "digest",
    "encode",
    "hilbert",
    "is_reversed",
    "largest_move",
    "measures",
    "scan",
    "valid",
    "with_coordinates",
    "within",
]

at_work: Any
NAME: Literal["compiled", "numpy"]
try:
    from merestone.geometry import compiled as at_work
except ImportError:  # no C compiler when this was installed
    at_work, NAME = fallback, "numpy"
else:
    NAME = "compiled"

_AS_IS = Shape()
_MANY_ROWS = 100_000  # from here on the missing kernel is said


class MissingKernelWarning(RuntimeWarning):
    """So many rows are worked on without the compiled extensions that somebody waits for it."""


def path() -> str:
    """Which path answers, in words."""
    return (
        "compiled kernel"
        if compiled_at_work()
        else "no compiled kernel: NumPy, several times slower (see docs/how-to/run-without-a-compiler.md)"
    )


def warn_of_missing_kernel(rows: int) -> None:
    """Say once of a delivery of 100,000 rows or more that the compiled extensions are missing (MissingKernelWarning)."""
    if rows >= _MANY_ROWS and not compiled_at_work():
        warnings.warn(
            f"the compiled kernel is missing here: NumPy works on {rows:,} rows several times slower; see docs/how-to/run-without-a-compiler.md",
            MissingKernelWarning,
            stacklevel=2,
        )


def compiled_at_work() -> bool:
    """Whether both extensions answer: this one and that of `columnar.hashing`."""
    return NAME == hashing.NAME == "compiled"


def scan(wkb: pa.Array | pa.ChunkedArray) -> Scan:
    """What lies in each row: type, dimensions, emptiness, counts, bounds and what is wrong with the bytes."""
    return at_work.scan(one_binary(wkb))  # type: ignore[no-any-return]  # one of two modules


def decimals(wkb: pa.Array, bounds: tuple[float, float, float, float] | None = None) -> npt.NDArray[np.int64]:
    """How many ordinates need how many decimals: int64 (2, 17), for x and for y.

    Entry d counts the finite ordinates for which d is the least number of decimals that gives the double exactly; entry 16 counts those
    that need more than 15. The last vertex of a ring repeats its first and is not counted. With `bounds` (xmin, ymin, xmax, ymax) only
    vertices within count. Unreadable rows count nothing.
    """
    return at_work.decimals(one_binary(wkb), bounds)  # type: ignore[no-any-return]  # one of two modules


def measures(wkb: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Area and length in the plane of x and y, as GEOS measures them: float64 (n) each, in units of the coordinates, squared for the area.

    The length of an area is that of its rings. NaN for null, for what cannot be built (unreadable, an open ring) and for curves and surfaces.
    """
    return at_work.measures(one_binary(wkb))  # type: ignore[no-any-return]  # one of two modules


def valid(wkb: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether each geometry is valid (Simple Features, OGC 06-103r4 section 6.1), as GEOS judges it; bool (n).

    False for null, for what cannot be built and for curves and surfaces.
    """
    return at_work.valid(one_binary(wkb))  # type: ignore[no-any-return]  # one of two modules


def shapes(wkb: pa.Array) -> npt.NDArray[np.object_]:
    """Each row as a shapely geometry; None for a null and for what GEOS cannot build, curves among them."""
    return fallback.built(one_binary(wkb))


def encode(wkb: pa.Array | pa.ChunkedArray, grid: Grid, shape: Shape) -> pa.Array:
    """The bytes G of fingerprint layout 2 for each row (binary; null stays null; unreadable is 0x02 and the bytes as they are)."""
    return at_work.encode(one_binary(wkb), grid, shape)  # type: ignore[no-any-return]  # one of two modules


def canonical(wkb: pa.Array, grid: Grid, shape: Shape) -> tuple[pa.Array, npt.NDArray[np.uint8]]:
    """The stored form of each geometry, and flags (COLLAPSED, CANONICAL_UNREADABLE, BAD_ORDINATE, WRONG_TYPE, DROPPED_Z, DROPPED_M).

    ISO WKB, little-endian. Ordinates lie on the grid, consecutive repeats in lines and rings are gone, rings are closed, wound by the
    right-hand rule and start at their least vertex sequence; holes, parts and members stand in the order of their canonical bytes;
    single or multi as `shape` says. A ring or line that has collapsed is padded with its first vertex to what readers accept.
    Unreadable values, curves and surfaces come back as they were.
    """
    return at_work.canonical(one_binary(wkb), grid, shape)  # type: ignore[no-any-return]  # one of two modules


def digest(columns: Sequence[HashedColumn], geometry: pa.Array | pa.ChunkedArray | None, grid: Grid, shape: Shape, n: int) -> pa.Array:
    """The digest of fingerprint layout 2 of n rows: fixed_size_binary(16), never null.

    `columns` must be sorted by name; `geometry` is WKB on no particular grid, or None without a geometry column.
    """
    return at_work.digest(proved_columns(columns), None if geometry is None else one_binary(geometry), grid, shape, n)  # type: ignore[no-any-return]  # one of two modules


def coordinates(wkb: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Give x and y of all vertices of all rows, in the order of the bytes: float64 (m, 2), read-only.

    Null, empty and unreadable rows have none.
    """
    return at_work.coordinates(one_binary(wkb))  # type: ignore[no-any-return]  # one of two modules


def with_coordinates(wkb: pa.Array | pa.ChunkedArray, xy: npt.NDArray[np.float64]) -> pa.Array:
    """The same geometries at other positions: Z, M and structure stay. ISO WKB, little-endian; unreadable rows as they were.

    Raises:
        ValueError: `xy` has not one row for each that `coordinates` gives.
    """
    single = one_binary(wkb)
    expected = len(coordinates(single))
    if xy.shape != (expected, 2):
        raise ValueError(f"{expected} positions are needed, {xy.shape} are given")
    return at_work.with_coordinates(single, xy)  # type: ignore[no-any-return]  # one of two modules


def largest_move(before: pa.Array, after: pa.Array) -> npt.NDArray[np.float64]:
    """The size of each geometry change in the plane of x and y, in units of the coordinates; NaN where one side is null or empty.

    With equal structure it is the largest distance between counterparts (each part to the nearest of its structure that is free, rings
    in the rotation and direction for which it is least), otherwise the discrete Hausdorff distance of the vertices.
    For rings beyond 4,000 vertices not every rotation is tried: the value is then an upper bound.
    """
    one, other = _pair(before, after)
    return at_work.largest_move(one, other)  # type: ignore[no-any-return]  # one of two modules


def within(
    delivered: pa.Array,
    published: pa.Array,
    tolerance: float,
    *,
    z_tolerance: float | None = None,
    m_tolerance: float | None = None,
    shape: Shape = _AS_IS,
) -> npt.NDArray[np.bool_]:
    """Whether each delivered geometry is the published one but for noise (docs/spec/changes.md#classes, suppressed).

    Types (single and one-part multi are one), parts and rings agree one to one, and each delivered ordinate lies within the tolerance
    of its counterpart; rings in any rotation and direction. No published vertex goes without a counterpart; neighbours in the delivery
    may share one, since the grid drops repeats. `shape` says which dimensions count and whether lines have a direction.
    Two nulls are within, null and a geometry are not, unreadable values never are.
    """
    one, other = _pair(delivered, published)
    limits = (tolerance, tolerance if z_tolerance is None else z_tolerance, tolerance if m_tolerance is None else m_tolerance)
    return at_work.within(one, other, limits, shape)  # type: ignore[no-any-return]  # one of two modules


def is_reversed(before: pa.Array, after: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether two canonical (multi)lines are equal but for the direction of at least one of their lines."""
    one, other = _pair(before, after)
    either_way = Shape(direction="irrelevant")
    alike = pc.equal(encode(one, RAW_GRID, either_way), encode(other, RAW_GRID, either_way))
    same = pc.equal(encode(one, RAW_GRID, _AS_IS), encode(other, RAW_GRID, _AS_IS))
    reversed_only = pc.fill_null(pc.and_(alike, pc.invert(same)), False).to_numpy(zero_copy_only=False)
    kind = scan(one).kind
    return np.asarray(reversed_only & np.isin(kind, (2, 5)), np.bool_)


def hilbert(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    order: int = 16,
) -> npt.NDArray[np.uint64]:
    """Position of each point along the Hilbert curve of 2^order cells a side over `bounds` (xmin, ymin, xmax, ymax): uint64.

    Points outside count as on the edge; NaN gives the largest number, which sorts last.
    """
    return at_work.hilbert(x, y, bounds, order)  # type: ignore[no-any-return]  # one of two modules


def _pair(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    one, other = one_binary(one), one_binary(other)
    if len(one) != len(other):
        raise ValueError(f"two columns of one length are compared, not {len(one)} and {len(other)} rows")
    return one, other
