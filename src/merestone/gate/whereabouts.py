"""Where the positions of a delivery lie: axis order, units and CRS, decided from the coordinates, with the evidence.

Not here: what a file says about its CRS (`reference.identity`), the `extent` clause and single ordinates (`feature`).

Clause: docs/spec/gate.md#axis-order. Every row is held, as given and with x and y exchanged, against boxes in which positions are
expected: the contract's extent, the last version's, the CRS's area of use. A row that is outside as given and inside exchanged has its axes
swapped; one that is inside as given and outside exchanged has not; any other says nothing. Where no box decides, the bulk of the delivery
can convict a few rows, but never itself. All of it is counts; neither the order of rows nor of batches has a say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.geometry.kernel_values import placed
from merestone.json_value import JsonObject
from merestone.results.finding import Finding, RowFaults
from merestone.rules import catalogue

Box = tuple[float, float, float, float]  # x, y minimum, then maximum
Boxes = npt.NDArray[np.float64]  # (n, 4), each as Box
Mask = npt.NDArray[np.bool_]

_ALL = 0.95
"""A verdict on the whole delivery needs this share of the rows that say something."""
_MANY = 0.2
"""Rows below this share of all are single faults."""
_CELLS = 512
_TRIM = 0.05
_BULK_ROWS = 40
"""From this many positions up, the middle of them is a bulk that can convict others."""
_NO_DEGREES = 360.0


@dataclass(frozen=True, slots=True)
class Reference:
    """A box in which positions are expected, x before y, in the delivered CRS; across the antimeridian its west is east of its east.

    `margin`: a row counts as outside only when it is this much of the box's size away; 0 where nothing at all may lie outside. `version`: the one
    whose extent it is, "" for a box that no delivery made.
    """

    name: str
    box: Box
    margin: float = 0.0
    version: str = ""

    @property
    def grown(self) -> Box:
        """The box with its margin."""
        west, south, east, north = self.box
        across = west > east
        dx, dy = self.margin * (east - west + 360.0 * across), self.margin * (north - south)
        if across and west - dx <= east + dx:
            return -_NO_DEGREES, south - dy, _NO_DEGREES, north + dy
        return west - dx, south - dy, east + dx, north + dy


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of one geometry column before a row is read.

    crs: what its CRS is called. degrees: whether its unit is the degree. references: strongest first. area: the CRS's area of use in its own
    units, and in degrees. exchanged: y stands before x by contract. agreed: what the contract's CRS is called and its area of use, where that
    is another CRS. agreed_here: that area in the delivered CRS, None where it has no place there.
    stated: a person has stated an extent. pairs: boxes in metres where positions are known to lie, each with the same in degrees: what lies in
    the first and not in the second is in metres.
    """

    column: str
    crs: str
    degrees: bool
    references: tuple[Reference, ...] = ()
    area: Box | None = None
    area_degrees: Box | None = None
    exchanged: bool = False
    agreed: tuple[str, Box] | None = None
    agreed_here: Box | None = None
    stated: bool = False
    pairs: tuple[tuple[Box, Box], ...] = ()

    def in_order(self, bounds: Boxes) -> Boxes:
        """Boxes of rows as delivered, brought into x, y."""
        return _exchanged(bounds) if self.exchanged else bounds

    def cells(self, boxes: Boxes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """Column and row of the middle of each box on a table that has the same range on both axes; None where no range is known."""
        if self.degrees:
            low, high = -180.0, 180.0
        elif self.area is not None:
            low, high = min(self.area[:2]), max(self.area[2:])
        else:
            return None
        middle = ((boxes[:, :2] + boxes[:, 2:]) / 2 - low) / (high - low) * _CELLS
        return _cell(middle[:, 0]), _cell(middle[:, 1])


@dataclass(frozen=True, slots=True)
class Bulk:
    """The middle of a delivery with a margin, as a range of cells on each axis, both ends included; it does not touch its mirror image."""

    columns: tuple[int, int]
    rows: tuple[int, int]

    def strays(self, column: npt.NDArray[np.int64], row: npt.NDArray[np.int64]) -> Mask:
        """Cells that lie in the mirror image of the bulk."""
        (left, right), (bottom, top) = self.columns, self.rows
        return np.asarray((row >= left) & (row <= right) & (column >= bottom) & (column <= top))


@dataclass(slots=True)
class Census:
    """Counts over rows with a position.

    held: per reference, rows inside as given and inside exchanged. given, swapped: rows whose order the references decide. alien: rows in
    another unit, and alien_cells: how many of them in each cell. far: rows that are far from the area of use.
    mislabelled: rows that lie in the agreed CRS's area of use as they are written, and in neither area as they are labelled.
    table: rows per cell, (_CELLS, _CELLS), columns first. samples: the positions with the smallest and the largest x.
    """

    positions: int = 0
    held: Any = 0
    given: int = 0
    swapped: int = 0
    alien: int = 0
    alien_cells: dict[int, int] = field(default_factory=dict)
    far: int = 0
    mislabelled: int = 0
    extent: npt.NDArray[np.float64] = field(default_factory=lambda: np.array([np.inf, np.inf, -np.inf, -np.inf]))
    table: Any = 0
    samples: tuple[tuple[float, float], ...] = ()

    def add(self, other: Census) -> None:
        """Take in the counts of another batch, which are not used again."""
        for name in ("positions", "held", "given", "swapped", "alien", "far", "mislabelled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if not isinstance(self.table, np.ndarray):
            self.table = other.table  # two megabytes, handed over rather than copied
        else:
            self.table += other.table
        for cell, count in other.alien_cells.items():
            self.alien_cells[cell] = self.alien_cells.get(cell, 0) + count
        seen = sorted({*self.samples, *other.samples})
        self.samples = tuple(dict.fromkeys((*seen[:1], *seen[-1:])))
        self.extent = np.concatenate([np.minimum(self.extent[:2], other.extent[:2]), np.maximum(self.extent[2:], other.extent[2:])])


def census(ground: Ground, bounds: Boxes) -> Census:
    """Count one batch: `bounds` of its rows as delivered, NaN without a position."""
    boxes = np.asfortranarray(ground.in_order(bounds[placed(bounds)]))  # it is asked column by column
    if not len(boxes):
        return Census()
    held = np.array([[_inside(boxes, each.box).sum(), _inside(boxes, _turned(each.box)).sum()] for each in ground.references], np.int64)
    given, swapped = _votes(ground, boxes)
    cells, alien = ground.cells(boxes), _alien(ground, boxes, given)
    table = 0 if cells is None else np.bincount(cells[0] * _CELLS + cells[1], minlength=_CELLS**2).reshape(_CELLS, _CELLS)
    extent = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
    return Census(
        len(boxes),
        held,
        int(given.sum()),
        int(swapped.sum()),
        int(alien.sum()),
        _counted(cells, alien),
        int(_far(ground, boxes).sum()),
        int(_mislabelled(ground, boxes).sum()),
        extent,
        table,
        _samples(boxes),
    )


def _counted(cells: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None, rows: Mask) -> dict[int, int]:
    if cells is None or not rows.any():
        return {}
    found, counts = np.unique((cells[0] * _CELLS + cells[1])[rows], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _samples(boxes: Boxes) -> tuple[tuple[float, float], ...]:
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    left, right = x.min(), x.max()
    return tuple(dict.fromkeys([(float(left), float(y[x == left].min())), (float(right), float(y[x == right].max()))]))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the positions say of the delivery as a whole.

    strays: whether rows are at fault by themselves; `faults` finds them. follows: rules that cannot hold where this verdict stands,
    so that their breaches are known. near: cells whose rows are in the unit after all, since others lie beside them. "stated": the positions
    fit both ways, and a person has stated in which box they lie.
    """

    decision: Literal["ok", "stated", "swapped", "units", "wrong CRS", "undecidable"]
    evidence: tuple[str, ...] = ()
    finding: Finding | None = None
    bulk: Bulk | None = None
    strays: bool = False
    near: frozenset[int] = frozenset()

    @property
    def follows(self) -> frozenset[str]:
        """See above."""
        if self.finding is None or self.finding.severity == "warning":
            return frozenset()
        swapped = {"ordinate", "extent"}
        return frozenset(swapped if self.decision == "swapped" else {*swapped, "collapse", "validity", "antimeridian", "precision"})

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {"decision": self.decision, "evidence": list(self.evidence)}


def decide(ground: Ground, counts: Census) -> Verdict:
    """The verdict on a delivery, from the counts over all of its rows."""
    if not counts.positions:
        return Verdict("undecidable", ("no row has a position",))
    near = _near(ground, counts)
    if near:
        counts = replace(counts, alien=counts.alien - sum(counts.alien_cells[cell] for cell in near))
    return replace(_decide(ground, counts), near=near)


def _decide(ground: Ground, counts: Census) -> Verdict:
    total, evidence = counts.positions, _evidence(ground, counts)
    if counts.alien >= _ALL * total:
        return Verdict("units", evidence, _other_unit(ground, counts, evidence))
    decided, as_a_whole = counts.given + counts.swapped, _as_a_whole(counts)
    if (counts.swapped >= _ALL * decided and counts.swapped > _MANY * total) or (not decided and as_a_whole == "swapped"):
        alone = _alone(ground, counts)
        return Verdict(
            "swapped",
            evidence,
            catalogue.AXIS_ORDER.finding(
                ground.column,
                count=counts.swapped or total,
                case="last" if alone else "",
                order=_order(ground),
                crs=ground.crs,
                evidence="; ".join(evidence),
                version=alone,
            ),
        )
    if counts.far >= _ALL * total and counts.far > counts.alien and not counts.given:
        return Verdict(
            "wrong CRS",
            evidence,
            catalogue.CRS_POSITION.finding(
                ground.column,
                count=counts.far,
                total=total,
                crs=ground.crs,
                area=_words(ground.area) if ground.area is not None else "",
                extent=_words(counts.extent),
                fit=_fit(ground, counts),
            ),
        )
    if ground.agreed is not None and counts.mislabelled >= _ALL * total and not counts.given:
        return Verdict(
            "wrong CRS",
            evidence,
            catalogue.CRS_POSITION.finding(
                ground.column, count=counts.mislabelled, case="agreed", total=total, crs=ground.crs, agreed=ground.agreed[0]
            ),
        )
    bulk = _bulk(counts)
    strays = counts.swapped > 0 or counts.alien > 0 or (bulk is not None and _astray(bulk, counts))
    if counts.given or as_a_whole == "ok":
        return Verdict("ok", evidence, None, bulk, strays)
    if ground.stated:
        return Verdict("stated", (*evidence, "the order is stated by the contract's extent, not measured"), None, bulk, strays)
    return Verdict("undecidable", evidence, _undecided(ground, counts, evidence), bulk, strays)


def _alone(ground: Ground, counts: Census) -> str:
    """The version whose extent alone says that axes are swapped, "" where another box says so too: that version may be the swapped one."""
    held = np.asarray(counts.held).reshape(-1, 2).tolist()
    said = [each.version for each, (here, there) in zip(ground.references, held, strict=True) if there > here]
    return said[0] if len(said) == 1 else ""


def _as_a_whole(counts: Census) -> Literal["ok", "swapped"] | None:
    """What the strongest box that holds all rows one way and none the other says, where no row by itself is far enough to say it."""
    for here, there in np.asarray(counts.held).reshape(-1, 2).tolist():
        if min(here, there) == 0 and max(here, there) >= _ALL * counts.positions:
            return "ok" if here else "swapped"
    return None


def _undecided(ground: Ground, counts: Census, evidence: tuple[str, ...]) -> Finding:
    ways = " or ".join(
        ", ".join(f"({one:.7g} {other:.7g})" for one, other in (each if order else each[::-1] for each in counts.samples))
        for order in (True, False)
    )
    return catalogue.AXIS_ORDER.finding(
        ground.column,
        count=counts.positions,
        severity="warning",
        case="undecidable",
        crs=ground.crs,
        evidence="; ".join(evidence),
        ways=ways,
    )


def _near(ground: Ground, counts: Census) -> frozenset[int]:
    """Cells in which numbers read as degrees and are in metres: others, which cannot be degrees, lie in them or beside them."""
    if ground.degrees or not isinstance(counts.table, np.ndarray):
        return frozenset()
    found = []
    for cell in counts.alien_cells:
        column, row = divmod(cell, _CELLS)
        around = counts.table[max(column - 1, 0) : column + 2, max(row - 1, 0) : row + 2].sum()
        beside = (divmod(each, _CELLS) for each in counts.alien_cells)
        alien = sum(counts.alien_cells[x * _CELLS + y] for x, y in beside if max(abs(x - column), abs(y - row)) <= 1)
        if around - alien > (1 - _ALL) * around:
            found.append(cell)
    return frozenset(found)


def faults(ground: Ground, bounds: Boxes, bulk: Bulk | None, near: frozenset[int] = frozenset()) -> list[RowFaults]:
    """The rows of one batch that are at fault by themselves: axes swapped, or another unit; `bulk` and `near` are of the verdict."""
    known = placed(bounds)
    rows, boxes = np.flatnonzero(known), ground.in_order(bounds[known])
    given, swapped = _votes(ground, boxes)
    alien = _alien(ground, boxes, given)
    cells = ground.cells(boxes)
    if near and cells is not None:
        alien &= ~np.isin(cells[0] * _CELLS + cells[1], list(near))
    if bulk is not None and cells is not None:
        swapped |= bulk.strays(*cells) & ~given
    swapped &= ~alien
    out = []
    if swapped.any():
        places = _places(boxes[swapped], "x and y are swapped")
        out.append(catalogue.AXIS_ORDER.faults(ground.column, rows[swapped], places, order=_order(ground), crs=ground.crs))
    if alien.any():
        what = "metres or feet, not degrees" if ground.degrees else "degrees"
        unit, places = "degrees" if ground.degrees else "the unit", _places(boxes[alien], f"reads as {what}")
        out.append(catalogue.ROW_UNITS.faults(ground.column, rows[alien], places, unit=unit, crs=ground.crs))
    return out


# --- what a row says -------------------------------------------------------------------------------------------------------------------


def _votes(ground: Ground, boxes: Boxes) -> tuple[Mask, Mask]:
    """Rows that stand as they should, and rows whose axes are swapped, by the strongest reference that separates the two."""
    given, swapped = np.zeros(len(boxes), np.bool_), np.zeros(len(boxes), np.bool_)
    for each in ground.references:
        open_ = ~(given | swapped)
        here, there = _inside(boxes, each.box), _inside(boxes, _turned(each.box))
        given |= open_ & here & ~_inside(boxes, _turned(each.grown))
        swapped |= open_ & there & ~_inside(boxes, each.grown)
    return given, swapped


def _alien(ground: Ground, boxes: Boxes, given: Mask) -> Mask:
    """Rows in another unit: numbers that no degrees can be, or numbers in metres that read as degrees within the area of use."""
    if ground.degrees:
        return np.asarray(np.abs(boxes).max(axis=1) > _NO_DEGREES)
    if ground.area_degrees is None:
        return np.zeros(len(boxes), np.bool_)
    reads = _either_way(boxes, ground.area_degrees) & ~given
    for here, in_degrees in ground.pairs:
        reads &= ~(_inside(boxes, here) & ~_either_way(boxes, in_degrees))
    return np.asarray(reads & (boxes != 0).any(axis=1)) if reads.any() else reads


def _far(ground: Ground, boxes: Boxes) -> Mask:
    """Rows that are farther from the area of use than that is large."""
    if ground.area is None:
        return np.zeros(len(boxes), np.bool_)
    return ~_inside(boxes, Reference("", ground.area, 1.0).grown)


def _mislabelled(ground: Ground, boxes: Boxes) -> Mask:
    """Rows whose numbers make sense in the agreed CRS and, as they are labelled, neither where that is used nor where their own CRS is."""
    if ground.area is None or ground.agreed is None:
        return np.zeros(len(boxes), np.bool_)
    there = np.zeros(len(boxes), np.bool_) if ground.agreed_here is None else _inside(boxes, ground.agreed_here)
    return _inside(boxes, ground.agreed[1]) & ~_inside(boxes, ground.area) & ~there


def _either_way(boxes: Boxes, box: Box) -> Mask:
    return _inside(boxes, box) | _inside(boxes, _turned(box))


def _inside(boxes: Boxes, box: Box) -> Mask:
    return _between(boxes[:, 0], boxes[:, 2], box[0], box[2]) & _between(boxes[:, 1], boxes[:, 3], box[1], box[3])


def _between(least: npt.NDArray[np.float64], most: npt.NDArray[np.float64], low: float, high: float) -> Mask:
    """Which rows lie between two sides of a box; across the antimeridian they lie on one side of it or on the other."""
    return np.asarray((least >= low) & (most <= high) if low <= high else (least >= low) | (most <= high))


def _turned(box: Box) -> Box:
    """What a box is with x and y exchanged: a row lies in it where it lies in the box once its own axes are exchanged."""
    return box[1], box[0], box[3], box[2]


def _exchanged(boxes: Boxes) -> Boxes:
    return boxes[:, [1, 0, 3, 2]]


# --- the bulk --------------------------------------------------------------------------------------------------------------------------


def _cell(middle: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.clip(middle, 0, _CELLS - 1).astype(np.int64)


def _bulk(counts: Census) -> Bulk | None:
    if counts.positions < _BULK_ROWS or not isinstance(counts.table, np.ndarray):
        return None
    columns, rows = _middle(counts.table.sum(axis=1)), _middle(counts.table.sum(axis=0))
    apart = columns[1] < rows[0] or rows[1] < columns[0]
    return Bulk(columns, rows) if apart else None


def _middle(along: npt.NDArray[np.int64]) -> tuple[int, int]:
    share = np.cumsum(along) / along.sum()
    first, last = int(np.argmax(share > _TRIM)), int(np.argmax(share >= 1 - _TRIM))
    margin = 1 + (last - first + 1) // 4
    return first - margin, last + margin


def _astray(bulk: Bulk, counts: Census) -> bool:
    columns, rows = np.nonzero(counts.table)
    return bool(bulk.strays(columns, rows).any())


# --- words -----------------------------------------------------------------------------------------------------------------------------


def _evidence(ground: Ground, counts: Census) -> tuple[str, ...]:
    if not counts.positions or not ground.references:
        return ("nothing says where positions are expected",)
    return tuple(
        f"{each.name} ({_words(each.box)}) holds {here:,} of {counts.positions:,} rows as given, {there:,} with x and y exchanged"
        for each, (here, there) in zip(ground.references, counts.held.tolist(), strict=True)
    )


def _other_unit(ground: Ground, counts: Census, evidence: tuple[str, ...]) -> Finding:
    extent = _words(counts.extent)
    if ground.degrees:
        return catalogue.UNITS.finding(ground.column, count=counts.alien, crs=ground.crs, extent=extent, fit=_fit(ground, counts))
    return catalogue.UNITS.finding(ground.column, count=counts.alien, case="degrees", crs=ground.crs, extent=extent, evidence=evidence[-1])


def _fit(ground: Ground, counts: Census) -> str:
    """Whether the coordinates would lie well in the agreed CRS."""
    if ground.agreed is None or not _inside(counts.extent.reshape(1, 4), ground.agreed[1])[0]:
        return ""
    return f"; they would lie in the area of use of {ground.agreed[0]}"


def _order(ground: Ground) -> str:
    return "y before x" if ground.exchanged else "x before y"


def _words(box: Iterable[float]) -> str:
    return " ".join(f"{each:.7g}" for each in box)


def _places(boxes: Boxes, what: str) -> pa.Array:
    """Words for each row: what is wrong, and where it stands."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    return pa.array([f"{what} at {x:.10g}, {y:.10g}" for x, y in middle.tolist()], pa.string())
