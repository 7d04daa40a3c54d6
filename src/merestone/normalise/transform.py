"""Coordinates moved into the contract's reference system by the one chosen operation, and what became of each row.

Not here: choosing the operation (`reference.operation`), whether the delivered system is agreed (`agreed_crs`), rounding (`snap`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyproj
from pyproj import Transformer

from merestone.contract.contract import Contract, Field
from merestone.geometry import kernel
from merestone.reference.area import BEYOND_M, Box, box_in
from merestone.reference.grids import GridFiles
from merestone.reference.operation import FallbackRule, Operation, Wanted, choose_operation
from merestone.results.finding import PASS, REJECT, WARN, Finding, RowFaults, Steps
from merestone.rules import catalogue
from merestone.source.port import GeometryColumn


def operation_for(
    contract: Contract, column: GeometryColumn, rule: FallbackRule, grids: GridFiles, *, field: Field | None = None
) -> Operation | Finding:
    """The operation for one delivered geometry column under a contract; see `choose_operation`.

    Args:
        contract: its CRS, extent, accuracy and axis order decide.
        column: a column that `check_crs` has passed.
        rule: the publication's `crs` clause.
        grids: the grid files that the publication may use.
        field: the contract's field where the column is a second geometry with a CRS of its own.
    """
    epsg = contract.crs_epsg if field is None or field.crs_epsg is None else field.crs_epsg
    area: Box | None = None
    if contract.extent is not None:
        area = box_in(contract.extent, f"EPSG:{contract.crs_epsg}", "EPSG:4326")
    wanted = Wanted(contract.required_accuracy_m, area, contract.axis_order == "lat_lon", column.epoch, by_parameters=not column.coded)
    return choose_operation(column.crs or "", epsg, rule, grids, wanted)


def apply_operation(wkb: pa.Array, operation: Operation) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Geometries in the target CRS, x and y only; Z and M stay.

    Args:
        wkb: a pyarrow binary array.
        operation: as chosen; its epoch is the time of all coordinates.

    Returns:
        ISO WKB, and a mask of the rows for which the operation gives no value somewhere (those rows come back with such values in them).
        Ordinates that were no numbers before stay as they are and fail nothing here.
    """
    failed = np.zeros(len(wkb), dtype=bool)
    if operation.is_identity:
        return wkb, failed
    xy = kernel.coordinates(wkb)
    x, y = (xy[:, 1], xy[:, 0]) if operation.swap else (xy[:, 0], xy[:, 1])
    moved = np.column_stack([x, y])
    known = np.isfinite(moved).all(axis=1)
    if operation.pipeline != "noop":
        moved[known] = there = _moved(moved[known], operation)
        lost = np.zeros(len(moved), dtype=bool)
        lost[known] = ~_has_value(there, operation)
        failed = _any_per_row(lost, kernel.scan(wkb).vertices)
    return kernel.with_coordinates(wkb, moved), failed


def no_transform_faults(operation: Operation, failed: npt.NDArray[np.bool_], wkb: pa.Array, field: str) -> list[RowFaults]:
    """The fault of the rows that an operation gave no value for; empty where there are none.

    Args:
        operation: as applied.
        failed: the mask of `apply_operation`.
        wkb: the geometries as delivered.
        field: the geometry column.
    """
    rows = np.flatnonzero(failed)
    if not len(rows):
        return []
    at_pole = np.zeros(len(rows), dtype=bool)
    if operation.from_degrees:
        held = wkb.take(pa.array(rows))
        latitude = kernel.coordinates(held)[:, 0 if operation.swap else 1]
        at_pole = _any_per_row(np.abs(np.abs(latitude) - 90.0) < 1e-9, kernel.scan(held).vertices)
    polar, other = f"{operation.target} has no value at latitude -90 or 90", f"{operation.target} has no value at some of its vertices"
    observed = pa.array(np.where(at_pole, polar, other).tolist(), pa.string())
    return [catalogue.NO_TRANSFORM.faults(field, rows, observed, target=operation.target)]


def transform_steps(operation: Operation, failed: npt.NDArray[np.bool_], rows: int) -> Steps:
    """What the CRS stage did to the rows of one batch."""
    verdict = np.full(rows, PASS if operation.accuracy_m is not None else WARN, dtype=np.uint8)
    verdict[failed] = REJECT
    warned = f"{operation.name}: accuracy unknown"
    words = np.array([None, warned, f"{operation.name}: no value in {operation.target}"], dtype=object)
    return Steps(
        "crs_normalize",
        "TRANSFORM",
        verdict,
        pa.array(words[verdict].tolist(), pa.string()),
        operation.source,
        operation.target,
        strategy_index=operation.strategy_index,
        accuracy_m=operation.accuracy_m,
        tool_version=f"PROJ {pyproj.proj_version_str}",
    )


def positions_of(transformer: Transformer, *ordinates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Positions, (n, 2), of ordinates, (n,) each, in the CRS that a transformer leads to.

    pyproj takes an array of one value for a scalar, and NumPy before 2.4 warns of that; so one position is handed over twice.
    """
    n = len(ordinates[0])
    given = [np.repeat(each, 2) if n == 1 else each for each in ordinates]
    x, y, *_ = transformer.transform(*given)  # type: ignore[call-overload]  # two to four of them
    return np.column_stack([x[:n], y[:n]])


def _moved(xy: npt.NDArray[np.float64], operation: Operation) -> npt.NDArray[np.float64]:
    x, y = xy[:, 0], xy[:, 1]
    if operation.epoch is None:
        return positions_of(operation.transformer, x, y)
    return positions_of(operation.transformer, x, y, np.zeros(len(xy)), np.full(len(xy), operation.epoch))


def _has_value(xy: npt.NDArray[np.float64], operation: Operation) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(xy).all(axis=1)
    if operation.metres is None:
        return np.asarray(finite & (np.abs(xy[:, 1]) <= 90.0 + 1e-9))
    return np.asarray(finite & (np.abs(xy) * operation.metres < BEYOND_M).all(axis=1))


def _any_per_row(vertices: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether any vertex of each row is marked."""
    before = np.concatenate([[0], np.cumsum(vertices)])
    ends = np.cumsum(counts)
    return np.asarray(before[ends] > before[ends - counts])
