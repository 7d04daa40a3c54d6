"""Events to test with."""

from datetime import UTC, datetime

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent

TIME = datetime(2026, 3, 3, 1, 0, tzinfo=UTC)
KINDS = {"crs_normalize": "TRANSFORM", "snap": "SNAP", "validate": "VALIDATE", "publish": "VALIDATE"}


def event(feature, stage="validate", outcome="PASS", *, sequence=1, run="r1", **more):
    reason = None if outcome == "PASS" else more.pop("reason", f"{stage} says so")
    return LineageEvent(
        run_id=run,
        sequence=sequence,
        event_time_utc=more.pop("time", TIME),
        stage=stage,
        event_type=KINDS[stage],
        feature_id=feature,
        source_crs="EPSG:25832",
        target_crs="EPSG:4326",
        outcome=outcome,
        rejection_reason=reason,
        **more,
    )


def table(events):
    collector = LineageCollector()
    for each in events:
        collector.add(each)
    return collector.to_table()
