"""The canonical name of a reference system: any spelling to `EPSG:<code>`, at full confidence or not at all.

Not here: transformation and axis order (`normalise.crs`); what a delivery declares (`source`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyproj import CRS
from pyproj.exceptions import CRSError

SUBSTITUTES: dict[str, str] = {"OGC:CRS84": "EPSG:4326", "OGC:CRS84h": "EPSG:4979"}
"""Declared substitutes: systems without an EPSG code of their own that differ from the named one in axis order alone."""

CANONICAL = re.compile(r"EPSG:[1-9][0-9]*")
_FORMS = re.compile(
    r"""
    [A-Za-z][A-Za-z0-9_.-]*:[A-Za-z0-9_.+:]+          # EPSG:25832, OGC:CRS84
  | urn:[Oo][Gg][Cc]:def:(crs|crs-compound)[:,].+     # urn:ogc:def:crs:EPSG::25832
  | https?://www\.opengis\.net/(def/crs/|gml/srs/).+  # http://www.opengis.net/def/crs/EPSG/0/25832
  | [A-Za-z_]+\s*\[.+                                 # WKT of any dialect
  | \{.+                                              # PROJJSON
""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=4096)
def canonical_crs(text: str) -> str:
    """The `EPSG:<code>` of an authority string, URN, URL, WKT of any dialect or PROJJSON.

    A declared substitute stands for CRS84. Free text is refused even where PROJ finds a system of a similar name: a guess is not evidence.

    Raises:
        ValueError: the text names no system, or one that is not, in every parameter, the one an EPSG code stands for.
    """
    stripped = text.strip()
    shown = " ".join(text.split())[:80]
    if not _FORMS.fullmatch(stripped):
        raise ValueError(f"CRS {shown!r} is not an authority code, URN, URL, WKT or PROJJSON; write it as EPSG:<code>")
    try:
        found = CRS.from_user_input(stripped)
    except CRSError as fault:
        raise ValueError(f"CRS {shown!r} is unknown to PROJ; write it as EPSG:<code>") from fault
    code = found.to_epsg(min_confidence=100)
    if code is not None:
        return f"EPSG:{code}"
    authority = found.to_authority(min_confidence=100)
    substitute = SUBSTITUTES.get(":".join(authority)) if authority is not None else None
    if substitute is None:
        raise ValueError(f"CRS {shown!r} has no EPSG code at full confidence; transform to a system that has one")
    return substitute


def is_canonical(text: str) -> bool:
    """Whether a text is the canonical name of a system that exists."""
    if not CANONICAL.fullmatch(text):
        return False
    try:
        return canonical_crs(text) == text
    except ValueError:
        return False
