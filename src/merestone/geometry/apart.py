"""How far one geometry lies from another, one pair at a time, in Python: the size of a change, and whether a difference is only noise.

Not here: whole columns (`kernel`), reading (`single`). The compiled kernel has the same in `_move.h`; only there is effort bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from merestone.geometry.single import CIRCULAR, LINE, MULTIPOLYGON, POLYGON, TRIANGLE, Node

PAIRED_PARTS = 200  # more parts than this are not paired, their outlines are compared
Position = tuple[float, float, float, float]  # x, y, z, m; 0 where there is none or it does not count
Run = list[Position]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """A simple geometry: its runs of vertices without repeats and closing vertices. Rings come with their polygon."""

    type: int
    level: int
    bits: int
    runs: tuple[Run, ...]

    @property
    def ring(self) -> bool:
        """Whether its runs are rings."""
        return self.type in (POLYGON, TRIANGLE)


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a geometry, and the number of members of its collections at any depth, empty ones included."""

    type: int
    parts: list[Part]
    members: int


def outline(node: Node, *, keep_z: bool, keep_m: bool) -> Outline:
    """What two geometries are compared by."""
    parts = []
    for leaf, level in node.leaves():
        if not leaf.runs or not (leaf.type in (POLYGON, TRIANGLE) or leaf.runs[0]):
            continue
        z, m = leaf.z and keep_z, leaf.m and keep_m
        runs = tuple(run for run in (_run(each, leaf, z=z, m=m) for each in leaf.runs) if run)
        if runs:
            parts.append(Part(leaf.type, level, z | m << 1, runs))
    return Outline(node.type + 3 if node.type <= POLYGON else node.type, parts, _members(node))


def _members(node: Node) -> int:
    own = len(node.members) if node.type > MULTIPOLYGON else 0
    return own + sum(map(_members, node.members))


def _run(run: Sequence[tuple[float, ...]], leaf: Node, *, z: bool, m: bool) -> Run:
    out: Run = []
    for vertex in run:
        position = (vertex[0], vertex[1], vertex[2] if z else 0.0, vertex[2 + leaf.z] if m else 0.0)
        if leaf.type == CIRCULAR or not out or not _same(out[-1], position):
            out.append(position)
    while leaf.type in (POLYGON, TRIANGLE) and len(out) > 1 and _same(out[0], out[-1]):
        out.pop()
    return out


def _same(one: Position, other: Position) -> bool:
    return np.array(one).tobytes() == np.array(other).tobytes()


# ---- within ----


def _near(x: float, y: float, limit: float) -> bool:
    """Whether two ordinates lie within the limit, and what doubles of this size may be off by their own rounding."""
    return abs(x - y) <= limit + math.ldexp(abs(y), -51) and math.isfinite(x - y)


@dataclass(frozen=True, slots=True)
class Near:
    """Limits for x and y, z, m, and whether lines may run either way."""

    limits: tuple[float, float, float, float]
    either_way: bool

    def vertex(self, a: Position, b: Position) -> bool:
        """Whether two vertices are one but for noise; no measure and no measure agree."""
        pairs = zip(a, b, self.limits, strict=True)
        return all(_near(x, y, limit) or (place == 3 and math.isnan(x) and math.isnan(y)) for place, (x, y, limit) in enumerate(pairs))

    def follows(self, a: Run, b: Run) -> bool:
        """Whether a's vertices follow b's one after the other; neighbours in a may share a counterpart, none of b is left out."""
        if not self.vertex(a[0], b[0]):
            return False
        reach = {0}
        for vertex in a[1:]:
            reach = {j for j in reach | {i + 1 for i in reach} if j < len(b) and self.vertex(vertex, b[j])}
            if not reach:
                return False
        return len(b) - 1 in reach

    def run(self, a: Run, b: Run, *, ring: bool, both_ways: bool) -> bool:
        """Whether two runs agree; rings from any start."""
        if len(a) < len(b):
            return False
        back = a[::-1]
        if not ring:
            return self.follows(a, b) or (both_ways and self.follows(back, b))
        n = len(a)
        return any(
            self.follows(a[start:] + a[:start], b) or (both_ways and self.follows(back[n - 1 - start :] + back[: n - 1 - start], b))
            for start in range(n)
            if self.vertex(a[start], b[0])
        )

    def part(self, a: Part, b: Part) -> bool:
        """Whether two parts agree, holes in any order."""
        if (a.type, a.level, a.bits, len(a.runs)) != (b.type, b.level, b.bits, len(b.runs)):
            return False
        both_ways = a.ring or (a.type == LINE and self.either_way)
        if not self.run(a.runs[0], b.runs[0], ring=a.ring, both_ways=both_ways):
            return False
        holes = len(a.runs) - 1
        return _pairs_up(holes, lambda i, j: self.run(a.runs[1 + i], b.runs[1 + j], ring=True, both_ways=True))


