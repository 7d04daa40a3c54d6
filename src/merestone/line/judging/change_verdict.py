"""The verdict on the change: classes counted, guards asked, the plan made.

Not here: the classes (`change.classes`, `settle`), guards that keys and measures decide (`guarding`), writing (`write`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes, guards
from merestone.change.classes import Before
from merestone.change.migration import Migrated
from merestone.change.plan import Plan, plan
from merestone.change.withdrawn import Returned, returned
from merestone.dataset.index import live_keys, look_up
from merestone.dataset.known import Known, halves
from merestone.dataset.partition import Tree
from merestone.dataset.tables import IndexRows, WithdrawnRows
from merestone.dataset.withdrawn import read_withdrawn
from merestone.errors import InternalError
from merestone.identity import key as keys
from merestone.line.comparing.backfill import backfill_finding, backfilled, filled_fields
from merestone.line.comparing.comparison_warnings import comparison_warnings
from merestone.line.comparing.kept_rows import judge_held
from merestone.line.comparing.key_migration import features_under_other_keys, migration_findings
from merestone.line.comparing.published_rows import Published, by_partition
from merestone.line.comparing.settle import Settled, settle
from merestone.line.judging.guarding import emptied, measured
from merestone.line.judging.mass_change import column_cause, commonest_move, evidence_of
from merestone.line.judging.values_met import met_in
from merestone.line.preparing.placement import place_candidates
from merestone.line.processing.process import Processed
from merestone.line.run import Run
from merestone.line.writing.change_log import Labels
from merestone.line.writing.rewrite import Leaving
from merestone.results.finding import Finding
from merestone.results.result import Changed, Counts, PublishResult, most_changed


@dataclass(frozen=True, slots=True)
class ChangeVerdict:
    """What the change is and what is to be done.

    placed: int32, the new partition code of each candidate; names: the name of each code; tree: the kd-tree, if there is one. removed: the
    index rows of the features that were not delivered. leaving: the published rows that are not carried in their place.
    stops: the guards that fired. brought: what comes back of a change that a roll-back withdrew.
    """

    settled: Settled
    placed: npt.NDArray[np.int32]
    names: list[str]
    tree: Tree | None
    removed: IndexRows
    removed_rekeyed: npt.NDArray[np.bool_]
    labels: Labels
    leaving: Leaving
    plan: Plan
    features: int
    result: PublishResult
    stops: list[Finding]
    nothing_to_do: bool
    brought: Returned


def judge(run: Run, known: Known, processed: Processed, before: Before, findings: list[Finding]) -> ChangeVerdict:
    """Class every candidate, count every row's fate, ask the guards and make the plan.

    Raises:
        CorruptError: a published file is damaged.
        InternalError: the fates of the rows do not add up to what was delivered.
    """
    terms, received, publication = run.terms, run.delivery, run.publication
    candidates, parent = received.candidates, terms.parent
    placed, tree = place_candidates(
        terms.placement,
        terms.partitions,
        by_value=candidates.partition,
        centres=processed.centres,
        hashes=candidates.hash,
        rejected=processed.rejected,
        before=before.partition,
    )
    names = terms.partitions.names()
    settled = settle(
        terms,
        run.published,
        candidates,
        processed,
        before,
        placed,
        run.folder,
        run.engine,
        hold=publication.rejects.published == "hold",
    )
    codes = settled.codes
    removed = IndexRows.empty()
    if run.head is not None and len(received.removed):
        removed = IndexRows(look_up(run.store, run.head.manifest.index, received.removed))
    added = codes == classes.ADDED
    rekeyed_added, rekeyed_removed = classes.rekeyed(processed.in_last_domain[added], halves(removed.digest))
    migrated = features_under_other_keys(run, processed, before, codes, removed)
    labels = Labels(settled.reversed, settled.attributes, settled.geometry, np.zeros(len(codes), bool), settled.move, settled.fields)
    labels.rekeyed[added] = rekeyed_added
    filled = filled_fields(run, settled)
    not_counted = int(backfilled(settled, filled).sum())
    counts = _counts(settled, len(removed), int(rekeyed_added.sum()), not_counted)
    warnings = comparison_warnings(
        candidates.spool,
        candidates.row,
        settled.blanks,
        added & terms.reading.key_is_text,
        _published_keys(run, known),
        terms.reading.key_name,
    )
    if migrated is not None:
        warnings += migration_findings(run, migrated, len(known))
    if not_counted:
        warnings.append(backfill_finding(filled, not_counted, len(known)))
    result = _result(run, known, processed, settled, counts, [*findings, *received.places.placed(warnings)])
    leaves = np.isin(codes, (classes.CHANGED, classes.MOVED, classes.REPROCESSED, classes.REMOVED))
    stored = np.isin(codes, (classes.ADDED, classes.CHANGED, classes.MOVED, classes.REPROCESSED))
    leaving = Leaving(
        np.concatenate([candidates.hash[leaves], received.removed_hash]),
        np.concatenate([before.partition[leaves], known.partition_of(received.removed)]).astype(np.int32),
    )
    # What is suppressed stays as it is published, for every reader: its new source digest waits for a change to ride on.
    brought = _brought_back(run, processed)
    quiet = not (counts.touched or counts.reprocessed)
    return ChangeVerdict(
        settled=settled,
        placed=placed,
        names=names,
        tree=tree,
        removed=removed,
        removed_rekeyed=rekeyed_removed,
        labels=labels,
        leaving=leaving,
        plan=plan(run.files, names, placed[stored], leaving.partition),
        features=len(known) + counts.added - counts.removed,
        result=result,
        stops=_guards(run, known, processed, settled, before, counts, removed, names, placed, migrated, filled, not_counted, brought),
        brought=brought,
        nothing_to_do=quiet and run.head is not None and not parent.new_contract and not parent.rekeyed,
    )


def _published_keys(run: Run, known: Known) -> Iterator[pa.Array]:
    """The keys of the last version; none where they are of another rule, and look alike by chance at most."""
    if run.head is not None and not run.terms.parent.rekeyed:
        yield from live_keys(run.store, run.head.manifest.index, known.slots())


def published_before(run: Run, known: Known, slot: npt.NDArray[np.int32]) -> Before:
    """The index rows of the candidates that were published before."""
    n = len(slot)
    if not len(known):  # a first publish: nothing was there, and nothing is kept of it
        nothing = np.broadcast_to(np.zeros((1, 2), np.uint64), (n, 2))
        return Before(nothing, nothing, np.broadcast_to(np.full(1, -1, np.int32), n))
    out = Before(np.zeros((n, 2), np.uint64), np.zeros((n, 2), np.uint64), np.full(n, -1, np.int32))
    at = np.flatnonzero(slot >= 0)
    if run.head is not None and len(at):
        rows = IndexRows(look_up(run.store, run.head.manifest.index, slot[at]))
        out.digest[at] = halves(rows.digest)
        out.source[at] = halves(rows.source_digest)
        out.partition[at] = known.partition_of(slot[at])
    return out


def _counts(settled: Settled, removed: int, rekeyed: int, not_counted: int) -> Counts:
    tally = np.bincount(settled.codes, minlength=128)
    return Counts(
        added=int(tally[classes.ADDED]),
        changed=int(tally[classes.CHANGED]),
        removed=int(tally[classes.REMOVED]) + removed,
        moved=int(tally[classes.MOVED]),
        reversed=int(settled.reversed.sum()),
        rekeyed=rekeyed,
        suppressed=int(tally[classes.SUPPRESSED]),
        reprocessed=int(tally[classes.REPROCESSED]),
        refreshed=int(tally[classes.REFRESHED]),
        backfilled=not_counted,
    )


def _result(run: Run, known: Known, processed: Processed, settled: Settled, counts: Counts, findings: list[Finding]) -> PublishResult:
    """What is known of the run's result before anything is written: every row has one fate."""
    received = run.delivery
    tally = np.bincount(settled.codes, minlength=128)
    rejected = int(processed.rejected.sum()) + received.unkeyed
    unchanged = received.unchanged + int(tally[classes.UNCHANGED]) + int(tally[classes.REFRESHED])
    fates = unchanged + counts.added + counts.changed + counts.moved + int(tally[classes.SUPPRESSED]) + counts.reprocessed + rejected
    if fates != received.rows:
        raise InternalError(
            f"{received.rows} rows were delivered, {fates} have a fate; nothing was published",
            hint="please report this, with the run record",
        )
    return PublishResult(
        name=run.publication.name,
        status="published" if not run.settings.dry_run else "planned",
        version=run.parent_version,
        features=len(known),
        delivered=received.rows,
        run_id=run.run_id,
        delta=counts,
        unchanged=unchanged,
        rejected=rejected,
        held=int(tally[classes.HELD]),
        files_carried=len(run.files),
        partitions=len({each.partition for each in run.files}),
        findings=tuple(findings),
        current=run.parent_version,
        changed=_changed(settled, run.terms.projection.unit),
        notices=run.publication.notices,
    )


