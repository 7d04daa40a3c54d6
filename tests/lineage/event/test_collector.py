"""Rows of lineage: the columnar way gives the events that the row way would."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.lineage.event.collector import LineageCollector, base_stage
from merestone.lineage.event.record import LineageEvent, make_sequence
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.results.finding import PASS, REJECT, WARN, Steps

TIME = datetime(2026, 3, 3, 1, 2, 3, 456789, tzinfo=UTC)
RUN = {"run_id": "r1", "attempt": 1, "batch": 0, "time": TIME}
WORDS = ("PASS", "WARN", "REJECT")


def step(stage, kind, verdict, reason=None, **more):
    verdict = np.asarray(verdict, np.uint8)
    words = [None if each == PASS else (reason or f"{stage} says so") for each in verdict]
    given = {"source_crs": "EPSG:25832", "target_crs": "EPSG:4326", **more}
    return Steps(stage, kind, verdict, pa.array(words, pa.string()), **given)


def event(**change):
    base = {
        "run_id": "r1",
        "sequence": 1,
        "event_time_utc": TIME,
        "stage": "validate",
        "event_type": "VALIDATE",
        "feature_id": "p1",
        "source_crs": "EPSG:25832",
        "target_crs": "EPSG:4326",
        "outcome": "PASS",
    }
    return LineageEvent(**{**base, **change})


def rows(collector):
    table = collector.to_table()
    assert table.schema.equals(LINEAGE_ARROW_SCHEMA, check_metadata=True)
    table.validate(full=True)
    return table.to_pylist()


def test_an_empty_collector_has_the_schema():
    assert rows(LineageCollector()) == []
    assert LineageCollector().drain().num_rows == 0


def test_events_come_out_as_they_went_in():
    collector = LineageCollector()
    one = event(
        event_time_utc=datetime(2024, 5, 1, 12, 0, 0, 7, tzinfo=timezone(timedelta(hours=2))),
        accuracy_m=0.1,
        strategy_index=2,
        from_partition="",
        outcome="WARN",
        rejection_reason="grid missing",
        target_crs="epsg:4326",
    )
    collector.add(event())
    collector.add(one)
    collector.add(event())
    assert len(collector) == 3
    found = rows(collector)
    assert found[0] == found[2]
    assert found[1] == {
        "event_id": one.event_id(),
        "run_id": "r1",
        "sequence": 1,
        "event_time_utc": datetime(2024, 5, 1, 10, 0, 0, 7, tzinfo=UTC),
        "stage": "validate",
        "event_type": "VALIDATE",
        "feature_id": "p1",
        "source_crs": "EPSG:25832",
        "target_crs": "EPSG:4326",
        "outcome": "WARN",
        "strategy_index": 2,
        "accuracy_m": 0.1,
        "rejection_reason": "grid missing",
        "tool_version": None,
        "audit_tag": None,
        "change_class": None,
        "from_partition": "",
        "to_partition": None,
        "contract_version": None,
    }


@pytest.mark.parametrize("bad", [None, {"run_id": "r1"}, ("r1", 1)])
def test_only_events_are_added(bad):
    with pytest.raises(ValueError, match="is not a LineageEvent"):
        LineageCollector().add(bad)


def test_a_target_without_a_code_is_refused():
    collector = LineageCollector()
    with pytest.raises(ValueError, match="utm32"):
        collector.add(event(target_crs="utm32"))
    assert len(collector) == 0


def test_the_columnar_way():
    collector = LineageCollector()
    ids = pa.array(["a", "b", "c"])
    steps = [
        step("attr_cast.area", "CAST", [PASS, WARN, PASS]),
        step("attr_cast", "CAST", [PASS, PASS, PASS]),
        step("crs_normalize", "TRANSFORM", [PASS, PASS, REJECT], strategy_index=1, accuracy_m=0.5, tool_version="PROJ 9.5"),
        step("snap", "SNAP", [PASS, PASS, PASS], source_crs="EPSG:4326"),
        step("validate", "VALIDATE", [PASS, REJECT, PASS], source_crs="EPSG:4326"),
        step(
            "publish",
            "VALIDATE",
            [PASS, WARN, PASS],
            source_crs="EPSG:4326",
            extra={
                "rows": np.array([True, True, False]),
                "change_class": pa.array(["moved", "held", None]),
                "from_partition": pa.array(["north", None, None]).dictionary_encode(),
                "to_partition": "south",
            },
        ),
    ]
    assert collector.add_columns(ids, steps, **RUN, audit_tag="nightly", contract_version="1.0.0") == 13
    found = rows(collector)
    assert [(each["feature_id"], each["stage"], each["outcome"]) for each in found] == [
        ("a", "attr_cast", "PASS"),
        ("a", "crs_normalize", "PASS"),
        ("a", "snap", "PASS"),
        ("a", "validate", "PASS"),
        ("a", "publish", "PASS"),
        ("b", "attr_cast.area", "WARN"),
        ("b", "attr_cast", "PASS"),
        ("b", "crs_normalize", "PASS"),
        ("b", "snap", "PASS"),
        ("b", "validate", "REJECT"),
        ("b", "publish", "WARN"),
        ("c", "attr_cast", "PASS"),
        ("c", "crs_normalize", "REJECT"),
    ]
    assert [each["sequence"] for each in found] == [make_sequence(1, 0, n) for n in range(13)]
    assert {(each["audit_tag"], each["contract_version"], each["event_time_utc"]) for each in found} == {("nightly", "1.0.0", TIME)}
    assert found[4]["from_partition"] == "north"
    assert found[4]["to_partition"] == "south"
    assert found[4]["change_class"] == "moved"
    assert found[10]["from_partition"] is None
    assert found[10]["rejection_reason"] == "publish says so"
    assert [each["accuracy_m"] for each in found if each["stage"] == "crs_normalize"] == [0.5, 0.5, 0.5]
    assert {each["tool_version"] for each in found if each["stage"] != "crs_normalize"} == {None}
    assert found[9]["event_type"] == "VALIDATE"


def test_values_per_row_take_the_place_of_the_stage_value():
    collector = LineageCollector()
    extra = {"strategy_index": pa.array([0, None], pa.int32()), "accuracy_m": pa.array([0.1, None])}
    collector.add_columns(pa.array(["a", "b"]), [step("crs_normalize", "TRANSFORM", [PASS, PASS], accuracy_m=9.0, extra=extra)], **RUN)
    assert [(each["strategy_index"], each["accuracy_m"]) for each in rows(collector)] == [(0, 0.1), (None, None)]


def test_the_count_of_a_batch_goes_on_over_calls_and_drains():
    collector = LineageCollector()
    one = [step("validate", "VALIDATE", [PASS, PASS])]
    collector.add_columns(pa.array(["a", "b"]), one, **RUN)
    first = collector.drain()
    assert len(collector) == 0
    collector.add_columns(pa.array(["c", "d"]), one, **RUN)
    collector.add_columns(pa.array(["c", "d"]), one, **{**RUN, "batch": 1})
    sequences = first.column("sequence").to_pylist() + collector.drain().column("sequence").to_pylist()
    assert sequences == [make_sequence(1, *each) for each in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]]


def test_both_ways_stand_in_the_order_in_which_they_came():
    collector = LineageCollector()
    collector.add(event(feature_id="x"))
    collector.add_columns(pa.array(["a"]), [step("validate", "VALIDATE", [PASS])], **RUN)
    collector.add(event(feature_id="y"))
    assert [each["feature_id"] for each in rows(collector)] == ["x", "a", "y"]


def test_a_batch_closes_before_its_count_overflows(monkeypatch):
    collector = LineageCollector()
    monkeypatch.setitem(collector._next, ("r1", 1, 0), (1 << 24) - 1)
    with pytest.raises(ValueError, match="16777215"):
        collector.add_columns(pa.array(["a", "b"]), [step("validate", "VALIDATE", [PASS, PASS])], **RUN)
    assert len(collector) == 0
    assert collector.add_columns(pa.array(["a"]), [step("validate", "VALIDATE", [PASS])], **RUN) == 1


V = step("validate", "VALIDATE", [PASS, PASS])
TWO = pa.array(["a", "b"])


@pytest.mark.parametrize(
    ("ids", "steps", "run", "words"),
    [
        (pa.array(["a", None]), [V], {}, "feature_id is missing in row 1"),
        (pa.array(["a", ""]), [V], {}, "feature_id is empty"),
        (pa.array(["a", "b\x1f"]), [V], {}, "U\\+001F"),
        (pa.array(["a", "\x85"]), [V], {}, "U\\+0085"),
        (pa.array(["\x7f", "b"]), [V], {}, "U\\+007F"),
        (pa.array(["a", "Cafe\u0301"]), [V], {}, "NFC"),
        (pa.array([1, 2]), [V], {}, "string array"),
        (pa.array(["a"]), [V], {}, "verdict of stage validate"),
        (TWO, [step("validate", "VALIDATE", [PASS, 3])], {}, "verdict of stage validate"),
        (TWO, [step("validate", "VALIDATE", [PASS, REJECT], reason=" ")], {}, "without a rejection_reason"),
        (
            TWO,
            [Steps("v", "VALIDATE", np.array([0, 2], np.uint8), pa.nulls(2, pa.string()), "EPSG:1", "EPSG:4326")],
            {},
            "without a rejection",
        ),
        (TWO, [Steps("v", "VALIDATE", np.array([0, 1], np.uint8), pa.array(["x", "y"]), "EPSG:1", "EPSG:4326")], {}, "a doubt is a WARN"),
        (TWO, [step("validate", "REJECT", [REJECT, PASS])], {}, "has outcome REJECT"),
        (TWO, [step("validate", "DELETE", [PASS, PASS])], {}, "one of TRANSFORM"),
        (TWO, [step("", "VALIDATE", [PASS, PASS])], {}, "stage is empty"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], target_crs="utm32")], {}, "utm32"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], source_crs="")], {}, "source_crs is empty"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], accuracy_m=float("nan"))], {}, "leave it out"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"accuracy_m": pa.array([0.1, float("nan")])})], {}, "accuracy_m of stage"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"strategy_index": pa.array([0, 1])})], {}, "int64; it has to be int32"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"change_class": pa.array(["moved"])})], {}, "1 values for 2 rows"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"accuracy_m": pa.array([0.1, float("inf")])})], {}, "accuracy_m of stage"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"accuracy_m": pa.array([0.1, -1.0])})], {}, "accuracy_m of stage"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"accuracy_m": pa.array([0.1])})], {}, "1 values for 2 rows"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"change_class": pa.array([1, 2])})], {}, "int64; it has to be a string"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"to_partition": 7})], {}, "type int; it has to be a text"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"to_partition": "\ud800"})], {}, "surrogate"),
        (
            TWO,
            [Steps("v", "VALIDATE", np.array([0, 2], np.uint8), pa.array([None, 1.5]), "EPSG:1", "EPSG:4326")],
            {},
            "double; it has to be",
        ),
        (TWO, [Steps("v", "VALIDATE", np.array([0, 2], np.uint8), [None, "x"], "EPSG:1", "EPSG:4326")], {}, "type list; it has to be"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"rows": np.array([1, 0])})], {}, "truth value"),
        (TWO, [step("validate", "VALIDATE", [PASS, PASS], extra={"colour": "red"})], {}, "unknown columns: colour"),
        (TWO, [V], {"time": datetime(2026, 3, 3)}, "no time zone"),  # noqa: DTZ001 - the fault under test
        (TWO, [V], {"run_id": "r\n"}, "U\\+000A"),
        (TWO, [V], {"attempt": 1 << 15}, "attempt is 32768"),
        (TWO, [V], {"batch": 1 << 24}, "batch is 16777216"),
        (TWO, [V], {"audit_tag": 7}, "audit_tag is 7"),
    ],
)
def test_columns_are_checked_like_events(ids, steps, run, words):
    collector = LineageCollector()
    with pytest.raises(ValueError, match=words):
        collector.add_columns(ids, steps, **{**RUN, **run})
    assert len(collector) == 0


@pytest.mark.parametrize(
    ("stage", "base"), [("attr_cast", "attr_cast"), ("attr_cast.area_m2", "attr_cast"), ("crs_normalize.1", "crs_normalize")]
)
def test_qualified_stages_belong_to_their_stage(stage, base):
    assert base_stage(stage) == base


STAGES = [
    ("attr_cast.a", "CAST"),
    ("attr_cast.b", "CAST"),
    ("attr_cast", "CAST"),
    ("crs_normalize", "TRANSFORM"),
    ("snap", "SNAP"),
    ("validate", "VALIDATE"),
    ("publish", "VALIDATE"),
]


@st.composite
def batches(draw):
    ids = draw(st.lists(st.text("abcäöü é漢", min_size=1, max_size=6), min_size=1, max_size=8, unique=True))
    stages = [each for each in STAGES if draw(st.booleans())]
    verdicts = {
        stage: draw(st.lists(st.sampled_from([PASS, PASS, WARN, REJECT]), min_size=len(ids), max_size=len(ids))) for stage, _ in stages
    }
    met = {stage: draw(st.none() | st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))) for stage, _ in stages}
    return ids, stages, verdicts, met


@settings(deadline=None)
@given(batches(), st.integers(1, 3), st.integers(0, 5))
def test_columns_give_the_events_of_the_row_way(batch, attempt, number):
    ids, stages, verdicts, met = batch
    by_row, by_column = LineageCollector(), LineageCollector()
    n = 0
    for row, feature in enumerate(ids):
        refused_by = None
        for stage, kind in stages:
            word = WORDS[verdicts[stage][row]]
            outside = stage == "publish"
            if not outside and refused_by not in (None, base_stage(stage)):
                continue
            if met[stage] is not None and not met[stage][row]:
                continue
            if word == "REJECT" and not outside:
                refused_by = base_stage(stage)
            if kind == "CAST" and "." in stage and word == "PASS":
                continue
            by_row.add(
                event(
                    sequence=make_sequence(attempt, number, n),
                    stage=stage,
                    event_type=kind,
                    feature_id=feature,
                    outcome=word,
                    rejection_reason=None if word == "PASS" else f"{stage} says so",
                )
            )
            n += 1
    steps = [
        step(stage, kind, verdicts[stage], extra={} if met[stage] is None else {"rows": np.array(met[stage], np.bool_)})
        for stage, kind in stages
    ]
    assert by_column.add_columns(pa.array(ids), steps, run_id="r1", attempt=attempt, batch=number, time=TIME) == n
    assert by_column.to_table().equals(by_row.to_table())
