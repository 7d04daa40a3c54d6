"""What a Parquet file says of its geometry columns: in `geo` metadata, in Parquet's own GEOMETRY and GEOGRAPHY types, or in Arrow's field metadata.

Not here: reading rows (`geoparquet`), what a CRS is (`reference.identity`).
Clauses: GeoParquet 1.1.0, "File metadata" and "Column metadata": a missing `crs` is OGC:CRS84, an explicit null is not a CRS; coordinates
are x, y whatever the axis order of the CRS. Apache Parquet, "LogicalTypes", GEOMETRY(C): without C it is OGC:CRS84; C is an authority and
a code, `srid:` and a number, `projjson:` and the name of a text in the file's key-value metadata, or PROJJSON itself.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyproj import CRS
from pyproj.exceptions import CRSError

from merestone.document.json_reader import parse_json
from merestone.errors import SourceError
from merestone.json_value import Json, JsonObject
from merestone.reference.identity import identify
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.source import epochs
from merestone.source.port import GeometryColumn

_DEFAULT = "OGC:CRS84"
_LON_LAT = frozenset({"OGC:CRS84", "EPSG:4326"})  # x is the longitude in Parquet, whatever the order of axes in the system
_WKB_EXTENSIONS = {b"geoarrow.wkb", b"ogc.wkb"}
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_TYPES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
_DIMENSIONS = ("", " Z", " M", " ZM")
_HEAD = 5  # bytes of WKB: byte order and type
_NONE = np.zeros(0, np.int64)


def stated(file: Any, path: str) -> JsonObject | None:
    """What a file says of its geometry columns, in the words of `geo`: {"columns": {name: {...}}, "primary_column": name or None}.

    Args:
        file: an open pyarrow.parquet.ParquetFile.
        path: for messages.

    Returns:
        None for a file that knows of no geometry. A `crs` that cannot be resolved is None, with `crs_note` beside it.

    Raises:
        SourceError: the `geo` metadata is not JSON, or has no columns.
    """
    geo, native = _geo(file.schema_arrow, path), _native(file)
    if geo is None:
        return native or _arrow(file.schema_arrow)
    if native is not None:  # a geometry by its type is one, also where the metadata leave it out
        geo["columns"] = {**geo["columns"], **{name: each for name, each in native["columns"].items() if name not in geo["columns"]}}
    return geo


def contradictions(file: Any, geo: JsonObject) -> list[Finding]:
    """Columns whose own type states another reference system, or other edges, than their entry in the `geo` metadata.

    A type that names no system says nothing against the metadata: writers that know no systems leave it out.
    """
    native = _native(file)
    out = []
    for name, own in (native["columns"] if native is not None else {}).items():
        said, typed = geometry_column(name, geo["columns"][name]), geometry_column(name, own)
        systems = own.get("crs_note") == "type of the column" and said.crs is not None and not _is_same(said.crs, str(typed.crs))
        if systems or said.edges != typed.edges:
            found = [f"{'no system' if each.crs is None else identify(each.crs).name}, {each.edges} edges" for each in (said, typed)]
            out.append(catalogue.CRS_MISMATCH.finding(name, case="types", metadata=found[0], type=found[1]))
    return out


def _is_same(one: str, other: str) -> bool:
    a, b = identify(one), identify(other)
    if a.code is not None and b.code is not None:
        return {a.code, b.code} <= _LON_LAT or a.code == b.code
    first, second = _crs(one), _crs(other)
    return first is not None and second is not None and first.equals(second, ignore_axis_order=True)


def index_columns(schema: pa.Schema) -> set[str]:
    """The columns in which pandas keeps a nameless index, as the file's `pandas` metadata names them: no column of the table."""
    try:
        described = parse_json((schema.metadata or {}).get(b"pandas") or b"{}")
    except ValueError:  # not written by pandas, and nothing that matters is in it
        return set()
    named = described.get("index_columns", []) if isinstance(described, dict) else []
    return {each for each in named if isinstance(each, str) and _PANDAS_INDEX.fullmatch(each)}


def covering_columns(columns: JsonObject) -> set[str]:
    """Top-level columns that only cover a geometry column: {"covering": {"bbox": {"xmin": ["bbox", "xmin"], ...}}}."""
    return {
        path[0]
        for column in columns.values()
        for paths in (column.get("covering") or {}).values()
        for path in paths.values()
        if isinstance(path, list) and path and isinstance(path[0], str)
    }


