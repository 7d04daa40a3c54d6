"""Units of values: one code for every spelling; what nobody knows is not a unit."""

from __future__ import annotations

import pytest

from merestone.reference.units import AREAS, LENGTHS, canonical_unit, unit_of


@pytest.mark.parametrize(
    ("code", "spellings"),
    [
        ("m2", ["m2", "m²", "square_metre", "square metres", "Square_Meter", "sqm"]),
        ("har", ["ha", "hectare", "hectares", "har"]),
        ("acre", ["ac", "acre", "acres"]),
        ("[ft_i]", ["ft", "foot", "feet", "[ft_i]"]),
        ("m", ["m", "metre", "meters"]),
        ("none", [None, "", "none", "enum", "code"]),
        ("{person}", ["person", "people", "{person}"]),
        ("EUR", ["EUR"]),
        ("dB(A)", ["dB(A)", "dBA"]),
        ("km/h", ["km/h", "kmh"]),
        ("Cel", ["°C", "celsius", "Cel"]),
        ("%", ["%", "percent"]),
    ],
)
def test_every_spelling_has_one_code(code, spellings):
    assert {canonical_unit(each) for each in spellings} == {code}


@pytest.mark.parametrize(
    "text", ["ug/m3", "kW.h", "mm[Hg]", "{dwelling}/km2", "m.s-2", "[mi_us]", "10*3/m3", "kg.m-3", "mol/L", "/min", "(m/s)/h", "Sv"]
)
def test_ucum_is_known(text):
    found = unit_of(text)
    assert found is not None
    assert not found.odd


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("EUR/m2", "EUR/m2"),
        ("GBP/square_metre", "GBP/m2"),
        ("USD/ha", "USD/har"),
        ("EUR/kWh", "EUR/kW.h"),
        ("µm", "um"),
        ("µSv/h", "uSv/h"),
    ],
)
def test_prices_and_the_sign_for_micro_are_known(text, code):
    assert unit_of(text).code == code


@pytest.mark.parametrize("text", ["EUR/", "EUR/widget", "EUR/none"])
def test_a_price_of_nothing_is_no_unit(text):
    assert unit_of(text) is None


@pytest.mark.parametrize("text", ["square_parsec", "widget", "furlongs per fortnight", "m/", "m2.", "{open", "eur", "XYZ", "kilo", "m^^2"])
def test_what_nobody_knows_is_no_unit(text):
    assert unit_of(text) is None
    assert canonical_unit(text) == text


@pytest.mark.parametrize("text", ["mst", "dGal"])
def test_a_prefix_on_an_uncommon_base_is_odd(text):
    found = unit_of(text)
    assert found is not None
    assert found.odd


def test_symbols_keep_their_case_and_names_do_not():
    assert (canonical_unit("mm"), canonical_unit("Hectare"), canonical_unit("MM")) == ("mm", "har", "MM")
    assert unit_of("MM") is None


def test_sizes_are_those_of_the_canonical_codes():
    assert {each: unit_of(each).length for each in LENGTHS} == LENGTHS
    assert {each: unit_of(each).area for each in AREAS} == AREAS
