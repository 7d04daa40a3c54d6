"""A tab separates as a space does and indents nothing; without tabs the scanner reads what ruamel.yaml reads."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from merestone.document.tabs import TabScanner
from merestone.document.yaml_reader import read_yaml
from merestone.errors import UsageError

DOCUMENT = """\
# a contract
name: parcels   # words
extent: [ 3.2, 50.7, 7.3, 53.6 ]
schema_fields:
  - name: pid
    type: string
    description: several words
      over two lines
  - {name: use, type: 'string', nullable: true}
text: |
  a  b
other : "q"

last: x
"""


@pytest.mark.parametrize(
    ("pattern", "tab"),
    [
        (r"(?<=:) +(?=\S)", "\t"),
        (r" +(?=#)", "\t"),
        (r"(?<=:) +(?=\S)", " \t "),
        (r"(?<=[\[,]) ", "\t"),
        (r"$", "\t"),
        (r"^$", "\t"),
        (r"(?<=r) +(?=:)", "\t"),
    ],
    ids=["colon", "comment", "mixed", "flow", "end of line", "empty line", "before the colon"],
)
def test_a_tab_between_tokens_is_a_space(pattern, tab):
    written = re.sub(pattern, tab, DOCUMENT.replace("text: |\n  a  b\n", ""), flags=re.MULTILINE)
    assert "\t" in written
    plain = DOCUMENT.replace("text: |\n  a  b\n", "")
    assert read_yaml(written.encode(), "x").tree == read_yaml(plain.encode(), "x").tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a: x\ty\n", {"a": "x\ty"}),
        ("a:\n  -\tx\n", {"a": ["x"]}),
        ("a:\t|\n  x\ty\n", {"a": "x\ty\n"}),
        ("a: |\t# c\n  x\n", {"a": "x\n"}),
        ("a: |-\t\n  x\n", {"a": "x"}),
        ("a: >2+\t\n   x\n\n", {"a": " x\n\n"}),
    ],
)
def test_a_tab_within_text_stays(text, tree):
    assert read_yaml(text.encode(), "x").tree == tree


@pytest.mark.parametrize("text", ["\ta: 1\n", "a:\n\tb: 1\n", "a:\n  -\tb: 1\n", "a:\n- \t- b\n", "a: x\n\tb: 1\n", "a: x\n \tb: 1\n"])
def test_a_tab_indents_nothing(text):
    with pytest.raises(UsageError, match="not valid YAML"):
        read_yaml(text.encode(), "x")


def events(text, scanner):
    yaml = YAML(typ="safe", pure=True)
    if scanner is not None:
        yaml.Scanner = scanner
    try:
        return [
            (type(each).__name__, getattr(each, "value", None), each.start_mark.line, each.start_mark.column) for each in yaml.parse(text)
        ]
    except YAMLError as fault:
        return type(fault).__name__
    except (ValueError, IndexError, AttributeError, KeyError, TypeError, AssertionError):
        return "a bare error"


@given(st.text("ab1:- #'\"\n|>?[]{},&*!%.\ufeff", max_size=24))
@example("a: x\n...\nb")
@example("a: x\n---\nb")
@example("a: x\n\n\n  y")
def test_without_tabs_nothing_is_read_otherwise(text):
    assert events(text, TabScanner) == events(text, None)
