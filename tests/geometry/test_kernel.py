"""The compiled kernel and the NumPy path give what the slow reference gives, for any bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import math
import random
import shutil
import struct
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from identity import reference
from identity.wkb_strategies import PLAIN, hostile, to_bytes, trees, wkb
from kernels import PATHS, on
from merestone.columnar import hashing
from merestone.columnar.hashed_values import JoinedText
from merestone.geometry import fallback, kernel
from merestone.geometry.kernel_values import GeometryShape, Grid, Shape

EXAMPLES = 40  # each; `make soak` tries very many more (test_soak)
TYPES = list(get_args(GeometryShape))
shapes = st.builds(
    Shape,
    st.sampled_from(TYPES),
    st.sampled_from(["xy", "xyz", "xym", "xyzm", "as_is"]),
    st.sampled_from(["significant", "irrelevant"]),
)
grids = st.builds(Grid, st.integers(-3, 15), st.none() | st.integers(-2, 6), st.none() | st.integers(-2, 6))


pytestmark = pytest.mark.usefixtures("each_kernel")


def rules_of(grid, shape):
    return reference.Rules(reference.Grids(grid.precision, grid.z, grid.m), shape.keep_z, shape.keep_m, shape.either_way)


def column(values, *, padded=1, kind=None):
    """The values as a slice of a longer column, so that offsets do not begin at 0."""
    kind = kind or pa.binary()
    return pa.array([b"\x01\x02"] * padded + values + [None], kind).slice(padded, len(values))


def test_both_kernels_are_tried():
    """Where a compiler is at hand the compiled kernel is there, and tried; the NumPy path always is."""
    assert "numpy" in PATHS
    if any(map(shutil.which, ("cc", "gcc", "clang"))) and importlib.util.find_spec("merestone.geometry._kernel"):
        assert PATHS == ("compiled", "numpy")


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.none() | wkb() | hostile(), max_size=6), grids, shapes)
def test_encode_and_canonical_follow_the_reference(values, grid, shape):
    rules = rules_of(grid, shape)
    sections = [reference.geometry_section(value, rules) for value in values]
    expected = [None if each == b"\x00" else each[1:] if each[:1] == b"\x01" else each for each in sections]
    for kind in (pa.binary(), pa.large_binary()):
        assert kernel.encode(column(values, kind=kind), grid, shape).to_pylist() == expected
    wanted = [(None, 0) if value is None else reference.stored(value, shape.type, rules) for value in values]
    got, flags = kernel.canonical(column(values), grid, shape)
    assert got.to_pylist() == [each[0] for each in wanted]
    assert flags.tolist() == [each[1] for each in wanted]


steps = st.sampled_from([0, 1, 255, 256, -1])  # whose order is not that of their bytes
corners = st.tuples(steps, steps)
closed = st.lists(corners, min_size=3, max_size=5).map(lambda ring: [*ring, ring[0]])


@settings(max_examples=EXAMPLES * 5, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([4, 5, 6]), st.lists(st.lists(closed, min_size=1, max_size=4), min_size=1, max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_holes_and_parts_that_begin_alike_are_ordered_by_all_their_bytes(rows):
    """So few positions that most runs share their first vertex and their number of vertices."""

    def member(kind, rings):
        return (kind - 3, False, False, rings if kind == 6 else rings[0] if kind == 5 else rings[0][:1])

    values = [to_bytes((kind, False, False, [member(kind, rings) for rings in parts])) for kind, parts in rows]
    rules = rules_of(Grid(0), Shape())
    assert kernel.encode(column(values), Grid(0), Shape()).to_pylist() == [reference.geometry_section(value, rules)[1:] for value in values]


def test_parts_that_begin_with_an_empty_ring_are_ordered_by_what_follows():
    """An empty ring has no first vertex; that of the next ring must not stand in for it, since its number of vertices comes before it."""
    long, short = [(float(x), float(x * x)) for x in range(6)], [(5.0, 5.0), (6.0, 5.0), (6.0, 6.0), (5.0, 5.0)]
    parts = [[[], [*long, long[0]]], [[], short], [[], []], [[], short, long]]
    values = [to_bytes((6, False, False, [(3, False, False, rings) for rings in order])) for order in itertools.permutations(parts)]
    values.append(to_bytes((6, False, False, [(3, False, False, [[], []])] * 2)))
    rules = rules_of(Grid(0), Shape())
    assert kernel.encode(column(values), Grid(0), Shape()).to_pylist() == [reference.geometry_section(value, rules)[1:] for value in values]


FAR = 4 * 10**12  # whole steps of a grid, with which neither int64 nor doubles hold the products of an area


@st.composite
def rings_across_the_grid(draw):
    """Wide ones, and thin ones: along one direction, whole steps of area off it, which is far less than a double holds of the products."""
    if draw(st.booleans()):
        return draw(st.lists(st.tuples(st.integers(-FAR, FAR), st.integers(-FAR, FAR)), min_size=3, max_size=6))
    east, north = draw(st.tuples(st.integers(10**6, 2 * 10**6), st.integers(10**6, 2 * 10**6)).filter(lambda each: math.gcd(*each) == 1))
    y = pow(east, -1, north)
    x = (east * y - 1) // north  # one step of area beside the direction
    places = draw(st.lists(st.tuples(st.integers(-FAR // 2**21, FAR // 2**21), st.integers(-2, 2)), min_size=3, max_size=6))
    return [(along * east + beside * x, along * north + beside * y) for along, beside in places]


@settings(max_examples=EXAMPLES * 5, deadline=None)
@given(st.lists(rings_across_the_grid(), min_size=1, max_size=5))
def test_the_direction_of_a_ring_is_that_of_its_exact_area(rings):
    values = [to_bytes((3, False, False, [[*ring, ring[0]]])) for ring in rings]
    rules = rules_of(Grid(0), Shape())
    assert kernel.encode(column(values), Grid(0), Shape()).to_pylist() == [reference.geometry_section(value, rules)[1:] for value in values]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.none() | wkb(), max_size=6), grids, shapes)
def test_the_canonical_form_is_its_own_and_has_the_same_digest(values, grid, shape):
    given = column(values)
    once, flags = kernel.canonical(given, grid, shape)
    twice, _ = kernel.canonical(once, grid, shape)
    assert twice.to_pylist() == once.to_pylist()
    n = len(values)
    before, after = (kernel.digest([], each, grid, shape, n).to_pylist() for each in (given, once))
    assert before == after
    seen = kernel.scan(once)
    stored = (flags & (kernel.WRONG_TYPE | kernel.CANONICAL_UNREADABLE)) == 0
    assert not (seen.flags[stored] & (kernel.SHORT_LINE | kernel.SHORT_RING | kernel.TRAILING_BYTES | kernel.UNREADABLE)).any()


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.none() | wkb() | hostile(), max_size=6))
def test_scan_says_what_lies_in_the_bytes(values):
    seen = kernel.scan(column(values))
    for row, value in enumerate(values):
        look = look_at(value)
        assert (seen.kind[row], seen.has_z[row], seen.has_m[row], seen.empty[row]) == look[:4]
        assert (seen.parts[row], seen.vertices[row], seen.flags[row]) == look[4:7]
        np.testing.assert_array_equal(seen.bounds[row], look[7])


def look_at(value):
    """What a scan must say, from the reference's tree."""
    nowhere = [math.nan] * 4
    if value is None:
        return 0, False, False, False, 0, 0, 0, nowhere
    try:
        tree, end = reference.read(value)
    except reference.Unreadable:
        return 255, False, False, False, 0, 0, kernel.UNREADABLE, nowhere
    leaves, flags = [], kernel.TRAILING_BYTES if end < len(value) else 0

    def gather(geometry):
        kind, _, _, content = geometry
        if kind in {1, 2, 3, 8, 17}:
            leaves.append(geometry)
        else:
            for member in content:
                gather(member)

    gather(tree)
    vertices = []
    for kind, z, _, content in leaves:
        rings = content if kind in {3, 17} else [content]
        for ring in rings:
            vertices += ring
            for vertex in ring:
                flags |= kernel.NAN_XY if math.isnan(vertex[0]) or math.isnan(vertex[1]) else 0
                flags |= kernel.INFINITE if any(map(math.isinf, vertex)) else 0
                flags |= kernel.NAN_Z if z and math.isnan(vertex[2]) else 0
            if kind in {3, 17} and ring:
                flags |= kernel.SHORT_RING if len(ring) < 4 else 0
                flags |= kernel.UNCLOSED_RING if not (ring[0][0] == ring[-1][0] and ring[0][1] == ring[-1][1]) else 0
        flags |= kernel.SHORT_LINE if kind == 2 and len(content) == 1 else 0
    xs = [vertex[0] for vertex in vertices if math.isfinite(vertex[0])]
    ys = [vertex[1] for vertex in vertices if math.isfinite(vertex[1])]
    bounds = [min(xs, default=math.nan), min(ys, default=math.nan), max(xs, default=math.nan), max(ys, default=math.nan)]
    return tree[0], tree[1], tree[2], not vertices, sum(bool(each[3]) for each in leaves), len(vertices), flags, bounds


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.none() | wkb() | hostile(), max_size=6))
def test_coordinates_go_out_and_back_in(values):
    given = column(values)
    xy = kernel.coordinates(given)
    expected = []
    for value in values:
        if value is not None:
            try:
                expected += [vertex[:2] for vertex in flat(reference.read(value)[0])]
            except reference.Unreadable:
                continue
    np.testing.assert_array_equal(xy, np.array(expected, float).reshape(-1, 2))
    back = kernel.with_coordinates(given, xy)
    assert kernel.encode(back, Grid(3), Shape()).to_pylist() == kernel.encode(given, Grid(3), Shape()).to_pylist()
    elsewhere = np.where(np.isfinite(xy), 7.25, 8.5)
    moved = kernel.with_coordinates(given, elsewhere)
    np.testing.assert_array_equal(kernel.coordinates(moved), elsewhere)
    np.testing.assert_array_equal(kernel.scan(moved).kind, kernel.scan(given).kind)


