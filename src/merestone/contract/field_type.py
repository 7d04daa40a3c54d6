"""The grammar of a field's type: `decimal(10,2)`, `list<string>`, `struct<k: integer, u: string>`.

Not here: the Arrow type that a contract type becomes (`normalise`), which values a type admits (`gate`).

    type    = scalar | list | struct | "geometry"
    scalar  = "string" | "integer" | "number" | "boolean" | "date" | "time" | "timestamp" | "timestamp_local" | "binary" | decimal
    decimal = "decimal(" precision "," scale ")"          precision 1 to 38, scale 0 to precision
    list    = "list<" member ">"
    struct  = "struct<" name ":" member { "," name ":" member } ">"
    member  = scalar | list of scalars | struct of scalars
"""

from __future__ import annotations

import re
import unicodedata

from merestone.contract.contract import FieldType
from merestone.document.forms import nearest, shorten

SCALARS = ("string", "integer", "number", "boolean", "date", "time", "timestamp", "timestamp_local", "binary")
MAX_NESTING = 2  # list<struct<k: integer>> is the deepest
MAX_DECIMAL = 38  # digits of Arrow's decimal128

_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")
_NEST = re.compile(r"(list|struct)\s*<(.*)>", re.DOTALL)
_OTHER_NAMES = {
    "str": "string",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "int": "integer",
    "int64": "integer",
    "int32": "integer",
    "bigint": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "real": "number",
    "float64": "number",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "bytes": "binary",
    "blob": "binary",
    "numeric": "decimal(p,s)",
    "decimal": "decimal(p,s)",
    "array": "list<string>",
    "list": "list<string>",
    "object": "struct<name: type>",
    "struct": "struct<name: type>",
    "map": "struct<name: type>",
    "uuid": "string",
    "json": "string",
}


def parse_type(text: str) -> FieldType:
    """Read a type.

    Raises:
        ValueError: the text is not of the grammar above; the message names the part and, where one is near, the type meant.
    """
    return _parse(text.strip(), 0, text.strip())


def _parse(text: str, depth: int, whole: str) -> FieldType:
    if text in SCALARS:
        return FieldType(text)
    if text == "geometry":
        if depth:
            raise ValueError(f"{shorten(whole)!r}: a geometry cannot be part of a list or struct")
        return FieldType("geometry")
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        if not 1 <= precision <= MAX_DECIMAL or scale > precision:
            raise ValueError(f"{shorten(text)!r}: precision must be 1 to {MAX_DECIMAL} and scale 0 to the precision")
        return FieldType("decimal", precision=precision, scale=scale)
    nest = _NEST.fullmatch(text)
    if nest is None:
        raise ValueError(_unknown(text, whole))
    if depth == MAX_NESTING:
        raise ValueError(f"{shorten(whole)!r} nests deeper than {MAX_NESTING} levels")
    if nest[1] == "list":
        return FieldType("list", members=(("item", _parse(nest[2].strip(), depth + 1, whole)),))
    return FieldType("struct", members=_members(nest[2], depth, whole))


def _members(text: str, depth: int, whole: str) -> tuple[tuple[str, FieldType], ...]:
    """The members of a struct, in order."""
    members: dict[str, FieldType] = {}
    for part in _split(text):
        name, colon, member = part.partition(":")
        name = unicodedata.normalize("NFC", name.strip())
        if not colon or not name or any(each in "<>(),:" for each in name):
            raise ValueError(f"{shorten(whole)!r}: {shorten(part.strip())!r} is not `name: type`")
        if name in members:
            raise ValueError(f"{shorten(whole)!r} names the member {shorten(name)} twice")
        members[name] = _parse(member.strip(), depth + 1, whole)
    return tuple(members.items())


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for place, each in enumerate(text):
        if each in "<(":
            depth += 1
        elif each in ">)":
            depth -= 1
        elif each == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _unknown(text: str, whole: str) -> str:
    word = text.lower().split("(")[0].split("<")[0].strip()
    meant = _OTHER_NAMES.get(word) or nearest(text, (*SCALARS, "geometry"))
    inside = f" in {shorten(whole)!r}" if whole != text else ""
    tail = f"did you mean {meant}?" if meant else f"types are {', '.join(SCALARS)}, decimal(p,s), list<...>, struct<name: ...>, geometry"
    return f"{shorten(text)!r}{inside} is not a type; {tail}"


def type_pattern() -> str:
    """A regular expression for the grammar (ECMA 262); that a decimal's scale is within its precision it cannot say."""
    ws = r"\s*"
    digits = r"(?:[1-9]|[12][0-9]|3[0-8])"
    scale = r"(?:[0-9]|[12][0-9]|3[0-8])"
    level = "|".join((*SCALARS, rf"decimal{ws}\({ws}{digits}{ws},{ws}{scale}{ws}\)"))
    name = r"[^<>(),:]*[^<>(),:\s][^<>(),:]*"
    for _ in range(MAX_NESTING):
        member = f"{name}:{ws}(?:{level}){ws}"
        scalars = "|".join((*SCALARS, rf"decimal{ws}\({ws}{digits}{ws},{ws}{scale}{ws}\)"))
        level = f"{scalars}|list{ws}<{ws}(?:{level}){ws}>|struct{ws}<{member}(?:,{member})*>"
    return f"{level}|geometry"
