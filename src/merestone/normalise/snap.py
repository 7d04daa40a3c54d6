"""Geometries onto the contract's grid and into its type, numbers onto theirs: the form that is stored.

Not here: the rounding itself (`geometry.kernel`, `columnar.rounding`), validity (`gate`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar.rounding import number_column
from merestone.contract.contract import Contract
from merestone.geometry import kernel
from merestone.geometry.kernel_values import (
    BAD_ORDINATE,
    CANONICAL_UNREADABLE,
    COLLAPSED,
    DROPPED_M,
    DROPPED_Z,
    INFINITE,
    NAN_XY,
    NAN_Z,
    RAW_GRID,
    WRONG_TYPE,
    Grid,
    Scan,
    Shape,
)
from merestone.results.finding import PASS, REJECT, WARN, RowFaults, Steps
from merestone.rules import catalogue

KINDS = (
    "null", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "circularstring",
    "compoundcurve", "curvepolygon", "multicurve", "multisurface", "curve", "surface", "polyhedralsurface", "tin", "triangle",
)  # fmt: skip
"""What a kind of `Scan` is called."""


def snap(wkb: pa.Array, contract: Contract, scan: Scan | None = None) -> tuple[pa.Array, list[RowFaults], Steps]:
    """Geometries in the stored form of a contract.

    Args:
        wkb: a pyarrow binary array in the contract's CRS, x, y order.
        contract: its precision, type, dimensions and direction decide.
        scan: of `wkb`, where there is one already.

    Returns:
        Canonical ISO WKB; the rows that collapse on the grid, have another type than agreed or lie beyond what the grid can hold
        (errors), and those whose Z or M was left out (a warning); and the record of the stage. Numbers that are none (NaN, infinite)
        and unreadable bytes come back as they were and are the gate's to name.
    """
    clause = contract.geometry
    grid = Grid(contract.coordinate_precision, clause.z_precision, clause.m_precision)
    shape = Shape(contract.geometry_type, clause.ordinates, clause.direction)  # type: ignore[arg-type]  # lint refuses raster before a run
    stored, flags = kernel.canonical(wkb, grid, shape)
    scan = kernel.scan(wkb) if scan is None else scan
    numbers = (scan.flags & (NAN_XY | INFINITE | NAN_Z)) == 0
    readable = (flags & CANONICAL_UNREADABLE) == 0
    name = contract.geometry_name
    step = f"{10.0**-contract.coordinate_precision:.{max(contract.coordinate_precision, 0)}f}"
    wrong = _rows((flags & WRONG_TYPE) != 0, readable)
    collapsed = _rows((flags & COLLAPSED) != 0, readable & numbers)
    by_rounding = _collapse_by_rounding(wkb, collapsed, shape)
    beyond = _rows((flags & BAD_ORDINATE) != 0, readable & numbers)
    dropped = _rows((flags & (DROPPED_Z | DROPPED_M)) != 0, readable)
    faults = [
        catalogue.GEOMETRY_TYPE.faults(name, wrong, _kind_names(scan.kind[wrong]), agreed=contract.geometry_type),
        catalogue.COLLAPSE.faults(name, collapsed[by_rounding], step=step),
        catalogue.COLLAPSE.faults(name, collapsed[~by_rounding], case="delivered"),
        catalogue.ORDINATE.faults(name, beyond, case="grid", step=step),
        catalogue.Z_DROPPED.faults(name, dropped, _dimension_names(flags[dropped]), case="row", promised=clause.dimensions),
    ]
    faults = [each for each in faults if len(each.rows)]
    return stored, faults, _steps(faults, len(stored), contract)


def snap_numbers(batch: pa.RecordBatch, contract: Contract) -> tuple[pa.RecordBatch, list[RowFaults]]:
    """A batch with its numbers kept to the decimals or digits of their fields, and the rows whose numbers cannot be (a warning)."""
    faults: list[RowFaults] = []
    for field in contract.schema_fields:
        grid = field.number_grid
        if grid is None or field.name not in batch.schema.names:
            continue
        place = batch.schema.names.index(field.name)
        stored, beyond = number_column(batch.column(place), grid)
        if len(beyond):
            observed = batch.column(place).take(pa.array(beyond)).cast(pa.string())
            faults.append(catalogue.DECIMALS.faults(field.name, beyond, observed, grid=grid.words()))
        batch = batch.set_column(place, batch.schema.field(place), stored)
    return batch, faults


def _collapse_by_rounding(wkb: pa.Array, rows: npt.NDArray[np.int64], shape: Shape) -> npt.NDArray[np.bool_]:
    """Of rows that collapse on the grid those that are whole as delivered; on the others no grid has a say."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    return np.asarray((kernel.canonical(wkb.take(pa.array(rows)), RAW_GRID, shape)[1] & COLLAPSED) == 0)


def _rows(mask: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    return np.flatnonzero(mask & among)


def _kind_names(kinds: npt.NDArray[np.uint8]) -> pa.Array:
    names = np.array([*KINDS, "unknown"], dtype=object)
    return pa.array(names[np.minimum(kinds, len(KINDS))].tolist(), pa.string())


def _dimension_names(flags: npt.NDArray[np.uint8]) -> pa.Array:
    names = np.array(["", "Z left out", "M left out", "Z and M left out"], dtype=object)
    lost = ((flags & DROPPED_Z) != 0).astype(np.int64) + 2 * ((flags & DROPPED_M) != 0)
    return pa.array(names[lost].tolist(), pa.string())


def _steps(faults: list[RowFaults], rows: int, contract: Contract) -> Steps:
    verdict = np.full(rows, PASS, dtype=np.uint8)
    reason = np.full(rows, None, dtype=object)
    for each in reversed(faults):  # the first fault of a row gives the reason
        verdict[each.rows] = np.maximum(verdict[each.rows], REJECT if each.severity == "error" else WARN)
        reason[each.rows] = [f"{each.rule}: {text}" for text in each.observed.to_pylist()]
    crs = f"EPSG:{contract.crs_epsg}"
    return Steps(
        "snap", "SNAP", verdict, pa.array(reason.tolist(), pa.string()), crs, crs, tool_version=f"merestone kernel {kernel.NAME}",
    )  # fmt: skip
