"""The way out: what a command answers, and every way in which it can end as a message and an exit code.

Not here: what the commands do, the words of answers (`render.text`, `words`), how hints are spelt (`wording`).

With --json, standard output carries exactly one object, whatever happens; everything else goes to standard error.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import click

from merestone.cli.wording import in_command_line
from merestone.errors import EXIT_DONE, InternalError, MerestoneError, OutputError, UsageError
from merestone.masking import masked

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"-\d")
EXIT_INTERRUPTED = 130
"""What shells expect of a process that Ctrl-C ended; not a result of Merestone's own."""
EXIT_TERMINATED = 143
"""What shells expect of a process that SIGTERM ended."""


_PUBLISHING = frozenset({"publish", "rollback", "apply"})
stopped_by: int | None = None
"""The signal that ended the command: an exception may lose its type in a library that it passes through."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: the run ends as it does for Ctrl-C, and leaves nothing behind that the next run has to write up."""


class Stopped(Exception):  # noqa: N818 - an end that somebody asked for is not an error
    """Ctrl-C or SIGTERM, with what can be said about it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Call:
    """How the command line was called: the command that was reached, and what of its way out does not hang on the command."""

    command: click.Command | None = None
    as_json: bool = False
    debug: bool = False


def answer(value: Any, text: str, *, as_json: bool, report: bool = False) -> None:
    """Print the answer of a command: one JSON object, or text for a person.

    Args:
        value: the answer.
        text: the same in words.
        as_json: print the object.
        report: the text only says that all went well, so `-q` leaves it out.
    """
    if not as_json:
        write(harmless(text) + "\n" if text and not (report and quiet()) else "")
        return
    from merestone.render.jsonout import dumps  # noqa: PLC0415 - `merestone --help` has no need of it

    write(dumps(value) + "\n")


def note(text: str) -> None:
    """Say something beside the answer, on standard error; `-q` leaves it out."""
    if not quiet():
        _say(harmless(text))


def _say(text: str) -> None:
    """Write to standard error. What cannot be written there changes no exit code."""
    try:
        click.echo(text, err=True)
    except OSError:
        hush(sys.stderr)


def harmless(text: str) -> str:
    r"""Text that cannot drive a terminal: control characters but tab and line feed are written as escapes such as \x1b."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def quiet() -> bool:
    """Whether -q was given."""
    return _flag("quiet")


def verbose() -> bool:
    """Whether -v was given."""
    return _flag("verbose")


def _flag(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.find_root().meta.get(name))


def write(text: str) -> None:
    """Write to standard output. Where nobody reads it any more, the command still ends as it would have."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        hush()
    except OSError as fault:
        raise unwritten(fault) from None


class Output(io.TextIOWrapper):
    """A standard output that says what it could not write, whoever writes: the work is done, and its answer is lost."""

    def write(self, text: str, /) -> int:
        """Write a text. Raises OutputError where it cannot be written, BrokenPipeError where its reader has gone."""
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise unwritten(fault) from None

    def flush(self) -> None:
        """Hand on what was written. Raises as `write` does."""
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise unwritten(fault) from None


def unwritten(fault: OSError) -> OutputError:
    """What is said of a standard output that takes nothing more; nothing more is written to it."""
    hush()
    why = fault.strerror or str(fault)
    return OutputError(
        f"the answer cannot be written to standard output: {why}; what the command did stands",
        field="stdout",
        hint="ask again with a standard output that can be written; after a publish, `merestone status` says what is current",
    )


def hush(stream: Any = None) -> None:
    """Let nothing more be written to a standard output (or error) that takes nothing, not even by the interpreter at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())  # noqa: TID251 - a descriptor is meant, not a file


