"""Rows met again by their hash: both paths against a plain dictionary, in any order of the delivery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import PATHS, on
from merestone.columnar.entries import Apart, Entries
from merestone.columnar.lookup import AGAIN, DEAD, SAME, Lookup, among


def hash_of(key, few):
    """Two halves; of few first halves where prefixes shall collide."""
    first = (key * 0x9E3779B97F4A7C15 + 7) % 2**64
    return (first % few if few else first, (key * 0xC2B2AE3D27D4EB4F + 3) % 2**64)


def halves(keys, few):
    return np.array([hash_of(key, few) for key in keys], np.uint64).reshape(-1, 2)


def digests(values):
    return np.array([(value, ~value % 2**64) for value in values], np.uint64).reshape(-1, 2)


def entries_of(rows, few, shift=2):
    """Entries of (key, value, code), at places that are not aligned, in groups of four."""
    data, starts = bytearray(b"PAR1."), []
    for start in range(0, len(rows), 1 << shift):
        part = rows[start : start + (1 << shift)]
        columns = (
            halves([row[0] for row in part], few).astype(">u8").tobytes(),
            digests([row[1] for row in part]).astype(">u8").tobytes(),
            np.array([row[2] for row in part], "<i4").tobytes(),
        )
        starts.append([])
        for column in columns:
            starts[-1].append(len(data))
            data += column + b"."
    laid = np.array(starts, np.int64).reshape(-1, 3).T.copy()
    groups = laid.shape[1]
    return Entries(bytes(data), laid, shift, len(rows), lambda _: None, np.zeros(groups, np.uint8))


@dataclass
class Night:
    """A last delivery, what came after it (None: removed), and the next one in batches of (key, value)."""

    rows: list
    later: dict
    delivery: list


@st.composite
def nights(draw):
    keys = draw(st.lists(st.integers(0, 200), unique=True, max_size=80))
    rows = [(key, key % 5, key % 3) for key in keys]
    later = draw(st.dictionaries(st.integers(0, 210), st.one_of(st.none(), st.integers(0, 5)), max_size=12))
    alive = [key for key in [*keys, *(set(later) - set(keys))] if later.get(key, 0) is not None]
    how = draw(st.sampled_from(["same", "shuffled", "blocks"]))
    if how == "shuffled":
        alive = draw(st.permutations(alive))
    if how == "blocks":
        at, to = draw(st.integers(0, 60)), draw(st.integers(0, 60))
        block, rest = alive[at : at + 10], alive[:at] + alive[at + 10 :]
        alive = rest[:to] + block + rest[to:]
    out = draw(st.sets(st.sampled_from(alive), max_size=5)) if alive else set()
    delivered = [key for key in alive if key not in out]
    for key in draw(st.lists(st.integers(0, 260), max_size=6)):
        delivered.insert(draw(st.integers(0, len(delivered))), key)
    edited = draw(st.sets(st.sampled_from(delivered), max_size=5)) if delivered else set()
    values = [(key, 9 if key in edited else (later.get(key) if later.get(key) is not None else key % 5)) for key in delivered]
    size = draw(st.integers(1, 40))
    return Night(rows, later, [values[at : at + size] for at in range(0, len(values), size)])


def looked_up(night, few):
    """A Lookup over the night's rows, and the slots of every key that is alive."""
    entries, base = entries_of(night.rows, few), len(night.rows)
    slots = {key: at for at, (key, _, _) in enumerate(night.rows)}
    state = np.zeros(base + len(night.later), np.uint8)
    names = sorted(night.later, key=lambda key: hash_of(key, few))
    was = among(entries, halves(names, few))
    assert was.tolist() == [slots.get(key, -1) for key in names]
    state[was[was >= 0]] = DEAD
    apart, content = [], {key: (value, code) for key, value, code in night.rows}
    for at, key in enumerate(night.later):
        slots.pop(key, None)
        content.pop(key, None)
        if night.later[key] is None:
            state[base + at] = DEAD
        else:
            slots[key], content[key] = base + at, (night.later[key], 7)
            apart.append(key)
    apart.sort(key=lambda key: hash_of(key, few))
    beside = Apart(
        halves(apart, few),
        np.array([slots[key] for key in apart], np.int32),
        digests([content[key][0] for key in apart]),
        np.array([content[key][1] for key in apart], np.int32),
    )
    return Lookup(entries, beside, state), slots, content


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("few", [0, 3])
@given(night=nights(), asks=st.booleans())
@settings(deadline=None, max_examples=120)
def test_every_row_is_found_as_a_dictionary_finds_it(path, few, night, asks):
    with on(path):
        lookup, slots, content = looked_up(night, few)
        claimed, known = set(), 0
        for batch in night.delivery:
            keys = [key for key, _ in batch]
            if asks:
                assert lookup.seek(halves(keys, few)).tolist() == [slots.get(key, -1) for key in keys]
            slot, code, flags = lookup.meet(halves(keys, few), digests([value for _, value in batch]))
            for (key, value), at, place, said in zip(batch, slot.tolist(), code.tolist(), flags.tolist(), strict=True):
                assert at == slots.get(key, -1)
                assert place == (content[key][1] if key in content else -1)
                assert bool(said & SAME) == (key in content and content[key][0] == value)
                assert bool(said & AGAIN) == (at >= 0 and at in claimed)
                claimed.add(at)
                known += at >= 0
        assert lookup.met + lookup.searched == known
        assert {*np.flatnonzero(lookup.state == 0).tolist()} == {*slots.values()} - claimed


