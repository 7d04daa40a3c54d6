"""The committed reference pages are what the code makes, and tell of every command and of every name that --json prints."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


@pytest.mark.parametrize("page", generate.pages(), ids=lambda path: path.name)
def test_a_committed_page_is_what_the_code_makes(page):
    assert page.read_text(encoding="utf-8") == generate.pages()[page], "run `make docs`"


def test_every_command_is_documented():
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    told = re.findall(r"^## merestone (.+)$", text, re.MULTILINE)
    assert told == [name for name, _ in generate.commands()]
    assert set(told) == set(generate.JSON_NAMES)
    for name, command in generate.commands():
        part = text.partition(f"## merestone {name}\n")[2].partition("\n## ")[0]
        for each in command.params:
            assert getattr(each, "hidden", False) or each.opts[0] in part or each.metavar in part


def test_every_kind_of_error_is_documented():
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 130]


def test_every_command_prints_the_names_that_are_documented(published, merestone, tmp_path):
    file, root = published.file, published.url / "_lineage"
    (tmp_path / "events.ndjson").write_text("nonsense")
    (tmp_path / "schema.yaml").write_text("schema_version: 1.3.0\n")
    keyed = tmp_path / "keyed.contract.yaml"
    keyed.write_text(json.dumps({**json.loads(published.contract.read_text()), "key": ["pid"]}))
    calls = {
        "init": [published.first, "--out", tmp_path / "drafts"],
        "publish": [file],
        "check": [file],
        "diagnose": [published.first, "--contract", keyed],
        "diff": [published.first, published.second],
        "read": [file],
        "files": [file],
        "changes": [file],
        "apply": [file, "--from", "0", "--onto", tmp_path / "copy.gpkg"],
        "log": [file],
        "status": [file],
        "verify": [file],
        "rollback": [file, "--to", "1", "--reason", "test"],
        "contract lint": [published.contract],
        "contract schema": [],
        "contract show": [file],
        "contract infer": [published.first],
        "lineage summary": [file],
        "lineage why": [file, "p1"],
        "lineage iso19115": [file],
        "lineage scorecard": [file],
        "lineage history": [file, "p1"],
        "lineage rejects": [file],
        "lineage runs": [file],
        "lineage query": [file],
        "lineage check-complete": [file],
        "lineage ingest": [file, tmp_path / "events.ndjson"],
        "lineage retain": [file, "--window", "P6Y", "--basis", "b"],
        "lineage openlineage": [file],
        "lineage prov": [file],
        "lineage prove": [file, "p1"],
        "lineage evidence": [file, "--out", tmp_path / "evidence.zip"],
        "lineage validate-schema": [tmp_path / "schema.yaml"],
        "lineage check-partitions": ["--root", root],
    }
    assert set(calls) == set(generate.JSON_NAMES)
    for name, arguments in calls.items():
        ended = merestone(*name.split(), *arguments, "--json")
        assert tuple(json.loads(ended.out)) == generate.JSON_NAMES[name], name
