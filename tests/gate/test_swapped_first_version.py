"""A first version that was swapped, and confirmed: the next good night says how to get out, and the way that it says is one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from shapely import Point

from estate import Estate, geoparquet

WHERE = {
    4326: (10, 20, 40, 50), 3857: (500_000, 540_000, 6_000_000, 6_040_000), 25833: (500_000, 540_000, 600_000, 640_000),
}  # fmt: skip


@pytest.mark.parametrize("epsg", WHERE)
def test_a_swapped_first_version_is_not_for_good(tmp_path, epsg):
    west, east, south, north = WHERE[epsg]
    made = Estate(tmp_path, [{"name": "pid", "type": "string"}], epsg=epsg, precision=2)
    made.terms.pop("extent", None)
    made.sees_the_order = False
    chance = np.random.default_rng(1)
    xy = np.column_stack([chance.uniform(west, east, 60), chance.uniform(south, north, 60)])
    keys = pa.array([f"p{n}" for n in range(len(xy))])
    bad, good = (
        geoparquet(tmp_path / f"{name}.parquet", {"pid": keys, "geometry": [Point(*each) for each in places]}, epsg=epsg)
        for name, places in (("bad", xy[:, ::-1]), ("good", xy))
    )
    first = made.publish(bad)
    assert (first.status, first.result.refused_by) == ("refused", "guard")
    assert made.publish(bad, confirm=first.result.confirm).status == "published"

    night = made.publish(good)
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    assert "If v1 is the one that is swapped, state in the contract the `extent`" in night.said
    made.terms["extent"] = [west - 1, south - 1, east + 1, north + 1]
    made.stamp("v1.1.0")
    again = made.publish(good)
    assert (again.result.refused_by, "an axis swap" in again.said) == ("guard", True)
    assert made.publish(good, confirm=again.result.confirm).status == "published"
    assert made.publish(good).status == "unchanged"
    assert made.publish(bad).result.refused_by == "contract"
    assert "If v2 is the one" not in made.publish(bad).said, "the stated extent says so too"
