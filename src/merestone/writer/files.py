"""The objects of a version as bytes: GeoParquet data files, change log, index checkpoint, findings and rejects.

Not here: which rows belong in them (`change`), when they are written and what makes them count (`commit`).
Source: GeoParquet 1.1.0 (OGC), its covering bounding boxes and the coordinate order x, y.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.contract.contract import Contract
from merestone.dataset.manifest import DataFile, ObjectRef, sha256
from merestone.dataset.proved import footer_of
from merestone.errors import StoreError
from merestone.geometry import kernel
from merestone.json_value import JsonObject
from merestone.normalise.values import arrow_type
from merestone.reference.systems import projjson
from merestone.storage.port import ObjectFile, Store
from merestone.writer.encodings import LEVEL, encodings

_KINDS = ("", "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
_BOX = pa.struct([("xmin", pa.float32()), ("ymin", pa.float32()), ("xmax", pa.float32()), ("ymax", pa.float32())])


class Rejects(TableShape):
    """The rows of `_rejects/` (docs/spec/changes.md): the refused rows of a delivery, one for each rule that refuses it."""

    row = TableColumn(pa.int64(), nullable=False)
    feature_id = TableColumn(pa.string())
    rule = TableColumn(pa.string(), nullable=False)
    field = TableColumn(pa.string(), nullable=False)
    reason = TableColumn(pa.string(), nullable=False)
    delivered = TableColumn(pa.string())
    geometry = TableColumn(pa.binary())


REJECTS_SCHEMA = Rejects.schema


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How the rows of a dataset stand in its files.

    `columns` are key columns outside the contract, then the contract's fields, with their stored types; `bounds` fixes the Hilbert order
    (x, y minimum then maximum in the contract's CRS).
    """

    columns: tuple[tuple[str, pa.DataType], ...]
    geometry: str
    covering: str
    other_geometries: tuple[tuple[str, int], ...]  # name, EPSG code
    epsg: int
    edges: str
    epoch: float | None
    bounds: tuple[float, float, float, float]
    target_rows: int
    row_group_rows: int

    @property
    def row_schema(self) -> pa.Schema:
        """The schema of rows on their way into a file: columns and geometry, without the covering."""
        return pa.schema([*self.columns, (self.geometry, pa.binary())])


def layout_of(
    contract: Contract,
    key_types: tuple[tuple[str, pa.DataType], ...],
    *,
    bounds: tuple[float, float, float, float],
    epoch: float | None,
    target_rows: int,
    row_group_rows: int,
) -> FileLayout:
    """The layout of a contract; `key_types` are the key columns with their stored types."""
    fields = [(each.name, arrow_type(each.type)) for each in contract.schema_fields]
    named = {name for name, _ in fields}
    columns = (*((name, kind) for name, kind in key_types if name not in named), *fields)
    taken = {name for name, _ in columns} | {contract.geometry_name}
    return FileLayout(
        columns=columns,
        geometry=contract.geometry_name,
        covering=next(name for name in ("bbox", "bbox_covering", "bbox_covering_") if name not in taken),
        other_geometries=tuple(
            (each.name, each.crs_epsg or contract.crs_epsg) for each in contract.schema_fields if each.type.kind == "geometry"
        ),
        epsg=contract.crs_epsg,
        edges=contract.geometry.edges,
        epoch=epoch,
        bounds=bounds,
        target_rows=target_rows,
        row_group_rows=row_group_rows,
    )


def _types(scan: kernel.Scan) -> list[str]:
    code = scan.kind.astype(np.int16) + np.where(scan.has_z, 100, 0)
    found = np.unique(code[(scan.kind >= 1) & (scan.kind < len(_KINDS))])
    return sorted(_KINDS[each % 100] + (" Z" if each >= 100 else "") for each in found)


def _extent(bounds: npt.NDArray[np.float64]) -> tuple[float, float, float, float] | None:
    some = bounds[~np.isnan(bounds[:, 0])]
    if not len(some):
        return None
    low, high = some[:, :2].min(axis=0), some[:, 2:].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _geo_column(epsg: int, scan: kernel.Scan) -> JsonObject:
    out: JsonObject = {
        "encoding": "WKB",
        "geometry_types": _types(scan),
        "crs": projjson(epsg),
        "orientation": "counterclockwise",
    }
    box = _extent(scan.bounds)
    if box is not None:
        out["bbox"] = list(box)
    return out


def encode(rows: pa.Table, layout: FileLayout) -> tuple[bytes, tuple[float, float, float, float] | None]:
    """One data file: rows (of `layout.row_schema`, sorted) as GeoParquet 1.1 bytes, and their extent."""
    wkb = rows.column(layout.geometry).combine_chunks()
    scan = kernel.scan(wkb)
    box = _extent(scan.bounds)
    main = _geo_column(layout.epsg, scan) | {"edges": layout.edges}
    main["covering"] = {"bbox": {side: [layout.covering, side] for side in ("xmin", "ymin", "xmax", "ymax")}}
    if layout.epoch is not None:
        main["epoch"] = layout.epoch
    columns = {layout.geometry: main}
    for name, epsg in layout.other_geometries:
        other = rows.column(name).combine_chunks()
        columns[name] = _geo_column(epsg, kernel.scan(other))
    geo = {"version": "1.1.0", "primary_column": layout.geometry, "columns": columns}
    chosen = encodings(rows)
    table = rows.append_column(layout.covering, _cover(scan.bounds)).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    # Parquet's own schema says all that Arrow's would; a copy of that in the footer of a small file costs more than a column.
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=chosen.use_dictionary,
        column_encoding=chosen.column_encoding,
        write_page_checksum=True,
        write_statistics=True,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=layout.row_group_rows)
        writer.add_key_value_metadata({"geo": json.dumps(geo, allow_nan=False, separators=(",", ":"))})
    return sink.getvalue().to_pybytes(), box


