"""Pass 1, every row: source -> cast -> key, source digest, partition -> probe -> measures; candidates to a scratch spool.

Not here: the verdict on the delivery (`line`), what happens to candidates (`process`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change.guards import Box
from merestone.change.probe import Probe
from merestone.columnar import hashing
from merestone.dataset.known import Halves, Known, Sum, find, halves, sort_by_hash
from merestone.dataset.partition import Partitions
from merestone.engine.threads import run_units
from merestone.gate import delivery as gate_delivery
from merestone.gate import quantities, whereabouts
from merestone.gate.feature import presence
from merestone.gate.findings import FindingTally, findings_table, reasons, rejected
from merestone.geometry import kernel
from merestone.geometry.form import NULL_KIND
from merestone.identity import key as keys
from merestone.identity.digest import digest_batch
from merestone.line.prepared import KEY, Prepared
from merestone.normalise.cast import PARTITION_COLUMN, misfit_faults
from merestone.publish.files import REJECTS_SCHEMA
from merestone.results.finding import SAMPLES, Finding, RowFaults
from merestone.scratch.spool import Spool


@dataclass(frozen=True, slots=True)
class _Row1:
    """One batch after the part of pass 1 that needs no memory of other batches. `ids` only where there are faults to name."""

    first_row: int
    raw: Any
    batch: Any
    faults: list[RowFaults]
    faulty: npt.NDArray[np.bool_]
    keys: Any
    ids: Any
    null_keys: npt.NDArray[np.bool_]
    hashes: Halves
    source: Halves
    values: Any
    scan: kernel.Scan
    measures: Measures


@dataclass(slots=True)
class Measures:
    """What is counted over all rows of a delivery, batch after batch.

    places: per geometry column, where its rows lie. decimals: per geometry column that is not transformed, int64 (2, 17), how fine its
    ordinates are. sizes: how large the numbers are. unique: per field that promises it, the hashes of the values, a null counting as none.
    """

    places: dict[str, whereabouts.Census] = field(default_factory=dict)
    sizes: quantities.Sizes = field(default_factory=quantities.Sizes)
    decimals: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    unique: dict[str, list[npt.NDArray[np.uint64]]] = field(default_factory=dict)

    def add(self, other: Measures) -> None:
        """Take in those of the next batch."""
        for name, census in other.places.items():
            self.places.setdefault(name, whereabouts.Census()).add(census)
        self.sizes.add(other.sizes)
        for name, histogram in other.decimals.items():
            self.decimals[name] = self.decimals.get(name, 0) + histogram
        for name, hashes in other.unique.items():
            self.unique.setdefault(name, []).extend(hashes)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Faults of rows that only the whole delivery gives away; a second reading of it finds the rows.

    places: geometry columns with rows that lie elsewhere, and the bulk of all rows. units: fields with numbers in another unit.
    """

    places: dict[str, whereabouts.Bulk | None] = field(default_factory=dict)
    units: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.places or self.units)


@dataclass(slots=True)
class Candidates:
    """The rows that go on, in columns of the same length as the spool.

    row: int32, from 1. hash, source: uint64 (n, 2). slot: int32, the row in `Known` or -1. trusted: the probe knows the source digest, only
    the place differs. faulty: refused in pass 1. partition: int32, code of a column's value, -1 under other schemes. miscast: field names,
    each with the candidates whose value could not be cast (it is null in the spool, and was none in the delivery). early: other faults of
    pass 1, by candidate.
    """

    spool: Spool
    row: npt.NDArray[np.int32]
    hash: Halves
    source: Halves
    slot: npt.NDArray[np.int32]
    trusted: npt.NDArray[np.bool_]
    faulty: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int32]
    miscast: list[tuple[str, npt.NDArray[np.int64]]] = field(default_factory=list)
    early: list[RowFaults] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row)

    def parts(self, geometry: str) -> Iterator[Part]:
        """The candidates in the spool, batch after batch; `geometry` names the column of the primary one."""
        start = 0
        for batch in self.spool.batches():
            here = slice(start, start + batch.num_rows)
            start = here.stop
            yield Part(
                batch,
                self.row[here],
                self.hash[here],
                self.source[here],
                self.slot[here],
                self.trusted[here],
                self.faulty[here],
                self.partition[here],
                _miscast(self.miscast, here),
                _among(self.early, here),
                kernel.scan(batch.column(geometry)),
            )


