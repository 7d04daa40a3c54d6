"""Cases N01, N02, N06, N09, N10, N13, N15 to N19: what a driver hands over, cuts, drops or guesses."""

from __future__ import annotations

from pathlib import Path

import pyogrio
import pytest
import shapely

from estate import save

CASES = Path(__file__).parent
POINT = {"geometry_type": "point"}


def refused(night, product, version=None):
    """Nothing was published, and what was stays."""
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version == night.result.version


# --- N01 -------------------------------------------------------------------------------------------------------------------------------


def by_row(path, key):
    """Key to place, read feature by feature."""
    meta, _, shapes, columns = pyogrio.raw.read(path)
    keys = columns[meta["fields"].tolist().index(key)]
    return {each: None if shape is None else shapely.from_wkb(shape) for each, shape in zip(keys.tolist(), shapes, strict=True)}


@pytest.mark.parametrize("name", ["n", "six"])
def test_n01_a_null_geometry_in_a_flatgeobuf_moves_no_other(estate, name):
    path = CASES / f"N01/{name}.fgb"
    kinds = pyogrio.read_info(path)["dtypes"].tolist()
    names = pyogrio.read_info(path)["fields"].tolist()
    fields = [{"name": each, "type": "string" if kind == "object" else "integer"} for each, kind in zip(names, kinds, strict=True)]
    product = estate(fields, key="id", geometry_type="point", geometry={"nullable": True})
    night = product.publish(path)
    assert (night.status, night.result.rejected) == ("published", 0), night.said
    assert product.shapes() == by_row(path, "id")
    assert None in product.shapes().values()


@pytest.mark.parametrize("where", [{0}, {5}, {0, 1, 2}, {2, 3}, {1, 3, 5}, set(range(6))])
def test_n01_wherever_the_nulls_stand(estate, tmp_path, where):
    rows = [{"id": at, "geometry": None if at in where else shapely.Point(at, at)} for at in range(6)]
    path = save(rows, tmp_path / "d.fgb", SPATIAL_INDEX="NO", geometry_type="Point")
    product = estate([{"name": "id", "type": "integer"}], key="id", geometry_type="point", geometry={"nullable": True})
    night = product.publish(path)
    assert (night.status, night.result.rejected) == ("published", 0), night.said
    assert product.shapes() == {row["id"]: row["geometry"] for row in rows}
