"""Verdict and summary of a run count what stands."""

import json
from pathlib import Path

import pytest

from lineage.events import event, table
from merestone.errors import UsageError
from merestone.lineage.event.record import make_sequence
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.verdict import conformance_summary, run_summary
from merestone.storage.local import LocalStore


def root(store):
    return store.location("_lineage")


def test_the_verdict_of_a_run_counts_what_stands(store, seal):
    seal(
        "007",
        table(
            [
                event("a", "snap", run="007"),
                event("a", "validate", "REJECT", run="007", sequence=2),
                event("b", "snap", "WARN", run="007", sequence=3),
                event("b", run="007", sequence=4),
                event("b", run="007", sequence=5),
            ]
        ),
    )
    first = {
        "total_events": 4,
        "passed": 2,
        "rejected": 1,
        "warned": 1,
        "features": 2,
        "features_passed": 0,
        "features_rejected": 1,
        "features_warned": 1,
    }
    assert conformance_summary(root(store), "007") == conformance_summary(f"{store.url}/_lineage", "007") == first
    assert conformance_summary(Path(root(store)), "007") == first
    assert conformance_summary(LocalStore(root(store)), "007") == first
    seal("7", table([event("a", run="7")]))
    assert conformance_summary(root(store), "007") == first
    seal("007", table([event("a", run="007", sequence=make_sequence(2, 0, 0))]), attempt=2)
    assert conformance_summary(root(store), "007") == {
        "total_events": 4,
        "passed": 3,
        "rejected": 0,
        "warned": 1,
        "features": 2,
        "features_passed": 1,
        "features_rejected": 0,
        "features_warned": 1,
    }
    assert read_run(store, "007", attempt=2).num_rows == 1


@pytest.mark.parametrize("run", ["r2", "r", "", "R1"])
def test_an_unknown_run_is_a_usage_error(store, seal, run):
    seal("r1", table([event("a")]))
    with pytest.raises(UsageError, match="no sealed run"):
        conformance_summary(root(store), run)
    with pytest.raises(UsageError, match="no sealed attempt 2"):
        read_run(store, "r1", attempt=2)


def test_the_summary_of_a_run(store, seal):
    seal(
        "r1",
        table(
            [
                event("a", "crs_normalize"),
                event("a", "snap", sequence=2),
                event("a", sequence=3),
                event("b", "crs_normalize", sequence=4),
                event("b", "snap", sequence=5),
                event("b", "validate", "REJECT", sequence=6, reason="bow-tie"),
                event("c", "publish", "WARN", sequence=7, reason="held", change_class="held"),
            ]
        ),
    )
    found = run_summary(store, "r1")
    assert found["attempts"] == [1]
    assert found["tool"] == {"PROJ": "9.5"}
    assert {name: found[name] for name in ("total_events", "passed", "rejected", "warned")} == {
        "total_events": 7,
        "passed": 5,
        "rejected": 1,
        "warned": 1,
    }
    assert [(each["stage"], each["outcome"], each["events"]) for each in found["stages"]] == [
        ("crs_normalize", "PASS", 2),
        ("snap", "PASS", 2),
        ("validate", "PASS", 1),
        ("validate", "REJECT", 1),
        ("publish", "WARN", 1),
    ]
    assert found["reasons"] == [
        {"stage": "publish", "outcome": "WARN", "reason": "held", "events": 1},
        {"stage": "validate", "outcome": "REJECT", "reason": "bow-tie", "events": 1},
    ]
    assert json.dumps(found)
