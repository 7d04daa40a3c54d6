"""`read`, `files`, `log`, `status`, `rollback` and `verify`, against what stands in the deliveries."""

import json
import os
import pty
import subprocess
import sys

import duckdb
import geopandas as gpd
import pyogrio
import pytest
from shapely import Point

from cli.products import FIELDS, rows
from estate import save


def delivered(path):
    """Key to row of a delivery, read without Merestone."""
    return {row["pid"]: row for row in gpd.read_file(path).to_dict("records")}


@pytest.mark.parametrize("ending", ["parquet", "geoparquet", "gpkg", "geojson", "json", "geojsons", "geojsonl"])
def test_read_writes_what_was_delivered_in_every_format(ending, published, merestone, tmp_path):
    out = tmp_path / f"out.{ending}"
    for version, source in ((1, published.first), (2, published.second)):
        ended = merestone("read", f"{published.file}@{version}", "--out", out, "--json")
        assert (ended.code, ended.doc["version"], ended.doc["features"], ended.doc["out"]) == (0, version, 40, str(out))
        frame = gpd.read_parquet(out) if "parquet" in ending else gpd.read_file(out)
        expected = delivered(source)
        assert frame.crs.to_epsg() == 4326
        assert sorted(frame["pid"]) == sorted(expected)
        for row in frame.to_dict("records"):
            wanted = expected[row["pid"]]
            assert (row["owner"], row["rank"], float(row["area"])) == (wanted["owner"], wanted["rank"], float(wanted["area"]))
            assert row["geometry"].equals_exact(wanted["geometry"], 1e-7)
    assert not [each for each in tmp_path.iterdir() if ".part" in each.name]


def test_read_takes_a_box_and_columns_and_the_geometry_always_comes(published, merestone, tmp_path):
    out = tmp_path / "out.parquet"
    ended = merestone("read", published.url, "--bbox", "5.0,51,5.035,52.1", "--columns", "rank", "--out", out, "--json")
    assert (ended.code, ended.doc["columns"]) == (0, ["rank", "geometry"])
    frame = gpd.read_parquet(out)
    assert list(frame.columns) == ["rank", "geometry"]
    assert sorted(frame["rank"]) == [0, 1, 2, 3, 99]


def test_a_pipe_gets_a_geojson_text_sequence(published, merestone):
    out = merestone("read", published.file).out
    texts = out.split("\x1e")[1:]
    assert len(texts) == 40
    assert all(text.endswith("\n") for text in texts)
    features = {each["id"]: each for each in map(json.loads, texts)}
    assert features["p3"]["properties"] == {"pid": "p3", "owner": "b", "rank": 3, "area": "3.25"}
    assert features["p5"]["geometry"] == {"type": "Point", "coordinates": [5.1, 52.5]}


def test_with_json_a_read_is_one_collection(published, merestone):
    out = merestone("read", published.file, "--json").out
    doc = json.loads(out)
    assert list(doc) == ["type", "name", "version", "features"]
    assert (doc["type"], doc["version"], len(doc["features"])) == ("FeatureCollection", 2, 40)


def test_geojson_in_another_crs_says_so(estate, merestone, tmp_path):
    other = estate(FIELDS, geometry_type="point", epsg=28992, precision=3)
    source = save(rows(1, p0={"geometry": Point(121033.704, 487000)}), tmp_path / "rd.gpkg", epsg=28992)
    other.write(source)
    assert merestone("publish", other.folder / "product.yaml").code == 0
    merestone("read", other.url, "--out", tmp_path / "rd.geojson")
    assert json.loads((tmp_path / "rd.geojson").read_text())["crs"]["properties"]["name"] == "urn:ogc:def:crs:EPSG::28992"
    assert pyogrio.read_info(tmp_path / "rd.geojson")["crs"] == "EPSG:28992"
    assert json.loads(merestone("read", other.url, "--json").out)["crs"]["type"] == "name"


