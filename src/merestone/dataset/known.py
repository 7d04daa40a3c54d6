"""The published features, in columns: key hashes, source digests, partitions; how to find one, and the digest of a set.

Not here: reading them from a dataset (`index`), comparing a delivery with them (`change.probe`).

In memory a feature costs a byte, and 60 where a log after the checkpoint speaks of it: hashes, digests and partitions of the checkpoint are read
where they lie. Everything else is read again for candidates only, by slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar import hashing
from merestone.columnar.entries import CODE, DIGEST, HASH, Apart, Entries, no_entries
from merestone.columnar.lookup import DEAD, Lookup, Room, in_memory
from merestone.dataset.tables import DIGEST as DIGEST_TYPE
from merestone.dataset.tables import ChangeLog, IndexRows

Codes = npt.NDArray[np.int32]
Halves = npt.NDArray[np.uint64]  # (n, 2): the two halves of 16 bytes, big-endian; their order is the order of the bytes

CHANGE_CLASSES = ("added", "changed", "removed", "moved", "suppressed", "reprocessed", "refreshed", "held")
CHANGES_SCHEMA, INDEX_SCHEMA = ChangeLog.schema, IndexRows.schema


_STRETCH = 1 << 20  # slots that are looked through at once


def halves(digests: pa.Array | pa.ChunkedArray) -> Halves:
    """A fixed_size_binary(16) array as uint64 (n, 2), big-endian halves; null gives zeros."""
    if isinstance(digests, pa.ChunkedArray):
        digests = digests.combine_chunks()
    if len(digests) == 0:
        return np.zeros((0, 2), np.uint64)
    raw = np.frombuffer(digests.buffers()[1], np.uint8)[digests.offset * 16 : (digests.offset + len(digests)) * 16]
    out: Halves = raw.view(">u8").reshape(-1, 2).astype(np.uint64)
    if digests.null_count:
        out[np.asarray(digests.is_null())] = 0
    return out


def unhalves(values: Halves) -> pa.Array:
    """uint64 (n, 2) as fixed_size_binary(16)."""
    raw = np.ascontiguousarray(values.astype(">u8")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(DIGEST_TYPE, len(values), [None, pa.py_buffer(raw)])


class Known:
    """The published features. A slot is a feature's place in the files of the index, oldest first, one after the other: int32.

    Args:
        entries: those of the checkpoint, mapped; their slots come first.
        codes: int32, the code of `Partitions` for each code of an entry.
        later: every row of the logs after it, in their order: key hash and source digest uint64 (m, 2), partition code int32 (m,).
        gone: of each slot, whether it holds no feature any more: removed, or a later row speaks of its key.
        room: where the table of a search lies, which is made when one is needed.
    """

    def __init__(
        self,
        entries: Entries,
        codes: Codes,
        later: tuple[Halves, Halves, Codes],
        gone: npt.NDArray[np.bool_],
        room: Room = in_memory,
    ) -> None:
        self._entries, self._codes = entries, codes
        self._later = later
        self._state = gone.astype(np.uint8) * np.uint8(DEAD)
        alive = np.flatnonzero(~gone[entries.rows :])
        order = alive[sort_by_hash(later[0][alive])]
        apart = Apart(later[0][order], (order + entries.rows).astype(np.int32), later[1][order], later[2][order])
        self._lookup = Lookup(entries, apart, self._state, room)
        self._size = len(gone) - int(np.count_nonzero(gone))

    @classmethod
    def nothing(cls) -> Known:
        """The index of a dataset that has no version yet."""
        none = np.zeros((0, 2), np.uint64)
        return cls(no_entries(), np.zeros(0, np.int32), (none, none, np.zeros(0, np.int32)), np.zeros(0, bool))

    def __len__(self) -> int:
        return self._size

    @property
    def lookup(self) -> Lookup:
        """What finds features by key hash, and notes which are claimed; codes are those of `in_code`."""
        return self._lookup

    def in_code(self, codes: Codes, slots: npt.NDArray[Any]) -> Codes:
        """What the look-up says of partitions as codes of `Partitions`; -1 stays."""
        out = codes.copy()
        mapped = (slots >= 0) & (slots < self._entries.rows)
        out[mapped] = self._codes[codes[mapped]]
        return out

    def find(self, hashes: Halves) -> npt.NDArray[np.int32]:
        """The slot of each key hash, -1 where it is not there."""
        return self._lookup.seek(hashes)

    def slots(self) -> npt.NDArray[np.int32]:
        """Every feature, in the order of the files."""
        return np.flatnonzero((self._state & DEAD) == 0).astype(np.int32)

    def unclaimed(self) -> npt.NDArray[np.int64]:
        """The slots of the features that no delivered row has claimed."""
        return np.flatnonzero(self._state == 0)

    def hash_of(self, slots: npt.NDArray[Any]) -> Halves:
        """The key hash of some features, uint64 (n, 2)."""
        return self._of(slots, HASH, self._later[0])

    def source_of(self, slots: npt.NDArray[Any]) -> Halves:
        """The source digest of some features, uint64 (n, 2)."""
        return self._of(slots, DIGEST, self._later[1])

    def partition_of(self, slots: npt.NDArray[Any]) -> Codes:
        """The partition code of some features, int32 (n,)."""
        return self.in_code(self._of(slots, CODE, self._later[2]), slots)

    def per_partition(self, codes: int) -> npt.NDArray[np.int64]:
        """How many features each of the partitions 0 to `codes` has; int64 (codes,)."""
        out = np.zeros(codes, np.int64)
        for start in range(0, len(self._state), _STRETCH):
            alive = start + np.flatnonzero((self._state[start : start + _STRETCH] & DEAD) == 0)
            out += np.bincount(self.partition_of(alive), minlength=codes)
        return out

    def sources_among(self, wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of some first halves of source digests a feature has; bool (n,)."""
        out = np.zeros(len(wanted), bool)
        for start in range(0, len(self._state), _STRETCH):
            alive = start + np.flatnonzero((self._state[start : start + _STRETCH] & DEAD) == 0)
            out |= np.isin(wanted, self.source_of(alive)[:, 0])
        return out

    def _of(self, slots: npt.NDArray[Any], which: int, later: npt.NDArray[Any]) -> npt.NDArray[Any]:
        inside = slots < self._entries.rows
        if inside.all():
            return self._entries.take(which, slots)
        out = later[np.where(inside, 0, slots - self._entries.rows)]
        out[inside] = self._entries.take(which, slots[inside])
        return out


