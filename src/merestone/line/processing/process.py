"""Pass 2, candidates: what their batches say together, in the order of the delivery.

Not here: what is done to one batch (`process_batch`), every row (`receive`), classes (`settle`), writing (`rewrite`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.classes import Before
from merestone.change.guards import Box
from merestone.dataset.known import Halves
from merestone.engine.port import Engine
from merestone.gate.findings import FindingTally, rejected
from merestone.line import environment
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.reading import KEY
from merestone.line.processing.process_batch import DELIVERED, ProcessedBatch, ProcessSteps, ProcessUnit, process_batch
from merestone.line.receiving.candidates import CandidateBatch, Candidates
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.line.step_events import BatchTerms, EventKeeping
from merestone.results.progress import Progress, Watch, nobody
from merestone.scratch.spool import Numbers, Spool


@dataclass(slots=True)
class Processed:
    """Candidates in the form in which they would be stored; n of them, in their order.

    digest: uint64 (n, 2), what would be stored; empty in a check. in_last_domain: the same in the domain of the last version. centres: x, y of the
    middle of the stored geometry's box, NaN where there is none; empty where no scheme needs them. extent: of those that are not refused.
    rejected: bool (n,). misshapen: those rejected for their geometry. refused: float64 (k, 4), the boxes of the rejected, NaN where there is
    none. spool: all rows, or none where nobody asked for them.
    """

    spool: Spool
    digest: Halves
    in_last_domain: Halves
    centres: Numbers
    extent: Box | None = None
    rejected: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    misshapen: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    refused: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 4)))
    tally: FindingTally = field(default_factory=FindingTally)

    def absent(self, *, misshapen: bool) -> npt.NDArray[np.float64]:
        """The boxes (k, 4) of the rejected rows that have a place, or of those of them whose geometry is at fault."""
        there = np.isfinite(self.refused).all(axis=1)
        return self.refused[there & self.misshapen[self.rejected] if misshapen else there]


def process(
    prepared: Prepared,
    candidates: Candidates,
    before: Before,
    folder: str,
    engine: Engine,
    *,
    rules: bool = True,
    evidence: RowEvidence | None = None,
    events: EventKeeping | None = None,
    watch: Watch = nobody,
) -> Processed:
    """Bring every candidate into the contract's form and judge it by itself.

    Args:
        prepared: the values of the run.
        candidates: from pass 1.
        before: the index rows of the candidates.
        folder: the scratch folder.
        engine: what carries out the units.
        rules: whether rows are held to the contract's rules.
        evidence: takes the rows at fault; None where none is kept.
        events: takes the events of each batch, in order; None where nobody keeps them.
        watch: is called after each batch.
    """
    size, layouts = len(candidates), prepared.digests
    steps = ProcessSteps(prepared.contract, prepared.reading.key_columns, prepared.projection, layouts, rules=rules)
    # What is delivered in the contract's CRS has one digest: rounding and ordering are part of it; the stored form has it too.
    digest = candidates.source if layouts.one else np.zeros((size, 2), np.uint64)
    in_last_domain = digest if layouts.old is None else np.zeros((size, 2), np.uint64)
    out = Processed(
        _spool(prepared, folder, layouts.stored.kept_by_noise(prepared.geometry)), digest, in_last_domain, Numbers(folder, "centres", 2)
    )

    def units() -> Iterator[ProcessUnit]:
        at = 0
        for number, batch in enumerate(candidates.batches()):
            terms = BatchTerms(events.terms, number, environment.now()) if events is not None else None
            yield ProcessUnit(batch, before.digest[at : at + len(batch.row)], steps, terms)
            at += len(batch.row)

    total = _Total(out, prepared.geometry, evidence)
    for batch, one in _both(units(), engine):
        here = total.add(batch, one)
        watch(Progress("pass 2", here.stop, size))
        out.spool.write(one.rows)
        if not layouts.one:
            out.digest[here] = one.digest
        if layouts.old is not None:
            out.in_last_domain[here] = one.in_last_domain
        if prepared.placement.spatial:
            out.centres.append(one.centre)
        if evidence is not None and one.faults:
            evidence.add_rejects(one.faults, batch.row.astype(np.int64), one.ids, one.rows, one.rows.column(prepared.geometry))
        if events is not None and one.events is not None:
            events.keep(one.stages, one.events)
    return total.close()


def process_stream(
    prepared: Prepared, batches: Iterable[CandidateBatch], folder: str, engine: Engine, *, evidence: RowEvidence | None
) -> Processed:
    """The same for candidates as they come from pass 1, where all that is asked is what is wrong with them.

    Args:
        prepared: the values of the run.
        batches: from pass 1, while it reads.
        folder: the scratch folder.
        engine: what carries out the units.
        evidence: takes the lines of the rows at fault, where rows are looked at again (and are then spooled); None where they are not.
    """
    none = np.zeros((0, 2), np.uint64)
    steps = ProcessSteps(prepared.contract, prepared.reading.key_columns, prepared.projection, None)
    out = Processed(_spool(prepared, folder, ()), none, none, Numbers(folder, "centres", 2))
    total = _Total(out, prepared.geometry, evidence)
    for batch, one in _both((ProcessUnit(batch, none, steps) for batch in batches), engine):
        total.add(batch, one)
        if evidence is not None:
            out.spool.write(one.rows)
    return total.close()


def _spool(prepared: Prepared, folder: str, delivered: Sequence[str]) -> Spool:
    """A spool of candidates, and beside them some of their columns as delivered."""
    schema = prepared.candidate_schema
    for name in delivered:
        schema = schema.append(pa.field(DELIVERED + name, schema.field(name).type))
    return Spool(folder, "processed", schema)


def _both(units: Iterator[ProcessUnit], engine: Engine) -> Iterator[tuple[CandidateBatch, ProcessedBatch]]:
    """Each batch with what became of it; few are under way at a time."""
    under_way: list[CandidateBatch] = []

    def noted() -> Iterator[ProcessUnit]:
        for unit in units:
            under_way.append(unit.batch)
            yield unit

    for one in engine.run_units(process_batch, noted()):
        yield under_way.pop(0), one


class _Total:
    """What the batches say together."""

    def __init__(self, out: Processed, geometry: str, evidence: RowEvidence | None) -> None:
        self._out, self._geometry, self._evidence = out, geometry, evidence
        self._extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self._rejected: list[npt.NDArray[np.bool_]] = [out.rejected]
        self._misshapen: list[npt.NDArray[np.bool_]] = [out.misshapen]
        self._boxes: list[npt.NDArray[np.float64]] = [out.refused]
        self._rows = 0

    def add(self, batch: CandidateBatch, one: ProcessedBatch) -> slice:
        """Take in the next batch; where its candidates stand among all."""
        number, extent = batch.row.astype(np.int64), self._extent
        here = slice(self._rows, self._rows + len(number))
        self._rows = here.stop
        self._rejected.append(one.rejected)
        self._misshapen.append(rejected([each for each in one.faults if each.surface in ("geometry", "crs")], len(number)))
        self._boxes.append(one.bounds[one.rejected])
        extent[:2], extent[2:] = np.minimum(extent[:2], one.extent[:2]), np.maximum(extent[2:], one.extent[2:])
        if one.faults:
            self._out.tally.add(one.faults, rows=number, ids=one.ids, bounds=one.bounds)
            if self._evidence is not None:
                self._evidence.add_lines(one.faults, number, one.ids, batch.rows.column(KEY), one.rejected & (batch.slot >= 0))
        return here

    def close(self) -> Processed:
        """All of it."""
        out = self._out
        out.spool.close()
        out.rejected, out.misshapen, out.refused = (
            np.concatenate(self._rejected),
            np.concatenate(self._misshapen),
            np.concatenate(self._boxes),
        )
        if np.isfinite(self._extent).all():
            west, south, east, north = self._extent.tolist()
            out.extent = (west, south, east, north)
        return out
