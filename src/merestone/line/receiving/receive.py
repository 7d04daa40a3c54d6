"""Pass 1, every row, read once: source -> cast -> key, source digest, partition -> probe -> measures; candidates to a scratch spool.

Not here: what is done to one batch (`receive_batch`), the verdict on the delivery (`publish`), what happens to candidates (`process`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.guards import Box
from merestone.change.probe import Probe
from merestone.dataset.known import Halves, Known, Sum
from merestone.engine.port import Engine
from merestone.gate import delivery as gate_delivery
from merestone.gate import fineness, quantities, whereabouts
from merestone.gate.delivery import stated_box
from merestone.gate.feature import presence
from merestone.gate.findings import FindingTally, rejected
from merestone.gate.freshness import early_findings
from merestone.geometry import kernel
from merestone.geometry.kernel import warn_of_missing_kernel
from merestone.geometry.kernel_values import NULL_KIND
from merestone.identity.digest import Layout
from merestone.line.preparing.placement import codes_of
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.reading import KEY
from merestone.line.receiving.candidates import CandidateBatch, CandidateColumns, Candidates
from merestone.line.receiving.receive_batch import Measures, ReceivedBatch, ReceiveUnit, receive_batch
from merestone.line.receiving.repeats import RowKeys
from merestone.line.receiving.row_evidence import RowEvidence, of_rows
from merestone.line.receiving.row_places import RowPlaces
from merestone.line.receiving.strays import Strays, may_stray
from merestone.normalise.cast import misfit_faults, untypable_findings
from merestone.results.finding import Finding, RowFaults
from merestone.results.progress import Progress, Watch, nobody
from merestone.scratch.spool import Spool

_EXPECTED_ROWS = 1 << 20  # of a delivery that does not say how many it has


@dataclass(slots=True)
class Received:
    """What pass 1 found out about a delivery.

    removed: slots in `Known` of features that were not delivered; removed_hash, removed_source: their key hashes and source digests.
    nowhere: rows with a null or empty geometry. extent: of all rows, in the delivered CRS; outside: how many of them reach out of the last
    version's. newest: the newest time that has come of the field that freshness is measured by; early: how many rows hold a later one.
    verdicts: per geometry column, what its positions say of axes and units. distributions: how large the numbers of each field are.
    coordinates: how fine each geometry column is. unkeyed: rows without a key that can be read. repeated: the hashes of keys that several
    rows carry, uint64 (k, 2); repeated_rows: how many rows that are. places: where each row lies. met: how the rows with published keys were
    found. keys: gives the canonical keys of all rows, in their order.
    """

    rows: int
    unchanged: int
    removed: npt.NDArray[np.int64]
    removed_hash: Halves
    removed_source: Halves
    candidates: Candidates
    tally: FindingTally
    findings: tuple[Finding, ...]
    set_digest: str
    newest: Any = None
    early: int = 0
    nowhere: int = 0
    extent: Box | None = None
    outside: int = 0
    verdicts: dict[str, whereabouts.Verdict] = field(default_factory=dict)
    distributions: dict[str, list[float]] = field(default_factory=dict)
    coordinates: dict[str, dict[str, Any]] = field(default_factory=dict)
    unkeyed: int = 0
    repeated: Halves = field(default_factory=lambda: np.zeros((0, 2), np.uint64))
    repeated_rows: int = 0
    places: RowPlaces = field(default_factory=RowPlaces)
    met: dict[str, int] = field(default_factory=dict)
    keys: Callable[[], Iterator[Any]] = field(default=lambda: iter(()))


def without_consequences(received: Received, findings: Iterable[Finding]) -> list[Finding]:
    """Findings on rows but for those that follow from the verdict on where the whole delivery lies."""
    return [each for each in findings if each.field not in received.verdicts or each.rule not in received.verdicts[each.field].follows]


def without_missing(findings: Iterable[Finding]) -> list[Finding]:
    """Findings but for those on columns that are missing: for a delivery without rows in a format that has no columns then."""
    return [each for each in findings if not (each.surface == "schema" and each.rule == "missing")]


def receive(prepared: Prepared, known: Known, folder: str, engine: Engine, evidence: RowEvidence, watch: Watch = nobody) -> Received:
    """Read the delivery and hold it against a version.

    Args:
        prepared: the values of the run.
        known: the features of that version.
        folder: the scratch folder.
        engine: what carries out the units.
        evidence: takes the rows at fault.
        watch: is called after each batch.

    Raises:
        SourceError: it breaks off or cannot be decoded.
    """
    reception = Reception(prepared, known, folder, source_layout=prepared.digests.source, evidence=evidence, watch=watch)
    spool = Spool(folder, "candidates", prepared.candidate_schema)
    for batch in reception.batches(engine):
        spool.write(batch.rows)
    spool.close()
    return reception.conclude(spool)


def stream(reception: Reception, folder: str, engine: Engine, schema: pa.Schema) -> Iterator[CandidateBatch]:
    """The candidates of a delivery as they are read, in its order; from the first batch on that may hold a stray row, after all are read.

    Args:
        reception: pass 1; it is concluded when the last batch is out.
        folder: the scratch folder.
        engine: what carries out the units.
        schema: of candidates at rest.

    Raises:
        SourceError: the delivery breaks off or cannot be decoded.
    """
    waiting, before = Spool(folder, "waiting", schema, packed=False), 0
    for batch in reception.batches(engine):
        if waiting.rows or reception.waits:
            waiting.write(batch.rows)
        else:
            before += batch.rows.num_rows
            yield batch
    waiting.close()
    yield from reception.conclude(waiting, skipped=before).candidates.batches(skipped=before)


class Reception:
    """Pass 1 over a delivery: `batches` reads it and gives the candidates of each batch, `conclude` says what was found on the way.

    Args:
        prepared: the values of the run.
        known: the features of the version that the delivery is held against.
        folder: the scratch folder.
        source_layout: the layout of the source digest; None where nothing is compared.
        evidence: takes the rows at fault; None where none is kept.
        watch: is called after each batch.

    Attributes:
        received: what was found, once it is concluded.
        waits: whether the batch that was given last may hold rows that only the whole delivery gives away.
    """

    def __init__(
        self,
        prepared: Prepared,
        known: Known,
        folder: str,
        *,
        source_layout: Layout | None = None,
        evidence: RowEvidence | None = None,
        watch: Watch = nobody,
    ) -> None:
        self._watch = watch
        self.received: Received | None = None
        self.waits = False
        self._prepared, self._known, self._source_layout, self._evidence = prepared, known, source_layout, evidence
        self._probe = Probe(known, short_cut=prepared.parent.short_cut)
        room = prepared.source.delivery.rows or _EXPECTED_ROWS
        self._columns = CandidateColumns(room, digest_width=0 if source_layout is None else 2)
        self._keys = RowKeys(folder, prepared.rules.unique, prepared.reading.ids_of)
        self._places = RowPlaces.at_rest(folder) if prepared.projection.same_crs else RowPlaces()
        self._total, self._tally, self._measures = Sum(), FindingTally(), Measures()
        self._early = FindingTally()
        self._null_rows: list[npt.NDArray[np.int64]] = []
        self._unfit_rows: list[npt.NDArray[np.int64]] = []
        self._blank_rows: list[npt.NDArray[np.int64]] = []
        self._rows = self._nowhere = self._outside = 0
        self._dimensions = gate_delivery.DimensionTally(prepared.contract)
        self._extent = np.array([np.inf, np.inf, -np.inf, -np.inf])

    @property
    def geometry(self) -> str:
        """The name of the primary geometry column."""
        return self._prepared.geometry

    def batches(self, engine: Engine) -> Iterator[CandidateBatch]:
        """Read every row, and give the candidates among them, batch after batch in the order of the delivery.

        Raises:
            SourceError: the delivery breaks off or cannot be decoded.
        """
        hopeless = any(each.hopeless is not None for each in self._prepared.reading.cast.columns)
        for one in engine.run_units(receive_batch, self._units()):
            number = np.arange(one.first_row, one.first_row + one.rows.num_rows, dtype=np.int64)
            self._count(one, number)
            self._watch(Progress("pass 1", self._rows, self._prepared.source.delivery.rows))
            batch = self._candidates(one, number)
            self.waits = hopeless or may_stray(self._prepared.rules, one.measures)
            if len(batch.row):
                self._columns.append(batch)
                yield batch

    def _units(self) -> Iterator[ReceiveUnit]:
        prepared, row = self._prepared, 1
        for raw in prepared.source.batches():
            misfits = misfit_faults(prepared.reading.cast, prepared.source.delivery, row, raw.num_rows)
            yield ReceiveUnit(row, raw, misfits, prepared.reading, prepared.rules, self._source_layout)
            row += raw.num_rows

    def _count(self, one: ReceivedBatch, number: npt.NDArray[np.int64]) -> None:
        prepared, n = self._prepared, len(number)
        self._rows += n
        self._keys.add(one)
        self._places.add(one.scan)
        self._measures.add(one.measures)
        if one.faults:
            self._tally.add(one.faults, rows=number, ids=one.ids, bounds=one.scan.bounds if prepared.projection.same_crs else None)
            if self._evidence is not None:
                name = prepared.reading.delivered_geometry
                self._evidence.add_rejects(one.faults, number, one.ids, one.raw, one.raw.column(name) if name is not None else None)
        self._early.add(one.early, rows=number, ids=one.ids, bounds=one.scan.bounds if prepared.projection.same_crs else None)
        self._nowhere += int(((one.scan.kind == NULL_KIND) | one.scan.empty).sum())
        somewhere = one.scan.placed
        self._dimensions.add(one.scan)
        if somewhere.any():
            box, extent, last = one.scan.bounds if somewhere.all() else one.scan.bounds[somewhere], self._extent, prepared.parent.extent
            here = np.array([box[:, 0].min(), box[:, 1].min(), box[:, 2].max(), box[:, 3].max()])
            extent[:2], extent[2:] = np.minimum(extent[:2], here[:2]), np.maximum(extent[2:], here[2:])
            if last is not None and ((here[:2] < last[:2]) | (here[2:] > last[2:])).any():
                self._outside += int(((box[:, :2] < last[:2]) | (box[:, 2:] > last[2:])).any(axis=1).sum())
        if one.null_keys.any():
            unfit = rejected([each for each in one.faults if each.rule == "type" and each.field in prepared.reading.key.delivered], n)
            self._null_rows.append(number[one.null_keys & ~unfit & ~one.blank_keys])
            self._blank_rows.append(number[one.blank_keys])
            self._unfit_rows.append(number[one.null_keys & unfit & ~one.blank_keys])
            # Rows without a key go no further; what their geometry lacks is said here.
            self._tally.add(of_rows(presence(prepared.contract, one.scan), one.null_keys), rows=number)

    def _candidates(self, one: ReceivedBatch, number: npt.NDArray[np.int64]) -> CandidateBatch:
        n, placed = len(number), one.values is not None
        keyed: Any = np.flatnonzero(~one.null_keys)
        if len(keyed) == n:
            keyed = slice(None)  # as they are: no column is copied
        partition = codes_of(self._prepared.partitions, one.values) if placed else np.full(n, -1, np.int32)
        hit = self._probe.batch(one.hashes[keyed], one.source[keyed], partition[keyed] if placed else None, one.faulty[keyed])
        self._total.include(one.total)
        if self._evidence is not None and one.faults:
            published = np.zeros(n, np.bool_)
            published[keyed] = hit.slot >= 0
            self._evidence.add_lines(of_rows(one.faults, ~one.null_keys), number, one.ids, one.keys, one.faulty & published)
        go_on = np.arange(n)[keyed][hit.candidate]
        miscast, faults = _of_candidates(one.faults, go_on)
        rows, scan = _at_rest(one, self._prepared.candidate_schema), one.scan
        if len(go_on) < n:
            rows, scan = rows.take(pa.array(go_on)), scan.take(go_on)
        return CandidateBatch(
            rows,
            number[go_on].astype(np.int32),
            one.hashes[go_on],
            one.source[go_on],
            hit.slot[hit.candidate],
            (hit.same & hit.moved)[hit.candidate],
            one.faulty[go_on],
            partition[go_on],
            self._prepared.reading.missing,
            miscast,
            faults,
            scan,
        )

    def conclude(self, spool: Spool, *, skipped: int = 0) -> Received:
        """What was found, once all batches are read.

        Args:
            spool: where the candidates lie.
            skipped: how many candidates before them went on at once, since none of them can be a stray.
        """
        prepared, measures = self._prepared, self._measures
        candidates = self._columns.candidates(spool, prepared.reading.missing | measures.untypable)
        verdicts = {name: whereabouts.decide(prepared.rules.grounds[name], census) for name, census in measures.places.items()}
        shifted, watched = quantities.decide(
            prepared.rules.quantities, measures.sizes, prepared.rules.last_distributions, prepared.rules.last_name
        )
        repeated = self._probe.repeated(candidates.hash) if self._keyed else np.zeros((0, 2), np.uint64)
        repeated_keys = self._keys.repeated_keys(prepared.reading.key_name, repeated)
        column = prepared.source.delivery.geometry
        findings = [
            *untypable_findings(prepared.reading.cast, measures.untypable),
            *self._key_findings(),
            repeated_keys,
            *prepared.source.late_findings(),
            stated_box(column.name, column.bbox, _box(self._extent)) if column is not None else None,
            *self._dimensions.findings(),
            *self._fineness(verdicts),
            *(each.finding for each in verdicts.values()),
            *shifted,
            *self._keys.repeated_values(measures.unique),
            *(early := early_findings(self._early, self._rows)),
        ]
        strays = Strays({name: each for name, each in verdicts.items() if each.strays}, frozenset(watched))
        if strays:
            self._refuse(strays, candidates, skipped)
        removed = self._probe.removed()
        warn_of_missing_kernel(self._rows)
        self.received = Received(
            rows=self._rows,
            unchanged=self._probe.unchanged,
            removed=removed,
            removed_hash=self._known.hash_of(removed),
            removed_source=self._known.source_of(removed),
            candidates=candidates,
            tally=self._tally,
            findings=tuple(self._places.placed(each for each in findings if each is not None)),
            set_digest=str(self._total),
            newest=measures.newest,
            early=sum(each.count for each in early),
            nowhere=self._nowhere,
            extent=_box(self._extent),
            outside=self._outside,
            verdicts=verdicts,
            distributions=measures.sizes.record(),
            coordinates={name: each.record(prepared.rules.geometries[name]) for name, each in measures.coordinates.items()},
            unkeyed=sum(len(each) for each in (*self._null_rows, *self._unfit_rows, *self._blank_rows)),
            repeated=repeated,
            repeated_rows=repeated_keys.count if repeated_keys is not None else 0,
            places=self._places,
            met=self._probe.met,
            keys=self._keys.keys,
        )
        return self.received

    def _fineness(self, verdicts: dict[str, whereabouts.Verdict]) -> list[Finding | None]:
        contract, rules, name = self._prepared.contract, self._prepared.rules, self._prepared.contract.geometry_name
        followed = {column for column, each in verdicts.items() if "precision" in each.follows}
        found = [
            fineness.precision(contract, counts, contract.field(column), rules.last_coordinates.get(column), rules.last_name)
            for column, counts in self._measures.coordinates.items()
            if column not in followed and rules.geometries[column] is not None
        ]
        if name in self._measures.coordinates and name not in followed:
            counts, last, operation = (
                self._measures.coordinates[name],
                rules.last_coordinates.get(name),
                self._prepared.projection.operation,
            )
            same_crs = operation is not None and operation.source == rules.last_crs
            found.append(fineness.vertex_loss(contract, counts, last or {}, rules.last_name, same_crs=same_crs))
        return found

    @property
    def _keyed(self) -> bool:
        """Whether keys can be read at all; where not, a finding says so of the column."""
        return not self._measures.untypable & set(self._prepared.reading.key.delivered)

    def _key_findings(self) -> list[Finding | None]:
        name = self._prepared.reading.key_name
        if not self._null_rows or not self._keyed:
            return []
        return [
            gate_delivery.null_keys(name, np.concatenate(self._null_rows)),
            gate_delivery.unfit_keys(name, np.concatenate(self._unfit_rows)),
            gate_delivery.blank_keys(name, np.concatenate(self._blank_rows)),
        ]

    def _refuse(self, strays: Strays, candidates: Candidates, skipped: int) -> None:
        """Find the stray rows among the candidates that wait, and note that they are refused."""
        prepared, start = self._prepared, skipped
        for batch in candidates.batches(skipped=skipped):
            scan = kernel.scan(batch.rows.column(self.geometry))
            faults = strays.faults(prepared.rules, batch.rows, self.geometry, scan)
            if faults:
                number = batch.row.astype(np.int64)
                ids = prepared.reading.ids_of(batch.rows.column(KEY))
                self._tally.add(faults, rows=number, ids=ids, bounds=scan.bounds if prepared.projection.same_crs else None)
                if self._evidence is not None:
                    self._evidence.add_rejects(faults, number, ids, batch.rows, batch.rows.column(self.geometry))
                    refused = rejected(faults, len(number)) & (batch.slot >= 0)
                    self._evidence.add_lines(faults, number, ids, batch.rows.column(KEY), refused)
                candidates.refuse([replace(each, rows=each.rows + start) for each in faults])
            start += len(batch.row)


def _of_candidates(faults: list[RowFaults], go_on: npt.NDArray[np.int64]) -> tuple[list[RowFaults], list[RowFaults]]:
    """The faults of the rows that go on, by place among these: values that could not be cast, and all others."""
    miscast: list[RowFaults] = []
    others: list[RowFaults] = []
    for each in faults:
        at = np.searchsorted(go_on, each.rows)  # faulty rows with a key always go on
        there = at < len(go_on)
        there[there] = go_on[at[there]] == each.rows[there]
        (miscast if each.rule == "type" else others).append(replace(each, rows=at[there], observed=each.observed.filter(pa.array(there))))
    return miscast, others


def _at_rest(one: ReceivedBatch, schema: pa.Schema) -> Any:
    names = [name for name in schema.names if name != KEY]
    return pa.RecordBatch.from_arrays([*(one.rows.column(name) for name in names), one.keys], schema=schema)


def _box(extent: npt.NDArray[np.float64]) -> Box | None:
    """Four sides, None without a position."""
    west, south, east, north = extent.tolist()
    return (west, south, east, north) if np.isfinite(extent).all() else None
