"""What data files are made of: small, read alike by every engine, with boxes that hold the true ones."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import duckdb
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.writer.encodings import encodings
from merestone.writer.files import FileLayout, encode

N = 4_000
READERS = os.environ.get("MERESTONE_READERS")
COLUMNS = (
    ("pid", pa.int64()),
    ("name", pa.string()),
    ("kind", pa.string()),
    ("note", pa.string()),
    ("size", pa.float64()),
    ("share", pa.float64()),
    ("price", pa.decimal128(10, 2)),
    ("day", pa.date32()),
    ("at", pa.timestamp("us", "UTC")),
    ("clock", pa.time64("us")),
    ("ok", pa.bool_()),
    ("tags", pa.list_(pa.string())),
    ("owner", pa.struct([("name", pa.string()), ("age", pa.int64())])),
    ("raw", pa.binary()),
)
LAYOUT = FileLayout(COLUMNS, "geometry", "bbox", (), 25832, "planar", None, (0.0, 0.0, 1e6, 1e7), N, 1_500)


def points(x, y):
    return [struct.pack("<BIdd", 1, 1, *each) for each in zip(x, y, strict=True)]


@pytest.fixture(scope="module")
def rows():
    """Columns that take each way of encoding, every seventh row with nulls."""
    r = np.random.default_rng(7)
    columns = {
        "pid": r.permutation(N) + 10**12,
        "name": [f"Feature number {n:08d}" for n in range(N)],
        "kind": r.choice(["road", "path", "Straße"], N),
        "note": [f"{each:x}" for each in r.integers(0, 2**62, N)],
        "size": r.random(N),
        "share": r.choice([0.25, 0.5, -0.0], N),
        "price": pa.array(r.integers(-(10**9), 10**9, N)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "day": r.integers(-20_000, 20_000, N).astype("datetime64[D]"),
        "at": r.integers(-(2**52), 2**52, N).astype("datetime64[us]"),
        "clock": r.integers(0, 86_400_000_000, N),
        "ok": r.random(N) < 0.5,
        "tags": [[f"t{n % 5}"] * (n % 3) for n in range(N)],
        "owner": [{"name": f"o{n % 9}", "age": n} for n in range(N)],
        "raw": [each.tobytes() for each in r.integers(0, 255, (N, 9), np.uint8)],
    }
    hole = np.arange(N) % 7 == 3
    arrays = []
    for name, kind in COLUMNS:
        values = columns[name]
        if isinstance(values, list):
            array = pa.array([None if gone else each for each, gone in zip(values, hole, strict=True)], kind)
        else:
            array = pa.compute.if_else(pa.array(hole), None, pa.array(values).cast(kind, safe=False))
        arrays.append(array if name != "pid" else pa.array(values))
    east, north = 500_000 + r.integers(0, 60_000, N) / 100, 5_600_000 + r.integers(0, 60_000, N) / 100
    shapes = [None if gone else each for each, gone in zip(points(east, north), hole, strict=True)]
    return pa.table([*arrays, pa.array(shapes, pa.binary())], schema=LAYOUT.row_schema)


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    place = tmp_path_factory.mktemp("encoded") / "rows.parquet"
    place.write_bytes(encode(rows, LAYOUT)[0])
    return place


def test_each_column_is_encoded_as_its_values_are(rows, file):
    chosen = encodings(rows)
    assert chosen.use_dictionary == ["kind", "share", "tags.list.element", "owner.name", "owner.age"]
    assert chosen.column_encoding == {
        "pid": "DELTA_BINARY_PACKED",
        "name": "DELTA_BYTE_ARRAY",
        "day": "DELTA_BINARY_PACKED",
        "at": "DELTA_BINARY_PACKED",
        "clock": "DELTA_BINARY_PACKED",
        "geometry": "DELTA_BYTE_ARRAY",
    }
    group = pq.read_metadata(file).row_group(0)
    found = {group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)}
    assert "RLE_DICTIONARY" in found["tags.list.element"]
    assert "DELTA_BYTE_ARRAY" in found["geometry"]
    assert not any("BYTE_STREAM_SPLIT" in each for each in found.values()), "Spark does not read it"


def test_the_file_is_smaller_than_the_usual_one(rows, file):
    usual = file.with_name("usual.parquet")
    pq.write_table(rows, usual, compression="zstd", compression_level=3, row_group_size=LAYOUT.row_group_rows)
    assert file.stat().st_size < 0.95 * usual.stat().st_size, "with boxes, the usual one without"
    assert pq.read_metadata(file).metadata.keys() == {b"geo"}, "PROJJSON stands once"


def test_arrow_and_geopandas_read_what_was_written(rows, file):
    got = pq.read_table(file)
    assert got.select(rows.schema.names).replace_schema_metadata(None).equals(rows)
    frame = gpd.read_parquet(file)
    assert frame.crs == "EPSG:25832"
    assert frame.geometry.to_wkb().tolist() == rows.column("geometry").to_pylist()


def test_duckdb_reads_what_was_written(rows, file):
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        sql = f"SELECT * EXCLUDE (bbox) REPLACE (ST_AsWKB(geometry) AS geometry) FROM read_parquet('{file}')"  # noqa: S608 - a place of ours
        got = db.sql(sql).to_arrow_table()
    for name in rows.schema.names:
        assert got.column(name).to_pylist() == rows.column(name).to_pylist(), name


_READ = """
import sys, datetime, pyarrow, pyarrow.parquet as pq
got, want = (pq.read_table(each) for each in sys.argv[1:])
assert pyarrow.__version__.startswith("10."), pyarrow.__version__
for name in want.schema.names:
    assert got.column(name).equals(want.column(name)), name
