"""Below the command line nobody speaks of its options: hints name parameters, and the command line puts its own words in."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from merestone.cli.main import root
from merestone.cli.wording import in_command_line
from merestone.errors import MARK, UsageError

SRC = Path(__file__).parents[1] / "src" / "merestone"
BELOW = sorted(each for each in SRC.rglob("*.py") if each.relative_to(SRC).parts[0] != "cli")
OPTION = re.compile(r"(?<![\w<!-])--[a-z][a-z-]+")
COMMAND = re.compile(r"hint=[^\n]*`merestone ")


@pytest.mark.parametrize("path", BELOW, ids=lambda path: str(path.relative_to(SRC)))
def test_a_room_below_the_command_line_names_no_option(path):
    text = path.read_text(encoding="utf-8")
    assert OPTION.findall(text) == []
    assert COMMAND.findall(text) == []


def command(path):
    group, context = root, click.Context(root, info_name="merestone")
    for name in path.split():
        group = group.get_command(context, name)
        context = click.Context(group, info_name=name, parent=context)
    return group


def every_mark():
    """Each name between marks in the code, with the values of f-strings left out."""
    for path in BELOW:
        for found in MARK.findall(path.read_text(encoding="utf-8")):
            yield path.relative_to(SRC), re.sub(r"\{[^}]*\}", "x", found)


@pytest.mark.parametrize(("path", "mark"), sorted(set(every_mark())), ids=str)
def test_every_mark_reads_as_a_command_that_there_is(path, mark):
    worded = in_command_line(None)(mark)
    if "(" in mark:
        assert worded.startswith("`merestone ")
        words = worded.strip("`").split()[1:]
        name = " ".join(words[:2]) if words[0] in ("contract", "lineage") else words[0]
        known = {flag for each in command(name).params for flag in each.opts}
        assert {each for each in words if each.startswith("--")} <= known, (path, worded)
    elif path.parts[0] != "errors.py":
        assert worded.startswith("--")


@pytest.mark.parametrize(
    ("path", "mark", "worded"),
    [
        ("publish", "run_id", "--run-id"),
        ("lineage summary", "run_id", "--run"),
        ("changes", "from_version", "--from"),
        ("lineage why", "feature_id", "FEATURE"),
        ("rollback", 'reason="wrong export"', '--reason "wrong export"'),
        ("publish", "read(DATASET, out=FILE)", "`merestone read DATASET --out FILE`"),
        ("publish", "lineage.check_complete(DATASET)", "`merestone lineage check-complete DATASET`"),
        ("publish", "show_contract(FILE)", "`merestone contract show FILE`"),
        ("publish", "draft(SOURCE)", "`merestone init SOURCE`"),
    ],
)
def test_a_hint_in_the_words_of_the_command_line(path, mark, worded):
    assert in_command_line(command(path))(mark) == worded


def test_a_hint_in_the_words_of_the_library():
    fault = UsageError("no", hint="give «run_id», or see «log(DATASET)»")
    assert fault.hint == "give run_id, or see merestone.log(DATASET)"
    assert fault.hint_in(str.upper) == "give RUN_ID, or see LOG(DATASET)"
    assert "«" not in str(fault.to_json())
