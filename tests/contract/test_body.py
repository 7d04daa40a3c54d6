"""The published body is whole, reads back, and its digest is that of the agreement and not of its spelling."""

from __future__ import annotations

import copy
import hashlib
import json

import pytest

from merestone.contract.body import body, canonical_json, digest, from_body
from merestone.contract.contract import Contract
from merestone.contract.parse import parse
from merestone.errors import CorruptError


def read(tree) -> Contract:
    contract = parse(tree)
    assert isinstance(contract, Contract), contract
    return contract


def test_the_body_fills_in_the_agreed_defaults_and_no_others(bare):
    published = body(read(bare))
    assert published["schema_fields"] == [{"name": "parcel_id", "type": "integer", "nullable": True, "unit": "none"}]
    assert published["topology_rule_set"] == "none"
    assert published["geometry"] == {"nullable": False, "empty": False, "dimensions": "xy", "edges": "planar", "direction": "significant"}
    assert set(published) == {*bare, "topology_rule_set", "geometry"}


def test_every_stated_clause_stands_in_the_body(sound):
    sound["schema_fields"][0]["nullable"] = False
    published = body(read(sound))
    expected = copy.deepcopy(sound)
    for field in expected["schema_fields"]:
        field.setdefault("nullable", True)
        field.setdefault("unit", "none")
    assert published == expected


def test_the_body_reads_back_to_the_same_contract(sound, bare):
    for tree in (sound, bare):
        contract = read(tree)
        again = from_body(json.loads(json.dumps(body(contract))))
        assert again == contract
        assert again.digest == contract.digest == digest(contract)


def test_the_digest_is_the_sha256_of_the_canonical_body(sound):
    contract = read(sound)
    assert (
        contract.digest
        == hashlib.sha256(json.dumps(body(contract), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
    )


def test_the_digest_of_an_agreed_contract_never_changes(bare):
    """Published datasets carry this digest: a new version of Merestone must come to the same."""
    assert read(bare).digest == "38d5ebfcf2e92ca6a86ea196261b7f6a688a62c2903e5bbbfd721a10bfdce6b4"


def test_spelling_does_not_change_the_digest(sound):
    agreed = read(sound).digest
    spelt = dict(reversed(sound.items()))
    spelt["key"] = "parcel_id"
    spelt["availability_target"] = 0.9990
    spelt["required_accuracy_m"] = 0.50
    spelt["crs_epsg"] = 28992.0
    spelt["product_id"] = sound["product_id"].upper()
    spelt["schema_fields"][0]["unit"] = None
    spelt["schema_fields"][1]["volatile"] = False
    spelt["schema_fields"][8]["type"] = "struct< k:integer,u:list<string> >"
    assert read(spelt).digest == agreed


def test_one_number_has_one_digest(bare):
    """JSON and YAML writers differ over 1 and 1.0."""
    bare["schema_fields"].append({"name": "f", "type": "number"})
    digests = {read(bare | {"semantics": {"f": {"enum": [1, value]}}}).digest for value in (2, 2.0)}
    assert len(digests) == 1
    assert '"availability_target":1,' in canonical_json(body(read(bare | {"availability_target": 1.0}))).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"description": "other words"},
        {"freshness_sla_minutes": 1},
        {"key": ["guid"]},
        {"coordinate_precision": 2},
        {"latency": {"p95_ms": 1}},
        {"extent": [0, 0, 1, 1]},
    ],
)
def test_every_change_changes_the_digest(sound, change):
    assert read(sound | change).digest != read(sound).digest


def test_the_order_of_fields_is_part_of_the_agreement(sound):
    turned = sound | {"schema_fields": sound["schema_fields"][::-1]}
    assert read(turned).digest != read(sound).digest


def test_a_body_that_is_none_is_corrupt(bare):
    published = body(read(bare))
    with pytest.raises(CorruptError, match="crs_epsg"):
        from_body({**published, "crs_epsg": "x"})


def test_what_this_machine_knows_has_no_say_over_an_agreed_body(bare):
    published = body(read(bare))
    published["crs_epsg"] = 999999
    published["contract_version"] = "v1.0.0-crs:EPSG:999999-res:1m"
    assert from_body(published).crs_epsg == 999999


def test_canonical_json_sorts_and_does_not_escape():
    assert canonical_json({"b": "é\u2028", "a": [1, 0.1]}) == '{"a":[1,0.1],"b":"é\u2028"}'.encode()
