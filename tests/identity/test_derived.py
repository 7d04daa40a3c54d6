"""Derived keys: the same text for the same attributes for ever, another for others, none where an attribute is missing."""

import hashlib
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.columnar import hashing
from merestone.identity.derived import RULES, derived_key
from merestone.identity.text import hexadecimal

texts = st.text(alphabet=st.sampled_from("ab/\\é "), max_size=4)


def table(*rows):
    columns = list(zip(*rows, strict=True))
    return pa.table({name: pa.array(list(each)) for name, each in zip("abc", columns, strict=False)})


def test_join_is_what_it_says():
    made = derived_key("join", table(("x", 7), ("", -1), ("a/b", 0), ("a\\", 1)), ["a", "b"])
    assert made.to_pylist() == ["x/7", "/-1", "a\\/b/0", "a\\\\/1"]
    assert derived_key("join", pa.table({"on": pa.array([date(2026, 3, 1)])}), ["on"]).to_pylist() == ["2026-03-01"]


def test_hash_can_be_recomputed_from_the_published_recipe():
    text = b"sx\x00\x00" + b"i" + (7 + (1 << 63)).to_bytes(8, "big")
    assert derived_key("hash", table(("x", 7)), ["a", "b"]).to_pylist() == [hashlib.blake2b(text, digest_size=16).hexdigest()]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_missing_attribute_is_a_missing_key(rule):
    rows = pa.table({"a": pa.array(["x", None, "y"]), "b": pa.array([1, 2, None], pa.int64())})
    assert [each is None for each in derived_key(rule, rows, ["a", "b"]).to_pylist()] == [False, True, True]
    assert len(derived_key(rule, rows.slice(0, 0), ["a", "b"])) == 0
    assert derived_key(rule, rows.slice(1), ["a", "b"]).to_pylist() == [None, None]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_text_is_compared_as_nfc(rule):
    one, other = derived_key(rule, table(("e\u0301", 1), ("\u00e9", 1)), ["a", "b"]).to_pylist()
    assert one == other


@pytest.mark.parametrize("rule", sorted(RULES))
@given(one=st.tuples(texts, texts, texts), other=st.tuples(texts, texts, texts))
def test_two_rows_share_a_key_only_if_they_are_the_same(rule, one, other):
    first, second = derived_key(rule, table(one, other), ["a", "b", "c"]).to_pylist()
    assert (first == second) == (one == other)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_batches_do_not_matter(rule):
    rows = table(*[(f"n{k % 7}", k) for k in range(50)])
    whole = derived_key(rule, rows, ["a", "b"]).to_pylist()
    assert [key for batch in rows.to_batches(max_chunksize=7) for key in derived_key(rule, batch, ["a", "b"]).to_pylist()] == whole
    assert derived_key(rule, rows.slice(13, 9), ["a", "b"]).to_pylist() == whole[13:22]


@given(st.lists(st.none() | st.binary(max_size=40), max_size=12), st.integers(0, 3))
def test_bytes_in_hexadecimal_are_those_of_python(values, skipped):
    given_ = pa.array(values, pa.binary()).slice(skipped)
    wanted = [None if each is None else each.hex() for each in values[skipped:]]
    for kind in (pa.binary(), pa.large_binary()):
        assert hexadecimal(given_.cast(kind)).to_pylist() == wanted
    assert hexadecimal(hashing.blake2b16(given_)).to_pylist() == [
        None if each is None else hashlib.blake2b(each, digest_size=16).hexdigest() for each in values[skipped:]
    ]
