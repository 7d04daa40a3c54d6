"""How delivered batches become rows: in the contract's types, each with its key.

Not here: the cast (`normalise.cast`), canonical key bytes (`identity.key`), how a batch is opened (`source`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.gate.findings import reasons
from merestone.identity import key as keys
from merestone.identity.derived import derived_key
from merestone.json_value import JsonObject
from merestone.line.preparing.key_rule import key_record
from merestone.normalise.cast import MACHINERY, PARTITION_COLUMN, CastPlan, cast_batch, holding
from merestone.publication.publication import KeyRule
from merestone.results.finding import PASS, REJECT, RowFaults, Steps

KEY = MACHINERY + "key"


@dataclass(frozen=True, slots=True)
class Reading:
    """How one delivery is read.

    Args:
        cast: columns and types.
        key: the key rule.
        geometry: the name of the primary geometry column in the rows.
        delivered_geometry: its name in the delivery, None where that has none.
        partition_column: the column whose values place the rows, as it is called in them; None where none does.
    """

    cast: CastPlan
    key: KeyRule
    geometry: str
    delivered_geometry: str | None
    partition_column: str | None

    def rows(self, raw: pa.RecordBatch) -> tuple[pa.RecordBatch, list[RowFaults]]:
        """One delivered batch in the agreed types, with its key (a derived one is made here), and the values that do not fit.

        A column of a type that can never be cast comes out null and is not a fault of a row: see `untypable`.
        """
        batch, faults = cast_batch(raw, self.cast)
        if self.key.derive is None or self.key.published is not None:
            return batch, faults
        made = derived_key(self.key.derive, batch, self.key.made_from)
        return batch.add_column(0, pa.field(self.key.columns[0], pa.string()), made), faults

    def untypable(self, raw: pa.RecordBatch) -> frozenset[str]:
        """The fields of one delivered batch that hold values in a type that can never be cast; a column without values says nothing."""
        return holding(raw, self.cast)

    def partition_values(self, batch: pa.RecordBatch) -> pa.Array | None:
        """The values that place the rows of a batch, None where no column does."""
        return batch.column(self.partition_column) if self.partition_column is not None else None

    def keys(self, rows: pa.RecordBatch, first_row: int) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The canonical key of each row, and the rows without one. Without a key rule the row's number stands in: it follows rows, and names nothing."""
        if self.names_features:
            return keys.key_bytes(rows, self.key_columns)
        number = pa.array(np.arange(first_row, first_row + rows.num_rows, dtype=np.int64))
        return keys.key_bytes(pa.table({KEY: number}), (KEY,))

    def ids(self, rows: pa.RecordBatch) -> pa.Array:
        """What the features of some rows are called; null where no key names them."""
        return keys.feature_ids(rows, self.key_columns)

    def ids_of(self, canonical: pa.Array) -> pa.Array:
        """The same, from canonical keys."""
        return keys.ids_of(canonical) if self.names_features else pa.nulls(len(canonical), pa.string())

    @property
    def names_features(self) -> bool:
        """Whether there is a key; only a check goes on without one."""
        return bool(self.key_columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of the rows."""
        return self.key.columns

    @property
    def key_name(self) -> str:
        """The key as messages name it."""
        return f"{self.key_columns[0]} ({self.key.words})" if self.key.derive is not None else ", ".join(self.key_columns)

    @property
    def key_is_text(self) -> bool:
        """Whether two keys can differ in what a person overlooks."""
        return "string" in self.key_record()["types"]

    @property
    def missing(self) -> frozenset[str]:
        """Fields that are not delivered: a finding says so."""
        return frozenset(each.target for each in self.cast.columns if each.place is None)

    def key_record(self) -> JsonObject:
        """The key rule as it stands in every manifest."""
        return key_record(self.key, self.cast)


def placing_column(cast: CastPlan, column: str | None) -> str | None:
    """What the partition column is called in the rows: it may be outside the contract."""
    return PARTITION_COLUMN if PARTITION_COLUMN in cast.schema.names else column


def cast_steps(faulty: npt.NDArray[np.bool_], crs: str, faults: Sequence[RowFaults] = ()) -> Steps:
    """The lineage of the cast: one event a feature. It knows no geometry; both CRS are the contract's."""
    n = len(faulty)
    verdict = np.where(faulty, REJECT, PASS).astype(np.uint8)
    said = pa.compute.coalesce(reasons(faults, n, severity="error"), pa.scalar("a value does not fit the agreed type"))
    why = pa.compute.if_else(pa.array(faulty), said, pa.scalar(None, pa.string()))
    return Steps("attr_cast", "CAST", verdict, why, crs, crs, tool_version=f"pyarrow {pa.__version__}")