def flat(tree):
    kind, _, _, content = tree
    if kind in {1, 2, 8}:
        return list(content)
    if kind in {3, 17}:
        return [vertex for ring in content for vertex in ring]
    return [vertex for member in content for vertex in flat(member)]


def test_with_coordinates_wants_one_position_for_each_vertex():
    with pytest.raises(ValueError, match="2 positions are needed"):
        kernel.with_coordinates(pa.array(list(shapely.to_wkb(shapely.from_wkt(["LINESTRING (0 0, 1 1)"])))), np.zeros((3, 2)))


def test_z_m_and_srid_survive_new_coordinates():
    tree = (2, True, True, [(0.0, 0.0, 5.0, math.nan), (1.0, 1.0, 6.0, 7.0)])
    given = pa.array([to_bytes(tree, order=">", ewkb=True, srid=3857)])
    moved = kernel.with_coordinates(given, np.array([[8.0, 9.0], [10.0, 11.0]])).to_pylist()[0]
    assert moved[:5] == struct.pack("<BI", 1, 3002)
    assert struct.unpack_from("<8d", moved, 9)[:3] == (8.0, 9.0, 5.0)
    assert struct.unpack_from("<8d", moved, 9)[4:] == (10.0, 11.0, 6.0, 7.0)


def measured(tree):
    """The vertices of a geometry without the last of each ring, which repeats its first."""
    kind, _, _, content = tree
    if kind in {1, 2, 8}:
        return list(content)
    if kind in {3, 17}:
        return [vertex for ring in content for vertex in (ring[:-1] if len(ring) > 1 else ring)]
    return [vertex for member in content for vertex in measured(member)]


