"""Every command of the how-to for auditors does what it says, typed one after the other."""

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.cli.main import root
from transcript import blocks

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "evidence.md"
EVENT = {
    "run_id": "upstream",
    "sequence": 1,
    "event_time_utc": "2026-01-01T00:00:00Z",
    "stage": "ocr",
    "event_type": "CAST",
    "feature_id": "p5",
    "source_crs": "EPSG:4326",
    "target_crs": "EPSG:4326",
    "outcome": "PASS",
}
MAPPING = """
mapping_version: 1
fields:
  run_id: {field: job}
  feature_id: {field: fid}
  event_time_utc: {field: ts}
  rejection_reason: {field: error}
  stage: {value: validate}
  source_crs: {value: "EPSG:4326"}
  target_crs: {value: "EPSG:4326"}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the dataset, and all files that the commands name."""
    made = Estate(tmp_path, FIELDS, geometry_type="point", key=["pid"]).agreed()
    first = [{**each, "pid": "0301-17/4"} if each["pid"] == "p0" else each for each in rows()]
    second = [{**each, "owner": "b"} if each["pid"] == "0301-17/4" else each for each in first]
    third = [{**each, "owner": "b"} if each["pid"] == "p5" else each for each in second]
    for number, given in enumerate((first, second, third)):
        monkeypatch.setattr("merestone.line.environment.now", lambda day=number + 1: datetime(2026, 1, day, tzinfo=UTC))
        assert made.publish(save(given, tmp_path / f"{number}.gpkg")).status == "published"
    (tmp_path / "product.yaml").rename(tmp_path / "parcels.yaml")
    (tmp_path / "upstream.ndjson").write_text(json.dumps(EVENT))
    (tmp_path / "rejects.log").write_text(json.dumps({"job": "j", "fid": 7, "ts": "2026-01-01T00:00:00Z", "error": "open ring"}))
    (tmp_path / "rejects.mapping.yaml").write_text(MAPPING)
    monkeypatch.chdir(tmp_path)
    return made


def typed(line):
    """What a line prints, typed in a shell of a Python where Merestone is installed."""
    words = shlex.split(line)
    if words[0] == "python":
        ended = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout
    ended = CliRunner().invoke(root, words[1:])
    assert ended.exit_code == 0, f"{line}: {ended.output}"
    return ended.output


def test_the_commands_of_the_guide(folder, monkeypatch):
    text = GUIDE.read_text(encoding="utf-8")
    known = {"RUN": folder.manifest(2).run_id, "ROOT": folder.manifest(2).lineage["root"]}
    said = {}
    for shown in filter(None, "\n".join(blocks(text, "sh")).splitlines()):
        line = re.sub("[A-Z0-9]{3,}", lambda found: known.get(found[0], found[0]), shown)
        if "retain" in line and "--window" in line:
            monkeypatch.setattr("merestone.line.environment.now", lambda: datetime(2100, 1, 1, tzinfo=UTC))
        printed = said[line] = typed(line)
        for name, pattern in (("SHA256", r"verify_lineage\.py \. (\w{64})"), ("TOKEN", r"--confirm (\S+)"), ("HOLD", r"^hold (\w+) keeps")):
            if found := re.search(pattern, printed, re.MULTILINE):
                known.setdefault(name, found[1])
    assert {"RUN", "ROOT", "SHA256", "TOKEN", "HOLD"} == set(known)
    told = "\n".join(said.values())
    for words in (
        "as v2 made it",
        "VERIFIED: 3 events of 0301-17/4",
        "is a valid record",
        "lineage is complete",
        "is whole",
        "kept by hold",
        "of lineage expired",
    ):
        assert words in told
    for name in (
        "rejects.ndjson",
        "scorecard.html",
        "scorecard.xml",
        "proof.json",
        "evidence.zip",
        "parcels.gmd.xml",
        "parcels.mdb.xml",
        "extended.xml",
        "run.ndjson",
        "run.json",
    ):
        assert (folder.folder / name).stat().st_size > 0 or name == "rejects.ndjson"