def end(command: Callable[[], Any], call: Call) -> int:
    """Run a command to its end.

    Args:
        command: gives an exit code, or None for done.
        call: how the command line was called.

    Returns:
        The exit code.
    """
    try:
        code = command()
    except MerestoneError as fault:
        if isinstance(fault, InternalError):
            fault.marked_hint = _traceback(call.debug)
        return _failed(fault, call)
    except click.ClickException as fault:
        return _failed(_usage(fault), call)
    except Stopped as fault:
        return _interrupted(str(fault), fault.code, call)
    except (click.Abort, KeyboardInterrupt) as fault:
        end = stopped(fault, call.command.name if call.command is not None else None)
        return _interrupted(str(end), end.code, call)
    except Exception as fault:  # noqa: BLE001 - the edge: whatever else went wrong is a fault of ours, and is shown as one
        unexpected = InternalError(f"unexpected fault: {type(fault).__name__}: {fault}".rstrip(": "), hint=_traceback(call.debug))
        return _failed(unexpected, call)
    return code if isinstance(code, int) else EXIT_DONE


@contextmanager
def names_current(current: Callable[[], int | None]) -> Iterator[None]:
    """Make an interrupted command that commits say which version readers see now.

    Args:
        current: gives the number of the version that readers see, None where there is none.
    """
    before: int | None = None
    with suppress(MerestoneError):  # the command meets the same fault, and raises it
        before = current()
    try:
        yield
    except KeyboardInterrupt as fault:
        try:
            now = current()
        except MerestoneError:
            raise Stopped(f"{_how(fault)}; run `merestone status` to see which version is current", _code(fault)) from None
        if now == before:
            stays = f"v{now} stays current; " if now is not None else ""
            raise Stopped(f"{_how(fault)}; {stays}nothing published", _code(fault)) from None
        raise Stopped(f"{_how(fault)}, but v{now} became current before that", _code(fault)) from None


def stopped(fault: BaseException, command: str | None) -> Stopped:
    """The end of a command that a signal ended; of one that publishes, before it did."""
    return Stopped(f"{_how(fault)}; nothing published" if command in _PUBLISHING else _how(fault), _code(fault))


def _how(fault: BaseException) -> str:
    return "terminated" if isinstance(fault, Terminated) or stopped_by == signal.SIGTERM else "interrupted"


def _code(fault: BaseException) -> int:
    return EXIT_TERMINATED if _how(fault) == "terminated" else EXIT_INTERRUPTED


def _failed(fault: MerestoneError, call: Call) -> int:
    from merestone.words import visible  # noqa: PLC0415 - as above

    hint = fault.hint_in(in_command_line(call.command))
    # A message may have several lines of its own; what a terminal would obey in it is escaped.
    said = [f"merestone: {fault.message}"] + ([f"  next: {hint}"] if hint else [])
    _say("\n".join(visible(line) for each in said for line in each.split("\n")))
    if call.as_json:
        _error({**fault.to_json(), "hint": hint})
    return fault.exit_code


def _interrupted(message: str, code: int, call: Call) -> int:
    if sys.stderr.isatty() and code == EXIT_INTERRUPTED:
        _say("")  # a terminal has written ^C
    _say(f"merestone: {message}")
    if call.as_json:
        _error({"kind": "interrupted", "retry": True, "message": message, "field": None, "hint": None})
    return code


def _error(error: dict[str, str | bool | None]) -> None:
    from merestone.render.jsonout import dumps  # noqa: PLC0415 - as above

    with suppress(OutputError):  # the exit code is that of the error
        write(dumps({"status": "error", "error": error}) + "\n")


def _usage(fault: click.ClickException) -> UsageError:
    context = fault.ctx if isinstance(fault, click.UsageError) else None
    parameter = getattr(fault, "param", None)
    field = parameter.name if isinstance(parameter, click.Parameter) else getattr(fault, "option_name", None)
    command = context.command_path if context else "merestone"
    hint = f"{command} --help"
    if isinstance(fault, click.NoSuchOption) and _NUMBER.match(fault.option_name):
        hint = f"write -- before a value that begins with -: {command} ... -- {fault.option_name}"
    return UsageError(fault.format_message().rstrip("."), field=field, hint=hint)


def _traceback(debug: bool) -> str:
    """Keep the traceback where somebody asked for it, and say what to do next."""
    if not debug:
        return "repeat with `merestone --debug ...`, and report the traceback file that it names"
    with tempfile.NamedTemporaryFile("w", prefix="merestone-traceback-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(masked(traceback.format_exc()))
    return f"please report this, with {file.name}"
