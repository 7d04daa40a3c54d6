from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contracts import contract
from merestone.contract.contract import GeometryClause
from merestone.gate.delivery import (
    DimensionTally,
    TwinKeys,
    _folded,
    duplicate_keys,
    edges,
    equal_groups,
    null_keys,
    twin_keys,
    unfit_keys,
)
from merestone.geometry import kernel


def test_null_keys_are_counted_and_their_rows_named():
    finding = null_keys("pid", np.array([2, 5]))
    assert finding.observed == "2 null keys (rows 2 and 5 of the file)"
    assert (finding.field, finding.rule, finding.severity, finding.per_row) == ("pid", "key_null", "error", False)
    assert [sample.row for sample in finding.features] == [2, 5]


def test_keys_that_cannot_be_read_are_no_null_keys():
    finding = unfit_keys("pid", np.array([2, 5]))
    assert (finding.field, finding.rule, finding.severity, finding.per_row) == ("pid", "key_type", "error", False)
    assert finding.observed == "2 keys that cannot be read as such (rows 2 and 5 of the file)"
    assert unfit_keys("pid", np.array([], dtype=np.int64)) is None


def test_no_null_keys_is_no_finding():
    assert null_keys("pid", np.array([], dtype=np.int64)) is None


def test_duplicate_keys_name_the_key_and_all_rows():
    rows = np.array([1, 2, 3, 4, 5, 6])
    groups = equal_groups(np.array([3, 9, 7, 1, 8, 7], dtype=np.uint64), rows)
    finding = duplicate_keys("pid", groups, ["7"])
    assert finding.observed == "key 7 twice (rows 3 and 6)"
    assert finding.count == 2


def test_many_duplicates_are_all_counted_and_the_first_named():
    values = np.repeat(np.arange(100, dtype=np.uint64), 3)
    groups = equal_groups(values, np.arange(1, 301))
    finding = duplicate_keys("pid", groups, [str(n) for n in range(20)])
    assert finding.count == 300
    assert finding.observed.startswith("key 0 3 times (rows 1, 2 and 3), ")
    assert finding.observed.endswith(" and 95 more")
    assert len(finding.features) == 20


@given(st.lists(st.integers(0, 6), max_size=40), st.booleans())
def test_equal_groups_finds_what_a_dictionary_finds(values, two_words):
    rows = np.arange(1, len(values) + 1)
    words = np.array(values, dtype=np.uint64)
    groups = equal_groups(np.column_stack([words, words % 2]) if two_words else words, rows)
    plain = {}
    for row, value in enumerate(values, start=1):
        plain.setdefault(value, []).append(row)
    assert [groups.group(n).tolist() for n in range(len(groups))] == [rows for rows in plain.values() if len(rows) > 1]


def test_twins_are_found_over_batches_and_named():
    twins = TwinKeys()
    twins.add(pa.array(["AB-9", "x"]))
    twins.add(pa.array(["AB-3", "ab-9 ", "y"]))
    assert twins.suspects().tolist() == [0, 3]
    finding = twin_keys("pid", ["AB-9", "ab-9 "], [1, 4])
    assert finding.severity == "warning"
    assert finding.observed == "'AB-9' / 'ab-9 '"


def test_twins_among_texts_that_are_not_in_question():
    twins = TwinKeys()
    twins.add(pa.array(["new 1", "NEW  2", "x", "X"]))
    assert twins.among(pa.array(["old", "New 2", None])).tolist() == [1]
    assert sorted(twins.suspects().tolist()) == [1, 2, 3]
    assert TwinKeys().among(pa.array(["a"])).tolist() == []


@pytest.mark.parametrize("pair", [("AB-1", "ab-1"), ("AB-1", " AB-1"), ("a  b", "a b"), ("A1", "\uff211"), ("\ufb01n", "fin")])
def test_keys_that_are_read_alike_are_twins(pair):
    assert twin_keys("pid", list(pair), [1, 2]) is not None


@pytest.mark.parametrize("pair", [("1", "01"), ("a", "\u0430"), ("ab", "a b"), ("\u00e9", "e")])
def test_keys_that_are_read_apart_are_none(pair):
    assert twin_keys("pid", list(pair), [1, 2]) is None


def test_twins_across_versions_are_named_in_pairs():
    finding = twin_keys("pid", ["AB-1", "AB-2", "AB-3", "AB-1 ", "ab-2"], [None, None, 3, 1, 2])
    assert finding.observed == "'AB-1' / 'AB-1 ' and 'AB-2' / 'ab-2'"


def test_suspects_are_whole_groups_within_the_limit():
    twins = TwinKeys()
    twins.add(pa.array([f"K{n // 3}" for n in range(300)]))
    assert len(twins.suspects(limit=10)) == 9


@given(st.lists(st.text(max_size=5) | st.none(), max_size=30), st.integers(0, 5))
def test_suspects_are_exactly_the_texts_with_equal_folds(texts, cut):
    array = pa.array(["pad"] * cut + texts, pa.string()).slice(cut)
    twins = TwinKeys()
    twins.add(array)
    folds = {}
    for place, fold in enumerate(_folded(array).to_pylist()):
        folds.setdefault(fold or "", []).append(place)
    assert sorted(twins.suspects().tolist()) == sorted(place for places in folds.values() if len(places) > 1 for place in places)


def test_edges_that_differ_from_the_promise_refuse():
    assert edges(contract(), "planar") is None
    finding = edges(contract(), "spherical", previous="planar")
    assert "edges planar to spherical" in finding.observed
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("promised", "found"),
    [
        ("xy", [(3, "Z and M in 3 rows, left out", "xyzm")]),
        ("xyz", [(2, "M in 2 rows, left out", "xyzm")]),
        ("xym", [(3, "Z in 3 rows, left out", "xyzm")]),
        ("xyzm", []),
    ],
)
def test_ordinates_beyond_what_is_promised_are_a_warning(promised, found):
    texts = ["POINT (1 2)", "POINT Z (1 2 3)", "POINT ZM (1 2 3 4)", "LINESTRING M (1 2 5, 3 4 5)", "POINT Z (1 2 3)", None, "POINT EMPTY"]
    scan = kernel.scan(pa.array([None if each is None else shapely.to_wkb(shapely.from_wkt(each)) for each in texts], pa.binary()))
    tally = DimensionTally(contract(geometry=GeometryClause(dimensions=promised)))
    for at in range(0, len(texts), 3):
        tally.add(scan.take(np.arange(at, min(at + 3, len(texts)))))
    findings = tally.findings()
    assert [(each.count, each.observed) for each in findings] == [each[:2] for each in found]
    assert {(each.surface, each.field, each.rule, each.severity) for each in findings} <= {("geometry", "geometry", "z_dropped", "warning")}
    assert all(f"dimensions: {delivered}" in each.remedy for each, (*_, delivered) in zip(findings, found, strict=True))
