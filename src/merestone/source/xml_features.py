"""What a GML or KML document holds, counted and read strictly once beside GDAL.

GDAL ends the stream of a GML file at a geometry that it cannot read, leaves out what a geometry only links to, takes the numbers of a
broken position as far as they go, keeps the last of several geometries, and says nothing. What it would do so is named here.
Not here: whether the document is well-formed (`xml_check`), what the text of a cell says (`cells`), reading rows (`vector`).
Clauses: ISO 19136 (GML 3.2.1) 7.2.3 (links resolve), 10.1.4 (pos, posList, coordinates); WFS 2.0 7.7.4.2; OGC 12-007r2 (KML 2.3) 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.source.cells import Cells, Column, ColumnKind
from merestone.source.port import Misfits
from merestone.source.whole import partial

_CHUNK = 1 << 20
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"  # one way to read each text: a long one takes no longer for that
_POSITION = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER})*\s*")
_EMPTY = re.compile(r"\s*(?:nan[\s,]*)*", re.IGNORECASE)  # what GDAL writes of an empty point
_TUPLE = re.compile(rf"(?:{_NUMBER}|nan),(?:{_NUMBER}|nan)(?:,(?:{_NUMBER}|nan))?", re.IGNORECASE)
_POSITIONS = frozenset({"pos", "posList", "coordinates"})
_CODE = re.compile(r"([A-Za-z]+)(?:::|:|/[^/]*/|\.xml#|:[^:/]*:)([A-Za-z]*\d+)$")
_KML_CELLS = {
    ("Placemark", "name"): "Name",
    ("Placemark", "description"): "description",
    ("Placemark", "visibility"): "visibility",
    ("TimeStamp", "when"): "timestamp",
    ("TimeSpan", "begin"): "begin",
    ("TimeSpan", "end"): "end",
}
"""Where KML holds the cells of a placemark, below it or its times, and the columns that GDAL makes of them."""
_KML_FEATURES = frozenset({"Placemark", "GroundOverlay"})  # what is a row for GDAL
_KML_CONTAINERS = frozenset({"kml", "Document", "Folder"})
_KML_GEOMETRIES = frozenset({"Point", "LineString", "LinearRing", "Polygon", "MultiGeometry", "Model"})
_GML_GEOMETRIES = (
    "Point", "Curve", "Surface", "Solid", "LineString", "Polygon", "Geometry", "Tin", "Complex", "Ring", "Arc", "Circle", "Triangle", "Rectangle",
)  # fmt: skip
"""How the names of GML's geometries end."""
_LONGEST_CODE = 200  # characters of a name of a reference system that are looked at, from its end
_HREF = "http://www.w3.org/1999/xlink href"
_GML = "http://www.opengis.net/gml"


@dataclass(slots=True)
class _Fault:
    """One kind of fault: how often, and the first places with feature, row and what is the matter."""

    count: int = 0
    places: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, said: str) -> None:
        self.count += 1
        if len(self.places) < SAMPLES:
            self.places.append((row, said))

    def listed(self) -> str:
        return "; ".join(said for _, said in self.places) + ("; ..." if self.count > len(self.places) else "")

    def samples(self) -> tuple[Sample, ...]:
        return tuple(Sample(None, row) for row, _ in self.places)