print("alike")
"""
_SPARK = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
         .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").config("spark.sql.session.timeZone", "UTC").getOrCreate())
got, want = (spark.read.parquet(each) for each in sys.argv[1:])
got = got.select(want.columns)
assert (got.count(), got.exceptAll(want).count(), want.exceptAll(got).count()) == (4000, 0, 0)
print("alike")
"""


@pytest.mark.soak
@pytest.mark.parametrize(("reader", "program"), [("arrow10", _READ), ("spark", _SPARK)])
def test_an_old_arrow_and_spark_read_what_was_written(rows, reader, program, tmp_path):
    if READERS is None:
        pytest.skip("MERESTONE_READERS names no folder of other readers: `make soak` installs them")
    if reader == "spark":  # it has no times of the day
        rows = rows.drop_columns(["clock"])
    layout = replace(LAYOUT, columns=tuple(each for each in COLUMNS if each[0] in rows.schema.names))
    ours, plain = tmp_path / "ours.parquet", tmp_path / "plain.parquet"
    ours.write_bytes(encode(rows, layout)[0])
    pq.write_table(rows, plain, use_dictionary=False, store_schema=False)
    done = subprocess.run(
        [str(Path(READERS) / reader / "bin" / "python"), "-c", program, str(ours), str(plain)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""},
    )
    assert done.stdout.splitlines()[-1:] == ["alike"], done.stderr[-2000:]


_ORDINATE = st.floats(-1e15, 1e15) | st.floats(-1e-30, 1e-30) | st.floats(-180, 180)


@given(st.lists(st.tuples(_ORDINATE, _ORDINATE), min_size=1, max_size=20))
def test_boxes_are_rounded_outward_and_no_further(at):
    x, y = np.array(at).T
    blank = {name: pa.nulls(len(at), kind) for name, kind in COLUMNS}
    rows = pa.table([*blank.values(), pa.array(points(x, y), pa.binary())], schema=LAYOUT.row_schema)
    data, box = encode(rows, LAYOUT)
    cover = pq.read_table(pa.BufferReader(data)).column("bbox").combine_chunks()
    for low, high, true in (("xmin", "xmax", x), ("ymin", "ymax", y)):
        below, above = (cover.field(each).to_numpy() for each in (low, high))
        assert below.dtype == np.float32
        assert ((below <= true) & (true <= above)).all()
        assert (np.nextafter(below, np.float32(np.inf)) >= above).all(), "one step apart at most"
    assert box == (x.min(), y.min(), x.max(), y.max())
