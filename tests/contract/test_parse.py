"""Every problem of a contract is told at once, with its path and the next step; each clause refuses what the JSON Schema refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from merestone.contract.contract import Contract
from merestone.contract.definition import CONTRACT, DERIVED, FIELD, GEOMETRY, SEMANTICS
from merestone.contract.parse import parse
from merestone.contract.schema import json_schema
from merestone.document.forms import Group, Problem
from merestone.document.yaml_reader import read_yaml

D04 = Path(__file__).parent.parent / "cases" / "D04"
SCHEMA = jsonschema.Draft202012Validator(json_schema())


def problems(tree: Any) -> tuple[Problem, ...]:
    found = parse(tree)
    assert not isinstance(found, Contract)
    assert found
    return found


def only(tree: Any) -> Problem:
    (found,) = problems(tree)
    assert found.hint
    return found


def put(tree: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy with one value changed; ... removes it."""
    out = copy.deepcopy(tree)
    spot = out
    for step in path[:-1]:
        spot = spot[step]
    if value is ...:
        del spot[path[-1]]
    else:
        spot[path[-1]] = value
    return out


# --- the form of the clauses: the validator and the JSON Schema agree ------------------------------------------------------------------

MUTATIONS: list[tuple[tuple[str | int, ...], Any]] = [
    (("contract_version",), 1.2),
    (("contract_version",), "1.2.0"),
    (("contract_version",), ...),
    (("contract_version",), None),
    (("product_id",), "parcels"),
    (("product_id",), ...),
    (("crs_epsg",), "28992"),
    (("crs_epsg",), 0),
    (("crs_epsg",), 28992.5),
    (("crs_epsg",), True),
    (("crs_epsg",), ...),
    (("axis_order",), "xy"),
    (("axis_order",), ...),
    (("geometry_type",), "Polygon"),
    (("geometry_type",), ...),
    (("coordinate_precision",), 16),
    (("coordinate_precision",), -1),
    (("coordinate_precision",), ...),
    (("coordinate_precision",), "3"),
    (("schema_fields",), []),
    (("schema_fields",), {}),
    (("schema_fields",), ...),
    (("schema_fields", 0), "parcel_id"),
    (("schema_fields", 0, "name"), ...),
    (("schema_fields", 0, "name"), ""),
    (("schema_fields", 0, "name"), 1),
    (("schema_fields", 0, "type"), ...),
    (("schema_fields", 0, "type"), "int"),
    (("schema_fields", 0, "nullable"), "false"),
    (("schema_fields", 0, "nullable"), None),
    (("schema_fields", 0, "nulable"), False),
    (("schema_fields", 0, "unit"), 1),
    (("schema_fields", 0, "unit"), " "),
    (("schema_fields", 1, "pattern"), 5),
    (("schema_fields", 0, "pattern"), "x"),
    (("schema_fields", 1, "description"), ""),
    (("schema_fields", 1, "deprecated"), 1),
    (("schema_fields", 3, "time_zone"), "Europe Amsterdam"),
    (("schema_fields", 4, "volatile"), "yes"),
    (("schema_fields", 4, "unique"), 0),
    (("schema_fields", 2, "derived"), True),
    (("schema_fields", 2, "derived", "measure"), "volume"),
    (("schema_fields", 2, "derived", "unit"), 2),
    (("schema_fields", 2, "derived", "method"), "flat"),
    (("schema_fields", 2, "derived", "units"), "m"),
    (("schema_fields", 5, "crs_epsg"), ...),
    (("schema_fields", 5, "coordinate_precision"), ...),
    (("schema_fields", 5, "crs_epsg"), "4258"),
    (("schema_fields", 5, "coordinate_precision"), 99),
    (("schema_fields", 0, "crs_epsg"), 4258),
    (("schema_fields", 0, "decimals"), 2),
    (("schema_fields", 1, "digits"), 2),
    (("schema_fields", 2, "decimals"), 16),
    (("schema_fields", 2, "digits"), 0),
    (("schema_fields", 2, "noise"), 0.05),
    (("schema_fields", 9, "noise"), 0.5),
    (("schema_fields", 9, "digits"), 6),
    (("geometry", "noise"), 0.5),
    (("geometry", "max_vertex_loss"), 1.5),
    (("schema_fields", 2, "min"), []),
    (("schema_fields", 1, "max"), 5),
    (("schema_fields", 1, "min_length"), -1),
    (("schema_fields", 0, "max_length"), 5),
    (("schema_fields", 7, "min_items"), "two"),
    (("schema_fields", 1, "max_items"), 5),
    (("semantics", "owner_class", "open"), "yes"),
    (("min_features",), -1),
    (("max_features",), 0),
    (("geometry", "noise"), -0.1),
    (("schema_fields", 0, "coordinate_precision"), 3),
    (("freshness_sla_minutes",), -1),
    (("freshness_sla_minutes",), True),
    (("freshness_sla_minutes",), 1.5),
    (("freshness_sla_minutes",), ...),
    (("availability_target",), 0),
    (("availability_target",), 99.9),
    (("availability_target",), "0.9"),
    (("availability_target",), ...),
    (("product_owner_id",), "the team"),
    (("product_owner_id",), ...),
    (("topology_rule_set",), "flat"),
    (("topology_parameters", "gap_width"), -1),
    (("topology_parameters", "tolerance"), "1"),
    (("topology_parameters", "gap"), 1),
    (("topology_parameters",), 3),
    (("semantics",), []),
    (("semantics", "owner_class"), []),
    (("semantics", "owner_class", "enum"), []),
    (("semantics", "owner_class", "enum"), "A"),
    (("semantics", "owner_class", "enum", 0), None),
    (("semantics", "owner_class", "enum", 0), ["A"]),
    (("semantics", "owner_class", "null_means"), 1),
    (("semantics", "owner_class", "meaning"), None),
    (("semantics", "owner_class", "enums"), ["A"]),
    (("geometry",), "xy"),
    (("geometry", "nullable"), "no"),
    (("geometry", "empty"), None),
    (("geometry", "dimensions"), "xyt"),
    (("geometry", "z_precision"), 16),
    (("geometry", "m_precision"), -1),
    (("geometry", "edges"), "straight"),
    (("geometry", "direction"), "none"),
    (("geometry", "name"), ""),
    (("geometry", "dimension"), "xy"),
    (("name",), 7),
    (("name",), ""),
    (("description",), 7),
    (("key",), []),
    (("key",), 1),
    (("key",), ["a", "a"]),
    (("key",), [1]),
    (("key",), ""),
    (("extent",), [1, 2, 3]),
    (("extent",), ["1", 2, 3, 4]),
    (("extent",), "everywhere"),
    (("required_accuracy_m",), 0),
    (("required_accuracy_m",), "1 m"),
    (("freshness_from",), 1),
    (("latency",), 100),
    (("latency", "p50_ms"), 0),
    (("latency", "p95_ms"), "1"),
    (("latency", "p99_ms"), -1),
    (("latency", "p90_ms"), 1),
    (("bands",), {}),
    (("bands", 0, "name"), ...),
    (("bands", 0, "type"), "byte"),
    (("bands", 0, "type"), ...),
    (("bands", 0, "nodata"), "x"),
    (("bands", 0, "unit"), 1),
    (("bands", 0, "description"), 1),
    (("pixel", "size"), [1]),
    (("pixel", "size"), [0, 1]),
    (("pixel", "overviews"), [1]),
    (("negative", "feature_order"), "random"),
    (("negative", "max_features"), 0),
    (("negative", "antimeridian"), "cut"),
    (("negative", "empty_result"), 200),
    (("negative", "statements"), "none"),
    (("degradation", "when_late"), "old"),
    (("degradation", "when_late"), ...),
    (("degradation", "when_unavailable"), "old"),
    (("degradation", "label"), 1),
    (("degradation", "hold_minutes"), -1),
    (("deprecation", "since"), "soon"),
    (("deprecation", "since"), ...),
    (("deprecation", "until"), "2026-13-01"),
    (("deprecation", "replaced_by"), 2),
    (("deprecation", "reason"), 2),
    (("titel",), "x"),
    (("partitioning",), {"by": "h3"}),
]


