from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyproj import CRS

from contracts import contract
from merestone.gate.raster import as_delivery, judge
from merestone.source.port import Band, Raster

GOOD = Raster(
    "dem.tif",
    "GTiff",
    CRS.from_epsg(28992).to_wkt(),
    100,
    50,
    (5.0, 0.0, 155_000.0, 0.0, -5.0, 463_000.0),
    (Band("height", "float32", -9999.0, (2, 4)), Band(None, "uint8", None, (2, 4, 8))),
)
AGREED = contract(
    crs_epsg=28992,
    geometry_type="raster",
    coordinate_precision=2,
    extent=(155_000.0, 462_750.0, 155_500.0, 463_000.0),
    extra=(
        ("bands", [{"name": "height", "type": "float32", "nodata": -9999}, {"name": "mask", "type": "uint8"}]),
        ("pixel", {"size": [5, 5], "overviews": [2, 4]}),
    ),
)


def findings(raster, agreed=AGREED):
    return judge(agreed, raster, as_delivery(raster, pa.schema([])))


def with_band(**changes):
    return replace(GOOD, bands=(replace(GOOD.bands[0], **changes), GOOD.bands[1]))


def test_what_was_agreed_has_no_findings():
    assert findings(GOOD) == []


@pytest.mark.parametrize(
    ("raster", "surface", "field", "rule", "observed"),
    [
        (replace(GOOD, crs=None), "crs", "crs", "crs_missing", "CRS missing (none stated)"),
        (
            replace(GOOD, crs=CRS.from_epsg(25832).to_wkt()),
            "crs",
            "crs",
            "crs_mismatch",
            "EPSG:25832 (ETRS89 / UTM zone 32N) where EPSG:28992 is agreed",
        ),
        (
            replace(GOOD, transform=(10.0, 0.0, 155_000.0, 0.0, -5.0, 463_000.0), width=50),
            "geometry",
            "pixel",
            "resolution",
            "pixels of 10 by 5",
        ),
        (
            replace(GOOD, width=98, transform=(5.0, 0.1, 155_000.0, 0.0, -5.0, 463_000.0)),
            "geometry",
            "pixel",
            "resolution",
            "the grid is turned",
        ),
        (replace(GOOD, transform=None), "geometry", "pixel", "resolution", "the file states no place for its pixels"),
        (replace(GOOD, width=101), "geometry", "extent", "raster_extent", "155000, 462750, 155505, 463000"),
        (replace(GOOD, bands=GOOD.bands[:1]), "schema", "bands", "bands", "1 band (height)"),
        (with_band(name="depth"), "schema", "height", "bands", "band depth"),
        (with_band(type="float64"), "schema", "height", "band_type", "float64"),
        (with_band(nodata=0.0), "semantics", "height", "nodata", "0 means no data"),
        (with_band(nodata=None), "semantics", "height", "nodata", "no value for no data"),
        (with_band(overviews=(2,)), "geometry", "pixel", "overviews", "overviews 2"),
        (with_band(overviews=()), "geometry", "pixel", "overviews", "no overviews"),
    ],
)
def test_what_differs_is_found_with_its_surface_and_field(raster, surface, field, rule, observed):
    found = findings(raster)
    assert [(each.surface, each.field, each.rule, each.observed) for each in found] == [(surface, field, rule, observed)]
    assert found[0].severity == "error"
    assert found[0].remedy


def test_the_same_cell_size_written_with_other_digits_is_the_same():
    third = replace(GOOD, transform=(5.0000000001, 0.0, 155_000.0, 0.0, -5.0, 463_000.0))
    assert findings(third) == []


def test_nan_that_means_no_data_is_equal_to_nan():
    agreed = replace(
        AGREED, extra=(("bands", [{"name": "height", "type": "float32", "nodata": float("nan")}, {"name": "mask", "type": "uint8"}]),)
    )
    assert findings(with_band(nodata=float("nan")), agreed) == []


def test_what_the_contract_does_not_say_is_not_judged():
    assert findings(replace(with_band(type="int16", nodata=3.0, overviews=()), width=1), replace(AGREED, extra=(), extent=None)) == []
