"""A contract to start a test from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from merestone.contract.contract import Contract, Field, FieldType
from merestone.contract.stamp import Stamp

BASE = Contract(
    contract_version=Stamp.parse("v1.0.0-crs:EPSG:4326-res:1m"),
    product_id="3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
    crs_epsg=4326,
    axis_order="lon_lat",
    geometry_type="geometry",
    coordinate_precision=7,
    schema_fields=(Field("pid", FieldType("string"), nullable=False),),
    freshness_sla_minutes=1440,
    availability_target=0.99,
    product_owner_id="steward@example.org",
    key=("pid",),
)


def contract(**clauses: Any) -> Contract:
    """The base contract with other clauses."""
    return replace(BASE, **clauses)
