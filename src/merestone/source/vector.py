"""What GDAL reads whole: GeoPackage, GeoJSON, FlatGeobuf, GML, KML, file geodatabases, TopoJSON.

Not here: shapefiles (`shapefile`), Parquet (`geoparquet`), which file is meant (`located`), how GDAL is called (`gdal`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.document.json_reader import parse_json
from merestone.errors import SourceError, UsageError
from merestone.json_value import Json, JsonObject
from merestone.results.finding import Finding
from merestone.source import epochs
from merestone.source.cells import Cells, kinds_of
from merestone.source.columns import DATETIME_TEXT, JSON_TEXT, checked_text, geometry_label, nfc_names, plain_type, storage_of
from merestone.source.crs_assertion import with_assertion
from merestone.source.flatgeobuf import kept_times
from merestone.source.gdal import Gdal, geometry_places
from merestone.source.geopackage import Layer, doubles, is_stored, look
from merestone.source.gml_schema import describe_geometries
from merestone.source.json_features import JsonCensus, census_of_collection, census_of_sequence, column_of, values_of_sequence
from merestone.source.located import Located, open_bytes
from merestone.source.port import BATCH_ROWS, Delivery, GeometryColumn, Misfits, SourceSpec, UnreadableValueError
from merestone.source.sqlite_bound import check_views
from merestone.source.sqlite_log import settled
from merestone.source.topojson import as_collection
from merestone.source.xml_features import XmlCensus as Document
from merestone.source.xml_features import census_of_gml, census_of_kml

_ONE_LAYER = {"GeoJSON", "GeoJSONSeq", "TopoJSON", "FlatGeobuf"}
_JSON = {"GeoJSON", "GeoJSONSeq"}
_COUNTED = {"FlatGeobuf", "OpenFileGDB"}  # the row count stands in a header
_UNDEFINED = {"Undefined geographic SRS": "srs_id 0", "Undefined Cartesian SRS": "srs_id -1"}


class VectorSource:
    """A delivery that GDAL reads; see `merestone.source.port.Source`."""

    def __init__(self, spec: SourceSpec, found: Located) -> None:
        found.keep(self)
        if found.format == "GPKG":
            found = settled(found)
            found.keep(self)
            check_views(found.path, found.shown)
        self._found = found
        census = self._in_json()  # before GDAL, which reads of a broken text what it can
        driver, asked = found.format, spec.layer
        if driver == "TopoJSON" or (census is not None and census.is_topology):
            driver, asked, census = "TopoJSON", None, self._in_topology(spec.layer)
            found = self._found
        self._gdal = Gdal(found)
        self._layers: list[str] = [""]
        self._systems: list[str | None] = []  # by geometry column, where they have several
        self._layer = self._chosen_layer(asked, spec.path)
        schema, first, document = self._opened()
        self._geometries = geometry_places(schema)
        numbered = found.format == "GPKG" and not is_stored(found.path, self._layer, schema.field(0).name, found.shown)
        self._places = [at for at in range(int(numbered), len(schema)) if at not in self._geometries]
        names = nfc_names([schema.field(at).name for at in self._places], found.shown)
        fields = []
        for at, name in zip(self._places, names, strict=True):
            field = schema.field(at)
            content = _content(field)
            fields.append(pa.field(name, pa.string() if content is JSON_TEXT else plain_type(field.type), metadata=content))
        self._made: JsonObject = {}  # columns that are made here and not by GDAL, whole
        self._added: list[str] = []
        self._finer: dict[str, tuple[npt.NDArray[np.int64], pa.Array]] = {}  # by column: rows, and their times as the file has them
        fields = self._with_doubles(schema, names, fields)
        if census is not None:
            names, fields = self._with_ids(names, fields, census, spec)
        if found.format == "GeoJSONSeq":
            fields = self._with_whole_times(schema, names, fields)
        fields = self._with_kept_times(fields, self._kept(census))
        geometries, findings = self._geometry_columns(schema, names, first, spec, driver)
        fields += [pa.field(each.name, pa.binary()) for each in geometries]
        geometry = _wanted(geometries, spec, found.shown)
        rows = self._gdal.count(self._layer) if found.format in _COUNTED else None
        seen = self._in_sqlite(schema, names, geometries) if found.format == "GPKG" else None
        rows = rows if seen is None else seen.rows
        if found.format == "OpenFileGDB" and not self._places and not rows:
            raise self._without_table()
        misfits = seen.misfits if seen is not None else ()
        if document is not None:
            rows, fields, said, misfits = self._in_document(document, fields, geometries)
            findings += said
        if census is not None:
            rows, misfits = census.rows, census.misfits(geometries[0].name if geometries else None, _doubles(fields))
            findings += census.findings()
        is_geopackage = found.format == "GPKG"
        self._delivery = Delivery(
            path=spec.path,
            driver=driver,
            layer=spec.layer if driver == "TopoJSON" else self._layer,
            schema=pa.schema(fields),
            geometry=geometry,
            other_geometries=tuple(each for each in geometries if each is not geometry),
            rows=rows,
            fid_column=schema.field(0).name if is_geopackage else "gml_id" if found.format == "GML" and "gml_id" in names else None,
            utc_columns=frozenset(each.name for each in fields if is_geopackage and pa.types.is_timestamp(each.type)),
            findings=(*findings, *(seen.findings if seen is not None else ()), *self._gdal.spoken()),
            misfits=tuple(each for each in misfits if each.name in {field.name for field in fields}),
        )

    def _opened(self) -> tuple[pa.Schema, str, Document | None]:
        """GDAL's schema of the layer, its name for the geometry, and what the strict reading of a GML or KML document says."""

        def described() -> tuple[pa.Schema, str]:
            with self._gdal.stream(self._layer, BATCH_ROWS) as (meta, reader):
                return reader.schema, str(meta["geometry_name"] or "")

        schema, first = described()
        document = self._in_xml(schema) if self._found.format in {"GML", "KML"} else None
        if document is not None and self._more_geometries(document, schema):
            schema, first = described()
            self._systems = document.systems(document.key(self._layer, self._layers, self._gdal.count) or "")
        return schema, first, document

    def _kept(self, census: JsonCensus | None) -> Mapping[str, Cells]:
        """Times that GDAL would change of a FlatGeobuf or of Esri's JSON: rows and texts, by column."""
        if self._found.format == "FlatGeobuf":
            with open_bytes(self._found) as file:
                return kept_times(file)
        return census.kept if census is not None else {}

    def _geometry_columns(
        self, schema: pa.Schema, names: list[str], first: str, spec: SourceSpec, driver: str
    ) -> tuple[list[GeometryColumn], list[Finding]]:
        """The geometry columns in the order of the layer, and what there is to say about the CRS of the first; `first` is GDAL's name of it."""
        geometries: list[GeometryColumn] = []
        findings: list[Finding] = []
        for at in self._geometries:
            label = geometry_label(
                (schema.field(at).name if geometries else first) or "geometry", [*names, *(each.name for each in geometries)]
            )
            described = _geometry(label, schema.field(at), driver)
            if self._systems:  # GDAL gives all of them the last one's
                own = self._systems[len(geometries)]
                described = replace(described, crs=own, note="srsName" if own is not None else "none that its geometries agree on")
            column, doubts = with_assertion(replace(described, epoch=self._epoch(schema.field(at).name)), spec.crs)
            geometries.append(column)
            findings += [] if len(geometries) > 1 else doubts
        return geometries, findings

    @property
    def delivery(self) -> Delivery:
        """What is known before reading."""
        return self._delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in file order; see `merestone.source.port.Source.batches`."""
        rows = 0
        for batch in self._gdal.batches(self._layer, batch_rows):
            yield self._shaped(batch, rows + 1)
            rows += batch.num_rows
        if self._delivery.rows is not None and rows != self._delivery.rows:
            if self._found.format == "GML" and rows < self._delivery.rows:
                raise self._stopped(rows)
            raise SourceError(
                f"{self._found.shown} breaks off: {rows} of {self._delivery.rows} rows could be read",
                field=self._found.shown,
                hint="copy or export it again",
            )

    def late_findings(self) -> tuple[Finding, ...]:
        """What GDAL warned about while reading."""
        return self._gdal.spoken()

    def _epoch(self, geometry: str) -> float | None:
        """The epoch of coordinates as the file states it beside a reference system; GDAL's description of a column has none."""
        if self._found.format == "GPKG":
            return epochs.of_geopackage(self._found.path, self._layer, geometry, self._found.shown)
        if self._found.format == "FlatGeobuf":
            with open_bytes(self._found) as file:
                return epochs.of_flatgeobuf(file)
        return None

    def _in_document(
        self, document: Document, fields: list[pa.Field], geometries: list[GeometryColumn]
    ) -> tuple[int | None, list[pa.Field], tuple[Finding, ...], tuple[Misfits, ...]]:
        """What the strict reading of a GML or KML document says: rows, fields where times of day have nanoseconds, findings, misfits.

        The texts of times that GDAL would change are kept for the batches.
        """
        key = document.key(self._layer, self._layers, self._gdal.count)
        if key is None:
            if document.is_plain:
                return None, fields, (), ()
            raise SourceError(
                f"{self._found.shown}: which of its {len(self._layers)} layers a feature is of is not clear, and some hold what would be changed",
                field=self._found.shown,
                hint="deliver each layer as a document of its own",
            )
        fields = self._with_kept_times(fields, {name: each.kept for (of, name), each in document.cells.items() if of == key})
        first = geometries[0].name if geometries else ""
        paths = dict(zip(document.geometries.get(key, {"": None}), (each.name for each in geometries), strict=False))
        return document.rows.get(key, 0), fields, document.findings(key, first), document.misfits(key, paths)

    def _with_kept_times(self, fields: list[pa.Field], kept: Mapping[str, Cells]) -> list[pa.Field]:
        """Fields where times of day have nanoseconds; what GDAL would change of times (rows and texts, by column) waits for the batches."""
        out = []
        for each in fields:
            cells = kept.get(each.name)
            if not cells:
                out.append(each)
                continue
            is_time = pa.types.is_time(each.type)
            values: pa.Array = pa.array([f"1970-01-01T{text}" if is_time else text for _, text in cells])
            values = values.cast(pa.timestamp("ns")).cast(pa.int64()).cast(pa.time64("ns")) if is_time else values
            self._finer[each.name] = np.array([row for row, _ in cells], np.int64), values
            out.append(pa.field(each.name, pa.time64("ns")) if is_time else each)
        return out

    def _in_xml(self, schema: pa.Schema) -> Document:
        """What the strict reading of a GML or KML document says; `schema` is GDAL's."""
        with open_bytes(self._found) as file:
            return (census_of_gml if self._found.format == "GML" else census_of_kml)(file, kinds_of(schema))

    def _more_geometries(self, document: Document, schema: pa.Schema) -> bool:
        """Whether the features hold geometries at several places, which GDAL now reads all: by itself it reads one of them.

        Raises:
            SourceError: a schema beside the document describes fewer of them.
        """
        key = document.key(self._layer, self._layers, self._gdal.count) or ""
        paths = list(document.geometries.get(key, ()))
        if len(paths) <= max(len(geometry_places(schema)), 1):
            return False
        described = self._found.path.with_suffix(".gfs")
        if not described.is_file() or not describe_geometries(described, key, paths):
            raise SourceError(
                f"the features of {self._found.shown} hold geometries in {', '.join(paths)}, and its schema describes one of them",
                field=self._found.shown,
                hint="deliver it without the .xsd beside it, or with one that describes them all",
            )
        return True

    def _stopped(self, rows: int) -> UnreadableValueError:
        """The error for a GML document of which GDAL read no more than some rows: it ends where it cannot read a geometry."""
        with open_bytes(self._found) as file:
            named = census_of_gml(file, {}, (str(self._layer), rows + 1)).named
        geometry = self._delivery.geometry
        return UnreadableValueError(
            self._found.shown,
            geometry.name if geometry is not None else "",
            rows + 1,
            rule="type",
            expected="a geometry that can be read",
            observed=f"GDAL stops before feature {named or rows + 1}: {rows:,} of {self._delivery.rows:,} features could be read",
            remedy="correct the geometry of this feature in the export",
        )

    def _without_table(self) -> SourceError:
        """The error for a layer in the catalogue whose own table GDAL cannot open. A delivery without columns is none, either way."""
        return SourceError(
            f"layer {self._layer!r} of {self._found.shown} has no columns and no rows: its table is truncated",
            field=self._found.shown,
            hint="copy or export it again",
        )

    def _in_sqlite(self, schema: pa.Schema, names: list[str], geometries: list[GeometryColumn]) -> Layer:
        """What SQLite says of the layer, with its columns under their delivered names."""
        attributes = [at for at in self._places if at]  # the first is the primary key or the number of the row: always an integer
        geometry = schema.field(self._geometries[0]).name if self._geometries else None
        seen = look(self._found.path, str(self._layer), pa.schema([schema.field(at) for at in attributes]), geometry, self._found.shown)
        delivered = {schema.field(at).name: name for at, name in zip(self._places, names, strict=True)}
        if geometry is not None:
            delivered[geometry] = geometries[0].name
        return replace(seen, misfits=tuple(replace(each, name=delivered[each.name]) for each in seen.misfits))

    def _in_json(self) -> JsonCensus | None:
        """What the strict reading of a GeoJSON text says; None for other formats."""
        if self._found.format not in _JSON:
            return None
        with open_bytes(self._found) as file:
            read = census_of_sequence if self._found.format == "GeoJSONSeq" else census_of_collection
            return read(file, self._found.shown)

    def _in_topology(self, asked: str | None) -> JsonCensus:
        """Take the collection that is made of a topology for the delivery; what the strict reading of both says."""
        topology = as_collection(self._found, asked)
        self._found = topology.found
        self._found.keep(self)
        with open_bytes(self._found) as file:
            census = census_of_collection(file, self._found.shown)
        census.broken += topology.broken
        census.twice = {name: [(row, 0) for row in rows] for name, rows in topology.twice.items()}
        return census

    def _with_doubles(self, schema: pa.Schema, names: list[str], fields: list[pa.Field]) -> list[pa.Field]:
        """Fields where FLOAT columns of a GeoPackage are in double precision, as SQLite keeps them."""
        for at, name in enumerate(names if self._found.format == "GPKG" else ()):
            if fields[at].type == pa.float32():
                stored = schema.field(self._places[at]).name
                self._made[name] = doubles(self._found.path, str(self._layer), stored, self._found.shown)
                fields[at] = pa.field(name, pa.float64())
        return fields

    def _with_whole_times(self, schema: pa.Schema, names: list[str], fields: list[pa.Field]) -> list[pa.Field]:
        """Fields where times are text: of a text sequence GDAL gives them to the millisecond, whatever stands there."""
        times = {
            name: schema.field(at).name
            for at, name in zip(self._places, names, strict=False)
            if name not in self._made and (pa.types.is_time(schema.field(at).type) or _content(schema.field(at)) is DATETIME_TEXT)
        }
        if not times:
            return fields
        with open_bytes(self._found) as file:
            values = values_of_sequence(file, list(times.values()))
        for name, delivered in times.items():
            self._made[name], content = column_of(values[delivered])
            fields[names.index(name)] = pa.field(name, self._made[name].type, metadata=content or DATETIME_TEXT)
        return fields

    def _with_ids(self, names: list[str], fields: list[pa.Field], census: JsonCensus, spec: SourceSpec) -> tuple[list[str], list[pa.Field]]:
        """Names and fields where features have ids: the property `id` is a column if there is one, the ids if `feature_id` names it.

        GDAL makes one column of both.
        """
        wanted: dict[str, list[Json]] = {}
        if census.ids and "id" in names and not census.has_property:
            at = names.index("id")
            del self._places[at], names[at], fields[at]
        elif census.ids and "id" in names:
            wanted["id"] = census.of_properties
        if spec.feature_id is not None:
            if spec.feature_id in names:
                raise UsageError(
                    f"{self._found.shown} has a property {spec.feature_id!r}; the ids of features need another name",
                    field="source.feature_id",
                    hint="name a column that no property has",
                )
            wanted[spec.feature_id] = census.of_features
        for name, values in wanted.items():
            array, content = column_of(values)
            self._made[name] = array
            field = pa.field(name, array.type, metadata=content)
            if name in names:
                fields[names.index(name)] = field
            else:
                names, fields = [*names, name], [*fields, field]
                self._added.append(name)
        return names, fields

    def _chosen_layer(self, asked: str | None, spec_path: str) -> str | None:
        if asked is None and self._found.format in _ONE_LAYER:
            return None
        layers = self._gdal.layers()
        self._layers = layers
        in_zip = self._found.shown != spec_path
        if len(layers) == 1 and (asked is None or (in_zip and asked == self._found.stem)):
            return layers[0]
        if asked in layers:
            return asked
        if not layers:
            raise SourceError(f"{self._found.shown} holds no features and no layers", field=self._found.shown, hint="export it again")
        listed = ", ".join(layers)
        raise SourceError(
            f"{self._found.shown} has {f'{len(layers)} layers' if asked is None else f'no layer {asked!r}; its layers'}: {listed}",
            field="source.layer",
            hint="name one of them: «layer», or source.layer in a publication file",
        )

    def _shaped(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        out = []
        for at, field in zip(self._places, self._delivery.schema, strict=False):  # geometries come after the attributes
            if field.name in self._made:
                out.append(self._made[field.name].slice(first_row - 1, batch.num_rows))
                continue
            column = storage_of(batch.column(at))
            if field.name in self._finer:
                column = _replaced(column, field.type, *self._finer[field.name], first_row)
            out.append(checked_text(column, path=self._found.shown, name=field.name, first_row=first_row))
        out += [self._made[name].slice(first_row - 1, batch.num_rows) for name in self._added]
        out += [storage_of(batch.column(at)).cast(pa.binary()) for at in self._geometries]
        for each in self._delivery.misfits:
            there = each.rows[(each.rows >= first_row) & (each.rows < first_row + batch.num_rows)] - first_row
            if len(there):
                mask = np.zeros(batch.num_rows, np.bool_)
                mask[there] = True
                at = self._delivery.schema.get_field_index(each.name)
                out[at] = pc.if_else(pa.array(mask), pa.scalar(None, out[at].type), out[at])
        return pa.RecordBatch.from_arrays(out, schema=self._delivery.schema)


def _replaced(column: pa.Array, kind: pa.DataType, rows: npt.NDArray[np.int64], values: pa.Array, first_row: int) -> pa.Array:
    """A column of one batch in another type, with other values in some rows (from 1, ascending)."""
    first, last = np.searchsorted(rows, (first_row, first_row + len(column)))
    mask = np.zeros(len(column), np.bool_)
    mask[rows[first:last] - first_row] = True
    return pc.replace_with_mask(column.cast(kind), pa.array(mask), values.slice(first, last - first))


def _doubles(fields: Sequence[pa.Field]) -> set[str]:
    return {each.name for each in fields if each.type == pa.float64()}


def _content(field: pa.Field) -> dict[bytes, bytes] | None:
    metadata = field.metadata or {}
    is_json = isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name == "arrow.json"
    if is_json or metadata.get(b"ARROW:extension:name") == b"arrow.json":
        return JSON_TEXT
    return DATETIME_TEXT if metadata.get(b"GDAL:OGR:type") == b"DateTime" else None


def _geometry(label: str, field: pa.Field, kind: str) -> GeometryColumn:
    if kind == "TopoJSON":
        return GeometryColumn(label, None, "TopoJSON states none")
    described = parse_json((field.metadata or {}).get(b"ARROW:extension:metadata") or b"{}")
    crs = described.get("crs")
    if crs is None:
        return GeometryColumn(label, None, "crs null" if kind == "GeoJSON" else "none in the file")
    if isinstance(crs, str):
        return GeometryColumn(label, crs, "file")
    if kind in _JSON and str(crs.get("id", {}).get("code")) in {"4326", "4979"}:
        # RFC 7946 section 4: WGS 84, longitude first; GDAL calls it EPSG:4979 where a position has a height
        return GeometryColumn(label, "OGC:CRS84", "RFC 7946")
    if crs.get("name") in _UNDEFINED:
        return GeometryColumn(label, None, _UNDEFINED[crs["name"]])
    return GeometryColumn(label, json.dumps(crs, ensure_ascii=False), "file")


def _wanted(geometries: Sequence[GeometryColumn], spec: SourceSpec, shown: str) -> GeometryColumn | None:
    """The geometry that the source description asks for, or the first one."""
    geometry = next((each for each in geometries if spec.geometry in (None, each.name)), None)
    if spec.geometry is not None and geometry is None:
        raise SourceError(
            f"{shown} has no geometry column {spec.geometry!r}; it has: {', '.join(each.name for each in geometries) or 'none'}",
            field="source.geometry",
            hint="name one of them, or leave out source.geometry" if geometries else "leave out source.geometry",
        )
    return geometry