def test_decimals_counts_what_each_ordinate_needs():
    given = lines(
        "POINT (1 0.5)",
        "POINT (0.1 0.125)",
        "LINESTRING (5337087.02 657035.913, 0.1234567 1e-15)",
        "POINT (0.3333333333333333 1e22)",
        "POINT EMPTY",
        None,
    )
    counts = kernel.decimals(given)
    assert counts[0].tolist() == [1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert counts[1].tolist() == [1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert kernel.decimals(given, (0, 0, 1, 1)).sum() == 6


def test_decimals_count_a_ring_once_round():
    given = lines("POLYGON ((0 0, 0.1 0, 0.1 0.1, 0 0))", "MULTIPOLYGON (((0 0, 0.1 0, 0.1 0.1, 0 0)))", "LINESTRING (0 0, 1 1, 0 0)")
    assert kernel.decimals(given).sum(axis=1).tolist() == [9, 9]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(wkb(), max_size=5))
def test_decimals_take_one_division(values):
    counts = np.zeros((2, 17), int)
    for value in values:
        for vertex in measured(reference.read(value)[0]):
            for axis in (0, 1):
                x = vertex[axis]
                if math.isfinite(x):
                    scaled = ((d, x * 10.0**d) for d in range(16))
                    counts[axis, next((d for d, value in scaled if math.isfinite(value) and round(value) / 10.0**d == x), 16)] += 1
    np.testing.assert_array_equal(kernel.decimals(pa.array(values, pa.binary())), counts)


# Few places, so that vertices repeat, edges touch, cross and run back, and rings lie within each other; shifted, so that doubles have to round.
places = st.tuples(st.integers(0, 4), st.integers(0, 4))
ringed = st.lists(places, min_size=3, max_size=7).map(lambda run: [*run, run[0]])
framed = st.sampled_from([[(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)], [(-9, -9), (9, -9), (9, 9), (-9, 9), (-9, -9)]])
areas = st.lists(ringed, min_size=1, max_size=3) | st.tuples(framed, ringed).map(list) | st.tuples(framed, ringed, ringed).map(list)
drawn = st.one_of(
    areas.map(lambda rings: (3, rings)),
    st.lists(areas, min_size=1, max_size=3).map(lambda parts: (6, [(3, False, False, rings) for rings in parts])),
    st.lists(places, min_size=2, max_size=4).map(lambda run: (2, run)),
    st.lists(places, min_size=1, max_size=2).map(lambda run: (1, run[:1])),
)


def moved(content, by, times):
    """The same geometry elsewhere and of another size."""
    if isinstance(content, tuple) and not isinstance(content[0], bool) and len(content) == 2:
        return by + times * content[0], by + times * content[1]
    if isinstance(content, tuple):
        return (*content[:3], moved(content[3], by, times))
    return [moved(each, by, times) for each in content]


@settings(max_examples=400, deadline=None)
@given(st.lists(drawn, min_size=1, max_size=9), st.sampled_from([0.0, 0.1, 1e5, -3e6]), st.sampled_from([1.0, 0.1, 1e-3, 1e-9]))
def test_validity_and_measures_are_those_of_geos(some, by, times):
    values = [to_bytes((kind, False, False, moved(content, by, times))) for kind, content in some]
    built = shapely.from_wkb(np.array(values, object), on_invalid="ignore")
    given = column([*values, None])
    assert kernel.valid(given).tolist() == [*shapely.is_valid(built).tolist(), False]
    for mine, theirs in zip(kernel.measures(given), (shapely.area, shapely.length), strict=True):
        np.testing.assert_array_equal(mine, [*theirs(built), np.nan])


def star(vertices, radius=10.0):
    """A ring that turns in and out, with all of its vertices in order around the middle."""
    turns = 2 * np.pi * np.arange(vertices) / vertices
    reach = radius * (1 + 0.4 * np.cos(7 * turns))
    return np.round(np.stack([reach * np.cos(turns), reach * np.sin(turns)], axis=-1), 3)


@pytest.mark.parametrize("vertices", [7, 40, 41, 500])
def test_one_crossing_in_a_ring_is_seen_however_long_it_is(vertices):
    good, bad = star(vertices), star(vertices)
    bad[[2, 3]] = bad[[3, 2]]
    shapes = [
        shapely.Polygon(good),
        shapely.Polygon(bad),
        shapely.Polygon(star(vertices, 99.0), [good]),
        shapely.Polygon(good, [star(7, 99.0)]),
    ]
    assert kernel.valid(pa.array(shapely.to_wkb(shapes))).tolist() == [True, False, True, False]


def test_rings_within_each_other_are_seen():
    frame, inner, least = ("({0} {0}, {1} {0}, {1} {1}, {0} {1}, {0} {0})".format(at, 20 - at) for at in (0, 2, 4))
    given = lines(
        f"POLYGON ({frame}, {inner}, {least})",
        f"MULTIPOLYGON (({frame}), ({inner}))",
        f"MULTIPOLYGON (({inner}), ({frame}))",
        f"MULTIPOLYGON (({frame}, {inner}), ({least}))",
        f"POLYGON ({inner}, {frame})",
        f"POLYGON ({frame}, {inner})",
    )
    assert kernel.valid(given).tolist() == [False, False, False, True, False, True]


def test_a_vertex_closer_to_an_edge_than_doubles_can_tell():
    """The computed sign of such an orientation is noise: of a notch that reaches down to its ring's long edge, or through it."""
    noise = np.random.default_rng(3)
    start, run = (
        noise.uniform(-1e-3, 1e-3, (3000, 2)),
        noise.uniform(500, 1000, (3000, 2)),
    )  # far apart in size, so that differences round too
    left = np.stack([-run[:, 1], run[:, 0]], axis=-1)
    notch = start + noise.uniform(0.3, 0.7, (3000, 1)) * run
    rings = np.stack([start, start + run, start + 0.8 * run + left, notch, start + 0.2 * run + left, start], axis=1)
    built = shapely.polygons(rings)
    assert 0.1 < shapely.is_valid(built).mean() < 0.9
    assert kernel.valid(pa.array(shapely.to_wkb(built))).tolist() == shapely.is_valid(built).tolist()


def test_what_is_plainly_valid_is_not_left_to_geos(each_kernel, monkeypatch):
    """A building, a block with a yard, islands, a street with straight stretches: the compiled kernel sees for itself that they are valid."""
    given = lines(
        "POLYGON ((0 0, 5 0, 10 0, 10 10, 0 10, 0 0))",
        "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2), (5 5, 5 6, 6 6, 6 5, 5 5))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((2 0, 3 0, 3 1, 2 0)))",
        "LINESTRING (0 0, 1 1, 0 0)",
        "MULTILINESTRING ((0 0, 1 1), (0 1, 1 0))",
        "POINT (1 2)",
        "MULTIPOINT (1 2, 1 2)",
        "POLYGON Z ((0 0 1, 5 0 nan, 5 5 1, 0 0 1))",
    )
    asked = []
    there = fallback.valid
    monkeypatch.setattr(fallback, "valid", lambda wkb: asked.append(len(wkb)) or there(wkb))
    assert kernel.valid(given).all()
    assert asked == ([] if each_kernel == "compiled" else [8])


def test_curves_are_neither_valid_nor_measured():
    curve = struct.pack("<BII", 1, 8, 3) + struct.pack("<6d", 0, 0, 1, 1, 2, 0)
    inside = struct.pack("<BII", 1, 7, 1) + curve
    given = pa.array([curve, inside, shapely.to_wkb(shapely.box(0, 0, 2, 3))], pa.binary())
    assert kernel.valid(given).tolist() == [False, False, True]
    area, length = kernel.measures(given)
    np.testing.assert_array_equal(area, [np.nan, np.nan, 6])
    np.testing.assert_array_equal(length, [np.nan, np.nan, 10])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=400), max_size=9))
