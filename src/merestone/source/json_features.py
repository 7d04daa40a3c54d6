"""What a GeoJSON text holds, read strictly and once beside GDAL, which reads it leniently.

GDAL leaves out a part or a hole that it cannot read, a record that it cannot parse, and the first of two members with one name; it ends a
text at its first NUL, and gives a feature's id where a property called `id` is missing. What it would do so is named here.
Not here: reading rows (`vector`), whether a text is a sequence (`json_lines`).
Clauses: RFC 7946 sections 3.1 (positions) and 3.2 (a feature's id is none of its properties), RFC 8259 section 4 (names are unique),
OGC API Features part 1, 7.15 (numberMatched, numberReturned, next).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa

from merestone.document.json_reader import parse_json
from merestone.errors import SourceError
from merestone.json_value import Json, JsonObject
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.source import esri_features, whole
from merestone.source.columns import JSON_TEXT
from merestone.source.json_lines import records
from merestone.source.port import Misfits

_CHUNK = 1 << 20
_DEPTHS = {"Point": 0, "MultiPoint": 1, "LineString": 1, "Polygon": 2, "MultiLineString": 2, "MultiPolygon": 3}
_NUMBERS = frozenset({int, float})
_INT64 = range(-(2**63), 2**63)
_EXACT = range(-(2**53), 2**53 + 1)  # all of them are numbers of double precision
_BLANKS = re.compile(r"[ \t\r\n\ufeff]*")
_ABSENT: Json = object()


@dataclass(slots=True)
class JsonCensus:
    """What was counted and found.

    rows: how many features; None where the text is neither a collection of features nor one feature. ids: whether a feature has an id of its own.
    of_features, of_properties: the id of each feature, and its property called `id`; None where it has none. is_topology: the text is TopoJSON. kept:
    by column, rows and texts of times that GDAL would change. large: integers that double precision does not hold. is_esri: it is Esri's own JSON,
    and features came before the list of its fields. marks: rows by what their geometry calls its system; systems: what the document calls it.
    """

    rows: int | None = 0
    ids: bool = False
    of_features: list[Json] = field(default_factory=list)
    of_properties: list[Json] = field(default_factory=list)
    has_property: bool = False
    twice: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    cut: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    broken: list[tuple[int, str]] = field(default_factory=list)
    kept: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    large: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    part: Finding | None = None
    is_topology: bool = False
    is_esri: bool = False
    marks: dict[frozenset[str], list[int]] = field(default_factory=dict)
    systems: frozenset[str] = frozenset()

    def findings(self) -> tuple[Finding, ...]:
        """What refuses the delivery: members that stand twice, and that it is a part."""
        out = [] if self.part is None else [self.part]
        for name, places in self.twice.items():
            shown = ", ".join(_where(row, line) for row, line in places[:SAMPLES])
            out.append(
                catalogue.MEMBER_TWICE.finding(
                    name,
                    count=len(places),
                    features=tuple(Sample(None, row or None) for row, _ in places[:SAMPLES]),
                    name=repr(name),
                    places=shown + (", ..." if len(places) > SAMPLES else ""),
                )
            )
        for own, rows in self.marks.items():
            if not own & self.systems:
                most, stated = ", ".join(sorted(self.systems)) or "no stated reference system", ", ".join(sorted(own))
                samples = tuple(Sample(None, row) for row in rows[:SAMPLES])
                listed = ", ".join(f"feature {row}" for row in rows[:SAMPLES]) + (", ..." if len(rows) > SAMPLES else "")
                out.append(
                    catalogue.CRS_MISMATCH.finding(
                        "", count=len(rows), features=samples, case="marks", most=most, stated=stated, places=listed
                    )
                )
        return tuple(out)

    def misfits(self, geometry: str | None, doubles: Collection[str] = ()) -> tuple[Misfits, ...]:
        """The cells that GDAL would change.

        Args:
            geometry: the delivered name of that column.
            doubles: the columns that GDAL gives in double precision, since some of their values have decimals or are the least integer.
        """
        cut = {
            name: sorted([*self.cut.get(name, ()), *(self.large.get(name, ()) if name in doubles else ())])
            for name in {**self.cut, **self.large}
        }
        out = [_misfits(name, cells, "a value of the type of its column, without NUL") for name, cells in cut.items() if cells]
        if self.broken and geometry is not None:
            out.append(_misfits(geometry, self.broken, "a GeoJSON geometry (RFC 7946 section 3.1)"))
        return tuple(out)


def _where(row: int, line: int) -> str:
    """A place in words; line 0 is an unknown one."""
    if not line:
        return f"feature {row}" if row else "the document"
    return f"feature {row} in line {line}" if row else f"line {line}"


def _misfits(name: str, cells: list[tuple[int, str]], expected: str) -> Misfits:
    return Misfits(name, np.array([row for row, _ in cells], np.int64), pa.array([said for _, said in cells], pa.string()), expected)


def column_of(values: list[Json]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """JSON values as a pyarrow array of one type, and the field metadata that it needs: texts of JSON where they are of several."""
    kinds = {type(each) for each in values if each is not None}
    if kinds <= {int} and all(each is None or each in _INT64 for each in values):
        return pa.array(values, pa.int64()), None
    if kinds <= {str}:
        return pa.array(values, pa.string()), None
    return pa.array([None if each is None else json.dumps(each, ensure_ascii=False) for each in values], pa.string()), JSON_TEXT


def census_of_sequence(file: IO[bytes], shown: str) -> JsonCensus:
    """Read a text sequence, one feature a record.

    Raises:
        SourceError: a record is not JSON or not a feature; names its number, counted from 1.
    """
    reader = _Reader(shown)
    for row, (first, raw) in enumerate(records(file), start=1):
        text = raw.decode("utf-8", "surrogateescape").strip("\ufeff \t\r\n")
        try:
            feature, end = reader.decoder.raw_decode(text)
            said = "it is not a Feature" if not isinstance(feature, dict) or feature.get("type") != "Feature" else None
            said = "there is text after the feature" if said is None and end != len(text) else said
        except RecursionError:
            said = "it is nested too deeply"
        except ValueError as fault:
            said = str(fault)
        if said is not None:
            raise SourceError(f"{shown} is broken or cut off at record {row}: {said}", field=shown, hint="copy or export it again")
        reader.feature(feature, text, 0, len(text), partial(_line_in, text, first))
    return reader.census


def values_of_sequence(file: IO[bytes], names: list[str]) -> dict[str, list[Json]]:
    """Properties of each feature of a text sequence that `census_of_sequence` has read; None where a feature has none."""
    found: dict[str, list[Json]] = {name: [] for name in names}
    for _, raw in records(file):
        properties = parse_json(raw.decode("utf-8", "surrogateescape").strip("\ufeff \t\r\n")).get("properties") or {}
        for name, values in found.items():
            values.append(properties.get(name))
    return found


def census_of_collection(file: IO[bytes], shown: str, fields: dict[str, str] | None = None) -> JsonCensus:
    """Read a FeatureCollection (or one Feature) feature by feature; of a text of another kind nothing but its members is judged.

    Args:
        file: its bytes.
        shown: the path that messages name.
        fields: of Esri's own JSON, name and type of each field, where they are known before the text is read.

    Raises:
        SourceError: the text is not JSON to its end.
    """
    reader = _Reader(shown, fields)
    text = _Text(file, reader)
    members: JsonObject = {}
    text.expect("{")
    while not text.comes("}"):
        if members:
            text.expect(",")
        name, value = text.value(), _ABSENT
        text.expect(":")
        if name == "features" and text.comes("["):
            value = text.features()
        else:
            start = text.at
            value = text.value()
            reader.named(0, text.buffer, start, text.at, text.line)
        if name in members:
            reader.census.twice.setdefault(str(name), []).append((0, text.line(text.at)))
        members[str(name)] = value
        if name == "fields" and isinstance(value, list):
            reader.fields = reader.fields or esri_features.field_types(value)
    text.end()
    census = reader.census
    if census.is_esri and reader.fields is not None:  # they stood behind the features
        file.seek(0)
        return census_of_collection(file, shown, reader.fields)
    census.systems = esri_features.systems_of(members.get("spatialReference"))
    if members.get("type") == "Feature":
        reader.feature(members, "", 0, 0, lambda _: 1)
    elif "features" not in members or members.get("type") == "Topology":
        census.rows = None
        census.is_topology = members.get("type") == "Topology"
    if census.rows is not None:
        census.part = whole.partial(members, census.rows)
    return census


def _line_in(text: str, first: int, at: int) -> int:
    return first + text.count("\n", 0, at)


class _Reader:
    """Judges features one by one. Objects with a member twice are noted by the decoder while it reads."""

    def __init__(self, shown: str, fields: dict[str, str] | None = None) -> None:
        self.census = JsonCensus()
        self.shown = shown
        self.fields = fields  # of Esri's own JSON, once they are known
        self.decoder = json.JSONDecoder(object_pairs_hook=self._object)
        self._twice: list[str] = []

    def _object(self, pairs: list[tuple[str, Any]]) -> JsonObject:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            self._twice += [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        return made

    def forget(self) -> None:
        """Drop what was noted of a text that is to be read again from its beginning."""
        self._twice.clear()

    def named(self, row: int, text: str, start: int, end: int, line: Callable[[int], int]) -> None:
        """Give the members that were noted their place."""
        for name in self._twice:
            at = text.rfind(json.dumps(name, ensure_ascii=False), start, end)
            self.census.twice.setdefault(name, []).append((row, line(max(at, start))))
        self._twice.clear()

    def feature(self, value: Json, text: str, start: int, end: int, line: Callable[[int], int]) -> None:
        """Judge one feature, whose text stands between two places."""
        census = self.census
        row = census.rows = (census.rows or 0) + 1
        if self._twice:
            self.named(row, text, start, end, line)
        if not isinstance(value, dict):
            raise SourceError(
                f"{self.shown}: feature {row} is not an object but {json.dumps(value)[:40]}",
                field=self.shown,
                hint="copy or export it again",
            )
        properties = value.get("properties")
        if "attributes" in value and "type" not in value:  # Esri's own JSON
            properties = value["attributes"]
            self._esri(row, value.get("geometry"), properties)
        elif value.get("type") != "Feature":
            raise SourceError(
                f"{self.shown}: feature {row} says that it is of type {value.get('type')!r}",
                field=self.shown,
                hint="copy or export it again",
            )
        else:
            said = _fault(value.get("geometry"))
            if said is not None:
                census.broken.append((row, said))
        properties = properties if isinstance(properties, dict) else {}
        own, named = value.get("id"), properties.get("id", _ABSENT)
        census.ids = census.ids or own is not None
        census.has_property = census.has_property or named is not _ABSENT
        census.of_features.append(own)
        census.of_properties.append(None if named is _ABSENT else named)
        if text.find("\\u0000", start, end) >= 0 or not all(each in _EXACT for each in properties.values() if type(each) is int):
            self._suspect(row, properties)

    def _esri(self, row: int, geometry: Json, attributes: Json) -> None:
        census = self.census
        said = esri_features.geometry_fault(geometry)
        if said is not None:
            census.broken.append((row, said))
        own = esri_features.systems_of(geometry.get("spatialReference")) if isinstance(geometry, dict) else None
        if own:
            census.marks.setdefault(own, []).append(row)
        if self.fields is None:
            census.is_esri = True
            return
        for name, value in (attributes if isinstance(attributes, dict) else {}).items():
            if name not in self.fields:
                raise SourceError(
                    f"{self.shown}: feature {row} has an attribute {name!r}, which the fields of the document do not list",
                    field=name,
                    hint="export it again with all its fields",
                )
            said = esri_features.cell_fault(value, self.fields[name])
            kept = esri_features.kept_time(value, self.fields[name]) if said is None else None
            if said is not None:
                census.cut.setdefault(name, []).append((row, said))
            elif kept is not None:
                census.kept.setdefault(name, []).append((row, kept))

    def _suspect(self, row: int, properties: JsonObject) -> None:
        for name, value in properties.items():
            if isinstance(value, str) and "\0" in value:
                self.census.cut.setdefault(name, []).append((row, repr(value)))
            elif type(value) is int and value not in _INT64:
                self.census.cut.setdefault(name, []).append((row, str(value)))
            elif type(value) is int and value not in _EXACT and int(float(value)) != value:
                self.census.large.setdefault(name, []).append((row, str(value)))


class _Text:
    """A JSON text that is read piece by piece: never more of it than one feature and a chunk is held."""

    def __init__(self, file: IO[bytes], reader: _Reader) -> None:
        self._file, self._reader = file, reader
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # what is not UTF-8 is named when the rows are read
        self.buffer, self.at = "", 0
        self._lines, self._whole = 1, False

    def line(self, at: int) -> int:
        """The number of the line in which a place of the buffer lies, from 1."""
        return self._lines + self.buffer.count("\n", 0, at)

    def comes(self, mark: str) -> bool:
        """Whether a mark comes next; it is then behind."""
        self._skip()
        if self.buffer[self.at : self.at + 1] != mark:
            return False
        self.at += 1
        return True

    def expect(self, mark: str) -> None:
        """Raises SourceError where a mark does not come next."""
        if not self.comes(mark):
            raise self._broken(f"{mark!r} is missing")

    def value(self) -> Json:
        """The next value, whatever it is."""
        self._skip()
        wanted = _CHUNK
        while True:
            try:
                value, end = self._reader.decoder.raw_decode(self.buffer, self.at)
            except RecursionError:
                raise self._broken("it is nested too deeply") from None
            except ValueError as fault:
                if self._whole:
                    raise self._broken(getattr(fault, "msg", str(fault))) from None
            else:
                if end < len(self.buffer) or self._whole:  # a number at the end of the buffer may go on
                    self.at = end
                    return value
            self._reader.forget()
            self._read(wanted)
            wanted *= 2

    def features(self) -> int:
        """Judge the features of the list that has begun; gives their number."""
        count = 0
        while not self.comes("]"):
            if count:
                self.expect(",")
            self._skip()
            if self.at > _CHUNK:
                self._drop()
            start = self.at
            value = self.value()
            self._reader.feature(value, self.buffer, start, self.at, self.line)
            count += 1
        return count

    def end(self) -> None:
        """Raises SourceError where more text follows."""
        self._skip()
        if self.at < len(self.buffer):
            raise self._broken("there is text after its end")

    def _skip(self) -> None:
        while True:
            self.at = _BLANKS.match(self.buffer, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.buffer) or self._whole:
                return
            self._drop()
            self._read(_CHUNK)

    def _drop(self) -> None:
        self._lines += self.buffer.count("\n", 0, self.at)
        self.buffer, self.at = self.buffer[self.at :], 0

    def _read(self, wanted: int) -> None:
        raw = self._file.read(wanted)
        self._whole = not raw
        self.buffer += self._decoder.decode(raw, self._whole)

    def _broken(self, said: str) -> SourceError:
        return SourceError(
            f"{self._reader.shown} is truncated or not GeoJSON: {said} in line {self.line(self.at)}, after feature {self._reader.census.rows}",
            field=self._reader.shown,
            hint="copy or export it again",
        )


def _fault(geometry: Json) -> str | None:
    """What is wrong with the form of a GeoJSON geometry, None where nothing is; null is none."""
    if geometry is None:
        return None
    if not isinstance(geometry, dict):
        return f"the geometry is {shown_value(geometry)}, not an object"
    kind = geometry.get("type")
    if kind == "GeometryCollection":
        members = geometry.get("geometries")
        if not isinstance(members, list):
            return "a GeometryCollection without a list of geometries"
        for at, each in enumerate(members):
            said = "it is null" if each is None else _fault(each)
            if said is not None:
                return f"geometries[{at}]: {said}"
        return None
    if kind not in _DEPTHS:
        return f"{shown_value(kind)} is not a type of geometry"
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list):
        return f"coordinates are {shown_value(coordinates)}, not a list"
    return None if _is_nested(coordinates, _DEPTHS[kind]) else _place(coordinates, _DEPTHS[kind], "coordinates")


def _is_nested(coordinates: list[Json], depth: int) -> bool:
    """Whether coordinates are lists within lists of positions, as deep as their type says; positions are looked at in bulk."""
    if depth > 1:
        return all(isinstance(each, list) and _is_nested(each, depth - 1) for each in coordinates)
    if depth == 0:
        return not coordinates or (len(coordinates) >= 2 and set(map(type, coordinates)) <= _NUMBERS)
    if not coordinates:
        return True
    if set(map(type, coordinates)) != {list}:
        return False
    return min(map(len, coordinates)) >= 2 and set(map(type, chain.from_iterable(coordinates))) <= _NUMBERS


def _place(value: Json, depth: int, path: str) -> str | None:
    """Which part of the coordinates is not what it should be, by its path."""
    if depth == 0:
        if isinstance(value, list) and _is_nested(value, 0) and (value or path == "coordinates"):
            return None
        return f"{path} is {shown_value(value)}, not a position of two or more numbers"
    if not isinstance(value, list):
        return f"{path} is {shown_value(value)}, not a list"
    found = (_place(each, depth - 1, f"{path}[{at}]") for at, each in enumerate(value))
    return next((each for each in found if each is not None), None)


def is_position(value: Json) -> bool:
    """Whether a JSON value is a position: two or more numbers (RFC 7946 section 3.1.1)."""
    return isinstance(value, list) and len(value) >= 2 and set(map(type, value)) <= _NUMBERS


def shown_value(value: Json) -> str:
    """A JSON value as findings show it: its first sixty characters."""
    return json.dumps(value, ensure_ascii=False)[:60]
