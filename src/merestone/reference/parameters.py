"""What sets one reference system apart from another: kind, ellipsoid, meridian, datum, method, parameters, unit.

Not here: codes (`identity`). Names of systems, remarks and areas of use never count, and neither does the order of axes, since coordinates
are x, y wherever they are compared.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from pyproj import CRS
from pyproj.exceptions import CRSError
from pyproj.transformer import TransformerGroup

from merestone.heard import heard
from merestone.reference.systems import horizontal, system

EQUIVALENT = 70
"""PROJ's confidence for "equivalent definition, another name"; 25 is a guess."""
_RELATIVE = 1e-11  # six hundredths of a millimetre on the radius of the Earth: what spellings of one number differ by
_ABSOLUTE = 1e-13  # for numbers around zero, in radians or metres


def differences(given: str, agreed: str, *, by_code: bool = False) -> list[str]:
    """What sets one system apart from another, in words: "false northing 0 instead of -6000000". Empty where the parameters agree.

    Args:
        given: any spelling.
        agreed: any spelling; of a system that PROJ's database knows.
        by_code: `given` claims the code of `agreed`. A datum that PROJ's database does not know is then taken at its word: it is how another
            version of the EPSG dataset describes the same code.
    """
    return between(system(given), system(agreed), by_code=by_code)


def between(given: CRS, agreed: CRS, *, by_code: bool = False) -> list[str]:
    """The same of two systems as objects."""
    if given.is_projected != agreed.is_projected or given.is_compound != agreed.is_compound:
        return [f"a {given.type_name} instead of a {agreed.type_name}"]
    if given.is_compound:
        parts = zip(given.sub_crs_list, agreed.sub_crs_list, strict=False)
        return [each for one, other in parts for each in between(one, other, by_code=by_code)]
    out = []
    if given.ellipsoid is not None and agreed.ellipsoid is not None:
        out += _number("semi-major axis", given.ellipsoid.semi_major_metre, agreed.ellipsoid.semi_major_metre, 1.0)
        out += _number("inverse flattening", given.ellipsoid.inverse_flattening, agreed.ellipsoid.inverse_flattening, 1.0)
    if given.prime_meridian is not None and agreed.prime_meridian is not None:
        one, other = (float(each.longitude) * float(each.unit_conversion_factor) for each in (given.prime_meridian, agreed.prime_meridian))
        out += _number("prime meridian", one, other, float(agreed.prime_meridian.unit_conversion_factor))
    out += _conversion(given, agreed)
    if given.axis_info and agreed.axis_info:
        out += _number("unit", given.axis_info[0].unit_conversion_factor, agreed.axis_info[0].unit_conversion_factor, 1.0)
    return out or _datum(given, agreed, by_code=by_code)


def same_name(one: str, other: str) -> bool:
    """Whether two names differ in punctuation only: LKS92_Latvia_TM and LKS-92 / Latvia TM."""
    return plain_name(one) == plain_name(other)


def plain_name(name: str) -> str:
    """A name without blanks, punctuation and case; an ensemble of datums goes by the name that its members share."""
    return re.sub(r"[\W_]+", "", name).lower().removesuffix("ensemble")


def _conversion(given: CRS, agreed: CRS) -> list[str]:
    mine, theirs = given.coordinate_operation, agreed.coordinate_operation
    if mine is None or theirs is None:
        return []
    if mine.method_name != theirs.method_name:
        return [f"method {mine.method_name} instead of {theirs.method_name}"]
    out, delivered = [], {param.name: param for param in mine.params}
    for param in theirs.params:
        found = delivered.get(param.name)
        unit = float(param.unit_conversion_factor)
        value = 0.0 if found is None else float(found.value) * float(found.unit_conversion_factor)
        other = float(param.value) * unit
        if param.unit_category == "angular" and abs(value - other) > math.pi:
            value += math.copysign(math.tau, other - value)  # -36.97 degrees are 323.03
        out += _number(param.name.lower(), value, other, unit)
    return out


def _number(name: str, given: float, agreed: float, unit: float) -> list[str]:
    """A difference beyond what spellings of one number leave; both values in base units, shown in `unit`."""
    if math.isclose(given, agreed, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE):
        return []
    return [f"{name} {given / unit:.15g} instead of {agreed / unit:.15g}"]


def _datum(given: CRS, agreed: CRS, *, by_code: bool) -> list[str]:
    """Another datum under the same numbers; empty where it is the same one."""
    mine, theirs = given.geodetic_crs, agreed.geodetic_crs
    if mine is None or theirs is None or mine.datum is None or theirs.datum is None:
        return []
    if mine.equals(theirs, ignore_axis_order=True) or same_name(mine.datum.name, theirs.datum.name):
        return []
    known = _known_frame(mine.to_wkt("WKT2_2019"))
    if known is None:
        return [] if by_code else [f"datum {mine.datum.name}, which PROJ does not know, instead of {theirs.datum.name}"]
    code = theirs.to_authority(min_confidence=EQUIVALENT)
    if (code is not None and known == ":".join(code)) or _coincide(known, theirs.to_wkt("WKT2_2019")):
        return []
    return [f"datum {mine.datum.name} instead of {theirs.datum.name}"]


@lru_cache(maxsize=64)
def _known_frame(wkt: str) -> str | None:
    """The code of a geodetic system that PROJ's database knows; None where it has none of that datum."""
    crs = horizontal(system(wkt))
    named = crs.to_authority(min_confidence=EQUIVALENT)
    if named is not None:
        return ":".join(named)
    try:
        found = CRS.from_user_input(crs.name)
    except CRSError:
        return None
    code = found.to_authority() if found.is_geographic else None
    if code is None or found.datum is None or crs.datum is None or not same_name(found.datum.name, crs.datum.name):
        return None
    return ":".join(code)


@lru_cache(maxsize=64)
def _coincide(one: str, other: str) -> bool:
    """Whether the EPSG dataset says that two geodetic systems are one on the ground: an exact operation that moves nothing.

    Many systems have one within metres through WGS 84, which says only how little is known of their difference.
    """
    with heard():  # "best transformation is not available": it is not used
        group = TransformerGroup(system(one), system(other), always_xy=True)
    exact = [each for each in group.transformers if each.accuracy == 0 and "ballpark" not in each.description.lower()]
    return any(each.definition.startswith("proj=noop") for each in exact)
