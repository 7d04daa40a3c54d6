"""The committed reference page is the one that the definition makes, and holds every clause and rule."""

from __future__ import annotations

from pathlib import Path

from merestone.contract.definition import CONTRACT, DERIVED, FIELD, GEOMETRY, SEMANTICS
from merestone.contract.laws import LAWS
from merestone.contract.lint import RULES
from merestone.contract.reference_page import reference

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "contract.md"


def test_the_committed_page_is_up_to_date():
    assert COMMITTED.read_text("utf-8") == reference(), "run `make docs`"


def test_no_clause_and_no_rule_is_left_out():
    page = reference()
    for group in (CONTRACT, FIELD, DERIVED, SEMANTICS, GEOMETRY):
        for clause in group.clauses:
            assert f"| `{clause.name}` | {'yes' if clause.required else 'no'} |" in page
            assert clause.words.replace("|", "\\|") in page
    for words in (*(law.words for law in LAWS), *(rule.words for rule in RULES)):
        assert f"- {words}" in page


def test_links_lead_to_headings():
    page = reference()
    for name in (each.split(")")[0] for each in page.split("](#")[1:]):
        assert f"\n## {name}\n" in page
