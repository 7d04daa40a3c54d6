"""The published features in memory, in columns: key hashes, source digests, positions; how to find one, and the digest of a set.

Not here: reading them from a dataset (`index`), comparing a delivery with them (`change.probe`).

In memory a feature costs a 16-byte key hash, a 16-byte source digest, a position and a partition code: 40 bytes. Everything else is read
again for candidates only, by position: the row's place in the files of the index, oldest first, one after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar import hashing
from merestone.dataclass import dataclass
from merestone.dataset.tables import DIGEST, ChangeLog, IndexRows

Halves = npt.NDArray[np.uint64]  # (n, 2): the two halves of 16 bytes, big-endian; their order is the order of the bytes

CHANGE_CLASSES = ("added", "changed", "removed", "moved", "suppressed", "reprocessed", "refreshed", "held")
CHANGES_SCHEMA, INDEX_SCHEMA = ChangeLog.schema, IndexRows.schema


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
    return pa.FixedSizeBinaryArray.from_buffers(DIGEST, len(values), [None, pa.py_buffer(raw)])


@dataclass(slots=True)
class Known:
    """The published features, ordered by key hash.

    hash and source: uint64 (n, 2); position: int32 (n,), the place in the files of the index; partition: int32 (n,), codes of `Partitions`.
    """

    hash: Halves
    source: Halves
    position: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.position)

    def forget_digests(self) -> None:
        """Keep positions and partitions alone: once every row of a delivery has been looked up, four fifths of the index have served."""
        self.hash, self.source = np.zeros((0, 2), np.uint64), np.zeros((0, 2), np.uint64)

    @classmethod
    def nothing(cls) -> Known:
        """The index of a dataset that has no version yet."""
        return cls(np.zeros((0, 2), np.uint64), np.zeros((0, 2), np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32))


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
        joined = np.concatenate(
            [keys.astype(">u8").view(np.uint8).reshape(-1, 16), digests.astype(">u8").view(np.uint8).reshape(-1, 16)], axis=1
        )
        offsets = pa.py_buffer(np.arange(len(joined) + 1, dtype=np.int64) * 32)
        rows = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(joined), [None, offsets, pa.py_buffer(np.ascontiguousarray(joined))])
        mixed = halves(hashing.blake2b16(rows))
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
