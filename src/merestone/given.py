"""What a Python caller gives, held to the form that was asked for before anything else meets it.

Not here: paths (`storage.place`, `api.places`), documents (`document.forms`), options of the command line (`cli.options`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from merestone.errors import UsageError


def names_of(value: Iterable[str], parameter: str) -> tuple[str, ...]:
    """Several names; one text is not a list of names: its letters would be taken for them.

    Raises:
        UsageError: a text, or something in it that is not one.
    """
    if isinstance(value, (str, bytes)):
        raise UsageError(
            f"{parameter}={value!r} is one text, where names are wanted", field=parameter, hint=f"give {parameter}=[{value!r}]"
        )
    names = tuple(value)
    other = next((each for each in names if not isinstance(each, str)), None)
    if other is not None:
        raise UsageError(f"{parameter} holds {other!r}, which is not a name", field=parameter, hint=f"give {parameter} as a list of texts")
    return names


def known_names(value: Iterable[str], parameter: str, known: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of columns that are there.

    Raises:
        UsageError: one text, or a name that `where` does not have.
    """
    names = names_of(value, parameter)
    unknown = next((each for each in names if each not in known), None)
    if unknown is not None:
        raise UsageError(f"{where} has no column {unknown!r}", field=unknown, hint=f"it has {', '.join(known)}")
    return names


def moment_of(value: datetime | None, parameter: str) -> datetime | None:
    """A time with a zone, or none.

    Raises:
        UsageError: it is not a datetime, or has no zone.
    """
    if value is None or (isinstance(value, datetime) and value.tzinfo is not None):
        return value
    what = "has no time zone" if isinstance(value, datetime) else "is not a datetime"
    hint = f"give {parameter}=datetime(2026, 1, 31, 12, tzinfo=UTC), say"
    raise UsageError(f"{parameter}={value!r} {what}", field=parameter, hint=hint)
