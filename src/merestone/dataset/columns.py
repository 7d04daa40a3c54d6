"""The columns that readers see at a version, with their Arrow types, from what its manifest and its files say.

Not here: reading rows (`rows`, `version`), how the types of a contract are checked (`normalise.cast`).

The manifest's `contract` is the published body (docs/spec/manifest.md), so a version whose files are all older than one of its fields
still knows that field's type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyproj import CRS

from merestone.contract.field_type import parse_type
from merestone.dataset.manifest import Manifest
from merestone.dataset.proved import HINT
from merestone.document.json_reader import parse_json
from merestone.errors import CorruptError
from merestone.json_value import JsonObject
from merestone.normalise.values import arrow_type


@dataclass(frozen=True, slots=True)
class Columns:
    """What a reader of a version sees.

    `schema`: key columns that are outside the contract, then its fields, then the geometry (binary, canonical WKB); its metadata carry a
    GeoParquet 1.1 `geo` object without bbox and covering. `geometry`: the name of the geometry column. `epsg`: its CRS.
    """

    schema: pa.Schema
    geometry: str
    epsg: int


def columns_of(manifest: Manifest, written: Iterable[pa.Schema]) -> Columns:
    """The columns of a version.

    Args:
        manifest: the version.
        written: the pyarrow schema of its newest file, none where it has no files.

    Raises:
        CorruptError: a field is neither in a file nor has a type that can be stored; the file does not describe its geometry.
    """
    where = f"version {manifest.version} of {manifest.name}"
    schemas = list(written)
    stored = {each.name: each.type for schema in schemas for each in schema}
    body = manifest.contract
    try:
        fields = {each["name"]: stored.get(each["name"]) or stored_type(each["type"]) for each in body["schema_fields"]}
        keys = dict(zip(manifest.key["columns"], manifest.key.get("types") or ["string"] * len(manifest.key["columns"]), strict=True))
        outside = {name: stored.get(name) or stored_type(kind) for name, kind in keys.items() if name not in fields}
        epsg = int(body["crs_epsg"])
    except (KeyError, TypeError, ValueError) as fault:
        raise CorruptError(
            f"the contract in {where} cannot be read: {fault!r}",
            field="contract",
            hint="see «verify(DATASET)» for what else is damaged",
        ) from fault
    geo = _without_boxes(geo_of(schemas[0], where)) if schemas else None
    geometry = geo["primary_column"] if geo else _geometry_name(body, {*fields, *outside})
    schema = pa.schema([*outside.items(), *fields.items(), (geometry, pa.binary())])
    described = geo or _geo_of(body, geometry, epsg)
    return Columns(schema.with_metadata({"geo": json.dumps(described)}), geometry, epsg)


def geo_of(schema: pa.Schema, where: str) -> JsonObject:
    """The `geo` object (GeoParquet) of rows that Merestone wrote: `primary_column`, and `columns` with an object for each geometry.

    Args:
        schema: of the rows, with its metadata.
        where: the file or version, for the message.

    Raises:
        CorruptError: there is none, or it is of another form.
    """
    try:
        geo: JsonObject = parse_json((schema.metadata or {})[b"geo"])
        named = geo["primary_column"] in geo["columns"] and all(isinstance(each, dict) for each in geo["columns"].values())
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise CorruptError(f"{where} does not describe its geometry: {fault!r}", field=where, hint=HINT) from fault
    if not named:
        raise CorruptError(
            f"{where} does not describe its geometry: primary_column and columns contradict each other", field=where, hint=HINT
        )
    return geo


def stored_type(text: str) -> pa.DataType:
    """The Arrow type in which a contract type such as "decimal(10,2)" is stored. Raises ValueError where the text is not a type."""
    return arrow_type(parse_type(text))


def _geometry_name(body: JsonObject, taken: set[str]) -> str:
    name = (body.get("geometry") or {}).get("name")
    return name or next(each for each in ("geometry", "geom", "shape", "geometry_primary") if each not in taken)


def _geo_of(body: JsonObject, geometry: str, epsg: int) -> JsonObject:
    """The `geo` object of a version without files, which no file can give."""
    second = {each["name"]: int(each.get("crs_epsg") or epsg) for each in body["schema_fields"] if each["type"] == "geometry"}
    columns: dict[str, JsonObject] = {
        name: {"encoding": "WKB", "geometry_types": [], "crs": CRS.from_epsg(code).to_json_dict()}
        for name, code in {geometry: epsg, **second}.items()
    }
    columns[geometry]["edges"] = (body.get("geometry") or {}).get("edges", "planar")
    return {"version": "1.1.0", "primary_column": geometry, "columns": columns}


def _without_boxes(geo: JsonObject) -> JsonObject:
    """`geo` metadata that stay true for a part of the rows without the covering column."""
    untrue = ("bbox", "covering", "geometry_types")
    columns = {
        name: {key: value for key, value in column.items() if key not in untrue} | {"geometry_types": []}
        for name, column in geo["columns"].items()
    }
    return {**geo, "columns": columns}
