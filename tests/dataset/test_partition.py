"""Places and names of partitions."""

from __future__ import annotations

from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from merestone.dataset.partition import (
    NAME_LIMIT,
    NO_POSITION,
    Leaf,
    Partitions,
    build_tree,
    encode_value,
    leaf_names,
    place,
    tree_from_table,
    tree_to_table,
)

coordinates = st.one_of(st.floats(-180, 180, width=32), st.just(float("nan")), st.just(1.5))
centres = st.integers(0, 200).flatmap(lambda n: arrays(np.float64, (n, 2), elements=coordinates))


@given(centres, st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_tree_does_not_depend_on_the_order_of_rows(points, target, random):
    order = list(range(len(points)))
    random.shuffle(order)
    assert build_tree(points, target, len(points)) == build_tree(points[order], target, len(points))


@given(centres, st.integers(1, 40))
def test_every_feature_has_one_place_and_leaves_are_small_unless_points_coincide(points, target):
    tree = build_tree(points, target, int((~np.isnan(points).any(axis=1)).sum()))
    codes = place(tree, points)
    names = leaf_names(tree)
    assert len(set(names)) == len(names)
    assert names[-1] == NO_POSITION
    assert ((codes == len(names) - 1) == np.isnan(points).any(axis=1)).all()
    for code in range(len(names) - 1):
        here = points[codes == code]
        assert len(here) <= target or len(np.unique(here, axis=0)) == 1


def test_a_tree_survives_its_json():
    points = np.random.default_rng(1).random((1000, 2))
    tree = build_tree(points, 100, 1000)
    assert tree_from_table(tree_to_table(tree)) == tree
    assert tree_from_table(tree_to_table(Leaf())) == Leaf()


def test_a_sample_stands_for_the_whole():
    points = np.random.default_rng(1).random((1000, 2))
    assert len(leaf_names(build_tree(points, 1000, 8000))) == 8 + 1


AWKWARD = [
    "",
    ".",
    "..",
    "/abs",
    "a/b",
    "a%2Fb",
    "a b",
    " a",
    "a ",
    "a.",
    "%",
    "=",
    "x=y",
    "NULL",
    "null",
    "__HIVE_DEFAULT_PARTITION__",
    "con",
    "nul.txt",
    "Å",
    "ÅÄ",
    "01",
    "1",
    "north",
    "North",
    "NORTH",
    "a\\b",
    "a:b",
    "é" * 300,
    "x" * 300,
    "\n",
    "\0",
]


def test_values_that_are_not_made_for_paths_get_names_of_their_own():
    table = Partitions("district")
    table.of_values([None, *AWKWARD])
    names = table.names()
    assert len({name.lower() for name in names}) == len(AWKWARD) + 1
    for name in names:
        component = name.removeprefix("district=")
        assert name.startswith("district=")
        assert "/" not in component
        assert "\\" not in component
        assert ":" not in component
        assert component not in {".", ".."}
        assert len(component.encode()) <= NAME_LIMIT
        assert component.isascii()
    assert table.values_of(names) == dict(zip(names, [None, *AWKWARD], strict=True))


@given(st.text(max_size=40))
def test_a_name_decodes_once_to_its_value(value):
    name = encode_value(value)
    if value and "%~" not in name:
        assert unquote(name) == value


@given(st.text(max_size=5), st.text(max_size=5))
def test_different_values_have_different_names(left, right):
    assert (encode_value(left) == encode_value(right)) == (left == right)


def test_usual_values_read_as_themselves():
    assert [encode_value(each) for each in ("D0001", "north", "0301", None)] == ["D0001", "north", "0301", "__HIVE_DEFAULT_PARTITION__"]


def test_names_do_not_depend_on_the_order_of_rows():
    one, other = Partitions("d"), Partitions("d")
    one.of_values(["a", "A", "b"])
    other.of_values(["b", "A", "a"])
    assert one.values_of(one.names()) == other.values_of(other.names())


def test_a_value_keeps_the_name_that_it_was_published_under():
    first = Partitions("d")
    first.of_values(["a"])
    later = Partitions("d", first.values_of(first.names()).items())
    later.of_values(["A"])
    assert later.values_of(later.names())["d=a"] == "a"


@pytest.mark.parametrize("names", [[], ["", "cell=0", ""]])
def test_codes_of_names_are_stable(names):
    table = Partitions(None)
    first = table.of_names(names)
    assert (table.of_names(names) == first).all()
    assert [table.names()[code] for code in first] == names
