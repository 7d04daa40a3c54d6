"""What a GML or KML document holds, counted and read strictly once beside GDAL.

GDAL ends the stream of a GML file at a geometry that it cannot read, leaves out what a geometry only links to, takes the numbers of a
broken position as far as they go, and says nothing. What it would do so is named here.
Not here: whether the document is well-formed (`xml_check`), reading rows (`vector`).
Clauses: ISO 19136 (GML 3.2.1) 7.2.3 (links resolve), 10.1.4 (pos, posList, coordinates); WFS 2.0 7.7.4.2; OGC 12-007r2 (KML 2.3) 7.2.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import IO
from xml.parsers import expat

from merestone.dataclass import dataclass
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.source.whole import partial

_CHUNK = 1 << 20
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"  # one way to read each text: a long one takes no longer for that
_POSITION = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER})*\s*")
_EMPTY = re.compile(r"\s*(?:nan[\s,]*)*", re.IGNORECASE)  # what GDAL writes of an empty point
_TUPLE = re.compile(rf"(?:{_NUMBER}|nan),(?:{_NUMBER}|nan)(?:,(?:{_NUMBER}|nan))?", re.IGNORECASE)
_POSITIONS = frozenset({"pos", "posList", "coordinates"})
_CODE = re.compile(r"([A-Za-z]+)(?:::|:|/[^/]*/|\.xml#|:[^:/]*:)([A-Za-z]*\d+)$")
_FINE_BYTES = re.compile(rb":[0-9]{2}\.[0-9]{3,}?[1-9]")  # a second with more than a thousandth
_KML_TIMES = {
    ("Placemark", "TimeStamp", "when"): "timestamp",
    ("Placemark", "TimeSpan", "begin"): "begin",
    ("Placemark", "TimeSpan", "end"): "end",
}
"""Where KML holds the times of a placemark, and the columns that GDAL makes of them."""
_FINE = re.compile(r"\s*((?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}\d*[1-9]\d*(?:Z|[+-]\d\d:?\d\d)?)\s*")
_OVERLAP = 64  # bytes of a chunk that are looked at again with the next one
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
class Census:
    """What was counted and found.

    rows: features per class, by local name; for KML all placemarks under "". named: the feature that was asked for, by its own id or number.
    finer: by class and property, the times with more than milliseconds, which GDAL cuts: rows and texts.
    """

    rows: dict[str, int] = field(default_factory=dict)
    named: str | None = None
    part: Finding | None = None
    finer: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)
    _links: dict[str, _Fault] = field(default_factory=dict)
    _positions: dict[str, _Fault] = field(default_factory=dict)
    _marks: dict[tuple[str, str], dict[str, _Fault]] = field(default_factory=dict)

    def count(self, layer: str | None, layers: int) -> int | None:
        """How many features a layer of GDAL's has, None where its name is none of the document."""
        if layer in self.rows:
            return self.rows[layer]
        return next(iter(self.rows.values())) if len(self.rows) == layers == 1 else None

    def finer_times(self, layer: str | None, layers: int, name: str) -> list[tuple[int, str]]:
        """The times of a property that have more than milliseconds: rows and texts. Rows of KML are known where it has one layer."""
        if layers > 1 and "" in self.rows:
            return []
        return self.finer.get((layer if layer in self.rows else next(iter(self.rows), ""), name), [])

    def findings(self, layer: str | None, geometry: str) -> tuple[Finding, ...]:
        """What refuses the delivery of a layer; `geometry` is the delivered name of that column."""
        name = layer if layer in self.rows else next(iter(self.rows), "")
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


def census_of_gml(file: IO[bytes], asked: tuple[str, int] | None = None) -> Census:
    """Read a GML document that is known to be well-formed.

    Args:
        file: its bytes.
        asked: class and number (from 1) of the feature whose name is wanted.
    """
    reader = _Gml(asked, with_times=_has_fine_times(file))
    _parse(file, reader, namespaces=True)
    return reader.result()


def census_of_kml(file: IO[bytes]) -> Census:
    """Read a KML document that is known to be well-formed."""
    reader = _Kml()
    _parse(file, reader, namespaces=False)
    return reader.census


def _has_fine_times(file: IO[bytes]) -> bool:
    """Whether a time with more than milliseconds may stand in a document: only then is the text of properties looked at."""
    tail, found = b"", False
    while not found and (chunk := file.read(_CHUNK)):
        found = _FINE_BYTES.search(tail + chunk) is not None
        tail = chunk[-_OVERLAP:]
    file.seek(0)
    return found


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

    def __init__(self, asked: tuple[str, int] | None, *, with_times: bool) -> None:
        self._census = Census()
        self._with_times = with_times
        self._value: list[str] | None = None  # the text of a property
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
            if self._with_times:
                self._value = []
                self.parser.CharacterDataHandler = self._value.append
        is_gml = space.startswith(_GML)
        if is_gml and local[0].isupper() and not self._geometry_at and self._property != "boundedBy" and not local.startswith("Time"):
            self._geometry_at = depth
            self._holders.setdefault(self._class, set()).add(self._property)
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
        if self._value is not None and depth == self._feature_at + 1:
            time = _FINE.fullmatch("".join(self._value))
            if time is not None:
                self._census.finer.setdefault((self._class, local), []).append((self._row, time[1]))
            self._value, self.parser.CharacterDataHandler = None, None
        if self._text is not None and local in _POSITIONS:
            self._position(local, "".join(self._text))
            self._text = None
            self.parser.CharacterDataHandler = None
        if depth == self._geometry_at:
            self._geometry_at, self._dimension = 0, []
        elif depth == self._feature_at:
            self._feature_at = 0
        elif depth == self._collections[-1] > 1:
            self._collections.pop()

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

    def result(self) -> Census:
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
    """Handlers of a KML document: its placemarks, and the tuples of their coordinates."""

    parser: expat.XMLParserType

    def __init__(self) -> None:
        self.census = Census()
        self._text: list[str] | None = None
        self._path: list[str] = []

    def begin(self, name: str, _: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        self._path.append(local)
        if local == "Placemark":
            self.census.rows[""] = self.census.rows.get("", 0) + 1
        elif local == "coordinates" or tuple(self._path[-3:]) in _KML_TIMES:
            self._text = []
            self.parser.CharacterDataHandler = self._text.append

    def end(self, name: str) -> None:
        where = tuple(self._path[-3:])
        self._path.pop()
        if self._text is None or (name.rpartition(":")[2] != "coordinates" and where not in _KML_TIMES):
            return
        if where in _KML_TIMES:
            self._time(_KML_TIMES[where], "".join(self._text))
        else:
            self._coordinates("".join(self._text))
        self._text = None
        self.parser.CharacterDataHandler = None

    def _time(self, name: str, text: str) -> None:
        time = _FINE.fullmatch(text)
        if time is not None:
            self.census.finer.setdefault(("", name), []).append((self.census.rows.get("", 0), time[1]))

    def _coordinates(self, text: str) -> None:
        # KML has no blank beside a comma; it is read as it is meant.
        tuples = ",".join(each.strip() for each in text.split(",")).split()
        bad = [each for each in tuples if _TUPLE.fullmatch(each) is None]
        if bad:
            row = self.census.rows.get("", 0)
            faults = self.census._positions.setdefault("", _Fault())  # noqa: SLF001 - its builder
            faults.add(row, f"placemark {row} {bad[0][:60]!r} (line {self.parser.CurrentLineNumber})")
