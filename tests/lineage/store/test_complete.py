"""Whether a run's events tell the whole story."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent, make_sequence
from merestone.lineage.store.complete import Order, check_chain, check_sequence

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
CASES = Path(__file__).parents[2] / "cases"
PLAN = ["attr_cast", "snap", "validate"]
KINDS = {"attr_cast": "CAST", "snap": "SNAP", "validate": "VALIDATE", "publish": "VALIDATE", "polish": "SNAP"}


def table(*events):
    collector = LineageCollector()
    for each in events:
        collector.add(each)
    return collector.to_table()


def event(feature, stage="validate", outcome="PASS", sequence=0, time=NOW):
    return LineageEvent(
        run_id="r1",
        sequence=sequence,
        event_time_utc=time,
        stage=stage,
        event_type=KINDS[stage.partition(".")[0]],
        feature_id=feature,
        source_crs="EPSG:25832",
        target_crs="EPSG:4326",
        outcome=outcome,
        rejection_reason=None if outcome == "PASS" else "why",
    )


def said(gaps):
    return [(each.rule, each.count, list(each.samples)) for each in gaps]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 2], []),
        ([7, 8, 9], []),
        ([1, 2, 4], [("sequence_gap", 1, ["3"])]),
        ([1, 5], [("sequence_gap", 3, ["2 to 4"])]),
        ([make_sequence(1, 0, 0), make_sequence(1, 0, 1), make_sequence(1, 1, 0), make_sequence(2, 0, 0)], []),
        ([make_sequence(1, 0, 0), make_sequence(1, 1, 1)], [("sequence_gap", 1, [str(make_sequence(1, 1, 0))])]),
        ([make_sequence(1, 0, 0), make_sequence(1, 0, 2)], [("sequence_gap", 1, [str(make_sequence(1, 0, 1))])]),
    ],
)
def test_gaps_inside_a_batch_are_reported(numbers, expected):
    rows = table(*(event(f"p{each}", sequence=each) for each in numbers))
    assert said(check_sequence(rows, now=NOW)) == expected


def test_one_number_on_two_events_is_an_alert_and_a_replay_is_none():
    assert said(check_sequence(table(event("a"), event("a")), now=NOW)) == []
    assert said(check_sequence(table(event("a"), event("b")), now=NOW)) == [("sequence_twice", 1, ["0"])]


def test_times_beyond_the_skew_are_reported():
    assert check_sequence(table(event("a", time=NOW + timedelta(minutes=5))), now=NOW) == []
    assert said(check_sequence(table(event("a", time=NOW + timedelta(minutes=6))), now=NOW)) == [("future", 1, ["a"])]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(PLAN), st.integers(0, 6), st.integers(1, 2), st.integers(0, 9)), max_size=14)
)
@settings(max_examples=60, deadline=None)
def test_a_run_in_tables_by_feature_has_the_gaps_of_the_whole(rows):
    made = [
        event(feature, stage, sequence=make_sequence(attempt, 0, n), time=NOW + timedelta(minutes=ahead))
        for feature, stage, n, attempt, ahead in rows
    ]
    order = Order(NOW)
    for feature in "abc":
        order.add(table(*(each for each in made if each.feature_id == feature)))
    split, whole_run = order.gaps(), check_sequence(table(*made), now=NOW)
    assert [(each.rule, each.count) for each in split] == [(each.rule, each.count) for each in whole_run]
    numbers = {each.sequence for each in made}
    places = [{each & 0xFFFFFF for each in numbers if each >> 48 == attempt} for attempt in (1, 2)]
    missing = sum(max(each) + 1 - len(each) for each in places if each)
    assert sum(each.count for each in split if each.rule == "sequence_gap") == missing
    twice = [one for one in numbers if len({each.event_id() for each in made if each.sequence == one}) > 1]
    assert sum(each.count for each in split if each.rule == "sequence_twice") == len(twice)


def test_an_empty_run_has_no_gaps():
    assert check_sequence(table(), now=NOW) == []
    assert check_chain(table(), PLAN) == []


def whole(feature, attempt=1):
    return [event(feature, stage, sequence=make_sequence(attempt, 0, n)) for n, stage in enumerate(PLAN)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (whole("a"), []),
        ([*whole("a")[:2], event("a", outcome="REJECT", sequence=make_sequence(1, 0, 9)), event("a", "publish", "WARN")], []),
        ([event("a", "publish")], []),
        ([event("a", "attr_cast", "REJECT")], []),
        ([event("a", "attr_cast.area", "WARN"), *whole("a")], []),
        (whole("a")[1:], [("stage_missing", 1, ["a"])]),
        ([*whole("a"), whole("b")[0], whole("b")[2]], [("stage_missing", 1, ["b"])]),
        ([event("a", "attr_cast", "REJECT"), event("a", "snap", sequence=1)], [("after_reject", 1, ["a"])]),
        (
            [event("a", "attr_cast.area", "REJECT"), event("a", "attr_cast", sequence=1), event("a", "snap", sequence=2)],
            [("after_reject", 1, ["a"])],
        ),
        ([*whole("a", 1)[:1], *whole("a", 2)[1:]], [("stage_missing", 1, ["a"])]),
        ([event("a", "attr_cast", "REJECT", make_sequence(1, 0, 0)), *whole("a", 2)], []),
        ([*whole("a"), event("a", "polish", sequence=5)], [("stage_unknown", 1, ["a"])]),
    ],
)
def test_the_chain(events, expected):
    assert said(check_chain(table(*events), PLAN)) == expected


def test_case_l04():
    docs = [json.loads(each) for each in (CASES / "L04/events.jsonl").read_text(encoding="utf-8").splitlines()]
    events = [LineageEvent(**{**each, "event_time_utc": datetime.fromisoformat(each["event_time_utc"])}) for each in docs]
    one = table(*(each for each in events if each.run_id == "r1"))
    assert said(check_sequence(one, now=NOW)) == [("future", 1, ["p5"])]
    assert said(check_chain(one, ["crs_normalize", "validate"])) == [("stage_missing", 1, ["p4"])]
    three = table(*(each for each in events if each.run_id == "r3"))
    assert said(check_sequence(three, now=NOW)) == [("sequence_twice", 1, ["2"]), ("sequence_gap", 1, ["3"])]
    assert json.dumps([each.to_json() for each in check_sequence(three, now=NOW)])
