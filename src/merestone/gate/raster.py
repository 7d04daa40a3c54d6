"""A raster against its contract: reference system, resolution, extent, bands, data types, nodata and overviews (docs/spec/gate.md#rasters).

Not here: reading the file (`source.raster`), products with features (`delivery`, `feature`).

Each function names the clause that it enforces. What a contract does not say about a raster is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from merestone.contract.contract import Contract
from merestone.normalise.agreed_crs import check_crs
from merestone.results.finding import Finding, Sample, Surface
from merestone.source.port import Band, Delivery, GeometryColumn, Raster

_NEAR = 1e-6  # of a pixel: what formats lose when they write their grid as text


def judge(contract: Contract, raster: Raster, delivery: Delivery) -> list[Finding]:
    """Every finding about a raster.

    Args:
        contract: one of geometry_type raster.
        raster: what the file says of itself.
        delivery: the same as a delivery without rows, whose geometry has the CRS.
    """
    clauses: Mapping[str, Any] = dict(contract.extra)
    pixel: Mapping[str, Any] = clauses.get("pixel") or {}
    return [
        *reference_system(contract, delivery),
        *resolution(contract, raster, pixel.get("size")),
        *extent(contract, raster),
        *bands(raster, clauses.get("bands")),
        *overviews(raster, pixel.get("overviews")),
    ]


def as_delivery(raster: Raster, schema: Any, *, asserted: str | None = None) -> Delivery:
    """A raster as a delivery without rows, so that its CRS is judged by the rules for all deliveries; `schema` has no fields."""
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
        return [
            _fault(
                "geometry",
                "pixel",
                "resolution",
                "pixels with a place",
                "the file states no place for its pixels",
                "have the producer export a georeferenced raster",
            )
        ]
    a, b, _, d, e, _ = raster.transform
    if b or d:
        return [
            _fault(
                "geometry",
                "pixel",
                "resolution",
                "rows from west to east",
                "the grid is turned",
                "have the producer resample it to the axes of the CRS",
            )
        ]
    if size is None:
        return []
    if math.isclose(abs(a), size[0], rel_tol=_NEAR) and math.isclose(abs(e), size[1], rel_tol=_NEAR):
        return []
    return [
        _fault(
            "geometry",
            "pixel",
            "resolution",
            f"pixels of {size[0]:g} by {size[1]:g}",
            f"pixels of {abs(a):g} by {abs(e):g}",
            f"have the producer deliver the agreed grid of EPSG:{contract.crs_epsg}, or agree on another `pixel.size`",
        )
    ]


def extent(contract: Contract, raster: Raster) -> list[Finding]:
    """`extent`: every pixel lies within it."""
    if contract.extent is None or raster.transform is None:
        return []
    a, b, c, d, e, f = raster.transform
    corners = [(a * x + b * y + c, d * x + e * y + f) for x in (0, raster.width) for y in (0, raster.height)]
    slack = _NEAR * max(abs(a), abs(e))
    west, south, east, north = contract.extent
    outside = [(x, y) for x, y in corners if not (west - slack <= x <= east + slack and south - slack <= y <= north + slack)]
    if not outside:
        return []
    xs, ys = zip(*corners, strict=True)
    return [
        _fault(
            "geometry",
            "extent",
            "extent",
            f"within {west:.10g}, {south:.10g}, {east:.10g}, {north:.10g}",
            f"{min(xs):.10g}, {min(ys):.10g}, {max(xs):.10g}, {max(ys):.10g}",
            "look at the CRS and the axis order first, then agree on the extent",
            tuple(Sample(None, None, x, y) for x, y in outside),
        )
    ]


def bands(raster: Raster, agreed: Sequence[Mapping[str, Any]] | None) -> list[Finding]:
    """`bands`: how many there are, the type of each, and what means no data."""
    if agreed is None:
        return []
    if len(agreed) != len(raster.bands):
        return [
            _fault(
                "schema",
                "bands",
                "bands",
                _counted(len(agreed), [each["name"] for each in agreed]),
                _counted(len(raster.bands), [each.name or "?" for each in raster.bands]),
                "have the producer deliver the agreed bands in their order",
            )
        ]
    found = []
    for clause, band in zip(agreed, raster.bands, strict=True):
        name = clause["name"]
        if band.name and band.name != name:
            found.append(
                _fault(
                    "schema", name, "bands", f"band {name}", f"band {band.name}", "have the producer deliver the bands in the agreed order"
                )
            )
        if band.type != clause["type"]:
            found.append(_fault("schema", name, "type", clause["type"], band.type, "have the producer deliver the agreed type of pixels"))
        if not _same(clause.get("nodata"), band.nodata):
            found.append(
                _fault(
                    "semantics",
                    name,
                    "nodata",
                    _value(clause.get("nodata")),
                    _value(band.nodata),
                    "have the producer state the agreed value: pixels without data are read as values otherwise",
                )
            )
    return found


def overviews(raster: Raster, factors: Sequence[int] | None) -> list[Finding]:
    """`pixel.overviews`: each band has overviews with these factors, so that a reader need not fetch every pixel."""
    if not factors:
        return []
    lacking = [(band, missing) for band in raster.bands if (missing := sorted(set(factors) - set(band.overviews)))]
    if not lacking:
        return []
    return [
        _fault(
            "geometry",
            "pixel",
            "overviews",
            f"overviews {', '.join(map(str, factors))} in every band",
            _overviews(lacking[0][0]),
            "have the producer build them: gdaladdo",
            count=len(lacking),
        )
    ]


def _fault(
    surface: Surface,
    field: str,
    rule: str,
    expected: str,
    observed: str,
    remedy: str,
    features: tuple[Sample, ...] = (),
    count: int = 1,
) -> Finding:
    return Finding(surface, field, rule, "error", expected, observed, count, features, remedy)


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
