"""Fingerprint layout 2, slow and obvious, from docs/spec/fingerprint.md alone: struct, integers and sorted lists.

Not here: anything of Merestone. Whoever wants to check the specification reads this file beside it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import struct
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

LIMIT = 2**50
SINGLES = {1: "point", 2: "line", 3: "polygon"}
COLLAPSED, BAD_ORDINATE, WRONG_TYPE, DROPPED_Z, DROPPED_M, UNREADABLE = 1, 4, 8, 16, 32, 2


class Unreadable(Exception):  # noqa: N818 - it is an answer, not a fault
    pass


# ---- reading: (type, has z, has m, content); content is vertices, lists of vertices, or members ----


def read(data: bytes, at: int = 0, *, depth: int = 0) -> tuple[tuple[int, bool, bool, Any], int]:
    """The geometry that begins at `at`, and where it ends."""

    def take(layout: str, at: int) -> tuple[tuple[Any, ...], int]:
        size = struct.calcsize(layout)
        if at + size > len(data):
            raise Unreadable
        return struct.unpack_from(layout, data, at), at + size

    def run(at: int) -> tuple[list[tuple[float, ...]], int]:
        (n,), at = take(order + "I", at)
        return vertices(n, at)

    def vertices(n: int, at: int) -> tuple[list[tuple[float, ...]], int]:
        if at + n * d * 8 > len(data):
            raise Unreadable
        return [struct.unpack_from(f"{order}{d}d", data, at + i * d * 8) for i in range(n)], at + n * d * 8

    if at >= len(data) or data[at] > 1:
        raise Unreadable
    order = "><"[data[at]]
    (code,), at = take(order + "I", at + 1)
    if code & 0x20000000:
        _, at = take(order + "I", at)
    number = code % 2**29
    kind = number % 1000
    if number >= 4000 or kind not in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17}:
        raise Unreadable
    z = bool(code & 0x80000000) or number // 1000 in {1, 3}
    m = bool(code & 0x40000000) or number // 1000 in {2, 3}
    d = 2 + z + m
    if kind == 1:
        content, at = vertices(1, at)
        if math.isnan(content[0][0]) and math.isnan(content[0][1]):
            content = []
    elif kind in {2, 8}:
        content, at = run(at)
    elif kind in {3, 17}:
        (n,), at = take(order + "I", at)
        content = []
        for _ in range(n):
            ring, at = run(at)
            content.append(ring)
    else:
        (n,), at = take(order + "I", at)
        content = []
        for _ in range(n):
            if depth == 32:
                raise Unreadable
            member, at = read(data, at, depth=depth + 1)
            allowed = {4: {1}, 5: {2}, 6: {3}, 9: {2, 8}, 10: {2, 8, 9}, 11: {2, 8, 9}, 12: {3, 10}, 15: {3, 17}, 16: {3, 17}}.get(kind)
            if allowed and (member[0] not in allowed or member[1:3] != (z, m)):
                raise Unreadable
            content.append(member)
    return (kind, z, m, content), at


# ---- rounding ----


@dataclass(frozen=True)
class Grids:
    xy: int
    z: int
    m: int


def bits(value: float) -> int:
    if math.isnan(value):
        return 0x7FF8000000000000
    return 0 if value == 0 else struct.unpack("<q", struct.pack("<d", value))[0]


def on_grid(value: float, precision: int) -> int:
    """The integer nearest to the exact value of x * 10^p, ties to even; not finite or beyond 2^50: the double's own bits."""
    if not math.isfinite(value):
        return bits(value)
    q = round(Fraction(value) * Fraction(10) ** precision)
    return q if -LIMIT <= q <= LIMIT else bits(value)


def off_grid(q: int, precision: int) -> float:
    if q == -(2**63):
        return math.nan
    if not -LIMIT <= q <= LIMIT:
        return struct.unpack("<d", struct.pack("<q", q))[0]
    return q / float(10**precision) if precision >= 0 else q * float(10**-precision)


# ---- the canonical form ----


@dataclass
class Rules:
    """What the contract says: grids, which of Z and M it has, whether lines have a direction."""

    grids: Grids
    z: bool = True
    m: bool = True
    either_way: bool = False
    flags: int = 0

    def vertex(self, vertex: tuple[float, ...], has_z: bool, has_m: bool) -> tuple[int, ...]:
        out = [on_grid(vertex[0], self.grids.xy), on_grid(vertex[1], self.grids.xy)]
        if has_z and self.z:
            out.append(on_grid(vertex[2], self.grids.z))
        bad = any(abs(q) > LIMIT for q in out)
        if has_m and self.m:
            measure = vertex[-1]
            out.append(-(2**63) if math.isnan(measure) else on_grid(measure, self.grids.m))
            bad = bad or (abs(out[-1]) > LIMIT and not math.isnan(measure))
        if bad:
            self.flags |= BAD_ORDINATE
        return tuple(out)


