"""`changes`: what the two deliveries differ in, as words, JSON, a page, and files."""

import json
import re

import geopandas as gpd
import pytest
from shapely import Point, box, from_geojson

from cli.products import rows
from estate import save
from merestone.results.result import CLASSES, LABELS

CHANGED = {"p3", "p5"}


def test_the_last_step_is_told_by_default(published, merestone):
    doc = merestone("changes", published.file, "--json").doc
    assert (doc["from"], doc["to"], doc["unchanged"]) == (1, 2, 37)
    assert {name: count for name, count in doc["delta"].items() if count} == {"added": 1, "changed": 2, "removed": 1}
    assert list(doc["delta"]) == [*CLASSES, *LABELS]
    said = merestone("changes", published.url).out
    assert said.startswith("product v1 to v2: 1 added, 2 changed, 1 removed, 37 unchanged")
    assert "1 attributes, 1 geometry" in said
    assert f"next       merestone changes {published.url} --from 1 --to 2 --html v2.html" in said


def test_the_first_version_has_no_changes_before_it(product, merestone):
    """A night after the first one, without a change, must not hand on the whole dataset once more."""
    for _ in range(2):
        assert merestone("publish", product.file, "--source", product.first).code == 0
        said = merestone("changes", product.file)
        assert said.out.startswith("product v1 to v1: no change, 40 unchanged")
        assert "v1 is the first version" in said.err
    doc = merestone("changes", product.file, "--json").doc
    assert (doc["from"], doc["to"], doc["unchanged"], sum(value or 0 for value in doc["delta"].values())) == (1, 1, 40, 0)
    doc = merestone("changes", product.file, "--from", 0, "--json").doc
    assert (doc["from"], doc["to"], doc["delta"]["added"]) == (0, 1, 40)


def test_rekeyed_is_counted_in_pairs_by_every_command(product, merestone, tmp_path):
    product.settings["guard"] = {"max_changed_fraction": 1.0}
    product.write(product.first)
    renamed = [row | {"pid": f"q{row['rank']}"} if row["rank"] < 7 else row for row in rows()]
    save(renamed, product.second)
    copy, by_feed, feed = tmp_path / "copy.parquet", tmp_path / "by_feed.parquet", tmp_path / "feed.parquet"
    merestone("publish", product.file)
    for each in (copy, by_feed):
        assert merestone("read", product.file, "--out", each).code == 0
    commands = {
        "dry run": ["publish", product.file, "--source", product.second, "--dry-run"],
        "publish": ["publish", product.file, "--source", product.second],
        "changes": ["changes", product.file, "--out", feed],
        "folded": ["changes", product.file, "--from", 1],
        "filtered": ["changes", product.file, "--where", "rank < 3"],
        "diff": ["diff", product.first, product.second, "--key", "pid"],
        "apply": ["apply", product.file, "--onto", copy],
        "feed": ["apply", feed, "--onto", by_feed],
        "rollback": ["rollback", product.file, "--to", 1, "--reason", "test"],
        "back": ["changes", product.file],
        "log": ["log", product.file],
    }
    found = {}
    for name, words in commands.items():
        doc = merestone(*words, "--json").doc
        found[name] = (doc["versions"][0]["counts"] if name == "log" else doc["delta"])["rekeyed"]
    assert found == dict.fromkeys(commands, 7) | {"filtered": 3}
    assert len(merestone("changes", product.file, "--keys", "--json").doc["keys"]["rekeyed"]) == 14


def test_keys_are_listed_on_demand(published, merestone):
    keys = merestone("changes", published.file, "--keys", "--json").doc["keys"]
    assert {name: set(each) for name, each in keys.items() if each} == {"added": {"p99"}, "changed": CHANGED, "removed": {"p7"}}
    assert "p99" in merestone("changes", published.file, "--keys").out