def test_the_sound_contract_is_sound_to_both(sound, bare):
    assert isinstance(parse(sound), Contract)
    assert isinstance(parse(bare), Contract)
    SCHEMA.validate(sound)
    SCHEMA.validate(bare)
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize(("path", "value"), MUTATIONS)
def test_the_validator_and_the_schema_refuse_the_same(sound, path, value):
    spoilt = put(sound, path, value)
    assert not SCHEMA.is_valid(spoilt)
    found = problems(spoilt)
    step = next(each for each in reversed(path) if isinstance(each, str))
    assert any(step in problem.path for problem in found)
    assert all(problem.hint for problem in found)


def test_every_clause_is_spoilt_somewhere_above():
    def clauses(group: Group) -> set[str]:
        return {clause.name for clause in group.clauses}

    spoilt = {step for path, _ in MUTATIONS for step in path if isinstance(step, str)}
    for group in (CONTRACT, FIELD, DERIVED, SEMANTICS, GEOMETRY):
        assert clauses(group) <= spoilt


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("crs_epsg",), 28992.0),
        (("availability_target",), 1),
        (("schema_fields", 0, "unit"), None),
        (("key",), "parcel_id"),
        (("schema_fields", 0, "unit"), "none"),
        (("product_id",), "3F0C2A52-6A1E-4D0E-9A55-5D2C9D1B7E10"),
    ],
)
def test_both_accept_other_spellings(sound, path, value):
    varied = put(sound, path, value)
    SCHEMA.validate(varied)
    assert isinstance(parse(varied), Contract)


