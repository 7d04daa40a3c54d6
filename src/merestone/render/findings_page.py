"""The findings page: the findings of a delivery as a list and a map, self-contained and without network.

Not here: finding anything (`gate`), reading the delivery (`line.check`), the map of a change (`map`), the file's frame (`page`).

The look and the drawing are in findings.html, findings.css and findings.js beside this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from merestone.geometry import kernel
from merestone.geometry.kernel_values import Shapes
from merestone.json_value import Json
from merestone.later import later
from merestone.render.page import self_contained
from merestone.results.result import CheckResult
from merestone.words import plural

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")

PLACES = 2_000
"""How many places a page shows, the same number of each finding where there are more; what is left out is said on the page."""
VERTICES = 300_000
"""How many vertices of outlines a page holds; features beyond show their place only, which is said on the page."""


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """One place of a finding: `finding` its number in the result, the feature's id and row, x and y in the contract's CRS, what is seen there.

    `shapes` are WKB in the contract's CRS of the features concerned.
    """

    finding: int
    id: str | None
    row: int | None
    x: float | None
    y: float | None
    observed: str | None
    shapes: tuple[bytes, ...] = ()


def page(result: CheckResult, places: Sequence[ShownPlace], *, crs: str, geographic: bool) -> str:
    """The page as HTML text.

    Args:
        result: of the check.
        places: where the findings are; those without a position stand in the list only.
        crs: of the positions.
        geographic: whether they are degrees; x is then shortened by the cosine of the latitude.
    """
    shown = _choose(places, len(result.findings))
    shapes, left_out = _outlines(shown)
    notes = []
    if len(shown) < len(places):
        notes.append(f"Shown are {len(shown):,} of {len(places):,} places; a layer of errors holds all of them.")
    if left_out:
        notes.append(f"The page would grow too large: {plural(left_out, 'place')} without an outline.")
    data = {
        "delivery": result.delivery,
        "contract": result.contract,
        "verdict": dict(zip(("words", "tone"), _verdict(result), strict=True)),
        "rows": result.rows,
        "crs": crs,
        "geographic": geographic,
        "notes": notes,
        "findings": [each.to_json() | {"features": []} for each in result.findings],
        "places": [
            [each.finding, each.id, each.row, each.x, each.y, each.observed, outline] for each, outline in zip(shown, shapes, strict=True)
        ],
    }
    return self_contained("findings", f"{result.delivery}: check", data)


def _verdict(result: CheckResult) -> tuple[str, str]:
    """What the check says of the delivery, and the tone in which the page says it."""
    if result.status == "pass" and any(each.severity == "error" for each in result.findings):
        return "has rows that break its contract, no more than the publication allows", "allowed"
    return {"pass": "passes", "fail": "breaks its contract", "error": "could not be checked"}[result.status], result.status


def _choose(places: Sequence[ShownPlace], findings: int) -> list[ShownPlace]:
    """All places, or the first of each finding: none crowds out another."""
    if len(places) <= PLACES:
        return list(places)
    each, seen, kept = max(PLACES // max(findings, 1), 1), [0] * findings, []
    for place in places:
        seen[place.finding] += 1
        if seen[place.finding] <= each:
            kept.append(place)
    return kept


def _outlines(places: Sequence[ShownPlace]) -> tuple[list[Json], int]:
    """Lines and rings of the features of each place as [x, y, x, y, ...], a flag first that says whether they are rings; and how many have none."""
    out: list[Json] = []
    room, left_out = VERTICES, 0
    for place in places:
        shapes = kernel.shapes(pa.array(place.shapes, pa.binary()))
        shapes = shapes[shapely.is_geometry(shapes)]
        size = int(shapely.get_num_coordinates(shapes).sum())
        if size > room:
            out.append(None)
            left_out += 1
            continue
        room -= size
        out.append(_lines(shapes))
    return out, left_out


def _lines(shapes: Shapes) -> list[Json]:
    while len(shapes) and (shapely.get_type_id(shapes) > 3).any():
        shapes = shapely.get_parts(shapes)
    out: list[Json] = []
    for shape in shapes:
        ring = shape.geom_type == "Polygon"
        for line in shapely.get_rings(shape) if ring else [shape]:
            xy = shapely.get_coordinates(line)
            if np.isfinite(xy).all():
                out.append([int(ring), *xy.ravel().tolist()])
    return out
