"""The demo on the bundled exports, in a copy of the examples as a fresh clone has them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import merestone
from transcript import FENCE, UPDATE, blocks, environment, masked

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", root / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def printed(clone):
    ended = subprocess.run([sys.executable, clone / "examples" / "demo.py"], capture_output=True, encoding="utf-8", check=False, cwd=clone)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.fixture(scope="module")
def versions(printed, clone):
    assert printed
    ended = subprocess.run(
        ["merestone", "log", clone / "out" / "demo" / "streets", "--json"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env=environment(),
    )
    return {each["version"]: each for each in json.loads(ended.stdout)["versions"]}


def test_the_demo_publishes_three_versions_with_the_changes_that_are_real(versions):
    found = {number: {name: each["counts"][name] for name in ("added", "changed", "removed", "moved")} for number, each in versions.items()}
    assert found == {
        1: {"added": 2643, "changed": 0, "removed": 0, "moved": 0},
        2: {"added": 0, "changed": 7, "removed": 0, "moved": 0},
        3: {"added": 0, "changed": 2, "removed": 0, "moved": 0},
    }


def test_the_change_is_what_a_comparison_of_the_files_finds(clone, printed):
    """An independent judgement: the JSON of both files, without the column that is new in every export."""
    assert printed
    streets = merestone.open(clone / "out" / "demo" / "streets")
    for version, pair in ((2, ("2026-03-03", "2026-07-07")), (3, ("2026-07-07", "2026-08-17"))):
        before, after = (_roads(clone / "examples" / "cambridge" / "exports" / f"{day}.geojson.gz") for day in pair)
        assert before.keys() == after.keys()
        expected = {key for key in before if before[key] != after[key]}
        old, new = (
            streets.to_geodataframe(version=each).drop(columns="GlobalID").set_index("ID").sort_index() for each in (version - 1, version)
        )
        differs = ~((old == new) | (old.isna() & new.isna())).all(axis=1)
        assert set(old.index[differs]) == expected


def _roads(path):
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        features = json.load(handle)["features"]
    return {
        each["properties"]["ID"]: (
            {name: value for name, value in each["properties"].items() if name != "GlobalID" and value is not None},
            each["geometry"],
        )
        for each in features
    }


def test_every_road_has_a_new_guid_in_every_export(clone):
    march, july = (set(re.findall(rb'"GlobalID": *"([^"]+)"', _bytes(clone, day))) for day in ("2026-03-03", "2026-07-07"))
    assert len(march) == len(july) == 2643
    assert not march & july


def _bytes(clone, day):
    with gzip.open(clone / "examples" / "cambridge" / "exports" / f"{day}.geojson.gz") as handle:
        return handle.read()


@pytest.mark.parametrize(
    "said",
    [
        "schema.key_null           ID: 1 null key (row 2643 of the file)",
        "schema.extra              OBJECTID not in the contract",
        "schema.extra              Shape_Length not in the contract",
        "schema.column_type        last_edited_date: integer where date is agreed",
        "geometry.empty_geometry   geometry: row 2643 empty",
        "REFUSED by its contract. v3 stays current; nothing published.",
    ],
)
def test_the_export_of_june_is_refused_by_name(printed, said):
    assert said in printed


def test_the_refused_export_leaves_a_record_and_no_version(clone, versions):
    records = [json.loads(each.read_text(encoding="utf-8")) for each in (clone / "out" / "demo" / "streets" / "_runs").glob("*.json")]
    assert sorted(each["status"] for each in records) == ["published", "published", "published", "refused", "unchanged"]
    assert max(versions) == 3


def test_files_of_untouched_cells_are_the_same_files(clone, printed):
    assert printed
    streets = merestone.open(clone / "out" / "demo" / "streets")
    second, third = ({each.path for each in streets.files(number)} for number in (2, 3))
    assert (len(second), len(third), len(second & third)) == (8, 8, 7)


def test_the_map_pages_are_written_with_attribution(clone, printed):
    assert printed
    for name in ("v2.html", "v3.html"):
        page = (clone / "out" / "demo" / name).read_text(encoding="utf-8")
        assert "City of Cambridge, Massachusetts, GIS (PDDL 1.0)" in page
        assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", page)


def test_the_readme_shows_the_whole_demo_as_it_prints(printed):
    page = ROOT / "README.md"
    readme = page.read_text(encoding="utf-8")
    body = printed[printed.index("$ cd ") : printed.index("\nThe map pages are")]
    if UPDATE:
        starts = [body.index(each.splitlines()[0] + "\n") for each in blocks(readme, "console")]  # pictures stand between the blocks
        pieces = iter([body[start:end].strip("\n") for start, end in pairwise([*starts, len(body)])])
        page.write_text(
            FENCE.sub(lambda found: f"```console\n{next(pieces)}\n```" if found["language"] == "console" else found[0], readme),
            encoding="utf-8",
        )
    else:
        assert "\n\n".join(masked(each) for each in blocks(readme, "console")) == masked(body)


def test_the_demo_says_so_when_a_step_ends_otherwise(clone, tmp_path):
    root = tmp_path / "clone"
    shutil.copytree(clone / "examples", root / "examples")
    (root / "examples" / "cambridge" / "exports" / "2026-07-07.geojson.gz").unlink()
    ended = subprocess.run([sys.executable, root / "examples" / "demo.py"], capture_output=True, encoding="utf-8", check=False, cwd=root)
    assert ended.returncode == 1
    assert "This should have ended with exit code 0, and ended with 3." in ended.stderr


def test_the_contract_of_the_demo_has_nothing_left_to_confirm(clone):
    ended = subprocess.run(
        ["merestone", "contract", "lint", clone / "examples" / "cambridge" / "streets.contract.yaml", "--json"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env=environment(),
    )
    found = json.loads(ended.stdout)
    assert (found["status"], found["confirm"], found["errors"]) == ("pass", 0, 0)
