"""A version, or a change, as a file or text for other tools: GeoParquet, GeoPackage, GeoJSON.

Not here: showing the live files in place (`dataset.views`), which is cheaper for DuckDB, GDAL and QGIS.

Coordinates are those of the dataset, in its CRS and x before y. GeoJSON in another CRS than WGS 84 says so in a `crs` member (GeoJSON 2008;
RFC 7946 knows none). A text sequence can name none: it is in WGS 84 (`text_crs`).
Files are written beside their place and then moved there: whole, or not at all.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from merestone.dataset.columns import Columns, geo_of
from merestone.dataset.feed import Changes
from merestone.dataset.manifest import Box
from merestone.dataset.version import Version
from merestone.errors import MerestoneError, UsageError
from merestone.identity import key as keys
from merestone.inspect.in_geopackage import Held, fine_times, geometries_of
from merestone.inspect.output import written_whole
from merestone.inspect.text_crs import in_wgs84
from merestone.json_value import Json, JsonObject
from merestone.later import later

if TYPE_CHECKING:
    import shapely
    from pyogrio import raw
else:
    raw = later("pyogrio.raw")
    shapely = later("shapely")

RECORD_SEPARATOR = "\x1e"
"""What begins each text of a GeoJSON text sequence (RFC 8142)."""
FEED_METADATA = "merestone"
"""The metadata key of a feed in Parquet under which `changes_file` writes what it is about."""
_WGS84 = 4326
_GPKG_TYPES = {
    "point": "Point",
    "linestring": "LineString",
    "polygon": "Polygon",
    "multipolygon": "MultiPolygon",
    "multipoint": "MultiPoint",
    "multilinestring": "MultiLineString",
    "geometrycollection": "GeometryCollection",
}
_DIMENSIONS = {"xy": "", "xyz": " Z", "xym": " M", "xyzm": " ZM"}

Value: TypeAlias = object
"""A value of a row, as Arrow gives it to Python."""
Writer = TypeVar("Writer", bound=Callable[..., None])
Rows = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RowForm:
    """What a file has to know of the rows that are written to it: the dataset's name, its contract's body, key columns, and columns.

    fine: columns of instants with digits below the millisecond, as far as that is known.
    """

    name: str
    contract: Mapping[str, Json]
    key: tuple[str, ...]
    columns: Columns
    fine: frozenset[str] = frozenset()


def form_of(version: Version) -> RowForm:
    """The form of a version's rows."""
    manifest = version.manifest
    return RowForm(manifest.name, manifest.contract, tuple(manifest.key["columns"]), version.columns)


def version_file(version: Version, path: str, *, columns: Sequence[str] | None = None, bbox: Box | None = None) -> int:
    """Write a version, or some columns and a box of it, in the format of the file's extension. Memory is bounded by a row group.

    Args:
        version: what to write.
        path: .parquet or .geoparquet, .gpkg, .geojson or .json (one collection), .geojsons (text sequence), .geojsonl (a feature a line).
        columns: names, in the order wanted; None for all.
        bbox: x, y minimum then maximum in the dataset's CRS.

    Returns:
        How many features were written.

    Raises:
        UsageError: an extension that is not in the list, an unknown column, no box; no feature to write to a text sequence.
        StoreError: the file cannot be written.
        CorruptError: a data file is missing, cut or altered.
    """
    check_version_path(path)
    wanted = version.selected(columns)
    names = wanted.names
    form = form_of(version)
    if Path(path).suffix.lower() == ".gpkg":
        form = replace(form, fine=fine_times(wanted, lambda wanted: version.batches(wanted, bbox)))
    with written_whole(path) as place:
        return write_rows(form, version.batches(columns, bbox), place, names)


def check_version_path(path: str, parameter: str = "out") -> None:
    """Refuse a file name that no rows can be written to. Raises UsageError."""
    _writer(path, _VERSION_WRITERS, parameter)