def test_blake2b_is_that_of_the_standard(values):
    got = hashing.blake2b16(pa.array(values, pa.binary()))
    assert got.to_pylist() == [None if value is None else hashlib.blake2b(value, digest_size=16).digest() for value in values]
    wide = hashing.hashed([pa.array(values, pa.binary())], len(values), 32)
    assert [bytes(each) for each in wide] == [hashlib.blake2b(value or b"", digest_size=32).digest() for value in values]


def test_blake2b_of_every_length_near_a_block():
    values = [bytes(range(256))[: n % 256] * (1 + n // 256) for n in range(600)]
    assert hashing.blake2b16(pa.array(values)).to_pylist() == [hashlib.blake2b(value, digest_size=16).digest() for value in values]
    # As many as are left over after the eights and the fours that are hashed at a time, of lengths that lie side by side at random.
    for count in range(18):
        some = [values[(7 * each * each + count) % 600] for each in range(count)]
        assert [bytes(each) for each in hashing.hashed([pa.array(some, pa.binary())], count, 32)] == [
            hashlib.blake2b(value, digest_size=32).digest() for value in some
        ]


@st.composite
def pieces(draw):
    """Pieces of joined text over some rows, and the texts that have to come out."""
    n = draw(st.integers(0, 9))
    found, texts = [], [b""] * n
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["bytes", "text", "binary", "codes", "int32", "int64", "fixed"]))
        if kind == "bytes":
            constant = draw(st.binary(max_size=9))
            found.append(constant)
            texts = [text + constant for text in texts]
            continue
        some, kinds = {
            "text": (st.text(max_size=6), pa.string()),
            "binary": (st.binary(max_size=200), pa.binary()),
            "codes": (st.text(max_size=3), pa.string()),
            "int32": (st.integers(-(2**31), 2**31 - 1), pa.int32()),
            "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
            "fixed": (st.binary(min_size=3, max_size=3), pa.binary(3)),
        }[kind]
        before = draw(st.integers(0, 3))  # rows that are cut off in front
        values = draw(st.lists(st.none() | some, min_size=n + before, max_size=n + before))
        array = pa.array(values, kinds)
        if kind == "codes":
            array = array.dictionary_encode()
        array, values = array.slice(before), values[before:]
        plain = [None if each is None else each.encode() if isinstance(each, str) else each for each in values]
        if kind in ("int32", "int64") or draw(st.booleans()):
            found.append(JoinedText(b"name", array))
            plain = [
                each.hex().encode()
                if kind == "fixed" and each is not None
                else each
                if each is None or isinstance(each, bytes)
                else str(each).encode()
                for each in plain
            ]
            plain = [None if each is None else b"name:%d:%b," % (len(each), each) for each in plain]
        else:
            found.append(array)
        texts = [text + (each or b"") for text, each in zip(texts, plain, strict=True)]
    return found, texts


