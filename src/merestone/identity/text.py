"""Text compares as NFC: Unicode normalisation of whole columns.

Not here: blanks, letter case and compatibility variants, which are content (Unicode UAX #15).
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pyarrow.compute as pc


def nfc(text: Any) -> Any:
    """A string or large_string array in normalisation form C. Only values with more than ASCII are touched."""
    ascii_only = pc.string_is_ascii(text)
    if pc.all(ascii_only).as_py() is not False:  # None: there is no value at all
        return text
    other = pc.fill_null(pc.invert(ascii_only), False)
    return pc.replace_with_mask(text, other, pc.utf8_normalize(text.filter(other), form="NFC"))


def nfc_name(name: str) -> bytes:
    """A column name as it enters a digest: NFC, UTF-8."""
    return unicodedata.normalize("NFC", name).encode()
