"""What the code cites of documents and decisions is in this repository, down to the heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    each
    for folder in ("src", "tests", "bench", "examples", "docs")
    for each in (ROOT / folder).rglob("*")
    if each.suffix in (".py", ".c", ".h", ".js", ".html") and "typings" not in each.parts
)
CITED = re.compile(
    r"(?<!\]\()(?<![\w/.-])(?P<path>(?:\.\./)*(?:docs|spec|adr|explanation|how-to|shared)/[\w./-]*\.(?:md|json|yaml))(?:#(?P<anchor>[\w-]+))?"
)
SECTION = re.compile(r"\.md,? section \d")
DECISION = re.compile(r"\bADR (\d{4})\b")


def faults(text):
    """What a source cites and nobody finds."""
    found = []
    for cited in CITED.finditer(text):
        path = ROOT / cited["path"]
        if (
            not cited["path"].startswith("docs/")
            or not path.is_file()
            or (cited["anchor"] is not None and cited["anchor"] not in anchors(path))
        ):
            found.append(cited[0])
    found += SECTION.findall(text)
    found += [f"ADR {number}" for number in DECISION.findall(text) if not list((ROOT / "docs" / "adr").glob(f"{number}-*.md"))]
    return found


def anchors(path):
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("source", [each for each in SOURCES if each != Path(__file__)], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_cites_documents_that_are_here(source):
    assert faults(source.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "see spec/contract.md section 3",
        "see docs/spec/nowhere.md",
        "see docs/spec/gate.md#nothing",
        "see docs/spec/gate.md, section 3",
        "see ../docs/spec/changes.md",
        "ADR 9999",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text):
    assert faults(text)


@pytest.mark.parametrize("text", ["see docs/spec/gate.md", "see docs/spec/gate.md#precision", "ADR 0001"])
def test_a_citation_that_leads_somewhere_is_none(text):
    assert faults(text) == []
