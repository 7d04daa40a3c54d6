"""A change as a summary and as a map."""

import numpy as np
import pytest
from shapely import Point

from estate import save
from merestone.dataset.feed import changes
from merestone.inspect import show
from merestone.render.map import page

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


def test_a_large_change_is_drawn_from_every_place_and_counted_by_cell(product, monkeypatch):
    """The first of many changes, in the order of keys, lie in one corner."""
    monkeypatch.setattr(show, "FEATURES", 8)
    moved = {f"p{n:02d}": {"owner": "b"} for n in range(2, 30)}
    product.settings["guard"] = {"max_changed_fraction": 1}
    product.night([*rows(**moved)[1:], {"pid": "q", "owner": "a", "rank": 1, "geometry": Point(9, 53)}])
    change, _ = show.changes(product.dataset, None, None)
    made = show.change_map(product.dataset, change)
    assert (made.totals.added, made.totals.changed, made.totals.removed) == (1, 28, 1)
    kinds = [each.kind for each in made.features]
    assert len(kinds) == 8
    assert kinds.count("added") == kinds.count("removed") == 1
    drawn = sorted(int(each.key[1:]) for each in made.features if each.kind == "changed")
    assert drawn[0] < 8
    assert drawn[-1] > 23
    counts = np.array(made.cells.counts)
    assert counts[:, 1:].sum(axis=0).tolist() == [1, 28, 1, 0]
    assert len(counts) < 30
    assert (made.cells.x, made.cells.y) == (pytest.approx(5.0), 52.0)


def test_a_change_of_nothing_is_an_empty_map(product):
    made = show.change_map(product.dataset, changes(product.dataset, 1, 1))
    assert (made.features, made.totals.touched) == ([], 0)
    assert "product" in page(made)
