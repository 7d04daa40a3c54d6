"""GeoJSON text sequences (one feature a line, or RFC 8142): telling them, and counting their records.

GDAL leaves out a record that it cannot parse and says nothing; the count shows that one is missing, and `broken_record` which.
Not here: reading features (`vector`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO

_CHUNK = 1 << 20
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


def count_records(file: IO[bytes]) -> int:
    """How many records a sequence has: separators of RFC 8142, or else lines that are not blank."""
    count, separated, open_line = 0, None, False
    while chunk := file.read(_CHUNK):
        if separated is None:
            separated = chunk.lstrip().startswith(_RECORD_SEPARATOR)
        if separated:
            count += chunk.count(_RECORD_SEPARATOR)
            continue
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            count += bool(open_line or line.strip())
            open_line = False
        open_line = open_line or bool(rest.strip())
    return count + open_line


def broken_record(file: IO[bytes]) -> tuple[int, str] | None:
    """The first record that is no JSON object with a type, counted from 1, and what is wrong with it."""
    for number, text in enumerate(_records(file), start=1):
        try:
            value = json.loads(text)
        except ValueError as fault:
            return number, str(fault)
        if not isinstance(value, dict) or value.get("type") != "Feature":
            return number, "it is no Feature"
    return None


def _records(file: IO[bytes]) -> Iterator[bytes]:
    """The records one by one; only read after something was found to be missing."""
    for line in iter(file.readline, b""):
        for record in line.split(_RECORD_SEPARATOR):
            if record.strip():
                yield record
