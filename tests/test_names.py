"""One name means one thing: no two rooms have a class of one name, and modules of one name are about one thing, seen from their rooms."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "merestone"
SIDES = {
    "changes": "asked for, and as a command",
    "check": "the line, and its command",
    "checkpoint": "read, and written",
    "columns": "the columns of what the room has",
    "compiled": "the extension of the room",
    "contract": "the value, and its command",
    "diagnosis": "the answer, and its words",
    "epochs": "read from a file, and judged",
    "fallback": "the room's work in NumPy",
    "files": "files of the room's things",
    "grids": "folders of grids, and PROJ's use of them",
    "history": "read, and written",
    "ingest": "of one dataset, and of one file",
    "init": "the draft, and its command",
    "lineage": "the public functions, and their command",
    "open": "the one way into the room",
    "pages": "read, and written",
    "port": "what the room asks of others",
    "progress": "the value, and its bar",
    "publish": "the line, and its command",
    "raster": "read, and judged",
    "reading": "reading what the room has",
    "record": "one record of the room",
    "reference_page": "the page that the room's definitions make",
    "rollback": "the line, its command, and the only writer",
    "schema": "the schema of what the room has",
    "text": "text of the room's things",
    "values": "values of the room's columns",
    "verify": "of one version, and of all that an auditor asks",
    "withdrawn": "read, and what comes back of it",
    "words": "for everybody, and for the command line",
}
"""Module names that several rooms have, and what is the same about them."""


def test_no_class_name_stands_for_two_things():
    found = defaultdict(set)
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(str(path.relative_to(SRC)))
    assert {name: sorted(places) for name, places in found.items() if len(places) > 1} == {}


def test_modules_of_one_name_are_about_one_thing():
    found = defaultdict(set)
    for path in SRC.rglob("*.py"):
        if path.stem != "__init__":
            found[path.stem].add(str(path.relative_to(SRC)))
    assert {name for name, places in found.items() if len(places) > 1} == SIDES.keys()
