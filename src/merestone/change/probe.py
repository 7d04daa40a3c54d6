"""The probe: which delivered rows are known already, from key hash and source digest alone.

Not here: what a candidate turns out to be (`classes`), the index itself (`dataset.index`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from merestone.columnar.lookup import AGAIN, SAME
from merestone.dataset.known import Halves, Known, sort_by_hash

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Hit:
    """What the probe says of the rows of one batch.

    slot: int32 (n,), the feature's slot in `Known`, -1 where the key is new. same: the source digest is known and trusted. moved: same, but placed
    elsewhere by a column. candidate: the row goes on to pass 2.
    """

    slot: npt.NDArray[np.int32]
    same: Mask
    moved: Mask
    candidate: Mask


class Probe:
    """Compares a delivery with the index, batch by batch, in its order; the features that it has seen are claimed in `Known`.

    Args:
        known: the published features.
        short_cut: whether "same bytes, same verdict" holds (the processing key equals the manifest's); otherwise every row is a candidate.
    """

    def __init__(self, known: Known, *, short_cut: bool) -> None:
        self._known = known
        self._short_cut = short_cut
        self._repeated: list[Halves] = []
        self.unchanged = 0

    def batch(self, hashes: Halves, source: Halves, partition: npt.NDArray[np.int32] | None, faulty: Mask) -> Hit:
        """Look up one batch of rows with a key: key hashes and source digests uint64 (n, 2), column partitions or None, rejected rows."""
        slots, codes, said = self._known.lookup.meet(hashes, source if self._short_cut else None)
        again = (said & AGAIN) > 0
        if again.any():
            self._repeated.append(hashes[again])
        same = ((said & SAME) > 0) & ~faulty
        moved = np.zeros(len(slots), bool)
        if partition is not None and same.any():
            moved = same & (self._known.in_code(codes, slots) != partition)
        self.unchanged += int((same & ~moved).sum())
        return Hit(slots, same, moved, ~same | moved)

    def repeated(self, candidates: Halves) -> Halves:
        """Hashes of keys that were delivered more than once, without repeats; uint64 (k, 2).

        `candidates` are the key hashes of all rows that went on, in any order: a new key that came twice is twice among them.
        """
        first = np.sort(candidates[:, 0])
        suspect = np.unique(first[1:][first[1:] == first[:-1]])
        del first
        rows = candidates[np.isin(candidates[:, 0], suspect)] if len(suspect) else candidates[:0]
        rows = rows[sort_by_hash(rows)]
        twice = np.flatnonzero((rows[1:] == rows[:-1]).all(axis=1)) + 1
        return np.unique(np.concatenate([rows[twice], *self._repeated]), axis=0)

    @property
    def met(self) -> dict[str, int]:
        """How rows with published keys were found: where the last delivery had them, or by a search."""
        return {"in_order": self._known.lookup.met, "searched": self._known.lookup.searched}

    def removed(self) -> npt.NDArray[np.int64]:
        """Slots of published features that were not delivered."""
        return self._known.unclaimed()
