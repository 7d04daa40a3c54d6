"""Diff: two sources or dataset versions compared as publish would compare them, and nothing published.

The older side is read into a scratch dataset, the newer one goes through the very passes of a publish against it, and the feed of that
step is the answer. So there is one engine, memory is bounded as in a publish, and classes and labels cannot mean two things. Two versions
of one dataset need no comparison: their change logs are folded.

Not here: the terms of the comparison (`terms`), the passes (`line`), how the answer looks (`render`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from merestone.change.classes import Before
from merestone.compare.sides import DiffSide, open_side
from merestone.compare.terms import ComparisonSettings, ComparisonTerms, settle_terms
from merestone.dataset import feed
from merestone.dataset.current import Current, current
from merestone.dataset.feed import Changes, Feed, read_classes
from merestone.dataset.index import load
from merestone.dataset.known import Halves, Known, find, sort_by_hash
from merestone.dataset.version import Dataset
from merestone.engine.threads import Threads
from merestone.errors import InternalError
from merestone.identity import key as keys
from merestone.inspect import extract, show
from merestone.line import environment
from merestone.line.judging.change_verdict import ChangeVerdict, judge, published_before
from merestone.line.preparing.prepare import prepare
from merestone.line.preparing.whole_rules import WholeRules
from merestone.line.processing.process import process
from merestone.line.receiving.receive import receive
from merestone.line.run import Run
from merestone.line.settings import PublishSettings
from merestone.line.writing.write import write_version
from merestone.publication.publication import Publication
from merestone.render.map import ChangeMap
from merestone.results.finding import Finding
from merestone.results.progress import Watch, staged
from merestone.results.result import Counts, DiffResult, NotCompared
from merestone.scratch.room import room_in
from merestone.source.port import Source
from merestone.storage.open import open_store
from merestone.storage.port import Store
from merestone.writer.commit import begin

_ABOUT_THE_DRAFT = frozenset({"extra", "missing", "precision", "freshness"})  # findings about a contract that the comparison made up itself
_NO_ANSWER = frozenset({"key_type", "column_type", "crs_missing", "crs_mismatch", "no_operation", "axis_order"})
_SET_ASIDE = frozenset({"key_blank", "key_null", "key_duplicate", "key_type"})  # of rows: they are named, and the others are compared


@dataclass(frozen=True, slots=True)
class Difference:
    """The answer: its summary, and the two sides as versions of a dataset that lives as long as the `compared` that gave it.

    `change` holds no rows; `rows` reads them. None and None where the two cannot be compared.
    """

    result: DiffResult
    dataset: Dataset | None = None
    change: Changes | None = None

    def rows(self) -> Changes | None:
        """The change with its rows before and after."""
        if self.dataset is None or self.change is None:
            return None
        touched = self.change.touched
        before = feed.rows_of(self.dataset.version(self.change.from_version), touched.filter(touched.had), Feed.old_partition)
        after = feed.rows_of(self.dataset.version(self.change.to_version), touched.filter(touched.has), Feed.partition)
        return replace(self.change, before=before, after=after)

    def write(self, path: str) -> None:
        """Write the change in the format of the file's extension; see `extract.changes_file`."""
        change = self.rows()
        if self.dataset is not None and change is not None:
            extract.changes_file(self.dataset.version(change.to_version), change, path)

    def page(self, attribution: str = "") -> ChangeMap | None:
        """The change as a map."""
        if self.dataset is None or self.change is None:
            return None
        drawn = show.change_map(self.dataset, self.change, attribution)
        return replace(drawn, name="diff", before=self.result.before, after=self.result.after)


@contextmanager
def compared(older: str, newer: str, settings: ComparisonSettings) -> Iterator[Difference]:
    """Compare two sources or dataset versions. What is made on the way lies in a scratch folder, gone at the end.

    Args:
        older: A, as typed: a file, a dataset's folder or publication file, with or without @N.
        newer: B.
        settings: how the comparison is called.

    Raises:
        UsageError: see `terms.settle_terms`.
        SourceError: a side cannot be read.
        CorruptError: a published file is damaged.
        MissingError: a PROJ grid is missing.
    """
    clock = time.perf_counter()
    one, other = open_side(older, settings.layer), open_side(newer, settings.layer)
    if (
        one.version is not None
        and other.version is not None
        and one.version.store.url == other.version.store.url
        and settings.changes_nothing
    ):
        yield _versions(one, other, clock, with_keys=settings.with_keys)
        return
    with environment.scratch() as folder:
        with staged(settings.progress, "prepare"):
            terms = settle_terms(one, other, settings, folder)
        yield _compare(terms, (one.shown, other.shown), folder, clock, settings)


