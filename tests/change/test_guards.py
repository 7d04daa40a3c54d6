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
        (evidence(swapped=0.99, geometry_changed=100), "axis swap"),
        (evidence(shift=(0.0, -0.96, 0.999), geometry_changed=100), "99.9 % of them by the same 0.96 m to the south"),
        (evidence(column=("GlobalID", 1.0)), "100 % of them in GlobalID"),
        (evidence(vertices=0.95, geometry_changed=100), "generalised anew"),
    ],
)
def test_a_mass_change_names_its_likely_cause(facts, words):
    assert words in cause(facts)
    found = changed_fraction(facts, share=1.0, limit=0.2)
    assert found is not None
    assert "100 % changed" in found.observed
    assert "20 %" in found.expected


SHIFTED = {"shift": (0.0, -55.66, 1.0), "vertices": 1.0}


@pytest.mark.parametrize(
    ("facts", "words"),
    [  # what one geometry of sixty shows is no cause of sixty edits
        (evidence(column=("pop", 1.0), geometry_changed=1, **SHIFTED), "100 % of them in pop: the column was edited as a whole"),
        (evidence(column=("pop", 1.0), geometry_changed=1, swapped=1.0), "100 % of them in pop: "),
        (evidence(column=("pop", 1.0), geometry_changed=1, scaled=(1000.0, 1.0)), "100 % of them in pop: "),
        (evidence(column=("pop", 1.0), geometry_changed=60, retyped=("point became polygon", 1.0)), "100 % of them in pop: "),
        (evidence(column=("pop", 0.6), geometry_changed=1, **SHIFTED), "60 % of them in pop"),
        (evidence(column=("pop", 0.6), geometry_changed=70, **SHIFTED), "70 % of them by the same 55.66 m"),
        (evidence(column=("pop", 0.3), geometry_changed=1, **SHIFTED), ""),
        (evidence(column=("pop", 1.0), changed=20), ""),  # and eighty were added
        (evidence(column=("pop", 1.0), changed=20, geometry_changed=20, **SHIFTED), ""),
        (evidence(retyped=("point became polygon", 1.0), geometry_changed=100), "100 % of them are geometries of another type: point became polygon"),
    ],
)  # fmt: skip
def test_a_cause_explains_most_of_what_changed(facts, words):
    assert cause(facts).startswith(words)
    assert bool(cause(facts)) == bool(words)


def test_more_than_all_is_told_in_features_and_not_as_a_share():
    found = changed_fraction(evidence(features=50), share=2.0, limit=0.2)
    assert found.observed == "100 features were added, changed or removed where there were 50"


def test_nothing_is_guessed_without_evidence():
    assert cause(evidence(column=("name", 0.4), found_elsewhere=3)) == ""


def test_the_limit_itself_passes():
    assert changed_fraction(evidence(), share=0.2, limit=0.2) is None
    assert changed_fraction(evidence(features=0), share=1.0, limit=0.2) is None


def test_a_common_shift_is_seen_through_a_few_strays():
    then = np.random.default_rng(1).uniform(0, 1000, (1000, 2))[:, [0, 1, 0, 1]]
    now = then + np.tile([0, -0.96], 2)
    now[:3, ::2] += 50
    x, y, share = common_shift(now, then)
    assert (round(x, 9), round(y, 9), share) == (0.0, -0.96, 0.997)
    assert common_shift(then, then) is None
    assert common_shift(np.full((4, 4), np.nan), np.zeros((4, 4))) is None


def test_boxes_that_grew_were_not_displaced():
    then = np.tile([5.0, 52.0, 5.0, 52.0], (10, 1))
    assert common_shift(then + np.array([0, 0, 0.1, 1.0]), then)[2] == 0


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
