"""No missed change: every kind of edit, on many random features each, through publish; and what is no edit changes nothing beside them.

Features lie on whole grid steps of the contract, or on multiples of 1.06 steps as a finer source has them. They are delivered in its CRS, or
carried back into another with all digits. So it is known without Merestone what has changed: a kind's edit touches every one of its features.
A confirmation lets so much change through the guards.
`make soak` takes a thousand features of each kind.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import pickle
import random
import unicodedata
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest
from pyproj import CRS, Transformer

from estate import geoparquet
from identity.wkb_strategies import to_bytes

EACH = 200
# CRS of the contract: decimals, and where in it the features lie, in whole steps
GROUNDS = {25832: (3, (450_000_000, 5_550_000_000)), 4326: (7, (85_000_000, 500_000_000))}
UTC = dt.UTC
FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "name", "type": "string"},
    {"name": "alias", "type": "string"},
    {"name": "code", "type": "string"},
    {"name": "rank", "type": "integer"},
    {"name": "share", "type": "number"},
    {"name": "open", "type": "boolean"},
    {"name": "day", "type": "date"},
    {"name": "hour", "type": "time"},
    {"name": "at", "type": "timestamp"},
    {"name": "local", "type": "timestamp_local"},
    {"name": "price", "type": "decimal(12,2)"},
    {"name": "blob", "type": "binary"},
    {"name": "tags", "type": "list<string>"},
    {"name": "size", "type": "struct<w: integer, unit: string>"},
    {"name": "door", "type": "geometry"},
]
TYPES = {
    "pid": pa.string(),
    "name": pa.string(),
    "alias": pa.string(),
    "code": pa.string(),
    "rank": pa.int64(),
    "share": pa.float64(),
    "open": pa.bool_(),
    "day": pa.date32(),
    "hour": pa.time64("us"),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "price": pa.decimal128(12, 2),
    "blob": pa.binary(),
    "tags": pa.list_(pa.string()),
    "size": pa.struct([("w", pa.int64()), ("unit", pa.string())]),
}

# ---- features: attributes, and a geometry as (WKB type, Z, M, content) in whole grid steps, rings as cycles ----


def attributes(noise, pid):
    return {
        "pid": pid,
        "name": f"Stra\u00dfe \u00e9 {noise.randrange(10**6)}",
        "alias": f"fish {noise.randrange(10**6)}",
        "code": f"0{noise.randrange(10**6)}k",
        "rank": noise.choice([noise.randrange(1, 300), 2**53 + 2 * noise.randrange(10**6)]),
        "share": noise.random(),
        "open": noise.random() < 0.5,
        "day": dt.date(2000, 1, 1) + dt.timedelta(days=noise.randrange(9000)),
        "hour": dt.time(noise.randrange(24), 5, 7, noise.randrange(999_999)),
        "at": dt.datetime(2020, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=noise.randrange(10**14)),
        "local": dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=noise.randrange(10**14)),  # noqa: DTZ001 - a local time is meant
        "price": Decimal(noise.randrange(-(10**9), 10**9)).scaleb(-2),
        "blob": noise.randbytes(5),
        "tags": ["a", str(noise.randrange(99)), "z"],
        "size": {"w": noise.randrange(99), "unit": "m"},
        "door": (1, False, False, [place(noise)]),
    }


def place(noise):
    """A position in whole steps, all of them even, so that the middle of two is a whole step too."""
    return (2 * noise.randrange(10_000_000), 2 * noise.randrange(10_000_000))


def ring(noise, x, y, radius, vertices):
    """A cycle around a place that has it inside, counter-clockwise, without repeats."""
    turn = noise.uniform(0, 1)
    angles = [turn + (k + noise.uniform(0, 0.6)) * 2 * math.pi / vertices for k in range(vertices)]
    far = [radius * noise.uniform(0.7, 1) for _ in angles]
    return [(x + 2 * round(r * math.cos(a)), y + 2 * round(r * math.sin(a))) for a, r in zip(angles, far, strict=True)]


def area(noise):
    """Two parts, the first with two holes."""
    x, y = place(noise)
    radius = noise.randrange(20_000, 500_000)
    holes = [ring(noise, x - radius // 4, y, radius // 20, 3), ring(noise, x + radius // 4, y, radius // 20, noise.randrange(3, 6))]
    parts = [[ring(noise, x, y, radius, noise.randrange(4, 12)), *holes], [ring(noise, x + 6 * radius, y, radius, 5)]]
    return (6, False, False, parts)


def patch(noise):
    x, y = place(noise)
    return (3, False, False, [ring(noise, x, y, noise.randrange(2000, 50_000), noise.randrange(4, 12))])


def line(noise, *, z=False, m=False, vertices=None):
    x, y = place(noise)
    count = vertices or noise.randrange(3, 9)
    return (
        2,
        z,
        m,
        [(x + 2000 * k, y + 2 * noise.randrange(900), *[2 * noise.randrange(9999) for _ in range(z + m)]) for k in range(count)],
    )


def point(noise):
    return (1, False, False, [place(noise)])


def measured(noise):
    return line(noise, z=True, m=True)


# ---- edits: what becomes of a row; each changes its copy in place ----


def shape(change):
    """An edit within the geometry's content."""
    return lambda row, noise: change(row["geometry"][3], noise)


