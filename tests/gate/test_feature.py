from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contracts import contract
from merestone.contract.contract import Derived, Field, FieldType, GeometryClause, Semantics
from merestone.contract.rules_hash import rules_hash
from merestone.errors import UsageError
from merestone.gate.feature import DEGREES, check_rows, code_lists, nulls, patterns, ranges, sizes, steps
from merestone.gate.findings import FindingTally
from merestone.geometry.kernel import scan
from merestone.results.finding import PASS, REJECT, WARN, RowFaults

TEXT = FieldType("string")
SQUARE = "POLYGON ((10 56, 10.001 56, 10.001 56.001, 10 56.001, 10 56))"


def wkb(*texts):
    return pa.array([shapely.to_wkb(shapely.from_wkt(text)) if isinstance(text, str) else text for text in texts], pa.binary())


def judged(batch, agreement, geometry=None, ids=None, **more):
    geometry = wkb(*[SQUARE] * batch.num_rows) if geometry is None else geometry
    looked = scan(geometry)
    faults = check_rows(batch, agreement, delivered=looked, stored=looked, canonical=geometry, **more)
    tally = FindingTally()
    tally.add(faults, rows=np.arange(1, batch.num_rows + 1), ids=batch.column("pid") if ids is None else ids, bounds=looked.bounds)
    return faults, tally.findings()


def places(*texts, **more):
    ids = [f"g{n}" for n in range(1, len(texts) + 1)]
    return judged(pa.record_batch({"pid": ids}), more.pop("agreement", contract()), wkb(*texts), **more)


# --- attributes


def test_nulls_name_field_and_rows():
    """Case D03: a null and a missing member are the same null."""
    agreement = contract(schema_fields=(Field("pid", TEXT, nullable=False), Field("area", FieldType("number"), nullable=False)))
    _, findings = judged(pa.record_batch({"pid": ["a", "b", "c", "d"], "area": pa.array([1.0, None, 0.0, None])}), agreement)
    assert [(each.field, each.rule, each.count, each.per_row) for each in findings] == [("area", "null", 2, True)]
    assert findings[0].expected == "null not allowed"
    assert "rows b and d" in findings[0].observed
    assert [(sample.id, sample.row) for sample in findings[0].features] == [("b", 2), ("d", 4)]


def test_a_value_that_could_not_be_cast_is_not_called_null():
    fields = (Field("n", FieldType("integer"), nullable=False),)
    miscast = RowFaults("schema", "n", "type", "error", "integer", np.array([1]), pa.array(["12.5"]))
    batch = pa.record_batch({"n": pa.array([1, None, None], pa.int64())})
    assert nulls(batch, contract(schema_fields=fields), [miscast])[0].rows.tolist() == [2]


def test_a_measure_that_is_recomputed_may_be_null():
    fields = (Field("area", FieldType("number"), nullable=False, derived=Derived("area", "m2")),)
    assert nulls(pa.record_batch({"area": pa.array([None], pa.float64())}), contract(schema_fields=fields)) == []


def listing(kind, enum, nullable=True):
    return contract(schema_fields=(Field("pid", TEXT), Field("v", kind, nullable=nullable)), semantics=(("v", Semantics(enum=enum)),))


def test_a_value_outside_the_code_list_is_named_with_its_row():
    """Case D01."""
    batch = pa.record_batch({"pid": ["a", "b"], "v": ["residential", "mixed_use"]})
    _, findings = judged(batch, listing(TEXT, ("residential", "commercial")))
    assert findings[0].observed == "mixed_use (row b)"
    assert findings[0].expected == "one of residential, commercial"
    assert (findings[0].surface, findings[0].rule) == ("semantics", "enum")


@pytest.mark.parametrize(
    ("kind", "enum", "good", "bad"),
    [
        (FieldType("integer"), (1, 2), 2, 3),
        (FieldType("number"), (0.1, 1), 0.1, 0.11),
        (FieldType("boolean"), (True,), True, False),
        (FieldType("date"), ("2020-01-01",), date(2020, 1, 1), date(2020, 1, 2)),
        (FieldType("decimal", 6, 2), ("1.50",), Decimal("1.50"), Decimal("1.51")),
        (TEXT, ("e\u0301",), "\u00e9", "e"),
        (FieldType("list", members=(("item", TEXT),)), ("a", "b"), ["a", "b"], ["a", "c"]),
    ],
)
def test_code_lists_work_on_every_type(kind, enum, good, bad):
    types = {
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "decimal": pa.decimal128(6, 2),
        "string": pa.string(),
        "list": pa.list_(pa.string()),
    }
    column = pa.array([good, bad, None, bad], types[kind.kind]).slice(1)
    faults = code_lists(pa.record_batch({"v": column}), listing(kind, enum))
    assert faults[0].rows.tolist() == [0, 2]
    assert code_lists(pa.record_batch({"v": pa.array([good, None], types[kind.kind])}), listing(kind, enum)) == []


