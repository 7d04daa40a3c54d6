"""Cases G: geometries that are missing, broken or at the edge of the world."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point, Polygon, from_wkb

from estate import geoparquet, save

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}


def refused(night, product, version=None):
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version


def geo(product):
    """The `geo` metadata of every live file; JSON without NaN and Infinity."""

    def never(word):
        raise AssertionError(f"{word} is no JSON number")

    return [json.loads(pq.read_schema(product.url / path).metadata[b"geo"], parse_constant=never) for path in product.bytes_of()]


# --- G01 -------------------------------------------------------------------------------------------------------------------------------


def test_g01_no_geometry_and_empty_geometry(estate):
    product = estate([KEY], geometry_type="polygon", geometry={"nullable": True, "empty": True}).as_cases_run()
    product.publish(CASES / "G01/prev.gpkg")
    night = product.publish(CASES / "G01/curr.gpkg")
    assert night.keys("changed") == ["e3"]
    assert (night.result.delta.touched, night.result.unchanged) == (1, 3)
    shapes = product.shapes()
    assert shapes["e1"] is None
    assert shapes["e2"].is_empty
    assert shapes["e3"].is_empty
    boxes = [column["bbox"] for each in geo(product) for column in each["columns"].values() if "bbox" in column]
    assert boxes == [[10.0, 56.0, 10.001, 56.001]]
    assert [file.bbox for file in product.files()] == [(10.0, 56.0, 10.001, 56.001)]
    everywhere = product.dataset.to_arrow(columns=["pid"], bbox=(-180, -90, 180, 90)).column("pid").to_pylist()
    assert everywhere == ["e4"]


def test_g01_refused_where_a_geometry_is_promised(estate):
    product = estate([KEY], geometry_type="polygon")
    night = product.publish(CASES / "G01/curr.gpkg")
    refused(night, product)
    for words in ("e1 null", "e2 empty", "e3 empty"):
        assert words in night.said


def test_g01_empty_is_no_place_and_null_is_none(estate):
    product = estate([KEY], geometry_type="point", geometry={"nullable": True, "empty": True})
    product.by_place(1)
    product.publish(CASES / "G01/points.parquet")
    shapes, homes = product.shapes(), product.partitions()
    assert shapes["p1"].is_empty
    assert shapes["p2"] is None
    assert not shapes["p3"].is_empty
    assert homes["p1"] == homes["p2"] == "cell=none" != homes["p3"]


def test_g01_a_night_without_a_single_position(estate, tmp_path):
    product = estate([KEY], geometry_type="point", geometry={"nullable": True, "empty": True}).by_place(1).as_cases_run()
    first = geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a", "b"]), "geometry": [None, Point()]})
    assert product.publish(first).status == "published"
    assert geo(product)[0]["columns"]["geometry"].get("bbox") is None
    assert product.publish(first).status == "unchanged"
    night = product.publish(geoparquet(tmp_path / "2.parquet", {"pid": pa.array(["a", "b"]), "geometry": [Point(1, 2), Point()]}))
    assert night.keys("changed") == ["a"]
    assert product.partitions() == {"a": "cell=root", "b": "cell=none"}
    night = product.publish(geoparquet(tmp_path / "3.parquet", {"pid": pa.array(["a", "b"]), "geometry": [Point(), Point(3, 4)]}))
    assert night.keys("changed") == ["a", "b"]
    assert product.partitions() == {"a": "cell=none", "b": "cell=root"}


# --- G06 -------------------------------------------------------------------------------------------------------------------------------


def test_g06_nan_and_infinity_among_the_coordinates(estate):
    product = estate([KEY], geometry={"dimensions": "any", "nullable": True, "empty": True})
    night = product.publish(CASES / "G06/bad.parquet")
    refused(night, product)
    for words in ("i2 NaN", "i3 infinite", "i4 NaN in Z"):
        assert words in night.said
    named = {sample["id"] for finding in night.doc["findings"] for sample in finding["features"] if finding["severity"] == "error"}
    assert named == {"i2", "i3", "i4"}


def test_g06_the_good_ones_pass_when_a_share_may_fail(estate):
    product = estate([KEY], geometry={"dimensions": "any", "nullable": True, "empty": True})
    product.settings["rejects"] = {"max_fraction": 0.6}
    night = product.publish(CASES / "G06/bad.parquet")
    assert night.status == "published", night.said
    assert (sorted(product.rows()), night.result.rejected) == (["i1", "i5"], 3)
    assert product.shapes()["i5"].is_empty
    rejects = pq.ParquetFile(next(product.url.glob("_runs/*.rejects.parquet"))).read().to_pylist()
    assert {row["feature_id"] for row in rejects} == {"i2", "i3", "i4"}
    assert all(row["reason"] for row in rejects)
    text = json.dumps(product.manifest().to_json())
    assert "NaN" not in text
    assert "Infinity" not in text
    assert product.publish(CASES / "G06/bad.parquet").status == "unchanged"


# --- G07, G08 --------------------------------------------------------------------------------------------------------------------------


def test_g07_cut_at_the_antimeridian(estate):
    product = estate([KEY, {"name": "name", "type": "string"}])
    assert product.publish(CASES / "G07/split.geojson").status == "published"
    for meta in geo(product):
        assert meta["columns"]["geometry"]["bbox"] in ([177.0, -20.0, -178.0, -16.0], [-180.0, -20.0, 180.0, -16.0])
    for box in ([179.5, -18, 180, -17], [-180, -18, -179.5, -17]):
        assert product.dataset.to_arrow(columns=["pid"], bbox=tuple(box)).column("pid").to_pylist() == ["f1"]


def test_g07_not_cut(estate):
    product = estate([KEY])
    night = product.publish(CASES / "G07/spanning.geojson")
    assert "f2" in night.heard
    assert "wider than 180 degrees" in night.heard


def test_g07_beyond_the_world(estate):
    product = estate([KEY])
    night = product.publish(CASES / "G07/beyond.geojson")
    refused(night, product)
    assert "f3" in night.said
    assert "longitude 182 outside -180..180" in night.said


def test_g08_the_pole_has_no_place_in_web_mercator(estate):
    product = estate([KEY], geometry_type="polygon", epsg=3857, precision=2)
    product.settings["crs"] = {"accept": ["EPSG:4326"]}
    night = product.publish(CASES / "G08/polar.geojson")
    refused(night, product)
    for words in ("a1", "a2", "EPSG:3857 has no value at latitude"):
        assert words in night.said
    rejected = [event for event in product.lineage() if event["outcome"] == "REJECT"]
    assert sorted(event["feature_id"] for event in rejected) == ["a1", "a2"]
    assert all(event["rejection_reason"] for event in rejected)
    assert len({event["event_id"] for event in rejected}) == 2

    product.settings["rejects"] = {"max_fraction": 0.9}
    night = product.publish(CASES / "G08/polar.geojson")
    assert (night.status, list(product.rows())) == ("published", ["a3"])
    assert all(math.isfinite(each) for each in from_wkb(product.rows()["a3"]["geometry"]).bounds)


# --- the next inputs of this kind ------------------------------------------------------------------------------------------------------


BOW = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
SQUARE = Polygon([(0, 0), (1, 0), (1, 1), (0, 1)])


def test_a_bow_tie_is_refused_where_it_crosses_and_does_not_stop_the_others(estate, tmp_path):
    product = estate([KEY], geometry_type="polygon").as_cases_run()
    night = product.publish(save([{"pid": "good", "geometry": SQUARE}, {"pid": "bow", "geometry": BOW}], tmp_path / "1.gpkg"))
    refused(night, product)
    assert "bow" in night.said
    assert "0.5" in night.said
    product.settings["rejects"] = {"max_fraction": 0.5}
    assert product.publish(tmp_path / "1.gpkg").result.features == 1


def test_a_rejected_row_holds_what_was_published_and_says_so_every_night(estate, tmp_path):
    product = estate([KEY], geometry_type="polygon").by_place(1).as_cases_run()
    product.settings["rejects"] = {"max_fraction": 0.5}
    far = Polygon([(5, 5), (6, 5), (6, 6), (5, 6)])
    product.publish(save([{"pid": "a", "geometry": SQUARE}, {"pid": "b", "geometry": far}], tmp_path / "1.gpkg"))
    homes = product.partitions()
    for _ in range(2):
        night = product.publish(save([{"pid": "a", "geometry": BOW}, {"pid": "b", "geometry": far}], tmp_path / "2.gpkg"))
        assert (night.result.rejected, night.result.held, night.result.delta.touched) == (1, 1, 0), night.said
        assert product.shapes()["a"].equals(SQUARE)
        assert product.partitions() == homes
    rejects = [event for event in product.lineage() if event["outcome"] == "REJECT" and event["feature_id"] == "a"]
    assert len({event["run_id"] for event in rejects}) + len({event["sequence"] for event in rejects}) >= 3
    night = product.publish(tmp_path / "1.gpkg")
    assert (night.status, night.result.rejected, night.result.delta.touched) == ("unchanged", 0, 0), night.said

    product.settings["rejects"] = {"max_fraction": 0.5, "published": "remove"}
    night = product.publish(tmp_path / "2.gpkg")
    assert (night.result.delta.removed, night.result.held, list(product.rows())) == (1, 0, ["b"]), night.said
    assert night.keys("removed") == ["a"]
    assert product.publish(tmp_path / "2.gpkg").result.delta.touched == 0
    assert product.publish(tmp_path / "1.gpkg").keys("added") == ["a"]


def test_a_polygon_that_collapses_on_the_grid_is_named(estate, tmp_path):
    tiny = Polygon([(0, 0), (1e-9, 0), (1e-9, 1e-9)])
    product = estate([KEY], geometry_type="polygon")
    night = product.publish(save([{"pid": "tiny", "geometry": tiny}, {"pid": "b", "geometry": SQUARE}], tmp_path / "1.gpkg"))
    refused(night, product)
    assert "tiny" in night.said
    assert any(rule == "collapse" for _, rule in night.rules())


@pytest.mark.parametrize(("kind", "shape"), [("polygon", Point(0, 0)), ("point", SQUARE)])
def test_another_type_than_agreed(estate, tmp_path, kind, shape):
    product = estate([KEY], geometry_type=kind)
    night = product.publish(save([{"pid": "odd", "geometry": shape}], tmp_path / "1.gpkg"))
    refused(night, product)
    assert "odd" in night.said
    assert kind in night.said.lower()


def test_heights_under_a_flat_contract_are_left_out_with_a_word(estate, tmp_path):
    product = estate([KEY], geometry_type="point")
    night = product.publish(geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a"]), "geometry": [Point(1, 2, 3)]}))
    assert night.status == "published"
    assert "Z" in night.said
    assert not product.shapes()["a"].has_z
    night = product.publish(geoparquet(tmp_path / "2.parquet", {"pid": pa.array(["a"]), "geometry": [Point(1, 2, 4)]}))
    assert night.status == "unchanged"
