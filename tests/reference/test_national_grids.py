"""National reference systems in files that GDAL wrote, with an EPSG dataset of another version than pyproj's.

One small file a system and format. GDAL writes codes into GeoPackage and FlatGeobuf, parameters alone into a Shapefile.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyogrio.raw
import pyproj
import pytest
import shapely

from merestone.heard import heard
from merestone.normalise.agreed_crs import is_agreed
from merestone.reference.identity import identify, is_system
from merestone.reference.parameters import differences
from merestone.source.open import open_source
from merestone.source.port import GeometryColumn, SourceSpec

# Each stands beside a neighbour: another zone, another datum, another realisation. The next in the list is the wrong one for the one before.
FINLAND = [3067, *range(3873, 3882)]
NORWAY = list(range(5105, 5131))
SOUTH_AFRICA = list(range(2046, 2056))
EUROPE = [
    25831, 25832, 25833, 25834, 4647, 31466, 31467, 31468, 31469, 27700, 29902, 2157, 28992, 31370, 3812, 2154, 27561, 27572, 23030, 25830,
    2056, 21781, 31287, 31284, 5514, 5513, 2180, 2176, 3006, 3007, 3011, 3301, 3059, 3346, 3763, 20790, 23700, 3765, 3794, 3844, 7801, 2100,
    3057, 5316, 2196, 2197, 2198, 3035, 3034,
]  # fmt: skip
WORLD = [
    26910, 32188, 2263, 2249, 2927, 6339, 6318, 4269, 2193, 27200, 7855, 28355, 4283, 7844, 3414, 3375, 5179, 5186, 6668, 6677, 2443, 4612, 31982,
    31983, 4674, 5880, 22185, 5347, 9377, 3116, 24047, 32647, 20437, 21037, 22234, 22235, 27039, 4490, 4547, 4549, 7755, 3997, 2039, 6991, 20349,
    5365, 6369, 6372, 24877, 5382, 3395, 3857, 4326, 4258, 4289, 4807,
]  # fmt: skip
CODES = [*FINLAND, *NORWAY, *SOUTH_AFRICA, *EUROPE, *WORLD]
NEIGHBOUR = dict(zip(CODES, [*CODES[1:], CODES[0]], strict=True))
DRIVERS = {"gpkg": "GPKG", "fgb": "FlatGeobuf", "shp": "ESRI Shapefile"}


def column(folder, code: int, ending: str) -> GeometryColumn:
    """The geometry column of a file of one point in a system, as a source describes it."""
    path = str(folder / f"a.{ending}")
    rows = pa.table({"id": pa.array([1]), "g": pa.array([shapely.to_wkb(shapely.Point(1.0, 2.0))], pa.binary())})
    with heard():  # GDAL warns of deprecated codes
        pyogrio.raw.write_arrow(rows, path, driver=DRIVERS[ending], geometry_name="g", geometry_type="Point", crs=f"EPSG:{code}")
    found = open_source(SourceSpec(path)).delivery.geometry
    assert found is not None
    return found


def test_more_than_a_hundred_are_tried():
    assert len(CODES) == len(set(CODES)) > 100


@pytest.mark.parametrize("code", CODES)
def test_a_system_is_accepted_under_its_code_and_refused_under_a_neighbours(code, tmp_path):
    for ending in DRIVERS:
        given = column(tmp_path, code, ending)
        assert identify(given.crs or "").code == f"EPSG:{code}", ending
        assert is_agreed(given, code), ending
        assert not is_agreed(given, NEIGHBOUR[code]), ending


@pytest.mark.parametrize(("deprecated", "replacement"), [(2600, 3346), (27582, 27572)])
def test_a_deprecated_code_is_the_one_that_replaced_it(deprecated, replacement, tmp_path):
    for ending in DRIVERS:
        given = column(tmp_path, deprecated, ending)
        assert identify(given.crs or "").code == f"EPSG:{replacement}", ending  # GDAL writes the replacement
        assert is_agreed(given, deprecated), ending


def test_a_prj_without_a_code_is_every_code_that_has_its_parameters(tmp_path):
    given = column(tmp_path, 25835, "shp")
    assert is_agreed(given, 25835)
    assert is_agreed(given, 3067)  # ETRS89 / UTM zone 35N by another name
    assert not is_agreed(given, 25834)
    assert not is_agreed(column(tmp_path, 25835, "gpkg"), 3067)  # this file says which one it means


@pytest.mark.parametrize("code", [2048, 3067, 5105, 25832, 28992, 31467, 2193, 5514, 27572, 3375, 4807])
def test_parameters_alone_are_enough_wherever_they_come_from(code):
    system = pyproj.CRS.from_epsg(code)
    described = system.to_json_dict()
    for part in (described, described.get("base_crs", {})):
        part.pop("id", None)
    assert identify(json.dumps(described)).code == f"EPSG:{code}"
    assert identify(system.to_wkt("WKT1_ESRI")).code == f"EPSG:{code}"


def test_a_code_is_no_excuse_for_other_parameters_or_another_datum():
    ours = pyproj.CRS.from_epsg(28355).to_json_dict()  # GDA94 / MGA zone 55
    assert identify(json.dumps(ours)).code == "EPSG:28355"
    moved = json.loads(json.dumps(ours))
    moved["base_crs"] = pyproj.CRS.from_epsg(7844).to_json_dict()  # GDA2020: 1.8 m away
    assert identify(json.dumps(moved)).code != "EPSG:28355"
    assert differences(json.dumps(moved), "EPSG:28355") == [
        "datum Geocentric Datum of Australia 2020 instead of Geocentric Datum of Australia 1994"
    ]
    shifted = json.loads(json.dumps(ours))
    shifted["conversion"]["parameters"][3]["value"] += 0.0001
    assert not is_system(json.dumps(shifted), "EPSG:28355")


def test_a_datum_that_this_database_does_not_know_is_taken_at_the_word_of_the_code():
    newer = json.loads(json.dumps(pyproj.CRS.from_epsg(3067).to_json_dict()))
    newer["name"] = newer["base_crs"]["name"] = "A later name"
    newer["base_crs"]["id"]["code"] = 99_999
    newer["base_crs"].pop("datum_ensemble", None)
    newer["base_crs"]["datum"] = {
        "type": "GeodeticReferenceFrame",
        "name": "A later frame",
        "ellipsoid": {"name": "GRS 1980", "semi_major_axis": 6378137, "inverse_flattening": 298.257222101},
    }
    assert identify(json.dumps(newer)).code == "EPSG:3067"
    newer["conversion"]["parameters"][1]["value"] = 21
    assert identify(json.dumps(newer)).code is None
    newer["conversion"]["parameters"][1]["value"] = 27
    newer.pop("id")
    assert identify(json.dumps(newer)).code is None  # without a code nothing vouches for the datum


def test_a_code_that_this_database_does_not_have_is_named():
    newer = json.loads(json.dumps(pyproj.CRS.from_epsg(3067).to_json_dict()))
    newer["id"]["code"] = 99_999
    newer["conversion"]["parameters"][1]["value"] = 26.5
    assert "EPSG:99999 is not in PROJ's database" in identify(json.dumps(newer)).reason
