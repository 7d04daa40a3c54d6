"""Findings on published rows that were delivered as before: what the last version said of them still holds.

Not here: findings on rows that are judged anew (`process`), the layout of `_findings/` (docs/spec).

Only warnings: a row that breaks a rule is never published, and one that stands in for a rejected row is judged in each delivery.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar import hashing
from merestone.dataset.known import Known, find, halves
from merestone.gate.findings import FINDINGS_SCHEMA
from merestone.line.receiving.receive import Received
from merestone.line.run import Run


def kept_findings(run: Run, known: Known, received: Received) -> Any:
    """The lines of the last version's `_findings/` that hold for this delivery too: pyarrow.Table of FINDINGS_SCHEMA, rows unknown (0)."""
    reference = run.head.manifest.findings if run.head is not None else None
    if reference is None:
        return FINDINGS_SCHEMA.empty_table()
    lines = pq.read_table(io.BytesIO(run.store.get(reference.path))).select(FINDINGS_SCHEMA.names)
    lines = lines.filter(pc.and_(pc.equal(lines.column("severity"), "warning"), pc.is_valid(lines.column("key"))))
    slot = find(known.hash, halves(hashing.blake2b16(lines.column("key").combine_chunks())))
    judged = np.concatenate([received.candidates.slot, received.removed])
    lines = lines.filter(pa.array((slot >= 0) & ~np.isin(slot, judged)))
    unknown = pa.array(np.zeros(lines.num_rows, np.int64))
    return lines.set_column(FINDINGS_SCHEMA.get_field_index("row"), FINDINGS_SCHEMA.field("row"), unknown).cast(FINDINGS_SCHEMA)
