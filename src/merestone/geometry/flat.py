"""Points, lines and polygons, single or multi, as flat arrays: parsed and scanned with NumPy for many rows at once.

Not here: their canonical form (`flat_form`); collections, curves, big-endian values, values with very many parts, and bytes that are not
WKB. `parse` leaves those rows out, and `fallback` hands them to `single`, which defines what is right; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from merestone.geometry import kernel_values, single

MOST_STEPS = 64  # parts, or rings of one part: a row with more goes through `single`, since each step costs all rows a pass

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_Found = tuple[Ints, int, int, Ints, Ints]  # rows, part, ring, where its vertices start, how many there are


@dataclass(frozen=True, slots=True)
class Flat:
    """Rows of one dimensionality. A row has parts, a part runs of vertices: one for a point or line, its rings for a polygon.

    row, kind, parts: (rows,) place in the column, WKB type, parts as delivered; part_row: (parts,) index of the row; run_part: (runs,)
    index of the part; run_start: (runs,) where the run's vertices begin in the bytes; run_size: (runs,) vertices; exterior: (runs,);
    end: (rows,) where the geometry ends. Parts and runs stand in the order of the bytes. An empty point has a run of no vertices.
    """

    data: Bytes
    z: bool
    m: bool
    row: Ints
    kind: Ints
    parts: Ints
    part_row: Ints
    run_part: Ints
    run_start: Ints
    run_size: Ints
    exterior: Mask
    end: Ints

    @property
    def width(self) -> int:
        """Ordinates of a vertex."""
        return 2 + self.z + self.m


def parse(data: Bytes, start: Ints, end: Ints, rows: Ints) -> Iterator[Flat]:
    """The rows that can be read here, by dimensionality. `rows` are places in start and end, which hold where each value lies."""
    rows = rows[end[rows] - start[rows] >= 9]
    at = start[rows]
    code = _counts(data, at + 1)
    plain = code & 0x1FFFFFFF
    thousands, kind = plain // 1000, plain % 1000
    z = (code & 0x80000000 != 0) | (thousands == 1) | (thousands == 3)
    m = (code & 0x40000000 != 0) | (thousands >= 2)
    good = (data[at] == 1) & (thousands <= 3) & (kind >= 1) & (kind <= single.MULTIPOLYGON)
    head = at + 5 + 4 * (code & 0x20000000 != 0)
    for has_z in (False, True):
        for has_m in (False, True):
            chosen = good & (z == has_z) & (m == has_m)
            if chosen.any():
                yield _parse(data, rows[chosen], kind[chosen], head[chosen], end[rows[chosen]], has_z, has_m)


def _counts(data: Bytes, at: Ints) -> Ints:
    """A little-endian uint32 at each place."""
    low, second, third, high = (data[at + shift].astype(np.int64) for shift in range(4))
    return low | second << 8 | third << 16 | high << 24


class _Cursor:
    """Where each row's reading stands; a row that does not fit falls out."""

    def __init__(self, data: Bytes, at: Ints, end: Ints) -> None:
        self.data, self.at, self.end, self.good = data, at.copy(), end, np.ones(len(at), np.bool_)

    def counts(self, who: Ints) -> tuple[Ints, Ints]:
        """Read a count in these rows: who could, and what it is."""
        who = self._fit(who, 4)
        found = _counts(self.data, self.at[who])
        self.at[who] += 4
        return who, found

    def skip(self, who: Ints, size: Ints) -> tuple[Ints, Mask]:
        """Go over so many bytes in these rows: who could, as rows and as a mask of the rows given."""
        fits = size <= self.end[who] - self.at[who]
        self.good[who[~fits]] = False
        self.at[who[fits]] += size[fits]
        return who[fits], fits

    def heads(self, who: Ints, kind: Ints, z: bool, m: bool) -> Ints:
        """Read the head of a member of a multi: who has one of the right type, dimensions and byte order."""
        who = self._fit(who, 5)
        at = self.at[who]
        code = _counts(self.data, at + 1)
        thousands = (code & 0x1FFFFFFF) // 1000
        has_z = (code & 0x80000000 != 0) | (thousands == 1) | (thousands == 3)
        has_m = (code & 0x40000000 != 0) | (thousands >= 2)
        right = (self.data[at] == 1) & ((code & 0x1FFFFFFF) % 1000 == kind[who] - 3) & (thousands <= 3)
        right &= (has_z == z) & (has_m == m)
        self.good[who[~right]] = False
        who = who[right]
        self.at[who] += 5 + 4 * (code[right] & 0x20000000 != 0)
        return who

    def _fit(self, who: Ints, size: int) -> Ints:
        fits = self.at[who] + size <= self.end[who]
        self.good[who[~fits]] = False
        return who[fits]


