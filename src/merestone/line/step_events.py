"""The lineage of what steps did to some rows, made by the task that does the steps.

Not here: the events themselves (`lineage.event.collector`), where they go (`lineage.store.writing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from merestone.lineage.event.collector import LineageCollector
from merestone.results.finding import Steps


@dataclass(frozen=True, slots=True)
class EventTerms:
    """What all events of an attempt say alike."""

    run_id: str
    attempt: int
    audit_tag: str | None
    contract_version: str


@dataclass(frozen=True, slots=True)
class EventKeeping:
    """What all events of an attempt say alike, and what takes the stages that met a batch with the events of it."""

    terms: EventTerms
    keep: Callable[[Sequence[str], pa.Table], None]


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """What all events of one batch say alike; `number` is one that no other batch of the attempt has, `time` that of its work."""

    attempt: EventTerms
    number: int
    time: datetime

    def events(self, ids: pa.Array, steps: Sequence[Steps]) -> pa.Table:
        """The events of the batch in compact form (`lineage.event.columns`).

        Args:
            ids: pyarrow string array, one feature id a row.
            steps: what was done to the rows, in order.
        """
        collector = LineageCollector()
        collector.add_columns(
            ids,
            steps,
            run_id=self.attempt.run_id,
            attempt=self.attempt.attempt,
            batch=self.number,
            time=self.time,
            audit_tag=self.attempt.audit_tag,
            contract_version=self.attempt.contract_version,
        )
        return collector.drain()
