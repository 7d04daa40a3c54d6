"""One definition: every clause has an enforcer, and a delivery or a document that breaks it is refused, by `check` and by `publish` alike.

A clause that is added to the definition without a rule that enforces it, or without an entry here, fails the first tests.
"""

from __future__ import annotations

import copy
import json
from datetime import date, timedelta

import geopandas as gpd
import numpy as np
import pytest
import shapely

from estate import Estate
from merestone.cli.main import root
from merestone.contract.definition import CLAUSES, is_container
from merestone.contract.reference_page import reference
from merestone.document.forms import Clause, Text
from merestone.line.check import check as check_publication
from merestone.line.settings import CheckSettings
from merestone.publication.publication import CrsRule
from merestone.publication.reader import read_publication, with_source
from merestone.rules.catalogue import enforcers

ROWS = 300
SECOND = {"name": "entrance", "type": "geometry", "crs_epsg": 28992, "coordinate_precision": 2}
CONTRACT_TREE = {
    "contract_version": "v1.0.0-crs:EPSG:28992-res:1m",
    "product_id": "6b1f0a0e-2f55-4c6a-9d0e-0a8a2f6f4a11",
    "crs_epsg": 28992,
    "axis_order": "lon_lat",
    "geometry_type": "polygon",
    "coordinate_precision": 2,
    "schema_fields": [
        {"name": "id", "type": "integer", "nullable": False},
        {"name": "label", "type": "string", "unique": True, "pattern": "L[0-9]+", "min_length": 2, "max_length": 4},
        {"name": "use", "type": "string"},
        {"name": "area", "type": "number", "unit": "m2", "min": -10_000, "max": 4_000_000},
        {"name": "seen", "type": "date", "nullable": False},
        {"name": "tags", "type": "list<string>", "min_items": 1, "max_items": 2},
        SECOND,
    ],
    "semantics": {"use": {"enum": ["home", "shop"]}, "area": {"null_means": "not measured"}},
    "geometry": {"edges": "planar"},
    "key": ["id"],
    "extent": [150_000, 460_000, 170_000, 470_000],
    "freshness_sla_minutes": 2_880,
    "freshness_from": "seen",
    "availability_target": 0.99,
    "product_owner_id": "steward@example.org",
    "min_features": ROWS,
    "max_features": ROWS,
    "negative": {"max_features": ROWS},
}