def geometry_column(name: str, column: JsonObject) -> GeometryColumn:
    """The description of a column from its entry; `name` is its delivered name."""
    edges, epoch = str(column.get("edges", "planar")), epochs.decimal_year(column.get("epoch"))
    bbox = _box(column.get("bbox"))
    if "crs" not in column:
        return GeometryColumn(name, _DEFAULT, "GeoParquet default", edges=edges, epoch=epoch, bbox=bbox)
    note = column.get("crs_note", "geo metadata")
    given, within = epochs.apart(column["crs"])
    if within is not None and epoch is not None and within != epoch:
        return GeometryColumn(name, None, f"crs of epoch {within:g} beside epoch {epoch:g} in the geo metadata", edges=edges, bbox=bbox)
    epoch = within if epoch is None else epoch
    if given is None:
        return GeometryColumn(name, None, column.get("crs_note", "crs null in the geo metadata"), edges=edges, epoch=epoch, bbox=bbox)
    # version 0.1 to 0.3 wrote WKT, later ones PROJJSON
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    if not isinstance(given, str | dict):
        return GeometryColumn(name, None, f"crs {text} in the geo metadata is not PROJJSON", edges=edges, epoch=epoch, bbox=bbox)
    if _crs(text) is None:
        return GeometryColumn(
            name, None, f"crs {text[:60]} in the geo metadata is none that PROJ knows", edges=edges, epoch=epoch, bbox=bbox
        )
    return GeometryColumn(name, text, note, edges=edges, epoch=epoch, bbox=bbox)


def _box(listed: Json) -> tuple[float, ...] | None:
    """A `bbox` as xmin, ymin, xmax, ymax, NaN where it is none; None where there is none."""
    if listed is None:
        return None
    numbers = listed if isinstance(listed, list) and all(type(each) in (int, float) for each in listed) else []
    if len(numbers) not in (4, 6):
        return (np.nan,) * 4
    half = len(numbers) // 2
    return tuple(float(each) for each in (*numbers[:2], *numbers[half : half + 2]))


class WkbSeen:
    """What the WKB of a column says of itself, against what is said of the column: types of geometry, and EWKB's mark of a reference system."""

    def __init__(self, column: GeometryColumn, entry: JsonObject) -> None:
        listed = entry.get("geometry_types")
        self._column = column
        self._listed = {str(each) for each in listed} if isinstance(listed, list) else set()
        self._seen: set[int] = set()
        self._marked: list[tuple[int, int]] = []
        self._marks = 0
        self._rows = 0

    def add(self, wkb: pa.Array) -> None:
        """Take in a pyarrow binary array, the next rows of the column."""
        codes, rows, srids = _heads(wkb)
        if self._listed:
            self._seen |= set(np.unique(codes).tolist())
        self._marks += len(rows)
        if len(self._marked) < SAMPLES:
            self._marked += zip((rows + self._rows + 1).tolist(), srids.tolist(), strict=True)
        self._rows += len(wkb)

    def findings(self) -> tuple[Finding, ...]:
        """A warning where the data hold a type that is not listed, since the data decide; an error where rows are marked otherwise."""
        out = []
        held = {f"{_TYPES[code % 1000 - 1]}{_DIMENSIONS[code // 1000]}" for code in self._seen if 1 <= code % 1000 <= len(_TYPES)}
        if not held <= self._listed:
            listed, there = ", ".join(sorted(self._listed)), ", ".join(sorted(held))
            out.append(catalogue.GEO_METADATA.finding(self._column.name, listed=listed, held=there))
        crs = None if self._column.crs is None else _crs(self._column.crs)
        stated = None if crs is None else 4326 if self._column.crs == _DEFAULT else crs.to_epsg()
        others = [(row, srid) for row, srid in self._marked if srid != stated]
        if others:
            rows = ", ".join(str(row) for row, _ in others[:SAMPLES])
            out.append(
                catalogue.CRS_MISMATCH.finding(
                    self._column.name,
                    count=self._marks,
                    features=tuple(Sample(None, row, observed=f"EPSG:{srid}") for row, srid in others[:SAMPLES]),
                    case="ewkb",
                    agreed="no stated reference system" if stated is None else f"EPSG:{stated}",
                    stated=", ".join(sorted({f"EPSG:{srid}" for _, srid in others})),
                    rows=rows + (", ..." if self._marks > len(others) else ""),
                )
            )
        return tuple(out)


_Numbers = npt.NDArray[np.int64]


def _heads(wkb: pa.Array) -> tuple[_Numbers, _Numbers, _Numbers]:
    """The ISO type code of each geometry (EWKB's flags as ISO's thousands); rows (from 0) that EWKB marks with a reference system, and which."""
    offsets = np.frombuffer(wkb.buffers()[1], np.int32)[wkb.offset : wkb.offset + len(wkb) + 1] if len(wkb) else np.zeros(1, np.int32)
    whole = np.flatnonzero((np.diff(offsets) >= _HEAD) & np.asarray(wkb.is_valid()))
    if not len(whole):
        return _NONE, _NONE, _NONE
    data = np.frombuffer(wkb.buffers()[2], np.uint8)
    alike = _one_head(data, offsets, whole)
    if alike is not None:
        return alike, _NONE, _NONE
    starts = offsets[whole].astype(np.int64)
    little = data[starts] == 1
    codes = _words(data, starts + 1, little)
    marked = (codes >> 29 & 1 == 1) & (np.diff(offsets)[whole] >= _HEAD + 4)
    srids = _words(data, starts[marked] + _HEAD, little[marked])
    there = srids != 0
    return (codes & 0x0FFFFFFF) + 1000 * ((codes >> 31 & 1) + 2 * (codes >> 30 & 1)), whole[marked][there], srids[there]


