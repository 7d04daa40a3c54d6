"""The way out: what a command answers, and every way in which it can end as a message and an exit code.

Not here: what the commands do (`publish`, `dataset`, `contract`, `lineage`), the words of results (`report.text`, `words`).

With --json, standard output carries exactly one object, whatever happens; everything else goes to standard error.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from merestone.errors import EXIT_DONE, InternalError, MerestoneError, UsageError
from merestone.masking import masked

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
EXIT_INTERRUPTED = 130
"""What shells expect of a process that Ctrl-C ended; not a result of Merestone's own."""


class Stopped(Exception):  # noqa: N818 - it tells of an end that was asked for, not of an error
    """Ctrl-C, with what can be said about it."""


def answer(value: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the result of a command: one JSON object, or text for a person."""
    if not as_json:
        write(harmless(text) + "\n" if text else "")
        return
    from merestone.render.jsonout import dumps  # noqa: PLC0415 - `merestone --help` has no need of it

    write(dumps(value) + "\n")


def note(text: str) -> None:
    """Write something beside the result to standard error."""
    click.echo(harmless(text), err=True)


def harmless(text: str) -> str:
    r"""Text that cannot drive a terminal: control characters but tab and line feed are written as escapes such as \x1b."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def as_typed(path: str) -> str:
    """A path below the work folder as a person would type it; any other as it is."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def write(text: str) -> None:
    """Write to standard output. Where nobody reads it any more, the command still ends as it would have."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        hush()


def hush() -> None:
    """Let nothing more be written to a standard output that its reader has closed, not even by the interpreter at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(command: Callable[[], Any], *, as_json: bool, debug: bool) -> int:
    """Run a command to its end.

    Args:
        command: gives an exit code, or None for done.
        as_json: whether an error is an object on standard output, too.
        debug: whether an unexpected fault leaves a file with its traceback.

    Returns:
        The exit code.
    """
    try:
        code = command()
    except MerestoneError as fault:
        if isinstance(fault, InternalError):
            fault.hint = _traceback(debug)
        return _failed(fault, as_json=as_json)
    except click.ClickException as fault:
        return _failed(_usage(fault), as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted("interrupted; nothing published", as_json=as_json)
    except Stopped as fault:
        return _interrupted(str(fault), as_json=as_json)
    except Exception as fault:  # noqa: BLE001 - the edge: whatever else went wrong is a fault of ours, and told as one
        unexpected = InternalError(f"unexpected fault: {type(fault).__name__}: {fault}".rstrip(": "), hint=_traceback(debug))
        return _failed(unexpected, as_json=as_json)
    return code if isinstance(code, int) else EXIT_DONE


@contextmanager
def tells_current(before: int | None, current: Callable[[], int | None]) -> Iterator[None]:
    """Make Ctrl-C say the truth about a command that commits: whether a version became current before it was stopped.

    Args:
        before: the number of the version that readers see when the command begins, None where there is none.
        current: gives that of the version that they see now.
    """
    try:
        yield
    except KeyboardInterrupt:
        try:
            now = current()
        except MerestoneError:
            raise Stopped("interrupted; run `merestone status` to see which version is current") from None
        if now == before:
            raise Stopped(f"interrupted; {f'v{now} stays current; ' if now is not None else ''}nothing published") from None
        raise Stopped(f"interrupted, but v{now} became current before that") from None


def _failed(fault: MerestoneError, *, as_json: bool) -> int:
    from merestone.render import jsonout, text  # noqa: PLC0415 - as above

    note(text.error(fault))
    if as_json:
        write(jsonout.dumps(jsonout.error(fault)) + "\n")
    return fault.exit_code


def _interrupted(message: str, *, as_json: bool) -> int:
    note(f"merestone: {message}")
    if as_json:
        answer({"status": "error", "error": {"kind": "interrupted", "message": message, "field": None, "hint": None}}, "", as_json=True)
    return EXIT_INTERRUPTED


def _usage(fault: click.ClickException) -> UsageError:
    context = fault.ctx if isinstance(fault, click.UsageError) else None
    parameter = getattr(fault, "param", None)
    field = getattr(fault, "option_name", None) or (parameter.opts[0] if isinstance(parameter, click.Parameter) else None)
    return UsageError(fault.format_message().rstrip("."), field=field, hint=f"{context.command_path if context else 'merestone'} --help")


def _traceback(debug: bool) -> str:
    """Keep the traceback where it was asked for, and say what to do next."""
    if not debug:
        return "repeat with `merestone --debug ...`, and report the traceback file that it names"
    with tempfile.NamedTemporaryFile("w", prefix="merestone-traceback-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(masked(traceback.format_exc()))
    return f"please report this, with {file.name}"
