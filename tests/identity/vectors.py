"""The language-neutral vectors of fingerprint layout 2: how a JSON value becomes a value of the reference, and of an Arrow column.

Not here: the vectors themselves (docs/spec/fingerprint-vectors.json), how they were made (`make_vectors`).
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from identity import reference
from merestone.contract.contract import FieldType
from merestone.contract.field_type import parse_type
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.digest import DigestField, Layout
from merestone.normalise.values import arrow_type

FILE = Path(__file__).parents[2] / "docs" / "spec" / "fingerprint-vectors.json"
WIDE = Context(prec=40)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def load() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8"))["vectors"]


def microseconds(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def reference_value(kind: FieldType, value: Any, precision: int | None) -> Any:
    """A JSON value as the reference takes it."""
    if value is None:
        return None
    read = {
        "string": str,
        "integer": int,
        "number": float,
        "boolean": bool,
        "date": dt.date.fromisoformat,
        "time": dt.time.fromisoformat,
        "timestamp": lambda text: reference.Instant(microseconds(text)),
        "timestamp_local": lambda text: reference.Local(microseconds(text)),
        "decimal": lambda text: Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=WIDE),
        "binary": bytes.fromhex,
        "geometry": lambda text: reference.Wkb(bytes.fromhex(text), precision or 0),
        "list": lambda values: [reference_value(kind.members[0][1], each, None) for each in values],
        "struct": lambda values: {name: reference_value(member, values.get(name), None) for name, member in kind.members},
    }
    return read[kind.kind](value)


def arrow_value(kind: FieldType, value: Any) -> Any:
    """A JSON value as pyarrow takes it for the contract's Arrow type."""
    if value is None:
        return None
    if kind.kind in {"timestamp", "timestamp_local"}:
        return microseconds(value)
    if kind.kind in {"binary", "geometry"}:
        return bytes.fromhex(value)
    if kind.kind == "list":
        return [arrow_value(kind.members[0][1], each) for each in value]
    if kind.kind == "struct":
        return {name: arrow_value(member, value.get(name)) for name, member in kind.members}
    return reference_value(kind, value, None)


def rules_of(vector: dict[str, Any]) -> reference.Rules:
    grid, dimensions = vector["grid"], vector["dimensions"]
    return reference.Rules(
        reference.Grids(grid["xy"], grid["z"], grid["m"]),
        z=dimensions in {"as_is", "xyz", "xyzm"},
        m=dimensions in {"as_is", "xym", "xyzm"},
        either_way=vector["direction"] == "irrelevant",
    )


def wkb_of(vector: dict[str, Any]) -> bytes | None:
    return None if vector["wkb"] is None else bytes.fromhex(vector["wkb"])


def reference_payload(vector: dict[str, Any]) -> bytes:
    attributes = {
        each["name"]: reference_value(parse_type(each["type"]), each["value"], each.get("precision")) for each in vector["attributes"]
    }
    return reference.payload(wkb_of(vector), attributes, rules_of(vector))


def arrow_of(vector: dict[str, Any]) -> tuple[pa.Table, Layout]:
    """One row with the vector's geometry and attributes, and the layout that a contract with these types gives."""
    columns, names, fields = [pa.array([wkb_of(vector)], pa.binary())], ["geometry"], []
    for place, each in enumerate(vector["attributes"]):
        kind = parse_type(each["type"])
        columns.append(pa.array([arrow_value(kind, each["value"])], arrow_type(kind)))
        names.append(each["name"])
        fields.append(DigestField(each["name"], kind, Grid(each["precision"]) if "precision" in each else None))
        assert names[place + 1] == each["name"]
    grid = vector["grid"]
    shape = Shape("any", vector["dimensions"], vector["direction"])
    return pa.table(columns, names=names), Layout(tuple(fields), Grid(grid["xy"], grid["z"], grid["m"]), shape)