@settings(max_examples=EXAMPLES, deadline=None)
@given(pieces())
def test_pieces_are_joined_and_hashed_row_by_row(drawn):
    given_pieces, texts = drawn
    assert hashing.joined(given_pieces, len(texts)).to_pylist() == texts
    for size in (16, 32):
        assert [bytes(each) for each in hashing.hashed(given_pieces, len(texts), size)] == [
            hashlib.blake2b(each, digest_size=size).digest() for each in texts
        ]


def test_dictionaries_of_any_make_are_joined():
    values = pa.array(["zero", "one", None, "three"])
    for index in (pa.int8(), pa.int32(), pa.int64()):
        codes = pa.DictionaryArray.from_arrays(pa.array([3, 1, None, 2, 1], index), values)
        assert hashing.joined([codes], 5).to_pylist() == [b"three", b"one", b"", b"", b"one"]
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), values.slice(1))
    assert hashing.joined([JoinedText(b"n", codes)], 2).to_pylist() == [b"", b"n:3:one,"]
    nothing = pa.DictionaryArray.from_arrays(pa.nulls(2, pa.int32()), pa.array([], pa.string()))
    assert hashing.joined([b"<", nothing, b">"], 2).to_pylist() == [b"<>", b"<>"]


def test_chunks_views_and_other_types():
    point = shapely.to_wkb(shapely.Point(1, 2))
    chunked = pa.chunked_array([pa.array([point]), pa.array([None], pa.binary())])
    assert kernel.scan(chunked).kind.tolist() == [1, 0]
    assert kernel.scan(pa.array([point], pa.binary_view())).kind.tolist() == [1]
    assert kernel.scan(pa.nulls(2)).kind.tolist() == [0, 0]
    assert kernel.scan(pa.array([], pa.binary())).kind.tolist() == []
    assert kernel.scan(pa.chunked_array([], pa.binary())).kind.tolist() == []
    with pytest.raises(TypeError, match="binary"):
        kernel.scan(pa.array(["POINT (1 2)"]))