def _parse(data: Bytes, rows: Ints, kind: Ints, at: Ints, end: Ints, z: bool, m: bool) -> Flat:
    cursor = _Cursor(data, at, end)
    stride = 8 * (2 + z + m)
    everyone = np.arange(len(rows))
    parts = np.ones(len(rows), np.int64)
    multi, counts = cursor.counts(everyone[kind > single.POLYGON])
    parts[multi] = counts
    cursor.good &= parts <= MOST_STEPS
    found: list[_Found] = []
    for part in range(int(parts[cursor.good].max(initial=0))):
        who = everyone[cursor.good & (parts > part)]
        who = np.concatenate([who[kind[who] <= single.POLYGON], cursor.heads(who[kind[who] > single.POLYGON], kind, z, m)])
        base = np.where(kind > single.POLYGON, kind - 3, kind)
        points = who[base[who] == single.POINT]
        points, _ = cursor.skip(points, np.full(len(points), stride))
        begin = cursor.at[points] - stride
        there = ~(np.isnan(_doubles(data, begin)) & np.isnan(_doubles(data, begin + 8)))
        found.append((points, part, 0, begin, there.astype(np.int64)))
        found += _runs(cursor, who[base[who] == single.LINE], part, 0, stride)
        polygons, rings = cursor.counts(who[base[who] == single.POLYGON])
        cursor.good[polygons[rings > MOST_STEPS]] = False
        for ring in range(int(rings[rings <= MOST_STEPS].max(initial=0))):
            found += _runs(cursor, polygons[(rings > ring) & cursor.good[polygons]], part, ring, stride)
    return _gathered(data, rows, kind, parts, cursor, found, z, m)


def _runs(cursor: _Cursor, who: Ints, part: int, ring: int, stride: int) -> list[_Found]:
    who, sizes = cursor.counts(who)
    begin = cursor.at[who].copy()
    who, fits = cursor.skip(who, sizes * stride)
    return [(who, part, ring, begin[fits], sizes[fits])]


def _gathered(
    data: Bytes,
    rows: Ints,
    kind: Ints,
    parts: Ints,
    cursor: _Cursor,
    found: list[_Found],
    z: bool,
    m: bool,
) -> Flat:
    """The runs of the rows that were read to their end, in the order of the bytes."""
    place = np.cumsum(cursor.good) - 1
    parts = parts[cursor.good]
    first_part = np.cumsum(parts) - parts
    row = np.concatenate([each[0] for each in found]) if found else np.zeros(0, np.int64)
    part = np.concatenate([np.full(len(each[0]), each[1]) for each in found]) if found else row
    ring = np.concatenate([np.full(len(each[0]), each[2]) for each in found]) if found else row
    begin = np.concatenate([each[3] for each in found]) if found else row
    size = np.concatenate([each[4] for each in found]) if found else row
    keep = cursor.good[row]
    row, part, ring, begin, size = place[row[keep]], part[keep], ring[keep], begin[keep], size[keep]
    order = np.lexsort((ring, part, row))
    return Flat(
        data=data,
        z=z,
        m=m,
        row=rows[cursor.good],
        kind=kind[cursor.good],
        parts=parts,
        part_row=np.repeat(np.arange(len(parts)), parts),
        run_part=(first_part[row] + part)[order],
        run_start=begin[order],
        run_size=size[order],
        exterior=ring[order] == 0,
        end=cursor.at[cursor.good],
    )


