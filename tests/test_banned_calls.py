"""What a room may not reach for, kept by ruff: the clock, chance, the environment, files. And who moves the pointer."""

from __future__ import annotations

import ast
import configparser
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "merestone"
CLOCK = {
    "time.time": "import time\n\nx = time.time()\n",
    "time.time_ns": "from time import time_ns\n\nx = time_ns()\n",
    "datetime.datetime.now": "from datetime import UTC, datetime\n\nx = datetime.now(UTC)\n",
    "datetime.date.today": "from datetime import date\n\nx = date.today()\n",
}
CHANCE = {
    "random": "import random\n\nx = random.random()\n",
    "numpy.random": "import numpy as np\n\nx = np.random.default_rng()\n",
    "uuid.uuid4": "from uuid import uuid4\n\nx = uuid4()\n",
    "secrets": "from secrets import token_hex\n\nx = token_hex()\n",
}
ENVIRONMENT = {
    "os.environ": 'import os\n\nx = os.environ["HOME"]\n',
    "os.getenv": 'from os import getenv\n\nx = getenv("HOME")\n',
    "pathlib.Path.cwd": "from pathlib import Path\n\nx = Path.cwd()\n",
    "socket": "import socket\n\nx = socket.gethostname()\n",
}
FILES = {
    "open": 'with open("x") as file:\n    x = file.read()\n',
    "pathlib": 'from pathlib import Path\n\nx = Path("x").read_bytes()\n',
    "os": 'import os\n\nx = os.listdir("x")\n',
    "shutil": 'import shutil\n\nshutil.copyfile("a", "b")\n',
    "os.open": 'import os\n\nx = os.open("x", os.O_RDONLY)\n',
    "io.open": 'import io\n\nx = io.open("x")\n',
}
PAST_FILES = {"os.link": 'import os\n\nos.link("a", "b")\n', "os.open": FILES["os.open"], "open": FILES["open"]}
OUTSIDE = CLOCK | CHANCE | ENVIRONMENT
BANNED = {
    "gate": OUTSIDE | FILES,  # rooms that decide
    "change": OUTSIDE | FILES,
    "results": OUTSIDE | FILES,
    "dataset": OUTSIDE | FILES,  # reads through a store
    "lineage/event": OUTSIDE | FILES,
    "source": OUTSIDE | PAST_FILES,  # rooms that reach files of their own
    "scratch": OUTSIDE | PAST_FILES,
    "writer": OUTSIDE | PAST_FILES,
    "lineage/store": OUTSIDE | PAST_FILES,
    "storage": OUTSIDE | PAST_FILES,
    "line": OUTSIDE | PAST_FILES,
    "api": OUTSIDE | PAST_FILES,
    "cli": OUTSIDE | PAST_FILES,
}
PLANTED = [(room, name) for room, calls in BANNED.items() for name in calls]


@pytest.fixture(scope="module")
def found():
    """The codes that ruff gives each call that is planted in a module of a room, by room and call."""
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed: `make lint` brings it")
    return {(room, name): codes for room, calls in BANNED.items() for name, codes in _planted(room, calls).items()}


def _planted(room, calls):
    module, lines = "", {}
    for name, code in calls.items():
        lines |= dict.fromkeys(range(module.count("\n") + 1, (module + code).count("\n") + 1), name)
        module += code
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--output-format=json",
        f"--stdin-filename={SRC / room}/planted.py",
        "-",
    ]
    done = subprocess.run(command, input=module, capture_output=True, text=True, check=False)
    codes = {name: set() for name in calls}
    for each in json.loads(done.stdout):
        codes[lines[each["location"]["row"]]].add(each["code"])
    return codes


@pytest.mark.parametrize(("room", "name"), PLANTED)
def test_ruff_finds_a_banned_call_in_each_kind_of_room(found, room, name):
    assert found[room, name] & {"TID251", "TID253", "PTH123"}


def test_the_room_that_looks_outside_may_do_so():
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed: `make lint` brings it")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select=TID", str(SRC / "line" / "environment.py")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_rooms_that_do_no_input_or_output_are_held_to_it_by_ruff_too():
    layers = configparser.ConfigParser()
    layers.read(ROOT / ".importlinter", encoding="utf-8")
    modules = [each.split(".") for each in layers["importlinter:contract:pure"]["source_modules"].split()]
    rooms = {each[1] for each in modules if (SRC / each[1]).is_dir()}
    held = {each.parent.name for each in SRC.glob("*/ruff.toml") if "deciding.toml" in each.read_text(encoding="utf-8")}
    assert rooms <= held, "a room that decides has a ruff.toml that extends deciding.toml"


def test_only_the_commit_moves_the_pointer():
    swaps = {
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "swap"
    }
    assert {each for each in swaps if not each.startswith("storage/")} == {"writer/commit.py"}
