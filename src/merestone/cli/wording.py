"""What the command line calls the parameters and functions of the library.

Not here: which parameters there are (the commands), when a hint is printed (`edge`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import click

COMMANDS: Final = {
    "draft": "init",
    "infer": "contract infer",
    "lint": "contract lint",
    "show_contract": "contract show",
    "contract_schema": "contract schema",
}
"""Functions whose command has another name; of all others, `lineage.check_complete` is the command `lineage check-complete`."""
_CALL = re.compile(r"(?P<name>[\w.]+)\((?P<arguments>.*)\)", re.DOTALL)


def in_command_line(command: click.Command | None) -> Callable[[str], str]:
    """What puts a name between marks into the words of the command line.

    Args:
        command: the command that was called; it knows how its options are spelt. None where none was reached.
    """

    def words(name: str) -> str:
        call = _CALL.fullmatch(name)
        if call is None:
            return _parameter(name, command)
        arguments = [each.strip() for each in call["arguments"].split(",") if each.strip()]
        spelt = [each if "=" not in each else _parameter(each, None) for each in arguments]
        named = COMMANDS.get(call["name"], call["name"].replace(".", " ").replace("_", "-"))
        return f"`{' '.join(['merestone', named, *spelt])}`"

    return words


_SPELT: Final = {"from_version": "--from", "to_version": "--to", "run_ids": "--run"}


def _parameter(text: str, command: click.Command | None) -> str:
    name, _, value = text.partition("=")
    known = next((each for each in command.params if each.name == name), None) if command is not None else None
    if isinstance(known, click.Argument):
        spelt = str(known.metavar)
    elif known is not None:
        spelt = known.opts[0]
    else:
        spelt = _SPELT.get(name) or "--" + name.replace("_", "-")
    return f"{spelt} {value}" if value and value != "True" else spelt
