"""What `read --out` writes, in every format, is what was published: published back it is `unchanged`."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from estate import geoparquet
from merestone.errors import UsageError
from merestone.inspect import text_crs
from merestone.inspect.extract import version_file

CASES = Path(__file__).parents[1] / "cases"
FORMATS = ["parquet", "geoparquet", "gpkg", "geojson", "json", "geojsons", "geojsonl"]
HOLE = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2)]])
COLUMNS = {
    "string": pa.array(['å \\ "quoted"\n', "", None]),
    "integer": pa.array([2**63 - 1, -(2**53) - 1, None]),
    "number": pa.array([0.1, -1e300, None]),
    "boolean": pa.array([True, False, None]),
    "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "time": pa.array([dt.time(23, 59, 59, 999_999), dt.time(0), None], pa.time64("us")),
    "timestamp": pa.array(["1969-12-31T23:59:59.999Z", "2024-02-29T00:00:00Z", None]).cast(pa.timestamp("us", "UTC")),
    "timestamp_local": pa.array(["2024-03-31T02:30:00.123456", "2024-02-29T00:00:00", None]).cast(pa.timestamp("us")),
    "decimal(30,4)": pa.array([Decimal("12345678901234567890123456.0001"), Decimal("-0.0001"), None], pa.decimal128(30, 4)),
    "decimal(12,10)": pa.array([Decimal("0.0000000001"), Decimal(0), None], pa.decimal128(12, 10)),
    "list<string>": pa.array([["a", "å"], [], None]),
    "list<integer>": pa.array([[1, 2**60], [], None]),
    "struct<k: integer, d: date, m: decimal(9,2)>": pa.array(
        [{"k": 1, "d": dt.date(2024, 1, 1), "m": Decimal("1.10")}, {"k": None, "d": None, "m": None}, None],
        pa.struct([("k", pa.int64()), ("d", pa.date32()), ("m", pa.decimal128(9, 2))]),
    ),
}  # fmt: skip


def product_of(estate, tmp_path, columns, **clauses):
    """A product with one field of each type, published once."""
    names = {kind: f"c{at}" for at, kind in enumerate(columns)}
    fields = [{"name": "pid", "type": "string"}, *({"name": name, "type": kind} for kind, name in names.items())]
    shapes = [HOLE, shapely.box(-1, -1, 0, 0), shapely.MultiPolygon([shapely.box(7, 7, 8, 8), shapely.box(9, 9, 10, 10)])]
    rows = {"pid": ["a", "b", "c"], **{names[kind]: array for kind, array in columns.items()}, "geometry": shapes}
    product = estate(fields, geometry_type="multipolygon", **clauses)
    night = product.publish(geoparquet(tmp_path / "first.parquet", rows))
    assert night.status == "published", night.said
    return product


def back(product, path, **options):
    """Write the current version to a file and publish that."""
    version_file(product.dataset.version(), str(path), **options)
    return product.publish(path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_each_type_comes_back_as_it_was(estate, tmp_path, suffix, kind):
    product = product_of(estate, tmp_path, {kind: COLUMNS[kind]})
    night = back(product, tmp_path / f"out.{suffix}")
    assert night.status == "unchanged", night.said


@pytest.mark.parametrize("suffix", [each for each in FORMATS if each not in {"geojsons", "geojsonl"}])  # they can state no such system
def test_all_types_together_in_national_coordinates(estate, tmp_path, suffix):
    columns = COLUMNS if suffix not in {"parquet", "gpkg"} else {**COLUMNS, "binary": pa.array([b"\0\xff", b"", None])}
    names = [f"c{at}" for at in range(len(columns))]
    rows = {
        "pid": ["a", "b", "c"],
        **dict(zip(names, columns.values(), strict=True)),
        "geometry": [shapely.box(at, at, at + 1.25, at + 1) for at in range(3)],
    }
    fields = [{"name": "pid", "type": "string"}, *({"name": name, "type": kind} for name, kind in zip(names, columns, strict=True))]
    product = estate(fields, geometry_type="polygon", epsg=25832, precision=2)
    product.settings["guard"] = {"max_changed_fraction": 1.0}
    product.terms["extent"] = [-10, -10, 1000, 1000]
    night = product.publish(geoparquet(tmp_path / "first.parquet", rows, epsg=25832))
    assert night.status == "published", night.said
    night = back(product, tmp_path / f"out.{suffix}")
    assert night.status == "unchanged", night.said


@pytest.mark.parametrize("suffix", ["geojson", "json", "geojsons", "geojsonl"])
def test_bytes_are_refused_by_name_where_json_has_none(estate, tmp_path, suffix):
    product = product_of(estate, tmp_path, {"binary": pa.array([b"\0", b"", None])})
    with pytest.raises(UsageError, match="GeoJSON cannot hold the bytes of 'c0'"):
        version_file(product.dataset.version(), str(tmp_path / f"out.{suffix}"))
    assert not list(tmp_path.glob("*out*"))
    version_file(product.dataset.version(), str(tmp_path / f"out.{suffix}"), columns=["pid", "geometry"])


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_n21_columns_that_geopackages_use_themselves(estate, tmp_path, name, suffix):
    fields = {
        "a": {"lot": "string", "fid": "string", "geom": "string", "ogc_fid": "integer", "FID_1": "integer"},
        "b": {"lot": "string", "fid": "integer", "dec": "decimal(20,2)", "when": "timestamp", "tags": "list<string>", "big": "integer"},
    }[name]  # fmt: skip
    product = estate([{"name": each, "type": kind} for each, kind in fields.items()], key="lot", geometry_type="point")
    assert product.publish(CASES / f"N21/{name}.parquet").status == "published"
    night = back(product, tmp_path / f"out.{suffix}")
    assert (night.status, night.result.features) == ("unchanged", 3), night.said
    if suffix == "gpkg":
        with closing(sqlite3.connect(tmp_path / "out.gpkg")) as database:
            columns = [each[1] for each in database.execute("select * from pragma_table_info('product')")]
        assert set(fields) < set(columns)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"name": "string", "Name": "string"}, "both 'name' and 'Name', which are one name to SQLite"),
        ({"Geometry": "string"}, "both .*'Geometry'"),
    ],
)
def test_n21_names_that_sqlite_takes_for_one_are_refused_by_name(estate, tmp_path, columns, words):
    rows = {"pid": ["a"], **{each: ["x"] for each in columns}, "geometry": [shapely.Point(1, 1)]}
    product = estate(
        [{"name": "pid", "type": "string"}, *({"name": name, "type": kind} for name, kind in columns.items())], geometry_type="point"
    )
    assert product.publish(geoparquet(tmp_path / "first.parquet", rows)).status == "published"
    with pytest.raises(UsageError, match=words) as fault:
        version_file(product.dataset.version(), str(tmp_path / "out.gpkg"))
    assert fault.value.hint == "write .parquet, or choose one of them: columns"
    assert back(product, tmp_path / "out.geojson").status == "unchanged"


def test_times_below_the_millisecond_are_text_in_a_geopackage(estate, tmp_path):
    moments = pa.array(["2024-01-01T00:00:00.000001Z", "2024-01-01T00:00:00Z", None]).cast(pa.timestamp("us", "UTC"))
    product = product_of(estate, tmp_path, {"timestamp": moments})
    assert back(product, tmp_path / "out.gpkg").status == "unchanged"


SEQUENCES = ["geojsons", "geojsonl"]


def places(path):
    """Key to position, as a plain JSON reader finds it."""
    features = [json.loads(line.strip("\x1e")) for line in path.read_text().split("\n") if line]
    return {each["properties"]["pid"]: each["geometry"]["coordinates"] for each in features}


def points(estate, tmp_path, epsg, shapes):
    product = estate([{"name": "pid", "type": "string"}], geometry_type="point", epsg=epsg, precision=0 if epsg != 4326 else 7)
    product.agreed()
    night = product.publish(geoparquet(tmp_path / "first.parquet", {"pid": list("ab"), "geometry": shapes}, epsg=epsg))
    assert night.status == "published", night.said
    return product.dataset.version()


@pytest.mark.parametrize("suffix", SEQUENCES)
def test_a_text_sequence_is_in_wgs_84(estate, tmp_path, suffix):
    version = points(estate, tmp_path, 32632, [shapely.Point(500_000, 0), shapely.Point(500_000, 5_000_000)])
    version_file(version, str(tmp_path / f"out.{suffix}"))
    found = places(tmp_path / f"out.{suffix}")
    assert found["a"] == pytest.approx([9, 0])
    assert found["b"] == pytest.approx(
        [9, 45 + (5_000_000 / 0.9996 - 4_984_944.378) / 111_131.8], abs=1e-5
    )  # from the length of the meridian
    assert "EPSG:32632 to WGS 84" in text_crs.said(32632, f"out.{suffix}")
    assert text_crs.said(32632, "out.geojson") is text_crs.said(4326) is None


@pytest.mark.parametrize("suffix", SEQUENCES)
@pytest.mark.parametrize("epsg", [25832, 28992, 27700, 3006])
def test_where_the_way_is_not_exact_a_text_sequence_is_refused(estate, tmp_path, suffix, epsg):
    at = {25832: (500_000, 5_900_000), 28992: (155_000, 463_000), 27700: (400_000, 300_000), 3006: (500_000, 6_600_000)}[epsg]
    version = points(estate, tmp_path, epsg, [shapely.Point(at), shapely.Point(at[0] + 1, at[1])])
    with pytest.raises(UsageError, match=rf"from EPSG:{epsg} .* is not exact") as fault:
        version_file(version, str(tmp_path / f"out.{suffix}"))
    assert ".geojson" in fault.value.hint
    version_file(version, str(tmp_path / "out.geojson"))
    assert f"EPSG::{epsg}" in (tmp_path / "out.geojson").read_text()
