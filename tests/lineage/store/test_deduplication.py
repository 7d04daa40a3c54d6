"""What stands after retries and replays."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.events import TIME, event, table
from merestone.lineage.event.record import make_sequence
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store.deduplication import deduplicate, deduplicate_report

streams = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["snap", "validate"]),
        st.sampled_from(["PASS", "WARN", "REJECT"]),
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(["x", "y"]),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(streams)
def test_deduplication_equals_a_plain_model(stream):
    events = [
        event(feature, stage, outcome, sequence=make_sequence(attempt, 0, n), **({} if outcome == "PASS" else {"reason": reason}))
        for feature, stage, outcome, attempt, n, reason in stream
    ]
    given_rows = table(events)
    best = {}
    severity = ["PASS", "WARN", "REJECT"].index
    for place, each in enumerate(events):
        rank = (each.sequence, severity(each.outcome), -place)
        if each.event_id() not in best or rank > best[each.event_id()][0]:
            best[each.event_id()] = (rank, place)
    stands = sorted(place for _, place in best.values())
    assert deduplicate(given_rows).equals(given_rows.take(pa.array(stands, pa.int64())))

    top = {}
    for each in events:
        key = (each.event_id(), each.sequence >> 48)
        if key not in top or (each.sequence, severity(each.outcome)) > (top[key].sequence, severity(top[key].outcome)):
            top[key] = each
    fates = {"replays": 0, "corrections": 0, "conflicts": 0}

    def payload(each):
        return (each.outcome, each.rejection_reason)

    for place, each in enumerate(events):
        if place in stands:
            continue
        mine = top[each.event_id(), each.sequence >> 48]
        if payload(each) != payload(mine):
            fates["conflicts"] += 1
        elif each is not mine or payload(each) == payload(events[best[each.event_id()][1]]):
            fates["replays"] += 1
        else:
            fates["corrections"] += 1
    report = deduplicate_report(given_rows)
    assert {name: getattr(report, name) for name in fates} == fates
    assert report.rows == len(events)
    assert report.standing == len(stands)
    assert report.rows == report.standing + report.replays + report.corrections + report.conflicts
    assert deduplicate(deduplicate(given_rows)).equals(deduplicate(given_rows))


def test_replay_correction_and_conflict_are_told_apart():
    late = TIME.replace(hour=2)
    report = deduplicate_report(
        table(
            [
                event("same", sequence=make_sequence(1, 0, 0)),
                event("same", sequence=make_sequence(1, 1, 0), time=late),
                event("again", sequence=make_sequence(1, 0, 1)),
                event("again", sequence=make_sequence(2, 0, 1)),
                event("mended", outcome="REJECT", sequence=make_sequence(1, 0, 2)),
                event("mended", sequence=make_sequence(2, 0, 2)),
                event("torn", sequence=make_sequence(1, 0, 3), accuracy_m=0.1),
                event("torn", "validate", "WARN", sequence=make_sequence(1, 0, 4), accuracy_m=0.2),
            ]
        )
    )
    assert (report.replays, report.corrections, report.conflicts) == (2, 1, 1)
    [alert] = report.to_json()["samples"]
    assert alert["feature_id"] == "torn"
    assert alert["attempt"] == 1
    assert alert["columns"] == ["outcome", "accuracy_m", "rejection_reason"]


def test_deduplication_keeps_the_table_whatever_its_chunks():
    rows = table([event("a"), event("b", sequence=2), event("a", sequence=3, outcome="REJECT")])
    chunks = pa.concat_tables([rows.slice(each, 1) for each in range(3)])
    assert deduplicate(chunks).equals(rows.slice(1))
    assert deduplicate(LINEAGE_ARROW_SCHEMA.empty_table()).num_rows == 0
    assert deduplicate_report(LINEAGE_ARROW_SCHEMA.empty_table()).rows == 0
