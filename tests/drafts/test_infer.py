from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from merestone.contract.contract import FieldType
from merestone.drafts.infer import Inference, code_lists
from merestone.source.port import Delivery, GeometryColumn


def wkb(*texts):
    return pa.array([None if text is None else shapely.to_wkb(shapely.from_wkt(text)) for text in texts], pa.binary())


def points(count, decimals=7):
    at = np.round(10 + np.random.default_rng(7).random((count, 2)), decimals)
    return pa.array(shapely.to_wkb(shapely.points(at)), pa.binary())


def inferred(*batches, fid=None, asked=()):
    delivery = Delivery("x.gpkg", "GPKG", None, batches[0].schema, GeometryColumn("geom", "EPSG:4326"), fid_column=fid)
    inference = Inference(delivery, asked=asked)
    for batch in batches:
        inference.add(batch)
    return inference.result()


def batch(count=4, **columns):
    return pa.record_batch({**columns, "geom": columns.get("geom", points(count))})


def test_keys_are_ranked_and_the_others_say_why_not():
    found = inferred(
        batch(
            fid=pa.array([1, 2, 3, 4]),
            OBJECTID=pa.array([1, 2, 3, 4]),
            GlobalID=pa.array(["a", "b", "c", "d"]),
            name=pa.array(["p", "q", "r", "s"]),
            road_id=pa.array(["4", "2", "9", "1"]),
            zone_code=pa.array(["x", "x", "y", None]),
            width=pa.array([1.5, 2.5, 3.5, 4.5]),
        ),
        fid="fid",
    )
    usable = [each.name for each in found.keys if not each.why_not]
    assert usable == ["road_id", "name", "GlobalID", "OBJECTID", "fid"]
    why = {each.name: each.why_not for each in found.keys}
    assert why["zone_code"] == "null in 1 of 4 rows and 2 rows share their value with another"
    assert why["width"] == "is number, and a key is text or a whole number"
    assert "row number" in found.keys[4].doubt
    assert "counts the rows" in found.keys[3].doubt


def test_a_key_must_be_unique_over_all_batches():
    one, two = batch(2, id=pa.array([5, 9])), batch(2, id=pa.array([9, 7]))
    assert inferred(one, two).keys[0].why_not == "2 rows share their value with another"
    assert inferred(one, batch(2, id=pa.array([8, 7]))).keys[0].why_not == ""


def test_integers_that_a_null_turned_into_floats_are_seen():
    found = inferred(batch(3, n=pa.array([1.0, float("nan"), 3.0]), x=pa.array([1.0, 2.5, 3.0])))
    assert (found.column("n").integral, found.column("n").nulls) == (True, 1)
    assert found.column("x").integral is False


def test_identifiers_that_may_be_made_anew_come_after_those_that_look_agreed():
    uuids = [f"{n:08x}-aaaa-4bbb-8ccc-{n:012x}" for n in range(4)]
    found = inferred(
        batch(
            uuid=pa.array(uuids),
            ext_ref=pa.array([f"{{{each.upper()}}}" for each in uuids]),
            OBJECTID_1=pa.array([7, 9, 8, 3]),
            name=pa.array(["p", "q", "r", "s"]),
            parcel_id=pa.array(["4", "2", "9", "1"]),
        )
    )
    assert [each.name for each in found.keys] == ["parcel_id", "uuid", "ext_ref", "name", "OBJECTID_1"]
    assert [each.name for each in found.keys if each.doubt] == ["uuid", "ext_ref", "OBJECTID_1"]
    assert "compare with an older one" in found.keys[1].doubt
    nearly = inferred(batch(uuid=pa.array([*uuids[:3], "x"])), batch(uuid=pa.array(["a", "b", "c", "d"])))
    assert not nearly.keys[0].doubt


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1], pa.int16()), "integer"),
        (pa.array([True]), "boolean"),
        (pa.array([b"x"]), "binary"),
        (pa.array([0], pa.timestamp("ms")), "timestamp_local"),
        (pa.array([0], pa.timestamp("ms", "UTC")), "timestamp"),
        (pa.array([["a"]]), "list<string>"),
        (pa.array([None]), "string"),
        (pa.array(["a"]).dictionary_encode(), "string"),
    ],
)
def test_types_are_those_of_a_contract(column, kind):
    assert str(inferred(batch(1, v=column)).column("v").kind) == kind


@pytest.mark.parametrize(
    ("texts", "kind", "dimensions"),
    [
        (["POINT (1 2)"], "point", "xy"),
        (["LINESTRING (0 0, 1 1)", "MULTILINESTRING ((0 0, 1 1))"], "multilinestring", "xy"),
        (["POLYGON ((0 0, 1 0, 1 1, 0 0))", None, "POLYGON EMPTY"], "polygon", "xy"),
        (["POINT Z (1 2 3)", "POINT Z (1 2 3)"], "point", "xyz"),
        (["POINT Z (1 2 3)", "POINT (1 2)"], "point", "xy"),
        (["POINT (1 2)", "LINESTRING (0 0, 1 1)"], "geometry", "xy"),
        ([None], "geometry", "xy"),
    ],
)
def test_the_geometry_type_covers_every_row(texts, kind, dimensions):
    found = inferred(pa.record_batch({"id": [str(n) for n in range(len(texts))], "geom": wkb(*texts)})).geometry
    assert (found.type, found.dimensions) == (kind, dimensions)
    assert (found.nulls, found.empty) == (texts.count(None), texts.count("POLYGON EMPTY"))


def test_precision_and_bounds_are_measured():
    found = inferred(batch(600, id=pa.array(range(600)), geom=points(600, 5))).geometry
    assert (found.ordinates, found.decimals) == (1200, 5)
    assert found.bounds[0] >= 10
    assert found.bounds[3] <= 11


def test_columns_with_few_values_are_mentioned():
    found = inferred(batch(80, id=pa.array(range(80)), use=pa.array(["a", "b"] * 40), name=pa.array([f"n{n}" for n in range(80)])))
    assert code_lists(found) == ["use has 2 values: a and b"]


def test_an_asked_column_is_followed_although_it_repeats():
    found = inferred(batch(3, name=pa.array(["a", "a", "b"])), asked=("name",))
    assert found.column("name").duplicates == 2
    assert FieldType("string") == found.column("name").kind


@pytest.mark.parametrize(
    ("column", "kind", "counts"),
    [
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), "integer", False),
        (pa.array([1, 2, None], pa.uint8()), "integer", False),
        (pa.array([1, 2, 3], pa.uint64()), "integer", True),
        (pa.array([None, 1, 2], pa.int64()), "integer", False),
        (pa.array([1.0, float("inf"), 2.0]), "number", False),
        (pa.array([1.0, 2.0**53, 2.0]), "number", False),
    ],
    ids=str,
)
def test_numbers_of_any_width_are_looked_at(column, kind, counts):
    (fact,) = [each for each in inferred(batch(3, n=column)).columns if each.name == "n"]
    assert (fact.kind.kind, fact.integral, fact.counter) == (kind, False, counts)
