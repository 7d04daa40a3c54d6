"""The task of settling: candidates of neighbouring partitions against their published rows, by themselves and in any process.

Not here: which candidates are looked at and what all buckets say together (`settle`, which names the spaces that row numbers count in), the classes
(`change.classes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Comparison, compare
from merestone.contract.contract import Contract
from merestone.dataset.known import Halves
from merestone.dataset.manifest import DataFile
from merestone.geometry import kernel
from merestone.line.comparing.kept_rows import unless_broken
from merestone.line.comparing.published_rows import Published, PublishedRows
from merestone.line.preparing.digest_layouts import DigestLayouts
from merestone.line.preparing.reading import KEY
from merestone.line.processing.noise import keep, noise_of
from merestone.line.processing.process_batch import DELIVERED
from merestone.normalise.cast import MACHINERY
from merestone.scratch.spool import ROW
from merestone.storage.open import open_store

CODE = MACHINERY + "partition"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SettleTerms:
    """What all buckets of a run have in common.

    Args:
        store: the dataset's, by its URL.
        published: how the rows of the last version are read.
        contract: the contract in force.
        limits: where its CRS is valid, for rows that stay.
        digests: of what rows are digested.
        columns: of the rows that are written.
        spatial: whether a row's place follows from its geometry.
        other_rules, keeps_rows: see `preparing.parent_terms`.
    """

    store: str
    published: PublishedRows
    contract: Contract
    limits: tuple[float, float, float, float] | None
    digests: DigestLayouts
    columns: tuple[str, ...]
    spatial: bool
    other_rules: bool
    keeps_rows: bool


@dataclass(frozen=True, slots=True)
class SettleUnit:
    """One bucket.

    Args:
        terms: what it has in common with the others.
        rows: pyarrow.Table of its candidates, with all machinery columns.
        in_bucket: int64 (n,), the rows of the table that are looked at.
        differs: bool (n,), which of these are compared; of the others the published row is written.
        hash: their key hashes, uint64 (n, 2).
        held_in: int32 (n,), the partition codes of their published rows.
        elsewhere: bool (n,), whether they now belong to another partition.
        names: the name of each code in `held_in`.
        files: the files of these partitions.
        sampled: whether some rows of both sides are wanted.
    """

    terms: SettleTerms
    rows: pa.Table
    in_bucket: npt.NDArray[np.int64]
    differs: Mask
    hash: Halves
    held_in: npt.NDArray[np.int32]
    elsewhere: Mask
    names: Mapping[int, str]
    files: Mapping[str, Sequence[DataFile]]
    sampled: bool


@dataclass(frozen=True, slots=True)
class SettledBucket:
    """One bucket settled; masks are over the k rows that were compared.

    ready: pyarrow.Table of the rows to write. code: int16 (k,). found: how they differ. loud: differs in more than noise. partly: keeps some
    published values; digest: of what is stored of those, uint64. sample: some of the k rows, now and then; None where nobody wants them.
    """

    ready: pa.Table
    code: npt.NDArray[np.int16]
    found: Comparison
    loud: Mask
    partly: Mask
    digest: Halves
    sample: tuple[pa.Table, pa.Table] | None


def settle_bucket(unit: SettleUnit) -> SettledBucket:
    """Compare the candidates that have to be looked at, and collect the rows that are written.

    Raises:
        CorruptError: a published file is damaged, or lacks a feature that the index says it holds.
    """
    terms, table = unit.terms, unit.rows
    published = Published(terms.published, open_store(terms.store), unit.files, unit.names)
    there = published.of_keys(unit.hash, unit.held_in)
    compared = unit.in_bucket[unit.differs]
    then = there.filter(pa.array(unit.differs))
    after, delivered = _sides(table.take(pa.array(compared)), terms)
    in_place = ~unit.elsewhere[unit.differs] | (not terms.spatial)
    geometry, noise = terms.contract.geometry_name, noise_of(terms.contract)
    found = compare(after, then, terms.digests.in_last_domain, geometry, delivered=delivered, noise=noise, in_place=in_place)
    if terms.other_rules:
        found = unless_broken(terms.contract, terms.limits, then, found)
    loud = (found.attributes | found.geometry) & ~found.suppressed
    # Cells follow the published geometry, which stays; a column's value is delivered anew.
    moves = unit.elsewhere[unit.differs] & (not terms.spatial)
    # In another domain no digest of the last one can stay: what would be suppressed is stored anew, and is not a change either.
    suppressed = found.suppressed & terms.keeps_rows
    # Nothing to be seen differs, and yet the digest does: what counts was agreed anew (a column declared volatile).
    code = np.where(loud, classes.CHANGED, classes.REPROCESSED)
    code = np.where(suppressed, np.where(moves, classes.MOVED, classes.SUPPRESSED), code).astype(np.int16)
    # Suppressed rows stay as published: they are written only where their place is another.
    swap = ~unit.differs
    swap[np.flatnonzero(unit.differs)[suppressed]] = True
    stored, partly, digest = table.select(terms.columns), np.zeros(len(compared), np.bool_), np.zeros((0, 2), np.uint64)
    if terms.keeps_rows:
        stored, partly, digest = keep(stored, compared, then, found, terms.contract, terms.digests.stored)
    if swap.any():
        source = np.arange(table.num_rows)
        source[unit.in_bucket[swap]] = table.num_rows + np.flatnonzero(swap)
        stored = pa.concat_tables([stored, there.select(terms.columns)]).take(pa.array(source))
    written = np.ones(table.num_rows, np.bool_)
    written[compared[code == classes.SUPPRESSED]] = False
    for name in (KEY, ROW, CODE):
        stored = stored.append_column(name, table.column(name))
    sample = (after.slice(0, 1000), then.slice(0, 1000)) if unit.sampled else None
    return SettledBucket(stored.filter(pa.array(written)).combine_chunks(), code, found, loud, partly, digest, sample)


def _sides(rows: pa.Table, terms: SettleTerms) -> tuple[pa.Table, pa.Table]:
    """Candidates in the form of the last version, and what noise can keep of them, as delivered."""
    layouts, geometry = terms.digests, terms.contract.geometry_name
    names, in_last_domain = layouts.stored.kept_by_noise(geometry), layouts.in_last_domain
    delivered = rows.select([DELIVERED + name for name in names]).rename_columns(list(names))
    after = rows.select(terms.columns)
    if layouts.old is not None:
        for name in names:
            place, older = after.schema.get_field_index(name), delivered.column(name).combine_chunks()
            if name == geometry:
                older = kernel.canonical(older, in_last_domain.grid, in_last_domain.shape)[0].cast(pa.binary())
            after = after.set_column(place, after.schema.field(place), older)
    return after, delivered