def test_a_code_list_of_another_type_is_a_fault_of_the_contract():
    with pytest.raises(UsageError, match="code list of v does not fit its type integer"):
        code_lists(pa.record_batch({"v": pa.array([1])}), listing(FieldType("integer"), ("high",)))


def patterned(pattern):
    return contract(schema_fields=(Field("pid", TEXT, pattern=pattern),))


def test_a_pattern_names_the_texts_that_break_it():
    """Case K03: 401 is not 0401."""
    _, findings = judged(pa.record_batch({"pid": ["401", "402", "1101"]}), patterned("^[0-9]{4}$"))
    for words in ("401", "402"):
        assert words in findings[0].observed
    assert "^[0-9]{4}$" in findings[0].expected
    assert findings[0].count == 2


def test_a_broken_pattern_is_a_fault_of_the_contract():
    with pytest.raises(UsageError, match="pattern of pid looks ahead") as caught:
        patterns(pa.record_batch({"pid": ["a"]}), patterned("(?=a)(a+)+$"))
    assert "enum" in caught.value.hint


# --- geometry


def test_missing_and_empty_geometry_are_told_apart():
    """Case G01."""
    _, findings = places(None, "POLYGON EMPTY", "POINT EMPTY", SQUARE)
    assert [(each.rule, each.observed) for each in findings] == [("null_geometry", "g1 null"), ("empty_geometry", "g2 empty and g3 empty")]
    allowed = contract(geometry=GeometryClause(nullable=True, empty=True))
    assert places(None, "POLYGON EMPTY", agreement=allowed)[1] == ()


def test_numbers_that_are_no_positions_are_named():
    """Case G06: an empty point (NaN NaN) is no bad number."""
    texts = [
        shapely.to_wkb(shapely.Point(10, 56)),
        bytes.fromhex("010100000085eb51b81e052440000000000000f87f"),
        shapely.to_wkb(shapely.linestrings([[10.02, 56.0], [np.inf, 56.0]])),
        bytes.fromhex("01e90300008fc2f5285c0f24400000000000004c40000000000000f87f"),
        bytes.fromhex("0101000000000000000000f87f000000000000f87f"),
    ]
    faults, _ = places(*texts, agreement=contract(geometry=GeometryClause(empty=True)), limits=DEGREES)
    said = {int(row): observed for each in faults for row, observed in zip(each.rows, each.observed.to_pylist(), strict=True)}
    assert said == {1: "NaN", 2: "infinite", 3: "NaN in Z"}


def test_a_longitude_beyond_180_is_named():
    """Case G07."""
    area = "POLYGON ((177 -20, 182 -20, 182 -16, 177 -16, 177 -20))"
    _, findings = places(area, SQUARE, limits=DEGREES)
    assert [each.observed for each in findings] == ["g1 longitude 182 outside -180..180"]
    assert places(area)[1] == ()


def test_swapped_axes_show_as_latitudes_beyond_90():
    assert places("POINT (10 -172.25)", limits=DEGREES)[1][0].observed == "g1 latitude -172.25 outside -90..90"


def test_an_uncut_geometry_is_a_warning_and_a_cut_one_is_not():
    spanning = "POLYGON ((177 -20, -178 -20, -178 -16, 177 -16, 177 -20))"
    split = "MULTIPOLYGON (((177 -20, 180 -20, 180 -16, 177 -16, 177 -20)), ((-180 -20, -178 -20, -178 -16, -180 -16, -180 -20)))"
    _, findings = places(split, spanning, limits=DEGREES)
    assert [(each.observed, each.severity, each.rule) for each in findings] == [("g2 wider than 180 degrees", "warning", "antimeridian")]


