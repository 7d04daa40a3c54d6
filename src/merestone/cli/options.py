"""Options and arguments that several commands share, so that they are spelt and explained once.

Not here: what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn, TypeVar

import click

from merestone.cli.family import refuse
from merestone.dataset.manifest import Box
from merestone.dataset.version import check_box
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


def drafted(command: Command) -> Command:
    """SOURCE, and what is known of it before a contract is drafted from it; `key` as a list of names, empty where none is given."""

    def listed(_: click.Context, __: click.Parameter, value: str | None) -> list[str]:
        return [each.strip() for each in value.split(",")] if value is not None else []

    for each in reversed(
        (
            click.argument("source", metavar="SOURCE"),
            click.option("--layer", metavar="NAME", help="The layer, where the source has several."),
            click.option("--crs", metavar="CRS", help="The CRS, such as EPSG:28992, asserted where the file states none."),
            click.option(
                "--key", metavar="COLUMN[,COLUMN]", callback=listed, help="The key; by default the best candidate is found in the data."
            ),
            click.option(
                "--previous", metavar="OLD", help="An older delivery: shows which columns are volatile, and whether keys come back."
            ),
            click.option("--owner", metavar="MAIL", help="Who answers for the product."),
        )
    ):
        command = each(command)
    return command


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


def instant(name: str, text: str | None) -> datetime | None:
    """The time in "2026-03-01T06:00:00Z". Raises UsageError where it is none, or says no zone."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise UsageError(f"{name} {text} is no time with a zone", field=name, hint="give it as 2026-03-01T06:00:00Z")
    return time


def later(name: str, instead: str = "") -> Callable[[Command], Command]:
    """An option of a later version: refused by name, and not listed."""

    def given(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            _refuse(ctx, name, instead)

    return click.option(name, hidden=True, expose_value=False, callback=given)


def _refuse(ctx: click.Context, name: str, instead: str) -> NoReturn:
    refuse(f"{ctx.command_path} {name}", instead)
