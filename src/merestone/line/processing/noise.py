"""Published values that stay because what is delivered differs from them by noise, on the way through the line.

Not here: how far noise reaches and which values it keeps (`change.classes`), when rows are compared (`settle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.classes import Before, Comparison, Noise
from merestone.contract.contract import Contract
from merestone.dataset.known import Halves, halves
from merestone.identity.digest import Layout, digest_batch
from merestone.line.preparing.digest_layouts import DigestLayouts
from merestone.line.processing.process import Processed
from merestone.line.receiving.candidates import Candidates
from merestone.normalise.derive import with_derived


def noise_of(contract: Contract) -> Noise:
    """How far what is delivered may lie from what is published and still be noise."""
    numbers = {}
    for each in contract.schema_fields:
        grid = each.number_grid
        if grid is not None and each.compared and each.number_noise > 0:
            numbers[each.name] = (grid, each.number_noise)
    return Noise(contract.noise, numbers)


@dataclass(frozen=True, slots=True)
class Kept:
    """Candidates that keep published values.

    Args:
        suppressed: those in which only noise differs, some rows at a time.
        partly: those that changed otherwise and keep some values, some rows at a time, with the digests of what is stored of them.
    """

    suppressed: list[npt.NDArray[np.int64]] = field(default_factory=list)
    partly: list[tuple[npt.NDArray[np.int64], Halves]] = field(default_factory=list)

    def remember(self, layouts: DigestLayouts, candidates: Candidates, processed: Processed, before: Before) -> None:
        """Put right the digests of these rows.

        The digest is that of what is stored. A source digest on the contract's own grid would hide how far the delivered value lies from the
        published one, so it is not remembered: the row is a candidate each night until it returns or changes, and noise cannot creep.
        """
        if not self.suppressed and not self.partly:
            return
        if processed.digest is candidates.source:
            processed.digest = processed.digest.copy()
        for rows, digest in self.partly:
            processed.digest[rows] = digest
        if layouts.finer:
            return
        candidates.source = candidates.source.copy()
        for rows in self.suppressed:
            candidates.source[rows] = before.source[rows]
        for rows, digest in self.partly:
            candidates.source[rows] = digest if layouts.one else np.uint64(0)


def with_published(rows: pa.Table, then: pa.Table, kept: Sequence[tuple[str, npt.NDArray[np.bool_]]], contract: Contract) -> pa.Table:
    """Rows with the published values that they keep, and what is derived from a geometry derived anew.

    Args:
        rows: pyarrow.Table of n rows as they would be stored.
        then: pyarrow.Table of their published rows.
        kept: columns, each with bool (n,): the published value stays.
        contract: says what is derived.
    """
    for name, mask in kept:
        place = rows.schema.get_field_index(name)
        values = pa.compute.if_else(pa.array(mask), then.column(name), rows.column(name))
        rows = rows.set_column(place, rows.schema.field(place), values)
    batches = rows.combine_chunks().to_batches()
    return pa.Table.from_batches([with_derived(each, contract, contract.geometry_name) for each in batches], rows.schema)


def keep(
    stored: pa.Table, places: npt.NDArray[np.int64], then: pa.Table, found: Comparison, contract: Contract, layout: Layout
) -> tuple[pa.Table, npt.NDArray[np.bool_], Halves]:
    """Give changed rows the published values from which they differ by noise only.

    Args:
        stored: pyarrow.Table of the rows of a bucket as they would be stored.
        places: int64 (n,), where the compared rows stand in it.
        then: pyarrow.Table of their n published rows.
        found: what differs.
        contract: says what is derived.
        layout: of the digest of what is stored.

    Returns:
        The bucket; bool (n,), the compared rows that keep something; and their new digests.
    """
    partly = np.logical_or.reduce([*(mask for _, mask in found.kept), np.zeros(len(places), bool)]) & ~found.suppressed
    if not partly.any():
        return stored, partly, np.zeros((0, 2), np.uint64)
    mine, theirs = stored.take(pa.array(places[partly])), then.take(pa.array(np.flatnonzero(partly)))
    mixed = with_published(mine, theirs.select(mine.schema.names), [(name, mask[partly]) for name, mask in found.kept], contract)
    source = np.arange(stored.num_rows)
    source[places[partly]] = stored.num_rows + np.arange(mixed.num_rows)
    return pa.concat_tables([stored, mixed]).take(pa.array(source)), partly, halves(digest_batch(mixed, layout, contract.geometry_name))
