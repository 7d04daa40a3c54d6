"""The reader takes YAML 1.2 at its word and gives up early on documents made to exhaust it."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.document.yaml_reader import MAX_BYTES, MAX_DEPTH, MAX_VALUES, path_text, read_yaml
from merestone.errors import UsageError

D07 = Path(__file__).parent.parent / "cases" / "D07"


def read(text: str):
    return read_yaml(text.encode(), "file.yaml")


def answer(data: bytes) -> dict[str, Any] | UsageError:
    """The tree, or the refusal; anything else is a fault."""
    try:
        return read_yaml(data, "file.yaml").tree
    except UsageError as fault:
        return fault


def refused(data: bytes | str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_yaml(data.encode() if isinstance(data, str) else data, "file.yaml")
    assert caught.value.hint
    assert len(caught.value.message) < 600
    return caught.value


@pytest.mark.parametrize(
    "text", ["NO", "no", "on", "Yes", "off", "12:30", "2024-01-01", "0o9", "1_000", "0b1", "v1.2.0", "1.2.3", "+", ".", "nan", "x#y"]
)
def test_only_what_yaml_12_types_is_not_text(text):
    assert read(f"a: {text}\n").tree == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("-7", -7),
        ("1e3", 1000.0),
        ("1.20", 1.2),
        (".5", 0.5),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("-.inf", float("-inf")),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_core_schema_scalars(text, value):
    read_value = read(f"a: {text}\n").tree["a"]
    assert read_value == value
    assert type(read_value) is type(value)


def test_quoted_scalars_are_text():
    assert read("a: ['012', \"null\", 'NO', \"1.20\"]").tree == {"a": ["012", "null", "NO", "1.20"]}


def test_a_number_keeps_how_it_was_written():
    assert read("a: 1.20").written(("a",)) == "1.20"


def test_lines_are_known_and_fall_back_to_what_holds_the_value():
    document = read("a:\n  - x: 1\n    y: 2\n  - z: 3\n")
    assert document.line(("a", 0, "y")) == 3
    assert document.line(("a", 0, "missing")) == 2
    assert document.line(("b",)) == 1


def test_json_is_read_with_its_escapes():
    tree = {"naïve": ["🏠", "\u2028", 1, 1.5, None, True], "b": {"c": "d\n"}}
    assert read(json.dumps(tree)).tree == tree
    assert read(json.dumps(tree, ensure_ascii=False, indent=2)).tree == tree


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(st.characters(codec="ascii", categories=["L", "Nd", "Zs"])), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
@settings(max_examples=150, deadline=None)
def test_every_json_value_is_read_as_it_is(value):
    assert read(json.dumps({"a": value})).tree == {"a": value}


@given(st.text(st.sampled_from("ab1:-[]{}#&*!|>'\"%@`,?~<\\ \n\t\r."), max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text):
    assert isinstance(answer(text.encode()), dict | UsageError)


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    assert isinstance(answer(data), dict | UsageError)


# --- D07: documents made to exhaust the reader -----------------------------------------------------------------------------------------


MOST_CALLS = 300  # a byte; 276 were seen at most, where a small document nests deep


def calls_of(data):
    """How many Python functions are called while the bytes are read: work without a clock."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        answer(data)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bomb.yaml", "aliases"),
        ("deep.yaml", "nesting"),
        ("tag.yaml", "tag !!python/object/apply:os.getcwd not allowed"),
        ("many_docs.yaml", "more than one document"),
        ("empty.yaml", "empty document"),
    ],
)
def test_d07_is_refused_quickly_and_small(name, words):
    data = (D07 / name).read_bytes()
    tracemalloc.start()
    fault = refused(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert words in fault.message
    assert peak < 50_000_000
    assert calls_of(data) < MOST_CALLS * len(data) + 10_000


def test_d07_utf16_with_a_mark_is_read():
    assert read_yaml((D07 / "utf16.yaml").read_bytes(), "x").tree["crs_epsg"] == 4326
    assert read_yaml("\ufeffa: é".encode("utf-16-be"), "x").tree == {"a": "é"}


def test_d07_wide_is_refused_by_its_size():
    fields = b"".join(b"  - { name: f%d, type: number, nullable: true, unit: none }\n" % n for n in range(20_000))
    assert "document too large" in refused(b"schema_fields:\n" + fields).message


@pytest.mark.parametrize(
    "data",
    [
        b"a: [" + b"x, " * (MAX_BYTES // 3 - 10) + b"x]",
        b"a: &a [" + b"x, " * 999 + b"x]\nb: [" + b"*a, " * 999 + b"*a]",
        b'a: &a "' + b"x" * 100_000 + b'"\nb: [' + b"*a, " * 100 + b"*a]",
        b"- " * (MAX_BYTES // 2),
        b"a: " + b"[" * (MAX_BYTES - 10),
        b"#" * MAX_BYTES,
        b"a: 1 # confirm\n" + b"# confirm\n" * (MAX_BYTES // 10 - 10),
        b"a: !<" + b"x" * (MAX_BYTES - 10) + b"> 1",
        b"a:\n" + b'  - "# confirm"  # confirm\n' * 9_000,
        b"a: " + b"9" * 200_000,
    ],
)
def test_large_documents_cost_little(data):
    """The calls that reading takes grow with the bytes, not faster."""
    part = data[: len(data) // 16]
    assert calls_of(part) < MOST_CALLS * len(part) + 10_000
    found = answer(data)
    assert isinstance(found, dict) or len(found.message) < 600


def test_the_limits_are_the_limits():
    assert "bytes" in refused(b"a: 1\n#" + b"x" * MAX_BYTES).message
    assert "characters" in refused('a: &a "' + "x" * 100_000 + '"\nb: [' + "*a, " * 20 + "*a]").message
    assert "nesting" in refused("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH).message
    assert read("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)).tree
    assert "values" in refused("a: [" + "x," * MAX_VALUES + "]").message
    assert "nesting" in refused("a: &a " + "[" * 20 + "]" * 20 + "\nb: [[[[[[*a]]]]]]").message


def test_aliases_within_the_limits_are_expanded():
    document = read("a: &x {b: [1, 2]}\nc: *x\n")
    assert document.tree == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}
    assert document.tree["a"] is not document.tree["c"]


# --- what is refused -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a: the key a is written twice, first on line 1"),
        ("x:\n  caf\u00e9: 1\n  cafe\u0301: 2\n", 3, "is written twice"),
        ("a: 1\n1: 2\n", 2, "the key 1 is not text"),
        ("a: 1\n? [b]\n: 2\n", 2, "a key must be text"),
        ("a: &a [*a]\n", 1, "recursive"),
        ("a: *b\n", 1, "has no anchor"),
        ("a: &a {x: 1}\nb:\n  <<: *a\n", 3, "merge keys"),
        ("%YAML 1.1\n---\na: 1\n", 2, "only YAML 1.2"),
        ("a: !!str 1\n", 1, "tag !!str not allowed"),
        ("a: !x 1\n", 1, "tag !x not allowed"),
        ("a: [1,\nb: 2\n", 3, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ('a: "\\ud800"\n', 1, "surrogate"),
        ("a: \x00\n", 1, "U+0000"),
    ],
)
def test_refusals_name_line_and_reason(text, line, words):
    fault = refused(text)
    assert words in fault.message
    assert f"line {line}" in fault.message
    assert fault.exit_code == 2


def test_a_document_that_is_no_mapping_is_refused():
    assert "mapping" in refused("[1, 2]").message
    assert "mapping" in refused("just words").message
    assert "empty document" in refused("---\n...\n").message
    assert "empty document" in refused(b"").message


def test_other_encodings_are_refused_with_the_line():
    fault = refused("a: 1\nb: caf\u00e9\n".encode("latin-1"))
    assert "line 2: encoding: byte 0xE9 is not UTF-8" in fault.message


# --- marks -----------------------------------------------------------------------------------------------------------------------------


def test_confirm_marks_belong_to_the_entry_beside_them():
    document = read(
        "a: 1 # confirm\n"
        'b: "x # confirm"\n'
        "c: x#confirm\n"
        "# confirm this\n"
        "d: {x: 1, y: 2}   # confirm: really?\n"
        "e:\n"
        "  - name: q  # confirm\n"
        "    type: z\n"
        "  - {name: z, type: y} # confirm\n"
        "f: # confirm\n"
        "  g: 1\n"
        "j: |\n"
        "  text # confirm\n"
        "k: plain text # confirmed\n"
        '"l.m": {n o: 1} # confirm\n'
        "# confirm\n"
    )
    assert document.confirm == ("a", "d", "e[0].name", "e[1]", "f", '["l.m"]')


def test_paths_are_unambiguous():
    assert path_text(("a", 2, "b c", "d.e", "f")) == 'a[2]["b c"]["d.e"].f'


@pytest.mark.parametrize(
    "data",
    [start + bytes(MAX_BYTES) for start in (b"SQLite format 3", b"PK\x03\x04", b"\x89PNG\r\n")],
    ids=["database", "archive", "picture"],
)
def test_a_file_of_another_kind_is_no_document(data):
    """Its size is the least of what is wrong with it."""
    with pytest.raises(UsageError, match="it holds bytes, not text"):
        read_yaml(data, "parcels.gpkg")
