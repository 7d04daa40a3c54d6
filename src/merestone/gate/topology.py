"""The topology that a contract promises: which rule set judges a column of geometries, and its findings in words.

Not here: the rules (`topology_planar`, `topology_network`, `topology_solid`), which rows a change makes worth judging (`line.processing`).

A topology finding is one of the delivery, never of a row: two features are at odds, and which of them is wrong is unknown. What could
not be judged is an error of rule `topology`; silence always means that every feature was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from merestone.contract.contract import Contract
from merestone.gate.findings import NAMED
from merestone.gate.topology_edges import box_tree, joined
from merestone.gate.topology_network import check_network
from merestone.gate.topology_open import stays_open
from merestone.gate.topology_pairs import Pairs
from merestone.gate.topology_planar import boundary_changes, check_planar
from merestone.gate.topology_solid import check_solids
from merestone.gate.topology_words import PlaceWords, areas, lengths
from merestone.geometry import kernel
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules.catalogue import rule_of
from merestone.words import called, listed

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Name = Callable[[Ints], Sequence[tuple[str | None, int | None]]]
"""The id and the row (from 1) of features, by their place in the column that was judged."""

_KINDS = {"planar": (3, 6, 7), "network": (2, 5, 7), "3d_solid": (3, 6, 7, 15, 16)}
_NEEDS = {"planar": "polygons", "network": "lines", "3d_solid": "polygons or surfaces with Z"}


@dataclass(frozen=True, slots=True)
class Rules:
    """A contract's topology in the units of its CRS.

    `near` is within which distance a loose end of a network should have met another line: `dangle_length`, or the nominal resolution.
    `metres` is the length of a unit; in a geographic CRS that of a degree of latitude.
    """

    rule_set: str
    precision: int
    z_precision: int
    field: str
    gap_width: float | None
    dangle_length: float | None
    tolerance: float
    near: float
    metres: float
    geographic: bool

    @property
    def reach(self) -> float:
        """How far from a feature another can be and still break a rule with it, in units of the CRS."""
        if self.rule_set == "network":
            return max(self.near, self.tolerance)
        return self.gap_width or 0.0


@dataclass(frozen=True, slots=True)
class Breach:
    """Features that break one rule: places in the column judged (`other` -1: none), positions in the CRS, and what is seen of each in words."""

    rule: str
    one: Ints
    other: Ints
    x: Floats
    y: Floats
    seen: PlaceWords

    def __len__(self) -> int:
        return len(self.one)

    def some(self, at: Ints) -> Breach:
        """Some of them."""
        return Breach(self.rule, self.one[at], self.other[at], self.x[at], self.y[at], self.seen.some(at))


def rules_of(contract: Contract, *, metres: float, geographic: bool) -> Rules | None:
    """The topology that a contract promises, None where it promises none.

    Args:
        contract: the agreement.
        metres: metres in a unit of its CRS, 111,320 in degrees.
        geographic: whether the unit is a degree.
    """
    if contract.topology_rule_set == "none":
        return None
    figures = dict(contract.topology_parameters)
    precision, z = contract.coordinate_precision, contract.geometry.z_precision
    dangle = figures.get("dangle_length")
    near = dangle if dangle is not None else float(contract.contract_version.resolution_m) / metres
    return Rules(
        contract.topology_rule_set,
        precision,
        precision if z is None else z,
        contract.geometry_name,
        figures.get("gap_width"),
        dangle,
        figures.get("tolerance", 0.0),
        near,
        metres,
        geographic,
    )


def judge(wkb: pa.Array, rules: Rules, *, absent: Floats | None = None) -> list[Breach]:
    """Judge all features of a column.

    Args:
        wkb: pyarrow binary array in stored form (canonical, on the contract's grid); null and empty rows have no part in it.
        rules: the contract's.
        absent: (k, 4) boxes of features that belong here and were refused for a fault of their own: ground there is not a gap.

    Returns:
        The breaches, in the order of the rules; empty ones left out.
    """
    scan = kernel.scan(wkb)
    unfit = np.flatnonzero(~np.isin(scan.kind, (0, *_KINDS[rules.rule_set])) & ~scan.empty)
    centre = (scan.bounds[:, :2] + scan.bounds[:, 2:]) / 2
    found = [_unjudged(unfit, centre, rules)]
    try:
        if rules.rule_set == "planar":
            found += _planar(wkb, rules, absent)
        elif rules.rule_set == "network":
            found += _network(wkb, rules)
        else:
            found += _solid(wkb, rules, centre)
    except shapely.errors.GEOSException as fault:
        words = PlaceWords((f"could not be judged: {_plain_text(str(fault))}",))
        return [Breach("topology", np.array([-1]), np.array([-1]), np.array([np.nan]), np.array([np.nan]), words)]
    return [each for each in found if len(each)]


def judge_change(
    arriving: pa.Array, leaving: pa.Array, carried: Callable[[Floats | None], pa.Array], rules: Rules, *, absent: Floats | None = None
) -> list[Breach]:
    """Judge what a change makes of a dataset that broke none of the rules: the same breaches as `judge` finds over all that is there then.

    Looked at are the features that arrive and those that stay near them or near the ones that leave: within their boxes, grown by twice the
    rules' reach. Where the outline of what is covered changes, and nothing near by proves that no ground is enclosed, everything is looked at.

    Args:
        arriving: pyarrow binary array of geometries that are new or come in place of others, in stored form.
        leaving: those that are gone.
        carried: gives those that stay and meet one of some boxes, float64 (k, 4), or all of them for None; called again where near is not enough.
        rules: the contract's.
        absent: as for `judge`.

    Returns:
        Breaches as `judge` gives them; places are those of `arriving`, and after them of what `carried` gave last.
    """
    changes = boundary_changes(leaving, arriving, rules.precision) if rules.rule_set == "planar" else joined([])
    boxes = np.concatenate([kernel.scan(each).bounds for each in (arriving, leaving)])
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    grown = np.array([-1.0, -1.0, 1.0, 1.0]) * (rules.reach + 10.0**-rules.precision)
    beside = arriving.slice(0, 0) if rules.rule_set == "3d_solid" else carried(boxes + 2 * grown)
    tree = box_tree(boxes + grown)
    found = [_near_change(each, tree, len(arriving)) for each in judge(pa.concat_arrays([arriving, beside]), rules, absent=absent)]
    rest = [each for each in found if len(each) and each.rule != "gap"]
    if len(changes):
        # A gap found near by may be filled by a feature that was not looked at; overlaps say nothing about the ground between them.
        doubtful = any(len(each) and each.rule in ("gap", "overlap", "topology") for each in found)
        if doubtful or not stays_open(leaving, arriving, beside, changes, boxes, rules.precision, rules.gap_width):
            return judge(pa.concat_arrays([arriving, carried(None)]), rules, absent=absent)
    return rest


def _near_change(breach: Breach, tree: shapely.STRtree, arriving: int) -> Breach:
    """The breaches that a change can have made; others are those of features whose neighbours were not looked at."""
    ours = (breach.one < arriving) | ((breach.other >= 0) & (breach.other < arriving))
    ours[tree.query(shapely.points(breach.x, breach.y))[0]] = True
    return breach.some(np.flatnonzero(ours))


def findings(breaches: Sequence[Breach], rules: Rules, name: Name) -> list[Finding]:
    """The breaches in words: one finding a rule, with the first features and their positions."""
    return [_finding(each, rules, name) for each in breaches if len(each)]


def in_words(breach: Breach, name: Name) -> list[str]:
    """What is seen at each place of a breach, in words."""
    ones, others = _named(breach.one, name), _named(breach.other, name)
    return [
        breach.seen.text(n, called(one[0] or None, one[1]), called(other[0] or None, other[1]))
        for n, (one, other) in enumerate(zip(ones, others, strict=True))
    ]


def _finding(breach: Breach, rules: Rules, name: Name) -> Finding:
    shown = min(len(breach), SAMPLES)
    first = breach.some(np.arange(shown))
    ones, seen = _named(first.one, name), in_words(first, name)
    samples = [
        Sample(one[0], one[1], _number(breach.x[n]), _number(breach.y[n]), said)
        for n, (one, said) in enumerate(zip(ones, seen, strict=True))
        if breach.one[n] >= 0
    ]
    case = "narrow" if breach.rule == "gap" and rules.gap_width is not None else ""
    case = "short" if breach.rule == "dangle" and rules.dangle_length is not None else case
    return rule_of("geometry", breach.rule).finding(
        rules.field,
        count=len(breach),
        features=tuple(samples),
        case=case,
        places=listed(seen[:NAMED], len(breach)),
        rule_set=rules.rule_set,
        kinds=_NEEDS[rules.rule_set],
        width=rules.gap_width,
        near=rules.dangle_length,
    )


def _named(places: Ints, name: Name) -> list[tuple[str | None, int | None]]:
    """The names of places, of which -1 has none."""
    there = np.flatnonzero(places >= 0)
    out: list[tuple[str | None, int | None]] = [("", None)] * len(places)
    for at, one in zip(there.tolist(), name(places[there]), strict=True):
        out[at] = one
    return out


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain_text(text: str) -> str:
    """A text of a library as part of a sentence with places to fill in."""
    return text.replace("{", "{{").replace("}", "}}")


def _unjudged(rows: Ints, centre: Floats, rules: Rules) -> Breach:
    words = PlaceWords((f"{{one}} is not of the {_NEEDS[rules.rule_set]} that {rules.rule_set} topology judges",))
    return Breach("topology", rows, np.full(len(rows), -1), centre[rows, 0], centre[rows, 1], words)


# --- planar ----------------------------------------------------------------------------------------------------------------------------


def _planar(wkb: pa.Array | pa.ChunkedArray, rules: Rules, absent: Floats | None) -> list[Breach]:
    found = check_planar(wkb, rules.precision, gap_width=rules.gap_width, tolerance=rules.tolerance)
    overlaps, gaps, mismatches = (_placed(each, rules) for each in (found.overlaps, found.gaps, found.mismatches))
    if absent is not None and len(absent) and len(gaps):
        here = shapely.points(gaps.x, gaps.y)
        gaps = gaps.some(np.setdiff1d(np.arange(len(gaps)), shapely.STRtree(shapely.box(*absent.T)).query(here)[0]))
    unit = rules.metres / 10.0**rules.precision
    shared, open_ground = (areas(each.size, each.y, unit, geographic=rules.geographic) for each in (overlaps, gaps))
    along = lengths(mismatches.size, mismatches.y, unit, geographic=rules.geographic)
    between = ("{measure} inside of {one}", "{measure} between {one} and {other}")
    return [
        Breach(
            "overlap",
            overlaps.one,
            overlaps.other,
            overlaps.x,
            overlaps.y,
            PlaceWords(("{one} and {other} share {measure}",), measures=shared),
        ),
        Breach("gap", gaps.one, gaps.other, gaps.x, gaps.y, PlaceWords(between, (gaps.other >= 0).astype(np.int64), open_ground)),
        Breach(
            "mismatched_edge",
            mismatches.one,
            mismatches.other,
            mismatches.x,
            mismatches.y,
            PlaceWords(("{one} and {other} along {measure}",), measures=along),
        ),
    ]


def _placed(pairs: Pairs, rules: Rules) -> Pairs:
    """Positions in units of the CRS; the largest first, since a person looks at those."""
    order = np.argsort(-pairs.size, kind="stable")
    scale = 10.0**rules.precision
    return Pairs(
        pairs.one[order], pairs.other[order], pairs.x[order] / scale, pairs.y[order] / scale, pairs.size[order], pairs.width[order]
    )


# --- network and solids ----------------------------------------------------------------------------------------------------------------


def _network(wkb: pa.Array | pa.ChunkedArray, rules: Rules) -> list[Breach]:
    found = check_network(wkb, rules.precision, near=rules.near, dead_ends=rules.dangle_length is not None, tolerance=rules.tolerance)
    scale = 10.0**rules.precision
    loose, ends, twice = found.dangles, found.unconnected, found.duplicates
    away, shared = (
        lengths(size, each.y / scale, rules.metres / scale, geographic=rules.geographic)
        for size, each in ((ends.distance, ends), (twice.size, twice))
    )
    apart = ("{one} ends {measure} from {other}", "{one} ends on {other} between its vertices")
    over = ("{one} and {other} share {measure}", "{one} runs {measure} over itself")
    return [
        Breach(
            "dangle",
            loose.row,
            np.full(len(loose), -1),
            loose.x / scale,
            loose.y / scale,
            PlaceWords(("{one} ends at no other line",)),
        ),
        Breach(
            "unconnected_end",
            ends.row,
            ends.other,
            ends.x / scale,
            ends.y / scale,
            PlaceWords(apart, (ends.distance == 0).astype(np.int64), away),
        ),
        Breach(
            "duplicate_edge",
            twice.one,
            np.where(twice.other == twice.one, -1, twice.other),
            twice.x / scale,
            twice.y / scale,
            PlaceWords(over, (twice.other == twice.one).astype(np.int64), shared),
        ),
    ]


def _solid(wkb: pa.Array, rules: Rules, centre: Floats) -> list[Breach]:
    found = check_solids(wkb, rules.precision, rules.z_precision)
    scale = 10.0**rules.precision
    flat = found.unread[np.isin(kernel.scan(wkb).kind[found.unread], _KINDS["3d_solid"])]  # findings name the others already

    edges = np.column_stack([found.open_edges, found.crowded]).astype(np.int64)
    things = tuple((f"edge with {what}", f"edges with {what}") for what in ("one face only", "more than two faces"))
    return [
        Breach(
            "topology",
            flat,
            np.full(len(flat), -1),
            centre[flat, 0],
            centre[flat, 1],
            PlaceWords(("{one} has no faces with Z that could be judged",)),
        ),
        Breach(
            "open_shell",
            found.row,
            np.full(len(found), -1),
            found.x / scale,
            found.y / scale,
            PlaceWords(("{one} has {counts}",), counts=edges, things=things),
        ),
    ]
