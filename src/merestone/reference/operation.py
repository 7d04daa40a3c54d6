"""The one PROJ operation that brings coordinates from one reference system into another: chosen, recorded, the same on every machine.

Not here: moving coordinates (`normalise.transform`), where grid files are (`source.grids`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Protocol

import pyproj
from pyproj import CRS, Transformer
from pyproj.transformer import AreaOfInterest, TransformerGroup

from merestone.errors import MissingError
from merestone.heard import heard
from merestone.json_value import JsonObject
from merestone.reference.area import Box
from merestone.reference.grids import GridFile, GridFiles, names_in, with_paths
from merestone.reference.ground import metres_per_unit
from merestone.reference.identity import identify, is_system
from merestone.reference.systems import horizontal, may_move, of_code, system
from merestone.results.finding import Finding
from merestone.rules import catalogue

_RATES = re.compile(r"(?:^|\s)\+?(?:dx|dy|dz|drx|dry|drz|ds)=|(?:^|\s)\+?proj=(?:deformation|defmodel)\b")
_AXIS_CHANGE = "axis order change (2D)"  # PROJ's name for a step that stands in front of or behind an operation in x, y order
_SWAP = "step proj=axisswap order=2,1"


class FallbackRule(Protocol):
    """The publication's `crs` clause: strategies in order, and what a missing grid does."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Of best, grid, ballpark."""
        ...

    @property
    def missing_grids(self) -> Literal["refuse", "fallback"]:
        """Whether a missing grid stops the run."""
        ...


