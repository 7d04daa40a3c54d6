"""Whole columns as text: in NFC, as which text compares (Unicode normalisation), and bytes in hexadecimal digits.

Not here: blanks, letter case and compatibility variants, which are content (Unicode UAX #15).
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DIGITS = np.frombuffer("".join(f"{value:02x}" for value in range(256)).encode(), "V2")


def nfc(text: pa.Array) -> pa.Array:
    """A string or large_string array in normalisation form C. Only values with more than ASCII are touched."""
    ascii_only = pc.string_is_ascii(text)
    if pc.all(ascii_only).as_py() is not False:  # None: there is no value at all
        return text
    other = pc.fill_null(pc.invert(ascii_only), False)
    return pc.replace_with_mask(text, other, pc.utf8_normalize(text.filter(other), form="NFC"))


def hexadecimal(data: Any) -> Any:
    """Bytes (a binary array of any kind) as lower-case hexadecimal text: a string array, null for null."""
    if not len(data):
        return pa.array([], pa.string())
    data = data.cast(pa.large_binary())
    _, offsets, raw = data.buffers()
    places = np.frombuffer(offsets, np.int64)[data.offset : data.offset + len(data) + 1]
    digits = _DIGITS[np.frombuffer(raw or b"", np.uint8)[places[0] : places[-1]]]
    valid = pa.py_buffer(np.packbits(np.asarray(data.is_valid()), bitorder="little")) if data.null_count else None
    text = pa.LargeStringArray.from_buffers(len(data), pa.py_buffer((places - places[0]) * 2), pa.py_buffer(digits.tobytes()), valid)
    return text.cast(pa.string())


def nfc_name(name: str) -> bytes:
    """A column name as it enters a digest: NFC, UTF-8."""
    return unicodedata.normalize("NFC", name).encode()
