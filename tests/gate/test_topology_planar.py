from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from merestone.gate.topology_cover import Cover
from merestone.gate.topology_planar import boundary_changes, check_planar
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

box = shapely.box


def canonical(shapes, precision=2):
    wkb = pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())
    return kernel.canonical(wkb, Grid(precision), Shape("multipolygon", "xy"))[0].cast(pa.binary())


def judged(shapes, precision=2, **rules):
    found = check_planar(canonical(shapes, precision), precision, **rules)
    return {
        name: {(int(a), int(b)) for a, b in zip(pairs.one, pairs.other, strict=True)}
        for name, pairs in (("overlaps", found.overlaps), ("gaps", found.gaps), ("mismatches", found.mismatches))
    }


def squares(side=3, *, without=()):
    return [box(i, j, i + 1, j + 1) for i in range(side) for j in range(side) if (i, j) not in without]


NOTHING = {"overlaps": set(), "gaps": set(), "mismatches": set()}


@pytest.mark.parametrize(
    "shapes",
    [
        squares(),
        [box(0, 0, 1, 1), box(1, 1, 2, 2)],  # touch in a point
        [box(0, 0, 1, 1), box(5, 5, 6, 6)],
        [box(0, 0, 9, 9).difference(box(2, 2, 4, 4)), box(2, 2, 4, 4)],  # a hole that is filled
        [shapely.MultiPolygon([box(0, 0, 1, 1), box(1, 1, 2, 2)]), box(1, 0, 2, 1)],
        [shapely.Polygon([(0, 0), (2, 0), (1, 1)]), shapely.Polygon([(1, 1), (3, 2), (-1, 2)])],
        [],
    ],
)
def test_a_good_coverage_has_no_findings(shapes):
    assert judged(shapes) == NOTHING
    assert judged(shapes, gap_width=0.5) == NOTHING


@pytest.mark.parametrize(
    ("shapes", "pairs"),
    [
        ([box(0, 0, 1, 1), box(0.5, 0.5, 2, 2)], {(0, 1)}),  # borders cross
        ([box(0, 0, 1, 1), box(0, 0, 1, 1)], {(0, 1)}),  # the same twice
        ([box(0, 0, 1, 1)] * 3, {(0, 1), (0, 2), (1, 2)}),
        ([box(0, 0, 10, 10), box(2, 2, 3, 3)], {(0, 1)}),  # inside
        ([box(0, 0, 5, 10), box(5, 0, 10, 10), box(4, 4, 6, 6)], {(0, 2), (1, 2)}),  # inside of two together
        ([box(0, 0, 2, 2), shapely.Polygon([(0, 0), (2, 2), (1, 5)])], {(0, 1)}),  # through common vertices
        ([box(0, 0, 3, 3), box(0, 0, 3, 1)], {(0, 1)}),  # along three sides
        ([box(0, 0, 3, 3), box(1, 0, 2, 1)], {(0, 1)}),  # along a part of a side
        ([box(0, 0, 2, 2).difference(box(0.5, 0.5, 1.5, 1.5)), box(0.25, 0.75, 1.25, 1.25)], {(0, 1)}),  # over the rim of a hole
        ([*squares(), box(0.5, 0.5, 2.5, 2.5)], {(n, 9) for n in range(9)}),  # a second layer whose edges touch none of the first
        ([*squares(), *[shapely.transform(each, lambda xy: xy + 0.5) for each in squares()]], None),
    ],
)
def test_every_overlap_is_found(shapes, pairs):
    if pairs is None:
        pairs = {(a, b) for a, b in combinations(range(len(shapes)), 2) if shapely.relate_pattern(shapes[a], shapes[b], "T********")}
    assert judged(shapes)["overlaps"] == pairs


def test_an_overlap_has_its_place_and_its_area():
    found = check_planar(canonical([box(0, 0, 10, 10), box(9.5, 0, 20, 10)]), 2).overlaps
    assert found.size.tolist() == [5 * 10**4]
    assert 950 < found.x[0] < 1000


def test_an_enclosed_gap_is_found_however_wide():
    assert judged(squares(without=[(1, 1)]))["gaps"] == {(1, 3)}
    assert judged([box(0, 0, 9, 9).difference(box(2, 2, 4, 4))])["gaps"] == {(0, -1)}


