"""WKB for property tests: every type, dimensions, dialect and byte order, empties at each level, repeats, spikes, odd ordinates.

Not here: what the bytes mean (`reference`).
"""

from __future__ import annotations

import math
import struct
from typing import Any

from hypothesis import strategies as st

# Few different values make repeats, ties and bow-ties likely; the rest are edges of rounding and of doubles.
ORDINATES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -0.0]),
    st.sampled_from([0.005, 0.015, -0.005, 1.0049999, 1e-9, 123456.785, 5337087.02]),
    st.floats(-1000, 1000),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e18, 2.0**52, 2.0**50 / 100, 1e16, 5e-324]),
)
PLAIN = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 0.005]), st.floats(-1000, 1000))


KINDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17)
MEMBERS = {
    4: [1],
    5: [2],
    6: [3],
    7: [1, 2, 3, 4, 6, 8, 7],
    9: [2, 8],
    10: [2, 8, 9],
    11: [2, 8, 9],
    12: [3, 10],
    15: [3, 17],
    16: [17, 3],
}


@st.composite
def trees(draw: Any, ordinates: Any = ORDINATES, kinds: tuple[int, ...] = KINDS, depth: int = 2) -> Any:
    """(kind, z, m, content) with the content of `reference.read`."""
    z, m = draw(st.booleans()), draw(st.booleans())
    return draw(of_kind(draw(st.sampled_from(kinds)), z, m, ordinates, depth))


@st.composite
def of_kind(draw: Any, kind: int, z: bool, m: bool, ordinates: Any, depth: int) -> Any:
    vertex = st.tuples(*[ordinates] * (2 + z + m))
    run = st.lists(vertex, max_size=6)
    if kind == 1:
        return kind, z, m, draw(st.lists(vertex, max_size=1))
    if kind in {2, 8}:
        return kind, z, m, draw(run)
    if kind in {3, 17}:
        return kind, z, m, [ring + ring[:1] if close else ring for ring, close in draw(st.lists(st.tuples(run, st.booleans()), max_size=4))]
    members = []
    for _ in range(draw(st.integers(0, 3 if depth else 0))):
        mz, mm = (draw(st.booleans()), draw(st.booleans())) if kind == 7 else (z, m)
        members.append(draw(of_kind(draw(st.sampled_from(MEMBERS[kind])), mz, mm, ordinates, depth - 1)))
    return kind, z, m, members


def to_bytes(tree: Any, *, order: str = "<", ewkb: bool = False, srid: int | None = None) -> bytes:
    """The tree as WKB in one dialect."""
    kind, z, m, content = tree
    d = 2 + z + m
    code = kind
    if ewkb:
        code |= (0x80000000 if z else 0) | (0x40000000 if m else 0) | (0x20000000 if srid is not None else 0)
    else:
        code += 1000 * z + 2000 * m
    out = (b"\x01" if order == "<" else b"\x00") + struct.pack(order + "I", code)
    if ewkb and srid is not None:
        out += struct.pack(order + "I", srid)

    def run(vertices: Any) -> bytes:
        return struct.pack(order + "I", len(vertices)) + b"".join(struct.pack(f"{order}{d}d", *vertex) for vertex in vertices)

    if kind == 1:
        return out + struct.pack(f"{order}{d}d", *(content[0] if content else (math.nan,) * d))
    if kind in {2, 8}:
        return out + run(content)
    if kind in {3, 17}:
        return out + struct.pack(order + "I", len(content)) + b"".join(run(ring) for ring in content)
    return out + struct.pack(order + "I", len(content)) + b"".join(to_bytes(member, order=order, ewkb=ewkb) for member in content)


@st.composite
def wkb(draw: Any, **wanted: Any) -> bytes:
    """One geometry in any dialect."""
    tree = draw(trees(**wanted))
    ewkb = draw(st.booleans())
    return to_bytes(tree, order=draw(st.sampled_from("<>")), ewkb=ewkb, srid=draw(st.sampled_from([None, 4326])) if ewkb else None)


@st.composite
def hostile(draw: Any) -> bytes:
    """Bytes that were WKB before they were damaged, or never were."""
    data = bytearray(draw(wkb()))
    for _ in range(draw(st.integers(0, 4))):
        how = draw(st.sampled_from(["set", "cut", "add", "count"]))
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        if how == "set" and data:
            data[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del data[at:]
        elif how == "add":
            data[at:at] = draw(st.binary(max_size=9))
        elif len(data) >= at + 4:
            data[at : at + 4] = struct.pack("<I", draw(st.sampled_from([0, 1, 2, 0xFFFFFFFF, 0x7FFFFFFF, 1_000_000])))
    return bytes(data)
