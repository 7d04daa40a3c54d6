"""A delivered batch in the contract's columns and types: names matched, values cast without loss, what does not fit named.

Not here: casting one column (`values`), whether null, enum or pattern hold (`gate`), the key's bytes (`identity`).
Clause: contract section 3, surface 1: names and types, lossless casts only; a column outside the contract is never published and
never dropped silently.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.contract.contract import Contract, FieldType
from merestone.document.forms import nearest
from merestone.normalise import values
from merestone.results.finding import Finding, RowFaults
from merestone.rules import catalogue
from merestone.source.columns import is_json_text
from merestone.source.port import Delivery

MACHINERY = "\u212b"  # ANGSTROM SIGN is not NFC, and every name of a contract or a delivery is: no column of theirs begins with it
_SHOWN = 100  # characters of a value in a message
PARTITION_COLUMN = MACHINERY + "partition_value"


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How one column of the result is made.

    `place` counts columns of the delivered schema, None where the delivery has none. `hopeless` is why no value of the delivered type
    can be cast: a finding on the delivery says so (`untypable_findings`) if the column holds a value, and never one on each row. An
    all-null column says nothing about its type: writers give it any.
    """

    target: str
    kind: FieldType
    place: int | None
    json_text: bool = False
    utc: bool = False
    hopeless: str | None = None
    outside: bool = False  # not of the contract: a key or partition column, kept in its own type


@dataclass(frozen=True, slots=True)
class CastPlan:
    """How the batches of one delivery become batches of `schema`, and what is wrong with the delivery as a whole.

    `schema`: key columns outside the contract, contract fields in contract order, `PARTITION_COLUMN` where the partition column is outside
    the contract, then the geometry columns as binary, the primary one first.
    """

    columns: tuple[ColumnPlan, ...]
    schema: pa.Schema
    findings: tuple[Finding, ...]


def plan_cast(
    contract: Contract,
    delivery: Delivery,
    columns: Mapping[str, str],
    key_columns: Sequence[str],
    partition_column: str | None,
    extra_columns: Literal["refuse", "warn"],
) -> CastPlan:
    """Match a delivery's columns with the contract's.

    Args:
        contract: the agreement.
        delivery: what the source says about itself.
        columns: delivered name to contract name, where they differ.
        key_columns: names of key columns, which may be outside the contract.
        partition_column: name of the partition column, if any; it may be outside the contract.
        extra_columns: whether a column that nobody asked for refuses the delivery.
    """
    findings: list[Finding] = []
    geometry = delivery.geometry
    renamed = {_nfc(old): _nfc(new) for old, new in columns.items()}
    named: dict[str, int] = {}
    for place, field in enumerate(delivery.schema):
        if geometry is not None and field.name == geometry.name and pa.types.is_binary(field.type):
            continue
        target = renamed.get(_nfc(field.name), _nfc(field.name))
        if target in named:
            findings.append(_twice(target, delivery.schema.field(named[target]).name, field.name))
        named.setdefault(target, place)
    findings += [_unmapped(old, new) for old, new in renamed.items() if old not in {_nfc(each) for each in delivery.schema.names}]

    agreed = {field.name: field.type for field in contract.schema_fields}
    outside = [name for name in dict.fromkeys(map(_nfc, key_columns)) if name not in agreed]
    wanted: list[tuple[str, FieldType | None]] = [(name, None) for name in outside]
    wanted += [(field.name, field.type) for field in contract.schema_fields if field.type.kind != "geometry"]
    plans = [_column(name, name, kind, named, delivery) for name, kind in wanted]
    if partition_column is not None and _nfc(partition_column) not in agreed:
        plans.append(_column(PARTITION_COLUMN, _nfc(partition_column), None, named, delivery))
    geometry_place = None if geometry is None else delivery.schema.get_field_index(geometry.name)
    plans.append(ColumnPlan(contract.geometry_name, FieldType("geometry"), geometry_place))
    plans += [
        _column(field.name, field.name, field.type, named, delivery) for field in contract.schema_fields if field.type.kind == "geometry"
    ]

    asked = {*agreed, *outside, *([_nfc(partition_column)] if partition_column is not None else [])}
    extra = [name for name, place in named.items() if name not in asked and delivery.schema.field(place).name != delivery.fid_column]
    computed = {field.name for field in contract.schema_fields if field.derived is not None and field.derived.measure is not None}
    missing = [each for each in plans if each.place is None and each.target not in computed]
    findings += [_missing(each, contract, partition_column, extra) for each in missing]
    findings += [_extra(name, extra_columns) for name in extra]
    cut = _cut_names(delivery, [each.target for each in missing], extra)
    if cut is not None:
        findings.append(cut)
    schema = pa.schema([pa.field(each.target, values.arrow_type(each.kind)) for each in plans])
    return CastPlan(tuple(plans), schema, tuple(findings))


def cast_batch(batch: pa.RecordBatch, plan: CastPlan) -> tuple[pa.RecordBatch, list[RowFaults]]:
    """One delivered batch in the plan's schema, and the rows with values that do not fit (rule `type`); those values are null.

    NaN in an attribute becomes null, text becomes NFC. Never loses a row.
    """
    out, faults = [], []
    for each, field in zip(plan.columns, plan.schema, strict=True):
        if each.place is None or each.hopeless is not None:
            out.append(pa.nulls(batch.num_rows, field.type))
            continue
        given = values.decoded(batch.column(each.place))
        array, bad = values.cast(given, each.kind, json_text=each.json_text, utc=each.utc)
        out.append(array)
        if bad.any():
            faults.append(_fault(each, given, bad))
    return pa.RecordBatch.from_arrays(out, schema=plan.schema), faults


