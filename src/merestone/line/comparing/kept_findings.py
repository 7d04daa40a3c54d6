"""Findings on published rows that were delivered as before: what the last version said of them still holds.

Not here: findings on rows that are judged anew (`process`), the layout of `_findings/` (docs/spec).

Only warnings: a row that breaks a rule is never published, and one that stands in for a rejected row is judged in each delivery.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar import hashing
from merestone.dataset.known import Known, halves
from merestone.gate.findings import FindingLines
from merestone.line.receiving.receive import Received
from merestone.line.run import Run


def kept_findings(run: Run, known: Known, received: Received) -> FindingLines:
    """The lines of the last version's `_findings/` that hold for this delivery too, rows unknown (0)."""
    reference = run.head.manifest.findings if run.head is not None else None
    if reference is None:
        return FindingLines.empty()
    lines = FindingLines(pq.read_table(io.BytesIO(run.store.get(reference.path))).select(FindingLines.schema.names))
    lines = lines.filter(pc.and_(pc.equal(lines.severity, "warning"), pc.is_valid(lines.key)))
    slot = known.find(halves(hashing.blake2b16(lines.key.combine_chunks())))
    judged = np.concatenate([received.candidates.slot, received.removed])
    lines = lines.filter(pa.array((slot >= 0) & ~np.isin(slot, judged)))
    unknown = pa.array(np.zeros(len(lines), np.int64))
    return FindingLines(lines.with_column(FindingLines.row, unknown).table.cast(FindingLines.schema))
