"""TopoJSON read strictly: every feature is a row, and what cannot be read is named with its row and never left out."""

from __future__ import annotations

import itertools
import json

import pyarrow as pa
import pytest
import shapely

from merestone.errors import SourceError
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

POINT = {"type": "Point", "coordinates": [1, 2]}
ARCS = [[[0, 0], [1, 0]], [[1, 0], [1, 1], [0, 0]], [[5, 5], [6, 6]]]
# each as TopoJSON over these arcs, and as it is meant
KINDS = {
    "Point": (POINT, "POINT (1 2)"),
    "MultiPoint": ({"type": "MultiPoint", "coordinates": [[1, 1], [2, 2]]}, "MULTIPOINT (1 1, 2 2)"),
    "LineString": ({"type": "LineString", "arcs": [0, 1]}, "LINESTRING (0 0, 1 0, 1 1, 0 0)"),
    "MultiLineString": ({"type": "MultiLineString", "arcs": [[-1], [2]]}, "MULTILINESTRING ((1 0, 0 0), (5 5, 6 6))"),
    "Polygon": ({"type": "Polygon", "arcs": [[-2, -1]]}, "POLYGON ((0 0, 1 1, 1 0, 0 0))"),
    "MultiPolygon": ({"type": "MultiPolygon", "arcs": [[[0, 1]]]}, "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"),
    "GeometryCollection": (
        {"type": "GeometryCollection", "geometries": [POINT, {"type": "LineString", "arcs": [2]}]},
        "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (5 5, 6 6))",
    ),
}
EMPTY = {"MultiPoint": "coordinates", "LineString": "arcs", "MultiLineString": "arcs", "Polygon": "arcs", "MultiPolygon": "arcs"}
RUNS = [each for run in itertools.product(("full", "null", "empty"), repeat=3) for each in run]


def opened(path, features, *, name="topology.topojson", arcs=ARCS, objects=None, layer=None, **members):
    path /= name
    collection = {"lots": {"type": "GeometryCollection", "geometries": features}}
    path.write_text(json.dumps({"type": "Topology", "objects": objects or collection, "arcs": arcs, **members}))
    return open_source(SourceSpec(str(path), layer=layer))


def rows_of(source, batch_rows=65_536):
    return pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)


def texts(column):
    return [None if each is None else shapely.from_wkb(each).wkt for each in column.to_pylist()]