def test_invalid_geometry_has_reason_and_place():
    _, findings = places(SQUARE, "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "POINT (1 1)", "LINESTRING (0 0, 1 1)")
    assert findings[0].observed == "g2 self-intersection at 1, 1"
    assert findings[0].rule == "validity"
    assert findings[0].count == 1


@pytest.mark.parametrize(
    ("key", "words"),
    [("49", "key 49: self-intersection at 1, 1"), (None, "row 2 self-intersection at 1, 1"), ("b", "b self-intersection at 1, 1")],
)
def test_a_number_before_a_fault_is_no_count_of_faults(key, words):
    bow_tie = wkb(SQUARE, "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    _, findings = judged(pa.record_batch({"pid": ["48", key]}), contract(), bow_tie)
    assert next(each for each in findings if each.rule == "validity").observed == words


def test_wkb_that_cannot_be_read_is_named():
    _, findings = places(b"\x01\x03\x00", SQUARE)
    assert [(each.rule, each.observed) for each in findings] == [("validity", "g1 not readable as WKB")]


def test_geometry_that_a_stage_before_rejected_is_not_judged_again():
    bow = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"
    assert places(bow, skip=np.array([True]))[0] == []


def test_a_good_batch_has_no_faults_and_passes():
    faults, findings = places(SQUARE, "POINT (1 1)", limits=DEGREES)
    assert (faults, findings) == ([], ())
    assert steps(faults, 2, crs="EPSG:4326").verdict.tolist() == [PASS, PASS]


def test_steps_carry_the_worst_verdict_and_every_reason():
    spanning = "POLYGON ((177 -20, -178 -20, -178 -16, 177 -16, 177 -20))"
    agreement = contract(schema_fields=(Field("pid", TEXT, pattern="g.*"), Field("v", TEXT, nullable=False)))
    batch = pa.record_batch({"pid": ["g1", "x", "g3"], "v": ["a", None, "b"]})
    faults, _ = judged(batch, agreement, wkb(spanning, spanning, SQUARE), limits=DEGREES)
    out = steps(faults, 3, crs="EPSG:4326")
    assert (out.stage, out.event_type, out.source_crs, out.target_crs) == ("validate", "VALIDATE", "EPSG:4326", "EPSG:4326")
    assert out.verdict.tolist() == [WARN, REJECT, PASS]
    reasons = out.reason.to_pylist()
    assert reasons[0] == "geometry antimeridian: wider than 180 degrees, expected parts at most 180 degrees wide"
    assert reasons[1].count("; ") == 2
    assert reasons[2] is None


# --- limits of values ------------------------------------------------------------------------------------------------------------------


LIMITED = {
    "integer": (FieldType("integer"), pa.int64(), {"min": 0, "max": 9}, [0, 9, None, -1, 10], "from 0 to 9"),
    "number": (FieldType("number"), pa.float64(), {"min": 0.5}, [0.5, 1e300, None, 0.4999, float("-inf")], "at least 0.5"),
    "decimal": (
        FieldType("decimal", 5, 2),
        pa.decimal128(5, 2),
        {"max": "1.50"},
        [Decimal("1.50"), Decimal(-9), None, Decimal("1.51"), 9],
        "at most 1.50",
    ),
    "date": (
        FieldType("date"),
        pa.date32(),
        {"min": "2020-01-01"},
        [date(2020, 1, 1), date(2099, 1, 1), None, date(2019, 12, 31), date(1, 1, 1)],
        "",
    ),
    "timestamp": (
        FieldType("timestamp"),
        pa.timestamp("us", "UTC"),
        {"max": "2020-01-01T01:00:00+01:00"},
        [datetime(2020, 1, 1, tzinfo=UTC), None, None, datetime(2020, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)],
        "",
    ),
    "length": (
        FieldType("string"),
        pa.string(),
        {"min_length": 1, "max_length": 2},
        ["ä", "\U0001f3e0x", None, "", "abc"],
        "from 1 to 2 characters",
    ),
    "items": (
        FieldType("list", members=(("item", FieldType("string")),)),
        pa.list_(pa.string()),
        {"min_items": 1, "max_items": 2},
        [["a"], [None, "b"], None, [], ["a", "b", "c"]],
        "from 1 to 2 items",
    ),
}


@pytest.mark.parametrize("name", LIMITED)
def test_limits_may_be_reached_and_not_passed(name):
    kind, stored, limits, values, expected = LIMITED[name]
    promise = contract(schema_fields=(Field("v", kind, **limits),))
    batch = pa.record_batch({"v": pa.array([*values], stored)})
    faults = [*ranges(batch, promise), *sizes(batch, promise)]
    assert [(each.field, each.rows.tolist()) for each in faults] == [("v", [3, 4])]
    assert expected in faults[0].expected
    assert not [*ranges(batch.slice(0, 3), promise), *sizes(batch.slice(0, 3), promise)]


def test_values_beyond_an_open_list_are_announced_and_allowed():
    closed = contract(schema_fields=(Field("v", TEXT),), semantics=(("v", Semantics(enum=("a", "b"))),))
    opened = replace(closed, semantics=(("v", Semantics(enum=("a", "b"), open=True)),))
    batch = pa.record_batch({"v": pa.array(["a", "x", None])})
    for promise, severity in ((closed, "error"), (opened, "warning")):
        [fault] = code_lists(batch, promise)
        assert (fault.severity, fault.rows.tolist(), fault.observed.to_pylist()) == (severity, [1], ["x"])
    assert "open" in fault.expected
    assert rules_hash(closed) != rules_hash(opened)
