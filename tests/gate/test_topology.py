from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import contract
from merestone.gate import topology, topology_open
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

box, line = shapely.box, shapely.LineString


def rules(rule_set="planar", **figures):
    made = contract(crs_epsg=28992, coordinate_precision=2, topology_rule_set=rule_set, topology_parameters=tuple(figures.items()))
    found = topology.rules_of(made, metres=1.0, geographic=False)
    assert found is not None
    return found


def stored(shapes):
    wkb = pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())
    return kernel.canonical(wkb, Grid(2), Shape("any", "xy"))[0].cast(pa.binary())


def said(shapes, which=None, **more):
    which = which or rules()
    return topology.findings(
        topology.judge(stored(shapes), which, **more), which, lambda places: [(f"f{n}", n + 1) for n in places.tolist()]
    )


def test_a_contract_without_a_rule_set_has_no_rules():
    assert topology.rules_of(contract(), metres=111_320.0, geographic=True) is None


def test_an_overlap_names_both_features_the_place_and_the_area():
    (found,) = said([box(0, 0, 10, 10), box(9.5, 0, 20, 10)])
    assert (found.surface, found.field, found.rule, found.severity, found.count, found.per_row) == (
        "geometry",
        "geometry",
        "overlap",
        "error",
        1,
        False,
    )
    assert found.observed == "f0 and f1 share 5 m2"
    (sample,) = found.features
    assert (sample.id, sample.row) == ("f0", 1)
    assert 9.5 <= sample.x <= 10
    assert 0 <= sample.y <= 10
    assert found.remedy


def test_a_gap_and_a_border_that_does_not_match_are_told_apart():
    ring = [box(0, 0, 3, 1), box(0, 2, 3, 3), box(0, 1, 1, 2), box(2, 1, 3, 2)]
    found = {each.rule: each.observed for each in said(ring)}
    assert found["gap"].startswith("1 m2 between f")
    assert found["mismatched_edge"].startswith("f0 and f2 along 1 m")
    assert set(found) == {"gap", "mismatched_edge"}


def test_a_gap_where_a_refused_feature_belongs_is_none():
    ring = shapely.difference(box(0, 0, 9, 9), box(2, 2, 4, 4))
    assert [each.rule for each in said([ring])] == ["gap"]
    assert said([ring])[0].observed == "4 m2 inside of f0"
    assert said([ring], absent=np.array([[2.0, 2.0, 4.0, 4.0]])) == []


def test_the_largest_come_first_and_all_are_counted():
    pairs = [shape for n in range(30) for shape in (box(10 * n, 0, 10 * n + 5, 5), box(10 * n + 4 - n / 100, 0, 10 * n + 8, 5))]
    (found,) = said(pairs)
    assert (found.count, len(found.features)) == (30, 20)
    assert found.observed.startswith("f58 and f59 share 6.45 m2, ")
    assert found.observed.endswith(" and 25 more")


def test_areas_of_degrees_are_told_in_metres():
    made = contract(topology_rule_set="planar")
    degrees = topology.rules_of(made, metres=111_320.0, geographic=True)
    wkb = kernel.canonical(
        pa.array(shapely.to_wkb([box(5, 60, 5.001, 60.001), box(5, 60, 5.001, 60.001)]), pa.binary()), Grid(7), Shape("any", "xy")
    )[0]
    (found,) = topology.findings(
        topology.judge(wkb.cast(pa.binary()), degrees, absent=None), degrees, lambda places: [("a", 1)] * len(places)
    )
    assert found.observed == "a and a share about 6,196 m2"


def test_a_network_is_told_in_words():
    shapes = [
        line([(0, 0), (20, 0)]),
        line([(20, 0), (20, 20)]),
        line([(20, 20), (0, 0)]),
        line([(0, 0), (10, 0), (20, 20)]),
        line([(15, 0), (15, -9)]),
        line([(20, 20), (30, 0.5)]),
        line([(20, 0), (50, 0)]),
    ]
    found = {each.rule: each.observed for each in said(shapes, rules("network"))}
    assert found == {
        "dangle": "f4 ends at no other line and f6 ends at no other line",
        "unconnected_end": "f4 ends on f0 between its vertices and f5 ends 0.5 m from f6",
        "duplicate_edge": "f0 and f3 share 10 m",
    }