def _versions(one: DiffSide, other: DiffSide, clock: float, *, with_keys: bool) -> Difference:
    """Two versions of one dataset: what its change logs say, read backwards where the older one is B."""
    if one.version is None or other.version is None:
        raise InternalError("two versions were to be compared, and one side is none")
    dataset = Dataset(one.version.store)
    start, end = one.version.number, other.version.number
    change = feed.changes(dataset, min(start, end), max(start, end))
    if start > end:
        change = feed.backwards(change)
    result = show.difference(dataset, change, with_keys=with_keys)
    return Difference(replace(result, before=one.shown, after=other.shown, seconds=time.perf_counter() - clock), dataset, change)


@dataclass(frozen=True, slots=True)
class _Passed:
    """A side that went through the passes: what was found, and the verdict unless it is refused.

    left_out: key hashes of rows that cannot be compared, uint64 (k, 2). not_compared: how many rows that are, with those that have no key.
    counted: how many of them the verdict counts as unchanged. partners: how many rows of the side before have no partner by that.
    """

    findings: tuple[Finding, ...]
    verdict: ChangeVerdict | None
    left_out: Halves
    not_compared: int = 0
    counted: int = 0
    partners: int = 0
    notes: tuple[str, ...] = ()


def _compare(terms: ComparisonTerms, names: tuple[str, str], folder: str, clock: float, settings: ComparisonSettings) -> Difference:
    store = open_store(terms.publications[0].destination)
    findings: list[Finding] = []
    notes = [*terms.notes]
    verdict: ChangeVerdict | None = None
    left_out = np.empty((0, 2), np.uint64)
    not_compared: list[int] = []
    passed: _Passed | None = None
    for publication, source, name in zip(terms.publications, terms.sources, names, strict=True):
        passed = _pass(publication, source, store, folder, left_out, settings.progress)
        findings += [replace(each, observed=f"{name}: {each.observed}") for each in passed.findings]
        notes += [f"{name}: {each}" for each in passed.notes]
        verdict, left_out = passed.verdict, passed.left_out
        not_compared = [*(each + passed.partners for each in not_compared), passed.not_compared]
        if verdict is None:
            refused = DiffResult(
                names[0],
                names[1],
                Counts(),
                0,
                findings=tuple(findings),
                notes=tuple(notes),
                status="refused",
                seconds=time.perf_counter() - clock,
            )
            return Difference(refused)
    if verdict is None or passed is None:
        raise InternalError("a comparison has two sides")
    dataset, counted = Dataset(store), verdict.result
    last = dataset.manifest().version
    change = feed.changes(dataset, 1, last)
    # What the guard of a publish would say of so large a change: here a person is only looking.
    causes = [each.observed for each in verdict.stops if each.rule == "changed"]
    result = show.difference(dataset, change, with_keys=settings.with_keys)
    if result.keys is not None:
        result = replace(result, keys={**result.keys, "suppressed": _suppressed(dataset, last)})
    result = replace(
        result,
        before=names[0],
        after=names[1],
        delta=counted.delta,
        unchanged=counted.unchanged - passed.counted,
        not_compared=NotCompared(not_compared[0], not_compared[1]),
        findings=tuple(findings),
        notes=(*causes, *notes),
        seconds=time.perf_counter() - clock,
    )
    return Difference(result, dataset, change)


