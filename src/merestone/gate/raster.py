"""A raster against its contract: reference system, resolution, extent, bands, data types, nodata and overviews (docs/spec/gate.md#rasters).

Not here: reading the file (`source.raster`), products with features (`delivery`, `feature`).

Each function names the clause that it enforces. What a contract does not say about a raster is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from merestone.contract.contract import Contract
from merestone.json_value import Json
from merestone.normalise.agreed_crs import check_crs
from merestone.results.finding import Finding, Sample
from merestone.rules import catalogue
from merestone.source.port import Band, Delivery, GeometryColumn, Raster

_NEAR = 1e-6  # of a pixel: what formats lose when they write their grid as text


def judge(contract: Contract, raster: Raster, delivery: Delivery) -> list[Finding]:
    """Every finding about a raster.

    Args:
        contract: one of geometry_type raster.
        raster: what the file says of itself.
        delivery: the same as a delivery without rows, whose geometry has the CRS.
    """
    clauses: Mapping[str, Json] = dict(contract.extra)
    pixel: Mapping[str, Json] = clauses.get("pixel") or {}
    return [
        *reference_system(contract, delivery),
        *resolution(contract, raster, pixel.get("size")),
        *extent(contract, raster),
        *bands(raster, clauses.get("bands")),
        *overviews(raster, pixel.get("overviews")),
    ]


def as_delivery(raster: Raster, schema: pa.Schema, *, asserted: str | None = None) -> Delivery:
    """A raster as a delivery without rows; its CRS is judged by the rules for all deliveries; `schema` has no fields."""
    crs = raster.crs or asserted
    return Delivery(
        raster.path, raster.driver, None, schema, GeometryColumn("raster", crs, asserted=raster.crs is None and crs is not None), rows=0
    )


def reference_system(contract: Contract, delivery: Delivery) -> list[Finding]:
    """`crs_epsg`: the agreed one, since pixels are never transformed on their way."""
    return list(check_crs(contract, delivery))


def resolution(contract: Contract, raster: Raster, size: Sequence[float] | None) -> list[Finding]:
    """`pixel.size`: width and height of a pixel in CRS units; the grid is not turned, and starts in the north-west."""
    if raster.transform is None:
        return [catalogue.RESOLUTION.finding("pixel", case="nowhere")]
    a, b, _, d, e, _ = raster.transform
    if b or d:
        return [catalogue.RESOLUTION.finding("pixel", case="turned")]
    if size is None:
        return []
    if math.isclose(abs(a), size[0], rel_tol=_NEAR) and math.isclose(abs(e), size[1], rel_tol=_NEAR):
        return []
    agreed, delivered = f"{size[0]:g} by {size[1]:g}", f"{abs(a):g} by {abs(e):g}"
    return [catalogue.RESOLUTION.finding("pixel", size=agreed, delivered=delivered, crs=f"EPSG:{contract.crs_epsg}")]


def extent(contract: Contract, raster: Raster) -> list[Finding]:
    """`extent`: every pixel lies within it."""
    if contract.extent is None or raster.transform is None:
        return []
    a, b, c, d, e, f = raster.transform
    corners = [(a * x + b * y + c, d * x + e * y + f) for x in (0, raster.width) for y in (0, raster.height)]
    slack = _NEAR * max(abs(a), abs(e))
    west, south, east, north = contract.extent
    xs, ys = zip(*corners, strict=True)
    turns = (0.0,) if west <= east else (0.0, 360.0)  # across the antimeridian the grid may count on beyond 180, or from -180
    last = east if west <= east else east + 360.0
    if any(west - slack <= min(xs) + turn and max(xs) + turn <= last + slack for turn in turns):
        outside = [(x, y) for x, y in corners if not south - slack <= y <= north + slack]
    else:
        outside = [
            (x, y) for x, y in corners if west > east or not (west - slack <= x <= east + slack and south - slack <= y <= north + slack)
        ]
    if not outside:
        return []
    return [
        catalogue.RASTER_EXTENT.finding(
            "extent",
            features=tuple(Sample(None, None, x, y) for x, y in outside),
            box=f"{west:.10g}, {south:.10g}, {east:.10g}, {north:.10g}",
            delivered=f"{min(xs):.10g}, {min(ys):.10g}, {max(xs):.10g}, {max(ys):.10g}",
        )
    ]


def bands(raster: Raster, agreed: Sequence[Mapping[str, Json]] | None) -> list[Finding]:
    """`bands`: how many there are, the type of each, and what means no data."""
    if agreed is None:
        return []
    if len(agreed) != len(raster.bands):
        wanted = _counted(len(agreed), [each["name"] for each in agreed])
        there = _counted(len(raster.bands), [each.name or "?" for each in raster.bands])
        return [catalogue.BANDS.finding("bands", agreed=wanted, delivered=there)]
    found = []
    for clause, band in zip(agreed, raster.bands, strict=True):
        name = clause["name"]
        if band.name and band.name != name:
            found.append(catalogue.BANDS.finding(name, agreed=f"band {name}", delivered=f"band {band.name}"))
        if band.type != clause["type"]:
            found.append(catalogue.BAND_TYPE.finding(name, agreed=clause["type"], delivered=band.type))
        if not _same(clause.get("nodata"), band.nodata):
            found.append(catalogue.NODATA.finding(name, agreed=_value(clause.get("nodata")), delivered=_value(band.nodata)))
    return found


def overviews(raster: Raster, factors: Sequence[int] | None) -> list[Finding]:
    """`pixel.overviews`: each band has overviews with these factors; a reader need not fetch every pixel."""
    if not factors:
        return []
    lacking = [(band, missing) for band in raster.bands if (missing := sorted(set(factors) - set(band.overviews)))]
    if not lacking:
        return []
    agreed = ", ".join(map(str, factors))
    return [catalogue.OVERVIEWS.finding("pixel", count=len(lacking), agreed=agreed, delivered=_overviews(lacking[0][0]))]


def _counted(count: int, names: Sequence[str]) -> str:
    return f"{count} band{'' if count == 1 else 's'} ({', '.join(names)})"


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _value(nodata: float | None) -> str:
    return "no value for no data" if nodata is None else f"{nodata:g} means no data"


def _overviews(band: Band) -> str:
    return f"overviews {', '.join(map(str, band.overviews))}" if band.overviews else "no overviews"
