"""The public fingerprint functions: one digest from frames and tables, and their errors."""

from __future__ import annotations

import subprocess
import sys

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import merestone
from identity import reference

SQUARE = shapely.Polygon([(0, 0), (1, 0), (1, 1), (0, 1)])
GRID = 1e-7
RULES = reference.Rules(reference.Grids(7, 7, 7))


pytestmark = pytest.mark.usefixtures("each_kernel")


@pytest.fixture
def frame():
    return gpd.GeoDataFrame(
        {
            "pid": ["p1", "p2", "p3"],
            "n": [1, 2, 3],
            "x": [0.5, np.nan, 2.0],
            "note": ["e\u0301", None, ""],
            "ok": [True, False, True],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
            "kind": pd.Categorical(["a", "b", None]),
        },
        geometry=[SQUARE, None, shapely.Point()],
        crs=4326,
    )


def table_of(frame):
    geometry = pa.array([None if each is None else shapely.to_wkb(each) for each in frame.geometry], pa.binary())
    return pa.Table.from_pandas(frame.drop(columns="geometry"), preserve_index=False).append_column("geometry", geometry)


def digests(frame, key="pid", *, grid=GRID, attributes=()):
    return merestone.fingerprint_frame(frame, key, grid=grid, attributes=attributes)


def table_digests(table, key="pid", *, grid=GRID, attributes=()):
    made = merestone.fingerprint_table(table, key, geometry_column="geometry", grid=grid, attributes=attributes)
    return dict(zip(map(str, made.column(key).to_pylist()), (value.hex() for value in made.column("digest").to_pylist()), strict=True))


def test_frame_and_table_and_reference_agree(frame):
    names = ["x", "n", "note", "ok", "day", "kind"]
    got = digests(frame, attributes=names)
    assert got == table_digests(table_of(frame), attributes=names[::-1])
    assert list(got) == ["p1", "p2", "p3"]
    day = reference.Local(1_704_067_200_000_000)
    first = {"n": 1, "x": 0.5, "note": "\u00e9", "ok": True, "day": day, "kind": "a"}
    assert got["p1"] == reference.digest(shapely.to_wkb(SQUARE), first, RULES).hex()
    second = {"n": 2, "ok": False, "day": reference.Local(day.microseconds + 86_400_000_000), "kind": "b"}
    assert got["p2"] == reference.digest(None, second, RULES).hex()
    assert got["p3"] == reference.digest(shapely.to_wkb(shapely.Point()), {"n": 3, "x": 2, "note": "", "ok": True}, RULES).hex()


def test_the_key_is_no_content(frame):
    renamed = frame.assign(pid=["q1", "q2", "q3"])
    assert list(digests(renamed).values()) == list(digests(frame).values())


def test_integers_through_nulls_do_not_change(frame):
    whole = digests(frame.assign(n=[1, 2, 3]), attributes=["n"])
    through_null = digests(frame.assign(n=[1, None, 3]), attributes=["n"])
    nullable = digests(frame.assign(n=pd.array([1, None, 3], dtype="Int64")), attributes=["n"])
    boxed = digests(frame.assign(n=pd.Series([1, None, 3], dtype=object)), attributes=["n"])
    assert whole["p1"] == through_null["p1"] == nullable["p1"] == boxed["p1"]
    assert through_null == nullable == boxed


def test_three_kinds_of_missing_are_one(frame):
    values = ([None, np.nan, pd.NA], [np.nan] * 3, [None] * 3)
    made = [digests(frame.assign(note=pd.Series(each, dtype=object)), attributes=["note"]) for each in values]
    assert made[0] == made[1] == made[2] == digests(frame)


def test_any_geometry_column_can_be_the_active_one(frame):
    renamed = frame.rename_geometry("shape")
    assert digests(renamed) == digests(frame)
    with_second = frame.assign(label=frame.geometry)
    assert digests(with_second, attributes=["label"])["p1"] != digests(frame)["p1"]