def anywhere(data: Bytes, item: str) -> npt.NDArray[Any]:
    """The bytes seen as items that begin at every byte: unaligned ones are picked and put by their place."""
    return np.ndarray((len(data) - np.dtype(item).itemsize + 1,), item, data, strides=(1,))


def _doubles(data: Bytes, at: Ints) -> Floats:
    """A little-endian double at each place."""
    found: Floats = anywhere(data, "<f8")[at]
    return found


def vertices(flat: Flat) -> Floats:
    """All vertices, (width, n), in the order of the runs."""
    size, stride = flat.run_size, 8 * flat.width
    at = np.repeat(flat.run_start - first_of(size) * stride, size) + np.arange(size.sum()) * stride
    return np.ascontiguousarray(anywhere(flat.data, f"V{stride}")[at].view("<f8").reshape(-1, flat.width).T)


def first_of(size: Ints) -> Ints:
    """Where each run begins, from the sizes of all: (runs,)."""
    return np.cumsum(size) - size


# ---- scan ----


def look(flat: Flat, out: kernel_values.Scan, ends: Ints) -> None:
    """Fill a scan's rows with what lies in these; `ends` is where each value ends."""
    rows, n = flat.row, len(flat.row)
    xy = vertices(flat)
    run_row = flat.part_row[flat.run_part]
    vertex_row = np.repeat(run_row, flat.run_size)
    out.kind[rows], out.has_z[rows], out.has_m[rows] = flat.kind, flat.z, flat.m
    out.vertices[rows] = np.bincount(vertex_row, minlength=n)
    out.empty[rows] = out.vertices[rows] == 0
    kind = np.where(flat.kind > single.POLYGON, flat.kind - 3, flat.kind)
    ring = kind[run_row] == single.POLYGON
    counts = np.zeros(len(flat.part_row), np.bool_)  # a polygon counts by its rings, empty ones too
    counts[flat.run_part[ring | (flat.run_size > 0)]] = True
    out.parts[rows] = np.bincount(flat.part_row[counts], minlength=n)
    for column, low, high in ((xy[0], 0, 2), (xy[1], 1, 3)):
        finite = np.isfinite(column)
        least, most = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(least, vertex_row[finite], column[finite])
        np.maximum.at(most, vertex_row[finite], column[finite])
        out.bounds[rows, low], out.bounds[rows, high] = np.where(least <= most, least, np.nan), np.where(least <= most, most, np.nan)
    flags = np.where(flat.end < ends[rows], kernel_values.TRAILING_BYTES, 0)
    nan = np.isnan(xy)
    flags = _also(flags, vertex_row[nan[0] | nan[1]], kernel_values.NAN_XY)
    flags = _also(flags, vertex_row[np.isinf(xy).any(axis=0)], kernel_values.INFINITE)
    if flat.z:
        flags = _also(flags, vertex_row[nan[2]], kernel_values.NAN_Z)
    there = ring & (flat.run_size > 0)
    first = first_of(flat.run_size)[there]
    opened = (xy[:2, first] != xy[:2, first + flat.run_size[there] - 1]).any(axis=0)
    flags = _also(flags, run_row[there][opened], kernel_values.UNCLOSED_RING)
    flags = _also(flags, run_row[there][flat.run_size[there] < 4], kernel_values.SHORT_RING)
    flags = _also(flags, run_row[(kind[run_row] == single.LINE) & (flat.run_size == 1)], kernel_values.SHORT_LINE)
    out.flags[rows] = flags


def _also(flags: Ints, rows: Ints, bit: int) -> Ints:
    flags[rows] |= bit
    return flags
