"""The steps of a run add up to its events, whatever reasons it gave."""

from datetime import UTC, date, datetime

import pytest

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.store import steps, verdict
from merestone.lineage.store.run_manifest import attempts_of
from merestone.lineage.store.steps import run_steps
from merestone.lineage.store.verdict import run_summary
from merestone.lineage.store.writing import ROOT, RunWriter
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, 2, 3, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    """One run: 30 refused with a reason each, 5 with one reason, 2 doubted, 1 passed; over a transformation with two fallbacks."""
    collector = LineageCollector()

    def add(number, outcome, reason, **more):
        collector.add(
            LineageEvent(
                **{
                    "run_id": "r",
                    "sequence": number,
                    "event_time_utc": TIME.replace(second=number % 60),
                    "stage": "validate",
                    "event_type": "VALIDATE",
                    "feature_id": f"p{number}",
                    "source_crs": "EPSG:4258",
                    "target_crs": "EPSG:4258",
                    "outcome": outcome,
                    "rejection_reason": reason,
                    **more,
                }
            )
        )

    for number in range(30):
        add(number, "REJECT", f"owner {number}")
    for number in range(30, 35):
        add(number, "REJECT", "open ring")
    for number in (35, 36):
        add(number, "WARN", "close")
    add(37, "PASS", None, tool_version="x 1")
    for number in (38, 39):
        add(
            number,
            "PASS",
            None,
            stage="crs_normalize",
            event_type="TRANSFORM",
            source_crs="EPSG:27700",
            strategy_index=number - 38,
            accuracy_m=float(number),
            tool_version="PROJ 9",
        )
    made = LocalStore(tmp_path / "store")
    writer = RunWriter(str(tmp_path), "r", 1, "ab")
    writer.write(collector.drain())
    writer.seal(made, run_date=date(2026, 3, 3), plan=["crs_normalize", "validate"], tool={}, time=TIME)
    return made


def test_steps_tell_operations_apart_and_add_up(store):
    found = run_steps(store, attempts_of(store, "r"), ROOT)
    assert [(each.stage, each.strategy_index, each.passed, each.warned, each.rejected) for each in found] == [
        ("crs_normalize", 0, 1, 0, 0),
        ("crs_normalize", 1, 1, 0, 0),
        ("validate", None, 1, 2, 35),
    ]
    assert found[1].accuracy_m == (39.0, 39.0)
    assert found[2].tools == {"x 1": 1}
    assert (found[2].first, found[2].last) == (TIME.replace(second=0), TIME.replace(second=37))
    assert found[2].reasons["REJECT", "open ring"] == 5
    assert sum(found[2].reasons.values()) == 37


def test_reasons_without_number_are_counted_as_others(store, monkeypatch):
    monkeypatch.setattr(steps, "MOST_REASONS", 10)
    monkeypatch.setattr(verdict, "MOST_REASONS", 10)
    reasons = run_steps(store, attempts_of(store, "r"), ROOT)[2].reasons
    assert (len(reasons) <= 12, sum(reasons.values())) == (True, 37)
    assert reasons["REJECT", verdict.OTHERS] >= 20
    told = run_summary(store, "r")["reasons"]
    assert sum(each["events"] for each in told) == 37
    assert told[0]["reason"] == verdict.OTHERS
