"""Rounded and decimated deliveries are found, whatever part of the features they touch; surveys that are coarse by themselves are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contracts import contract
from estate import Estate, geoparquet
from merestone.contract.contract import GeometryClause
from merestone.gate.fineness import Fineness, coarse_features, fineness, measured_precision, precision, vertex_loss
from merestone.geometry import kernel
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

N = 600
PROMISED = 2


def histogram(x, y):
    out = np.zeros((2, 17), dtype=np.int64)
    for axis, counts in enumerate((x, y)):
        for decimals, count in counts.items():
            out[axis, decimals] = count
    return out


def ordinates(x, y):
    return Fineness(decimals=histogram(x, y))


def test_precision_is_the_least_grid_that_holds_99_percent():
    assert measured_precision(histogram({7: 990, 16: 10}, {7: 1000})) == 7
    assert measured_precision(histogram({7: 989, 16: 11}, {7: 1000})) == 7  # x alone would say 16, the lower axis counts
    assert measured_precision(histogram({16: 1000}, {16: 1000})) == 16


def test_coarser_than_promised_refuses_from_a_thousand_ordinates():
    promise = contract(coordinate_precision=7)
    assert precision(promise, ordinates({3: 500}, {3: 500})).severity == "error"
    few = precision(promise, ordinates({3: 499}, {3: 500}))
    assert few.severity == "warning"
    assert few.observed.startswith("undecided")


def test_finer_than_promised_is_no_breach():
    assert precision(contract(coordinate_precision=3), ordinates({16: 5000}, {16: 5000})) is None


def test_no_ordinates_is_no_finding():
    assert precision(contract(), ordinates({}, {})) is None


# --- feature by feature ----------------------------------------------------------------------------------------------------------------


def survey(kind, seed=0, n=N):
    """Shapes as a surveyor delivers them: coordinates at random places of the promised grid, or finer."""
    rng = np.random.default_rng(seed)
    at = np.column_stack([560_000 + 50.0 * (np.arange(n) % 30), 5_930_000 + 50.0 * (np.arange(n) // 30)])
    corners = at[:, None, :] + np.array([[0, 0], [20, 0], [30, 10], [30, 25], [15, 32], [0, 20]]) + np.round(rng.random((n, 6, 2)) * 9, 3)
    match kind:
        case "point":
            return shapely.points(corners[:, 0])
        case "linestring":
            return shapely.linestrings(corners)
        case "multipoint":
            return shapely.multipoints(shapely.points(corners))
        case "polygon":
            return shapely.polygons(corners)
    raise AssertionError(kind)


def rounded(shapes, share, decimals=0):
    """The first `share` of the shapes rounded, the others as they are."""
    some = round(share * len(shapes))
    out = shapes.copy()
    out[:some] = shapely.transform(shapes[:some], lambda xy: np.round(xy, decimals))
    return out


def counted(shapes, promised=PROMISED):
    wkb = pa.array(shapely.to_wkb(shapes), pa.binary())
    return fineness(wkb, kernel.scan(wkb), promised)


def judged(now, then=None, promised=PROMISED):
    last = None if then is None else counted(then, promised).record(promised)
    return precision(contract(coordinate_precision=promised), counted(now, promised), None, last, "v1")


@pytest.mark.parametrize("decimals", [1, 0, -1], ids=["decimetres", "metres", "tens of metres"])
@pytest.mark.parametrize("kind", ["point", "linestring", "polygon", "multipoint"])
@pytest.mark.parametrize("share", [0.98, 0.5, 0.1])
def test_rounded_features_are_found_beside_fine_ones(kind, share, decimals):
    good = survey(kind)
    finding = judged(rounded(good, share, decimals), good)
    assert (finding.rule, finding.severity, finding.count) == ("precision", "error", pytest.approx(share * N, abs=12))
    assert " % in v1" in finding.observed
    assert judged(good, good) is None


@pytest.mark.parametrize("kind", ["point", "polygon"])
def test_a_first_version_is_only_warned_of(kind):
    assert judged(rounded(survey(kind), 0.98)).severity == "warning"
    assert judged(survey(kind)) is None
    assert judged(rounded(survey(kind), 0.04)) is None


@pytest.mark.parametrize(("before", "now", "found"), [(0.2, 0.42, False), (0.2, 0.47, True), (0.9, 1.0, False), (0.0, 0.05, False)])
def test_a_survey_that_always_was_coarse_in_part_stays_sound(before, now, found):
    good = survey("polygon", n=1_000)
    finding = judged(rounded(good, min(now, 0.985)), rounded(good, before))
    assert (finding is not None) == found


def test_whole_units_and_regular_lattices_are_never_judged():
    assert judged(rounded(survey("polygon"), 0.98), survey("polygon"), promised=0) is None
    x, y = np.meshgrid(np.arange(30), np.arange(40))
    quarter = shapely.points(8 + 0.25 * x.ravel(), 50 + 0.25 * y.ravel())  # a quarter of them lies on whole halves
    assert judged(quarter) is None
    cells = shapely.box(
        *(560_000 + 500.0 * x.ravel(), 5_900_000 + 500.0 * y.ravel()), 560_500 + 500.0 * x.ravel(), 5_900_500 + 500.0 * y.ravel()
    )
    assert counted(cells).is_lattice
    assert not counted(rounded(survey("polygon"), 1.0)).is_lattice  # rounded is not regular
    assert not counted(rounded(survey("point"), 1.0, -1)).is_lattice


def test_few_ordinates_deny_nothing():
    good = survey("point", n=100)
    assert judged(rounded(good, 0.98), good).severity == "warning"
    assert judged(rounded(good, 0.5)) is None  # by chance, where nothing is known of it


def test_a_grid_that_changed_is_not_compared():
    good = survey("polygon")
    last = counted(good, 3).record(3)
    assert precision(contract(coordinate_precision=2), counted(rounded(good, 0.98)), None, last, "v1").severity == "warning"


WKB = st.lists(
    st.none()
    | st.sampled_from([b"", b"\x01", shapely.from_wkt("POINT EMPTY").wkb, shapely.from_wkt("POINT (nan 1)").wkb])
    | st.builds(
        lambda xy: shapely.LineString(xy).wkb, st.lists(st.tuples(*[st.integers(-999, 999).map(lambda n: n / 100)] * 2), min_size=2)
    ),
    max_size=9,
)


def test_a_copy_without_the_last_digits_of_a_computation_is_as_fine_as_its_original():
    drawn = 177_000 + np.random.default_rng(2).random((500, 2)) * 1_000
    metres = np.stack([np.round(xy, at % 4) for at, xy in enumerate(drawn)])
    copies = [metres, metres + 2e-4, metres - 2e-4, np.nextafter(metres, 0)]
    counts = [int(coarse_features(xy, np.ones(500, np.int64), 2).sum()) for xy in copies]
    assert len(set(counts)) == 1
    assert counts[0] >= 375


@given(WKB, st.integers(1, 3), st.data())
def test_counts_are_those_of_features_one_by_one_and_of_batches_together(values, promised, data):
    wkb = pa.array(values, pa.binary())
    whole = fineness(wkb, kernel.scan(wkb), promised)
    cut = data.draw(st.integers(0, len(values)))
    parts = Fineness()
    for each in (wkb[:cut], wkb[cut:]):
        parts.add(fineness(each, kernel.scan(each), promised))
    assert parts.record(promised) == whole.record(promised)
    assert (parts.decimals == whole.decimals).all()
    readable = [shapely.from_wkb(value) for value in values if value and len(value) > 1]
    known = [np.asarray(shapely.get_coordinates(each)) for each in readable]
    stored = [np.round(xy, promised) for xy in known]
    assert whole.coarse == sum(len(xy) > 0 and bool((np.round(xy, promised - 1) == xy).all()) for xy in stored)
    assert whole.vertices == sum(map(len, known))


def test_no_vertices_are_no_coarse_feature():
    assert not len(coarse_features(np.empty((0, 2)), np.zeros(3, np.int64), 2))


# --- vertices --------------------------------------------------------------------------------------------------------------------------


def circles(n, quarter):
    """Round shapes of `4 * quarter` vertices."""
    middle = np.arange(n)
    return shapely.buffer(shapely.points(560_000.5 + 100.0 * (middle % 40), 5_930_000.5 + 100.0 * (middle // 40)), 30, quad_segs=quarter)


def lost(now, then, *, most=None, same_crs=True):
    clause = GeometryClause(max_vertex_loss=most)
    return vertex_loss(contract(geometry=clause), counted(now, None), counted(then, None).record(None), "v1", same_crs=same_crs)


ROUND = circles(200, 10)
SHAPES = {
    "polygons": (ROUND, circles(200, 2)),
    "lines": (shapely.boundary(ROUND), shapely.boundary(circles(200, 2))),
    "points of many": (shapely.multipoints(shapely.get_coordinates(ROUND).reshape(200, 41, 2)), None),
    "simplified": (ROUND, shapely.simplify(ROUND, 5)),
    "generalised": (ROUND, circles(200, 2)[::2]),  # and small ones left out
}
SHAPES["points of many"] = (SHAPES["points of many"][0], shapely.multipoints(shapely.get_coordinates(ROUND).reshape(200, 41, 2)[:, ::5]))


@pytest.mark.parametrize("name", SHAPES)
def test_decimated_shapes_are_found(name):
    then, now = SHAPES[name]
    finding = lost(now, then)
    assert (finding.rule, finding.severity) == ("vertex_loss", "error")
    assert lost(now, then, same_crs=False) is not None
    assert lost(now, then, most=0.95) is None
    assert lost(then, then) is None
    assert lost(then, now) is None


@pytest.mark.parametrize(
    "now",
    [ROUND[:40], np.concatenate([ROUND, shapely.linestrings([[[0, 0], [900_000, 9]]] * 200)]), circles(200, 6), circles(0, 1)],
    ids=["features go", "long straight ones come", "a third goes", "nothing is left"],
)
def test_shapes_that_keep_their_vertices_are_sound(now):
    assert lost(now, ROUND) is None


def test_few_vertices_deny_nothing():
    assert lost(circles(5, 1), circles(5, 10)).severity == "warning"


# --- through both doors ----------------------------------------------------------------------------------------------------------------

FIELDS = [{"name": "pid", "type": "string", "nullable": False}]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """A survey, published once."""
    made = Estate(tmp_path_factory.mktemp("survey"), FIELDS, geometry_type="polygon", epsg=25832, precision=PROMISED).as_cases_run()
    night = made.publish(written(made, "first", survey("polygon")))
    assert (night.status, night.rules()) == ("published", set())
    return made


def written(made, name, shapes):
    return geoparquet(
        made.folder / f"{name}.parquet", {"pid": pa.array([f"p{n}" for n in range(len(shapes))]), "geometry": list(shapes)}, epsg=25832
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [("precision", lambda shapes: rounded(shapes, 0.98)), ("vertex_loss", shapely.envelope)],
)
def test_publish_refuses_what_check_refuses(product, name, change):
    spoiled = np.concatenate([change(survey("polygon"))[:590], survey("polygon")[590:]])
    if name == "vertex_loss":
        product.terms["geometry"] = {"max_vertex_loss": 0.1}
        product.stamp("v1.1.0")
    path = written(product, name, spoiled)
    product.write(path)
    publication = with_source(read_publication(str(product.folder / "product.yaml")), str(path))
    checked, _ = check(publication, CheckSettings(str(path), ""))
    night = product.publish(path, dry_run=True)
    product.terms.pop("geometry", None)
    product.stamp("v1.0.0")
    assert (night.status, checked.status) == ("refused", "fail")
    assert ("geometry", name) in night.rules("error")
    assert {(each.field, each.rule, each.severity) for each in checked.findings} == {
        (each.field, each.rule, each.severity) for each in night.result.findings
    }


def test_the_next_night_finds_the_measures_in_the_manifest(product):
    kept = product.manifest().delivery["coordinates"]["geometry"]
    assert kept == {
        "features": N,
        "vertices": 7 * N,
        "span": kept["span"],
        "precision": PROMISED,
        "coarse": 0,
        "coarse_axes": kept["coarse_axes"],
    }


# --- quick ways, and what they stand for -------------------------------------------------------------------------------------------------

ordinates_of_all_sizes = st.one_of(
    st.floats(),
    st.integers(-(10**18), 10**18).map(float),
    st.integers(-(10**9), 10**9).map(lambda n: n / 1000),
    st.sampled_from([2.0**53 + 2, 1e300]),
)


@given(st.lists(st.tuples(ordinates_of_all_sizes, ordinates_of_all_sizes), max_size=30), st.integers(0, 9))
def test_what_lies_on_a_grid_has_no_remainder(positions, decimals):
    xy = np.array(positions, np.float64).reshape(-1, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        on = (np.fmod(np.rint(xy * 10.0 ** (decimals + 1)), 10) == 0).all(axis=1)
    assert coarse_features(xy, np.ones(len(xy), np.int64), decimals).tolist() == on.tolist()
    sizes = np.array([len(xy)], np.int64)
    assert coarse_features(xy, sizes, decimals).tolist() == ([bool(on.all())] if len(xy) else [])
