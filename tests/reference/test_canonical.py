"""Any spelling of a reference system to EPSG:<code>, or a refusal."""

import pytest
from pyproj import CRS

from merestone.reference.identity import canonical_crs, is_canonical


@pytest.mark.parametrize("code", [25832, 4326, 28992, 27700, 2056, 3857, 3006, 4979, 7415])
@pytest.mark.parametrize(
    "form",
    [
        "EPSG:{}",
        "epsg:{}",
        "urn:ogc:def:crs:EPSG::{}",
        "http://www.opengis.net/def/crs/EPSG/0/{}",
        "https://www.opengis.net/def/crs/EPSG/0/{}",
    ],
)
def test_names_and_links(code, form):
    assert canonical_crs(form.format(code)) == f"EPSG:{code}"


@pytest.mark.parametrize("code", [25832, 4326, 28992, 27700, 2056, 3857, 3006])
@pytest.mark.parametrize("dialect", ["WKT2_2019", "WKT2_2015", "WKT2_2019_SIMPLIFIED", "PROJJSON"])
def test_definitions(code, dialect):
    crs = CRS.from_epsg(code)
    text = crs.to_json() if dialect == "PROJJSON" else crs.to_wkt(dialect)
    assert canonical_crs(text) == f"EPSG:{code}"
    assert canonical_crs(f"\n {text} ") == f"EPSG:{code}"


@pytest.mark.parametrize("text", ["OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84", "http://www.opengis.net/def/crs/OGC/1.3/CRS84"])
def test_a_declared_substitute(text):
    assert canonical_crs(text) == "EPSG:4326"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "utm32",
        "4326",
        "WGS84",
        "ETRS89 / UTM zone 32N",
        "EPSG:999999",
        "EPSG:",
        "../../x",
        "EPSG:../../x",
        "+proj=utm +zone=32",
        "ESRI:54009",
        "{}",
        "PROJCRS[",
        "EPSG:4326\x00",
        "https://example.org/crs/4326",
    ],
)
def test_what_has_no_code_is_refused(text):
    with pytest.raises(ValueError, match="CRS"):
        canonical_crs(text)
    assert not is_canonical(text)


def test_a_definition_that_claims_a_code_it_does_not_have_is_refused():
    text = CRS.from_epsg(25832).to_wkt().replace('"Longitude of natural origin",9', '"Longitude of natural origin",10')
    assert 'ID["EPSG",25832]' in text
    with pytest.raises(ValueError, match="full confidence"):
        canonical_crs(text)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("EPSG:4326", True),
        ("EPSG:25832", True),
        ("epsg:4326", False),
        ("EPSG:04326", False),
        ("EPSG:999999", False),
        ("utm32", False),
        ("EPSG:4326 ", False),
        ("OGC:CRS84", False),
    ],
)
def test_canonical_is_one_spelling(text, good):
    assert is_canonical(text) is good
