"""Case N07: coordinates of a dynamic system are of a time."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyproj import CRS
from shapely import Point

from estate import geoparquet

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}
PLACES = {2010: (9.99999411, 55.99999710), 2020: (9.99999132, 55.99999571)}


def static(estate):
    """A product in ETRS89, which accepts ITRF2014."""
    made = estate([KEY], epsg=4258, precision=9, geometry_type="point").as_cases_run()
    made.settings["crs"] = {"accept": ["EPSG:9000"]}
    return made


def dynamic(estate):
    """A product in ITRF2014 itself."""
    return estate([KEY], epsg=9000, precision=9, geometry_type="point").as_cases_run()


def published_epochs(product) -> set[float | None]:
    described = [pq.read_schema(product.url / path).metadata[b"geo"] for path in product.bytes_of()]
    return {json.loads(each)["columns"]["geometry"].get("epoch") for each in described}


@pytest.mark.parametrize("year", PLACES)
def test_n07_the_epoch_is_the_time_of_the_transformation(estate, year):
    product = static(estate)
    night = product.publish(CASES / f"N07/epoch_{year}.parquet")
    assert night.status == "published", night.said
    at = product.shapes()["a"]
    assert (round(at.x, 8), round(at.y, 8)) == PLACES[year]
    assert published_epochs(product) == {None}  # ETRS89 moves with the plate
    assert product.manifest().domain["epoch"] is None


def test_n07_without_an_epoch_a_dynamic_system_cannot_be_transformed(estate):
    product = static(estate)
    night = product.publish(CASES / "N07/no_epoch.parquet")
    assert (night.status, product.version) == ("refused", None)
    assert "ITRF2014" in night.said
    assert ("crs", "epoch_missing") in night.rules("error")


def test_n07_another_epoch_is_transformed_as_of_that_epoch_and_said(estate):
    product = static(estate)
    product.publish(CASES / "N07/epoch_2010.parquet")
    night = product.publish(CASES / "N07/epoch_2020.parquet")
    assert night.status == "published", night.said
    assert ("crs", "epoch_changed") in night.rules("warning")
    assert "2010" in night.said
    assert "2020" in night.said
    assert round(product.shapes()["a"].x, 8) == PLACES[2020][0]
    gone = product.publish(CASES / "N07/no_epoch.parquet")
    assert gone.status == "refused"
    assert "epoch 2020" in gone.said


def test_in_the_dynamic_system_itself_the_epoch_is_stored_and_asked_for(estate):
    product = dynamic(estate)
    assert product.publish(CASES / "N07/epoch_2010.parquet").status == "published"
    assert published_epochs(product) == {2010.0}
    later = product.publish(CASES / "N07/epoch_2020.parquet")
    assert ("crs", "epoch_changed") in later.rules("warning")
    assert published_epochs(product) == {2020.0}
    gone = product.publish(CASES / "N07/no_epoch.parquet")
    assert gone.status == "refused"
    assert ("crs", "epoch_missing") in gone.rules("error")


def test_a_first_delivery_without_an_epoch_is_a_warning_where_nothing_is_transformed(estate):
    product = dynamic(estate)
    night = product.publish(CASES / "N07/no_epoch.parquet")
    assert night.status == "published", night.said
    assert ("crs", "epoch_missing") in night.rules("warning")


def test_an_epoch_of_wgs84_stays_and_one_of_a_static_system_does_not(estate, tmp_path):
    for epsg, kept in ((4326, 2021.5), (4258, None)):
        product = estate([KEY], epsg=epsg, precision=7, geometry_type="point", extent=[-10, 35, 30, 70]).as_cases_run()
        path = geoparquet(tmp_path / f"{epsg}.parquet", {"pid": pa.array(["a"]), "geometry": [Point(10, 56)]}, epsg=epsg)
        rewrite(path, epoch=2021.5)
        assert product.publish(path).status == "published"
        assert published_epochs(product) == {kept}


def rewrite(path, **changes):
    """The file with other `geo` metadata."""
    table = pq.read_table(path)
    geo = json.loads(table.schema.metadata[b"geo"])
    geo["columns"]["geometry"] |= changes
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"geo": json.dumps(geo)}), path)


def test_two_dynamic_systems_keep_the_epoch(estate, tmp_path):
    """ITRF2008 to ITRF2014: both move, so the epoch is the time of the operation and of the result."""
    product = dynamic(estate)
    product.settings["crs"] = {"accept": ["EPSG:8999"]}
    path = geoparquet(tmp_path / "a.parquet", {"pid": pa.array(["a"]), "geometry": [Point(10, 56)]}, epsg=8999)
    rewrite(path, epoch=2015.0, crs=CRS.from_epsg(8999).to_json_dict())
    night = product.publish(path)
    assert night.status == "published", night.said
    assert published_epochs(product) == {2015.0}