@dataclass(frozen=True, slots=True)
class Part:
    """The candidates of one batch: `rows` in the spool's schema, and their stretch of each column of `Candidates`, counted from its beginning.

    scan: of their geometry as delivered.
    """

    rows: Any
    row: npt.NDArray[np.int32]
    hash: Halves
    source: Halves
    slot: npt.NDArray[np.int32]
    trusted: npt.NDArray[np.bool_]
    faulty: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int32]
    miscast: list[RowFaults]
    early: list[RowFaults]
    scan: kernel.Scan


def _among(faults: list[RowFaults], here: slice) -> list[RowFaults]:
    """The faults of a stretch of rows, counted from its beginning."""
    found = []
    for each in faults:
        mine = (each.rows >= here.start) & (each.rows < here.stop)
        if mine.any():
            found.append(replace(each, rows=each.rows[mine] - here.start, observed=each.observed.filter(pa.array(mine))))
    return found


def _miscast(cells: list[tuple[str, npt.NDArray[np.int64]]], here: slice) -> list[RowFaults]:
    """The cells of a stretch of rows that could not be cast: pass 1 has told them, and they are no nulls."""
    found = []
    for name, rows in cells:
        mine = rows[(rows >= here.start) & (rows < here.stop)] - here.start
        if len(mine):
            found.append(RowFaults("schema", name, "type", "error", "", mine, pa.nulls(len(mine), pa.string())))
    return found


@dataclass(slots=True)
class Received:
    """What pass 1 found out about a delivery.

    removed: slots in `Known` of features that were not delivered; gone, gone_source: their key hashes and source digests. nowhere: rows with
    a null or empty geometry. extent: of all rows, in the delivered CRS; outside: how many of them reach out of the last version's. newest:
    the newest value of the field that freshness is measured by. verdicts: per geometry column, what its positions say of axes and units.
    distributions: how large the numbers of each field are. row_findings: lines of `_findings/` on rows that pass 1 refused.
    """

    rows: int
    unchanged: int
    removed: npt.NDArray[np.int64]
    gone: Halves
    gone_source: Halves
    candidates: Candidates
    tally: FindingTally
    findings: tuple[Finding, ...]
    set_digest: str
    rejects: list[Any] = field(default_factory=list)  # tables of REJECTS_SCHEMA
    newest: Any = None
    nowhere: int = 0
    extent: Box | None = None
    outside: int = 0
    verdicts: dict[str, whereabouts.Verdict] = field(default_factory=dict)
    distributions: dict[str, list[float]] = field(default_factory=dict)
    row_findings: list[Any] = field(default_factory=list)


def without_consequences(received: Received, findings: Iterable[Finding]) -> list[Finding]:
    """Findings on rows but for those that follow from the verdict on where the whole delivery lies."""
    return [each for each in findings if each.field not in received.verdicts or each.rule not in received.verdicts[each.field].follows]


def receive(prepared: Prepared, known: Known, folder: str, *, workers: int) -> Received:
    """Read the delivery; once more where it holds rows that only its whole gives away (axes swapped in one of ten thousand).

    Raises:
        SourceError: it breaks off or cannot be decoded.
    """
    reception = Reception(prepared, known)
    received = _spool(reception, Spool(folder, "candidates", prepared.spool_schema), workers=workers)
    if reception.suspects:
        received.candidates.spool.drop()
        received = _spool(reception.again(), Spool(folder, "suspects", prepared.spool_schema), workers=workers)
    return received


def _spool(reception: Reception, spool: Spool, *, workers: int) -> Received:
    miscast: list[tuple[str, npt.NDArray[np.int64]]] = []
    early: list[RowFaults] = []
    for part in reception.parts(workers=workers):
        miscast += [(each.field, spool.rows + each.rows) for each in part.miscast]
        early += [replace(each, rows=spool.rows + each.rows) for each in part.early]
        spool.write(part.rows)
    spool.close()
    received = reception.received(spool)
    received.candidates.miscast, received.candidates.early = miscast, early
    return received


