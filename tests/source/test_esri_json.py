"""Esri's own JSON: every row as it was written, and what GDAL would change in silence named with its row."""

from __future__ import annotations

import itertools
import json

import pyarrow as pa
import pytest
import shapely

from merestone.errors import SourceError
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

FIELDS = [
    {"name": "code", "type": "esriFieldTypeString"},
    {"name": "n", "type": "esriFieldTypeInteger"},
    {"name": "d", "type": "esriFieldTypeDouble"},
]
KINDS = {
    "esriGeometryPoint": ({"x": 1, "y": 2}, "POINT (1 2)", {"x": None, "y": None}, None),
    "esriGeometryMultipoint": ({"points": [[1, 2], [3, 4]]}, "MULTIPOINT (1 2, 3 4)", {"points": []}, "MULTIPOINT EMPTY"),
    "esriGeometryPolyline": ({"paths": [[[0, 0], [1, 1]]]}, "LINESTRING (0 0, 1 1)", {"paths": []}, "LINESTRING EMPTY"),
    "esriGeometryPolygon": (
        {"rings": [[[0, 0], [0, 1], [1, 1], [0, 0]]]},
        "POLYGON ((0 0, 0 1, 1 1, 0 0))",
        {"rings": []},
        "POLYGON EMPTY",
    ),
}
RUNS = [each for run in itertools.product(("full", "null", "empty"), repeat=3) for each in run]


def opened(path, kind, features, *, fields_last=False, **members):
    fields = {"fields": FIELDS}
    document = {"geometryType": kind, "spatialReference": {"wkid": 102100, "latestWkid": 3857}, **members}
    document |= {"features": features, **fields} if fields_last else {**fields, "features": features}
    (path / "a.json").write_text(json.dumps(document))
    return open_source(SourceSpec(str(path / "a.json")))


def texts(column):
    return [None if each is None else shapely.from_wkb(each).wkt for each in column.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_read_whatever_stands_where(tmp_path, kind):
    full, wkt, empty, empty_wkt = KINDS[kind]
    held = {"full": (full, wkt, 1, "x"), "null": (None, None, None, None), "empty": (empty, empty_wkt, 0, "")}
    features = [{"attributes": {"code": held[each][3], "n": held[each][2], "d": held[each][2]}, "geometry": held[each][0]} for each in RUNS]
    source = opened(tmp_path, kind, features)
    assert (source.delivery.rows, source.delivery.findings, source.delivery.misfits) == (len(RUNS), (), ())
    for batch_rows in (1, 2, 3, 65_536):
        found = pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)
        assert texts(found["geometry"]) == [None if held[each][1] is None else shapely.from_wkt(held[each][1]).wkt for each in RUNS]
        for at, name in ((2, "n"), (3, "code"), (2, "d")):
            assert found[name].to_pylist() == [held[each][at] for each in RUNS], (batch_rows, name)


@pytest.mark.parametrize(
    ("kind", "geometry", "said"),
    [
        ("esriGeometryPoint", {"x": "1", "y": 2}, 'x and y are "1" and 2, not two numbers'),
        ("esriGeometryPoint", {"x": 1}, "x and y are 1 and null, not two numbers"),
        ("esriGeometryPoint", {"lon": 1}, '{"lon": 1} has no x, points, paths or rings'),
        ("esriGeometryPoint", "1 2", 'the geometry is "1 2", not an object'),
        ("esriGeometryMultipoint", {"points": [[1, 2], ["x", 4]]}, 'points[1] is ["x", 4], not a position of two or more numbers'),
        ("esriGeometryPolyline", {"paths": [[[0, 0], [1, 1]], "x"]}, 'paths[1] is "x", not a list'),
        ("esriGeometryPolygon", {"rings": [[[0, 0], [0], [1, 1], [0, 0]]]}, "rings[0][1] is [0], not a position of two or more numbers"),
        ("esriGeometryPolygon", {"curveRings": [[[0, 0], {"c": [[1, 1], [2, 0]]}]]}, "curveRings are not read"),
    ],
)
def test_a_geometry_that_cannot_be_read_is_named_with_its_row(tmp_path, kind, geometry, said):
    good = {"attributes": {}, "geometry": KINDS[kind][0]}
    (misfits,) = opened(tmp_path, kind, [good, {"attributes": {}, "geometry": geometry}, good]).delivery.misfits
    assert (misfits.name, misfits.rows.tolist(), misfits.observed.to_pylist()) == ("geometry", [2], [said])


@pytest.mark.parametrize("fields_last", [False, True])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("n", 1.75, "1.75 is not an integer of 32 bits"), ("n", "zz", '"zz" is not an integer of 32 bits'), ("n", 2.0, None),
        ("n", 2**31, "2147483648 is not an integer of 32 bits"), ("n", True, "true is not an integer of 32 bits"),
        ("d", "1,5", '"1,5" is not a number'), ("d", 7, None),
    ],
)  # fmt: skip
def test_an_attribute_is_held_to_the_type_of_its_field(tmp_path, name, value, said, fields_last):
    features = [{"attributes": {name: each}, "geometry": None} for each in (1, value)]
    misfits = opened(tmp_path, "esriGeometryPoint", features, fields_last=fields_last).delivery.misfits
    assert [(each.name, each.rows.tolist(), each.observed.to_pylist()) for each in misfits] == (
        [] if said is None else [(name, [2], [said])]
    )


def test_an_attribute_that_is_not_listed_is_not_left_out(tmp_path):
    with pytest.raises(SourceError, match="feature 1 has an attribute 'm', which the fields of the document do not list"):
        opened(tmp_path, "esriGeometryPoint", [{"attributes": {"m": 1}, "geometry": None}])


@pytest.mark.parametrize(
    ("reference", "refused"), [({"wkid": 102100}, False), ({"wkid": 3857}, False), ({"wkid": 25832}, True), ({}, False)]
)
def test_a_geometry_in_another_system_than_its_document_refuses_the_delivery(tmp_path, reference, refused):
    features = [{"attributes": {}, "geometry": {"x": 1, "y": 2, "spatialReference": reference}}]
    found = opened(tmp_path, "esriGeometryPoint", features).delivery.findings
    assert [(each.rule, each.severity) for each in found] == ([("crs_mismatch", "error")] if refused else [])
