"""The form of JSON that an event store holds, checked as a whole before any of it is believed.

Not here: which forms there are (`run_manifest`, `tombstone`, `retention`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from merestone.document.json_reader import parse_json
from merestone.json_value import Json, JsonObject

HASH = re.compile("[0-9a-f]{64}")
DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
PATH = re.compile(r"(?!\.\.?(/|$))[^/\\\x00]+(/(?!\.\.?(/|$))[^/\\\x00]+)*")
"""A name below a store, as stores know them."""
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def said(manifest: Mapping[str, Json]) -> bytes:
    """What a run manifest says, as its Merkle tree takes it: all members but the root, sorted by name, as JSON without blanks."""
    rest = {name: value for name, value in manifest.items() if name != "root"}
    return json.dumps(rest, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def read_json(data: bytes, form: JsonObject) -> JsonObject:
    """The JSON object in some bytes.

    A form is a type (exactly: true is not an int), a pattern of a text, None, a list of one form for its elements, a dict of the members that have to
    be there (further ones pass), or a tuple of forms, one of which has to fit.

    Raises:
        ValueError: it is not JSON, or of another form; the message names the member.
    """
    try:
        doc = parse_json(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check(doc, form, "it")
    found: JsonObject = doc
    return found


def _check(value: Any, form: Any, where: str) -> None:
    if isinstance(form, tuple):
        for each in form[:-1]:
            if _fits(value, each):
                return
        _check(value, form[-1], where)
    elif isinstance(form, dict) and type(value) is dict:
        for name, each in form.items():
            if name not in value:
                raise ValueError(f"{where} has no {name}")
            _check(value[name], each, f"{where}.{name}".removeprefix("it."))
    elif isinstance(form, list) and type(value) is list:
        for at, each in enumerate(value):
            _check(each, form[0], f"{where}[{at}]")
    elif not _fits(value, form):
        raise ValueError(f"{where} is {str(value)[:60]!r}")


def _fits(value: Any, form: Any) -> bool:
    """Whether a value fits a form that has no parts."""
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    return value is None if form is None else isinstance(form, type) and type(value) is form