class Reception:
    """Pass 1 over a delivery: `parts` reads it and gives the candidates of each batch, `received` then says what was found on the way.

    suspects: after `received`, what only the whole gives away; where there is some, the delivery is to be read `again` for it.
    """

    def __init__(self, prepared: Prepared, known: Known, suspects: Suspects | None = None) -> None:
        self.suspects = Suspects()
        self._prepared, self._known, self._sought = prepared, known, suspects or Suspects()
        self._probe = Probe(known, short_cut=prepared.short_cut)
        self._columns = _Columns(prepared.source.delivery.rows or 1 << 20, compared=prepared.compared)
        self._total, self._tally, self._measures = Sum(), FindingTally(), Measures()
        self._rejects: list[Any] = []
        self._lines: list[Any] = []
        self._null_rows: list[npt.NDArray[np.int64]] = []
        self._unfit_rows: list[npt.NDArray[np.int64]] = []
        self._rows = self._nowhere = self._outside = 0
        self._dimensions = gate_delivery.DimensionTally(prepared.contract)
        self._extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self._newest: Any = None

    def again(self) -> Reception:
        """A second reading, which names the rows that the first one suspects."""
        return Reception(self._prepared, self._known, self.suspects)

    def parts(self, *, workers: int) -> Iterator[Part]:
        """Read every row, and give the candidates among them, batch after batch in the order of the delivery.

        Raises:
            SourceError: the delivery breaks off or cannot be decoded.
        """
        for one in run_units(lambda unit: _look(self._prepared, self._sought, *unit), _numbered(self._prepared), workers=workers):
            number = np.arange(one.first_row, one.first_row + one.batch.num_rows, dtype=np.int64)
            self._count(one, number)
            part = self._candidates(one, number)
            if len(part.row):
                self._columns.append(part.row, part.hash, part.source, part.slot, part.trusted, part.faulty, part.partition)
                yield part

    def _count(self, one: _Row1, number: npt.NDArray[np.int64]) -> None:
        prepared, n = self._prepared, len(number)
        self._rows += n
        if one.faults:
            self._tally.add(one.faults, rows=number, ids=one.ids, bounds=one.scan.bounds if prepared.same_crs else None)
            if prepared.compared:
                self._rejects.append(
                    rejects_table(
                        one.faults,
                        number,
                        one.ids,
                        one.raw,
                        one.raw.column(prepared.delivered_geometry) if prepared.delivered_geometry else pa.nulls(n, pa.binary()),
                    )
                )
        self._measures.add(one.measures)
        self._nowhere += int(((one.scan.kind == NULL_KIND) | one.scan.empty).sum())
        somewhere = one.scan.placed
        self._dimensions.add(one.scan, number)
        if somewhere.any():
            box, extent = one.scan.bounds[somewhere], self._extent
            extent[:2], extent[2:] = np.minimum(extent[:2], box[:, :2].min(axis=0)), np.maximum(extent[2:], box[:, 2:].max(axis=0))
            if prepared.last_extent is not None:
                low, high = prepared.last_extent[:2], prepared.last_extent[2:]
                self._outside += int(((box[:, :2] < low) | (box[:, 2:] > high)).any(axis=1).sum())
        self._newest = _newest(self._newest, one.batch, prepared.contract.freshness_from)
        if one.null_keys.any():
            unfit = rejected([each for each in one.faults if each.rule == "type" and each.field in prepared.publication.key.delivered], n)
            self._null_rows.append(number[one.null_keys & ~unfit])
            self._unfit_rows.append(number[one.null_keys & unfit])
            # Rows without a key go no further, so that what their geometry lacks is said here.
            self._tally.add(_of_rows(presence(prepared.contract, one.scan), one.null_keys), rows=number)

    def _candidates(self, one: _Row1, number: npt.NDArray[np.int64]) -> Part:
        prepared, n = self._prepared, len(number)
        keyed = np.flatnonzero(~one.null_keys)
        partition = partitions_of(prepared.partitions, one.values) if one.values is not None else np.full(n, -1, np.int32)
        hit = self._probe.batch(
            one.hashes[keyed], one.source[keyed], partition[keyed] if one.values is not None else None, one.faulty[keyed]
        )
        if prepared.compared:
            self._total.add(one.hashes[keyed], one.source[keyed])
            if one.faults:
                kept = np.zeros(n, np.bool_)
                kept[keyed] = hit.slot >= 0
                held = one.faulty & kept & (prepared.publication.rejects.published == "hold")
                self._lines.append(findings_table(_of_rows(one.faults, ~one.null_keys), rows=number, ids=one.ids, keys=one.keys, held=held))
        go_on = keyed[hit.candidate]
        miscast: list[RowFaults] = []
        early: list[RowFaults] = []
        for each in one.faults:
            at = np.searchsorted(go_on, each.rows)  # faulty rows with a key always go on
            there = at < len(go_on)
            there[there] = go_on[at[there]] == each.rows[there]
            (miscast if each.rule == "type" else early).append(
                replace(each, rows=at[there], observed=each.observed.filter(pa.array(there)))
            )
        rows, scan = _spooled(one, prepared), one.scan
        if len(go_on) < n:
            rows, scan = rows.take(pa.array(go_on)), scan.take(go_on)
        return Part(
            rows,
            number[go_on].astype(np.int32),
            one.hashes[go_on],
            one.source[go_on],
            hit.slot[hit.candidate].astype(np.int32),
            (hit.same & hit.moved)[hit.candidate],
            one.faulty[go_on],
            partition[go_on],
            miscast,
            early,
            scan,
        )

    def received(self, spool: Spool) -> Received:
        """What was found, once all parts are read.

        Args:
            spool: where the candidates lie; nothing is read from it.
        """
        prepared, measures = self._prepared, self._measures
        candidates = self._columns.candidates(spool)
        findings = [
            *_key_findings(prepared, self._null_rows, self._unfit_rows, self._probe.repeated(candidates.hash)),
            *prepared.source.late_findings(),
        ]
        findings += self._dimensions.findings()
        verdicts = {name: whereabouts.decide(prepared.grounds[name], census) for name, census in measures.places.items()}
        for name, histogram in measures.decimals.items():
            if name not in verdicts or "precision" not in verdicts[name].follows:
                findings.append(gate_delivery.precision(prepared.contract, histogram, prepared.contract.field(name)))
        findings += [each.finding for each in verdicts.values()]
        shifted, watched = quantities.decide(prepared.quantities, measures.sizes, prepared.last_distributions, prepared.last_name)
        findings += [*shifted, *_repeated_values(prepared, measures.unique)]
        if prepared.judged:
            findings.append(gate_delivery.too_many(prepared.contract, self._rows))
        if not self._sought:
            self.suspects = Suspects({name: each.bulk for name, each in verdicts.items() if each.strays}, watched)
        removed = self._probe.removed()
        return Received(
            self._rows,
            self._probe.unchanged,
            removed,
            self._known.hash[removed],
            self._known.source[removed],
            candidates,
            self._tally,
            tuple(each for each in findings if each is not None),
            str(self._total),
            self._rejects,
            self._newest,
            self._nowhere,
            _box(self._extent),
            self._outside,
            verdicts,
            measures.sizes.record(),
            self._lines,
        )


