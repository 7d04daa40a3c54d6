"""GeoParquet 0.1 to 1.1, Parquet with native GEOMETRY columns, and plain Parquet as a table without geometry.

Not here: what the file says of its geometry (`geo_metadata`), GDAL's formats (`vector`).
The geometry is the column that the metadata names, whatever other columns are called.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.errors import SourceError
from merestone.json_value import JsonObject
from merestone.results.finding import Finding
from merestone.source import geo_metadata, geoarrow
from merestone.source.columns import checked_text, nfc_names, plain_type, storage_of
from merestone.source.crs_assertion import with_assertion
from merestone.source.located import Located
from merestone.source.port import BATCH_ROWS, Delivery, GeometryColumn, SourceSpec, UnreadableValueError

_FAULTS = (pa.ArrowException, OSError)
# Read, not mapped: a mapped file stays in the resident set until its end, and one that another program rewrites would end the process (SIGBUS).
# Through a buffer; a file of one huge row group is not taken in whole columns; not buffered ahead, which takes whole files.
_BUFFER = 1 << 20
_DECIMAL128 = 38  # digits of Arrow's decimal128


class GeoParquetSource:
    """A Parquet file; see `merestone.source.port.Source`."""

    def __init__(self, spec: SourceSpec, found: Located) -> None:
        found.keep(self)
        self._spec = spec
        self._found = found
        if spec.layer is not None:
            raise SourceError(f"{spec.path} is Parquet and has no layers", field="source.layer", hint="leave the layer out")
        with self._open() as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            geo = geo_metadata.stated(file, spec.path)
            against = [] if geo is None else geo_metadata.contradictions(file, geo)
            uuids = {leaf.path for leaf in map(file.schema.column, range(len(file.schema))) if leaf.logical_type.type == "UUID"}
        if geo is None and spec.geometry is not None and _is_bytes(schema, spec.geometry):
            geo = {"columns": {spec.geometry: {"crs": None, "crs_note": "plain Parquet"}}, "primary_column": spec.geometry}
        columns: JsonObject = geo.get("columns", {}) if geo else {}
        machinery = geo_metadata.covering_columns(columns) | geo_metadata.index_columns(schema)
        self._kept = [at for at, name in enumerate(schema.names) if name not in machinery]
        fields = [schema.field(at) for at in self._kept]
        names = nfc_names([field.name for field in fields], spec.path)
        self._encodings: list[str | None] = []
        geometries: dict[str, GeometryColumn] = {}
        findings: list[Finding] = []
        for name, field in zip(names, fields, strict=True):
            column = columns.get(field.name)
            self._encodings.append(None if column is None else _encoding(column, field, spec.path))
            if column is not None:
                geometries[name] = geo_metadata.geometry_column(name, column)
        missing = sorted(set(columns) - set(schema.names))
        if missing:
            raise SourceError(f"{spec.path}: the geo metadata names {missing[0]!r}, which is not a column", hint="export it again")
        primary = self._primary(geo, geometries, names)
        if geo is None:
            plain_file = geo_metadata.no_geo(spec.path, schema)
            findings += [plain_file] if plain_file is not None else []
        self._entries = {
            name: columns[field.name] for name, field, encoding in zip(names, fields, self._encodings, strict=True) if encoding == "WKB"
        }
        self._seen: dict[str, geo_metadata.WkbSeen] = {}
        self._readings = [_reading(field, field.name in uuids) for field in fields]
        if primary is not None:
            primary, findings = with_assertion(geometries[primary.name], spec.crs)
        findings += against
        self._delivery = Delivery(
            path=spec.path,
            driver="Parquet",
            layer=None,
            schema=pa.schema(
                [
                    pa.field(name, pa.binary() if encoding else reading)
                    for name, reading, encoding in zip(names, self._readings, self._encodings, strict=True)
                ]
            ),
            geometry=primary,
            other_geometries=tuple(each for each in geometries.values() if primary is None or each.name != primary.name),
            rows=rows,
            findings=tuple(findings),
        )

    @property
    def delivery(self) -> Delivery:
        """What is known before reading."""
        return self._delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in file order; see `merestone.source.port.Source.batches`."""
        row = 1
        described = {each.name: each for each in (self._delivery.geometry, *self._delivery.other_geometries) if each is not None}
        self._seen = {name: geo_metadata.WkbSeen(described[name], entry) for name, entry in self._entries.items()}
        with self._open() as file:
            stream = file.iter_batches(batch_size=batch_rows, use_threads=False)
            while True:
                try:
                    batch = next(stream, None)
                except _FAULTS as fault:
                    raise SourceError(
                        f"{self._spec.path} breaks off after row {row - 1}: {_first_line(fault)}",
                        field=self._spec.path,
                        hint="copy or export it again",
                    ) from fault
                if batch is None:
                    return
                yield self._shaped(batch, row)
                row += batch.num_rows

    def late_findings(self) -> tuple[Finding, ...]:
        """What the WKB says of itself and the file of its column does not."""
        return tuple(finding for seen in self._seen.values() for finding in seen.findings())

    def _open(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._found.path, buffer_size=_BUFFER, pre_buffer=False)
        except _FAULTS as fault:
            raise SourceError(
                f"{self._spec.path} is truncated or not Parquet: {_first_line(fault)}",
                field=self._spec.path,
                hint="copy or export it again",
            ) from fault

    def _shaped(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        out = []
        for at, encoding, field in zip(self._kept, self._encodings, self._delivery.schema, strict=True):
            column = storage_of(batch.column(at))
            if encoding == "WKB":
                column = column.cast(pa.binary())
                self._seen[field.name].add(column)
            elif encoding is not None:
                column = self._wkb(encoding, column, field.name, first_row)
            elif field.type != column.type:
                column = _uuid_text(column) if pa.types.is_fixed_size_binary(column.type) else column.cast(field.type)
            else:
                column = checked_text(column, path=self._spec.path, name=field.name, first_row=first_row)
            out.append(column)
        return pa.RecordBatch.from_arrays(out, schema=self._delivery.schema)

    def _wkb(self, encoding: str, column: pa.Array, name: str, first_row: int) -> pa.Array:
        broken = geoarrow.broken_row(encoding, column)
        if broken is not None:
            raise UnreadableValueError(
                self._spec.path,
                name,
                first_row + broken,
                rule="type",
                expected=f"a geometry in the encoding {encoding!r}, null as a whole or nowhere",
                observed="a part, a position or a number within the geometry is null",
                remedy="correct the geometry of this row in the export",
            )
        return geoarrow.to_wkb(encoding, column)

    def _primary(self, geo: JsonObject | None, geometries: dict[str, GeometryColumn], names: list[str]) -> GeometryColumn | None:
        asked = self._spec.geometry
        if asked is not None:
            if asked not in geometries:
                raise SourceError(
                    f"{self._spec.path} has no geometry column {asked!r}; it has: {', '.join(geometries) or 'none'}",
                    field="source.geometry",
                    hint="name one of them, or leave out source.geometry",
                )
            return geometries[asked]
        if not geo:
            return None
        if geo.get("primary_column") is None and len(geometries) > 1:
            raise SourceError(
                f"{self._spec.path} has several geometry columns and names none the primary one: {', '.join(geometries)}",
                field="source.geometry",
                hint="name one of them in source.geometry",
            )
        (label,) = nfc_names([str(geo.get("primary_column", ""))], self._spec.path)
        if label not in geometries:
            raise SourceError(
                f"{self._spec.path}: primary_column {label!r} of the geo metadata is not a geometry column; columns: {', '.join(names)}",
                hint="export it again, or name the column in source.geometry",
            )
        return geometries[label]


def _is_bytes(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and geoarrow.is_wkb(schema.field(name).type)


def _reading(field: pa.Field, is_uuid: bool) -> pa.DataType:
    """The Arrow type in which a column is delivered: rare types that lose nothing in a common one are read as that."""
    kind = plain_type(field.type)
    if is_uuid and pa.types.is_fixed_size_binary(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind) and kind.precision <= _DECIMAL128:
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def _uuid_text(column: pa.Array) -> pa.Array:
    """UUIDs as text in the form of RFC 9562, 8-4-4-4-12 digits."""
    digits = pc.ascii_lower(pa.array([None if each is None else each.hex() for each in column.to_pylist()], pa.string()))
    return pc.replace_substring_regex(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", r"\1-\2-\3-\4-\5")


def _encoding(column: JsonObject, field: pa.Field, path: str) -> str:
    encoding = str(column.get("encoding", "WKB"))
    kind = plain_type(field.type)
    if encoding.upper() == "WKB" and geoarrow.is_wkb(kind):
        return "WKB"
    if geoarrow.can_read(encoding, kind):
        return encoding
    raise SourceError(
        f"{path}: geometry column {field.name!r} has the encoding {encoding!r} over {kind}, which is not read",
        field=field.name,
        hint="export it with WKB",
    )


def _first_line(fault: BaseException) -> str:
    return str(fault).split("\n", 1)[0][:200]
