"""The questions that are asked of whole WKB columns, answered by the compiled kernel or, where that is missing, by NumPy.

Both answer alike, byte for byte; `NAME` says which one is at work, `use` chooses. All functions take pyarrow arrays (binary,
large_binary; chunked or sliced; nulls allowed), work without a Python object per row, and hold for any bytes: what is no WKB is
reported as such and never read beyond its end.

WKB: ISO 19125-1 and OGC 06-103r4 with the codes of ISO (1001, 2001, 3001) and EWKB, either byte order, members in their own order.

Not here: the two implementations (`compiled`, `fallback`), their values (`form`), keys and attributes (`identity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.geometry import fallback
from merestone.geometry.form import (
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
    Column,
    Entry,
    Grid,
    Piece,
    Scan,
    Shape,
)

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
    "Column",
    "Entry",
    "Grid",
    "Piece",
    "Scan",
    "Shape",
    "attributes",
    "available",
    "blake2b16",
    "canonical",
    "coordinates",
    "decimals",
    "digest",
    "elements",
    "encode",
    "hashed",
    "hilbert",
    "is_reversed",
    "joined",
    "largest_move",
    "measures",
    "scan",
    "use",
    "valid",
    "with_coordinates",
    "within",
]

try:
    from merestone.geometry import compiled
except ImportError:  # no C compiler when this was installed
    _implementations: dict[str, Any] = {"numpy": fallback}
else:
    _implementations = {"compiled": compiled, "numpy": fallback}

NAME: Literal["compiled", "numpy"] = "compiled" if "compiled" in _implementations else "numpy"
_AS_IS = Shape()


def use(name: Literal["compiled", "numpy"]) -> None:
    """Answer with this implementation from now on, in the whole process.

    Raises:
        ValueError: "compiled" is asked for and was not built.
    """
    global NAME  # noqa: PLW0603 - one switch for the process, as NAME is documented
    if name not in _implementations:
        raise ValueError(f"the kernel {name!r} is not here; there is {', '.join(_implementations)}")
    NAME = name


def available() -> tuple[str, ...]:
    """The names that `use` takes on this machine."""
    return tuple(_implementations)


def _one(wkb: Any) -> Any:
    """A single array of binary or large_binary."""
    if isinstance(wkb, pa.ChunkedArray):
        wkb = wkb.combine_chunks() if wkb.num_chunks != 1 else wkb.chunk(0)
    if isinstance(wkb, pa.ChunkedArray):  # more than one array can hold
        wkb = wkb.cast(pa.large_binary()).combine_chunks()
    if isinstance(wkb, pa.ExtensionArray):
        wkb = wkb.storage
    kind = wkb.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return wkb
    if pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return wkb.cast(pa.binary())
    raise TypeError(f"geometry is a column of WKB in binary, not {kind}")


def scan(wkb: Any) -> Scan:
    """What lies in each row: type, dimensions, emptiness, counts, bounds and what is wrong with the bytes."""
    return _implementation().scan(_one(wkb))  # type: ignore[no-any-return]  # one of two modules, chosen at run time


def decimals(wkb: Any, bounds: tuple[float, float, float, float] | None = None) -> npt.NDArray[np.int64]:
    """How many ordinates need how many decimals: int64 (2, 17), for x and for y.

    Entry d counts the finite ordinates for which d is the least number of decimals that gives the double exactly; entry 16 counts those
    that need more than 15. The last vertex of a ring repeats its first and is not counted. With `bounds` (xmin, ymin, xmax, ymax) only
    vertices within count. Unreadable rows count nothing.
    """
    return _implementation().decimals(_one(wkb), bounds)  # type: ignore[no-any-return]  # one of two modules


def measures(wkb: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Area and length in the plane of x and y, as GEOS measures them: float64 (n) each, in units of the coordinates, squared for the area.

    The length of an area is that of its rings. NaN for null, for what cannot be built (unreadable, an open ring) and for curves and surfaces.
    """
    return _implementation().measures(_one(wkb))  # type: ignore[no-any-return]  # one of two modules


def valid(wkb: Any) -> npt.NDArray[np.bool_]:
    """Whether each geometry is valid (Simple Features, OGC 06-103r4 section 6.1), as GEOS judges it; bool (n).

    False for null, for what cannot be built and for curves and surfaces.
    """
    return _implementation().valid(_one(wkb))  # type: ignore[no-any-return]  # one of two modules, chosen at run time


def shapes(wkb: Any) -> npt.NDArray[np.object_]:
    """Each row as a shapely geometry; None for a null and for what GEOS cannot build, curves among them."""
    return fallback.built(_one(wkb))


def encode(wkb: Any, grid: Grid, shape: Shape) -> Any:
    """The bytes G of fingerprint layout 1 for each row (binary; null stays null; unreadable is 0x02 and the bytes as they are)."""
    return _implementation().encode(_one(wkb), grid, shape)


def canonical(wkb: Any, grid: Grid, shape: Shape) -> tuple[Any, npt.NDArray[np.uint8]]:
    """The stored form of each geometry, and flags (COLLAPSED, CANONICAL_UNREADABLE, BAD_ORDINATE, WRONG_TYPE, DROPPED_Z, DROPPED_M).

    ISO WKB, little-endian. Ordinates lie on the grid, consecutive repeats in lines and rings are gone, rings are closed, wound by the
    right-hand rule and start at their least vertex sequence; holes, parts and members stand in the order of their canonical bytes;
    single or multi as `shape` says. A ring or line that has collapsed is padded with its first vertex to what readers accept.
    Unreadable values, curves and surfaces come back as they were.
    """
    return _implementation().canonical(_one(wkb), grid, shape)  # type: ignore[no-any-return]  # one of two modules


