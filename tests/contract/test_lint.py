"""Lint tells what cannot be enforced from what is merely careless, and counts the guesses."""

from __future__ import annotations

import copy

import pytest

from merestone.contract.contract import Contract
from merestone.contract.lint import RULES, lint
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml


def remarks(tree, level):
    contract = parse(tree)
    assert isinstance(contract, Contract), contract
    return {each.path: each for each in lint(contract) if each.level == level}


def with_field(tree, **field):
    out = copy.deepcopy(tree)
    out["schema_fields"].append({"name": "f", "type": "string"} | field)
    return out


def test_a_bare_contract_is_clean(bare):
    assert lint(parse(bare)) == ()


ERRORS = [
    ({"contract_version": "v1.0.0-crs:EPSG:5773-res:1m", "crs_epsg": 5773, "coordinate_precision": 2}, "crs_epsg", "no horizontal axes"),
    (
        {"contract_version": "v1.0.0-crs:EPSG:4326-res:1m", "crs_epsg": 4326, "coordinate_precision": 11},
        "coordinate_precision",
        "at most 10 decimals",
    ),
    ({"coordinate_precision": 8}, "coordinate_precision", "at most 7 decimals"),
    ({"key": ["parcel"]}, "key[0]", "did you mean parcel_id?"),
    ({"freshness_from": "sen"}, "freshness_from", "is not a field"),
    ({"freshness_from": "parcel_id"}, "freshness_from", "no freshness can be read"),
    ({"geometry": {"edges": "spherical"}}, "geometry.edges", "no meaning in EPSG:28992"),
    ({"geometry_type": "point", "topology_rule_set": "planar"}, "topology_rule_set", "no meaning for geometry_type point"),
    ({"geometry_type": "linestring", "topology_rule_set": "3d_solid"}, "topology_rule_set", "it judges polygon and multipolygon"),
    ({"topology_rule_set": "3d_solid"}, "topology_rule_set", "the contract has none"),
    (
        {
            "topology_rule_set": "planar",
            "geometry": {"edges": "spherical"},
            "crs_epsg": 4326,
            "contract_version": "v1.0.0-crs:EPSG:4326-res:1m",
        },
        "topology_rule_set",
        "great circles",
    ),
    ({"topology_rule_set": "planar", "geometry": {"noise": 0.05}}, "geometry.noise", "tear vertices apart"),
    (
        {"topology_rule_set": "planar", "topology_parameters": {"dangle_length": 1}},
        "topology_parameters.dangle_length",
        "says nothing about planar",
    ),
    ({"negative": {"max_features": 5, "feature_order": "key"}}, "negative.feature_order", "answers over HTTP keep it"),
    ({"negative": {"empty_result": "error"}}, "negative.empty_result", "answers over HTTP keep it"),
    ({"degradation": {"when_late": "previous"}}, "degradation.when_late", "is a promise that nothing in this version keeps"),
    ({"latency": {"p95_ms": 500}}, "latency.p95_ms", "the monitor observes it"),
]


@pytest.mark.parametrize(("change", "path", "words"), ERRORS)
def test_what_cannot_be_enforced_is_an_error(bare, change, path, words):
    found = remarks(bare | change, "error")
    assert list(found) == [path]
    assert words in f"{found[path].message} {found[path].hint}"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"type": "number"}, "a key is never a float"),
        ({"type": "list<string>"}, "cannot be a key"),
        ({"volatile": True}, "volatile or derived"),
        ({"type": "integer", "derived": {}}, "volatile or derived"),
    ],
)
def test_what_cannot_be_a_key(bare, field, words):
    found = remarks(with_field(bare | {"key": "f"}, **field), "error")
    assert words in found["key[0]"].message


def test_a_measure_must_exist(bare):
    tree = with_field(bare | {"geometry_type": "multipoint"}, type="number", derived={"measure": "length"})
    assert "a point has no length" in remarks(tree, "error")["schema_fields[1].derived.measure"].message


