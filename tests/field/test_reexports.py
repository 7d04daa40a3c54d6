"""Copies that common tools write at the contract's own precision have the digests of what they copied, on real parcels, municipalities and roads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio
import pytest
import shapely

from merestone.geometry import kernel
from merestone.geometry.form import Grid, Shape

pytestmark = pytest.mark.field

DATASETS = {
    "cam_parcels": (26986, 2),
    "at_gemeinden": (3035, 3),
    "cam_centerlines": (4326, 7),
}  # in another CRS, so that all digits are used


def by_gdal(shapes, precision, path, crs):
    """GDAL's GeoJSON, written with COORDINATE_PRECISION and read again."""
    pyogrio.raw.write(
        path, shapely.to_wkb(shapes), [np.arange(len(shapes))], ["n"], crs=crs, geometry_type="Unknown", driver="GeoJSON",
        layer_options={"COORDINATE_PRECISION": str(precision), "RFC7946": "NO"},
    )  # fmt: skip
    return shapely.from_wkb(pyogrio.raw.read(path)[2])


def by_text(write):
    def copied(shapes, precision, _path, _crs):
        return shapely.transform(shapes, lambda xy: np.array([[write(each, precision) for each in row] for row in xy.tolist()]))

    return copied


WRITERS = {
    "GDAL": by_gdal,
    "round": by_text(round),
    "printf": by_text(lambda x, precision: float(f"{x:.{precision}f}")),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", DATASETS)
def test_a_copy_at_the_contracts_precision_is_unchanged(data, tmp_path, name, writer):
    epsg, precision = DATASETS[name]
    path = next(each for each in sorted((data / name).rglob("*")) if each.suffix in {".geojson", ".topojson"})
    frame = pyogrio.read_dataframe(path, max_features=20_000, columns=[])
    frame = (frame if frame.crs is not None else frame.set_crs(4326)).to_crs(epsg)
    shapes = np.array([each for each in frame.geometry if each is not None and not each.is_empty], dtype=object)
    copied = WRITERS[writer](shapes, precision, tmp_path / "copy.geojson", f"EPSG:{epsg}")
    assert len(copied) == len(shapes)
    assert (shapely.to_wkb(copied) != shapely.to_wkb(shapes)).any(), "the copy was meant to be rounded"
    one, other = (pa.array(shapely.to_wkb(each, output_dimension=2), pa.binary()) for each in (shapes, copied))
    digests = [kernel.digest([], each, Grid(precision), Shape("any", "xy"), len(shapes)) for each in (one, other)]
    differ = np.asarray(pc.not_equal(*digests))
    # What rounding makes invalid GDAL repairs as it writes: that is another shape. All else is the same feature.
    stored, _ = kernel.canonical(one.filter(pa.array(differ)), Grid(precision), Shape("any", "xy"))
    assert not kernel.valid(stored).any()
    assert differ.sum() <= (2 if writer == "GDAL" else 0)