@dataclass(slots=True)
class XmlCensus:
    """What was counted and found.

    rows: features per layer: per class, by local name, or per folder of KML that holds features, by its number. named: the feature that was
    asked for, by its own id or number. cells: by layer and column, the cells that GDAL would change. geometries: by class, the paths below a
    feature that hold a geometry. several: by layer and path, the features with several geometries there.
    """

    rows: dict[str, int] = field(default_factory=dict)
    named: str | None = None
    part: Finding | None = None
    cells: dict[tuple[str, str], Column] = field(default_factory=dict)
    geometries: dict[str, dict[str, None]] = field(default_factory=dict)
    several: dict[tuple[str, str], Cells] = field(default_factory=dict)
    _links: dict[str, _Fault] = field(default_factory=dict)
    _positions: dict[str, _Fault] = field(default_factory=dict)
    _marks: dict[tuple[str, str], dict[str, _Fault]] = field(default_factory=dict)

    def key(self, layer: str | None, layers: Sequence[str], count: Callable[[str], int | None]) -> str | None:
        """What a layer of GDAL's is called here; None where the two readings do not agree on that.

        Args:
            layer: its name.
            layers: all layers, in GDAL's order.
            count: how many features GDAL finds in one.
        """
        if layer in self.rows:
            return layer
        if len(self.rows) == len(layers) == 1:
            return next(iter(self.rows))
        filled = {name: found for name in layers if (found := count(name))}
        if list(filled.values()) != list(self.rows.values()):
            return None
        return dict(zip(filled, self.rows, strict=True)).get(layer or "", "")

    def systems(self, layer: str) -> list[str | None]:
        """What the geometries at each place of a layer call their system, as far as they agree; nothing where all places have the same one."""
        found: list[str | None] = []
        for path in self.geometries.get(layer, ()):
            codes = list(self._marks.get((layer, path.partition("|")[0]), ()))
            found.append(codes[0] if len(codes) == 1 else None)
        return found if len(set(found)) > 1 else []

    @property
    def is_plain(self) -> bool:
        """Whether GDAL reads every cell and geometry as it stands."""
        return not self.several and not any(each.kept or each.wrong for each in self.cells.values())

    def misfits(self, layer: str, geometries: Mapping[str, str]) -> tuple[Misfits, ...]:
        """The cells of a layer that hold no value of their column; `geometries`: the names of geometry columns by their paths."""
        found = [(name, each.wrong, each.of.expected) for (of, name), each in self.cells.items() if of == layer and each.wrong] + [
            (geometries[path], cells, "one geometry") for (of, path), cells in self.several.items() if of == layer and path in geometries
        ]
        return tuple(
            Misfits(name, np.array([row for row, _ in cells], np.int64), pa.array([text for _, text in cells], pa.string()), expected)
            for name, cells, expected in found
        )

    def findings(self, name: str, geometry: str) -> tuple[Finding, ...]:
        """What refuses the delivery of a layer, by its key; `geometry` is the delivered name of that column."""
        out = [] if self.part is None else [self.part]
        links, positions = self._links.get(name), self._positions.get(name)
        if links is not None:
            out.append(catalogue.LINK.finding(geometry, count=links.count, features=links.samples(), places=links.listed()))
        if positions is not None:
            out.append(catalogue.POSITION.finding(geometry, count=positions.count, features=positions.samples(), places=positions.listed()))
        for (of, _), marks in self._marks.items():
            if of == name and len(marks) > 1:
                (most, _), *others = sorted(marks.items(), key=lambda each: -each[1].count)
                for code, fault in others:
                    samples, places = fault.samples(), fault.listed()
                    out.append(
                        catalogue.CRS_MISMATCH.finding(
                            geometry, count=fault.count, features=samples, case="marks", most=most, stated=code, places=places
                        )
                    )
        return tuple(out)


def census_of_gml(file: IO[bytes], columns: Mapping[str, ColumnKind], asked: tuple[str, int] | None = None) -> XmlCensus:
    """Read a GML document that is known to be well-formed.

    Args:
        file: its bytes.
        columns: what the columns hold that GDAL makes of it.
        asked: class and number (from 1) of the feature whose name is wanted.
    """
    reader = _Gml(columns, asked)
    _parse(file, reader, namespaces=True)
    return reader.result()


def census_of_kml(file: IO[bytes], columns: Mapping[str, ColumnKind]) -> XmlCensus:
    """Read a KML document that is known to be well-formed; `columns` as for `census_of_gml`."""
    reader = _Kml(columns)
    _parse(file, reader, namespaces=False)
    return reader.result()


def _parse(file: IO[bytes], reader: _Gml | _Kml, *, namespaces: bool) -> None:
    parser = expat.ParserCreate(namespace_separator=" ") if namespaces else expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.begin, reader.end
    reader.parser = parser
    while chunk := file.read(_CHUNK):
        parser.Parse(chunk, False)
    parser.Parse(b"", True)


