"""What the text of a cell says of the type that GDAL gives its column, and which texts GDAL would change: in GML, KML, FlatGeobuf and Esri's JSON.

GDAL makes the largest integer of a longer one, true of 5, null of a date "5" and 1 March of 30 February; it cuts times after the millisecond, drops
a zone of odd minutes, and of two values for one column it keeps one. It says little of it or nothing.
Not here: where cells stand in a file (`xml_features`, `flatgeobuf`, `esri_features`), the cells of SQLite (`geopackage`).
Clauses: XML Schema part 2 (W3C, 2004), 3.2.2 boolean, 3.2.7 dateTime, 3.2.8 time, 3.2.9 date, 3.3.13 integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import pyarrow as pa

Kind = Literal["integer", "number", "boolean", "date", "time", "datetime", "text"]
_INTEGER = re.compile(r"[+-]?\d{1,40}(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_BOOLEAN = frozenset({"true", "false", "1", "0"})
_DATE = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)")
_OF_DAY = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_TIME = re.compile(rf"{_OF_DAY}(?:\.\d{{1,3}}0*)?")
_FINE_TIME = re.compile(rf"{_OF_DAY}\.\d{{1,9}}")
# What GDAL keeps as it stands: milliseconds, and zones of whole quarters of an hour; and a day alone, which is its midnight
_DATETIME = re.compile(rf"\d{{4}}-\d\d-\d\d(?:T{_OF_DAY}(?:\.\d{{1,3}})?(?:Z|[+-]\d\d:?(?:00|15|30|45))?)?")
_EXPECTED = {
    "integer": "an integer of {bits} bits",
    "number": "a number of double precision",
    "boolean": "true or false",
    "date": "a date YYYY-MM-DD",
    "time": "a time of day HH:MM:SS, to the nanosecond",
    "datetime": "a date and time",
    "text": "text",
}
Cells = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """What a column of GDAL's holds; `many`: a list of it in each row."""

    kind: Kind
    bits: int = 64
    many: bool = False

    @property
    def expected(self) -> str:
        """What a value would be, in words."""
        return ("values that are each " if self.many else "one value, ") + _EXPECTED[self.kind].format(bits=self.bits)


def kinds_of(schema: pa.Schema) -> dict[str, ColumnKind]:
    """What the columns of GDAL's schema hold, but for geometries, binary values and the like."""
    found = {each.name: _kind_of(each) for each in schema}
    return {name: kind for name, kind in found.items() if kind is not None}


def _kind_of(column: pa.Field) -> ColumnKind | None:
    kind, many = column.type, pa.types.is_list(column.type)
    kind = kind.value_type if many else kind
    if pa.types.is_integer(kind):
        return ColumnKind("integer", kind.bit_width, many)
    tests: tuple[tuple[bool, Kind], ...] = (
        (pa.types.is_floating(kind), "number"),
        (pa.types.is_boolean(kind), "boolean"),
        (pa.types.is_date(kind), "date"),
        (pa.types.is_time(kind), "time"),
        (pa.types.is_string(kind), "datetime" if (column.metadata or {}).get(b"GDAL:OGR:type") == b"DateTime" else "text"),
    )
    return next((ColumnKind(name, many=many) for holds, name in tests if holds), None)


@dataclass(slots=True)
class Column:
    """The cells of one column that GDAL would change: rows from 1 and texts.

    kept: times that are to be read as they stand. wrong: texts outside the type of the column, and second values.
    """

    of: ColumnKind
    kept: Cells = field(default_factory=list)
    wrong: Cells = field(default_factory=list)
    _row: int = 0
    _text: str = ""

    def add(self, row: int, text: str) -> None:
        """Take in the text of one cell; rows come in their order."""
        text = text.strip() if self.of.kind != "text" else text
        if row == self._row and not self.of.many:
            if self.wrong and self.wrong[-1][0] == row:
                self.wrong.pop()
            if self.kept and self.kept[-1][0] == row:
                self.kept.pop()
            self._text = f"{self._text} and {text}"[:200]
            self.wrong.append((row, self._text))
            return
        self._row, self._text = row, text
        if not text or self.of.kind == "text":
            return
        if not is_value(text, self.of):
            self.wrong.append((row, text))
        elif is_changed(text, self.of.kind):
            self.kept.append((row, text))


def is_value(text: str, of: ColumnKind) -> bool:
    """Whether a text is a value of a kind. A time of any form is: it is read as text, and the contract judges it."""
    if of.kind == "integer":
        return _INTEGER.fullmatch(text) is not None and -(2 ** (of.bits - 1)) <= int(text.partition(".")[0]) < 2 ** (of.bits - 1)
    if of.kind == "number":
        return _INFINITE.fullmatch(text) is not None or (_NUMBER.fullmatch(text) is not None and abs(float(text)) != float("inf"))
    if of.kind == "boolean":
        return text in _BOOLEAN
    if of.kind == "date":
        return _is_day(text)
    return of.kind != "time" or _FINE_TIME.fullmatch(text) is not None or _TIME.fullmatch(text) is not None


def _is_day(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


def is_changed(text: str, kind: Kind) -> bool:
    """Whether GDAL would give another time than the text says."""
    if kind == "datetime":
        return _DATETIME.fullmatch(text) is None
    return kind == "time" and _TIME.fullmatch(text) is None
