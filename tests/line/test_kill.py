"""kill -9 at any moment of a publish: the old or the new version, whole, and the next run succeeds."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARDS = 2
CONTRACT = """
contract_version: v1.0.0-crs:EPSG:4326-res:1m
product_id: 3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10
crs_epsg: 4326
axis_order: lon_lat
geometry_type: point
coordinate_precision: 7
schema_fields:
  - {name: pid, type: string, nullable: false}
  - {name: district, type: string}
  - {name: v, type: integer}
freshness_sla_minutes: 1440
availability_target: 0.99
product_owner_id: steward@example.org
key: [pid]
extent: [9, 55, 11, 57]
"""
PUBLICATION = """
name: kills
contract: c.yaml
source: one.geojson
destination: out
partition: {by: column, column: district}
"""
OLD = {f"p{n}": n for n in range(40)}
NEW = {**{pid: v for pid, v in OLD.items() if pid != "p11"}, "p0": 100, "p1": 101, "p40": 40}


def export(path, rows):
    features = [
        {
            "type": "Feature",
            "properties": {"pid": pid, "district": f"D{v % 2}", "v": v},
            "geometry": {"type": "Point", "coordinates": [10 + int(pid[1:]) / 1000, 56]},
        }
        for pid, v in rows.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")


def start(folder, *how):
    """A server on a dataset of its own."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    (folder / "c.yaml").write_text(CONTRACT, encoding="utf-8")
    (folder / "p.yaml").write_text(PUBLICATION, encoding="utf-8")
    export(folder / "one.geojson", OLD)
    export(folder / "two.geojson", NEW)
    command = [
        sys.executable,
        Path(__file__).with_name("kill_server.py"),
        folder / "p.yaml",
        folder / "out",
        json.dumps(OLD),
        json.dumps(NEW),
        folder / "one.geojson",
        folder / "two.geojson",
        *how,
    ]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(servers, timeout):
    """What the servers told, once all of them have ended."""
    ended = [(server, *server.communicate(timeout=timeout)) for server in servers]
    assert [err for server, _, err in ended if server.returncode != 0] == []
    return [json.loads(line) for _, out, _ in ended for line in out.splitlines()]


@pytest.fixture(scope="module")
def kills(tmp_path_factory):
    """What every kill left, from as many servers as there are shards."""
    return lines([start(tmp_path_factory.mktemp(f"shard{shard}"), str(shard), str(SHARDS)) for shard in range(SHARDS)], timeout=600)


def test_every_kill_leaves_the_old_or_the_new_version(kills):
    assert [each for each in kills if each["seen"] not in ("old", "new")] == []
    assert {each["seen"] for each in kills} == {"old", "new"}, "both were seen"


def test_the_next_run_succeeds_and_records_every_attempt(kills):
    assert [each for each in kills if each["problem"] or each["after"] != "new"] == []


def test_every_state_of_each_kind_of_object_was_met(kills):
    """Nothing, an empty file, half of it, all of it without its name, and with both names."""
    met = {}
    for each in kills:
        met.setdefault(each["object"].split("/")[0], set()).add((each["call"], each["when"]))
    for name in ("data", "_changes", "_pages", "_lineage", "_manifests", "_intents", "_runs", "_current.json"):
        named = "replace" if name == "_current.json" else "link"
        states = {("open", "before"), ("write", "before"), ("write", "within"), (named, "before"), ("unlink", "before")}
        assert states <= met[name], name
    assert len(kills) >= 50


def test_readers_see_the_new_version_from_the_rename_of_the_pointer_on(kills):
    renames = {each["kill"] for each in kills if each["call"] == "replace"}
    assert len(renames) == 1
    (at,) = renames
    for each in kills:
        assert each["seen"] == ("new" if each["kill"] > at else "old"), each


def at_random(tmp_path, kills):
    told = lines([start(tmp_path, "random", str(kills))], timeout=20 * kills)
    assert sum(each["ended"] == -signal.SIGKILL for each in told) >= kills
    assert [each for each in told if each["seen"] not in ("old", "new") or each["problem"] or each["after"] != "new"] == []
    return told


def test_kills_at_random_times(tmp_path):
    at_random(tmp_path, 10)


@pytest.mark.soak
def test_five_hundred_kills_at_random_times(tmp_path):
    told = at_random(tmp_path, 500)
    assert {each["seen"] for each in told if each["ended"] == -signal.SIGKILL} == {"old", "new"}