def test_a_terminal_gets_a_preview(published):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "merestone.cli.main", "read", published.file]
    done = subprocess.run(command, stdout=slave, stderr=slave, check=False)
    os.close(slave)
    text = os.read(master, 1 << 16).decode().replace("\r\n", "\n")
    os.close(master)
    lines = text.splitlines()
    assert done.returncode == 0
    assert lines[0] == "product v2: 40 features, EPSG:4326"
    assert lines[1].split() == ["pid", "geometry", "owner", "rank", "area"]
    assert len(lines) == 13
    assert lines[-1] == f"first 10; all of them: merestone read {published.file} --out FILE"


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (["--bbox", "1,2,3"], 2, "bbox"),
        (["--bbox", "a,b,c,d"], 2, "bbox"),
        (["--bbox", "3,3,1,1"], 2, "bbox"),
        (["--columns", "nix"], 2, "nix"),
        (["--out", "out.xyz"], 2, "out"),
        (["--out", "nowhere/out.parquet"], 4, "nowhere/out.parquet"),
        (["--out", "nowhere/out.gpkg"], 4, "nowhere/out.gpkg"),
        (["--out", "nowhere/out.geojson"], 4, "nowhere/out.geojson"),
    ],
)
def test_a_read_that_cannot_be_names_the_option(arguments, code, field, published, merestone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = merestone("read", published.file, *arguments, "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (code, field)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_damaged_file_is_named_and_no_half_copy_stays(ending, published, merestone, tmp_path):
    *before, last = published.files()  # the schema of a version's files is read from the last of them
    victim = published.url / next(each for each in before if each.version == last.version).path
    victim.write_bytes(victim.read_bytes()[:-10])
    ended = merestone("read", published.file, "--out", tmp_path / f"out.{ending}", "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (6, "corrupt")
    assert victim.name in ended.doc["error"]["message"]
    assert merestone("read", published.file, "--json").doc["error"]["kind"] == "corrupt"
    assert merestone("read", published.file).code == 6
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("name", ["product.yaml@1", "published@1", "published@v1"])
def test_an_address_names_a_version(name, published, merestone):
    assert merestone("files", published.folder / name, "--json").doc["version"] == 1


def test_a_name_with_an_at_is_taken_whole_where_it_exists(published, merestone):
    other = published.folder / "published@1"
    published.url.rename(other)
    assert merestone("files", other, "--json").doc["version"] == 2
    assert merestone("files", f"{other}@1", "--json").doc["version"] == 1


@pytest.mark.parametrize("command", ["read", "files", "log", "status", "verify", "changes"])
@pytest.mark.parametrize("what", ["nowhere", "empty", "delivery", "contract", "s3", "version"])
def test_what_is_no_dataset_is_wrong_usage(command, what, published, merestone, tmp_path):
    (tmp_path / "empty").mkdir()
    name = {
        "nowhere": tmp_path / "nowhere",
        "empty": tmp_path / "empty",
        "delivery": published.first,
        "contract": published.contract,
        "s3": "s3://bucket/parcels",
        "version": f"{published.file}@77",
    }[what]
    ended = merestone(command, name, "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (2, "usage")
    assert ended.doc["error"]["hint"]


def test_files_lists_the_live_files_of_a_version(published, merestone):
    out = merestone("files", published.file).out.splitlines()
    assert out == [str(published.url / each.path) for each in published.files()]
    doc = merestone("files", f"{published.file}@1", "--json").doc
    assert [each["path"] for each in doc["files"]] == [each.path for each in published.files(1)]


def test_files_as_a_view_for_duckdb_shows_one_version(published, merestone):
    for version, source in ((1, published.first), (2, published.second)):
        sql = merestone("files", f"{published.file}@{version}", "--as", "duckdb").out
        with duckdb.connect() as database:
            database.execute(sql)
            assert set(database.execute('SELECT pid, owner, "rank" FROM product').fetchall()) == {
                (row["pid"], row["owner"], row["rank"]) for row in delivered(source).values()
            }


def test_files_as_a_vrt_names_every_live_file(published, merestone):
    doc = merestone("files", published.file, "--as", "vrt", "--json").doc
    assert all(each.path in doc["vrt"] for each in published.files())


def test_log_lists_the_versions_newest_first(published, merestone):
    doc = merestone("log", published.file, "--json").doc
    assert [(each["version"], each["features"], each["counts"]["added"]) for each in doc["versions"]] == [(2, 40, 1), (1, 40, 40)]
    lines = merestone("log", published.url).out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["v2", "v1"]


def test_status_tells_of_freshness_and_refused_nights(published, merestone, tmp_path):
    bad = save(rows(p3={"pid": None}), tmp_path / "bad.gpkg")
    assert merestone("publish", published.file, "--source", bad).code == 1
    doc = merestone("status", published.file, "--json").doc
    assert (doc["version"], doc["features"], doc["versions"]) == (2, 40, 2)
    assert [(each["status"], each["refused_by"]) for each in doc["since"]] == [("refused", "contract")]
    assert doc["live_bytes"] > 0 < doc["old_bytes"]
    said = merestone("status", published.file).out
    assert "refused by its contract" in said
    assert "1 run brought nothing" in said


def test_rollback_brings_the_old_rows_back_under_a_new_version_and_stops_the_same_delivery(published, merestone):
    before = published.rows(1)
    ended = merestone("rollback", published.file, "--to", "1", "--reason", "wrong export", "--json")
    assert (ended.code, ended.doc["status"], ended.doc["version"], ended.doc["to"]) == (0, "rolled_back", 3, 1)
    assert {name: count for name, count in ended.doc["delta"].items() if count} == {"added": 1, "changed": 2, "removed": 1}
    assert published.rows(3) == before
    assert published.records()[-1]["status"] == "rolled_back"
    assert published.records()[-1]["rollback"]["reason"] == "wrong export"
    stopped = merestone("publish", published.file, "--source", published.second, "--json")
    assert (stopped.code, stopped.doc["refused_by"], stopped.doc["findings"][0]["rule"]) == (1, "guard", "withdrawn")
    assert "rolled back: wrong export" in merestone("log", published.file).out
    assert merestone("verify", published.file).code == 0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--to", "2", "--reason", "x"], "to"),
        (["--to", "9", "--reason", "x"], "9"),
        (["--to", "1", "--reason", "  "], "reason"),
        (["--to", "0", "--reason", "x"], "to"),
        (["--to", "one", "--reason", "x"], "to"),
    ],
)
def test_a_rollback_that_cannot_be_leaves_nothing_behind(arguments, field, published, merestone):
    before = published.everything()
    ended = merestone("rollback", published.file, *arguments, "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (2, field)
    assert published.everything() == before


def test_verify_names_every_damage_and_exits_with_corrupt(published, merestone):
    whole = merestone("verify", published.file)
    assert whole.code == 0
    assert whole.out.startswith(f"{published.file} is whole: 2 versions")
    one, other = (published.url / each for each in (published.files()[0].path, published.manifest().changes.path))
    data = bytearray(one.read_bytes())
    data[10] ^= 1
    one.write_bytes(data)
    other.unlink()
    ended = merestone("verify", published.file, "--json")
    assert (ended.code, ended.doc["status"]) == (6, "damaged")
    assert {each["path"] for each in ended.doc["damages"]} == {str(each.relative_to(published.url)) for each in (one, other)}
    said = merestone("verify", published.url).out
    assert "DAMAGED" in said
    assert "next: " in said


def test_a_pointer_that_is_gone_is_corrupt_and_never_nothing_there(published, merestone):
    (published.url / "_current.json").unlink()
    for command in (["read"], ["log"], ["publish"]):
        name = published.file if command == ["publish"] else published.url
        assert merestone(*command, name, "--json").code == 6
    assert merestone("verify", published.url, "--json").code == 6
