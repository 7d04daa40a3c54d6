from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from merestone.gate import topology_borders
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape


def stored(shapes):
    wkb = pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())
    return kernel.canonical(wkb, Grid(0), Shape("multipolygon", "xy"))[0].cast(pa.binary())


@pytest.fixture
def left(monkeypatch):
    """The edges that cancel nothing, looked at in strips of some vertices, and how many rows were read for them."""
    read = []
    edges_of = topology_borders.edges_of
    monkeypatch.setattr(topology_borders, "edges_of", lambda wkb, *given, **more: read.append(len(wkb)) or edges_of(wkb, *given, **more))

    def run(shapes, strip):
        read.clear()
        monkeypatch.setattr(topology_borders, "_STRIP", strip)
        found = topology_borders.outline(stored(shapes), 0)
        return (
            sorted(zip(*(each.tolist() for each in (found.x0, found.y0, found.x1, found.y1, found.owner)), strict=True)),
            list(read),
            found,
        )

    return run


def scattered(side=12):
    """Squares with one twice, one missing and one that lies on four others, in any order; the longest reaches over three."""
    shapes = [shapely.box(4 * i, 4 * j, 4 * i + 4, 4 * j + 4) for i in range(side) for j in range(side) if (i, j) != (5, 5)]
    shapes += [shapes[40], shapely.box(10, 10, 14, 14), shapely.box(0, 4 * side, 12, 4 * side + 2)]
    return [shapes[n] for n in np.random.default_rng(1).permutation(len(shapes))]


@pytest.mark.parametrize("strip", [20, 100, 400])
def test_strips_leave_the_edges_that_the_whole_leaves(left, strip):
    shapes = scattered()
    whole, read, _ = left(shapes, 1 << 20)
    assert read == [len(shapes)]
    some, read, found = left(shapes, strip)
    assert some == whole
    assert len(read) > 1
    assert sum(read) < 2 * len(shapes)
    heads = np.flatnonzero(np.diff(found.line)) + 1
    assert len(np.unique(found.line)) == len(heads) + 1, "edges of one ring in one strip follow each other"


def test_polygons_that_reach_over_everything_are_not_read_for_every_strip(left):
    shapes = [shapely.box(0, n, 100, n + 1) for n in range(50)]
    _, read, _ = left(shapes, 10)
    assert sum(read) <= 2 * len(shapes)


def test_nothing_leaves_nothing(left):
    assert left([], 10)[0] == []
    assert left([None, shapely.Polygon()], 10)[0] == []
