"""What a module says is elsewhere ("Not here: ...") is there: a module of its room by name, or of another by its room's name too."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "merestone"
MODULES = sorted(SOURCE.rglob("*.py"))


def places(room, names):
    """Files that a dotted name may mean, below a folder."""
    whole = room.joinpath(*names)
    yield from (whole.with_suffix(suffix) for suffix in (".py", ".c", ".html", ".css", ".js"))
    yield whole / "__init__.py"


def is_there(module, name):
    """Whether a name in the text of a module means something that exists."""
    names = name.split(".")
    room = SOURCE / module.relative_to(SOURCE).parts[0]
    if any(each.exists() for each in places(SOURCE, names)) or (SOURCE / Path(*names[:-1])).with_suffix(".py").exists():
        return True
    for folder in {each.parent for each in room.rglob("*.py")} if room.is_dir() else ():
        if any(each.exists() for each in places(folder, names)):
            return True
        inside = folder.joinpath(*names[:-1]).with_suffix(".py") if len(names) > 1 else None
        if inside is not None and inside.exists() and re.search(rf"\b{names[-1]}\b", inside.read_text(encoding="utf-8")):
            return True
    if re.search(rf"^(def|class) {names[-1]}\b|^{names[-1]}\b", module.read_text(encoding="utf-8"), re.MULTILINE):
        return True
    return importlib.util.find_spec(names[0]) is not None  # a library


@pytest.mark.parametrize("module", MODULES, ids=lambda each: str(each.relative_to(SOURCE)))
def test_what_is_not_here_is_elsewhere(module):
    said = re.search(r"Not here:(.*?)(\n\n|\Z)", ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "", re.DOTALL)
    pointers = "".join(re.findall(r"\([^()]*\)", re.split(r"\n[A-Z][a-z]+:", said[1])[0])) if said else ""
    names = re.findall(r"`([a-z_][a-z0-9_.]*)`", pointers)
    assert [each for each in names if not each.endswith((".h", ".c", ".html", ".js", ".css")) and not is_there(module, each)] == []
