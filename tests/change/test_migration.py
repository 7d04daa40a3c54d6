"""Which features only got another key: pairs by content or by a table, and what is left to be a change."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from merestone.change.migration import Side, by_content, by_table


def side(features):
    """Features {key: content} as columns."""
    pairs = list(features.items())
    return Side(*(np.array([(0, pair[place]) for pair in pairs], np.uint64).reshape(-1, 2) for place in (0, 1)))


def keys(values):
    return np.array([(0, value) for value in values], np.uint64).reshape(-1, 2)


def test_content_pairs_features_under_two_keys():
    found = by_content(side({1: 10, 2: 20, 3: 30}), side({101: 20, 102: 10, 103: 99}))
    assert (found.before.tolist(), found.edited, found.left) == ([0, 1], 0, 2)  # 3 went, 103 came


def test_content_that_stands_twice_pairs_nothing():
    assert by_content(side({1: 10, 2: 10}), side({3: 10})).left == 3
    assert by_content(side({1: 10}), side({3: 10, 4: 10})).left == 3


def test_a_key_that_keeps_its_content_is_no_pair():
    assert len(by_content(side({1: 10}), side({1: 10})).before) == 0


def test_keys_that_were_handed_out_anew_leave_the_real_edits_only():
    before, after = side({1: 10, 2: 20, 3: 30}), side({1: 20, 2: 30, 3: 11})
    found = by_content(before, after)
    assert (len(found.before), found.left) == (2, 2)  # content 10 went (key 1), content 11 came (key 3)


def test_a_table_pairs_whatever_the_content():
    found = by_table((keys([1, 2, 9]), keys([101, 102, 109])), side({1: 10, 2: 20, 3: 30}), side({101: 10, 102: 21, 104: 40}))
    assert (found.before.tolist(), found.edited, found.left) == ([0, 1], 1, 3)  # 2 was edited, 3 went, 104 came


def test_a_table_says_nothing_of_keys_that_are_not_touched():
    found = by_table((keys([1, 5]), keys([101, 105])), side({1: 10}), side({102: 10}))
    assert (len(found.before), found.left) == (0, 2)
    assert by_table((keys([]), keys([])), side({}), side({})).left == 0


states = st.dictionaries(st.integers(0, 8), st.integers(0, 5), max_size=8)


@given(before=states, after=states)
def test_against_a_plain_model(before, after):
    counts = [Counter(each.values()) for each in (before, after)]
    place = {content: key for key, content in before.items() if counts[0][content] == 1}
    pairs = {(place[content], key) for key, content in after.items() if counts[1][content] == 1 and place.get(content, key) != key}
    left = {key for key in before if key not in {old for old, _ in pairs}} | {key for key in after if key not in {new for _, new in pairs}}
    found = by_content(side(before), side(after))
    assert (len(found.before), found.edited, found.left) == (len(pairs), 0, len(left))