def _cover(bounds: npt.NDArray[np.float64]) -> pa.StructArray:
    """The covering column: boxes in float32, rounded outward. Each holds the true box."""
    nowhere = np.isnan(bounds[:, 0])
    near = bounds.astype(np.float32)
    low = np.where(near[:, :2] > bounds[:, :2], np.nextafter(near[:, :2], np.float32(-np.inf)), near[:, :2])
    high = np.where(near[:, 2:] < bounds[:, 2:], np.nextafter(near[:, 2:], np.float32(np.inf)), near[:, 2:])
    sides = [pa.array(side, mask=nowhere) for side in (low[:, 0], low[:, 1], high[:, 0], high[:, 1])]
    return pa.StructArray.from_arrays(sides, fields=list(_BOX), mask=pa.array(nowhere))


def sort_rows(rows: pa.Table, key_bytes: pa.Array, layout: FileLayout) -> pa.Table:
    """Rows in the order of a file: along the Hilbert curve of the centres of their boxes, then by key; rows without a position last."""
    scan = kernel.scan(rows.column(layout.geometry).combine_chunks())
    centre = (scan.bounds[:, :2] + scan.bounds[:, 2:]) / 2
    along = kernel.hilbert(centre[:, 0], centre[:, 1], layout.bounds)
    order = pa.compute.sort_indices(pa.table({"along": along, "key": key_bytes}), sort_keys=[("along", "ascending"), ("key", "ascending")])
    return rows.take(order)


def write_partition(store: Store, rows: pa.Table, layout: FileLayout, *, partition: str, stem: str, run_id: str) -> list[DataFile]:
    """Write the sorted rows of one partition beside what is there, read each file back, and return its entries, still without a version.

    Raises:
        StoreError: the store refused, or what it gives back is not what was written.
    """
    pieces = max(1, -(-rows.num_rows // layout.target_rows))
    size = -(-rows.num_rows // pieces)
    out = []
    for n in range(pieces):
        part = rows.slice(n * size, size)
        data, box = encode(part, layout)
        folder = f"data/{partition}/" if partition else "data/"
        name = f"{folder}{stem}-{n}.parquet"
        tag = store.create(name, data)
        proof = _footer(pa.BufferReader(data), len(data))
        file = DataFile(name, part.num_rows, len(data), sha256(data), partition, box, run_id=run_id, footer_sha256=proof, tag=tag)
        _read_back(store, file)
        out.append(file)
    return out


def _read_back(store: Store, file: DataFile) -> None:
    got = store.get(file.path)
    meta = pq.read_metadata(pa.BufferReader(got)) if len(got) == file.bytes and sha256(got) == file.sha256 else None
    if meta is None or meta.num_rows != file.rows or b"geo" not in (meta.metadata or {}):
        raise StoreError(
            f"{file.path} does not read back as it was written ({len(got)} of {file.bytes} bytes)",
            field=file.path,
            hint="nothing was published; check the disk or the store, then run the same command again",
        )


def write_table(store: Store, name: str, table: pa.Table, **options: Any) -> ObjectRef:
    """Write one Parquet object (change log, checkpoint, findings, rejects) and return its reference."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=131_072, write_page_checksum=True, **options)
    data = sink.getvalue()
    raw = data.to_pybytes()
    tag = store.create(name, raw)
    return ObjectRef(name, table.num_rows, len(raw), sha256(raw), footer_sha256=_footer(pa.BufferReader(data), len(raw)), tag=tag)


def write_pieces(store: Store, name: str, schema: pa.Schema, pieces: Iterable[pa.Table], folder: str) -> ObjectRef:
    """As `write_table`, for a table that comes in pieces of one row group each and is never held whole; it passes through `folder`."""
    rows = 0
    with writing(name, folder) as local, pq.ParquetWriter(local, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in pieces:
            writer.write_table(piece, row_group_size=max(piece.num_rows, 1))
            rows += piece.num_rows
    return store_file(store, name, local, rows)


@contextmanager
def writing(name: str, folder: str) -> Iterator[Path]:
    """A file in the scratch folder that becomes the object of a name.

    Raises:
        StoreError: the scratch folder cannot be written.
    """
    try:
        yield Path(folder) / name.replace("/", "-")
    except OSError as fault:
        raise StoreError(
            f"the scratch folder {folder} cannot be written: {fault}",
            field=folder,
            hint="free some space there, or point TMPDIR to a larger disk",
        ) from fault


def store_file(store: Store, name: str, local: Path, rows: int) -> ObjectRef:
    """Put a Parquet file of the scratch folder into the store, and return its reference. The file is gone then."""
    with local.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.seek(0, 2)
        proof = _footer(file, size)
    tag = store.create_from(name, str(local))
    local.unlink()
    return ObjectRef(name, rows, size, checksum, footer_sha256=proof, tag=tag)


def _footer(handle: ObjectFile | BinaryIO, size: int) -> str:
    """The SHA-256 of the footer of a Parquet file, hex."""
    return sha256(footer_of(handle, size))
