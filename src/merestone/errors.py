"""Inability: what Merestone raises when a question could not be answered, with a stable kind and exit code.

Not here: refusal. A delivery that breaks its contract, or a change that trips a guard, is a result (`results.finding.Finding`).

    MerestoneError
    ├── UsageError           usage        2   the call or a document is wrong
    ├── SourceError          source       3   the delivery cannot be read
    ├── StoreError           store        4   the destination cannot be reached or written (retry)
    ├── ConflictError        conflict     5   another publisher won (retry)
    ├── StampError           stamp        5   a contract's stamp stands for something else
    ├── CorruptError         corrupt      6   the published state contradicts itself
    ├── UnknownOutcomeError  unknown      7   the outcome of the commit is unknown (retry)
    ├── MissingError         missing      8   something this machine lacks (a grid, an extra)
    ├── InternalError        internal    70   a fault of Merestone itself
    └── OutputError          output      74   an answer that cannot be written to standard output

Kinds and exit codes are an interface: they are only ever added (`tests/test_errors.py` holds the list).

A hint names a parameter or a function of the library between « and »: "leave out «run_id»", "see «log(DATASET)»". Who calls the library
reads `run_id` and `merestone.log(DATASET)`; a door that has its own words for them, such as the command line, puts those in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final

from merestone.masking import masked

MARK: Final = re.compile("«([^«»]*)»")
"""What a hint names of the library."""


_ERRNO: Final = re.compile(r"\[errno \d+\] ", re.IGNORECASE)
"""A number of the operating system before its own words: it helps nobody who reads a message."""


def in_python(name: str) -> str:
    """A name between marks as one who calls the library writes it."""
    return f"merestone.{name}" if "(" in name else name


class MerestoneError(Exception):
    """A question that could not be answered.

    Args:
        message: what happened, to which thing, in one sentence.
        field: the parameter, file, key or column that it is about, where there is one.
        hint: the next step for the person who reads it; names of the library stand between marks.

    All three are masked here, once: an error stands on screens, in records and in reports of builds. Numbers of the operating system are left out.
    """

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70
    retry: ClassVar[bool] = False

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        self.message = _ERRNO.sub("", masked(message))
        super().__init__(self.message)
        self.field = None if field is None else masked(field)
        self.marked_hint = None if hint is None else masked(hint)

    @property
    def hint(self) -> str | None:
        """The next step, in the words of the library."""
        return self.hint_in(in_python)

    def hint_in(self, words: Callable[[str], str]) -> str | None:
        """The next step, each name between marks put into the words of a door."""
        return None if self.marked_hint is None else MARK.sub(lambda found: words(found[1]), self.marked_hint)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process."""
        return _rebuild, (type(self), self.message, self.field, self.marked_hint)

    def to_json(self) -> dict[str, str | bool | None]:
        """The error as an object: kind, whether a retry helps, message, field and hint."""
        return {"kind": self.kind, "retry": self.retry, "message": self.message, "field": self.field, "hint": self.hint}


def _rebuild(cls: type[MerestoneError], message: str, field: str | None, hint: str | None) -> MerestoneError:
    return cls(message, field=field, hint=hint)


class UsageError(MerestoneError):
    """The call or a document is wrong."""

    kind = "usage"
    exit_code = 2


class SourceError(MerestoneError):
    """The delivery cannot be read: missing, truncated, wrong layer."""

    kind = "source"
    exit_code = 3


class StoreError(MerestoneError):
    """The destination cannot be reached or written; a retry may help."""

    kind = "store"
    exit_code = 4
    retry = True


class ConflictError(MerestoneError):
    """Another publisher moved the pointer first; nothing was lost, a retry may help."""

    kind = "conflict"
    exit_code = 5
    retry = True


class StampError(MerestoneError):
    """A contract's stamp stands for another contract already, or is lower than the published one."""

    kind = "stamp"
    exit_code = 5


class CorruptError(MerestoneError):
    """The published state contradicts itself or cannot be read. Never taken for 'nothing there'."""

    kind = "corrupt"
    exit_code = 6


class UnknownOutcomeError(MerestoneError):
    """The outcome of the commit is unknown. Nothing was deleted; the next run finds out and says who became current."""

    kind = "unknown"
    exit_code = 7
    retry = True


class MissingError(MerestoneError):
    """Something that this machine lacks: a PROJ grid, an optional extra."""

    kind = "missing"
    exit_code = 8


class InternalError(MerestoneError):
    """A fault of Merestone itself: an invariant that did not hold."""


class OutputError(MerestoneError):
    """The answer of a command cannot be written to standard output. What the command did stands."""

    kind = "output"
    exit_code = 74


EXIT_DONE = 0
EXIT_REFUSED = 1