class _Gml:
    """Handlers of a GML document. A feature is the child of a member of a collection; a geometry is a GML element within it."""

    parser: expat.XMLParserType

    def __init__(self, columns: Mapping[str, ColumnKind], asked: tuple[str, int] | None) -> None:
        self._census = XmlCensus()
        self._columns = columns
        self._last = {name.rpartition("|")[2] for name in columns}
        self._paths: dict[tuple[str, str], str] = {}  # by class and last name, the path that has the name for its column
        self._value: list[str] | None = None  # the text of a cell
        self._held: dict[str, int] = {}  # geometries of the feature, by path
        self._asked = asked
        self._stack: list[str] = []
        self._collections = [1]  # depths of the collections that are open
        self._feature_at = self._geometry_at = 0  # depth, 0 where none is open
        self._class = self._name = self._property = ""
        self._row = 0
        self._dimension: list[int] = []
        self._text: list[str] | None = None
        self._root: dict[str, str] = {}
        self._holders: dict[str, set[str]] = {}  # class to the properties that hold a geometry
        self._linked: dict[tuple[str, str], _Fault] = {}

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        stack = self._stack
        stack.append(local)
        depth = len(stack)
        if not self._feature_at:
            self._outside(local, depth, attributes)
            return
        if depth == self._feature_at + 1:
            self._property = local
        if local in self._last and not self._geometry_at and self._property != "boundedBy":
            self._value = []
            self.parser.CharacterDataHandler = self._value.append
        is_gml = space.startswith(_GML)
        if is_gml and local[0].isupper() and not self._geometry_at and self._property != "boundedBy" and not local.startswith("Time"):
            self._geometry_at = depth
            self._holders.setdefault(self._class, set()).add(self._property)
            if local.endswith(_GML_GEOMETRIES):
                path = "|".join(stack[self._feature_at : -1])
                self._held[path] = self._held.get(path, 0) + 1
        if attributes and self._property != "boundedBy":
            self._marks(local, attributes)
        if is_gml and local in _POSITIONS and self._geometry_at:
            self._text = []
            self.parser.CharacterDataHandler = self._text.append
            self._dimension = [int(attributes["srsDimension"])] if attributes.get("srsDimension", "").isdecimal() else self._dimension

    def _outside(self, local: str, depth: int, attributes: dict[str, str]) -> None:
        if depth == 1:
            self._root = {each.rpartition(" ")[2]: value for each, value in attributes.items()}
        elif local == "truncatedResponse":
            self._root["exceededTransferLimit"] = "true"
        elif depth - 2 == self._collections[-1] and self._stack[-2].endswith(("ember", "embers")):
            if local.endswith("FeatureCollection"):
                self._collections.append(depth)
                return
            self._feature_at, self._class = depth, local
            self._row = self._census.rows[local] = self._census.rows.get(local, 0) + 1
            own = next((value for each, value in attributes.items() if each.rpartition(" ")[2] in {"id", "fid"}), None)
            self._name = own or f"{local} {self._row}"
            if self._asked == (local, self._row):
                self._census.named = self._name

    def _marks(self, local: str, attributes: dict[str, str]) -> None:
        link = attributes.get(_HREF)
        if link is not None and self._geometry_at:
            self._census._links.setdefault(self._class, _Fault()).add(self._row, f"{self._name} {local} -> {link}")  # noqa: SLF001 - its builder
        elif link is not None and len(self._stack) == self._feature_at + 1:
            self._linked.setdefault((self._class, local), _Fault()).add(self._row, f"{self._name} {local} -> {link}")
        mark = attributes.get("srsName")
        if mark is not None and self._geometry_at:
            found = _CODE.search(mark[-_LONGEST_CODE:])
            code = f"{found[1].upper()}:{found[2]}" if found else mark
            marks = self._census._marks.setdefault((self._class, self._property), {})  # noqa: SLF001 - its builder
            marks.setdefault(code, _Fault()).add(self._row, self._name)
        if attributes.get("srsDimension", "").isdecimal():
            self._dimension = [int(attributes["srsDimension"])]

    def end(self, _: str) -> None:
        depth, local = len(self._stack), self._stack.pop()
        if self._value is not None and local in self._last:
            self._cell(local, "".join(self._value))
            self._value, self.parser.CharacterDataHandler = None, None
        if self._text is not None and local in _POSITIONS:
            self._position(local, "".join(self._text))
            self._text = None
            self.parser.CharacterDataHandler = None
        if depth == self._geometry_at:
            self._geometry_at, self._dimension = 0, []
        elif depth == self._feature_at:
            self._feature_at = 0
            for path, count in self._held.items():
                self._census.geometries.setdefault(self._class, {}).setdefault(path)
                if count > 1:
                    self._census.several.setdefault((self._class, path), []).append((self._row, f"{count} geometries"))
            self._held.clear()
        elif depth == self._collections[-1] > 1:
            self._collections.pop()

    def _cell(self, local: str, text: str) -> None:
        """A cell; of elements with one name GDAL gives it to the first path, and the whole path to the others."""
        path = "|".join([*self._stack[self._feature_at :], local])
        name = path if path in self._columns else local
        if name in self._columns and (name == path or self._paths.setdefault((self._class, local), path) == path):
            self._census.cells.setdefault((self._class, name), Column(self._columns[name])).add(self._row, text)

    def _position(self, local: str, text: str) -> None:
        if local == "coordinates":  # GML 2: tuples, whose separators a document may change
            valid = _EMPTY.fullmatch(text) is not None or all(_TUPLE.fullmatch(each) for each in text.split()) or "," not in text
        else:
            count = len(text.split())
            fits = (
                2 <= count <= 4
                if local == "pos"
                else count % self._dimension[0] == 0
                if self._dimension
                else count % 2 == 0 or count % 3 == 0
            )
            valid = _EMPTY.fullmatch(text) is not None or (fits and _POSITION.fullmatch(text) is not None)
        if not valid:
            faults = self._census._positions.setdefault(self._class, _Fault())  # noqa: SLF001 - its builder
            faults.add(self._row, f"{self._name} {local} {text.strip()[:60]!r} (line {self.parser.CurrentLineNumber})")

    def result(self) -> XmlCensus:
        """What was counted and found."""
        census = self._census
        for (of, name), fault in self._linked.items():
            if name in self._holders.get(of, ()):  # a property that holds a geometry in other features
                all_links = census._links.setdefault(of, _Fault())  # noqa: SLF001 - its builder
                all_links.count += fault.count
                all_links.places = (all_links.places + fault.places)[:SAMPLES]
        census.part = partial(self._root, sum(census.rows.values()))
        return census


