"""Cases N12, N14 and N20, pandas' index column and plain Parquet: what a Parquet file says of itself, and types that are rare and legal."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from pyproj import CRS

from estate import geoparquet
from merestone.compare.sides import open_side
from merestone.drafts import init
from merestone.errors import UsageError

CASES = Path(__file__).parent
POINT = {"geometry_type": "point"}
POLES = [{"name": "pole", "type": "string"}]
SHAPES = [shapely.Point(10, 50), shapely.Point(11, 51)]


def refused(night, product):
    """Nothing was published."""
    assert (night.status, night.result.refused_by, product.version) == ("refused", "contract", None), night.said


# --- N12 -------------------------------------------------------------------------------------------------------------------------------


def test_n12_the_data_decide_and_the_contradiction_is_told(estate):
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(CASES / "N12/types.parquet")
    assert night.status == "published", night.said
    (warning,) = [each for each in night.result.findings if each.rule == "geo_metadata"]
    assert (warning.severity, "Polygon" in warning.expected, "Point" in warning.observed) == ("warning", True, True)
    polygons = estate([{"name": "pid", "type": "string"}], geometry_type="polygon")
    refused(polygons.publish(CASES / "N12/types.parquet"), polygons)


def test_n12_a_number_is_no_crs(estate):
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(CASES / "N12/crs_number.parquet")
    refused(night, product)
    assert "crs 4326 in the geo metadata is not PROJJSON" in night.said
    night = product.publish({"path": str(CASES / "N12/crs_number.parquet"), "crs": "EPSG:4326"})
    assert night.status == "published", night.said


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"crs": ["EPSG:4326"]}, "is not PROJJSON"),
        ({"crs": True}, "is not PROJJSON"),
        ({"crs": {"type": "GeographicCRS"}}, "is none that PROJ knows"),
        ({"crs": "here"}, "is none that PROJ knows"),
        ({"crs": None}, "crs null"),
    ],
)
def test_n12_what_is_no_crs_is_told(estate, tmp_path, column, words):
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], **column}}}
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b"], "geometry": SHAPES}, geo=geo)
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert words in night.said


@pytest.mark.parametrize(
    ("listed", "shapes", "told"),
    [
        (["Point"], ["POINT (1 2)", None, "POINT EMPTY"], None),
        ([], ["POINT (1 2)", "LINESTRING (0 0, 1 1)"], None),
        (["Point"], ["POINT Z (1 2 3)"], "Point Z"),
        (["Polygon", "MultiPolygon"], ["POLYGON ((0 0, 1 0, 1 1, 0 0))", "GEOMETRYCOLLECTION EMPTY"], "GeometryCollection, Polygon"),
        (["LineString"], ["LINESTRING (0 0, 1 1)", "MULTILINESTRING ((0 0, 1 1))"], "LineString, MultiLineString"),
    ],
)
@pytest.mark.parametrize("flavor", ["iso", "extended"])
def test_n12_types_are_read_from_the_data(tmp_path, listed, shapes, told, flavor):
    wkb = [
        None if each is None else shapely.to_wkb(shapely.from_wkt(each), flavor=flavor, byte_order=at % 2) for at, each in enumerate(shapes)
    ]
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": listed}}}
    source = open_side(str(geoparquet(tmp_path / "d.parquet", {"pid": list(range(len(wkb))), "geometry": wkb}, geo=geo))).source
    for _ in source.batches(1):
        pass
    assert [each.observed for each in source.late_findings()] == ([] if told is None else [f"the column holds {told}; the data decide"])


@pytest.mark.parametrize(
    ("bbox", "told"),
    [
        ([5, 52, 6, 53], None),
        ([0, 0, 90, 90], None),  # of a larger file that this is a part of
        ([5.00000003, 52, 6, 53], None),  # kept in single precision
        ([5, 52, -10, 6, 53, 10], None),
        ([170, 52, -170, 53], None),  # across the antimeridian: only the parallels can be told
        (None, None),
        ([5, 52, 5.5, 53], "bbox 5, 52, 5.5, 53"),
        ([52, 5, 53, 6], "bbox 52, 5, 53, 6"),
        ([170, 60, -170, 61], "bbox 170, 60, -170, 61"),
        ([0, 0, 0, 0], "bbox 0, 0, 0, 0"),
        ([5, 52], "bbox none, none, none, none"),
        (["5", "52", "6", "53"], "bbox none, none, none, none"),
        ("everywhere", "bbox none, none, none, none"),
    ],
)
def test_n12_a_box_that_the_data_reach_out_of_is_told(estate, tmp_path, bbox, told):
    column = {"encoding": "WKB", "geometry_types": [], **({} if bbox is None else {"bbox": bbox})}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    wkb = [shapely.to_wkb(shapely.Point(x, y)) for x, y in ((5, 52), (6, 53), (5.5, 52.5))]
    product = estate([{"name": "pid", "type": "integer", "nullable": False}], key="pid", epsg=4326, **POINT)
    night = product.publish(geoparquet(tmp_path / "d.parquet", {"pid": [1, 2, 3], "geometry": wkb}, geo=geo))
    assert night.status == "published", night.said
    found = [each for each in night.result.findings if each.rule == "geo_metadata"]
    assert [(each.expected.partition(", as")[0], each.severity) for each in found] == ([] if told is None else [(told, "warning")])
    assert all("the data reach 5, 52, 6, 53" in each.observed for each in found)


# --- N14 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nad27_projjson", "nad27_auth", "nad27_srid", "nad27_auth_arrow", "duckdb_native"])
def test_n14_the_type_of_the_column_states_the_crs(estate, name):
    product = estate(POLES, key="pole", epsg=4267, **POINT)
    night = product.publish(CASES / f"N14/{name}.parquet")
    assert (night.status, night.result.features) == ("published", 5), night.said
    stated = open_side(str(CASES / f"N14/{name}.parquet")).source.delivery.geometry.crs
    assert CRS.from_user_input(stated).to_authority() == ("EPSG", "4267")


@pytest.mark.parametrize("name", ["nad27_key", "opaque"])
def test_n14_what_cannot_be_resolved_is_refused_by_name(estate, name):
    product = estate(POLES, key="pole", epsg=4267, **POINT)
    night = product.publish(CASES / f"N14/{name}.parquet")
    refused(night, product)
    assert "'projjson:my_crs', which cannot be resolved" in night.said


def test_n14_without_a_crs_it_is_crs84():
    geometry = open_side(str(CASES / "N14/none.parquet")).source.delivery.geometry
    assert geometry.crs == "OGC:CRS84"


# --- N20 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["m", "dur", "d256"])
def test_n20_what_no_contract_can_promise_is_named_by_init(name):
    with pytest.raises(UsageError, match=rf"column {name} of .* has the type (map|duration|decimal256).*, which no contract can promise"):
        init.draft(str(CASES / f"N20/{name}.parquet"))


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array(np.array([1.5, 65504.0], np.float16)), "number", [1.5, 65504.0]),
        (pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal256(30, 2)), "decimal(30,2)", [Decimal("1.50"), Decimal("-2.25")]),
        (pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()), "string", ["00000000-0000-0000-0000-000000000001", None]),
    ],
)
@pytest.mark.parametrize("arrow_schema", [True, False])
def test_n20_rare_types_are_read(estate, tmp_path, array, kind, values, arrow_schema):
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b"], "v": array, "geometry": SHAPES})
    pq.write_table(pq.read_table(path), path, store_schema=arrow_schema)
    product = estate([{"name": "pid", "type": "string"}, {"name": "v", "type": kind}], **POINT)
    night = product.publish({"path": str(path)} if arrow_schema else {"path": str(path), "geometry": "geometry", "crs": "EPSG:4326"})
    assert night.status == "published", night.said
    assert [product.rows()[key]["v"] for key in ("a", "b")] == values


def test_n20_a_uuid_may_be_the_key(estate, tmp_path):
    path = geoparquet(tmp_path / "d.parquet", {"uid": pa.array([uuid.UUID(int=at).bytes for at in (1, 2)], pa.uuid()), "geometry": SHAPES})
    product = estate([{"name": "uid", "type": "string"}], key="uid", **POINT)
    assert product.publish(path).status == "published"
    assert set(product.rows()) == {str(uuid.UUID(int=1)), str(uuid.UUID(int=2))}


@pytest.mark.parametrize("column", [pa.array([dt.timedelta(1), None]), pa.array([[("a", "b")], None], pa.map_(pa.string(), pa.string()))])
def test_n20_a_column_that_is_not_agreed_breaks_nothing(estate, tmp_path, column):
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b"], "v": column, "geometry": SHAPES})
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    refused(product.publish(path), product)
    product.settings["extra_columns"] = "warn"
    assert product.publish(path).status == "published"


# --- pandas' index, and plain Parquet --------------------------------------------------------------------------------------------------


def test_the_index_column_of_pandas_is_no_column(estate, tmp_path):
    frame = gpd.GeoDataFrame({"pid": ["a", "b", "c"], "geometry": [*SHAPES, shapely.Point(1, 1)]}, crs=4326)
    for name, rows in (("index", frame.iloc[[2, 0]].set_axis([5, 9])), ("whole", frame)):
        rows.to_parquet(tmp_path / f"{name}.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "index.parquet").names
    product = estate([{"name": "pid", "type": "string"}], **POINT).agreed()
    night = product.publish(tmp_path / "index.parquet")
    assert (night.status, set(product.rows())) == ("published", {"a", "c"}), night.said
    named = frame.set_index("pid")
    named.to_parquet(tmp_path / "named.parquet")  # an index with a name is a column like any other
    assert product.publish(tmp_path / "named.parquet").keys("added") == ["b"]


def test_a_column_that_is_only_called_so_is_one(estate, tmp_path):
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b"], "__index_level_0__": [1, 2], "geometry": SHAPES})
    night = estate([{"name": "pid", "type": "string"}], **POINT).publish(path)
    assert ("__index_level_0__", "extra") in night.rules("error")


def test_plain_parquet_is_told_as_such_and_can_be_asserted(estate, tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"pid": ["a", "b"], "shape": pa.array([each.wkb for each in SHAPES], pa.binary())}), path)
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert "is plain Parquet: no geo metadata says which column is a geometry (shape hold bytes)" in night.said
    assert "source: {geometry: shape, crs: EPSG:CODE}" in night.said
    night = product.publish({"path": str(path), "geometry": "shape"})
    refused(night, product)
    assert "CRS missing (plain Parquet)" in night.said
    night = product.publish({"path": str(path), "geometry": "shape", "crs": "EPSG:4326"})
    assert night.status == "published", night.said
    assert product.shapes() == dict(zip("ab", SHAPES, strict=True))


def test_geoarrow_metadata_without_geo_is_read(estate, tmp_path):
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps({"crs": CRS(25832).to_json_dict()})}
    schema = pa.schema([pa.field("pid", pa.string()), pa.field("geom", pa.binary(), metadata=metadata)])
    shapes = [shapely.Point(500_000, 5_900_000), shapely.Point(500_010, 5_900_010)]
    pq.write_table(pa.table({"pid": ["a", "b"], "geom": [each.wkb for each in shapes]}, schema=schema), tmp_path / "d.parquet")
    product = estate([{"name": "pid", "type": "string"}], epsg=25832, precision=0, **POINT)
    assert product.publish(tmp_path / "d.parquet").status == "published"
    assert product.shapes() == dict(zip("ab", shapes, strict=True))


# --- N18: a mark of EWKB ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsg", "srid", "status"),
    [(4326, 4326, "published"), (4326, 0, "published"), (4326, 25833, "refused"), (None, 4326, "published"), (None, 3857, "refused")],
)
@pytest.mark.parametrize("byte_order", [0, 1])
def test_n18_geometries_that_say_another_reference_system(estate, tmp_path, epsg, srid, status, byte_order):
    marked = shapely.to_wkb(shapely.set_srid(SHAPES[1], srid), include_srid=True, flavor="extended", byte_order=byte_order)
    geo = (
        None
        if epsg
        else {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": []}}}
    )
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b", "c"], "geometry": [SHAPES[0].wkb, None, marked]}, geo=geo)
    product = estate([{"name": "pid", "type": "string"}], geometry={"nullable": True}, **POINT)
    night = product.publish(path)
    assert night.status == status, night.said
    if status == "refused":
        assert f"geometries say EPSG:{srid} (rows 3)" in night.said
        assert "EPSG:4326" in night.said
