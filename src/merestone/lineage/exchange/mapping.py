"""How a rejection log of another tool reads as lineage: a versioned mapping from the members of its lines to the fields of an event.

Not here: reading the lines (`ingest`), the YAML file (`audit.ingest` reads it).

    mapping_version: 1
    plan: [crs_normalize, validate]        # the stages of that tool, in order; may be left out
    fields:
      run_id: {field: job.id}              # a member of the line; dots go into objects
      feature_id: {field: fid}
      event_time_utc: {field: ts, unit: ms}  # iso (by default), s, ms or us since 1970
      rejection_reason: {field: error, default: no reason was logged}
      stage: {value: validate}             # the same for every line
      qualifier: {field: rule}             # optional; separates what one stage records more than once for a feature: validate.<rule>
      source_crs: {value: EPSG:25832}
      target_crs: {value: EPSG:25832}
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Tree
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merestone.identity.key import written
from merestone.json_value import JsonObject
from merestone.lineage.event.record import EVENT_TYPES, LineageEvent
from merestone.lineage.event.schema import SCHEMA

VERSION = 1
REQUIRED = ("run_id", "feature_id", "event_time_utc", "rejection_reason", "stage", "source_crs", "target_crs")
_UNITS = {"iso": 0, "s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999, in microseconds
_RFC_3339 = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})?")
_PLAIN_TIME = r"^(?:[1-8]\d{3}|9[0-8]\d{2})-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$"
_TIME = pa.timestamp("us", "UTC")
QUALIFIER = "qualifier"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Where one field of the event comes from: a member of the line (`path`), or `value` for every line."""

    path: tuple[str, ...] = ()
    value: Any = None
    default: Any = None
    unit: str = "iso"


@dataclass(frozen=True, slots=True)
class LogMapping:
    """A read mapping. Every line becomes an event with outcome REJECT."""

    rules: dict[str, FieldRule]
    plan: tuple[str, ...] = ()

    def event(self, line: JsonObject, sequence: int) -> LineageEvent:
        """The event that a line describes.

        Raises:
            ValueError: a member is missing or of a kind that the field cannot hold.
        """
        values: JsonObject = {}
        for name, rule in self.rules.items():
            found = _value(line, rule)
            if found is None and name in REQUIRED:
                raise ValueError(f"{'.'.join(rule.path)} is missing; {name} is read from it")
            values[name] = _fitted(name, found, rule)
        qualifier = values.pop(QUALIFIER, None)
        if qualifier is not None:
            values["stage"] = f"{values['stage']}.{qualifier}"
        return LineageEvent(**{"event_type": "REJECT", **values, "outcome": "REJECT", "sequence": sequence})

    def columns(self, lines: Sequence[JsonObject]) -> tuple[dict[str, list[Any]], Any]:
        """The same for many lines: a list of values a field, and the times as a pyarrow array, null where `event` has to look."""
        found: dict[str, list[Any]] = {"event_type": ["REJECT"] * len(lines)}
        times = pa.nulls(len(lines), _TIME)
        for name, rule in self.rules.items():
            values = [_value(line, rule) for line in lines]
            if name == "event_time_utc":
                times = whole_times(values) if rule.unit == "iso" else _times_since(values, _UNITS[rule.unit])
            elif name in ("feature_id", QUALIFIER):
                values = [str(each) if type(each) is int else each for each in values]
            elif name == "accuracy_m":
                values = [exact_float(each) for each in values]
            found[name] = values
        if (qualifiers := found.pop(QUALIFIER, None)) is not None:
            found["stage"] = [_qualified(*pair) for pair in zip(found["stage"], qualifiers, strict=True)]
        return {**found, "outcome": ["REJECT"] * len(lines), "sequence": [0] * len(lines)}, times


def read_mapping(tree: Any) -> LogMapping:
    """A mapping from its YAML tree.

    Raises:
        ValueError: what is wrong, with the path of the clause.
    """
    if not isinstance(tree, Tree):
        raise ValueError("the mapping is not an object")  # noqa: TRY004 - a fault of the file's text, like the others
    if unknown := tree.keys() - {"mapping_version", "plan", "fields"}:
        raise ValueError(f"{', '.join(map(str, sorted(unknown)))} is not a clause of a mapping")
    if tree.get("mapping_version") != VERSION:
        raise ValueError(f"mapping_version is {tree.get('mapping_version')!r}; this version of Merestone reads {VERSION}")
    plan = tree.get("plan") or []
    if not isinstance(plan, list) or not all(isinstance(each, str) and each for each in plan):
        raise ValueError("plan is not a list of stages")
    fields = tree.get("fields")
    if not isinstance(fields, Tree):
        raise ValueError("fields is missing")  # noqa: TRY004 - as above
    rules = {str(name): _rule(str(name), rule) for name, rule in fields.items()}
    if missing := [name for name in REQUIRED if name not in rules]:
        raise ValueError(f"fields.{missing[0]} is missing")
    return LogMapping(rules, tuple(str(each) for each in plan))


