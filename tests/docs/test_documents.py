"""Documents say what is so: commands and options exist, links lead somewhere, YAML is accepted, Python runs, modules that are named are there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from merestone.cli.main import root
from merestone.publication.reader import read_publication
from transcript import FENCE, UPDATE, Session, blocks, environment, masked

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Generated pages have tests of their own.
PAGES = sorted(
    {
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "examples" / "cambridge" / "README.md",
        ROOT / "examples" / "parcels" / "README.md",
        *DOCS.rglob("*.md"),
    }
)
NAMES = [str(each.relative_to(ROOT)) for each in PAGES]
GUIDES = [each for each in PAGES if each.parent in (ROOT, DOCS, DOCS / "how-to")]


@pytest.fixture(params=PAGES, ids=NAMES)
def page(request):
    return request.param


# --- links -----------------------------------------------------------------------------------------------------------------------------

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _anchors(text):
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} leads nowhere"
        assert there.is_relative_to(ROOT), f"{target} leads out of the repository"
        if anchor:
            assert anchor in _anchors(there.read_text(encoding="utf-8")), f"{target}: no such heading"


def test_every_page_is_reached_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        here = waiting.pop()
        if here in seen or here.suffix != ".md":
            continue
        seen.add(here)
        waiting += [
            (here.parent / each.partition("#")[0]).resolve()
            for each in LINK.findall(here.read_text(encoding="utf-8"))
            if not each.startswith(("http", "#"))
        ]
    assert set(PAGES) <= seen


# --- commands --------------------------------------------------------------------------------------------------------------------------


def _said(text):
    """Every command line that a document shows, and whether it stands in a block, ready to be typed."""
    for language, before in (("sh", " *"), ("console", r"\$ ")):
        for body in blocks(text, language):
            yield from ((line, True) for line in re.findall(rf"^{before}(merestone .*)", body, re.MULTILINE))
    # In running text a command may be named without its values: `merestone changes --html`.
    yield from ((span.replace("\n", " "), False) for span in re.findall(r"`(merestone [^`]+)`", FENCE.sub("", text)))


def _check(line, *, whole=True):
    words = shlex.split(re.split(r" [|>]|2>| \.\.\.", line)[0], comments=True)[1:]
    group, name = root, "merestone"
    context = click.Context(root, info_name="merestone")
    while words and words[0].startswith("--"):
        assert words.pop(0) in _options(root)
    if not words:
        return
    while isinstance(group, click.Group) and words:
        name = words.pop(0)
        command = group.get_command(context, name)
        assert command is not None, f"there is no command {name}"
        context = click.Context(command, info_name=name, parent=context)
        group = command
    known = _options(group)
    for at, word in enumerate(words):
        if word.startswith("--"):
            assert word in known, f"{name} has no option {word}"
            assert not whole or not known[word] or at + 1 < len(words), f"{word} lacks its value"


def _options(command):
    """Options that are there today, with whether they take a value."""
    return {
        flag: not each.is_flag for each in command.params if isinstance(each, click.Option) and not each.hidden for flag in each.opts
    } | {"--help": False, "--version": False}


@pytest.mark.parametrize("guide", GUIDES, ids=[str(each.relative_to(ROOT)) for each in GUIDES])
def test_every_command_shown_exists_with_these_options(guide):
    for line, whole in _said(guide.read_text(encoding="utf-8")):
        try:
            _check(line, whole=whole)
        except AssertionError as fault:
            raise AssertionError(f"{line}: {fault}") from None


@pytest.mark.parametrize(
    "line",
    [
        "merestone publsh a.yaml",
        "merestone publish a.yaml --sorce b",
        "merestone contract lnt x",
        "merestone publish a.yaml --source",
    ],
)
def test_a_command_that_is_none_is_found(line):
    with pytest.raises((AssertionError, click.UsageError)):
        _check(line)


# --- YAML ------------------------------------------------------------------------------------------------------------------------------

CONTRACT = """\
contract_version: "v1.0.0-crs:EPSG:28992-res:1cm"
product_id: "fd4b6449-0e9d-413a-902e-4f6935c6c182"
product_owner_id: a@example.org
crs_epsg: 28992
axis_order: lon_lat
geometry_type: polygon
coordinate_precision: 3
freshness_sla_minutes: 1440
availability_target: 0.99
key: parcel_id
schema_fields:
  - {name: parcel_id, type: string, nullable: false}
