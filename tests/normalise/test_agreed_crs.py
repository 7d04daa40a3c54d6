"""Whether the delivered CRS is the agreed one, or one that the publication accepts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contracts import contract
from merestone.contract.contract import Field, FieldType
from merestone.contract.stamp import Stamp
from merestone.normalise.agreed_crs import check_crs
from merestone.normalise.transform import operation_for
from merestone.publication.publication import CrsRule
from merestone.reference.grids import NoGrids
from merestone.reference.operation import Operation
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"


def agreed(epsg: int, **clauses):
    return contract(crs_epsg=epsg, contract_version=Stamp.parse(f"v1.0.0-crs:EPSG:{epsg}-res:1m"), **clauses)


def delivery(name: str):
    return open_source(SourceSpec(str(CASES / name))).delivery


def observed(name: str, epsg: int) -> list[tuple[str, str, str]]:
    return [(each.rule, each.expected, each.observed) for each in check_crs(agreed(epsg), delivery(name))]


def test_no_crs_is_named_with_its_reason():
    assert observed("C01/noprj.shp", 4326) == [("crs_missing", "EPSG:4326 is agreed", "CRS missing (no .prj)")]
    assert observed("C01/srs0.gpkg", 4326) == [("crs_missing", "EPSG:4326 is agreed", "CRS undefined (srs_id 0)")]
    assert observed("C01/plain.geojson", 4326) == []


@pytest.mark.parametrize("name", ["absent", "crs84", "epsg4326"])
def test_three_ways_to_say_wgs84(name):
    assert observed(f"C03/{name}.parquet", 4326) == []
    column = delivery(f"C03/{name}.parquet").geometry
    assert column is not None
    operation = operation_for(agreed(4326), column, CrsRule(), NoGrids())
    assert isinstance(operation, Operation)
    assert operation.is_identity


def test_esri_twin_and_site_grid():
    assert observed("C04/esri.shp", 3059) == []
    ((rule, expected, words),) = observed("C04/twin.shp", 3059)
    assert (rule, expected) == ("crs_mismatch", "EPSG:3059 is agreed")
    assert "false northing 0 instead of -6000000" in words
    ((rule, _, words),) = observed("C04/custom.shp", 3059)
    assert "CRS could not be identified" in words
    for unit in ("9001", "9102", "9122", "8901"):
        assert unit not in words


def test_compound_against_plain():
    ((_, _, words),) = observed("C06/compound.parquet", 25833)
    assert words == "EPSG:25833+7837 (DHHN2016 height) where EPSG:25833 is agreed"
    ((_, _, words),) = observed("C06/has_code.parquet", 27700)
    assert words.startswith("EPSG:7405 (")
    assert observed("C06/has_code.parquet", 7405) == []


def test_another_crs_is_refused_unless_the_publication_accepts_it_by_name():
    ((rule, expected, words),) = observed("C09/points.gpkg", 4258)
    assert (rule, expected) == ("crs_mismatch", "EPSG:4258 is agreed")
    assert words == "EPSG:27700 (OSGB36 / British National Grid) where EPSG:4258 is agreed"
    (finding,) = check_crs(agreed(4258), delivery("C09/points.gpkg"))
    assert "crs: {accept: [EPSG:27700]}" in finding.remedy
    assert check_crs(agreed(4258), delivery("C09/points.gpkg"), ("EPSG:27700",)) == ()
    assert check_crs(agreed(4258), delivery("C09/points.gpkg"), ("EPSG:4326",)) != ()
    column = delivery("C01/plain.geojson").geometry
    assert column is not None
    three = replace(delivery("C01/plain.geojson"), geometry=replace(column, crs="EPSG:4979"))
    assert check_crs(agreed(4326), three) != ()  # the same name, with heights: ISO 19111 has it for another system
    assert check_crs(agreed(4326), three, ("EPSG:4979",)) == ()


def test_a_second_geometry_answers_for_its_own_crs():
    entrance = Field("entrance", FieldType("geometry"), crs_epsg=4326)
    both = agreed(25832, schema_fields=(Field("pid", FieldType("string")), entrance))
    found = delivery("Q02/curr.parquet")
    assert check_crs(both, found) == ()
    (other,) = found.other_geometries
    operation = operation_for(both, other, CrsRule(), NoGrids(), field=entrance)
    assert isinstance(operation, Operation)
    assert operation.is_identity
    lost = replace(found, other_geometries=(replace(other, crs=None, note="crs null"),))
    assert [(each.field, each.rule) for each in check_crs(both, lost)] == [("entrance", "crs_missing")]
