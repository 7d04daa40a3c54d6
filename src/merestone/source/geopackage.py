"""What only SQLite can say about a layer of a GeoPackage: how many rows it has, and which cells GDAL would turn into something else.

SQLite keeps any value in any column. GDAL makes 0 of a text in an INTEGER column, 1970 of a date that it cannot read, and ends a text at
its first NUL. One pass over the layer finds such cells; only where there are some is a second pass made, for their rows and values.
Not here: reading the rows (`vector`), edits that are still in a log (`sqlite_log`), queries without end (`sqlite_bound`).
Clauses: OGC 12-128r18 (GeoPackage 1.3), table 1 (column data types), requirement 33 (srs_id of a geometry is that of its layer).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.source.port import Misfits
from merestone.source.sqlite_bound import opened, quoted

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?)?")
_NORMAL = "'+0 days'"  # a modifier of SQLite that makes 2 March of 31 February
_LONGEST_TIME = 24  # YYYY-MM-DDTHH:MM:SS.SSSZ: what is longer has digits that GDAL leaves out, or a zone
_UNSTATED = {0, -1}  # srs_id of an undefined reference system
_UNDEFINED_BY_GDAL = "GDAL:99999"  # what GDAL writes for an undefined system of its own, also into rows of a layer of srs_id 0
_PEEKED = 1000
_HEADER = 8  # bytes: GP, version, flags, srs_id

Cell = None | int | float | str | bytes
"""A value as SQLite keeps it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What SQLite says about a layer.

    rows: how many it has. misfits: cells that are not values of their column's type. findings: rows whose geometry contradicts its layer.
    """

    rows: int
    misfits: tuple[Misfits, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A column that is judged: its name, the SQL that is true where a cell may not fit, what fits, and who says so of one value."""

    name: str
    doubt: str
    expected: str
    fits: Callable[[Cell], bool]


def look(path: Path, layer: str, schema: pa.Schema, geometry: str | None, shown: str) -> Layer:
    """Judge the cells of a layer.

    Args:
        path: the GeoPackage, finished: nothing of it in a log.
        layer: the name of its table or view.
        schema: the Arrow schema of its attribute columns as GDAL reads them, under their names in SQLite.
        geometry: the name of the geometry column, None for a table of attributes.
        shown: the path that messages name.

    Raises:
        SourceError: SQLite cannot read the file, or takes more steps than the bound (`sqlite_bound`).
    """
    judged = [each for each in (_judged(field) for field in schema) if each is not None]
    with opened(path, shown) as database:
        headers = _headers(database, layer, geometry) if geometry is not None else None
        doubts = [each.doubt for each in judged] + ([headers.doubt] if headers is not None else [])
        table = quoted(layer)
        question = f"select count(*), count(case when {' or '.join(doubts) or 'false'} then 1 end) from {table}"  # noqa: S608 - names are quoted
        rows, doubtful = database.execute(question).fetchone()
        if not doubtful:
            return Layer(rows, (), ())
        misfits = [_misfits(database, table, each) for each in judged]
        findings: list[Finding] = []
        if headers is not None and geometry is not None:
            wrong, findings = headers.judge(database, table, geometry)
            misfits.append(wrong)
        return Layer(rows, tuple(each for each in misfits if each is not None), tuple(findings))


def doubles(path: Path, layer: str, column: str, shown: str) -> pa.Array:
    """A FLOAT column as SQLite keeps it, in double precision: GDAL rounds it to single. A pyarrow float64 array; what is not a number is null."""
    with opened(path, shown) as database:
        cells = database.execute(f"select {quoted(column)} from {quoted(layer)}")  # noqa: S608 - names are quoted
        return pa.array([float(value) if isinstance(value, int | float) else None for (value,) in cells], pa.float64())


def is_stored(path: Path, layer: str | None, name: str, shown: str) -> bool:
    """Whether GDAL's feature number is a primary key that the GeoPackage stores, and not a count of the rows of a view."""
    with opened(path, shown) as database:
        keys = database.execute("select name from pragma_table_info(?) where pk = 1", (layer,)).fetchall()
    return (name,) in keys


def _judged(field: pa.Field) -> _Judged | None:
    name, kind = quoted(field.name), field.type
    if pa.types.is_boolean(kind):
        return _Judged(field.name, f"({name} & 1) is not {name}", "boolean: 0 or 1", lambda value: value in (0, 1))
    if pa.types.is_integer(kind):
        spare = 64 - kind.bit_width  # shifted up and down again, a wider number loses its head, and what is not an integer becomes one
        whole = f"({name} << {spare} >> {spare})" if spare else f"({name} | 0)"
        limit = 1 << (kind.bit_width - 1)
        return _Judged(
            field.name,
            f"{whole} is not {name}",
            f"an integer of {kind.bit_width} bits",
            lambda value: isinstance(value, int | float) and value == int(value) and -limit <= value < limit,
        )
    if pa.types.is_floating(kind):
        return _Judged(field.name, f"{name} >= ''", "a number", lambda value: isinstance(value, int | float))
    if pa.types.is_date(kind):
        return _Judged(field.name, f"{name} is not date({name}, {_NORMAL})", "a date YYYY-MM-DD", _is_date)
    if pa.types.is_timestamp(kind):
        doubt = f"date({name}, {_NORMAL}) is not substr({name}, 1, 10) or substr({name}, 12, 2) > '23' or length({name}) > {_LONGEST_TIME}"
        return _Judged(field.name, doubt, "a time YYYY-MM-DDTHH:MM:SS.SSSZ, to the millisecond", _is_time)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        doubt = f"not {name} between '' and x'' or instr(cast({name} as blob), x'00')"
        return _Judged(field.name, doubt, "text without NUL", lambda value: isinstance(value, str) and "\0" not in value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _Judged(field.name, f"{name} < x''", "bytes", lambda value: isinstance(value, bytes))
    return None


def _is_date(value: Cell) -> bool:
    if not isinstance(value, str) or re.fullmatch(r"\d{4}-\d\d-\d\d", value) is None:
        return False
    return _is_moment(value)


def _is_time(value: Cell) -> bool:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[3] and found[3][3:].strip("0")):
        return False
    return _is_moment(f"{found[1]}T{found[2] or '00:00'}{(found[4] or '').replace('Z', '+00:00')}")


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _misfits(database: sqlite3.Connection, table: str, column: _Judged) -> Misfits | None:
    """The cells of one column that do not fit."""
    doubtful = database.execute(_numbered(table, column.name, column.doubt, "value"))
    found = [(row, value) for row, value in doubtful if value is not None and not column.fits(value)]
    if not found:
        return None
    return Misfits(
        column.name, np.array([row for row, _ in found], np.int64), pa.array([_shown(value) for _, value in found]), column.expected
    )


