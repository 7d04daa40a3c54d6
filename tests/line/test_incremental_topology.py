"""The topology of a night judged near its changes says what a check of all features says, for every rule set, night after night."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from estate import Estate, geoparquet
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

FIELDS = [{"name": "pid", "type": "string", "nullable": False}]
X, Y = 155_000, 463_000
SIDE = 4

NAMELESS = {"gap", "unconnected_end"}
"""Rules where which neighbours are named is a matter of order: of several with as much outline, or equally near."""


def cell(n, *, dx=0.0, east=0.0, middle=False, twisted=False):
    """The n-th square of a grid, moved, wider, with a vertex in the middle of its east side, or twisted into a bow-tie."""
    x, y = X + 10 * (n % SIDE) + dx, Y + 10 * (n // SIDE)
    corners = [(x, y), (x + 10 + east, y), *([(x + 10 + east, y + 4)] if middle else []), (x + 10 + east, y + 10), (x, y + 10)]
    return shapely.Polygon([corners[0], corners[2], corners[1], corners[3]] if twisted else corners)


def street(n, *, dx=0.0, part=1.0):
    """The n-th street of a grid, each between two crossings: first those to the east, then those to the north."""
    east = n < SIDE * (SIDE - 1)
    m = n if east else n - SIDE * (SIDE - 1)
    x, y = (X + 10 * (m % (SIDE - 1)), Y + 10 * (m // (SIDE - 1))) if east else (X + 10 * (m % SIDE), Y + 10 * (m // SIDE))
    return shapely.LineString([(x + dx, y), (x + dx + 10 * part * east, y + 10 * part * (not east))])


def solid(n, *, lid=True):
    """The n-th tetrahedron, closed or not."""
    x, y = X + 10 * n, Y
    faces = [
        [(0, 0, 0), (0, 5, 0), (5, 0, 0)],
        [(0, 0, 0), (5, 0, 0), (0, 0, 5)],
        [(5, 0, 0), (0, 5, 0), (0, 0, 5)],
        [(0, 5, 0), (0, 0, 0), (0, 0, 5)],
    ]
    return shapely.MultiPolygon([shapely.Polygon([(x + a, y + b, c) for a, b, c in face]) for face in faces[: 4 if lid else 3]])


PLANAR = {
    "good": cell,
    "moved": lambda n: cell(n, dx=0.5),
    "wider": lambda n: cell(n, east=3.0),
    "narrower": lambda n: cell(n, east=-0.5),
    "middle": lambda n: cell(n, middle=True),
    "twice": lambda n: cell(n - n % 2),
}
NETWORK = {
    "good": street,
    "moved": lambda n: street(n, dx=0.25),
    "shorter": lambda n: street(n, part=0.95),
    "stub": lambda n: street(n, part=0.5),
    "longer": lambda n: street(n, part=1.5),
    "twice": lambda n: street(n - n % 2),
}
SOLID = {"good": solid, "open": lambda n: solid(n, lid=False)}
RULES = {
    "planar": (
        PLANAR,
        SIDE * SIDE,
        {"geometry_type": "polygon"},
        [{}, {"gap_width": 1.0}, {"gap_width": 20.0}, {"gap_width": 1.0, "tolerance": 0.6}, {"tolerance": 0.6}],
    ),
    "network": (NETWORK, 2 * SIDE * (SIDE - 1), {"geometry_type": "linestring"}, [{}, {"dangle_length": 6.0}, {"tolerance": 0.6}]),
    "3d_solid": (SOLID, 4, {"geometry_type": "multipolygon", "geometry": {"dimensions": "xyz", "z_precision": 2}}, [{}]),
}


def nights(rule_set):
    """From three to five nights: what each feature is, most of them as they were; one is left out now and then, and comes back."""
    kinds, count, _, _ = RULES[rule_set]
    change = st.dictionaries(st.integers(0, count - 1), st.sampled_from([None, "good", "good", *kinds]), max_size=3)
    return st.lists(change, min_size=2, max_size=4)


def said(result):
    """Whether it is refused, and per rule how many faults and between which features."""
    rules = {}
    for each in result.findings:
        names = {tuple(sorted(set(re.findall(r"\bp\d+\b", f"{sample.observed} {sample.id}")))) for sample in each.features}
        rules[each.field, each.rule, each.severity] = (each.count, None if each.rule in NAMELESS else frozenset(names))
    return result.status in ("refused", "fail"), rules


def full(product, path):
    product.write(path)
    publication = with_source(read_publication(str(product.folder / "product.yaml")), str(path))
    return check(publication, CheckSettings(str(path), ""))[0]


def product(folder, rule_set, figures, fraction=0.0):
    made = Estate(
        folder, FIELDS, epsg=28992, precision=2, topology_rule_set=rule_set, topology_parameters=figures, **RULES[rule_set][2]
    ).agreed()
    made.settings["rejects"] = {"max_fraction": fraction}
    return made


def delivery(path, features):
    wkb = [shapely.to_wkb(each, flavor="iso") for each in features.values()]
    return geoparquet(path, {"pid": pa.array([f"p{n}" for n in features]), "geometry": pa.array(wkb, pa.binary())}, epsg=28992)


@pytest.mark.parametrize("rule_set", RULES)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_a_night_judged_near_its_changes_is_judged_as_a_whole(tmp_path_factory, rule_set, data):
    judged_as_a_whole(tmp_path_factory, rule_set, data)


@pytest.mark.soak
@pytest.mark.parametrize("rule_set", RULES)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_many_nights_judged_near_their_changes_are_judged_as_a_whole(tmp_path_factory, rule_set, data):
    judged_as_a_whole(tmp_path_factory, rule_set, data)


def judged_as_a_whole(tmp_path_factory, rule_set, data):
    kinds, count, _, figures = RULES[rule_set]
    folder = tmp_path_factory.mktemp(rule_set)
    standing = product(folder / "standing", rule_set, data.draw(st.sampled_from(figures)))
    kept = dict.fromkeys(range(count), "good")
    for number, change in enumerate([{}, *data.draw(nights(rule_set))]):
        tried = {**kept, **change}
        path = delivery(folder / f"{number}.parquet", {n: kinds[kind](n) for n, kind in tried.items() if kind is not None})
        expected = said(full(standing, path))
        assert said(standing.publish(path).result) == expected, (number, change)
        if not expected[0]:
            kept = tried


def test_ground_of_a_refused_feature_is_a_gap_once_it_is_delivered_no_more(tmp_path):
    """While the feature is delivered broken its ground is no gap. Then it is gone, and nothing else has changed."""
    standing = product(tmp_path / "standing", "planar", {}, fraction=1.0)
    cells = {n: cell(n) for n in range(SIDE * SIDE)}
    broken = delivery(tmp_path / "broken.parquet", {**cells, 5: cell(5, twisted=True)})
    assert standing.publish(broken).status == "published"
    gone = delivery(tmp_path / "gone.parquet", {n: shape for n, shape in cells.items() if n != 5})
    expected = said(full(standing, gone))
    assert expected[0]
    assert said(standing.publish(gone).result) == expected
