from __future__ import annotations

from dataclasses import replace

import pytest

from contracts import contract
from merestone.contract.breaking import breaks
from merestone.contract.contract import Field, FieldType, GeometryClause, Semantics

PID, NAME = Field("pid", FieldType("string"), nullable=False), Field("name", FieldType("string"))
SITE = Field("site", FieldType("geometry"), crs_epsg=4326, coordinate_precision=7)
DEPTH = Field("depth", FieldType("number"), decimals=3, noise=0.02)
RATE = Field("rate", FieldType("number"))
BASE = contract(schema_fields=(PID, NAME, SITE))
NUMBERS = contract(schema_fields=(PID, DEPTH, RATE))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"crs_epsg": 25832}, "crs_epsg is 25832, was 4326"),
        ({"axis_order": "lat_lon"}, "axis_order"),
        ({"geometry_type": "point"}, "geometry_type is point"),
        ({"product_id": "9f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10"}, "product_id"),
        ({"coordinate_precision": 6}, "coordinate_precision is 6, coarser than 7"),
        ({"geometry": GeometryClause(dimensions="xyz")}, "geometry.dimensions"),
        ({"geometry": GeometryClause(edges="spherical")}, "geometry.edges"),
        ({"geometry": GeometryClause(direction="irrelevant")}, "geometry.direction"),
        ({"geometry": GeometryClause(nullable=True)}, "geometry.nullable"),
        ({"geometry": GeometryClause(empty=True)}, "geometry.empty"),
        ({"geometry": GeometryClause(name="shape")}, "called shape, was geometry"),
        ({"geometry": GeometryClause(z_precision=3)}, "geometry.z_precision is 3"),
        ({"schema_fields": (PID, SITE)}, "the field name is gone"),
        ({"schema_fields": (PID, replace(NAME, type=FieldType("integer")), SITE)}, "name is integer, was string"),
        ({"schema_fields": (PID, replace(NAME, unit="m"), SITE)}, "the unit of name is m, was none"),
        ({"schema_fields": (replace(PID, nullable=True), NAME, SITE)}, "pid is nullable"),
        ({"schema_fields": (PID, NAME, SITE, Field("rank", FieldType("integer"), nullable=False))}, "the new field rank is not nullable"),
        ({"schema_fields": (PID, NAME, replace(SITE, crs_epsg=4258))}, "crs_epsg of site"),
        ({"schema_fields": (PID, NAME, replace(SITE, coordinate_precision=5))}, "coordinate_precision of site is 5"),
        ({"schema_fields": (PID, NAME, SITE, Field("geometry", FieldType("string")))}, "the geometry column is called geom"),
    ],
)
def test_what_carried_files_would_contradict(change, words):
    found = breaks(BASE, replace(BASE, **change))
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"coordinate_precision": 8},
        {"freshness_sla_minutes": 5},
        {"geometry": GeometryClause(z_precision=9)},
        {"schema_fields": (PID, Field("rank", FieldType("integer")), replace(NAME, nullable=False), SITE)},
        {"schema_fields": (SITE, NAME, PID)},
        {"semantics": (("name", Semantics(enum=("x",))),)},
        {"schema_fields": (PID, replace(NAME, description="words", deprecated=True, volatile=True), SITE)},
    ],
)
def test_what_may_follow(change):
    assert breaks(BASE, replace(BASE, **change)) == []


def test_everything_is_named_at_once():
    assert len(breaks(BASE, replace(BASE, crs_epsg=25832, coordinate_precision=3, schema_fields=(PID,)))) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"geometry": GeometryClause(noise=0.1)}, "geometry.noise is 0.1, was 0.05"),
        ({"schema_fields": (PID, replace(DEPTH, decimals=2), RATE)}, "decimals of depth is 2, was 3"),
        ({"schema_fields": (PID, replace(DEPTH, noise=None), RATE)}, "noise of depth is 0.05, was 0.02"),
        ({"schema_fields": (PID, DEPTH, replace(RATE, digits=6))}, "digits of rate is 6, was all that a number holds"),
    ],
)
def test_coarser_numbers_and_more_noise_break(change, words):
    assert breaks(NUMBERS, replace(NUMBERS, **change)) == [words]


@pytest.mark.parametrize(
    "change",
    [
        {"geometry": GeometryClause(noise=0.0)},
        {"schema_fields": (PID, replace(DEPTH, decimals=4, noise=0.0), RATE)},
        {"schema_fields": (PID, replace(DEPTH, decimals=None, noise=None), RATE)},
    ],
)
def test_finer_numbers_and_less_noise_may_follow(change):
    assert breaks(NUMBERS, replace(NUMBERS, **change)) == []
