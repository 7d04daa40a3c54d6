"""The committed reference pages are what the code makes, and what the commands print keeps the schemas that are shipped."""

import dataclasses
import importlib.util
import json
import re
from pathlib import Path

import jsonschema
import pytest

from cli.products import rows
from estate import save
from merestone.api.schemas import CLASSES, json_schema
from merestone.results import json_form

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
    assert set(told) == {*CLASSES, "contract schema"}
    for name, command in generate.commands():
        part = text.partition(f"## merestone {name}\n")[2].partition("\n## ")[0]
        for each in (each for each in command.params if each.name not in generate.SHARED):
            assert getattr(each, "hidden", False) or each.opts[0] in part or each.metavar in part


def test_every_kind_of_error_is_documented():
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 70, 74, 130, 143]


def answers(published, tmp_path):
    """Calls of every command that give every kind of answer: command, arguments, exit code."""
    file, root = published.file, published.url / "_lineage"
    (tmp_path / "events.ndjson").write_text("nonsense")
    (tmp_path / "schema.yaml").write_text("schema_version: 1.3.0\n")
    (tmp_path / "record.xml").write_text('<gmd:MD_Metadata xmlns:gmd="http://www.isotc211.org/2005/gmd"/>')
    keyed = tmp_path / "keyed.contract.yaml"
    keyed.write_text(json.dumps({**json.loads(published.contract.read_text()), "key": ["pid"]}))
    nothing = tmp_path / "nothing.geojson"
    nothing.write_text('{"type": "FeatureCollection", "features": []}')
    bad = save(rows(p3={"pid": None}), tmp_path / "bad.gpkg")
    yield "init", [published.first, "--out", tmp_path / "drafts"], 0
    yield "publish", [file], 0  # a third version: as the first
    yield "publish", [file], 0
    yield "publish", [file, "--source", published.second, "--dry-run"], 0
    yield "publish", [file, "--source", bad], 1
    yield "publish", [file, "--source", nothing], 1
    yield "publish", [tmp_path / "nowhere.yaml"], 2
    yield "check", [file], 0
    yield "check", [bad, "--contract", keyed], 1
    yield "diagnose", [published.first, "--contract", keyed], 0
    yield "diagnose", [bad, "--contract", keyed], 1
    yield "diff", [published.first, published.second], 0
    yield "diff", [published.first, published.second, "--keys", "--html", tmp_path / "d.html", "--out", tmp_path / "d.parquet"], 0
    yield "diff", [published.first, bad, "--key", "pid"], 1
    yield "read", [file], 0
    yield "read", [file, "--out", tmp_path / "out.gpkg"], 0
    yield from (("files", [file, "--as", form], 0) for form in ("paths", "duckdb", "vrt"))
    yield "changes", [file], 0
    yield "changes", [file, "--from", "0", "--keys", "--html", tmp_path / "c.html"], 0
    yield "apply", [file, "--from", "0", "--onto", tmp_path / "copy.gpkg"], 0
    yield "apply", [file, "--from", "1", "--onto", tmp_path / "out.gpkg"], 0
    yield "log", [file], 0
    yield "status", [file], 0
    yield "verify", [file], 0
    yield "rollback", [file, "--to", "1", "--reason", "test"], 0
    yield "log", [file], 0
    yield "contract lint", [published.contract], 0
    yield "contract schema", [], 0
    yield "contract show", [file], 0
    yield "contract show", [published.contract], 0
    yield "contract infer", [published.first], 0
    yield "lineage summary", [file], 0
    yield "lineage why", [file, "p1"], 0
    yield "lineage iso19115", [file], 0
    yield "lineage iso19115", [file, "--out", tmp_path / "out.xml"], 0
    yield "lineage iso19115", ["--lint", tmp_path / "record.xml"], 1
    yield "lineage scorecard", [file], 0
    yield "lineage history", [file, "p1"], 0
    yield "lineage rejects", [file], 0
    yield "lineage runs", [file], 0
    yield "lineage query", [file], 0
    yield "lineage check-complete", [file], 0
    yield "lineage ingest", [file, tmp_path / "events.ndjson"], 1
    yield "lineage retain", [file, "--window", "P6Y", "--basis", "b"], 0
    yield "lineage retain", [file, "--hold", "all", "--reason", "court case"], 0
    yield "lineage openlineage", [file], 0
    yield "lineage prov", [file], 0
    yield "lineage head", [file], 0
    yield "lineage prove", [file, "p1"], 0
    yield "lineage evidence", [file, "--out", tmp_path / "evidence.zip"], 0
    yield "lineage validate-schema", [tmp_path / "schema.yaml"], 1
    yield "lineage check-partitions", ["--root", root], 0


def test_what_every_command_prints_keeps_its_schema(published, merestone, tmp_path):
    met = set()
    for name, arguments, code in answers(published, tmp_path):
        ended = merestone(*name.split(), *arguments, "--json")
        doc = json.loads(ended.out)
        assert ended.code == code, (name, arguments, ended.said)
        schema = json.loads((DOCS / "reference" / generate.schema_file("error" if code > 1 else name)).read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        faults = [f"{fault.json_path}: {fault.message[:200]}" for fault in jsonschema.Draft202012Validator(schema).iter_errors(doc)]
        assert not faults, (name, arguments, faults)
        met.add(name)
    assert met == {*CLASSES, "contract schema"}


@pytest.mark.parametrize("command", [*CLASSES, "error"])
def test_a_schema_is_strict_and_names_every_field(command):
    """A name that no schema has, and an object without one of its names, are refused."""
    schema = json_schema(command)
    for each in [schema, *schema.get("$defs", {}).values()]:
        if each.get("type") == "object" and "properties" in each:
            assert each["additionalProperties"] is False
            assert set(each["required"]) <= set(each["properties"])


@pytest.mark.parametrize("kind", sorted({kind for kinds in CLASSES.values() for kind in kinds}, key=lambda each: each.__name__))
def test_every_field_of_an_answer_is_described(kind):
    described = json_form.described(kind)
    assert set(described) == {each.name for each in dataclasses.fields(kind)}
    assert all(words.endswith(".") for words in described.values())
