"""Text that people read is plain English: words that give twisted sentences away do not occur in it.

Text is what a command prints, what an error or a finding says, docstrings, help texts, comments, and every page of the repository. Names in
the code do not have these words either. Code and quotations are not text.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "merestone"

WORDS = {
    "told": "say who says it: 'the message names ...'",
    "tells": "'says', 'shows' or 'names'",
    "mend": "'correct', 'repair' or 'fix'",
    "mended": "'corrected'",
    "sound": "'valid', 'whole' or 'complete'",
    "have the producer": "say what to do: 'export it with ...'",
    "is no": "'is not a', or 'there is no' turned round",
    "are no": "'are not', or turned round",
    ", so that": "two sentences, or ', which'",
}
"""What does not occur in text, and what to write instead."""
_FOUND = re.compile(
    r"(?<![\w-])(" + "|".join(re.escape(word) for word in WORDS if word[0] != ",") + r")(?![\w-])|(, so that)\b", re.IGNORECASE
)

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted(SRC.rglob("*.py"))


def faults(text):
    """The words that give a text away, with what stands around them."""
    return [
        f"{found[0]!r} in {text[max(0, found.start() - 40) : found.end() + 40]!r}: {WORDS[found[0].lower()]}"
        for found in _FOUND.finditer(text)
    ]


def texts_of_module(path):
    """Docstrings and string literals of a module; of an f-string its fixed parts, with its values left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "\N{REPLACEMENT CHARACTER}".join(
                    each.value for each in node.values if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def comments_of_module(source):
    """The comments of a module, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def named(source):
    """The names that a module gives and uses, each with its line."""
    for node in ast.walk(ast.parse(source)):
        for name in ("id", "arg", "attr", "name"):
            if isinstance(found := getattr(node, name, None), str):
                yield getattr(node, "lineno", 0), found


def words_of_name(name):
    """The words that a name is made of: `told_by` and `ToldBy` have two."""
    return {each.lower() for each in re.split(r"_+|(?<=[a-z0-9])(?=[A-Z])", name)}


def texts_of_page(path):
    """The prose of a page, without code and without what commands printed."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    yield 0, re.sub(r"`[^`]*`", "", text)


def faults_of_module(path):
    return [f"line {line}: {each}" for line, text in texts_of_module(path) for each in faults(text)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_the_text_of_a_room_is_plain(path):
    assert faults_of_module(path) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_comments_and_names_of_a_room_are_plain(path):
    source = path.read_text(encoding="utf-8")
    assert [f"line {line}: {each}" for line, text in comments_of_module(source) for each in faults(text)] == []
    assert [f"line {line}: {name}" for line, name in named(source) if words_of_name(name) & WORDS.keys()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_text_of_a_page_is_plain(path):
    assert [each for _, text in texts_of_page(path) for each in faults(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "the file is told by its name",
        "It tells first, and deletes then.",
        "Mend this.",
        "a sound delivery",
        "have the producer repair it",
        "x is no file",
        "there are no keys",
        "it is read, so that nothing is lost",
    ],
)
def test_a_twisted_text_is_found(text):
    assert faults(text)


@pytest.mark.parametrize("text", ["x is not a file", "is nothing there", "recommend it", "sounds", "so that's it", "no one is told-off"])
def test_a_plain_text_is_none(text):
    assert faults(text) == []


def test_a_twisted_comment_and_a_twisted_name_are_found():
    source = "x = 1  # it is no number\nclass ToldBy:\n    def tells_of(self, sound): ...\n"
    assert [line for line, text in comments_of_module(source) if faults(text)] == [1]
    assert {name for _, name in named(source) if words_of_name(name) & WORDS.keys()} == {"ToldBy", "tells_of", "sound"}