def is_near(a: Outline, b: Outline, near: Near) -> bool:
    """Whether two geometries have one structure and all ordinates within the limits."""
    if (a.type, len(a.parts), a.members) != (b.type, len(b.parts), b.members):
        return False
    return _pairs_up(len(a.parts), lambda i, j: near.part(a.parts[i], b.parts[j]))


def _pairs_up(n: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether n items can be paired with n others so that each pair fits (augmenting paths)."""
    owner: dict[int, int] = {}
    for start in range(n):
        came: dict[int, tuple[int, int | None]] = {}  # item of b -> (item of a that reached it, the item of b that one gave up)
        queue: list[tuple[int, int | None]] = [(start, None)]
        end = None
        while queue and end is None:
            item, gave_up = queue.pop(0)
            for j in range(n):
                if j in came or not fits(item, j):
                    continue
                came[j] = (item, gave_up)
                if j not in owner:
                    end = j
                    break
                queue.append((owner[j], j))
        if end is None:
            return False
        free: int | None = end
        while free is not None:
            owner[free], free = came[free]
    return True


# ---- the size of a change ----


def size_of_change(a: Outline, b: Outline) -> float:
    """The largest distance between counterparts, or between outlines where the structures differ; NaN where one is empty."""
    if not a.parts or not b.parts:
        return math.nan
    move = _structural_move(a, b)
    if math.isinf(move):
        one, other = (np.array([row[:2] for part in side.parts for run in part.runs for row in run]) for side in (a, b))
        move = max(_directed(one, other), _directed(other, one))
    return math.sqrt(move)


def _structural_move(a: Outline, b: Outline) -> float:
    """Each part to the nearest of its structure that is free: the largest squared distance, infinite where the structures differ."""
    if len(a.parts) != len(b.parts) or len(a.parts) > PAIRED_PARTS:
        return math.inf
    taken: set[int] = set()
    worst, n = 0.0, len(b.parts)
    for i, part in enumerate(a.parts):
        best, chosen = math.inf, 0
        for j in ((i + k) % n for k in range(n)):
            if j in taken:
                continue
            move = _part_move(part, b.parts[j], best)
            if move < best:
                best, chosen = move, j
            if best == 0:
                break
        if math.isinf(best):
            return math.inf
        taken.add(chosen)
        worst = max(worst, best)
    return worst


def _part_move(a: Part, b: Part, best: float) -> float:
    if a.type != b.type or [len(run) for run in a.runs] != [len(run) for run in b.runs]:
        return best
    worst = 0.0
    for one, other in zip(a.runs, b.runs, strict=True):
        worst = max(worst, _aligned(np.array(one)[:, :2], np.array(other)[:, :2], best, ring=a.ring))
        if worst >= best:
            return best
    return worst


def _aligned(a: Floats, b: Floats, best: float, *, ring: bool) -> float:
    """The largest squared distance between counterparts under the alignment that makes it least."""
    for start in range(len(a)) if ring else (0,):
        for back in (False, True) if ring else (False,):
            other = np.roll(b[::-1], start + 1, axis=0) if back else np.roll(b, -start, axis=0)
            worst = _squared(a, other).max()
            best = min(best, worst) if worst == worst else best  # noqa: PLR0124 - NaN is not an alignment
            if best == 0:
                return best
    return best


def _squared(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are findings elsewhere; here they are not a distance
        x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
        return np.asarray(x * x + y * y)


def _directed(a: Floats, b: Floats) -> float:
    """The largest squared distance from a vertex of a to the nearest of b."""
    worst = 0.0
    for vertex in a:
        distance = _squared(vertex, b)
        distance = distance[~np.isnan(distance)]
        if len(distance) and np.isfinite(distance.min()):
            worst = max(worst, float(distance.min()))
    return worst
