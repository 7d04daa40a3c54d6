from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from merestone.cli.main import root
from merestone.errors import MissingError, SourceError
from merestone.source.raster import read_raster

rasterio = pytest.importorskip("rasterio", reason="rasterio is an extra: merestone[raster]")


@pytest.fixture
def height(tmp_path):
    """A raster of heights with overviews and a description."""
    path = tmp_path / "height.tif"
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=64,
        height=32,
        count=1,
        dtype="float32",
        crs="EPSG:28992",
        nodata=-9999,
        transform=rasterio.Affine(5, 0, 155_000, 0, -5, 463_000),
    ) as file:
        file.write(np.ones((1, 32, 64), "float32"))
        file.set_band_description(1, "height")
        file.build_overviews([2, 4])
    return path


def test_a_raster_describes_itself(height):
    found = read_raster(str(height))
    assert (found.width, found.height, found.transform) == (64, 32, (5.0, 0.0, 155_000.0, 0.0, -5.0, 463_000.0))
    (band,) = found.bands
    assert (band.name, band.type, band.nodata, band.overviews) == ("height", "float32", -9999.0, (2, 4))
    assert "28992" in found.crs


def test_what_is_no_raster_is_a_source_error(tmp_path):
    (tmp_path / "none.tif").write_bytes(b"no raster")
    with pytest.raises(SourceError, match="cannot be read as a raster"):
        read_raster(str(tmp_path / "none.tif"))


def test_without_rasterio_the_extra_is_named(monkeypatch, height):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingError) as told:
        read_raster(str(height))
    assert told.value.hint == "pip install rasterio"


def test_check_judges_a_raster_by_its_contract(height, tmp_path, capsys):
    contract = {
        "contract_version": "v1.0.0-crs:EPSG:28992-res:5m",
        "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
        "crs_epsg": 28992,
        "axis_order": "lon_lat",
        "geometry_type": "raster",
        "coordinate_precision": 0,
        "schema_fields": [{"name": "height", "type": "number"}],
        "freshness_sla_minutes": 1440,
        "availability_target": 0.99,
        "product_owner_id": "steward@example.org",
        "bands": [{"name": "height", "type": "float32", "nodata": -9999}],
        "pixel": {"size": [5, 5], "overviews": [2, 4]},
    }

    def check():
        (tmp_path / "c.json").write_text(json.dumps(contract))
        capsys.readouterr()
        arguments = [
            "check",
            str(height),
            "--contract",
            str(tmp_path / "c.json"),
            "--errors",
            str(tmp_path / "e.geojson"),
            "--html",
            str(tmp_path / "e.html"),
            "--json",
        ]
        code = root.main(arguments, prog_name="merestone", standalone_mode=False)
        return code, json.loads(capsys.readouterr().out)

    assert check() == (
        0,
        {
            "delivery": str(height),
            "contract": str(tmp_path / "c.json"),
            "status": "pass",
            "rows": 0,
            "findings": [],
            "axes": {},
            "not_judged": [],
        },
    )
    contract["bands"][0] |= {"type": "int16", "nodata": 0}
    code, said = check()
    assert (code, [(each["field"], each["rule"]) for each in said["findings"]]) == (1, [("height", "band_type"), ("height", "nodata")])
    assert len(json.loads((tmp_path / "e.geojson").read_text())["features"]) == 2
