"""The class of every candidate, against the published rows of touched partitions, and the rows that will be written.

Not here: one bucket of them (`settle_bucket`), the classes (`change.classes`), the form of candidates (`process`), writing (`rewrite`).

A number of a row counts in one of these spaces, and its name says in which: a *row* of the delivery, from 1 (`candidates.row`); a *candidate*,
the place among all candidates, which the column ROW of a spool keeps; a *slot*, the place in `Known`; a place *in the bucket*, a row of its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before, classify
from merestone.dataset.known import halves
from merestone.engine.port import Engine
from merestone.identity.digest import digest_batch
from merestone.line.comparing.published_rows import Published
from merestone.line.comparing.settle_bucket import CODE, SettledBucket, SettleTerms, SettleUnit, settle_bucket
from merestone.line.preparing.prepared import Prepared
from merestone.line.processing.noise import Kept
from merestone.line.processing.process import Processed
from merestone.line.receiving.candidates import Candidates
from merestone.scratch.spool import ROW, Spool, bucket_plan, shuffle

SAMPLED = 8  # buckets of which some rows are kept, now and then
BUCKET_BYTES = 32 << 20  # what is held of candidates at a time, per worker


@dataclass(slots=True)
class Settled:
    """The classes of all candidates and the rows that will be written.

    codes: int16 (n,). reversed, attributes, geometry: bool (n,). blanks: bool (n,), differs only in blanks at the end of text. move: float64
    (n,), where geometry is true. fields: attribute names, each with candidate rows in which it changed. ready: one spool a bucket, of stored
    rows with their key bytes and partition code. column_changes: attribute to count. held_before:
    attributes that held a value in a published row whose attribute differs. sample: some changed rows, now and then.
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
    held_before: set[str] = field(default_factory=set)
    sample: list[tuple[pa.Table, pa.Table]] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)


def settle(
    prepared: Prepared,
    published: Published,
    candidates: Candidates,
    processed: Processed,
    before: Before,
    partition: npt.NDArray[np.int32],
    folder: str,
    engine: Engine,
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
        engine: what carries out the units.
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
        in_last_domain=processed.in_last_domain,
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
    under_way: list[tuple[int, npt.NDArray[np.int64]]] = []  # buckets by number, with their candidates that are compared

    def units() -> Iterator[SettleUnit]:
        terms = _terms(prepared, published)
        for number, spool in enumerate(spools if look.any() else ()):
            if not any(look[np.asarray(batch.column(ROW))].any() for batch in spool.batches(ROW)):
                continue
            table = spool.table().combine_chunks()
            spool.drop()
            candidate = np.asarray(table.column(ROW))  # of each row in the bucket
            in_bucket = np.flatnonzero(look[candidate])
            looked = candidate[in_bucket]  # the candidates that are looked at
            differs, held_in = codes[looked] == classes.DIFFERS, before.partition[looked]
            names = {code: published.names[code] for code in np.unique(held_in).tolist()}
            files = {name: published.files.get(name, ()) for name in names.values()}
            sampled = len(out.sample) + len(under_way) < SAMPLED
            under_way.append((number, looked[differs]))
            elsewhere = partition[looked] != held_in
            yield SettleUnit(terms, table, in_bucket, differs, candidates.hash[looked], held_in, elsewhere, names, files, sampled)

    out.ready = spools
    for one in engine.run_units(settle_bucket, units()):
        number, compared = under_way.pop(0)
        out.ready[number] = _at_rest(one.ready, folder, number)
        _note(out, compared, one, keeps_rows=prepared.parent.keeps_rows)
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


def _terms(prepared: Prepared, published: Published) -> SettleTerms:
    return SettleTerms(
        store=published.store.url,
        published=published.rows,
        contract=prepared.contract,
        limits=prepared.projection.limits,
        digests=prepared.digests,
        columns=tuple(prepared.layout.row_schema.names),
        spatial=prepared.placement.spatial,
        other_rules=prepared.parent.other_rules,
        keeps_rows=prepared.parent.keeps_rows,
    )


def _at_rest(ready: pa.Table, folder: str, number: int) -> Spool:
    spool = Spool(folder, f"ready-{number}", ready.schema)
    for batch in ready.to_batches():
        spool.write(batch)
    spool.close()
    return spool


def _note(out: Settled, compared: npt.NDArray[np.int64], one: SettledBucket, *, keeps_rows: bool) -> None:
    """Keep what a bucket says of the candidates that were compared; masks of `one` are over them."""
    found, loud = one.found, one.loud
    out.codes[compared] = one.code
    noted = compared[loud]
    out.reversed[noted] = found.reversed[loud]
    out.attributes[noted] = found.attributes[loud]
    out.geometry[noted] = found.geometry[loud]
    out.move[noted] = found.move[loud]
    out.blanks[noted] = found.blanks[loud]
    for name, differs in found.fields:
        mine = compared[differs & loud]
        if len(mine):
            out.column_changes[name] = out.column_changes.get(name, 0) + len(mine)
            out.fields.append((name, mine))
    out.held_before |= found.held_before
    if one.partly.any():
        out.kept.partly.append((compared[one.partly], one.digest))
    if keeps_rows and found.suppressed.any():
        out.kept.suppressed.append(compared[found.suppressed])
    if one.sample is not None:
        out.sample.append(one.sample)


def _digest_held(
    prepared: Prepared,
    published: Published,
    candidates: Candidates,
    processed: Processed,
    before: Before,
    held: npt.NDArray[np.int64],
) -> None:
    """In another domain than the last version's a held feature keeps its row, and its digest is made anew from that row; `held`: these candidates."""
    if not len(held):
        return
    if processed.digest is candidates.source:
        processed.digest = processed.digest.copy()
    there = published.of_keys(candidates.hash[held], before.partition[held])
    processed.digest[held] = halves(digest_batch(there, prepared.digests.stored, prepared.geometry))