def _box(extent: npt.NDArray[np.float64]) -> Box | None:
    """Four sides, None where there is no position."""
    west, south, east, north = extent.tolist()
    return (west, south, east, north) if np.isfinite(extent).all() else None


def _of_rows(faults: list[RowFaults], rows: npt.NDArray[np.bool_]) -> list[RowFaults]:
    """The faults of some rows of a batch."""
    return [replace(each, rows=each.rows[rows[each.rows]], observed=each.observed.filter(pa.array(rows[each.rows]))) for each in faults]


def _numbered(prepared: Prepared) -> Iterator[tuple[int, Any]]:
    row = 1
    for batch in prepared.source.batches():
        yield row, batch
        row += batch.num_rows


def _look(prepared: Prepared, suspects: Suspects, first_row: int, raw: Any) -> _Row1:
    batch, faults = prepared.cast_rows(raw)
    n = batch.num_rows
    faults += misfit_faults(prepared.cast, prepared.source.delivery, first_row, n)
    if suspects.units:
        faults += quantities.faults(batch, prepared.quantities, suspects.units, prepared.geometry, prepared.measuring)
    canonical, null = keys.key_bytes(batch, prepared.key_columns)
    wkb = batch.column(prepared.geometry)
    scan = kernel.scan(wkb)
    measures = _measures(prepared, batch, scan)
    for name, bulk in suspects.places.items():
        faults += whereabouts.faults(prepared.grounds[name], _bounds(prepared, batch, name, scan), bulk)
    source = halves(digest_batch(batch, prepared.source_layout, prepared.geometry)) if prepared.compared else np.zeros((n, 0), np.uint64)
    values = (
        batch.column(PARTITION_COLUMN if PARTITION_COLUMN in batch.schema.names else prepared.partition_column)
        if prepared.partition_column
        else None
    )
    return _Row1(
        first_row,
        raw,
        batch,
        faults,
        rejected(faults, n),
        canonical,
        keys.feature_ids(batch, prepared.key_columns) if faults else None,
        null,
        halves(hashing.blake2b16(canonical)),
        source,
        values,
        scan,
        measures,
    )


