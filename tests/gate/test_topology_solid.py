from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
import shapely

from merestone.gate.topology_solid import check_solids
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

CUBE = [
    [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0)],
    [(0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)],
    [(0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)],
    [(1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)],
    [(1, 1, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)],
    [(0, 1, 0), (0, 0, 0), (0, 0, 1), (0, 1, 1)],
]
TETRAHEDRON = [
    [(0, 0, 0), (0, 1, 0), (1, 0, 0)],
    [(0, 0, 0), (1, 0, 0), (0, 0, 1)],
    [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    [(0, 1, 0), (0, 0, 0), (0, 0, 1)],
]


def multi(faces):
    return shapely.to_wkb(shapely.MultiPolygon([shapely.Polygon(face) for face in faces]), flavor="iso")


def surface(faces, kind=15, order="<"):
    member = {15: 1003, 16: 1017}[kind]
    mark = b"\x01" if order == "<" else b"\x00"
    out = mark + struct.pack(f"{order}II", 1000 + kind, len(faces))
    for face in faces:
        ring = [*face, face[0]]
        out += mark + struct.pack(f"{order}III", member, 1, len(ring)) + b"".join(struct.pack(f"{order}3d", *xyz) for xyz in ring)
    return out


def shells(*values):
    return check_solids(pa.array(values, pa.binary()), 2, 2)


@pytest.mark.parametrize(
    "value", [multi(CUBE), surface(CUBE), surface(CUBE, order=">"), surface(TETRAHEDRON, 16), surface(TETRAHEDRON, 16, ">"), None]
)
def test_a_closed_shell_has_no_findings(value):
    found = shells(value)
    assert (len(found), len(found.unread)) == (0, 0)


@pytest.mark.parametrize("faces", [CUBE, TETRAHEDRON])
@pytest.mark.parametrize("write", [multi, surface])
def test_a_face_that_is_missing_leaves_its_edges_open(faces, write):
    found = shells(write(faces), write(faces[1:]))
    assert (found.row.tolist(), found.open_edges.tolist(), found.crowded.tolist()) == ([1], [len(faces[0])], [0])


def test_a_face_that_stands_twice_crowds_its_edges():
    found = shells(multi([*CUBE, CUBE[0]]))
    assert (found.open_edges.tolist(), found.crowded.tolist()) == ([0], [4])


def test_a_corner_that_lies_apart_opens_the_shell():
    apart = [
        [(1.01, 1, 1) if corner == (1, 1, 1) else corner for corner in CUBE[0 if n else 1]] if not n else face
        for n, face in enumerate(CUBE)
    ]
    assert len(shells(multi(apart))) == 1


def test_the_stored_form_of_a_solid_is_judged_alike():
    stored = kernel.canonical(pa.array([multi(CUBE), multi(CUBE[1:])], pa.binary()), Grid(2), Shape("multipolygon", "xyz"))[0].cast(
        pa.binary()
    )
    assert check_solids(stored, 2, 2).row.tolist() == [1]


def test_the_place_of_an_open_edge_is_told():
    found = shells(multi([face for face in CUBE if face != CUBE[1]]))
    assert 0 <= found.x[0] <= 100
    assert 0 <= found.y[0] <= 100


@pytest.mark.parametrize(
    "value",
    [
        shapely.to_wkb(shapely.box(0, 0, 1, 1)),  # no Z
        shapely.to_wkb(shapely.Point(1, 1, 1), flavor="iso"),
        surface(TETRAHEDRON, 16)[:-8],
        surface(CUBE)[:-8],
    ],
)
def test_what_cannot_be_judged_is_said(value):
    found = shells(multi(CUBE), value)
    assert found.unread.tolist() == [1]


def test_many_solids_are_judged_apart():
    moved = [[[(x + 2 * n, y, z) for x, y, z in face] for face in CUBE[n % 2 :]] for n in range(20)]
    assert shells(*[multi(each) for each in moved]).row.tolist() == list(np.arange(1, 20, 2))
