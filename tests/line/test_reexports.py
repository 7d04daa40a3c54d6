"""Copies that common tools write at the contract's own precision change nothing: parcels, roads, and municipalities with islands and holes.

The same on the whole public datasets: tests/field/test_reexports.py.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely import MultiPolygon, Polygon

from estate import Estate
from reexports import WRITERS, broken_by_rounding
from traps.parcels import good

ROOT = Path(__file__).parents[2]
FIELDS = [{"name": "pid", "type": "string", "nullable": False}]
ROWS = 300
SLIVER = (
    Polygon(  # a real parcel of Cambridge, Massachusetts: its last but one vertex lies 2.5 mm beside the edge from the first to the second
        [
            (231310.72767941013, 904131.3742400208),
            (231310.72516463703, 904131.9383497379),
            (231299.80602539194, 904131.8896812459),
            (231299.75323357337, 904143.7359854998),
            (231310.6723544017, 904143.7846539097),
        ]
    )
)


def parcels():
    return good(4326).table.geometry.iloc[:ROWS].to_crs(26986), 2


def roads():
    packed = ROOT / "examples" / "cambridge" / "exports" / "2026-03-03.geojson.gz"
    return gpd.read_file(io.BytesIO(gzip.decompress(packed.read_bytes())), rows=ROWS).geometry, 7


def municipalities():
    """Made up: rings of 20 to 200 vertices around a middle, some with holes, some of several parts."""
    random = np.random.default_rng(3035)

    def ring(x, y, radius):
        angles = np.sort(random.uniform(0, 2 * np.pi, random.integers(20, 200)))
        away = radius * random.uniform(0.8, 1.0, len(angles))
        return np.column_stack([x + away * np.cos(angles), y + away * np.sin(angles)])

    def one(n):
        x, y = 4_321_000 + 20_000 * (n % 20) + random.uniform(), 2_700_000 + 20_000 * (n // 20) + random.uniform()
        main = Polygon(ring(x, y, 4000.0), [ring(x, y, 1000.0)] if n % 3 == 0 else [])
        return MultiPolygon([main, Polygon(ring(x + 7000, y, 800.0))]) if n % 4 == 0 else main

    return gpd.GeoSeries([one(n) for n in range(100)], crs=3035), 3


@pytest.fixture(scope="module", params=[parcels, roads, municipalities], ids=lambda each: each.__name__)
def published(request, tmp_path_factory):
    """(product, rows, precision), published with all digits that the coordinates have."""
    shapes, precision = request.param()
    shapes = shapes[[each is not None and not each.is_empty for each in shapes]]
    shapes = shapes[~broken_by_rounding(shapes.to_numpy(), precision) & shapes.is_valid.to_numpy()]
    frame = gpd.GeoDataFrame({"pid": [f"f{n}" for n in range(len(shapes))]}, geometry=shapes.to_numpy(), crs=shapes.crs)
    folder = tmp_path_factory.mktemp("product")
    frame.to_parquet(folder / "delivered.parquet")
    product = Estate(folder / "product", FIELDS, epsg=frame.crs.to_epsg(), precision=precision)
    night = product.publish(folder / "delivered.parquet")
    assert (night.status, night.result.features) == ("published", len(frame)), night.said
    return product, frame, precision


@pytest.mark.parametrize("writer", WRITERS)
def test_a_copy_at_the_contracts_precision_is_unchanged(published, tmp_path, writer):
    product, frame, precision = published
    WRITERS[writer](frame, tmp_path / "copy.geojson", precision)
    copied = gpd.read_file(tmp_path / "copy.geojson").geometry.to_numpy()
    assert not shapely.equals_exact(copied, frame.geometry.to_numpy()).any(), "the copy was meant to be rounded"
    night = product.publish(tmp_path / "copy.geojson")
    assert (night.status, night.result.unchanged, night.result.delta.suppressed) == ("unchanged", len(frame), 0), night.said


@pytest.mark.parametrize("writer", WRITERS)
def test_a_polygon_that_rounding_breaks_is_refused_and_says_so(estate, tmp_path, writer):
    """It is valid as delivered, and crosses itself on the grid. GDAL repairs what its own rounding breaks: that is another polygon."""
    frame = gpd.GeoDataFrame({"pid": ["sliver", "plain"]}, geometry=[SLIVER, shapely.box(231_400, 904_000, 231_410, 904_010)], crs=26986)
    assert broken_by_rounding(frame.geometry.to_numpy(), 2).tolist() == [True, False]
    frame.to_parquet(tmp_path / "delivered.parquet")
    product = estate(FIELDS, epsg=26986, precision=2)
    product.settings |= {"rejects": {"max_fraction": 0.5}, "guard": {"max_changed_fraction": 1.0}}
    first = product.publish(tmp_path / "delivered.parquet")
    assert (first.status, first.result.features, first.result.rejected) == ("published", 1, 1)
    [finding] = [each for each in first.result.findings if each.rule == "validity"]
    assert "still valid when it is rounded to 2 decimals" in finding.expected
    assert "valid as delivered" in finding.remedy
    WRITERS[writer](frame, tmp_path / "copy.geojson", 2)
    night = product.publish(tmp_path / "copy.geojson")
    if writer == "GDAL":
        assert (night.status, night.classes) == ("published", {"sliver": "added"})
        return
    [finding] = [each for each in night.result.findings if each.rule == "validity"]
    assert (night.status, night.result.rejected, finding.expected) == ("unchanged", 1, "a valid geometry"), "it is broken as delivered now"
