"""Digests of parts of a contract: the clauses that decide one feature, and the schema as payloads are compared with it.

Not here: the digest of the whole (`body`), the rules themselves (`gate`, `normalise`).
"""

from __future__ import annotations

import hashlib
from typing import Any

from merestone.contract.body import canonical_json
from merestone.contract.contract import Contract, Field

RULE_VERSION = 1  # raised when the same clauses would judge or shape a feature differently than before


def rules_hash(contract: Contract) -> str:
    """The digest of the clauses that decide one feature, hex (docs/spec/gate.md#rules-of-one-row).

    While it holds, a feature with a known source digest gets the verdict and the stored form it had. Words, units, service levels, owner,
    key and the order of fields have no part in it; rules over a whole delivery (uniqueness) run in full anyway.
    """
    clause = contract.geometry
    return _digest(
        {
            "crs": contract.crs_epsg,
            "axis_order": contract.axis_order,
            "geometry_type": contract.geometry_type,
            "coordinate_precision": contract.coordinate_precision,
            "geometry": [
                clause.nullable,
                clause.empty,
                clause.dimensions,
                clause.z_precision,
                clause.m_precision,
                clause.edges,
                clause.direction,
                contract.noise,
            ],
            "fields": sorted((_deciding(contract, field) for field in contract.schema_fields), key=lambda each: each["name"]),
            "topology": [contract.topology_rule_set, sorted(contract.topology_parameters)],
            "extent": contract.extent,
            "required_accuracy_m": contract.required_accuracy_m,
        }
    )


def _deciding(contract: Contract, field: Field) -> dict[str, Any]:
    meaning = contract.meaning(field.name)
    derived = field.derived
    members = None if meaning is None or meaning.enum is None else sorted(meaning.enum, key=canonical_json)
    return {
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
        "pattern": field.pattern,
        "time_zone": field.time_zone,
        "volatile": field.volatile,
        "derived": None if derived is None else [derived.measure, derived.unit, derived.method],
        "crs": field.crs_epsg,
        "coordinate_precision": field.coordinate_precision,
        "number": None if field.number_grid is None else [field.decimals, field.digits, field.number_noise],
        "enum": members,
    }


def schema_hash(contract: Contract) -> str:
    """The digest of name, type, nullable and unit over fields sorted by name, hex (docs/spec/gate.md#schema)."""
    rows = [[field.name, str(field.type), field.nullable, field.unit or "none"] for field in contract.schema_fields]
    return _digest(sorted(rows, key=lambda row: str(row[0])))


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()
