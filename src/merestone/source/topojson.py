"""A TopoJSON document read strictly, and laid out as the GeoJSON collection of one of its objects, which is then read as any other.

GDAL leaves out a feature without a geometry, of a collection or of a type that it does not know, an arc that is not there, and a position of three
numbers; of several objects it takes the first. Here each of them is read, or named with its row.
Not here: reading rows (`vector`), what a property may hold (`json_features`), which file is meant (`located`).
Clauses: the TopoJSON format specification, 2.1 (topology objects), 2.1.2 (transforms), 2.1.3 (arcs), 2.1.4 (arc indexes), 2.2 (geometry objects).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

from merestone.errors import SourceError
from merestone.json_value import Json, JsonObject
from merestone.source.json_features import is_position, shown_value
from merestone.source.located import Located, open_bytes
from merestone.source.unpack import discard, scratch_folder

_DEPTHS = {"LineString": 0, "Polygon": 1, "MultiLineString": 1, "MultiPolygon": 2}
_POINTS = {"Point": 0, "MultiPoint": 1}


@dataclass(slots=True)
class Topology:
    """One object of a topology as a collection.

    found: where the collection is. broken: rows (from 1) whose geometry cannot be read, and what is the matter. twice: members that stand twice in
    one object, with the rows of their features; row 0 is the topology itself.
    """

    found: Located
    broken: list[tuple[int, str]] = field(default_factory=list)
    twice: dict[str, list[int]] = field(default_factory=dict)


class _BrokenError(ValueError):
    """A geometry that cannot be read, and why."""


def as_collection(found: Located, asked: str | None) -> Topology:
    """Read a topology and write one of its objects as a GeoJSON collection, one feature a line, to a scratch folder.

    Args:
        found: the TopoJSON document.
        asked: the name of the object, None for the only one.

    Raises:
        SourceError: the text is not a topology, or has no such object, or several and none is named.
    """
    reader = _Reader(found.shown)
    with open_bytes(found) as file:
        topology = reader.read(file.read())
    name, features = _chosen(topology, asked, found)
    scratch = scratch_folder()
    try:
        target = scratch / f"{found.stem}.geojson"
        made = Topology(replace(found, format="GeoJSON", path=target, gdal=str(target), scratch=scratch))
        arcs = _Arcs(topology)
        with target.open("w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(f'{{"type": "FeatureCollection", "name": {json.dumps(name)}, "features": [')
            for row, feature in enumerate(features, start=1):
                out.write(",\n" if row > 1 else "\n")
                out.write(json.dumps(_feature(feature, row, arcs, made), ensure_ascii=False))
                for each in reader.twice_within(feature):
                    made.twice.setdefault(each, []).append(row)
            out.write("\n]}\n")
        for each in reader.twice_left():
            made.twice.setdefault(each, []).append(0)
    except BaseException:
        discard(scratch)
        raise
    return made


def _chosen(topology: JsonObject, asked: str | None, found: Located) -> tuple[str, list[Json]]:
    """The name of an object and its features: the members of a collection, or a geometry by itself, which has its name as its id."""
    objects = topology["objects"]
    if asked is None and len(objects) == 1:
        asked = next(iter(objects))
    if asked is None or asked not in objects:
        listed = ", ".join(objects)
        if not objects:
            raise SourceError(f"{found.shown} holds no features and no layers", field=found.shown, hint="export it again")
        raise SourceError(
            f"{found.shown} has {f'{len(objects)} layers' if asked is None else f'no layer {asked!r}; its layers'}: {listed}",
            field="source.layer",
            hint="name one of them: «layer», or source.layer in a publication file",
        )
    chosen = objects[asked]
    if not isinstance(chosen, dict):
        raise _no_topology(found.shown, f"object {asked!r} is {shown_value(chosen)}")
    if chosen.get("type") != "GeometryCollection":
        return asked, [{"id": asked, **chosen}]
    features = chosen.get("geometries")
    if not isinstance(features, list):
        raise _no_topology(found.shown, f"object {asked!r} has no list of geometries")
    return asked, features


def _feature(value: Json, row: int, arcs: _Arcs, made: Topology) -> JsonObject:
    geometry = None
    if isinstance(value, dict):
        try:
            geometry = arcs.geometry(value)
        except _BrokenError as fault:
            made.broken.append((row, str(fault)))
        properties, own = value.get("properties"), value.get("id")
    else:
        made.broken.append((row, f"the geometry is {shown_value(value)}, not an object"))
        properties, own = None, None
    return {
        "type": "Feature",
        **({} if own is None else {"id": own}),
        "properties": properties if isinstance(properties, dict) else {},
        "geometry": geometry,
    }


class _Arcs:
    """The arcs of a topology, and the geometries that are made of them."""

    def __init__(self, topology: JsonObject) -> None:
        self._arcs: list[Json] = topology["arcs"]
        transform = topology.get("transform")
        self._scale: list[float] | None = None if transform is None else transform["scale"]
        self._translate: list[float] = [] if transform is None else transform["translate"]
        self._read: dict[int, list[list[float]]] = {}

    def geometry(self, value: JsonObject) -> JsonObject | None:
        """A geometry object as one of GeoJSON, null where its type is null."""
        kind = value.get("type", "(none)")
        if kind is None:
            return None
        if kind == "GeometryCollection":
            members = value.get("geometries")
            if not isinstance(members, list) or not all(isinstance(each, dict) and each.get("type") is not None for each in members):
                raise _BrokenError("a GeometryCollection without a list of geometries")
            return {"type": kind, "geometries": [self.geometry(each) for each in members]}
        if kind in _POINTS:
            positions = value.get("coordinates")
            return {"type": kind, "coordinates": self._points(positions, _POINTS[kind], "coordinates")}
        if kind not in _DEPTHS:
            raise _BrokenError(f"{shown_value(kind)} is not a type of geometry")
        return {"type": kind, "coordinates": self._lines(value.get("arcs"), _DEPTHS[kind], "arcs")}

    def _points(self, value: Json, depth: int, path: str) -> list[Json]:
        if not isinstance(value, list):
            raise _BrokenError(f"{path} is {shown_value(value)}, not a list")
        if depth:
            return [self._points(each, depth - 1, f"{path}[{at}]") for at, each in enumerate(value)]
        if not value and path == "coordinates":
            return []
        if not is_position(value):
            raise _BrokenError(f"{path} is {shown_value(value)}, not a position of two or more numbers")
        return self._placed(value[0], value[1], value[2:])

    def _lines(self, value: Json, depth: int, path: str) -> list[Json]:
        if not isinstance(value, list):
            raise _BrokenError(f"{path} is {shown_value(value)}, not a list")
        if depth:
            return [self._lines(each, depth - 1, f"{path}[{at}]") for at, each in enumerate(value)]
        line: list[Json] = []
        for at, index in enumerate(value):
            arc = self._arc(index, f"{path}[{at}]")
            if line and arc and line[-1][:2] != arc[0][:2]:
                raise _BrokenError(f"{path}[{at}]: arc {index} does not begin where the arc before it ends")
            line += arc[1:] if line else arc
        return line

    def _arc(self, index: Json, path: str) -> list[list[float]]:
        if type(index) is not int or not -len(self._arcs) <= index < len(self._arcs):
            raise _BrokenError(f"{path} is {shown_value(index)}, and the topology has {len(self._arcs):,} arcs")
        at = index if index >= 0 else ~index
        if at not in self._read:
            self._read[at] = list(self._positions(at))
        return self._read[at] if index >= 0 else self._read[at][::-1]

    def _positions(self, at: int) -> Iterator[list[float]]:
        """The positions of an arc; under a transform each is the step from the one before it."""
        arc = self._arcs[at]
        if not isinstance(arc, list):
            raise _BrokenError(f"arc {at} of the topology is {shown_value(arc)}, not a list")
        x = y = 0
        for place, position in enumerate(arc):
            if not is_position(position):
                raise _BrokenError(f"position {place} of arc {at} is {shown_value(position)}, not a position of two or more numbers")
            x, y = (position[0], position[1]) if self._scale is None else (x + position[0], y + position[1])
            yield self._placed(x, y, position[2:])

    def _placed(self, x: float, y: float, more: list[float]) -> list[float]:
        if self._scale is None:
            return [x, y, *more]
        try:
            return [x * self._scale[0] + self._translate[0], y * self._scale[1] + self._translate[1], *more]
        except OverflowError:
            raise _BrokenError("a position is an integer beyond all numbers of double precision") from None


class _Reader:
    """Reads the text, and keeps the objects in which a member stands twice."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._twice: dict[int, tuple[JsonObject, list[str]]] = {}  # by identity; the object is kept, since its identity would be used again

    def read(self, raw: bytes) -> JsonObject:
        """The topology. Raises SourceError where the text is none."""
        try:
            text = raw.decode("utf-8-sig", "surrogateescape")
            value = json.loads(text, object_pairs_hook=self._object, parse_constant=_no_number)
        except RecursionError:
            raise _no_topology(self._shown, "it is nested too deeply") from None
        except ValueError as fault:
            raise _no_topology(self._shown, str(fault)) from None
        if not isinstance(value, dict) or value.get("type") != "Topology":
            raise _no_topology(self._shown, "its type is not Topology")
        if not isinstance(value.get("objects"), dict) or not isinstance(value.setdefault("arcs", []), list):
            raise _no_topology(self._shown, "it has no objects, or its arcs are not a list")
        transform = value.get("transform")
        if transform is not None and not (
            isinstance(transform, dict)
            and all(is_position(transform.get(name)) and len(transform[name]) == 2 for name in ("scale", "translate"))
        ):
            raise _no_topology(self._shown, f"its transform is {shown_value(transform)}, not two numbers of scale and two of translate")
        return value

    def twice_within(self, value: Json) -> list[str]:
        """The members that stand twice in an object or below it; each is given once."""
        if not self._twice:
            return []
        found = list(self._twice.pop(id(value), (None, []))[1])
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for each in below:
            found += self.twice_within(each)
        return found

    def twice_left(self) -> list[str]:
        """The members that stand twice elsewhere."""
        return [name for _, names in self._twice.values() for name in names]

    def _object(self, pairs: list[tuple[str, Json]]) -> JsonObject:
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            self._twice[id(made)] = (made, sorted({name for name in names if names.count(name) > 1}))
        return made


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _no_topology(shown: str, said: str) -> SourceError:
    return SourceError(f"{shown} is truncated or not TopoJSON: {said}", field=shown, hint="copy or export it again")