def _measures(prepared: Prepared, batch: Any, scan: kernel.Scan) -> Measures:
    """What one batch adds to the counts over the delivery."""
    out = Measures()
    finest = {
        name
        for name, operation in ((prepared.geometry, prepared.operation), *prepared.other_operations)
        if operation is None or operation.is_identity
    }
    for name in dict.fromkeys((prepared.geometry, *prepared.grounds)):
        column = batch.column(name)
        if name in prepared.grounds:
            bounds = scan.bounds if name == prepared.geometry else kernel.scan(column).bounds
            out.places[name] = whereabouts.census(prepared.grounds[name], bounds)
        if name in finest:
            out.decimals[name] = kernel.decimals(column)
    out.sizes = quantities.sizes(batch, prepared.quantities, prepared.geometry, prepared.measuring)
    for name in prepared.unique:
        column = batch.column(name)
        out.unique[name] = [_text_hashes(pc.drop_null(column))[:, 0].copy()]
    return out


def _bounds(prepared: Prepared, batch: Any, name: str, scan: kernel.Scan) -> npt.NDArray[np.float64]:
    """The boxes of one geometry column as delivered."""
    return scan.bounds if name == prepared.geometry else kernel.scan(batch.column(name)).bounds


def _spooled(one: _Row1, prepared: Prepared) -> Any:
    names = [name for name in prepared.spool_schema.names if name != KEY]
    return pa.RecordBatch.from_arrays([*(one.batch.column(name) for name in names), one.keys], schema=prepared.spool_schema)


def partitions_of(partitions: Partitions, values: Any) -> npt.NDArray[np.int32]:
    """The code of each row's partition value; values compare as text (NFC)."""
    if pa.types.is_floating(values.type):
        raise TypeError("a partition column of floats is refused before any row is read")
    text = values if pa.types.is_string(values.type) else values.cast(pa.string())
    encoded = pc.utf8_normalize(text, form="NFC").dictionary_encode(null_encoding="encode")
    codes = partitions.of_values(encoded.dictionary.to_pylist())
    return codes[np.asarray(encoded.indices)] if len(codes) else np.zeros(0, np.int32)


class _Columns:
    """The arrays of `Candidates` while they grow. Room that is not used yet costs no memory: the system hands pages out when touched."""

    def __init__(self, room: int, *, compared: bool) -> None:
        self._used = 0
        kinds = (
            (np.int32, ()),
            (np.uint64, (2,)),
            (np.uint64, (2 if compared else 0,)),
            (np.int32, ()),
            (np.bool_, ()),
            (np.bool_, ()),
            (np.int32, ()),
        )
        self._arrays: list[npt.NDArray[Any]] = [np.empty((max(room, 1), *shape), kind) for kind, shape in kinds]

    def append(self, *parts: npt.NDArray[Any]) -> None:
        end = self._used + len(parts[0])
        for n, part in enumerate(parts):
            if end > len(self._arrays[n]):
                larger = np.empty((max(end, 2 * len(self._arrays[n])), *self._arrays[n].shape[1:]), self._arrays[n].dtype)
                larger[: self._used] = self._arrays[n][: self._used]
                self._arrays[n] = larger
            self._arrays[n][self._used : end] = part
        self._used = end

    def candidates(self, spool: Spool) -> Candidates:
        row, hashes, source, slot, trusted, faulty, partition = (each[: self._used] for each in self._arrays)
        return Candidates(spool, row, hashes, source, slot, trusted, faulty, partition)


def rejects_table(faults: list[RowFaults], number: npt.NDArray[np.int64], ids: Any, rows: Any, geometry: Any) -> Any:
    """Rows that a rule refused, as delivered: one line a row and fault (pyarrow.Table of REJECTS_SCHEMA)."""
    parts = []
    attributes = rows.select([name for name in rows.schema.names if not pa.types.is_binary(rows.schema.field(name).type) and name != KEY])
    why = reasons(faults, len(number), severity="error")
    for each in faults:
        if each.severity != "error" or not len(each.rows):
            continue
        at = pa.array(each.rows)
        delivered = [json.dumps(row, ensure_ascii=False, default=str) for row in attributes.take(at).to_pylist()]
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


def _newest(so_far: Any, batch: Any, name: str | None) -> Any:
    if name is None or name == "delivered_at" or name not in batch.schema.names:
        return so_far
    here = pc.max(batch.column(name)).as_py()
    return here if so_far is None or (here is not None and here > so_far) else so_far


