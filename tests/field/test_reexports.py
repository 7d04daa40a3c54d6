"""Copies that common tools write at the contract's own precision change nothing, published over the real parcels, municipalities and roads."""

from __future__ import annotations

import numpy as np
import pyogrio
import pytest

from estate import Estate
from reexports import WRITERS, broken_by_rounding

pytestmark = pytest.mark.field

DATASETS = {
    "parcels": ("cam_parcels", 26986, 2),
    "parcels to the millimetre": ("cam_parcels", 26986, 3),
    "municipalities of Austria": ("at_gemeinden", 3035, 3),
    "municipalities of Norway": ("no_kommuner", 25833, 2),
    "roads": ("cam_centerlines", 4326, 7),
}
FIELDS = [{"name": "pid", "type": "string", "nullable": False}]


@pytest.fixture(scope="module", params=DATASETS)
def published(request, data, tmp_path_factory):
    """(product, rows) of a dataset, published as it is delivered, with all digits that its coordinates have."""
    name, epsg, precision = DATASETS[request.param]
    folder = tmp_path_factory.mktemp("product")
    path = next(each for each in sorted((data / name).rglob("*")) if each.suffix in {".geojson", ".topojson"})
    frame = pyogrio.read_dataframe(path, columns=[])
    frame = (frame if frame.crs is not None else frame.set_crs(4326)).to_crs(epsg)
    frame = frame[[each is not None and not each.is_empty for each in frame.geometry]].reset_index(drop=True)
    frame.insert(0, "pid", [f"f{n}" for n in range(len(frame))])
    frame.to_parquet(folder / "delivered.parquet")
    product = Estate(folder / "product", FIELDS, epsg=epsg, precision=precision)
    product.settings["rejects"] = {"max_fraction": 0.1}  # some are invalid as they are delivered
    night = product.publish(folder / "delivered.parquet")
    assert night.status == "published", night.said
    return product, frame, precision, night.result


@pytest.mark.parametrize("writer", WRITERS)
def test_a_copy_at_the_contracts_precision_is_unchanged(published, tmp_path, writer):
    product, frame, precision, first = published
    path = tmp_path / "copy.geojson"
    WRITERS[writer](frame, path, precision)
    rounded = np.asarray(pyogrio.read_dataframe(path, columns=[]).geometry.to_wkb()) != np.asarray(frame.geometry.to_wkb())
    assert rounded.any(), "the copy was meant to be rounded"
    result = product.publish(path, dry_run=True).result
    repaired = int(broken_by_rounding(frame.geometry.to_numpy(), precision).sum()) if writer == "GDAL" else 0
    # What rounding breaks is refused by the first publish; GDAL repairs it as it writes, and another shape arrives that can be published.
    delta = result.delta.to_json()
    assert (delta.pop("added"), result.rejected) == (repaired, first.rejected - repaired)
    assert not any(delta.values()), delta
    assert result.unchanged == first.features
    assert repaired or product.publish(path).status == "unchanged"
