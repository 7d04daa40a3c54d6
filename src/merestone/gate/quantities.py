"""Whether numbers are in the unit that the contract names: a shift of their distribution by a unit factor is found and named.

Not here: code lists and patterns (`feature`), the unit of coordinates (`whereabouts`).

Clause: docs/spec/gate.md#units-of-values; `schema_fields[].unit`. Two witnesses: the geometry, where a field has a unit of area or length
and its shapes measure the same thing, and the last version's distribution of the field. Logarithms turn a factor into a displacement, so
that counts per bin are all that is kept of a million rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import CRS

from merestone.contract.contract import Contract, Field
from merestone.geometry import kernel
from merestone.reference.ground import metres_per_unit
from merestone.reference.systems import horizontal
from merestone.reference.units import AREAS, LENGTHS, shown, unit_of
from merestone.results.finding import Finding, RowFaults
from merestone.rules import catalogue

_BIN = 0.005  # of a decimal logarithm: 1.2 %
_LOW, _HIGH = -12.0, 16.0
_BINS = round((_HIGH - _LOW) / _BIN)
_NEAR = 0.02  # 4.7 %: what generalised shapes and the scale of a projection leave
_EXACT = 0.004  # 0.9 %
_ENOUGH = 100
_MOST = 0.9
_TIGHT = 0.95
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
_FAR = 1.0  # a single row is convicted of a factor of ten and more only; less may be a fault of another kind

Counts = npt.NDArray[np.int64]

Logarithms = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A numeric field with a unit. `measured` is what its shapes measure: area, length or nothing."""

    field: Field
    unit: str
    measured: str | None


@dataclass(slots=True)
class Sizes:
    """Counts per bin of logarithm: of each field's values, and of its values over what the geometry measures."""

    values: dict[str, Counts] = field(default_factory=dict)
    ratios: dict[str, Counts] = field(default_factory=dict)

    def add(self, other: Sizes) -> None:
        """Take in the counts of another batch."""
        for mine, theirs in ((self.values, other.values), (self.ratios, other.ratios)):
            for name, counts in theirs.items():
                mine[name] = counts if name not in mine else mine[name] + counts

    def record(self) -> dict[str, list[float]]:
        """What a version keeps of each distribution: the number of values, then the logarithms below which 10, 25, 50, 75 and 90 % lie."""
        return {name: [int(counts.sum()), *_quantiles(counts)] for name, counts in self.values.items() if counts.sum() >= _ENOUGH}


def quantities(contract: Contract) -> tuple[Quantity, ...]:
    """The fields whose numbers can be judged: those with a unit that are not computed here."""
    shape = contract.geometry_type.removeprefix("multi")
    found = []
    for each in contract.schema_fields:
        if each.unit is None or each.type.kind not in ("integer", "number", "decimal") or (each.derived and each.derived.measure):
            continue
        unit = unit_of(each.unit)
        if unit is None or unit.code == "none":
            continue
        measured = (
            "area"
            if shape == "polygon" and unit.area is not None
            else "length"
            if shape == "linestring" and unit.length is not None
            else None
        )
        found.append(Quantity(each, each.unit, measured))
    return tuple(found)


def sizes(batch: pa.RecordBatch, wanted: Sequence[Quantity], geometry: str, crs: CRS | None) -> Sizes:
    """Count one batch.

    Args:
        batch: pyarrow RecordBatch in the contract's types.
        wanted: the fields.
        geometry: the name of the geometry column (WKB, x before y).
        crs: its CRS; None where shapes are not to be measured.
    """
    out = Sizes()
    for each, values, ratio in _logarithms(batch, wanted, geometry, crs):
        out.values[each.field.name] = _binned(values)
        if ratio is not None:
            out.ratios[each.field.name] = _binned(ratio)
    return out


def decide(
    wanted: Sequence[Quantity], counts: Sizes, before: Mapping[str, Sequence[float]], version: str = ""
) -> tuple[list[Finding], set[str]]:
    """The fields in another unit, and the fields whose single rows are to be looked at.

    Args:
        wanted: the fields.
        counts: over all rows of the delivery.
        before: `Sizes.record` of the last version, empty where there is none.
        version: what the last version is called.
    """
    found: list[Finding] = []
    watched: set[str] = set()
    for each in wanted:
        name, ratios = each.field.name, counts.ratios.get(each.field.name)
        if ratios is not None and ratios.sum() >= _ENOUGH:
            shift = next((every for every in _factors(each) if _share(ratios, every[1], _NEAR) >= _MOST), None)
            if shift is not None:
                found.append(_shifted(each, shift[0], 10.0 ** shift[1], int(ratios.sum()), f"what the geometry measures ({each.measured})"))
                continue
            if _share(ratios, 0.0, _NEAR) >= _TIGHT and any(
                _share(ratios, log, _EXACT) > 0 for _, log in _factors(each) if abs(log) >= _FAR
            ):
                watched.add(name)
        then = before.get(name)
        if then is not None and name in counts.values and counts.values[name].sum() >= _ENOUGH:
            moved = np.array(_quantiles(counts.values[name])) - np.array(then[1:])
            shift = next((every for every in _factors(each) if (np.abs(moved - every[1]) <= _NEAR).all()), None)
            if shift is not None:
                found.append(_shifted(each, shift[0], 10.0 ** shift[1], int(counts.values[name].sum()), f"the values of {version}"))
    return found, watched


