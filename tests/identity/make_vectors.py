"""Write docs/spec/fingerprint-vectors.json from the reference. A released layout is frozen: run this only to add vectors, and look at the diff.

    python tests/identity/make_vectors.py

A test holds the file equal to what this script would write, and both kernels equal to the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from identity import vectors
from identity.wkb_strategies import to_bytes

NAN, INF = math.nan, math.inf
SQUARE = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0), (0.0, 0.0)]
HOLE = [(2.0, 2.0), (2.0, 3.0), (3.0, 3.0), (3.0, 2.0), (2.0, 2.0)]
OTHER = [(5.0, 5.0), (5.0, 6.0), (6.0, 6.0), (6.0, 5.0), (5.0, 5.0)]


def xy(kind: int, content: Any) -> Any:
    return kind, False, False, content


def moved(ring: list[tuple[float, ...]], dx: float) -> list[tuple[float, ...]]:
    return [(vertex[0] + dx, *vertex[1:]) for vertex in ring]


def started(ring: list[tuple[float, ...]], at: int) -> list[tuple[float, ...]]:
    open_ring = ring[:-1]
    turned = open_ring[at:] + open_ring[:at]
    return [*turned, turned[0]]


POINT = xy(1, [(10.0, 56.0)])
POLYGON = xy(3, [SQUARE, HOLE, OTHER])
LINE = xy(2, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)])

# name, geometry (a tree, bytes or None), settings
GEOMETRIES: list[tuple[str, Any, dict[str, Any]]] = [
    ("null geometry", None, {}),
    ("point", POINT, {}),
    ("point, as multipoint", xy(4, [POINT]), {}),
    ("point, big-endian", POINT, {"order": ">"}),
    ("point, EWKB with SRID", POINT, {"ewkb": True, "srid": 4326}),
    ("point empty", xy(1, []), {}),
    ("multipoint empty", xy(4, []), {}),
    ("point z", (1, True, False, [(10.0, 56.0, 5.25)]), {}),
    ("point m", (1, False, True, [(10.0, 56.0, 5.25)]), {}),
    ("point zm", (1, True, True, [(10.0, 56.0, 5.25, 7.5)]), {}),
    ("point zm, big-endian EWKB", (1, True, True, [(10.0, 56.0, 5.25, 7.5)]), {"order": ">", "ewkb": True, "srid": 25832}),
    ("point zm under xy", (1, True, True, [(10.0, 56.0, 5.25, 7.5)]), {"dimensions": "xy"}),
    ("point zm under xyz, z on its own grid", (1, True, True, [(10.0, 56.0, 5.256, 7.5)]), {"dimensions": "xyz", "z": 2}),
    ("point zm under xym, m on its own grid", (1, True, True, [(10.0, 56.0, 5.25, 7.56)]), {"dimensions": "xym", "m": 1}),
    ("point m, no measure", (1, False, True, [(10.0, 56.0, NAN)]), {}),
    ("point z empty", (1, True, False, []), {}),
    ("point with x NaN", xy(1, [(NAN, 56.0)]), {}),
    ("point with y infinite", xy(1, [(10.0, INF)]), {}),
    ("point with z NaN", (1, True, False, [(10.0, 56.0, NAN)]), {}),
    ("point beyond the grid", xy(1, [(1e18, -1e300)]), {}),
    ("point at the edge of the grid", xy(1, [(2.0**50 / 100, -(2.0**50) / 100)]), {"xy": 2}),
    ("minus zero", xy(1, [(-0.0, -1e-9)]), {}),
    ("half-grid ties", xy(1, [(0.5, -0.5)]), {"xy": 0}),
    ("decimals whose double lies below the half", xy(1, [(1.005, 0.285)]), {"xy": 2}),
    ("decimals whose double lies above the half", xy(1, [(1.045, 0.615)]), {"xy": 2}),
    ("halves that doubles hold exactly", xy(1, [(0.125, -0.375)]), {"xy": 2}),
    ("products that round to a half", xy(1, [(0.00000015, -12.34567895)]), {"xy": 7}),
    ("halves of tens", xy(1, [(25.0, -35.0)]), {"xy": -1}),
    ("a double below and at a decimal half", xy(1, [(1.0049999999999999, -1.0050000000000001)]), {"xy": 2}),
    ("a tie in binary", xy(1, [(657035.9135, 5337087.0205)]), {"xy": 3}),
    ("nine decimals", xy(1, [(12.3456789012, -98.7654321098)]), {"xy": 9}),
    ("a grid of a hundred", xy(1, [(657035.9135, 5337087.0205)]), {"xy": -2}),
    ("a source grid in degrees", xy(1, [(10.123456789123, 56.123456789123)]), {"xy": 10}),
    ("line", LINE, {}),
    ("line, as multilinestring", xy(5, [LINE]), {}),
    ("line reversed", xy(2, LINE[3][::-1]), {}),
    ("line reversed, direction irrelevant", xy(2, LINE[3][::-1]), {"direction": "irrelevant"}),
    ("line, direction irrelevant", LINE, {"direction": "irrelevant"}),
    ("line with repeats", xy(2, [(0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (1.000000001, 1.0), (2.0, 0.0)]), {}),
    ("line empty", xy(2, []), {}),
    ("line collapsed", xy(2, [(1.0, 1.0), (1.000000001, 1.0)]), {}),
    ("line z, vertical", (2, True, False, [(1.0, 1.0, 0.0), (1.0, 1.0, 5.0)]), {}),
    ("line zm", (2, True, True, [(0.0, 0.0, 1.0, NAN), (1.0, 1.0, 2.0, 3.0)]), {}),
    ("multilinestring, parts in any order", xy(5, [xy(2, [(5.0, 5.0), (6.0, 6.0)]), LINE]), {}),
    ("multilinestring with an empty part", xy(5, [LINE, xy(2, [])]), {}),
    ("polygon with two holes", POLYGON, {}),
    ("polygon, other start", xy(3, [started(SQUARE, 2), started(HOLE, 1), OTHER]), {}),
    ("polygon, rings the other way", xy(3, [SQUARE[::-1], HOLE[::-1], OTHER[::-1]]), {}),
    ("polygon, holes in the other order", xy(3, [SQUARE, OTHER, HOLE]), {}),
    ("polygon, as multipolygon", xy(6, [POLYGON]), {}),
    ("polygon without a closing vertex", xy(3, [SQUARE[:-1]]), {}),
    ("polygon with repeats", xy(3, [[SQUARE[0], *SQUARE, SQUARE[0]]]), {}),
    ("polygon empty", xy(3, []), {}),
    ("polygon with an empty ring", xy(3, [[]]), {}),
    ("bow-tie", xy(3, [[(0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (0.0, 2.0), (0.0, 0.0)]]), {}),
    ("bow-tie, other way", xy(3, [[(0.0, 0.0), (0.0, 2.0), (2.0, 0.0), (2.0, 2.0), (0.0, 0.0)]]), {}),
    ("ring without area", xy(3, [[(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.0, 0.0)]]), {}),
    ("ring that touches itself", xy(3, [[(0.0, 0.0), (2.0, 0.0), (0.0, 0.0), (0.0, 2.0), (-2.0, 2.0), (0.0, 0.0)]]), {}),
    ("polygon collapsed to a point", xy(3, [[(1.0, 1.0), (1.000000001, 1.0), (1.0, 1.000000001), (1.0, 1.0)]]), {}),
    ("ring with NaN", xy(3, [[(0.0, 0.0), (NAN, 1.0), (1.0, 1.0), (0.0, 0.0)]]), {}),
    ("polygon z, equal x and y", (3, True, False, [[(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (0.0, 1.0, 3.0), (0.0, 0.0, 1.0)]]), {}),
    ("polygon m, closing measure differs", (3, False, True, [[(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (0.0, 1.0, 3.0), (0.0, 0.0, 4.0)]]), {}),
    ("polygon with a large area", xy(3, [[(x * 1e5, y * 1e5) for x, y in SQUARE]]), {"xy": 9}),
    ("multipolygon", xy(6, [xy(3, [moved(SQUARE, 20.0)]), POLYGON]), {}),
    ("multipolygon, parts in the other order", xy(6, [POLYGON, xy(3, [moved(SQUARE, 20.0)])]), {}),
    ("multipolygon with an empty part", xy(6, [xy(3, []), POLYGON]), {}),
    ("multipolygon empty", xy(6, []), {}),
    ("multipoint keeps repeats", xy(4, [xy(1, [(2.0, 2.0)]), xy(1, [(1.0, 1.0)]), xy(1, [(2.0, 2.0)])]), {}),
    ("multipoint with an empty part", xy(4, [xy(1, []), POINT]), {}),
    ("collection", xy(7, [POINT, LINE, POLYGON]), {}),
    ("collection, members in another order", xy(7, [POLYGON, POINT, LINE]), {}),
    ("collection empty", xy(7, []), {}),
    ("collection with empty members", xy(7, [xy(1, []), xy(7, []), LINE]), {}),
    ("collection in a collection", xy(7, [xy(7, [POINT]), POINT]), {}),
    ("collection with one member with z", xy(7, [(1, True, False, [(1.0, 2.0, 3.0)]), POINT]), {}),
    ("circular string", xy(8, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), {}),
    ("circular string with a repeat", xy(8, [(0.0, 0.0), (0.0, 0.0), (2.0, 0.0)]), {}),
    ("compound curve", xy(9, [xy(8, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), xy(2, [(2.0, 0.0), (3.0, 0.0)])]), {}),
    ("curve polygon", xy(10, [xy(8, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (1.0, -1.0), (0.0, 0.0)]), xy(2, HOLE), xy(2, OTHER)]), {}),
    ("multicurve", xy(11, [xy(8, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), LINE]), {}),
    ("multisurface", xy(12, [xy(10, [xy(8, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (1.0, -1.0), (0.0, 0.0)])]), POLYGON]), {}),
    (
        "polyhedral surface",
        (
            15,
            True,
            False,
            [
                (3, True, False, [[(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)]]),
                (3, True, False, [[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)]]),
            ],
        ),
        {},
    ),
    ("tin", (16, True, False, [(17, True, False, [[(1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 1.0, 1.0), (1.0, 0.0, 0.0)]])]), {}),
    ("triangle keeps its direction", xy(17, [[(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)]]), {}),
    ("no WKB", b"POINT (1 2)", {}),
    ("WKB cut short", to_bytes(POLYGON)[:40], {}),
    ("bytes behind the geometry", to_bytes(POINT) + b"\x00\x01", {}),
    ("empty bytes", b"", {}),
]

# name, attributes as (name, type, value[, precision])
ATTRIBUTES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("no attribute", []),
    ("null attribute is left out", [("a", "string", None)]),
    ("text", [("name", "string", "Merestone")]),
    ("empty text is a value", [("name", "string", "")]),
    ("text composed", [("name", "string", "\u00c5ngstr\u00f6m")]),
    ("text decomposed", [("name", "string", "A\u030angstro\u0308m")]),
    ("text with the Angstrom sign", [("name", "string", "\u212bngstr\u00f6m")]),
    ("name decomposed", [("stra\u00dfe no\u0308", "string", "x")]),
    ("blank at the end", [("name", "string", "Main St ")]),
    ("integer", [("n", "integer", 3)]),
    ("integer as number", [("n", "number", 3.0)]),
    ("integers around 2^53", [("a", "integer", 9007199254740993), ("b", "integer", -9007199254740993)]),
    ("least and largest integer", [("a", "integer", -(2**63)), ("b", "integer", 2**63 - 1)]),
    ("number", [("n", "number", 0.1)]),
    ("number minus zero", [("n", "number", -0.0)]),
    ("number NaN is null", [("n", "number", "NaN")]),
    ("number infinite", [("n", "number", "-Infinity")]),
    ("whole number from 2^53 on", [("a", "number", 9007199254740991.0), ("b", "number", 9007199254740992.0)]),
    ("booleans", [("t", "boolean", True), ("f", "boolean", False)]),
    ("date", [("d", "date", "2024-02-29"), ("before", "date", "1899-12-31")]),
    ("time", [("t", "time", "23:59:59.999999")]),
    ("instant", [("t", "timestamp", "2024-10-27T01:30:00.000001+00:00")]),
    ("the same instant in another zone", [("t", "timestamp", "2024-10-27T03:30:00.000001+02:00")]),
    ("instant before 1970", [("t", "timestamp", "1969-12-31T23:59:59.999999+00:00")]),
    ("local time", [("t", "timestamp_local", "2024-10-27T01:30:00.000001")]),
    ("decimal", [("d", "decimal(10,2)", "1.5"), ("e", "decimal(10,2)", "-1.50"), ("f", "decimal(38,0)", "9" * 38)]),
    ("binary", [("b", "binary", "00ff"), ("c", "binary", "")]),
    ("list of text", [("l", "list<string>", ["a", None, "o\u0308", ""]), ("m", "list<string>", [])]),
    ("list of numbers", [("l", "list<number>", [1.0, 0.5, "NaN", -0.0])]),
    ("struct", [("s", "struct<k: integer, u: string>", {"k": 7, "u": None})]),
    ("struct without a value", [("s", "struct<k: integer, u: string>", {"k": None, "u": None})]),
    ("list of structs", [("l", "list<struct<k: integer>>", [{"k": 1}, {"k": None}, None])]),
    ("second geometry", [("label_point", "geometry", to_bytes(xy(1, [(1.26, 2.0)])).hex(), 1)]),
    ("second geometry, unreadable", [("label_point", "geometry", "ffff", 1)]),
    ("sorted by the bytes of names", [("b", "integer", 1), ("a\u00e9", "integer", 2), ("B", "integer", 3), ("az", "integer", 4)]),
]


def vector(name: str, geometry: Any, settings: dict[str, Any], attributes: list[tuple[Any, ...]]) -> dict[str, Any]:
    dialect = {key: settings[key] for key in ("order", "ewkb", "srid") if key in settings}
    wkb = geometry if geometry is None or isinstance(geometry, bytes) else to_bytes(geometry, **dialect)
    precision = settings.get("xy", 7)
    out: dict[str, Any] = {
        "name": name,
        "wkb": None if wkb is None else wkb.hex(),
        "grid": {"xy": precision, "z": settings.get("z", precision), "m": settings.get("m", precision)},
        "dimensions": settings.get("dimensions", "as_is"),
        "direction": settings.get("direction", "significant"),
        "attributes": [
            {"name": each[0], "type": each[1], "value": each[2], **({"precision": each[3]} if len(each) > 3 else {})} for each in attributes
        ],
    }
    payload = vectors.reference_payload(out)
    stored = None if wkb is None else vectors.reference.stored(wkb, "any", vectors.rules_of(out))[0].hex()
    return {**out, "payload": payload.hex(), "digest": hashlib.blake2b(payload, digest_size=16).hexdigest(), "stored": stored}


def both_digests() -> list[dict[str, Any]]:
    """One delivered road: its source digest on the source's grid in degrees, its published digest on the contract's in metres."""
    attributes: list[tuple[Any, ...]] = [("name", "string", "High Street"), ("lanes", "integer", 2)]
    delivered = xy(2, [(-0.1276474, 51.5073219), (-0.1280123, 51.5075642)])
    published = xy(2, [(530034.118, 180381.204), (530008.093, 180407.489)])
    return [
        vector("source digest of a road, in degrees", delivered, {"xy": 9}, attributes),
        vector("published digest of the same road, in metres", published, {"xy": 2}, attributes),
    ]


def document() -> dict[str, Any]:
    made = [vector(name, geometry, settings, [("id_text", "string", "x")]) for name, geometry, settings in GEOMETRIES]
    made += [vector(name, POINT, {}, attributes) for name, attributes in ATTRIBUTES]
    return {"layout": 2, "vectors": made + both_digests()}


def text() -> str:
    lines = ",\n".join(json.dumps(each, ensure_ascii=True) for each in document()["vectors"])
    return f'{{"layout": 2, "vectors": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    vectors.FILE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{len(document()['vectors'])} vectors\n")
