"""Rows as GeoJSON: exact, and readable by others."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from merestone.errors import StoreError
from merestone.inspect.extract import collection, features
from merestone.inspect.output import written_whole


def one(value, kind=None):
    """A value on its way through a feature's properties."""
    batch = pa.record_batch({"pid": ["a"], "value": pa.array([value], kind), "geometry": pa.array([None], pa.binary())})
    (text,) = features([batch], "geometry", ["pid"], ["pid", "value", "geometry"])
    assert "\n" not in text
    return json.loads(text)["properties"]["value"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (2**60 + 1, pa.int64(), 2**60 + 1),
        (0.1, pa.float64(), 0.1),
        (float("nan"), pa.float64(), None),
        (float("-inf"), pa.float64(), None),
        (True, pa.bool_(), True),
        (None, pa.string(), None),
        ('a\n\u2028\x1e"', pa.string(), 'a\n\u2028\x1e"'),
        (Decimal("1.20"), pa.decimal128(10, 2), "1.20"),
        (b"\x00\xff", pa.binary(), "AP8="),
        (dt.date(1874, 1, 2), pa.date32(), "1874-01-02"),
        (dt.time(1, 2, 3), pa.time64("us"), "01:02:03"),
        (dt.datetime(2026, 3, 1, 4, 5, 6), pa.timestamp("us"), "2026-03-01T04:05:06"),  # noqa: DTZ001 - a local time has none
        (dt.datetime(2026, 3, 1, 4, 5, 6, tzinfo=dt.UTC), pa.timestamp("us", "UTC"), "2026-03-01T04:05:06Z"),
        (["a", None], pa.list_(pa.string()), ["a", None]),
        ({"a": Decimal("0.5")}, pa.struct({"a": pa.decimal128(3, 1)}), {"a": "0.5"}),
    ],
)
def test_values_stay_exact_in_json(value, kind, expected):
    assert one(value, kind) == expected


@given(st.lists(st.tuples(st.floats(-1e7, 1e7), st.floats(-1e7, 1e7)), min_size=1, max_size=20))
def test_coordinates_come_back_to_the_last_bit(positions):
    shape = shapely.MultiPoint(positions)
    batch = pa.record_batch({"geometry": pa.array([shapely.to_wkb(shape)], pa.binary())})
    (text,) = features([batch], "geometry", ["pid"], ["geometry"])
    feature = json.loads(text)
    assert "id" not in feature
    assert np.array_equal(np.array(feature["geometry"]["coordinates"]), shapely.get_coordinates(shape))


def test_null_empty_and_z_geometry():
    shapes = [None, shapely.Point(), shapely.Point(1, 2, 3)]
    batch = pa.record_batch({"geometry": pa.array([None if each is None else shapely.to_wkb(each) for each in shapes], pa.binary())})
    found = [json.loads(each)["geometry"] for each in features([batch], "geometry", ["pid"], ["geometry"])]
    assert found == [None, {"type": "Point", "coordinates": []}, {"type": "Point", "coordinates": [1, 2, 3]}]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_collection_is_one_object(count):
    text = "".join(collection([f'{{"n":{n}}}' for n in range(count)], 4326, {"name": "a"}))
    assert json.loads(text) == {"type": "FeatureCollection", "name": "a", "features": [{"n": n} for n in range(count)]}


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), written_whole(str(target)) as place:  # noqa: PT012 - the half file is the point
        Path(place).write_text("half")
        raise ZeroDivisionError
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old"
    with written_whole(str(target)) as place:
        Path(place).write_text("new")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "new"


def test_a_full_disk_is_a_store_fault(tmp_path):
    with pytest.raises(StoreError, match="No space left"), written_whole(str(tmp_path / "a.txt")):
        raise OSError(28, "No space left on device")


def test_two_threads_that_write_one_file_do_not_meet(tmp_path):
    """Each writes beside it, and the last to end has its place: whole, and of one of them."""
    with written_whole(str(tmp_path / "out.txt")) as one:
        with written_whole(str(tmp_path / "out.txt")) as other:
            assert one != other
            Path(one).write_text("one")
            Path(other).write_text("other")
        assert (tmp_path / "out.txt").read_text() == "other"
    assert (tmp_path / "out.txt").read_text() == "one"
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]
