"""Coverages on few places, so that corners, edges and areas coincide all the time, judged again pair by pair and face by face."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shapely import MultiPolygon, Point, Polygon, box

from merestone.gate.topology_planar import check_planar
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape


def stored(shapes):
    wkb = pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())
    return kernel.canonical(wkb, Grid(0), Shape("multipolygon", "xy"))[0].cast(pa.binary())


# --- coverages -------------------------------------------------------------------------------------------------------------------------


def usable(shape):
    """A valid area with its corners on the grid."""
    xy = shapely.get_coordinates(shape)
    return shape.geom_type in ("Polygon", "MultiPolygon") and shape.is_valid and shape.area > 0 and not (xy != np.rint(xy)).any()


def corners(random, size, count):
    return [(random.randint(0, size), random.randint(0, size)) for _ in range(count)]


def rectangle(random, size, least=1):
    x, y = random.randint(0, size - least), random.randint(0, size - least)
    return box(x, y, random.randint(x + least, size), random.randint(y + least, size))


def cells(random, size):
    """Squares that make one or several areas, with a vertex at each corner or only where the outline bends."""
    shape = shapely.union_all([box(x, y, x + 1, y + 1) for x, y in corners(random, size - 1, random.randint(1, 6))])
    return random.choice([shape.segmentize(1), shape.simplify(0)])


def with_hole(random, size):
    hole = Polygon(corners(random, size, random.randint(3, 5)))
    shell = rectangle(random, size, 3)
    return shell.difference(hole) if hole.is_valid else shell


def several(random, size):
    return MultiPolygon([Polygon(corners(random, size, 3)) for _ in range(random.randint(2, 3))])


FORMS = [rectangle, lambda random, size: Polygon(corners(random, size, random.randint(3, 7))), cells, with_hole, several]


def areas(random, size, count):
    return [shape for shape in (random.choice(FORMS)(random, size) for _ in range(count)) if usable(shape)]


def divided(random, size):
    """A square divided without overlap or gap; neighbours do not always have each other's vertices."""
    parts = [box(0, 0, size, size)]
    for cutter in areas(random, size, random.randint(1, 4)):
        pieces = [piece for part in parts for piece in (part.intersection(cutter), part.difference(cutter))]
        pieces = [MultiPolygon([each for each in shapely.get_parts(piece).tolist() if each.geom_type == "Polygon"]) for piece in pieces]
        parts = [piece for piece in pieces if usable(piece)]
    random.shuffle(parts)
    return parts


@st.composite
def coverages(draw):
    """Up to some ten areas: loose ones, or a division that may lack a part, have one twice or something on top; perhaps the same again far away."""
    random, size = draw(st.randoms(use_true_random=False)), draw(st.integers(3, 6))
    shapes = divided(random, size) if draw(st.booleans()) else areas(random, size, draw(st.integers(1, 7)))
    fault = draw(st.sampled_from(["none", "lacks", "twice", "finer", "more"]))
    if shapes and fault == "lacks":
        shapes.pop()
    elif shapes and fault in ("twice", "finer"):
        shapes.append(random.choice(shapes).segmentize(1 if fault == "finer" else 1000))
    elif fault == "more":
        shapes += areas(random, size, 1)
    if draw(st.booleans()):
        x, y = draw(st.sampled_from([(10, 0), (40, 20)]))
        shapes += [shapely.transform(shape, lambda xy: xy + np.array([x, y])) for shape in shapes[: draw(st.integers(0, len(shapes)))]]
    return [shape for shape in shapes if usable(shape)]


# --- the same questions, asked one by one ----------------------------------------------------------------------------------------------


def overlapping(shapes):
    return {(a, b) for a, b in combinations(range(len(shapes)), 2) if shapely.relate_pattern(shapes[a], shapes[b], "T********")}


def open_faces(shapes):
    """The faces of all outlines together that no polygon covers."""
    lines = shapely.union_all(shapely.get_rings(shapely.get_parts(np.array(shapes, dtype=object))))
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(lines))).tolist()
    return [each for each in faces if each.area > 1e-9 and not any(shape.intersects(each.representative_point()) for shape in shapes)]


