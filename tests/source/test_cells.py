"""Cells whose text is no value of their column, and second values: named with their rows in GML, KML and Esri's JSON, where GDAL changes them in silence."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
import shapely

from merestone.errors import SourceError
from merestone.source.open import open_source
from merestone.source.port import SourceSpec
from source.gdal_times import TIMES_ARE_TEXT

POINT = '<gml:Point srsName="EPSG:4326"><gml:coordinates>{},2</gml:coordinates></gml:Point>'


def opened(path, text, **spec):
    path.write_text(text)
    return open_source(SourceSpec(str(path), **spec))


def gml(folder, *features, name="a.gml", **spec):
    """Each feature is XML below a member, or what stands in its property `w` beside a point."""
    whole = [each if each.startswith("<") else f"<o:g>{POINT.format(1)}</o:g><o:w>{each}</o:w>" for each in features]
    members = "".join(f'<gml:featureMember><o:a fid="a.{at}">{each}</o:a></gml:featureMember>' for at, each in enumerate(whole))
    head = '<o:C xmlns:o="urn:o" xmlns:gml="http://www.opengis.net/gml">'
    return opened(folder / name, f"{head}{members}</o:C>", **spec)


def kml(folder, kind, *values):
    data = "<SchemaData schemaUrl='#s'><SimpleData name='w'>{}</SimpleData></SchemaData>"
    marks = "".join(
        f"<Placemark><ExtendedData>{data.format(each)}</ExtendedData><Point><coordinates>1,2</coordinates></Point></Placemark>"
        for each in values
    )
    schema = f"<Schema id='s' name='s'><SimpleField name='w' type='{kind}'/></Schema>"
    return opened(folder / "a.kml", f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>d</name>{schema}{marks}</Document></kml>')


def esri(folder, kind, *values):
    features = [{"attributes": {"w": each}, "geometry": {"x": 1, "y": 2}} for each in values]
    document = {"geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields": [{"name": "w", "type": kind}]}
    return opened(folder / "a.json", json.dumps({**document, "features": features}))


def table(source, batch_rows=65_536):
    return pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)


def wrong(source):
    return {
        (each.name, row): text
        for each in source.delivery.misfits
        for row, text in zip(each.rows.tolist(), each.observed.to_pylist(), strict=True)
    }


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (("5", "12345678901234567890", "7"), 2), (("true", "5", "false"), 2), (("true", "1.5", "0"), 2), (("1.5", "2", "1e400"), 3),
        (("2020-01-02", "5", "2020-01-03"), 2), (("2020-01-02", "2020-02-30"), 2), (("03:04:05", "25:00:00", "01:02:03.5"), 2),
        (("03:04:05", "5"), 2), (("03:04:05.5", "03:04:05.1234567891"), 2),
        (("2020-01-02</o:w><o:w>2020-01-03", "2020-01-04"), 1), (("03:04:05</o:w><o:w>03:04:06", "03:04:05"), 1),
    ],
)  # fmt: skip
def test_a_cell_of_gml_that_is_no_value_of_its_column_is_named(tmp_path, cells, row):
    source = gml(tmp_path, *cells)
    text = cells[row - 1].replace("</o:w><o:w>", " and ")
    if TIMES_ARE_TEXT and cells[0].startswith(("2020-", "03:")):
        whole = [each.split("</o:w><o:w>") for each in cells]
        found = table(source)["w"].to_pylist()
        assert (wrong(source), [each if isinstance(each, list) else [each] for each in found]) == ({}, whole)
        return
    assert wrong(source) == {("w", row): text}
    for batch_rows in (1, 65_536):
        found = table(source, batch_rows)["w"].to_pylist()
        assert [at for at, each in enumerate(found, 1) if each is None] == [row]


@pytest.mark.parametrize(
    "cells", [("5", " +6 ", ""), ("true", "1", "0"), ("1.5", "-2", "1e10"), ("5</o:w><o:w>6", "7"), ("2020-01-02", "2020-02-29"), ("x", "")]
)
def test_sound_cells_of_gml_pass(tmp_path, cells):
    source = gml(tmp_path, *cells)
    assert (wrong(source), table(source).num_rows) == ({}, len(cells))


@pytest.mark.parametrize(
    ("kind", "cells", "row"),
    [
        ("int", ("5", "1.75", "7"), 2), ("int", ("5", "99999999999"), 2), ("float", ("1.5", "zz"), 2), ("double", ("1,5", "2"), 1),
        ("bool", ("true", "maybe"), 2), ("ushort", ("zz", "5"), 1), ("double", ("1e400",), 1),
        ("string", ("a</SimpleData><SimpleData name='w'>b", "c"), 1), ("int", ("1</SimpleData><SimpleData name='w'>2", "3"), 1),
    ],
)  # fmt: skip
def test_a_cell_of_kml_that_is_no_value_of_its_field_is_named(tmp_path, kind, cells, row):
    source = kml(tmp_path, kind, *cells)
    assert wrong(source) == {("w", row): cells[row - 1].replace("</SimpleData><SimpleData name='w'>", " and ")}
    assert [at for at, each in enumerate(table(source)["w"].to_pylist(), 1) if each is None] == [row]


@pytest.mark.parametrize("when", ["2020", "2020-05", "2020-05-06T10:00Z", "nix", "2020-05-06T24:00:00Z"])
def test_a_moment_of_kml_of_another_form_is_read_as_it_stands(tmp_path, when):
    mark = "<Placemark><TimeStamp><when>{}</when></TimeStamp><Point><coordinates>1,2</coordinates></Point></Placemark>"
    marks = mark.format("2020-01-02") + mark.format(when)
    source = opened(tmp_path / "a.kml", f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>d</name>{marks}</Document></kml>')
    assert table(source)["timestamp"].to_pylist() == ["2020-01-02T00:00:00", when]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("Date", "2020-01-02", None), ("Date", True, None), ("Date", 1e300, None), ("Date", 253402300800000, None),
        ("Date", -1, "1969-12-31T23:59:59.999000Z"), ("Date", 1577934245123.5, "2020-01-02T03:04:05.123500Z"),
        ("Date", 1577934245123, "2020-01-02T03:04:05.123Z"), ("DateOnly", "nix", None), ("DateOnly", "2020-02-30", None), ("DateOnly", 5, None),
        ("TimeOnly", "25:00:00", None), ("TimeOnly", "03:04:05.123456", 11045123456000),
    ],
)  # fmt: skip
def test_a_time_of_esri_json_is_read_or_named(tmp_path, kind, value, read):
    good = {"Date": 0, "DateOnly": "2020-01-02", "TimeOnly": "03:04:05"}[kind]
    source = esri(tmp_path, f"esriFieldType{kind}", good, value)
    assert ("w", 2) in wrong(source) if read is None else not wrong(source)
    found = table(source)["w"]
    found = found.cast(pa.int64()) if pa.types.is_time(found.type) and found.type.unit == "ns" else found
    assert found.to_pylist()[1] == (value if read is not None and kind == "TimeOnly" and TIMES_ARE_TEXT else read)


def places(source, name):
    return [None if each is None else shapely.from_wkb(each).x for each in table(source, 1)[name].to_pylist()]


G, H = "<o:g>{}</o:g>", "<o:h>{}</o:h>"


@pytest.mark.parametrize("order", [(G, H), (H, G)])
def test_geometries_at_several_places_of_a_gml_feature_are_columns(tmp_path, order):
    features = (
        order[0].format(POINT.format(1)) + order[1].format(POINT.format(5)),
        order[1].format(POINT.format(6)),
        order[0].format(POINT.format(3)) + "<o:w>x</o:w>",
    )
    source = gml(tmp_path, *features)
    first, second = ("g", "h") if order[0] is G else ("h", "g")
    assert (source.delivery.geometry.name, [each.name for each in source.delivery.other_geometries]) == (first, [second])
    assert (places(source, first), places(source, second)) == ([1, None, 3], [5, 6, None])
    assert gml(tmp_path, *features, geometry=second).delivery.geometry.name == second
    assert not wrong(source)


def test_each_place_keeps_its_own_reference_system(tmp_path):
    here, there = POINT.format(5), POINT.format(500_000).replace("4326", "25832")
    source = gml(tmp_path, G.format(here) + H.format(there), G.format(here))
    assert (source.delivery.geometry.crs, [each.crs for each in source.delivery.other_geometries]) == ("EPSG:4326", ["EPSG:25832"])
    assert not source.delivery.findings


def test_a_geometry_below_a_property_is_a_place_too(tmp_path):
    deep = f"<o:v><o:g>{POINT.format(7)}</o:g></o:v>"
    source = gml(tmp_path, G.format(POINT.format(1)) + deep, deep)
    assert (places(source, "g"), places(source, "v_g")) == ([1, None], [7, 7])


@pytest.mark.parametrize("twice", [G.format(POINT.format(1)) + G.format(POINT.format(7)), G.format(POINT.format(1) + POINT.format(8))])
def test_several_geometries_at_one_place_are_named_with_the_row(tmp_path, twice):
    source = gml(tmp_path, G.format(POINT.format(3)), twice)
    assert wrong(source) == {("g", 2): "2 geometries"}
    assert places(source, "g") == [3, None]


def test_a_schema_that_describes_one_of_several_geometries_is_an_error(tmp_path):
    (tmp_path / "a.xsd").write_text(XSD)
    with pytest.raises(SourceError, match="hold geometries in g, h, and its schema describes one of them"):
        gml(tmp_path, G.format(POINT.format(1)) + H.format(POINT.format(5)))


def test_several_geometries_of_a_placemark_are_named_and_an_overlay_is_a_row(tmp_path):
    two = "<Placemark><name>x</name><Point><coordinates>1,2</coordinates></Point><Point><coordinates>3,4</coordinates></Point></Placemark>"
    one = "<Placemark><name>y</name><MultiGeometry><Point><coordinates>1,2</coordinates></Point></MultiGeometry></Placemark>"
    overlay = "<GroundOverlay><name>o</name></GroundOverlay>"
    text = f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>d</name>{one}{overlay}{two}</Document></kml>'
    source = opened(tmp_path / "a.kml", text)
    assert (source.delivery.rows, table(source)["Name"].to_pylist()) == (3, ["y", "o", "x"])
    assert list(wrong(source).values()) == ["2 geometries"]
    assert table(source)[source.delivery.geometry.name].to_pylist()[2] is None


XSD = """<schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:gml="http://www.opengis.net/gml" xmlns:o="urn:o" targetNamespace="urn:o"
 elementFormDefault="qualified"><import namespace="http://www.opengis.net/gml" schemaLocation="gml.xsd"/>
<element name="C" type="gml:AbstractFeatureCollectionType" substitutionGroup="gml:_FeatureCollection"/>
<element name="a" type="o:aType" substitutionGroup="gml:_Feature"/><complexType name="aType"><complexContent>
<extension base="gml:AbstractFeatureType"><sequence><element name="g" type="gml:PointPropertyType" minOccurs="0"/></sequence></extension>
</complexContent></complexType></schema>"""
