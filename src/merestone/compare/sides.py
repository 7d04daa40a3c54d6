"""What a person wants compared: a file in any format that is read, or a version of a dataset, each as a source of rows.

Not here: under which terms two sides are compared (`terms`), the comparison (`diff`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from merestone.contract.contract import Contract
from merestone.contract.field_type import parse_type
from merestone.dataset.current import POINTER
from merestone.dataset.version import Version
from merestone.geometry import kernel
from merestone.inspect.browse import open_dataset, parse_address, publication_at
from merestone.publication.publication import Publication
from merestone.results.finding import Finding
from merestone.source.open import open_unjudged
from merestone.source.port import BATCH_ROWS, Delivery, GeometryColumn, Source, SourceSpec
from merestone.storage.place import local_path, parse_place

_PUBLICATIONS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class DiffSide:
    """One side of a comparison: what to call it, its rows, and where it is a dataset, its version and the publication file that named it."""

    shown: str
    source: Source
    version: Version | None = None
    publication: Publication | None = None


def open_side(text: str, layer: str | None = None) -> DiffSide:
    """A side as a person typed it: a dataset's folder or publication file, with or without @N, or any file that can be delivered.

    Args:
        text: a path or a URL.
        layer: the layer, for a file that has several.

    Raises:
        UsageError: no such dataset or version.
        SourceError: the file is missing or cannot be read.
    """
    return published_side(text) or DiffSide(text, open_unjudged(SourceSpec(local_path(text, what="a delivery"), layer)))


def published_side(text: str) -> DiffSide | None:
    """A version of a dataset as a person typed it; None for a file that can be delivered. Raises UsageError: no such dataset or version."""
    address = parse_address(text)
    where = parse_place(address.where)
    place = Path(where.path)
    named = where.is_local and place.is_file() and place.suffix.lower() in _PUBLICATIONS
    if not (named or address.version is not None or not where.is_local or (place / POINTER).exists()):
        return None
    version = open_dataset(address.where).version(address.version)
    return DiffSide(text, VersionSource(version, text), version, publication_at(address.where) if named else None)


class VersionSource:
    """A version of a dataset as a delivery; see `merestone.source.port.Source`. Rows come in the contract's CRS, x before y."""

    def __init__(self, version: Version, shown: str) -> None:
        columns, contract = version.columns, version.manifest.contract
        edges = (contract.get("geometry") or {}).get("edges", "planar")
        second = [each for each in contract["schema_fields"] if parse_type(each["type"]).kind == "geometry"]
        self._version = version
        self._delivery = Delivery(
            path=shown,
            driver="Merestone",
            layer=None,
            schema=columns.schema.remove_metadata(),
            geometry=GeometryColumn(
                columns.geometry, f"EPSG:{columns.epsg}", "dataset", edges=edges, epoch=version.manifest.domain.get("epoch")
            ),
            other_geometries=tuple(
                GeometryColumn(each["name"], f"EPSG:{each.get('crs_epsg') or columns.epsg}", "dataset") for each in second
            ),
            rows=version.manifest.features,
        )

    @property
    def delivery(self) -> Delivery:
        """What the manifest says."""
        return self._delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows, file by file. Raises CorruptError where a file is missing, cut or altered."""
        schema = self._delivery.schema
        for batch in self._version.batches():
            for start in range(0, batch.num_rows, batch_rows):
                yield pa.RecordBatch.from_arrays(batch.slice(start, batch_rows).columns, schema=schema)

    def late_findings(self) -> tuple[Finding, ...]:
        """None: what was published has been read whole before."""
        return ()


class Adapted:
    """A source with some columns made anew; see `merestone.source.port.Source`."""

    def __init__(
        self, source: Source, columns: Mapping[str, tuple[pa.DataType, Callable[[pa.Array], pa.Array]]], *, crs: str | None = None
    ) -> None:
        """Start.

        Args:
            source: the rows.
            columns: name to the Arrow type of the column and how its arrays are made.
            crs: the CRS of the geometry, where the source states none.
        """
        self._source, self._columns = source, dict(columns)
        schema = source.delivery.schema
        for name, (kind, _) in self._columns.items():
            schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
        geometry = source.delivery.geometry
        if crs is not None and geometry is not None:
            geometry = replace(geometry, crs=crs, note="assumed", asserted=True)
        self._delivery = replace(source.delivery, schema=schema, geometry=geometry)

    @property
    def delivery(self) -> Delivery:
        """The description of the source, with the new types."""
        return self._delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of the source, in its order."""
        for batch in self._source.batches(batch_rows):
            arrays = [
                self._columns[name][1](array) if name in self._columns else array
                for name, array in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._delivery.schema)

    def late_findings(self) -> tuple[Finding, ...]:
        """What the source has to say."""
        return self._source.late_findings()


def in_order(side: DiffSide, contract: Contract) -> Source:
    """A side's rows in the axis order of the contract's deliveries: what was published is in x, y whatever was agreed."""
    geometry = side.source.delivery.geometry
    if side.version is None or contract.axis_order == "lon_lat" or geometry is None:
        return side.source
    return Adapted(side.source, {geometry.name: (pa.binary(), swapped)})


def swapped(wkb: pa.Array) -> pa.Array:
    """Geometries with x and y exchanged: rows in x, y order for a contract that agrees on deliveries in y, x."""
    return kernel.with_coordinates(wkb, np.ascontiguousarray(kernel.coordinates(wkb)[:, ::-1]))
