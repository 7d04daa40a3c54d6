"""Whether the lineage of a dataset is complete for a version: the chain of each run, and published = accepted or held, minus removed.

Not here: gaps inside one run's events (`lineage.complete`), damage (`dataset.verify`, `lineage.proof`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.dataset.feed import Feed, read_classes
from merestone.dataset.history import descent
from merestone.dataset.index import load_table
from merestone.dataset.manifest import HistoryLine
from merestone.dataset.tables import IndexRows
from merestone.dataset.version import Dataset
from merestone.identity import key as keys
from merestone.inspect import browse
from merestone.lineage.event.collector import OUTSIDE_CHAIN, base_stage
from merestone.lineage.event.record import ATTEMPT_BITS
from merestone.lineage.store import reading
from merestone.lineage.store.complete import Gap, Order, check_chain
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, attempts_that_count
from merestone.lineage.store.writing import ROOT
from merestone.results.finding import SAMPLES
from merestone.storage.port import Store

DOUBTFUL = frozenset({"future", "sequence_sparse"})
"""Rules that are reported but fail nothing."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a gate lets pass though there was nothing to judge.

    Attributes:
        empty: a store without runs, and runs that hold neither events nor findings.
        no_plan: events of a run that does not say its stages.
    """

    empty: bool = False
    no_plan: bool = False


NOTHING = Allowed()
MADE = pa.array(["added", "changed", "reprocessed", "refreshed", "suppressed"])
"""The classes of features that a run made what they are."""
_NAMES = ("event_id", "run_id", "sequence", "event_time_utc", "stage", "feature_id", "outcome", "change_class")


@dataclass(slots=True)
class Completeness:
    """What was looked at, and the gaps, by the run that they are in."""

    runs: list[str] = field(default_factory=list)
    features: int = 0
    gaps: list[tuple[str, Gap]] = field(default_factory=list)
    allowed: Allowed = NOTHING

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, and something was there to be judged."""
        return not any(self.fails(gap) for _, gap in self.gaps)

    def fails(self, gap: Gap) -> bool:
        """Whether a gap fails the gate."""
        passes = {"empty": self.allowed.empty, "no_plan": self.allowed.no_plan}
        return gap.rule not in DOUBTFUL and not passes.get(gap.rule, False)


@dataclass(slots=True)
class _Outcomes:
    """What the events of one run say of its features: string arrays of feature ids."""

    accepted: pa.Array
    rejected: pa.Array
    published: dict[str, pa.Array]  # by change class, of stage `publish`


def check_runs(
    store: Store, runs: Iterable[Sequence[RunManifest]], *, now: datetime, root: str = ROOT, allowed: Allowed = NOTHING
) -> Completeness:
    """The chain and the order of the events of sealed runs.

    Raises:
        CorruptError: a part cannot be read.
    """
    found = Completeness(allowed=allowed)
    for attempts in runs:
        _check_run(store, attempts, found, now, root)
    if not found.runs:
        found.gaps.append(("", Gap("empty", "no run is sealed here, so there is nothing to judge", 1, ())))
    return found


def check_version(
    dataset: Dataset, version: int | None, *, now: datetime, last_step: bool = False, allowed: Allowed = NOTHING
) -> Completeness:
    """The runs behind a version, each opened once, and whether each of its features is in the events of the run that made it.

    Args:
        dataset: the dataset.
        version: the current one by default.
        now: events after it are doubtful.
        last_step: check the run that made the version, and nothing before it. What is read does not grow with the number of versions.
        allowed: what passes though there is nothing to judge.

    Raises:
        UsageError: the version does not exist.
        CorruptError: a manifest, change log, index or part cannot be read.
    """
    manifest = dataset.manifest(version)
    found = Completeness(features=manifest.features, allowed=allowed)
    live = IndexRows(load_table(dataset.store, manifest.index)).key.combine_chunks()
    resolved = pa.array([], pa.binary())
    for at, each in enumerate(islice(made_by(dataset, manifest.version), 1 if last_step else None)):
        outcomes = _Outcomes(pa.array([], pa.string()), pa.array([], pa.string()), {})
        run = each.run_id
        if each.lineage is not None:
            sealed = browse.sealed_of(dataset.store, each)
            attempts = [one for one in attempts_that_count(attempts_of(dataset.store, sealed.run_id)) if one.attempt <= sealed.attempt]
            outcomes = _check_run(dataset.store, attempts, found, now, ROOT)
        else:
            found.gaps.append((run, Gap("run_missing", f"version {each.version} names no sealed run", 1, ())))
        log = read_classes(dataset.store, each.changes)
        if each.lineage is not None and attempts[-1].expired is not None:  # what is left to say is what still is as this run made it
            mine = pc.and_(pc.is_in(log.key, live), pc.invert(pc.is_in(log.key, resolved)))
            log = log.filter(pc.and_(mine, pc.is_in(log.kind, MADE)))
        _compare(log, outcomes, run, found)
        if at == 0:
            _compare_live(live, outcomes, run, found)
        made = log.filter(pc.is_in(log.kind, MADE)).key.combine_chunks()
        gone = log.filter(pc.equal(log.kind, "removed")).key.combine_chunks()
        resolved = pa.concat_arrays([resolved, made, gone])
    if last_step:
        return found
    lost = live.filter(pc.invert(pc.is_in(live, resolved)))
    _add(found, manifest.run_id, "unresolved", "published features that no run made", keys.ids_of(lost))
    return found


