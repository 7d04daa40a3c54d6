"""A reference system looked up by EPSG code or by text in any spelling.

Not here: whether two texts mean one system (`identity`), what its parameters are (`parameters`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyproj import CRS
from pyproj.crs import Datum  # type: ignore[attr-defined]  # public, and not in its stub
from pyproj.exceptions import CRSError

from merestone.json_value import JsonObject

_EQUIVALENT = 70  # PROJ's confidence for "equivalent definition, another name"
_OLD_GML = re.compile(r"^https?://www\.opengis\.net/gml/srs/epsg\.xml#")


@lru_cache(maxsize=256)
def system(text: str) -> CRS:
    """The system that a text names: authority code, URN, URL, WKT of any dialect or PROJJSON; without a bound transformation.

    Raises:
        CRSError: the text names no system.
    """
    found = CRS.from_user_input(_OLD_GML.sub("EPSG:", text))
    return found.source_crs if found.is_bound and found.source_crs is not None else found


def of_code(code: int) -> CRS:
    """The system with an EPSG code.

    Raises:
        CRSError: EPSG has no such code.
    """
    found = system(f"EPSG:{code}")
    if foreign_name(code) is not None:
        raise CRSError(f"EPSG:{code} is {foreign_name(code)}, a code of another authority")
    return found


@lru_cache(maxsize=256)
def epsg_name(code: int) -> str | None:
    """The name of the system with an EPSG code; None where EPSG has no such code."""
    try:
        return str(of_code(code).name)
    except CRSError:
        return None


@lru_cache(maxsize=256)
def foreign_name(code: int) -> str | None:
    """What a number that is not EPSG's stands for in PROJ: "ESRI:102100" for 102100. None for EPSG's own numbers and for unknown ones."""
    try:
        named = system(f"EPSG:{code}").to_json_dict().get("id")
    except CRSError:
        return None
    return None if named is None or named["authority"] == "EPSG" else f"{named['authority']}:{named['code']}"


def projjson(code: int) -> JsonObject:
    """The description of an EPSG system as files carry it."""
    found: JsonObject = of_code(code).to_json_dict()
    return found


def horizontal(crs: CRS) -> CRS:
    """The part of a system that has x and y: of a compound one the first, of a three-dimensional one itself."""
    return crs.sub_crs_list[0] if crs.is_compound else crs


def is_degrees(crs: CRS) -> bool:
    """Whether x and y are degrees."""
    part = horizontal(crs)
    return bool(part.is_geographic) and part.axis_info[0].unit_name.lower() == "degree"


def is_dynamic(crs: CRS) -> bool:
    """Whether coordinates need an epoch: the reference frame moves with respect to the ground (ISO 19111, dynamic reference frame)."""
    datum = (crs.geodetic_crs or crs).datum
    return datum is not None and datum.type_name.startswith("Dynamic")


def may_move(crs: CRS) -> bool:
    """Whether an epoch has a meaning for coordinates: of a dynamic system, and of one whose datum is an ensemble of dynamic frames (WGS 84)."""
    if is_dynamic(crs):
        return True
    code = (crs.geodetic_crs or crs).to_authority(min_confidence=_EQUIVALENT)
    if code is None:
        return False
    members = system(":".join(code)).to_json_dict().get("datum_ensemble", {}).get("members", [])  # only the database has their codes
    return any(_is_dynamic_frame(each["id"]["code"]) for each in members if each.get("id", {}).get("authority") == "EPSG")


@lru_cache(maxsize=256)
def _is_dynamic_frame(code: int) -> bool:
    try:
        return Datum.from_epsg(code).type_name.startswith("Dynamic")
    except CRSError:  # a frame that this version of the EPSG dataset does not have
        return False