def write_rows(form: RowForm, batches: Rows, path: str, columns: Sequence[str] | None = None) -> int:
    """Write rows in the format of the file's extension, at that very place (see `written_whole`).

    Args:
        form: what the rows are.
        batches: pyarrow.RecordBatch with the columns.
        path: as for `version_file`.
        columns: the names in the batches; None for all of the form.

    Returns:
        How many rows were written.

    Raises:
        MerestoneError: what reading the batches raised, whatever the writer made of it.
        UsageError: no row for a format that cannot say that there is none.
    """
    count = _Count(batches)
    names = list(columns) if columns is not None else form.columns.schema.names
    try:
        _writer(path, _VERSION_WRITERS)(form, names, iter(count), path)
    except Exception:  # a writer in C raises what it likes where its rows break off; the fault of reading them is the one that counts
        if count.fault is not None:
            raise count.fault from None
        raise
    if not count.rows and Path(path).suffix.lower() in _SEQUENCES:
        raise UsageError(
            "no features to write: a GeoJSON text sequence without features is a file of 0 bytes, like an export that broke off",
            field="out",
            hint="write .geojson, .gpkg or .parquet, which can say that there is none",
        )
    return count.rows


def changes_file(version: Version, change: Changes, path: str, about: Mapping[str, Json] | None = None) -> None:
    """Write a change with its rows before and after.

    Args:
        version: the version that the change leads to.
        change: `feed.changes(..., with_rows=True)`.
        path: .parquet or .geoparquet, .geojsons (text sequence), .geojsonl (a feature a line).
        about: what `apply` needs to know of the two versions; it goes into the metadata of Parquet.

    Raises:
        UsageError, StoreError: as `version_file`.
    """
    writer = _writer(path, _CHANGES_WRITERS)
    table = changes_table(version, change)
    with written_whole(path) as place:
        writer(version, table, place, about)


def check_changes_path(path: str) -> None:
    """Refuse a file name that no change can be written to, before anything is read. Raises UsageError."""
    _writer(path, _CHANGES_WRITERS)


def changes_table(version: Version, change: Changes) -> pa.Table:
    """A change as one table, one row per touched key, ordered by key bytes.

    Columns: `feature_id`; `class`, `reversed`, `rekeyed`, `backfilled`, `attributes_changed`, `geometry_changed`, `geometry_change` (the largest
    distance, in units of the CRS), `fields`; `old_partition`, `partition`; `before` and `after` (structs of all attributes, null where
    the feature did not or does not exist); `key` (canonical bytes), `old_digest`, `digest`; `geometry` (after) and `geometry_before`, as
    WKB.
    """
    feed, geometry = change.touched, version.columns.geometry
    before = _aligned(change.before, feed.had, version.columns.schema)
    after = _aligned(change.after, feed.has, version.columns.schema)
    size = len(feed)
    flags = {"before": feed.had, "after": feed.has}
    sides = {}
    for name, rows in (("before", before), ("after", after)):
        fields = [each for each in rows.schema if each.name != geometry]
        missing = pa.array(~np.asarray(flags[name].combine_chunks()).astype(bool))
        arrays = [rows.column(each.name).combine_chunks() for each in fields]
        sides[name] = pa.StructArray.from_arrays(arrays, fields=fields, mask=missing) if fields else pa.nulls(size, pa.struct([]))
    ids = keys.ids_of(feed.key.combine_chunks()) if size else pa.array([], pa.string())
    return pa.table(
        {
            "feature_id": ids,
            "class": feed.kind,
            "reversed": feed.reversed,
            "rekeyed": feed.rekeyed,
            "backfilled": feed.backfilled,
            "attributes_changed": feed.attributes,
            "geometry_changed": feed.geometry,
            "geometry_change": feed.geometry_change,
            "fields": feed.fields,
            "old_partition": feed.old_partition,
            "partition": feed.partition,
            "before": sides["before"],
            "after": sides["after"],
            "key": feed.key,
            "old_digest": feed.old_digest,
            "digest": feed.digest,
            "geometry": after.column(geometry),
            "geometry_before": before.column(geometry),
        }
    )