def _changed(settled: Settled, unit: str) -> Changed | None:
    changed = settled.codes == classes.CHANGED
    if not changed.any():
        return None
    both = settled.attributes & settled.geometry & changed
    move = settled.move[changed]
    return Changed(
        attributes=int((settled.attributes & changed).sum() - both.sum()),
        geometry=int((settled.geometry & changed).sum() - both.sum()),
        both=int(both.sum()),
        largest_move=float(np.nanmax(move)) if (settled.geometry & changed).any() and np.isfinite(move).any() else None,
        unit=unit,
        most=most_changed(settled.column_changes.items()),
    )


def _guards(  # noqa: PLR0913, PLR0917 - each is the value of another step of the verdict
    run: Run,
    known: Known,
    processed: Processed,
    settled: Settled,
    before: Before,
    counts: Counts,
    removed: IndexRows,
    names: list[str],
    placed: npt.NDArray[np.int32],
    migrated: Migrated | None,
    filled: frozenset[str],
    not_counted: int,
    brought: Returned,
) -> list[Finding]:
    """Every guard that fires, those that were decided before pass 2 too: one report, one token."""
    if emptied(run, known):
        return emptied(run, known)  # how much that changes is said already
    rule, features, keyed = run.publication.guard, len(known), run.terms.reading.key_name
    again = int((migrated.before < len(removed)).sum()) if migrated is not None else 0
    found: list[Finding | None] = [*measured(run, known, rejected=counts.removed - len(removed), again=again, extent=processed.extent)]
    touched = (counts.added + counts.changed + counts.removed - counts.rekeyed if migrated is None else migrated.left) - not_counted
    share = touched / max(features, 1)
    limit = guards.allowed(rule.max_changed_fraction, touched, rule.min_touched)
    if features and limit is not None and share > limit:
        codes = settled.codes
        changed, fresh = codes == classes.CHANGED, np.isin(codes, (classes.CHANGED, classes.ADDED))
        gone = np.concatenate([before.digest[changed], halves(removed.digest)])
        elsewhere = classes.found_elsewhere(processed.in_last_domain[fresh], gone, before.digest[fresh])
        facts = evidence_of(run.terms, settled, counts, elsewhere, features, keyed, met_in(run), features - counts.removed)
        found.append(guards.changed_fraction(facts, share=share, limit=limit))
    moved = settled.codes == classes.MOVED
    found.append(
        guards.moved_fraction(
            keyed,
            counts.moved,
            features,
            guards.allowed(rule.max_moved_fraction, counts.moved, rule.min_touched),
            commonest_move(before.partition[moved], placed[moved], names) if rule.max_moved_fraction is not None else "",
        )
    )
    for column, changes in sorted(settled.column_changes.items()):
        limit, kept = guards.allowed(rule.max_column_changed_fraction, changes, rule.min_touched), features - counts.removed
        # What the contract newly asks for is not held against the delivery.
        if column not in filled and guards.column_changed(column, changes, kept, limit) is not None:
            found.append(guards.column_changed(column, changes, kept, limit, column_cause(settled, column, met_in(run), kept)))
    found.append(_withdrawn(run, brought))
    return [each for each in found if each is not None]


