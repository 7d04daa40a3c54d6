"""The task of pass 2: candidates of one batch, transformed, snapped, judged row by row and digested, by themselves and in any process.

Not here: what the batches say together (`process`), the class of a candidate (`settle`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.contract.contract import Contract
from merestone.dataset.known import Halves, halves
from merestone.gate import feature as gate_feature
from merestone.gate.findings import rejected
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.identity.digest import digest_batch
from merestone.line.preparing.digest_layouts import DigestLayouts
from merestone.line.preparing.projection import Projection, other_geometries
from merestone.line.preparing.reading import cast_steps
from merestone.line.receiving.candidates import CandidateBatch
from merestone.line.receiving.row_evidence import of_rows
from merestone.line.step_events import BatchTerms
from merestone.normalise.cast import MACHINERY
from merestone.normalise.derive import with_derived
from merestone.normalise.snap import snap, snap_numbers
from merestone.normalise.transform import apply_operation, no_transform_faults, transform_steps
from merestone.results.finding import RowFaults, Steps

DELIVERED = MACHINERY + "delivered_"  # and the name of a column: as delivered, before rounding


@dataclass(frozen=True, slots=True)
class ProcessSteps:
    """What is done to candidates.

    Args:
        contract: its geometry, fields and rules.
        key_columns: what names a row.
        projection: how positions come into the contract's CRS.
        digests: of which layouts; None where nothing is compared.
        rules: whether rows are held to the contract's rules; otherwise their coordinates must be numbers, and no more.
    """

    contract: Contract
    key_columns: tuple[str, ...]
    projection: Projection
    digests: DigestLayouts | None
    rules: bool = True


@dataclass(frozen=True, slots=True)
class ProcessUnit:
    """The candidates of one batch.

    Args:
        batch: the rows.
        old: the digests that they had in the last version, uint64 (n, 2); (0, 2) where there is none.
        steps: what is done to them.
        lineage: what the events of the batch say alike; None where nobody keeps events.
    """

    batch: CandidateBatch
    old: Halves
    steps: ProcessSteps
    lineage: BatchTerms | None = None


@dataclass(frozen=True, slots=True)
class ProcessedBatch:
    """One batch of n candidates in the form in which they would be stored.

    rows: in the schema of candidates, and beside it DELIVERED geometries and numbers where a published row may be within noise of them. digest:
    of what would be stored; in_last_domain: the same in the domain of the last version. centre: x, y of the middle of the stored box. extent: xmin,
    ymin, xmax, ymax of the rows that are not refused. bounds: of each stored geometry. ids: only where rows are named. stages: those that met
    the rows, in order; events: what they did, as `lineage.event.columns` has it, None where nobody keeps events.
    """

    rows: pa.RecordBatch
    digest: Halves
    in_last_domain: Halves
    centre: npt.NDArray[np.float64]
    extent: npt.NDArray[np.float64]
    rejected: npt.NDArray[np.bool_]
    faults: list[RowFaults]
    stages: tuple[str, ...]
    events: pa.Table | None
    ids: pa.Array | None
    bounds: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _InPlace:
    """A batch in the contract's CRS and on its grid: `exact` are the rows before rounding, `delivered` is their scan as they came."""

    rows: pa.RecordBatch
    delivered: kernel.Scan
    exact: pa.RecordBatch
    stored: pa.Array
    scan: kernel.Scan
    failed: npt.NDArray[np.bool_]
    faults: list[RowFaults]
    skip: npt.NDArray[np.bool_]
    events: list[Steps]


def process_batch(unit: ProcessUnit) -> ProcessedBatch:
    """Bring one batch into the contract's form and judge it."""
    batch, steps, n = unit.batch, unit.steps, unit.batch.rows.num_rows
    there = _in_place(batch, steps)
    row_faults = _judged(batch, there, steps)
    faults = [*there.faults, *row_faults]
    digest = in_last_domain = batch.source
    if steps.digests is not None:
        digest, in_last_domain = _digests(batch, there, steps.digests, steps.contract.geometry_name)
    near = (batch.slot >= 0) & (in_last_domain != unit.old).any(axis=1) if len(unit.old) else np.zeros(n, bool)
    refused = batch.faulty | rejected(faults, n)
    ids = keys.feature_ids(there.rows, steps.key_columns) if unit.lineage is not None or faults else None
    done = [*there.events, gate_feature.steps([*batch.faults, *row_faults], n, crs=steps.projection.crs)] if unit.lineage else []
    bounds = there.scan.bounds
    return ProcessedBatch(
        rows=_beside(there, near, steps),
        digest=digest,
        in_last_domain=in_last_domain,
        centre=(bounds[:, :2] + bounds[:, 2:]) / 2,
        extent=_extent(bounds[~refused]),
        rejected=refused,
        faults=faults,
        stages=tuple(each.stage for each in done),
        events=unit.lineage.events(ids, done) if unit.lineage is not None and ids is not None else None,
        ids=ids,
        bounds=bounds,
    )


