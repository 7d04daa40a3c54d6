"""The NumPy path behind `lookup`: the same answers, slower.

Not here: the compiled path (`compiled_lookup`), the public functions and their documentation (`lookup`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from merestone.columnar.entries import CODE, DIGEST, HASH, Apart, Entries, Halves, Slots

AHEAD = 32
_MAIN, _OTHER, _MET, _SEARCHED, _WHY = range(5)
_DEAD, _CLAIMED = 1, 2
_SAME, _AGAIN = 1, 2
_NO_TABLE = 2
_STRIDE = 8192  # rows that are compared with the entries where they are expected at once
_PATIENCE = 256  # rows of a batch that are looked for one by one; the others are searched for together, and count as searched

Table = tuple[Halves, npt.NDArray[np.int64]]


def table(entries: Entries, room: Any) -> Table:  # noqa: ARG001 - the compiled path lays its buckets there
    """See `lookup.table_of`: hashes in their order, and the slots."""
    hashes = entries.stretch(HASH, 0, entries.rows)
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    return hashes[order], order


def _find(ordered: Halves, wanted: Halves) -> npt.NDArray[np.int64]:
    """The place of each wanted hash in `ordered`, -1 where it is not there; int64 (m,)."""
    out = np.full(len(wanted), -1, np.int64)
    if not len(ordered):
        return out
    at = np.searchsorted(ordered[:, 0], wanted[:, 0])
    left = np.flatnonzero(at < len(ordered))
    while len(left):  # more than one turn only where two hashes share their first half
        here = at[left]
        same = ordered[here, 0] == wanted[left, 0]
        hit = same & (ordered[here, 1] == wanted[left, 1])
        out[left[hit]] = here[hit]
        left = left[same & ~hit]
        at[left] += 1
        left = left[at[left] < len(ordered)]
    return out


def _searched(state: npt.NDArray[np.uint8], found: Table | None, hashes: Halves) -> Slots:
    """The entries alive of some hashes, -1 where there are none."""
    out = np.full(len(hashes), -1, np.int32)
    if found is None:
        return out
    at = _find(found[0], hashes)
    there = np.flatnonzero(at >= 0)
    slot = found[1][at[there]]
    alive = (state[slot] & _DEAD) == 0
    out[there[alive]] = slot[alive]
    return out


def seek(entries: Entries, apart: Apart, state: npt.NDArray[np.uint8], found: Table | None, hashes: Halves) -> Slots:  # noqa: ARG001 - as the other path
    """See `lookup.seek`."""
    out = _searched(state, found, hashes)
    at = _find(apart.hash, hashes)
    out[at >= 0] = apart.slot[at[at >= 0]]
    return out


def among(entries: Entries, wanted: Halves) -> Slots:
    """See `lookup.among`."""
    out = np.full(len(wanted), -1, np.int32)
    for group in range(entries.groups):
        hashes = np.ascontiguousarray(entries.column(HASH, group).astype(np.uint64))
        near = np.flatnonzero(np.isin(hashes[:, 0], wanted[:, 0]))
        at = _find(wanted, hashes[near])
        out[at[at >= 0]] = near[at >= 0] + (group << entries.shift)
    return out


def meet(
    entries: Entries,
    apart: Apart,
    state: npt.NDArray[np.uint8],
    found: Table | None,
    hashes: Halves,
    digests: Halves | None,
    start: int,
    out: tuple[Slots, Slots, npt.NDArray[np.uint8]],
    cursor: npt.NDArray[np.int64],
) -> int:
    """See `lookup.meet`; the row before which it stopped."""
    slots, at_apart = out[0], _find(apart.hash, hashes)
    end, patience = start, _PATIENCE
    cursor[_WHY] = 0
    while end < len(hashes):
        first, run = _in_place(entries, hashes[end : end + _STRIDE], cursor)
        here = slice(end, end + run)
        if run:
            slots[here] = np.arange(first, first + run)
            slots[here][(state[slots[here]] & _DEAD) > 0] = -1
            cursor[_MET] += int(((slots[here] >= 0) | (at_apart[here] >= 0)).sum())
        else:
            here = slice(end, end + 1 if patience else len(hashes))
            patience -= 1
            if entries.rows and found is None and (at_apart[here] < 0).any():
                cursor[_WHY] = _NO_TABLE
                break
            slots[here] = np.where(at_apart[here] >= 0, -1, _searched(state, found, hashes[here]))
            cursor[_SEARCHED] += int(((slots[here] >= 0) | (at_apart[here] >= 0)).sum())
            if slots[here.stop - 1] >= 0:
                cursor[_OTHER] = slots[here.stop - 1] + 1
        end = here.stop
    _say(entries, apart, state, at_apart, digests, slice(start, end), out)
    return end


def _in_place(entries: Entries, hashes: Halves, cursor: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The entry where the first rows are met, and how many of them follow one another there; 0 where the first is not met. Moves the cursor."""
    main, other = cursor[[_MAIN, _OTHER]].tolist()
    places = [main, *([other] if 0 <= other < entries.rows else []), *range(main + 1, main + 1 + AHEAD)]
    for at in places:
        if at >= entries.rows:
            continue
        if at == main or (entries.stretch(HASH, at, at + 1) == hashes[:1]).all():
            expected = entries.stretch(HASH, at, min(at + len(hashes), entries.rows))
            differs = np.flatnonzero((expected != hashes[: len(expected)]).any(axis=1))
            run = int(differs[0]) if len(differs) else len(expected)
            if run:
                if at == other != main and at == places[1]:
                    cursor[_OTHER] = main
                cursor[_MAIN] = at + run
                return at, run
    return 0, 0


def _say(
    entries: Entries,
    apart: Apart,
    state: npt.NDArray[np.uint8],
    at_apart: npt.NDArray[np.int64],
    digests: Halves | None,
    rows: slice,
    out: tuple[Slots, Slots, npt.NDArray[np.uint8]],
) -> None:
    """Fill in what is said of some rows whose entries are found, and claim their slots."""
    slots, codes, flags = (each[rows] for each in out)
    flags[:], codes[:] = 0, -1
    inside, beside = np.flatnonzero(slots >= 0), np.flatnonzero((slots < 0) & (at_apart[rows] >= 0))
    place = at_apart[rows][beside]
    codes[inside], codes[beside] = entries.take(CODE, slots[inside]), apart.code[place]
    if digests is not None:
        mine = digests[rows]
        flags[inside[(entries.take(DIGEST, slots[inside]) == mine[inside]).all(axis=1)]] = _SAME
        flags[beside[(apart.digest[place] == mine[beside]).all(axis=1)]] = _SAME
    slots[beside] = apart.slot[place]
    there = np.flatnonzero(slots >= 0)
    at = slots[there]
    order = np.argsort(at, kind="stable")
    twice = np.zeros(len(at), bool)
    twice[order[1:]] = at[order[1:]] == at[order[:-1]]
    flags[there[twice | ((state[at] & _CLAIMED) > 0)]] |= _AGAIN
    state[at] |= _CLAIMED
