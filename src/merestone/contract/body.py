"""The published body of a contract: a plain tree with its defaults filled in, the digest over it, and the way back.

Not here: authored documents (`parse`), the digest of the clauses that decide one feature (`rules_hash`).

The digest is sha256 over the body as JSON in UTF-8: keys sorted by code point, no blanks, no escapes beyond those JSON demands, numbers
with an integral value written as integers, others in their shortest form that reads back the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from merestone.contract.contract import Contract, Derived, Field, GeometryClause, Semantics
from merestone.contract.definition import CONTRACT, EXTRA
from merestone.document.forms import Report
from merestone.errors import CorruptError
from merestone.json_value import Json, JsonObject


def body(contract: Contract) -> JsonObject:
    """The published body: plain JSON values under the document's names, in the order of the definition.

    Filled in where the author left them out: `nullable` and `unit` of fields, `topology_rule_set`, and in `geometry` all but precisions,
    noise and name. This list never grows; a contract keeps its digest.
    """
    clause = contract.geometry
    geometry: JsonObject = {
        "nullable": clause.nullable,
        "empty": clause.empty,
        "dimensions": clause.dimensions,
        "z_precision": clause.z_precision,
        "m_precision": clause.m_precision,
        "edges": clause.edges,
        "direction": clause.direction,
        "noise": clause.noise,
        "max_vertex_loss": clause.max_vertex_loss,
        "name": clause.name,
    }
    meanings = {
        name: {
            "enum": list(each.enum) if each.enum is not None else None,
            "open": each.open or None,
            "null_means": each.null_means,
            "meaning": each.meaning,
        }
        for name, each in contract.semantics
    }
    values = {
        "contract_version": str(contract.contract_version),
        "product_id": contract.product_id,
        "crs_epsg": contract.crs_epsg,
        "axis_order": contract.axis_order,
        "geometry_type": contract.geometry_type,
        "coordinate_precision": contract.coordinate_precision,
        "schema_fields": [_field(each) for each in contract.schema_fields],
        "freshness_sla_minutes": contract.freshness_sla_minutes,
        "availability_target": contract.availability_target,
        "product_owner_id": contract.product_owner_id,
        "topology_rule_set": contract.topology_rule_set,
        "topology_parameters": dict(contract.topology_parameters) or None,
        "semantics": {name: _stated(each) for name, each in meanings.items()} or None,
        "geometry": _stated(geometry),
        "name": contract.name,
        "key": list(contract.key) or None,
        "extent": list(contract.extent) if contract.extent is not None else None,
        "required_accuracy_m": contract.required_accuracy_m,
        "freshness_from": contract.freshness_from,
        **dict(contract.extra),
    }
    stated: JsonObject = _integral(_stated(values))
    return {clause.name: stated[clause.name] for clause in CONTRACT.clauses if clause.name in stated}


def _field(field: Field) -> JsonObject:
    derived = None
    if field.derived is not None:
        derived = _stated({"measure": field.derived.measure, "unit": field.derived.unit, "method": field.derived.method})
    return {
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
        "unit": field.unit or "none",
        **_stated(
            {
                "unique": field.unique or None,
                "pattern": field.pattern,
                "time_zone": field.time_zone,
                "description": field.description,
                "deprecated": field.deprecated or None,
                "volatile": field.volatile or None,
                "derived": derived,
                "crs_epsg": field.crs_epsg,
                "coordinate_precision": field.coordinate_precision,
                "decimals": field.decimals,
                "digits": field.digits,
                "noise": field.noise,
                "min": field.min,
                "max": field.max,
                "min_length": field.min_length,
                "max_length": field.max_length,
                "min_items": field.min_items,
                "max_items": field.max_items,
            }
        ),
    }


def _stated(values: JsonObject) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _integral(value: Json) -> Json:
    """1.0 becomes 1 (below 2^53, where both are the same number); 1 and 1.0 have one digest."""
    if isinstance(value, dict):
        return {name: _integral(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_integral(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def canonical_json(value: Json) -> bytes:
    """The bytes that digests of this room are taken over."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def digest(contract: Contract) -> str:
    """The sha256 of the published body, hex."""
    return hashlib.sha256(canonical_json(body(contract))).hexdigest()


def from_body(published: JsonObject) -> Contract:
    """The contract of a published body, such as a manifest carries.

    Only the forms are judged: what this machine's PROJ or time zones know today has no say over what was agreed.

    Raises:
        CorruptError: the body is not that of a contract.
    """
    report = Report()
    values = CONTRACT.read(published, (), report)
    if report.problems:
        raise CorruptError(
            f"the contract in the manifest cannot be read: {report.problems[0]}",
            field="contract",
            hint="use the Merestone version that wrote it, or a newer one; «verify(DATASET)» names every damaged file",
        )
    return assemble(values, confirm=())


def assemble(values: JsonObject, confirm: tuple[str, ...]) -> Contract:
    """The value from the canonical values of `definition.CONTRACT`, with its digest."""
    contract = Contract(
        contract_version=values["contract_version"],
        product_id=values["product_id"],
        crs_epsg=values["crs_epsg"],
        axis_order=values["axis_order"],
        geometry_type=values["geometry_type"],
        coordinate_precision=values["coordinate_precision"],
        schema_fields=tuple(_assemble_field(each) for each in values["schema_fields"]),
        freshness_sla_minutes=values["freshness_sla_minutes"],
        availability_target=values["availability_target"],
        product_owner_id=values["product_owner_id"],
        topology_rule_set=values.get("topology_rule_set", "none"),
        topology_parameters=tuple(values.get("topology_parameters", {}).items()),
        semantics=tuple((name, Semantics(**_tupled(each))) for name, each in values.get("semantics", {}).items()),
        geometry=GeometryClause(**values.get("geometry", {})),
        name=values.get("name"),
        key=tuple(values.get("key", ())),
        extent=tuple(values["extent"]) if "extent" in values else None,
        required_accuracy_m=values.get("required_accuracy_m"),
        freshness_from=values.get("freshness_from"),
        extra=tuple((name, values[name]) for name in EXTRA if name in values),
        confirm=confirm,
    )
    return replace(contract, digest=digest(contract))


def _assemble_field(values: JsonObject) -> Field:
    stated = dict(values)
    if stated.get("unit") == "none":
        del stated["unit"]
    if "derived" in stated:
        stated["derived"] = Derived(**stated["derived"])
    return Field(**stated)


def _tupled(values: JsonObject) -> JsonObject:
    return {name: tuple(each) if isinstance(each, list) else each for name, each in values.items()}
