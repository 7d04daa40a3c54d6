"""The order of the line: one delivery from its source to a version, or to a refusal that says why.

Not here: any single step (the passes in `receive`, `process`, `rewrite`; the judgement of the change in `change_verdict`; the ends in `finish`).
"""

from __future__ import annotations

import time

import numpy as np

from merestone.dataset.current import Current, current
from merestone.dataset.history import lines
from merestone.dataset.index import load
from merestone.dataset.known import Known
from merestone.engine.port import Engine
from merestone.engine.threads import Threads
from merestone.errors import UnknownOutcomeError
from merestone.gate.delivery import far_out, rejected_share
from merestone.gate.findings import faults_of
from merestone.line import environment
from merestone.line.comparing.kept_findings import kept_findings
from merestone.line.finish import failed, finish, refuse
from merestone.line.judging.change_verdict import held_breach, judge, planned, published_before
from merestone.line.judging.delivery_promises import delivery_promises
from merestone.line.judging.guards_before_processing import stops_before_processing
from merestone.line.preparing.prepare import prepare
from merestone.line.processing.neighbourhood import judge_version
from merestone.line.processing.process import process
from merestone.line.receiving.receive import receive, without_consequences, without_missing
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.line.run import Run, begin_attempt, begin_by_bytes
from merestone.line.settings import PublishSettings
from merestone.line.tokens import confirmed
from merestone.line.undisturbed import undisturbed
from merestone.line.writing.write import write_version
from merestone.publication.publication import Publication
from merestone.results.finding import Finding
from merestone.results.result import PublishResult
from merestone.rules import catalogue
from merestone.scratch.room import room_in
from merestone.source.port import UnreadableValueError
from merestone.storage.open import open_store
from merestone.storage.port import Store

__all__ = ["PublishSettings", "publish", "publish_onto"]


def publish(publication: Publication, settings: PublishSettings, *, engine: Engine | None = None) -> PublishResult:
    """Publish a delivery: a new version, `unchanged`, or a refusal. Nothing is ever half published.

    Args:
        publication: how the dataset is made.
        settings: how this publish is called.
        engine: what carries out the units of the passes; threads on all cores by default.

    Raises:
        MerestoneError: the question could not be answered; the old version stays, and the attempt leaves a record where that is possible.
    """
    store = open_store(publication.destination)
    return publish_onto(publication, settings, store, current(store), engine=engine)


def publish_onto(
    publication: Publication, settings: PublishSettings, store: Store, head: Current | None, *, engine: Engine | None = None
) -> PublishResult:
    """Publish a delivery on top of exactly the version that the caller has seen (None: nothing yet).

    Raises:
        ConflictError: another publisher has moved on from there.
        MerestoneError: as `publish`.
    """
    with environment.scratch() as folder:
        run = Run(
            publication,
            settings,
            store,
            head,
            folder,
            engine or Threads(environment.cores()),
            environment.nonce(),
            environment.now(),
            time.perf_counter(),
            evidence=RowEvidence(hold=publication.rejects.published == "hold"),
        )
        try:
            with environment.room_in(folder), undisturbed(environment.fault_step()) as run.step:
                return _publish(run)
        except UnknownOutcomeError:
            raise  # no record: the next run looks what became of it
        except (Exception, KeyboardInterrupt) as fault:
            failed(run, fault)
            raise
        finally:
            if run.attempt is not None:
                run.attempt.leave()


def _publish(run: Run) -> PublishResult:  # noqa: C901, PLR0911, PLR0912 - the order of the line, with every way out, stands in one place
    with run.stage("prepare"):
        versions = lines(run.store, run.head) if run.head else ()
        terms = run.prepared = prepare(run.publication, run.head, scheme=run.scheme, versions=versions, now=run.started)
    findings = list(terms.findings)
    if terms.unreadable and not terms.columnless:
        begin_by_bytes(run)
        return refuse(run, findings, "contract")
    with run.stage("index"):
        known = load(run.store, run.head.manifest.index, terms.partitions, room_in(run.folder)) if run.head else Known.nothing()

    try:
        with run.stage("pass 1"):
            received = run.received = receive(terms, known, run.folder, run.engine, run.evidence, run.settings.progress)
    except UnreadableValueError as fault:
        return refuse(run, [*findings, fault.finding], "contract")
    if received.rows == 0 and terms.columnless:
        findings = without_missing(findings)
    elif terms.unreadable:
        begin_by_bytes(run)
        return refuse(run, findings, "contract")
    findings = [
        *received.places.placed(findings),
        *received.findings,
        *delivery_promises(terms, received, run.started, run.head, environment.modified(run.publication.source.path)),
    ]
    if received.unkeyed:
        begin_by_bytes(run)
    else:
        begin_attempt(run, received.set_digest)
    if not _refusing(findings):
        stops = stops_before_processing(run, known)
        if stops and not confirmed(run, stops):
            return refuse(run, stops, "guard")
    kept = kept_findings(run, known, received)
    known.lookup.forget()

    with run.stage("pass 2"):
        before = published_before(run, known, received.candidates.slot)
        processed = process(
            terms,
            received.candidates,
            before,
            run.folder,
            run.engine,
            evidence=run.evidence,
            events=run.events,
            watch=run.settings.progress,
        )
        run.evidence.lines.append(kept)
        processed.tally.add(faults_of(kept), rows=np.zeros(len(kept), np.int64), ids=kept.feature_id.combine_chunks())
    findings += far_out(without_consequences(received, [*received.tally.findings(), *processed.tally.findings()]), received.rows)
    bad = int(processed.rejected.sum())
    if bad and terms.parent.rekeyed:
        findings.append(catalogue.KEY_MIGRATION.finding(terms.reading.key_name, count=bad))
    limit = run.publication.rejects.max_fraction
    too_many = rejected_share(bad, received.rows, limit)
    if too_many is not None:
        findings.append(too_many)
    if _refusing(findings) or bad > limit * received.rows:
        return refuse(run, findings, "contract")

    with run.stage("pass 2"):
        verdict = judge(run, known, processed, before, findings)
    held = held_breach(run, verdict, before)
    if held is not None:
        return refuse(run, [*findings, held], "contract", verdict.result)
    if verdict.stops and not confirmed(run, verdict.stops):
        return refuse(run, verdict.stops, "guard", verdict.result)
    with run.stage("topology"):
        breaches = judge_version(run, known, verdict, processed, before)
    if breaches:
        return refuse(run, [*findings, *breaches], "contract", verdict.result)
    if verdict.nothing_to_do:
        return finish(run, verdict.result)
    if run.settings.dry_run:
        return planned(run, verdict, processed)
    return finish(run, *write_version(run, processed, before, verdict))


def _refusing(findings: list[Finding]) -> bool:
    """Whether a finding about the delivery as a whole refuses it; of rows, a share may be tolerated."""
    return any(each.severity == "error" and not each.per_row for each in findings)
