"""A sound contract document, and the way to spoil it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

SOUND: dict[str, Any] = {
    "contract_version": "v1.2.0-crs:EPSG:28992-res:10cm",
    "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
    "crs_epsg": 28992,
    "axis_order": "lon_lat",
    "geometry_type": "multipolygon",
    "coordinate_precision": 3,
    "schema_fields": [
        {"name": "parcel_id", "type": "integer", "nullable": False},
        {"name": "owner_class", "type": "string", "pattern": "[A-Z]+", "description": "who owns it", "deprecated": True},
        {
            "name": "area",
            "type": "number",
            "unit": "square_metre",
            "derived": {"measure": "area", "unit": "square_metre", "method": "planar"},
        },
        {"name": "seen", "type": "timestamp_local", "time_zone": "Europe/Amsterdam"},
        {"name": "guid", "type": "string", "volatile": True, "unique": True},
        {"name": "entrance", "type": "geometry", "crs_epsg": 4258, "coordinate_precision": 7},
        {"name": "price", "type": "decimal(10,2)", "unit": "EUR"},
        {"name": "tags", "type": "list<string>"},
        {"name": "attr", "type": "struct<k: integer, u: list<string>>"},
        {"name": "depth", "type": "number", "unit": "m", "decimals": 2, "noise": 0.1},
    ],
    "freshness_sla_minutes": 1440,
    "availability_target": 0.999,
    "product_owner_id": "steward@example.org",
    "topology_rule_set": "planar",
    "topology_parameters": {"gap_width": 0.5, "tolerance": 0.01},
    "semantics": {
        "owner_class": {"enum": ["A", "B"], "null_means": "not known", "meaning": "the class of the owner"},
        "price": {"enum": ["1.50", 2, 2.25]},
        "tags": {"enum": ["x", "y"]},
    },
    "geometry": {
        "nullable": True,
        "empty": True,
        "dimensions": "xyzm",
        "z_precision": 2,
        "m_precision": 1,
        "edges": "planar",
        "direction": "irrelevant",
        "noise": 0,
        "name": "shape",
    },
    "name": "parcels",
    "description": "every parcel",
    "key": ["parcel_id"],
    "extent": [13000, 306000, 278000, 620000],
    "required_accuracy_m": 0.5,
    "freshness_from": "seen",
    "latency": {"p50_ms": 100, "p95_ms": 500, "p99_ms": 900},
    "bands": [{"name": "red", "type": "uint8", "nodata": 0, "unit": "none", "description": "red"}],
    "pixel": {"size": [0.5, 0.5], "overviews": [2, 4]},
    "negative": {
        "feature_order": "unspecified",
        "max_features": 10,
        "antimeridian": "none",
        "empty_result": "empty",
        "statements": ["no order"],
    },
    "degradation": {"when_late": "previous", "when_unavailable": "nothing", "label": "stale", "hold_minutes": 60},
    "deprecation": {"since": "2026-01-01", "until": "2027-01-01", "replaced_by": "parcels2", "reason": "a new model"},
}


@pytest.fixture
def sound() -> dict[str, Any]:
    """A contract with every clause stated, free to change."""
    return copy.deepcopy(SOUND)


@pytest.fixture
def bare() -> dict[str, Any]:
    """A contract with the required clauses only, free to change."""
    required = (
        "contract_version",
        "product_id",
        "crs_epsg",
        "axis_order",
        "geometry_type",
        "coordinate_precision",
        "freshness_sla_minutes",
        "availability_target",
        "product_owner_id",
    )
    return {name: SOUND[name] for name in required} | {"schema_fields": [{"name": "parcel_id", "type": "integer"}]}
