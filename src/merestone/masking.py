"""Passwords and tokens in text that people, logs and records see, replaced by `***`.

Not here: which text is a path or a URL (`storage.place`), control characters on a terminal (`render.text`).

A secret comes in as a part of an address: before the @ of a URL, in its query, or as a value of a connection string. Every error and every
place passes through `masked` once, where it is made: no later reader of the message has to know of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from merestone.json_value import Json

MASK: Final = "***"

# Names and schemes have a longest length: a long text without any takes time in proportion to its length.
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}:)(?P<slashes>/{1,3})(?P<rest>[^\s\"'<>`/][^\s\"'<>`]*)")
_ORACLE: Final = re.compile(r"\b(OCI:)[^\s@]{1,500}@", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(Bearer|Basic)(\s+|%20|\+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# A value may be in quotes (libpq), in braces (ODBC) or bare. A bare one ends where the next pair begins.
_PAIR: Final = re.compile(
    r"""(?P<name>[A-Za-z][\w.%-]{0,60}|%[0-9A-Fa-f]{2}[\w.%-]{0,60})(?P<sign>\s{0,3}(?:=|%3[Dd])\s{0,3})"""
    r"""(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\{[^}]{0,500}\}|[^\s&;,'"<>`)\]]+)"""
)
_SECRET_NAME: Final = re.compile(
    r"x-(amz|goog)-.*"
    r"|.*(passw(or)?d|passphrase|pwd|secret|token|signature|credential|api[_-]?key|apikey|access[_-]?key|account[_-]?key|private[_-]?key).*"
    r"|.*authorization.*|pass|pw|sig|sas|auth|bearer|.*session[_-]?(id|key).*"
)
# Names that are secrets in the query of a URL and plain words elsewhere (`key=parcel_id`).
_QUERY_NAME: Final = re.compile(r"key|code|awsaccesskeyid|googleaccessid|subscription-key")


def masked(text: str) -> str:
    """Text with the secrets of every URL and connection string in it replaced by `***`; other text comes back as it is."""
    text = _URL.sub(_address, text)
    text = _ORACLE.sub(rf"\1{MASK}@", text)
    text = _PAIR.sub(lambda found: _pair(found, text), text)
    return _BEARER.sub(rf"\1\2{MASK}", text)


def masked_within(value: Json) -> Json:
    """A JSON value with the secrets of every text in it masked."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {name: masked_within(each) for name, each in value.items()}
    return [masked_within(each) for each in value] if isinstance(value, (list, tuple)) else value


def _address(found: re.Match[str]) -> str:
    local = found["scheme"].lower() == "file:" and found["slashes"] != "//"
    return found[0] if local else found["scheme"] + found["slashes"] + _without_user(found["rest"])


def _without_user(rest: str) -> str:
    """What follows `scheme://`, without user and password."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return f"{MASK}@{rest[authority.rindex('@') + 1 :]}"
    # A password may hold /, ? or # unescaped. What follows the colon is then not a port, or no port ends in ? or #.
    port = re.match(r"[^:/?#]*:(\d*)(.?)", authority + rest[len(authority) : len(authority) + 1])
    if port is not None and port[2] != "/" and "@" in rest:
        return f"{MASK}@{rest[rest.rindex('@') + 1 :]}"
    return rest


def _pair(found: re.Match[str], text: str) -> str:
    name = unquote(found["name"]).lower()
    in_query = found.start() > 0 and text[found.start() - 1] in "?&"
    if _SECRET_NAME.fullmatch(name) or (in_query and _QUERY_NAME.fullmatch(name)):
        return f"{found['name']}{found['sign']}{MASK}"
    return found[0]
