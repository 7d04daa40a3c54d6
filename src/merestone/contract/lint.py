"""What is unwise in a valid contract: clauses that cannot be enforced (errors), careless ones (warnings), marks to confirm.

Not here: whether it is a contract at all (`definition`, `laws`), files (`contract.files`), exit codes (`cli`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from merestone.contract.body import body
from merestone.contract.contract import Contract, Field
from merestone.contract.definition import CONTRACT, is_container
from merestone.document.forms import Form, Group, Keyed, Listed, nearest
from merestone.document.yaml_reader import Document, Path, path_text
from merestone.json_value import Json, JsonObject
from merestone.reference.area import largest_ordinate
from merestone.reference.ground import metres_per_unit
from merestone.reference.systems import horizontal, of_code
from merestone.reference.units import Unit, common_units, unit_of

Level = Literal["error", "warning", "confirm"]
_EXACT: Final = 2**53  # integers up to here are exact in a double
_KEY_KINDS: Final = ("string", "integer", "date", "time", "timestamp", "timestamp_local", "decimal", "boolean", "binary")
_TIME_KINDS: Final = ("date", "timestamp", "timestamp_local")
_LATER: Final = {"monitor": "the monitor observes it", "http": "answers over HTTP keep it"}


@dataclass(frozen=True, slots=True)
class LintMessage:
    """One remark: an error (exit 1), a warning, or a guess that its author marked `# confirm`."""

    level: Level
    path: str
    message: str
    hint: str = ""
    line: int | None = None

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {"level": self.level, "path": self.path, "message": self.message, "hint": self.hint, "line": self.line}


Remark = tuple[Path, str, str]


@dataclass(frozen=True, slots=True)
class LintRule:
    """One lint rule with its words; `check` yields path, message and hint."""

    level: Level
    words: str
    check: Callable[[Contract], Iterator[Remark]]


def lint(contract: Contract, document: Document | None = None) -> tuple[LintMessage, ...]:
    """All remarks on a contract: errors, then warnings, then marks.

    Args:
        contract: a contract that `parse` has read.
        document: where it was read from, for lines and for what its author stated.
    """
    found = [
        LintMessage(rule.level, path_text(path), message, hint, document.line(path) if document else None)
        for rule in RULES
        for path, message, hint in rule.check(contract)
    ]
    for path in contract.confirm:
        place = document.positions[path] if document else None
        words = f"is a guess: {place.remark}" if place and place.remark else "is a guess that waits for a person"
        found.append(LintMessage("confirm", path, words, "check it and remove the `# confirm` mark", place.line if place else None))
    order = {"error": 0, "warning": 1, "confirm": 2}
    return tuple(sorted(found, key=lambda each: order[each.level]))


# --- errors ----------------------------------------------------------------------------------------------------------------------------


def _horizontal(contract: Contract) -> Iterator[Remark]:
    for path, code, _ in _grids(contract):
        crs = horizontal(of_code(code))
        if not (crs.is_geographic or crs.is_projected):
            yield path, f"EPSG:{code} ({crs.name}) has no horizontal axes", "name a geographic or projected CRS"


def _grids(contract: Contract) -> Iterator[tuple[Path, int, int]]:
    """Path, EPSG code and precision of every geometry."""
    yield ("crs_epsg",), contract.crs_epsg, contract.coordinate_precision
    for place, field in enumerate(contract.schema_fields):
        if field.crs_epsg is not None and field.coordinate_precision is not None:
            yield ("schema_fields", place, "crs_epsg"), field.crs_epsg, field.coordinate_precision


def _range(contract: Contract) -> Iterator[Remark]:
    for path, code, precision in _grids(contract):
        largest = largest_ordinate(f"EPSG:{code}")
        if largest * 10.0 ** (precision + 3) >= _EXACT:
            most = math.ceil(math.log10(_EXACT / largest)) - 4
            yield (
                (*path[:-1], "coordinate_precision"),
                f"{precision} decimals of ordinates up to {largest:,.0f} cannot be computed exactly",
                f"at most {most} decimals are possible in EPSG:{code}",
            )


def _key(contract: Contract) -> Iterator[Remark]:
    names = [field.name for field in contract.schema_fields]
    for place, name in enumerate(contract.key):
        path: Path = ("key", place)
        field = contract.field(name)
        if field is None:
            close = nearest(name, names)
            yield path, f"{name} is not a field of schema_fields", f"did you mean {close}?" if close else "add the field to schema_fields"
        elif field.type.kind == "number":
            yield path, f"{name} is of type number: a key is never a float", "make the field an integer, a decimal or a string"
        elif field.type.kind not in _KEY_KINDS:
            yield path, f"{name} is of type {field.type}, which cannot be a key", "choose a field with a single value"
        elif not field.compared:
            yield path, f"{name} is volatile or derived: it cannot identify a feature", "choose a field that never changes"


def _freshness(contract: Contract) -> Iterator[Remark]:
    name = contract.freshness_from
    if name is None or name == "delivered_at":
        return
    field = contract.field(name)
    if field is None:
        close = nearest(name, [*(each.name for each in contract.schema_fields), "delivered_at"])
        yield (
            ("freshness_from",),
            f"{name} is not a field of schema_fields",
            f"did you mean {close}?" if close else "name a field, or delivered_at",
        )
    elif field.type.kind not in _TIME_KINDS:
        yield (
            ("freshness_from",),
            f"{name} is of type {field.type}: no freshness can be read from it",
            "name a date or timestamp, or delivered_at",
        )


def _derived(contract: Contract) -> Iterator[Remark]:
    shape = contract.geometry_type.removeprefix("multi")
    impossible = {"area": ("point", "linestring"), "length": ("point",)}
    for place, field in enumerate(contract.schema_fields):
        measure = field.derived.measure if field.derived else None
        if measure and shape in impossible[measure]:
            yield ("schema_fields", place, "derived", "measure"), f"a {shape} has no {measure}", "remove the measure"


def _edges(contract: Contract) -> Iterator[Remark]:
    if contract.geometry.edges == "spherical" and not horizontal(of_code(contract.crs_epsg)).is_geographic:
        yield ("geometry", "edges"), f"edges on the sphere have no meaning in EPSG:{contract.crs_epsg}", "write planar"


def _topology(contract: Contract) -> Iterator[Remark]:
    path, rule_set, kind = ("topology_rule_set",), contract.topology_rule_set, contract.geometry_type
    fits = _TOPOLOGY_OF.get(rule_set, (kind,))
    if kind not in (*fits, "geometry", "geometrycollection"):
        yield path, f"{rule_set} has no meaning for geometry_type {kind}", f"it judges {' and '.join(fits)}"
    elif rule_set == "3d_solid" and "z" not in contract.geometry.ordinates:
        yield path, "3d_solid judges faces with Z, and the contract has none", "promise `geometry: {dimensions: xyz}`"
    elif rule_set != "none" and contract.geometry.edges == "spherical":
        yield (
            path,
            f"{rule_set} is judged on straight edges in the plane, and the contract promises great circles",
            "promise `geometry: {edges: planar}`",
        )
    for name, _ in contract.topology_parameters:
        if rule_set != "none" and name not in _FIGURES_OF[rule_set]:
            yield ("topology_parameters", name), f"says nothing about {rule_set}", "remove it"


_TOPOLOGY_OF = {
    "planar": ("polygon", "multipolygon"),
    "network": ("linestring", "multilinestring"),
    "3d_solid": ("polygon", "multipolygon"),
}
_FIGURES_OF: dict[str, tuple[str, ...]] = {"planar": ("gap_width", "tolerance"), "network": ("dangle_length", "tolerance"), "3d_solid": ()}


def _noise(contract: Contract) -> Iterator[Remark]:
    rule_set = contract.topology_rule_set
    if rule_set != "none" and contract.noise > 0:
        yield (
            ("geometry", "noise"),
            f"what is kept feature by feature would tear vertices apart that features share under {rule_set}",
            "remove it, or write 0",
        )


# --- warnings --------------------------------------------------------------------------------------------------------------------------


def _nulls(contract: Contract) -> Iterator[Remark]:
    for name, meaning in contract.semantics:
        field = contract.field(name)
        if field is not None and not field.nullable and meaning.null_means is not None:
            yield ("semantics", name, "null_means"), f"{name} is never null, so null means nothing", "remove it, or make the field nullable"


def _units(contract: Contract) -> Iterator[tuple[Path, str, Unit | None]]:
    """Path, text and meaning of every unit."""
    for place, field in enumerate(contract.schema_fields):
        stated = field.unit, field.derived.unit if field.derived is not None else None
        for path, text in zip((("unit",), ("derived", "unit")), stated, strict=True):
            if text is not None:
                yield ("schema_fields", place, *path), text, unit_of(text)


def _unknown_units(contract: Contract) -> Iterator[Remark]:
    for path, text, unit in _units(contract):
        if unit is None:
            close = nearest(text, common_units())
            yield (
                path,
                f"{text} is not a known unit",
                f"did you mean {close}?" if close else "use a common name, an ISO 4217 currency or a UCUM code",
            )


def _odd_units(contract: Contract) -> Iterator[Remark]:
    for path, text, unit in _units(contract):
        if unit is not None and unit.odd:
            yield path, f"{text} has a prefix on a unit that is used without one", "check that this unit is meant"


def _ground_grid(contract: Contract) -> Iterator[Remark]:
    for path, code, precision in _grids(contract):
        grid = metres_per_unit(of_code(code)) / 10.0**precision
        stamp = contract.contract_version
        resolution = stamp.resolution_m
        # A little room: res 1 mm at 3 decimals of a metre is meant to fit although 0.001 is not a binary fraction.
        if not resolution / 1000 * (1 - 1e-9) <= grid <= resolution * (1 + 1e-9):
            finer = "finer than the content can be known" if grid < resolution / 1000 else "coarser than the content"
            yield (
                (*path[:-1], "coordinate_precision"),
                f"{precision} decimals are a grid of {grid:.3g} m on the ground, {finer} (resolution {stamp.resolution})",
                "change the precision, or the resolution in contract_version",
            )


def _deprecated_crs(contract: Contract) -> Iterator[Remark]:
    for path, code, _ in _grids(contract):
        crs = of_code(code)
        if crs.is_deprecated:
            better = [each.to_authority() for each in crs.get_non_deprecated()]
            names = ", ".join(":".join(each) for each in better if each)
            yield path, f"EPSG:{code} is deprecated by EPSG", f"use {names}" if names else "look for its replacement at https://epsg.org"


def _case(contract: Contract) -> Iterator[Remark]:
    seen: dict[str, str] = {}
    for place, field in enumerate(contract.schema_fields):
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            yield (
                ("schema_fields", place, "name"),
                f"{field.name} and {other} differ in case only",
                "many tools take them for one column; rename one",
            )


def _key_nullable(contract: Contract) -> Iterator[Remark]:
    for place, field in enumerate(contract.schema_fields):
        if field.name in contract.key and field.nullable:
            yield ("schema_fields", place), f"{field.name} is the key but nullable; a null key is always refused", "write nullable: false"


def _ordinates_without_use(contract: Contract) -> Iterator[Remark]:
    for letter in "zm":
        if getattr(contract.geometry, f"{letter}_precision") is not None and letter not in contract.geometry.ordinates[2:]:
            yield (
                ("geometry", f"{letter}_precision"),
                f"has no use for dimensions {contract.geometry.dimensions}",
                "remove it, or change the dimensions",
            )


def _extent(contract: Contract) -> Iterator[Remark]:
    largest = largest_ordinate(f"EPSG:{contract.crs_epsg}")
    if contract.extent is not None and largest and max(abs(each) for each in contract.extent) > 2 * largest:
        yield (
            ("extent",),
            f"reaches far beyond the area of use of EPSG:{contract.crs_epsg} (ordinates up to {largest:,.0f})",
            "give it in the units of the contract's CRS, x before y",
        )


def _raster_only(contract: Contract) -> Iterator[Remark]:
    for name, _ in contract.extra:
        if name in ("bands", "pixel") and contract.geometry_type != "raster":
            yield (name,), "has a meaning for rasters only", "remove it"


def _unenforced(contract: Contract) -> Iterator[Remark]:
    for path, by in _promised(body(contract), CONTRACT, ()):
        yield path, f"is a promise that nothing in this version keeps ({by})", "remove it until a version enforces it"


def _promised(value: Json, form: Form, path: Path) -> Iterator[tuple[Path, str]]:
    """The paths of clauses whose enforcer is not in this version, each with what enforces it."""
    match form:
        case Group(clauses=clauses):
            for clause in clauses:
                if clause.name not in value or value[clause.name] in ("none", None, *clause.idle):
                    continue
                here = (*path, clause.name)
                if clause.enforcer in _LATER and (path or not clause.required) and not is_container(clause):
                    yield here, _LATER[clause.enforcer]
                yield from _promised(value[clause.name], clause.form, here)
        case Listed(item=Group() as item):
            for place, each in enumerate(value):
                yield from _promised(each, item, (*path, place))
        case Keyed(item=item):
            for name, each in value.items():
                yield from _promised(each, item, (*path, name))


def _time_zones(contract: Contract) -> Iterator[Remark]:
    for place, field in enumerate(contract.schema_fields):
        if _zone_is_idle(field):
            yield (
                ("schema_fields", place, "time_zone"),
                "a timestamp is an instant in UTC whatever the zone",
                "use timestamp_local for local times",
            )


def _zone_is_idle(field: Field) -> bool:
    return field.time_zone is not None and field.type.kind == "timestamp" and field.time_zone != "UTC"


RULES: Final = (
    LintRule("error", "`crs_epsg` has horizontal axes.", _horizontal),
    LintRule(
        "error",
        "max |ordinate of the CRS's area of use| x 10^(precision + 3) is below 2^53: about 10 decimals in degrees, 5 in metres.",
        _range,
    ),
    LintRule("error", "`key` names fields with single values, none of them a float, volatile or derived.", _key),
    LintRule("error", "`freshness_from` names a date or timestamp field, or is `delivered_at`.", _freshness),
    LintRule("error", "`derived.measure` exists for the geometry type.", _derived),
    LintRule("error", "Spherical edges need a geographic CRS.", _edges),
    LintRule("error", "`topology_rule_set` and its parameters fit the geometry type, its dimensions and planar edges.", _topology),
    LintRule("error", "`geometry.noise` is 0 under topology rules.", _noise),
    LintRule("error", "Every clause has an enforcer in this version, but for required ones that are observed in operation.", _unenforced),
    LintRule("error", "`unit` is a common name or symbol, an ISO 4217 currency or a UCUM code.", _unknown_units),
    LintRule("warning", "A prefix stands on a unit that is used with prefixes.", _odd_units),
    LintRule("warning", "A field that is never null has no `null_means`.", _nulls),
    LintRule("warning", "The grid on the ground (a degree counts as 111,320 m) lies between res/1000 and res.", _ground_grid),
    LintRule("warning", "The CRS is not deprecated.", _deprecated_crs),
    LintRule("warning", "Names of fields differ in more than case.", _case),
    LintRule("warning", "Key fields are not nullable.", _key_nullable),
    LintRule("warning", "`z_precision` and `m_precision` belong to `dimensions` that have them.", _ordinates_without_use),
    LintRule("warning", "`extent` lies near the CRS's area of use.", _extent),
    LintRule("warning", "`bands` and `pixel` stand in raster contracts only.", _raster_only),
    LintRule("warning", "A `timestamp` has no `time_zone` of its own.", _time_zones),
)