def _key_findings(
    prepared: Prepared, null_rows: list[npt.NDArray[np.int64]], unfit_rows: list[npt.NDArray[np.int64]], repeated: Halves
) -> list[Finding | None]:
    name = prepared.key_name
    out: list[Finding | None] = []
    if null_rows:
        out += [gate_delivery.null_keys(name, np.concatenate(null_rows)), gate_delivery.unfit_keys(name, np.concatenate(unfit_rows))]
    if len(repeated):
        wanted = repeated[sort_by_hash(repeated)]

        def of_keys(batch: Any) -> tuple[Halves, npt.NDArray[np.bool_]]:
            hashes = halves(hashing.blake2b16(keys.key_bytes(batch, prepared.key_columns)[0]))
            return hashes, find(wanted, hashes) >= 0

        (groups,) = _equal_rows(prepared, [of_keys])
        firsts = groups.firsts()
        out.append(gate_delivery.duplicate_keys(name, groups, [each[0] for each in _named(prepared, firsts).values()]))
    return out


def _repeated_values(prepared: Prepared, unique: dict[str, list[npt.NDArray[np.uint64]]]) -> list[Finding]:
    """Values that stand twice in a field that promises to have each once; the delivery is read again for their rows, as for keys."""
    asked: dict[str, _Question] = {}
    for name, parts in unique.items():
        values = np.sort(np.concatenate(parts))
        twice = np.unique(values[1:][values[1:] == values[:-1]])
        if len(twice):
            asked[name] = partial(_of_values, name, twice)
    found = []
    for name, groups in zip(asked, _equal_rows(prepared, list(asked.values())) if asked else [], strict=True):
        if len(groups):
            shown = np.union1d(groups.rows[:SAMPLES], groups.firsts())
            found.append(gate_delivery.repeated_values(name, groups, _named(prepared, shown, name)))
    return found


def _of_values(name: str, wanted: npt.NDArray[np.uint64], batch: Any) -> tuple[Halves, npt.NDArray[np.bool_]]:
    column = batch.column(name)
    hashes = _text_hashes(column)
    return hashes, np.isin(hashes[:, 0], wanted) & np.asarray(column.is_valid())


def _text_hashes(values: Any) -> Halves:
    """(n, 2) a hash of each value as text; the first half is what is kept of a million of them."""
    return halves(hashing.blake2b16(values.cast(pa.string()).cast(pa.binary())))


_Question = Callable[[Any], tuple[Halves, npt.NDArray[np.bool_]]]


def _equal_rows(prepared: Prepared, asked: Sequence[_Question]) -> list[gate_delivery.KeyGroups]:
    """Read the delivery again for rows that are alike: their rows are not kept for the millions that have nothing to answer for.

    Args:
        prepared: how rows are read.
        asked: of each batch the hash of every row, and which rows are in question.

    Returns:
        For each question the rows in question with equal hashes.
    """
    hashes: list[list[Halves]] = [[] for _ in asked]
    rows: list[list[npt.NDArray[np.int64]]] = [[] for _ in asked]
    for first, raw in _numbered(prepared):
        batch, _ = prepared.cast_rows(raw)
        for number, question in enumerate(asked):
            here, wanted = question(batch)
            hashes[number].append(here[wanted])
            rows[number].append(np.flatnonzero(wanted) + first)
    return [gate_delivery.equal_groups(np.concatenate(each), np.concatenate(at)) for each, at in zip(hashes, rows, strict=True)]


def _named(prepared: Prepared, rows: npt.NDArray[np.int64], *fields: str) -> dict[int, tuple[str, ...]]:
    """Feature id and values, as text, of the few rows (ascending, from 1) that a finding shows; the delivery is read up to the last of them."""
    out: dict[int, tuple[str, ...]] = {}
    for first, raw in _numbered(prepared):
        at = rows[(rows >= first) & (rows < first + raw.num_rows)] - first
        if len(at):
            batch, _ = prepared.cast_rows(raw)
            columns = [keys.feature_ids(batch, prepared.key_columns), *(batch.column(name).cast(pa.string()) for name in fields)]
            out.update(
                zip((at + first).tolist(), zip(*(each.take(pa.array(at)).to_pylist() for each in columns), strict=True), strict=True)
            )
        if len(out) == len(rows):
            break
    return out
