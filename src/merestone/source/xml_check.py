"""Refuse XML that declares a DOCTYPE (CWE-611, CWE-776) or is not well-formed to its end, before GDAL sees the file.

GDAL reads what comes before a break in a GML file and says nothing; a cut file would look like a delivery with fewer features.
Not here: reading features (`vector`).
"""

from __future__ import annotations

from typing import IO
from xml.parsers import expat

from merestone.errors import SourceError

_CHUNK = 1 << 20


def check_xml(file: IO[bytes], shown: str) -> str:
    """Parse a document to its end without expanding anything; returns the name of its root element, with its prefix.

    Args:
        file: the bytes of the XML document.
        shown: the path that messages name.

    Raises:
        SourceError: there is a DOCTYPE, or the document is cut off or not well-formed.
    """
    root: list[str] = []

    def begin(name: str, _attributes: dict[str, str]) -> None:
        root.append(name)
        parser.StartElementHandler = None

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
        while chunk := file.read(_CHUNK):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as fault:
        raise SourceError(f"{shown} is truncated or not well-formed XML: {fault}", field=shown, hint="copy or export it again") from None
    return root[0]
