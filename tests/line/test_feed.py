"""The feed between any two versions of a history that the line published is the difference of the two, whatever lay between, filtered or not."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely import Point

from estate import Estate, geoparquet
from merestone.dataset import feed
from merestone.dataset.filter import Filter, filtered, parse_where
from merestone.line.rollback import roll_back

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "owner", "type": "string"}, {"name": "rank", "type": "integer"}]
rows = st.fixed_dictionaries({
    "owner": st.sampled_from(["a", "b", None]), "rank": st.sampled_from([1, 2, None]), "district": st.sampled_from("ns"),
    "geometry": st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.0000001, 3.0]), st.sampled_from([0.0, 2.0])).map(Point) | st.none(),
})  # fmt: skip
states = st.dictionaries(st.sampled_from([f"p{n}" for n in range(6)]), rows, min_size=1)
SQUARE = shapely.box(-1, -1, 1, 1)
FILTERS = {
    "box": (Filter(bbox=(-1, -1, 1, 1)), lambda row: row["geometry"] is not None and shapely.from_wkb(row["geometry"]).intersects(SQUARE)),
    "owner": (Filter(where=parse_where("owner = 'a'")), lambda row: row["owner"] == "a"),
    "rank": (Filter(where=parse_where("rank >= 2")), lambda row: row["rank"] is not None and row["rank"] >= 2),
}


def save(path, state):
    return geoparquet(
        path,
        {
            "pid": list(state),
            "owner": pa.array([row["owner"] for row in state.values()], pa.string()),
            "rank": pa.array([row["rank"] for row in state.values()], pa.int64()),
            "district": [row["district"] for row in state.values()],
            "geometry": [row["geometry"] for row in state.values()],
        },
    )


def seen(row):
    return {name: value for name, value in row.items() if name != "bbox"}


def difference(before, after, places):
    """Key to class of two plain states; `places` are key to partition on each side."""
    out = {}
    for key in {*before, *after}:
        if key not in before or key not in after:
            out[key] = "added" if key not in before else "removed"
        elif seen(before[key]) != seen(after[key]):
            out[key] = "changed"
        elif places[0][key] != places[1][key]:
            out[key] = "moved"
    return out


def told(change):
    return dict(zip(change.key.column("pid").to_pylist(), change.table.column("class").to_pylist(), strict=True))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pool=st.lists(states, min_size=2, max_size=3), order=st.lists(st.integers(0, 2), min_size=2, max_size=4), back=st.booleans())
def test_over_random_histories(pool, order, back, tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    made = Estate(folder / "product", FIELDS, geometry={"nullable": True}).by_column(
        "district"
    )  # outside the contract: a feature can move without a change
    made.terms["geometry_type"] = "point"
    for number, which in enumerate(order):  # few states, so that what was comes back
        source = save(folder / f"{number}.parquet", pool[which % len(pool)])
        night = made.publish(source)
        if night.result.refused_by == "guard":
            night = made.publish(source, confirm=night.result.confirm)
        if night.status == "published" and made.version > 1:
            assert {name: count for name, count in feed.changes(made.dataset).counts().items() if name != "reversed"} == {
                name: getattr(night.result.delta, name)
                for name in ("added", "changed", "removed", "moved", "reprocessed", "rekeyed", "backfilled")
            }
    if back and len(made.dataset.versions()) > 1:
        roll_back(made.dataset, to=1, reason="test")
    versions = made.dataset.versions()
    contents = {number: (made.rows(number), made.partitions(number)) for number in versions}
    for start, end in combinations([0, *versions], 2):
        (before, there), (after, here) = contents.get(start, ({}, {})), contents[end]
        change = feed.changes(made.dataset, start, end, with_rows=True)
        assert told(change) == difference(before, after, (there, here)), (start, end)
        for wanted, meant in FILTERS.values():
            sides = [{key: row for key, row in side.items() if meant(row)} for side in (before, after)]
            assert told(filtered(change, wanted, "geometry")) == difference(*sides, (there, here)), (start, end, wanted)
        # A roll-back gathers what the steps that it takes back had changed, as a feed over several steps does.
        if made.manifest(end).parent == start and made.manifest(end).rollback is None:
            labels(change, before, after)


def test_moves_and_edits_that_come_back(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point").by_column("district")
    plain = {f"p{n}": {"owner": "a", "rank": n, "district": "n", "geometry": Point(n, 0)} for n in range(10)}
    made.publish(save(tmp_path / "1.parquet", plain))
    made.publish(save(tmp_path / "2.parquet", plain | {"p0": plain["p0"] | {"district": "s"}, "p1": plain["p1"] | {"owner": "b"}}))
    made.publish(save(tmp_path / "3.parquet", plain | {"p0": plain["p0"] | {"district": "s"}, "p2": plain["p2"] | {"district": "s"}}))
    made.publish(save(tmp_path / "4.parquet", plain))
    assert told(feed.changes(made.dataset, 1, 2)) == {"p0": "moved", "p1": "changed"}
    assert told(feed.changes(made.dataset, 1, 3)) == {"p0": "moved", "p2": "moved"}
    assert told(feed.changes(made.dataset, 1, 4)) == {}
    assert told(feed.changes(made.dataset, 2, 4)) == {"p0": "moved", "p1": "changed"}


def labels(change, before, after):
    """What a single step says of each changed feature: which fields, whether the geometry, and how far it moved."""
    for key, line in zip(change.key.column("pid").to_pylist(), change.table.to_pylist(), strict=True):
        if line["class"] != "changed":
            continue
        old, new = before[key], after[key]
        fields = sorted(name for name in ("owner", "rank") if old[name] != new[name])
        assert (line["attributes"], sorted(line["fields"] or [])) == (bool(fields), fields)
        assert line["geometry"] == (old["geometry"] != new["geometry"])
        if line["geometry"] and old["geometry"] is not None and new["geometry"] is not None:
            apart = shapely.distance(shapely.from_wkb(old["geometry"]), shapely.from_wkb(new["geometry"]))
            assert np.isclose(line["geometry_change"], apart, rtol=1e-9)
        else:
            assert line["geometry_change"] is None
