"""Which reference system a text means: any spelling to an authority code, at full confidence or not at all.

Not here: whether a delivery's system is the agreed one (`normalise.agreed_crs`), transformation (`operation`).
Clauses: docs/spec/gate.md#axis-order; ISO 19111 (a compound system is another than its horizontal part); RFC 7946 and
GeoParquet 1.1 (OGC:CRS84 and EPSG:4326 are one for data in x, y order). A code that a text claims counts where its parameters are those that
PROJ's database has under that code; a text without a code is compared with every code. So two versions of the EPSG dataset in one process,
GDAL's and PROJ's, give one answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pyproj import CRS
from pyproj.database import get_database_metadata, query_crs_info
from pyproj.enums import PJType
from pyproj.exceptions import CRSError

from merestone.reference.parameters import between, plain_name
from merestone.reference.systems import system

_SAME_IN_XY = {"OGC:CRS84": "EPSG:4326", "OGC:CRS83": "EPSG:4269", "OGC:CRS27": "EPSG:4267", "OGC:CRS84h": "EPSG:4979"}
"""Systems without an EPSG code of their own that differ from the named one in axis order alone."""

_EQUIVALENT_BY_NAME = 90
"""PROJ's confidence for "the same name and an equivalent definition", which also knows methods with two names."""
_CANONICAL = re.compile(r"EPSG:[1-9][0-9]*")
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


@dataclass(frozen=True, slots=True)
class Identity:
    """What a system is: `code` as AUTHORITY:NUMBER ("EPSG:25833+7837" for a compound without a code of its own), None where unknown.

    `reason` says why a code is missing. `claimed`: the text itself states the code.
    """

    code: str | None
    name: str
    reason: str = ""
    compound: bool = False
    claimed: bool = False


@lru_cache(maxsize=256)
def identify(text: str) -> Identity:
    """The authority code of a system in any spelling: WKT of any dialect, PROJJSON, URN, http URI, authority string.

    A code counts only where the parameters are those of its definition; codes of units, meridians and ellipsoids never do.
    """
    try:
        crs = system(text)
    except CRSError as fault:
        return Identity(None, "", f"cannot be read: {str(fault)[:120]}")
    stated = crs.to_json_dict().get("id")
    claim = f"{stated['authority']}:{stated['code']}" if stated is not None else None
    if claim is not None and (claim in _SAME_IN_XY or _holds(crs, claim)):
        return Identity(_SAME_IN_XY.get(claim, claim), crs.name, compound=crs.is_compound, claimed=True)
    found = _by_parameters(crs)
    if crs.is_compound:
        return _compound(crs, found)
    if found is not None:
        return Identity(found, crs.name)
    return Identity(None, crs.name, "no definition has its parameters" if claim is None else _refuted(claim))


def is_system(text: str, code: str, *, by_parameters: bool = False) -> bool:
    """Whether a text means the system with a code such as "EPSG:25832".

    A deprecated code and the one that replaced it are one where the parameters agree: GDAL writes the new one in the place of the old.

    Args:
        text: any spelling.
        code: the canonical name.
        by_parameters: the text states parameters and no code; it means every code that has them.
    """
    identity = identify(text)
    if identity.code == code:
        return True
    try:
        agreed, given = system(code), system(text)
    except CRSError:
        return False
    stated = given.to_json_dict().get("id") is not None
    if stated and not by_parameters and not (identity.claimed and agreed.is_deprecated):
        return False
    return not between(given, agreed)


def epsg_twin(text: str) -> str | None:
    """The EPSG code that has the parameters of a system of another authority: EPSG:3857 for ESRI:102100. None where there is none."""
    found = _by_parameters(system(text))
    return found if found is not None and found.startswith("EPSG:") else None


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
    found = identify(stripped)
    if found.reason.startswith("cannot be read"):
        raise ValueError(f"CRS {shown!r} is unknown to PROJ; write it as EPSG:<code>")
    if found.code is None or not _CANONICAL.fullmatch(found.code):
        raise ValueError(f"CRS {shown!r} has no EPSG code at full confidence; transform to a system that has one")
    return found.code


def is_canonical(text: str) -> bool:
    """Whether a text is the canonical name of a system that exists."""
    if not _CANONICAL.fullmatch(text):
        return False
    try:
        return canonical_crs(text) == text
    except ValueError:
        return False


def _refuted(claim: str) -> str:
    try:
        system(claim)
    except CRSError:
        return (
            f"{claim} is not in PROJ's database (EPSG {get_database_metadata('EPSG.VERSION')}), and no definition there has its parameters"
        )
    return f"its parameters are not those of {claim}"


def _holds(crs: CRS, code: str) -> bool:
    """Whether a system that claims a code has the parameters that PROJ's database has under it."""
    try:
        return not between(crs, system(code), by_code=True) or code in _guesses(crs, _EQUIVALENT_BY_NAME)
    except CRSError:  # a code that this version of the EPSG dataset does not have
        return False


def _by_parameters(crs: CRS) -> str | None:
    """The code of the definition that has these parameters, EPSG's before any other's; None where no definition has them."""
    sure = _guesses(crs, _EQUIVALENT_BY_NAME)
    fitting = [code for code in _guesses(crs, 0) if code in sure or not between(crs, system(code))]
    epsg = next((code for code in fitting if code.startswith("EPSG:")), None)
    if epsg is None and not crs.is_compound:
        epsg = _searched(crs)
    best = epsg or next(iter(fitting), None)
    return _SAME_IN_XY.get(best, best) if best is not None else None


def _guesses(crs: CRS, confidence: int) -> list[str]:
    """What PROJ takes a system for, best first."""
    return [f"{each.auth_name}:{each.code}" for each in crs.list_authority(min_confidence=confidence)]


def _searched(crs: CRS) -> str | None:
    """The EPSG code whose definition has these parameters, looked for among all codes of the method, those of a similar name first."""
    method = crs.coordinate_operation.method_name if crs.coordinate_operation is not None else None
    kinds = [PJType.PROJECTED_CRS] if crs.is_projected else [PJType.GEOGRAPHIC_2D_CRS]
    known = [
        each for each in query_crs_info("EPSG", kinds, allow_deprecated=True) if method is None or each.projection_method_name == method
    ]
    name = plain_name(crs.name)
    for each in sorted(known, key=lambda each: (plain_name(each.name) != name, each.deprecated, int(each.code))):
        if not between(crs, system(f"EPSG:{each.code}")):
            return f"EPSG:{each.code}"
    return None


def _compound(crs: CRS, own: str | None) -> Identity:
    if own is not None:
        return Identity(own, crs.name, compound=True)
    parts = [identify(part.to_wkt("WKT2_2019")) for part in crs.sub_crs_list]
    if len(parts) == 2 and all(part.code and part.code.startswith("EPSG:") for part in parts):
        vertical = str(parts[1].code).removeprefix("EPSG:")
        return Identity(f"{parts[0].code}+{vertical}", parts[1].name, compound=True)
    return Identity(None, crs.name, "a compound CRS whose parts have no code", compound=True)