# --- what the contract becomes ---------------------------------------------------------------------------------------------------------


def test_defaults_are_those_of_the_page(bare):
    contract = parse(bare)
    assert isinstance(contract, Contract)
    (field,) = contract.schema_fields
    assert (field.nullable, field.unit, field.unique, field.volatile, field.derived) == (True, None, False, False, None)
    assert (contract.geometry.nullable, contract.geometry.empty, contract.geometry.dimensions) == (False, False, "xy")
    assert (contract.geometry.edges, contract.geometry.direction) == ("planar", "significant")
    assert contract.topology_rule_set == "none"
    assert contract.geometry_name == "geometry"


def test_names_are_nfc_everywhere(bare):
    bare["schema_fields"] = [{"name": "cafe\u0301", "type": "string"}]
    bare["semantics"] = {"cafe\u0301": {"enum": ["e\u0301"]}}
    bare["key"] = "cafe\u0301"
    contract = parse(bare)
    assert isinstance(contract, Contract)
    assert contract.field("caf\u00e9")
    assert contract.key == ("caf\u00e9",)
    assert contract.meaning("caf\u00e9").enum == ("\u00e9",)


@pytest.mark.parametrize(
    "name", ["geometry", "bbox", "select", "a.b", "..", "x y", 'q"uote', "'; drop table data; --", "line\nbreak", "\U0001f3e0", "%s", "{0}"]
)
def test_any_column_name_is_a_name(bare, name):
    bare["schema_fields"].append({"name": name, "type": "string"})
    contract = parse(bare)
    assert isinstance(contract, Contract)
    assert contract.field(name)
    assert contract.geometry_name != name


# --- all at once, with the next step ---------------------------------------------------------------------------------------------------


def test_all_problems_are_told_at_once(sound):
    del sound["product_id"]
    sound["crs_epsg"] = "28992"
    sound["schema_feilds"] = sound.pop("schema_fields")
    sound["geometry"]["dimension"] = sound["geometry"].pop("dimensions")
    paths = {problem.path: problem for problem in problems(sound)}
    assert {"product_id", "crs_epsg", "schema_feilds", "schema_fields", "geometry.dimension"} <= set(paths)
    assert paths["schema_feilds"].hint == "did you mean schema_fields?"
    assert paths["geometry.dimension"].hint == "did you mean dimensions?"


def test_a_broken_field_does_not_hide_the_faults_of_others(sound):
    sound["schema_fields"][0]["type"] = "int"
    sound["schema_fields"].append({"name": "guid", "type": "string"})
    assert {problem.path for problem in problems(sound)} == {"schema_fields[0].type", "schema_fields[10].name"}


def test_a_field_without_a_name_may_be_the_one_that_semantics_mean(sound):
    sound["schema_fields"][1]["name"] = 5
    assert {problem.path for problem in problems(sound)} == {"schema_fields[1].name"}


def test_internal_mechanisms_are_refused_with_an_explanation(bare):
    for key in ("storage_format", "index", "partitioning", "database", "Spatial-Index"):
        problem = only(bare | {key: "x"})
        assert "internal mechanism" in problem.message
    assert "publication file" in only(bare | {"partition": {"by": "h3"}}).message
    bare["schema_fields"][0]["index"] = True
    assert "internal mechanism" in only(bare).message


def test_problems_know_their_line():
    text = (D04 / "quoted.yaml").read_text().replace("crs_epsg: 4326", "crs_epsg: four").replace("axis_order", "axis_ordre")
    document = read_yaml(text.encode(), "c.yaml")
    assert [(problem.path, problem.line) for problem in problems(document)] == [("axis_order", 2), ("crs_epsg", 4), ("axis_ordre", 5)]


# --- D04: YAML that is not text --------------------------------------------------------------------------------------------------------


def test_d04_quoted_entries_are_text():
    contract = parse(read_yaml((D04 / "quoted.yaml").read_bytes(), "quoted.yaml"))
    assert isinstance(contract, Contract)
    assert contract.meaning("land_use").enum == ("NO", "SE", "DK", "ON", "1e3", "012", "12:30", "2024-01-01", "null", "~")


def test_d04_bare_entries_that_are_not_text_are_named():
    found = problems(read_yaml((D04 / "bare.yaml").read_bytes(), "bare.yaml"))
    assert [problem.path for problem in found] == [f"semantics.land_use.enum[{place}]" for place in (4, 5, 8, 9)]
    assert [problem.message.split(" is ")[0] for problem in found] == ["1e3", "012", "null", "~"]
    assert {problem.hint for problem in found} == {"put it in quotes"}


