"""The catalogue says what the code does: names resolve, words render, nothing makes a finding beside it."""

from __future__ import annotations

import ast
import re
import string
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import merestone
from merestone.contract.definition import CLAUSES
from merestone.rules import catalogue
from merestone.rules.catalogue import RULES, enforcers, rule_of
from merestone.rules.reference_page import anchor, reference
from merestone.rules.rule import Rule

PACKAGE = Path(merestone.__file__).parent
COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
NAMES = {id(rule): name for name, rule in vars(catalogue).items() if isinstance(rule, Rule)}


def test_no_two_rules_have_one_name():
    assert len({each.name for each in RULES}) == len(RULES)
    assert all(rule_of(each.surface, each.code) is each for each in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_names_clauses_that_exist_and_a_check_that_uses_it(rule):
    assert {*rule.clauses, *rule.reads} <= CLAUSES.keys()
    module, function = next((path, rest) for path, rest in splits(rule.check) if (PACKAGE / (path.replace(".", "/") + ".py")).exists())
    found = import_module(f"merestone.{module}")
    for name in function.split("."):
        found = getattr(found, name)
    source = (PACKAGE / (module.replace(".", "/") + ".py")).read_text("utf-8")
    assert re.search(rf"\bcatalogue\.{NAMES[id(rule)]}\b|\brule_of\(", source)


def splits(path):
    parts = path.split(".")
    return ((".".join(parts[:at]), ".".join(parts[at:])) for at in range(len(parts) - 1, 0, -1))


class Anything(dict):
    """A value for every name of a template."""

    def __missing__(self, name):
        return 7


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_words_of_a_rule_render(rule):
    for words in (rule.words, *rule.cases.values()):
        for text in (words.expected, words.observed, words.remedy):
            assert string.Formatter().vformat(text, (), Anything()) is not None
        assert words.expected
        assert not words.remedy or words.remedy == "{remedy}" or (words.remedy[0].isupper() and words.remedy.endswith("."))


@pytest.mark.parametrize("rule", RULES, ids=lambda each: each.name)
def test_the_words_of_a_rule_name_no_parameter_of_the_library(rule):
    """Only the hint of an error is put into the words of a door; a finding is printed as it is."""
    for words in (rule.words, *rule.cases.values()):
        assert not set("«»") & set(words.expected + words.observed + words.remedy)


def test_only_rules_make_findings():
    """Code, words and kind come from the catalogue alone; a finding made beside it has none of them."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path != PACKAGE / "rules" / "rule.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("Finding", "RowFaults")
    ]
    assert found == []


def test_a_row_rule_refuses_rows_and_a_delivery_rule_the_delivery():
    rows = np.array([1, 4])
    faults = catalogue.NULL.faults("use", rows, name="use")
    assert (faults.rule, faults.severity, faults.observed) == ("null", "error", pa.array(["null", "null"]))
    assert catalogue.ENUM.finding("use", name="use", allowed="one of a").per_row
    assert not catalogue.UNIQUE.finding("use", name="use", values="a twice").per_row
    assert catalogue.KEY_TWIN.finding("pid", keys="'a' / 'A'").severity == "warning"


def test_the_committed_page_is_up_to_date():
    assert COMMITTED.read_text("utf-8") == reference(), "run `make docs`"


def test_every_rule_has_its_place_on_the_page():
    page = reference()
    assert [line for line in page.splitlines() if line.startswith("### ")] == [
        f"### {each.name}"
        for surface in ("schema", "crs", "geometry", "service", "semantics", "guard")
        for each in RULES
        if each.surface == surface
    ]
    assert len({anchor(each) for each in RULES}) == len(RULES)


def test_a_clause_leads_to_the_rules_that_enforce_it():
    assert [each.name for each in enforcers("semantics.null_means")] == ["semantics.null_convention"]
    assert enforcers("description") == ()
