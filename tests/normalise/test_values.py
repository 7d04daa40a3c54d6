"""Lossless casts of single columns, against plain Python."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.contract.contract import FieldType
from merestone.normalise.values import arrow_type, cast, decoded, never

TEXT, INTEGER, NUMBER, INSTANT = FieldType("string"), FieldType("integer"), FieldType("number"), FieldType("timestamp")
LOCAL, DAY, CLOCK, MONEY = FieldType("timestamp_local"), FieldType("date"), FieldType("time"), FieldType("decimal", 5, 2)
NUMBERS = FieldType("list", members=(("item", INTEGER),))
PAIR = FieldType("struct", members=(("k", INTEGER), ("u", TEXT)))


def run(array, kind, *, json_text=False, utc=False):
    assert never(array.type, kind, json_text=json_text, utc=utc) is None
    out, bad = cast(decoded(array), kind, json_text=json_text, utc=utc)
    assert out.type == arrow_type(kind)
    out.validate(full=True)
    return out.to_pylist(), bad.tolist()


@pytest.mark.parametrize(
    ("given_type", "kind", "words"),
    [
        (pa.int32(), TEXT, "integer where string is agreed"),
        (pa.string(), INTEGER, "string where integer is agreed"),
        (pa.bool_(), INTEGER, "boolean where integer is agreed"),
        (pa.string(), FieldType("boolean"), "string where boolean is agreed"),
        (pa.float64(), TEXT, "number where string is agreed"),
        (pa.timestamp("us"), INSTANT, "no time zone"),
        (pa.timestamp("us", "UTC"), LOCAL, "timestamp where timestamp_local is agreed"),
        (pa.timestamp("us", "Europe/Berlin"), DAY, "timestamp in the zone Europe/Berlin where date is agreed"),
        (pa.list_(pa.int64()), FieldType("list", members=(("item", TEXT),)), "list<integer> where list<string> is agreed"),
        (pa.struct([("z", pa.int64())]), PAIR, "member z"),
        (pa.string(), FieldType("binary"), "string where binary is agreed"),
        (pa.binary(), MONEY, "binary where decimal(5,2) is agreed"),
        (pa.dictionary(pa.int8(), pa.string()), INTEGER, "string where integer is agreed"),
    ],
)
def test_types_that_can_never_be_cast_say_what_stands_where(given_type, kind, words):
    assert words in str(never(given_type, kind, json_text=False, utc=False))


def test_mixed_json_is_no_number():
    assert "mixed types" in str(never(pa.string(), INTEGER, json_text=True, utc=False))


@given(st.lists(st.none() | st.floats() | st.integers(-(2**60), 2**60).map(float)))
def test_a_float_is_an_integer_only_where_it_stands_for_one(values):
    out, bad = run(pa.array(values, pa.float64()), INTEGER)
    for value, got, fault in zip(values, out, bad, strict=True):
        missing = value is None or math.isnan(value)
        exact = not missing and math.isfinite(value) and value == int(value) and abs(value) < 2**53
        assert (got, fault) == ((int(value), False) if exact else (None, not missing))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_an_integer_is_a_number_only_where_a_double_holds_it(values):
    out, bad = run(pa.array(values, pa.int64()), NUMBER)
    for value, got, fault in zip(values, out, bad, strict=True):
        exact = value is not None and int(float(value)) == value
        assert (got, fault) == ((float(value), False) if exact else (None, value is not None))


def test_unsigned_integers_beyond_int64():
    assert run(pa.array([2**63, 2**63 - 1, None], pa.uint64()), INTEGER) == ([None, 2**63 - 1, None], [True, False, False])


@given(st.lists(st.none() | st.decimals(-2000, 2000, places=3)))
def test_decimals_at_a_fixed_scale(values):
    out, bad = run(pa.array(values, pa.decimal128(10, 3)), MONEY)
    for value, got, fault in zip(values, out, bad, strict=True):
        fits = value is not None and value == round(value, 2) and abs(value) < 1000
        assert (got, fault) == ((value, False) if fits else (None, value is not None))


@given(st.lists(st.none() | st.integers(-99_999, 99_999)))
def test_floats_that_stand_for_decimals_are_those_decimals(cents):
    out, bad = run(pa.array([None if cent is None else cent / 100 for cent in cents], pa.float64()), MONEY)
    assert out == [None if cent is None else Decimal(cent).scaleb(-2) for cent in cents]
    assert not any(bad)


def test_floats_that_stand_for_no_decimal():
    assert run(pa.array([0.125, 1e20, float("inf"), float("nan")]), MONEY) == ([None] * 4, [True, True, True, False])
    assert run(pa.array([1, 1000], pa.int64()), MONEY) == ([Decimal(1), None], [False, True])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-03-16T01:00:00+01:00", datetime(2021, 3, 16, tzinfo=UTC)),
        ("2021-03-16 00:00Z", datetime(2021, 3, 16, tzinfo=UTC)),
        ("2021-03-16T00:00:00-0530", datetime(2021, 3, 16, 5, 30, tzinfo=UTC)),
        ("2021-03-16T00:00:00.123456000Z", datetime(2021, 3, 16, 0, 0, 0, 123456, tzinfo=UTC)),
        ("1874-03-16T00:00:00.5Z", datetime(1874, 3, 16, 0, 0, 0, 500_000, tzinfo=UTC)),
        ("2021-03-16T00:00:00.1234567Z", None),  # below the microsecond: a loss
        ("2021-03-16T00:00:00", None),  # no zone, no instant
        ("2021-02-30T00:00:00Z", None),
        ("2021-03-16", None),
        ("16.3.2021", None),
    ],
)
def test_text_as_an_instant(text, expected):
    assert run(pa.array([None, text]), INSTANT) == ([None, expected], [False, expected is None])


def test_text_as_a_date_a_time_and_a_local_time():
    assert run(pa.array(["2020-02-29", "2021-02-29", "20200229"]), DAY) == ([date(2020, 2, 29), None, None], [False, True, True])
    assert run(pa.array(["12:30", "12:30:01.5", "24:30"]), CLOCK) == ([time(12, 30), time(12, 30, 1, 500_000), None], [False, False, True])
    assert run(pa.array(["2020-01-01T00:00:00", "2020-01-01T00:00:00Z"]), LOCAL) == ([datetime(2020, 1, 1), None], [False, True])  # noqa: DTZ001 - local


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_of_any_unit(unit):
    ticks = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    out, bad = run(pa.array([ticks, None, -ticks], pa.timestamp(unit, "Europe/Oslo")), INSTANT)
    assert out == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)]
    assert not any(bad)
    assert run(pa.array([ticks], pa.timestamp(unit)), INSTANT, utc=True)[0] == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]


def test_what_a_unit_would_lose_is_a_fault():
    assert run(pa.array([1, 1000, None], pa.timestamp("ns", "UTC")), INSTANT)[1] == [True, False, False]
    assert run(pa.array([2**62, 0], pa.timestamp("s")), LOCAL)[1] == [True, False]
    assert run(pa.array([86_400_000, 1], pa.date64()), DAY) == ([date(1970, 1, 2), None], [False, True])
    assert run(pa.array([1500, 2000], pa.time64("ns")), CLOCK) == ([None, time(0, 0, 0, 2)], [True, False])
    assert run(pa.array([5], pa.time32("s")), CLOCK) == ([time(0, 0, 5)], [False])


@given(st.lists(st.none() | st.lists(st.none() | st.floats(-9, 9).map(lambda x: round(x * 2) / 2), max_size=3)), st.integers(0, 3))
def test_lists_row_by_row(values, skip):
    array = pa.array(values, pa.large_list(pa.float64())).slice(skip)
    out, bad = run(array, NUMBERS)
    for value, got, fault in zip(values[skip:], out, bad, strict=True):
        fits = value is None or all(item is None or item == int(item) for item in value)
        assert fault is not fits
        assert got == (value if fits else None)


def test_structs_by_name_with_members_that_are_missing_or_do_not_fit():
    array = pa.array([{"u": "m", "k": 1.0}, None, {"u": "m", "k": 1.5}])
    assert run(array, PAIR) == ([{"k": 1, "u": "m"}, None, None], [False, False, True])
    assert run(array.slice(1), PAIR) == ([None, None], [False, True])
    assert run(pa.array([{"k": 1}]), PAIR) == ([{"k": 1, "u": None}], [False])


def test_json_texts():
    texts = ['{"u":"m","k":1}', '{"k":2.0}', '{"k":"2"}', '{"k":2,"z":1}', None, "null", "plain", '{"k":NaN}']
    out, bad = run(pa.array(texts), PAIR, json_text=True)
    assert out == [{"k": 1, "u": "m"}, {"k": 2, "u": None}, None, None, None, None, None, None]
    assert bad == [False, False, True, True, False, False, True, True]
    assert run(pa.array(["[1, null]", "[]", "[1.5]"]), NUMBERS, json_text=True) == ([[1, None], [], None], [False, False, True])
    # an object under string is its text with sorted members; a bare word is a string; what may be a number is neither
    assert run(pa.array(['{"b": 1.5, "a": "x"}', "word", "1", '"q"']), TEXT, json_text=True) == (
        ['{"a":"x","b":1.5}', "word", None, "q"],
        [False, False, True, False],
    )


def test_text_of_any_layout_is_nfc_text():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert run(pa.array(["u\u0308", None, "a "], kind), TEXT) == (["ü", None, "a "], [False] * 3)
    assert run(pa.array(["u\u0308", None]).dictionary_encode(), TEXT)[0] == ["ü", None]


def test_float32_widens_and_nan_is_null():
    assert run(pa.array([0.5, float("nan"), None], pa.float32()), NUMBER) == ([0.5, None, None], [False] * 3)


FLAG = FieldType("boolean")
DAYS = [date(1950, 1, 1), date(2024, 2, 29), None]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 0, None, 2, -1], pa.int8()),
        pa.array([1, 0, None, 2, 2**40], pa.int64()),
        pa.array([1, 0, None, 2, 2**63], pa.uint64()),
        pa.array([1.0, -0.0, None, 0.5, math.inf]),
        pa.array([Decimal("1.00"), Decimal("0.00"), None, Decimal("0.01"), Decimal("2.00")]),
    ],
)
def test_one_and_zero_are_flags_and_nothing_else_is(array):
    assert run(array, FLAG) == ([True, False, None, None, None], [False, False, False, True, True])
    assert run(pa.array([True, False, None]), FLAG) == ([True, False, None], [False] * 3)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_midnight_is_a_date_and_a_second_later_is_not(unit, zone):
    moments = [None if each is None else datetime(each.year, each.month, each.day, tzinfo=UTC) for each in DAYS]
    array = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone))
    assert run(array, DAY) == (DAYS, [False] * 3)
    later = pa.array([datetime(2024, 2, 29, 0, 0, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone))
    assert run(later, DAY) == ([None, None], [True, False])


@pytest.mark.parametrize(
    "text", ["2024-02-29", "2024-02-29T00:00:00", "2024-02-29 00:00", "2024-02-29T00:00:00.000Z", "2024-02-29T00:00:00+00:00"]
)
def test_text_of_midnight_is_a_date(text):
    assert run(pa.array([text, None]), DAY) == ([date(2024, 2, 29), None], [False, False])


@pytest.mark.parametrize(
    "text", ["2024-02-29T00:00:01", "2024-02-29T00:00:00.001Z", "2024-02-29T00:00:00+02:00", "2024-02-30T00:00:00", "2024-02-29T"]
)
def test_text_of_another_time_is_no_date(text):
    assert run(pa.array([text, "2024-01-01"]), DAY) == ([None, date(2024, 1, 1)], [True, False])


def test_text_of_a_decimal_is_one():
    texts = pa.array(["1.50", "-2", "007.1", "1.005", "1e2", " 1", "12345.00", "", None])
    found, bad = run(texts, MONEY)
    assert found == [Decimal("1.50"), Decimal("-2.00"), Decimal("7.10"), *([None] * 6)]
    assert bad == [False] * 3 + [True] * 5 + [False]
