"""Text in a normalisation form, whatever pyarrow makes of it."""

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.columnar import unicode

TEXTS = [
    "Müller",
    "Mu\u0308ller",
    "\u212b",  # the sign for angstrom, whose form C is the letter
    "\u1100\u1161\u11a8",  # a Hangul syllable in its parts
    "a\u0323\u0302",
    "a\u0302\u0323",  # marks in another order
    "\uff46\uff55ll",  # of full width
    "plain",
    "",
    None,
]


@pytest.fixture(params=[True, False], ids=["pyarrow composes", "pyarrow leaves apart"])
def composes(request, monkeypatch):
    if request.param and not unicode.COMPOSES:
        pytest.skip("this pyarrow does not compose")
    monkeypatch.setattr(unicode, "COMPOSES", request.param)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.usefixtures("composes")
def test_columns_are_normalised_as_single_texts_are(form, kind):
    expected = [None if each is None else unicodedata.normalize(form, each) for each in TEXTS]
    got = unicode.normalised(pa.array(TEXTS, kind), form)
    assert got.type == kind
    assert got.to_pylist() == expected
    chunked = unicode.normalised(pa.chunked_array([pa.array(TEXTS[:3], kind), pa.array(TEXTS[3:], kind)]), form)
    assert (chunked.type, chunked.to_pylist()) == (kind, expected)
    assert unicode.normalised(pa.chunked_array([], kind), form).to_pylist() == []


@pytest.mark.usefixtures("composes")
def test_a_column_without_a_value_stays_as_it_is():
    for empty in (pa.array([], pa.string()), pa.nulls(3, pa.string()), pa.array(["a", None])):
        assert unicode.nfc(empty) is empty


@given(st.lists(st.none() | st.text(st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs", "Cn"])), max_size=5))
def test_the_two_ways_agree(texts):
    array = pa.array(texts, pa.string()).drop_null()
    assert unicode.one_by_one(array, "NFC").to_pylist() == [unicodedata.normalize("NFC", each) for each in array.to_pylist()]
    if unicode.COMPOSES:
        assert unicode.normalised(array, "NFC").to_pylist() == unicode.one_by_one(array, "NFC").to_pylist()
