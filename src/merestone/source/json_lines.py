"""GeoJSON text sequences (one feature a line, or RFC 8142): telling them, and proving their records whole.

GDAL leaves out a record that it cannot parse, or makes a feature of what it can read of it, and says nothing.
Not here: reading features (`vector`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO

from merestone.errors import SourceError

_PEEK = 1 << 16
_RECORD_SEPARATOR = b"\x1e"
_LONGEST = 1 << 28


def is_sequence(file: IO[bytes]) -> bool:
    """Whether JSON text is a sequence of features and not one collection: its first line is a whole feature and not the last line."""
    head = file.readline(_PEEK)
    if head.startswith(_RECORD_SEPARATOR):
        return True
    if b'"FeatureCollection"' in head or not re.match(rb'\s*\{.*"Feature"', head, re.DOTALL):
        return False
    if not head.endswith(b"\n"):
        head += file.readline(_LONGEST)
    try:
        first = json.loads(head)
    except ValueError:
        return False
    return isinstance(first, dict) and first.get("type") == "Feature" and any(line.strip() for line in iter(file.readline, b""))


def check_records(file: IO[bytes], shown: str) -> int:
    """How many features a sequence has, each of them proved to be whole JSON.

    One Python object a record, at ten times the speed at which GDAL reads them afterwards.

    Raises:
        SourceError: a record is no JSON or no feature; names its number, counted from 1.
    """
    count = 0
    for count, text in enumerate(_records(file), start=1):
        try:
            value = json.loads(text)
            fault = None if isinstance(value, dict) and value.get("type") == "Feature" else "it is no Feature"
        except ValueError as broken:
            fault = str(broken)
        if fault is not None:
            raise SourceError(f"{shown} is broken or cut off at record {count}: {fault}", field=shown, hint="copy or export it again")
    return count


def _records(file: IO[bytes]) -> Iterator[bytes]:
    """The records one by one: between separators where the text has them (RFC 8142), else one a line."""
    held = b""
    separated = None
    for line in iter(file.readline, b""):
        if separated is None and line.strip():
            separated = line.lstrip().startswith(_RECORD_SEPARATOR)
        if not separated:
            if line.strip():
                yield line
            continue
        *whole, held = (held + line).split(_RECORD_SEPARATOR)
        yield from (each for each in whole if each.strip())
    if held.strip():
        yield held
