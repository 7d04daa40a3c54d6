"""Cases F: what the fingerprint must not see, and what it must; each with the inputs a tester would try next."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shapely import LineString, MultiLineString, MultiPolygon, Point, Polygon, from_wkb, get_coordinates, reverse, to_wkb

from estate import geoparquet, save

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}


def field(name, kind="string", **clauses):
    return {"name": name, "type": kind, **clauses}


def unchanged(night, product, rows, version=1):
    """Nothing is new: no class but the same content, and no version."""
    assert night.status == "unchanged", night.said
    assert (night.result.delivered, night.result.unchanged) == (rows, rows)
    assert night.result.delta.touched == 0
    assert night.result.files_written == 0
    assert product.version == version


def only(night, changed, rows):
    """Just these keys changed, and every delivered row has one fate."""
    assert night.status == "published", night.said
    assert night.keys("changed") == sorted(changed)
    assert not night.keys("added")
    assert not night.keys("removed")
    assert not night.keys("moved")
    assert night.result.unchanged + len(changed) + night.result.delta.suppressed == rows == night.result.delivered


# --- F01: ring direction ---------------------------------------------------------------------------------------------------------------


def f01(estate):
    return estate([KEY, field("use")], geometry_type="polygon").as_cases_run()


def test_f01_rings_wound_the_other_way(estate):
    product = f01(estate)
    product.publish(CASES / "F01/prev.geojson")
    before = product.everything()
    unchanged(product.publish(CASES / "F01/curr.geojson"), product, 3)
    after = product.everything()
    assert {name: before[name] for name in before} == {name: after[name] for name in before}
    assert all(name.startswith(("_runs/", "_intents/")) for name in after.keys() - before.keys())
    unchanged(product.publish(CASES / "F01/prev.geojson"), product, 3)


SHELL = [(0, 0), (9, 0), (9, 9), (0, 9)]
HOLES = [[(1, 1), (2, 1), (2, 2), (1, 2)], [(5, 5), (6, 5), (6, 6), (5, 6)]]
PATCH = Polygon([(20, 0), (29, 0), (29, 9), (20, 9)])


def spun(ring, by):
    return ring[by:] + ring[:by]


@pytest.mark.parametrize(
    "other",
    [
        MultiPolygon([PATCH, Polygon(SHELL, HOLES)]),
        MultiPolygon([Polygon(SHELL, HOLES[::-1]), PATCH]),
        MultiPolygon([Polygon(spun(SHELL, 2), [spun(HOLES[0], 3), spun(HOLES[1], 1)]), PATCH]),
        reverse(MultiPolygon([Polygon(SHELL, HOLES), PATCH])),
        MultiPolygon([Polygon([SHELL[0], SHELL[0], *SHELL[1:]], HOLES), PATCH]),
    ],
    ids=["parts", "holes", "start", "reversed", "repeat"],
)
def test_f01_any_way_to_write_one_area(estate, tmp_path, other):
    product = estate([KEY], geometry_type="multipolygon")
    product.publish(save([{"pid": "a", "geometry": MultiPolygon([Polygon(SHELL, HOLES), PATCH])}], tmp_path / "1.gpkg"))
    unchanged(product.publish(save([{"pid": "a", "geometry": other}], tmp_path / "2.gpkg")), product, 1)


def test_f01_a_line_drawn_the_other_way_is_another_line(estate, tmp_path):
    line = LineString([(0, 0), (1, 0), (2, 1)])
    both = [{"pid": "a", "geometry": line}, {"pid": "b", "geometry": line}]
    turned = [{"pid": "a", "geometry": reverse(line)}, {"pid": "b", "geometry": line}]
    product = estate([KEY], geometry_type="linestring").as_cases_run()
    product.publish(save(both, tmp_path / "1.gpkg"))
    night = product.publish(save(turned, tmp_path / "2.gpkg"))
    only(night, ["a"], 2)
    assert night.result.delta.reversed == 1
    assert night.log["a"]["reversed"]
    assert product.shapes()["a"].coords[0] == (2, 1)

    free = estate([KEY], geometry_type="linestring", geometry={"direction": "irrelevant"})
    free.publish(tmp_path / "1.gpkg")
    unchanged(free.publish(tmp_path / "2.gpkg"), free, 2)


# --- F04, F05: the grid ----------------------------------------------------------------------------------------------------------------


def test_f04_coordinates_that_wobble_below_the_grid(estate):
    product = estate([KEY], geometry_type="polygon").as_cases_run()
    product.publish(CASES / "F04/prev.geojson")
    before = product.shapes()
    only(product.publish(CASES / "F04/curr.geojson"), ["j3"], 4)
    after = product.shapes()
    assert all(before[key].equals_exact(after[key]) for key in ("j1", "j2", "j4"))
    assert abs(get_coordinates(before["j3"]) - get_coordinates(after["j3"])).max() == pytest.approx(2e-7, abs=1e-12)


def test_f04_noise_never_creeps(estate, tmp_path):
    """Each night a little further east, each step within the noise of the one before: measured against what is published, it shows."""
    product = estate([KEY], geometry_type="point").as_cases_run()
    product.publish(save([{"pid": "a", "geometry": Point(10, 50)}], tmp_path / "0.parquet"))
    for night in range(1, 6):
        told = product.publish(save([{"pid": "a", "geometry": Point(10 + night * 3e-8, 50)}], tmp_path / f"{night}.parquet"))
        stored = product.shapes()["a"].x
        assert abs(stored - (10 + night * 3e-8)) <= 0.5e-7 + 1e-10, f"night {night} left {stored}"
        assert told.result.delta.changed == (product.shapes(told.result.version - 1)["a"].x != stored if told.log else 0)
    assert product.shapes()["a"].x == pytest.approx(10.0000001, abs=1e-12)


def f05(estate):
    return estate([KEY], geometry_type="linestring", epsg=25832, precision=3).as_cases_run()


def numbers(product):
    return {key: get_coordinates(shape) for key, shape in product.shapes().items()}


def test_f05_what_was_published_comes_back_as_the_source(estate, tmp_path):
    product = f05(estate)
    product.publish(CASES / "F05/first.geojson")
    for key, found in numbers(product).items():
        for value in found.ravel():
            assert value == float(f"{value:.3f}"), f"{key} holds {value!r}"
    back = product.dataset.to_geodataframe()
    back.to_parquet(tmp_path / "back.parquet")
    unchanged(product.publish(tmp_path / "back.parquet"), product, 6)
    features = [
        {"type": "Feature", "properties": {"pid": key}, "geometry": {"type": "LineString", "coordinates": found.tolist()}}
        for key, found in numbers(product).items()
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
    (tmp_path / "back.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
    unchanged(product.publish(tmp_path / "back.geojson"), product, 6)


@pytest.mark.parametrize("names", [("first", "nudged"), ("nudged", "first")])
def test_f05_a_change_is_a_change_of_stored_numbers(estate, names):
    product = f05(estate)
    product.publish(CASES / f"F05/{names[0]}.geojson")
    before = numbers(product)
    night = product.publish(CASES / f"F05/{names[1]}.geojson")
    after = numbers(product)
    moved = {key for key in before if (before[key] != after[key]).any()}
    assert set(night.keys("changed")) == moved
    assert all(abs(before[key] - after[key]).max() <= 0.001 + 1e-9 for key in before)
    for found in after.values():
        assert all(value == float(f"{value:.3f}") for value in found.ravel())


# --- F06: minus zero -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curr", ["curr.geojson", "curr.parquet"])
def test_f06_minus_zero(estate, curr):
    product = estate([KEY, field("offset_m", "number")], geometry={"dimensions": "any"}).as_cases_run()
    product.publish(CASES / "F06/prev.geojson")
    unchanged(product.publish(CASES / f"F06/{curr}"), product, 4)


def test_f06_no_minus_zero_is_stored(estate):
    product = estate([KEY, field("offset_m", "number")], geometry={"dimensions": "any"})
    product.publish(CASES / "F06/curr.parquet")
    for row in product.rows().values():
        assert not (np.signbit(get_coordinates(from_wkb(row["geometry"]))) & (get_coordinates(from_wkb(row["geometry"])) == 0)).any()


# --- F09, F10: null --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curr", ["curr.gpkg", "curr.parquet"])
def test_f09_integers_beside_a_null(estate, curr):
    product = estate([KEY, field("floors", "integer"), field("meter_no", "integer")], geometry_type="point").as_cases_run()
    product.publish(CASES / "F09/prev.gpkg")
    only(product.publish(CASES / f"F09/{curr}"), ["n2", "n4"], 5)
    table = product.table()
    assert (table.schema.field("floors").type, table.schema.field("meter_no").type) == (pa.int64(), pa.int64())
    rows = product.rows()
    assert (rows["n3"]["meter_no"], rows["n5"]["meter_no"]) == (9007199254740993, 9007199254740995)
    assert (rows["n2"]["floors"], rows["n2"]["meter_no"]).count(None) >= 1
    frame = product.dataset.to_geodataframe().set_index("pid")
    assert int(frame.loc["n3", "meter_no"]) == 9007199254740993


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint16(), pa.float64(), pa.float32(), pa.decimal128(9, 0)])
def test_f09_an_integer_is_one_value_in_any_column_type(estate, tmp_path, kind):
    product = estate([KEY, field("floors", "integer")], geometry_type="point")
    product.publish(
        geoparquet(
            tmp_path / "1.parquet",
            {"pid": pa.array(["a", "b"]), "floors": pa.array([3, None], pa.int64()), "geometry": [Point(0, 0), Point(1, 1)]},
        )
    )
    floors = pa.array([3, None], kind)
    unchanged(
        product.publish(
            geoparquet(tmp_path / "2.parquet", {"pid": pa.array(["a", "b"]), "floors": floors, "geometry": [Point(0, 0), Point(1, 1)]})
        ),
        product,
        2,
    )


def test_f10_kinds_of_missing(estate):
    fields = [KEY, field("height", "number"), field("note"), field("remark"), field("floors", "integer")]
    product = estate(fields, geometry_type="point").as_cases_run()
    first = product.publish(CASES / "F10/prev.parquet")
    night = product.publish(CASES / "F10/curr.gpkg")
    only(night, ["n3", "n5"], 6)
    for each in (first, night):
        assert not [rule for rule in each.rules() if rule[1] == "type"]
    rows = product.rows()
    assert rows["n4"]["note"] == "NaN"
    assert rows["n5"]["note"] == "None"
    assert rows["n3"]["note"] is None
    assert all(row["remark"] is None and row["height"] == row["height"] for row in rows.values())


# --- F11: time -------------------------------------------------------------------------------------------------------------------------

SURVEYED = [KEY, field("surveyed", "timestamp")]


def test_f11_one_instant_in_geopackage(estate):
    product = estate(SURVEYED, geometry_type="point").as_cases_run()
    product.publish(CASES / "F11/prev.gpkg")
    only(product.publish(CASES / "F11/curr.gpkg"), ["d5", "d6"], 6)
    assert all(row["surveyed"] is None or row["surveyed"].utcoffset() == dt.timedelta(0) for row in product.rows().values())


def test_f11_one_instant_in_arrow(estate):
    product = estate(SURVEYED, geometry_type="point").as_cases_run()
    product.publish(CASES / "F11/prev.parquet")
    unchanged(product.publish(CASES / "F11/curr.parquet"), product, 2)


def test_f11_no_zone_is_no_instant(estate, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    product = estate(SURVEYED, geometry_type="point").as_cases_run()
    product.publish(CASES / "F11/prev.parquet")
    night = product.publish(CASES / "F11/naive.parquet")
    assert (night.status, night.result.refused_by, product.version) == ("refused", "contract", 1)
    assert "surveyed" in night.said
    assert "no time zone" in night.said


# --- F14, F15: text --------------------------------------------------------------------------------------------------------------------


def test_f14_accents_composed_and_decomposed(estate):
    product = estate([KEY, field("name"), field("größe", "integer")], geometry_type="point").as_cases_run()
    product.publish(CASES / "F14/prev.geojson")
    only(product.publish(CASES / "F14/curr.geojson"), ["u4", "u5", "u6"], 7)
    assert product.table().schema.names.count("gr\u00f6\u00dfe") == 1


def test_f14_the_contract_and_the_publication_may_spell_a_name_either_way(estate):
    product = estate([KEY, field("name"), field("gro\u0308\u00dfe", "integer")], geometry_type="point").as_cases_run()
    product.publish(CASES / "F14/prev.geojson")
    product.settings["columns"] = {"gr\u00f6\u00dfe": "gro\u0308\u00dfe"}
    only(product.publish(CASES / "F14/curr.geojson"), ["u4", "u5", "u6"], 7)


def test_f15_blanks_lost_in_dbf(estate):
    product = estate([KEY, field("street")], geometry_type="point").as_cases_run()
    product.publish(CASES / "F15/prev.gpkg")
    night = product.publish(CASES / "F15/same.shp")
    only(night, ["t2"], 3)
    assert "t2 differs only in blanks at the end" in night.said


def test_f15_blanks_edited_in_geopackage(estate):
    product = estate([KEY, field("street")], geometry_type="point").as_cases_run()
    product.publish(CASES / "F15/prev.gpkg")
    only(product.publish(CASES / "F15/edited.gpkg"), ["t1", "t3"], 3)


# --- the next inputs of this kind ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("number", [1.0, 0.1 + 0.2], [1, 0.3]),
        ("number", [1e300, -0.0], [1e300, 5e-324]),
        ("boolean", [True, None], [True, False]),
        ("string", ["a", ""], ["a", None]),
        ("string", ["a", "x\x00y"], ["a", "xy"]),
        ("string", ["a", "\ufeffx"], ["a", "x"]),
        ("decimal(9,2)", [Decimal("1.10"), Decimal("2.00")], [Decimal("1.1"), Decimal("2.01")]),
        ("date", [dt.date(2024, 2, 29), None], [dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
        ("binary", [b"", b"\x00"], [b"", None]),
        ("list<string>", [["a", "b"], []], [["a", "b"], None]),
    ],
)
def test_a_value_that_a_consumer_could_see_is_a_change_and_no_other(estate, tmp_path, kind, one, other):
    """The first row means the same in both deliveries, the second does not."""
    product = estate([KEY, field("v", kind)], geometry_type="point").as_cases_run()
    columns = {"pid": pa.array(["same", "edit"]), "geometry": [Point(0, 0), Point(1, 1)]}
    product.publish(geoparquet(tmp_path / "1.parquet", {**columns, "v": pa.array(one)}))
    only(product.publish(geoparquet(tmp_path / "2.parquet", {**columns, "v": pa.array(other)})), ["edit"], 2)
    unchanged(product.publish(geoparquet(tmp_path / "3.parquet", {**columns, "v": pa.array(other)})), product, 2, version=2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MultiLineString([[(0, 0), (1, 1)]]), LineString([(0, 0), (1, 1)])),
        (LineString([(0, 0), (1, 1)]), LineString([(0, 0), (0, 0), (1, 1), (1, 1)])),
        (LineString([(0, 0), (1, 1)]), LineString([(0, 0), (1e-9, 0), (1, 1)])),
    ],
    ids=["a single part", "repeated vertices", "vertices that meet on the grid"],
)
def test_one_geometry_in_two_forms(estate, tmp_path, one, other):
    product = estate([KEY], geometry_type="multilinestring")
    product.publish(geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a"]), "geometry": [one]}))
    unchanged(product.publish(geoparquet(tmp_path / "2.parquet", {"pid": pa.array(["a"]), "geometry": [other]})), product, 1)


@pytest.mark.parametrize("options", [{"byte_order": 0}, {"flavor": "iso"}, {"include_srid": True}])
def test_any_dialect_of_wkb(estate, tmp_path, options):
    shape = Polygon([(0, 0, 1), (9, 0, 2), (9, 9, 3)])
    product = estate([KEY], geometry_type="polygon", geometry={"dimensions": "xyz"})
    product.publish(geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a"]), "geometry": [to_wkb(shape)]}))
    unchanged(
        product.publish(geoparquet(tmp_path / "2.parquet", {"pid": pa.array(["a"]), "geometry": [to_wkb(shape, **options)]})), product, 1
    )
