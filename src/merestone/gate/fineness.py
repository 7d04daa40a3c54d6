"""How fine the coordinates of a delivery are: decimals of ordinates and of features, regular lattices, and vertices for the size of shapes.

Not here: the grid that rows are stored on (`normalise.snap`), how much a contract may promise in a CRS (`contract.lint`).

Clauses: docs/spec/gate.md#precision; `coordinate_precision`, `geometry.max_vertex_loss`. All of it is counts, which are the same in any
order of rows and batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.contract.contract import Contract, Field
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Scan
from merestone.json_value import Json, JsonObject
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.words import percent

JUDGED_ORDINATES = 1_000
"""Precision is judged from this many ordinates up (docs/spec/gate.md#precision)."""
COARSE_SHARE = 0.05
"""So many features may lie on a grid ten times coarser than promised, whatever the last version had."""
_ON_GRID = 0.99
_EXACT = 2.0**53
_AT_ONCE = 8_192  # rows whose vertices are laid out at once: few enough that they stay in the cache, and that memory does not grow
_SAMPLED = 512  # vertices of so many rows that are looked at for a lattice
_COARSER = 10  # steps of the promised grid in one of the coarser
_OCCUPIED = 0.1  # of a lattice's places within its box

Counts = npt.NDArray[np.int64]


@dataclass(slots=True)
class Lattice:
    """The coarsest lattice that holds every vertex seen, in steps of 10^-`decimals`; a vertex that is off that grid leaves none coarser.

    origin: the first vertex. step: along x and along y; 0 while all are equal. low, high: the box of the vertices.
    """

    decimals: int
    origin: tuple[int, int] | None = None
    step: tuple[int, int] = (0, 0)
    low: tuple[int, int] = (0, 0)
    high: tuple[int, int] = (0, 0)

    def see(self, xy: npt.NDArray[np.float64]) -> None:
        """Take in vertices, (n, 2)."""
        xy, scale = xy[np.isfinite(xy).all(axis=1)], 10.0**self.decimals
        whole = np.rint(xy * scale)
        if not len(xy) or np.abs(whole).max() >= _EXACT:
            return
        steps, off = whole.astype(np.int64), (whole / scale != xy).any(axis=0)
        spread = np.gcd.reduce(steps - steps[0], axis=0)
        first = (int(steps[0, 0]), int(steps[0, 1]))
        step = tuple(1 if off[axis] else int(spread[axis]) for axis in (0, 1))
        low, high = steps.min(axis=0).tolist(), steps.max(axis=0).tolist()
        self.add(Lattice(self.decimals, first, (step[0], step[1]), (low[0], low[1]), (high[0], high[1])))

    def add(self, other: Lattice) -> None:
        """Take in what others saw."""
        if other.origin is None:
            return
        if self.origin is None:
            self.origin, self.step, self.low, self.high = other.origin, other.step, other.low, other.high
            return
        self.step = _pair(math.gcd(self.step[axis], other.step[axis], abs(self.origin[axis] - other.origin[axis])) for axis in (0, 1))
        self.low = _pair(min(self.low[axis], other.low[axis]) for axis in (0, 1))
        self.high = _pair(max(self.high[axis], other.high[axis]) for axis in (0, 1))

    def is_regular(self, vertices: int) -> bool:
        """Whether the vertices are the places of a lattice coarser than the grid, and not merely rounded: they fill much of its box."""
        if min(self.step) < _COARSER:
            return False
        places = math.prod((self.high[axis] - self.low[axis]) // self.step[axis] + 1 for axis in (0, 1))
        return vertices >= _OCCUPIED * places


def _pair(values: Iterable[int]) -> tuple[int, int]:
    one, other = values
    return one, other


@dataclass(slots=True)
class Fineness:
    """What is counted of one geometry column.

    vertices, span: of all rows together, span being width and height of the box of each. features: rows with a position. Where the
    delivery is not transformed: decimals, (2, 17) from `geometry.kernel.decimals`; coarse: features all of whose ordinates lie on a grid
    ten times coarser than promised; lattice: of a sample of vertices; both only where decimals are promised.
    """

    vertices: int = 0
    span: float = 0.0
    features: int = 0
    decimals: Counts = field(default_factory=lambda: np.zeros((2, 17), np.int64))
    coarse: int = 0
    lattice: Lattice | None = None

    def add(self, other: Fineness) -> None:
        """Take in the counts of another batch."""
        self.vertices += other.vertices
        self.span += other.span
        self.features += other.features
        self.decimals = self.decimals + other.decimals
        self.coarse += other.coarse
        if self.lattice is None:
            self.lattice = other.lattice
        elif other.lattice is not None:
            self.lattice.add(other.lattice)

    @property
    def is_lattice(self) -> bool:
        """Whether all vertices form a regular lattice, such as the corners of cells."""
        return self.lattice is not None and self.lattice.is_regular(self.vertices)

    def record(self, promised: int | None) -> JsonObject:
        """What a version keeps: the next night is held to it. `promised` is the grid that `coarse` was counted for, None where it was not."""
        kept: JsonObject = {"features": self.features, "vertices": self.vertices, "span": float(f"{self.span:.12g}")}
        if promised is None:
            return kept
        return kept | {"precision": promised, "coarse": self.coarse, "coarse_axes": [round(each, 6) for each in self.coarse_axes(promised)]}

    def coarse_axes(self, promised: int) -> tuple[float, float]:
        """The share of the ordinates along x, and along y, that lie on a grid ten times coarser than promised."""
        totals = np.maximum(self.decimals.sum(axis=1), 1)
        along_x, along_y = (self.decimals[:, :promised].sum(axis=1) / totals).tolist()
        return along_x, along_y


def promised_decimals(contract: Contract, column: Field | None) -> int:
    """The decimals that the contract promises of its geometry, or of a second one."""
    return contract.coordinate_precision if column is None or column.coordinate_precision is None else column.coordinate_precision


def fineness(wkb: pa.Array, scan: Scan, promised: int | None) -> Fineness:
    """Count one batch.

    Args:
        wkb: the geometries as delivered.
        scan: what lies in them.
        promised: the decimals that are promised; None where the delivery is transformed: its own decimals are then not judged.
    """
    placed = scan.placed
    boxes = scan.bounds if placed.all() else scan.bounds[placed]
    wide = (boxes[:, 2:] - boxes[:, :2]).ravel()
    finite = np.isfinite(wide)
    out = Fineness(int(scan.vertices.sum()), float((wide if finite.all() else wide[finite]).sum()), int(np.count_nonzero(placed)))
    if promised is None:
        return out
    out.decimals = kernel.decimals(wkb)
    if promised < 1:
        return out
    out.lattice = Lattice(promised)
    for start in range(0, len(wkb), _AT_ONCE):
        xy, sizes = kernel.coordinates(wkb[start : start + _AT_ONCE]), scan.vertices[start : start + _AT_ONCE]
        out.lattice.see(xy[:: len(xy) // _SAMPLED + 1])
        out.coarse += int(coarse_features(xy, sizes, promised - 1).sum())
    return out


def coarse_features(xy: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64], decimals: int) -> npt.NDArray[np.bool_]:
    """Which features lie on the grid of 10^-decimals with all of their ordinates, as they are stored on the next finer one.

    A copy without the last digits of a computation is then as fine as what it is a copy of.

    Args:
        xy: (m, 2) the vertices of all features, one after the other.
        sizes: (n,) how many of them each feature has; features without any are left out of the answer.
        decimals: of the grid.
    """
    sizes = sizes[sizes > 0]
    if len(sizes) == len(xy):  # points
        return _vertices_on_grid(xy, decimals)
    coarse = _vertices_on_grid(xy[np.cumsum(sizes) - sizes], decimals)
    if coarse.any():  # of features off the grid, most show it at their first vertex
        rest = xy[np.repeat(coarse, sizes)]
        starts = np.cumsum(sizes[coarse]) - sizes[coarse]
        coarse[coarse] = np.logical_and.reduceat(_vertices_on_grid(rest, decimals), starts)
    return coarse


def _vertices_on_grid(xy: npt.NDArray[np.float64], decimals: int) -> npt.NDArray[np.bool_]:
    """Which vertices (n, 2) lie on the grid with both ordinates."""
    on = _on_grid(xy, decimals)
    return np.asarray(on[:, 0] & on[:, 1])


def _on_grid(values: npt.NDArray[np.float64], decimals: int) -> npt.NDArray[np.bool_]:
    """Which ordinates lie on the grid of 10^-decimals, once they are rounded to the next finer one, as they are stored."""
    scale = 10.0 ** (decimals + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(values * scale)
        # Products of whole numbers below 2^53 are exact, so this is divisibility by ten, and far quicker than a remainder.
        on = np.asarray(np.rint(steps * 0.1) * 10 == steps)
        if np.abs(steps).max(initial=0.0) < _EXACT:
            return on
        return np.where(np.abs(steps) < _EXACT, on, np.fmod(steps, 10) == 0)


def axis_precision(histogram: Counts) -> tuple[int, int]:
    """Along x and along y, the least d for which 99 % of the ordinates lie on the 10^-d grid.

    Args:
        histogram: (2, 17) from `geometry.kernel.decimals`: per axis, how many ordinates need exactly d decimals (16: more than 15).

    Returns:
        0 to 16 each. 16 means finer than any contract can promise: ordinates off every grid. 0 where there are none.
    """
    along_x, along_y = (int(np.argmax(np.cumsum(axis) / max(int(axis.sum()), 1) >= _ON_GRID)) for axis in histogram)
    return along_x, along_y


def measured_precision(histogram: Counts) -> int:
    """The decimals that both axes have: `axis_precision` of the coarser one. What no row may lose is that of the finer one."""
    return min(axis_precision(histogram))


def precision(
    contract: Contract, counts: Fineness, column: Field | None = None, last: Mapping[str, Json] | None = None, version: str = ""
) -> Finding | None:
    """Whether the delivered coordinates are as fine as the contract promises (delivered CRS equal to the contract's only).

    Coordinates finer than promised are not a breach: they are rounded. First all ordinates together, then axis by axis and feature by
    feature, since coarse ones hide behind fine ones. Below 1,000 ordinates nothing is decided; a warning says so only where they look coarser.

    Args:
        contract: the promise.
        counts: of the column.
        column: a second geometry, which has its own promise.
        last: what the last version kept of the column (`Fineness.record`).
        version: what that is called.
    """
    name = contract.geometry_name if column is None else column.name
    promised = promised_decimals(contract, column)
    ordinates = int(counts.decimals.sum())
    measured = max(axis_precision(counts.decimals))
    if ordinates == 0:
        return None
    if measured >= promised:
        found = [each(name, promised, counts, last or {}, version) for each in (_axis_by_axis, _feature_by_feature)]
        return next((each for each in found if each and each.severity == "error"), found[0] or found[1])
    if ordinates < JUDGED_ORDINATES:
        return catalogue.PRECISION.finding(
            name,
            count=ordinates,
            case="undecided",
            severity="warning",
            promised=promised,
            ordinates=ordinates,
            measured=measured,
            enough=JUDGED_ORDINATES,
        )
    return catalogue.PRECISION.finding(name, count=ordinates, promised=promised, ordinates=ordinates, measured=measured)


def _axis_by_axis(name: str, promised: int, counts: Fineness, last: Mapping[str, Json], version: str) -> Finding | None:
    """An axis that is coarser than promised while the other is not.

    Six significant digits leave three decimals of a longitude and four of a latitude; a row of poles has one northing. Only the last version
    shows rounding from a survey that always was so.
    """
    ordinates = int(counts.decimals.sum())
    axes = axis_precision(counts.decimals)
    if ordinates < JUDGED_ORDINATES or min(axes) >= promised or counts.is_lattice:
        return None
    axis = axes.index(min(axes))
    known = last.get("precision") == promised and "coarse_axes" in last and last.get("features", 0) > 0
    before = float(last["coarse_axes"][axis]) if known else 0.0
    if known and counts.coarse_axes(promised)[axis] <= 2 * before + COARSE_SHARE:
        return None
    return catalogue.PRECISION.finding(
        name,
        count=int(counts.decimals[axis].sum()),
        case="axis_lost" if known else "axis",
        severity="error" if known else "warning",
        promised=promised,
        ordinates=int(counts.decimals[axis].sum()),
        axis="xy"[axis],
        measured=axes[axis],
        before=f"in {version} {percent(before)} of them had fewer than promised" if known else "no version before to compare with",
    )


def _feature_by_feature(name: str, promised: int, counts: Fineness, last: Mapping[str, Json], version: str) -> Finding | None:
    """More coarse features than a survey has by chance. Only the last version shows rounding from a survey that always was so."""
    if promised < 1 or not counts.features or counts.is_lattice:
        return None
    share = counts.coarse / counts.features
    known = last.get("precision") == promised and last.get("features", 0) > 0
    before = last["coarse"] / last["features"] if known else 0.0
    if share <= max(COARSE_SHARE, 2 * before + COARSE_SHARE if known else 0.0):
        return None
    enough = int(counts.decimals.sum()) >= JUDGED_ORDINATES
    if not known and not enough:
        return None  # a few points lie on a coarse grid by chance
    return catalogue.PRECISION.finding(
        name,
        count=counts.coarse,
        case="features" if last else "features_first",
        severity="error" if known and enough else "warning",
        promised=promised,
        coarser=promised - 1,
        share=percent(share),
        rows=counts.features,
        before=f"{percent(before)} in {version}" if known else "no version before to compare with",
    )


def vertex_loss(contract: Contract, counts: Fineness, last: Mapping[str, Json], version: str, *, same_crs: bool) -> Finding | None:
    """`geometry.max_vertex_loss`: shapes keep their vertices. Simplified shapes have the size that they had, and fewer vertices.

    Both must be lost: vertices altogether, and vertices for the size of shapes. So neither features that go nor long straight ones that come
    are taken for it.

    Args:
        contract: the promise.
        counts: of the geometry.
        last: what the last version kept of it (`Fineness.record`).
        version: what that is called.
        same_crs: whether both were delivered in one CRS: then sizes are compared, otherwise features.
    """
    vertices = last.get("vertices", 0)
    if not vertices or not counts.vertices or not counts.features:
        return None
    sized = same_crs and counts.span > 0 and last["span"] > 0
    now, then = (counts.span, last["span"]) if sized else (counts.features, last["features"])
    loss = min(1 - counts.vertices / vertices, 1 - counts.vertices / now * then / vertices)
    if loss <= contract.max_vertex_loss:
        return None
    judged = 2 * vertices >= JUDGED_ORDINATES
    return catalogue.VERTEX_LOSS.finding(
        contract.geometry_name,
        count=counts.features,
        severity="error" if judged else "warning",
        most=percent(contract.max_vertex_loss),
        lost=percent(loss),
        vertices=counts.vertices,
        before=vertices,
        version=version,
    )
