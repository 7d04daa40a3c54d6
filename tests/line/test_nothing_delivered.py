"""A delivery without rows stops and asks, whatever its format can say of columns; a version without rows is read and delivered like any other."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from estate import Estate, geoparquet, save
from merestone.errors import UsageError
from merestone.inspect import extract
from merestone.inspect.extract import version_file
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "v", "type": "integer"}]
EVERY_FORMAT = sorted(each.removeprefix(".") for each in extract._VERSION_WRITERS)  # a format to come is held too
EMPTY_COLLECTION = json.dumps({"type": "FeatureCollection", "features": []})


@pytest.fixture
def product(estate):
    return estate(FIELDS, geometry_type="point", precision=7, epsg=4326)


def filled(path):
    return geoparquet(path, {"pid": pa.array(["a", "b"]), "v": pa.array([1, 2]), "geometry": [Point(9, 51), Point(9, 52)]}, epsg=4326)


def empty(folder, kind):
    path = folder / f"empty.{kind}"
    if kind == "parquet":
        return geoparquet(path, {"pid": pa.array([], pa.string()), "v": pa.array([], pa.int64()), "geometry": []}, epsg=4326)
    path.write_text(EMPTY_COLLECTION)
    return path


@pytest.mark.parametrize("kind", ["geojson", "json", "parquet"])
def test_nothing_delivered_over_a_filled_dataset_stops_and_asks(product, tmp_path, kind):
    product.publish(filled(tmp_path / "1.parquet"))
    night = product.publish(empty(tmp_path, kind))
    assert (night.status, night.result.refused_by) == ("refused", "guard"), night.said
    assert [each.rule for each in night.result.findings] == ["empty"]
    done = product.publish(empty(tmp_path, kind), confirm=night.result.confirm)
    assert (done.status, done.result.delta.removed, product.rows()) == ("published", 2, {})


@pytest.mark.parametrize("kind", ["geojson", "parquet"])
def test_nothing_delivered_as_the_first_version_stops_and_asks(product, tmp_path, kind):
    night = product.publish(empty(tmp_path, kind))
    assert (night.status, night.result.refused_by, product.version) == ("refused", "guard", None), night.said
    assert [(each.rule, each.expected) for each in night.result.findings] == [("empty", "a first delivery with features")]
    done = product.publish(empty(tmp_path, kind), confirm=night.result.confirm)
    assert (done.status, product.version, product.rows()) == ("published", 1, {})
    assert product.publish(empty(tmp_path, kind)).status == "unchanged"


def either_way(path, rows=60, swap=False):
    """Points whose axes nobody can see in a system of degrees."""
    spots = [(5 + at / 100, 52 + at / 200) for at in range(rows)]
    columns = {"pid": pa.array([f"p{at}" for at in range(rows)]), "v": pa.array([1] * rows)}
    return geoparquet(path, {**columns, "geometry": [Point(xy[::-1] if swap else xy) for xy in spots]}, epsg=4326)


@pytest.mark.parametrize("nothing", ["no rows", "no positions", "emptied"])
def test_what_is_asked_of_a_first_version_is_asked_until_one_has_positions(estate, tmp_path, nothing):
    product = estate(FIELDS, geometry_type="point", precision=7, epsg=4326, geometry={"nullable": True})
    del product.terms["extent"]
    product.sees_the_order = False
    if nothing == "no positions":
        columns = {"pid": pa.array(["a"]), "v": pa.array([1]), "geometry": [None]}
        assert product.publish(geoparquet(tmp_path / "none.parquet", columns, epsg=4326)).status == "published"
    else:
        if nothing == "emptied":
            first = either_way(tmp_path / "0.parquet")
            product.publish(first, confirm=product.publish(first).result.confirm)
        product.publish(empty(tmp_path, "parquet"), confirm=product.publish(empty(tmp_path, "parquet")).result.confirm)
    version = product.version
    night = product.publish(either_way(tmp_path / "1.parquet", swap=True))
    assert (night.status, night.result.refused_by, product.version) == ("refused", "guard", version), night.said
    assert ("geometry", "axis_order") in night.rules("error")
    good = either_way(tmp_path / "2.parquet")
    product.publish(good, confirm=product.publish(good).result.confirm)
    assert len(product.rows()) == 60
    assert product.manifest().partitioning["bounds"] != [0.0, 0.0, 1.0, 1.0]
    swapped = product.publish(either_way(tmp_path / "3.parquet", swap=True))
    assert ("geometry", "axis_order") in swapped.rules("error")
    assert swapped.result.refused_by == "contract"


@pytest.mark.parametrize("kind", ["geojson", "parquet"])
def test_a_check_of_nothing_says_the_same_whatever_the_format(product, tmp_path, kind):
    product.write(empty(tmp_path, kind))
    result, _ = check(read_publication(str(product.folder / "product.yaml")), CheckSettings("empty", "contract"))
    assert (result.status, [each.rule for each in result.findings if each.severity == "error"]) == ("fail", ["no_rows"])
    allowed, _ = check(read_publication(str(product.folder / "product.yaml")), CheckSettings("empty", "contract", allow_empty=True))
    assert (allowed.status, allowed.findings) == ("pass", ())


def test_rows_without_columns_are_refused_for_their_columns(product, tmp_path):
    """A collection whose features have no properties at all is not empty."""
    path = tmp_path / "bare.geojson"
    shape = {"type": "Point", "coordinates": [9, 51]}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": shape}]}))
    night = product.publish(path)
    assert night.result.refused_by == "contract"
    assert night.rules("error") >= {("pid", "missing"), ("v", "missing")}


@pytest.mark.parametrize("kind", EVERY_FORMAT)
def test_a_version_without_rows_is_written_and_publishes_back(product, tmp_path, kind):
    product.publish(filled(tmp_path / "1.parquet"))
    nothing = empty(tmp_path, "parquet")
    product.publish(nothing, confirm=product.publish(nothing).result.confirm)
    out = tmp_path / f"out.{kind}"
    if kind in ("geojsons", "geojsonl"):  # nobody can tell their 0 bytes from an export that broke off
        with pytest.raises(UsageError, match="text sequence without features is a file of 0 bytes"):
            version_file(product.dataset.version(), str(out))
        assert list(tmp_path.glob("out*")) == []
        return
    assert version_file(product.dataset.version(), str(out)) == 0
    if kind == "parquet":
        geo = json.loads(pq.read_schema(out).metadata[b"geo"])
        assert (geo["primary_column"], geo["columns"]["geometry"]["crs"]["id"]["code"]) == ("geometry", 4326)
    night = product.publish(out)
    assert (night.status, product.version) == ("unchanged", 2), night.said
    back = product.publish(save([{"pid": "a", "v": 1, "geometry": Point(9, 51)}], tmp_path / "3.gpkg"))
    assert (back.status, back.result.delta.added) == ("published", 1), back.said


def test_a_kml_without_placemarks_is_empty_and_lacks_no_columns(tmp_path):
    made = Estate(tmp_path / "product", [{"name": "pid", "type": "string"}], geometry_type="point")
    made.settings["extra_columns"] = "warn"
    made.publish(geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a"]), "geometry": [Point(5, 52)]}))
    (tmp_path / "2.kml").write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Folder><name>d</name></Folder></Document></kml>'
    )
    night = made.publish(tmp_path / "2.kml").result
    assert (night.refused_by, [each.rule for each in night.findings if each.severity == "error"]) == ("guard", ["empty"])
