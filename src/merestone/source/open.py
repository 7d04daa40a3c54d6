"""The one way in: a description of a delivery becomes a reader of it.

Not here: any one format (`vector`, `shapefile`, `geoparquet`), which file is meant (`located`).
"""

from __future__ import annotations

from merestone.source.geoparquet import GeoParquetSource
from merestone.source.located import locate
from merestone.source.port import Source, SourceSpec
from merestone.source.shapefile import ShapefileSource
from merestone.source.vector import VectorSource


def open_source(spec: SourceSpec) -> Source:
    """A reader of the delivery, opened far enough to describe it.

    Raises:
        SourceError: no such file, truncated, not what its name says, no such layer, or several and none named.
        UsageError: a format of a later version, or an asserted CRS that is none.
    """
    found = locate(spec)
    if found.format == "Parquet":
        return GeoParquetSource(spec, found)
    if found.format == "ESRI Shapefile":
        return ShapefileSource(spec, found)
    return VectorSource(spec, found)