WARNINGS = [
    (
        {"semantics": {"parcel_id": {"null_means": "x"}}, "schema_fields": [{"name": "parcel_id", "type": "integer", "nullable": False}]},
        "semantics.parcel_id.null_means",
        "null means nothing",
    ),
    ({"contract_version": "v1.0.0-crs:EPSG:28992-res:5m"}, "coordinate_precision", "finer than the content can be known"),
    ({"contract_version": "v1.0.0-crs:EPSG:28992-res:0.5mm"}, "coordinate_precision", "coarser than the content"),
    ({"contract_version": "v1.0.0-crs:EPSG:26591-res:10cm", "crs_epsg": 26591}, "crs_epsg", "is deprecated"),
    (
        {"schema_fields": [{"name": "id", "type": "integer"}, {"name": "ID", "type": "integer"}]},
        "schema_fields[1].name",
        "differ in case only",
    ),
    ({"key": "parcel_id"}, "schema_fields[0]", "write nullable: false"),
    ({"geometry": {"z_precision": 2}}, "geometry.z_precision", "has no use for dimensions xy"),
    ({"extent": [0, 0, 5, 99_000_000]}, "extent", "far beyond the area of use"),
    (
        {"schema_fields": [{"name": "t", "type": "timestamp", "time_zone": "Europe/Oslo"}]},
        "schema_fields[0].time_zone",
        "an instant in UTC",
    ),
]


@pytest.mark.parametrize(("change", "path", "words"), WARNINGS)
def test_what_is_careless_is_a_warning(bare, change, path, words):
    found = [f"{each.message} {each.hint}" for each in lint(parse(bare | change)) if each.level == "warning" and each.path == path]
    assert any(words in each for each in found)
    assert not remarks(bare | change, "error")


@pytest.mark.parametrize(("resolution", "fits"), [("1mm", True), ("1m", True), ("0.9mm", False), ("1.1m", False)])
def test_the_ground_grid_lies_between_a_thousandth_and_the_resolution(bare, resolution, fits):
    bare["contract_version"] = f"v1.0.0-crs:EPSG:28992-res:{resolution}"
    assert ("coordinate_precision" not in remarks(bare, "warning")) == fits


def test_raster_clauses_stand_in_raster_contracts(bare):
    tree = bare | {"pixel": {"size": [1, 1]}}
    assert [each.message for each in lint(parse(tree)) if each.path == "pixel" and "rasters only" in each.message]
    tree["geometry_type"] = "raster"
    assert not [each.message for each in lint(parse(tree)) if each.path == "pixel" and "rasters only" in each.message]


def test_every_rule_can_fire(bare):
    trees = [bare | change for change, _, _ in (*ERRORS, *WARNINGS)]
    trees += [
        with_field(bare | {"key": "f"}, type="number"),
        with_field(bare | {"geometry_type": "point"}, type="number", derived={"measure": "area"}),
        bare | {"pixel": {"size": [1, 1]}},
        with_field(bare, type="number", unit="square_parsec"),
        with_field(bare, type="number", unit="mst"),
    ]
    contracts = [parse(tree) for tree in trees]
    for rule in RULES:
        assert any(list(rule.check(contract)) for contract in contracts), rule.words


@pytest.mark.parametrize(
    ("unit", "level", "words"),
    [
        ("square_parsec", "error", "square_parsec is not a known unit"),
        ("hectar", "error", "hectar is not a known unit"),
        ("mst", "warning", "mst has a prefix on a unit that is used without one"),
    ],
)
def test_units_that_nobody_knows_are_errors_and_odd_ones_warnings(bare, unit, level, words):
    found = [each for each in lint(parse(with_field(bare, type="number", unit=unit))) if each.path.endswith("unit")]
    assert [(each.level, each.message) for each in found] == [(level, words)]
    if unit == "hectar":
        assert found[0].hint == "did you mean hectare?"


def test_marks_are_counted_with_their_lines(bare):
    text = "\n".join(f"{key}: {value}" for key, value in bare.items() if key != "schema_fields")
    text = text.replace("axis_order: lon_lat", "axis_order: lon_lat  # confirm: guessed")
    document = read_yaml(f"{text}\nschema_fields:\n  - {{name: a, type: string}}  # confirm\n".encode(), "c.yaml")
    marks = [each for each in lint(parse(document), document) if each.level == "confirm"]
    assert [(each.path, each.line) for each in marks] == [("axis_order", 4), ("schema_fields[0]", 11)]
    assert [each.message for each in marks] == ["is a guess: guessed", "is a guess that waits for a person"]


def test_errors_come_first(bare):
    tree = bare | {"key": ["x"], "extent": [0, 0, 5, 99_000_000]}
    assert [each.level for each in lint(parse(tree))] == ["error", "warning"]
