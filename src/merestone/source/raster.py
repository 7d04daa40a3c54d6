"""What can be known of a raster file without its pixels: reference system, grid, bands, overviews; read with rasterio, an extra.

Not here: whether it is what was agreed (`gate.raster`), sources with rows (`open`).
"""

from __future__ import annotations

from merestone.errors import MissingError, SourceError
from merestone.source.port import Band, Raster


def read_raster(path: str) -> Raster:
    """Describe a raster file.

    Raises:
        SourceError: no such file, or none that GDAL can open as a raster.
        MissingError: rasterio is not installed.
    """
    try:
        import rasterio  # noqa: PLC0415 - an extra: everything else works without it
        from rasterio.errors import RasterioIOError  # noqa: PLC0415 - as above
    except ImportError as fault:
        raise MissingError(
            "rasterio is not installed, and a raster cannot be read without it", field="rasterio", hint="pip install rasterio"
        ) from fault
    try:
        with rasterio.open(path) as file:
            # What states no place has the identity as its transform, one pixel a unit, downwards.
            placed = file.transform != rasterio.Affine.identity()
            bands = tuple(
                Band(
                    file.descriptions[at],
                    str(file.dtypes[at]),
                    None if file.nodatavals[at] is None else float(file.nodatavals[at]),
                    tuple(int(factor) for factor in file.overviews(at + 1)),
                )
                for at in range(file.count)
            )
            a, b, c, d, e, f = tuple(file.transform)[:6]
            return Raster(
                path,
                file.driver,
                file.crs.to_wkt() if file.crs else None,
                file.width,
                file.height,
                (a, b, c, d, e, f) if placed else None,
                bands,
            )
    except RasterioIOError as fault:
        raise SourceError(
            f"{path} cannot be read as a raster: {fault}", field=path, hint="check the path, or have the file exported again"
        ) from fault
