"""Delta: four disjoint classes and the partitions that they touch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.change.delta import Delta, diff_against_manifest, partitions_to_rewrite

keys = st.integers(0, 12)
states = st.dictionaries(keys, st.tuples(st.sampled_from("abc"), st.sampled_from(["", "p", "q"])), max_size=10)


@given(states, states)
def test_replaying_a_delta_on_the_old_state_gives_the_new_one(now, before):
    current = {key: digest for key, (digest, _) in now.items()}
    place = {key: where for key, (_, where) in now.items()}
    delta = diff_against_manifest(current, place, before)
    replayed = {key: value for key, value in before.items() if key not in delta.removed}
    replayed |= {key: now[key] for key in delta.added | delta.changed | delta.moved}
    assert replayed == now
    assert sum(delta.summary().values()) == len(delta.touched)


@given(states, states)
def test_a_partition_is_rewritten_exactly_if_its_content_differs(now, before):
    current = {key: digest for key, (digest, _) in now.items()}
    place = {key: where for key, (_, where) in now.items()}
    delta = diff_against_manifest(current, place, before)

    def content(state):
        out = {}
        for key, (digest, where) in state.items():
            out.setdefault(where, set()).add((key, digest))
        return out

    old, new = content(before), content(now)
    differing = {where for where in old.keys() | new.keys() if old.get(where) != new.get(where)}
    assert partitions_to_rewrite(delta, place, before) == differing


def test_a_key_stands_in_one_class_only():
    with pytest.raises(ValueError, match="more than one class"):
        Delta(added={1}, changed={1})


def test_a_feature_without_a_partition_is_a_fault_of_the_caller():
    with pytest.raises(KeyError):
        partitions_to_rewrite(diff_against_manifest({"a": "x"}, {}, {"a": ("x", "p")}), {}, {})
