"""Keys: their bytes are ordered as their values are, they come back as they went in, and what cannot be a key is refused."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import unicodedata
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.contract.contract import FieldType
from merestone.identity import key

INTEGER = FieldType("integer")
EDGES = ["", "\0", "\0\0", "a\0", "\xff", "e\u0301", "\u00e9", "1", "01", "a", "A"]
texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(EDGES)
integers = st.integers(-(2**63), 2**63 - 1)
dates = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
COMPONENTS = {
    "integer": (pa.int64(), integers),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "text": (pa.string(), texts),
    "bytes": (pa.binary(), st.binary(max_size=6)),
    "date": (pa.date32(), dates),
    "local": (pa.timestamp("us"), st.datetimes()),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(38, 2), st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-2))),
    "time": (pa.time64("us"), st.times()),
}


@st.composite
def tables(draw, most=3):
    """Columns of one to three components with a few rows, nulls among them."""
    names = draw(st.lists(st.sampled_from(list(COMPONENTS)), min_size=1, max_size=most))
    n = draw(st.integers(0, 6))
    columns = [draw(st.lists(st.none() | COMPONENTS[name][1], min_size=n, max_size=n)) for name in names]
    arrays = [pa.array(values, COMPONENTS[name][0]) for name, values in zip(names, columns, strict=True)]
    return pa.table(arrays, names=[f"k{place}" for place in range(len(names))])


def canonical(value):
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


@settings(max_examples=200, deadline=None)
@given(tables())
def test_the_order_of_bytes_is_the_order_of_values(table):
    keys, null = key.key_bytes(table, table.column_names)
    rows = [tuple(map(canonical, row.values())) for row in table.to_pylist()]
    assert null.tolist() == [None in row for row in rows]
    assert [value is None for value in keys.to_pylist()] == null.tolist()

    def comparable(row):
        # Text is ordered as its UTF-8, which is the order of code points; a text before a longer one with the same beginning.
        return tuple(value.encode() if isinstance(value, str) else value for value in row)

    there = [(value, comparable(row)) for value, row in zip(keys.to_pylist(), rows, strict=True) if value is not None]
    for one, row in there:
        for other, other_row in there:
            assert (one < other) == (row < other_row)
            assert (one == other) == (row == other_row)


@settings(max_examples=200, deadline=None)
@given(tables(), st.integers(0, 3))
def test_keys_come_back_as_they_went_in(table, skip):
    table = pa.concat_tables([table, table])[min(skip, table.num_rows) :]
    keys, null = key.key_bytes(table, table.column_names)
    back = key.decode_keys(keys, table.schema.types)
    for column, name in zip(back, table.column_names, strict=True):
        expected = [None if gone else canonical(value) for value, gone in zip(table.column(name).to_pylist(), null, strict=True)]
        assert column.to_pylist() == expected
    assert key.ids_of(keys).to_pylist() == key.feature_ids(table, table.column_names).to_pylist()


def test_the_bytes_of_the_specification():
    table = pa.table({"n": [1, -1, 2**62], "t": ["a\0b", "e\u0301", ""]})
    assert key.key_bytes(table, ["n"])[0].to_pylist()[:2] == [b"i\x80\0\0\0\0\0\0\x01", b"i\x7f" + b"\xff" * 7]
    assert key.key_bytes(table, ["t"])[0].to_pylist() == [b"sa\0\xffb", "sé".encode(), b"s"]
    assert key.key_bytes(table, ["t", "n"])[0].to_pylist()[0] == b"sa\0\xffb\0\0" + b"i\x80\0\0\0\0\0\0\x01"
    assert key.key_hash(key.key_bytes(table, ["n"])[0]).to_pylist()[0] == hashlib.blake2b(b"i\x80\0\0\0\0\0\0\x01", digest_size=16).digest()


def test_types_tell_keys_apart_and_dialects_do_not():
    number, text = pa.table({"k": [1]}), pa.table({"k": ["1"]})
    assert key.key_bytes(number, ["k"])[0] != key.key_bytes(text, ["k"])[0]
    for kind in (pa.int8(), pa.int32(), pa.uint64(), pa.dictionary(pa.int8(), pa.int64())):
        assert key.key_bytes(pa.table({"k": pa.array([1, None], kind)}), ["k"])[0].to_pylist()[0] == b"i\x80\0\0\0\0\0\0\x01"
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert key.key_bytes(pa.table({"k": pa.array(["é"]).cast(kind)}), ["k"])[0].to_pylist() == ["sé".encode()]


def test_leading_zeros_case_and_long_numbers_survive():
    given = pa.table({"k": ["007", "7", "a", "A", " a", "a ", "a  ", "a\t", "a\u00a0", "\uff41"]})
    assert len(set(key.key_bytes(given, ["k"])[0].to_pylist())) == 10
    long = pa.table({"k": [9007199254740992, 9007199254740993]})
    assert key.feature_ids(long, ["k"]).to_pylist() == ["9007199254740992", "9007199254740993"]


def test_floats_are_no_keys():
    floats = pa.table({"k": [12.0, 13.0]})
    with pytest.raises(ValueError, match="'k' holds floating-point"):
        key.key_bytes(floats, ["k"])
    assert key.key_bytes(floats, ["k"], [INTEGER])[0].to_pylist()[0] == key.key_bytes(pa.table({"k": [12]}), ["k"])[0].to_pylist()[0]
    with pytest.raises(ValueError, match=r"'k' holds 12\.5"):
        key.key_bytes(pa.table({"k": [12.0, None, 12.5]}), ["k"], [INTEGER])
    with pytest.raises(ValueError, match="'k' holds"):
        key.key_bytes(pa.table({"k": [1e300]}), ["k"], [INTEGER])
    with pytest.raises(ValueError, match="cannot be a key"):
        key.key_bytes(pa.table({"k": [[1]]}), ["k"])


def test_missing_columns_are_named():
    with pytest.raises(KeyError, match="'b' is not among a"):
        key.key_bytes(pa.table({"a": [1]}), ["a", "b"])
    with pytest.raises(KeyError, match="'b'"):
        key.feature_ids(pa.table({"a": [1]}), ["b"])
    with pytest.raises(ValueError, match="at least one column"):
        key.key_bytes(pa.table({"a": [1]}), [])


def test_ids_are_texts_that_can_be_printed():
    table = pa.table({"n": [1, None], "t": ['a"\\\n\u0085é', "x"], "d": pa.array([dt.date(2024, 2, 29)] * 2), "b": [True, False]})
    assert key.feature_ids(table, ["n"]).to_pylist() == ["1", None]
    assert key.feature_ids(table, ["t"]).to_pylist() == [r'a"\\u000a\u0085' + "é", "x"]
    whole = key.feature_ids(table, ["n", "t", "d", "b"]).to_pylist()
    assert whole[1] is None
    assert json.loads(whole[0]) == [1, 'a"\\\n\u0085é', "2024-02-29", True]
    assert not any(ord(each) < 32 for each in whole[0])
    assert key.feature_ids(pa.table({"t": ["", "\0"]}), ["t"]).to_pylist() == ['""', "\\u0000"]


def test_bytes_that_are_no_keys():
    number = b"i" + b"\0" * 8
    for bad in ([b""], [b"q123"], [b"i\x80\0\0"], [b"i" + b"\0" * 7, b"sx"], [number, number + b"sx"], [number, b"sx"]):
        with pytest.raises(ValueError, match="key"):
            key.decode_keys(pa.array(bad))
    assert key.decode_keys(pa.array([], pa.binary()), [pa.int64()])[0].type == pa.int64()
    with pytest.raises(ValueError, match="1 components, 2 types"):
        key.decode_keys(pa.array([b"sx"]), [pa.string(), pa.string()])


# ---- keys of several rules in one array ----


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(-(2**63), 2**63 - 1)),
            st.tuples(st.text(max_size=4)),
            st.tuples(st.text(max_size=3), st.integers(-5, 5)),
            st.tuples(st.integers(0, 3), st.text(max_size=3), st.text(max_size=3)),
            st.tuples(st.integers(2**63, 2**64 - 1)),
        ),
        max_size=12,
    ),
    st.sampled_from([None, 0, 3]),
)
def test_ids_of_keys_of_several_rules_are_those_of_each(rows, null):
    made, said = [], []
    for row in rows:
        data = pa.table(
            {str(n): pa.array([value], pa.uint64() if isinstance(value, int) and value >= 2**63 else None) for n, value in enumerate(row)}
        )
        made += key.key_bytes(data, data.column_names)[0].to_pylist()
        said += key.feature_ids(data, data.column_names).to_pylist()
    if null is not None and null <= len(made):
        made.insert(null, None)
        said.insert(null, None)
    assert key.ids_of(pa.array(made, pa.binary())).to_pylist() == said


def test_ids_of_many_keys_take_a_step_a_component():
    """Each step looks at keys that have another component left: as many steps as the longest key has, whatever their number."""
    many = key.key_bytes(pa.table({"k": [f"key {n}" for n in range(50_000)]}), ["k"])[0]
    assert key.ids_of(many).to_pylist() == [f"key {n}" for n in range(50_000)]
    assert [len(rows) for rows in key._rules_of(many)] == [50_000]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t",
        "\u00a0",
        "\u3000 ",
        "\u200b",
        "\ufeff",
        "\u2060",
        "\u00ad",
        "\u180e",
        "\u115f",
        "\u3164",
        "\u2800",
        " \u200d\n",
        "\u202e",
        "a\0",
    ],
)
def test_a_key_that_nobody_can_see_is_unusable(text):
    found = key.unusable(pa.table({"k": pa.array(["a", text, None, "\u200ba", "é", "\x01"])}), ["k"])
    assert found.tolist() == [False, True, False, False, False, False]
