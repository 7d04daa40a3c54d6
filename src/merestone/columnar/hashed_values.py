"""The values that `hashing` takes: one attribute of a feature (`HashedColumn`), and the pieces of joined text (`JoinedText`, `Piece`).

Not here: the work itself (`hashing`, and behind it `compiled` or `fallback`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class HashedColumn:
    """One attribute as a digest sees it.

    `name` is NFC UTF-8; `tag` is the type's letter of fingerprint layout 2; `array` is a pyarrow array of integers, floats, booleans,
    decimal128, fixed-size binary, binary or string. For a list, `array` is a list array of which only offsets and nulls count, and
    `elements` holds its flattened values as `hashing.elements` encodes them.
    """

    name: bytes
    tag: str
    array: pa.Array
    elements: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class JoinedText:
    """A piece of joined text: `name:length:text,`, where length counts the bytes of the text, and nothing where the value is null.

    `array` is a pyarrow array of texts or binary values, plain or as a dictionary of int32 codes; of int32 or int64, whose text is decimal;
    or of fixed-size binary up to 32 bytes, whose text is hexadecimal.
    """

    name: bytes
    array: pa.Array


Piece = bytes | JoinedText | pa.Array
"""A piece of joined text: the same bytes in every row, a `JoinedText`, or an array of binary values or texts as they are (null: nothing)."""