def _aligned(rows: pa.Table | None, there: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """The rows of one side, one per row of the feed: nulls where the feature is not on this side."""
    flags = np.asarray(there.combine_chunks()).astype(bool)
    if rows is None:
        rows = schema.empty_table()
    place = pa.array(np.cumsum(flags) - 1, mask=~flags)
    return rows.combine_chunks().take(place)


# --- GeoJSON ---------------------------------------------------------------------------------------------------------------------------


def features(batches: Rows, geometry: str, id_columns: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    """Rows as GeoJSON features, one text each without line breaks.

    Args:
        batches: record batches with `columns`.
        geometry: the name of the geometry column; null where it is not among them.
        id_columns: the key; the feature's `id` is its text, left out where a key column is missing.
        columns: the names in the batches; all but the geometry become properties.
    """
    keyed = all(name in columns for name in id_columns)
    for batch in batches:
        shapes = _shapes(batch.column(geometry)) if geometry in columns else ["null"] * batch.num_rows
        ids = keys.feature_ids(batch, id_columns).to_pylist() if keyed else None
        properties = batch.select([name for name in columns if name != geometry]).to_pylist()
        for place, shape in enumerate(shapes):
            named = f'"id":{_json(ids[place])},' if ids is not None else ""
            yield f'{{"type":"Feature",{named}"geometry":{shape},"properties":{_json(properties[place])}}}'


def change_features(table: pa.Table) -> Iterator[str]:
    """The rows of `changes_table` as GeoJSON features: the geometry after, and `before`, `after` and `geometry_before` as properties."""
    names = [
        "class",
        "reversed",
        "rekeyed",
        "backfilled",
        "attributes_changed",
        "geometry_changed",
        "geometry_change",
        "fields",
        "old_partition",
        "partition",
        "before",
        "after",
    ]
    for batch in table.combine_chunks().to_batches(max_chunksize=10_000):
        now, then = _shapes(batch.column("geometry")), _shapes(batch.column("geometry_before"))
        ids = batch.column("feature_id").to_pylist()
        for place, properties in enumerate(batch.select(names).to_pylist()):
            values = _json(properties)[:-1]
            yield (
                f'{{"type":"Feature","id":{_json(ids[place])},"geometry":{now[place]},'
                f'"properties":{values},"geometry_before":{then[place]}}}}}'
            )


def collection(texts: Iterable[str], epsg: int, members: JsonObject | None = None) -> Iterator[str]:
    """Features as one GeoJSON FeatureCollection in pieces of text; `members` are foreign members that stand before the features."""
    head: JsonObject = {"type": "FeatureCollection", **(members or {})}
    if epsg != _WGS84:
        head["crs"] = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{epsg}"}}
    yield f'{_json(head)[:-1]},"features":['
    for place, text in enumerate(texts):
        yield f"{',' if place else ''}\n{text}"
    yield "]}\n"


def _shapes(wkb: pa.Array | pa.ChunkedArray) -> list[str]:
    texts = shapely.to_geojson(shapely.from_wkb(wkb.to_numpy(zero_copy_only=False)))
    return ["null" if each is None else each for each in texts]


def _json(value: Value) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Value) -> Json:
    """A value as JSON has it: times as ISO 8601, decimals as text (exact), bytes in base64, NaN and infinity as null."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return b64encode(value).decode() if isinstance(value, bytes) else value


# --- files -----------------------------------------------------------------------------------------------------------------------------


class _Count:
    """Batches on their way to a writer, counted; a fault of reading is kept, since a writer in C would turn it into one of its own."""

    def __init__(self, batches: Rows) -> None:
        self._batches = batches
        self.rows = 0
        self.fault: MerestoneError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                self.rows += batch.num_rows
                yield batch
        except MerestoneError as fault:
            self.fault = fault
            raise


def _parquet(form: RowForm, names: Sequence[str], batches: Iterator[pa.RecordBatch], path: str) -> None:
    schema = _selected(form, names)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _geopackage(form: RowForm, names: Sequence[str], batches: Iterator[pa.RecordBatch], path: str) -> None:
    schema, contract = _selected(form, names), form.contract
    geometry = form.columns.geometry if form.columns.geometry in names else None
    promised = (contract.get("geometry") or {}).get("dimensions", "xy")
    # A layer of one type has Z in all of its rows or in none.
    kind = "Unknown" if promised == "any" else _GPKG_TYPES.get(contract["geometry_type"], "Unknown") + _DIMENSIONS[promised]
    held = Held(
        schema,
        batches,
        geometry=geometry,
        geometries=geometries_of(contract, form.columns.geometry),
        fine=form.fine,
        as_json=_json,
    )
    try:
        raw.write_arrow(
            pa.RecordBatchReader.from_batches(held.schema, iter(held)),
            path,
            layer=form.name,
            driver="GPKG",
            geometry_name=geometry,
            geometry_type=kind if geometry else None,
            crs=f"EPSG:{form.columns.epsg}" if geometry else None,
            FID=held.fid,
            GEOMETRY_NAME=geometry or "geom",
        )
    except Exception:  # as in `write_rows`
        if held.fault is not None:
            raise held.fault from None
        raise


def _geojson(form: RowForm, names: Sequence[str], batches: Iterator[pa.RecordBatch], path: str) -> None:
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(collection(_texts(form, names, batches), form.columns.epsg, {"name": form.name}))


def _sequence(separator: str) -> Callable[[RowForm, Sequence[str], Iterator[pa.RecordBatch], str], None]:
    def write(form: RowForm, names: Sequence[str], batches: Iterator[pa.RecordBatch], path: str) -> None:
        with Path(path).open("w", encoding="utf-8") as file:
            there = in_wgs84(batches, [form.columns.geometry], form.columns.epsg)
            file.writelines(f"{separator}{text}\n" for text in _texts(form, names, there))

    return write


def _texts(form: RowForm, names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    for name in names:
        if pa.types.is_binary(form.columns.schema.field(name).type) and name != form.columns.geometry:
            raise UsageError(
                f"GeoJSON cannot hold the bytes of {name!r}",
                field="out",
                hint=f"write .parquet or .gpkg, or choose all columns but {name}: «columns»",
            )
    return features(batches, form.columns.geometry, form.key, names)


def _selected(form: RowForm, names: Sequence[str]) -> pa.Schema:
    schema = form.columns.schema
    return pa.schema([schema.field(name) for name in names], metadata=schema.metadata if form.columns.geometry in names else None)


def _changes_parquet(version: Version, table: pa.Table, path: str, about: Mapping[str, Json] | None) -> None:
    schema = version.columns.schema
    metadata = {FEED_METADATA: json.dumps(about, ensure_ascii=False)} if about is not None else {}
    geo = geo_of(schema, f"version {version.number}")
    column = geo["columns"][geo["primary_column"]]
    metadata["geo"] = json.dumps({**geo, "primary_column": "geometry", "columns": {"geometry": column, "geometry_before": column}})
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")


def _changes_sequence(separator: str) -> Callable[[Version, pa.Table, str, Mapping[str, Json] | None], None]:
    def write(version: Version, table: pa.Table, path: str, _about: Mapping[str, Json] | None) -> None:
        rows = table.combine_chunks().to_batches()
        there = pa.Table.from_batches(in_wgs84(rows, ["geometry", "geometry_before"], version.columns.epsg), schema=table.schema)
        with Path(path).open("w", encoding="utf-8") as file:
            file.writelines(f"{separator}{text}\n" for text in change_features(there))

    return write


_SEQUENCES = (".geojsons", ".geojsonl")
_VERSION_WRITERS: dict[str, Callable[[RowForm, Sequence[str], Iterator[pa.RecordBatch], str], None]] = {
    ".parquet": _parquet,
    ".geoparquet": _parquet,
    ".gpkg": _geopackage,
    ".geojson": _geojson,
    ".json": _geojson,
    ".geojsons": _sequence(RECORD_SEPARATOR),
    ".geojsonl": _sequence(""),
}
_CHANGES_WRITERS: dict[str, Callable[[Version, pa.Table, str, Mapping[str, Json] | None], None]] = {
    ".parquet": _changes_parquet,
    ".geoparquet": _changes_parquet,
    ".geojsons": _changes_sequence(RECORD_SEPARATOR),
    ".geojsonl": _changes_sequence(""),
}


def _writer(path: str, writers: Mapping[str, Writer], parameter: str = "out") -> Writer:
    found = writers.get(Path(path).suffix.lower())
    if found is None:
        raise UsageError(
            f"{path}: the extension names no format that can be written", field=parameter, hint=f"use one of {', '.join(writers)}"
        )
    return found
