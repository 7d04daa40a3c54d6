"""Patterns of contracts: what RE2 lacks is refused by name, what it has matches whole texts, and no text stops a run."""

import re
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.columnar.patterns import fault_of, matches


@pytest.mark.parametrize(
    ("pattern", "words", "instead"),
    [
        (r"(?=a)(a+)+$", "looks ahead: (?=", "enum"),
        (r"(?!0)[0-9]+", "looks ahead: (?!", "enum"),
        (r"(?<=a)b", "looks behind: (?<=", "enum"),
        (r"(?<!a)b", "looks behind: (?<!", "enum"),
        (r"([ab])\1", r"refers back to a group: \1", "AA|BB"),
        (r"(?P<x>a)(?P=x)", "refers back to a group", "AA|BB"),
        (r"(?>a+)b", "atomic group", "leave"),
        ("a++b", "possessive", "leave"),
        ("(a)?(?(1)b|c)", "has a condition", "both cases"),
        ("(?#why)a", "comment", "description"),
        ("(?x) a b", "comment", "description"),
        (r"(?a)\w+", "flag", r"\p{L}"),
        (r"a\Z", r"anchor that RE2 lacks: \Z", "whole text"),
        (r"caf\u00e9", r"escape that RE2 lacks: \u", r"\x{E9}"),
        ("a{2,2000}", "more than 1,000 times: {2,2000}", "max_length"),
        ("((a{100}){100}){100}", "more than 1,000 times", "max_length"),
        ("a**", "not a regular expression: bad repetition operator: **", "RE2"),
        ("(", "not a regular expression: missing )", "RE2"),
        ("a)|(b", "not a regular expression: unexpected )", "RE2"),
        (r"\Qa", "not a regular expression: missing )", "RE2"),
        ("[a", "not a regular expression: missing ]", "RE2"),
        ("(" * 50_000, "not a regular expression", "RE2"),
        ("[" * 50_000, "not a regular expression", "RE2"),
    ],
    ids=lambda text: text[:20],
)
def test_a_pattern_that_cannot_be_used_says_why_and_what_to_write(pattern, words, instead):
    fault = fault_of(pattern)
    assert words in fault.words
    assert instead in fault.instead
    assert len(fault.words) < 120


@given(
    st.sampled_from([r"^[0-9]{4}$", r"[A-Z]+-\d+", "a|ab", r"(?i)abc", r"\w+", "[^x]*", r"a\.b", "x{2,1000}", "(a)(b)?", ".", r"\bab\b.*"]),
    st.lists(st.text("0123aAbB-.x\n\u00e9\u0664", max_size=5) | st.none(), max_size=8),
)
def test_a_pattern_means_what_python_means_by_it_in_ascii(pattern, texts):
    assert fault_of(pattern) is None
    expected = [text if text is None else re.fullmatch(pattern, text, re.ASCII) is not None for text in texts]
    assert matches(pa.array(texts, pa.string()), pattern).to_pylist() == expected


def test_classes_know_ascii_and_properties_know_all_letters():
    texts = pa.array(["Mueller", "Müller", "\u0664"])
    assert matches(texts, r"\w+").to_pylist() == [True, False, False]
    assert matches(texts, r"\p{L}+").to_pylist() == [True, True, False]
    assert matches(texts, r"\p{Nd}").to_pylist() == [False, False, True]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+", "(a*)*b", "(.*a){20}", "(a?){50}a{50}"])
def test_no_text_stops_a_run(pattern):
    begun = time.process_time()
    matches(pa.array(["a" * 30 + "!", "a" * 100_000 + "!"]), pattern)
    assert time.process_time() - begun < 5
