"""The rules hash moves with what decides a feature and stands still for everything else."""

from __future__ import annotations

import copy
import hashlib

import pytest

from merestone.contract.parse import parse
from merestone.contract.rules_hash import rules_hash, schema_hash


def changed(tree, path, value):
    out = copy.deepcopy(tree)
    spot = out
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = value
    return parse(out)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("contract_version",), "v1.3.0-crs:EPSG:28992-res:100mm"),
        (("product_owner_id",), "other@example.org"),
        (("freshness_sla_minutes",), 5),
        (("availability_target",), 0.5),
        (("name",), "x"),
        (("description",), "x"),
        (("key",), ["guid"]),
        (("freshness_from",), "delivered_at"),
        (("latency", "p50_ms"), 7),
        (("negative", "max_features"), 5),
        (("negative", "statements"), ["x"]),
        (("schema_fields", 1, "description"), "other words"),
        (("schema_fields", 1, "deprecated"), False),
        (("schema_fields", 0, "unit"), "m"),
        (("semantics", "owner_class", "meaning"), "x"),
        (("semantics", "owner_class", "enum"), ["B", "A"]),
        (("semantics", "attr"), {"meaning": "x"}),
        (("geometry", "name"), "g"),
        (("schema_fields", 4, "unique"), False),
    ],
)
def test_wording_and_service_do_not_recheck_the_estate(sound, path, value):
    assert rules_hash(changed(sound, path, value)) == rules_hash(parse(sound))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("axis_order",), "lat_lon"),
        (("geometry_type",), "polygon"),
        (("coordinate_precision",), 2),
        (("schema_fields", 0, "type"), "string"),
        (("schema_fields", 0, "nullable"), True),
        (("schema_fields", 1, "pattern"), "[a-z]+"),
        (("schema_fields", 3, "time_zone"), "UTC"),
        (("schema_fields", 4, "volatile"), False),
        (("schema_fields", 2, "derived"), {"measure": "length"}),
        (("schema_fields", 5, "crs_epsg"), 4326),
        (("schema_fields", 5, "coordinate_precision"), 6),
        (("schema_fields", 0, "name"), "pid"),
        (("semantics", "owner_class", "enum"), ["A"]),
        (("semantics", "guid"), {"null_means": "not given"}),
        (("negative", "antimeridian"), "split"),
        (("contract_version",), "v1.2.0-crs:EPSG:28992-res:20cm"),
        (("geometry", "nullable"), False),
        (("geometry", "empty"), False),
        (("geometry", "dimensions"), "xyz"),
        (("geometry", "z_precision"), 1),
        (("geometry", "m_precision"), 2),
        (("geometry", "direction"), "significant"),
        (("geometry", "noise"), 0.1),
        (("schema_fields", 9, "decimals"), 1),
        (("schema_fields", 9, "noise"), 0.2),
        (("extent",), [0, 0, 1, 1]),
        (("required_accuracy_m",), 2),
        (("topology_parameters", "gap_width"), 1),
        (("topology_rule_set",), "network"),
    ],
)
def test_what_decides_a_feature_does(sound, path, value):
    assert rules_hash(changed(sound, path, value)) != rules_hash(parse(sound))


def test_the_order_of_fields_decides_nothing(sound):
    assert rules_hash(parse(sound | {"schema_fields": sound["schema_fields"][::-1]})) == rules_hash(parse(sound))


def test_the_schema_hash_is_over_name_type_nullable_and_unit(bare):
    bare["schema_fields"] = [{"name": "b", "type": "string", "unit": "m"}, {"name": "a", "type": "decimal( 4,1 )", "nullable": False}]
    expected = '[["a","decimal(4,1)",false,"none"],["b","string",true,"m"]]'
    assert schema_hash(parse(bare)) == hashlib.sha256(expected.encode()).hexdigest()
    bare["schema_fields"][0]["description"] = "words"
    assert schema_hash(parse(bare)) == hashlib.sha256(expected.encode()).hexdigest()


def test_hashes_never_change_between_versions(bare):
    """Published manifests carry them: a change would make every feature a candidate."""
    assert rules_hash(parse(bare)) == "a2b9d647c2a53452a15b48bc7df935de3fbe802608a82085d7a15de73305b343"
    assert schema_hash(parse(bare)) == "e0039404a861820f4a379742d0e77b518670ab7b4e76cd5e89a50119a0f85d10"