def made_by(dataset: Dataset, version: int) -> Iterator[HistoryLine]:
    """The versions whose runs made a version what it is, newest first: what a roll-back took back is passed over."""
    return (each for each in descent(dataset.history(), version) if each.rollback is None)


def _check_run(store: Store, attempts: Sequence[RunManifest], found: Completeness, now: datetime, root: str) -> _Outcomes:
    run, plan = attempts[-1].run_id, attempts[-1].plan
    found.runs.append(run)
    last = plan[-1] if plan else None
    order, events = Order(now, dense=[each.attempt for each in attempts if not each.foreign]), 0
    accepted, rejected = [], []
    published: dict[str, list[pa.Array]] = {}
    gaps: dict[tuple[str, str], Gap] = {}
    for table in reading.scan(store, attempts, root, names=_NAMES):
        order.add(table)
        events += table.num_rows
        for gap in check_chain(table, plan) if plan else ():
            known = gaps.get((gap.rule, gap.message))
            gaps[gap.rule, gap.message] = (
                gap if known is None else Gap(gap.rule, gap.message, known.count + gap.count, (*known.samples, *gap.samples)[:SAMPLES])
            )
        standing = _of_last_attempt(deduplicate(table))
        stages = standing.column("stage").combine_chunks().dictionary_encode()
        bases = pa.array([base_stage(each) for each in stages.dictionary.to_pylist()], pa.string()).take(stages.indices)
        refused = pc.equal(standing.column("outcome"), "REJECT").combine_chunks()
        outside = pc.equal(bases, OUTSIDE_CHAIN)
        ids = standing.column("feature_id").combine_chunks()
        turned_down = pc.unique(ids.filter(pc.and_(refused, pc.invert(outside))))
        rejected.append(turned_down)
        reached = ids.filter(pc.and_(pc.equal(bases, last), pc.invert(refused))) if last is not None else ids.slice(0, 0)
        accepted.append(pc.unique(reached.filter(pc.invert(pc.is_in(reached, turned_down)))))  # a table holds all rows of its features
        of_publish = standing.filter(outside)
        for kind in pc.unique(of_publish.column("change_class")).to_pylist():
            if kind is not None:
                published.setdefault(kind, []).append(
                    of_publish.filter(pc.equal(of_publish.column("change_class"), kind)).column("feature_id").combine_chunks()
                )
    found.gaps += [(run, gap) for gap in gaps.values()]
    if not events and not any(each.foreign or each.doc["findings"] for each in attempts) and attempts[-1].expired is None:
        found.gaps.append((run, Gap("empty", "the run holds neither events nor findings, so there is nothing to judge", 1, ())))
    if events and not plan:
        found.gaps.append((run, Gap("no_plan", "the run says nothing of its stages, so their chain cannot be checked", events, ())))
    if attempts[-1].expired is None:
        found.gaps += [(run, gap) for gap in order.gaps()]
    return _Outcomes(_joined(accepted), _joined(rejected), {kind: _joined(each) for kind, each in published.items()})


def _of_last_attempt(table: pa.Table) -> pa.Table:
    """The rows of the attempt that came last for each feature: what an attempt before it said was said of another try."""
    attempt = np.asarray(table.column("sequence").combine_chunks()) >> ATTEMPT_BITS
    if not len(attempt) or attempt.min() == attempt.max():
        return table
    features = np.asarray(table.column("feature_id").combine_chunks().dictionary_encode().indices)
    last = np.zeros(int(features.max()) + 1, np.int64)
    np.maximum.at(last, features, attempt)
    return table.filter(pa.array(attempt == last[features]))


def _compare(log: Feed, outcomes: _Outcomes, run: str, found: Completeness) -> None:
    """Each line of a version's change log has its event."""
    kinds, ids = log.kind, keys.ids_of(log.key.combine_chunks())
    wanted = (
        ("not_accepted", "features were made without PASS or WARN at the last stage of the plan", pc.is_in(kinds, MADE), outcomes.accepted),
        ("held_untold", "held features without an event of it", pc.equal(kinds, "held"), outcomes.published.get("held")),
        ("removed_untold", "removed features without an event of it", pc.equal(kinds, "removed"), outcomes.published.get("removed")),
        ("moved_untold", "moved features without an event of it", pc.equal(kinds, "moved"), outcomes.published.get("moved")),
    )
    for rule, message, mask, events in wanted:
        mine = ids.filter(one_chunk(mask))
        _add(found, run, rule, message, mine if events is None else mine.filter(pc.invert(pc.is_in(mine, events))))


def _compare_live(live: pa.Array, outcomes: _Outcomes, run: str, found: Completeness) -> None:
    """What the run accepted is published; what it rejected is not, unless it is held."""
    ids = keys.ids_of(live)
    _add(
        found,
        run,
        "not_published",
        "accepted features are not in the version",
        outcomes.accepted.filter(pc.invert(pc.is_in(outcomes.accepted, ids))),
    )
    rejected = outcomes.rejected.filter(pc.is_in(outcomes.rejected, ids))
    held = outcomes.published.get("held")
    if held is not None:
        rejected = rejected.filter(pc.invert(pc.is_in(rejected, held)))
    _add(found, run, "rejected_published", "rejected features stand in the version and are not held", rejected)


def _add(found: Completeness, run: str, rule: str, message: str, ids: pa.Array) -> None:
    if len(ids):
        distinct = pc.unique(ids)
        found.gaps.append((run, Gap(rule, message, len(distinct), tuple(distinct.slice(0, SAMPLES).to_pylist()))))


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())
