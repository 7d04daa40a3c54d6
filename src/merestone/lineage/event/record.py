"""One lineage event: its identity, its order, and the exact check of its values.

Not here: many events in columns (`collector`), files (`store`), the list of fields (`schema`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from merestone.lineage.event.schema import SCHEMA

SEPARATOR = "\x1f"
ATTEMPT_BITS = 48
"""How many low bits of a sequence tell of an event within its attempt."""
MAX_ATTEMPT = (1 << 15) - 1
MAX_BATCH = (1 << 24) - 1
MAX_EVENTS_OF_BATCH = 1 << 24

EVENT_TYPES: tuple[str, ...] = next(each.enum for each in SCHEMA.fields if each.name == "event_type")
OUTCOMES: tuple[str, ...] = next(each.enum for each in SCHEMA.fields if each.name == "outcome")
IDENTITY = ("run_id", "stage", "feature_id", "event_type")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def make_event_id(run_id: str, stage: str, feature_id: str, event_type: str) -> str:
    """The identity of an event: blake2b (16 bytes, hex) over the UTF-8 of the four texts joined by U+001F. This recipe never changes.

    Raises:
        ValueError: a part is not a text, is empty, is not NFC, holds a control character or cannot be written as UTF-8.
    """
    parts = (run_id, stage, feature_id, event_type)
    for name, value in zip(IDENTITY, parts, strict=True):
        check_identity(name, value)
    return blake2b(SEPARATOR.join(parts).encode(), digest_size=16).hexdigest()


def check_identity(name: str, value: object) -> None:
    """Refuse a text that may not be part of an event's identity.

    Raises:
        ValueError: as `make_event_id`.
    """
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, of type {type(value).__name__}; it has to be a text")  # noqa: TRY004 - every refusal of an event is a ValueError
    if not value:
        raise ValueError(f"{name} is empty")
    if found := _CONTROL.search(value):
        raise ValueError(f"{name} {value!r} holds the control character U+{ord(found[0]):04X}; write it as \\u{ord(found[0]):04x}")
    if not unicodedata.is_normalized("NFC", value):
        raise ValueError(f"{name} {value!r} is not in Unicode normal form NFC")
    _utf8(name, value)


def make_sequence(attempt: int, batch: int, n: int) -> int:
    """The order of an event within its run: attempt << 48 | batch << 24 | n.

    Raises:
        ValueError: a part does not fit; a batch closes before 2^24 events.
    """
    for name, value, most in (("attempt", attempt, MAX_ATTEMPT), ("batch", batch, MAX_BATCH), ("n", n, MAX_EVENTS_OF_BATCH - 1)):
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(f"{name} is {value!r}; it has to be an integer from 0 to {most}")
    return attempt << ATTEMPT_BITS | batch << 24 | n


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEvent:
    """One action on one feature; fields as in `lineage_schema.yaml`. Nothing is coerced.

    `event_time_utc` is an aware datetime (of any zone: it is an instant). `target_crs` may come in any spelling; the collector writes it
    as EPSG:<code> or refuses it.

    Raises:
        ValueError: a value is of another type than the field's (1.5 or True for an integer, an integer for a time), missing, not finite,
            out of range, none of the field's values; a time without a zone; a REJECT without a reason, a PASS with one, event_type REJECT
            with another outcome.
    """

    run_id: str
    sequence: int
    event_time_utc: datetime
    stage: str
    event_type: str
    feature_id: str
    source_crs: str
    target_crs: str
    outcome: str
    strategy_index: int | None = None
    accuracy_m: float | None = None
    rejection_reason: str | None = None
    tool_version: str | None = None
    audit_tag: str | None = None
    change_class: str | None = None
    from_partition: str | None = None
    to_partition: str | None = None
    contract_version: str | None = None

    def __post_init__(self) -> None:
        for field in SCHEMA.fields:
            if field.name != "event_id":
                check_value(field.name, getattr(self, field.name))
        check_verdict(self.event_type, self.outcome, self.rejection_reason)

    def event_id(self) -> str:
        """The deterministic identity (`make_event_id`)."""
        return make_event_id(self.run_id, self.stage, self.feature_id, self.event_type)


def check_value(name: str, value: object) -> None:
    """Refuse a value that the field of that name cannot hold exactly.

    Raises:
        ValueError: as `LineageEvent`.
    """
    field = SCHEMA.field(name)
    if field is None:
        raise ValueError(f"{name} is not a field of the lineage schema {SCHEMA.version}")
    if value is None:
        if field.required:
            raise ValueError(f"{name} is missing")
        return
    if name in IDENTITY:
        check_identity(name, value)
    _CHECKS[field.type](name, value)
    if field.required and value == "":
        raise ValueError(f"{name} is empty")
    if field.enum and value not in field.enum:
        raise ValueError(f"{name} is {value!r}; it has to be one of {', '.join(field.enum)}")
    if name in ("sequence", "strategy_index", "accuracy_m") and value < 0:  # type: ignore[operator] # checked to be a number above
        raise ValueError(f"{name} is {value!r}; it cannot be negative")


def check_verdict(event_type: str, outcome: str, reason: str | None) -> None:
    """Refuse an event whose type, outcome and reason contradict each other.

    Raises:
        ValueError: as `LineageEvent`.
    """
    if event_type == "REJECT" and outcome != "REJECT":
        raise ValueError(f"event_type is REJECT and outcome {outcome}; an event of type REJECT has outcome REJECT")
    if outcome == "REJECT" and (reason is None or not reason.strip()):
        raise ValueError("outcome is REJECT without a rejection_reason")
    if outcome == "PASS" and reason is not None:
        raise ValueError(f"outcome is PASS with the rejection_reason {reason!r}; a doubt is a WARN")


def _utf8(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise ValueError(f"{name} {value!r} cannot be written as UTF-8: it holds half of a surrogate pair") from fault


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(_wrong(name, value, "a text"))  # noqa: TRY004 - every refusal of an event is a ValueError
    _utf8(name, value)


def _integer(bits: int) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        if type(value) is not int:
            raise ValueError(_wrong(name, value, "an integer"))
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"{name} is {value}; it does not fit in {bits} bits")

    return check


def _number(name: str, value: object) -> None:
    if type(value) is not float:
        raise ValueError(_wrong(name, value, "a float"))
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; leave it out where it is not known")


def _time(name: str, value: object) -> None:
    if not isinstance(value, datetime):
        raise ValueError(_wrong(name, value, "a datetime with a time zone"))  # noqa: TRY004 - every refusal of an event is a ValueError
    if value.utcoffset() is None:
        raise ValueError(f"{name} {value.isoformat()} has no time zone")
    if getattr(value, "nanosecond", 0):  # pandas' subclass is finer than the field
        raise ValueError(f"{name} {value.isoformat()} is finer than a microsecond")


def _wrong(name: str, value: object, expected: str) -> str:
    return f"{name} is {value!r}, of type {type(value).__name__}; it has to be {expected}"


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "string": _text,
    "int32": _integer(32),
    "int64": _integer(64),
    "float64": _number,
    "timestamp[us, UTC]": _time,
}