def test_deep_nesting_is_unreadable_and_does_not_recurse_away():
    inner = to_bytes((1, False, False, [(1.0, 2.0)]))
    for levels in (31, 32, 33, 100_000):
        data = struct.pack("<BII", 1, 7, 1) * levels + inner
        readable = levels <= 32
        assert (kernel.scan(pa.array([data])).kind[0] == 7) == readable
        assert (kernel.encode(pa.array([data]), Grid(0), Shape())[0].as_py()[0] == 7) == readable


def test_counts_that_promise_more_than_is_there():
    for kind in (2, 3, 4, 7, 9, 16):
        for count in (1, 2**16, 2**32 - 1):
            data = struct.pack("<BII", 1, kind, count)
            assert kernel.scan(pa.array([data])).kind[0] == 255
            assert kernel.canonical(pa.array([data]), Grid(0), Shape())[1][0] == kernel.CANONICAL_UNREADABLE


# ---- distances ----


def lines(*wkts):
    return pa.array([None if wkt is None else shapely.to_wkb(shapely.from_wkt(wkt)) for wkt in wkts], pa.binary())


def test_the_size_of_a_change():
    square = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
    cases = [
        ("POINT (0 0)", "POINT (3 4)", 5),
        (square, "POLYGON ((10 10, 0 10, 0 0, 10 0, 10 10))", 0),
        (square, "POLYGON ((0 0, 0 10, 10 13, 10 0, 0 0))", 3),
        (square, "POLYGON ((0 0, 5 -1, 10 0, 10 10, 0 10, 0 0))", math.sqrt(26)),
        (None, "POINT (1 1)", math.nan),
        ("POINT EMPTY", "POINT (1 1)", math.nan),
        ("LINESTRING (0 0, 1 0, 2 0)", "LINESTRING (2 0, 1 0, 0 0)", 2),
        ("MULTIPOINT ((0 0), (9 9))", "MULTIPOINT ((9 9), (0 2))", 2),
        (square, "POINT (0 0)", math.sqrt(200)),
    ]
    got = kernel.largest_move(lines(*[each[0] for each in cases]), lines(*[each[1] for each in cases]))
    np.testing.assert_allclose(got, [each[2] for each in cases], rtol=1e-15)


