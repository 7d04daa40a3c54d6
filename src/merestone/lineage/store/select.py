"""Events that meet conditions, run by run, in bounded memory: the engine of `rejects` and `query`.

Not here: one feature over all runs (`reading.history`), counts (`verdict`, `steps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.reading import history, scan
from merestone.lineage.store.run_manifest import RunManifest
from merestone.lineage.store.writing import ROOT
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Conditions:
    """What an event has to be; None asks for nothing.

    `stage` is a stage or, without a dot, all of its qualified ones; `reason` and `tool` are parts of the text, upper and lower case alike.
    """

    stage: str | None = None
    event_type: str | None = None
    outcome: str | None = None
    feature: str | None = None
    reason: str | None = None
    tool: str | None = None
    change_class: str | None = None

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of a table of the schema that meet all conditions."""
        mask = np.ones(table.num_rows, np.bool_)
        for name, value in (
            ("event_type", self.event_type),
            ("outcome", self.outcome),
            ("feature_id", self.feature),
            ("change_class", self.change_class),
        ):
            if value is not None:
                mask &= _true(pc.equal(table.column(name), value))
        for name, value in (("rejection_reason", self.reason), ("tool_version", self.tool)):
            if value is not None:
                mask &= _true(pc.match_substring(table.column(name), value, ignore_case=True))
        if self.stage is not None:
            stages = table.column("stage")
            mask &= _true(pc.or_(pc.equal(stages, self.stage), pc.starts_with(stages, f"{self.stage}.")))
        return table if mask.all() else table.filter(pa.array(mask))


def select(
    store: Store,
    runs: Iterable[Sequence[RunManifest]],
    conditions: Conditions,
    root: str = ROOT,
    *,
    everything: bool = False,
) -> Iterator[pa.Table]:
    """The events that meet the conditions, in tables of the compiled schema, each of one run.

    Args:
        store: the dataset's store.
        runs: the attempts of each run.
        conditions: what is asked.
        root: the event store in it.
        everything: also the rows that another row of their event has replaced.

    Raises:
        CorruptError: a part cannot be read.
    """
    for attempts in runs:
        if conditions.feature is not None:
            tables: Iterable[pa.Table] = [history(store, conditions.feature, root, runs=attempts)]
        else:
            tables = scan(store, attempts, root, names=LINEAGE_ARROW_SCHEMA.names)
        for table in tables:
            found = conditions.of(table if everything else deduplicate(table))
            if found.num_rows:
                yield found


def _true(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Null is not true."""
    return np.asarray(pc.fill_null(values, False), dtype=bool)
