"""JSON from outside, whose only fault is ValueError: text that nests without end is as wrong as a missing bracket.

Not here: JSON as people write it (`yaml_reader`), GeoJSON (`source`), what the values mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from merestone.json_value import Json


def parse_json(
    data: str | bytes, *, parse_float: Callable[[str], Json] | None = None, parse_constant: Callable[[str], Json] | None = None
) -> Json:
    """The value of a JSON text.

    Args:
        data: the text, or its bytes in UTF-8.
        parse_float: makes a value of a number with a point or exponent; float by default.
        parse_constant: makes a value of NaN and the infinities, or raises ValueError.

    Raises:
        ValueError: the text is not JSON, or nests deeper than Python's parser goes (about a thousand levels).
    """
    try:
        return json.loads(data, parse_float=parse_float, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("it nests too deep") from None