"""
FRAGMENTS = [(str(each.relative_to(ROOT)), body) for each in GUIDES for body in blocks(each.read_text(encoding="utf-8"), "yaml")]


@pytest.mark.parametrize("body", [body for _, body in FRAGMENTS], ids=[f"{where}-{number}" for number, (where, _) in enumerate(FRAGMENTS)])
def test_yaml_is_accepted(body, tmp_path):
    yaml = YAML(typ="safe", pure=True)
    shown = yaml.load(body)
    contract = yaml.load(CONTRACT)
    publication = {"contract": "parcels.contract.yaml", "source": "export.gpkg", "destination": "./published/parcels"}
    if shown.keys() & contract.keys() - {"key"}:
        contract["schema_fields"] += shown.pop("schema_fields", [])
        contract |= shown
    else:
        publication |= shown
        if "key" in shown:
            del contract["key"]  # the two agree where both speak
    for name, tree in (("parcels.contract.yaml", contract), ("parcels.yaml", publication)):
        with (tmp_path / name).open("w", encoding="utf-8") as handle:
            YAML().dump(tree, handle)
    assert read_publication(str(tmp_path / "parcels.yaml")).notices == ()


# --- Python, and the tutorial ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The examples as a fresh clone has them, and one version as `make demo` begins."""
    there = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", there / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (there / "out" / "demo").mkdir(parents=True)
    return there


@pytest.fixture(scope="module")
def published(clone):
    subprocess.run(
        ["merestone", "publish", "streets.yaml", "--source", "exports/2026-03-03.geojson.gz"],
        cwd=clone / "examples" / "cambridge",
        env=environment(),
        check=True,
        capture_output=True,
    )
    return clone


PYTHON = [(each, body) for each in GUIDES for body in blocks(each.read_text(encoding="utf-8"), "python")]


@pytest.mark.parametrize(("where", "body"), PYTHON, ids=[f"{where.name}-{number}" for number, (where, _) in enumerate(PYTHON)])
def test_python_runs(where, body, published):
    folder = published / "examples" / "cambridge" if where.name == "tutorial.md" else published  # where its commands run
    subprocess.run([sys.executable, "-W", "error", "-c", body], cwd=folder, env=environment(), check=True)


def test_the_tutorial_shows_what_its_commands_print(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "out" / "demo").mkdir(parents=True)
    page = DOCS / "tutorial.md"
    text = page.read_text(encoding="utf-8")
    real = Session(tmp_path).document(text)
    if UPDATE:
        page.write_text(real, encoding="utf-8")
    else:
        assert [masked(each) for each in blocks(text, "console")] == [masked(each) for each in blocks(real, "console")]


# --- code ------------------------------------------------------------------------------------------------------------------------------


def test_the_walkthrough_names_every_room_and_only_modules_that_are_there():
    text = (DOCS / "walkthrough.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "merestone"
    rooms = {each.name for each in package.iterdir() if (each / "__init__.py").exists()} | {"errors"}
    assert rooms <= set(re.findall(r"`(\w+)`", text))
    for module in re.findall(r"`(\w+/\w+\.py)`", text):
        assert (package / module).exists(), module


def test_every_decision_is_listed():
    index = (DOCS / "adr" / "README.md").read_text(encoding="utf-8")
    assert {each.name for each in (DOCS / "adr").glob("0*.md")} == set(re.findall(r"\((0\d{3}-[\w-]+\.md)\)", index))


def test_every_make_target_is_explained():
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert named <= targets
    assert targets <= named | {"help", "clean"}
