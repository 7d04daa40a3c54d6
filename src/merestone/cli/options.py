"""Options and arguments that several commands share: spelt and explained once.

Not here: what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn, TypeVar

import click

from merestone.cli.family import refuse

Command = TypeVar("Command", bound=Callable[..., Any])

HTML = "Write a page with a map of before and after; it needs no network."
OUT_OF_CHANGES = "Write every change with its rows before and after: .parquet, .geojsons (text sequence), .geojsonl."


def as_json(command: Command) -> Command:
    """--json, and how much is said beside the answer: -v and -q."""
    for each in (
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_kept, help="Print nothing but answers and faults."),
        click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_kept, help="Print each stage with its time."),
        click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON object on standard output."),
    ):
        command = each(command)
    return command


def _kept(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Keep a flag where `edge` looks for it."""
    ctx.find_root().meta[str(parameter.name)] = value


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
                "--previous",
                metavar="OLD",
                help="An older delivery: it shows which key joins the two, and which columns each export makes anew.",
            ),
            click.option("--owner", metavar="MAIL", help="Who answers for the product."),
        )
    ):
        command = each(command)
    return command


def names(text: str | None) -> tuple[str, ...]:
    """The names in "A,B", each once."""
    return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip())) if text is not None else ()


def box(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float, float, float] | None:
    """The box in "xmin,ymin,xmax,ymax"; the library says whether four numbers are one.

    Raises:
        BadParameter: the text is not four numbers.
    """
    if text is None:
        return None
    try:
        xmin, ymin, xmax, ymax = (float(each) for each in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text} is not a box; give xmin,ymin,xmax,ymax in the CRS of the dataset") from None
    return xmin, ymin, xmax, ymax


bbox = click.option(
    "--bbox",
    callback=box,
    metavar="X,Y,X,Y",
    help="Only features whose box meets this one; in the CRS of the dataset, minimum first.",
)
"""A box to read within, as four numbers."""


def instant(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    """The time in "2026-03-01T06:00:00Z".

    Raises:
        BadParameter: the text is not a time, or has no zone.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise click.BadParameter(f"{text} is not a time with a zone; give it as 2026-03-01T06:00:00Z")
    return time


def later(name: str, instead: str = "") -> Callable[[Command], Command]:
    """An option of a later version: refused by name, and not listed."""

    def given(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            _refuse(ctx, name, instead)

    return click.option(name, hidden=True, expose_value=False, callback=given)


def _refuse(ctx: click.Context, name: str, instead: str) -> NoReturn:
    refuse(f"{ctx.command_path} {name}", instead)
