"""Offsets and codes outside their data are corruption, on both paths and in every question: never an empty value, never a read beyond the end."""

from __future__ import annotations

import importlib

import numpy as np
import pyarrow as pa
import pytest
import shapely

from kernels import PATHS
from merestone.columnar import hashing
from merestone.columnar.hashed_values import HashedColumn, JoinedText
from merestone.errors import CorruptError
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

WKB = shapely.to_wkb(shapely.Point(1, 2))
# Offsets of three values in data of three points (63 bytes): good ones, and each way to be wrong.
GOOD = [0, 21, 42, 63]
BAD = {
    "beyond the data": [0, 21, 42, 64],
    "going back": [0, 42, 21, 63],
    "below zero": [-1, 21, 42, 63],
    "a driver's nulls": [0, 21, 0, 21],
}

pytestmark = pytest.mark.usefixtures("each_kernel")


def with_offsets(offsets, kind, good, buffers, children=None):
    """An array whose offsets went wrong after it was made: pyarrow refuses some of them when it makes one."""
    memory = np.array(good, np.int64 if "large" in str(kind) else np.int32)
    made = pa.Array.from_buffers(kind, len(good) - 1, [None, pa.py_buffer(memory), *buffers], children=children)
    memory[:] = offsets
    return made


def binary(offsets, kind):
    return with_offsets(offsets, kind, GOOD, [pa.py_buffer(WKB * 3)])


QUESTIONS = {
    "scan": kernel.scan,
    "decimals": kernel.decimals,
    "measures": kernel.measures,
    "valid": kernel.valid,
    "shapes": kernel.shapes,
    "encode": lambda wkb: kernel.encode(wkb, Grid(2), Shape()),
    "canonical": lambda wkb: kernel.canonical(wkb, Grid(2), Shape()),
    "coordinates": kernel.coordinates,
    "with_coordinates": lambda wkb: kernel.with_coordinates(wkb, np.zeros((3, 2))),
    "largest_move": lambda wkb: kernel.largest_move(wkb, wkb),
    "within": lambda wkb: kernel.within(wkb, wkb, 1.0),
    "digest of geometry": lambda wkb: kernel.digest([], wkb, Grid(2), Shape(), 3),
    "digest of a column": lambda wkb: kernel.digest([HashedColumn(b"x", "x", wkb)], None, Grid(2), Shape(), 3),
    "attributes": lambda wkb: hashing.attributes([HashedColumn(b"x", "x", wkb)], 3),
    "elements": lambda wkb: hashing.elements(HashedColumn(b"x", "x", wkb)),
    "blake2b16": hashing.blake2b16,
    "joined": lambda wkb: hashing.joined([b"k", wkb], 3),
    "hashed": lambda wkb: hashing.hashed([JoinedText(b"k", wkb)], 3, 32),
}


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_bad_offsets_stop_every_question(question, kind):
    QUESTIONS[question](binary(GOOD, kind))
    for offsets in BAD.values():
        with pytest.raises(CorruptError, match="does not hold together"):
            QUESTIONS[question](binary(offsets, kind))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("offsets", BAD.values(), ids=BAD)
def test_bad_offsets_of_text_stop_a_digest(offsets, kind):
    with pytest.raises(CorruptError):
        kernel.digest([HashedColumn(b"t", "s", binary(offsets, kind))], None, Grid(2), Shape(), 3)


def test_bad_offsets_of_a_list_stop_a_digest():
    elements = pa.array([b"i"] * 4, pa.binary())
    for offsets in ([0, 2, 1, 4], [0, 2, 3, 5], [-1, 2, 3, 4]):
        framed = with_offsets(offsets, pa.list_(pa.null()), [0, 1, 2, 4], [], children=[pa.nulls(4)])
        with pytest.raises(CorruptError):
            kernel.digest([HashedColumn(b"l", "l", framed, elements)], None, Grid(2), Shape(), 3)


@pytest.mark.parametrize("codes", [[0, 1, 2], [0, -1, 1]])
def test_codes_outside_their_dictionary_stop_a_hash(codes):
    array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(["a", "b"]), safe=False)
    for piece in (array, JoinedText(b"k", array)):
        with pytest.raises(CorruptError):
            hashing.hashed([piece], 3, 16)


@pytest.mark.skipif("compiled" not in PATHS, reason="the extensions are not built here")
@pytest.mark.parametrize("offsets", BAD.values(), ids=BAD)
def test_the_extensions_trust_nobody(offsets):
    """C checks for itself, whoever calls it."""
    array = binary(offsets, pa.binary())
    given = (5, ord("x"), b"", None, array.buffers()[1], array.buffers()[2], None, 0, 4)
    out = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="outside its data"):
        importlib.import_module("merestone.columnar._hashing").elements(given, 3, out)
    with pytest.raises(ValueError, match="outside its data"):
        importlib.import_module("merestone.geometry._kernel").coordinates(given, 3)
