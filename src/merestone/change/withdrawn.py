"""What a delivery brings back of a change that a roll-back withdrew, feature by feature.

Not here: the page of entries (`dataset.withdrawn`), the guard and its words (`guards`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves, sort_by_hash
from merestone.dataset.tables import WithdrawnRows

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Returned:
    """What became of the entries. `back`: bool over `entries`, those that come back; `left`: those that stand after the delivery."""

    entries: WithdrawnRows
    back: Flags
    left: WithdrawnRows

    @property
    def wrong(self) -> Flags:
        """Which entries come back that a person named as wrong."""
        named: Flags = np.asarray(self.entries.wrong, dtype=bool)
        return self.back & named

    def after(self, *, confirmed: bool) -> WithdrawnRows:
        """The entries that stand in the next version: what a confirmation let pass is over."""
        if not confirmed:
            return self.left
        gone = self.entries.key.filter(pa.array(self.back))
        return self.left.filter(pc.invert(pc.is_in(self.left.key, value_set=gone.combine_chunks())))


def returned(entries: WithdrawnRows, hashes: Halves, digests: Halves, rejected: Flags, removed: Halves) -> Returned:
    """Which withdrawn content a delivery brings back.

    An entry ends when its key is delivered with other content.

    Args:
        entries: what was withdrawn.
        hashes: key hashes of the candidates, uint64 (n, 2).
        digests: their digests, in the domain of the entries, uint64 (n, 2).
        rejected: bool (n,); what is rejected says nothing.
        removed: key hashes of the published features that were not delivered, uint64 (k, 2).
    """
    mine = halves(hashing.blake2b16(entries.key.combine_chunks()))
    order = sort_by_hash(hashes)
    at = find(hashes[order], mine)
    met = at >= 0
    row = order[np.where(met, at, 0)] if len(order) else np.zeros(len(mine), np.int64)
    accepted = met & ~rejected[row] if len(order) else np.zeros(len(mine), bool)
    content = halves(entries.digest)
    absent = np.asarray(entries.digest.is_null(), dtype=bool)
    same = accepted & ~absent & ((digests[row] == content).all(axis=1) if len(order) else False)
    gone = find(removed[sort_by_hash(removed)], mine) >= 0
    present = np.asarray(entries.present, dtype=bool)
    back = same | (absent & gone)
    ends = (accepted & ~same) | (present & ~met & ~gone)
    now = entries.with_column(WithdrawnRows.present, pa.array((present & ~gone) | accepted))
    return Returned(entries, back, now.filter(pa.array(~ends)))
