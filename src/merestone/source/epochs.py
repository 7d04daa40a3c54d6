"""The epoch of coordinates where a file states it beside or around its reference system, which GDAL and PROJ's readers of a system alone pass over.

Not here: `epoch` in `geo` metadata (`geo_metadata`), what an epoch means for a transformation (`normalise.epochs`).
Clauses: ISO 19162:2019 (WKT 2), 16.2 COORDINATEMETADATA; PROJJSON CoordinateMetadata; OGC 12-128r19 (GeoPackage 1.4), annex F.10, column `epoch`
of gpkg_spatial_ref_sys.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

from merestone.json_value import Json
from merestone.source.sqlite_bound import opened

_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_WKT = re.compile(rf"\s*COORDINATEMETADATA\s*\[(.*?)\s*,\s*(?:COORD)?EPOCH\s*\[\s*({_NUMBER})\s*\]\s*\]\s*", re.DOTALL | re.IGNORECASE)
_WITHOUT = re.compile(r"\s*COORDINATEMETADATA\s*\[(.*)\]\s*", re.DOTALL | re.IGNORECASE)
_AT_THE_END = re.compile(rb"COORDINATEMETADATA\[[^\0]*,\s*(?:COORD)?EPOCH\[\s*([0-9.]+)\s*\]\]")
_MAGIC = 8  # bytes of FlatGeobuf before the size of its header
_LARGEST_HEADER = 1 << 24


def apart(crs: Json) -> tuple[Json, float | None]:
    """A reference system, and the epoch of the coordinates where the text or PROJJSON object states both."""
    if isinstance(crs, dict) and crs.get("type") == "CoordinateMetadata":
        return crs.get("crs"), decimal_year(crs.get("coordinateEpoch"))
    if isinstance(crs, str):
        both = _WKT.fullmatch(crs)
        if both is not None:
            return both[1], float(both[2])
        alone = _WITHOUT.fullmatch(crs)
        return (alone[1] if alone is not None else crs), None
    return crs, None


def decimal_year(value: Json) -> float | None:
    """An epoch as JSON gives it, None where it is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def of_geopackage(path: Path, layer: str | None, geometry: str, shown: str) -> float | None:
    """The epoch that a GeoPackage states for the reference system of a layer.

    Args:
        path: the GeoPackage, finished: nothing of it in a log.
        layer: the name of its table or view.
        geometry: the name of the geometry column.
        shown: the path that messages name.

    Raises:
        SourceError: SQLite cannot read the file.
    """
    with opened(path, shown) as database:
        columns = {name for (name,) in database.execute("select name from pragma_table_info('gpkg_spatial_ref_sys')")}
        if "epoch" not in columns:
            return None
        found = database.execute(
            "select epoch from gpkg_spatial_ref_sys join gpkg_geometry_columns using (srs_id) "
            "where lower(table_name) = lower(?) and lower(column_name) = lower(?)",
            (layer, geometry),
        ).fetchone()
    return decimal_year(found[0]) if found is not None else None


def of_flatgeobuf(file: IO[bytes]) -> float | None:
    """The epoch in the header of a FlatGeobuf, whose WKT stands there as text."""
    size = int.from_bytes(file.read(_MAGIC + 4)[_MAGIC:], "little")
    found = _AT_THE_END.search(file.read(min(size, _LARGEST_HEADER)))
    return None if found is None else float(found[1])