def _one_head(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], whole: _Numbers) -> _Numbers | None:
    """The type code of values that are all of one size and type and bear no mark, such as points; None where they may differ."""
    size = int(offsets[1] - offsets[0])
    if len(whole) + 1 != len(offsets) or offsets[-1] - offsets[0] != size * len(whole) or (np.diff(offsets) != size).any():
        return None
    heads = data[offsets[0] : offsets[-1]].reshape(-1, size)[:, :_HEAD]
    if any((heads[:, at] != heads[0, at]).any() for at in range(_HEAD)):
        return None
    code = _words(heads[0], np.array([1]), heads[:1, 0] == 1)
    return code if int(code[0]) < 1 << 28 else None


def _words(data: npt.NDArray[np.uint8], starts: _Numbers, little: npt.NDArray[np.bool_]) -> _Numbers:
    """The unsigned 32-bit integers at some places of a buffer, each in its own byte order."""
    found = data[starts[:, None] + np.arange(4)]
    found = np.where(little[:, None], found[:, ::-1], found).astype(np.int64)
    words: _Numbers = found[:, 0] << 24 | found[:, 1] << 16 | found[:, 2] << 8 | found[:, 3]
    return words


def _geo(schema: pa.Schema, path: str) -> JsonObject | None:
    raw = (schema.metadata or {}).get(b"geo")
    if raw is None:
        return None
    try:
        geo = parse_json(raw)
    except ValueError as fault:
        raise SourceError(f"{path}: the geo metadata is not JSON: {fault}", field=path, hint="export it again") from None
    columns = geo.get("columns") if isinstance(geo, dict) else None
    if not isinstance(columns, dict) or not all(isinstance(each, dict) for each in columns.values()):
        raise SourceError(f"{path}: the geo metadata has no columns", field=path, hint="export it again")
    found: JsonObject = geo
    return found


def _native(file: Any) -> JsonObject | None:
    """What Parquet's own types say. The type alone counts: what Arrow's schema in the footer repeats of it may be missing."""
    leaves = {file.schema.column(at).path: file.schema.column(at) for at in range(len(file.schema.names))}
    columns: JsonObject = {}
    for field in file.schema_arrow:
        leaf = leaves.get(field.name)
        kind = parse_json(leaf.logical_type.to_json()) if leaf is not None else {}
        if kind.get("Type") in {"Geometry", "Geography"}:
            edges = "planar" if kind["Type"] == "Geometry" else "spherical"
            columns[field.name] = {"encoding": "WKB", **_resolved(kind.get("crs"), file.metadata.metadata or {}), "edges": edges}
    return _unnamed(columns)


def _resolved(text: str | None, texts: dict[bytes, bytes]) -> JsonObject:
    """The `crs` of a logical type, and how it was found."""
    if not text:
        return {"crs": _DEFAULT, "crs_note": "Parquet default"}
    wanted: str | None = text
    if text.startswith("srid:"):
        wanted = "EPSG:" + text.removeprefix("srid:")
    elif text.startswith("projjson:"):
        wanted = texts.get(text.removeprefix("projjson:").encode(), b"").decode("utf-8", "replace")
    if not wanted or _crs(wanted) is None:
        return {"crs": None, "crs_note": f"the type of the column says {text[:60]!r}, which cannot be resolved"}
    return {"crs": wanted, "crs_note": "type of the column"}


def _arrow(schema: pa.Schema) -> JsonObject | None:
    """What Arrow's field metadata says, which GeoArrow writers leave in files without `geo`."""
    columns: JsonObject = {}
    for field in schema:
        metadata = field.metadata or {}
        if metadata.get(b"ARROW:extension:name") in _WKB_EXTENSIONS:
            try:
                described = parse_json(metadata.get(b"ARROW:extension:metadata") or b"{}")
            except ValueError:  # what cannot be read states no CRS: a finding says so
                described = {}
            crs = described.get("crs")
            columns[field.name] = {
                "encoding": "WKB",
                "crs": crs,
                "crs_note": "GeoArrow metadata" if crs else "no crs in the GeoArrow metadata",
            }
    return _unnamed(columns)


def _unnamed(columns: JsonObject) -> JsonObject | None:
    """Columns none of which is named the primary one."""
    if not columns:
        return None
    return {"columns": columns, "primary_column": next(iter(columns)) if len(columns) == 1 else None}


def _crs(text: str) -> CRS | None:
    try:
        return CRS.from_user_input(text)
    except CRSError:
        return None


def no_geo(path: str, schema: pa.Schema) -> Finding | None:
    """The warning for a file that knows of no geometry and has columns of bytes that may be one."""
    bytes_columns = [field.name for field in schema if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)]
    if not bytes_columns:
        return None
    names = ", ".join(bytes_columns)
    return catalogue.GEO_METADATA.finding("", case="none", file=path.rpartition("/")[2], names=names, name=bytes_columns[0])
