"""A change as a summary and as a map."""

import numpy as np
import pyarrow as pa
import pytest
from shapely import Point

from estate import save
from merestone.dataset.feed import changes
from merestone.inspect import show
from merestone.render.map import FEATURES, page

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "owner", "type": "string"}, {"name": "rank", "type": "integer"}]


def rows(count=30, **changed):
    out = {f"p{n:02d}": {"pid": f"p{n:02d}", "owner": "a", "rank": n, "geometry": Point(5 + n / 100, 52)} for n in range(count)}
    for pid, row in changed.items():
        out[pid] |= row
    return list(out.values())


@pytest.fixture
def product(estate, tmp_path):
    made = estate(FIELDS).agreed()
    made.nights = iter(range(99))
    made.night = lambda data: made.publish(save(data, tmp_path / f"{next(made.nights)}.gpkg"))
    made.night(rows())
    return made


def test_a_summary_counts_each_changed_feature_once(product):
    product.night(rows(p01={"owner": "b"}, p02={"geometry": Point(5.02, 52.5)}, p03={"owner": "b", "rank": 7, "geometry": Point(5.03, 53)}))
    _, result = show.changes(product.dataset, None, None)
    changed = result.changed
    assert (changed.attributes, changed.geometry, changed.both) == (1, 1, 1)
    assert (changed.most, changed.unit) == (("owner", 2), "degrees")
    assert changed.largest_move == pytest.approx(1.0)
    assert (result.before, result.after, result.unchanged) == ("product v1", "v2", 27)


def test_every_command_names_the_same_attribute_where_several_changed_as_often(product):
    night = product.night(rows(p01={"owner": "b", "rank": 70}, p02={"owner": "b", "rank": 71}))
    _, result = show.changes(product.dataset, None, None)
    assert night.result.changed.most == result.changed.most == ("owner", 2)
    product.night(rows(p01={"rank": 70}, p02={"rank": 71, "owner": "c"}))
    night = product.night(rows())
    _, result = show.changes(product.dataset, None, None)
    assert night.result.changed.most == result.changed.most == ("rank", 2)


def test_two_steps_are_one_change_with_the_values_of_both_ends(product):
    product.night(rows(p01={"owner": "b"}))
    product.night(rows(p01={"owner": "b", "rank": 7}))
    change, result = show.changes(product.dataset, 1, 3)
    (feature,) = show.change_map(product.dataset, change).features
    assert result.delta.changed == 1
    assert feature.fields == (("owner", "a", "b"), ("rank", 1, 7))


def test_a_feature_that_went_and_came_back_shows_what_differs(product):
    product.night(rows()[1:])
    product.night(rows(p00={"owner": "z"}))
    change, _ = show.changes(product.dataset, 1, 3)
    (feature,) = show.change_map(product.dataset, change).features
    assert (feature.key, feature.kind, feature.fields) == ("p00", "changed", (("owner", "a", "z"),))


def test_unchanged_features_are_the_ground_and_changed_ones_are_not(product):
    product.night(rows(p01={"owner": "b"}))
    change, _ = show.changes(product.dataset, None, None)
    made = show.change_map(product.dataset, change)
    assert len(made.context) == 29
    assert Point(5.01, 52).wkb not in {bytes(each) for each in made.context}
    assert (made.crs, made.geographic, made.precision, made.before, made.after) == ("EPSG:4326", True, 7, "v1", "v2")
    assert "p01" in page(made)


def test_a_large_change_shows_every_class():
    kinds = np.array(["added"] * (FEATURES * 2) + ["changed"] * 10 + ["removed"] * (FEATURES * 2) + ["reprocessed"] * 5)
    order = np.random.default_rng(1).permutation(len(kinds))
    shown = show._choose(pa.table({"class": kinds[order], "n": np.arange(len(kinds))}))
    counts = dict(zip(*np.unique(shown.column("class").to_pylist(), return_counts=True), strict=True))
    assert counts == {"added": 2495, "changed": 10, "removed": 2495}
    assert shown.column("n").to_pylist() == sorted(shown.column("n").to_pylist())


def test_a_change_of_nothing_is_an_empty_map(product):
    made = show.change_map(product.dataset, changes(product.dataset, 1, 1))
    assert (made.features, made.totals.touched) == ([], 0)
    assert "product" in page(made)