def _beside(there: _InPlace, near: npt.NDArray[np.bool_], steps: ProcessSteps) -> pa.RecordBatch:
    """The rows, and beside them what noise can keep, before rounding; wanted only where a published row may turn out to be within noise of it."""
    rows = there.rows
    if steps.digests is None:
        return rows
    wanted = pa.array(near) if near.any() else None
    for name in steps.digests.stored.kept_by_noise(steps.contract.geometry_name):
        delivered = there.exact.column(name)
        none = pa.nulls(rows.num_rows, delivered.type)
        rows = rows.append_column(DELIVERED + name, none if wanted is None else pa.compute.if_else(wanted, delivered, none))
    return rows


def _in_place(batch: CandidateBatch, steps: ProcessSteps) -> _InPlace:
    """Transform and snap."""
    contract, projection, rows, n = steps.contract, steps.projection, batch.rows, batch.rows.num_rows
    place = rows.schema.names.index(contract.geometry_name)
    wkb = rows.column(place)
    delivered = kernel.scan(wkb) if batch.scan is None else batch.scan
    events = [cast_steps(_marked(batch.miscast, n), projection.crs)]
    moved, faults, failed = wkb, [], np.zeros(n, bool)
    if projection.operation is not None and not projection.operation.is_identity:
        moved, failed = apply_operation(wkb, projection.operation)
        faults = no_transform_faults(projection.operation, failed, wkb, contract.geometry_name)
        events.append(transform_steps(projection.operation, failed, n))
    stored, snap_faults, snap_steps = snap(moved, contract, delivered if moved is wkb else kernel.scan(moved))
    # Where a place is known to be wrong, that the row collapses there says nothing new.
    snap_faults = of_rows(snap_faults, ~rejected(batch.faults, n))
    rows = rows.set_column(place, rows.schema.field(place), stored)
    exact, rows, other_faults = other_geometries(projection, contract, rows)
    exact = exact.set_column(place, exact.schema.field(place), moved.cast(pa.binary()))
    rows, number_faults = snap_numbers(rows, contract)
    return _InPlace(
        rows=with_derived(rows, contract, contract.geometry_name),
        delivered=delivered,
        exact=exact,
        stored=stored,
        scan=kernel.scan(stored),
        failed=failed,
        # That Z or M is left out is said once of the whole delivery, and of each row in its lineage.
        faults=[*faults, *(each for each in snap_faults if each.rule != "z_dropped"), *other_faults, *number_faults],
        skip=failed | rejected([*snap_faults, *batch.faults], n),
        events=[*events, snap_steps],
    )


def _judged(batch: CandidateBatch, there: _InPlace, steps: ProcessSteps) -> list[RowFaults]:
    if not steps.rules:
        return gate_feature.ordinates(steps.contract, there.delivered, there.scan, None, ~there.skip)
    return gate_feature.check_rows(
        there.rows,
        steps.contract,
        delivered=there.delivered,
        stored=there.scan,
        canonical=there.stored,
        exact=there.exact.column(steps.contract.geometry_name),
        limits=steps.projection.limits,
        skip=there.skip,
        miscast=batch.miscast,
        absent=batch.absent,
    )


def _digests(batch: CandidateBatch, there: _InPlace, layouts: DigestLayouts, geometry: str) -> tuple[Halves, Halves]:
    """The digests of what would be stored, and the same in the domain of the last version."""
    digest = batch.source if layouts.one else halves(digest_batch(there.rows, layouts.stored, geometry))
    if layouts.old is None:
        return digest, digest
    # From what was delivered, not from what is stored on another grid: rounding twice is not rounding once.
    return digest, halves(digest_batch(there.exact, layouts.old, geometry))


def _extent(bounds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The box around boxes (n, 4), inside out where none has a place."""
    some = bounds[~np.isnan(bounds[:, 0])]
    if not len(some):
        return np.array([np.inf, np.inf, -np.inf, -np.inf])
    return np.concatenate([some[:, :2].min(axis=0), some[:, 2:].max(axis=0)])


def _marked(faults: list[RowFaults], n: int) -> npt.NDArray[np.bool_]:
    """(n,) rows that any of the faults names."""
    mask = np.zeros(n, np.bool_)
    for each in faults:
        mask[each.rows] = True
    return mask
