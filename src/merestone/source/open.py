"""The one way in: a description of a delivery becomes a reader of it.

Not here: any one format (`vector`, `shapefile`, `geoparquet`), which file is meant (`located`).
"""

from __future__ import annotations

from merestone.errors import SourceError
from merestone.source.located import locate
from merestone.source.port import Source, SourceSpec, UnreadableValueError

_REFUSED = {"crs_mismatch", "link", "member_twice", "partial", "position"}  # what stands in the rows is then not what was meant


def open_source(spec: SourceSpec) -> Source:
    """A reader of the delivery, opened far enough to describe it.

    Raises:
        SourceError: no such file, truncated, not what its name says, no such layer, or several and none named.
        UsageError: a format of a later version, or an asserted CRS that is none.
    """
    found = locate(spec)
    # A reader is loaded for its format: GDAL takes a tenth of a second, and GeoParquet has no need of it.
    if found.format == "Parquet":
        from merestone.source.geoparquet import GeoParquetSource  # noqa: PLC0415 - as said

        return GeoParquetSource(spec, found)
    if found.format == "ESRI Shapefile":
        from merestone.source.shapefile import ShapefileSource  # noqa: PLC0415 - as said

        return ShapefileSource(spec, found)
    from merestone.source.vector import VectorSource  # noqa: PLC0415 - as said

    return VectorSource(spec, found)


def open_unjudged(spec: SourceSpec) -> Source:
    """A reader of a delivery that no gate judges: what a gate would refuse it for, before any rule, is an error here.

    Raises:
        SourceError, UsageError: as `open_source`; the file contradicts itself, or says that it is a part.
        UnreadableValueError: a cell is not a value of its column's type.
    """
    source = open_source(spec)
    for finding in source.delivery.findings:
        if finding.severity == "error" and finding.rule in _REFUSED:
            raise SourceError(f"{spec.path}: {finding.observed}", field=finding.field or None, hint=finding.remedy)
    for each in source.delivery.misfits:
        raise UnreadableValueError(
            spec.path,
            each.name,
            int(each.rows[0]),
            rule="type",
            expected=each.expected,
            observed=f"{each.observed[0].as_py()} is not {each.expected}",
            remedy="correct the value in the source",
        )
    return source
