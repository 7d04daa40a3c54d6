"""Refuse XML that declares a DOCTYPE, before any parser that might follow it sees the file (CWE-611, CWE-776).

Not here: reading features (`vector`).
"""

from __future__ import annotations

from typing import IO
from xml.parsers import expat

from merestone.errors import SourceError

_PROLOG = 1 << 20  # a root element that has not begun after this many bytes is no feature collection


class _RootSeenError(Exception):
    """The root element has begun: nothing after it can declare an entity."""


def root_element(file: IO[bytes], shown: str) -> str:
    """The name of the root element, with its prefix.

    Args:
        file: the bytes of the XML document.
        shown: the path that messages name.

    Raises:
        SourceError: there is a DOCTYPE, or no root element.
    """
    root: list[str] = []

    def begin(name: str, _attributes: dict[str, str]) -> None:
        root.append(name)
        raise _RootSeenError

    def doctype(name: str, *_rest: object) -> None:
        raise SourceError(
            f"{shown} has a DOCTYPE ({name}); XML that declares a DOCTYPE or entities is not read",
            field=shown,
            hint="export it without a DOCTYPE",
        )

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(file.read(_PROLOG), False)
    except _RootSeenError:
        return root[0]
    except expat.ExpatError as fault:
        raise SourceError(f"{shown} is not well-formed XML: {fault}", field=shown, hint="export it again") from None
    raise SourceError(f"{shown} has no XML root element", field=shown, hint="export it again")
