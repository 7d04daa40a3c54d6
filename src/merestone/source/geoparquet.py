"""GeoParquet 0.1 to 1.1, Parquet with native GEOMETRY columns, and plain Parquet as a table without geometry.

Not here: what a CRS is (`normalise.crs`), GDAL's formats (`vector`).
Clauses: GeoParquet 1.1.0, "File metadata" and "Column metadata": a missing `crs` is OGC:CRS84, an explicit null is no CRS; coordinates
are x, y whatever the axis order of the CRS; the geometry is the column that `geo` names, whatever other columns are called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merestone.errors import SourceError
from merestone.results.finding import Finding
from merestone.source import geoarrow
from merestone.source.columns import checked_text, nfc_names, plain, plain_type
from merestone.source.crs_assertion import with_assertion
from merestone.source.located import Located
from merestone.source.port import BATCH_ROWS, Delivery, GeometryColumn, SourceSpec

_FAULTS = (pa.ArrowException, OSError)
# Read, not mapped: a mapped file stays in the resident set until its end, and one that another program rewrites would end the process (SIGBUS).
# Through a buffer, so that a file of one huge row group is not taken in whole columns; not buffered ahead, which takes whole files.
_BUFFER = 1 << 20


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
            geo = _geo(schema, spec.path) or _native(file)
        columns: dict[str, Any] = geo.get("columns", {}) if geo else {}
        machinery = _covering_columns(columns)
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
                geometries[name] = _geometry(name, column)
        missing = sorted(set(columns) - set(schema.names))
        if missing:
            raise SourceError(f"{spec.path}: the geo metadata names {missing[0]!r}, which is no column", hint="export it again")
        primary = self._primary(geo, geometries, names)
        if primary is not None:
            primary, findings = with_assertion(geometries[primary.name], spec.crs)
        self._delivery = Delivery(
            path=spec.path,
            driver="Parquet",
            layer=None,
            schema=pa.schema(
                [
                    pa.field(name, pa.binary() if encoding else plain_type(field.type))
                    for name, field, encoding in zip(names, fields, self._encodings, strict=True)
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

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[Any]:
        """The rows in file order; see `merestone.source.port.Source.batches`."""
        row = 1
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
        """None: everything is known from the footer."""
        return ()

    def _open(self) -> Any:
        try:
            return pq.ParquetFile(self._found.path, buffer_size=_BUFFER, pre_buffer=False)
        except _FAULTS as fault:
            raise SourceError(
                f"{self._spec.path} is truncated or not Parquet: {_first_line(fault)}",
                field=self._spec.path,
                hint="copy or export it again",
            ) from fault

    def _shaped(self, batch: Any, first_row: int) -> Any:
        out = []
        for at, encoding, field in zip(self._kept, self._encodings, self._delivery.schema, strict=True):
            column = plain(batch.column(at))
            if encoding == "WKB":
                column = column.cast(pa.binary())
            elif encoding is not None:
                column = geoarrow.to_wkb(encoding, column)
            else:
                column = checked_text(column, path=self._spec.path, name=field.name, first_row=first_row)
            out.append(column)
        return pa.RecordBatch.from_arrays(out, schema=self._delivery.schema)

    def _primary(self, geo: dict[str, Any] | None, geometries: dict[str, GeometryColumn], names: list[str]) -> GeometryColumn | None:
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
                f"{self._spec.path}: primary_column {label!r} of the geo metadata is no geometry column; columns: {', '.join(names)}",
                hint="export it again, or name the column in source.geometry",
            )
        return geometries[label]


def _geo(schema: Any, path: str) -> dict[str, Any] | None:
    raw = (schema.metadata or {}).get(b"geo")
    if raw is None:
        return None
    try:
        geo = json.loads(raw)
    except ValueError as fault:
        raise SourceError(f"{path}: the geo metadata is no JSON: {fault}", field=path, hint="export it again") from None
    if not isinstance(geo, dict) or not isinstance(geo.get("columns"), dict):
        raise SourceError(f"{path}: the geo metadata has no columns", field=path, hint="export it again")
    return geo


def _native(file: Any) -> dict[str, Any] | None:
    """What Parquet's own GEOMETRY and GEOGRAPHY types say, in the words of `geo`: without a `crs` they are OGC:CRS84."""
    leaves = {file.schema.column(at).path: file.schema.column(at) for at in range(len(file.schema.names))}
    columns: dict[str, Any] = {}
    for field in file.schema_arrow:
        leaf = leaves.get(field.name)
        kind = json.loads(leaf.logical_type.to_json()).get("Type") if leaf is not None else None
        if kind not in {"Geometry", "Geography"}:
            continue
        described = json.loads((field.metadata or {}).get(b"ARROW:extension:metadata") or b"{}")
        crs = described.get("crs", "OGC:CRS84")
        crs = "EPSG:" + crs.removeprefix("srid:") if isinstance(crs, str) and crs.startswith("srid:") else crs
        columns[field.name] = {"encoding": "WKB", "crs": crs, "edges": "planar" if kind == "Geometry" else "spherical"}
    if not columns:
        return None
    return {"columns": columns, "primary_column": next(iter(columns)) if len(columns) == 1 else None}


def _covering_columns(columns: dict[str, Any]) -> set[str]:
    """Top-level columns that only cover a geometry column: {"covering": {"bbox": {"xmin": ["bbox", "xmin"], ...}}}."""
    return {
        path[0]
        for column in columns.values()
        for paths in (column.get("covering") or {}).values()
        for path in paths.values()
        if isinstance(path, list) and path and isinstance(path[0], str)
    }


def _encoding(column: dict[str, Any], field: Any, path: str) -> str:
    encoding = str(column.get("encoding", "WKB"))
    kind = plain_type(field.type)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    if encoding.upper() == "WKB" and is_bytes:
        return "WKB"
    if geoarrow.can_read(encoding, kind):
        return encoding
    raise SourceError(
        f"{path}: geometry column {field.name!r} has the encoding {encoding!r} over {kind}, which is not read",
        field=field.name,
        hint="export it with WKB",
    )


def _geometry(name: str, column: dict[str, Any]) -> GeometryColumn:
    edges, epoch = str(column.get("edges", "planar")), column.get("epoch")
    crs: str | None = "OGC:CRS84"
    note = "GeoParquet default"
    if "crs" in column:
        given = column["crs"]
        # version 0.1 to 0.3 wrote WKT, later ones PROJJSON
        crs, note = (given if given is None or isinstance(given, str) else json.dumps(given, ensure_ascii=False)), "geo metadata"
    if crs is None:
        note = "crs null in the geo metadata"
    return GeometryColumn(name, crs, note, edges=edges, epoch=None if epoch is None else float(epoch))


def _first_line(fault: BaseException) -> str:
    return str(fault).split("\n", 1)[0][:200]
