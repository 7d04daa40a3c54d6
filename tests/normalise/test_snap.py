"""Geometries in stored form: faults of type, collapse, size; dimensions left out."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from contracts import contract
from merestone.contract.contract import Derived, Field, FieldType, GeometryClause
from merestone.contract.stamp import Stamp
from merestone.normalise.derive import with_derived
from merestone.normalise.snap import snap
from merestone.results.finding import PASS, REJECT, WARN
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"


def metres(**clauses):
    return contract(crs_epsg=25833, contract_version=Stamp.parse("v1.0.0-crs:EPSG:25833-res:1m"), coordinate_precision=2, **clauses)


def wkb(*shapes):
    return pa.array([None if shape is None else shapely.to_wkb(shape) for shape in shapes], pa.binary())


def test_ordinates_lie_on_the_grid_and_single_becomes_multi():
    stored, faults, steps = snap(wkb(shapely.box(0.004, 0, 1.006, 1), None), metres(geometry_type="multipolygon"))
    assert shapely.from_wkb(stored[0].as_py()).normalize() == shapely.MultiPolygon([shapely.box(0, 0, 1.01, 1)]).normalize()
    assert (stored[1].as_py(), faults, steps.verdict.tolist()) == (None, [], [PASS, PASS])
    assert (steps.stage, steps.event_type, steps.source_crs) == ("snap", "SNAP", "EPSG:25833")


def test_another_type_is_named():
    _, (fault,), steps = snap(wkb(shapely.Point(1, 1), shapely.LineString([(0, 0), (1, 1)])), metres(geometry_type="linestring"))
    assert (fault.rule, fault.expected, fault.rows.tolist(), fault.observed.to_pylist()) == ("geometry_type", "linestring", [0], ["point"])
    assert steps.verdict.tolist() == [REJECT, PASS]
    assert steps.reason.to_pylist() == ["geometry_type: point", None]


def test_what_collapses_is_named_and_never_becomes_empty():
    stored, (fault,), _ = snap(wkb(shapely.LineString([(0, 0), (0.001, 0.001)]), shapely.LineString([(0, 0), (1, 1)])), metres())
    assert (fault.rule, fault.rows.tolist()) == ("collapse", [0])
    assert fault.observed.to_pylist() == ["collapses on the grid of 0.01"]
    assert not shapely.from_wkb(stored[0].as_py()).is_empty


DEGENERATE = {
    "a line of zero length": "LINESTRING (1 1, 1 1)",
    "a line that stays": "LINESTRING (1 1, 1 1, 1 1)",
    "one of two lines": "MULTILINESTRING ((0 0, 1 1), (2 2, 2 2))",
    "a ring of two places": "POLYGON ((0 0, 1 1, 0 0, 0 0))",
    "a hole of one place": "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 2, 5 2, 5 2, 5 2))",
    "a member": "GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (3 3, 3 3))",
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_what_has_collapsed_before_rounding_is_not_told_to_be_kept_finer(name):
    rounded = shapely.LineString([(0, 0), (0.001, 0.001)])
    faults = snap(wkb(shapely.from_wkt(DEGENERATE[name]), rounded), metres())[1]
    said = {each.rows.tolist()[0]: each for each in faults if each.rule == "collapse"}
    assert "finer" in said[1].remedy
    assert "finer" not in said[0].remedy
    assert "at the source" in said[0].remedy
    assert "as delivered" in said[0].observed.to_pylist()[0]


def test_heights_left_out_are_a_warning():
    stored, (fault,), steps = snap(wkb(shapely.Point(1, 2, 3), shapely.Point(1, 2)), metres())
    assert (fault.rule, fault.severity, fault.rows.tolist(), fault.observed.to_pylist()) == ("z_dropped", "warning", [0], ["Z left out"])
    assert steps.verdict.tolist() == [WARN, PASS]
    assert stored[0] == stored[1]
    kept, faults, _ = snap(wkb(shapely.Point(1, 2, 3.004)), metres(geometry=GeometryClause(dimensions="xyz")))
    assert (faults, shapely.from_wkb(kept[0].as_py()).z) == ([], 3.0)


def test_numbers_that_are_none_are_left_to_the_gate():
    source = open_source(SourceSpec(str(CASES / "G06/bad.parquet")))
    (batch,) = source.batches()
    _, faults, _ = snap(batch["geometry"], metres(geometry=GeometryClause(dimensions="xyz")))
    assert [each.rule for each in faults] == []
    none = struct.pack("<BII4d", 1, 2, 2, *[float("nan")] * 4)
    assert snap(pa.array([none], pa.binary()), metres())[1] == []


def test_an_ordinate_that_the_grid_cannot_hold():
    _, (fault,), _ = snap(wkb(shapely.Point(1e18, 0), shapely.Point(1, 1)), metres())
    assert (fault.rule, fault.rows.tolist()) == ("ordinate", [0])


def test_derived_measures_are_recomputed():
    fields = (
        Field("area", FieldType("number"), unit="ha", derived=Derived(measure="area")),
        Field("edge", FieldType("integer"), derived=Derived(measure="length", unit="km")),
        Field("note", FieldType("number"), derived=Derived()),
    )
    batch = pa.record_batch({
        "area": pa.array([1.0, 2.0]), "edge": pa.array([1, 2]), "note": pa.array([7.0, 8.0]),
        "geometry": wkb(shapely.box(0, 0, 500, 500), None),
    })  # fmt: skip
    found = with_derived(batch, metres(schema_fields=fields), "geometry")
    assert found["area"].to_pylist() == [25.0, None]
    assert found["edge"].to_pylist() == [2, None]
    assert found["note"].to_pylist() == [7.0, 8.0]


def test_geodesic_area_of_one_degree_at_the_equator():
    field = Field("area", FieldType("number"), unit="km2", derived=Derived(measure="area", method="geodesic"))
    batch = pa.record_batch({"area": pa.array([None], pa.float64()), "geometry": wkb(shapely.box(0, 0, 1, 1))})
    (value,) = with_derived(batch, contract(schema_fields=(field,)), "geometry")["area"].to_pylist()
    assert 12_300 < value < 12_320  # 111.32 km by 110.57 km
