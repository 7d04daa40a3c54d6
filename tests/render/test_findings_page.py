from __future__ import annotations

import json
import re

import shapely

from merestone.render import findings_page
from merestone.render.findings_page import ShownPlace, page
from merestone.results.finding import Finding
from merestone.results.result import CheckResult

SQUARE = shapely.to_wkb(shapely.box(0, 0, 2, 1))


def finding(rule="overlap"):
    return Finding("geometry", "geometry", rule, "error", "nothing", f"{rule} </script><b>bold</b>", 1)


def shown(places, *findings):
    text = page(CheckResult("a<b>.gpkg", "c.yaml", "fail", 3, findings or (finding(),)), places, crs="EPSG:28992", geographic=False)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return text, json.loads(found[1])


def test_places_carry_what_is_seen_and_the_outlines_of_their_features():
    _, data = shown([ShownPlace(0, "k1", 7, 1.5, 0.5, "a and b", (SQUARE, shapely.to_wkb(shapely.LineString([(0, 0), (3, 3)]))))])
    assert data["places"][0][:6] == [0, "k1", 7, 1.5, 0.5, "a and b"]
    assert [line[0] for line in data["places"][0][6]] == [1, 0]
    assert data["places"][0][6][1][1:] == [0, 0, 3, 3]
    assert (data["verdict"]["tone"], data["rows"], data["crs"]) == ("fail", 3, "EPSG:28992")


def test_no_value_becomes_markup_and_nothing_is_loaded():
    text, data = shown([ShownPlace(0, "<img src=x>", 1, 0.0, 0.0, "</script>")])
    assert data["findings"][0]["observed"].startswith("overlap </script>")
    assert "<b>bold" not in text
    assert "<img src=x>" not in text
    assert "<title>a&lt;b&gt;.gpkg: check</title>" in text
    assert not re.search(r"https?://", text)
    assert "default-src 'none'" in text


def test_where_there_are_too_many_each_finding_keeps_some(monkeypatch):
    monkeypatch.setattr(findings_page, "PLACES", 10)
    places = [ShownPlace(0, str(n), n, 0.0, 0.0, None) for n in range(50)] + [ShownPlace(1, "last", 1, 0.0, 0.0, None)]
    _, data = shown(places, finding(), finding("gap"))
    assert [each[0] for each in data["places"]] == [0] * 5 + [1]
    assert "6 of 51 places" in data["notes"][0]


def test_outlines_beyond_what_a_page_holds_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr(findings_page, "VERTICES", 5)
    _, data = shown([ShownPlace(0, "a", 1, 0.0, 0.0, None, (SQUARE,)), ShownPlace(0, "b", 2, 0.0, 0.0, None, (SQUARE,))])
    assert [each[6] is None for each in data["places"]] == [False, True]
    assert "1 place without an outline" in data["notes"][0]


def test_a_place_without_a_position_or_with_bad_bytes_stands_in_the_list():
    _, data = shown([ShownPlace(0, None, 4, None, None, "null key", (b"\x01\x02",))])
    assert data["places"] == [[0, None, 4, None, None, "null key", []]]