@pytest.mark.parametrize("name", ["a.topojson", "a.json"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_feature_is_a_row_whatever_stands_where(tmp_path, kind, name):
    made, wkt = KINDS[kind]
    held = EMPTY.get(kind)
    values = {
        "full": (made, wkt),
        "null": ({"type": None}, None),
        "empty": ({"type": kind, held: []}, f"{kind.upper()} EMPTY") if held else ({"type": None}, None),
    }
    features = [{**values[each][0], "properties": {"code": str(at)}} for at, each in enumerate(RUNS)]
    source = opened(tmp_path, features, name=name)
    assert (source.delivery.driver, source.delivery.rows, source.delivery.geometry.crs) == ("TopoJSON", len(RUNS), None)
    for batch_rows in (1, 2, 3, 65_536):
        found = rows_of(source, batch_rows)
        assert texts(found["geometry"]) == [None if values[each][1] is None else shapely.from_wkt(values[each][1]).wkt for each in RUNS]
        assert found["code"].to_pylist() == [str(at) for at in range(len(RUNS))]
    assert source.delivery.misfits == ()


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        ({"type": "LineString", "arcs": [3]}, "arcs[0] is 3, and the topology has 4 arcs"),
        ({"type": "Polygon", "arcs": [[0, 1], [-9]]}, "arcs[1][0] is -9, and the topology has 4 arcs"),
        ({"type": "MultiPolygon", "arcs": [[["0"]]]}, 'arcs[0][0][0] is "0", and the topology has 4 arcs'),
        ({"type": "LineString", "arcs": [True]}, "arcs[0] is true, and the topology has 4 arcs"),
        ({"type": "LineString", "arcs": [0, 2]}, "arcs[1]: arc 2 does not begin where the arc before it ends"),
        ({"type": "LineString"}, "arcs is null, not a list"),
        ({"type": "Point", "coordinates": ["x", 2]}, 'coordinates is ["x", 2], not a position of two or more numbers'),
        ({"type": "MultiPoint", "coordinates": [[1, 2], [3]]}, "coordinates[1] is [3], not a position of two or more numbers"),
        ({"type": "Circle"}, '"Circle" is not a type of geometry'),
        ({}, '"(none)" is not a type of geometry'),
        ({"type": "GeometryCollection", "geometries": [{"type": None}]}, "a GeometryCollection without a list of geometries"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_row(tmp_path, geometry, said):
    arcs = [*ARCS, [[0, 0], ["x", 1]]]
    said = said.replace("is 3,", "is 4,")
    if geometry.get("arcs") == [3]:
        geometry = {**geometry, "arcs": [4]}
    source = opened(tmp_path, [POINT, {**geometry, "properties": {"code": "b"}}, POINT], arcs=arcs)
    (misfits,) = source.delivery.misfits
    assert (misfits.name, misfits.rows.tolist(), misfits.observed.to_pylist()) == ("geometry", [2], [said])
    assert texts(rows_of(source)["geometry"]) == ["POINT (1 2)", None, "POINT (1 2)"]


def test_a_position_of_an_arc_that_is_none_is_told_of_each_feature_with_that_arc(tmp_path):
    line = {"type": "LineString", "arcs": [0]}
    source = opened(tmp_path, [line, {"type": "LineString", "arcs": [1]}, line], arcs=[[[0, 0], [1]], [[0, 0], [1, 1]]])
    (misfits,) = source.delivery.misfits
    assert misfits.rows.tolist() == [1, 3]
    assert set(misfits.observed.to_pylist()) == {"position 1 of arc 0 is [1], not a position of two or more numbers"}


def test_a_transform_moves_steps_of_arcs_and_positions_of_points_and_no_heights(tmp_path):
    features = [{"type": "LineString", "arcs": [-1]}, {"type": "Point", "coordinates": [1, 2, 9]}]
    arcs = [[[0, 0, 5], [1, 1, 6], [2, 3, 7]]]
    source = opened(tmp_path, features, arcs=arcs, transform={"scale": [0.5, 0.25], "translate": [10, 20]})
    assert texts(rows_of(source)["geometry"]) == ["LINESTRING Z (11.5 21 7, 10.5 20.25 6, 10 20 5)", "POINT Z (10.5 20.5 9)"]


@pytest.mark.parametrize(
    "transform", [{"scale": [1], "translate": [0, 0]}, {"scale": [1, 1]}, [1], {"scale": [1, "1"], "translate": [0, 0]}]
)
def test_a_transform_that_is_none_is_refused(tmp_path, transform):
    with pytest.raises(SourceError, match=r"its transform is .* not two numbers of scale and two of translate"):
        opened(tmp_path, [POINT], transform=transform)


def test_of_several_objects_one_must_be_named(tmp_path):
    objects = {"lots": {"type": "GeometryCollection", "geometries": [POINT, POINT]}, "mark": {**POINT, "properties": {"code": "m"}}}
    with pytest.raises(SourceError, match="has 2 layers: lots, mark"):
        opened(tmp_path, [], objects=objects)
    with pytest.raises(SourceError, match="has no layer 'lot'; its layers: lots, mark"):
        opened(tmp_path, [], objects=objects, layer="lot")
    assert opened(tmp_path, [], objects=objects, layer="lots").delivery.rows == 2
    assert rows_of(opened(tmp_path, [], objects=objects, layer="mark"))["code"].to_pylist() == ["m"]


def test_ids_are_no_properties_and_text_keeps_its_bytes(tmp_path):
    features = [
        {**POINT, "id": 7, "properties": {"day": "2020/02/29", "id": "x", "cut": "a\0b"}},
        {**POINT, "properties": {"day": "1 May"}},
    ]
    source = opened(tmp_path, features)
    found = rows_of(source)
    assert found["id"].to_pylist() == ["x", None]
    assert found["day"].to_pylist() == ["2020/02/29", "1 May"]
    assert [(each.name, each.rows.tolist()) for each in source.delivery.misfits] == [("cut", [1])]


def test_a_member_twice_is_named_with_its_feature(tmp_path):
    path = tmp_path / "a.topojson"
    good = '{"type": "Point", "coordinates": [1, 2], "properties": {"code": "a"}}'
    text = '{"type": "Topology", "arcs": [], "bbox": {"a": 1, "a": 2}, "objects": {"o": {"type": "GeometryCollection", "geometries": [%s, %s]}}}'
    path.write_text(text % (good, good.replace('"code": "a"', '"code": "a", "code": "b"')))
    findings = {each.field: each.observed for each in open_source(SourceSpec(str(path))).delivery.findings}
    assert "feature 2" in findings["code"]
    assert "the document" in findings["a"]


@pytest.mark.parametrize(
    "text",
    ['{"type": "Topology"}', '{"type": "Topology", "objects": []}', '{"type": "Topology", "objects": {"o": 1}}', '{"type": "Top', "{}",
     '{"type": "Topology", "objects": {"o": {"type": "GeometryCollection"}}}', '{"type": "Topology", "objects": {}, "n": NaN}'],
)  # fmt: skip
def test_what_is_no_topology_is_an_error(tmp_path, text):
    path = tmp_path / "a.topojson"
    path.write_text(text)
    with pytest.raises(SourceError):
        open_source(SourceSpec(str(path)))
