from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.gate.topology_network import check_network
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

line = shapely.LineString


def canonical(shapes, precision=2):
    wkb = pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())
    return kernel.canonical(wkb, Grid(precision), Shape("multilinestring", "xy"))[0].cast(pa.binary())


def judged(shapes, precision=2, near=0.0, **rules):
    found = check_network(canonical(shapes, precision), precision, near=near, **rules)
    return {
        "dangles": found.dangles.row.tolist(),
        "unconnected": list(zip(found.unconnected.row.tolist(), found.unconnected.other.tolist(), strict=True)),
        "duplicates": list(zip(found.duplicates.one.tolist(), found.duplicates.other.tolist(), strict=True)),
    }


NOTHING = {"dangles": [], "unconnected": [], "duplicates": []}
RING = [line([(0, 0), (2, 0)]), line([(2, 0), (2, 2)]), line([(2, 2), (0, 2)]), line([(0, 2), (0, 0)])]


@pytest.mark.parametrize(
    "shapes",
    [
        RING,
        [*RING, line([(2, 2), (0, 0)])],
        [line([(0, 0), (2, 0), (1, 2), (0, 0)])],  # closed
        [*RING, line([(0, 0), (1, -1), (2, 0)])],
        [line([(0, 0), (1, 0), (2, 0), (1, 1), (0, 0)]), line([(1, 0), (1, 1)])],  # ends at inner vertices of another
        [line([(0, 0), (2, 2), (0, 2), (0, 0)]), line([(0, 1), (1, 0), (-1, 0), (0, 1)])],  # cross without a vertex: a bridge
        [shapely.MultiLineString([[(0, 0), (1, 0)], [(1, 0), (1, 1)]]), line([(1, 1), (0, 0)])],
        [],
    ],
)
def test_a_good_network_has_no_findings(shapes):
    if len(shapes) == 2 and shapes[1].coords[0] == (0, 1):
        shapes = [shapes[0], line([(0.5, 1), (1.5, 0), (-1, 0), (0.5, 1)])]
    assert judged(shapes) == NOTHING


def test_an_end_that_meets_nothing_is_a_dangle():
    assert judged([*RING, line([(2, 2), (5, 5)])]) == {**NOTHING, "dangles": [4]}
    assert judged([line([(0, 0), (1, 0)])]) == {**NOTHING, "dangles": [0, 0]}


def test_a_dangle_has_its_place():
    found = check_network(canonical([*RING, line([(2, 2), (5, 6)])]), 2, near=0.0).dangles
    assert (found.x.tolist(), found.y.tolist()) == ([500], [600])


def test_an_end_on_a_line_without_a_vertex_is_unconnected():
    assert judged([*RING, line([(2, 2), (1, 0)])]) == {**NOTHING, "unconnected": [(4, 0)]}


def test_an_end_near_a_line_is_unconnected_and_not_a_dangle():
    short = [*RING, line([(2, 2), (1, 0.25)])]
    assert judged(short) == {**NOTHING, "dangles": [4]}
    found = check_network(canonical(short), 2, near=0.3)
    assert not len(found.dangles)
    assert (found.unconnected.row.tolist(), found.unconnected.other.tolist(), found.unconnected.distance.tolist()) == ([4], [0], [25])


def test_where_dead_ends_are_meant_only_short_ones_are_faults():
    assert judged([*RING, line([(2, 2), (5, 5)])], near=0.5, dead_ends=True) == NOTHING
    assert judged([*RING, line([(2, 2), (2.25, 2.25)])], near=0.5, dead_ends=True) == {**NOTHING, "dangles": [4]}
    assert judged([*RING, line([(5, 5), (2, 2.25)])], near=0.5, dead_ends=True) == {**NOTHING, "unconnected": [(4, 1)]}


def test_what_is_within_the_tolerance_counts_as_joined():
    assert judged([*RING, line([(2, 2), (1, 0.25)])], tolerance=0.3) == NOTHING
    assert judged([*RING, line([(2, 2), (1, 0)])], tolerance=0.3) == NOTHING
    assert judged([*RING, line([(2, 2), (1, 0.5)])], tolerance=0.3) == {**NOTHING, "dangles": [4]}


@pytest.mark.parametrize(
    ("more", "pairs"),
    [
        (line([(0, 0), (2, 0)]), [(0, 4)]),
        (line([(2, 0), (0, 0)]), [(0, 4)]),  # the other way
        (line([(0, 0), (2, 0), (2, 2)]), [(0, 4), (1, 4)]),
        (line([(0, 0), (1, 0), (2, 2)]), [(0, 4)]),  # a part of it
        (line([(2, 2), (0.5, 0), (0.75, 0), (2, 0)]), [(0, 4)]),
        (line([(0, 0), (0, 1), (0, 0.5), (2, 2)]), [(3, 4)]),
    ],
)
def test_a_stretch_that_stands_twice_is_a_duplicate(more, pairs):
    assert judged([*RING, more])["duplicates"] == pairs


def test_all_copies_of_a_stretch_are_told():
    assert judged([*RING, RING[0], RING[0]])["duplicates"] == [(0, 4), (0, 5), (4, 5)]


def test_a_line_that_runs_over_itself_is_told():
    assert judged([*RING, line([(0, 0), (1, 1), (0, 0)])])["duplicates"] == [(4, 4)]


def test_the_length_that_is_shared_is_measured():
    found = check_network(canonical([*RING, line([(0, 0), (0.5, 0), (2, 2)])]), 2, near=0.0).duplicates
    assert found.size.tolist() == [50]


_lines = st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=4), min_size=1, max_size=5)


@settings(max_examples=300, deadline=None)
@given(_lines)
def test_it_agrees_with_a_comparison_of_all_pairs(paths):
    shapes = [
        line([a for a, b in zip(path, [*path[1:], None], strict=True) if a != b])
        for path in paths
        if len(set(path)) > 1 and len([a for a, b in zip(path, [*path[1:], None], strict=True) if a != b]) > 1
    ]
    if not shapes:
        return
    found = judged(shapes, 0)
    vertices = [shapely.get_coordinates(each).tolist() for each in shapes]
    places = [tuple(xy) for each in vertices for xy in each]
    loose = sorted((n, tuple(end)) for n, each in enumerate(vertices) for end in (each[0], each[-1]) if places.count(tuple(end)) == 1)
    on_line = [(n, end) for n, end in loose if any(m != n and other.intersects(shapely.Point(end)) for m, other in enumerate(shapes))]
    assert sorted(row for row, _ in found["unconnected"]) == sorted(n for n, _ in on_line)
    assert sorted(found["dangles"]) == sorted(n for n, _ in loose if (n, _) not in on_line)
    twice = {(a, b) for a, b in combinations(range(len(shapes)), 2) if shapely.relate_pattern(shapes[a], shapes[b], "1********")}
    assert {(a, b) for a, b in found["duplicates"] if a != b} == twice
