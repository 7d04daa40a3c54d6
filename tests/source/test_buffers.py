"""What drivers hand over as Arrow: the same as feature by feature, whatever stands where; buffers that do not hold together are seen."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, time
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

from merestone.errors import SourceError
from merestone.geometry import kernel
from merestone.source import gdal, geoarrow
from merestone.source.buffers import fault_of
from merestone.source.columns import storage_of
from merestone.source.open import open_source
from merestone.source.port import SourceSpec, UnreadableValueError

DRIVERS = {
    "gpkg": "GPKG", "fgb": "FlatGeobuf", "geojson": "GeoJSON", "geojsonl": "GeoJSONSeq", "shp": "ESRI Shapefile", "gml": "GML",
    "kml": "KML", "gdb": "OpenFileGDB",
}  # fmt: skip
SHAPES = {
    "Point": "POINT (1 2)", "LineString": "LINESTRING (0 0, 1 1)", "Polygon": "POLYGON ((0 0, 1 0, 1 1, 0 0))",
    "MultiPoint": "MULTIPOINT (1 1, 2 2)", "MultiLineString": "MULTILINESTRING ((0 0, 1 1))",
    "MultiPolygon": "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))", "GeometryCollection": "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 1 1))",
    "Unknown": "POINT (1 2)",
}  # fmt: skip
CANNOT_HOLD = {("shp", "GeometryCollection"), ("gdb", "GeometryCollection"), ("gdb", "Unknown")}
# Every run of three of what a row may hold, so that each stands at each side of a boundary of batches of any size
RUNS = [each for run in itertools.product(("full", "null", "empty"), repeat=3) for each in run]

BATCHES = (1, 2, 3, 65_536)


def written(folder: Path, suffix: str, kind: str) -> Path:
    shape = shapely.from_wkt(SHAPES[kind])
    empty = shapely.from_wkt(f"{shape.geom_type.upper()} EMPTY")
    # KML has no empty point, GML and KML write an empty part of their own for the others
    held = {"full": shape, "null": None, "empty": None if (suffix, kind) in {("kml", "Point"), ("kml", "Unknown")} else empty}
    rows = pa.table({
        "code": pa.array([str(at) for at in range(len(RUNS))]),
        "number": pa.array([None if each == "null" else at for at, each in enumerate(RUNS)], pa.int64()),
        "text": pa.array([{"full": "x", "null": None, "empty": ""}[each] for each in RUNS]),
        "geometry": pa.array([None if held[each] is None else shapely.to_wkb(held[each], flavor="iso") for each in RUNS], pa.binary()),
    })  # fmt: skip
    path = folder / f"a.{suffix}"
    # rows in the order they were written, and whole 64-bit integers
    options = {"fgb": {"SPATIAL_INDEX": "NO"}, "gdb": {"TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"}}.get(suffix, {})
    pyogrio.write_arrow(rows, path, driver=DRIVERS[suffix], geometry_name="geometry", geometry_type=kind, crs="EPSG:4326", **options)
    return path


def canonical(values: list[bytes | None]) -> list[bytes | None]:
    return [None if each is None else shapely.to_wkb(shapely.from_wkb(bytes(each)), flavor="iso") for each in values]


@pytest.mark.parametrize("suffix", DRIVERS)
@pytest.mark.parametrize("kind", SHAPES)
def test_every_driver_gives_what_its_reading_feature_by_feature_gives(tmp_path, suffix, kind):
    if (suffix, kind) in CANNOT_HOLD:
        with pytest.raises(Exception, match=r"(?i)not supported|unsupported|ARC type|geometry type"):
            written(tmp_path, suffix, kind)
        return
    path = written(tmp_path, suffix, kind)
    meta, _, shapes, columns = pyogrio.raw.read(path)
    features = {
        name: [None if each is None or str(each) == "nan" else each for each in column.tolist()]
        for name, column in zip(meta["fields"], columns, strict=True)
    }
    places = canonical(list(shapes))
    assert None in places
    for batch_rows in BATCHES:
        source = open_source(SourceSpec(str(path)))
        found = pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)
        assert canonical(found[source.delivery.geometry.name].to_pylist()) == places, batch_rows
        for name in ("code", "number", "text"):
            assert found[name].to_pylist() == features[name], (batch_rows, name)


# Every type of column: what a full and an empty row hold
COLUMNS = {
    "flag": (pa.bool_(), True, False), "i16": (pa.int16(), 2**15 - 1, -(2**15)), "i32": (pa.int32(), 2**31 - 1, -(2**31)),
    "i64": (pa.int64(), 2**63 - 1, -(2**63)), "f32": (pa.float32(), 3.4028234663852886e38, -1.401298464324817e-45),
    "f64": (pa.float64(), 1.7976931348623157e308, -5e-324), "day": (pa.date32(), -25567, 20000),
    "hour": (pa.time32("ms"), 86_399_998, 0), "moment": (pa.timestamp("ms", "UTC"), 1577934245123, -2208988800000),
    "zoned": (pa.timestamp("ms", "+05:45"), 1577934245123, 1), "local": (pa.timestamp("ms"), 1577934245123, 1), "raw": (pa.binary(), b"\0\xff\1", b""),
    "ints": (pa.list_(pa.int32()), [1, -(2**31)], []), "texts": (pa.list_(pa.string()), ["a", 'ü,"'], []), "reals": (pa.list_(pa.float64()), [1.5, -0.1], []),
    "text": (pa.string(), 'ü\n"', ""),
}  # fmt: skip
# What GDAL does not write so that it can be read again: digits that no width holds, numbers rounded beyond the largest, zones
NOT_WRITTEN = {"shp": {"f32", "f64"}, "gml": {"f64"}, "kml": {"f64"}, "gdb": {"zoned", "hour"}, "geojson": {"i64"}}
# Where an empty value is none
NONE_IF_EMPTY = {"shp": {"raw", "text"}, "gml": {"raw", "text", "ints", "texts", "reals"}}


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("/", "-"))


def meant(name: str, value: object) -> object:
    """A value that a format holds as text, or in another type, as what was written."""
    if isinstance(value, datetime) and name == "local":
        return value.replace(tzinfo=None)  # a GeoPackage says UTC of every time
    if isinstance(value, datetime) and name == "moment" and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if name == "f32" and value is not None:
        return float(np.float32(value))
    if not isinstance(value, str) or name == "text":
        return value
    if name == "i64":
        return int(value)
    if name in {"day", "hour", "moment", "zoned", "local"}:
        return instant(value).date() if name == "day" else time.fromisoformat(value) if name == "hour" else instant(value)
    return bytes.fromhex(value) if name == "raw" else json.loads(value)


@pytest.mark.parametrize("shapes", ["all", "some"])
@pytest.mark.parametrize("suffix", DRIVERS)
def test_columns_of_every_type_are_what_was_written_at_every_boundary(tmp_path, suffix, shapes):
    """Nulls of columns and of geometries lie crosswise, so that each meets each at each side of a boundary."""
    names = [each for each in COLUMNS if each not in NOT_WRITTEN.get(suffix, ())]
    rows = {}
    for shift, name in enumerate(names):
        kind, full, empty = COLUMNS[name]
        turned = [*RUNS[shift % 3 :], *RUNS[: shift % 3]]
        rows[name] = pa.array([{"full": full, "null": None, "empty": empty}[each] for each in turned], kind)
    point = shapely.to_wkb(shapely.Point(1, 2))
    rows["geometry"] = pa.array([None if shapes == "some" and each == "null" else point for each in RUNS], pa.binary())
    path = tmp_path / f"a.{suffix}"
    options = {"fgb": {"SPATIAL_INDEX": "NO"}, "gdb": {"TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"}}.get(suffix, {})
    pyogrio.write_arrow(
        pa.table(rows), path, driver=DRIVERS[suffix], geometry_name="geometry", geometry_type="Point", crs="EPSG:4326", **options
    )
    for batch_rows in BATCHES:
        source = open_source(SourceSpec(str(path)))
        assert not source.delivery.misfits
        found = pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)
        for name in names:
            expected = rows[name].to_pylist()
            if name in NONE_IF_EMPTY.get(suffix, ()):
                expected = [each or None for each in expected]
            assert [meant(name, each) for each in found[name].to_pylist()] == expected, (name, batch_rows)
        assert [each is None for each in found[source.delivery.geometry.name].to_pylist()] == rows["geometry"].is_null().to_pylist()


@pytest.mark.parametrize("values", [[-(2**63), 2**53 + 1, 5], [2**53 + 1, 1.5], [-(2**53) - 1, None, 0.5]])
def test_an_integer_of_geojson_in_a_column_of_doubles_is_named_where_it_would_change(tmp_path, values):
    """GDAL gives a column in double precision where one value has decimals, or is the least integer."""
    features = [{"type": "Feature", "properties": {"n": each}, "geometry": {"type": "Point", "coordinates": [1, 2]}} for each in values]
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    source = open_source(SourceSpec(str(tmp_path / "a.geojson")))
    (misfits,) = source.delivery.misfits
    lost = [at for at, each in enumerate(values, 1) if isinstance(each, int) and int(float(each)) != each]
    assert (misfits.name, misfits.rows.tolist(), misfits.observed.to_pylist()) == ("n", lost, [str(values[at - 1]) for at in lost])
    (found,) = source.batches()
    assert [each for at, each in enumerate(found["n"].to_pylist(), 1) if at not in lost] == [
        each for at, each in enumerate(values, 1) if at not in lost
    ]


def held(kind: str, *, z: bool) -> list[shapely.Geometry | None]:
    """The geometries of all runs."""
    shape = shapely.from_wkt(SHAPES[kind])
    full = shapely.force_3d(shape, 7.0) if z else shape
    empty = shapely.from_wkt(f"{shape.geom_type.upper()} {'Z ' if z else ''}EMPTY")
    return [{"full": full, "null": None, "empty": empty}[each] for each in RUNS]


def as_wkb(shapes: list[shapely.Geometry | None]) -> list[bytes | None]:
    return [None if each is None else shapely.to_wkb(each, flavor="iso") for each in shapes]


@pytest.mark.parametrize("z", [False, True], ids=["xy", "xyz"])
@pytest.mark.parametrize("kind", [each for each in SHAPES if each != "Unknown"])
@pytest.mark.parametrize("encoding", ["WKB", "native"])
def test_parquet_gives_what_was_written(tmp_path, encoding, kind, z):
    shapes = held(kind, z=z)
    if encoding == "native" and kind.lower() not in geoarrow.ENCODINGS:
        return
    path = tmp_path / "a.parquet"
    if encoding == "WKB":
        column = pa.array(as_wkb(shapes), pa.binary())
    else:
        column = storage_of(pa.array(gpd.GeoSeries(shapes).to_arrow(geometry_encoding="geoarrow", interleaved=False)))
    stated = {"encoding": "WKB" if encoding == "WKB" else kind.lower(), "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": stated}}
    rows = pa.table({"text": [{"full": "x", "null": None, "empty": ""}[each] for each in RUNS], "g": column})
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), path, row_group_size=5)
    for batch_rows in BATCHES:
        source = open_source(SourceSpec(str(path)))
        found = pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)
        assert canonical(found["g"].to_pylist()) == as_wkb(shapes), batch_rows
        assert found["text"].to_pylist() == rows["text"].to_pylist(), batch_rows


def nested(values: list, depth: int) -> pa.Array:
    kind = pa.struct([("x", pa.float64()), ("y", pa.float64())])
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.array(values, kind)


P, NOWHERE = {"x": 1.0, "y": 2.0}, {"x": 1.0, "y": None}


@pytest.mark.parametrize(
    ("encoding", "depth", "value"),
    [
        ("point", 0, NOWHERE), ("linestring", 1, [P, None]), ("linestring", 1, [P, NOWHERE]), ("polygon", 2, [[P, P, P, P], None]),
        ("multipoint", 1, [None]), ("multilinestring", 2, [[P, NOWHERE]]), ("multipolygon", 3, [[[P, P, P, P]], None]),
        ("multipolygon", 3, [[None]]), ("multipolygon", 3, [[[P, None, P, P]]]),
    ],
)  # fmt: skip
def test_a_null_within_a_native_geometry_is_named_with_its_row(tmp_path, encoding, depth, value):
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": encoding, "geometry_types": []}}}
    rows = pa.table({"g": nested([None, P if not depth else [], None, value], depth)})
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), tmp_path / "a.parquet")
    for batch_rows in (1, 3, 65_536):
        with pytest.raises(UnreadableValueError, match=r"field g, record 4: a part, a position or a number within the geometry is null"):
            list(open_source(SourceSpec(str(tmp_path / "a.parquet"))).batches(batch_rows))


@pytest.mark.parametrize(
    ("encoding", "depth", "value", "positions"),
    [("linestring", 1, [P], 1), ("polygon", 2, [[P, P]], 2), ("multilinestring", 2, [[P], []], 1), ("multipolygon", 3, [[], [[P]]], 1)],
)
def test_a_native_geometry_that_is_none_comes_to_the_gate_as_it_is(encoding, depth, value, positions):
    (made_of,) = geoarrow.to_wkb(encoding, nested([value], depth)).to_pylist()
    assert made_of.count(np.array([1.0, 2.0]).tobytes()) == positions
    assert kernel.scan(pa.array([made_of])).kind.tolist() != [255], "it can be judged"


def wkb(*rows: bytes | None) -> pa.Array:
    return pa.array(rows, pa.binary())


POINT = shapely.to_wkb(shapely.Point(1, 2))


def made(kind: pa.DataType, offsets: list[int], data: bytes, *, mask: bytes | None = None, nulls: int = 0) -> pa.Array:
    body = [None if mask is None else pa.py_buffer(mask), pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, body, nulls)


LISTS = pa.ListArray.from_buffers(
    pa.list_(pa.int64()), 2, [None, pa.py_buffer(np.array([0, 3, 1], np.int32))], children=[pa.array([1, 2, 3])]
)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (made(pa.binary(), [0, 21, 0, 21], POINT * 2), "non-monotonic"),
        (made(pa.binary(), [0, 50, 42], POINT * 2), "(?i)offset"),
        (made(pa.binary(), [0, 21, 21], POINT), "row 2 of the batch is too short"),
        (made(pa.binary(), [0, 21, 21], POINT, mask=b"\x03", nulls=1), "null_count"),
        (made(pa.string(), [0, 3, 1, 2], b"abcd"), "non-monotonic"),
        (made(pa.string(), [0, 9, 4], b"abcd"), "(?i)offset"),
        (LISTS, "non-monotonic"),
    ],
)  # fmt: skip
def test_buffers_that_do_not_hold_together_are_seen(array, expected):
    batch = pa.RecordBatch.from_arrays([array], names=["a"])
    assert fault_of(batch, batch.schema, {0} if pa.types.is_binary(array.type) else set()) is not None
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(fault_of(batch, batch.schema, {0} if pa.types.is_binary(array.type) else set()))


def test_buffers_of_another_type_than_announced_are_seen():
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["a"])
    assert "other types" in fault_of(batch, pa.schema([("a", pa.int32())]), ())


@pytest.mark.parametrize("rows", [(POINT, None, POINT), (None, None), (), (shapely.to_wkb(shapely.from_wkt("GEOMETRYCOLLECTION EMPTY")),)])
def test_buffers_that_hold_together_pass_also_as_a_slice(rows):
    batch = pa.RecordBatch.from_arrays([wkb(*rows)], names=["a"])
    assert fault_of(batch, batch.schema, {0}) is None
    assert fault_of(batch.slice(1), batch.schema, {0}) is None


def test_where_both_ways_of_reading_give_broken_buffers_the_file_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, "gpkg", "Point")
    monkeypatch.setattr(gdal, "fault_of", lambda *_: "its offsets go back")
    with pytest.raises(SourceError, match=r"the GPKG reader fails after row 0: its offsets go back"):
        list(open_source(SourceSpec(str(path))).batches())
