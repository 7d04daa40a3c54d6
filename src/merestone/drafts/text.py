"""Drafts: facts about a delivery to the text of a contract and of a publication file, guesses marked `# confirm`.

Not here: finding the facts (`infer`, `init`), minting identifiers, writing files.

What is drafted is read back by `parse` and by `publication.reader`, and lints without errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from merestone.contract.contract import AxisOrder, Dimensions, FieldType, GeometryType
from merestone.contract.stamp import Stamp
from merestone.json_value import Json, JsonObject
from merestone.reference.area import largest_ordinate
from merestone.reference.ground import metres_per_unit
from merestone.reference.systems import of_code

OWNER_UNKNOWN: Final = "owner@example.org"

_PLAIN = re.compile(r"(?:[A-Za-z_]|\.{0,2}/)[A-Za-z0-9_.@/\-]*")
# Plain words that YAML 1.2, or a YAML 1.1 reader that a colleague may use, takes for something else than text.
_WORDS: Final = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
_EXACT: Final = 2**53
_UNITS: Final = (("mm", 0.001), ("cm", 0.01), ("m", 1.0), ("km", 1000.0))


@dataclass(frozen=True, slots=True)
class Note:
    """What stands beside a drafted line; `confirm` marks the line as a guess for a person to check."""

    text: str
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """What was found about one column. `crs_epsg` and `coordinate_precision` belong to a second geometry."""

    name: str
    type: FieldType
    nullable: bool = True
    unit: str | None = None
    unique: bool = False
    volatile: bool = False
    derived: bool = False
    decimals: int | None = None
    digits: int | None = None
    enum: tuple[str | int | float | bool, ...] | None = None
    crs_epsg: int | None = None
    coordinate_precision: int | None = None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """What was found about a delivery; `notes` are by path of the contract (`key`, `coordinate_precision`, `geometry`)."""

    name: str
    product_id: str
    epsg: int
    axis_order: AxisOrder
    geometry_type: GeometryType
    coordinate_precision: int
    fields: tuple[FieldFacts, ...]
    key: tuple[str, ...] = ()
    owner: str | None = None
    resolution: str | None = None
    dimensions: Dimensions = "xy"
    z_precision: int | None = None
    m_precision: int | None = None
    null_geometry: bool = False
    empty_geometry: bool = False
    spherical: bool = False
    extent: tuple[float, float, float, float] | None = None
    extents: tuple[tuple[str, tuple[float, float, float, float]], ...] = ()
    freshness_sla_minutes: int = 1440
    availability_target: float = 0.99
    freshness_from: str | None = None
    came: tuple[FieldFacts, ...] = ()
    """Columns that an older export does not have: comments, for a person to take in."""
    drafted_from: str = ""
    notes: Mapping[str, Note] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublicationFacts:
    """How a drafted dataset is made; paths are written as given, relative to the publication file. `notes` are by key."""

    contract: str
    source: str
    destination: str
    layer: str | None = None
    crs: str | None = None
    encoding: str | None = None
    geometry: str | None = None
    key: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    partition: Mapping[str, str | int] = field(default_factory=dict)
    max_rejected: float | None = None
    extra_columns: bool = False
    notes: Mapping[str, Note] = field(default_factory=dict)


def possible_precision(epsg: int, wanted: int) -> int:
    """The precision wanted, or the finest that can be computed exactly in this CRS (the range rule of docs/spec/fingerprint.md#rounding)."""
    largest = largest_ordinate(f"EPSG:{epsg}")
    while wanted > 0 and largest * 10.0 ** (wanted + 3) >= _EXACT:
        wanted -= 1
    return wanted


def resolution_for(epsg: int, precision: int) -> str:
    """A nominal ground resolution that fits a precision: ten grid steps, rounded up to a power of ten of a metre.

    A guess: the grid says how finely coordinates are kept, not how well the content is known.
    """
    grid = metres_per_unit(of_code(epsg)) / 10.0**precision
    metres = 10.0 ** (math.ceil(round(math.log10(grid), 6)) + 1)
    if metres < _UNITS[0][1]:
        return f"{metres / _UNITS[0][1]:.9f}".rstrip("0") + _UNITS[0][0]
    unit, size = [(unit, size) for unit, size in _UNITS if size <= metres * (1 + 1e-9)][-1]
    return f"{round(metres / size)}{unit}"


def draft_contract(facts: ContractFacts) -> str:
    """The text of a contract, one line a field."""
    notes = {**_standing_notes(facts), **facts.notes}
    resolution = facts.resolution or resolution_for(facts.epsg, facts.coordinate_precision)
    stamp = Stamp(1, 0, 0, facts.epsg, resolution)
    origin = f", drafted from {facts.drafted_from}" if facts.drafted_from else ""
    lines = [
        *_comment_lines(f"Contract of {facts.name}{origin}: what a consumer can rely on."),
        *_comment_lines("Lines marked 'confirm' are guesses: check them, then remove the mark. `merestone contract lint` counts them."),
        _line("contract_version", f'"{stamp}"', notes),
        _line("product_id", _quoted(facts.product_id), notes),
        _line("name", _scalar(facts.name), notes),
        _line("product_owner_id", _scalar(facts.owner or OWNER_UNKNOWN), notes),
        _line("crs_epsg", str(facts.epsg), notes),
        _line("axis_order", facts.axis_order, notes),
        _line("geometry_type", facts.geometry_type, notes),
        _line("coordinate_precision", str(facts.coordinate_precision), notes),
    ]
    geometry = _stated(
        nullable=facts.null_geometry or None,
        empty=facts.empty_geometry or None,
        dimensions=None if facts.dimensions == "xy" else facts.dimensions,
        z_precision=facts.z_precision,
        m_precision=facts.m_precision,
        edges="spherical" if facts.spherical else None,
    )
    if geometry:
        lines.append(_line("geometry", _flow(geometry), notes))
    if facts.extent is not None:
        lines.append(_line("extent", _box(facts.extent), notes))
    if facts.extents:
        lines += _comment_lines("The positions fit both ways round. Take the # away from the line that is right, and delete the other:")
        lines += [line for words, box in facts.extents for line in _comment_lines(f"extent: {_box(box)}  # {words}")]
    if facts.key:
        lines.append(_line("key", _names(facts.key), notes))
    lines.append(_line("freshness_sla_minutes", str(facts.freshness_sla_minutes), notes))
    if facts.freshness_from is not None:
        lines.append(_line("freshness_from", _scalar(facts.freshness_from), notes))
    lines.append(_line("availability_target", _scalar(facts.availability_target), notes))
    lines.append("schema_fields:")
    lines += [f"  - {_flow(_field(each))}{_remark(each.note)}" for each in facts.fields]
    if facts.came:
        lines.append(
            "  # Not in the older export, or of another type there. Take a line in once every export has it so, and raise the stamp:"
        )
        lines += [f"  # - {_flow(_field(each))}{_remark(each.note)}" for each in facts.came]
    enums = [(each.name, each.enum) for each in facts.fields if each.enum is not None]
    if enums:
        lines.append("semantics:")
        lines += [
            f"  {_scalar(name)}: {{enum: [{', '.join(map(_scalar, enum))}]}}{_remark(notes.get(f'semantics.{name}'))}"
            for name, enum in enums
        ]
    return "\n".join(lines) + "\n"


def _box(box: tuple[float, float, float, float]) -> str:
    return f"[{', '.join(f'{each:.10g}' for each in box)}]"


def _standing_notes(facts: ContractFacts) -> dict[str, Note]:
    """Notes on clauses that no data can show."""
    notes = {
        "freshness_sla_minutes": Note("how old may the content be? 1440 is a day", confirm=True),
        "availability_target": Note("what share of the time must it be readable?", confirm=True),
    }
    if facts.resolution is None:
        notes["contract_version"] = Note("the resolution of the content, guessed from the precision", confirm=True)
    if facts.owner is None:
        notes["product_owner_id"] = Note("the accountable steward; nobody was named", confirm=True)
    return notes


def _field(facts: FieldFacts) -> JsonObject:
    return {
        "name": facts.name,
        "type": str(facts.type),
        "nullable": facts.nullable,
        **_stated(
            unit=facts.unit,
            unique=facts.unique or None,
            volatile=facts.volatile or None,
            derived={} if facts.derived else None,
            crs_epsg=facts.crs_epsg,
            coordinate_precision=facts.coordinate_precision,
            decimals=facts.decimals,
            digits=facts.digits,
        ),
    }


def draft_publication(facts: PublicationFacts) -> str:
    """The text of a publication file that leaves every default as it is, with the usual settings shown as comments."""
    notes = facts.notes
    source = _stated(layer=facts.layer, crs=facts.crs, encoding=facts.encoding, geometry=facts.geometry)
    lines = [
        *_comment_lines("How the dataset is made. `merestone publish` takes this file; another delivery may be named in the call."),
        _line("contract", _scalar(facts.contract), notes),
        _line("source", _flow({"path": facts.source, **source}) if source else _scalar(facts.source), notes),
    ]
    if facts.columns:
        lines.append(_line("columns", _flow(dict(facts.columns)), notes))
    if facts.key:
        lines.append(_line("key", _names(facts.key), notes))
    lines.append(_line("destination", _scalar(facts.destination), notes))
    if facts.partition:
        lines.append(_line("partition", _flow(dict(facts.partition)), notes))
    else:
        lines.append("# partition: {by: column, column: district}   # default: {by: kdtree, target_rows: 50000}")
    if facts.extra_columns:
        lines.append(_line("extra_columns", "warn", notes))
    lines.append("# guard: {max_changed_fraction: 0.2}             # a larger change waits for a person")
    if facts.max_rejected is None:
        lines.append("# rejects: {max_fraction: 0, published: hold}    # with more rejected rows the delivery is refused")
    else:
        lines.append(_line("rejects", _flow({"max_fraction": facts.max_rejected}), notes))
    return "\n".join(lines) + "\n"


# --- text ------------------------------------------------------------------------------------------------------------------------------


def _stated(**values: Json) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _line(key: str, value: str, notes: Mapping[str, Note]) -> str:
    return f"{key}: {value}{_remark(notes.get(key))}"


def _remark(note: Note | None) -> str:
    if note is None:
        return ""
    text = " ".join(_visible(note.text).split())
    mark = "confirm: " if note.confirm else ""
    return f"  # {mark}{text}".rstrip(": ") if not text else f"  # {mark}{text}"


def _comment_lines(text: str) -> Iterator[str]:
    yield f"# {' '.join(_visible(text).split())}"


def _visible(text: str) -> str:
    """Text without control characters and line breaks of any kind."""
    return "".join(each if each.isprintable() else " " for each in text)


def _names(names: tuple[str, ...]) -> str:
    return _scalar(names[0]) if len(names) == 1 else f"[{', '.join(map(_scalar, names))}]"


def _flow(values: Mapping[str, Json]) -> str:
    return (
        "{"
        + ", ".join(f"{_scalar(name)}: {_flow(each) if isinstance(each, Mapping) else _scalar(each)}" for name, each in values.items())
        + "}"
    )


def _scalar(value: str | float | bool) -> str:
    """A value as YAML 1.2 that reads back the same, safe within flow collections."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
    return value if plain else _quoted(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else _escape(ord(each)) for each in escaped) + '"'


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
