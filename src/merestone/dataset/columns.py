"""The columns that readers see at a version, with their Arrow types, from what its manifest and its files say.

Not here: reading rows (`rows`, `version`), how the types of a contract are checked (`normalise`).

The manifest's `contract` is the published body (docs/spec/manifest.md), so a version whose files are all older than one of its fields
still knows that field's type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from merestone.dataset.manifest import Manifest
from merestone.errors import CorruptError

_SIMPLE = {
    "string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "time": pa.time64("us"), "timestamp": pa.timestamp("us", "UTC"), "timestamp_local": pa.timestamp("us"),
    "binary": pa.binary(), "geometry": pa.binary(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class Columns:
    """What a reader of a version sees.

    `schema`: key columns that are outside the contract, then its fields, then the geometry (binary, canonical WKB); its metadata carry a
    GeoParquet 1.1 `geo` object without bbox and covering. `geometry`: the name of the geometry column. `epsg`: its CRS.
    """

    schema: Any
    geometry: str
    epsg: int


def columns_of(manifest: Manifest, written: Iterable[Any]) -> Columns:
    """The columns of a version.

    Args:
        manifest: the version.
        written: pyarrow schemas of its files, one for each kind of file (each version that wrote some) is enough.

    Raises:
        CorruptError: a field is neither in a file nor has a type that can be stored.
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
        raise CorruptError(f"the contract in {where} cannot be read: {fault!r}", field="contract",
                           hint="run merestone verify DATASET to see what else is damaged") from fault
    geo = next((json.loads(schema.metadata[b"geo"]) for schema in schemas if b"geo" in (schema.metadata or {})), None)
    geometry = geo["primary_column"] if geo else _geometry_name(body, {*fields, *outside})
    schema = pa.schema([*outside.items(), *fields.items(), (geometry, pa.binary())])
    if geo:
        schema = schema.with_metadata({"geo": json.dumps(_without_boxes(geo))})
    return Columns(schema, geometry, epsg)


def stored_type(text: str) -> Any:
    """The Arrow type in which a contract type is stored: "integer", "decimal(10,2)", "list<string>", "struct<k: integer, n: list<string>>".

    Raises:
        ValueError: the text is no type.
    """
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    if found := _DECIMAL.fullmatch(text.replace(" ", "")):
        return pa.decimal128(int(found[1]), int(found[2]))
    if text.startswith("list<") and text.endswith(">"):
        return pa.list_(stored_type(text[5:-1]))
    if text.startswith("struct<") and text.endswith(">"):
        pairs = (member.split(":", 1) for member in _members(text[7:-1]))
        return pa.struct([(name.strip(), stored_type(kind)) for name, kind in pairs])
    raise ValueError(f"{text!r} is no type of a contract")


def _members(text: str) -> list[str]:
    """Split at commas that stand outside of <> and ()."""
    out, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            out.append(text[start:at])
            start = at + 1
    return [*out, text[start:]]


def _geometry_name(body: dict[str, Any], taken: set[str]) -> str:
    name = (body.get("geometry") or {}).get("name")
    return name or next(each for each in ("geometry", "geom", "shape", "geometry_primary") if each not in taken)


def _without_boxes(geo: dict[str, Any]) -> dict[str, Any]:
    """`geo` metadata that stay true for a part of the rows without the covering column."""
    untrue = ("bbox", "covering", "geometry_types")
    columns = {name: {key: value for key, value in column.items() if key not in untrue} | {"geometry_types": []}
               for name, column in geo["columns"].items()}
    return {**geo, "columns": columns}
