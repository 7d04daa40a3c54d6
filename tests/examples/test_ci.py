"""The ready CI files: every command in them runs as it stands, and the hooks tell good from bad."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

from traps.parcels import good

ROOT = Path(__file__).parents[2]


def tree(name):
    return YAML(typ="safe").load((ROOT / name).read_text(encoding="utf-8"))


def commands(lines):
    """The command lines of a workflow that call merestone."""
    return [line for line in lines if line.startswith("merestone ")]


def github():
    steps = tree("examples/ci/github.yml")["jobs"]["check"]["steps"]
    return commands(step["run"] for step in steps if "run" in step)


def gitlab():
    return commands(tree("examples/ci/gitlab.yml")["contract"]["script"])


@pytest.fixture
def shell(tmp_path):
    """Runs a line of shell in a folder that holds parcels.gpkg and parcels.contract.yaml: (exit code, standard error)."""
    delivery, contract = good(28992).write(tmp_path, rows=slice(0, 50))
    contract.rename(tmp_path / "parcels.contract.yaml")
    good(28992).table.iloc[:50].to_file(tmp_path / "parcels.gpkg")
    delivery.unlink()
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "merestone").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m merestone.cli.main "$@"\n')
    (bin_folder / "merestone").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "CONTRACT": "parcels.contract.yaml",
        "DELIVERY": "parcels.gpkg",
    }

    def run(line):
        ended = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stderr

    run.folder = tmp_path
    return run


def installed():
    """What the workflows install, with the variables that they set."""
    steps = tree("examples/ci/github.yml")
    for lines, variables in (
        ([step.get("run", "") for step in steps["jobs"]["check"]["steps"]], steps["env"]),
        (tree("examples/ci/gitlab.yml")["contract"]["script"], tree("examples/ci/gitlab.yml")["contract"]["variables"]),
    ):
        for line in lines:
            if line.startswith("pip install "):
                yield os.path.expandvars(line.replace("$MERESTONE", variables["MERESTONE"])).removeprefix("pip install ").strip('"')


def test_the_workflows_install_from_the_repository():
    found = [Requirement(each.replace("REPOSITORY", "https://host/owner/merestone")) for each in installed()]
    assert [(each.name, each.url) for each in found] == [("merestone", "git+https://host/owner/merestone@v0.1.0")] * 2


def test_nothing_tells_anybody_to_install_a_package_that_no_index_has():
    told = re.compile(r"pip\d? install (?:-\S+ )*[\"']*merestone(?![ @]*@)")
    pages = [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *(each for folder in ("docs", "examples", "src") for each in (ROOT / folder).rglob("*.*")),
    ]
    for path in pages:
        if path.suffix in (".md", ".yml", ".yaml", ".py", ".html"):
            assert not told.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("lines", [github, gitlab])
def test_every_command_of_a_workflow_runs(shell, lines):
    found = lines()
    assert len(found) == 2
    for line in found:
        assert shell(line)[0] == 0, line
    assert (shell.folder / "findings.html").exists()
    assert (shell.folder / "findings.gpkg").exists()
    assert (shell.folder / "findings.xml").exists()


def test_a_broken_delivery_fails_the_workflow_and_still_leaves_its_reports(shell):
    broken = good(28992).table.iloc[:50].copy()
    broken.loc[3, "kind"] = "ODD"
    broken.to_file(shell.folder / "parcels.gpkg")
    code, said = shell(github()[1])
    assert code == 1
    assert "::error title=semantics.enum::" in said
    assert "ODD" in (shell.folder / "merestone.sarif").read_text()


def test_the_hooks_that_are_offered_are_those_that_the_example_uses(shell):
    offered = {each["id"]: each for each in tree(".pre-commit-hooks.yaml")}
    used = tree("examples/ci/pre-commit-config.yaml")["repos"][0]["hooks"]
    assert [each["id"] for each in used] == list(offered)
    lint = f"{offered['merestone-contract-lint']['entry']} parcels.contract.yaml"
    assert shell(lint)[0] == 0
    (shell.folder / "bad.contract.yaml").write_text("contract_version: 1\n")
    assert shell(f"{offered['merestone-contract-lint']['entry']} bad.contract.yaml parcels.contract.yaml")[0] != 0
    check = f"{offered['merestone-check']['entry']} parcels.gpkg --contract parcels.contract.yaml"
    assert used[1]["args"][1] == "--contract"
    assert shell(check)[0] == 0