def held_breach(run: Run, verdict: ChangeVerdict, before: Before) -> Finding | None:
    """What the contract in force says against the published rows that would stay in place of rejected ones.

    Raises:
        CorruptError: a published file is damaged.
    """
    terms, held = run.terms, np.flatnonzero(verdict.settled.codes == classes.HELD)
    if not terms.parent.other_rules or not len(held):
        return None
    candidates = run.delivery.candidates
    published = Published(terms.parent.published, run.store, by_partition(run.files), verdict.names)
    rows = published.of_keys(candidates.hash[held], before.partition[held])
    return judge_held(terms, rows, candidates.row[held])


def _withdrawn(run: Run, brought: Returned) -> Finding | None:
    """The guard over what a roll-back withdrew; that it is the very delivery is said already."""
    if run.head is None or run.delivery.set_digest in run.head.manifest.withdrawn:
        return None
    wrong = keys.ids_of(brought.entries.key.combine_chunks().filter(pa.array(brought.wrong))).to_pylist()
    limit = run.publication.guard.max_withdrawn_fraction
    return guards.withdrawn_features(run.terms.reading.key_name, int(brought.back.sum()), len(brought.entries), limit, wrong)


def _brought_back(run: Run, processed: Processed) -> Returned:
    """What the delivery brings back of a change that was withdrawn, in the domain that the withdrawn digests are of."""
    candidates, received = run.delivery.candidates, run.delivery
    manifest = run.head.manifest if run.head is not None else None
    entries = read_withdrawn(run.store, manifest) if manifest is not None else WithdrawnRows.empty()
    same = manifest is not None and manifest.withdrawn_domain == manifest.domain
    digests = processed.in_last_domain if same else processed.digest
    return returned(entries, candidates.hash, digests, processed.rejected, received.removed_hash)


def planned(run: Run, verdict: ChangeVerdict, processed: Processed) -> PublishResult:
    """The result of a dry run: files and rows exact, bytes estimated from the rows that are published (or were read)."""
    rows = sum(each.rows for each in run.files)
    per_row = sum(each.bytes for each in run.files) / rows if rows else processed.spool.bytes / max(processed.spool.rows, 1) / 3
    made, target = verdict.plan, run.publication.files.target_rows
    written = sum(max(1, -(-count // target)) for count in made.rows.values())
    touched = len(made.touched) + len(made.dropped)
    return replace(
        verdict.result,
        status="planned",
        features=verdict.features,
        files_written=written,
        files_carried=len(made.carried),
        bytes_written=int(made.rewritten_rows * per_row),
        rebuild=(written + len(made.carried), int(verdict.features * per_row)),
        rows_written=made.rewritten_rows,
        partitions_touched=touched,
        partitions=touched + len({each.partition for each in made.carried}),
        seconds=run.seconds,
    )
