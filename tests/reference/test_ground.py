"""The size of a unit on the ground, and where a system is used: one answer for every room."""

from __future__ import annotations

import math

import pytest

from merestone.reference.area import area_of_use, box_in, degrees_of_use, largest_ordinate
from merestone.reference.ground import metres_per_unit, unit_name
from merestone.reference.systems import epsg_name, foreign_name, is_degrees, is_dynamic, of_code


@pytest.mark.parametrize(
    ("epsg", "least", "most"),
    [
        (4326, 180, 180),
        (4979, 180, 180),
        (4807, 200, 200),
        (28992, 600_000, 700_000),
        (7415, 600_000, 700_000),
        (25833, 9e6, 1e7),
        (3857, 20_000_000, 20_100_000),
        (2249, 1e6, 6e6),
    ],
)
def test_largest_ordinates_are_those_of_the_area_of_use(epsg, least, most):
    assert least <= largest_ordinate(f"EPSG:{epsg}") <= most


def test_a_projection_without_a_known_area_may_reach_half_around_the_earth():
    local = 'PROJCRS["a",BASEGEOGCRS["b",DATUM["c",ELLIPSOID["d",6378137,298.25]]],CONVERSION["e",METHOD["Transverse Mercator"]],CS[Cartesian,2],'
    assert largest_ordinate(local + 'AXIS["x",east],AXIS["y",north],LENGTHUNIT["foot",0.3048]]') == 2.1e7 / 0.3048


@pytest.mark.parametrize(
    ("epsg", "metres", "unit"),
    [
        (28992, 1, "m"),
        (7415, 1, "m"),
        (2249, 0.3048006, "US survey foot"),
        (4326, 111_320, "degree"),
        (4979, 111_320, "degree"),
        (4807, 100_188, "grad"),
    ],
)
def test_metres_of_a_unit(epsg, metres, unit):
    assert metres_per_unit(of_code(epsg)) == pytest.approx(metres, rel=1e-5)
    assert unit_name(of_code(epsg)) == unit


def test_degrees_are_degrees_and_not_grads():
    assert [is_degrees(of_code(code)) for code in (4326, 4979, 4258, 4807, 25833)] == [True, True, True, False, False]


def test_areas_across_the_antimeridian_end_beyond_180():
    assert degrees_of_use("EPSG:2193") == (166.37, -47.33, 178.63, -34.1)
    box = degrees_of_use("EPSG:3460")  # Fiji
    assert box is not None
    assert box[2] > 180 > box[0]
    assert area_of_use("EPSG:3460") is not None


def test_a_box_that_has_no_place_in_another_system_is_none():
    assert box_in((0, 0, 1, 1), "EPSG:4326", "junk") is None
    assert box_in((-180, -90, 180, 90), "EPSG:4326", "EPSG:3857") is None or math.isfinite(
        box_in((-180, -90, 180, 90), "EPSG:4326", "EPSG:3857")[0]
    )


def test_numbers_of_other_authorities_are_not_epsg_codes():
    assert (epsg_name(102100), foreign_name(102100)) == (None, "ESRI:102100")
    assert (epsg_name(3857), foreign_name(3857)) == ("WGS 84 / Pseudo-Mercator", None)
    assert (epsg_name(1), foreign_name(1)) == (None, None)


def test_dynamic_systems_are_those_that_move_over_the_ground():
    assert [is_dynamic(of_code(code)) for code in (9000, 7912, 9754)] == [True] * 3
    assert [is_dynamic(of_code(code)) for code in (4326, 4258, 25832, 7844, 28992)] == [False] * 5
