"""The page of a change: a change between two versions as one self-contained map that needs no network.

Not here: reading versions and feeds (`inspect.show`), which features are drawn (`sampling`), the file's frame (`page`), writing it (`api`).
The look and the drawing are in map.html, map.css and map.js beside this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from merestone.json_value import Json
from merestone.later import later
from merestone.reference.ground import METRES_PER_DEGREE
from merestone.render.page import self_contained
from merestone.render.sampling import ACROSS, Cells
from merestone.results.result import CLASSES, Counts
from merestone.words import plural

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")

FEATURES = 5_000
"""How many changed features a page draws; where there are more, it says how many of each class every cell holds."""
VERTICES = 400_000
"""How many vertices a page holds before outlines are simplified, which is said on the page too."""
_POINT, _LINE, _RING = 0, 1, 2


@dataclass(frozen=True, slots=True)
class MapFeature:
    """One touched feature. `before` and `after` are WKB in the contract's CRS, x before y, None where the geometry is missing.

    `fields` are the attributes that differ, as (name, old, new); of an added or removed feature, what is worth showing with None on the
    other side. `labels` are "reversed" and "rekeyed". `move` is the largest distance between old and new in units of the CRS.
    """

    key: str
    kind: Literal["added", "changed", "removed", "moved"]
    before: bytes | None
    after: bytes | None
    fields: tuple[tuple[str, object, object], ...] = ()
    labels: tuple[str, ...] = ()
    move: float | None = None


@dataclass(frozen=True, slots=True)
class ChangeMap:
    """A change to show.

    Args:
        name: the dataset.
        before: what the older side is called ("v1").
        after: what the newer side is called ("v2").
        crs: the CRS of the coordinates ("EPSG:4326").
        geographic: whether they are degrees; x is then shortened by the cosine of the latitude.
        metres: metres in one unit of a projected CRS, None where it is not known.
        precision: decimals of the coordinates.
        features: the touched features to draw, at most `FEATURES`.
        totals: how many there are in all.
        cells: how many there are in each cell, where `features` are some of them.
        context: WKB of features that did not change, drawn pale beneath.
        attribution: whose data this is.
    """

    name: str
    before: str
    after: str
    crs: str
    features: Sequence[MapFeature]
    totals: Counts
    geographic: bool = False
    metres: float | None = 1.0
    precision: int = 7
    context: Sequence[bytes] = ()
    attribution: str = ""
    cells: Cells | None = None


def page(change: ChangeMap) -> str:
    """The page as HTML text."""
    shown = change.features
    shapes = _Shapes(change, shown)
    total = change.totals.touched
    notes = []
    if total > len(shown):
        counted = " from every place. The numbers on the map count all of them." if change.cells is not None else "."
        notes.append(f"Drawn are {len(shown):,} of {total:,} touched features{counted} The file of changes holds each.")
    if shapes.simplified:
        notes.append(f"For the screen {plural(shapes.simplified, 'outline')} had to be simplified; the published geometry is not.")
    if shapes.left_out:
        notes.append(f"The page would grow too large: {plural(shapes.left_out, 'feature')} without an outline.")
    without = sum(each.before is None and each.after is None for each in shown)
    if without:
        notes.append(f"Only in the list: {plural(without, 'feature')} without geometry.")
    data = {
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "crs": change.crs,
        "geographic": change.geographic,
        "metres": METRES_PER_DEGREE if change.geographic else change.metres,
        "origin": list(shapes.origin),
        "unit": shapes.unit,
        "attribution": change.attribution,
        "notes": notes,
        "totals": {name: getattr(change.totals, name) for name in CLASSES},
        "features": [
            {
                "key": each.key,
                "kind": each.kind,
                "labels": list(each.labels),
                "move": each.move,
                "before": shapes.encoded(before),
                "after": None if same else shapes.encoded(after),
                "same": same,
                "fields": [[name, _plain(old), _plain(new)] for name, old, new in each.fields],
            }
            for each, before, after, same in shapes.pairs()
        ],
        "cells": None if change.cells is None else {"across": ACROSS, **asdict(change.cells)},
        "context": [shapes.encoded(each) for each in shapes.context],
    }
    return self_contained("map", f"{change.name}: {change.before} to {change.after}", data)


class _Shapes:
    """Geometries as lists of small integers: steps of the grid from vertex to vertex, the first from the origin of the page."""

    def __init__(self, change: ChangeMap, shown: Sequence[MapFeature]) -> None:
        self._shown = shown
        both = shapely.from_wkb(np.array([wkb for each in shown for wkb in (each.before, each.after)], dtype=object), on_invalid="ignore")
        self._shapes = both
        self.context = [
            shape for shape in shapely.from_wkb(np.array(change.context, dtype=object), on_invalid="ignore") if shape is not None
        ]
        box = shapely.total_bounds(np.array([*both, *self.context], dtype=object))
        self.origin = (float(box[0]), float(box[1])) if np.isfinite(box).all() else (0.0, 0.0)
        extent = max(float(box[2] - box[0]), float(box[3] - box[1])) if np.isfinite(box).all() else 0.0
        digits = change.precision
        while digits > 0 and extent * 10.0**digits > 2**50:
            digits -= 1
        self.unit = 10.0**-digits
        self._per_unit = 10.0**digits
        self.simplified = self.left_out = 0
        self._shrink()

    def _shrink(self) -> None:
        sizes = shapely.get_num_coordinates(self._shapes)
        if int(sizes.sum()) <= VERTICES:
            return
        large = np.flatnonzero(sizes > 50)
        box = shapely.bounds(self._shapes[large])
        diagonal = np.hypot(box[:, 2] - box[:, 0], box[:, 3] - box[:, 1])
        # A thousandth of a feature's own diagonal is about a pixel when the feature fills the map.
        smaller = shapely.simplify(self._shapes[large], diagonal / 1000, preserve_topology=False)
        fewer = (shapely.get_num_coordinates(smaller) < sizes[large]) & ~shapely.is_empty(smaller)
        self._shapes[large[fewer]] = smaller[fewer]
        self.simplified = len(np.unique(large[fewer] // 2))
        beyond = np.flatnonzero(np.cumsum(shapely.get_num_coordinates(self._shapes)) > 2 * VERTICES)
        beyond = beyond[shapely.get_num_coordinates(self._shapes[beyond]) > 0]
        self._shapes[beyond] = None
        self.left_out = len(np.unique(beyond // 2))

    def pairs(self) -> list[tuple[MapFeature, bytes | None, bytes | None, bool]]:
        """Each feature with its two shapes and whether they are the same (then only the first is written)."""
        return [
            (each, self._shapes[2 * at], self._shapes[2 * at + 1], each.before is not None and each.before == each.after)
            for at, each in enumerate(self._shown)
        ]

    def encoded(self, shape: bytes | None) -> list[Json] | None:
        """[[kind, [x, y, dx, dy, ...]], ...] with kind 0 points, 1 line, 2 ring; None where there is nothing to draw."""
        if shape is None or shapely.is_empty(shape):
            return None
        out: list[Json] = []
        parts = np.array([shape], dtype=object)
        while (shapely.get_type_id(parts) > 3).any():  # Multi types and collections, however deep
            parts = shapely.get_parts(parts)
        for part in parts:
            if part.geom_type == "Polygon":
                out += [[_RING, self._steps(shapely.get_coordinates(ring))] for ring in shapely.get_rings(part)]
            elif part.geom_type == "Point":
                out.append([_POINT, self._steps(shapely.get_coordinates(part))])
            else:
                out.append([_LINE, self._steps(shapely.get_coordinates(part))])
        return [each for each in out if each[1]]

    def _steps(self, vertices: npt.NDArray[np.float64]) -> list[int]:
        grid = np.rint((vertices[np.isfinite(vertices).all(axis=1)] - np.array(self.origin)) * self._per_unit).astype(np.int64)
        grid[1:] -= grid[:-1].copy()
        steps: list[int] = grid.ravel().tolist()
        return steps


def _plain(value: object) -> Json:
    """A value of an attribute as JSON can carry it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, bytes):
        return f"{plural(len(value), 'byte')} {value[:16].hex()}"
    return str(value)
