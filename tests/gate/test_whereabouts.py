"""Axis order, units and CRS decided from positions, with the evidence; `undecidable` where it does not decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.gate.whereabouts import Census, Ground, Reference, census, decide, faults
from merestone.reference.area import area_of_use, box_in, degrees_of_use

WORLD = Reference("the range of degrees", (-180.0, -90.0, 180.0, 90.0))


def ground(code="EPSG:4326", *references, exchanged=False):
    degrees = code in ("EPSG:4326", "EPSG:4258")
    area = area_of_use(code)
    own = () if code == "EPSG:4326" else (Reference(f"the area of use of {code}", area, 0.1),)
    return Ground(
        "geometry",
        code,
        degrees,
        (*references, *own, *((WORLD,) if degrees else ())),
        area,
        None if degrees else degrees_of_use(code),
        exchanged,
    )


def points(*xy):
    found = np.array(xy, dtype=float).reshape(-1, 2)
    return np.column_stack([found, found])


def scattered(x, y, size, n=1_000, seed=1):
    rng = np.random.default_rng(seed)
    return points(*np.column_stack([x + size * rng.random(n), y + size * rng.random(n)]))


def judged(where, boxes):
    return decide(where, census(where, boxes))


PLACES = {
    "EPSG:28992": (155_000, 463_000, 9_000),
    "EPSG:25832": (570_000, 6_220_000, 9_000),
    "EPSG:2193": (1_749_000, 5_428_000, 9_000),
    "EPSG:3301": (659_000, 6_474_000, 9_000),
    "EPSG:4258": (10.1, 56.1, 0.1),
}


@pytest.mark.parametrize("code", PLACES)
def test_the_area_of_use_alone_tells_the_order(code):
    where, right = ground(code), scattered(*PLACES[code])
    assert (judged(where, right).decision, judged(where, right).finding) == ("ok", None)
    verdict = judged(where, right[:, [1, 0, 3, 2]])
    assert (verdict.decision, verdict.finding.surface, verdict.finding.field, verdict.finding.rule) == (
        "swapped",
        "crs",
        "geometry",
        "axis_order",
    )
    assert "holds 0 of 1,000 rows as given, 1,000 with x and y exchanged" in verdict.evidence[0]


@pytest.mark.parametrize("code", PLACES)
def test_an_order_that_was_agreed_is_no_swap(code):
    where = ground(code, exchanged=True)
    assert judged(where, scattered(*PLACES[code])[:, [1, 0, 3, 2]]).decision == "ok"
    assert judged(where, scattered(*PLACES[code])).decision == "swapped"


def test_degrees_of_the_whole_world_decide_nothing_by_themselves():
    for boxes in (scattered(5, 52, 1), scattered(52, 5, 1)):
        verdict = judged(ground(), boxes)
        assert (verdict.decision, verdict.finding.severity, verdict.strays) == ("undecidable", "warning", False)
        assert verdict.follows == frozenset()
        for way in ("(5.0", "(52.0"):
            assert way in verdict.finding.observed, "positions stand there both ways"
        assert "holds 1,000 of 1,000 rows as given, 1,000 with x and y exchanged" in verdict.evidence[0]


@pytest.mark.parametrize(
    "reference", [Reference("the contract's extent", (3.0, 50.0, 8.0, 54.0), 0.5), Reference("v12", (4.9, 51.9, 6.2, 53.1), 1.0)]
)
def test_the_extent_or_the_last_version_decides_where_degrees_do_not(reference):
    assert judged(ground("EPSG:4326", reference), scattered(5, 52, 1)).decision == "ok"
    assert judged(ground("EPSG:4326", reference), scattered(52, 5, 1)).decision == "swapped"


def test_a_latitude_beyond_the_pole_is_a_longitude():
    assert judged(ground(), scattered(170, -44, 5)).decision == "ok"
    assert judged(ground(), scattered(-44, 170, 5)).decision == "swapped"


def test_an_extent_across_the_diagonal_leaves_it_open():
    where = ground("EPSG:4326", Reference("the contract's extent", (3.0, 3.0, 14.0, 14.0), 0.5))
    assert judged(where, scattered(8, 9, 2)).decision == "undecidable"


def test_no_position_decides_nothing():
    assert judged(ground(), np.full((3, 4), np.nan)).decision == "undecidable"


@pytest.mark.parametrize("code", [each for each in PLACES if each != "EPSG:4258"])
def test_degrees_in_place_of_metres(code):
    west, south, east, north = degrees_of_use(code)
    boxes = scattered((west + east) / 2, (south + north) / 2, 0.2)
    for each in (boxes, boxes[:, [1, 0, 3, 2]]):
        verdict = judged(ground(code), each)
        assert (verdict.decision, verdict.finding.rule) == ("units", "units")
        assert "read as degrees" in verdict.finding.observed


def test_metres_in_place_of_degrees_and_whose_they_would_be():
    where = ground()
    where = Ground("geometry", "EPSG:4326", True, where.references, where.area, None, agreed=("EPSG:28992", area_of_use("EPSG:28992")))
    verdict = judged(where, scattered(155_000, 463_000, 9_000))
    assert verdict.decision == "units"
    assert "not degrees" in verdict.finding.observed
    assert "area of use of EPSG:28992" in verdict.finding.observed


def test_another_zone_is_another_crs_and_a_neighbouring_one_is_not():
    assert judged(ground("EPSG:28992"), scattered(650_000, 5_770_000, 9_000)).decision == "wrong CRS"
    assert judged(ground("EPSG:25832"), scattered(865_000, 6_120_000, 20_000)).decision == "undecidable"  # Bornholm, beyond 12 degrees east


def labelled(code, agreed):
    """What is known of a delivery that names one CRS where another is agreed."""
    where, area = ground(code), area_of_use(agreed)
    return replace(where, agreed=(agreed, area), agreed_here=box_in(area, agreed, code))


@pytest.mark.parametrize("code", ["EPSG:28991", "EPSG:3112", "EPSG:21781"])
def test_numbers_of_the_agreed_crs_under_another_name(code):
    agreed = "EPSG:28992"
    assert judged(ground(code), scattered(*PLACES[agreed])).finding.severity == "warning"  # by itself it is not far enough
    verdict = judged(labelled(code, agreed), scattered(*PLACES[agreed]))
    assert (verdict.decision, verdict.finding.rule, verdict.finding.field, verdict.finding.count) == (
        "wrong CRS",
        "crs_position",
        "geometry",
        1_000,
    )
    assert agreed in verdict.finding.remedy


@pytest.mark.parametrize("agreed", PLACES)
@pytest.mark.parametrize(
    "code",
    ["EPSG:3857", "EPSG:3035", "EPSG:32631", "EPSG:32632", "EPSG:32633", "EPSG:25831", "EPSG:28992", "EPSG:4258", "EPSG:3301", "EPSG:3067"],
)
def test_a_sound_delivery_in_another_crs_is_never_mislabelled(code, agreed):
    """Also in a zone next to the one where it lies, as neighbours use them."""
    x, y, size = PLACES[agreed]
    place = box_in((x, y, x + size, y + size), agreed, code)
    assert place is not None
    west, south, east, north = place
    rng = np.random.default_rng(5)
    there = points(*np.column_stack([rng.uniform(west, east, 500), rng.uniform(south, north, 500)]))
    if code != agreed:
        assert census(labelled(code, agreed), there).mislabelled == 0


def test_one_row_among_many_is_found_and_named():
    for code, (x, y, size) in PLACES.items():
        where, boxes = ground(code), scattered(x, y, size)
        boxes[500] = boxes[500, [1, 0, 3, 2]]
        verdict = judged(where, boxes)
        assert (verdict.finding, verdict.strays) == (None, True), code
        (found,) = faults(where, boxes, verdict.bulk)
        assert (found.rule, found.surface, found.rows.tolist()) == ("axis_order", "crs", [500])


def test_the_bulk_convicts_one_row_where_nothing_else_decides():
    where, boxes = ground(), scattered(5, 52, 1)
    boxes[7] = points((52.3, 5.4))
    verdict = judged(where, boxes)
    assert (verdict.decision, verdict.strays) == ("undecidable", True)
    (found,) = faults(where, boxes, verdict.bulk)
    assert found.rows.tolist() == [7]
    assert found.observed.to_pylist() == ["x and y are swapped at 52.3, 5.4"]


def test_far_away_is_not_swapped():
    boxes = scattered(2, 47, 3)
    boxes[:5] = points((-61.5, 16.2), (55.5, -21.1), (-53, 4), (45.1, -12.8), (0, 0))  # overseas
    verdict = judged(ground(), boxes)
    assert (verdict.strays, faults(ground(), boxes, verdict.bulk)) == (False, [])


@given(st.integers(0, 2**32), st.integers(1, 6))
@settings(deadline=None)
def test_batches_and_their_order_have_no_say(seed, parts):
    boxes = scattered(5, 52, 1, n=300, seed=seed)
    boxes[::50] = boxes[::50, [1, 0, 3, 2]]
    where, total = ground(), Census()
    pieces = np.array_split(np.random.default_rng(seed).permutation(boxes), parts)
    for each in pieces:
        total.add(census(where, each))
    verdict = decide(where, total)
    assert verdict == judged(where, boxes)
    assert sum(len(found.rows) for each in pieces for found in faults(where, each, verdict.bulk)) == 6


def test_a_bulk_on_the_diagonal_convicts_nobody():
    boxes = scattered(8, 9, 4)
    boxes[:3] = points((10, 15.5), (15.5, 10), (3, 14))
    verdict = judged(ground(), boxes)
    assert (verdict.bulk, verdict.strays) == (None, False)


# --- metres that read as degrees -------------------------------------------------------------------------------------------------------


def around_the_origin(n=1_000, size=5_000):
    """Positions in metres on all sides of 0 0; a few of them are numbers that could be degrees."""
    return scattered(-size / 2, -size / 2, size, n)


@pytest.mark.parametrize(("code", "size"), [("EPSG:3857", 5_000), ("EPSG:3857", 60_000), ("EPSG:3857", 600), ("EPSG:6933", 2_000)])
def test_good_rows_near_the_origin_of_a_system_in_metres_are_not_degrees(code, size):
    where = ground(code)
    boxes = np.concatenate([around_the_origin(size=size), points((5.1, 52.1), (-5.1, 7.2), (100.5, 3.5))])
    counts = census(where, boxes)
    verdict = decide(where, counts)
    assert counts.alien >= 3
    assert (verdict.decision in ("ok", "undecidable"), verdict.finding is None or verdict.finding.rule == "axis_order") == (True, True)
    assert not [each for each in faults(where, boxes, verdict.bulk, verdict.near) if each.rule == "row_units"]


@pytest.mark.parametrize("code", ["EPSG:3857", "EPSG:27700", "EPSG:28992", "EPSG:25832"])
def test_rows_in_degrees_far_from_all_others_are_found(code):
    places = PLACES | {"EPSG:3857": (1_000_000, 6_000_000, 90_000), "EPSG:27700": (400_000, 300_000, 90_000)}
    west, south, east, north = degrees_of_use(code)
    here = points(((west + east) / 2 + 0.3, min((south + north) / 2 + 0.2, 60)))
    where, boxes = ground(code), np.concatenate([scattered(*places[code]), here])
    verdict = judged(where, boxes)
    found = [each for each in faults(where, boxes, verdict.bulk, verdict.near) if each.rule == "row_units"]
    assert [each.rows.tolist() for each in found] == [[1_000]]
    assert judged(where, here).decision == "units"


def test_an_extent_in_metres_says_that_small_numbers_are_metres():
    box = (-200.0, -100.0, 200.0, 100.0)
    small = points(*np.random.default_rng(2).uniform(-80, 80, (200, 2)))
    where = ground("EPSG:3857", Reference("the contract's extent", box, 0.5))
    assert judged(where, small).decision == "units"
    assert judged(replace(where, pairs=((box, box_in(box, "EPSG:3857", "EPSG:4326")),)), small).decision != "units"


# --- across the antimeridian -----------------------------------------------------------------------------------------------------------


ACROSS = Reference("the contract's extent", (165.0, -50.0, -175.0, -25.0), 0.5)


def test_an_extent_across_the_antimeridian_holds_both_of_its_sides():
    where = ground("EPSG:4326", ACROSS)
    boxes = points(*[(174.0 + n / 100, -41.0) for n in range(90)], *[(-176.5 - n / 100, -44.0) for n in range(10)])
    verdict = judged(where, boxes)
    assert (verdict.decision, verdict.finding) == ("ok", None)
    assert "165 -50 -175 -25" in verdict.evidence[0]
    assert "100 of 100 rows as given, 0 with x and y exchanged" in verdict.evidence[0]
    assert judged(where, boxes[:, [1, 0, 3, 2]]).decision == "swapped"
    assert Reference("", (10.0, -50.0, -10.0, -25.0), 0.5).grown[::2] == (-360.0, 360.0)  # half the globe and its margins are all of it
