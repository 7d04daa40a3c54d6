"""The scripts of the pages, run: what stands in the list, what is counted, and what is not drawn."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import shapely

from merestone.render import findings_page
from merestone.render import map as change_page
from merestone.render.findings_page import ShownPlace
from merestone.render.map import ChangeMap, MapFeature
from merestone.render.sampling import Cells
from merestone.render.scorecard import Thresholds
from merestone.render.scorecard import page as scorecard_page
from merestone.results.finding import Finding
from merestone.results.result import CheckResult, Counts

NODE = shutil.which("node")
runs = pytest.mark.skipif(NODE is None, reason="this machine has no node to run a page's script")
OVERLAP = Finding("geometry", "geometry", "overlap", "error", "no overlap", "2 overlaps", 2)
MISSING = Finding("schema", "", "missing", "error", "the agreed columns", "columns a, b are missing", 1)
WARNED = Finding("encoding", "", "driver", "warning", "silence", "the reader says x", 1)


@pytest.fixture
def run(tmp_path):
    def run(text):
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        dom = Path(__file__).with_name("dom.js")
        ended = subprocess.run([str(NODE), str(dom), str(path)], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return run


def findings(status, found, places):
    return findings_page.page(CheckResult("a.gpkg", "c.yaml", status, 3, found), places, crs="EPSG:28992", geographic=False)


def changes(**more):
    point = [shapely.to_wkb(shapely.Point(n, n)) for n in range(4)]
    features = [
        MapFeature("a", "added", None, point[0], (("n", None, 1),)),
        MapFeature("c", "changed", point[1], point[2], (("n", 1, 2),), (), 1.0),
        MapFeature("r", "removed", point[3], None),
    ]
    return change_page.page(ChangeMap("roads", "v1", "v2", "EPSG:25832", features, Counts(added=1, changed=40, removed=1), **more))


@runs
def test_places_are_called_by_what_is_known_of_them(run):
    places = [
        ShownPlace(0, "k1", 7, 1.0, 1.0, "k1 and k2"),
        ShownPlace(0, None, 8, 2.0, 2.0, "an overlap"),
        ShownPlace(0, None, None, 3.0, 3.0, "a gap"),
        ShownPlace(0, None, None, 4.0, 4.0, None),
        ShownPlace(1, None, None, None, None, "columns a, b are missing"),
    ]
    seen = run(findings("fail", (OVERLAP, MISSING), places))
    assert seen["items"] == ["k1 and k2", "row 8: an overlap", "a gap", "4, 4"]
    assert seen["list"].count("columns a, b are missing") == 1
    assert "null" not in seen["list"] + seen["title"]
    assert seen["body"] == []
    assert (seen["chosen"], seen["current"]) == ("1, 1", 1)


@runs
def test_there_is_no_map_where_nothing_has_a_place(run):
    for found, places in (
        ((MISSING,), [ShownPlace(0, None, None, None, None, "x")]),
        ((), []),
        ((OVERLAP,), [ShownPlace(0, "k", 2, None, None, "x")]),
    ):
        assert run(findings("fail" if found else "pass", found, places))["body"] == ["nowhere"]


@runs
@pytest.mark.parametrize(
    ("status", "found", "words"),
    [
        ("pass", (), "passes"),
        ("pass", (WARNED,), "passes"),
        ("pass", (OVERLAP, WARNED), "has rows that break its contract, no more than the publication allows"),
        ("fail", (OVERLAP,), "breaks its contract"),
        ("error", (), "could not be checked"),
    ],
)
def test_only_a_delivery_without_errors_passes(run, status, found, words):
    assert run(findings(status, found, []))["title"] == f"a.gpkg {words} \u00b7 3 rows \u00b7 c.yaml"


@runs
def test_a_change_is_listed_chosen_and_filtered_by_class(run):
    seen = run(changes())
    assert seen["items"] == ["addedaonly in the newer version", "changedcgeometry (1 m), n", "removedronly in the older version"]
    assert seen["chosen"].startswith("aadded")
    assert seen["without"]["items"] == 2
    assert seen["numbers"] == []


@runs
def test_cells_say_how_many_there_are_of_the_classes_shown(run):
    cells = Cells(0.0, 0.0, 0.05, [[0, 1, 30, 0, 0], [64 * 63 + 63, 0, 10, 1, 0]])
    seen = run(changes(cells=cells))
    assert seen["numbers"][-2:] == ["31", "11"]
    assert seen["without"]["numbers"][-2:] == ["30", "11"]
    assert "Drawn are 3 of 42" in seen["notes"]


def test_every_page_has_the_same_head_and_nothing_wider_than_a_telephone():
    pages = [findings("pass", (), []), changes(), scorecard_page("x", [], Thresholds())]
    heads = {text.partition("<title>")[0] for text in pages}
    assert len(heads) == 1
    (head,) = heads
    assert "width=device-width" in head
    assert "default-src 'none'" in head
    for text in pages:
        style = text.partition("<style>")[2].partition("</style>")[0]
        assert not re.search(r"(?<!max-)(?<!-)\bwidth:\s*(?:[2-9]\d|\d{3,})rem", style)
        assert "@@" not in text