def test_steps_are_folded_and_what_came_back_is_not_told(published, merestone):
    assert merestone("publish", published.file, "--source", published.first).code == 0
    assert sum(value or 0 for value in merestone("changes", published.file, "--from", 1, "--to", 3, "--json").doc["delta"].values()) == 0
    assert merestone("changes", published.file, "--from", 2, "--json").doc["delta"]["changed"] == 2
    first = merestone("changes", published.file, "--from", 0, "--to", 1)
    assert first.out.startswith("product, from nothing to v1: 40 added, 0 unchanged")


@pytest.mark.parametrize("arguments", [["--from", "2", "--to", "1"], ["--from", "7"], ["--to", "7"], ["--out", "x.gpkg"], ["--from", "x"]])
def test_what_cannot_be_is_wrong_usage(arguments, published, merestone):
    ended = merestone("changes", published.file, *arguments, "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (2, "usage")


def test_a_version_that_is_none_is_not_offered(published, merestone):
    ended = merestone("changes", published.file, "--from", 7)
    assert "has no version 7" in ended.err
    assert "--to 7" not in ended.err


def test_a_feed_as_geoparquet_holds_both_sides(published, merestone, tmp_path):
    out = tmp_path / "feed.parquet"
    assert merestone("changes", published.file, "--out", out, "--json").doc["out"] == str(out)
    feed = gpd.read_parquet(out).set_index("feature_id")
    assert feed.crs.to_epsg() == 4326
    assert feed["geometry_before"].geom_type is not None
    assert dict(feed["class"]) == {"p3": "changed", "p5": "changed", "p7": "removed", "p99": "added"}
    assert (feed.loc["p3", "before"]["owner"], feed.loc["p3", "after"]["owner"], list(feed.loc["p3", "fields"])) == ("a", "b", ["owner"])
    assert (feed.loc["p5", "geometry_before"], feed.loc["p5", "geometry"]) == (Point(5.05, 52), Point(5.1, 52.5))
    assert feed.loc["p5", "geometry_change"] == pytest.approx(0.502, abs=0.01)
    assert feed.loc["p99", "before"] is None
    assert feed.loc["p7", "after"] is None
    assert feed.loc["p7", "geometry"] is None


@pytest.mark.parametrize(("ending", "separator"), [("geojsons", "\x1e"), ("geojsonl", "")])
def test_a_feed_as_geojson_text_holds_both_sides(ending, separator, published, merestone, tmp_path):
    out = tmp_path / f"feed.{ending}"
    merestone("changes", published.file, "--out", out)
    lines = out.read_text(encoding="utf-8").split("\n")[:-1]
    assert all(line.startswith(separator + "{") for line in lines)
    feed = {each["id"]: each for each in (json.loads(line.removeprefix("\x1e")) for line in lines)}
    assert set(feed) == {"p3", "p5", "p7", "p99"}
    assert feed["p3"]["properties"]["after"] == {"pid": "p3", "owner": "b", "rank": 3, "area": "3.25"}
    assert feed["p7"]["geometry"] is None
    assert from_geojson(json.dumps(feed["p7"]["properties"]["geometry_before"])) == Point(5.07, 52)


def test_the_page_shows_old_and_new_of_what_changed(published, merestone, tmp_path):
    out = tmp_path / "v2.html"
    ended = merestone("changes", published.file, "--html", out, "--attribution", "Survey of Nowhere, CC BY 4.0", "--json")
    assert (ended.code, ended.doc["html"]) == (0, str(out))
    data = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", out.read_text(encoding="utf-8"), re.DOTALL)[1])
    shown = {each["key"]: each for each in data["features"]}
    assert (data["before"], data["after"], data["totals"]) == ("v1", "v2", {"added": 1, "changed": 2, "removed": 1, "moved": 0})
    assert data["attribution"] == "Survey of Nowhere, CC BY 4.0"
    assert shown["p3"]["fields"] == [["owner", "a", "b"]]
    assert shown["p3"]["same"]
    assert (shown["p5"]["same"], shown["p5"]["fields"]) == (False, [])
    assert ["owner", None, "a"] in shown["p99"]["fields"]
    assert ["owner", "a", None] in shown["p7"]["fields"]
    assert len(data["context"]) == 37


def test_a_page_that_cannot_be_written_is_a_store_fault(published, merestone, tmp_path):
    ended = merestone("changes", published.file, "--html", tmp_path / "nowhere" / "v2.html", "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (4, "store")


def test_a_version_of_the_address_belongs_to_from_and_to(published, merestone):
    ended = merestone("changes", f"{published.file}@1", "--json")
    assert (ended.code, ended.doc["error"]["hint"]) == (2, "leave out @1")


def classes(ended):
    return {name: set(each) for name, each in ended.doc["keys"].items() if each}


def test_a_filtered_feed_tells_what_crosses_its_edge(published, merestone, tmp_path):
    # p5 moves from (5.05, 52) to (5.1, 52.5); p3 has another owner, p7 is gone, p99 is new at (5, 52).
    ended = merestone("changes", published.file, "--bbox", "5.02,51,5.06,52.2", "--keys", "--json")
    assert classes(ended) == {"changed": {"p3"}, "removed": {"p5"}}
    assert ended.doc["unchanged"] == 3  # p2, p4 and p6
    assert classes(merestone("changes", published.file, "--bbox", "5.09,52.4,6,53", "--keys", "--json")) == {"added": {"p5"}}
    area = tmp_path / "area.geojson"
    gpd.GeoDataFrame(geometry=[box(5.09, 52.4, 6, 53)], crs=4326).to_file(area, engine="pyogrio")
    assert classes(merestone("changes", published.file, "--polygon", area, "--keys", "--json")) == {"added": {"p5"}}
    metres = tmp_path / "area.gpkg"
    gpd.GeoDataFrame(geometry=[box(5.09, 52.4, 6, 53)], crs=4326).to_crs(32631).to_file(metres, engine="pyogrio")
    assert classes(merestone("changes", published.file, "--polygon", metres, "--keys", "--json")) == {"added": {"p5"}}
    assert classes(merestone("changes", published.file, "--where", "owner = 'b'", "--keys", "--json")) == {"added": {"p3"}}
    assert classes(merestone("changes", published.file, "--where", "owner = 'a' and rank <= 7", "--keys", "--json")) == {
        "removed": {"p3", "p7"},
        "changed": {"p5"},
    }


def test_a_filtered_feed_is_written_and_drawn(published, merestone, tmp_path):
    out, page = tmp_path / "feed.parquet", tmp_path / "feed.html"
    assert merestone("changes", published.file, "--where", "owner = 'b'", "--out", out, "--html", page).code == 0
    feed = gpd.read_parquet(out).set_index("feature_id")
    assert dict(feed["class"]) == {"p3": "added"}
    assert (feed.loc["p3", "before"], feed.loc["p3", "after"]["owner"]) == (None, "b")
    assert '"kind":"added"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["--bbox", "1,2,3"], ["--where", "owner"], ["--where", "nothing = 1"], ["--where", "owner = 1"]])
def test_a_filter_that_is_none_is_wrong_usage(arguments, published, merestone):
    ended = merestone("changes", published.file, *arguments, "--json")
    assert (ended.code, ended.doc["error"]["field"].strip("-")) == (2, arguments[0].strip("-"))


def test_an_area_that_is_none_is_told(published, merestone, tmp_path):
    points = tmp_path / "points.geojson"
    gpd.GeoDataFrame(geometry=[Point(5, 52)], crs=4326).to_file(points, engine="pyogrio")
    assert merestone("changes", published.file, "--polygon", points, "--json").code == 2
    assert merestone("changes", published.file, "--polygon", tmp_path / "nothing.gpkg", "--json").code == 3
