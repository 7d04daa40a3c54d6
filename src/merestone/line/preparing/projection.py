"""How delivered positions come into the contract's CRS, and what is true of that CRS.

Not here: choosing the operation and carrying it out (`reference.operation`, `normalise.transform`), rounding (`normalise.snap`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from merestone.contract.contract import Contract
from merestone.geometry import kernel
from merestone.identity.digest import second_geometry
from merestone.normalise.transform import apply_operation
from merestone.reference.operation import Operation
from merestone.results.finding import RowFaults
from merestone.rules import catalogue

_UNFIT = 1 | 2 | 4  # collapsed, unreadable, bad ordinate


@dataclass(frozen=True, slots=True)
class Projection:
    """The operations of one run.

    Args:
        operation: of the primary geometry; None where none is delivered.
        others: of the second geometries, by field.
        crs: "EPSG:<code>" of the contract.
        unit: what one unit of it is called, as messages write it.
        metres: how many metres that is; of a degree, at the equator.
        geographic: whether its unit is the degree.
        limits: what ordinates cannot leave, in the contract's CRS (degrees); None for projected ones.
    """

    operation: Operation | None
    others: tuple[tuple[str, Operation], ...]
    crs: str
    unit: str
    metres: float
    geographic: bool
    limits: tuple[float, float, float, float] | None

    @property
    def same_crs(self) -> bool:
        """Whether the primary geometry stays as it is delivered."""
        return self.operation is None or self.operation.is_identity

    @property
    def changes_nothing(self) -> bool:
        """Whether all geometries stay as they are delivered."""
        return self.same_crs and all(each.is_identity for _, each in self.others)


def other_geometries(
    projection: Projection, contract: Contract, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, pa.RecordBatch, list[RowFaults]]:
    """The batch with its second geometries, each in the CRS that its field promises: as they are there, and in canonical form on the grid."""
    faults: list[RowFaults] = []
    exact = batch
    for name, operation in projection.others:
        field = contract.field(name)
        if field is None:
            continue
        place = batch.schema.names.index(name)
        wkb = batch.column(place)
        failed = np.zeros(batch.num_rows, bool)
        if not operation.is_identity:
            wkb, failed = apply_operation(wkb, operation)
            exact = exact.set_column(place, exact.schema.field(place), wkb.cast(pa.binary()))
        stored, flags = kernel.canonical(wkb, *second_geometry(field, contract))
        bad = np.flatnonzero(failed | ((flags & _UNFIT) != 0))
        if len(bad):
            faults.append(catalogue.ORDINATE.faults(name, bad, case="second"))
        batch = batch.set_column(place, batch.schema.field(place), stored.cast(pa.binary()))
    return exact, batch, faults
