"""The order of the line: one delivery from its source to a version, or to a refusal that says why.

Not here: any single step (the passes in `receive`, `process`, `rewrite`; the judgement of the change in `verdict`; the ends in `ending`).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from merestone.dataset.current import Current, current
from merestone.dataset.index import load
from merestone.dataset.known import Known
from merestone.errors import UnknownOutcomeError
from merestone.gate import delivery as gate_delivery
from merestone.gate.findings import faults_of
from merestone.line import environment
from merestone.line.carried_findings import carried
from merestone.line.early_guards import early_stops
from merestone.line.finish import failed, finish, refuse
from merestone.line.neighbourhood import judge_version
from merestone.line.prepare import prepare
from merestone.line.process import process
from merestone.line.receive import receive, without_consequences
from merestone.line.run import Run, begin_attempt
from merestone.line.settings import PublishSettings
from merestone.line.verdict import confirmed, judge, planned, published_before
from merestone.line.write import write_version
from merestone.publication.publication import Publication
from merestone.results.finding import Finding, Steps
from merestone.results.result import PublishResult
from merestone.source.port import UnreadableValueError
from merestone.storage.open import open_store
from merestone.storage.port import Store

__all__ = ["PublishSettings", "publish", "publish_onto"]


def publish(publication: Publication, settings: PublishSettings) -> PublishResult:
    """Publish a delivery: a new version, `unchanged`, or a refusal. Nothing is ever half published.

    Raises:
        MerestoneError: the question could not be answered; the old version stays, and the attempt leaves a record where that is possible.
    """
    store = open_store(publication.destination)
    return publish_onto(publication, settings, store, current(store))


def publish_onto(publication: Publication, settings: PublishSettings, store: Store, head: Current | None) -> PublishResult:
    """Publish a delivery on top of exactly the version that the caller has seen (None: nothing yet).

    Raises:
        ConflictError: another publisher has moved on from there.
        MerestoneError: as `publish`.
    """
    with environment.scratch() as folder:
        run = Run(publication, settings, store, head, folder, environment.nonce(), environment.now(), time.perf_counter())
        try:
            with environment.no_room_told(folder):
                return _publish(run)
        except UnknownOutcomeError:
            raise  # no record: the next run looks what became of it
        except (Exception, KeyboardInterrupt) as fault:
            failed(run, fault)
            raise
        finally:
            if run.attempt is not None:
                run.attempt.leave()


def _publish(run: Run) -> PublishResult:
    workers = environment.cores()
    with run.stage("prepare"):
        terms = run.prepared = prepare(run.publication, run.head)
    findings = list(terms.findings)
    if terms.unreadable:
        return refuse(run, findings, "contract")
    with run.stage("index"):
        known = load(run.store, run.head.manifest.index, terms.partitions) if run.head else Known.nothing()

    try:
        with run.stage("pass 1"):
            received = run.received = receive(terms, known, run.folder, workers=workers)
    except UnreadableValueError as fault:
        return refuse(run, [*findings, fault.finding], "contract")
    findings += [*received.findings, *_service(run)]
    begin_attempt(run, received.set_digest)
    run.rejects += received.rejects
    if not _refusing(findings):
        stops = early_stops(run, known)
        if stops and not confirmed(run, stops):
            return refuse(run, stops, "guard")
    kept = carried(run, known, received)
    known.forget_digests()

    with run.stage("pass 2"):
        candidates = received.candidates
        before = published_before(run, known, candidates.slot)
        processed = process(terms, candidates, before, run.folder, workers=workers, events=lambda *told: _tell(run, *told))
        run.rejects += processed.rejects
        processed.findings.append(kept)
        processed.tally.add(faults_of(kept), rows=np.zeros(kept.num_rows, np.int64), ids=kept.column("feature_id").combine_chunks())
    findings += without_consequences(received, [*received.tally.findings(), *processed.tally.findings()])
    bad = int(processed.rejected.sum())
    if bad and terms.rekeyed:
        findings.append(
            Finding(
                "schema",
                terms.key_name,
                "key_migration",
                "error",
                "a delivery without rejected rows while keys change",
                f"{bad:,} rows were rejected",
                bad,
                remedy="have the rows repaired first: under a new key nothing tells which published features they are",
            )
        )
    if _refusing(findings) or bad > run.publication.rejects.max_fraction * received.rows:
        return refuse(run, findings, "contract")

    with run.stage("pass 2"):
        verdict = judge(run, known, processed, before, findings)
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


def _service(run: Run) -> list[Finding]:
    """What is said of the delivery's age and of its edges."""
    terms, delivery = run.terms, run.delivery
    found = [gate_delivery.freshness(terms.contract, run.started, newest=delivery.newest) if delivery.rows else None]
    if terms.delivered_edges is not None:
        found.append(
            gate_delivery.edges(terms.contract, terms.delivered_edges, previous=run.head.manifest.domain["edges"] if run.head else None)
        )
    return [each for each in found if each is not None]


def _tell(run: Run, batch: int, ids: Any, steps: list[Steps]) -> None:
    run.plan = [each.stage for each in steps]
    run.tell(batch, ids, steps)
