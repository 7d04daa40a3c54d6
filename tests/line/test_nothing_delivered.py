"""A delivery without rows stops and asks, whatever its format can say of columns; a version without rows is read and delivered like any other."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from estate import geoparquet, save
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