def good():
    """Rows that keep the contract; the second geometry is a column of its own."""
    rng = np.random.default_rng(7)
    x, y = 155_000 + 40.0 * np.arange(ROWS) % 9_000, 463_000 + np.round(rng.random(ROWS) * 3_000, 2)
    size = np.round(10 + 10 * rng.random(ROWS), 2)
    shapes = shapely.box(x + 0.13, y, np.round(x + 0.13 + size, 2), np.round(y + size, 2))
    table = gpd.GeoDataFrame(
        {
            "id": np.arange(ROWS),
            "label": [f"L{n}" for n in range(ROWS)],
            "use": ["home", "shop", None] * (ROWS // 3),
            "area": np.round(shapely.area(shapes), 1),
            "seen": [date.today() - timedelta(days=n % 30 if n else 0) for n in range(ROWS)],  # noqa: DTZ011
            "tags": [["a", "b"][: 1 + n % 2] for n in range(ROWS)],
            "entrance": gpd.GeoSeries(
                shapely.box(np.round(x + 1.11, 2), np.round(y + 0.12, 2), np.round(x + 2.27, 2), np.round(y + 1.33, 2)), crs=28992
            ),
        },
        geometry=gpd.GeoSeries(shapes, crs=28992),
    )
    table.loc[5, "area"] = None
    return table


# --- deliveries that break a clause ----------------------------------------------------------------------------------------------------


def column(name, value, row=7):
    def change(table):
        table[name] = table[name].astype(object)
        table.loc[row, name] = value
        return table

    return change


def shape(value, row=7, column="geometry"):
    def change(table):
        shapes = np.array(table[column], dtype=object)
        shapes[row] = value
        table[column] = gpd.GeoSeries(shapes, crs=28992)
        return table

    return change


def moved(how, column="geometry"):
    def change(table):
        table[column] = gpd.GeoSeries(shapely.transform(np.array(table[column]), how), crs=28992)
        return table

    return change


def swapped(xy):
    return xy[:, ::-1]


def late(table):
    table["seen"] = date(2020, 1, 1)
    return table


def items(value, row=7):
    def change(table):
        table.at[row, "tags"] = value
        return table

    return change


def one_more(table):
    table = table.iloc[[*range(ROWS), 0]].reset_index(drop=True)
    table.loc[ROWS, ["id", "label"]] = [ROWS, f"L{ROWS}"]
    return table


def beside(table, row, x):
    """A row as a square of ten metres at some x, south of all others."""
    return shape(shapely.box(x, 461_000, x + 10, 461_010), row)(table)


HIGH = shapely.box(155_000, 463_000, 155_010, 463_010)
NEW = {"numbers": {"type": "number"}, "solid": shapely.force_3d(HIGH, 4.0)}
BREACHES = {
    ("crs_epsg",): (lambda table: table.to_crs(4326), ("crs", "crs", "crs_mismatch")),
    ("axis_order",): (moved(swapped), ("crs", "geometry", "axis_order")),
    ("geometry_type",): (shape(shapely.Point(155_000, 463_000)), ("geometry", "geometry", "geometry_type")),
    ("coordinate_precision",): (moved(np.round), ("geometry", "geometry", "precision")),
    ("schema_fields",): (lambda table: table.assign(extra=1), ("schema", "extra", "extra")),
    ("schema_fields", "name"): (lambda table: table.rename(columns={"use": "usage"}), ("schema", "use", "missing")),
    ("schema_fields", "type"): (lambda table: table.assign(area="large"), ("schema", "area", "column_type")),
    ("schema_fields", "nullable"): (column("seen", None), ("schema", "seen", "null")),
    ("schema_fields", "unit"): (lambda table: table.assign(area=table["area"] / 10_000), ("semantics", "area", "unit")),
    ("schema_fields", "unique"): (column("label", "L3"), ("schema", "label", "unique")),
    ("schema_fields", "pattern"): (column("label", "77"), ("schema", "label", "pattern")),
    ("schema_fields", "min"): (column("area", -10_000.5), ("schema", "area", "range")),
    ("schema_fields", "max"): (column("area", 4_000_001.0), ("schema", "area", "range")),
    ("schema_fields", "min_length"): (column("label", "L"), ("schema", "label", "length")),
    ("schema_fields", "max_length"): (column("label", "L1234"), ("schema", "label", "length")),
    ("schema_fields", "min_items"): (items([]), ("schema", "tags", "items")),
    ("schema_fields", "max_items"): (items(["a", "b", "c"]), ("schema", "tags", "items")),
    ("min_features",): (lambda table: table.iloc[:-1], ("schema", "min_features", "min_features")),
    ("max_features",): (one_more, ("schema", "max_features", "max_features")),
    ("schema_fields", "crs_epsg"): (moved(swapped, "entrance"), ("crs", "entrance", "axis_order")),
    ("schema_fields", "coordinate_precision"): (moved(lambda xy: np.round(xy, 0), "entrance"), ("geometry", "entrance", "precision")),
    ("freshness_sla_minutes",): (late, ("service", "seen", "freshness")),
    ("freshness_from",): (late, ("service", "seen", "freshness")),
    ("semantics",): (column("use", "mine"), ("semantics", "use", "enum")),
    ("semantics", "enum"): (column("use", "mine"), ("semantics", "use", "enum")),
    ("semantics", "null_means"): (column("area", -9999.0), ("semantics", "area", "null_convention")),
    ("geometry",): (shape(None), ("geometry", "geometry", "null_geometry")),
    ("geometry", "nullable"): (shape(None), ("geometry", "geometry", "null_geometry")),
    ("geometry", "empty"): (shape(shapely.Polygon()), ("geometry", "geometry", "empty_geometry")),
    ("geometry", "dimensions"): (shape(NEW["solid"]), ("geometry", "geometry", "z_dropped")),
    ("geometry", "edges"): (lambda table: table, ("geometry", "geometry", "edges")),
    ("key",): (column("id", 8), ("schema", "id", "key_duplicate")),
    ("extent",): (shape(shapely.box(200_000, 463_000, 200_010, 463_010)), ("geometry", "geometry", "extent")),
    ("required_accuracy_m",): (lambda table: table.to_crs(4326), ("crs", "crs", "no_operation")),
    ("negative",): (one_more, ("schema", "negative.max_features", "max_features")),
    ("negative", "max_features"): (one_more, ("schema", "negative.max_features", "max_features")),
    ("topology_rule_set",): (shape(shapely.box(155_000, 463_000, 164_000, 466_000)), ("geometry", "geometry", "overlap")),
    ("topology_parameters",): (shape(shapely.box(155_000, 463_000, 164_000, 466_000)), ("geometry", "geometry", "overlap")),
    ("topology_parameters", "tolerance"): (shape(shapely.box(155_000, 463_000, 164_000, 466_000)), ("geometry", "geometry", "overlap")),
    ("topology_parameters", "gap_width"): (
        lambda table: beside(beside(table, 7, 160_000.0), 8, 160_010.5),
        ("geometry", "geometry", "gap"),
    ),
    ("topology_parameters", "dangle_length"): (None, ("geometry", "geometry", "dangle")),
    ("negative", "antimeridian"): (None, ("geometry", "geometry", "antimeridian")),
}
SETTINGS = {
    ("required_accuracy_m",): {"required_accuracy_m": 1e-9},
    ("topology_rule_set",): {"topology_rule_set": "planar"},
    ("topology_parameters",): {"topology_rule_set": "planar", "topology_parameters": {"tolerance": 0.1}},
    ("topology_parameters", "tolerance"): {"topology_rule_set": "planar", "topology_parameters": {"tolerance": 0.1}},
    ("topology_parameters", "gap_width"): {"topology_rule_set": "planar", "topology_parameters": {"gap_width": 1.0}},
}

AGAINST_LAST = {("geometry", "max_vertex_loss")}
"""Clauses that only a delivery after another one can break: `test_fineness` breaks them through both doors."""

CONTAINERS = {("semantics",), ("geometry",), ("negative",), ("topology_parameters",)}

# Clauses that say how the product is called, described, made or served: no delivery can break them. Each with a value that is refused.
DOCUMENT = {
    ("contract_version",): "1.0.0",
    ("product_id",): "parcels",
    ("availability_target",): 1.5,
    ("product_owner_id",): "the steward",
    ("name",): 5,
    ("description",): 5,
    ("schema_fields", "time_zone"): "Mars/Olympus",
    ("schema_fields", "description"): 5,
    ("schema_fields", "deprecated"): "soon",
    ("schema_fields", "volatile"): "often",
    ("schema_fields", "derived"): "area",
    ("schema_fields", "derived", "measure"): "weight",
    ("schema_fields", "derived", "unit"): 5,
    ("schema_fields", "derived", "method"): "guess",
    ("schema_fields", "decimals"): 99,
    ("schema_fields", "digits"): 0,
    ("schema_fields", "noise"): "some",
    ("geometry", "noise"): 2,
    ("semantics", "meaning"): 5,
    ("semantics", "open"): "sometimes",
    ("geometry", "z_precision"): 99,
    ("geometry", "m_precision"): -1,
    ("geometry", "direction"): "left",
    ("geometry", "name"): "id",
    ("negative", "statements"): "none",
}


def without_enforcer(clauses):
    """The paths of clauses that nothing enforces."""
    known = ("gate", "form", "words", "monitor", "http")
    leaves = {path: each for path, each in clauses.items() if not is_container(each)}
    return {path for path, each in leaves.items() if each.enforcer not in known or (each.enforcer == "gate" and not enforcers(path))}


def test_every_clause_has_an_enforcer():
    assert without_enforcer(CLAUSES) == set()


def test_a_clause_without_an_enforcer_is_noticed():
    assert without_enforcer({**CLAUSES, "colour": Clause("colour", Text(), "the colour")}) == {"colour"}
    assert without_enforcer({**CLAUSES, "colour": Clause("colour", Text(), "the colour", enforcer="somebody")}) == {"colour"}


def test_every_clause_has_its_breach():
    # Clauses of rasters are broken in the tests of their checks (`test_raster`).
    leaves = {path for path, each in CLAUSES.items() if each.enforcer in ("gate", "form", "words", "monitor") and not is_container(each)}
    leaves = {tuple(path.split(".")) for path in leaves if path.partition(".")[0] not in ("bands", "pixel", "latency", "deprecation")}
    assert leaves <= BREACHES.keys() | DOCUMENT.keys() | AGAINST_LAST
    assert not BREACHES.keys() & DOCUMENT.keys()
    gated = {tuple(path.split(".")) for path, each in CLAUSES.items() if each.enforcer == "gate" and not is_container(each)}
    assert {path for path in gated if path[0] not in ("bands", "pixel")} <= BREACHES.keys() | AGAINST_LAST


@pytest.fixture
def check(tmp_path, capsys):
    def run(table, tree):
        delivery, contract = tmp_path / "delivery.parquet", tmp_path / "contract.yaml"
        table.to_parquet(delivery)
        contract.write_text(json.dumps(tree), encoding="utf-8")
        capsys.readouterr()
        root.main(["check", str(delivery), "--contract", str(contract), "--json"], prog_name="merestone", standalone_mode=False)
        found = json.loads(capsys.readouterr().out)
        return {(each["surface"], each["field"], each["rule"]) for each in found["findings"]}

    return run


def test_the_good_sample_keeps_every_clause(check):
    assert check(good(), CONTRACT_TREE) == set()


def broken(path):
    """A contract, and a table that breaks one clause of it."""
    change = BREACHES[path][0]
    tree = copy.deepcopy(CONTRACT_TREE) | copy.deepcopy(SETTINGS.get(path, {}))
    table = good()
    if path == ("geometry", "edges"):
        tree = in_degrees(tree)
        tree["geometry"] = {"edges": "spherical"}
        return tree, degrees(table)
    if path == ("negative", "antimeridian"):
        tree = in_degrees(tree)
        tree["negative"] = {"antimeridian": "split"}
        table = degrees(table)
        table.loc[3, "geometry"] = shapely.box(-179.5, 52.0, 179.5, 52.1)
        return tree, table
    if path == ("topology_parameters", "dangle_length"):
        tree |= {"geometry_type": "linestring", "topology_rule_set": "network", "topology_parameters": {"dangle_length": 50.0}}
        table = table.set_geometry(gpd.GeoSeries(shapely.get_exterior_ring(np.array(table.geometry)), crs=28992))
        return tree, shape(shapely.LineString([(150_100, 460_100), (150_110, 460_100)]))(table)
    return tree, change(table)


# An operation is chosen only where a publication accepts another CRS: below, where `publish` and `check` are compared.
@pytest.mark.parametrize("path", [path for path in BREACHES if path != ("required_accuracy_m",)], ids=".".join)
def test_a_delivery_that_breaks_the_clause_is_found(check, path):
    tree, table = broken(path)
    assert BREACHES[path][1] in check(table, tree)


def degrees(table):
    table["entrance"] = table["entrance"].to_crs(4326)
    return table.to_crs(4326)


def in_degrees(tree):
    tree |= {"contract_version": "v1.0.0-crs:EPSG:4326-res:1m", "crs_epsg": 4326, "coordinate_precision": 7}
    del tree["extent"]
    tree["schema_fields"][-1] |= {"crs_epsg": 4326, "coordinate_precision": 7}
    return tree


@pytest.mark.parametrize("path", DOCUMENT, ids=".".join)
def test_a_document_that_breaks_the_clause_does_not_lint(tmp_path, capsys, path):
    tree = copy.deepcopy(CONTRACT_TREE)
    at, steps = tree, list(path)
    while len(steps) > 1:
        at = at.setdefault(steps.pop(0), {})
        at = at[3] if isinstance(at, list) else at["area"] if "area" in at and steps == ["meaning"] else at
    at[steps[0]] = DOCUMENT[path]
    file = tmp_path / "contract.yaml"
    file.write_text(json.dumps(tree), encoding="utf-8")
    code = root.main(["contract", "lint", str(file), "--json"], prog_name="merestone", standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert code == 1
    assert any(each["level"] == "error" and path[-1] in each["path"] for each in found["messages"])


@pytest.mark.parametrize("path", [path for path, each in CLAUSES.items() if not is_container(each)])
def test_the_reference_page_names_the_enforcer(path):
    group, _, name = path.rpartition(".")
    section = reference().split("\n## " + (group.rpartition(".")[2] or "Clauses"), 1)[1]
    line = next(each for each in section.splitlines() if each.startswith(f"| `{name}`"))
    by = line.rstrip("| ").rpartition("|")[2].strip()
    assert by
    assert all(each.name in by for each in enforcers(path))


# --- a new contract over published rows: publish says what check says ------------------------------------------------------------------


def without(*path):
    """The contract before a clause was added to it."""

    def loose(tree):
        at, *steps = tree, *path
        for step in steps[:-1]:
            at = next(each for each in at if each["name"] == step) if isinstance(at, list) else at[step]
        at.pop(steps[-1])
        if path[0] == "semantics" and not tree["semantics"][path[1]]:
            del tree["semantics"][path[1]]
        return tree

    return loose


def with_(**clauses):
    """The contract before clauses were tightened."""
    return lambda tree: tree | clauses


def field(name, **clauses):
    """The contract before clauses of a field were tightened."""

    def loose(tree):
        next(each for each in tree["schema_fields"] if each["name"] == name).update(clauses)
        return tree

    return loose


LOOSE = {
    ("coordinate_precision",): with_(coordinate_precision=0),
    ("schema_fields", "nullable"): field("seen", nullable=True),
    ("schema_fields", "unique"): without("schema_fields", "label", "unique"),
    ("schema_fields", "pattern"): without("schema_fields", "label", "pattern"),
    ("schema_fields", "min"): without("schema_fields", "area", "min"),
    ("schema_fields", "max"): without("schema_fields", "area", "max"),
    ("schema_fields", "min_length"): field("label", min_length=1, pattern=".*"),
    ("schema_fields", "max_length"): without("schema_fields", "label", "max_length"),
    ("schema_fields", "min_items"): without("schema_fields", "tags", "min_items"),
    ("schema_fields", "max_items"): without("schema_fields", "tags", "max_items"),
    ("min_features",): without("min_features"),
    ("max_features",): with_(max_features=ROWS + 1, negative={"max_features": ROWS + 1}),
    ("schema_fields", "coordinate_precision"): field("entrance", coordinate_precision=0),
    ("freshness_sla_minutes",): with_(freshness_sla_minutes=1_000_000_000),
    ("freshness_from",): without("freshness_from"),
    ("semantics", "enum"): without("semantics", "use", "enum"),
    ("semantics", "null_means"): without("semantics", "area", "null_means"),
    ("geometry", "nullable"): with_(geometry={"nullable": True}),
    ("geometry", "empty"): with_(geometry={"empty": True}),
    ("extent",): without("extent"),
    ("negative", "max_features"): with_(max_features=ROWS + 1, negative={"max_features": ROWS + 1}),
    ("negative", "antimeridian"): without("negative"),
    ("topology_rule_set",): without("topology_rule_set"),
    ("topology_parameters", "tolerance"): with_(topology_parameters={"tolerance": 100_000.0}),
    ("topology_parameters", "gap_width"): with_(topology_parameters={"gap_width": 0.1}),
    ("topology_parameters", "dangle_length"): with_(topology_parameters={"dangle_length": 0.1}),
    ("required_accuracy_m",): without("required_accuracy_m"),
}
WIDER = {
    ("schema_fields", "pattern"): field("label", pattern="L?[0-9]+"),
    ("semantics", "enum"): lambda tree: tree | {"semantics": {**tree["semantics"], "use": {"enum": ["home", "shop", "mine"]}}},
    ("extent",): with_(extent=[150_000, 460_000, 300_000, 470_000]),
    ("negative", "max_features"): with_(max_features=ROWS + 1, negative={"max_features": ROWS + 1}),
    ("negative", "antimeridian"): with_(negative={"antimeridian": "crossing"}),
    ("required_accuracy_m",): with_(required_accuracy_m=100.0),
}
"""The same where the clause was there, and asked less."""
MAJOR = {
    ("crs_epsg",),
    ("axis_order",),
    ("geometry_type",),
    ("schema_fields",),
    ("schema_fields", "name"),
    ("schema_fields", "type"),
    ("schema_fields", "unit"),
    ("schema_fields", "crs_epsg"),
    ("geometry", "dimensions"),
    ("geometry", "edges"),
    ("key",),
}
"""Clauses that no MINOR version adds or tightens."""


def test_every_clause_is_added_or_tightened_over_published_rows():
    leaves = {path for path in BREACHES if path not in CONTAINERS}
    assert leaves - MAJOR == LOOSE.keys()


@pytest.mark.parametrize(
    ("path", "loose"),
    [
        pytest.param(path, loose[path], id=f"{'.'.join(path)} {how}")
        for how, loose in (("added", LOOSE), ("tightened", WIDER))
        for path in loose
    ],
)
def test_publish_says_what_check_says_of_published_rows_under_a_new_contract(tmp_path, path, loose):
    tree, table = broken(path)
    product = Estate(tmp_path, key="id").as_cases_run()
    if path == ("required_accuracy_m",) and "accept" in CrsRule.__dataclass_fields__:
        product.settings["crs"] = {"accept": ["EPSG:4326"]}
    delivery = tmp_path / "delivery.parquet"
    table.to_parquet(delivery)
    product.terms = loose(copy.deepcopy(tree))
    assert product.publish(delivery).status == "published"
    product.terms = copy.deepcopy(tree)
    product.stamp("v1.1.0")
    product.write(delivery)
    publication = with_source(read_publication(str(tmp_path / "product.yaml")), str(delivery))
    checked, _ = check_publication(publication, CheckSettings("delivery", "contract"))
    night = product.publish(delivery)
    errors = {(each.surface, each.field, each.rule) for each in checked.findings if each.severity == "error"}
    assert checked.status == "fail"
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    assert errors == {(each.surface, each.field, each.rule) for each in night.result.findings if each.severity == "error"}
    assert BREACHES[path][1] in errors


def test_a_text_that_stands_for_null_is_refused_once_the_contract_says_what_null_means(tmp_path):
    product = Estate(tmp_path, [{"name": "pid", "type": "string"}, {"name": "use", "type": "string"}], geometry_type="point")
    table = gpd.GeoDataFrame({"pid": ["a", "b"], "use": ["home", "N/A"]}, geometry=[shapely.Point(5, 52), shapely.Point(5.1, 52)], crs=4326)
    delivery = tmp_path / "delivery.parquet"
    table.to_parquet(delivery)
    product.agreed()
    assert product.publish(delivery).status == "published"
    product.terms["semantics"] = {"use": {"null_means": "not known"}}
    product.stamp("v1.1.0")
    night = product.publish(delivery)
    assert night.status == "refused"
    assert night.rules("error") == {("use", "null_convention")}