def _pass(publication: Publication, source: Source, store: Store, folder: str, left_out: Halves, watch: Watch) -> _Passed:
    """Bring one side into the scratch dataset, as its next version. No guard stops it, and no rule but those that comparing needs.

    What the other side has in a form that cannot be compared (`left_out`, key hashes) is not compared here either, or it would be new here.
    """
    head = current(store)
    here = Path(folder) / ("newer" if head else "older")
    here.mkdir()
    engine = Threads(environment.cores())
    settings = PublishSettings(progress=watch)
    run = Run(publication, settings, store, head, str(here), engine, environment.nonce(), environment.now(), time.perf_counter())
    prepared = prepare(publication, head, source, scheme=run.scheme, now=run.started)
    run.prepared = prepared = replace(prepared, rules=WholeRules())
    if prepared.unreadable or _hopeless(prepared.findings):
        return _Passed(tuple(each for each in prepared.findings if each.severity == "error" and each.rule != "extra"), None, left_out)
    known = load(store, head.manifest.index, prepared.partitions, room_in(run.folder)) if head else Known.nothing()
    with run.stage("pass 1"):
        received = run.received = receive(prepared, known, run.folder, run.engine, run.evidence, watch)
    nothing_left = received.rows > 0 and received.unkeyed + received.repeated_rows == received.rows
    if _hopeless([each for each in received.findings if each.rule not in _SET_ASIDE]) or nothing_left:
        return _Passed(tuple(each for each in received.findings if each.severity == "error"), None, left_out)
    candidates = received.candidates
    aside = find(received.repeated, candidates.hash) >= 0
    partner = find(left_out[sort_by_hash(left_out)], candidates.hash) >= 0
    candidates.faulty[aside | partner] = True
    before = _before(run, known, head)
    with run.stage("pass 2"):
        processed = process(prepared, candidates, before, run.folder, run.engine, rules=False, evidence=run.evidence, watch=watch)
    rows = [*received.tally.findings(), *processed.tally.findings()]
    notes = []
    counted = received.repeated_rows - int(aside.sum())  # rows of repeated keys that are delivered as they are published
    own = received.unkeyed + counted + int((processed.rejected & (aside | ~partner)).sum())
    if own:
        notes.append(f"{own:,} rows could not be compared; the findings say why")
    operation = prepared.projection.operation
    if operation is not None and not operation.is_identity:
        accuracy = operation.accuracy_m
        known_to = "accuracy unknown" if accuracy is None else f"accuracy {accuracy:g} m"
        notes.append(f"transformed from {operation.source} to {operation.target} ({operation.name}, {known_to})")
    verdict = judge(run, known, processed, before, [])
    if not verdict.nothing_to_do or verdict.result.delta.suppressed:
        # An attempt without a writer of events: a comparison leaves no lineage.
        run.attempt = begin(
            store, run_id=run.nonce, nonce=run.nonce, name=publication.name, started_utc=environment.stamp(run.started), parent=head
        )
        write_version(run, processed, before, verdict)
    aside_now = np.unique(np.concatenate([candidates.hash[processed.rejected], received.repeated]), axis=0)
    said = [each for each in (*prepared.findings, *received.findings) if not _of_the_comparison(each)]
    return _Passed(
        tuple(replace(each, severity="warning") for each in (*said, *rows, *verdict.result.findings)),
        verdict,
        aside_now,
        received.unkeyed + counted + int(processed.rejected.sum()),
        counted,
        int((known.find(aside_now) >= 0).sum()),
        tuple(notes),
    )


def _before(run: Run, known: Known, head: Current | None) -> Before:
    before = published_before(run, known, run.delivery.candidates.slot)
    if head is not None and head.manifest.processing != run.terms.processing:
        # The same numbers in another CRS are not the same place: only what comes out decides.
        return replace(before, source=np.zeros((len(before.digest), 2), np.uint64))
    return before


def _hopeless(findings: Iterable[Finding]) -> bool:
    """Whether rows cannot be identified, read in one type, or brought into one CRS."""
    return any(each.severity == "error" and not each.per_row and each.rule in _NO_ANSWER for each in findings)


def _of_the_comparison(found: Finding) -> bool:
    """Whether a finding is about the terms that the comparison made up itself, or said by a note: that one side is transformed."""
    return found.rule in _ABOUT_THE_DRAFT or (found.rule == "crs_mismatch" and found.severity == "warning")


def _suppressed(dataset: Dataset, version: int) -> tuple[str, ...]:
    """The keys of the features that differ by noise below the grid only: no part of a feed, but of the log."""
    if version == 1:
        return ()
    log = read_classes(dataset.store, dataset.manifest(version).changes)
    key = log.key.filter(pc.equal(log.kind, "suppressed")).combine_chunks()
    return tuple(keys.ids_of(key).to_pylist()) if len(key) else ()