def _numbered(table: str, column: str, doubt: str, wanted: str) -> str:
    """SQL for the doubtful cells of a column (`value`), with their rows: from 1, in the order in which the table is read."""
    cells = f"select row_number() over () as number, {quoted(column)} as value from {table}"  # noqa: S608 - names are quoted
    return f"select number, {wanted} from ({cells}) where {doubt.replace(quoted(column), 'value')}"  # noqa: S608 - as above


def _shown(value: Cell) -> str:
    if isinstance(value, bytes):
        return f"x'{value[:20].hex()}'{' ...' if len(value) > 20 else ''}"
    return f"{value!r}" if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class _Headers:
    """The first bytes of the geometries of a layer: which are as they should be.

    unstated: the srs_id that name no reference system; a row that carries one says nothing against its layer.
    """

    doubt: str
    srs_id: int
    names: dict[int, str]
    unstated: frozenset[int]

    def judge(self, database: sqlite3.Connection, table: str, geometry: str) -> tuple[Misfits | None, list[Finding]]:
        """Cells that hold no geometry, and rows that say another reference system than their layer."""
        wrong: list[tuple[int, Cell]] = []
        others: list[tuple[int, int]] = []
        head_of = f"typeof(value), substr(value, 1, {_HEADER})"
        for row, kind, head in database.execute(_numbered(table, geometry, self.doubt, head_of)):
            srs_id = _srs_id(head)
            if srs_id is None:
                wrong.append((row, f"{kind} {_shown(head)}"))
            elif srs_id not in self.unstated and self.names.get(srs_id, str(srs_id)) != self.names.get(self.srs_id, str(self.srs_id)):
                others.append((row, srs_id))
        misfits = None
        if wrong:
            misfits = Misfits(
                geometry, np.array([row for row, _ in wrong], np.int64), pa.array([said for _, said in wrong]), "a GeoPackage geometry"
            )
        return misfits, [self._contradiction(geometry, others)] if others else []

    def _contradiction(self, geometry: str, others: Sequence[tuple[int, int]]) -> Finding:
        stated = ", ".join(sorted({self.names.get(each, f"srs_id {each}") for _, each in others}))
        rows = ", ".join(str(row) for row, _ in others[:SAMPLES]) + (", ..." if len(others) > SAMPLES else "")
        layer = self.names.get(self.srs_id, f"srs_id {self.srs_id}")
        return catalogue.CRS_MISMATCH.finding(
            geometry,
            count=len(others),
            features=tuple(Sample(None, row, observed=self.names.get(each, f"srs_id {each}")) for row, each in others[:SAMPLES]),
            case="mark",
            layer=layer,
            stated=stated,
            rows=rows,
        )


def _headers(database: sqlite3.Connection, layer: str, geometry: str) -> _Headers | None:
    stated = database.execute(
        "select srs_id from gpkg_geometry_columns where lower(table_name) = lower(?) and lower(column_name) = lower(?)", (layer, geometry)
    ).fetchone()
    if stated is None:
        return None
    known = database.execute("select srs_id, organization, organization_coordsys_id from gpkg_spatial_ref_sys where srs_id > 0")
    names = {srs_id: f"{str(authority).upper()}:{code}" for srs_id, authority, code in known}
    unstated = frozenset({*_UNSTATED, *(srs_id for srs_id, name in names.items() if name == _UNDEFINED_BY_GDAL)})
    column = quoted(geometry)
    first = f"select {column} as value from {quoted(layer)} limit {_PEEKED}"  # noqa: S608 - names are quoted
    usual = database.execute(f"select distinct substr(value, 1, {_HEADER}) from ({first})")  # noqa: S608 - as above
    usable = [head for (head,) in usual if _srs_id(head) in {stated[0], *unstated}]
    # One comparison a row and header: everything that begins with it lies between it and the next number
    passes = [f"{column} between x'{head.hex()}' and x'{int.from_bytes(head) + 1:016x}'" for head in usable]
    return _Headers(f"{column} is not null and not ({' or '.join(passes) or 'false'})", stated[0], names, unstated)


def _srs_id(head: Any) -> int | None:
    """The reference system in the header of a geometry, None where it is another header."""
    if not isinstance(head, bytes) or len(head) < _HEADER or head[:2] != b"GP":
        return None
    return int.from_bytes(head[4:8], "little" if head[3] & 1 else "big", signed=True)
