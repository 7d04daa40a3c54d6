"""Digests of Arrow columns: every type as the reference has it, nothing false, nothing missed."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import unicodedata
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.affinity import translate

from contracts import contract
from identity import reference
from identity.wkb_strategies import PLAIN, to_bytes, trees, wkb
from merestone.contract.contract import Derived, Field, FieldType, GeometryClause
from merestone.contract.field_type import parse_type
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.canonical import sorted_columns
from merestone.identity.digest import DigestField, Layout, digest_batch, layout_of_contract

GRID = Grid(7)
RULES = reference.Rules(reference.Grids(7, 7, 7))


pytestmark = pytest.mark.usefixtures("each_kernel")


# ---- every type, against the reference ----

texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["", "e\u0301", "\u212b", "a\0"])
floats = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 2.0**53, 2.0**53 - 1, math.nan, math.inf, 0.5])
int64s = st.integers(-(2**63), 2**63 - 1)
micro = st.integers(-(2**55), 2**55)


def same(value):
    return value


def per_second(unit):
    return {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]


# Arrow type, values as pyarrow takes them, and what the reference makes of a value
TYPES = {
    "string": (pa.string(), texts, same),
    "large_string": (pa.large_string(), texts, same),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), texts, same),
    "int8": (pa.int8(), st.integers(-128, 127), same),
    "uint16": (pa.uint16(), st.integers(0, 65535), same),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1), same),
    "int64": (pa.int64(), int64s, same),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1), same),
    "float64": (pa.float64(), floats, same),
    "float32": (pa.float32(), st.floats(width=32), same),
    "float16": (pa.float16(), st.floats(width=16).map(np.float16), float),
    "bool": (pa.bool_(), st.booleans(), same),
    "date32": (pa.date32(), st.dates(), same),
    "date64": (pa.date64(), st.dates(), same),
    "time32": (pa.time32("ms"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)), same),
    "time64": (pa.time64("us"), st.times(), same),
    "timestamp_s": (pa.timestamp("s"), st.integers(-(2**40), 2**40), lambda v: reference.Local(v * per_second("s"))),
    "timestamp_ms_tz": (pa.timestamp("ms", "Europe/Oslo"), st.integers(-(2**45), 2**45), lambda v: reference.Instant(v * per_second("ms"))),
    "timestamp_us": (pa.timestamp("us"), micro, reference.Local),
    "timestamp_ns_tz": (pa.timestamp("ns", "UTC"), int64s, lambda v: reference.Instant(v // 1000)),
    "decimal": (pa.decimal128(20, 3), st.integers(-(10**17), 10**17).map(lambda n: Decimal(n).scaleb(-3)), same),
    "binary": (pa.binary(), st.binary(max_size=5), same),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3), same),
    "list": (pa.list_(pa.string()), st.lists(st.none() | texts, max_size=3), same),
    "large_list": (pa.large_list(pa.float64()), st.lists(st.none() | floats, max_size=3), same),
    "fixed_list": (pa.list_(pa.int16(), 2), st.lists(st.none() | st.integers(0, 9), min_size=2, max_size=2), same),
    "nested": (pa.list_(pa.list_(pa.int64())), st.lists(st.none() | st.lists(int64s, max_size=2), max_size=3), same),
    "struct": (
        pa.struct([("k", pa.int64()), ("e\u0301", pa.string())]),
        st.fixed_dictionaries({"k": st.none() | int64s, "e\u0301": st.none() | texts}),
        same,
    ),
    "structs": (
        pa.list_(pa.struct([("b", pa.list_(pa.bool_()))])),
        st.lists(st.none() | st.fixed_dictionaries({"b": st.none() | st.lists(st.booleans(), max_size=2)}), max_size=2),
        same,
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.lists(st.tuples(texts, st.none() | int64s), max_size=2),
        lambda pairs: [{"key": k, "value": v} for k, v in pairs],
    ),
    "null": (pa.null(), st.none(), same),
}


@st.composite
def attribute_tables(draw):
    """Some typed columns and a geometry, cut out of longer ones; and the same rows as the reference takes them."""
    n, skip = draw(st.integers(0, 5)), draw(st.integers(0, 3))
    chosen = draw(st.lists(st.sampled_from(list(TYPES)), max_size=4, unique=True))
    columns, rows = {}, [{} for _ in range(n)]
    for place, each in enumerate(chosen):
        kind, values, to_reference = TYPES[each]
        drawn = draw(st.lists(st.none() | values, min_size=n + skip, max_size=n + skip))
        label = ("e\u0301", "Z", "a")[place % 3] + str(place)
        columns[label] = pa.array(drawn, kind).slice(skip)
        for row, value in zip(rows, drawn[skip:], strict=True):
            row[label] = None if value is None else to_reference(value)
    geometry = draw(st.lists(st.none() | wkb(ordinates=PLAIN), min_size=n, max_size=n))
    columns["geometry"] = pa.array(geometry, pa.binary())
    return pa.table(columns), rows, geometry


@settings(max_examples=150, deadline=None)
@given(attribute_tables())
def test_every_type_is_digested_as_the_reference_does(made):
    table, rows, geometry = made
    fields = tuple(DigestField(each) for each in table.column_names if each != "geometry")
    got = digest_batch(table, Layout(fields, GRID), "geometry").to_pylist()
    assert got == [reference.digest(value, row, RULES) for value, row in zip(geometry, rows, strict=True)]
    alone = digest_batch(table, Layout(fields, GRID), None).to_pylist()
    assert alone == [reference.digest(None, row, RULES) for row in rows]


def test_types_without_a_tag_are_refused():
    for values, kind in (([1], pa.duration("s")), ([(1, 2, 3)], pa.month_day_nano_interval())):
        with pytest.raises(ValueError, match="'odd' is of type"):
            digest_batch(pa.table({"odd": pa.array(values, kind)}), Layout((DigestField("odd"),), GRID), None)


def test_two_names_that_are_one_text_are_refused():
    table = pa.table({"e\u0301": [1], "\u00e9": [2]})
    with pytest.raises(ValueError, match="two columns are called"):
        digest_batch(table, Layout((DigestField("e\u0301"), DigestField("\u00e9")), GRID), None)
    assert sorted_columns([None]) == []


def test_missing_columns_are_named():
    with pytest.raises(KeyError, match="'b' is not among a"):
        digest_batch(pa.table({"a": [1]}), Layout((DigestField("b"),), GRID), None)


def test_a_contract_type_decides_the_tag():
    """What a format made of a column does not matter once the contract types it."""
    as_float, as_int = pa.table({"n": [3.0]}), pa.table({"n": pa.array([3], pa.int16())})
    for kind in ("integer", "number"):
        layout = Layout((DigestField("n", parse_type(kind)),), GRID)
        assert digest_batch(as_float, layout, None) == digest_batch(as_int, layout, None)
    layout = Layout((DigestField("n", parse_type("decimal(5,2)")),), GRID)
    assert digest_batch(pa.table({"n": pa.array([Decimal("1.5")])}), layout, None) == digest_batch(
        pa.table({"n": pa.array([Decimal("1.50")])}), layout, None
    )
    utc = pa.table({"t": pa.array([0], pa.timestamp("ms"))}), pa.table({"t": pa.array([0], pa.timestamp("ns", "UTC"))})
    layout = Layout((DigestField("t", parse_type("timestamp")),), GRID)
    assert digest_batch(utc[0], layout, None) == digest_batch(utc[1], layout, None)


def test_the_layout_of_a_contract():
    text, number, spot = FieldType("string"), FieldType("number"), FieldType("geometry")
    agreed = contract(
        schema_fields=(
            Field("pid", text),
            Field("name", text),
            Field("guid", text, volatile=True),
            Field("area", number, derived=Derived("area")),
            Field("spot", spot, crs_epsg=4326, coordinate_precision=5),
        ),
        coordinate_precision=3,
        geometry=GeometryClause(dimensions="xyz", z_precision=1, direction="irrelevant"),
    )
    layout = layout_of_contract(agreed, ["pid"])
    assert [each.name for each in layout.fields] == ["name", "spot"]
    assert (layout.fields[1].grid, layout.fields[1].shape) == (Grid(5, 1), Shape("any", "xyz"))
    assert layout.grid == Grid(3, 1, None)
    assert (layout.shape.type, layout.shape.dimensions, layout.shape.either_way) == ("geometry", "xyz", True)
    assert [each.name for each in layout.only("name").fields] == ["name"]
    assert layout.only_geometry().fields == ()
    assert layout.with_grid(Grid(9)).grid == Grid(9)


# ---- nothing false ----


def digest_of(tree, attributes=None, *, layout=None, **dialect):
    """The digest of one feature: a tree or shapely geometry, and attributes as Python values."""
    value = to_bytes(tree, **dialect) if isinstance(tree, tuple) else None if tree is None else shapely.to_wkb(tree)
    columns = {key: each if isinstance(each, pa.Array) else pa.array([each]) for key, each in (attributes or {}).items()}
    table = pa.table({**columns, "geometry": pa.array([value], pa.binary())})
    fields = tuple(DigestField(key) for key in columns)
    return digest_batch(table, layout or Layout(fields, GRID), "geometry").to_pylist()[0]


def shuffled(tree, noise):
    """The same geometry, told otherwise: rings from another vertex and the other way, holes, parts and members in another order."""
    kind, z, m, content = tree
    if kind == 1 or kind in {2, 8, 9, 10, 15, 16, 17}:
        return tree
    if kind == 3:
        rings = []
        for ring in content:
            cycle = ring[:-1] if len(ring) > 1 and ring[0] == ring[-1] else list(ring)
            at = noise.randrange(len(cycle)) if cycle else 0
            cycle = cycle[at:] + cycle[:at]
            cycle = cycle[::-1] if noise.random() < 0.5 else cycle
            rings.append(cycle + cycle[:1] if noise.random() < 0.8 else cycle)
        holes = rings[1:]
        noise.shuffle(holes)
        return kind, z, m, rings[:1] + holes
    members = [shuffled(member, noise) for member in content]
    if kind != 9:
        noise.shuffle(members)
    return kind, z, m, members


@settings(max_examples=200, deadline=None)
@given(trees(ordinates=PLAIN, kinds=(1, 2, 3, 4, 5, 6, 7)), st.integers(0, 2**32), st.sampled_from("<>"), st.booleans())
def test_told_otherwise_but_the_same(tree, seed, order, ewkb):
    noise = random.Random(seed)
    assert digest_of(shuffled(tree, noise), order=order, ewkb=ewkb, srid=4326 if ewkb else None) == digest_of(tree)


@settings(max_examples=200, deadline=None)
@given(trees(ordinates=st.integers(-(10**9), 10**9).map(lambda q: q / 1e7), kinds=(1, 2, 3, 4, 5, 6, 7)), st.integers(0, 2**32))
def test_noise_below_the_grid_is_not_seen(tree, seed):
    noise = random.Random(seed)

    def shaken(value):
        return value + noise.uniform(-0.49, 0.49) * 1e-7

    def every(tree):
        kind, z, m, content = tree
        if kind in {1, 2, 8}:
            return kind, z, m, [tuple(map(shaken, vertex)) for vertex in content]
        if kind in {3, 17}:
            return kind, z, m, [[tuple(map(shaken, vertex)) for vertex in ring] for ring in content]
        return kind, z, m, [every(member) for member in content]

    assert digest_of(every(tree)) == digest_of(tree)


@settings(max_examples=100, deadline=None)
@given(trees(ordinates=PLAIN, kinds=(1, 2, 3)))
def test_single_and_one_part_multi_are_one(tree):
    kind, z, m, _ = tree
    assert digest_of((kind + 3, z, m, [tree])) == digest_of(tree)


SAME_ATTRIBUTES = [
    ("column order", {"a": 1, "b": "x"}, {"b": "x", "a": 1}),
    ("integer through null", {"n": 3}, {"n": 3.0}),
    ("float32", {"n": 0.5}, {"n": pa.array([0.5], pa.float32())}),
    ("width of integers", {"n": 3}, {"n": pa.array([3], pa.uint8())}),
    ("minus zero", {"n": 0.0}, {"n": -0.0}),
    ("NaN and null", {"n": math.nan}, {"n": pa.array([None], pa.float64())}),
    ("null and no column", {"n": pa.array([None], pa.string())}, {}),
    ("normal forms", {"s": "\u212b"}, {"s": "A\u030a"}),
    ("normal forms of names", {"\u00e9": 1}, {"e\u0301": 1}),
    ("dictionary", {"s": "a"}, {"s": pa.array(["a"]).dictionary_encode()}),
    ("large text", {"s": "a"}, {"s": pa.array(["a"], pa.large_string())}),
    ("time zone", {"t": pa.array([0], pa.timestamp("us", "UTC"))}, {"t": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))}),
    ("unit of time", {"t": pa.array([1], pa.timestamp("s"))}, {"t": pa.array([1_000_000_000], pa.timestamp("ns"))}),
    ("date and midnight in days", {"d": dt.date(2024, 1, 1)}, {"d": pa.array([dt.date(2024, 1, 1)], pa.date64())}),
    ("list types", {"l": ["a"]}, {"l": pa.array([["a"]], pa.large_list(pa.large_string()))}),
    ("order of members", {"r": {"a": 1, "b": 2}}, {"r": {"b": 2, "a": 1}}),
    ("null members", {"r": pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.string())]))}, {"r": {"a": 1}}),
]


@pytest.mark.parametrize(("one", "other"), [each[1:] for each in SAME_ATTRIBUTES], ids=[each[0] for each in SAME_ATTRIBUTES])
def test_attributes_told_otherwise(one, other):
    assert digest_of(shapely.Point(1, 2), one) == digest_of(shapely.Point(1, 2), other)


# ---- nothing missed ----


class Feature(NamedTuple):
    polygon: shapely.Polygon
    line: shapely.LineString
    attributes: dict


def features(n, seed):
    """Random features of the kinds that an edit can be made to, on a grid of 1e-7."""
    noise = random.Random(seed)

    def on(value):
        return round(value, 7)

    for _ in range(n):
        x, y, r = noise.uniform(-170, 170), noise.uniform(-80, 80), noise.uniform(0.001, 1)
        angles = {0.1, 2.2, 4.3, *(noise.uniform(0, 2 * math.pi) for _ in range(noise.randint(4, 12)))}
        shell = [(on(x + r * math.cos(a)), on(y + r * math.sin(a))) for a in sorted(angles)]
        hole = [(on(x + r * 0.1 * math.cos(a)), on(y + r * 0.1 * math.sin(a))) for a in (0.3, 2.4, 4.5)]
        line = [(on(x + r * i), on(y + noise.uniform(-r, r)), on(noise.uniform(0, 500))) for i in range(noise.randint(2, 8))]
        attributes = {
            "name": f"street {noise.randint(0, 10**6)}",
            "number": noise.randint(1, 300),
            "share": noise.random(),
            "open": noise.random() < 0.5,
            "day": dt.date(2000, 1, 1) + dt.timedelta(days=noise.randint(0, 9000)),
            "tags": ["a", str(noise.randint(0, 9))],
        }
        yield Feature(shapely.Polygon(shell, [hole]), shapely.LineString(line), attributes)


def nudged(geometry, place, dx=0.0, dy=0.0, dz=0.0):
    """One vertex moved; the closing vertex of a ring goes along."""
    xyz = shapely.get_coordinates(geometry, include_z=geometry.has_z)
    ring = geometry.geom_type == "Polygon"
    last = len(geometry.exterior.coords) - 1 if ring else None
    for at in {place, last} if ring and place == 0 else {place}:
        xyz[at] += [dx, dy, dz][: xyz.shape[1]]
    return shapely.set_coordinates(shapely.from_wkb(shapely.to_wkb(geometry)), xyz)


# An edit gives a feature's geometry and attributes before and after.


def with_line(edit):
    return lambda feature: ((feature.line, feature.attributes), (edit(feature.line), feature.attributes))


def with_polygon(edit):
    return lambda feature: ((feature.polygon, feature.attributes), (edit(feature.polygon), feature.attributes))


def with_attributes(**changes):
    def change(attributes):
        return {**attributes, **{key: each(attributes[key]) if callable(each) else each for key, each in changes.items()}}

    return with_columns(change)


def with_columns(change):
    return lambda feature: ((feature.line, feature.attributes), (feature.line, change(feature.attributes)))


def renamed(attributes):
    return {("title" if key == "name" else key): value for key, value in attributes.items()}


def another_hole(polygon):
    hole = [(x + 0.0005, y) for x, y in polygon.interiors[0].coords]
    return shapely.Polygon(polygon.exterior, [*polygon.interiors, hole])


def straight(line):
    """A vertex added on a straight edge."""
    coordinates = list(line.coords)
    (x1, y1, z1), (x2, y2, z2) = coordinates[:2]
    return shapely.LineString([coordinates[0], ((x1 + x2) / 2, (y1 + y2) / 2, (z1 + z2) / 2), *coordinates[1:]])


STEP = 1e-7
EDITS = {
    "x by one grid step": with_polygon(lambda g: nudged(g, 1, dx=STEP)),
    "y by one grid step": with_polygon(lambda g: nudged(g, 2, dy=-STEP)),
    "the start vertex by one grid step": with_polygon(lambda g: nudged(g, 0, dx=STEP)),
    "a hole's vertex by one grid step": with_polygon(lambda g: nudged(g, len(g.exterior.coords) + 1, dy=STEP)),
    "z by one grid step": with_line(lambda g: nudged(g, 0, dz=STEP)),
    "z left out": with_line(shapely.force_2d),
    "z added": with_polygon(lambda g: shapely.force_3d(g, 0.0)),
    "the whole moved": with_polygon(lambda g: translate(g, STEP, STEP)),
    "mirrored axes": with_polygon(lambda g: shapely.transform(g, lambda xy: xy[:, ::-1])),
    "a reversed line": with_line(shapely.reverse),
    "a vertex added on a straight edge": with_line(straight),
    "a vertex removed": with_polygon(lambda g: shapely.Polygon([*g.exterior.coords[:1], *g.exterior.coords[2:]], g.interiors)),
    "a hole removed": with_polygon(lambda g: shapely.Polygon(g.exterior)),
    "a hole added": with_polygon(another_hole),
    "a part added": with_polygon(lambda g: shapely.MultiPolygon([g, translate(g, 5, 5)])),
    "the same part twice": with_line(lambda g: shapely.MultiLineString([g, g])),
    "polygon to its outline": with_polygon(lambda g: shapely.LineString(g.exterior)),
    "geometry to null": with_polygon(lambda _: None),
    "geometry to empty": with_polygon(lambda _: shapely.Polygon()),
    "wrapped in a collection": with_polygon(lambda g: shapely.GeometryCollection([g])),
    "vertices in another order": with_polygon(
        lambda g: shapely.Polygon([g.exterior.coords[1], g.exterior.coords[0], *g.exterior.coords[2:-1]], g.interiors)
    ),
    "a letter": with_attributes(name=lambda v: v + "x"),
    "letter case": with_attributes(name=str.upper),
    "a blank at the end": with_attributes(name=lambda v: v + " "),
    "a no-break space": with_attributes(name=lambda v: v.replace(" ", "\u00a0")),
    "text to empty": with_attributes(name=""),
    "text to null": with_attributes(name=pa.array([None], pa.string())),
    "text to the word None": with_attributes(name="None"),
    "an integer by one": with_attributes(number=lambda v: v + 1),
    "an integer's sign": with_attributes(number=lambda v: -v),
    "number to text": with_attributes(number=str),
    "a float by one bit": with_attributes(share=lambda v: math.nextafter(v, 2)),
    "a float to null": with_attributes(share=math.nan),
    "a boolean": with_attributes(open=lambda v: not v),
    "a day": with_attributes(day=lambda v: v + dt.timedelta(days=1)),
    "a date to a local time": with_attributes(day=lambda v: dt.datetime(v.year, v.month, v.day)),  # noqa: DTZ001 - a local time is meant
    "an element added": with_attributes(tags=lambda v: [*v, "z"]),
    "elements swapped": with_attributes(tags=lambda v: v[::-1]),
    "an element to null": with_attributes(tags=lambda v: [v[0], None]),
    "a list to empty": with_attributes(tags=lambda _: []),
    "a column renamed": with_columns(renamed),
    "two values swapped": with_columns(lambda a: {**a, "name": str(a["number"]), "number": a["name"]}),
    "a column added": with_columns(lambda a: {**a, "extra": 0}),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_no_edit_is_missed(edit):
    assert len(EDITS) >= 25
    for feature in features(25, seed=7):
        before, after = edit(feature)
        assert digest_of(*before) != digest_of(*after)


def test_swapped_attributes_of_two_features_change_both():
    one, other = features(2, seed=1)
    before = {digest_of(one.line, one.attributes), digest_of(other.line, other.attributes)}
    assert before.isdisjoint({digest_of(one.line, other.attributes), digest_of(other.line, one.attributes)})


def test_decimals_have_a_fixed_scale():
    one, other = (pa.array([Decimal(text)], pa.decimal128(10, 2)) for text in ("1.50", "1.51"))
    assert digest_of(None, {"d": one}) != digest_of(None, {"d": other})


def test_integers_beyond_2_to_the_53_stay_apart():
    assert digest_of(None, {"n": 9007199254740992}) != digest_of(None, {"n": 9007199254740993})


def test_fields_do_not_run_into_each_other():
    """Lengths stand in front, so no two sets of fields share their bytes."""
    made = [{"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}, {"a": "b", "c": "s"}, {"a": ["b", "c"]}, {"a": {"b": "c"}}, {"a": b"bc"}]
    assert len({digest_of(None, each) for each in made}) == len(made)


def test_slices_and_chunks_give_the_digests_of_the_whole():
    n = 300
    noise = np.random.default_rng(5)
    table = pa.table(
        {
            "a": pa.array([None if i % 7 == 0 else f"{unicodedata.normalize('NFD', 'é')}{i}" for i in range(n)]),
            "b": pa.array(noise.integers(0, 9, n)),
            "l": pa.array([None if i % 5 == 0 else list(range(i % 4)) for i in range(n)]),
            "r": pa.array([None if i % 3 == 0 else {"k": i} for i in range(n)]),
            "f": pa.array(noise.random(n) > 0.5),
            "geometry": pa.array([None if i % 11 == 0 else struct.pack("<BIdd", 1, 1, i, -i) for i in range(n)], pa.binary()),
        }
    )
    layout = Layout(tuple(DigestField(each) for each in "ablrf"), GRID, Shape())
    whole = digest_batch(table, layout, "geometry").to_pylist()
    for start in (0, 1, 7, 8, 63, 200):
        assert digest_batch(table.slice(start, 70), layout, "geometry").to_pylist() == whole[start : start + 70]
    assert digest_batch(pa.concat_tables([table[:13], table[13:]]), layout, "geometry").to_pylist() == whole
    assert digest_batch(table[:13].combine_chunks().to_batches()[0], layout, "geometry").to_pylist() == whole[:13]
