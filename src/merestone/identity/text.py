"""Text that stands for something else: bytes in hexadecimal digits, and the name of a column as it enters a digest.

Not here: whole columns of text in NFC, as which text compares (`columnar.unicode`). Blanks, letter case and compatibility variants are content.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa

_DIGITS = np.frombuffer("".join(f"{value:02x}" for value in range(256)).encode(), "V2")


def hexadecimal(data: pa.Array) -> pa.Array:
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
