"""GeoParquet: which column is the geometry, in which CRS, in which encoding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from merestone.errors import SourceError
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"
POINTS = shapely.points([[1.0, 2.0], [3.0, 4.0]])


def write(path: Path, columns: dict, geo: dict | None) -> Path:
    table = pa.table(columns)
    if geo is not None:
        table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, path)
    return path


def read(path: Path, **spec):
    source = open_source(SourceSpec(str(path), **spec))
    return pa.Table.from_batches(list(source.batches()), schema=source.delivery.schema), source.delivery


def wkb(shapes):
    return pa.array([None if shape is None else shapely.to_wkb(shape) for shape in shapes], pa.binary())


def test_names_that_collide_with_machinery_are_columns():
    found, delivery = read(CASES / "S10/curr.parquet")
    assert delivery.geometry is not None
    assert delivery.geometry.name == "shape"
    for name in ("geometry", "bbox", "fid", "__index_level_0__", "a.b", "'; drop table data; --", "line\nbreak", "select"):
        assert found[name][0].as_py().startswith(f"{name}-a")
    assert delivery.fid_column is None


def test_two_geometry_columns_keep_their_own_crs():
    found, delivery = read(CASES / "Q02/curr.parquet")
    assert delivery.geometry is not None
    assert delivery.geometry.name == "outline"
    assert '"code": 25832' in str(delivery.geometry.crs)
    (other,) = delivery.other_geometries
    assert other.name == "entrance"
    assert '"code": 4326' in str(other.crs)
    assert found["entrance"][0].as_py() is None
    _, chosen = read(CASES / "Q02/curr.parquet", geometry="entrance")
    assert chosen.geometry is not None
    assert (chosen.geometry.name, [each.name for each in chosen.other_geometries]) == ("entrance", ["outline"])
    with pytest.raises(SourceError, match="outline, entrance"):
        read(CASES / "Q02/curr.parquet", geometry="pid")


@pytest.mark.parametrize(("clause", "crs"), [({}, "OGC:CRS84"), ({"crs": None}, None), ({"crs": {"type": "x"}}, None)])
def test_a_missing_crs_is_crs84_and_a_null_or_unknown_one_is_none(tmp_path, clause, crs):
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "geometry_types": [], **clause}}}
    _, delivery = read(write(tmp_path / "a.parquet", {"g": wkb(POINTS)}, geo))
    assert delivery.geometry is not None
    assert delivery.geometry.crs == crs


def test_edges_and_epoch_are_kept():
    _, delivery = read(CASES / "Q04/spherical.parquet")
    assert delivery.geometry is not None
    assert delivery.geometry.edges == "spherical"
    _, planar = read(CASES / "Q04/planar.parquet")
    assert planar.geometry is not None
    assert (planar.geometry.edges, planar.geometry.epoch) == ("planar", None)


def test_covering_columns_are_left_out_and_a_column_called_bbox_is_not(tmp_path):
    box = pa.array([{"xmin": 1.0}] * 2)
    paths = {"xmin": ["cover", "xmin"], "ymin": ["cover", "ymin"], "xmax": ["cover", "xmax"], "ymax": ["cover", "ymax"]}
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "covering": {"bbox": paths}}}}
    found, _ = read(write(tmp_path / "a.parquet", {"bbox": pa.array(["x", "y"]), "cover": box, "g": wkb(POINTS)}, geo))
    assert found.column_names == ["bbox", "g"]


def test_plain_parquet_is_a_table_without_geometry(tmp_path):
    found, delivery = read(write(tmp_path / "a.parquet", {"n": pa.array([1, 2])}, None))
    assert (delivery.geometry, found.column_names, delivery.rows) == (None, ["n"], 2)


SHAPES = {
    "point": [shapely.Point(1, 2), shapely.Point(3, 4)],
    "linestring": [shapely.LineString([(0, 0), (1, 1)]), shapely.LineString([(0, 0), (1, 1), (2, 0)])],
    "polygon": [shapely.box(0, 0, 1, 1), shapely.Polygon(shapely.box(0, 0, 9, 9).exterior, [shapely.box(1, 1, 2, 2).exterior])],
    "multipoint": [shapely.MultiPoint([(0, 0), (1, 1)]), shapely.MultiPoint([(5, 5)])],
    "multilinestring": [shapely.MultiLineString([[(0, 0), (1, 1)], [(2, 2), (3, 3)]]), shapely.MultiLineString([[(0, 0), (1, 0)]])],
    "multipolygon": [
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]), shapely.MultiPolygon([shapely.box(0, 0, 1, 2)]),
    ],
}  # fmt: skip


def native(shapes, *, z: bool):
    if z:
        shapes = [shapely.force_3d(shape, 7.0) for shape in shapes]
    _, xy, offsets = shapely.to_ragged_array(shapes, include_z=z)
    nested = pa.StructArray.from_arrays([np.ascontiguousarray(xy[:, at]) for at in range(xy.shape[1])], names=list("xyz")[: xy.shape[1]])
    for each in offsets:
        nested = pa.ListArray.from_arrays(pa.array(each, pa.int32()), nested)
    return shapes, nested


@pytest.mark.parametrize("z", [False, True])
@pytest.mark.parametrize("encoding", SHAPES)
def test_native_encodings_become_wkb(tmp_path, encoding, z):
    shapes, nested = native(SHAPES[encoding], z=z)
    column = pa.concat_arrays([nested, pa.nulls(1, nested.type), nested])
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": encoding, "geometry_types": []}}}
    found, _ = read(write(tmp_path / "a.parquet", {"g": column}, geo))
    assert found["g"].type == pa.binary()
    assert shapely.from_wkb(found["g"].to_pylist()).tolist() == [*shapes, None, *shapes]


def test_an_encoding_that_is_not_read_is_named(tmp_path):
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "geoarrow.box"}}}
    with pytest.raises(SourceError, match=r"'geoarrow\.box'"):
        read(write(tmp_path / "a.parquet", {"g": pa.array([1.0])}, geo))


@pytest.mark.parametrize("geo", [{"primary_column": "g", "columns": {"g": {}}}, {"columns": []}, {"primary_column": "z", "columns": {}}])
def test_metadata_that_contradicts_the_columns_is_an_error(tmp_path, geo):
    with pytest.raises(SourceError, match=r"geo metadata|primary_column"):
        read(write(tmp_path / "a.parquet", {"n": pa.array([1])}, geo))


def test_text_that_is_no_utf_8_names_column_and_record(tmp_path):
    raw = pa.array([b"a", b"\xff\xfe"], pa.binary())
    path = write(tmp_path / "a.parquet", {"name": pa.StringArray.from_buffers(2, *raw.buffers()[1:])}, None)
    with pytest.raises(SourceError, match="field name, record 2: byte 0xFF 0xFE not valid in UTF-8"):
        read(path)


def test_rows_come_in_bounded_batches_in_file_order(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array(range(1000))}), path, row_group_size=300)
    batches = list(open_source(SourceSpec(str(path))).batches(128))
    assert max(batch.num_rows for batch in batches) <= 128
    assert [row for batch in batches for row in batch["n"].to_pylist()] == list(range(1000))


def many_groups(path: Path, groups: int, rows: int) -> Path:
    """Text that occurs once, in row groups of some rows."""
    table = pa.table(
        {"n": pa.array(range(groups * rows)), "text": pa.array([f"a text that occurs once {n:09d}" for n in range(groups * rows)])}
    )
    pq.write_table(table, path, row_group_size=rows)
    return path


def test_rows_come_in_order_whatever_the_row_groups(tmp_path):
    for groups, rows in ((1, 10_000), (500, 20), (7, 1_429)):
        found, _ = read(many_groups(tmp_path / f"{groups}.parquet", groups, rows))
        assert found["n"].to_pylist() == list(range(groups * rows))


def test_a_file_is_never_held_whole(tmp_path):
    path, rows = tmp_path / "large.parquet", 2_000
    noise = np.random.default_rng(1).integers(0, 256, (60 * rows, 200), np.uint8)
    table = pa.table(
        {
            "n": pa.array(range(len(noise))),
            "noise": pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), len(noise), [None, pa.py_buffer(noise)]),
        }
    )
    pq.write_table(table, path, row_group_size=rows)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in open_source(SourceSpec(str(path))).batches(rows)]
    assert max(held) < path.stat().st_size / 4


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the list of mapped files is Linux's")
def test_a_source_is_read_and_not_mapped(tmp_path):
    path = many_groups(tmp_path / "some.parquet", 4, 1_000)
    for _ in open_source(SourceSpec(str(path))).batches(500):
        assert str(path) not in Path("/proc/self/maps").read_text()
