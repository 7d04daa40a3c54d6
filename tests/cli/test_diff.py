"""`diff`: what it prints, writes, and how it ends."""

import json
import re

import geopandas as gpd
import pyarrow as pa
import pytest
from shapely import Point

from cli.products import rows
from estate import geoparquet, save
from merestone.results.result import CLASSES, LABELS

CHANGE = {"p3": {"owner": "b"}, "p5": {"geometry": Point(5.1, 52.5)}, "p7": None, "p99": {"rank": 99}}


@pytest.fixture
def pair(tmp_path):
    return save(rows(), tmp_path / "a.gpkg"), save(rows(**CHANGE), tmp_path / "b.geojson")


def test_words_and_json_say_the_same(pair, merestone):
    doc = merestone("diff", *pair, "--json").doc
    assert doc["status"] == "compared"
    assert list(doc["delta"]) == [*CLASSES, *LABELS]
    assert {name: count for name, count in doc["delta"].items() if count} == {"added": 1, "changed": 2, "removed": 1}
    assert doc["unchanged"] == 37
    assert "keys" not in doc
    said = merestone("diff", *pair).out
    assert said.startswith(f"{pair[0]} to {pair[1]}: 1 added, 2 changed, 1 removed, 37 unchanged")
    assert "note       key: pid, unique and never null in 40 rows" in said


def test_keys_are_listed_on_demand(pair, merestone):
    keys = merestone("diff", *pair, "--keys", "--json").doc["keys"]
    assert {name: set(each) for name, each in keys.items() if each} == {"added": {"p99"}, "changed": {"p3", "p5"}, "removed": {"p7"}}
    assert "p99" in merestone("diff", *pair, "--keys").out


def test_options_reach_the_comparison(pair, merestone):
    doc = merestone("diff", *pair, "--key", "pid", "--ignore", "owner, rank", "--precision", "0", "--keys", "--json").doc
    assert doc["delta"]["changed"] == 0
    assert merestone("diff", *pair, "--key", "pid,rank", "--json").doc["delta"]["added"] == 1
    assert merestone("diff", *pair, "--key", "nothing", "--json").code == 2
    assert merestone("diff", *pair, "--layer", "nothing", "--json").code == 3


def test_the_change_is_written_as_geoparquet_text_and_page(pair, merestone, tmp_path):
    parquet, texts, page = tmp_path / "d.parquet", tmp_path / "d.geojsons", tmp_path / "d.html"
    doc = merestone("diff", *pair, "--out", parquet, "--html", page, "--json").doc
    assert (doc["out"], doc["html"]) == (str(parquet), str(page))
    feed = gpd.read_parquet(parquet).set_index("feature_id")
    assert dict(feed["class"]) == {"p3": "changed", "p5": "changed", "p7": "removed", "p99": "added"}
    assert (feed.loc["p3", "before"]["owner"], feed.loc["p3", "after"]["owner"]) == ("a", "b")
    assert merestone("diff", *pair, "--out", texts).out.endswith(f"written    {texts}\n")
    lines = [json.loads(line.removeprefix("\x1e")) for line in texts.read_text(encoding="utf-8").split("\n")[:-1]]
    assert {each["id"]: each["properties"]["class"] for each in lines} == dict(feed["class"])
    data = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", page.read_text(encoding="utf-8"), re.DOTALL)[1])
    assert data["totals"] == {"added": 1, "changed": 2, "removed": 1, "moved": 0}
    assert (data["before"], data["after"]) == (str(pair[0]), str(pair[1]))
    assert sorted(each["key"] for each in data["features"]) == ["p3", "p5", "p7", "p99"]


def test_without_a_change_the_files_are_empty(pair, merestone, tmp_path):
    out, page = tmp_path / "d.parquet", tmp_path / "d.html"
    assert merestone("diff", pair[0], pair[0], "--out", out, "--html", page).out.startswith(
        f"{pair[0]} to {pair[0]}: no change, 40 unchanged"
    )
    assert len(gpd.read_parquet(out)) == 0
    assert page.exists()


def test_what_cannot_be_compared_ends_with_1_and_says_why(pair, merestone, tmp_path):
    out = tmp_path / "d.parquet"
    ended = merestone("diff", *pair, "--key", "owner", "--out", out, "--json")
    assert (ended.code, ended.doc["status"], ended.doc["out"]) == (1, "refused", None)
    assert ended.doc["findings"][0]["rule"] == "key_duplicate"
    assert not out.exists()
    assert "cannot be compared" in merestone("diff", *pair, "--key", "owner").out


def test_a_format_that_cannot_be_written_is_told_before_anything_is_read(merestone):
    ended = merestone("diff", "nothing.gpkg", "nothing.gpkg", "--out", "d.gpkg", "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (2, "out")


def test_versions_are_compared_by_address(published, merestone):
    doc = merestone("diff", f"{published.file}@1", f"{published.file}@2", "--json").doc
    assert {name: count for name, count in doc["delta"].items() if count} == {"added": 1, "changed": 2, "removed": 1}
    assert merestone("diff", f"{published.url}@2", published.first, "--json").doc["delta"]["changed"] == 2
    assert merestone("diff", f"{published.url}@1", f"{published.url}@7", "--json").code == 2


def test_rows_that_are_not_compared_are_counted_and_make_the_exit_code(merestone, tmp_path):
    points = [Point(n, n) for n in range(4)]
    whole = geoparquet(tmp_path / "a.parquet", {"id": pa.array([1, 2, 3, 4]), "geometry": points})
    spoilt = geoparquet(tmp_path / "b.parquet", {"id": pa.array([1, 2, 2, None]), "geometry": points})
    ended = merestone("diff", whole, spoilt, "--key", "id", "--json")
    assert (ended.code, ended.doc["status"]) == (1, "compared")
    assert (ended.doc["not_compared"], ended.doc["unchanged"], ended.doc["delta"]["removed"]) == ({"before": 1, "after": 3}, 1, 2)
    same = merestone("diff", whole, whole, "--key", "id", "--json")
    assert (same.code, same.doc["not_compared"]) == (0, {"before": 0, "after": 0})
