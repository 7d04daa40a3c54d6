"""One event: identity, order, exact values."""

import hashlib
import json
import math
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.lineage.event.record import LineageEvent, make_event_id, make_sequence

TIME = datetime(2024, 5, 1, 10, tzinfo=UTC)
GOOD = {
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
IDENTITIES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1).map(lambda text: unicodedata.normalize("NFC", text))


def test_the_recipe_of_the_event_id_never_changes():
    expected = hashlib.blake2b(b"r1\x1fvalidate\x1fp1\x1fVALIDATE", digest_size=16).hexdigest()
    assert make_event_id("r1", "validate", "p1", "VALIDATE") == expected
    assert LineageEvent(**GOOD).event_id() == expected


@given(IDENTITIES, IDENTITIES, IDENTITIES, IDENTITIES)
def test_the_event_id_is_the_hash_of_the_joined_texts(run, stage, feature, kind):
    joined = f"{run}\x1f{stage}\x1f{feature}\x1f{kind}".encode()
    assert make_event_id(run, stage, feature, kind) == hashlib.blake2b(joined, digest_size=16).hexdigest()


@pytest.mark.parametrize("bad", ["", None, 7, b"p1", "a\x1fb", "a\x00", "a\x7f", "a\x85", "a\n", "Cafe\u0301", "\ud800"])
@pytest.mark.parametrize("place", range(4))
def test_a_part_that_is_no_clean_text_has_no_event_id(bad, place):
    parts = ["r1", "validate", "p1", "VALIDATE"]
    parts[place] = bad
    with pytest.raises(ValueError, match=("run_id", "stage", "feature_id", "event_type")[place]):
        make_event_id(*parts)


@given(st.integers(0, (1 << 15) - 1), st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 24) - 1))
def test_the_sequence_orders_attempt_batch_and_place(attempt, batch, n):
    found = make_sequence(attempt, batch, n)
    assert 0 <= found < 1 << 63
    assert (found >> 48, found >> 24 & 0xFFFFFF, found & 0xFFFFFF) == (attempt, batch, n)


@pytest.mark.parametrize("parts", [(1 << 15, 0, 0), (1, 1 << 24, 0), (1, 0, 1 << 24), (-1, 0, 0), (1, 0, True), (1, 0.0, 0)])
def test_a_sequence_that_does_not_fit_is_refused(parts):
    with pytest.raises(ValueError, match="has to be an integer from 0"):
        make_sequence(*parts)


@pytest.mark.parametrize(
    "change",
    [
        {"event_time_utc": datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))},
        {"strategy_index": 0, "accuracy_m": 0.0, "tool_version": "PROJ 9.5", "audit_tag": "nightly"},
        {"outcome": "WARN"},
        {"outcome": "WARN", "rejection_reason": "snapped by 3 mm"},
        {"outcome": "REJECT", "rejection_reason": "self-intersection at \x00 <&>"},
        {"event_type": "REJECT", "outcome": "REJECT", "rejection_reason": "bow-tie"},
        {"change_class": "moved", "from_partition": "", "to_partition": "district=north"},
    ],
)
def test_a_true_event_is_accepted(change):
    LineageEvent(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_time_utc": datetime(2024, 5, 1)}, "no time zone"),  # noqa: DTZ001 - the fault under test
        ({"event_time_utc": 5}, "datetime with a time zone"),
        ({"event_time_utc": "2024-05-01T10:00:00Z"}, "datetime with a time zone"),
        ({"event_time_utc": None}, "event_time_utc is missing"),
        ({"sequence": 1.5}, "an integer"),
        ({"sequence": 1.0}, "an integer"),
        ({"sequence": True}, "an integer"),
        ({"sequence": "1"}, "an integer"),
        ({"sequence": None}, "sequence is missing"),
        ({"sequence": -1}, "negative"),
        ({"sequence": 1 << 63}, "does not fit"),
        ({"strategy_index": 1 << 31}, "does not fit"),
        ({"strategy_index": False}, "an integer"),
        ({"accuracy_m": math.nan}, "leave it out"),
        ({"accuracy_m": math.inf}, "leave it out"),
        ({"accuracy_m": -1.0}, "negative"),
        ({"accuracy_m": 1}, "a float"),
        ({"accuracy_m": "0.1"}, "a float"),
        ({"run_id": 7}, "run_id is 7"),
        ({"run_id": ""}, "run_id is empty"),
        ({"source_crs": ""}, "source_crs is empty"),
        ({"target_crs": None}, "target_crs is missing"),
        ({"feature_id": "a\tb"}, "U\\+0009"),
        ({"feature_id": "a\x1fb"}, r"U\+001F; write it as \\u001f$"),  # in the digits that lineage writes
        ({"stage": None}, "stage is missing"),
        ({"tool_version": 9}, "a text"),
        ({"audit_tag": "\udfff"}, "surrogate"),
        ({"outcome": "MAYBE"}, "one of PASS, REJECT, WARN"),
        ({"outcome": "pass"}, "one of PASS, REJECT, WARN"),
        ({"event_type": "DELETE"}, "one of TRANSFORM"),
        ({"outcome": "REJECT"}, "without a rejection_reason"),
        ({"outcome": "REJECT", "rejection_reason": " \n"}, "without a rejection_reason"),
        ({"event_type": "REJECT"}, "has outcome REJECT"),
        ({"event_type": "REJECT", "outcome": "WARN"}, "has outcome REJECT"),
        ({"rejection_reason": "why"}, "a doubt is a WARN"),
    ],
)
def test_nothing_is_coerced(change, words):
    with pytest.raises(ValueError, match=words):
        LineageEvent(**{**GOOD, **change})


def test_a_composite_key_is_an_id():
    assert LineageEvent(**{**GOOD, "feature_id": json.dumps(["D0001", 7])}).event_id()
