"""The task of pass 1: one delivered batch, read, keyed, digested and measured, by itself and in any process.

Not here: what the batches say together (`receive`), where their rows go on (`candidates`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.dataset.known import Halves, Sum, halves
from merestone.gate import quantities, whereabouts
from merestone.gate.findings import rejected
from merestone.gate.fineness import Fineness, fineness
from merestone.gate.freshness import early_faults
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.identity.digest import Layout, digest_batch
from merestone.line.preparing.reading import Reading
from merestone.line.preparing.whole_rules import WholeRules
from merestone.results.finding import RowFaults


@dataclass(frozen=True, slots=True)
class ReceiveUnit:
    """One delivered batch and what is done to it.

    Args:
        first_row: the row of its first, counted from 1.
        raw: the batch, as delivered.
        misfits: its cells that the source found to be no value of their column's type.
        reading: how it is read.
        rules: what is measured of it.
        source_layout: the layout of the source digest; None where nothing is compared.
    """

    first_row: int
    raw: Any
    misfits: list[RowFaults]
    reading: Reading
    rules: WholeRules
    source_layout: Layout | None


@dataclass(slots=True)
class Measures:
    """What is counted over all rows of a delivery, batch after batch.

    places: per geometry column, where its rows lie. coordinates: per geometry column, how fine they are. sizes: how large the numbers are.
    unique: per field that promises it, the hashes of the values, a null counting as none.
    newest: the newest time that has come of the field that the age of the data is read from. untypable: fields with values in a type that can never be
    cast.
    """

    places: dict[str, whereabouts.Census] = field(default_factory=dict)
    sizes: quantities.Sizes = field(default_factory=quantities.Sizes)
    coordinates: dict[str, Fineness] = field(default_factory=dict)
    unique: dict[str, list[npt.NDArray[np.uint64]]] = field(default_factory=dict)
    newest: Any = None
    untypable: frozenset[str] = frozenset()

    def add(self, other: Measures) -> None:
        """Take in those of the next batch."""
        for name, census in other.places.items():
            self.places.setdefault(name, whereabouts.Census()).add(census)
        self.sizes.add(other.sizes)
        for name, counts in other.coordinates.items():
            self.coordinates.setdefault(name, Fineness()).add(counts)
        for name, hashes in other.unique.items():
            self.unique.setdefault(name, []).extend(hashes)
        if self.newest is None or (other.newest is not None and other.newest > self.newest):
            self.newest = other.newest
        self.untypable |= other.untypable


@dataclass(frozen=True, slots=True)
class ReceivedBatch:
    """One batch of n rows after the part of pass 1 that needs no memory of other batches.

    faults: on rows, of the cast. early: rows whose time has not come yet. keys: canonical key bytes. null_keys: rows without a usable key, blank_keys
    those of them whose text is empty, blank or has a NUL. ids: feature ids, only where there are faults to name. source: source digests,
    (n, 0) where nothing is compared. total: the digest of the rows with a key as a set. values: of the partition column, None where none places the
    rows. scan: of the delivered geometry.
    """

    first_row: int
    raw: Any
    rows: Any
    faults: list[RowFaults]
    early: list[RowFaults]
    faulty: npt.NDArray[np.bool_]
    keys: Any
    ids: Any
    null_keys: npt.NDArray[np.bool_]
    blank_keys: npt.NDArray[np.bool_]
    hashes: Halves
    source: Halves
    total: Sum
    values: Any
    scan: kernel.Scan
    measures: Measures


def receive_batch(unit: ReceiveUnit) -> ReceivedBatch:
    """Read one batch."""
    reading = unit.reading
    rows, faults = reading.rows(unit.raw)
    faults = [*faults, *unit.misfits]
    n = rows.num_rows
    canonical, null = reading.keys(rows, unit.first_row)
    blank = keys.unusable(rows, reading.key_columns)
    scan = kernel.scan(rows.column(reading.geometry))
    clock = unit.rules.clock
    early = early_faults(clock, rows.column(clock.column)) if clock is not None else []
    hashes = halves(hashing.blake2b16(canonical))
    source = halves(digest_batch(rows, unit.source_layout, reading.geometry)) if unit.source_layout is not None else _none(n)
    unusable = null | blank
    return ReceivedBatch(
        first_row=unit.first_row,
        raw=unit.raw,
        rows=rows,
        faults=faults,
        early=early,
        faulty=rejected(faults, n),
        keys=canonical,
        ids=reading.ids(rows) if faults or early else None,
        null_keys=unusable,
        blank_keys=blank,
        hashes=hashes,
        source=source,
        total=_total(hashes, source, ~unusable) if unit.source_layout is not None else Sum(),
        values=reading.partition_values(rows),
        scan=scan,
        measures=_measures(unit, rows, scan),
    )


def _total(hashes: Halves, source: Halves, keyed: npt.NDArray[np.bool_]) -> Sum:
    """The digest of the set of the rows that have a key."""
    out = Sum()
    out.add(*((hashes, source) if keyed.all() else (hashes[keyed], source[keyed])))
    return out


def bounds_of(name: str, rows: Any, geometry: str, scan: kernel.Scan) -> npt.NDArray[np.float64]:
    """The boxes (n, 4) of one geometry column as delivered; `scan` is of the primary one, which `geometry` names."""
    return _scan_of(name, rows, geometry, scan).bounds


def _scan_of(name: str, rows: Any, geometry: str, scan: kernel.Scan) -> kernel.Scan:
    return scan if name == geometry else kernel.scan(rows.column(name))


def text_hashes(values: Any) -> npt.NDArray[np.uint64]:
    """A hash of each value as text, uint64 (n,)."""
    return halves(hashing.blake2b16(values.cast(pa.string()).cast(pa.binary())))[:, 0].copy()


def _none(n: int) -> Halves:
    return np.zeros((n, 0), np.uint64)


def _measures(unit: ReceiveUnit, rows: Any, scan: kernel.Scan) -> Measures:
    """What one batch adds to the counts over the delivery."""
    rules, geometry = unit.rules, unit.reading.geometry
    scans = {name: _scan_of(name, rows, geometry, scan) for name in {*rules.grounds, *rules.geometries}}
    return Measures(
        places={name: whereabouts.census(ground, scans[name].bounds) for name, ground in rules.grounds.items()},
        sizes=quantities.sizes(rows, rules.quantities, geometry, rules.measuring),
        coordinates={name: fineness(rows.column(name), scans[name], promised) for name, promised in rules.geometries.items()},
        unique={name: [text_hashes(pc.drop_null(rows.column(name)))] for name in rules.unique},
        newest=rules.clock.newest(rows.column(rules.clock.column)) if rules.clock is not None else None,
        untypable=unit.reading.untypable(unit.raw),
    )
