from __future__ import annotations

import json
import re

import numpy as np
import pytest
import shapely

from merestone.render import map as pages
from merestone.render.map import ChangeMap, MapFeature, page
from merestone.render.sampling import Cells
from merestone.results.result import Counts


def wkb(text):
    return shapely.to_wkb(shapely.from_wkt(text))


def change(features, totals=None, **more):
    counts = totals or Counts(**{kind: sum(each.kind == kind for each in features) for kind in ("added", "changed", "removed", "moved")})
    return ChangeMap("roads", "v1", "v2", "EPSG:25832", features, counts, precision=3, **more)


def data(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def decoded(parts, doc):
    out = []
    for _, steps in parts:
        grid = np.cumsum(np.array(steps).reshape(-1, 2), axis=0)
        out.append(grid * doc["unit"] + np.array(doc["origin"]))
    return out


def test_geometry_survives_to_the_grid():
    line = "LINESTRING (500000.123 6100000.456, 500010 6100020.5)"
    area = (
        "POLYGON ((500000 6100000, 500010 6100000, 500010 6100010, 500000 6100000), "
        "(500004 6100001, 500006 6100001, 500006 6100003, 500004 6100001))"
    )
    doc = data(page(change([MapFeature("a", "changed", wkb(line), wkb(area), (("n", 1, 2),), (), 3.5)])))
    feature = doc["features"][0]
    assert np.allclose(decoded(feature["before"], doc)[0], shapely.get_coordinates(shapely.from_wkt(line)), atol=1e-9)
    assert [kind for kind, _ in feature["after"]] == [2, 2]
    assert np.allclose(np.vstack(decoded(feature["after"], doc)), shapely.get_coordinates(shapely.from_wkt(area)), atol=1e-9)
    assert feature["fields"] == [["n", 1, 2]]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("MULTIPOINT ((0 0), (1 1))", [0, 0]),
        ("GEOMETRYCOLLECTION (POINT (0 0), GEOMETRYCOLLECTION (MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))))", [0, 1, 1]),
        ("POINT Z (1 2 3)", [0]),
        ("POLYGON EMPTY", None),
    ],
)
def test_every_kind_of_geometry_is_drawn(text, kinds):
    feature = data(page(change([MapFeature("a", "added", None, wkb(text))])))["features"][0]
    assert (feature["after"] and [kind for kind, _ in feature["after"]]) == kinds


def test_a_geometry_that_did_not_change_is_written_once():
    point = wkb("POINT (1 2)")
    feature = data(page(change([MapFeature("a", "changed", point, point, (("n", 1, 2),))])))["features"][0]
    assert feature["same"] is True
    assert feature["after"] is None


def test_values_of_features_are_data_and_never_markup():
    evil = "</script><script>alert(1)</script><!-- @@SCRIPT@@ @@DATA@@ @@TITLE@@ \u2028"
    feature = MapFeature(evil, "changed", None, None, ((evil, evil, None),), (evil,))
    text = page(ChangeMap(evil, evil, evil, evil, [feature], Counts(changed=1), attribution=evil))
    assert "<script>alert" not in text
    assert text.count("<script") == 2
    assert data(text)["features"][0]["fields"] == [[evil, evil, None]]
    assert data(text)["name"] == evil


def test_the_page_asks_nothing_of_the_network():
    text = page(change([MapFeature("a", "added", None, wkb("POINT (1 2)"))]))
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", text)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b|https?://|@import|url\(", text)


def test_what_is_left_out_is_said_and_counted():
    some = [MapFeature("r", "removed", wkb("POINT (1 2)"), None)]
    cells = Cells(1.0, 2.0, 0.5, [[0, 0, 300, 1, 0]])
    doc = data(page(change(some, Counts(changed=300, removed=1), cells=cells)))
    assert doc["totals"]["changed"] == 300
    assert doc["cells"] == {"across": 64, "x": 1.0, "y": 2.0, "size": 0.5, "counts": [[0, 0, 300, 1, 0]]}
    assert doc["notes"] == [
        "Drawn are 1 of 301 touched features from every place. The numbers on the map count all of them. The file of changes holds each."
    ]
    assert data(page(change(some)))["cells"] is None


def test_outlines_are_simplified_only_beyond_the_budget_and_then_it_is_said(monkeypatch):
    circle = shapely.to_wkb(shapely.buffer(shapely.Point(0, 0), 100, quad_segs=400))
    features = [MapFeature("a", "changed", circle, circle), MapFeature("b", "added", None, circle)]
    assert data(page(change(features)))["notes"] == []
    monkeypatch.setattr(pages, "VERTICES", 1000)
    doc = data(page(change(features)))
    assert doc["notes"] == ["For the screen 2 outlines had to be simplified; the published geometry is not."]
    assert len(doc["features"][1]["after"][0][1]) < 400
    monkeypatch.setattr(pages, "VERTICES", 20)
    assert "2 features without an outline" in data(page(change(features)))["notes"][1]


def test_values_that_json_lacks_become_text():
    doc = data(
        page(
            change(
                [
                    MapFeature(
                        "a",
                        "changed",
                        None,
                        None,
                        (("big", 2**60, 2**53 - 1), ("nan", float("nan"), 1.5), ("bytes", b"\x01", True), ("list", ["x"], None)),
                    )
                ]
            )
        )
    )
    assert doc["features"][0]["fields"] == [
        ["big", str(2**60), 2**53 - 1],
        ["nan", "nan", 1.5],
        ["bytes", "1 byte 01", True],
        ["list", "['x']", None],
    ]
    assert doc["notes"] == ["Only in the list: 1 feature without geometry."]