def misfit_faults(plan: CastPlan, delivery: Delivery, first_row: int, rows: int) -> list[RowFaults]:
    """The cells of one batch that the source found to be no value of their column's type (rule `type`); they are null in the batch.

    Args:
        plan: which of the columns are wanted.
        delivery: where the source names the cells.
        first_row: the number of the batch's first row in the delivery, from 1.
        rows: how many rows the batch has.
    """
    out = []
    wanted = {delivery.schema.field(each.place).name: each for each in plan.columns if each.place is not None and each.hopeless is None}
    for cells in delivery.misfits:
        each = wanted.get(cells.name)
        low, high = np.searchsorted(cells.rows, [first_row, first_row + rows])
        if each is not None and high > low:
            observed = pc.utf8_slice_codeunits(cells.observed.slice(low, high - low), 0, _SHOWN)
            out.append(catalogue.TYPE.faults(each.target, cells.rows[low:high] - first_row, observed, case="cell", kind=cells.expected))
    return out


def holding(batch: pa.RecordBatch, plan: CastPlan) -> frozenset[str]:
    """The fields of a delivered batch that hold a value in a type that can never be cast."""
    return frozenset(
        each.target
        for each in plan.columns
        if each.place is not None and each.hopeless is not None and _holds_value(batch.column(each.place))
    )


def untypable_findings(plan: CastPlan, fields: Iterable[str]) -> list[Finding]:
    """One finding on the delivery for each of some fields that hold values in a type that can never be cast."""
    wanted = set(fields)
    return [_type_finding(each) for each in plan.columns if each.target in wanted and each.hopeless is not None]


def _column(target: str, name: str, kind: FieldType | None, named: Mapping[str, int], delivery: Delivery) -> ColumnPlan:
    place = named.get(name)
    if place is None:
        return ColumnPlan(target, kind or FieldType("string"), None, outside=kind is None)
    field = delivery.schema.field(place)
    json_text, utc = is_json_text(field), field.name in delivery.utc_columns
    if kind is None:
        natural = values.delivered_kind(field.type, utc=utc)
        natural = FieldType("string") if natural.kind == "null" else natural
        return ColumnPlan(target, natural, place, utc=utc, outside=True)
    hopeless = values.never(field.type, kind, json_text=json_text, utc=utc)
    return ColumnPlan(target, kind, place, json_text=json_text, utc=utc, hopeless=hopeless)


def _fault(each: ColumnPlan, given: pa.Array, bad: npt.NDArray[np.bool_]) -> RowFaults:
    rows = np.flatnonzero(bad)
    held = given.take(pa.array(rows))
    return catalogue.TYPE.faults(each.target, rows, _shown(held), kind=each.kind)


def _shown(array: pa.Array) -> pa.Array:
    """Values as text for a message, none longer than a message can show."""
    # Not silenced: Arrow has no text for lists, structs and bytes. Python has, so every value is shown.
    try:
        text = array.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        text = pa.array([repr(value) for value in array.to_pylist()], pa.string())
    return pc.utf8_slice_codeunits(text, 0, _SHOWN)


def _holds_value(array: pa.Array) -> bool:
    array = values.decoded(array)
    if pa.types.is_floating(array.type):
        return bool(pc.any(pc.is_finite(array)).as_py())
    return bool(array.null_count < len(array))


def _type_finding(each: ColumnPlan) -> Finding:
    return catalogue.COLUMN_TYPE.finding(each.target, name=each.target, kind=each.kind, why=each.hopeless)


def _missing(each: ColumnPlan, contract: Contract, partition_column: str | None, extra: Sequence[str]) -> Finding:
    name = str(partition_column) if each.target == PARTITION_COLUMN else each.target
    wanted = f"a column {name}" if each.outside else f"{name} ({each.kind})"
    if each.target == contract.geometry_name and each.kind.kind == "geometry":
        wanted = f"a geometry column ({contract.geometry_type})"
    meant = nearest(name, extra) if each.kind.kind != "geometry" else None  # a column that nobody asked for, under a name much like it
    if meant is None:
        return catalogue.MISSING.finding(name, name=name, wanted=wanted)
    mapping = f"{_in_yaml(meant)}: {_in_yaml(name)}"
    return catalogue.MISSING.finding(name, case="alike", name=name, wanted=wanted, meant=meant, mapping=mapping)


def _in_yaml(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else json.dumps(name, ensure_ascii=False)


def _extra(name: str, extra_columns: Literal["refuse", "warn"]) -> Finding:
    if extra_columns == "warn":
        return catalogue.EXTRA.finding(name, case="let_pass", severity="warning", name=name)
    return catalogue.EXTRA.finding(name, name=name)


def _twice(target: str, first: str, second: str) -> Finding:
    return catalogue.EXTRA.finding(target, case="twice", name=target, first=first, second=second)


def _unmapped(old: str, new: str) -> Finding:
    return catalogue.MISSING.finding(new, case="mapped", name=new, old=old)


def _cut_names(delivery: Delivery, missing: Sequence[str], extra: Sequence[str]) -> Finding | None:
    """Whether missing names stand there cut to what a DBF name can hold; which twin is which is unknown, so none is mapped."""
    if not delivery.padded_text:
        return None
    long = [name for name in missing if len(name.encode()) > 10]
    cut = [name for name in extra if any(_is_cut(name, each) for each in long)]
    if not long or not cut:
        return None
    return catalogue.NAME_CUT.finding(", ".join(long), count=len(cut), names=", ".join(long), cut=", ".join(cut))


def _is_cut(name: str, whole: str) -> bool:
    numbered = re.fullmatch(r"(.+)_\d{1,2}", name)
    return whole.startswith(name) or (numbered is not None and whole.startswith(numbered[1]))


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)
