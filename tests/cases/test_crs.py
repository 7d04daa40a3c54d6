"""Cases C: what CRS a delivery is in, and how it gets into the contract's."""

from __future__ import annotations

from pathlib import Path

import pytest
from shapely import Point

from estate import save

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}


def refused(night, product, version=None):
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version


# --- C01 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "words"), [("noprj.shp", "CRS missing"), ("srs0.gpkg", "CRS undefined (srs_id 0)")])
def test_c01_no_crs_at_all(estate, name, words):
    product = estate([KEY])
    night = product.publish(CASES / "C01" / name)
    refused(night, product)
    assert words in night.said


def test_c01_geojson_says_it_by_standard(estate):
    product = estate([KEY])
    assert product.publish(CASES / "C01/plain.geojson").status == "published"
    assert product.manifest().delivery["source"]["asserted"] == {}


@pytest.mark.parametrize("name", ["noprj.shp", "srs0.gpkg"])
def test_c01_what_is_asserted_is_recorded(estate, name):
    product = estate([KEY])
    assert product.publish({"path": CASES / "C01" / name, "crs": "EPSG:4326"}).status == "published"
    assert product.manifest().delivery["source"]["asserted"] == {"crs": "EPSG:4326"}
    assert product.publish({"path": CASES / "C01/plain.geojson"}).status == "unchanged"


# --- C03 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["crs84", "epsg4326", "absent"])
def test_c03_three_names_for_one_crs(estate, first):
    product = estate([KEY]).as_cases_run()
    assert product.publish(CASES / f"C03/{first}.parquet").status == "published"
    for second in ("crs84", "epsg4326", "absent"):
        night = product.publish(CASES / f"C03/{second}.parquet")
        assert (night.status, product.version) == ("unchanged", 1), night.said


# --- C04, C06 --------------------------------------------------------------------------------------------------------------------------


def c04(estate):
    return estate([KEY], epsg=3059, precision=2, geometry_type="point")


def test_c04_a_prj_without_a_code(estate):
    product = c04(estate)
    assert product.publish(CASES / "C04/esri.shp").status == "published"
    assert product.manifest().domain["crs"] == "EPSG:3059"
    assert {event["target_crs"] for event in product.lineage()} == {"EPSG:3059"}


def test_c04_a_twin_with_another_false_northing(estate):
    product = c04(estate)
    night = product.publish(CASES / "C04/twin.shp")
    refused(night, product)
    for words in ("CRS", "EPSG:3059 is agreed", "false northing 0 instead of -6000000"):
        assert words in night.said


def test_c04_a_site_grid(estate):
    product = c04(estate)
    night = product.publish(CASES / "C04/custom.shp")
    refused(night, product)
    assert "CRS could not be identified" in night.said
    for code in ("EPSG:9001", "EPSG:9102", "EPSG:9122", "EPSG:8901"):
        assert code not in night.heard


def test_c06_a_compound_crs_where_a_plain_one_is_agreed(estate):
    product = estate([KEY], epsg=25833, precision=3, geometry={"dimensions": "xyz"})
    night = product.publish(CASES / "C06/compound.parquet")
    refused(night, product)
    assert "EPSG:25833+7837 (DHHN2016 height) where EPSG:25833 is agreed" in night.said


@pytest.mark.parametrize(("epsg", "status"), [(7405, "published"), (27700, "refused")])
def test_c06_a_compound_crs_with_a_code_of_its_own(estate, epsg, status):
    product = estate([KEY], epsg=epsg, precision=3, geometry={"dimensions": "xyz"})
    night = product.publish(CASES / "C06/has_code.parquet")
    assert night.status == status, night.said
    if status == "refused":
        assert "7405" in night.said


# --- C09 -------------------------------------------------------------------------------------------------------------------------------


def test_c09_a_datum_change_without_its_grid(estate, monkeypatch):
    monkeypatch.setenv("PROJ_NETWORK", "OFF")
    product = estate([KEY], epsg=4258, precision=8, geometry_type="point", required_accuracy_m=1.0)
    product.settings["crs"] = {"missing_grids": "fallback", "accept": ["EPSG:27700"]}
    night = product.publish(CASES / "C09/points.gpkg")
    refused(night, product)
    assert "accuracy unknown (ballpark) where 1.0 m is required" in night.said
    assert "missing grid uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in night.said


# --- the next inputs of this kind ------------------------------------------------------------------------------------------------------


def test_another_crs_is_transformed_and_the_change_is_judged_in_the_contract_s(estate, tmp_path):
    """Delivered in UTM, published in degrees; then delivered in degrees as published: nothing changed."""
    product = estate([KEY], geometry_type="point").as_cases_run()
    product.settings["crs"] = {"accept": ["EPSG:25832"]}
    night = product.publish(
        save(
            [{"pid": "a", "geometry": Point(500000, 6200000)}, {"pid": "b", "geometry": Point(510000, 6200000)}], tmp_path / "1.gpkg", 25832
        )
    )
    assert night.status == "published", night.said
    assert {event["source_crs"] for event in product.lineage() if event["stage"] == "crs_normalize"} == {"EPSG:25832"}
    at = product.shapes()["a"]
    assert (round(at.x, 6), round(at.y)) == (9.0, 56)
    assert product.publish(tmp_path / "1.gpkg").status == "unchanged"
    back = product.dataset.to_geodataframe()
    back.to_file(tmp_path / "2.gpkg", engine="pyogrio")
    night = product.publish(tmp_path / "2.gpkg")
    assert night.result.delta.touched == 0, night.said
    night = product.publish(
        save(
            [{"pid": "a", "geometry": Point(500000, 6200000)}, {"pid": "b", "geometry": Point(510000.02, 6200000)}],
            tmp_path / "3.gpkg",
            25832,
        )
    )
    assert (night.keys("changed"), night.result.delta.touched) == (["b"], 1), night.said


def test_a_metre_below_the_grid_in_another_crs_is_noise(estate, tmp_path):
    product = estate([KEY], geometry_type="point", precision=5).as_cases_run()
    product.settings["crs"] = {"accept": ["EPSG:25832"]}
    product.publish(save([{"pid": "a", "geometry": Point(500000, 6200000)}], tmp_path / "1.gpkg", 25832))
    night = product.publish(save([{"pid": "a", "geometry": Point(500000.02, 6200000)}], tmp_path / "2.gpkg", 25832))
    assert night.result.delta.touched == 0, night.said
    assert product.publish(tmp_path / "2.gpkg").status == "unchanged"