def digest(columns: Sequence[Column], geometry: Any | None, grid: Grid, shape: Shape, n: int) -> Any:
    """The digest of fingerprint layout 1 of n rows: fixed_size_binary(16), never null.

    `columns` must be sorted by name; `geometry` is WKB on no particular grid, or None where there is no geometry column.
    """
    return _implementation().digest(columns, None if geometry is None else _one(geometry), grid, shape, n)


def attributes(columns: Sequence[Column], n: int) -> Any:
    """The attribute section of n rows, which is also the value of a struct: binary."""
    return _implementation().attributes(columns, n)


def elements(column: Column) -> Any:
    """Each value as an element of a list: tag, length and value, or a zero byte for null. Binary, without nulls."""
    return _implementation().elements(column)


def blake2b16(values: Any) -> Any:
    """BLAKE2b with 16 bytes of each binary value: fixed_size_binary(16), null for null (RFC 7693)."""
    return _implementation().blake2b16(_one(values))


def joined(pieces: Sequence[Piece], n: int) -> Any:
    """The pieces of each of n rows, one after the other: binary, never null."""
    return _implementation().joined(_pieces(pieces), n)


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """BLAKE2b with `size` bytes (16 or 32) of what `joined` gives: uint8 of shape (n, size), without laying it out first (RFC 7693)."""
    return _implementation().hashed(_pieces(pieces), n, size)  # type: ignore[no-any-return]  # one of two modules


def coordinates(wkb: Any) -> npt.NDArray[np.float64]:
    """Give x and y of all vertices of all rows, in the order of the bytes: float64 (m, 2), read-only.

    Null, empty and unreadable rows have none.
    """
    return _implementation().coordinates(_one(wkb))  # type: ignore[no-any-return]  # one of two modules


def with_coordinates(wkb: Any, xy: npt.NDArray[np.float64]) -> Any:
    """The same geometries at other positions: Z, M and structure stay. ISO WKB, little-endian; unreadable rows as they were.

    Raises:
        ValueError: `xy` has not one row for each that `coordinates` gives.
    """
    single = _one(wkb)
    expected = len(coordinates(single))
    if xy.shape != (expected, 2):
        raise ValueError(f"{expected} positions are needed, {xy.shape} are given")
    return _implementation().with_coordinates(single, xy)


def largest_move(before: Any, after: Any) -> npt.NDArray[np.float64]:
    """The size of each geometry change in the plane of x and y, in units of the coordinates; NaN where one side is null or empty.

    With equal structure it is the largest distance between counterparts (each part to the nearest of its structure that is free, rings
    in the rotation and direction for which it is least), otherwise the discrete Hausdorff distance of the vertices.
    For rings beyond 4,000 vertices not every rotation is tried: the value is then an upper bound.
    """
    one, other = _pair(before, after)
    return _implementation().largest_move(one, other)  # type: ignore[no-any-return]  # one of two modules


def within(
    delivered: Any,
    published: Any,
    tolerance: float,
    *,
    z_tolerance: float | None = None,
    m_tolerance: float | None = None,
    shape: Shape = _AS_IS,
) -> npt.NDArray[np.bool_]:
    """Whether each delivered geometry is the published one but for noise (spec/change.md section 4, suppressed).

    Types (single and one-part multi are one), parts and rings agree one to one, and each delivered ordinate lies within the tolerance
    of its counterpart; rings in any rotation and direction. No published vertex goes without a counterpart; neighbours in the delivery
    may share one, since the grid drops repeats. `shape` says which dimensions count and whether lines have a direction.
    Two nulls are within, null and a geometry are not, unreadable values never are.
    """
    one, other = _pair(delivered, published)
    limits = (tolerance, tolerance if z_tolerance is None else z_tolerance, tolerance if m_tolerance is None else m_tolerance)
    return _implementation().within(one, other, limits, shape)  # type: ignore[no-any-return]  # one of two modules


def is_reversed(before: Any, after: Any) -> npt.NDArray[np.bool_]:
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
    return _implementation().hilbert(x, y, bounds, order)  # type: ignore[no-any-return]  # one of two modules


def _pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces whose dictionaries are whole, and whose neighbours of constant bytes are one."""
    found: list[Piece] = []
    for each in pieces:
        if not isinstance(each, bytes):
            found.append(Entry(each.name, _whole(each.array)) if isinstance(each, Entry) else _whole(each))
        elif found and isinstance(found[-1], bytes):
            found[-1] += each
        else:
            found.append(each)
    return found


def _whole(array: Any) -> Any:
    """A dictionary column with int32 codes, no null among its values and their offsets from the first value on; others as they are."""
    if not pa.types.is_dictionary(array.type):
        return array
    values = array.dictionary
    if values.null_count or values.offset or array.type.index_type != pa.int32() or values.type not in (pa.string(), pa.binary()):
        return pc.cast(array, values.type)
    return array


def _implementation() -> Any:
    return _implementations[NAME]


def _pair(one: Any, other: Any) -> tuple[Any, Any]:
    one, other = _one(one), _one(other)
    if len(one) != len(other):
        raise ValueError(f"two columns of one length are compared, not {len(one)} and {len(other)} rows")
    return one, other
