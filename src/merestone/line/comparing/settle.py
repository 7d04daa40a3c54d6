"""The class of every candidate, against the published rows of touched partitions, and the rows that will be written.

Not here: the classes (`change.classes`), the form of candidates (`process`), writing (`rewrite`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before, Comparison, classify, compare
from merestone.dataset.known import halves
from merestone.geometry import kernel
from merestone.identity.digest import digest_batch
from merestone.line.comparing.kept_rows import unless_broken
from merestone.line.comparing.published_rows import Published
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.reading import KEY
from merestone.line.processing.noise import Kept, keep, noise_of
from merestone.line.processing.process import Processed
from merestone.line.processing.process_batch import DELIVERED
from merestone.line.receiving.candidates import Candidates
from merestone.normalise.cast import MACHINERY
from merestone.scratch.spool import ROW, Spool, bucket_plan, shuffle

CODE = MACHINERY + "partition"
BUCKET_BYTES = 32 << 20  # what is held of candidates at a time, per worker


@dataclass(slots=True)
class Settled:
    """The classes of all candidates and the rows that will be written.

    codes: int16 (n,). reversed, attributes, geometry: bool (n,). blanks: bool (n,), differs only in blanks at the end of text. move: float64
    (n,), where geometry is true. fields: attribute names, each with candidate rows in which it changed. ready: one spool a bucket, of stored
    rows with their key bytes and partition code. column_changes: attribute to count. sample: some changed rows, now and then.
    kept: rows that keep published values.
    """

    codes: npt.NDArray[np.int16]
    reversed: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.bool_]
    geometry: npt.NDArray[np.bool_]
    blanks: npt.NDArray[np.bool_]
    move: npt.NDArray[np.float64]
    fields: list[tuple[str, npt.NDArray[np.int64]]] = field(default_factory=list)
    ready: list[Spool] = field(default_factory=list)
    column_changes: dict[str, int] = field(default_factory=dict)
    sample: list[tuple[Any, Any]] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)


def settle(
    prepared: Prepared,
    published: Published,
    candidates: Candidates,
    processed: Processed,
    before: Before,
    partition: npt.NDArray[np.int32],
    folder: str,
    *,
    hold: bool,
) -> Settled:
    """Give each candidate its class; compare those whose digests differ with their published rows; collect the rows to write.

    Args:
        prepared: the values of the run.
        published: the features of the last version.
        candidates: from pass 1.
        processed: from pass 2; its spool is empty afterwards.
        before: the index rows of the candidates.
        partition: int32 (n,), the partition code of each candidate.
        folder: the scratch folder.
        hold: whether the last accepted row of a refused one stays published.

    Raises:
        CorruptError: a published file is damaged, or lacks a feature that the index says it holds.
    """
    codes = classify(
        known=candidates.slot >= 0,
        rejected=processed.rejected,
        trusted=candidates.trusted,
        source_equal=(candidates.source == before.source).all(axis=1) & prepared.parent.comparable,
        digest=processed.digest,
        deciding=processed.deciding,
        before=before,
        partition=partition,
        hold=hold,
    )
    if prepared.parent.rewritten:
        codes[np.isin(codes, (classes.UNCHANGED, classes.REFRESHED))] = classes.REPROCESSED
    n = len(codes)
    out = Settled(codes, np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n))
    if prepared.digests.old is not None:
        _digest_held(prepared, published, candidates, processed, before, np.flatnonzero(codes == classes.HELD))
    wanted = np.isin(codes, (classes.ADDED, classes.MOVED, classes.REPROCESSED, classes.DIFFERS))
    if not wanted.any():
        return out
    spools = _in_buckets(processed, partition, wanted, len(published.names), folder)
    # A trusted row whose digest is not the published one was suppressed before: what moves is the published value.
    swap = (codes == classes.MOVED) & (processed.digest != before.digest).any(axis=1)
    look = (codes == classes.DIFFERS) | swap
    against = _Against(prepared, published, candidates, before, partition)
    for number, spool in enumerate(spools):
        rows = np.asarray(spool.table().column(ROW)) if spool.rows and look.any() else np.zeros(0, np.int64)
        if not look[rows].any():
            out.ready.append(spool)
            continue
        out.ready.append(against.settle_bucket(spool, look, out, folder, number))
        spool.drop()
    out.kept.remember(prepared.digests, candidates, processed, before)
    return out


def _in_buckets(
    processed: Processed, partition: npt.NDArray[np.int32], wanted: npt.NDArray[np.bool_], partitions: int, folder: str
) -> list[Spool]:
    """The rows that may be written, neighbouring partitions together; one bucket fits into memory."""
    per_row = processed.spool.bytes / max(processed.spool.rows, 1) + 16
    bucket_of = bucket_plan(np.bincount(partition[wanted], minlength=partitions), per_row, BUCKET_BYTES)
    bucket = np.where(wanted, bucket_of[np.maximum(partition, 0)], -1).astype(np.int32)
    spools = shuffle(processed.spool, folder, "bucket", bucket, int(bucket_of.max()) + 1, {CODE: pa.array(partition)})
    processed.spool.drop()
    return spools


@dataclass(frozen=True, slots=True)
class _Against:
    """What candidates are compared with."""

    prepared: Prepared
    published: Published
    candidates: Candidates
    before: Before
    partition: npt.NDArray[np.int32]

    def settle_bucket(self, spool: Spool, look: npt.NDArray[np.bool_], out: Settled, folder: str, number: int) -> Spool:
        """Class the rows of a bucket that have to be looked at, and collect those of it that are written."""
        prepared, table = self.prepared, spool.table().combine_chunks()
        rows = np.asarray(table.column(ROW))
        at = np.flatnonzero(look[rows])
        there = self.published.of_keys(self.candidates.hash[rows[at]], self.before.partition[rows[at]])
        differs = out.codes[rows[at]] == classes.DIFFERS
        mine, then = rows[at[differs]], there.filter(pa.array(differs))
        found = unless_broken(prepared, then, self._compare(table.take(pa.array(at[differs])), then, mine, out))
        self._note(out, mine, found)
        columns = prepared.layout.row_schema.names
        # Suppressed rows stay as published: they are written only where their place is another.
        swap = ~differs
        stored = table.select(columns)
        if prepared.parent.keeps_rows:
            stored, partly, digests = keep(stored, at[differs], then, found, prepared.contract, prepared.digests.stored)
            if partly.any():
                out.kept.partly.append((mine[partly], digests))
            if found.suppressed.any():
                out.kept.suppressed.append(mine[found.suppressed])
            swap[np.flatnonzero(differs)[found.suppressed]] = True
        if swap.any():
            source = np.arange(table.num_rows)
            source[at[swap]] = table.num_rows + np.flatnonzero(swap)
            stored = pa.concat_tables([stored, there.select(columns)]).take(pa.array(source))
        written = ~np.isin(out.codes[rows], (classes.SUPPRESSED,))
        whole = stored.append_column(KEY, table.column(KEY)).append_column(ROW, table.column(ROW)).append_column(CODE, table.column(CODE))
        ready = Spool(folder, f"ready-{number}", whole.schema)
        for batch in whole.filter(pa.array(written)).combine_chunks().to_batches():
            ready.write(batch)
        ready.close()
        return ready

    def _compare(self, after: Any, then: Any, rows: npt.NDArray[np.int64], out: Settled) -> Comparison:
        """Rows that are delivered now against those that are published, both in the form of the last version."""
        prepared, layouts, geometry = self.prepared, self.prepared.digests, self.prepared.geometry
        names, deciding = layouts.stored.kept_by_noise(geometry), layouts.deciding
        delivered = after.select([DELIVERED + name for name in names]).rename_columns(list(names))
        after = after.select(prepared.layout.row_schema.names)
        if layouts.old is not None:
            for name in names:
                place, older = after.schema.get_field_index(name), delivered.column(name)
                if name == geometry:
                    older = kernel.canonical(older, deciding.grid, deciding.shape)[0].cast(pa.binary())
                after = after.set_column(place, after.schema.field(place), older)
        if len(out.sample) < 8:
            out.sample.append((after.slice(0, 1000), then.slice(0, 1000)))
        in_place = (self.partition[rows] == self.before.partition[rows]) | (not prepared.placement.spatial)
        return compare(after, then, deciding, geometry, delivered=delivered, noise=noise_of(prepared.contract), in_place=in_place)

    def _note(self, out: Settled, rows: npt.NDArray[np.int64], found: Comparison) -> None:
        # Cells follow the published geometry, which stays; a column's value is delivered anew.
        elsewhere = (self.partition[rows] != self.before.partition[rows]) & (not self.prepared.placement.spatial)
        loud = (found.attributes | found.geometry) & ~found.suppressed
        # In another domain no digest of the last one can stay: what would be suppressed is stored anew, and is no change either.
        suppressed = found.suppressed & self.prepared.parent.keeps_rows
        # Nothing to be seen differs, and yet the digest does: what counts was agreed anew (a column declared volatile).
        code = np.where(loud, classes.CHANGED, classes.REPROCESSED)
        out.codes[rows] = np.where(suppressed, np.where(elsewhere, classes.MOVED, classes.SUPPRESSED), code)
        noted = rows[loud]
        out.reversed[noted] = found.reversed[loud]
        out.attributes[noted] = found.attributes[loud]
        out.geometry[noted] = found.geometry[loud]
        out.move[noted] = found.move[loud]
        out.blanks[noted] = found.blanks[loud]
        for name, differs in found.fields:
            mine = rows[differs & loud]
            if len(mine):
                out.column_changes[name] = out.column_changes.get(name, 0) + len(mine)
                out.fields.append((name, mine))


def _digest_held(
    prepared: Prepared,
    published: Published,
    candidates: Candidates,
    processed: Processed,
    before: Before,
    rows: npt.NDArray[np.int64],
) -> None:
    """In another domain than the last version's a held feature keeps its row, and its digest is made anew from that row."""
    if not len(rows):
        return
    if processed.digest is candidates.source:
        processed.digest = processed.digest.copy()
    there = published.of_keys(candidates.hash[rows], before.partition[rows])
    processed.digest[rows] = halves(digest_batch(there, prepared.digests.stored, prepared.geometry))
