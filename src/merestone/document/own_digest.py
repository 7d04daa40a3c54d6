"""JSON documents that carry their own digest: one altered byte shows without another witness.

Not here: what the documents mean, and who else remembers their checksum (`audit.verify`).

`digest` is the last member: the SHA-256 of the whole file with the 64 digits of the digest itself written as zeros.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from merestone.json_value import Json

DIGEST = "digest"
_BLANK = "0" * 64
_LAST = re.compile(rb'"digest": "([0-9a-f]{64})"\s*\}\s*\Z')


def with_digest(doc: Mapping[str, Json], *, indent: int | None = None) -> bytes:
    """The document as UTF-8 JSON without NaN, its digest at the end."""
    whole = {**{name: value for name, value in doc.items() if name != DIGEST}, DIGEST: _BLANK}
    data = (json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=indent) + "\n").encode()
    head, _, tail = data.rpartition(_BLANK.encode())
    return head + hashlib.sha256(data).hexdigest().encode() + tail


def fault_of(data: bytes) -> str | None:
    """What is wrong with a document that carries its digest: that it has none, or another; None where nothing is."""
    found = _LAST.search(data)
    if found is None:
        return "has no digest at its end"
    start, end = found.span(1)
    blank = data[:start] + _BLANK.encode() + data[end:]
    return None if hashlib.sha256(blank).hexdigest().encode() == found[1] else "is altered: its own digest is another"
