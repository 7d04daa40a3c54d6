"""An answer as JSON, and the schema of that object: both come from the class."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import jsonschema
import pytest

from merestone.line.judging import change_verdict
from merestone.render import jsonout
from merestone.results import json_form, notebook
from merestone.results.finding import Finding, Sample
from merestone.results.result import ApplyResult, CheckResult, Counts, DiffResult, PublishResult

FINDING = Finding("crs", "geometry", "crs_missing", "error", "EPSG:4326", "none", 1, (Sample("a", 1, 2.0, 3.0, "x"),), "assert it")
FINDING_JSON = {
    "surface": "crs",
    "field": "geometry",
    "rule": "crs_missing",
    "severity": "error",
    "expected": "EPSG:4326",
    "observed": "none",
    "count": 1,
    "features": [{"id": "a", "row": 1, "x": 2.0, "y": 3.0, "observed": "x"}],
    "remedy": "assert it",
}
FIXED = (  # docs/spec of the command line: these names never change
    "status refused_by version features delivered delta unchanged rejected held files_written files_carried bytes_written run_id confirm findings"
)
DELTA = "added changed removed moved reversed rekeyed suppressed reprocessed backfilled refreshed"


class Pair(TypedDict):
    """Two numbers."""

    one: int
    other: float | None


@dataclass(frozen=True)
class Answer:
    """An answer with a field of every kind.

    Attributes:
        start: where it starts.
        kind: one of two words,
            over two lines.
        pairs: pairs.
        place: three things.
        named: by name.
        any: anything.
        keys: where they were asked for.
        seconds: for a person.
    """

    start: int = field(metadata=json_form.renamed("from"))
    kind: Literal["a", "b"] | None
    pairs: tuple[Pair, ...]
    place: tuple[str, int, float | None]
    named: Mapping[str, Sample]
    any: Any
    keys: tuple[str, ...] | None = field(default=None, metadata=json_form.when_set())
    seconds: float = field(default=1.0, metadata=json_form.PERSON)


ANSWER = Answer(3, None, ({"one": 1, "other": None},), ("x", 1, 2.5), {"s": Sample("a", 1)}, [1, "x"])


def test_the_object_has_the_fields_in_order_without_those_for_people():
    assert json_form.to_json(ANSWER) == {
        "from": 3,
        "kind": None,
        "pairs": [{"one": 1, "other": None}],
        "place": ["x", 1, 2.5],
        "named": {"s": {"id": "a", "row": 1, "x": None, "y": None}},
        "any": [1, "x"],
    }
    assert list(json_form.to_json(ANSWER)) == ["from", "kind", "pairs", "place", "named", "any"]


def faults(doc):
    schema = json_form.schema(Answer)
    jsonschema.Draft202012Validator.check_schema(schema)
    return [fault.json_path for fault in jsonschema.Draft202012Validator(schema).iter_errors(doc)]


def test_the_schema_takes_the_object_and_names_what_each_field_is():
    assert faults(json_form.to_json(ANSWER)) == []
    schema = json_form.schema(Answer)
    assert schema["properties"]["kind"] == {"description": "one of two words, over two lines.", "enum": ["a", "b", None]}
    assert schema["description"] == "An answer with a field of every kind."
    assert "seconds" not in schema["properties"]


@pytest.mark.parametrize(
    "change",
    [
        {"from": "x"},
        {"kind": "c"},
        {"pairs": [{"one": 1}]},
        {"pairs": [{"one": 1, "other": None, "more": 1}]},
        {"place": ["x", 1]},
        {"place": ["x", 1, 2.5, 3]},
        {"named": {"s": 1}},
        {"keys": None},
        {"more": 1},
    ],
)
def test_the_schema_refuses_another_object(change):
    assert faults(json_form.to_json(ANSWER) | change)


@pytest.mark.parametrize("name", ["from", "kind", "any"])
def test_the_schema_refuses_an_object_without_a_name(name):
    doc = json_form.to_json(ANSWER)
    del doc[name]
    assert faults(doc)


def test_publish_and_delta_have_the_fixed_names():
    names = [json_form.name_of(each) for each in json_form.fields(PublishResult)]
    assert set(FIXED.split()) <= set(names)
    assert list(Counts().to_json()) == DELTA.split()


def test_a_finding_is_its_fixed_names():
    assert FINDING.to_json() == FINDING_JSON
    assert json_form.to_json(CheckResult("d", "c", "fail", 3, (FINDING,)))["findings"] == [FINDING_JSON]


def test_diff_shows_keys_only_where_they_were_asked_for():
    assert "keys" not in json_form.to_json(DiffResult("a", "b", Counts(added=1), 0))
    assert json_form.to_json(DiffResult("a", "b", Counts(added=1), 0, keys={"added": ("x",)}))["keys"] == {"added": ["x"]}


def test_apply_says_from_and_to():
    doc = json_form.to_json(ApplyResult("p", 1, 2, "copy.gpkg", "applied", Counts(), 3, "a", "a"))
    assert (doc["from"], doc["to"]) == (1, 2)


def test_one_line_of_json_without_nan():
    assert json.loads(jsonout.dumps({"a": "é\n"})) == {"a": "é\n"}
    assert "\n" not in jsonout.dumps({"a": "é\n"})
    with pytest.raises(ValueError, match="Out of range float values"):
        jsonout.dumps({"a": float("nan")})
    with pytest.raises(TypeError, match="no form in JSON"):
        jsonout.dumps({"a": {1, 2}})


def test_a_notebook_shows_a_table_with_everything_escaped():
    evil = Finding("schema", "<script>alert(1)</script>", "enum", "error", "a", "b & c", 1)
    for value in (evil, CheckResult("<img src=x>", "c", "fail", 3, (evil,) * 30)):
        shown = value._repr_html_()
        assert shown.startswith("<table>")
        assert "<script" not in shown
        assert "<img" not in shown
        assert "http" not in shown
        assert "&lt;script&gt;" in shown
    assert "and 10 more" in CheckResult("d", "c", "fail", 3, (evil,) * 30)._repr_html_()
    assert "b &amp; c" in notebook.of(evil)


def test_every_count_is_made_by_the_line():
    """A count that nothing ever raises would say that there are none."""
    [made] = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(change_verdict._counts)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Counts"
    ]
    assert {each.arg for each in made.keywords if not isinstance(each.value, ast.Constant)} == set(DELTA.split())
