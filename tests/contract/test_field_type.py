"""The grammar of types reads what it writes, and its regular expression says the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.contract.contract import FieldType
from merestone.contract.field_type import SCALARS, parse_type, type_pattern

PATTERN = re.compile(f"^(?:{type_pattern()})$")

scalars = st.sampled_from(SCALARS).map(FieldType) | st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: FieldType("decimal", precision, scale))
)
names = (
    st.text(st.characters(codec="utf-8", categories=["L", "Nd"]), min_size=1, max_size=4)
    .map(lambda text: f"n{text}")
    .filter(str.isprintable)
)


def nested(member):
    lists = member.map(lambda each: FieldType("list", members=(("item", each),)))
    structs = st.dictionaries(names, member, min_size=1, max_size=3).map(
        lambda members: FieldType("struct", members=tuple(members.items()))
    )
    return member | lists | structs


@given(nested(nested(scalars)))
@settings(max_examples=150, deadline=None)
def test_a_type_reads_back_from_its_text(kind):
    again = parse_type(str(kind))
    assert str(parse_type(str(again))) == str(again)
    assert again.kind == kind.kind
    assert PATTERN.match(str(kind))


def test_blanks_do_not_matter():
    assert parse_type(" struct< k :integer,u: list< string > > ") == parse_type("struct<k: integer, u: list<string>>")
    assert str(parse_type("decimal( 10 , 2 )")) == "decimal(10,2)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("text", "did you mean string?"),
        ("Strng", "did you mean string?"),
        ("varchar(20)", "did you mean string?"),
        ("int", "did you mean integer?"),
        ("datetime", "did you mean timestamp?"),
        ("list<float>", "did you mean number?"),
        ("decimal(39,2)", "precision must be 1 to 38"),
        ("decimal(2,3)", "scale 0 to the precision"),
        ("decimal(5)", "did you mean decimal(p,s)?"),
        ("list<>", "is not a type"),
        ("struct<>", "is not `name: type`"),
        ("struct<a>", "is not `name: type`"),
        ("struct<a: string, a: date>", "names the member a twice"),
        ("list<list<list<string>>>", "nests deeper than 2"),
        ("list<geometry>", "cannot be part of"),
        ("", "is not a type"),
        ("list<string", "did you mean"),
    ],
)
def test_what_is_no_type_is_named(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_type(text)


def test_the_pattern_and_the_grammar_part_only_over_decimals_and_repeats():
    for text in ("text", "list<>", "struct<a>", "list<list<list<string>>>", "list<geometry>", "decimal(39,2)", "decimal(5)", "list<string"):
        assert not PATTERN.match(text), text


def test_a_long_type_is_cut_in_messages():
    with pytest.raises(ValueError, match="struct<a") as caught:
        parse_type("struct<" + "a: string, " * 5000)
    assert len(str(caught.value)) < 300