def test_solids_are_told_in_words():
    faces = [[(0, 0, 0), (0, 1, 0), (1, 0, 0)], [(0, 0, 0), (1, 0, 0), (0, 0, 1)], [(1, 0, 0), (0, 1, 0), (0, 0, 1)]]
    made = rules("3d_solid")
    solid = shapely.MultiPolygon([shapely.Polygon(face) for face in faces])
    wkb = pa.array([shapely.to_wkb(solid, flavor="iso"), shapely.to_wkb(box(0, 0, 1, 1))], pa.binary())
    found = topology.findings(topology.judge(wkb, made), made, lambda places: [(f"f{n}", n + 1) for n in places.tolist()])
    assert [(each.rule, each.observed) for each in found] == [
        ("topology", "f1 has no faces with Z that could be judged"),
        ("open_shell", "f0 has 3 edges with one face only"),
    ]


@pytest.mark.parametrize(
    ("rule_set", "shape"), [("planar", line([(0, 0), (1, 1)])), ("network", box(0, 0, 1, 1)), ("3d_solid", shapely.Point(1, 1))]
)
def test_what_a_rule_set_cannot_judge_is_an_error_and_not_a_pass(rule_set, shape):
    found = said([shape, None, shapely.Point()], rules(rule_set))
    assert [(each.rule, each.severity, each.count) for each in found] == [("topology", "error", 1)]
    assert found[0].features[0].id == "f0"


def test_a_fault_of_the_geometry_library_is_an_error_and_not_a_pass(monkeypatch):
    def fails(*_args, **_kwargs):
        raise shapely.errors.GEOSException("TopologyException: side location conflict")

    monkeypatch.setattr(topology, "check_planar", fails)
    (found,) = said([box(0, 0, 1, 1)])
    assert (found.rule, found.severity, found.observed) == (
        "topology",
        "error",
        "could not be judged: TopologyException: side location conflict",
    )


# --- only what changed -----------------------------------------------------------------------------------------------------------------


def judged(shapes, which):
    """What is wrong with all features by themselves, as (rule, features)."""
    names = list(shapes)
    return _told(topology.judge(stored(list(shapes.values())), which), names)


def changed(before, after, which):
    """What is found when only the neighbourhood of a change is looked at."""
    arriving = {name: shape for name, shape in after.items() if name not in before or not before[name].equals_exact(shape)}
    leaving = [shape for name, shape in before.items() if name not in after or name in arriving]
    staying = {name: shape for name, shape in after.items() if name not in arriving}
    names = list(arriving)

    def carried(boxes):
        near = [
            name for name, shape in staying.items() if boxes is None or any(box(*each).intersects(box(*shape.bounds)) for each in boxes)
        ]
        names[:] = [*arriving, *near]
        return stored([staying[name] for name in near])

    if not arriving and not leaving:
        return set()
    return _told(topology.judge_change(stored(list(arriving.values())), stored(leaving), carried, which), names)


def _told(breaches, names):
    found = set()
    for each in breaches:
        for one, other in zip(each.one.tolist(), each.other.tolist(), strict=True):
            # Which two features are named beside a gap, and which of several equally near lines an end has missed, is a matter of order.
            both = {"gap": (), "unconnected_end": (one,)}.get(each.rule, (one, other))
            found.add((each.rule, *sorted(names[n] for n in both if n >= 0)))
    return found


GRID = {f"{i},{j}": box(i, j, i + 1, j + 1) for i in range(5) for j in range(5)}
STREETS = {
    **{f"w{i},{j}": line([(i, j), (i + 1, j)]) for i in range(4) for j in range(5)},
    **{f"n{i},{j}": line([(i, j), (i, j + 1)]) for i in range(5) for j in range(4)},
}


@st.composite
def _changes(draw, features):
    out = dict(features)
    for name in draw(st.lists(st.sampled_from(sorted(features)), max_size=3, unique=True)):
        what = draw(st.sampled_from(["remove", "shift", "copy", "grow", "shrink"]))
        if what == "remove":
            del out[name]
        elif what == "shift":
            out[name] = shapely.transform(out[name], lambda xy: xy + 0.25)
        elif what == "copy":
            out[f"{name}'"] = out[name]
        else:
            factor = 1.5 if what == "grow" else 0.5
            out[name] = shapely.transform(out[name], lambda xy, factor=factor: (xy - xy[0]) * factor + xy[0])
    return out


