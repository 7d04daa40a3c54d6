"""A shapefile: shapes through GDAL, attributes from the .dbf itself, row by row the same record. A .dbf alone is a table.

Not here: the .dbf's layout and encodings (`dbf`), how GDAL is called (`gdal`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from merestone.document.json_reader import parse_json
from merestone.errors import SourceError
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.columns import geometry_label, storage_of
from merestone.source.crs_assertion import with_assertion
from merestone.source.dbf import batches, open_dbf
from merestone.source.gdal import Gdal, geometry_places
from merestone.source.located import Located
from merestone.source.port import BATCH_ROWS, Delivery, GeometryColumn, SourceSpec

_WIDEST = 250  # writers that cut text cut it at 254 or 255 bytes
_WIDE = 20  # a narrower column that is always full holds codes of one length


class ShapefileSource:
    """A shapefile or a bare .dbf; see `merestone.source.port.Source`."""

    def __init__(self, spec: SourceSpec, found: Located) -> None:
        found.keep(self)
        self._found = found
        if spec.layer not in {None, found.stem}:
            raise SourceError(
                f"{found.shown} has no layer {spec.layer!r}; it has: {found.stem}", field="source.layer", hint="leave the layer out"
            )
        table_path = _part(found.path, ".dbf")
        if table_path is None:
            raise SourceError(f"{found.shown}: no .dbf stands beside it", field=found.shown, hint="deliver .shp, .shx, .dbf and .prj")
        self._table = open_dbf(table_path, shown=found.shown, encoding=spec.encoding)
        self._brimful = np.zeros(len(self._table.fields), dtype=np.int64)
        self._filled = np.zeros(len(self._table.fields), dtype=np.int64)
        self._gdal = None if found.path.suffix.lower() == ".dbf" else Gdal(found)
        schema = self._table.schema
        geometry: GeometryColumn | None = None
        findings: list[Finding] = []
        if self._gdal is not None:
            index = _part(found.path, ".shx")
            shapes = None if index is None else (index.stat().st_size - 100) // 8
            if shapes is None or shapes != len(self._table.records):
                raise SourceError(
                    f"{found.shown}: the .dbf has {len(self._table.records)} records, the .shx {shapes or 'is missing'}",
                    field=found.shown,
                    hint="deliver all parts of one export",
                )
            _refuse_cut(found)
            with self._gdal.stream(None, BATCH_ROWS, columns=[]) as (_, reader):
                described = reader.schema
            places = geometry_places(described)
            crs = _crs(described.field(places[0])) if places else None
            label = geometry_label("geometry", schema.names)
            note = ".prj" if crs else "no .prj" if _part(found.path, ".prj") is None else ".prj cannot be read"
            geometry, findings = with_assertion(GeometryColumn(label, crs, note, coded=False), spec.crs)
            schema = schema.append(pa.field(label, pa.binary()))
        self._delivery = Delivery(
            path=spec.path,
            driver="ESRI Shapefile",
            layer=found.stem,
            schema=schema,
            geometry=geometry,
            rows=len(self._table.live),
            encoding=self._table.codec,
            padded_text=True,
            findings=(*self._table.findings, *findings, *(self._gdal.spoken() if self._gdal else ())),
        )

    @property
    def delivery(self) -> Delivery:
        """What is known before reading."""
        return self._delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in file order without deleted records; see `merestone.source.port.Source.batches`."""
        self._brimful[:] = 0
        self._filled[:] = 0
        tables = batches(self._table, batch_rows)
        if self._gdal is None:
            for columns, brimful in tables:
                self._count(columns, brimful)
                yield pa.RecordBatch.from_arrays(columns, schema=self._delivery.schema)
            return
        shapes = _Shapes(self._gdal.batches(None, batch_rows, columns=[]))
        for columns, brimful in tables:
            self._count(columns, brimful)
            yield pa.RecordBatch.from_arrays([*columns, shapes(len(columns[0]), self._found.shown)], schema=self._delivery.schema)

    def late_findings(self) -> tuple[Finding, ...]:
        """Text that fills its column to the last byte, and what GDAL warned about while reading."""
        out = []
        for field, full, filled in zip(self._table.fields, self._brimful.tolist(), self._filled.tolist(), strict=True):
            if full and (field.width >= _WIDEST or (field.width >= _WIDE and full < filled)):
                out.append(catalogue.WIDTH.finding(field.name, count=full, name=field.name, width=field.width))
        return (*out, *(self._gdal.spoken() if self._gdal else ()))

    def _count(self, columns: list[Any], brimful: Any) -> None:
        self._brimful += brimful
        self._filled += np.array([len(column) - column.null_count for column in columns])


def _refuse_cut(found: Located) -> None:
    """A .shp that is shorter than its header says: GDAL would give null for the shapes that are not there."""
    with found.path.open("rb") as file:
        declared = 2 * int.from_bytes(file.read(28)[24:28], "big")
    size = found.path.stat().st_size
    if size < 100 or size < declared:
        raise SourceError(f"{found.shown} is truncated: {size} of {declared} bytes", field=found.shown, hint="copy or export it again")


class _Shapes:
    """Geometry of a stream of batches, handed out in the sizes that the table asks for."""

    def __init__(self, stream: Iterator[pa.RecordBatch]) -> None:
        self._stream = stream
        self._left = pa.array([], pa.binary())

    def __call__(self, rows: int, shown: str) -> pa.Array:
        parts = [self._left]
        held = len(self._left)
        while held < rows:
            batch = next(self._stream, None)
            if batch is None:
                raise SourceError(f"{shown}: the .shp has fewer shapes than the .dbf has records", field=shown, hint="export it again")
            column = storage_of(batch.column(batch.num_columns - 1)).cast(pa.binary())
            parts.append(column)
            held += len(column)
        joined = pa.concat_arrays(parts)
        self._left = joined.slice(rows)
        return joined.slice(0, rows)


def _part(path: Path, suffix: str) -> Path | None:
    """A part of the shapefile beside its .shp, whatever the case of its suffix."""
    if path.suffix.lower() == suffix:
        return path
    for each in path.parent.iterdir():
        if each.suffix.lower() == suffix and each.stem == path.stem:
            return each
    return None


def _crs(field: pa.Field) -> str | None:
    described = parse_json((field.metadata or {}).get(b"ARROW:extension:metadata") or b"{}")
    crs = described.get("crs")
    return crs if crs is None or isinstance(crs, str) else json.dumps(crs, ensure_ascii=False)
