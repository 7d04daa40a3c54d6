"""A delivery against its contract, without publishing: the same steps as a first publish, up to the verdict on the delivery.

Not here: the steps (`prepare`, `receive`, `process`), guards, which judge a change and not a delivery.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import numpy as np

from merestone.change.classes import Before
from merestone.contract.registry import read_contract
from merestone.dataset.known import Known
from merestone.errors import UsageError
from merestone.gate import delivery as gate_delivery
from merestone.outcome import Finding
from merestone.report.result import CheckResult
from merestone.run import environment
from merestone.run.prepare import Prepared, prepare
from merestone.run.process import process
from merestone.run.publication import KeyRule, PartitionRule, Publication
from merestone.run.receive import Received, receive
from merestone.source.port import SourceSpec, UnreadableValueError


def of_contract(delivery: str, contract: str, layer: str | None = None) -> Publication:
    """A publication for a delivery that has only a contract: strict in everything.

    Raises:
        UsageError: the contract is missing or broken, or names no key.
    """
    agreed = read_contract(contract)
    if not agreed.key:
        raise UsageError(f"contract {contract} names no key, so that no feature can be told from another", field="key",
                         hint="add `key: [COLUMN]` to the contract, or check the publication file, which may name it")
    place = str(Path(delivery).absolute())
    return Publication(
        path=place, name=agreed.name or Path(delivery).stem, contract=str(Path(contract).absolute()), source=SourceSpec(place, layer=layer),
        destination="", key=KeyRule(agreed.key), partition=PartitionRule(by="none"),
    )


def check(publication: Publication, *, delivery: str, contract: str) -> CheckResult:
    """Judge a delivery as `publish` would, over every row, whatever is published.

    Args:
        publication: how the delivery is read and under which contract.
        delivery: what to call the delivery.
        contract: what to call the contract.

    Raises:
        MerestoneError: the delivery could not be checked (it cannot be read, the contract is broken, a grid is missing).
    """
    clock = time.perf_counter()
    started = environment.now()
    prepared = prepare(publication, None)
    findings = [*prepared.findings]
    rows = refused = 0
    if not prepared.unreadable:
        with environment.scratch() as folder:
            workers = environment.cores()
            try:
                received = receive(prepared, Known.nothing(), folder, workers=workers)
            except UnreadableValueError as fault:
                findings.append(fault.finding)
            else:
                findings += [*received.findings, *_service(prepared, received, started)]
                size = len(received.candidates)
                before = Before(np.zeros((size, 2), np.uint64), np.zeros((size, 2), np.uint64), np.full(size, -1, np.int32))
                processed = process(prepared, received.candidates, before, folder, workers=workers, events=lambda *_: None)
                findings += [*received.tally.findings(), *processed.tally.findings()]
                rows, refused = received.rows, int(processed.rejected.sum())
    breach = any(each.severity == "error" and not each.per_row for each in findings)
    fails = breach or refused > publication.rejects.max_fraction * rows
    ordered = tuple(sorted(findings, key=lambda each: each.severity != "error"))
    return CheckResult(delivery, contract, "fail" if fails else "pass", rows, ordered, time.perf_counter() - clock)


def _service(prepared: Prepared, received: Received, now: datetime) -> list[Finding]:
    """What is judged once all rows are seen: how fresh they are, and how their edges are meant."""
    found = []
    if received.newest is not None:
        found.append(gate_delivery.freshness(prepared.contract, now, newest=received.newest))
    if prepared.delivered_edges is not None:
        found.append(gate_delivery.edges(prepared.contract, prepared.delivered_edges))
    return [each for each in found if each is not None]
