"""Pass 2, candidates: transform -> snap -> gate.feature -> digest -> class, against the published rows of touched partitions.

Not here: every row (`receive`), the verdict on the change (`line`), writing (`rewrite`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before, Comparison, classify, compare
from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves, sort_by_hash
from merestone.dataset.manifest import DataFile
from merestone.dataset.rows import read_rows
from merestone.engine.threads import run_units
from merestone.errors import CorruptError
from merestone.gate import feature as gate_feature
from merestone.gate.findings import FindingTally, findings_table, rejected
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.identity.digest import digest_batch
from merestone.line.prepared import KEY, Prepared
from merestone.line.receive import Candidates, Part, rejects_table
from merestone.normalise import crs as crs_stage
from merestone.normalise.cast import MACHINERY
from merestone.normalise.derive import with_derived
from merestone.normalise.snap import snap
from merestone.results.finding import RowFaults, Steps
from merestone.scratch.spool import ROW, Numbers, Spool, bucket_plan, shuffle
from merestone.storage.port import Store

Events = Callable[[int, Any, list[Steps]], None]
DELIVERED = MACHINERY + "delivered"
BUCKET_BYTES = 32 << 20  # what is held of candidates at a time, per worker


@dataclass(frozen=True, slots=True)
class _Row2:
    """One batch after pass 2. `batch` and `ids` only where somebody wants them."""

    part: Part
    batch: Any
    digest: Halves
    deciding: Halves
    centre: npt.NDArray[np.float64]
    extent: npt.NDArray[np.float64]
    rejected: npt.NDArray[np.bool_]
    faults: list[RowFaults]
    steps: list[Steps]
    ids: Any
    bounds: npt.NDArray[np.float64]


@dataclass(slots=True)
class Processed:
    """Candidates in the form in which they would be stored; n of them, in their order.

    digest: uint64 (n, 2), what would be stored; empty in a check. deciding: the same in the domain of the last version. centres: x, y of the
    middle of the stored geometry's box, NaN where there is none; empty where no scheme needs them. extent: xmin, ymin, xmax, ymax of all of
    them; None in a check. rejected: bool (n,). misshapen: those rejected for their geometry. refused: float64 (k, 4), the boxes of the
    rejected, NaN where there is none. spool: all rows, or none where nobody asked for them.
    """

    spool: Spool
    digest: Halves
    deciding: Halves
    centres: Numbers
    extent: tuple[float, float, float, float] | None = None
    rejected: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    misshapen: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    refused: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 4)))
    tally: FindingTally = field(default_factory=FindingTally)
    rejects: list[Any] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)

    def absent(self, *, misshapen: bool) -> npt.NDArray[np.float64]:
        """The boxes (k, 4) of the rejected rows that have a place, or of those of them whose geometry is at fault."""
        there = np.isfinite(self.refused).all(axis=1)
        return self.refused[there & self.misshapen[self.rejected] if misshapen else there]


def process(
    prepared: Prepared,
    candidates: Candidates,
    before: Before,
    folder: str,
    *,
    workers: int,
    events: Events | None,
) -> Processed:
    """Bring every candidate into the contract's form and judge it by itself.

    Args:
        prepared: settings and values of the run.
        candidates: from pass 1.
        before: the index rows of the candidates.
        folder: the scratch folder.
        workers: how many batches at a time.
        events: called with (batch number, feature ids, steps) for each batch, in order: the lineage of what the stages did. None where
            nobody listens.
    """
    size = len(candidates)
    # What is delivered in the contract's CRS has one digest: rounding and ordering are part of it, so that the stored form has it too.
    digest = candidates.source if prepared.one_digest else np.zeros((size, 2), np.uint64)
    deciding = digest if prepared.old_layout is None else np.zeros((size, 2), np.uint64)
    out = _nothing_yet(prepared, folder, digest, deciding)

    def units() -> Iterator[tuple[Part, Halves]]:
        at = 0
        for part in candidates.parts(prepared.geometry):
            yield part, before.digest[at : at + len(part.row)]
            at += len(part.row)

    return _all(prepared, units(), out, workers=workers, events=events, keep=True)


def process_parts(prepared: Prepared, parts: Iterable[Part], folder: str, *, workers: int, keep: bool) -> Processed:
    """The same for candidates as they come from pass 1, where all that is asked is what is wrong with them.

    Args:
        prepared: settings and values of the run; nothing is compared in it.
        parts: from pass 1, while it reads.
        folder: the scratch folder.
        workers: how many batches at a time.
        keep: whether the rows and the lines of `_findings/` are wanted afterwards.
    """
    none = np.zeros((0, 2), np.uint64)
    return _all(
        prepared, ((part, none) for part in parts), _nothing_yet(prepared, folder, none, none), workers=workers, events=None, keep=keep
    )


def _nothing_yet(prepared: Prepared, folder: str, digest: Halves, deciding: Halves) -> Processed:
    schema = prepared.spool_schema.append(pa.field(DELIVERED, pa.binary()))
    return Processed(Spool(folder, "processed", schema), digest, deciding, Numbers(folder, "centres", 2))


def _all(
    prepared: Prepared,
    units: Iterable[tuple[Part, Halves]],
    out: Processed,
    *,
    workers: int,
    events: Events | None,
    keep: bool,
) -> Processed:
    extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
    refused: list[npt.NDArray[np.bool_]] = [out.rejected]
    misshapen: list[npt.NDArray[np.bool_]] = [out.misshapen]
    boxes: list[npt.NDArray[np.float64]] = [out.refused]
    start = 0
    for number, one in enumerate(
        run_units(lambda unit: _process(prepared, *unit, told=events is not None, keep=keep), units, workers=workers)
    ):
        rows = one.part.row.astype(np.int64)
        here = slice(start, start + len(rows))
        start = here.stop
        if keep:
            out.spool.write(one.batch)
        if prepared.compared and not prepared.one_digest:
            out.digest[here] = one.digest
        if prepared.compared and prepared.old_layout is not None:
            out.deciding[here] = one.deciding
        refused.append(one.rejected)
        misshapen.append(rejected([each for each in one.faults if each.surface in ("geometry", "crs")], len(rows)))
        boxes.append(one.bounds[one.rejected])
        if prepared.compared and prepared.spatial:
            out.centres.append(one.centre)
        extent[:2], extent[2:] = np.minimum(extent[:2], one.extent[:2]), np.maximum(extent[2:], one.extent[2:])
        if one.faults:
            out.tally.add(one.faults, rows=rows, ids=one.ids, bounds=one.bounds)
            if prepared.compared:
                out.rejects.append(rejects_table(one.faults, rows, one.ids, one.batch, one.batch.column(prepared.geometry)))
            if keep:
                held = one.rejected & (one.part.slot >= 0) & (prepared.publication.rejects.published == "hold")
                out.findings.append(findings_table(one.faults, rows=rows, ids=one.ids, keys=one.part.rows.column(KEY), held=held))
        if events is not None:
            events(number, one.ids, one.steps)
    out.spool.close()
    out.rejected, out.misshapen, out.refused = np.concatenate(refused), np.concatenate(misshapen), np.concatenate(boxes)
    if np.isfinite(extent).all():
        out.extent = (float(extent[0]), float(extent[1]), float(extent[2]), float(extent[3]))
    return out


def _process(prepared: Prepared, part: Part, old: Halves, *, told: bool, keep: bool) -> _Row2:
    """Judge one batch; `old` are the digests that its rows had in the last version, `told` whether the lineage wants to hear of the stages."""
    contract, batch, n = prepared.contract, part.rows, part.rows.num_rows
    place = batch.schema.names.index(prepared.geometry)
    wkb = batch.column(place)
    steps = [prepared.cast_steps(_marked(part.miscast, n))] if told else []
    moved, transform_faults, failed = wkb, [], np.zeros(n, bool)
    if prepared.operation is not None and not prepared.operation.is_identity:
        moved, failed = crs_stage.apply_operation(wkb, prepared.operation)
        transform_faults = crs_stage.no_transform_faults(prepared.operation, failed, wkb, contract.geometry_name)
        steps.append(crs_stage.transform_steps(prepared.operation, failed, n))
    stored, snap_faults, snap_steps = snap(moved, contract, part.scan if moved is wkb else kernel.scan(moved))
    snap_faults = _but(snap_faults, rejected(part.early, n))
    steps.append(snap_steps)
    batch = batch.set_column(place, batch.schema.field(place), stored)
    exact, batch, other_faults = prepared.other_geometries(batch)
    batch = with_derived(batch, contract, prepared.geometry)
    stored_scan = kernel.scan(stored)
    skip = failed | rejected([*snap_faults, *part.early], n)
    if prepared.judged:
        row_faults = gate_feature.check_rows(
            batch,
            contract,
            delivered=part.scan,
            stored=stored_scan,
            canonical=stored,
            limits=prepared.limits,
            skip=skip,
            miscast=part.miscast,
            absent=prepared.absent,
        )
    else:  # what is only compared need not be good, but its coordinates must be numbers
        row_faults = gate_feature.ordinates(contract, part.scan, stored_scan, None, ~skip)
    if told:
        steps.append(gate_feature.steps([*part.early, *row_faults], n, crs=prepared.crs))
    # That Z or M is left out is said once of the whole delivery, and of each row in its lineage.
    faults = [*transform_faults, *(each for each in snap_faults if each.rule != "z_dropped"), *other_faults, *row_faults]
    digest = deciding = part.source
    near = np.zeros(n, np.bool_)
    if prepared.compared:
        if not prepared.one_digest:
            digest = deciding = halves(digest_batch(batch, prepared.stored_layout, prepared.geometry))
        if prepared.old_layout is not None:
            # From what was delivered, not from what is stored on another grid: rounding twice is not rounding once.
            exact = exact.set_column(place, exact.schema.field(place), moved.cast(pa.binary()))
            deciding = halves(digest_batch(exact, prepared.old_layout, prepared.geometry))
        near = (part.slot >= 0) & (deciding != old).any(axis=1)
    # The form before rounding is wanted only where a published row may turn out to be within noise of it.
    delivered = pa.compute.if_else(pa.array(near), moved, pa.scalar(None, pa.binary())) if near.any() else pa.nulls(n, pa.binary())
    batch = batch.append_column(DELIVERED, delivered)
    centre = (stored_scan.bounds[:, :2] + stored_scan.bounds[:, 2:]) / 2
    refused = part.faulty | rejected(faults, n)
    extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
    if prepared.compared:
        low = stored_scan.bounds[~refused & ~np.isnan(stored_scan.bounds[:, 0])]
        extent = np.concatenate([low[:, :2].min(axis=0), low[:, 2:].max(axis=0)]) if len(low) else extent
    ids = keys.feature_ids(batch, prepared.key_columns) if told or faults else None
    return _Row2(part, batch if keep else None, digest, deciding, centre, extent, refused, faults, steps, ids, stored_scan.bounds)


def _but(faults: list[RowFaults], told: npt.NDArray[np.bool_]) -> list[RowFaults]:
    """Without the rows whose place is said to be wrong already: that they collapse there is no news."""
    out = []
    for each in faults:
        kept = ~told[each.rows]
        if kept.any():
            out.append(replace(each, rows=each.rows[kept], observed=each.observed.filter(pa.array(kept))))
    return out


def _marked(faults: list[RowFaults], n: int) -> npt.NDArray[np.bool_]:
    """(n,) rows that any of the faults names."""
    mask = np.zeros(n, np.bool_)
    for each in faults:
        mask[each.rows] = True
    return mask


@dataclass(slots=True)
class Settled:
    """The classes of all candidates and the rows that will be written.

    codes: int16 (n,). reversed, attributes, geometry: bool (n,). blanks: bool (n,), differs only in blanks at the end of text. move: float64
    (n,), where geometry is true. fields: attribute names, each with candidate rows in which it changed. ready: one spool a bucket, of stored
    rows with their key bytes and partition code; bucket_of: int32, partition code to bucket. column_changes: attribute to count.
    """

    codes: npt.NDArray[np.int16]
    reversed: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.bool_]
    geometry: npt.NDArray[np.bool_]
    blanks: npt.NDArray[np.bool_]
    move: npt.NDArray[np.float64]
    fields: list[tuple[str, npt.NDArray[np.int64]]] = field(default_factory=list)
    ready: list[Spool] = field(default_factory=list)
    bucket_of: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    column_changes: dict[str, int] = field(default_factory=dict)
    sample: list[tuple[Any, Any]] = field(default_factory=list)


CODE = MACHINERY + "partition"


def settle(
    prepared: Prepared,
    store: Store,
    files: tuple[DataFile, ...],
    names: list[str],
    candidates: Candidates,
    processed: Processed,
    before: Before,
    partition: npt.NDArray[np.int32],
    folder: str,
    *,
    hold: bool,
) -> Settled:
    """Give each candidate its class; compare those whose digests differ with their published rows; collect the rows to write.

    Raises:
        CorruptError: a published file is damaged, or lacks a feature that the index says it holds.
    """
    known = candidates.slot >= 0
    codes = classify(
        known=known,
        rejected=processed.rejected,
        trusted=candidates.trusted,
        source_equal=(candidates.source == before.source).all(axis=1) & prepared.comparable,
        digest=processed.digest,
        deciding=processed.deciding,
        before=before,
        partition=partition,
        hold=hold,
    )
    if prepared.rewritten:
        codes[np.isin(codes, (classes.UNCHANGED, classes.REFRESHED))] = classes.REPROCESSED
    n = len(codes)
    out = Settled(codes, np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n))
    by_name: dict[str, list[DataFile]] = {}
    for file in files:
        by_name.setdefault(file.partition, []).append(file)
    if prepared.old_layout is not None:
        _digest_held(prepared, store, by_name, names, candidates, processed, before, np.flatnonzero(codes == classes.HELD))
    wanted = np.isin(codes, (classes.ADDED, classes.MOVED, classes.REPROCESSED, classes.DIFFERS))
    counts = np.bincount(partition[wanted], minlength=len(names)) if wanted.any() else np.zeros(len(names), np.int64)
    per_row = processed.spool.bytes / max(processed.spool.rows, 1) + 16
    out.bucket_of = bucket_plan(counts, per_row, BUCKET_BYTES)
    buckets = int(out.bucket_of.max()) + 1 if len(out.bucket_of) else 0
    bucket = np.where(wanted, out.bucket_of[np.maximum(partition, 0)] if len(out.bucket_of) else -1, -1).astype(np.int32)
    if not wanted.any():
        return out
    spools = shuffle(processed.spool, folder, "bucket", bucket, buckets, {CODE: pa.array(partition)})
    processed.spool.drop()
    # A trusted row whose digest is not the published one was suppressed before: what moves is the published value.
    swap = (codes == classes.MOVED) & (processed.digest != before.digest).any(axis=1)
    look = (codes == classes.DIFFERS) | swap
    for number, spool in enumerate(spools):
        rows = np.asarray(spool.table().column(ROW)) if spool.rows and look.any() else np.zeros(0, np.int64)
        if not look[rows].any():
            out.ready.append(spool)
            continue
        out.ready.append(_settle_bucket(prepared, store, by_name, names, spool, before, partition, look, candidates, out, folder, number))
        spool.drop()
    return out


def _settle_bucket(
    prepared: Prepared,
    store: Store,
    files: dict[str, list[DataFile]],
    names: list[str],
    spool: Spool,
    before: Before,
    partition: npt.NDArray[np.int32],
    look: npt.NDArray[np.bool_],
    candidates: Candidates,
    out: Settled,
    folder: str,
    number: int,
) -> Spool:
    table = spool.table().combine_chunks()
    rows = np.asarray(table.column(ROW))
    at = np.flatnonzero(look[rows])
    published = _published(prepared, store, files, names, candidates.hash[rows[at]], before.partition[rows[at]])
    differs = out.codes[rows[at]] == classes.DIFFERS
    pick = pa.array(at[differs])
    after, then = table.take(pick), published.filter(pa.array(differs))
    columns = prepared.layout.row_schema.names
    delivered, deciding = after.column(DELIVERED).combine_chunks(), prepared.deciding_layout
    after = after.select(columns)
    if prepared.old_layout is not None:  # both sides in the form of the last version
        place = after.schema.get_field_index(prepared.geometry)
        after = after.set_column(
            place, after.schema.field(place), kernel.canonical(delivered, deciding.grid, deciding.shape)[0].cast(pa.binary())
        )
    found = compare(after, then, deciding, prepared.geometry, delivered, turned=not prepared.same_crs)
    mine = rows[at[differs]]
    _note(prepared, out, mine, found, partition, before)
    if len(out.sample) < 8:
        out.sample.append((after.slice(0, 1000), then.slice(0, 1000)))
    # Suppressed rows stay as published: they are written only where their place is another.
    swap = ~differs
    if prepared.keeps_rows:
        swap[np.flatnonzero(differs)[found.suppressed]] = True
    stored = table.select(columns)
    if swap.any():
        source = np.arange(table.num_rows)
        source[at[swap]] = table.num_rows + np.flatnonzero(swap)
        stored = pa.concat_tables([stored, published.select(columns)]).take(pa.array(source))
    keep = ~np.isin(out.codes[rows], (classes.SUPPRESSED,))
    whole = stored.append_column(KEY, table.column(KEY)).append_column(ROW, table.column(ROW)).append_column(CODE, table.column(CODE))
    ready = Spool(folder, f"ready-{number}", whole.schema)
    for batch in whole.filter(pa.array(keep)).combine_chunks().to_batches():
        ready.write(batch)
    ready.close()
    return ready


def _note(
    prepared: Prepared, out: Settled, rows: npt.NDArray[np.int64], found: Comparison, partition: npt.NDArray[np.int32], before: Before
) -> None:
    # Cells follow the published geometry, which stays; a column's value is delivered anew.
    elsewhere = (partition[rows] != before.partition[rows]) & (not prepared.spatial)
    loud = (found.attributes | found.geometry) & ~found.suppressed
    # In another domain no digest of the last one can stay: what would be suppressed is stored anew, and is no change either.
    suppressed = found.suppressed & prepared.keeps_rows
    # Nothing to be seen differs, and yet the digest does: what counts was agreed anew (a column declared volatile).
    code = np.where(loud, classes.CHANGED, classes.REPROCESSED)
    out.codes[rows] = np.where(suppressed, np.where(elsewhere, classes.MOVED, classes.SUPPRESSED), code)
    quiet = ~loud
    noted = rows[~quiet]
    out.reversed[noted] = found.reversed[~quiet]
    out.attributes[noted] = found.attributes[~quiet]
    out.geometry[noted] = found.geometry[~quiet]
    out.move[noted] = found.move[~quiet]
    out.blanks[noted] = found.blanks[~quiet]
    for name, differs in found.fields:
        mine = rows[differs & ~quiet]
        if len(mine):
            out.column_changes[name] = out.column_changes.get(name, 0) + len(mine)
            out.fields.append((name, mine))


def _digest_held(
    prepared: Prepared,
    store: Store,
    files: dict[str, list[DataFile]],
    names: list[str],
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
    published = _published(prepared, store, files, names, candidates.hash[rows], before.partition[rows])
    processed.digest[rows] = halves(digest_batch(published, prepared.stored_layout, prepared.geometry))


def _published(
    prepared: Prepared, store: Store, files: dict[str, list[DataFile]], names: list[str], hashes: Halves, partition: npt.NDArray[np.int32]
) -> Any:
    """The published rows of some keys, in the order asked for, from the partitions that the index names: in `prepared.published.schema`."""
    there_as = prepared.published
    parts, places = [], []
    for code in np.unique(partition):
        here = np.flatnonzero(partition == code)
        rows = read_rows(store, files.get(names[code], []), there_as.schema).combine_chunks()
        canonical, _ = keys.key_bytes(rows, there_as.key_columns)
        there = halves(hashing.blake2b16(canonical))
        order = sort_by_hash(there)
        at = find(there[order], hashes[here])
        if (at < 0).any():
            raise CorruptError(
                f"partition {names[code] or 'data'} lacks {int((at < 0).sum())} features that the index says it holds",
                field=names[code],
                hint="run merestone verify DATASET; restore the file, or roll back",
            )
        parts.append(rows.take(pa.array(order[at])))
        places.append(here)
    table = pa.concat_tables(parts) if parts else there_as.schema.empty_table()
    back = np.argsort(np.concatenate(places)) if places else np.zeros(0, np.int64)
    return table.take(pa.array(back))
