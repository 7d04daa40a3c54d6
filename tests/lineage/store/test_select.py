"""Conditions find the rows that a plain filter finds; runs come in the order of sealing."""

from datetime import UTC, date, datetime, timedelta

import pytest

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.store.run_manifest import runs_of
from merestone.lineage.store.select import Conditions, select
from merestone.lineage.store.writing import RunWriter
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    made = LocalStore(tmp_path / "dataset")
    for run, attempt in (("b", 1), ("a", 1), ("b", 2)):
        collector = LineageCollector()
        for number in range(6):
            stage, kind = (("validate", "VALIDATE"), ("attr_cast.area", "CAST"), ("attr_cast", "CAST"))[number % 3]
            refused = number == 3 and attempt == 1
            collector.add(
                LineageEvent(
                    run_id=run,
                    sequence=attempt << 48 | number,
                    event_time_utc=TIME,
                    stage=stage,
                    event_type=kind,
                    feature_id=f"p{number}",
                    source_crs="EPSG:4326",
                    target_crs="EPSG:4326",
                    outcome="REJECT" if refused else "PASS",
                    rejection_reason="Ring is open" if refused else None,
                    tool_version="pyarrow 20" if number % 2 else None,
                    change_class="held" if number == 4 else None,
                )
            )
        writer = RunWriter(str(tmp_path), run, attempt, "ab")
        writer.write(collector.drain())
        writer.seal(made, run_date=date(2026, 3, 3), plan=["attr_cast", "validate"], tool={}, time=TIME + timedelta(hours=attempt))
    return made


def found(store, everything=False, only=(), **conditions):
    tables = select(store, runs_of(store, only=only), Conditions(**conditions), everything=everything)
    return [(row["run_id"], row["feature_id"], row["sequence"] >> 48) for table in tables for row in table.to_pylist()]


def test_runs_come_as_their_attempts_in_the_order_of_sealing(store):
    assert [[(each.run_id, each.attempt) for each in attempts] for attempts in runs_of(store)] == [[("a", 1)], [("b", 1), ("b", 2)]]
    assert [attempts[0].run_id for attempts in runs_of(store, only=["b"])] == ["b"]


@pytest.mark.parametrize(
    ("conditions", "features"),
    [
        ({}, {0, 1, 2, 3, 4, 5}),
        ({"stage": "attr_cast"}, {1, 2, 4, 5}),
        ({"stage": "attr_cast.area"}, {1, 4}),
        ({"stage": "attr"}, set()),
        ({"event_type": "VALIDATE"}, {0, 3}),
        ({"feature": "p5"}, {5}),
        ({"tool": "ARROW"}, {1, 3, 5}),
        ({"change_class": "held"}, {4}),
        ({"stage": "attr_cast", "tool": "20"}, {1, 5}),
        ({"feature": "p5", "stage": "validate"}, set()),
    ],
)
def test_conditions(store, conditions, features):
    assert sorted(found(store, **conditions)) == sorted((run, f"p{number}", 1 if run == "a" else 2) for run in "ab" for number in features)


def test_what_a_later_attempt_corrected_is_found_only_where_everything_is_asked_for(store):
    assert found(store, outcome="REJECT") == [("a", "p3", 1)]
    assert found(store, outcome="REJECT", everything=True) == [("a", "p3", 1), ("b", "p3", 1)]
    assert found(store, reason="ring IS", only=["a"]) == [("a", "p3", 1)]
