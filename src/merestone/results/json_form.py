"""One form for every answer: a frozen dataclass gives its JSON object and the JSON Schema of that object.

Not here: the answers themselves (`result`, `api.answers`), printing (`render.jsonout`).

The object holds the fields of the class in their order. A field whose metadata are `PERSON` is for people and stays out of the object.
`renamed` gives a field another name in JSON, and `when_set` leaves a field out where it is None. The words of a field in the schema and
in the reference are its line in the docstring of the class, under `Attributes:`.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Mapping, Sequence
from pathlib import Path  # noqa: TID253 - the type of a value; nothing is opened
from typing import Any, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from merestone.json_value import Json, JsonObject

PERSON: Final[Mapping[str, Json]] = {"merestone.person": True}
"""Metadata of a field that only people read."""
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_NAME, _WHEN_SET = "merestone.name", "merestone.when_set"
_ENTRY = re.compile(r"^ {4}(?P<name>\w+): (?P<words>.*)$")
_PLAIN: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}


def renamed(name: str) -> JsonObject:
    """Metadata of a field that has another name in JSON (`from` cannot be a name in Python)."""
    return {_NAME: name}


def when_set() -> JsonObject:
    """Metadata of a field that the object lacks where it is None."""
    return {_WHEN_SET: True}


def fields(kind: type) -> list[dataclasses.Field[Any]]:
    """The fields of a class that stand in its JSON object, in order."""
    return [each for each in dataclasses.fields(kind) if not each.metadata.get("merestone.person")]


def name_of(field: dataclasses.Field[Any]) -> str:
    """The name of a field in JSON."""
    return str(field.metadata.get(_NAME, field.name))


def to_json(value: object) -> Json:
    """A value as JSON has it: a dataclass as an object, a tuple as an array, a path as text.

    Raises:
        TypeError: JSON has no form for the value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name_of(each): to_json(found)
            for each in fields(type(value))
            if (found := getattr(value, each.name)) is not None or not each.metadata.get(_WHEN_SET)
        }
    if isinstance(value, Mapping):
        return {str(name): to_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def described(kind: type) -> dict[str, str]:
    """What the docstring of a class says of each attribute, by its name in Python."""
    found: dict[str, str] = {}
    last = None
    _, _, part = (kind.__doc__ or "").partition("Attributes:\n")
    for line in part.splitlines():
        text = line[4:] if line.startswith("    " * 2) else line
        entry = _ENTRY.match(text)
        if entry:
            last = entry["name"]
            found[last] = entry["words"].strip()
        elif last is not None and text.startswith(" " * 6):
            found[last] += " " + text.strip()
        elif text.strip():
            break
    return found


def summary(kind: type) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((kind.__doc__ or "").strip().partition("\n\n")[0].split())


def schema(kind: type, name: str | None = None) -> JsonObject:
    """The JSON Schema (draft 2020-12) of the object that `to_json` makes of a class.

    Args:
        kind: a dataclass.
        name: the title; by default the name of the class.
    """
    shared: JsonObject = {}
    whole = _of_class(kind, shared)
    out: JsonObject = {"$schema": DRAFT, "title": name or kind.__name__, **whole}
    if shared:
        out["$defs"] = dict(sorted(shared.items()))
    return out


def schema_of_any(kinds: Sequence[type], name: str) -> JsonObject:
    """The JSON Schema of the object of one of several classes."""
    shared: JsonObject = {}
    choices = [_of_type(each, shared) for each in kinds]
    return {"$schema": DRAFT, "title": name, "anyOf": choices, "$defs": dict(sorted(shared.items()))}


def _of_class(kind: type, shared: JsonObject) -> JsonObject:
    hints, words = get_type_hints(kind), described(kind)
    listed = fields(kind)
    properties = {}
    for each in listed:
        hint = hints[each.name]
        form = _of_type(_present(hint) if each.metadata.get(_WHEN_SET) else hint, shared)
        properties[name_of(each)] = ({"description": words[each.name]} if each.name in words else {}) | form
    return {
        "description": summary(kind),
        "type": "object",
        "properties": properties,
        "required": [name_of(each) for each in listed if not each.metadata.get(_WHEN_SET)],
        "additionalProperties": False,
    }


def _present(hint: Any) -> Any:
    """The type of a field where it holds something."""
    return Union[tuple(each for each in get_args(hint) if each is not type(None))]  # noqa: UP007 - the parts are known at run time only


def _of_typed_dict(kind: Any, shared: JsonObject) -> JsonObject:
    hints = get_type_hints(kind)
    return {
        "description": summary(kind),
        "type": "object",
        "properties": {name: _of_type(each, shared) for name, each in hints.items()},
        "required": sorted(kind.__required_keys__, key=list(hints).index),
        "additionalProperties": False,
    }


def _of_type(hint: Any, shared: JsonObject) -> JsonObject:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint is None or hint is type(None):
        return {"type": "null"}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is NotRequired:
        return _of_type(arguments[0], shared)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _of_union([_of_type(each, shared) for each in arguments])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [_of_type(each, shared) for each in arguments], "minItems": len(arguments), "items": False}
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": _of_type(arguments[0], shared)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(arguments[1], shared)}
    if is_typeddict(hint) or dataclasses.is_dataclass(hint):
        name = hint.__name__
        if name not in shared:
            shared[name] = {}  # a class that holds itself meets its own name
            shared[name] = _of_typed_dict(hint, shared) if is_typeddict(hint) else _of_class(hint, shared)
        return {"$ref": f"#/$defs/{name}"}
    raise TypeError(f"{hint!r} has no JSON Schema")


def _of_union(forms: list[JsonObject]) -> JsonObject:
    """`str | None` as one type list or one enum where that says it, anything else as anyOf."""
    if any(form == {} for form in forms):
        return {}
    if all(set(form) == {"type"} for form in forms):
        return {"type": [form["type"] for form in forms]}
    choices = [form for form in forms if set(form) == {"enum"}]
    if len(choices) == 1 and all(form in (*choices, {"type": "null"}) for form in forms):
        return {"enum": [*choices[0]["enum"], None]}
    return {"anyOf": forms}
