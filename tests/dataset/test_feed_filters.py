"""A filtered feed is the difference of the two filtered versions; conditions are data, whatever is written in them."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point, box, to_wkb

from dataset.build import Miniature, digest_of, key_bytes, row
from merestone.dataset.feed import changes
from merestone.dataset.filter import Condition, Filter, check, filtered, parse_where
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from stores import fresh

ROWS = st.builds(
    row,
    name=st.sampled_from(["a", "b", None]),
    rank=st.sampled_from([1, 5, None]),
    at=st.sampled_from([(0, 0), (3, 4), None]),
    partition=st.sampled_from(["district=D1", "district=D2"]),
)
STATES = st.dictionaries(st.sampled_from(["p1", "p2", "p3", "p4", "é"]), ROWS)
# The filter, and the same said in Python of (name, rank, geometry, partition).
FILTERS = {
    "bbox": (Filter(bbox=(-1, -1, 1, 1)), lambda r: r[2] is not None and r[2].within(box(-1, -1, 1, 1))),
    "area": (Filter(area=box(2, 2, 5, 5)), lambda r: r[2] is not None and r[2].within(box(2, 2, 5, 5))),
    "where": (Filter(where=parse_where("name = 'a' and rank >= 2")), lambda r: r[0] == "a" and r[1] is not None and r[1] >= 2),
    "null": (Filter(where=parse_where("rank is null")), lambda r: r[1] is None),
    "all": (
        Filter(bbox=(-1, -1, 9, 9), area=box(-1, -1, 1, 1), where=parse_where("name is not null")),
        lambda r: r[2] is not None and r[2].x < 1 and r[0] is not None,
    ),
    "nothing": (Filter(where=parse_where("name = 'nobody'")), lambda _: False),
}


def difference(before, after):
    """The classes of two states, as the specification words them."""
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


@settings(max_examples=80, deadline=None)
@given(states=st.lists(STATES, min_size=2, max_size=4), name=st.sampled_from(sorted(FILTERS)), data=st.data())
def test_a_filtered_feed_is_the_difference_of_the_filtered_versions(states, name, data):
    wanted, meant = FILTERS[name]
    mini = Miniature(fresh())
    for state in states:
        mini.publish(state)
    start = data.draw(st.integers(0, len(states)))
    end = data.draw(st.integers(max(start, 1), len(states)))
    found = filtered(changes(Dataset(mini.store), start, end, with_rows=True), wanted, "geometry")
    before, after = (
        {pid: each for pid, each in state.items() if meant(each)} for state in ({} if start == 0 else states[start - 1], states[end - 1])
    )
    columns = [found.table.column(each).to_pylist() for each in ("key", "class", "digest", "old_digest", "partition", "old_partition")]
    assert {each[0]: tuple(each[1:]) for each in zip(*columns, strict=True)} == difference(before, after)

    pids = [key.decode()[1:] for key in columns[0]]
    there, here = (np.asarray(each.combine_chunks()).astype(bool) for each in (found.touched.had, found.touched.has))
    assert found.key.column("pid").to_pylist() == pids
    if start:
        assert found.before.column("pid").to_pylist() == [pid for pid, flag in zip(pids, there, strict=True) if flag]
    assert found.after.column("pid").to_pylist() == [pid for pid, flag in zip(pids, here, strict=True) if flag]
    for each in found.table.to_pylist():
        if each["class"] != "changed":
            assert not each["attributes"]
            assert not each["geometry"]
            assert (each["fields"], each["geometry_change"]) == (None, None)


def test_who_leaves_the_filter_and_who_comes_in_are_told_so():
    mini = Miniature(fresh())
    mini.publish({"out": row("a", 1, (0, 0)), "in": row("a", 1, (9, 9)), "stay": row("a", 1, (0, 0)), "far": row("a", 1, (9, 9))})
    mini.publish({"out": row("a", 1, (9, 9)), "in": row("a", 1, (0, 0)), "stay": row("b", 1, (0, 0)), "far": row("b", 1, (9, 9))})
    found = filtered(changes(Dataset(mini.store), with_rows=True), Filter(bbox=(-1, -1, 1, 1)), "geometry").table
    told = dict(zip((key.decode()[1:] for key in found.column("key").to_pylist()), found.column("class").to_pylist(), strict=True))
    assert told == {"out": "removed", "in": "added", "stay": "changed"}
    # They hold one content before and after, so that within the filter it looks as if a key had been exchanged.
    assert [each["rekeyed"] for each in found.to_pylist()] == [True, True, False]


TABLE = pa.table(
    {
        "name": ["a", "Müller's", None],
        "n": pa.array([1, 2**60 + 1, None]),
        "x": [0.5, 2.0, None],
        "d": pa.array([Decimal("1.10"), Decimal(-2), None]),
        "on": pa.array([date(2026, 3, 1), date(2026, 3, 2), None]),
        "at": pa.array([datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC), None]),
        "t": pa.array([time(9), time(17), None]),
        "yes": [True, False, None],
        'a "b" and c': ["1", "2", None],
        "geometry": pa.array([to_wkb(Point(0, 0)), to_wkb(Point()), None], pa.binary()),
    }
)


@pytest.mark.parametrize(("text", "rows"), [
    ("name = 'a'", [0]), ("name = 'Müller''s'", [1]), ("name = 'Mu\u0308ller''s'", [1]), ("name != 'a'", [1]), ("NAME = 'a'", None),
    ("name > 'N'", [0]), ("n = 1152921504606846977", [1]), ("n < 1.5", [0]), ("n = 1.0", [0]), ("n <> 1", [1]), ("n >= -1", [0, 1]),
    ("x >= 2", [1]), ("x = .5", [0]), ("x < 1e3", [0, 1]), ("d = 1.1", [0]), ("d < 0", [1]), ("d = 1.100", [0]), ("on > '2026-03-01'", [1]),
    ("at = '2026-03-01T12:00:00Z'", [0]), ("at >= '2026-03-02T01:00:00+01:00'", [1]), ("t < '12:00:00'", [0]), ("yes = true", [0]),
    ("yes = FALSE", [1]), ("name is null", [2]), ("name IS NOT NULL and n is not null AND x<1", [0]), ("\"a \"\"b\"\" and c\" = '2'", [1]),
    ("name = 1", None), ("n = 'a'", None), ("n = true", None), ("on = 'soon'", None), ("geometry = 'x'", None), ("yes = 1", None),
    ("nothing = 1", None), (f"x < {10**400}", [0, 1]),
])  # fmt: skip
def test_conditions_mean_what_they_say(text, rows):
    wanted = Filter(where=parse_where(text))
    if rows is None:
        with pytest.raises(UsageError) as refused:
            check(wanted, TABLE.schema)
        assert refused.value.field == "where"
    else:
        check(wanted, TABLE.schema)
        assert np.flatnonzero(wanted.matches(TABLE, "geometry")).tolist() == rows


@pytest.mark.parametrize("text", [
    "", "name", "name =", "= 'a'", "name = 'a", "name = a", "name = 'a' or n = 1", "name = 'a' and", "name = 'a'; drop table x", "name is",
    "name is not", "name is 'null'", "name is not 1", "name == 'a'", "name = 'a' n = 1", "1 = 1", 'name = "a"', "name like 'a%'", "(n = 1)",
    "n = 1--", "n = 1a", "name = 'a'/**/", "n = 1 and and n = 2",
])  # fmt: skip
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UsageError) as refused:
        parse_where(text)
    assert refused.value.field == "where"


@pytest.mark.parametrize(("text", "words", "hint"), [
    ("", "no condition is given", "owner = 'Müller'"),
    ("name", "end where an operator belongs (=, !=, <, <=, >, >=, is null, is not null), after: name", "owner"),
    ("name = 'a' or n = 1", "`or` stands where `and` belongs, in: name = 'a' or n = 1", "ask twice"),
    ("name = a", "`a` stands where a value belongs; text stands in single quotes", "owner"),
    ('name = "a"', '`"a"` stands where a value belongs; text stands in single quotes', "owner"),
    ("name like 'a%'", "`like` stands where an operator belongs", "range"),
    ("name = 'a", "a single quote that is not closed: 'a", "owner"),
    ("name is 1", "`1` stands where `null` belongs", "owner"),
    ("name = 'a' and " + "x" * 500, "...", "owner"),
])  # fmt: skip
def test_what_is_wrong_with_a_condition_is_said_plainly(text, words, hint):
    with pytest.raises(UsageError) as refused:
        parse_where(text)
    assert words in refused.value.message
    assert hint in refused.value.hint
    assert len(refused.value.message) < 250


@pytest.mark.parametrize(("text", "words", "hint"), [
    ("name = 1", "name holds text and cannot be compared with the number 1", "single quotes"),
    ("n = 'a'", "n holds integers and cannot be compared with the text 'a'", "without quotes"),
    ("yes = 1", "yes holds true and false and cannot be compared with the number 1", "true or false"),
    ("on = 'soon'", "on holds dates and cannot be compared with the text 'soon'", "'2026-03-01'"),
    ("geometry = 'x'", "geometry holds values of type binary", "is null"),
    ("nothing = 1", "the dataset has no column nothing", "name, n, x"),
    (f"n = {'1' * 5000}", "n holds integers and cannot be compared with the number 111", "without quotes"),
    (f"d = {'1' * 5000}", "d holds decimals", "without quotes"),
])  # fmt: skip
def test_a_value_that_a_column_cannot_hold_is_said_plainly(text, words, hint):
    with pytest.raises(UsageError) as refused:
        check(Filter(where=parse_where(text)), TABLE.schema)
    assert words in refused.value.message
    assert hint in refused.value.hint
    assert len(refused.value.message) < 250


@given(name=st.text(min_size=1), value=st.text())
def test_any_name_and_any_text_are_data(name, value):
    quoted, text = name.replace('"', '""'), value.replace("'", "''")
    assert parse_where(f"\"{quoted}\" = '{text}'") == (Condition(name, "=", value),)


def test_a_column_that_does_not_count_filters_no_feed():
    with pytest.raises(UsageError, match="name is volatile"):
        check(Filter(where=parse_where("name = 'a'")), TABLE.schema, {"name"})


@pytest.mark.parametrize(("wanted", "reach"), [
    (Filter(), None), (Filter(bbox=(0, 0, 1, 1)), (0, 0, 1, 1)), (Filter(area=box(1, 2, 3, 4)), (1, 2, 3, 4)),
    (Filter(bbox=(0, 0, 2, 3), area=box(1, 2, 3, 4)), (1, 2, 2, 3)), (Filter(bbox=(0, 0, 1, 1), area=box(5, 5, 6, 6)), (0, 0, 1, 1)),
])  # fmt: skip
def test_the_reach_holds_every_wanted_feature(wanted, reach):
    assert wanted.reach == reach
