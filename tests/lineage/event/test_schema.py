"""The schema file is the single source: everything compiled from it says the same."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

from merestone.lineage.event.record import LineageEvent
from merestone.lineage.event.schema import (
    LINEAGE_ARROW_SCHEMA,
    SCHEMA,
    VERSION_KEY,
    LineageField,
    LineageSchema,
    check_evolution,
    read_schema,
    schema_text,
    validate_schema,
)

DOCS = Path(__file__).parents[3] / "docs" / "spec"
BEGIN, END = "<!-- fields: compiled from lineage_schema.yaml -->\n", "<!-- end of fields -->\n"
UTC = pa.timestamp("us", "UTC")
PROMISED = [
    ("event_id", pa.string(), True),
    ("run_id", pa.string(), True),
    ("sequence", pa.int64(), True),
    ("event_time_utc", UTC, True),
    ("stage", pa.string(), True),
    ("event_type", pa.string(), True),
    ("feature_id", pa.string(), True),
    ("source_crs", pa.string(), True),
    ("target_crs", pa.string(), True),
    ("outcome", pa.string(), True),
    ("strategy_index", pa.int32(), False),
    ("accuracy_m", pa.float64(), False),
    ("rejection_reason", pa.string(), False),
    ("tool_version", pa.string(), False),
    ("audit_tag", pa.string(), False),
    ("change_class", pa.string(), False),
    ("from_partition", pa.string(), False),
    ("to_partition", pa.string(), False),
    ("contract_version", pa.string(), False),
]
EVENT = {
    "event_id": "0" * 32,
    "run_id": "r1",
    "sequence": 1,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "validate",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:25832",
    "target_crs": "EPSG:4326",
    "outcome": "PASS",
}


def test_the_arrow_schema_has_the_promised_fields():
    assert [(each.name, each.type, not each.nullable) for each in LINEAGE_ARROW_SCHEMA] == PROMISED
    assert LINEAGE_ARROW_SCHEMA.metadata == {VERSION_KEY: b"1.3.0"}
    assert SCHEMA.partition_keys == ("run_id", "target_crs")


def test_json_schema_and_record_have_the_same_fields():
    compiled = SCHEMA.to_json_schema()
    assert list(compiled["properties"]) == [name for name, _, _ in PROMISED]
    assert compiled["required"] == [name for name, _, required in PROMISED if required]
    assert {*LineageEvent.__dataclass_fields__, "event_id"} == set(LINEAGE_ARROW_SCHEMA.names)
    for name, _, required in PROMISED:
        if name != "event_id":
            assert (LineageEvent.__dataclass_fields__[name].default is None) is not required


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"accuracy_m": None, "strategy_index": 0}, True),
        ({"outcome": "REJECT", "rejection_reason": "bow-tie"}, True),
        ({"outcome": "REJECT"}, False),
        ({"outcome": "REJECT", "rejection_reason": " "}, False),
        ({"rejection_reason": "why"}, False),
        ({"event_type": "REJECT"}, False),
        ({"outcome": "MAYBE"}, False),
        ({"stage": None}, False),
        ({"sequence": 1.5}, False),
        ({"colour": "red"}, False),
    ],
)
def test_json_schema_judges_events(change, good):
    checker = jsonschema.Draft202012Validator(SCHEMA.to_json_schema())
    assert checker.is_valid({**EVENT, **change}) is good


def test_documentation_is_compiled_from_the_schema():
    text = (DOCS / "lineage.md").read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == SCHEMA.to_markdown()
    assert json.loads((DOCS / "lineage.schema.json").read_text(encoding="utf-8")) == SCHEMA.to_json_schema()


@pytest.mark.parametrize(("version", "good"), [("1.3.0", False), ("1.3.1", False), ("1.4.0", True), ("1.2.0", False)])
def test_a_further_field_needs_a_minor_version_of_its_own(version, good):
    text = (
        schema_text().replace("schema_version: 1.3.0", f"schema_version: {version}") + "  - {name: colour, type: string, required: false}\n"
    )
    assert [each for each in validate_schema(text) if "needs a higher minor version" in each] == (
        [] if good else [f"fields are new, so schema_version needs a higher minor version than {min(version, '1.3.0')}; it is {version}"]
    )


def test_the_shipped_file_is_good_and_so_is_the_version_before_it():
    assert validate_schema(schema_text()) == []
    head, _, _ = schema_text().partition("  - name: change_class")
    assert validate_schema(head.replace("schema_version: 1.3.0", "schema_version: 1.2.0")) == []
    assert validate_schema(head) == [
        f"field {each} is gone (removed or renamed)" for each in ("change_class", "from_partition", "to_partition", "contract_version")
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("schema_version: 1.3.0", "schema_version: 1.3", "schema_version 1.3 is not a version of the form 1.2.0"),
        ("schema_version: 1.3.0", "schema_version: 2.0.0", "schema_version 2.0.0: this version of Merestone knows 1.3.0"),
        ("schema_version: 1.3.0\n", "", "key schema_version is missing"),
        ("partition_keys: [run_id, target_crs]", "partition_keys: [run_id, crs]", "partition key crs is not a field"),
        (
            "partition_keys: [run_id, target_crs]",
            "partition_keys: [run_id]",
            "partition_keys ['run_id']: they are ['run_id', 'target_crs']",
        ),
        ("type: int64", "type: integer", "field sequence: type 'integer' is none of"),
        ("type: int64", "type: int32", "field sequence turns from int64 to int32"),
        ("type: int64\n    required: true", "type: int64\n    required: false", "field sequence turns optional"),
        ("type: int64\n    required: true", "type: int64\n    required: maybe", "field sequence: required is neither true nor false"),
        ("type: int64\n    required: true", "type: int64\n    reqired: true", "field sequence: unknown key 'reqired'"),
        ("enum: [PASS, REJECT, WARN]", "enum: [PASS, REJECT]", "field outcome loses the values WARN"),
        ("name: audit_tag", "name: auditTag", "field auditTag: name 'auditTag' is not lower-case"),
        ("name: audit_tag", "name: tool_version", "field tool_version stands there twice"),
        ("name: audit_tag", "name: audit_note", "field audit_tag is gone (removed or renamed)"),
        ("fields:", "fields: {}\nrest:", "fields is not a list of fields"),
        ("fields:", "fields: [", "no readable YAML"),
    ],
)
def test_a_broken_file_is_named(old, new, problem):
    text = schema_text()
    assert old in text
    assert any(problem in each for each in validate_schema(text.replace(old, new, 1)))


@pytest.mark.parametrize("text", ["", "- a\n", "3"])
def test_something_else_is_no_schema(text):
    assert validate_schema(text) == ["the file is not a mapping with schema_version, partition_keys and fields"]
    with pytest.raises(ValueError, match="not a mapping"):
        read_schema(text)


OLD = LineageSchema(
    "1.3.0",
    ("run_id", "target_crs"),
    (
        LineageField("run_id", "string", True),
        LineageField("target_crs", "string", True),
        LineageField("level", "int32", False),
        LineageField("outcome", "string", True, enum=("PASS", "REJECT")),
        LineageField("note", "string", False),
    ),
)


def changed(name, /, **how):
    return replace(OLD, version="1.4.0", fields=tuple(replace(each, **how) if each.name == name else each for each in OLD.fields))


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        replace(OLD, version="1.3.1"),
        replace(OLD, version="1.4.0", fields=(*OLD.fields, LineageField("more", "string", False))),
        changed("level", type="int64"),
        changed("outcome", enum=("PASS", "REJECT", "WARN")),
        changed("note", meaning="clearer words"),
    ],
)
def test_evolution_that_keeps_old_files_readable_is_allowed(new):
    assert check_evolution(OLD, new) == []


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        (replace(OLD, fields=(*OLD.fields, LineageField("more", "string", False))), "needs a higher minor version than 1.3.0"),
        (replace(OLD, version="1.3.1", fields=(*OLD.fields, LineageField("more", "string", False))), "needs a higher minor version"),
        (replace(OLD, version="1.4.0", fields=(*OLD.fields, LineageField("more", "string", True))), "field more is new and required"),
        (replace(OLD, version="1.4.0", fields=OLD.fields[:-1]), "field note is gone"),
        (replace(OLD, version="1.4.0", fields=(*OLD.fields[:-2], *reversed(OLD.fields[-2:]))), "order of the fields changes"),
        (changed("note", name="remark"), "field note is gone"),
        (changed("level", type="float64"), "field level turns from int32 to float64"),
        (changed("note", required=True), "field note turns required"),
        (changed("run_id", required=False), "field run_id turns optional"),
        (changed("outcome", enum=("PASS",)), "loses the values REJECT"),
        (changed("note", enum=("a",)), "becomes restricted to a"),
        (replace(OLD, version="1.2.0"), "falls from 1.3.0 to 1.2.0"),
        (replace(OLD, version="2.0.0"), "another major version"),
        (replace(OLD, version="1.4.0", partition_keys=("run_id",)), "partition_keys"),
    ],
)
def test_evolution_that_breaks_readers_is_refused(new, problem):
    assert any(problem in each for each in check_evolution(OLD, new))


@pytest.mark.parametrize(
    "spelled",
    ["timestamp[us, tz=UTC]", "timestamp[us, UTC]", "timestamp[us,tz=UTC]", "Timestamp[us, tz=Etc/UTC]", "timestamp[us, tz=+00:00]"],
)
def test_a_type_may_be_spelled_as_arrow_does(spelled):
    text = schema_text().replace("timestamp[us, UTC]", spelled)
    assert spelled in text
    assert validate_schema(text) == []
    assert any("type" in each for each in validate_schema(text.replace(spelled, "timestamp[us, tz=CET]")))
