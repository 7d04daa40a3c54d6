"""Options and arguments that several commands share, so that they are spelt and explained once.

Not here: what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from merestone.cli.family import refuse
from merestone.dataset.version import Box, check_box
from merestone.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


def as_json(command: Command) -> Command:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON object on standard output.")(command)


def dataset(command: Command) -> Command:
    """DATASET, with or without @N."""
    return click.argument("dataset", metavar="DATASET[@N]")(command)


def whole_dataset(command: Command) -> Command:
    """DATASET, for commands about all of its versions."""
    return click.argument("dataset", metavar="DATASET")(command)


def names(text: str | None) -> tuple[str, ...]:
    """The names in "A,B", each once."""
    return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip())) if text is not None else ()


def box(text: str | None) -> Box | None:
    """The box in "xmin,ymin,xmax,ymax". Raises UsageError where it is none."""
    if text is None:
        return None
    try:
        return check_box([float(each) for each in text.split(",")])
    except ValueError:
        raise UsageError(f"--bbox {text} is no box", field="--bbox", hint="give xmin,ymin,xmax,ymax in the CRS of the dataset") from None


def later(name: str, instead: str = "") -> Callable[[Command], Command]:
    """An option of a later version: refused by name, and not listed."""

    def given(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            _refuse(ctx, name, instead)

    return click.option(name, hidden=True, expose_value=False, callback=given)


def _refuse(ctx: click.Context, name: str, instead: str) -> NoReturn:
    refuse(f"{ctx.command_path} {name}", instead)
