"""GeoJSON text sequences (one feature a line, or RFC 8142): whether a text is one, and its records.

Not here: what a record holds (`json_features`), reading features (`vector`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from merestone.document.json_reader import parse_json

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
        first = parse_json(head)
    except ValueError:
        return False
    return isinstance(first, dict) and first.get("type") == "Feature" and any(line.strip() for line in iter(file.readline, b""))


def records(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The records one by one, each with the number of its first line: between separators where the text has them (RFC 8142), else one a line."""
    held, held_from = b"", 1
    separated = None
    for number, line in enumerate(iter(file.readline, b""), start=1):
        if separated is None and line.strip():
            separated = line.lstrip().startswith(_RECORD_SEPARATOR)
        if not separated:
            if line.strip():
                yield number, line
            continue
        *whole, held = (held + line).split(_RECORD_SEPARATOR)
        for each in whole:
            if each.strip():
                yield held_from, each
            held_from = number
    if held.strip():
        yield held_from, held