def test_d04_a_version_that_is_a_number():
    problem = only(read_yaml((D04 / "version_float.yaml").read_bytes(), "v.yaml"))
    assert problem.path == "contract_version"
    assert "1.20 is a number" in problem.message
    assert problem.line == 2


# --- laws ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "at", "words"),
    [
        (("crs_epsg",), 4258, "contract_version", "names EPSG:28992, but crs_epsg is 4258"),
        (("contract_version",), "v1.2.0-crs:EPSG:28992-res:0m", "contract_version", "a resolution of 0m is none"),
        (("schema_fields", 5, "crs_epsg"), 999999, "schema_fields[5].crs_epsg", "EPSG:999999 is not a CRS that PROJ knows"),
        (("schema_fields", 0, "name"), "guid", "schema_fields[4].name", "is already the name of schema_fields[0]"),
        (("schema_fields", 0, "name"), "shape", "geometry.name", "is already the name of schema_fields[0]"),
        (("schema_fields", 1, "pattern"), "(", "schema_fields[1].pattern", "is not a regular expression"),
        (("schema_fields", 1, "pattern"), "(?=a)(a+)+$", "schema_fields[1].pattern", "looks ahead"),
        (("semantics", "guid"), {"open": True}, "semantics.guid.open", "stands without an enum"),
        (("schema_fields", 2, "min"), "much", "schema_fields[2].min", "the field is of type number"),
        (("schema_fields", 0, "max"), 1.5, "schema_fields[0].max", "the field is of type integer"),
        (("schema_fields", 3, "min"), "2024-01-01T00:00:00Z", "schema_fields[3].min", "the field is of type timestamp_local"),
        (("schema_fields", 6, "max"), "1.234", "schema_fields[6].max", "the field is of type decimal(10,2)"),
        (("schema_fields", 7, "min"), 1, "schema_fields[7].min", "has no meaning for type list<string>"),
        (("schema_fields", 3, "time_zone"), "Europe/Amsterdm", "schema_fields[3].time_zone", "is not an IANA time zone"),
        (("schema_fields", 0, "time_zone"), "UTC", "schema_fields[0].time_zone", "has no meaning for type integer"),
        (("schema_fields", 7, "unique"), True, "schema_fields[7].unique", "cannot be judged for type list<string>"),
        (("schema_fields", 1, "derived"), {}, "schema_fields[1].derived", "has no meaning for type string"),
        (("semantics", "owner_clas"), {"meaning": "x"}, "semantics.owner_clas", "is not a field of schema_fields"),
        (("semantics", "attr"), {"enum": ["x"]}, "semantics.attr.enum", "cannot be judged for type struct"),
        (("semantics", "owner_class", "enum"), ["A", "A"], "semantics.owner_class.enum[1]", "repeats entry 0"),
        (("semantics", "tags", "enum"), [1], "semantics.tags.enum[0]", "is a number, but the field is of type list<string>"),
        (("semantics", "price", "enum"), ["1.505"], "semantics.price.enum[0]", "of type decimal(10,2)"),
        (("extent",), [278000, 306000, 13000, 620000], "extent", "has no inside"),
        (("topology_rule_set",), "none", "topology_parameters", "there is none"),
    ],
)
def test_laws(sound, path, value, at, words):
    problem = only(put(sound, path, value))
    assert problem.path == at
    assert words in problem.message


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["a", "1"], [1, True, None]),
        ("integer", [1, -(2**63)], [1.5, "1", True, 2**63]),
        ("number", [1, 1.5], ["1", True]),
        ("boolean", [True, False], [1, "true"]),
        ("date", ["2024-02-29"], ["2023-02-29", "20240229", 20240229, "2024-02-29T00:00"]),
        ("time", ["12:30", "12:30:01.5"], ["24:61", 750]),
        ("timestamp", ["2024-01-01T00:00:00Z"], ["2024-01-01T00:00:00", "x"]),
        ("timestamp_local", ["2024-01-01T00:00:00"], ["2024-01-01T00:00:00Z"]),
        ("decimal(4,2)", [1, "99.99", 1.5, "1e1"], ["100", "1.005", "x", True, "1e400", "NaN"]),
    ],
)
def test_members_of_a_code_list_are_of_the_fields_type(bare, kind, good, bad):
    bare["schema_fields"].append({"name": "f", "type": kind})
    assert isinstance(parse(bare | {"semantics": {"f": {"enum": good}}}), Contract)
    for value in bad:
        assert only(bare | {"semantics": {"f": {"enum": [value]}}}).path == "semantics.f.enum[0]"
