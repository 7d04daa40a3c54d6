"""Every finding that names rows says where they are: in its samples, in the layer of errors and on the page."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from shapely import Point, Polygon, box

import merestone
from estate import Estate, geoparquet

FIELDS = [
    {"name": "pid", "type": "string"},
    {"name": "lot", "type": "string", "unique": True},
    {"name": "use", "type": "string"},
]
PLACES = [(5 + n / 100, 52 + n / 1000) for n in range(8)]
PIDS, LOTS = ["a", "b", "a", None, "", "c", "d", "e"], ["L0", "L1", "L2", "L3", "L4", "L5", "L1", "L7"]


def delivery(path, pids, lots, shapes, uses=None):
    columns = {"pid": pa.array(pids, pa.string()), "lot": pa.array(lots), "use": pa.array(uses or ["home"] * len(pids))}
    return geoparquet(path, {**columns, "geometry": shapes})


@pytest.fixture(scope="module")
def plots(tmp_path_factory):
    """A contract, and a delivery with keys twice, null and empty, and a lot twice."""
    made = Estate(tmp_path_factory.mktemp("plots"), FIELDS, geometry_type="point")
    made.terms["key"] = ["pid"]
    made.bad = delivery(made.folder / "bad.parquet", PIDS, LOTS, [Point(*each) for each in PLACES])
    made.write(made.bad)
    made.contract = made.folder / "product.contract.yaml"
    return made


EXPECTED = {"key_duplicate": [1, 3], "key_null": [4], "key_blank": [5], "unique": [2, 7]}


@pytest.mark.parametrize("door", ["check", "publish"])
def test_samples_of_a_finding_about_the_whole_have_the_place_of_their_row(plots, door):
    found = (
        merestone.check(plots.bad, contract=plots.contract).findings
        if door == "check"
        else merestone.publish(plots.folder / "product.yaml").findings
    )
    for rule, rows in EXPECTED.items():
        (one,) = [each for each in found if each.rule == rule]
        assert [(each.row, each.x, each.y) for each in one.features] == [(row, *PLACES[row - 1]) for row in rows], rule


def test_the_layer_of_errors_and_the_page_have_them_too(plots, tmp_path):
    merestone.check(plots.bad, contract=plots.contract, errors=tmp_path / "e.geojson", html=tmp_path / "e.html")
    drawn = json.loads((tmp_path / "e.geojson").read_text())["features"]
    for rule, rows in EXPECTED.items():
        mine = [each for each in drawn if each["properties"]["rule"] == rule]
        assert [(each["properties"]["row"], tuple(each["geometry"]["coordinates"])) for each in mine] == [
            (row, PLACES[row - 1]) for row in rows
        ], rule
    data = (tmp_path / "e.html").read_text()
    places, _ = json.JSONDecoder().raw_decode(data, data.index('"places":') + len('"places":'))
    assert [each[2] for each in places if each[3] is None] == [None for each in places if each[2] is None]


def test_a_delivery_in_another_crs_has_its_places_in_the_layer(plots, tmp_path):
    """The samples of such rows are not transformed; the layer takes the places of what was judged."""
    plots.settings["crs"] = {"accept": ["EPSG:3857"]}
    path = geoparquet(
        tmp_path / "m.parquet",
        {
            "pid": pa.array(["a", "b", "a"]),
            "lot": pa.array(["1", "2", "3"]),
            "use": pa.array(["x"] * 3),
            "geometry": [Point(556_597.454, 6_800_125.454), Point(556_600, 6_800_200), Point(556_597.454, 6_800_125.454)],
        },
        epsg=3857,
    )
    try:
        plots.write(path)
        merestone.check(plots.folder / "product.yaml", errors=tmp_path / "e.geojson")
    finally:
        del plots.settings["crs"]
        plots.write(plots.bad)
    drawn = json.loads((tmp_path / "e.geojson").read_text())["features"]
    (x, y), (x2, _) = [each["geometry"]["coordinates"] for each in drawn if each["properties"]["rule"] == "key_duplicate"]
    assert (round(x, 3), round(y, 1), x2) == (5.0, 52.0, x)


def test_a_row_without_geometry_has_no_place_and_its_neighbours_keep_theirs(plots, tmp_path):
    path = delivery(tmp_path / "n.parquet", ["a", "a", "b"], ["1", "2", "3"], [None, Point(5, 52), Point(6, 52)])
    (twice,) = [each for each in merestone.check(path, contract=plots.contract).findings if each.rule == "key_duplicate"]
    assert [(each.row, each.x, each.y) for each in twice.features] == [(1, None, None), (2, 5.0, 52.0)]


def test_held_rows_and_texts_that_differ_in_blanks_have_theirs(tmp_path):
    good = {f"p{n}": box(5 + n / 100, 52, 5.005 + n / 100, 52.01) for n in range(9)}
    made = Estate(tmp_path, FIELDS, key=["pid"], geometry_type="polygon").as_cases_run()
    made.settings["rejects"] = {"max_fraction": 0.5}

    def night(name, shapes, **uses):
        told = [uses.get(each, "home") for each in shapes]
        return delivery(tmp_path / name, list(shapes), [f"L{n}" for n in range(len(shapes))], list(shapes.values()), told)

    assert made.publish(night("1.parquet", good, p3="N/A")).status == "published"
    made.terms["semantics"] = {"use": {"null_means": "not known"}}
    made.stamp("v1.1.0")
    bow = Polygon([(5, 52), (6, 53), (6, 52), (5, 53)])
    found = made.publish(night("2.parquet", {**good, "p3": bow})).result.findings
    (held,) = [each for each in found if each.rule == "held_row"]
    assert [(each.id, round(each.x, 4), round(each.y, 4)) for each in held.features] == [("p3", 5.0325, 52.005)]
    del made.terms["semantics"]
    found = made.publish(night("3.parquet", good, p3="N/A", p5="home ")).result.findings
    (blanks,) = [each for each in found if each.rule == "blanks"]
    assert [(each.id, round(each.x, 4), round(each.y, 4)) for each in blanks.features] == [("p5", 5.0525, 52.005)]