@dataclass(frozen=True, slots=True)
class Operation:
    """One way from the delivered system to the contract's, fixed for a run and recorded.

    `pipeline` is PROJ's own text of it, in x, y order, with grids by name; `accuracy_m` is None where PROJ does not know it. `swap`: the delivery
    is y, x by contract, and is put into x, y first. `grids` are used, `missing_grids` would have been better. `metres` is the size of one unit
    of the target, None for degrees. `epoch`: the time of the coordinates in decimal years, None where nothing depends on it.
    """

    name: str
    pipeline: str
    source: str
    target: str
    accuracy_m: float | None
    strategy_index: int | None = None
    grids: tuple[GridFile, ...] = ()
    missing_grids: tuple[str, ...] = ()
    swap: bool = False
    from_degrees: bool = False
    metres: float | None = None
    epoch: float | None = None

    @property
    def is_identity(self) -> bool:
        """Whether coordinates stay exactly as they are delivered."""
        return self.pipeline == "noop" and not self.swap

    @property
    def depends_on_time(self) -> bool:
        """Whether the numbers that come out depend on the epoch of those that go in."""
        return _RATES.search(self.pipeline) is not None

    @property
    def transformer(self) -> Transformer:
        """PROJ's transformer of the pipeline; pyproj keeps one per thread behind it."""
        return _transformer(self.pipeline, self.grids)

    def to_json(self) -> JsonObject:
        """What decides the numbers that come out: the record of a version, and part of the processing key."""
        return {
            "name": self.name,
            "pipeline": self.pipeline,
            "source": self.source,
            "target": self.target,
            "accuracy_m": self.accuracy_m,
            "strategy_index": self.strategy_index,
            "grids": [each.to_json() for each in self.grids],
            "missing_grids": list(self.missing_grids),
            "swap": self.swap,
            "epoch": self.epoch if self.depends_on_time else None,
            "proj": pyproj.proj_version_str,
            "database": str(pyproj.database.get_database_metadata("EPSG.VERSION")),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of an operation.

    required_accuracy_m: unknown accuracy never meets it. area: west, south, east, north in degrees. swap: coordinates are y, x. epoch: their
    time in decimal years. by_parameters: the text of the source states parameters and no code.
    """

    required_accuracy_m: float | None = None
    area: Box | None = None
    swap: bool = False
    epoch: float | None = None
    by_parameters: bool = False


def choose_operation(source: str, target_epsg: int, rule: FallbackRule, grids: GridFiles, wanted: Wanted = Wanted()) -> Operation | Finding:
    """One operation for the whole delivery; two machines and two nights give the same numbers.

    The strategies are tried in order, their place being `strategy_index`: `best` is what PROJ holds for best among all operations it
    knows, `grid` the best of known accuracy that the grid files allow, `ballpark` an operation that leaves the datum shift out.

    Args:
        source: the delivered system in any spelling.
        target_epsg: the contract's system.
        rule: strategies, missing grids.
        grids: the grid files that may be used; PROJ's own folders count only through them.
        wanted: accuracy, area, axis order and epoch.

    Returns:
        The operation, or a finding where no strategy meets the required accuracy or the operation needs an epoch that is not known.

    Raises:
        MissingError: the best operation needs a grid file that is not here, and the rule says refuse.
    """
    target = f"EPSG:{target_epsg}"
    into = of_code(target_epsg)
    metres = None if horizontal(into).is_geographic else metres_per_unit(into)
    if is_system(source, target, by_parameters=wanted.by_parameters):
        return Operation("none needed", "noop", target, target, 0.0, swap=wanted.swap, metres=metres, epoch=wanted.epoch)
    label = identify(source).code or source
    given = system(label)
    ways = [_Way.of(each, given, into, grids) for each in _offered(given, into, wanted.area)]
    missing = () if not ways or ways[0].files is not None else ways[0].absent(grids)
    frame = Operation(
        "",
        "",
        label,
        target,
        None,
        missing_grids=missing,
        swap=wanted.swap,
        from_degrees=horizontal(given).is_geographic,
        metres=metres,
        epoch=wanted.epoch if may_move(given) or may_move(into) else None,
    )
    offers = [_offer(frame, index, way) for index, way in enumerate(_by_strategy(ways, rule.strategies))]
    usable = [offer for offer in offers if offer is not None]
    enough = [offer for offer in usable if _meets(offer.accuracy_m, wanted.required_accuracy_m)]
    if missing and rule.missing_grids == "refuse":
        without = _accuracy_words(usable[0] if usable else None, wanted.required_accuracy_m)
        raise MissingError(
            f"missing grid {', '.join(missing)} for {ways[0].name} (accuracy {ways[0].accuracy:g} m), {label} to {target}; without it: {without}",
            field="crs.grids",
            hint="put the grid file into the folder that crs.grids names, or allow worse with crs.missing_grids: fallback",
        )
    if not enough:
        words = _accuracy_words(usable[0] if usable else None, wanted.required_accuracy_m)
        lost = f"; missing grid {', '.join(missing)}" if missing else ""
        way = f"{label} to {target}" + _asked(wanted.required_accuracy_m)
        return catalogue.NO_OPERATION.finding("crs", way=way, what=f"{words}{lost}")
    if enough[0].depends_on_time and enough[0].epoch is None:
        return catalogue.EPOCH_MISSING.finding("crs", case="needed", label=label, name=given.name, operation=enough[0].name)
    return enough[0]


@dataclass(frozen=True, slots=True)
class _Way:
    """One operation that PROJ offers. `files` are the grids that it reads, None where one is missing."""

    name: str
    pipeline: str
    accuracy: float
    weight: tuple[bool, float, float]
    files: tuple[GridFile, ...] | None

    @classmethod
    def of(cls, offered: _Offered, given: CRS, into: CRS, grids: GridFiles) -> _Way:
        text = offered.pipeline
        if not offered.in_xy and text != "noop":
            text = _in_xy(text, swap_in=_north_first(given), swap_out=_north_first(into))
        found = [grids.get(name) for name in names_in(text)]
        files = None if None in found else tuple(each for each in found if each is not None)
        return cls(offered.name, text, offered.accuracy, offered.weight, files)

    @property
    def is_ballpark(self) -> bool:
        """Whether it leaves the datum shift out."""
        return self.weight[0]

    def absent(self, grids: GridFiles) -> tuple[str, ...]:
        """The names of the grid files that it lacks."""
        return tuple(name for name in names_in(self.pipeline) if grids.get(name) is None)


@dataclass(frozen=True, slots=True)
class _Offered:
    """An operation as pyproj describes it. `weight` orders: no ballpark first, then the larger area, then the better accuracy."""

    name: str
    pipeline: str
    accuracy: float
    weight: tuple[bool, float, float]
    in_xy: bool


def _offered(given: CRS, into: CRS, area: Box | None) -> list[_Offered]:
    """All operations from one system to another, PROJ's best first, whatever grid files PROJ itself finds.

    PROJ lists what it can do now apart from what lacks a grid, and says which list begins with the best. The rest is put in the order that PROJ
    gives where it has all grids: by the part of the area that an operation covers, then by its accuracy.
    """
    with heard():  # "best transformation is not available": whoever asked says so, with names
        group = TransformerGroup(given, into, always_xy=True, area_of_interest=None if area is None else AreaOfInterest(*area))
    where = area or _common(given, into)
    now = [_described(each.description, each.definition, each, where, in_xy=True) for each in group.transformers]
    later = [_described(each.name, each.to_proj4() or "", each, where, in_xy=False) for each in group.unavailable_operations]
    first = (now if group.best_available else later)[:1]
    return [*first, *sorted((each for each in [*now, *later] if each not in first), key=lambda each: each.weight)]


def _described(name: str, definition: str, held: Any, where: Box | None, *, in_xy: bool) -> _Offered:
    ballpark = "ballpark" in name.lower()
    known = held.accuracy is not None and held.accuracy >= 0 and not ballpark
    accuracy = float(held.accuracy) if known else math.inf
    text = re.sub(r"(^|\s)\+", r"\1", definition).strip()
    plain = " + ".join(each for each in name.split(" + ") if each != _AXIS_CHANGE) or name
    weight = (ballpark, -round(_covered(held.area_of_use, where), 9), accuracy)
    return _Offered(plain, "noop" if text.startswith("proj=noop") else text, accuracy, weight, in_xy)


def _common(given: CRS, into: CRS) -> Box | None:
    """The degrees in which both systems are used."""
    one, other = given.area_of_use, into.area_of_use
    if one is None or other is None:
        return None
    return max(one.west, other.west), max(one.south, other.south), min(one.east, other.east), min(one.north, other.north)


def _covered(area: Any, where: Box | None) -> float:
    """How much of the globe an operation covers within a box, in square degrees shrunk by latitude."""
    if area is None:
        return 0.0
    west, south, east, north = area.west, area.south, area.east + (360.0 if area.east < area.west else 0.0), area.north
    if where is not None:
        west, south, east, north = max(west, where[0]), max(south, where[1]), min(east, where[2]), min(north, where[3])
    return float(max(0.0, east - west)) * max(0.0, math.sin(math.radians(north)) - math.sin(math.radians(south)))


def _in_xy(text: str, *, swap_in: bool, swap_out: bool) -> str:
    """An operation in the order of each system's axes, brought into x, y order; two exchanges that meet are none."""
    steps = text.removeprefix("proj=pipeline ").strip() if text.startswith("proj=pipeline") else f"step {text}"
    if swap_in:
        steps = steps.removeprefix(_SWAP).strip() if steps.startswith(_SWAP) else f"{_SWAP} {steps}"
    if swap_out:
        steps = steps.removesuffix(_SWAP).strip() if steps.endswith(_SWAP) else f"{steps} {_SWAP}"
    return f"proj=pipeline {steps}"


def _north_first(crs: CRS) -> bool:
    return [axis.direction.lower() for axis in horizontal(crs).axis_info[:2]] == ["north", "east"]


@lru_cache(maxsize=16)
def _transformer(pipeline: str, grids: tuple[GridFile, ...]) -> Transformer:
    """A pure function of its arguments: the files count by their content as well as by their place."""
    return Transformer.from_pipeline(with_paths(pipeline, {each.name: each.path for each in grids}))


def _by_strategy(ways: Sequence[_Way], strategies: Sequence[str]) -> list[_Way | None]:
    exact = [each for each in ways if not each.is_ballpark]
    offers = {
        "best": exact[0] if exact and exact[0] is ways[0] and exact[0].files is not None else None,
        "grid": next((each for each in exact if each.files is not None and math.isfinite(each.accuracy)), None),
        "ballpark": next((each for each in ways if each.is_ballpark and each.files is not None), None),
    }
    return [offers.get(each) for each in strategies]


def _offer(frame: Operation, index: int, chosen: _Way | None) -> Operation | None:
    if chosen is None or chosen.files is None:
        return None
    accuracy = chosen.accuracy if math.isfinite(chosen.accuracy) else None
    return replace(frame, name=chosen.name, pipeline=chosen.pipeline, accuracy_m=accuracy, strategy_index=index, grids=chosen.files)


def _meets(accuracy: float | None, required: float | None) -> bool:
    return required is None or (accuracy is not None and accuracy <= required)


def _accuracy_words(offer: Operation | None, required: float | None) -> str:
    asked = " (none is required)" if required is None else f" where {required} m is required"
    if offer is None:
        return "no operation" + asked
    return ("accuracy unknown (ballpark)" if offer.accuracy_m is None else f"accuracy {offer.accuracy_m:g} m") + asked


def _asked(required: float | None) -> str:
    return "" if required is None else f" within {required} m"
