"""The verdict on the change: classes counted, places given, guards asked, the plan made.

Not here: the classes (`change.classes`, `process.settle`), writing (`version`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes, guards
from merestone.change.classes import Before
from merestone.change.migration import Found, Side, by_content, by_table
from merestone.change.plan import Plan, plan
from merestone.columnar import hashing
from merestone.dataset.index import live_keys, look_up
from merestone.dataset.known import INDEX_SCHEMA, Halves, Known, halves
from merestone.dataset.partition import Tree, build_tree, leaf_names, place
from merestone.dataset.record import read_records
from merestone.errors import InternalError
from merestone.line import environment
from merestone.line.change_log import Labels
from merestone.line.comparison_warnings import late_findings
from merestone.line.finish import TOKEN_DAYS
from merestone.line.mass_change import column_cause, commonest_move, evidence_of, partitions_gone, renumbered
from merestone.line.prepare import extent_of
from merestone.line.process import Processed, Settled, settle
from merestone.line.run import Run
from merestone.publication.publication import KeyRule
from merestone.results.finding import Finding
from merestone.results.result import Changed, Counts, PublishResult, most_changed

SAMPLE = 1 << 20  # positions that the kd-tree is drawn from, about
CHUNK = 1 << 18  # positions that are placed at a time


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the change is and what is to be done.

    placed: int32, the new partition code of each candidate; names: the name of each code; tree: the kd-tree, if there is one. removed: the
    index rows of the features that were not delivered. leaves: bool, candidates whose published row is not carried in its place.
    stops: the guards that fired.
    """

    settled: Settled
    placed: npt.NDArray[np.int32]
    names: list[str]
    tree: Tree | None
    removed: Any
    removed_rekeyed: npt.NDArray[np.bool_]
    labels: Labels
    leaves: npt.NDArray[np.bool_]
    plan: Plan
    features: int
    result: PublishResult
    stops: list[Finding]
    nothing_to_do: bool


def judge(run: Run, known: Known, processed: Processed, before: Before, findings: list[Finding]) -> Verdict:
    """Class every candidate, count every row's fate, ask the guards and make the plan.

    Raises:
        CorruptError: a published file is damaged.
        InternalError: the fates of the rows do not add up to what was delivered.
    """
    terms, received, publication = run.terms, run.delivery, run.publication
    placed, tree = _place(run, processed, before)
    names = terms.partitions.names()
    settled = settle(
        terms,
        run.store,
        run.files,
        names,
        received.candidates,
        processed,
        before,
        placed,
        run.folder,
        hold=publication.rejects.published == "hold",
    )
    codes = settled.codes
    removed = INDEX_SCHEMA.empty_table()
    if run.head is not None and len(received.removed):
        removed = look_up(run.store, run.head.manifest.index, known.position[received.removed])
    added = codes == classes.ADDED
    rekeyed_added, rekeyed_removed = classes.rekeyed(processed.deciding[added], halves(removed.column("digest")))
    migrated = _migrated(run, processed, before, codes, removed)
    labels = Labels(settled.reversed, settled.attributes, settled.geometry, np.zeros(len(codes), bool), settled.move, settled.fields)
    labels.rekeyed[added] = rekeyed_added
    counts = _counts(settled, removed.num_rows, int(rekeyed_added.sum()))
    late = late_findings(
        received.candidates.spool,
        received.candidates.row,
        settled.blanks,
        added & terms.key_is_text,
        _published_keys(run, known),
        terms.key_name,
    )
    if migrated is not None:
        late += _told(run, migrated, len(known))
    result = _result(run, known, processed, settled, counts, [*findings, *late])
    leaves = np.isin(codes, (classes.CHANGED, classes.MOVED, classes.REPROCESSED, classes.REMOVED))
    stored = np.isin(codes, (classes.ADDED, classes.CHANGED, classes.MOVED, classes.REPROCESSED))
    going = np.concatenate([before.partition[leaves], known.partition[received.removed]]).astype(np.int32)
    # What is suppressed stays as it is published, for every reader: its new source digest waits for a change to ride on.
    quiet = not (counts.touched or counts.reprocessed)
    return Verdict(
        settled=settled,
        placed=placed,
        names=names,
        tree=tree,
        removed=removed,
        removed_rekeyed=rekeyed_removed,
        labels=labels,
        leaves=leaves,
        plan=plan(run.files, names, placed[stored], going),
        features=len(known) + counts.added - counts.removed,
        result=result,
        stops=_guards(run, known, processed, settled, before, counts, removed, names, placed, migrated),
        nothing_to_do=quiet and run.head is not None and not terms.new_contract and not terms.rekeyed,
    )


def _migrated(
    run: Run,
    processed: Processed,
    before: Before,
    codes: npt.NDArray[np.int16],
    removed: Any,
) -> Found | None:
    """Which features only got another key; None where no migration is named or it has no effect."""
    terms, candidates = run.terms, run.delivery.candidates
    if terms.key_table is None and not terms.rekeyed:
        return None
    changed, fresh = codes == classes.CHANGED, np.isin(codes, (classes.CHANGED, classes.ADDED))
    gone = halves(hashing.blake2b16(removed.column("key").combine_chunks().cast(pa.binary())))
    older = Side(
        np.concatenate([gone, candidates.hash[changed]]), np.concatenate([halves(removed.column("digest")), before.digest[changed]])
    )
    newer = Side(candidates.hash[fresh], processed.deciding[fresh])
    return by_table(terms.key_table, older, newer) if terms.key_table is not None else by_content(older, newer)


