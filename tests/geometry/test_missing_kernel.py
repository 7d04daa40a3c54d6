"""Where the compiled extensions are missing, a large delivery says so; a small one, and one that is worked on by them, does not."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
import shapely

from estate import geoparquet
from kernels import PATHS, on
from merestone.geometry.kernel import MissingKernelWarning


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rows", [99_999, 100_000])
def test_a_hundred_thousand_features_without_the_kernel_are_said(estate, tmp_path, path, rows):
    product = estate([{"name": "pid", "type": "integer", "nullable": False}], geometry_type="point")
    wkb = [shapely.to_wkb(shapely.Point(1, 50))] * rows
    delivery = geoparquet(tmp_path / "1.parquet", {"pid": pa.array(range(rows)), "geometry": wkb})
    with on(path), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        product.publish(delivery)
    mine = [str(each.message) for each in said if each.category is MissingKernelWarning]
    assert len(mine) == (path == "numpy" and rows >= 100_000)
    assert all("100,000 rows" in each for each in mine)
