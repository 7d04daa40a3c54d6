"""What a feature of Esri's own JSON holds, read strictly: its geometry, and its attributes against the fields that the document lists.

GDAL makes null of a geometry that it cannot read, 1 of 1.75 and 0 of a text in a field of integers, 1970 of a text in a field of times, and leaves
out an attribute that is not listed.
Not here: the text and its features (`json_features`), reading rows (`vector`).
Clauses: Esri, "Geometry objects" and "FeatureSet object" of the REST API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from merestone.json_value import Json
from merestone.source.cells import ColumnKind, is_changed, is_value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = frozenset({int, float})
_PARTS = {"paths": 2, "rings": 2, "points": 1}
_CURVES = ("curvePaths", "curveRings")
_BITS = {"esriFieldTypeSmallInteger": 16, "esriFieldTypeInteger": 32, "esriFieldTypeOID": 64, "esriFieldTypeBigInteger": 64}
_DAYS = {"esriFieldTypeDateOnly": ColumnKind("date"), "esriFieldTypeTimeOnly": ColumnKind("time")}
_TIMES = range(-62_135_596_800_000, 253_402_300_800_000)  # milliseconds since 1970: the years 1 to 9999
_FLOATS = frozenset({"esriFieldTypeSingle", "esriFieldTypeDouble"})


def field_types(fields: Json) -> dict[str, str]:
    """Name and type of each field that a document lists; none where the list is not one."""
    listed = fields if isinstance(fields, list) else []
    return {str(each.get("name")): str(each.get("type")) for each in listed if isinstance(each, dict)}


def geometry_fault(geometry: Json) -> str | None:
    """What is wrong with the form of a geometry, None where nothing is; null, an empty list, and null or "NaN" for both x and y are none."""
    if geometry is None:
        return None
    if not isinstance(geometry, dict):
        return f"the geometry is {_shown(geometry)}, not an object"
    curves = next((name for name in _CURVES if geometry.get(name)), None)
    if curves is not None:
        return f"{curves} are not read"
    for name, depth in _PARTS.items():
        if name in geometry:
            return _nested_fault(geometry[name], depth, name)
    if "x" not in geometry:
        return None if not geometry.keys() - {"spatialReference"} else f"{_shown(geometry)} has no x, points, paths or rings"
    x, y = geometry["x"], geometry.get("y")
    if x in (None, "NaN") and y in (None, "NaN"):
        return None
    return None if type(x) in _NUMBERS and type(y) in _NUMBERS else f"x and y are {_shown(x)} and {_shown(y)}, not two numbers"


def _nested_fault(value: Json, depth: int, path: str) -> str | None:
    if not isinstance(value, list):
        return f"{path} is {_shown(value)}, not a list"
    if depth:
        found = (_nested_fault(each, depth - 1, f"{path}[{at}]") for at, each in enumerate(value))
        return next((each for each in found if each is not None), None)
    if len(value) >= 2 and {type(each) for each in value[:2]} <= _NUMBERS and {type(each) for each in value[2:]} <= {*_NUMBERS, type(None)}:
        return None
    return f"{path} is {_shown(value)}, not a position of two or more numbers"


def cell_fault(value: Json, kind: str) -> str | None:
    """What is wrong with an attribute of a field of some type, None where nothing is."""
    if value is None:
        return None
    if kind in _BITS:
        limit = 1 << (_BITS[kind] - 1)
        whole = type(value) is int or (type(value) is float and value.is_integer())
        return None if whole and -limit <= value < limit else f"{_shown(value)} is not an integer of {_BITS[kind]} bits"
    if kind in _FLOATS:
        return None if type(value) in _NUMBERS else f"{_shown(value)} is not a number"
    if kind == "esriFieldTypeDate":
        is_time = type(value) in _NUMBERS and _TIMES.start <= value < _TIMES.stop
        return None if is_time else f"{_shown(value)} is not a time in milliseconds since 1970"
    if kind in _DAYS:
        return None if isinstance(value, str) and is_value(value, _DAYS[kind]) else f"{_shown(value)} is not {_DAYS[kind].expected}"
    return None


def kept_time(value: Json, kind: str) -> str | None:
    """The text of a time that GDAL would change: one before 1970 or below the millisecond; None for all others."""
    if kind == "esriFieldTypeDate" and isinstance(value, int | float) and (value < 0 or isinstance(value, float)):
        return (_EPOCH + timedelta(milliseconds=value)).isoformat().replace("+00:00", "Z")
    if kind == "esriFieldTypeTimeOnly" and isinstance(value, str) and is_changed(value, "time"):
        return value
    return None


def systems_of(reference: Json) -> frozenset[str]:
    """What a spatialReference calls its system: old code, new code, WKT; empty where it states none."""
    given = reference if isinstance(reference, Mapping) else {}
    codes = {f"wkid {given[name]}" for name in ("latestWkid", "wkid") if given.get(name) is not None}
    return frozenset(codes or ({str(given["wkt"])[:60]} if given.get("wkt") else ()))


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]
