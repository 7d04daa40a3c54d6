"""XML as text: elements in a tree of plain values, written with any text in them, byte for byte the same each time.

Not here: which elements a record has (`iso19115`), reading XML (`iso19115_lint`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

# What XML 1.0 cannot carry, or what its readers may change: control characters (a carriage return becomes a line feed), half surrogates,
# U+FFFE and U+FFFF. Tab and line feed stay.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Element:
    """An element with a prefixed name; `content` is text or elements."""

    name: str
    content: str | tuple[Element, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)


def fit(text: str) -> str:
    r"""Text that any XML can carry: what it cannot carry is written as an escape such as \u0001."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def document(root: Element) -> str:
    """The document, two blanks a level, ending in a line break."""
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *_lines(root, "")]) + "\n"


def _lines(element: Element, indent: str) -> Iterator[str]:
    opened = element.name + "".join(f" {name}={quoteattr(fit(value))}" for name, value in element.attributes.items())
    if not element.content:
        yield f"{indent}<{opened}/>"
    elif isinstance(element.content, str):
        yield f"{indent}<{opened}>{escape(fit(element.content))}</{element.name}>"
    else:
        yield f"{indent}<{opened}>"
        for child in element.content:
            yield from _lines(child, indent + "  ")
        yield f"{indent}</{element.name}>"