@pytest.mark.parametrize("path", PATHS)
def test_a_delivery_in_order_needs_no_search(path):
    rows = [(key, 1, 0) for key in range(400)]
    with on(path):
        lookup = Lookup(entries_of(rows, 0), Apart.nothing(), np.zeros(400, np.uint8))
        left = [key for key in range(400) if key not in (5, 6, 7, 100)]
        for start in range(0, 396, 50):
            keys = left[start : start + 50]
            assert (lookup.meet(halves(keys, 0), digests([1] * len(keys)))[2] == SAME).all()
        assert (lookup.met, lookup.searched, lookup.has_table) == (396, 0, False)


@pytest.mark.parametrize("path", PATHS)
def test_a_block_that_moved_costs_one_search(path):
    rows = [(key, 1, 0) for key in range(400)]
    with on(path):
        lookup = Lookup(entries_of(rows, 0), Apart.nothing(), np.zeros(400, np.uint8))
        keys = [*range(100), *range(200, 300), *range(100, 200), *range(300, 400)]
        lookup.meet(halves(keys, 0), digests([1] * 400))
        assert (lookup.met, lookup.searched) == (399, 1)


@pytest.mark.parametrize("path", PATHS)
def test_no_group_is_read_before_it_is_proven(path):
    rows, asked = [(key, 1, 0) for key in range(40)], []
    entries = entries_of(rows, 0)
    entries.prove_group = asked.append
    with on(path):
        lookup = Lookup(entries, Apart.nothing(), np.zeros(40, np.uint8))
        lookup.meet(halves(range(6), 0), digests([1] * 6))
        assert set(asked) >= {0, 1}
        before = len(asked)
        lookup.meet(halves([39, 3], 0), digests([1] * 2))
        assert sorted(asked) == list(range(10)), "each of them once"
        assert before < 10


@pytest.mark.skipif("compiled" not in PATHS, reason="no compiler when this was installed")
def test_entries_that_reach_out_of_their_bytes_are_refused():
    entries = entries_of([(key, 1, 0) for key in range(9)], 0)
    entries.starts[0, 2] = len(entries.data) - 3
    with on("compiled"), pytest.raises(ValueError, match="reach out"):
        Lookup(entries, Apart.nothing(), np.zeros(9, np.uint8)).meet(halves([1], 0), None)