@settings(max_examples=200, deadline=None)
@given(_changes(GRID), st.sampled_from([{}, {"gap_width": 0.3}, {"gap_width": 0.75, "tolerance": 0.1}]))
def test_near_a_change_of_a_coverage_the_same_is_found_as_everywhere(after, figures):
    which = rules(**figures)
    assert judged(GRID, which) == set()
    assert changed(GRID, after, which) == judged(after, which)


@settings(max_examples=200, deadline=None)
@given(_changes(STREETS), st.sampled_from([{}, {"dangle_length": 0.6}, {"tolerance": 0.3}]))
def test_near_a_change_of_a_network_the_same_is_found_as_everywhere(after, figures):
    which = rules("network", **figures)
    assert judged(STREETS, which) == set()
    assert changed(STREETS, after, which) == judged(after, which)


def test_only_what_is_near_a_change_is_asked_for():
    asked = []

    def carried(boxes):
        asked.append(boxes)
        return stored([])

    topology.judge_change(stored([box(0, 0, 1, 2)]), stored([box(0, 0, 1, 1), box(0, 1, 1, 2)]), carried, rules(gap_width=0.5))
    assert np.concatenate([asked[0].min(axis=0)[:2], asked[0].max(axis=0)[2:]]) == pytest.approx([-1.02, -1.02, 2.02, 3.02])
    topology.judge_change(stored([box(0, 0, 2, 2)]), stored([box(0, 0, 1, 2)]), carried, rules())
    assert len(asked) == 2  # the outline grows into open ground, and encloses none


BAY = {name: shape for name, shape in GRID.items() if name not in {"2,2", "2,3", "2,4"}}


@pytest.mark.parametrize(("place", "all_of_it"), [((2, 4), True), ((2, 2), False), ((5, 2), False), ((2, 5), True), ((6, 6), False)])
def test_all_is_asked_for_where_open_ground_may_be_cut_off(place, all_of_it):
    """A new square in the mouth of the bay, at its end, beside the coverage, before the mouth (touching its corners), far from it."""
    asked = []
    new = box(place[0], place[1], place[0] + 1, place[1] + 1)

    def carried(boxes):
        asked.append(boxes)
        return stored([each for each in BAY.values() if boxes is None or any(box(*one).intersects(each) for one in boxes)])

    found = topology.judge_change(stored([new]), stored([]), carried, rules())
    assert ([each is None for each in asked] == [False, True]) == all_of_it
    assert [each.rule for each in found] == ["gap"] * all_of_it


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from([{}, {"gap_width": 0.3}, {"gap_width": 0.75, "tolerance": 0.1}]))
def test_near_a_change_of_a_coverage_with_a_bay_the_same_is_found_as_everywhere(data, figures):
    which = rules(**figures)
    after = data.draw(_changes(BAY))
    for x, y in data.draw(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 11)), max_size=2)):
        after[f"new {x},{y}"] = box(
            x / 2, y / 2, x / 2 + data.draw(st.sampled_from([0.5, 1, 1.5])), y / 2 + data.draw(st.sampled_from([0.5, 1]))
        )
    assert judged(BAY, which) == set()
    assert changed(BAY, after, which) == judged(after, which)


def test_ground_that_was_wide_enough_and_is_not_any_more_is_a_gap_however_far_it_reaches():
    """A square hole with a narrow channel, whose end lies beyond what is near the square: filled, it leaves the channel alone."""
    before = {f"{y},{i}": box(i, y, i + 1, y + 1) for i in range(12) for y in (0, 2)}
    before |= {
        "end 0": box(0, 1, 1, 2),
        "end 10": shapely.Polygon([(10, 1), (11, 1), (11, 2), (10, 2), (10, 1.5)]),
        "end 11": box(11, 1, 12, 2),
    }
    before |= {f"half {i}": box(i, 1.5, i + 1, 2) for i in range(2, 10)}
    which = rules(gap_width=0.75)
    assert judged(before, which) == set()
    after = {**before, "plug": box(1, 1, 2, 2)}
    assert ("gap",) in judged(after, which)
    assert changed(before, after, which) == judged(after, which)


def test_where_the_geometry_library_fails_near_by_everything_is_looked_at(monkeypatch):
    def fails(*_args, **_kwargs):
        raise shapely.errors.GEOSException("TopologyException: side location conflict")

    asked = []
    monkeypatch.setattr(topology_open, "_uncovered", fails)
    new = stored([box(5, 2, 6, 3)])
    assert topology.judge_change(new, stored([]), lambda boxes: asked.append(boxes) or stored(list(GRID.values())), rules()) == []
    assert [each is None for each in asked] == [False, True]
