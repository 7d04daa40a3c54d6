"""Closed shells: whether every edge of a solid's faces borders exactly one other face of it.

Not here: words (`topology`). A solid is one feature: a PolyhedralSurface, a TIN or a MultiPolygon with Z (OGC 06-103r4, section 6.1.12).

Half-edges are counted by their two ends in three dimensions on the grid. One that stands alone is the rim of a hole in the shell; one that
stands more than twice joins faces that belong to no single shell. Directions have no part in it, since the stored form of a MultiPolygon
winds its rings as seen from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from merestone.gate.topology_edges import Floats, Ints, grouped
from merestone.geometry import kernel

SURFACES = (15, 16)
"""PolyhedralSurface and TIN, which GEOS has no form for."""
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class Shells:
    """Features whose shell is not closed: the row, how many edges border one face only, how many more than two, and a place (x, y) of one.

    `unread` are rows that could not be judged: no faces in three dimensions, or bytes that are not understood.
    """

    row: Ints
    open_edges: Ints
    crowded: Ints
    x: Floats
    y: Floats
    unread: Ints

    def __len__(self) -> int:
        return len(self.row)


def check_solids(wkb: pa.Array, precision: int, z_precision: int) -> Shells:
    """Judge solids.

    Args:
        wkb: pyarrow binary array; null and empty rows have no part in it.
        precision: decimals of x and y.
        z_precision: decimals of z.
    """
    scan = kernel.scan(wkb)
    asked = np.flatnonzero((scan.kind != 0) & ~scan.empty)
    readable = np.isin(scan.kind, (3, 6, 7, *SURFACES)) & scan.has_z
    unread = [asked[~readable[asked]]]
    rows = asked[readable[asked]]
    none, nowhere = np.zeros(0, np.int64), np.zeros(0)
    found: list[tuple[Ints, Ints, Ints, Floats, Floats]] = [(none, none, none, nowhere, nowhere)]
    for start in range(0, len(rows), _CHUNK):
        here = rows[start : start + _CHUNK]
        owner, a, b, failed = _half_edges(wkb.take(pa.array(here)), scan.kind[here], precision, z_precision)
        unread.append(here[failed])
        found.append(_unpaired(here, owner, a, b))
    row, rims, crowded, x, y = (np.concatenate([each[n] for each in found]) for n in range(5))
    return Shells(row, rims, crowded, x, y, np.unique(np.concatenate(unread)))


def _half_edges(
    wkb: pa.Array | pa.ChunkedArray, kind: npt.NDArray[np.uint8], precision: int, z_precision: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Edges of all faces: (owner, first end, last end), ends as whole numbers (n, 3); and the places that could not be read."""
    values = wkb.to_pylist()
    for place in np.flatnonzero(np.isin(kind, SURFACES)).tolist():
        values[place] = _as_multi_polygon(values[place])
    shapes = shapely.from_wkb(np.array(values, dtype=object), on_invalid="ignore")
    there = np.array(shapely.is_geometry(shapes), np.bool_)
    failed = np.flatnonzero(~there)
    owner = np.flatnonzero(there)
    shapes = shapes[owner]
    while (shapely.get_type_id(shapes) > 3).any():
        shapes, of = shapely.get_parts(shapes, return_index=True)
        owner = owner[of]
    faces = shapely.get_type_id(shapes) == 3
    shapes, owner = shapes[faces], owner[faces]
    rings, of = shapely.get_rings(shapes, return_index=True)
    owner = owner[of]
    xyz, line = shapely.get_coordinates(rings, include_z=True, return_index=True)
    q = np.rint(np.nan_to_num(xyz) * np.array([10.0**precision, 10.0**precision, 10.0**z_precision])).astype(np.int64)
    at = np.flatnonzero((line[1:] == line[:-1]) & (q[1:] != q[:-1]).any(axis=1))
    return owner[line[at]], q[at], q[at + 1], failed


def _as_multi_polygon(value: bytes) -> bytes | None:
    """A surface as a MultiPolygon of its faces: the same bytes under codes that GEOS reads. None where the bytes are laid out otherwise."""
    order: Literal["little", "big"] = "little" if value[:1] == b"\x01" else "big"
    code, count = int.from_bytes(value[1:5], order), int.from_bytes(value[5:9], order)
    if code not in (1015, 1016, 3015, 3016):
        return None
    if code % 1000 == 16:  # triangles are laid out like polygons, and all have one length
        if not count or (len(value) - 9) % count:
            return None
        members = np.frombuffer(value[9:], np.uint8).reshape(count, -1).copy()
        old, new = (np.frombuffer(value[:1] + (code - 16 + kind).to_bytes(4, order), np.uint8) for kind in (17, 3))
        if (members[:, :5] != old).any():
            return None
        members[:, :5] = new
        value = value[:9] + members.tobytes()
    return value[:1] + (code - code % 1000 + 6).to_bytes(4, order) + value[5:]


def _unpaired(rows: Ints, owner: Ints, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Per faulty feature: the row, edges of one face, edges of more than two, and the middle of the first such edge."""
    ahead = np.zeros(len(a), np.bool_)
    decided = np.zeros(len(a), np.bool_)
    for axis in range(3):
        ahead |= ~decided & (a[:, axis] < b[:, axis])
        decided |= a[:, axis] != b[:, axis]
    low, high = np.where(ahead[:, None], a, b), np.where(ahead[:, None], b, a)
    order, begins = grouped(owner, *low.T, *high.T)
    size = np.diff(np.append(begins, len(order)))
    odd = np.flatnonzero(size != 2)
    edge = order[begins[odd]]
    names, first, of = np.unique(owner[edge], return_index=True, return_inverse=True)
    rims = np.bincount(of, size[odd] == 1, minlength=len(names)).astype(np.int64)
    crowded = np.bincount(of, size[odd] > 2, minlength=len(names)).astype(np.int64)
    middle = (low[edge[first], :2] + high[edge[first], :2]) / 2 if len(first) else np.zeros((0, 2))
    return rows[names], rims, crowded, middle[:, 0], middle[:, 1]