def find(ordered: Halves, wanted: Halves) -> npt.NDArray[np.int64]:
    """The row of each wanted hash in `ordered` (by first half, then second), -1 where it is not there; int64 (m,)."""
    out = np.full(len(wanted), -1, np.int64)
    if not len(ordered) or not len(wanted):
        return out
    order = np.argsort(wanted[:, 0], kind="stable")  # neighbouring look-ups share cache lines
    low = wanted[order, 0]
    at = np.searchsorted(ordered[:, 0], low)
    left = np.flatnonzero(at < len(ordered))
    while len(left):  # more than one turn only where two keys share the first 64 bits
        here = at[left]
        same = ordered[here, 0] == low[left]
        hit = same & (ordered[here, 1] == wanted[order[left], 1])
        out[order[left[hit]]] = here[hit]
        left = left[same & ~hit]
        at[left] += 1
        left = left[at[left] < len(ordered)]
    return out


def sort_by_hash(hashes: Halves) -> npt.NDArray[np.int64]:
    """The order of rows by hash; int64 (n,)."""
    order = np.argsort(hashes[:, 0], kind="stable")
    first = hashes[order, 0]
    if len(first) and bool((first[1:] == first[:-1]).any()):
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    return order.astype(np.int64, copy=False)


class Sum:
    """A digest of a set of features that a change updates at its own cost: the sum of 16-byte row digests modulo 2**128.

    It names a content, it does not protect it: checksums and Merkle roots are for that.
    """

    def __init__(self, hexadecimal: str = "0" * 32) -> None:
        self._value = int(hexadecimal, 16)

    def add(self, keys: Halves, digests: Halves, sign: int = 1) -> None:
        """Add (or with sign -1 take away) rows given by key hash and digest, uint64 (n, 2) each."""
        mixed = hashing.hashed([unhalves(keys), unhalves(digests)], len(keys), 16).view(">u8").reshape(-1, 2).astype(np.uint64)
        # Sums of 32-bit limbs stay exact in uint64 for 2**32 rows.
        limbs = [
            int((part >> np.uint64(shift) & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
            for part in (mixed[:, 0], mixed[:, 1])
            for shift in (32, 0)
        ]
        total = (limbs[0] << 96) + (limbs[1] << 64) + (limbs[2] << 32) + limbs[3]
        self._value = (self._value + sign * total) % (1 << 128)

    def include(self, other: Sum) -> None:
        """Add what another sum has summed up."""
        self._value = (self._value + other._value) % (1 << 128)

    def __str__(self) -> str:
        return f"{self._value:032x}"