def test_noise_is_within_and_an_edit_is_not():
    square = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 3, 3 3, 2 2), (5 5, 5 6, 6 6, 5 5))"
    pairs = [
        ("POINT (0.4 0)", "POINT (0 0)", True),
        ("POINT (0.6 0)", "POINT (0 0)", False),
        ("POLYGON ((10 10.1, 10 0, 0 0.1, -0.1 10, 10 10.1), (6 5.9, 5 5, 5 6, 6 5.9), (2 2, 3 3, 2 3, 2 2))", square, True),
        ("POLYGON ((10 10.1, 10 0, 0 0.1, -0.1 10, 10 10.1), (6 5.9, 5 5, 5 6, 6 5.9), (2 2, 3 3, 2 4, 2 2))", square, False),
        ("MULTIPOLYGON (((0 0, 1 0, 0 1, 0 0)))", "POLYGON ((0 0, 1 0, 0 1, 0 0))", True),
        ("LINESTRING (0 0, 5 0, 9 0)", "LINESTRING (9 0, 5 0, 0 0)", False),
        ("LINESTRING (0 0, 0.2 0, 5 0, 9 0)", "LINESTRING (0 0, 5 0, 9 0)", True),  # two delivered vertices on one published
        ("LINESTRING (0 0, 2 0, 5 0, 9 0)", "LINESTRING (0 0, 5 0, 9 0)", False),
        ("LINESTRING (0 0, 9 0)", "LINESTRING (0 0, 5 0, 9 0)", False),  # a published vertex is gone
        ("MULTIPOINT ((0 0), (0.4 0), (0.8 0))", "MULTIPOINT ((0.8 0), (0.4 0), (0 0))", True),
        ("MULTIPOINT ((0 0), (0 0), (0.8 0))", "MULTIPOINT ((0 0), (0.8 0), (0.8 0))", False),
        ("POINT Z (0 0 5)", "POINT Z (0 0 5.4)", True),
        ("POINT Z (0 0 5)", "POINT Z (0 0 6)", False),
        ("POINT Z (0 0 5)", "POINT (0 0)", False),
        ("POINT (0 0)", "LINESTRING (0 0, 0 0)", False),
        (None, None, True),
        (None, "POINT EMPTY", False),
        ("POINT EMPTY", "MULTIPOINT EMPTY", True),
        ("GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (0 0, 5 5))", "GEOMETRYCOLLECTION (LINESTRING (0 0, 5 5.1), POINT (0 0.1))", True),
        ("GEOMETRYCOLLECTION (GEOMETRYCOLLECTION (POINT (0 0)))", "GEOMETRYCOLLECTION (POINT (0 0))", False),
    ]
    got = kernel.within(lines(*[each[0] for each in pairs]), lines(*[each[1] for each in pairs]), 0.5)
    assert [pair for pair, answer in zip(pairs, got.tolist(), strict=True) if answer != pair[2]] == []
    ignoring = kernel.within(lines("POINT Z (0 0 5)"), lines("POINT (0 0)"), 0.5, shape=Shape(dimensions="xy"))
    assert ignoring.tolist() == [True]
    either = kernel.within(lines("LINESTRING (0 0, 9 0)"), lines("LINESTRING (9 0, 0 0)"), 0.5, shape=Shape(direction="irrelevant"))
    assert either.tolist() == [True]
    fine = kernel.within(lines("POINT Z (0 0 5)"), lines("POINT Z (0 0 5.4)"), 0.5, z_tolerance=0.1)
    assert fine.tolist() == [False]


@pytest.mark.parametrize("size", [180.0, 5.7e6])
def test_a_limit_has_room_for_the_rounding_of_doubles(size):
    """An ordinate at the limit itself is within, whatever side its double lies on; a few units in the last place further it is not."""
    noise = np.random.default_rng(5)
    published = np.round(noise.uniform(size / 2, size, 1000), 3)
    limit = 0.001 / 2 + 0.001 / 1000

    def near(delivered):
        pair = (pa.array(shapely.to_wkb(shapely.points(each, each)), pa.binary()) for each in (delivered, published))
        return kernel.within(*pair, limit)

    for sign in (1, -1):
        at = published + sign * limit
        assert (np.abs(at - published) > limit).any()
        assert near(at).all()
        assert not near(at + sign * 8 * np.spacing(published)).any()


