"""Units of values in columns: one canonical code for every spelling, and how large a unit of length or area is.

Not here: units of coordinates (`ground`), judging numbers by their unit (`gate.quantities`).
Clause: docs/spec/gate.md#units-of-values. A table of common names and symbols is read first, then ISO 4217, then UCUM, whose grammar and
atoms come from the library `ucumvert`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_FOOT, _SURVEY_FOOT, _MILE = 0.3048, 1200 / 3937, 1609.344

# canonical code, metres in one (lengths) or square metres (areas), then its other spellings; names are compared without case, "_" and "-"
_LENGTHS: tuple[tuple[str, float, str], ...] = (
    ("m", 1.0, "metre|metres|meter|meters"),
    ("km", 1000.0, "kilometre|kilometres|kilometer|kilometers"),
    ("dm", 0.1, "decimetre|decimetres|decimeter|decimeters"),
    ("cm", 0.01, "centimetre|centimetres|centimeter|centimeters"),
    ("mm", 0.001, "millimetre|millimetres|millimeter|millimeters"),
    ("[ft_i]", _FOOT, "ft|foot|feet|international foot"),
    ("[ft_us]", _SURVEY_FOOT, "ftUS|us survey foot|us survey feet"),
    ("[in_i]", 0.0254, "inch|inches"),
    ("[yd_i]", 3 * _FOOT, "yd|yard|yards"),
    ("[mi_i]", _MILE, "mi|mile|miles"),
    ("[nmi_i]", 1852.0, "nmi|nautical mile|nautical miles"),
)
_AREAS: tuple[tuple[str, float, str], ...] = (
    ("m2", 1.0, "m²|m^2|sqm|square metre|square metres|square meter|square meters"),
    ("km2", 1e6, "km²|km^2|sqkm|square kilometre|square kilometres|square kilometer|square kilometers"),
    ("cm2", 1e-4, "cm²|cm^2|square centimetre|square centimetres|square centimeter|square centimeters"),
    ("mm2", 1e-6, "mm²|mm^2|square millimetre|square millimetres|square millimeter|square millimeters"),
    ("ar", 100.0, "a|are|ares"),
    ("har", 10_000.0, "ha|hectare|hectares"),
    ("[sft_i]", _FOOT**2, "ft2|ft²|sqft|square foot|square feet"),
    ("[syd_i]", (3 * _FOOT) ** 2, "yd2|yd²|square yard|square yards"),
    ("acre", 4046.8564224, "ac|acres"),  # international; UCUM has the survey acre and the British one only
    ("[smi_us]", _MILE**2, "mi2|mi²|square mile|square miles"),
)
_OTHERS: tuple[tuple[str, str], ...] = (
    ("none", "|no unit|dimensionless|unitless|enum|code|text|identifier|id|flag|boolean|date|timestamp"),
    ("1", "one|unity|ratio|fraction|number"),
    ("%", "percent|per cent|percentage|pct"),
    ("[ppth]", "permille|per mille|‰"),
    ("[ppm]", "ppm|parts per million"),
    ("{count}", "count|pieces|items"),
    ("{person}", "person|persons|people|inhabitant|inhabitants|resident|residents"),
    ("{household}", "household|households"),
    ("{dwelling}", "dwelling|dwellings|housing unit|housing units"),
    ("{building}", "building|buildings"),
    ("{vehicle}", "vehicle|vehicles"),
    ("{storey}", "storey|storeys|story|stories|floor|floors|level|levels"),
    ("{lane}", "lane|lanes"),
    ("{tree}", "tree|trees"),
    ("s", "sec|second|seconds"),
    ("min", "minute|minutes"),
    ("h", "hr|hour|hours"),
    ("d", "day|days"),
    ("wk", "week|weeks"),
    ("mo", "month|months"),
    ("a_t", "year|years|yr"),
    ("kg", "kilogram|kilograms|kilogramme|kilogrammes"),
    ("g", "gram|grams|gramme|grammes"),
    ("t", "tonne|tonnes|metric ton|metric tons"),
    ("km/h", "kmh|kph|kilometres per hour|kilometers per hour"),
    ("m/s", "metres per second|meters per second"),
    ("[mi_i]/h", "mph|miles per hour"),
    ("[kn_i]", "kn|knot|knots"),
    ("m3", "m³|m^3|cubic metre|cubic metres|cubic meter|cubic meters"),
    ("L", "l|litre|litres|liter|liters"),
    ("Cel", "°C|degC|celsius|degree celsius|degrees celsius"),
    ("[degF]", "°F|degF|fahrenheit|degrees fahrenheit"),
    ("K", "kelvin"),
    ("deg", "°|degree|degrees"),
    ("rad", "radian|radians"),
    ("gon", "grad|grads|gradian|gradians"),
    ("dB(A)", "dBA|dB A"),
    ("dB", "decibel|decibels"),
    ("Hz", "hertz"),
    ("W", "watt|watts"),
    ("kW", "kilowatt|kilowatts"),
    ("kW.h", "kWh|kilowatt hour|kilowatt hours"),
    ("MW.h", "MWh|megawatt hour|megawatt hours"),
    ("V", "volt|volts"),
    ("Pa", "pascal|pascals"),
    ("hPa", "hectopascal|hectopascals"),
    ("ug/m3", "µg/m3|µg/m³|μg/m3|μg/m³"),
    ("{person}/km2", "people per square kilometre|inhabitants per square kilometre|persons/km2|inhabitants/km2"),
)
_ISO_4217 = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE
    CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY
    KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
    NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB
    TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW
"""
_CURRENCIES = frozenset(_ISO_4217.split())  # alphabetic codes in use
_TAKE_PREFIXES = """
    m g s L l ar t W J Pa bar V A Hz N K Cel mol cd lm lx B By bit Bq Gy Sv Wb T F S Ohm H C eq eV rad sr pc m[Hg] m[H2O]
"""
_PREFIXED = frozenset(_TAKE_PREFIXES.split())


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit under its canonical code. length: metres in one; area: square metres in one. `odd`: a prefix on an uncommon base."""

    code: str
    length: float | None = None
    area: float | None = None
    odd: bool = False


def unit_of(text: str | None) -> Unit | None:
    """The unit that a text names; None where neither the common table nor ISO 4217 nor UCUM knows it. No text is the unit none."""
    return _unit_of((text or "none").strip())


def canonical_unit(text: str | None) -> str:
    """The canonical code of a unit, for equality and digests; a text that names no known unit stands for itself."""
    found = unit_of(text)
    return (text or "none").strip() if found is None else found.code


def common_units() -> tuple[str, ...]:
    """Spellings that a person may have meant, for hints."""
    return tuple(sorted({each for each in _common()[0] if len(each) > 1}))


LENGTHS: dict[str, float] = {code: size for code, size, _ in _LENGTHS}
"""Metres in one unit, by canonical code."""
AREAS: dict[str, float] = {code: size for code, size, _ in _AREAS}
"""Square metres in one unit, by canonical code."""


def shown(code: str) -> str:
    """A length or an area as messages write it: ha for the code har."""
    return _SHOWN.get(code, code)


_SHOWN = {code: names.split("|")[0] for code, _, names in (*_LENGTHS, *_AREAS) if code.startswith("[") or code in ("ar", "har")}


@lru_cache(maxsize=1024)
def _unit_of(text: str) -> Unit | None:
    symbols, names = _common()
    found = symbols.get(text) or names.get(_plain(text))
    if found is not None:
        return found
    money, per, base = text.partition("/")
    if money in _CURRENCIES:  # also a price: EUR/m2
        of = _unit_of(base) if per else None
        return Unit(text) if not per else None if of is None or of.code == "none" else Unit(f"{money}/{of.code}")
    return _ucum(re.sub("[\u00b5\u03bc]", "u", text))  # UCUM has u for micro


@lru_cache(maxsize=1)
def _common() -> tuple[dict[str, Unit], dict[str, Unit]]:
    """The common table: by exact spelling, and by name without case."""
    symbols: dict[str, Unit] = {}
    names: dict[str, Unit] = {}
    rows = [
        *((Unit(code, length=size), names) for code, size, names in _LENGTHS),
        *((Unit(code, area=size), names) for code, size, names in _AREAS),
        *((Unit(code), names) for code, names in _OTHERS),
    ]
    for unit, spellings in rows:
        for name in (unit.code, *spellings.split("|")):
            symbols.setdefault(name, unit)
            if len(name) > 3 and name.replace(" ", "").isalpha():  # a word: of symbols, mm and MM are two
                names.setdefault(_plain(name), unit)
    return symbols, names


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().lower()


def _ucum(text: str) -> Unit | None:
    """A unit of UCUM, case-sensitive. Annotations in braces are counts of something."""
    from lark.exceptions import LarkError  # noqa: PLC0415 - a second of imports that few contracts need

    try:
        tree = _parser().parse(text)
    except LarkError:
        return None
    code = re.sub(r"^/", "1/", text)
    return Unit(code, odd=any(_is_odd(each) for each in tree.find_data("simple_unit")))


@lru_cache(maxsize=1)
def _parser() -> Any:
    from ucumvert.parser import get_ucum_parser  # noqa: PLC0415 - as above

    return get_ucum_parser()


def _is_odd(simple: Any) -> bool:
    """Whether a prefix stands on a unit that people do not use with one: kilohour, milliacre."""
    parts = [str(each) for each in simple.children]
    return len(parts) > 1 and parts[-1] not in _PREFIXED
