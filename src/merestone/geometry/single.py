"""One WKB value at a time, in Python: read it, bring it to its canonical form, write it. What `fallback` does with the unusual rows.

Not here: whole columns (`flat`, `fallback`), distances between two values (`apart`).

The rules are those of docs/spec/fingerprint.md; the compiled kernel has them in `_wkb.h` and `_form.h`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from merestone.columnar.rounding import GRID_LIMIT, NO_MEASURE, from_grid_one, to_grid_one
from merestone.geometry import kernel_values

POINT, LINE, POLYGON, MULTIPOINT, MULTILINE, MULTIPOLYGON, COLLECTION = range(1, 8)
CIRCULAR, COMPOUND, CURVEPOLYGON, MULTICURVE, MULTISURFACE = range(8, 13)
POLYHEDRAL, TIN, TRIANGLE = range(15, 18)
MAX_DEPTH = 32  # of nested collections

_CURVES = {LINE, CIRCULAR}
_MEMBERS: dict[int, set[int]] = {
    MULTIPOINT: {POINT},
    MULTILINE: {LINE},
    MULTIPOLYGON: {POLYGON},
    COLLECTION: {*range(1, 13), POLYHEDRAL, TIN, TRIANGLE},
    COMPOUND: _CURVES,
    CURVEPOLYGON: {*_CURVES, COMPOUND},
    MULTICURVE: {*_CURVES, COMPOUND},
    MULTISURFACE: {POLYGON, CURVEPOLYGON},
    POLYHEDRAL: {POLYGON, TRIANGLE},
    TIN: {POLYGON, TRIANGLE},
}
_TYPES = _MEMBERS[COLLECTION]
Vertex = tuple[float, ...]
Row = tuple[int, ...]


class UnreadableError(ValueError):
    """The bytes are not WKB, or end too early."""


@dataclass(slots=True)
class Node:
    """One geometry as it was delivered.

    `runs` holds the vertices of a point (one run; none when empty), a line (one run) or the rings of a polygon; `members` what lies in a
    container.
    """

    type: int
    z: bool
    m: bool
    runs: list[list[Vertex]] = field(default_factory=list)
    members: list[Node] = field(default_factory=list)

    @property
    def container(self) -> bool:
        """Whether it holds geometries rather than vertices."""
        return self.type in _MEMBERS

    def leaves(self, level: int = 0) -> Iterator[tuple[Node, int]]:
        """The geometries with vertices in the order of the bytes, each with the number of collections around it (multis do not count)."""
        if not self.container:
            yield self, level
        inner = level if MULTIPOINT <= self.type <= MULTIPOLYGON else level + 1
        for member in self.members:
            yield from member.leaves(inner)

    def all_runs(self) -> Iterator[list[Vertex]]:
        """All runs of vertices in the order of the bytes."""
        for leaf, _ in self.leaves():
            yield from leaf.runs


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def left(self) -> int:
        return len(self.data) - self.at

    def count(self, order: str) -> int:
        if self.left() < 4:
            raise UnreadableError
        self.at += 4
        return int(struct.unpack_from(order + "I", self.data, self.at - 4)[0])

    def vertices(self, order: str, dimensions: int, n: int) -> list[Vertex]:
        if n > self.left() // (8 * dimensions):
            raise UnreadableError
        flat = struct.unpack_from(f"{order}{n * dimensions}d", self.data, self.at)
        self.at += 8 * n * dimensions
        return list(zip(*[iter(flat)] * dimensions, strict=True))

    def geometry(self, outer: Node | None, depth: int) -> Node:
        if self.left() < 5 or self.data[self.at] > 1:
            raise UnreadableError
        order = "<" if self.data[self.at] else ">"
        self.at += 1
        code = self.count(order)
        if code & 0x20000000:
            self.count(order)
        plain = code & 0x1FFFFFFF
        thousands, kind = divmod(plain, 1000)
        node = Node(kind, bool(code & 0x80000000) or thousands in (1, 3), bool(code & 0x40000000) or thousands >= 2)
        if thousands > 3 or kind not in _TYPES:
            raise UnreadableError
        if outer is not None and kind not in _MEMBERS[outer.type]:
            raise UnreadableError
        if outer is not None and outer.type != COLLECTION and (node.z, node.m) != (outer.z, outer.m):
            raise UnreadableError
        self.body(node, order, depth)
        return node

    def body(self, node: Node, order: str, depth: int) -> None:
        dimensions = 2 + node.z + node.m
        if node.type == POINT:
            run = self.vertices(order, dimensions, 1)
            node.runs = [] if math.isnan(run[0][0]) and math.isnan(run[0][1]) else [run]
        elif node.type in _CURVES:
            node.runs = [self.vertices(order, dimensions, self.count(order))]
        elif node.container:
            count = self.count(order)
            if count > self.left() // 4 or (count and depth >= MAX_DEPTH):
                raise UnreadableError
            node.members = [self.geometry(node, depth + 1) for _ in range(count)]
        else:
            count = self.count(order)
            if count > self.left() // 4:
                raise UnreadableError
            node.runs = [self.vertices(order, dimensions, self.count(order)) for _ in range(count)]


def read(data: bytes) -> tuple[Node, bool]:
    """The geometry, and whether bytes follow it.

    Raises:
        UnreadableError: the bytes are not WKB, or end too early.
    """
    reader = _Reader(data)
    return reader.geometry(None, 0), reader.left() > 0


def write(node: Node) -> bytes:
    """ISO WKB, little-endian, of the geometry as it is."""
    head = struct.pack("<BI", 1, node.type + 1000 * node.z + 2000 * node.m)
    if node.container:
        return head + struct.pack("<I", len(node.members)) + b"".join(write(each) for each in node.members)
    if node.type == POINT:
        vertex = node.runs[0][0] if node.runs else (math.nan,) * (2 + node.z + node.m)
        return head + struct.pack(f"<{len(vertex)}d", *vertex)
    runs = b"".join(struct.pack("<I", len(run)) + struct.pack(f"<{len(run) * (2 + node.z + node.m)}d", *_flat(run)) for run in node.runs)
    return head + (runs if node.type in _CURVES else struct.pack("<I", len(node.runs)) + runs)


def _flat(run: list[Vertex]) -> Iterator[float]:
    for vertex in run:
        yield from vertex


# ---- scan ----


@dataclass(slots=True)
class Look:
    """What `scan` says of one value."""

    parts: int = 0
    vertices: int = 0
    flags: int = 0
    bounds: tuple[float, float, float, float] = (math.nan,) * 4


def look(node: Node, *, trailing: bool) -> Look:
    """Counts, bounds and faults of one geometry."""
    out = Look(flags=kernel_values.TRAILING_BYTES if trailing else 0)
    xs, ys = [], []
    for leaf, _ in node.leaves():
        ring = leaf.type in (POLYGON, TRIANGLE)
        # A polygon counts by its rings, empty ones too; a line by its vertices.
        out.parts += bool(leaf.runs) and (ring or bool(leaf.runs[0]))
        if leaf.type == LINE and len(leaf.runs[0]) == 1:
            out.flags |= kernel_values.SHORT_LINE
        for run in leaf.runs:
            out.vertices += len(run)
            for vertex in run:
                out.flags |= _faults(vertex, leaf)
                xs.append(vertex[0])
                ys.append(vertex[1])
            if ring and run:
                out.flags |= kernel_values.SHORT_RING if len(run) < 4 else 0
                out.flags |= kernel_values.UNCLOSED_RING if run[0][:2] != run[-1][:2] or any(math.isnan(each) for each in run[0][:2]) else 0
    xs, ys = [x for x in xs if math.isfinite(x)], [y for y in ys if math.isfinite(y)]
    out.bounds = (
        min(xs, default=math.nan),
        min(ys, default=math.nan),
        max(xs, default=math.nan),
        max(ys, default=math.nan),
    )
    return out


def _faults(vertex: Vertex, leaf: Node) -> int:
    flags = kernel_values.NAN_XY if math.isnan(vertex[0]) or math.isnan(vertex[1]) else 0
    if leaf.z and math.isnan(vertex[2]):
        flags |= kernel_values.NAN_Z
    return flags | (kernel_values.INFINITE if any(math.isinf(each) for each in vertex) else 0)


# ---- canonical form ----


@dataclass(slots=True)
class Rounding:
    """Grid and shape at work on one value, and the flags that come of it."""

    grid: kernel_values.Grid
    shape: kernel_values.Shape
    flags: int = 0
    curved: bool = False

    def keeps(self, node: Node) -> tuple[bool, bool]:
        """Whether Z and M of this geometry count."""
        return node.z and self.shape.keep_z, node.m and self.shape.keep_m

    def vertex(self, vertex: Vertex, node: Node) -> Row:
        """One vertex on the grid."""
        z, m = self.keeps(node)
        row = [to_grid_one(vertex[0], self.grid.precision), to_grid_one(vertex[1], self.grid.precision)]
        if z:
            row.append(to_grid_one(vertex[2], self.grid.z))
        if any(abs(q) > GRID_LIMIT for q in row):
            self.flags |= kernel_values.BAD_ORDINATE
        if m:
            measure = vertex[2 + node.z]
            row.append(NO_MEASURE if math.isnan(measure) else to_grid_one(measure, self.grid.m))
            if abs(row[-1]) > GRID_LIMIT and row[-1] != NO_MEASURE:
                self.flags |= kernel_values.BAD_ORDINATE
        return tuple(row)


def least_rotation(ring: list[Row]) -> list[Row]:
    """The ring from the start that makes it least."""
    i, j, k, n = 0, 1, 0, len(ring)
    while i < n and j < n and k < n:
        a, b = ring[(i + k) % n], ring[(j + k) % n]
        if a == b:
            k += 1
            continue
        if a > b:
            i += k + 1
        else:
            j += k + 1
        j += i == j
        k = 0
    start = min(i, j)
    return ring[start:] + ring[:start]


def area_sign(ring: list[Row]) -> int:
    """The sign of the exact area; 0 where an ordinate is not on the grid."""
    if any(abs(q) > GRID_LIMIT for row in ring for q in row[:2]):
        return 0
    twice = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1], strict=True))
    return (twice > 0) - (twice < 0)


def _has_positions(run: list[Row], wanted: int, width: int) -> bool:
    return len({row[:width] for row in run}) >= wanted


def _dropped(run: list[Row]) -> list[Row]:
    return [row for place, row in enumerate(run) if place == 0 or row != run[place - 1]]


def _packed(run: list[Row]) -> bytes:
    flat = [q for row in run for q in row]
    return struct.pack(f"<I{len(flat)}q", len(run), *flat)


def turned(ring: list[Row], *, hole: bool, face: bool = False) -> list[Row]:
    """A ring without repeats in its canonical direction and from its canonical start."""
    sign = 1 if face else area_sign(ring)
    if sign == 0:
        return min(least_rotation(ring), least_rotation(ring[::-1]))
    return least_rotation(ring[::-1] if not face and (sign > 0) == hole else ring)


def _ring(run: list[Vertex], node: Node, work: Rounding, *, hole: bool, face: bool) -> list[Row]:
    ring = _dropped([work.vertex(vertex, node) for vertex in run])
    while len(ring) > 1 and ring[0] == ring[-1]:
        ring.pop()
    if ring and not _has_positions(ring, 3, 2 + work.keeps(node)[0]):
        work.flags |= kernel_values.COLLAPSED
    return turned(ring, hole=hole, face=face) if ring else ring


def _part(node: Node, work: Rounding, *, face: bool) -> bytes | None:
    """The body of one point, line or polygon; None where it is empty."""
    if node.type == POINT:
        return struct.pack(f"<{2 + sum(work.keeps(node))}q", *work.vertex(node.runs[0][0], node)) if node.runs else None
    if node.type in _CURVES:
        run = [work.vertex(vertex, node) for vertex in node.runs[0]]
        run = run if node.type == CIRCULAR else _dropped(run)
        if not run:
            return None
        if not _has_positions(run, 2, 2 + work.keeps(node)[0]):
            work.flags |= kernel_values.COLLAPSED
        return _packed(min(run, run[::-1]) if work.shape.either_way else run)
    rings = [_ring(run, node, work, hole=place > 0, face=face) for place, run in enumerate(node.runs)]
    if not any(rings):
        return None
    if not rings[0]:
        work.flags |= kernel_values.COLLAPSED
    holes = sorted(_packed(ring) for ring in rings[1:] if ring)
    return struct.pack("<I", 1 + len(holes)) + _packed(rings[0]) + b"".join(holes)


def encoded(node: Node, work: Rounding) -> bytes:
    """The bytes G of one geometry."""
    z, m = work.keeps(node)
    work.curved |= node.type > COLLECTION
    work.flags |= (kernel_values.DROPPED_Z if node.z and not z else 0) | (kernel_values.DROPPED_M if node.m and not m else 0)
    face = node.type in (POLYHEDRAL, TIN, TRIANGLE)
    if not node.container:
        body = _part(node, work, face=face)
        parts = [] if body is None else [body]
    elif node.type <= MULTIPOLYGON or face:
        parts = sorted(body for body in (_part(member, work, face=face) for member in node.members) if body is not None)
    else:
        parts = [encoded(member, work) for member in node.members]
        if node.type == CURVEPOLYGON:
            parts = parts[:1] + sorted(parts[1:])
        elif node.type != COMPOUND:
            parts.sort()
    kind = node.type + 3 if node.type <= POLYGON else node.type
    return struct.pack("<BBI", kind, z | m << 1, len(parts)) + b"".join(parts)


# ---- from G to what is stored ----


class _Writer:
    def __init__(self, g: bytes, grid: kernel_values.Grid) -> None:
        self.g, self.at, self.grid = g, 0, grid
        self.out: list[bytes] = []

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.g, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def vertices(self, n: int, bits: int) -> list[bytes]:
        precisions = [self.grid.precision] * 2 + ([self.grid.z] if bits & 1 else []) + ([self.grid.m] if bits & 2 else [])
        d = len(precisions)
        flat = [from_grid_one(q, precisions[place % d]) for place, q in enumerate(self.take(f"{n * d}q"))]
        return [struct.pack(f"<{d}d", *flat[place : place + d]) for place in range(0, n * d, d)]

    def run(self, bits: int, *, ring: bool) -> None:
        (n,) = self.take("I")
        stored = self.vertices(n, bits)
        if stored:
            stored += stored[:1] * max(ring, (4 if ring else 2) - n)
        self.out += [struct.pack("<I", len(stored)), *stored]

    def body(self, single: int, bits: int) -> None:
        if single == POINT:
            self.out += self.vertices(1, bits)
        elif single == LINE:
            self.run(bits, ring=False)
        else:
            (rings,) = self.take("I")
            self.out.append(struct.pack("<I", rings))
            for _ in range(rings):
                self.run(bits, ring=True)

    def head(self, kind: int, bits: int) -> None:
        self.out.append(struct.pack("<BI", 1, kind + 1000 * bits))

    def geometry(self, want: int) -> None:
        kind, bits, count = self.take("BBI")
        if kind == COLLECTION:
            self.head(kind, bits)
            self.out.append(struct.pack("<I", count))
            for _ in range(count):
                self.geometry(kernel_values.WANTED["any"])
        elif count <= 1 and want not in (kernel_values.WANTED["multi"], kind):
            self.head(kind - 3, bits)
            if count:
                self.body(kind - 3, bits)
            else:
                empty = struct.pack("<4d", *[math.nan] * 4)[: 8 * (2 + bits.bit_count())]
                self.out.append(empty if kind == MULTIPOINT else struct.pack("<I", 0))
        else:
            self.head(kind, bits)
            self.out.append(struct.pack("<I", count))
            for _ in range(count):
                self.head(kind - 3, bits)
                self.body(kind - 3, bits)


def fits(kind: int, count: int, want: int) -> bool:
    """Whether a G of this type and part count can be stored as the wanted type."""
    if want in (kernel_values.WANTED["any"], kernel_values.WANTED["multi"]):
        return True
    return kind == want if want >= MULTIPOINT else kind == want + 3 and count <= 1


def stored(g: bytes, grid: kernel_values.Grid, want: int) -> tuple[bytes, int]:
    """The WKB that is stored for G, and WRONG_TYPE where the wanted type cannot be given."""
    kind, _, count = struct.unpack_from("<BBI", g)
    right = fits(kind, count, want)
    writer = _Writer(g, grid)
    writer.geometry(want if right else kernel_values.WANTED["any"])
    return b"".join(writer.out), 0 if right else kernel_values.WRONG_TYPE


def canonical(data: bytes, grid: kernel_values.Grid, shape: kernel_values.Shape) -> tuple[bytes, int]:
    """One value of `kernel.canonical` and its flags."""
    work = Rounding(grid, shape)
    try:
        g = encoded(read(data)[0], work)
    except UnreadableError:
        return data, kernel_values.CANONICAL_UNREADABLE
    if work.curved:
        return data, work.flags | kernel_values.WRONG_TYPE
    wkb, wrong = stored(g, grid, kernel_values.WANTED[shape.type])
    return wkb, work.flags | wrong


def encode(data: bytes, grid: kernel_values.Grid, shape: kernel_values.Shape) -> bytes:
    """One value of `kernel.encode`."""
    try:
        return encoded(read(data)[0], Rounding(grid, shape))
    except UnreadableError:
        return b"\x02" + data