def test_one_to_one_needs_an_augmenting_path():
    # Taken greedily, (0.5 0) would take the place that (0 0) alone can have.
    delivered, published = lines("MULTIPOINT ((0.45 0), (0 0))"), lines("MULTIPOINT ((0.2 0), (0.9 0))")
    assert kernel.within(delivered, published, 0.5).tolist() == [True]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(trees(ordinates=PLAIN), trees(ordinates=PLAIN)), max_size=4), st.integers(0, 2**32))
def test_both_kernels_measure_alike(pairs, seed):
    noise = random.Random(seed)

    def shaken(tree):
        kind, z, m, content = tree
        if kind in {1, 2, 8}:
            return kind, z, m, [tuple(x + noise.uniform(-0.6, 0.6) for x in vertex) for vertex in content]
        if kind in {3, 17}:
            return kind, z, m, [[tuple(x + noise.uniform(-0.3, 0.3) for x in vertex) for vertex in ring] for ring in content]
        members = [shaken(member) for member in content]
        noise.shuffle(members)
        return kind, z, m, members

    one = [to_bytes(pair[0]) for pair in pairs] * 2
    other = [to_bytes(pair[1]) for pair in pairs] + [to_bytes(shaken(pair[0])) for pair in pairs]
    a, b = pa.array(one, pa.binary()), pa.array(other, pa.binary())
    moves, near = kernel.largest_move(a, b), kernel.within(a, b, 0.5)
    with on("numpy"):
        np.testing.assert_array_equal(moves, kernel.largest_move(a, b))
        np.testing.assert_array_equal(near, kernel.within(a, b, 0.5))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(trees(ordinates=PLAIN), min_size=1, max_size=4), st.integers(0, 6))
def test_a_delivery_is_within_half_a_grid_of_what_is_stored(given, precision):
    """The bound that makes a suppressed change: whatever is published lies within grid/2 (and grid/1000) of what was delivered."""
    wkb_column = pa.array([to_bytes(tree) for tree in given], pa.binary())
    stored, flags = kernel.canonical(wkb_column, Grid(precision), Shape())
    whole = (flags & (kernel.WRONG_TYPE | kernel.COLLAPSED)) == 0
    grid = 10.0**-precision
    near = kernel.within(wkb_column, stored, grid / 2 + grid / 1000)
    assert near[whole].all()


def test_reversed_lines():
    cases = [
        ("LINESTRING (0 0, 5 0)", "LINESTRING (5 0, 0 0)", True),
        ("MULTILINESTRING ((0 0, 1 0), (5 5, 6 6))", "MULTILINESTRING ((0 0, 1 0), (6 6, 5 5))", True),
        ("LINESTRING (0 0, 5 0)", "LINESTRING (0 0, 5 0)", False),
        ("LINESTRING (0 0, 5 0)", "LINESTRING (6 0, 0 0)", False),
        ("LINESTRING (0 0, 5 0, 0 0)", "LINESTRING (0 0, 5 0, 0 0)", False),
        ("POLYGON ((0 0, 1 0, 0 1, 0 0))", "POLYGON ((0 0, 0 1, 1 0, 0 0))", False),
        (None, None, False),
    ]
    got = kernel.is_reversed(lines(*[each[0] for each in cases]), lines(*[each[1] for each in cases]))
    assert got.tolist() == [each[2] for each in cases]


# ---- Hilbert ----


def test_hilbert_visits_every_cell_once_and_neighbours_follow_each_other():
    order = 4
    side = 2**order
    x, y = (each.ravel() + 0.5 for each in np.meshgrid(np.arange(side, dtype=float), np.arange(side, dtype=float)))
    index = kernel.hilbert(x, y, (0, 0, side, side), order)
    assert sorted(index.tolist()) == list(range(side * side))
    along = np.argsort(index)
    steps = np.abs(np.diff(x[along])) + np.abs(np.diff(y[along]))
    assert (steps == 1).all()
    assert (x[along[0]], y[along[0]]) == (0.5, 0.5)


def test_hilbert_at_the_edges():
    x, y = np.array([-5.0, 0.0, 1.0, 7.0, np.nan, np.inf, 0.3]), np.array([0.0, 0.0, 1.0, 9.0, 0.0, 0.0, 0.3])
    index = kernel.hilbert(x, y, (0, 0, 1, 1))
    assert index[0] == index[1] == 0
    assert index[2] == index[3]
    assert index[4] == 2**64 - 1
    assert index[5] == kernel.hilbert(np.array([1.0]), np.array([0.0]), (0, 0, 1, 1))[0]
    assert index.dtype == np.uint64
    assert kernel.hilbert(x[:2], y[:2], (3, 3, 3, 3)).tolist() == [0, 0]