def edges(shape):
    """Edges with the inside to the left."""
    parts = [shapely.geometry.polygon.orient(each) for each in shapely.get_parts(shape).tolist()]
    return [edge for part in parts for ring in (part.exterior, *part.interiors) for edge in pairwise(ring.coords)]


def unlike_borders(shapes):
    """Pairs with a stretch of border between them that is no edge of both: in whole numbers."""
    found = set()
    sides = [edges(shape) for shape in shapes]
    for one, other in combinations(range(len(shapes)), 2):
        if any(_share_a_stretch(p, q) for p in sides[one] for q in sides[other] if p != q[::-1]):
            found.add((one, other))
    return found


def _share_a_stretch(one, other):
    """Whether edges that run in opposite directions lie on each other."""
    (px, py), (qx, qy) = one
    dx, dy = qx - px, qy - py
    if any((x - px) * dy != (y - py) * dx for x, y in other):
        return False
    begin, end = ((x - px) * dx + (y - py) * dy for x, y in other)
    return end < begin and max(end, 0) < min(begin, dx * dx + dy * dy)


def outline_of(face, shapes):
    """How much of the outline of a face is of each polygon."""
    length = dict.fromkeys(range(len(shapes)), 0.0)
    for (ax, ay), (bx, by) in (edge for ring in (face.exterior, *face.interiors) for edge in pairwise(ring.coords)):
        middle = Point((ax + bx) / 2, (ay + by) / 2)
        for n, shape in enumerate(shapes):
            if shape.boundary.distance(middle) < 1e-9:
                length[n] += np.hypot(ax - bx, ay - by)
    return length


@settings(max_examples=500, deadline=None)
@given(coverages())
@example([Polygon([(0, 0), (0, 1), (1, 3)]), Polygon([(0, 0), (0, 3), (1, 0)]), Polygon([(0, 3), (0, 4), (1, 3)])])
@example([box(0, 0, 6, 6).difference(box(2, 2, 4, 4))] * 2 + [box(2, 2, 4, 4)] * 2)  # all four edges of the hole fall together
@example(
    [MultiPolygon([box(0, 0, 4, 5).difference(box(1, 1, 4, 4)), Polygon([(2, 1), (3, 2), (2, 4)])])]
)  # two parts of one enclose ground
@example([box(0, 0, 4, 1), box(0, 1, 4, 2), box(0, 1, 2, 3), box(2, 1, 4, 3)])  # the second cancels an edge that two others lie on
@example([box(0, 0, 4, 1), box(0, 1, 4, 2), box(0, 1, 4, 2), box(2, 1, 3, 2)])  # a third's vertices split two equal edges
@example(
    [box(0, 1, 9, 2), box(0, 7, 9, 8), box(1, 0, 2, 9), box(7, 0, 8, 9), box(4, 4, 5, 5)]
)  # four that cross around ground with an island
def test_it_agrees_with_a_comparison_of_all_pairs_and_all_faces(shapes):
    wkb = stored(shapes)
    found = check_planar(wkb, 0)
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False)).tolist()
    overlaps, mismatches = (
        [(int(a), int(b)) for a, b in zip(each.one, each.other, strict=True)] for each in (found.overlaps, found.mismatches)
    )
    assert sorted(overlaps) == sorted(overlapping(shapes))
    assert sorted(mismatches) == sorted(unlike_borders(shapes))
    faces = open_faces(shapes)
    assert len(found.gaps) == len(faces)
    for n, place in enumerate(shapely.points(found.gaps.x, found.gaps.y).tolist()):
        (face,) = [each for each in faces if each.contains(place)]
        assert found.gaps.size[n] == pytest.approx(face.area)
        _named_beside(face, shapes, [int(each) for each in (found.gaps.one[n], found.gaps.other[n]) if each >= 0])


def _named_beside(face, shapes, named):
    """The two with the most outline are named beside a gap, or the only one; where polygons overlap, one whose outline lies there too may be."""
    length = outline_of(face, shapes)
    assert all(length[each] > 0 for each in named)
    if not overlapping(shapes):
        most = sorted((each for each in length.values() if each > 0), reverse=True)[:2]
        assert sorted((length[each] for each in named), reverse=True) == pytest.approx(most)
