"""A roll-back is a new version with the old content, and consumers can follow it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.build import Miniature, row, seen, state_of
from dataset.test_feed import STATES, expected, told
from merestone.dataset.current import current
from merestone.dataset.feed import changes
from merestone.dataset.index import load_table
from merestone.dataset.log import log
from merestone.dataset.record import RunRecord, read_records
from merestone.dataset.verify import verify
from merestone.dataset.version import Dataset
from merestone.errors import StoreError, UsageError
from merestone.writer.commit import begin
from merestone.writer.rollback import rollback
from stores import FaultyStore

NOW = "2026-03-09T00:00:00Z"
A, B, C = (
    {"p": row("a", 1, (0, 0)), "q": row("q", 2, (1, 1), "district=D2")},
    {"p": row("b", 1, (3, 4)), "r": row("r", 3, (2, 2), "district=D2")},
    {"p": row("c", 1, (9, 9))},
)


@pytest.fixture
def mini():
    return Miniature(FaultyStore())


def roll(mini, to, reason="wrong export"):
    head = current(mini.store)
    attempt = begin(mini.store, run_id=f"back{mini.clock}", nonce="n", name="parcels", started_utc=NOW, parent=head)
    mini.clock += 1
    try:
        done = rollback(attempt, head, to=to, reason=reason, now=NOW)
        version = done.committed.manifest.version
        attempt.finish(RunRecord(attempt.run_id, attempt.number, "rolled_back", "parcels", NOW, NOW, version=version))
    finally:
        attempt.leave()
    mini.states[version] = mini.states[to]
    return done


def test_the_old_content_comes_back_as_a_new_version(mini):
    first = mini.publish(A)
    mini.publish(B)
    done = roll(mini, 1)
    manifest = done.committed.manifest
    assert (manifest.version, manifest.parent) == (3, 2)
    assert manifest.files == first.files
    assert manifest.set_digest == first.set_digest
    assert manifest.rollback == {"to": 1, "reason": "wrong export"}
    assert state_of(Dataset(mini.store).to_arrow()) == seen(A)
    assert state_of(Dataset(mini.store).to_arrow(version=2)) == seen(B), "history is not rewritten"
    assert [(each.version, each.reason) for each in log(Dataset(mini.store))] == [(3, "wrong export"), (2, None), (1, None)]
    assert verify(mini.store).whole


def test_the_index_comes_back_too_so_the_next_publish_compares_with_it(mini):
    mini.publish(A)
    before = load_table(mini.store, current(mini.store).manifest.index)
    mini.publish(B, noise=("p",))
    roll(mini, 1)
    assert load_table(mini.store, current(mini.store).manifest.index).equals(before)
    mini.publish(C)
    assert told(changes(Dataset(mini.store)).table) == expected(A, C)
    assert verify(mini.store).whole


def test_the_step_back_is_told_with_what_the_way_there_changed(mini):
    mini.publish(A)
    mini.publish(B)
    roll(mini, 1)
    found = changes(Dataset(mini.store), with_rows=True)
    assert told(found.table) == expected(B, A)
    (changed,) = [each for each in found.table.to_pylist() if each["class"] == "changed"]
    assert (changed["attributes"], changed["geometry"], changed["fields"], changed["geometry_change"]) == (True, True, ["name"], 5.0)
    assert state_of(found.after) == seen(A)
    assert changes(Dataset(mini.store), 1, 3).table.num_rows == 0


def test_source_digests_come_back_without_being_a_change(mini):
    mini.publish(A)
    mini.publish(A, noise=("p", "q"))
    done = roll(mini, 1)
    assert done.committed.manifest.counts["refreshed"] == 2
    assert done.committed.manifest.counts["unchanged"] == 2
    assert changes(Dataset(mini.store)).table.num_rows == 0


def test_withdrawn_deliveries_are_remembered(mini):
    mini.publish(A, delivery="one")
    mini.publish(B, delivery="two")
    mini.publish(C, delivery="three")
    done = roll(mini, 1)
    assert done.withdrawn == ("two", "three")
    assert current(mini.store).manifest.withdrawn == ("two", "three")
    assert current(mini.store).manifest.delivery["set_digest"] == "one"
    roll(mini, 2)
    assert set(current(mini.store).manifest.withdrawn) == {"three", "one"}, "what was taken back on purpose is no longer withdrawn"
    mini.publish(A, delivery="four")
    assert set(current(mini.store).manifest.withdrawn) == {"three", "one"}, "kept by later versions"


def test_what_was_withdrawn_before_stays_withdrawn(mini):
    mini.publish(A, delivery="one")
    mini.publish(B, delivery="two")
    roll(mini, 1)
    mini.publish(C, delivery="four")
    done = roll(mini, 3)
    assert done.withdrawn == ("four",)
    assert current(mini.store).manifest.withdrawn == ("two", "four")


@settings(max_examples=25, deadline=None)
@given(states=st.lists(STATES, min_size=2, max_size=4), data=st.data())
def test_any_roll_back_is_the_difference_and_leaves_a_whole_dataset(states, data):
    mini = Miniature(FaultyStore())
    for state in states:
        mini.publish(state)
    to = data.draw(st.integers(1, len(states) - 1))
    done = roll(mini, to)
    found = changes(Dataset(mini.store), with_rows=True)
    assert told(found.table) == expected(states[-1], states[to - 1])
    assert state_of(Dataset(mini.store).to_arrow()) == seen(states[to - 1])
    counts = done.committed.manifest.counts
    assert counts["unchanged"] + counts["added"] + counts["changed"] + counts["moved"] == len(states[to - 1])
    assert verify(mini.store).whole


@pytest.mark.parametrize(
    ("to", "reason", "says"),
    [
        (2, "x", "is the current version"),
        (3, "x", "not a version of this dataset"),
        (0, "x", "not a version of this dataset"),
        (1, " ", "needs a reason"),
    ],
)
def test_a_roll_back_that_cannot_be_is_a_usage_error(mini, to, reason, says):
    mini.publish(A)
    mini.publish(B)
    before = dict(mini.store.objects)
    with pytest.raises(UsageError, match=says):
        roll(mini, to, reason)
    left = set(mini.store.objects) - set(before)
    assert all(name.startswith("_intents/") for name in left)
    assert current(mini.store).manifest.version == 2


def test_a_store_that_refuses_leaves_the_newer_version(mini):
    mini.publish(A)
    mini.publish(B)
    mini.store.faults = [("create", "_manifests/", "refuse")]
    with pytest.raises(StoreError):
        roll(mini, 1)
    assert state_of(Dataset(mini.store).to_arrow()) == seen(B)
    roll(mini, 1)
    assert [each.status for each in read_records(mini.store)][-1] == "rolled_back"
