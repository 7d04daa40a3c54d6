"""Whether values of a column were published before, asked of the last version's files.

Not here: what follows from it (`change.made_anew`, `mass_change`).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from merestone.dataset.rows import read_rows
from merestone.line.judging.mass_change import Met
from merestone.line.run import Run

_ROWS = 1_000_000


def met_in(run: Run) -> Met:
    """Asks the last version of a run; of a large one as many files as hold about a million rows, spread over all."""

    def met(name: str, values: pa.Array) -> float:
        schema = run.published.rows.schema
        if run.head is None or not len(values) or name not in schema.names:
            return 1.0
        rows = sum(each.rows for each in run.files)
        files = run.files[:: max(1, rows // _ROWS)]
        read = sum(each.rows for each in files)
        there = pc.unique(read_rows(run.store, files, pa.schema([schema.field(name)])).column(name).drop_null())
        found = int(pc.sum(pc.is_in(values.cast(there.type), value_set=there)).as_py() or 0)
        return min(1.0, found / len(values) * rows / max(read, 1))

    return met
