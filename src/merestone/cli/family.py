"""Groups of commands that load a command's module only when it is called, and that know which commands later versions will have.

Not here: the commands.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import click

from merestone.cli.examples import EXAMPLES
from merestone.errors import UsageError


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command lives, and its line in the list of commands (a test holds it to the command's own)."""

    module: str
    attribute: str
    words: str


class Family(click.Group):
    """A group of commands.

    Args:
        lazy: name to command, loaded on call.
        later: names of later versions, each with what serves today ("" where nothing does); they are refused, not listed.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy] | None = None, later: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "no_args_is_help": False})
        self.lazy = dict(lazy or {})
        self.later = dict(later or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands that work, in the order of the table."""
        return [*self.lazy, *(name for name in super().list_commands(ctx) if name not in self.lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name, with its example; one of a later version is a command that refuses."""
        if cmd_name in self.later:
            return not_yet(f"{ctx.command_path} {cmd_name}", self.later[cmd_name])
        found = super().get_command(ctx, cmd_name)
        if cmd_name in self.lazy:
            place = self.lazy[cmd_name]
            found = getattr(import_module(place.module), place.attribute)
        path = " ".join([*ctx.command_path.split()[1:], cmd_name])
        example = EXAMPLES.get(path)
        if found is not None and example is not None:
            found.epilog = f"\b\nExample:\n  {example}"  # \b: a line that is typed is not broken
        for each in found.params if found is not None else ():
            if isinstance(each, click.Option) and not each.hidden:
                each.envvar = environment_variable(path, each.opts[0])
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As usual; the message for a misspelt name proposes the nearest one, loaded or not."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any."""
        rows = [(name, self._words(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual; without a command, the help is shown and the usage is wrong."""
        if not args:
            click.echo(self.get_help(ctx), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def _words(self, ctx: click.Context, name: str) -> str:
        if name in self.lazy:
            return self.lazy[name].words
        command = self.get_command(ctx, name)
        return command.get_short_help_str(200) if command else ""


def environment_variable(path: str, option: str) -> str:
    """The environment variable that stands for an option: `publish`, `--run-id` is MERESTONE_PUBLISH_RUN_ID."""
    return "_".join(["MERESTONE", *path.split(), option.lstrip("-")]).replace("-", "_").upper()


def environment_flag(path: str, option: str) -> bool:
    """Whether the environment switches a flag of a command on. For what has to be known before the command line is parsed."""
    text = os.environ.get(environment_variable(path, option), "")  # noqa: TID251 - options can stand in the environment
    try:
        return bool(click.BOOL.convert(text, None, None)) if text else False
    except click.BadParameter:
        return False  # parsing will complain about it


def reached(top: Family, arguments: Sequence[str]) -> tuple[str, click.Command | None]:
    """The full name of the command that a command line calls, and the command; ("", None) where it calls none.

    Options of groups are flags, so the first words without a dash are the names.
    """
    group, context, names = top, click.Context(top, info_name="merestone"), list[str]()
    for word in arguments:
        if word.startswith("-"):
            continue
        command = group.get_command(context, word)
        if command is None:
            return "", None
        names.append(word)
        if not isinstance(command, Family):
            return " ".join(names), command
        group, context = command, click.Context(command, info_name=word, parent=context)
    return "", None


def refuse(what: str, instead: str) -> NoReturn:
    """Refuse what a later version will do.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"{what}: not in this version", field=what.rsplit(" ", 1)[-1], hint=instead or "`merestone --help` lists what this version does"
    )


def not_yet(path: str, instead: str) -> click.Command:
    """A command that takes any arguments and refuses."""

    def callback(**_: Any) -> NoReturn:
        refuse(path, instead)

    return click.Command(
        path.rsplit(" ", 1)[-1],
        callback=callback,
        hidden=True,
        add_help_option=False,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