def test_a_feature_that_has_shrunk_leaves_a_gap_around_it():
    shapes = [*squares(without=[(1, 1)]), box(1.1, 1.1, 1.9, 1.9)]
    found = check_planar(canonical(shapes), 2)
    assert len(found.gaps) == 1
    assert found.gaps.size.tolist() == [pytest.approx(0.36 * 10**4)]
    assert len(check_planar(canonical(shapes), 2, gap_width=0.2).gaps) == 1
    assert not len(check_planar(canonical(shapes), 2, gap_width=0.09).gaps)


def test_with_a_width_wide_gaps_are_meant_and_narrow_open_ones_are_faults():
    assert judged(squares(without=[(1, 1)]), gap_width=0.9) == NOTHING
    assert judged(squares(without=[(1, 1)]), gap_width=1.1)["gaps"] == {(1, 3)}
    assert judged([box(0, 0, 1, 1), box(1.1, 0, 2, 1)], gap_width=0.2)["gaps"] == {(0, 1)}
    assert judged([box(0, 0, 1, 1), box(1.1, 0, 2, 1)], gap_width=0.1) == NOTHING
    assert judged([box(0, 0, 1, 1), box(1.1, 0, 2, 1)]) == NOTHING  # open ground is no gap unless a width says so


def test_gaps_are_found_beside_overlaps():
    shapes = [*squares(5, without=[(1, 1)]), box(1.5, 2.5, 3.5, 3.5)]
    assert judged(shapes)["gaps"] == {(1, 5)}
    assert len(judged(shapes)["overlaps"]) == 6


def test_ground_beside_an_overlap_that_encloses_it_is_a_gap():
    ring = [box(0, 0, 3, 1), box(0, 2, 3, 3), box(0, 0.5, 1, 2), box(2, 1, 3, 2)]
    assert judged(ring)["overlaps"] == {(0, 2)}
    assert len(judged(ring)["gaps"]) == 1


def test_a_border_without_the_neighbours_vertices_does_not_match():
    assert judged([box(0, 0, 2, 1), box(0, 1, 1, 2), box(1, 1, 2, 2)]) == {**NOTHING, "mismatches": {(0, 1), (0, 2)}}
    assert judged([box(0, 0, 2, 1), box(1, 1, 3, 2)]) == {**NOTHING, "mismatches": {(0, 1)}}


def test_what_is_within_the_tolerance_is_forgiven():
    slivers = [box(0, 0, 1.01, 1), box(1, 0, 2, 1), box(0, 1, 2, 2)]
    assert judged(slivers)["overlaps"] == {(0, 1)}
    assert judged(slivers, tolerance=0.02) == NOTHING
    assert judged(slivers, tolerance=0.005)["overlaps"] == {(0, 1)}


def test_large_numbers_are_compared_exactly():
    far = 4 * 10**12
    one = shapely.Polygon([(-far, -far), (far, far - 1), (-far, far)])
    assert judged([one, shapely.Polygon([(0, -10), (far, -10), (far, far - 1), (0, -1)])], 0)["overlaps"] == set()
    assert judged([one, shapely.Polygon([(0, -10), (far, -10), (far, far - 1), (0, 0)])], 0)["overlaps"] == {(0, 1)}


def test_the_outline_of_a_change_decides_whether_gaps_can_have_changed():
    before = canonical([box(0, 0, 1, 1), box(1, 0, 2, 1)])
    assert not boundary_changes(before, canonical([box(0, 0, 1, 1), box(1, 0, 2, 1)]), 2)
    assert not boundary_changes(
        before,
        canonical(
            [shapely.Polygon([(0, 0), (1, 0), (1.5, 0.5), (1, 1), (0, 1)]), shapely.Polygon([(1, 0), (2, 0), (2, 1), (1, 1), (1.5, 0.5)])]
        ),
        2,
    )
    assert boundary_changes(before, canonical([box(0, 0, 1, 1)]), 2)
    assert boundary_changes(canonical([]), before, 2)


def test_far_apart_overlaps_do_not_cost_what_lies_between_them(monkeypatch):
    built = []
    shapes_of = Cover.shapes
    monkeypatch.setattr(Cover, "shapes", lambda self, rows: built.extend(rows.tolist()) or shapes_of(self, rows))
    shapes = [*squares(20, without=[(10, 10)]), box(0.5, 0.5, 1.5, 1.5), box(18.5, 18.5, 19.5, 19.5)]
    found = check_planar(canonical(shapes), 2)
    assert (len(found.overlaps), len(found.gaps)) == (8, 1)
    assert len(set(built)) < 40