def _told(run: Run, migrated: Found, features: int) -> list[Finding]:
    """What became of the keys, for the report and the record."""
    again, terms = len(migrated.before), run.terms
    if not again and not terms.rekeyed:
        return []
    other = f", {migrated.edited:,} of them with other content" if migrated.edited else ""
    was = KeyRule.of_manifest(run.head.manifest.key, published=True).words if run.head is not None and terms.rekeyed else ""
    rule = f"the key was {was} and is {run.publication.key.words}: " if was else ""
    return [
        Finding(
            "schema",
            terms.key_name,
            "key_migration",
            "warning",
            "keys that last",
            f"{rule}{again:,} of {features:,} features were found again under another key{other}",
            again,
            remedy="nothing, if this is meant; `key_migration` has done its work and can be removed from the publication",
        )
    ]


def _published_keys(run: Run, known: Known) -> Iterator[Any]:
    """The keys of the last version; none where they are of another rule, and look alike by chance at most."""
    if run.head is not None and not run.terms.rekeyed:
        yield from live_keys(run.store, run.head.manifest.index, known.position)


def published_before(run: Run, known: Known, slot: npt.NDArray[np.int32]) -> Before:
    """The index rows of the candidates that were published before."""
    n = len(slot)
    if not len(known):  # a first publish: nothing was there, and nothing is kept of it
        nothing = np.broadcast_to(np.zeros((1, 2), np.uint64), (n, 2))
        return Before(nothing, nothing, np.broadcast_to(np.full(1, -1, np.int32), n))
    out = Before(np.zeros((n, 2), np.uint64), np.zeros((n, 2), np.uint64), np.full(n, -1, np.int32))
    at = np.flatnonzero(slot >= 0)
    if run.head is not None and len(at):
        rows = look_up(run.store, run.head.manifest.index, known.position[slot[at]])
        out.digest[at] = halves(rows.column("digest"))
        out.source[at] = halves(rows.column("source_digest"))
        out.partition[at] = known.partition[slot[at]]
    return out


def _place(run: Run, processed: Processed, before: Before) -> tuple[npt.NDArray[np.int32], Tree | None]:
    """The new partition code of each candidate; a rejected row keeps the one of its published feature."""
    terms, candidates = run.terms, run.delivery.candidates
    rule, tree = run.publication.partition, terms.tree
    if rule.by == "column":
        placed = candidates.partition.copy()
    elif rule.by == "none":
        placed = np.full(len(candidates), terms.partitions.of_names([""])[0], np.int32)
    else:
        if tree is None:
            tree = _draw(processed, candidates.hash, rule.target_rows)
        codes = terms.partitions.of_names(leaf_names(tree))
        placed = np.concatenate([codes[place(tree, each)] for each in processed.centres.chunks(CHUNK)] or [np.zeros(0, np.int32)])
    held = processed.rejected & (before.partition >= 0)
    placed[held] = before.partition[held]
    return placed, tree


def _draw(processed: Processed, hashes: Halves, target_rows: int) -> Tree:
    """The kd-tree, from all accepted features or from about SAMPLE of them: those of least key hash, so that row order has no say."""
    total = int((~processed.rejected).sum())
    limit = np.uint64(min(SAMPLE / max(total, 1), 1.0) * float(2**64 - 2**12))
    points, at = [np.zeros((0, 2))], 0
    for chunk in processed.centres.chunks(CHUNK):
        here = slice(at, at + len(chunk))
        at = here.stop
        points.append(chunk[~processed.rejected[here] & ((hashes[here, 0] <= limit) | (total <= SAMPLE))])
    return build_tree(np.concatenate(points), target_rows, total)


def _counts(settled: Settled, removed: int, rekeyed: int) -> Counts:
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
    )


def _result(run: Run, known: Known, processed: Processed, settled: Settled, counts: Counts, findings: list[Finding]) -> PublishResult:
    """What is known of the run's result before anything is written: every row has one fate."""
    received = run.delivery
    tally = np.bincount(settled.codes, minlength=128)
    refreshed, rejected = int(tally[classes.REFRESHED]), int(processed.rejected.sum())
    unchanged = received.unchanged + int(tally[classes.UNCHANGED]) + refreshed
    fates = unchanged + counts.added + counts.changed + counts.moved + counts.suppressed + counts.reprocessed + rejected
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
        file=run.settings.shown,
        current=run.parent_version,
        changed=_changed(settled, run.terms.unit),
        refreshed=refreshed,
        notices=run.publication.notices,
        command=run.settings.repeat,
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


