"""Case N11: casts that lose nothing, in formats that have no better type."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from estate import geoparquet, save

CASES = Path(__file__).parent
POINT = {"geometry_type": "point"}


@pytest.mark.parametrize("name", ["midnight.parquet", "midnight.gpkg"])
def test_n11_midnight_is_a_date(estate, name):
    product = estate([{"name": "pid", "type": "string"}, {"name": "built", "type": "date"}], **POINT)
    night = product.publish(CASES / f"N11/{name}")
    assert night.status == "published", night.said
    assert {key: row["built"] for key, row in product.rows().items()} == {"a": dt.date(1950, 1, 1), "b": dt.date(1951, 2, 2)}


def test_n11_one_and_zero_are_flags(estate):
    product = estate([{"name": "pid", "type": "string"}, {"name": "is_active", "type": "boolean"}], **POINT)
    night = product.publish(CASES / "N11/one_zero.parquet")
    assert night.status == "published", night.said
    assert {key: row["is_active"] for key, row in product.rows().items()} == {"b1": True, "b2": False, "b3": None}


@pytest.mark.parametrize(
    ("kind", "array", "shown"),
    [
        ("date", pa.array(["2024-01-01", "2024-01-01T00:00:01"]).cast(pa.timestamp("us")), "2024-01-01 00:00:01"),
        ("boolean", pa.array([1, 2], pa.int8()), "2"),
    ],
)
def test_n11_a_refusal_names_row_and_value(estate, tmp_path, kind, array, shown):
    path = geoparquet(tmp_path / "d.parquet", {"pid": ["a", "b"], "v": array, "geometry": [shapely.Point(1, 1), shapely.Point(2, 2)]})
    product = estate([{"name": "pid", "type": "string"}, {"name": "v", "type": kind}], **POINT)
    night = product.publish(path)
    assert night.status == "refused"
    (found,) = [each for each in night.result.findings if each.rule == "type"]
    assert [(each.row, shown in str(each.observed)) for each in found.features] == [(2, True)]


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "geojson", "geojsonl", "shp", "parquet", "gml"])
def test_n11_in_every_format(estate, tmp_path, suffix):
    rows = [
        {"pid": f"p{at}", "flag": at % 2, "day": dt.datetime.fromisoformat(f"2024-01-0{1 + at}"), "geometry": shapely.Point(at, at)}
        for at in range(3)
    ]
    if suffix == "shp":
        rows = [{**row, "day": row["day"].date()} for row in rows]
    path = save(rows, tmp_path / f"d.{suffix}")
    product = estate([{"name": "pid", "type": "string"}, {"name": "flag", "type": "boolean"}, {"name": "day", "type": "date"}], **POINT)
    night = product.publish(path)
    assert night.status == "published", night.said
    assert {row["pid"]: (row["flag"], row["day"]) for row in product.rows().values()} == {
        row["pid"]: (bool(row["flag"]), dt.date(2024, 1, 1 + at)) for at, row in enumerate(rows)
    }