def may_stray(wanted: Sequence[Quantity], counts: Sizes) -> bool:
    """Whether one of the rows counted may be in another unit than the others, as far as these rows say."""
    return any(
        _share(ratios, log, _EXACT) > 0
        for each in wanted
        if (ratios := counts.ratios.get(each.field.name)) is not None and ratios.sum()
        for _, log in _factors(each)
        if abs(log) >= _FAR
    )


def faults(batch: pa.RecordBatch, wanted: Sequence[Quantity], watched: set[str], geometry: str, crs: CRS | None) -> list[RowFaults]:
    """Rows of a batch whose value is in another unit, in fields whose other rows agree with the geometry."""
    out = []
    for each, values, ratio in _logarithms(batch, [each for each in wanted if each.field.name in watched], geometry, crs):
        if ratio is None:
            continue
        reads = np.full(len(ratio), "", dtype=object)
        for reading, log in _factors(each):
            if abs(log) >= _FAR:
                with np.errstate(invalid="ignore"):
                    reads[np.abs(ratio - log) <= _EXACT] = reading
        rows = np.flatnonzero(reads != "")
        if len(rows):
            observed = [
                f"{10.0 ** values[row]:.6g} where the geometry measures {10.0 ** (values[row] - ratio[row]):.6g} {each.unit}: {reads[row]}"
                for row in rows.tolist()
            ]
            name = each.field.name
            out.append(catalogue.ROW_UNIT.faults(name, rows, pa.array(observed, pa.string()), name=name, unit=each.unit))
    return out


def _logarithms(
    batch: pa.RecordBatch, wanted: Sequence[Quantity], geometry: str, crs: CRS | None
) -> list[tuple[Quantity, Logarithms, Logarithms | None]]:
    """Per field the logarithm of each row's value, and of value over measure (None where nothing is measured); NaN where there is none."""
    out: list[tuple[Quantity, Logarithms, Logarithms | None]] = []
    measures: dict[str, npt.NDArray[np.float64]] = {}
    for each in wanted:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log10(np.abs(_numbers(batch.column(each.field.name))))
            ratio = None
            if each.measured is not None and crs is not None:
                if each.measured not in measures:
                    measures[each.measured] = _measures(batch.column(geometry), each.measured, crs)
                ratio = values - np.log10(measures[each.measured] / _size(each.unit, each.measured))
        out.append((each, values, ratio))
    return out


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    floats = column.cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(floats, float("nan")).to_numpy(zero_copy_only=False), np.float64)


def _measures(wkb: pa.Array, what: str, crs: CRS) -> npt.NDArray[np.float64]:
    """Square metres or metres of each shape; of shapes in degrees with the radii of the ellipsoid at their middle latitude."""
    area, length = kernel.measures(wkb)
    plane = area if what == "area" else length
    if not horizontal(crs).is_geographic:
        return np.asarray(plane * metres_per_unit(crs) ** (2 if what == "area" else 1))
    if what != "area" or crs.ellipsoid is None:
        return np.full(len(wkb), np.nan)  # a length in degrees depends on its direction
    boxes = kernel.scan(wkb).bounds
    latitude = np.radians((boxes[:, 1] + boxes[:, 3]) / 2)
    major, minor = crs.ellipsoid.semi_major_metre, crs.ellipsoid.semi_minor_metre
    flat = 1 - (minor / major) ** 2
    bend = 1 - flat * np.sin(latitude) ** 2
    return np.asarray(plane * np.radians(1.0) ** 2 * major**2 * (1 - flat) * np.cos(latitude) / bend**2)


def _size(unit: str, measured: str) -> float:
    """Square metres or metres in one of a unit whose numbers are measured."""
    found = unit_of(unit)
    size = None if found is None else found.area if measured == "area" else found.length
    return 1.0 if size is None else size


def _factors(quantity: Quantity) -> list[tuple[str, float]]:
    """What values may be in truth, each with the logarithm of how much larger the numbers then are."""
    unit = unit_of(quantity.unit)
    known = None if unit is None else AREAS if unit.area is not None else LENGTHS if unit.length is not None else None
    if known is None or unit is None:
        return [
            (f"{factor:g} times too large" if factor > 1 else f"{1 / factor:g} times too small", float(np.log10(factor)))
            for factor in (1000.0, 0.001)
        ]
    own = known[unit.code]
    return [(shown(name), float(np.log10(own / size))) for name, size in known.items() if abs(np.log10(own / size)) > 2 * _NEAR]


def _binned(logarithms: npt.NDArray[np.float64]) -> Counts:
    places = (logarithms[np.isfinite(logarithms)] - _LOW) / _BIN
    return np.bincount(np.clip(np.round(places), 0, _BINS).astype(np.int64), minlength=_BINS + 1)


def _share(counts: Counts, at: float, within: float) -> float:
    first, last = (round((at + side - _LOW) / _BIN) for side in (-within, within))
    return float(counts[max(first, 0) : last + 1].sum() / counts.sum())


def _quantiles(counts: Counts) -> list[float]:
    share = np.cumsum(counts) / counts.sum()
    return [round(float(np.argmax(share >= each)) * _BIN + _LOW, 3) for each in _SHARES]


def _shifted(each: Quantity, reads: str, factor: float, rows: int, against: str) -> Finding:
    name = each.field.name
    return catalogue.UNIT.finding(name, count=rows, name=name, unit=each.unit, factor=factor, against=against, reads=reads)