def test_z_stays(frame):
    flat, high = shapely.Point(1, 2), shapely.Point(1, 2, 3)
    one, other = (digests(frame.set_geometry([each] * 3, crs=4326)) for each in (flat, high))
    assert one["p1"] != other["p1"]
    assert other["p1"] == table_digests(table_of(frame.set_geometry([high] * 3, crs=4326)))["p1"]


def test_keys_of_several_types_stay_apart():
    points = gpd.GeoDataFrame({"k": pd.Series([1, "a", "2"], dtype=object)}, geometry=[shapely.Point(0, 0)] * 3)
    assert list(merestone.fingerprint_frame(points, "k", grid=1, attributes=[])) == ["1", "a", "2"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", "b", "a"], "duplicate keys"),
        (["a", None, "b"], "is null in 1 rows"),
        (["e\u0301", "\u00e9", "b"], "duplicate keys"),
        ([1, "1", 2], "one text"),
        ([1, 1, 2], "duplicate keys"),
        ([1.5, 2.5, 3.5], "floating-point"),
        ([1.0, "a", "b"], "floating-point"),
        ([1, None, 3], "is null in 1 rows"),
        ([1, np.nan, "1"], "is null in 1 rows"),
    ],
)
def test_keys_that_are_refused(frame, keys, message):
    with pytest.raises(ValueError, match=message):
        digests(frame.assign(pid=pd.Series(keys, dtype=object if any(isinstance(each, str) for each in keys) else None)))
    try:
        column = pa.array(keys)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return  # Arrow has no column of several types
    with pytest.raises(ValueError, match=r"null|duplicate|floating"):
        table_digests(table_of(frame).set_column(0, "pid", column))


def test_what_is_missing_is_named(frame):
    with pytest.raises(KeyError, match="'id' is not among"):
        digests(frame, "id")
    with pytest.raises(KeyError, match="'id' is not among"):
        table_digests(table_of(frame), "id")
    with pytest.raises(KeyError, match="'area'"):
        digests(frame, attributes=["area"])
    with pytest.raises(KeyError, match="'area'"):
        table_digests(table_of(frame), attributes=["area"])
    with pytest.raises(KeyError, match="'shape'"):
        merestone.fingerprint_table(table_of(frame), "pid", geometry_column="shape", grid=GRID, attributes=[])


@pytest.mark.parametrize("grid", [0, -1, 3e-7, 0.5, float("nan"), float("inf")])
def test_grids_that_are_no_power_of_ten(frame, grid):
    with pytest.raises(ValueError, match="power of ten"):
        digests(frame, grid=grid)
    with pytest.raises(ValueError, match="power of ten"):
        table_digests(table_of(frame), grid=grid)


def test_attributes_that_have_no_digest(frame):
    with pytest.raises(ValueError, match="'odd' holds values of several types"):
        digests(frame.assign(odd=pd.Series([1, "a", []], dtype=object)), attributes=["odd"])
    with pytest.raises(ValueError, match="'odd' is of type duration"):
        digests(frame.assign(odd=pd.to_timedelta([1, 2, 3], unit="s")), attributes=["odd"])
    with pytest.raises(TypeError, match="sequence of names"):
        digests(frame, attributes="note")


def test_rows_and_chunks_do_not_matter(frame):
    table = table_of(frame)
    whole = table_digests(table, attributes=["n", "note"])
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 2)])
    assert table_digests(chunked, attributes=["note", "n"]) == whole
    turned = table.take([2, 0, 1])
    assert table_digests(turned, attributes=["n", "note"]) == whole
    assert table_digests(table.to_batches()[0], attributes=["n", "note"]) == whole
    empty = merestone.fingerprint_table(table.slice(0, 0), "pid", geometry_column="geometry", grid=GRID, attributes=["n"])
    assert (empty.num_rows, empty.schema.field("digest").type) == (0, pa.binary(16))


def test_importing_merestone_imports_neither_shapely_nor_geopandas():
    code = "import sys, merestone; assert not {'shapely', 'geopandas', 'pandas', 'pyarrow'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
