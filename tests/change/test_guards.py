"""Guards, their causes, and the token."""

from __future__ import annotations

import numpy as np
import pytest

from merestone.change.guards import Evidence, cause, changed_fraction, common_shift, confirms, emptied, token, withdrawn


def evidence(**some):
    return Evidence(**({"keys": "pid", "features": 100, "touched": 100, "changed": 100} | some))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (evidence(found_elsewhere=97), "97 of 100 contents were found again under other keys"),
        (evidence(rekeyed=50, touched=100), "renumbered"),
        (evidence(removed=95), "95 published features are missing from the delivery"),
        (evidence(swapped=0.99, geometry_changed=90), "axis swap"),
        (evidence(shift=(0.0, -0.96, 0.999), geometry_changed=90), "99.9 % of them by the same 0.96 m to the south"),
        (evidence(column=("GlobalID", 1.0)), "100 % of them in GlobalID"),
        (evidence(vertices=0.95, geometry_changed=90), "generalised anew"),
    ],
)
def test_a_mass_change_names_its_likely_cause(facts, words):
    assert words in cause(facts)
    found = changed_fraction(facts, share=1.0, limit=0.2)
    assert found is not None
    assert "100 % changed" in found.observed
    assert "20 %" in found.expected


def test_nothing_is_guessed_without_evidence():
    assert cause(evidence(column=("name", 0.4), found_elsewhere=3)) == ""


def test_the_limit_itself_passes():
    assert changed_fraction(evidence(), share=0.2, limit=0.2) is None
    assert changed_fraction(evidence(features=0), share=1.0, limit=0.2) is None


def test_a_common_shift_is_seen_through_a_few_strays():
    dx, dy = np.zeros(1000), np.full(1000, -0.96)
    dx[:3] = 50
    x, y, share = common_shift(dx, dy)
    assert (x, y, share) == (0.0, -0.96, 0.997)
    assert common_shift(np.zeros(4), np.zeros(4)) is None
    assert common_shift(np.full(4, np.nan), np.zeros(4)) is None


def test_emptied_and_withdrawn_stop():
    assert emptied(0, 5, "pid").rule == "empty"
    assert emptied(0, 0, "pid") is None
    assert emptied(1, 5, "pid") is None
    assert withdrawn("d1", ["d1"], "pid").rule == "withdrawn"
    assert withdrawn("d2", ["d1"], "pid") is None


def test_a_token_confirms_one_stop_only():
    stop = ["empty", "removed"]
    issued = "2024-05-01T00:00:00.000000Z"
    given = token("parent", "delivery", stop, issued)
    record = {"token": given, "issued_utc": issued, "guards": stop}
    case = {
        "parent": "parent",
        "delivery": "delivery",
        "guards": stop,
        "now_utc": "2024-05-02T00:00:00.000000Z",
        "oldest_utc": "2024-04-30T00:00:00.000000Z",
    }
    assert confirms(given, record, **case)
    assert confirms(given, record, **case | {"guards": ["removed"]})  # met one after the other
    assert not confirms(given, record | {"guards": [*stop, "changed"]}, **case)
    assert not confirms("0000-0000", record, **case)
    assert not confirms(given, record, **case | {"parent": "another"})
    assert not confirms(given, record, **case | {"delivery": "another"})
    assert not confirms(given, record, **case | {"guards": ["empty", "withdrawn"]})
    assert not confirms(given, record, **case | {"oldest_utc": "2024-05-01T12:00:00.000000Z"})
    assert not confirms(given, {}, **case)