class _Kml:
    """Handlers of a KML document: its folders with their features, their cells, and the tuples of their coordinates."""

    parser: expat.XMLParserType

    def __init__(self, columns: Mapping[str, ColumnKind]) -> None:
        self._census = XmlCensus()
        self._columns = columns
        self._text: list[str] | None = None
        self._path: list[str] = []
        self._folders: list[str] = []  # keys of the containers that are open
        self._feature_at = 0  # depth, 0 where none is open
        self._cell: str | None = None  # the column whose value is being read
        self._data = ""  # the name of the Data that is open
        self._geometries = 0  # of the feature

    @property
    def _row(self) -> int:
        return self._census.rows[self._folders[-1]] if self._folders else 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        path = self._path
        path.append(local)
        if local in _KML_CONTAINERS and not self._feature_at:
            self._folders.append(str(len(self._census.rows)))
            self._census.rows[self._folders[-1]] = 0
        elif local in _KML_FEATURES and not self._feature_at and self._folders:
            self._feature_at, self._geometries = len(path), 0
            self._census.rows[self._folders[-1]] += 1
        elif self._feature_at:
            self._within(local, attributes)
        elif local == "coordinates":
            self._begin_text()

    def _within(self, local: str, attributes: dict[str, str]) -> None:
        depth = len(self._path) - self._feature_at
        if local in _KML_GEOMETRIES and depth == 1:
            self._geometries += 1
        if local == "coordinates":
            self._begin_text()
        elif local == "SimpleData":
            self._begin_text(attributes.get("name"))
        elif local == "Data":
            self._data = attributes.get("name", "")
        elif local == "value" and self._path[-2] == "Data":
            self._begin_text(self._data)
        elif depth == 1 or (depth == 2 and self._path[-2] in {"TimeStamp", "TimeSpan"}):
            self._begin_text(_KML_CELLS.get((self._path[-2], local)), wanted=False)

    def _begin_text(self, cell: str | None = None, *, wanted: bool = True) -> None:
        if cell is None and not wanted:
            return
        self._cell, self._text = cell, []
        self.parser.CharacterDataHandler = self._text.append

    def end(self, _: str) -> None:
        depth, local = len(self._path), self._path.pop()
        if self._text is not None:
            text, cell = "".join(self._text), self._cell
            self._text, self._cell, self.parser.CharacterDataHandler = None, None, None
            if local == "coordinates":
                self._coordinates(text)
            elif cell is not None and cell in self._columns:
                column = self._census.cells.setdefault((self._folders[-1], cell), Column(self._columns[cell]))
                column.add(self._row, text)
        if depth == self._feature_at:
            self._feature_at = 0
            if self._geometries > 1:
                self._census.several.setdefault((self._folders[-1], ""), []).append((self._row, f"{self._geometries} geometries"))
        elif local in _KML_CONTAINERS and not self._feature_at and self._folders:
            self._folders.pop()

    def _coordinates(self, text: str) -> None:
        # KML has no blank beside a comma; it is read as it is meant.
        tuples = ",".join(each.strip() for each in text.split(",")).split()
        bad = [each for each in tuples if _TUPLE.fullmatch(each) is None]
        if bad and self._folders:
            faults = self._census._positions.setdefault(self._folders[-1], _Fault())  # noqa: SLF001 - its builder
            faults.add(self._row, f"placemark {self._row} {bad[0][:60]!r} (line {self.parser.CurrentLineNumber})")

    def result(self) -> XmlCensus:
        """What was counted and found."""
        self._census.rows = {key: rows for key, rows in self._census.rows.items() if rows}
        return self._census
