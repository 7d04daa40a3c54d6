"""The `extent` clause: across the antimeridian, of shapes that are cut there, and how many rows may lie outside."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contracts import contract
from estate import Estate, geoparquet
from merestone.contract.contract import Contract
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml
from merestone.gate.feature import outside
from merestone.gate.raster import extent as raster_extent
from merestone.geometry import kernel
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source
from merestone.source.raster import Raster

ACROSS = (165.0, -50.0, -175.0, -25.0)


def out(*texts, extent=ACROSS):
    wkb = pa.array(shapely.to_wkb(shapely.from_wkt(texts)), pa.binary())
    found = outside(contract(extent=extent), kernel.scan(wkb), wkb, np.ones(len(texts), np.bool_))
    return [row for each in found for row in each.rows.tolist()]


def test_both_sides_of_the_antimeridian_lie_within():
    inside = ["POINT (170 -40)", "POINT (-176 -40)", "POINT (180 -30)", "POINT (-180 -30)", "LINESTRING (165 -50, 180 -25)"]
    cut = "MULTIPOLYGON (((179 -40, 180 -40, 180 -39, 179 -40)), ((-180 -40, -179 -40, -180 -39, -180 -40)))"
    assert out(*inside, cut, "POINT EMPTY") == []
    beyond = ["POINT (160 -40)", "POINT (-170 -40)", "POINT (0 -40)", "POINT (170 -20)", "LINESTRING (179 -40, -179 -40)"]
    other = "MULTIPOINT (179 -40, -170 -40)"
    assert out(*beyond, other, cut) == list(range(6))


RASTERS = {
    "beyond 180": (175.0, 10, []),
    "from -180": (-180.0, 4, []),
    "too far east": (175.0, 20, [195.0]),
    "too far west": (150.0, 10, [150.0, 160.0]),
}


@pytest.mark.parametrize("name", RASTERS)
def test_a_raster_may_count_on_beyond_half_a_turn(name):
    west, width, beyond = RASTERS[name]
    raster = Raster.__new__(Raster)
    for field, value in {"transform": (1.0, 0.0, west, 0.0, -1.0, -30.0), "width": width, "height": 10}.items():
        object.__setattr__(raster, field, value)
    found = raster_extent(contract(extent=ACROSS), raster)
    assert bool(found) == bool(beyond)


TEXT = """\
contract_version: "v1.0.0-crs:EPSG:{epsg}-res:10m"
product_id: 3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10
crs_epsg: {epsg}
axis_order: lon_lat
geometry_type: point
coordinate_precision: 3
schema_fields: [{{name: pid, type: string}}]
freshness_sla_minutes: 1440
availability_target: 0.99
product_owner_id: a@example.org
extent: {extent}
"""


@pytest.mark.parametrize(
    ("epsg", "extent", "sound"),
    [
        (4326, "[165, -50, -175, -25]", True),
        (4167, "[165, -50, -175, -25]", True),  # New Zealand's own degrees
        (4326, "[165, -25, -175, -50]", False),
        (4326, "[185, -50, -175, -25]", False),
        (4326, "[165, -50, -185, -25]", False),
        (4326, "[165, -50, 165, -25]", False),
        (2193, "[2100000, 4700000, 1000000, 6200000]", False),  # metres do not go round
    ],
)
def test_only_degrees_go_round(epsg, extent, sound):
    found = parse(read_yaml(TEXT.format(epsg=epsg, extent=extent).encode(), "x"))
    assert isinstance(found, Contract) is sound, found
    assert sound or any("extent" in str(each) for each in found)


# --- how many rows may lie outside -----------------------------------------------------------------------------------------------------

FIELDS = [{"name": "pid", "type": "string", "nullable": False}]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    made = Estate(tmp_path_factory.mktemp("extent"), FIELDS, geometry_type="point", extent=[165, -50, -175, -25])
    made.settings["rejects"] = {"max_fraction": 0.05}
    return made


@pytest.mark.parametrize(("stray", "status"), [(0, "published"), (2, "published"), (3, "refused")])
def test_a_hundredth_of_the_rows_outside_is_a_fault_of_the_delivery(product, stray, status):
    rows = 200
    shapes = [shapely.Point(100 if n < stray else 170 + n / 1000, -40) for n in range(rows)]
    path = geoparquet(product.folder / f"{stray}.parquet", {"pid": pa.array([f"p{n}" for n in range(rows)]), "geometry": shapes})
    product.write(path)
    publication = with_source(read_publication(str(product.folder / "product.yaml")), str(path))
    checked, _ = check(publication, CheckSettings(str(path), ""))
    night = product.publish(path, dry_run=True)
    assert (night.status == "refused", checked.status) == (status == "refused", "fail" if status == "refused" else "pass")
    found = [(each.count, each.per_row) for each in night.result.findings if each.rule == "extent"]
    assert found == ([(stray, stray <= 2)] if stray else [])
    assert {(each.rule, each.count, each.per_row) for each in checked.findings} == {
        (each.rule, each.count, each.per_row) for each in night.result.findings
    }
