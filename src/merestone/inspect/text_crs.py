"""The reference system of GeoJSON text sequences, which can name none: WGS 84 (RFC 7946, section 4), reached without loss or not at all.

Not here: the texts themselves (`extract`), transformations of deliveries (`normalise.transform`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyproj import CRS, Transformer

from merestone.errors import UsageError
from merestone.geometry import kernel
from merestone.normalise.transform import positions_of

SEQUENCES = (".geojsons", ".geojsonl")
"""The suffixes of files that hold text sequences."""
_WGS84 = {4326, 4979}


def way_to_wgs84(epsg: int) -> Callable[[pa.Array], pa.Array] | None:
    """How a column of WKB comes to WGS 84, longitude first; None where it is in it.

    Only a conversion is exact: between two datums positions would be off by more than any promised digit.

    Raises:
        UsageError: the reference system has another datum.
    """
    if epsg in _WGS84:
        return None
    source = CRS.from_epsg(epsg)
    base = source.geodetic_crs
    if base is None or base.to_epsg() not in _WGS84 or source.is_compound:
        raise UsageError(
            f"a GeoJSON text sequence is in WGS 84 (RFC 7946), and from EPSG:{epsg} ({source.name}) the way there is not exact",
            field="out",
            hint="write .geojson, which names its reference system, .gpkg or .parquet (one JSON object for a pipe)",
        )
    transformer = Transformer.from_crs(source, CRS.from_epsg(4326), always_xy=True)

    def transformed(wkb: pa.Array) -> pa.Array:
        return kernel.with_coordinates(wkb, positions_of(transformer, *np.ascontiguousarray(kernel.coordinates(wkb)).T))

    return transformed


def in_wgs84(batches: Iterable[pa.RecordBatch], columns: Iterable[str], epsg: int) -> Iterator[pa.RecordBatch]:
    """Record batches with their geometry columns in WGS 84. Raises UsageError at once, as `way_to_wgs84`."""
    way, names = way_to_wgs84(epsg), list(columns)
    return iter(batches) if way is None else _moved(batches, names, way)


def _moved(batches: Iterable[pa.RecordBatch], names: list[str], way: Callable[[pa.Array], pa.Array]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for name in names:
            at = batch.schema.get_field_index(name)
            if at >= 0:
                batch = batch.set_column(at, batch.schema.field(at), way(batch.column(at)))  # noqa: PLW2901 - a batch is a value
        yield batch


def said(epsg: int, path: str | None = None) -> str | None:
    """What to tell the reader of a text sequence (or of a file, if it is one), None where nothing was transformed."""
    if epsg in _WGS84 or (path is not None and not path.lower().endswith(SEQUENCES)):
        return None
    return f"coordinates are transformed from EPSG:{epsg} to WGS 84, longitude first, as RFC 7946 wants"
