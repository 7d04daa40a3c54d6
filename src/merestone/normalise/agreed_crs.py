"""Whether the reference system of a delivery is known, and the agreed one or another that the publication accepts by name.

Not here: which system a text means (`reference.identity`), axis order by evidence (`gate.whereabouts`), moving coordinates (`transform`).
Clause: docs/spec/gate.md#axis-order.
"""

from __future__ import annotations

from collections.abc import Sequence

from merestone.contract.contract import Contract
from merestone.reference.identity import Identity, identify, is_system
from merestone.reference.parameters import differences, same_name
from merestone.reference.systems import of_code
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.port import Delivery, GeometryColumn


def check_crs(contract: Contract, delivery: Delivery, accepted: Sequence[str] = ()) -> tuple[Finding, ...]:
    """What is wrong with the reference system of each delivered geometry.

    Args:
        contract: names the agreed system.
        delivery: names the delivered ones.
        accepted: canonical codes of other systems that the publication accepts (`crs: {accept: [EPSG:4258]}`); those are transformed.
    """
    out = []
    if delivery.geometry is not None:
        out += _check_column(delivery.geometry, contract.crs_epsg, "crs", accepted)
    for column in delivery.other_geometries:
        field = contract.field(column.name)
        if field is not None and field.type.kind == "geometry":
            out += _check_column(column, field.crs_epsg or contract.crs_epsg, column.name, accepted)
    return tuple(out)


def is_agreed(column: GeometryColumn, epsg: int) -> bool:
    """Whether a geometry column is in the system with an EPSG code."""
    return column.crs is not None and is_system(column.crs, f"EPSG:{epsg}", by_parameters=not column.coded)


def _check_column(column: GeometryColumn, epsg: int, field: str, accepted: Sequence[str]) -> list[Finding]:
    agreed = f"EPSG:{epsg}"
    if column.crs is None:
        what = f"undefined ({column.note})" if column.note.startswith("srs_id") else f"missing ({column.note or 'none stated'})"
        return [catalogue.CRS_MISSING.finding(field, agreed=agreed, what=what)]
    if is_agreed(column, epsg):
        return []
    identity, target = identify(column.crs), of_code(epsg)
    if identity.name and same_name(identity.name, target.name):
        reasons = differences(column.crs, agreed)
        if reasons:
            return [_mismatch(field, agreed, f"CRS {identity.name} has the name of {agreed} but {', '.join(reasons)}", identity)]
    if identity.code is None and not identity.compound:
        return [_mismatch(field, agreed, f"CRS could not be identified ({identity.name or column.crs[:60]}): {identity.reason}", identity)]
    if identity.code is not None and identity.code in accepted and identity.compound == bool(target.is_compound):
        return []
    what = f"{identity.code or 'a CRS without a code'} ({identity.name}) where {agreed} is agreed"
    if identity.code is not None and identity.code in accepted:
        return [catalogue.CRS_MISMATCH.finding(field, agreed=agreed, what=what)]  # accepted, and of other dimensions
    return [_mismatch(field, agreed, what, identity)]


def _mismatch(field: str, agreed: str, observed: str, found: Identity) -> Finding:
    case = "acceptable" if found.code is not None and not found.compound else ""
    return catalogue.CRS_MISMATCH.finding(field, case=case, agreed=agreed, what=observed, code=found.code)