def without_repeats(run: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    for vertex in run:
        if not out or out[-1] != vertex:
            out.append(vertex)
    return out


def packed(run: list[tuple[int, ...]]) -> bytes:
    return struct.pack("<I", len(run)) + b"".join(struct.pack("<q", q) for vertex in run for q in vertex)


def ring_form(ring: list[tuple[int, ...]], *, hole: bool, face: bool) -> list[tuple[int, ...]]:
    if not ring:
        return ring
    rotations = [ring[i:] + ring[:i] for i in range(len(ring))]
    back = ring[::-1]
    rotations_back = [back[i:] + back[:i] for i in range(len(back))]
    if face:
        return min(rotations)
    twice = 0
    if all(abs(q) <= LIMIT for vertex in ring for q in vertex[:2]):
        for i in range(len(ring)):
            x1, y1 = ring[i - 1][:2]
            x2, y2 = ring[i][:2]
            twice += x1 * y2 - x2 * y1
    if twice == 0:
        return min(rotations + rotations_back)
    counter_clockwise = twice > 0
    return min(rotations if counter_clockwise != hole else rotations_back)


def part_bytes(geometry: tuple[int, bool, bool, Any], rules: Rules, *, face: bool = False) -> bytes | None:
    """The body of a point, line or polygon; None where there is nothing in it."""
    kind, z, m, content = geometry
    positions = 3 if z and rules.z else 2
    if kind == 1:
        return b"".join(struct.pack("<q", q) for q in rules.vertex(content[0], z, m)) if content else None
    if kind in {2, 8}:
        line = [rules.vertex(vertex, z, m) for vertex in content]
        line = line if kind == 8 else without_repeats(line)
        if not line:
            return None
        if len({vertex[:positions] for vertex in line}) < 2:
            rules.flags |= COLLAPSED
        return packed(min(line, line[::-1]) if rules.either_way else line)
    rings = []
    for ring in content:
        one = without_repeats([rules.vertex(vertex, z, m) for vertex in ring])
        while len(one) > 1 and one[0] == one[-1]:
            one.pop()
        if one and len({vertex[:positions] for vertex in one}) < 3:
            rules.flags |= COLLAPSED
        rings.append(one)
    if not any(rings):
        return None
    if not rings[0]:
        rules.flags |= COLLAPSED
    exterior = packed(ring_form(rings[0], hole=False, face=face))
    holes = sorted(packed(ring_form(ring, hole=True, face=face)) for ring in rings[1:] if ring)
    return struct.pack("<I", 1 + len(holes)) + exterior + b"".join(holes)


def geometry_bytes(geometry: tuple[int, bool, bool, Any], rules: Rules) -> bytes:
    """G."""
    kind, z, m, content = geometry
    if z and not rules.z:
        rules.flags |= DROPPED_Z
    if m and not rules.m:
        rules.flags |= DROPPED_M
    surface = kind in {15, 16, 17}
    if kind in {4, 5, 6, 15, 16}:
        parts = sorted(body for body in (part_bytes(member, rules, face=surface) for member in content) if body is not None)
    elif kind in {7, 9, 10, 11, 12}:
        parts = [geometry_bytes(member, rules) for member in content]
        if kind == 10:
            parts = parts[:1] + sorted(parts[1:])
        elif kind != 9:
            parts = sorted(parts)
    else:
        body = part_bytes(geometry, rules, face=surface)
        parts = [] if body is None else [body]
    named = {1: 4, 2: 5, 3: 6}.get(kind, kind)
    dimensions = (1 if z and rules.z else 0) | (2 if m and rules.m else 0)
    return bytes([named, dimensions]) + struct.pack("<I", len(parts)) + b"".join(parts)


def geometry_section(wkb: bytes | None, rules: Rules) -> bytes:
    if wkb is None:
        return b"\x00"
    try:
        return b"\x01" + geometry_bytes(read(wkb)[0], rules)
    except Unreadable:
        return b"\x02" + wkb


# ---- attributes ----


@dataclass(frozen=True)
class Wkb:
    """A second geometry among the attributes."""

    data: bytes
    precision: int


@dataclass(frozen=True)
class Local:
    """A timestamp without a zone, in microseconds since 1970."""

    microseconds: int


@dataclass(frozen=True)
class Instant:
    """An instant, in microseconds since 1970 UTC."""

    microseconds: int


def value_bytes(value: Any) -> tuple[bytes, bytes] | None:
    """Tag and bytes of a value; None where it is no value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return b"b", bytes([value])
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, int):
        return b"i", value.to_bytes(8 if -(2**63) <= value < 2**63 else 16, "little", signed=True)
    if isinstance(value, float):
        return b"f", struct.pack("<d", value)
    if isinstance(value, str):
        return b"s", unicodedata.normalize("NFC", value).encode()
    if isinstance(value, bytes):
        return b"x", value
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return b"D", bytes([-exponent & 0xFF]) + unscaled.to_bytes(16, "little", signed=True)
    if isinstance(value, (dt.datetime, dt.timedelta)):
        raise TypeError("say Local or Instant")
    if isinstance(value, dt.date):
        return b"d", struct.pack("<i", (value - dt.date(1970, 1, 1)).days)
    if isinstance(value, dt.time):
        return b"t", struct.pack("<q", ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)
    if isinstance(value, Instant):
        return b"T", struct.pack("<q", value.microseconds)
    if isinstance(value, Local):
        return b"L", struct.pack("<q", value.microseconds)
    if isinstance(value, Wkb):
        section = geometry_section(value.data, Rules(Grids(value.precision, value.precision, value.precision)))
        return b"g", section[1:] if section[:1] == b"\x01" else section
    if isinstance(value, list):
        out = struct.pack("<I", len(value))
        for element in value:
            one = value_bytes(element)
            out += b"\x00" if one is None else one[0] + struct.pack("<I", len(one[1])) + one[1]
        return b"l", out
    return b"r", attribute_section(value)


def attribute_section(attributes: dict[str, Any]) -> bytes:
    fields = []
    for name, value in attributes.items():
        one = value_bytes(value)
        if one is not None:
            key = unicodedata.normalize("NFC", name).encode()
            fields.append((key, struct.pack("<I", len(key)) + key + one[0] + struct.pack("<I", len(one[1])) + one[1]))
    return struct.pack("<I", len(fields)) + b"".join(field for _, field in sorted(fields))


def payload(wkb: bytes | None, attributes: dict[str, Any], rules: Rules) -> bytes:
    return geometry_section(wkb, rules) + attribute_section(attributes)


def digest(wkb: bytes | None, attributes: dict[str, Any], rules: Rules) -> bytes:
    return hashlib.blake2b(payload(wkb, attributes, rules), digest_size=16).digest()


# ---- what is stored ----


def stored(wkb: bytes, wanted: str, rules: Rules) -> tuple[bytes, int]:
    """Canonical WKB and flags: from the canonical bytes, back to doubles."""
    rules.flags = 0
    try:
        geometry = read(wkb)[0]
    except Unreadable:
        return wkb, UNREADABLE
    g = geometry_bytes(geometry, rules)
    if has_curves(geometry):
        return wkb, rules.flags | WRONG_TYPE
    kind, parts = g[0], struct.unpack_from("<I", g, 2)[0]
    names = {"point": 4, "linestring": 5, "polygon": 6, "multipoint": 4, "multilinestring": 5, "multipolygon": 6, "geometrycollection": 7}
    single = wanted in {"point", "linestring", "polygon"}
    if wanted in names and (names[wanted] != kind or (single and parts > 1)):
        return to_wkb(g, 0, rules.grids, multi=False)[0], rules.flags | WRONG_TYPE
    return to_wkb(g, 0, rules.grids, multi=wanted == "multi" or (wanted in names and not single))[0], rules.flags


def has_curves(geometry: tuple[int, bool, bool, Any]) -> bool:
    return geometry[0] > 7 or (geometry[0] == 7 and any(has_curves(member) for member in geometry[3]))


def to_wkb(g: bytes, at: int, grids: Grids, *, multi: bool) -> tuple[bytes, int]:
    """WKB of the G at `at`, and where it ends."""
    kind, dimensions, parts = struct.unpack_from("<BBI", g, at)
    at += 6
    precisions = [grids.xy, grids.xy] + [grids.z] * (dimensions & 1) + [grids.m] * (dimensions >> 1)

    def head(kind: int) -> bytes:
        return struct.pack("<BI", 1, kind + {0: 0, 1: 1000, 2: 2000, 3: 3000}[dimensions])

    def vertex(at: int) -> tuple[bytes, int]:
        out = b""
        for precision in precisions:
            out += struct.pack("<d", off_grid(struct.unpack_from("<q", g, at)[0], precision))
            at += 8
        return out, at

    def run(at: int, least: int, closing: int) -> tuple[bytes, int]:
        (n,) = struct.unpack_from("<I", g, at)
        at += 4
        out = []
        for _ in range(n):
            one, at = vertex(at)
            out.append(one)
        if out:
            out += [out[0]] * closing
            while len(out) < least:
                out.append(out[0])
        return struct.pack("<I", len(out)) + b"".join(out), at

    def body(at: int) -> tuple[bytes, int]:
        if kind == 4:
            return vertex(at)
        if kind == 5:
            return run(at, 2, 0)
        (rings,) = struct.unpack_from("<I", g, at)
        at += 4
        out = struct.pack("<I", rings)
        for _ in range(rings):
            ring, at = run(at, 4, 1)
            out += ring
        return out, at

    if kind == 7:
        out = head(7) + struct.pack("<I", parts)
        for _ in range(parts):
            member, at = to_wkb(g, at, grids, multi=False)
            out += member
        return out, at
    if not multi and parts == 0:
        return head(kind - 3) + (struct.pack("<d", math.nan) * len(precisions) if kind == 4 else struct.pack("<I", 0)), at
    out = head(kind) + struct.pack("<I", parts) if multi or parts > 1 else b""
    for _ in range(parts):
        one, at = body(at)
        out += head(kind - 3) + one
    return out, at
