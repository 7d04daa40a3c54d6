"""Rows of columns as bytes, and their hashes: attribute sections, joined text, BLAKE2b (RFC 7693).

The compiled extension answers or, where it is missing, NumPy; both alike, byte for byte, and `NAME` says which one is at work.
All functions take pyarrow arrays (chunked or sliced; nulls allowed) and work without a Python object per row.

Not here: the two implementations (`compiled`, `fallback`), their values (`hashed_values`), geometry (`geometry.kernel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_binary, proved
from merestone.columnar.hashed_values import HashedColumn, JoinedText, Piece
from merestone.later import later

if TYPE_CHECKING:
    from merestone.columnar import fallback
else:
    fallback = later("merestone.columnar.fallback")

at_work: Any
NAME: Literal["compiled", "numpy"]
try:
    from merestone.columnar import compiled as at_work
except ImportError:  # no C compiler when this was installed
    at_work, NAME = fallback, "numpy"
else:
    NAME = "compiled"


def attributes(columns: Sequence[HashedColumn], n: int) -> pa.Array:
    """The attribute section of n rows, which is also the value of a struct: binary."""
    return at_work.attributes(proved_columns(columns), n)  # type: ignore[no-any-return]  # one of two modules


def elements(column: HashedColumn) -> pa.Array:
    """Each value as an element of a list: tag, length and value, or a zero byte for null. Binary, without nulls."""
    return at_work.elements(*proved_columns([column]))  # type: ignore[no-any-return]  # one of two modules


def blake2b16(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """BLAKE2b with 16 bytes of each binary value: fixed_size_binary(16), null for null (RFC 7693)."""
    return at_work.blake2b16(one_binary(values))  # type: ignore[no-any-return]  # one of two modules


def joined(pieces: Sequence[Piece], n: int) -> pa.Array:
    """The pieces of each of n rows, one after the other: binary, never null."""
    return at_work.joined(_pieces(pieces), n)  # type: ignore[no-any-return]  # one of two modules


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """BLAKE2b with `size` bytes (16 or 32) of what `joined` gives: uint8 of shape (n, size), without laying it out first (RFC 7693)."""
    return at_work.hashed(_pieces(pieces), n, size)  # type: ignore[no-any-return]  # one of two modules


def proved_columns(columns: Sequence[HashedColumn]) -> Sequence[HashedColumn]:
    """The columns themselves, once their arrays hold together.

    Raises:
        CorruptError: one does not.
    """
    for each in columns:
        proved(each.array)
        if each.elements is not None:
            proved(each.elements)
    return columns


def _pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces whose dictionaries are whole, and whose neighbours of constant bytes are one."""
    found: list[Piece] = []
    for each in pieces:
        if not isinstance(each, bytes):
            found.append(JoinedText(each.name, _whole(each.array)) if isinstance(each, JoinedText) else _whole(each))
        elif found and isinstance(found[-1], bytes):
            found[-1] += each
        else:
            found.append(each)
    return found


def _whole(array: pa.Array) -> pa.Array:
    """A dictionary column with int32 codes, no null among its values and their offsets from the first value on; others as they are."""
    if not pa.types.is_dictionary(proved(array).type):
        return array
    values = array.dictionary
    if values.null_count or values.offset or array.type.index_type != pa.int32() or values.type not in (pa.string(), pa.binary()):
        return pc.cast(array, values.type)
    return array
