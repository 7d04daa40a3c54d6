"""Hectares under square metres are found by the data, whatever the unit is called."""

from __future__ import annotations

import pytest
import shapely

from estate import save

FIELDS = [{"name": "pid", "type": "string", "nullable": False}]


@pytest.mark.parametrize("unit", ["square_metre", "m2", "m²", "square metres"])
def test_hectares_are_no_square_metres(estate, tmp_path, unit):
    made = estate([*FIELDS, {"name": "area", "type": "number", "unit": unit}], geometry_type="polygon", epsg=28992, precision=0)
    squares = [shapely.box(155_000 + 100 * n, 463_000, 155_000 + 100 * n + 20 + n % 60, 463_050) for n in range(200)]
    rows = [{"pid": str(n), "area": each.area / 10_000, "geometry": each} for n, each in enumerate(squares)]
    night = made.publish(save(rows, tmp_path / "ha.gpkg", epsg=28992))
    assert night.status == "refused"
    assert "ha where" in night.said
    rows = [{**each, "area": each["area"] * 10_000} for each in rows]
    night = made.publish(save(rows, tmp_path / "m2.gpkg", epsg=28992))
    assert night.status == "published", night.said
