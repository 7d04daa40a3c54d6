"""What is written down of rows at fault: the rows as delivered, and one line for each row and rule.

Not here: findings for people (`gate.findings.FindingTally`), where the files go (`writer.files`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.gate.findings import findings_table, reasons
from merestone.line.preparing.reading import KEY
from merestone.results.finding import RowFaults
from merestone.writer.files import REJECTS_SCHEMA


@dataclass(slots=True)
class RowEvidence:
    """The evidence of one run so far.

    Args:
        hold: whether the last accepted row of a refused one stays published.
        rejects: tables of REJECTS_SCHEMA.
        lines: tables of FINDINGS_SCHEMA.
    """

    hold: bool
    rejects: list[Any] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)

    def add_rejects(self, faults: Sequence[RowFaults], number: npt.NDArray[np.int64], ids: Any, rows: Any, geometry: Any) -> None:
        """Keep the rows of a batch that a rule refuses.

        Args:
            faults: by place in the batch.
            number: int64 (n,), the row of each in the delivery, from 1.
            ids: their feature ids.
            rows: pyarrow.RecordBatch, as delivered.
            geometry: their geometry as WKB; None where none is delivered.
        """
        self.rejects.append(_rejects(faults, number, ids, rows, pa.nulls(len(number), pa.binary()) if geometry is None else geometry))

    def add_lines(
        self, faults: Sequence[RowFaults], number: npt.NDArray[np.int64], ids: Any, keys: Any, published: npt.NDArray[np.bool_]
    ) -> None:
        """Keep the lines of `_findings/` of a batch; `published`: bool (n,), refused rows whose feature is published."""
        self.lines.append(findings_table(faults, rows=number, ids=ids, keys=keys, held=published & self.hold))


def of_rows(faults: Sequence[RowFaults], rows: npt.NDArray[np.bool_]) -> list[RowFaults]:
    """The faults of some rows of a batch, those where `rows` is true."""
    out = []
    for each in faults:
        mine = rows[each.rows]
        if mine.any():
            out.append(replace(each, rows=each.rows[mine], observed=each.observed.filter(pa.array(mine))))
    return out


def _in_python(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with times that Python's are too coarse for as text; what pyarrow gives for them otherwise depends on whether pandas is installed."""
    for place, column in enumerate(rows.schema):
        if getattr(column.type, "unit", None) == "ns":
            rows = rows.set_column(place, column.name, rows.column(place).cast(pa.string()))
    return rows


def _rejects(faults: Sequence[RowFaults], number: npt.NDArray[np.int64], ids: Any, rows: Any, geometry: Any) -> Any:
    """One line for each row and fault (pyarrow.Table of REJECTS_SCHEMA)."""
    parts = []
    attributes = rows.select([name for name in rows.schema.names if not pa.types.is_binary(rows.schema.field(name).type) and name != KEY])
    why = reasons(faults, len(number), severity="error")
    for each in faults:
        if each.severity != "error" or not len(each.rows):
            continue
        at = pa.array(each.rows)
        delivered = [json.dumps(row, ensure_ascii=False, default=str) for row in _in_python(attributes.take(at)).to_pylist()]
        size = len(each.rows)
        parts.append(
            pa.Table.from_arrays(
                [
                    pa.array(number[each.rows]),
                    ids.take(at),
                    pa.repeat(pa.scalar(each.rule, pa.string()), size),
                    pa.repeat(pa.scalar(each.field, pa.string()), size),
                    why.take(at),
                    pa.array(delivered, pa.string()),
                    geometry.take(at).cast(pa.binary()),
                ],
                schema=REJECTS_SCHEMA,
            )
        )
    return pa.concat_tables(parts) if parts else REJECTS_SCHEMA.empty_table()