def _guards(
    run: Run,
    known: Known,
    processed: Processed,
    settled: Settled,
    before: Before,
    counts: Counts,
    removed: Any,
    names: list[str],
    placed: npt.NDArray[np.int32],
    migrated: Found | None,
) -> list[Finding]:
    """Every guard that fires, those that were decided before pass 2 too: one report, one token."""
    if emptied(run, known):
        return emptied(run, known)  # how much that changes is said already
    rule, features, keyed = run.publication.guard, len(known), run.terms.key_name
    again = int((migrated.before < removed.num_rows).sum()) if migrated is not None else 0
    found: list[Finding | None] = [*measured(run, known, rejected=counts.removed - removed.num_rows, again=again, extent=processed.extent)]
    touched = counts.added + counts.changed + counts.removed - counts.rekeyed if migrated is None else migrated.left
    share = touched / max(features, 1)
    limit = rule.max_changed_fraction
    if run.head is not None and limit is not None and share > limit:
        codes = settled.codes
        changed, fresh = codes == classes.CHANGED, np.isin(codes, (classes.CHANGED, classes.ADDED))
        gone = np.concatenate([before.digest[changed], halves(removed.column("digest"))])
        elsewhere = classes.found_elsewhere(processed.deciding[fresh], gone, before.digest[fresh])
        facts = evidence_of(run.terms, settled, counts, elsewhere, features, keyed)
        found.append(guards.changed_fraction(facts, share=share, limit=limit))
    moved = settled.codes == classes.MOVED
    found.append(
        guards.moved_fraction(
            keyed,
            counts.moved,
            features,
            rule.max_moved_fraction,
            commonest_move(before.partition[moved], placed[moved], names) if rule.max_moved_fraction is not None else "",
        )
    )
    for column, changes in sorted(settled.column_changes.items()):
        found.append(
            guards.column_changed(
                column, changes, features - counts.removed, rule.max_column_changed_fraction, column_cause(settled, column)
            )
        )
    return [each for each in found if each is not None]


def measured(run: Run, known: Known, *, rejected: int = 0, again: int = 0, extent: guards.Box | None = None) -> list[Finding]:
    """The guards that keys and measures of pass 1 decide.

    Args:
        run: after pass 1.
        known: the last version.
        rejected: features that are removed since their delivered row was rejected.
        again: features whose key is gone and which were found again under another one, as the publication said they would be.
        extent: of all candidates as they come out; wanted where the delivery's own says nothing (another CRS than the last one's).
    """
    terms, received, rule, features = run.terms, run.delivery, run.publication.guard, len(known)
    keyed, lost = terms.key_name, len(received.removed) - again
    found = [guards.null_geometry_fraction(terms.geometry, received.nowhere, received.rows, rule.max_null_geometry_fraction)]
    if run.head is None:
        return [each for each in found if each is not None]
    found.append(guards.withdrawn(received.set_digest, run.head.manifest.withdrawn, keyed))
    why = ""
    if lost and (rule.max_removed_fraction is not None or rule.min_key_survival is not None):
        fresh = received.candidates.source[received.candidates.slot < 0]
        why = renumbered(received.gone_source, fresh, keyed) if terms.comparable else ""
        why = why or partitions_gone(known, received.removed, terms.partitions.names())
    found.append(guards.removed_fraction(keyed, lost + rejected, features, rule.max_removed_fraction, why))
    found.append(guards.key_survival(keyed, features - lost, features, rule.min_key_survival, why))
    now, then = received.extent, terms.last_extent
    if then is None:
        now, then = extent, extent_of(run.head.manifest)
    metres = None if terms.geographic or not terms.same_crs else terms.metres
    found.append(guards.extent_shift(terms.geometry, now, then, rule.max_extent_shift, metres=metres, outside=received.outside))
    return [each for each in found if each is not None]


def emptied(run: Run, known: Known) -> list[Finding]:
    """What an empty delivery over a filled dataset trips; the same before and after the passes, so that one token is a word for all of it."""
    keyed, received = run.terms.key_name, run.delivery
    gone = guards.emptied(received.rows, len(known), keyed)
    if gone is None or run.head is None:
        return []
    again = guards.withdrawn(received.set_digest, run.head.manifest.withdrawn, keyed)
    return [gone] if again is None else [gone, again]


def confirmed(run: Run, stops: list[Finding]) -> bool:
    """Whether --confirm names the token of exactly this stop; notes who confirmed."""
    given = run.settings.confirm
    if given is None:
        return False
    now = environment.now()
    for record in read_records(run.store):
        for issued in record.confirmations:
            if guards.confirms(
                given,
                issued,
                parent=run.parent_sha256,
                delivery=run.delivery.set_digest,
                guards=guards.fired(stops),
                now_utc=environment.stamp(now),
                oldest_utc=environment.stamp(now - timedelta(days=TOKEN_DAYS)),
            ):
                run.confirmations = [
                    {
                        "token": given,
                        "guards": guards.fired(stops),
                        "issued_utc": issued["issued_utc"],
                        "used_utc": environment.stamp(now),
                        "by": environment.who(),
                    }
                ]
                return True
    return False


def planned(run: Run, verdict: Verdict, processed: Processed) -> PublishResult:
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
        seconds=time.perf_counter() - run.clock,
    )
