"""Whole columns of text in a normalisation form of Unicode (UAX #15), the same with every version of pyarrow.

Not here: one name at a time (`unicodedata.normalize`), which text is content and which is not (`identity`).
"""

from __future__ import annotations

import unicodedata
from typing import Final, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

Form = Literal["NFC", "NFKC"]
Texts = TypeVar("Texts", pa.Array, pa.ChunkedArray)
COMPOSES: Final = pc.utf8_normalize(pa.array(["u\u0308"]), form="NFC")[0].as_py() == "\u00fc"  # noqa: TID251 - the one place
"""Whether pyarrow puts letters together again. Before version 26 it gives NFD for NFC (apache/arrow issue 51225), so it is asked and not believed."""


def nfc(text: Texts) -> Texts:
    """A string or large_string array in form C, as text is compared. Only values with more than ASCII are touched."""
    return normalised(text, "NFC")


def normalised(text: Texts, form: Form) -> Texts:
    """A string or large_string array in a form that composes. Only values with more than ASCII are touched."""
    if isinstance(text, pa.ChunkedArray):
        return pa.chunked_array([normalised(each, form) for each in text.chunks], text.type)
    ascii_only = pc.string_is_ascii(text)
    if pc.all(ascii_only).as_py() is not False:  # None: no value is there
        return text
    other = pc.fill_null(pc.invert(ascii_only), False)
    given = text.filter(other)
    return pc.replace_with_mask(text, other, _form(given, form))


def _form(text: pa.Array, form: Form) -> pa.Array:
    return pc.utf8_normalize(text, form=form) if COMPOSES else one_by_one(text, form)  # noqa: TID251 - as above


def one_by_one(text: pa.Array, form: Form) -> pa.Array:
    """The same from the standard library: a Python object for each distinct value."""
    coded = text.dictionary_encode()
    words = [unicodedata.normalize(form, each) for each in coded.dictionary.to_pylist()]
    return pa.array(words, text.type).take(coded.indices)
