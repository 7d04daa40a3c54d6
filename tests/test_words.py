"""Numbers, lists and names as a person reads them."""

import pytest

from merestone.words import called, distance, duration, listed, percent, size, visible


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_600, "1.0 MB"),
        (48e6, "48 MB"),
        (3e15, "3000 TB"),
    ],
)
def test_sizes_are_decimal(number, words):
    assert size(int(number)) == words


@pytest.mark.parametrize(("seconds", "words"), [(0.04, "0.0 s"), (0.42, "0.4 s"), (0.97, "1 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s")])
def test_durations_stay_short(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(("value", "words"), [(0.0, "0 m"), (2.414, "2.41 m"), (1234.5, "1,234.50 m"), (0.0000123, "0.000012 m")])
def test_distances_keep_two_digits(value, words):
    assert distance(value, "m") == words


@pytest.mark.parametrize(("share", "words"), [(0.99996, "99.9 %"), (1.0, "100 %"), (0.013, "1.3 %"), (float("inf"), "infinitely many %")])
def test_a_share_is_never_all_unless_it_is(share, words):
    assert percent(share) == words


def test_a_list_says_how_many_more_there_are():
    assert listed(["a"], 1) == "a"
    assert listed(["a", "b", "c"], 3) == "a, b and c"
    assert listed(["a", "b"], 1_002) == "a, b and 1,000 more"


def test_what_a_terminal_would_obey_is_escaped():
    assert visible("a\x1b[2Jb\u2028") == "a\\x1b[2Jb\\u2028"


@pytest.mark.parametrize(
    ("key", "row", "words"), [("g2", 1, "g2"), ("49", 1, "key 49"), ("-7", 1, "key -7"), ("105-6", 1, "105-6"), (None, 3, "row 3")]
)
def test_a_key_that_is_a_number_is_not_read_as_a_count(key, row, words):
    assert called(key, row) == words


@pytest.mark.parametrize(("value", "said"), [(1.0, "1.00 degree"), (0.25, "0.25 degrees"), (0.0, "0 degrees"), (2.0, "2.00 degrees")])
def test_degrees_are_one_or_many(value, said):
    assert distance(value, "degree") == said
