"""What pass 1 does the quick way for rows that are alike, against the plain way of doing it."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from merestone.dataset.partition import Partitions
from merestone.line.preparing.placement import codes_of
from merestone.line.receiving.row_places import middles
from merestone.source import geo_metadata

texts = st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b", "e\u0301", "\u00e9"]), st.text(max_size=3)), max_size=12)


@given(st.lists(texts, max_size=5), st.booleans())
def test_codes_of_partition_values_are_those_of_one_value_after_the_other(batches, numbered):
    quick, plain = Partitions("district"), Partitions("district")
    for batch in batches:
        values = pa.array([len(each) if each is not None else None for each in batch]) if numbered else pa.array(batch, pa.string())
        if pa.types.is_null(values.type):
            continue
        asked = [None if each is None else str(each) for each in values.to_pylist()]
        folded = ["\u00e9" if each == "e\u0301" else each for each in asked]
        # NFC of other texts is left to the tests of columnar.unicode.
        if all(each is None or each.isascii() or each == "\u00e9" for each in folded):
            assert codes_of(quick, values).tolist() == plain.of_values(folded).tolist()
    assert quick.names() == plain.names()


ends = st.one_of(st.floats(-1e6, 1e6), st.just(float("nan")), st.just(float("inf")))


@given(st.lists(st.tuples(ends, ends, ends, ends), max_size=8))
def test_a_box_that_is_not_finite_has_no_middle(boxes):
    bounds = np.array(boxes, np.float64).reshape(-1, 4)
    wanted = [[(a + c) / 2, (b + d) / 2] if np.isfinite([a, b, c, d]).all() else [np.nan] * 2 for a, b, c, d in boxes]
    assert np.array_equal(middles(bounds), np.array(wanted).reshape(-1, 2), equal_nan=True)


def point(little, code, srid):
    order = "<" if little else ">"
    return (
        struct.pack(f"{order}bI", little, code)
        + (struct.pack(f"{order}I", srid) if srid is not None else b"")
        + struct.pack(f"{order}2d", 1, 2)
    )


heads = st.tuples(st.sampled_from([1, 0]), st.sampled_from([1, 2, 1001, 0x80000001]), st.just(None)) | st.tuples(
    st.sampled_from([1, 0]), st.just(0x20000001), st.integers(0, 3)
)


@given(
    st.one_of(st.lists(st.one_of(heads, st.none()), max_size=6), st.tuples(heads, st.integers(1, 5)).map(lambda one: [one[0]] * one[1])),
    st.integers(0, 2),
)
def test_types_and_marks_of_wkb_are_those_of_each_value(rows, skipped):
    values = [None if row is None else point(*row) for row in rows]
    array = pa.array([b"?"] * skipped + values, pa.binary())[skipped:]
    codes, marked, srids = geo_metadata._heads(array)
    kept = array.to_pylist()
    said = [struct.unpack("<I" if each[0] else ">I", each[1:5])[0] for each in kept if each is not None and len(each) >= 5]
    assert {*codes.tolist()} == {(code & 0x0FFFFFFF) + 1000 * ((code >> 31) + 2 * (code >> 30 & 1)) for code in said}
    wanted = [
        (at, struct.unpack("<I" if each[0] else ">I", each[5:9])[0])
        for at, each in enumerate(kept)
        if each is not None and len(each) >= 9 and struct.unpack("<I" if each[0] else ">I", each[1:5])[0] >> 29 & 1
    ]
    assert list(zip(marked.tolist(), srids.tolist(), strict=True)) == [pair for pair in wanted if pair[1]]
