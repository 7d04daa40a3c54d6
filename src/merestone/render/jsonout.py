"""An answer as one line of JSON. Numbers that JSON lacks (NaN, infinity) are refused, never written.

Not here: which names an answer has (`results.json_form`), what a person reads (`text`).
"""

from __future__ import annotations

import json
import re

from merestone.results.json_form import to_json

_CONTROL = re.compile(r"[\x7f-\x9f]")


def dumps(value: object) -> str:
    """One line of JSON, UTF-8, without NaN, and without the control characters that JSON itself lets through (U+007F to U+009F).

    Args:
        value: a result of the public library, or what JSON knows.
    """
    text = json.dumps(to_json(value), ensure_ascii=False, allow_nan=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
