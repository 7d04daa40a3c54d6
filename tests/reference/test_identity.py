"""Which system a text means: by its code, or by its parameters."""

from __future__ import annotations

from pathlib import Path

import pyproj
import pytest

from merestone.reference.identity import identify
from merestone.reference.parameters import differences

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(
    "text",
    [
        "EPSG:28992", "urn:ogc:def:crs:EPSG::28992", "http://www.opengis.net/def/crs/EPSG/0/28992", "http://www.opengis.net/gml/srs/epsg.xml#28992",
        *(pyproj.CRS(28992).to_wkt(dialect) for dialect in ("WKT2_2019", "WKT2_2015", "WKT1_GDAL", "WKT1_ESRI")),
        pyproj.CRS(28992).to_json(),
    ],
)  # fmt: skip
def test_one_crs_in_every_spelling(text):
    assert identify(text).code == "EPSG:28992"


@pytest.mark.parametrize(
    "text", ["OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84", "http://www.opengis.net/def/crs/OGC/1.3/CRS84", "EPSG:4326"]
)
def test_crs84_and_4326_are_one_in_x_y_order(text):
    assert identify(text).code == "EPSG:4326"


@pytest.mark.parametrize("text", ["junk", "", "EPSG:999999"])
def test_what_cannot_be_read_has_no_code(text):
    assert identify(text).code is None
    assert "cannot be read" in identify(text).reason


def test_codes_without_authority_are_found_by_parameters_and_never_those_of_units():
    assert identify((CASES / "C04/esri.prj").read_text()).code == "EPSG:3059"
    assert identify((CASES / "C04/custom.prj").read_text()).code is None
    assert identify((CASES / "C04/twin.prj").read_text()).code != "EPSG:3059"


def test_a_code_with_the_parameters_of_another_crs_is_not_believed():
    lie = pyproj.CRS(3059).to_wkt("WKT2_2019").replace("-6000000", "0")
    assert 'ID["EPSG",3059]' in lie
    assert identify(lie).code != "EPSG:3059"


def test_esri_names_of_many_grids_are_identified():
    codes = [25832, 27700, 28992, 31287, 3059, 3794, 2154, 32618, 4258, 4283, 6668, 4269, 3035, 2193, 3301]
    assert [identify(pyproj.CRS(code).to_wkt("WKT1_ESRI")).code for code in codes] == [f"EPSG:{code}" for code in codes]


def test_differences_are_told_in_the_agreed_unit():
    assert differences((CASES / "C04/twin.prj").read_text(), "EPSG:3059") == ["false northing 0 instead of -6000000"]
    assert differences("EPSG:25832", "EPSG:25833") == ["longitude of natural origin 9 instead of 15"]
    assert differences("EPSG:4258", "EPSG:25833") == ["a Geographic 2D CRS instead of a Projected CRS"]
    assert differences("EPSG:25833", "EPSG:25833") == []
