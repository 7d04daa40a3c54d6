"""The fixed names of the command line, and that its help costs nothing."""

import shlex
import subprocess
import sys

import click
import pytest

from kernels import on
from merestone import __version__
from merestone.cli.examples import EXAMPLES
from merestone.cli.family import Family
from merestone.cli.main import COMMANDS, LATER, root
from merestone.geometry import kernel

# docs/reference/cli.md: the fixed names of this version.
FIXED = {
    "init": {"--layer", "--crs", "--key", "--previous", "--owner", "--out"},
    "publish": {"--source", "--confirm", "--run-id", "--dry-run", "--json"},
    "check": {"--contract", "--layer", "--source", "--json", "--junit", "--sarif", "--html", "--errors"},
    "diagnose": {"--contract", "--json"},
    "diff": {"--key", "--contract", "--precision", "--ignore", "--json", "--keys", "--html", "--out"},
    "read": {"--bbox", "--columns", "--out", "--json"},
    "files": {"--as", "--json"},
    "changes": {"--from", "--to", "--html", "--out", "--json", "--bbox", "--polygon", "--where"},
    "apply": {"--from", "--to", "--onto", "--json"},
    "log": {"--json"},
    "status": {"--json"},
    "rollback": {"--to", "--reason", "--json"},
    "verify": {"--head", "--json"},
    "contract lint": {"--json"},
    "contract schema": {"--json"},
    "contract show": {"--json"},
    "contract infer": {"--layer", "--crs", "--key", "--previous", "--owner", "--out", "--json"},
    "lineage summary": {"--json"},
    "lineage why": {"--json"},
    "lineage validate-schema": {"--json"},
    "lineage check-partitions": {"--root", "--require-epsg-target"},
    "lineage iso19115": {"--encoding", "--out", "--run", "--json"},
    "lineage prove": {"--json"},
    "lineage evidence": {"--out"},
    "lineage history": {"--json"},
    "lineage rejects": {"--json"},
    "lineage runs": {"--json"},
    "lineage query": {"--json"},
    "lineage scorecard": {"--html", "--junit", "--json"},
    "lineage check-complete": {"--json"},
    "lineage ingest": {"--json"},
    "lineage retain": {"--json"},
    "lineage openlineage": {"--json"},
    "lineage prov": {"--json"},
    "lineage head": {"--out", "--json"},
}
LATER_NAMES = {
    "reclaim",
    "drift",
    "resort",
    "export",
    "audit",
    "serve",
    "contract export",
    "contract docs",
    "contract diff",
    "contract import",
    "contract publish",
    "contract list",
    "contract pin",
    "contract notices",
    "contract deprecate",
}


def find(name):
    command = root
    context = click.Context(root)
    for part in name.split():
        command = command.get_command(context, part)
        context = click.Context(command, parent=context)
    return command


@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_names_exist(name):
    command = find(name)
    spelt = {option for each in command.params for option in each.opts if isinstance(each, click.Option) and not each.hidden}
    assert spelt >= FIXED[name]
    assert "--json" in spelt
    assert not command.hidden


@pytest.mark.parametrize("name", FIXED)
def test_the_help_of_each_command_shows_a_call_that_it_takes(name, merestone):
    shown = merestone(*name.split(), "--help").out
    assert f"\n  Example:\n    {EXAMPLES[name]}\n" in shown, "on one line, ready to be copied"
    words = shlex.split(EXAMPLES[name].partition(" > ")[0])
    assert words[: 1 + len(name.split())] == ["merestone", *name.split()]
    command = find(name)
    with command.make_context(name, words[1 + len(name.split()) :]) as context:
        assert context.params


def test_every_command_has_an_example():
    context = click.Context(root, info_name="merestone")
    names = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        inner = command.list_commands(click.Context(command)) if isinstance(command, Family) else []
        names += [f"{name} {each}" for each in inner] or [name]
    assert set(names) == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(LATER_NAMES))
def test_names_of_later_versions_say_so_whatever_follows(name, merestone):
    for rest in ([], ["a", "b", "--to", "3", "--json"], ["--help"]):
        ended = merestone(*name.split(), *rest)
        assert ended.code == 2
        assert f"merestone {name}: not in this version" in ended.err
        assert "next: " in ended.err


def test_no_name_of_a_later_version_is_forgotten_or_works_by_now():
    families = {name: find(name) for name in COMMANDS if isinstance(find(name), Family)}
    known = {*LATER, *(f"{name} {sub}" for name, family in families.items() for sub in family.later)}
    assert known == LATER_NAMES
    assert not known & set(FIXED)


def test_help_lists_what_works_and_only_that(merestone):
    ended = merestone("--help")
    assert ended.code == 0
    listed = ended.out.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines() if line[2:3].isalpha()] == list(COMMANDS)
    assert "diff" not in merestone("contract", "--help").out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_tells_of_a_command_what_its_own_help_does(name):
    words = find(name).help.strip().partition("\n")[0]
    assert words.startswith(COMMANDS[name].words.rstrip("."))


def test_a_command_line_without_command_shows_the_help_and_is_wrong_usage(merestone):
    for name in ([], ["contract"], ["lineage"]):
        ended = merestone(*name)
        assert (ended.code, ended.out) == (2, "")
        assert "Commands:" in ended.err


def test_version(merestone):
    assert merestone("--version").out == f"merestone {__version__} ({kernel.path()})\n"
    with on("numpy"):
        assert "no compiled kernel" in merestone("--version").out


def test_help_loads_none_of_the_heavy_libraries():
    heavy = ("numpy", "pyarrow", "pyogrio", "pyproj", "shapely", "ruamel")
    probe = f"""
import sys
from merestone.cli.main import root
code = root.main(["--help"], standalone_mode=False)
sys.exit(code or " ".join(name for name in {heavy} if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["read", "files", "log", "status", "verify", "changes"])
def test_a_command_that_looks_does_not_load_what_publishes(name):
    probe = f"""
import sys
from importlib import import_module
from merestone.cli.main import root
import_module(root.lazy[{name!r}].module)
rooms = ("merestone.gate.feature", "merestone.change", "merestone.line.publish", "merestone.drafts")
sys.exit(" ".join(room for room in rooms if room in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_is_the_command(tmp_path):
    command = [sys.executable, "-m", "merestone.cli.main", "log", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("merestone: nowhere does not exist\n  next: ")


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_misspelt_command_is_told_with_the_one_that_is_meant(name, merestone):
    *family, last = name.split()
    ended = merestone(*family, last[:-2] + last[-1])
    assert ended.code == 2
    assert f"No such command '{last[:-2] + last[-1]}'. Did you mean '{last}'?" in ended.err
