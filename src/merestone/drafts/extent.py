"""The `extent` of a drafted contract: the box of the positions where their axis order is measured, both candidate boxes where it is not.

Not here: deciding the order (`gate.whereabouts`). A box drafted from positions whose order nobody knows would certify itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

from merestone.contract.contract import Contract
from merestone.drafts.text import ContractFacts, Note
from merestone.gate.feature import DEGREES
from merestone.gate.whereabouts import Census, Verdict, census, decide
from merestone.geometry import kernel
from merestone.line.preparing.whole_rules import ground_of
from merestone.reference.area import Box
from merestone.reference.operation import Operation
from merestone.reference.systems import horizontal, of_code
from merestone.source.port import Source


def positions(source: Source, contract: Contract) -> tuple[Verdict, Census]:
    """What the positions say of the axis order, by the very rules of a first publish."""
    epsg = contract.crs_epsg
    code = f"EPSG:{epsg}"
    ground, counts = ground_of(contract.geometry_name, Operation("none needed", "noop", code, code, 0.0), None, epsg, None, None), Census()
    column = source.delivery.geometry
    for batch in source.batches() if column is not None else ():
        counts.add(census(ground, kernel.scan(batch.column(column.name)).bounds))  # type: ignore[union-attr]  # none is read without one
    return decide(ground, counts), counts


def box_of_both(newer: Box, older: Box, verdicts: tuple[Verdict, Verdict], notes: list[str]) -> Box:
    """The box of two exports in one CRS, that of the newer one where the other may be exchanged: a box of both would then let both pass."""
    if any(math.isnan(each) for each in older):
        return newer
    apart = _apart(newer, older), _apart(newer, (older[1], older[0], older[3], older[2]))
    if verdicts[0].decision != verdicts[1].decision or apart[1] < apart[0]:
        notes.append(
            f"the older export lies at {', '.join(f'{each:.7g}' for each in older)}, with another order of axes, or far from the newer one: "
            "the extent is that of the newer one"
        )
        return newer
    return min(newer[0], older[0]), min(newer[1], older[1]), max(newer[2], older[2]), max(newer[3], older[3])


def _apart(one: Box, other: Box) -> float:
    return max(abs(mine - its) for mine, its in zip(one, other, strict=True))


def with_extent(facts: ContractFacts, found: tuple[Verdict, Census], bounds: Box, notes: list[str]) -> ContractFacts:
    """The facts with an `extent` where the order of axes is measured; with both boxes to choose from where it is not."""
    verdict, counts = found
    if verdict.decision == "ok":
        box = _grown(bounds, facts)
        return replace(
            facts, extent=box, notes={**facts.notes, "extent": Note("the positions, and a tenth more on each side", confirm=True)}
        )
    if verdict.decision != "undecidable" or not counts.positions:
        return facts
    west, south, east, north = bounds
    words = (
        f"as delivered, for example x y at {', '.join(f'({x:.7g} {y:.7g})' for x, y in counts.samples)}",
        f"exchanged, for example x y at {', '.join(f'({y:.7g} {x:.7g})' for x, y in counts.samples)}",
    )
    boxes = (_grown((west, south, east, north), facts), _grown((south, west, north, east), facts))
    notes.append(f"the positions fit both ways round ({'; '.join(verdict.evidence)}): a first publish stops until an `extent` is stated")
    mark = Note("the positions fit both ways round: state the `extent` below, or a first publish stops", confirm=True)
    notes += [f"extent: [{', '.join(f'{each:.10g}' for each in box)}] {said}" for said, box in zip(words, boxes, strict=True)]
    return replace(facts, extents=tuple(zip(words, boxes, strict=True)), notes={**facts.notes, "axis_order": mark})


def _grown(bounds: Box, facts: ContractFacts) -> Box:
    """A box with a tenth of its size more on each side, rounded outwards to the grid and within what degrees can be."""
    west, south, east, north = bounds
    geographic = bool(horizontal(of_code(facts.epsg)).is_geographic)
    step = 10.0**-facts.coordinate_precision
    dx, dy = max((east - west) / 10, step), max((north - south) / 10, step)
    grid = 10.0 ** min(facts.coordinate_precision, 4 if geographic else 0)
    low = [math.floor(each * grid) / grid for each in (west - dx, south - dy)]
    high = [math.ceil(each * grid) / grid for each in (east + dx, north + dy)]
    if geographic:
        low, high = [max(low[0], DEGREES[0]), max(low[1], DEGREES[1])], [min(high[0], DEGREES[2]), min(high[1], DEGREES[3])]
    return low[0], low[1], high[0], high[1]
