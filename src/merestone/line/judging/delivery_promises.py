"""What a contract promises of a delivery as a whole and is judged once all rows are seen: how fresh, how many, and how edges are meant.

Not here: the rules and their words (`gate.delivery`, `gate.freshness`), what is measured while rows are read (`receive_batch`).
"""

from __future__ import annotations

from datetime import datetime

from merestone.dataset.current import Current
from merestone.gate import delivery as gate_delivery
from merestone.gate.freshness import freshness
from merestone.line.preparing.prepared import Prepared
from merestone.line.receiving.receive import Received
from merestone.results.finding import Finding


def delivery_promises(
    prepared: Prepared, received: Received, now: datetime, last: Current | None, delivered_at: datetime | None = None
) -> list[Finding]:
    """What a delivery breaks of these promises.

    Args:
        prepared: the values of the run.
        received: what pass 1 found.
        now: the time that its age is judged at, aware.
        delivered_at: when its bytes were written; the age is judged by that where the contract says so.
        last: the version that is published; its edges may have been meant otherwise, and its data may be newer.
    """
    contract, edges = prepared.contract, prepared.delivered_edges
    found: list[Finding | None] = [*gate_delivery.feature_count(contract, received.rows)]
    if received.rows:
        found.append(
            freshness(
                contract,
                now,
                newest=received.newest,
                early=received.early,
                delivered_at=delivered_at if contract.freshness_from == "delivered_at" else None,
                last=prepared.rules.last_newest,
                same_promise=last is not None and last.manifest.contract_sha256 == contract.digest,
                version=prepared.rules.last_name,
            )
        )
    if edges is not None:
        found.append(gate_delivery.edges(contract, edges, previous=last.manifest.domain["edges"] if last is not None else None))
    return [each for each in found if each is not None]
