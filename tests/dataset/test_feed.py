"""The feed between any two versions is the difference of the two, whatever lay between."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.build import Miniature, digest_of, key_bytes, row, seen, state_of
from merestone.dataset.feed import CLASSES, Feed, changes, fold, rows_of
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError, UsageError
from merestone.storage.local import LocalStore
from stores import fresh

ROWS = st.builds(
    row,
    name=st.sampled_from("ab"),
    rank=st.sampled_from([1, None]),
    at=st.sampled_from([(0, 0), (3, 4), None]),
    partition=st.sampled_from(["district=D1", "district=D2"]),
)
STATES = st.dictionaries(st.sampled_from(["p1", "p2", "p3", "é"]), ROWS)


def expected(before, after):
    """The classes of two states, as spec section 4 words them."""
    out = {}
    for pid in {*before, *after}:
        old, new = before.get(pid), after.get(pid)
        kind = (
            "added"
            if old is None
            else "removed"
            if new is None
            else "changed"
            if digest_of(old) != digest_of(new)
            else "moved"
            if old[3] != new[3]
            else None
        )
        if kind:
            out[key_bytes(pid)] = (kind, new and digest_of(new), old and digest_of(old), new and new[3], old and old[3])
    return out


def told(table):
    columns = [table.column(name).to_pylist() for name in ("key", "class", "digest", "old_digest", "partition", "old_partition")]
    return {each[0]: tuple(each[1:]) for each in zip(*columns, strict=True)}


@settings(max_examples=60, deadline=None)
@given(states=st.lists(STATES, min_size=2, max_size=5), data=st.data())
def test_the_feed_between_any_two_versions_is_their_difference(states, data):
    mini = Miniature(fresh())
    for state in states:
        mini.publish(state)
    start = data.draw(st.integers(0, len(states)))
    end = data.draw(st.integers(max(start, 1), len(states)))
    found = changes(Dataset(mini.store), start, end, with_rows=True)
    before, after = ({} if start == 0 else states[start - 1]), states[end - 1]
    assert told(found.table) == expected(before, after)
    keys = found.table.column("key").to_pylist()
    assert keys == sorted(keys)
    assert [key_bytes(pid) for pid in found.key.column("pid").to_pylist()] == keys

    existed = found.key.filter(found.touched.had).column("pid").to_pylist()
    exists = found.key.filter(found.touched.has).column("pid").to_pylist()
    if start:
        assert found.before.column("pid").to_pylist() == existed
        assert state_of(found.before) == {pid: seen(before)[pid] for pid in existed}
    assert found.after.column("pid").to_pylist() == exists
    assert state_of(found.after) == {pid: seen(after)[pid] for pid in exists}
    counts = found.counts()
    assert sum(counts[name] for name in CLASSES) == found.table.num_rows


@pytest.fixture
def mini(tmp_path):
    return Miniature(LocalStore(tmp_path / "ds"))


A, B = row("a", 1, (0, 0)), row("b", 1, (3, 4))


def between(mini, start, end):
    return changes(Dataset(mini.store), start, end).table.to_pylist()


def test_there_and_back_again_is_nothing(mini):
    for state in ({"p": A}, {"p": B}, {"p": A}):
        mini.publish(state)
    assert between(mini, 1, 3) == []
    assert len(between(mini, 1, 2)) == len(between(mini, 2, 3)) == 1


def test_added_and_removed_is_nothing_and_removed_and_added_is_by_digest(mini):
    for state in ({"p": A}, {}, {"p": A}, {}, {"p": B}):
        mini.publish(state)
    assert between(mini, 2, 4) == []
    assert between(mini, 1, 3) == []
    (changed,) = between(mini, 1, 5)
    assert changed["class"] == "changed"
    assert (changed["attributes"], changed["geometry"], changed["fields"], changed["geometry_change"]) == (True, True, None, None), (
        "what differs was never compared: either may"
    )


def test_what_changed_on_the_way_is_gathered(mini):
    mini.publish({"p": row("a", 1, (0, 0))})
    mini.publish({"p": row("b", 1, (0, 0))})
    mini.publish({"p": row("b", 2, (3, 4))})
    (one,) = between(mini, 1, 2)
    assert (one["attributes"], one["geometry"], one["fields"]) == (True, False, ["name"])
    (two,) = between(mini, 2, 3)
    assert (two["fields"], two["geometry_change"]) == (["rank"], 5.0)
    (both,) = between(mini, 1, 3)
    assert (both["attributes"], both["geometry"], both["fields"]) == (True, True, ["name", "rank"])
    assert both["geometry_change"] is None, "the size of two steps is not that of one"


def test_noise_is_not_told(mini):
    mini.publish({"p": A, "q": B})
    mini.publish({"p": A, "q": B}, noise=("p",))
    assert mini.log({"p": A}, {"p": A}, ("p",)).column("class").to_pylist() == ["refreshed"]
    assert between(mini, 1, 2) == []


def test_the_last_step_is_the_default(mini):
    mini.publish({"p": A})
    mini.publish({"p": A, "q": B})
    found = changes(Dataset(mini.store))
    assert (found.from_version, found.to_version) == (1, 2)
    assert found.counts()["added"] == 1
    first = changes(Dataset(mini.store), to_version=1)
    assert (first.from_version, first.counts()["added"]) == (0, 1)


@pytest.mark.parametrize(("start", "end", "says"), [(2, 1, "older version to a newer"), (1, 9, "no version 9"), (-1, 2, "no version -1")])
def test_versions_that_do_not_fit_are_usage_errors(mini, start, end, says):
    mini.publish({"p": A})
    mini.publish({"p": B})
    with pytest.raises(UsageError, match=says):
        changes(Dataset(mini.store), start, end)


def test_only_files_of_touched_partitions_are_read(mini, monkeypatch):
    state = {f"p{n}": row("a", n, (n, n), f"district=D{n}") for n in range(6)}
    mini.publish(state)
    mini.publish({**state, "p3": row("b", 3, (3, 3), "district=D3")})
    opened = []
    real = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda self, name: (opened.append(name), real(self, name))[1])
    changes(Dataset(mini.store), with_rows=True)
    rows_read = {name.split("/")[1] for name in opened if name.startswith("data/")}
    assert rows_read <= {"district=D3", "district=D5", "district=D0"}, "one more footer of each version may be read for its columns"


def test_a_damaged_log_is_named(mini):
    mini.publish({"p": A})
    manifest = mini.publish({"p": B})
    path = mini.store.root / manifest.changes.path
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptError, match="_changes/"):
        changes(Dataset(mini.store))


def test_a_row_that_is_not_where_the_log_says_is_an_error(mini):
    mini.publish({"p": A, "q": B})
    feed = changes(Dataset(mini.store)).touched
    version = Dataset(mini.store).version()
    assert rows_of(version, feed, Feed.partition).num_rows == 2
    elsewhere = feed.with_column(Feed.partition, pa.array(["district=D1", "district=D9"]))
    assert rows_of(version, elsewhere, Feed.partition).num_rows == 2, "a partition more or less: the key decides"
    for wrong in (
        feed.with_column(Feed.key, pa.array([b"sp", b"sz"])),
        feed.with_column(Feed.partition, pa.array(["district=D9"] * 2)),
    ):
        with pytest.raises(CorruptError, match="of 2 features"):
            rows_of(version, wrong, Feed.partition)


def step(*lines):
    """A change log: (key, class, digest, old_digest, partition, old_partition, labels)."""
    rows = []
    for key, kind, new, old, *labels in lines:
        rows.append(
            {
                "key": key.encode(),
                "class": kind,
                "reversed": "reversed" in labels,
                "rekeyed": "rekeyed" in labels,
                "backfilled": False,
                "attributes": "attributes" in labels,
                "geometry": "geometry" in labels or "reversed" in labels,
                "geometry_change": None,
                "fields": None,
                "digest": new and new.encode() * 16,
                "old_digest": old and old.encode() * 16,
                "partition": new and "P",
                "old_partition": old and "P",
            }
        )
    return Feed(pa.Table.from_pylist(rows, Feed.schema))


def test_labels_fold():
    turned = step(("k", "changed", "2", "1", "reversed"))
    turned_again = step(("k", "changed", "1", "2", "reversed"))
    edited = step(("k", "changed", "3", "2", "attributes"))
    assert fold([turned]).reversed.to_pylist() == [True]
    assert len(fold([turned, turned_again])) == 0
    assert fold([turned, edited]).reversed.to_pylist() == [False]

    out, back = step(("a", "removed", None, "1", "rekeyed"), ("b", "added", "1", None, "rekeyed")), step(("c", "added", "9", None))
    assert fold([out, back]).table.select(["key", "rekeyed"]).to_pylist() == [
        {"key": b"a", "rekeyed": True},
        {"key": b"b", "rekeyed": True},
        {"key": b"c", "rekeyed": False},
    ]
    edited = step(("b", "changed", "2", "1", "attributes"))
    assert fold([out, edited]).rekeyed.to_pylist() == [False, False], "no longer the same content"
    late = fold([step(("a", "removed", None, "1")), step(("b", "added", "1", None))])
    assert late.rekeyed.to_pylist() == [True, True], "a pair that only the two steps together show"
    twice = fold([step(("a", "removed", None, "1")), step(("b", "added", "1", None), ("c", "added", "1", None))])
    assert twice.rekeyed.to_pylist() == [False, False, False], "not unique on both sides"


def test_reprocessed_stays_apart_from_changed():
    again = step(("k", "reprocessed", "2", "1"))
    edited = step(("k", "changed", "3", "2", "attributes"))
    assert fold([again]).kind.to_pylist() == ["reprocessed"]
    assert fold([again, step(("k", "reprocessed", "4", "2"))]).kind.to_pylist() == ["reprocessed"]
    assert fold([again, edited]).kind.to_pylist() == ["changed"]


def test_folding_nothing_gives_the_schema():
    assert fold([]).table.schema.equals(Feed.schema)
    assert fold([Feed.empty()] * 2).table.schema.equals(Feed.schema)
    assert fold([step(("k", "added", "1", None))]).table.schema.equals(Feed.schema)


def test_many_steps_over_many_keys_fold_to_one_row_each():
    rng = np.random.default_rng(7)
    keys = [f"{n:06d}" for n in range(20_000)]
    logs = [step(*((key, "changed", "2", "1", "attributes") for key in rng.choice(keys, 2_000, replace=False))) for _ in range(5)]
    assert len(fold(logs)) == len({key for log in logs for key in log.key.to_pylist()})
