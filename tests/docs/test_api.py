"""Every public name of the library has an example, and every example runs and gives what it shows."""

from __future__ import annotations

import doctest
import importlib.util
import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import geopandas
import pyarrow as pa
import pytest
import shapely

import merestone
from merestone.api import lineage
from merestone.lineage.event import schema
from transcript import blocks, environment

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)
PUBLIC = dict(generate.public())


@pytest.fixture(scope="module")
def parcels(tmp_path_factory):
    """The folder that the examples speak of: two nights are published, the third is there."""
    folder = tmp_path_factory.mktemp("examples") / "parcels"
    shutil.copytree(ROOT / "examples" / "parcels", folder)
    shutil.copy(Path(schema.__file__).parent / "lineage_schema.yaml", folder)
    broken = json.loads((folder / "monday.geojson").read_text())
    broken["features"][1]["properties"]["parcel_id"] = None
    (folder / "broken.geojson").write_text(json.dumps(broken))
    for night in ("sunday", "monday"):
        assert merestone.publish(folder / "parcels.yaml", source=folder / f"{night}.geojson").status == "published"
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_that_runs(name, parcels, tmp_path, monkeypatch):
    example = generate.example_of(name, PUBLIC[name])
    assert example, f"{name} has no example"
    assert name.rpartition(".")[2] in example or not name.islower() or name.endswith("open_dataset")
    shutil.copytree(parcels, tmp_path / "parcels")
    monkeypatch.chdir(tmp_path / "parcels")
    names = {
        "merestone": merestone,
        "lineage": lineage,
        "geopandas": geopandas,
        "pyarrow": pa,
        "shapely": shapely,
        "datetime": datetime,
        "UTC": UTC,
    }
    test = doctest.DocTestParser().get_doctest(example, names, name, name, 0)
    assert test.examples
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_no_public_name_is_that_of_a_room():
    """`merestone.publish` has to stay the function, whatever was imported before: a room of that name would take its place."""
    rooms = {each.stem for each in (ROOT / "src" / "merestone").iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()}
    assert not rooms & set(merestone.__all__)


def test_every_example_of_a_name_is_of_a_public_one():
    assert set(generate.EXAMPLES_OF_TYPES) <= {each.rpartition(".")[2] for each in PUBLIC}


def test_the_script_of_the_guide_has_thirty_lines_and_runs(tmp_path):
    """A scheduler's task: it publishes, answers to the result, and reads into GeoPandas and DuckDB."""
    (script,) = (each for each in blocks((ROOT / "docs" / "how-to" / "use-in-python.md").read_text(encoding="utf-8"), "python"))
    assert len(script.strip().splitlines()) <= 30
    shutil.copytree(ROOT / "examples" / "parcels", tmp_path / "examples" / "parcels")
    (tmp_path / "nightly.py").write_text(script)
    nights = [("sunday", "published", 0), ("monday", "published", 0), ("monday", "unchanged", 0)]
    for night, status, code in nights:
        done = _run(tmp_path, f"examples/parcels/{night}.geojson")
        assert (done.returncode, status in done.stdout) == (code, True), done.stdout + done.stderr
    refused = json.loads((tmp_path / "examples/parcels/monday.geojson").read_text())
    refused["features"][0]["properties"]["parcel_id"] = None
    (tmp_path / "refused.geojson").write_text(json.dumps(refused))
    done = _run(tmp_path, "refused.geojson")
    assert done.returncode == 1
    assert "parcel_id" in done.stderr
    assert _run(tmp_path, "nowhere.geojson").returncode == 3


def _run(folder, delivery):
    command = [sys.executable, "-W", "error", "nightly.py", "examples/parcels/parcels.yaml", delivery]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
