"""Rules that bind several clauses of a contract, or a clause and a fixed list such as PROJ's database; each with its words.

Not here: the form of a single clause (`definition`), careless but valid contracts (`lint`).
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from merestone.columnar.patterns import fault_of
from merestone.contract.contract import FieldType
from merestone.document.forms import BROKEN, Report, nearest, shorten
from merestone.document.yaml_reader import Path
from merestone.json_value import Json, JsonObject
from merestone.reference.identity import epsg_twin
from merestone.reference.systems import epsg_name, foreign_name, is_degrees, of_code
from merestone.words import listed

_SCALAR_KINDS = ("string", "integer", "number", "boolean", "date", "time", "timestamp", "timestamp_local", "decimal", "binary")
_ENUM_KINDS = tuple(kind for kind in _SCALAR_KINDS if kind != "binary")


@dataclass(frozen=True, slots=True)
class Law:
    """One rule. `check` gets the canonical values of the valid clauses and reports what it finds."""

    words: str
    check: Callable[[JsonObject, Report], None]


def _fields(values: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    for place, each in enumerate(values.get("schema_fields", ())):
        if each is not BROKEN:
            yield place, each


def _kind(field: JsonObject) -> str:
    kind = field.get("type")
    return kind.kind if isinstance(kind, FieldType) else ""


def _stamp_names_the_crs(values: JsonObject, report: Report) -> None:
    stamp, code = values.get("contract_version"), values.get("crs_epsg")
    if stamp is not None and code is not None and stamp.epsg != code:
        report.add(
            ("contract_version",),
            f"names EPSG:{stamp.epsg}, but crs_epsg is {code}",
            "make the two agree; another CRS is a new major version",
        )
    if stamp is not None and stamp.resolution_m == 0:
        report.add(
            ("contract_version",),
            f"a resolution of {stamp.resolution} is none",
            "give the ground resolution of the content, such as res:1m",
        )


def _crs_is_known(values: JsonObject, report: Report) -> None:
    places: list[tuple[Path, Json]] = [(("crs_epsg",), values.get("crs_epsg"))]
    places += [(("schema_fields", place, "crs_epsg"), field.get("crs_epsg")) for place, field in _fields(values)]
    for path, code in places:
        if code is None or epsg_name(code) is not None:
            continue
        foreign = foreign_name(code)
        if foreign is None:
            report.add(path, f"EPSG:{code} is not a CRS that PROJ knows", "look the code up at https://epsg.org")
        else:
            twin = epsg_twin(foreign)
            report.add(
                path, f"EPSG has no code {code}; it is {foreign}", f"use {twin}, the same system" if twin else "use a CRS with an EPSG code"
            )


def _names_are_unique(values: JsonObject, report: Report) -> None:
    seen: dict[str, int] = {}
    for place, field in _fields(values):
        name = field.get("name")
        if name in seen:
            report.add(
                ("schema_fields", place, "name"),
                f"{shorten(name)} is already the name of schema_fields[{seen[name]}]",
                "names must differ after Unicode normalisation (NFC); rename one",
            )
        elif name is not None:
            seen[name] = place
    chosen = values.get("geometry", {}).get("name")
    if chosen in seen:
        report.add(
            ("geometry", "name"), f"{shorten(chosen)} is already the name of schema_fields[{seen[chosen]}]", "choose another column name"
        )


def _second_geometry_is_described(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        for clause in ("crs_epsg", "coordinate_precision"):
            path = ("schema_fields", place, clause)
            if _kind(field) == "geometry" and clause not in field:
                report.add(path, "is missing: a second geometry states its own", f"add `{clause}` to the field")
            elif _kind(field) not in ("geometry", "") and clause in field:
                report.add(path, f"has no meaning for type {field['type']}", "remove it; the contract's own stands at the top level")


def _numbers_are_kept_one_way(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        for clause in ("decimals", "digits"):
            if clause in field and _kind(field) not in ("number", ""):
                report.add(("schema_fields", place, clause), f"has no meaning for type {field['type']}", "only numbers have it; remove it")
        if "decimals" in field and "digits" in field:
            report.add(("schema_fields", place, "digits"), "stands beside decimals", "keep one: decimals, or digits for a wide range")
        if "noise" in field and "decimals" not in field and "digits" not in field:
            report.add(("schema_fields", place, "noise"), "has no grid to be measured by", "add `decimals` or `digits`, or remove it")


def _pattern_is_usable(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        pattern = field.get("pattern")
        if pattern is None:
            continue
        path = ("schema_fields", place, "pattern")
        if _kind(field) not in ("string", ""):
            report.add(path, f"has no meaning for type {field['type']}", "only text fields have patterns")
        fault = fault_of(pattern)
        if fault is not None:
            report.add(path, f"{shorten(pattern)!r} {fault.words}", fault.instead)


def _zone_is_known(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        zone = field.get("time_zone")
        if zone is None:
            continue
        path = ("schema_fields", place, "time_zone")
        if _kind(field) not in ("timestamp", "timestamp_local", ""):
            report.add(path, f"has no meaning for type {field['type']}", "only timestamps have a time zone")
        known = zoneinfo.available_timezones()
        if known and zone not in known:
            close = nearest(zone, sorted(known))
            report.add(
                path, f"{shorten(zone)!r} is not an IANA time zone", f"did you mean {close}?" if close else "such as Europe/Amsterdam"
            )


def _flags_fit_the_type(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        kind = _kind(field)
        if field.get("unique") and kind not in (*_SCALAR_KINDS, ""):
            report.add(("schema_fields", place, "unique"), f"cannot be judged for type {field['type']}", "remove it")
        if "derived" in field and kind not in ("integer", "number", "decimal", ""):
            report.add(
                ("schema_fields", place, "derived"), f"has no meaning for type {field['type']}", "only numbers are measured on a geometry"
            )


def _semantics_name_fields(values: JsonObject, report: Report) -> None:
    fields = {field["name"]: field for _, field in _fields(values) if "name" in field}
    if "schema_fields" not in values or len(fields) < len(values["schema_fields"]):
        return  # a field that could not be read may be the one that is meant
    for name, meaning in values.get("semantics", {}).items():
        if name not in fields:
            close = nearest(name, list(fields))
            report.add(
                ("semantics", name),
                "is not a field of schema_fields",
                f"did you mean {close}?" if close else "add the field, or remove this",
            )
        elif meaning.get("open") and "enum" not in meaning:
            report.add(
                ("semantics", name, "open"), "stands without an enum, so every value is allowed already", "add the `enum`, or remove this"
            )
        elif "enum" in meaning and "type" in fields[name]:
            _members_fit(fields[name]["type"], meaning["enum"], ("semantics", name, "enum"), report)


def _members_fit(kind: FieldType, members: list[Json], path: Path, report: Report) -> None:
    member_kind = kind.members[0][1] if kind.kind == "list" else kind  # of a list, every item is one of the members
    if member_kind.kind not in _ENUM_KINDS:
        report.add(path, f"cannot be judged for type {kind}", "remove it")
        return
    seen: dict[Json, int] = {}
    for place, member in enumerate(members):
        here = (*path, place)
        if member is BROKEN:
            continue
        if not fits(member_kind, member):
            hint = "put it in quotes" if member_kind.kind == "string" else f"write a value of type {member_kind}"
            report.add(here, f"{report.kind(here, member)}, but the field is of type {kind}", hint)
            continue
        if member in seen:
            report.add(here, f"repeats entry {seen[member]}", "remove one")
        seen.setdefault(member, place)


def fits(kind: FieldType, value: Json) -> bool:
    """Whether a value of the document is of a scalar type; dates and times are ISO 8601 text, decimals numbers or text."""
    try:
        match kind.kind:
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "integer" | "number" | "decimal":
                return not isinstance(value, bool) and _is_number(kind, value)
            case "date":
                return isinstance(value, str) and len(value) == len("2024-01-01") and bool(dt.date.fromisoformat(value))
            case "time":
                return isinstance(value, str) and dt.time.fromisoformat(value) is not None
            case "timestamp" | "timestamp_local":
                zoned = isinstance(value, str) and dt.datetime.fromisoformat(value).tzinfo is not None
                return isinstance(value, str) and zoned == (kind.kind == "timestamp")
            case _:
                return False
    except ValueError:
        return False


def _is_number(kind: FieldType, value: object) -> bool:
    if kind.kind == "integer":
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if kind.kind == "number":
        return isinstance(value, int | float)
    return isinstance(value, int | float | str) and _is_decimal(kind, str(value))


def _is_decimal(kind: FieldType, text: str) -> bool:
    if re.fullmatch(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", text) is None:
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    exact = number.normalize().as_tuple()
    places = max(0, -int(exact.exponent))
    return places <= kind.scale and len(exact.digits) + max(0, int(exact.exponent)) - places <= kind.precision - kind.scale


_BOUNDED_KINDS = ("integer", "number", "decimal", "date", "timestamp", "timestamp_local")
_BOUNDS = (("min", "max", _BOUNDED_KINDS), ("min_length", "max_length", ("string",)), ("min_items", "max_items", ("list",)))


def _bounds_fit_the_type(values: JsonObject, report: Report) -> None:
    for place, field in _fields(values):
        for low, high, kinds in _BOUNDS:
            stated = [name for name in (low, high) if name in field and field[name] is not BROKEN]
            if not stated or not _kind(field):
                continue
            path = ("schema_fields", place, stated[0])
            if _kind(field) not in kinds:
                report.add(path, f"has no meaning for type {field['type']}", f"only {listed(kinds, len(kinds))} have it; remove it")
                continue
            wrong = [name for name in stated if low == "min" and not fits(field["type"], field[name])]
            for name in wrong:
                here = ("schema_fields", place, name)
                report.add(
                    here, f"{report.kind(here, field[name])}, but the field is of type {field['type']}", "write a value of that type"
                )
            if not wrong and len(stated) == 2 and bound(field["type"], field[low]) > bound(field["type"], field[high]):
                report.add(path, f"is above {high}", "exchange them")
    least, most = values.get("min_features"), values.get("max_features")
    if least is not None and most is not None and least > most:
        report.add(("min_features",), "is above max_features", "exchange them")


def bound(kind: FieldType, value: Json) -> Json:
    """A bound as a value that compares: a number, a date or a time."""
    match kind.kind:
        case "decimal":
            return Decimal(str(value))
        case "date":
            return dt.date.fromisoformat(value)
        case "timestamp" | "timestamp_local":
            return dt.datetime.fromisoformat(value)
        case _:
            return value


def _extent_has_an_inside(values: JsonObject, report: Report) -> None:
    extent = values.get("extent")
    if extent is None or any(each is BROKEN for each in extent):
        return
    code = values.get("crs_epsg")
    across = extent[0] > extent[2] and code is not None and epsg_name(code) is not None and is_degrees(of_code(code))
    if across and not -180 <= extent[2] < extent[0] <= 180:
        report.add(("extent",), "crosses the antimeridian beyond -180 to 180 degrees", "write xmin east of xmax, both from -180 to 180")
    elif not ((across or extent[0] < extent[2]) and extent[1] < extent[3]):
        report.add(
            ("extent",),
            f"{[f'{each:g}' for each in extent]} has no inside".replace("'", ""),
            "write xmin, ymin, xmax, ymax in the contract's CRS; only in degrees xmin may lie east of xmax, across the antimeridian",
        )


def _topology_has_figures(values: JsonObject, report: Report) -> None:
    if values.get("topology_parameters") and values.get("topology_rule_set", "none") == "none":
        report.add(("topology_parameters",), "belong to a topology_rule_set, and there is none", "name the rule set, or remove the figures")


LAWS = (
    Law("`contract_version` names the CRS of `crs_epsg` and a resolution above zero.", _stamp_names_the_crs),
    Law("Every `crs_epsg` is a code that PROJ's database knows.", _crs_is_known),
    Law("Names of fields differ after NFC, and from `geometry.name`.", _names_are_unique),
    Law(
        "A field of type geometry states its own `crs_epsg` and `coordinate_precision`; no other field does.", _second_geometry_is_described
    ),
    Law("`decimals` or `digits` stands on numbers only, one of them, and `noise` of a field beside it.", _numbers_are_kept_one_way),
    Law("`pattern` stands on text fields only and is a regular expression of RE2: no look-around, no back references.", _pattern_is_usable),
    Law("`time_zone` stands on timestamps only and is an IANA name.", _zone_is_known),
    Law("`unique` stands on single values, `derived` on numbers.", _flags_fit_the_type),
    Law(
        "`semantics` speaks of fields in `schema_fields`; members of an `enum` are different and of the field's type, or of its "
        "items' for a list (dates and times as ISO 8601 text).",
        _semantics_name_fields,
    ),
    Law(
        "`min` and `max` stand on numbers, dates and timestamps and are of the field's type (dates and times as ISO 8601 text), lengths on text, "
        "items on lists; no minimum is above its maximum.",
        _bounds_fit_the_type,
    ),
    Law("`extent` has an inside.", _extent_has_an_inside),
    Law("`topology_parameters` need a `topology_rule_set` other than none.", _topology_has_figures),
)