def becomes(change):
    """An edit that gives another geometry, or none."""

    def edit(row, noise):
        row["geometry"] = change(row["geometry"][3], noise)

    return edit


def step(run, place_, axis, by=1):
    vertex = list(run[place_])
    vertex[axis] += by
    run[place_] = tuple(vertex)


def halfway(run):
    run.insert(1, tuple((a + b) // 2 for a, b in zip(run[0], run[1], strict=True)))


def shifted(polygon, by):
    return [[(x + by, y) for x, y in cycle] for cycle in polygon]


def hole_to_the_other(parts, _noise):
    """The first hole goes to the middle of the second part."""
    (x, y), *rest = parts[0].pop(1)
    cycle = parts[1][0]
    east, north = (sum(vertex[k] for vertex in cycle) // len(cycle) for k in (0, 1))
    parts[1].append([(east, north), *((east + a - x, north + b - y) for a, b in rest)])


def value(name, change):
    """An edit of one attribute."""

    def edit(row, _noise):
        row[name] = change(row[name]) if callable(change) else change

    return edit


def exchanged(one, other):
    def edit(row, _noise):
        row[one], row[other] = row[other], row[one]

    return edit


def member(name, change):
    return value("size", lambda size: {**size, name: change(size[name])})


ON_AREAS = {
    "x of a vertex by one step": shape(lambda parts, n: step(parts[0][0], n.randrange(4), 0, n.choice([1, -1]))),
    "y of a vertex by one step": shape(lambda parts, n: step(parts[0][0], n.randrange(4), 1, n.choice([1, -1]))),
    "the start vertex by one step": shape(lambda parts, _: step(parts[0][0], 0, 0)),
    "a hole's vertex by one step": shape(lambda parts, n: step(parts[0][n.choice([1, 2])], 1, 1)),
    "a vertex of the other part by one step": shape(lambda parts, _: step(parts[1][0], 2, 0, -1)),
    "the whole by one step": shape(lambda parts, _: parts.__setitem__(slice(None), [shifted(each, 1) for each in parts])),
    "a part by one step": shape(lambda parts, _: parts.__setitem__(1, shifted(parts[1], 1))),
    "a hole by one step": shape(lambda parts, _: parts[0].__setitem__(1, shifted(parts[0], 1)[1])),
    "a vertex added on a straight edge": shape(lambda parts, _: halfway(parts[0][0])),
    "a vertex removed": shape(lambda parts, n: parts[1][0].pop(n.randrange(5))),
    "a hole removed": shape(lambda parts, n: parts[0].pop(n.choice([1, 2]))),
    "a hole added": shape(lambda parts, _: parts[0].append(shifted(parts[0], (parts[0][2][0][0] - parts[0][1][0][0]) // 2)[1])),
    "a part removed": shape(lambda parts, n: parts.pop(n.randrange(2))),
    "a part added": shape(lambda parts, _: parts.append(shifted(parts[1], 10_000_000))),
    "a hole made a part": shape(lambda parts, _: parts.append(shifted([parts[0].pop(1)], -10_000_000))),
    "a hole moved to the other part": shape(hole_to_the_other),
    "area to null": becomes(lambda _, __: None),
    "area to empty": becomes(lambda _, __: (6, False, False, [])),
    "a vertex given another neighbour": shape(lambda parts, _: parts[1][0].__setitem__(slice(None), [parts[1][0][k] for k in (0, 2, 4)])),
}
ON_PATCHES = {
    "null to an area": becomes(lambda kept, _: (3, False, False, kept)),
    "null to an empty area": becomes(lambda _, __: (3, False, False, [])),
    "an area to its outline": becomes(lambda rings, _: (2, False, False, [*rings[0], rings[0][0]])),
    "an area in a collection": becomes(lambda rings, _: (7, False, False, [(3, False, False, rings)])),
    "an area doubled far away": becomes(lambda rings, _: (6, False, False, [rings, shifted(rings, 10_000_000)])),
}
ON_LINES = {
    "an end by one step": shape(lambda run, n: step(run, n.choice([0, -1]), n.choice([0, 1]))),
    "a line reversed": shape(lambda run, _: run.reverse()),
    "a line longer by a vertex": shape(lambda run, _: run.append((run[-1][0] + 2, run[-1][1]))),
    "a vertex added on a straight line": shape(lambda run, _: halfway(run)),
    "a line without a vertex": shape(lambda run, _: run.pop(1)),
    "two vertices of a line exchanged": shape(lambda run, _: run.__setitem__(slice(0, 2), run[1::-1])),
    "a line in two parts": becomes(lambda run, _: (5, False, False, [(2, False, False, run[:2]), (2, False, False, run[1:])])),
    "a line to its points": becomes(lambda run, _: (4, False, False, [(1, False, False, [vertex]) for vertex in run])),
    "a line back to its start": shape(lambda run, _: run.append(run[0])),
}
ON_POINTS = {
    "x of a point by one step": shape(lambda at, n: step(at, 0, 0, n.choice([1, -1]))),
    "y of a point by one step": shape(lambda at, n: step(at, 0, 1, n.choice([1, -1]))),
    "a point to two": becomes(lambda at, _: (4, False, False, [(1, False, False, at), (1, False, False, [(at[0][0] + 2, at[0][1])])])),
    "a point twice": becomes(lambda at, _: (4, False, False, [(1, False, False, at)] * 2)),
    "a point to a line": becomes(lambda at, _: (2, False, False, [at[0], (at[0][0] + 2, at[0][1])])),
    "a letter": value("name", lambda v: v + "x"),
    "letter case": value("name", str.upper),
    "a blank at the end": value("name", lambda v: v + " "),
    "a blank at the start": value("name", lambda v: " " + v),
    "two blanks for one": value("name", lambda v: v.replace(" ", "  ", 1)),
    "a no-break space": value("name", lambda v: v.replace(" ", "\u00a0", 1)),
    "an accent lost": value("name", lambda v: v.replace("\u00e9", "e")),
    "a letter of compatibility": value("alias", lambda v: v.replace("fi", "\ufb01")),
    "a leading zero": value("code", lambda v: v[1:]),
    "text to null": value("name", None),
    "text to empty": value("name", ""),
    "text to the word None": value("name", "None"),
    "a zero-width space": value("name", lambda v: v + "\u200b"),
    "an integer by one": value("rank", lambda v: v + 1),
    "an integer's sign": value("rank", lambda v: -v),
    "an integer to null": value("rank", None),
    "a number by its last bit": value("share", lambda v: math.nextafter(v, 2)),
    "a number to NaN": value("share", math.nan),
    "a number to zero": value("share", 0.0),
    "a boolean": value("open", lambda v: not v),
    "a boolean to null": value("open", None),
    "a day": value("day", lambda v: v + dt.timedelta(days=1)),
    "a time by a microsecond": value("hour", lambda v: v.replace(microsecond=v.microsecond + 1)),
    "an instant by a microsecond": value("at", lambda v: v + dt.timedelta(microseconds=1)),
    "an instant by an hour": value("at", lambda v: v + dt.timedelta(hours=1)),
    "a local time by a microsecond": value("local", lambda v: v + dt.timedelta(microseconds=1)),
    "a decimal's last digit": value("price", lambda v: v + Decimal("0.01")),
    "a byte": value("blob", lambda v: bytes([v[0] ^ 1, *v[1:]])),
    "bytes to none": value("blob", b""),
    "an element": value("tags", lambda v: [v[0], v[1] + "x", v[2]]),
    "elements in another order": value("tags", lambda v: v[::-1]),
    "an element added": value("tags", lambda v: [*v, "new"]),
    "an element removed": value("tags", lambda v: v[:-1]),
    "an element to null": value("tags", lambda v: [None, *v[1:]]),
    "a list to empty": value("tags", []),
    "a member": member("w", lambda v: v + 1),
    "a member to null": member("unit", lambda _: None),
    "two values of a feature exchanged": exchanged("name", "alias"),
    "null to empty text": value("name", ""),
    "null to text": value("name", "null"),
    "null to zero": value("rank", 0),
    "null to false": value("open", False),
    "null to no bytes": value("blob", b""),
    "null to a list without elements": value("tags", []),
    "null to a member's null": value("size", {"w": None, "unit": None}),
    "a second geometry by one step": lambda row, _: step(row["door"][3], 0, 0),
    "a second geometry to null": value("door", None),
}
ON_MEASURED = {
    "Z of a vertex by one step": shape(lambda run, n: step(run, n.randrange(3), 2, n.choice([1, -1]))),
    "M of a vertex by one step": shape(lambda run, n: step(run, n.randrange(3), 3, n.choice([1, -1]))),
    "Z of all by one step": shape(lambda run, _: [step(run, k, 2) for k in range(len(run))] and None),
    "a measure gone": shape(lambda run, _: run.__setitem__(0, (*run[0][:3], math.nan))),
    "Z and M exchanged": shape(lambda run, _: run.__setitem__(0, (*run[0][:2], run[0][3] + 20_001, run[0][2]))),
    "x by one step, with Z and M": shape(lambda run, _: step(run, 1, 0)),
    "reversed with Z and M": shape(lambda run, _: run.reverse()),
    "a vertex above the same place": shape(lambda run, _: run.insert(1, (*run[0][:2], run[0][2] + 2, run[0][3]))),
}
# How a kind's features are before the edit, where that is not how they were made.
STARTS = {
    "null to empty text": ("name", None),
    "null to text": ("name", None),
    "null to zero": ("rank", None),
    "null to false": ("open", None),
    "null to no bytes": ("blob", None),
    "null to a list without elements": ("tags", None),
    "null to a member's null": ("size", None),
    "null to an area": ("geometry", None),
    "null to an empty area": ("geometry", None),
    "minus zero": ("share", 0.0),
}
KINDS = [(area, ON_AREAS), (patch, ON_PATCHES), (line, ON_LINES), (point, ON_POINTS)]
MEASURED_KINDS = [(measured, ON_MEASURED)]

# ---- what is no edit ----


def cycles(change):
    def edit(row, noise):
        for polygon in row["geometry"][3]:
            polygon[:] = [change(each, noise) for each in polygon]

    return edit


def spun(cycle, noise):
    at = noise.randrange(len(cycle))
    return cycle[at:] + cycle[:at]


SAME_AREAS = {
    "nothing at all": lambda _row, _noise: None,
    "rings from another vertex": cycles(spun),
    "rings the other way": cycles(lambda cycle, _: cycle[::-1]),
    "holes in another order": shape(lambda parts, _: parts[0].__setitem__(slice(1, None), parts[0][:0:-1])),
    "parts in another order": shape(lambda parts, _: parts.reverse()),
    "a vertex told twice": cycles(lambda cycle, _: [cycle[0], *cycle]),
}
SAME_PATCHES = {"one part as many": becomes(lambda rings, _: (6, False, False, [rings]))}
SAME_LINES = {
    "one line as many": becomes(lambda run, _: (5, False, False, [(2, False, False, run)])),
    "a vertex of a line told twice": shape(lambda run, _: run.insert(1, run[1])),
}
SAME_POINTS = {
    "text decomposed": value("name", lambda v: unicodedata.normalize("NFD", v)),
    "minus zero": value("share", -0.0),
}
SAME = [(area, SAME_AREAS), (patch, SAME_PATCHES), (line, SAME_LINES), (point, SAME_POINTS)]
SAME_MEASURED = [(measured, {"nothing at all, with Z and M": lambda _row, _noise: None})]


WORLDS = {"xy": (KINDS, SAME), "xyzm": (MEASURED_KINDS, SAME_MEASURED)}


@lru_cache(maxsize=1)
def nights(dimensions, each):
    """The rows of two nights, of each route; a pid is its kind's name and a number. Every edit of a kind was applied to every row of it."""
    before, after = [], []
    for make, edits in itertools.chain(*WORLDS[dimensions]):
        for name, edit in edits.items():
            noise = random.Random(name)
            rows = [{**attributes(noise, f"{name}|{k}"), "geometry": make(noise)} for k in range(each)]
            edited = pickle.loads(pickle.dumps(rows))  # noqa: S301 - a deep copy, in a tenth of the time
            for row in edited:
                edit(row, noise)
            if name in STARTS:
                column, start = STARTS[name]
                rows = [{**row, column: start} for row in rows]
            before += rows
            after += edited
    return before, after


# ---- into files ----


def placed(tree, at, walk):
    """The tree in the source's units. `walk` takes one vertex after the other from an array, or, given a list, notes them there."""
    if tree is None:
        return None
    kind, z, m, content = tree
    if kind in {1, 2}:
        return kind, z, m, [walk(vertex, at) for vertex in content]
    if kind == 3:
        return kind, z, m, [[walk(vertex, at) for vertex in [*cycle, cycle[0]]] for cycle in content]
    members = [(3, z, m, each) for each in content] if kind == 6 else content
    return kind, z, m, [placed(each, at, walk) for each in members]


def written(path, rows, source, target, size):
    """GeoParquet in one CRS: steps of so many grid steps in the contract's CRS, or those carried into the other by PROJ."""
    precision, origin = GROUNDS[target]
    taken = []
    for row in rows:
        for name in ("geometry", "door"):
            placed(row[name], taken, lambda vertex, out: out.append(vertex[:2]))
    xy = (np.array(taken, dtype=float) * size + origin) / 10**precision
    if source != target:
        xy = np.stack(Transformer.from_crs(target, source, always_xy=True).transform(*xy.T), axis=1)
    positions = iter(xy.tolist())

    def walk(vertex, at):
        return (*next(at), *(each * size / 10**precision for each in vertex[2:]))

    wkb = {"geometry": [], "door": []}
    for row in rows:
        for name, column in wkb.items():
            tree = placed(row[name], positions, walk)
            column.append(None if tree is None else to_bytes(tree))
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    crs = CRS.from_epsg(source).to_json_dict()
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {name: {"encoding": "WKB", "geometry_types": [], "crs": crs} for name in wkb},
    }
    return geoparquet(path, {**columns, **{name: pa.array(each, pa.binary()) for name, each in wkb.items()}}, geo=geo)


def missed(estate, folder, each, route, dimensions):
    """Publish both nights; kind of edit to the number of its features that are not "changed", and the keys that changed without an edit."""
    clause = {"nullable": True, "empty": True, "dimensions": dimensions}
    source, target, size = route
    fields = [
        {**each, "crs_epsg": target, "coordinate_precision": GROUNDS[target][0]} if each["type"] == "geometry" else each for each in FIELDS
    ]
    product = estate(fields, epsg=target, precision=GROUNDS[target][0], geometry=clause).by_place(20_000)
    product.settings["crs"] = {"accept": [f"EPSG:{source}"]}
    kinds, _ = WORLDS[dimensions]
    before, after = nights(dimensions, each)
    first = product.publish(written(folder / "1.parquet", before, source, target, size))
    assert (first.status, first.result.rejected, first.result.delta.added) == ("published", 0, len(before)), first.said
    second = written(folder / "2.parquet", after[::-1], source, target, size)
    asked = product.publish(second)
    assert (asked.status, asked.result.refused_by) == ("refused", "guard"), asked.said
    night = product.publish(second, confirm=asked.result.confirm)
    assert (night.status, night.result.rejected) == ("published", 0), night.said
    edits = [name for _, edits in kinds for name in edits]
    left = dict.fromkeys(edits, each)
    wrong = []
    for key, kind in night.classes.items():
        name = key.rpartition("|")[0]
        if kind == "changed" and name in left:
            left[name] -= 1
        elif kind != "refreshed" and name not in left:
            wrong.append((key, kind))
    return {name: count for name, count in left.items() if count}, wrong


# CRS of the source, of the contract, and how many steps of its grid an edit of one step is
ROUTES = [(25832, 25832, 1), (4326, 25832, 1), (25832, 4326, 1), (25832, 25832, 1.06), (4326, 25832, 1.06)]


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_edit_is_missed(estate, tmp_path, route):
    assert missed(estate, tmp_path, EACH, route, "xy") == ({}, [])


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_edit_of_z_and_m_is_missed(estate, tmp_path, route):
    assert missed(estate, tmp_path, EACH, route, "xyzm") == ({}, [])


@pytest.mark.soak
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_edit_is_missed_on_a_thousand_features_of_each_kind(estate, tmp_path, route):
    assert missed(estate, tmp_path / "xy", 1000, route, "xy") == ({}, [])
    assert missed(estate, tmp_path / "xyzm", 1000, route, "xyzm") == ({}, [])


def test_there_are_many_kinds():
    assert sum(len(edits) for _, edits in [*KINDS, *MEASURED_KINDS]) >= 84