def _rule(name: str, rule: Any) -> FieldRule:
    where = f"fields.{name}"
    if (name != QUALIFIER and SCHEMA.field(name) is None) or name in ("event_id", "sequence", "outcome"):
        raise ValueError(f"{where}: no field that a mapping fills")
    if not isinstance(rule, Tree) or ("field" in rule) == ("value" in rule):
        raise ValueError(f"{where} has to be {{field: NAME}} or {{value: TEXT}}")
    if unknown := rule.keys() - {"field", "value", "default", "unit"}:
        raise ValueError(f"{where}.{min(map(str, unknown))} is unknown")
    unit = rule.get("unit", "iso")
    if unit not in _UNITS or (unit != "iso" and name != "event_time_utc"):
        raise ValueError(f"{where}.unit is {unit!r}; times have one of {', '.join(_UNITS)}")
    if name == "event_type" and rule.get("value", "REJECT") not in EVENT_TYPES:
        raise ValueError(f"{where}.value is none of {', '.join(EVENT_TYPES)}")
    path = rule.get("field")
    if "field" in rule and (not isinstance(path, str) or not path):
        raise ValueError(f"{where}.field is not a name")
    return FieldRule(tuple(path.split(".")) if path else (), rule.get("value"), rule.get("default"), unit)


def _value(line: JsonObject, rule: FieldRule) -> Any:
    found = _member(line, rule) if rule.path else rule.value
    return rule.default if found is None else found


def _qualified(stage: Any, qualifier: Any) -> Any:
    """A stage with its qualifier; None where `event` has to look."""
    if qualifier is None:
        return stage
    return f"{stage}.{qualifier}" if isinstance(stage, str) and isinstance(qualifier, str) else None


def _member(line: JsonObject, rule: FieldRule) -> Any:
    if ".".join(rule.path) in line:  # a name that holds a dot itself
        return line[".".join(rule.path)]
    found: Any = line
    for name in rule.path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _fitted(name: str, value: Any, rule: FieldRule) -> Any:
    if value is None:
        return None
    if name == "event_time_utc":
        return read_time(value) if rule.unit == "iso" else _since(value, _UNITS[rule.unit])
    if name in ("feature_id", QUALIFIER):
        return identity_text(value, name)
    if name == "accuracy_m":
        return exact_float(value)
    if name == "rejection_reason" and not isinstance(value, str):
        raise ValueError(f"the reason is {value!r}; it has to be a text")
    return value


def identity_text(value: Any, name: str = "feature_id") -> str:
    r"""A feature's id as lineage writes it: NFC, a control character as an escape such as \u000a; an integer by its digits."""
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; it has to be a text or an integer")  # noqa: TRY004 - every refusal of an event is a ValueError
    return written(value)


def exact_float(value: Any) -> Any:
    """JSON has one kind of number: an integer stands for the float that equals it, where there is one."""
    return float(value) if type(value) is int and abs(value) <= 1 << 53 else value


def read_time(value: Any) -> datetime:
    """RFC 3339 text as a time; a time without a zone is refused by the event itself."""
    if not isinstance(value, str):
        raise ValueError(f"event_time_utc is {value!r}; it has to be RFC 3339 text")  # noqa: TRY004 - as above
    parts = _RFC_3339.fullmatch(value)
    if parts is None:
        raise ValueError(f"event_time_utc {value!r} is not an RFC 3339 time")
    day, clock, fraction, zone = parts.groups()
    if fraction and fraction[6:].strip("0"):
        raise ValueError(f"event_time_utc {value!r} is finer than a microsecond")
    try:
        found = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '')[:6]:0<6}{(zone or '').upper()}")
        return found if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"event_time_utc {value!r} is not an RFC 3339 time") from None


def whole_times(values: Sequence[Any]) -> pa.Array:
    """RFC 3339 texts as a pyarrow array of times; null where `read_time` has to look: no text, no zone, an odd form, no such day."""
    texts = pa.array([each if isinstance(each, str) and each.isascii() else None for each in values], pa.string())
    plain = pc.if_else(pc.match_substring_regex(texts, _PLAIN_TIME), texts, None)
    try:
        return pc.cast(plain, _TIME)
    except pa.ArrowInvalid:  # a day or an hour that is none
        return pa.nulls(len(values), _TIME)


def _times_since(values: Sequence[Any], microseconds: int) -> pa.Array:
    """As `whole_times`, for whole numbers since 1970."""
    low, high = _FIRST // microseconds + 1, _LAST // microseconds
    numbers = [each * microseconds if type(each) is int and low <= each <= high else None for each in values]
    return pa.array(numbers, pa.int64()).cast(_TIME)


def _since(value: Any, microseconds: int) -> datetime:
    if type(value) is not int:
        raise ValueError(f"event_time_utc is {value!r}; it has to be a whole number since 1970")
    try:
        return _EPOCH + timedelta(microseconds=value * microseconds)
    except OverflowError:
        raise ValueError(f"event_time_utc {value} lies beyond the year 9999") from None
