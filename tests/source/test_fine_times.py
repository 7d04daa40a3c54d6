"""Times with more than milliseconds are what the file has, in every format that can hold them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyogrio
import pytest
import shapely

from merestone.source.open import open_source
from merestone.source.port import SourceSpec
from source.gdal_times import TIMES_ARE_TEXT

WHEN = ["2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05.123Z", None, "2020-01-02T03:04:05.000000001+01:00", "2020-01-02T03:04:05Z"] * 3
HOUR = ["03:04:05.123456", "03:04:05.5", None, "23:59:59.999999999", "03:04:05"] * 3
NANOSECONDS = [11045123456000, 11045500000000, None, 86399999999999, 11045000000000] * 3
GML = """<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">{}</ogr:FeatureCollection>"""
MEMBER = """<gml:featureMember><ogr:a fid="a.{}"><ogr:g><gml:Point srsName="EPSG:4326"><gml:coordinates>1,2</gml:coordinates></gml:Point></ogr:g>
<ogr:note>at 03:04:05.123456</ogr:note>{}</ogr:a></gml:featureMember>"""


def gml(path, when, hour):
    cells = [
        "".join(f"<ogr:{name}>{value}</ogr:{name}>" for name, value in (("when", one), ("hour", other)) if value is not None)
        for one, other in zip(when, hour, strict=True)
    ]
    path.write_text(GML.format("".join(MEMBER.format(at, each) for at, each in enumerate(cells))))


def geojson(path, when, hour):
    point = {"type": "Point", "coordinates": [1, 2]}
    features = [{"type": "Feature", "properties": {"when": a, "hour": b}, "geometry": point} for a, b in zip(when, hour, strict=True)]
    is_sequence = path.suffix == ".geojsonl"
    whole = {"type": "FeatureCollection", "features": features}
    path.write_text("\n".join(map(json.dumps, features)) if is_sequence else json.dumps(whole))


def rows_of(path, batch_rows):
    source = open_source(SourceSpec(str(path)))
    return pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)


@pytest.mark.parametrize("name", ["a.gml", "a.geojson", "a.geojsonl"])
def test_nothing_of_a_time_is_cut(tmp_path, name):
    (gml if name == "a.gml" else geojson)(tmp_path / name, WHEN, HOUR)
    for batch_rows in (1, 2, 4, 65_536):
        found = rows_of(tmp_path / name, batch_rows)
        assert found["when"].to_pylist() == WHEN, batch_rows
        hours = found["hour"]
        if name == "a.gml" and not TIMES_ARE_TEXT:
            assert hours.type == pa.time64("ns")
            assert hours.cast(pa.int64()).to_pylist() == NANOSECONDS, batch_rows
        else:
            assert hours.to_pylist() == HOUR, batch_rows
        if name == "a.gml":
            assert pc.unique(found["note"]).to_pylist() == ["at 03:04:05.123456"]


def test_a_gml_with_milliseconds_keeps_the_types_that_gdal_gives_it(tmp_path):
    gml(tmp_path / "a.gml", WHEN[1:3], HOUR[1:3])
    found = rows_of(tmp_path / "a.gml", 1)
    assert found["hour"].type == (pa.string() if TIMES_ARE_TEXT else pa.time32("ms"))
    assert found["when"].to_pylist() == WHEN[1:3]


# Times as files hold them, and what is read; GDAL cuts, rounds or loses something of each but the first.
TIMES = [
    "2020-01-02T03:04:05.123Z", "2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05.000400Z", "2020-01-02T03:04:05.5+05:53",
    "2020-01-02T23:59:59.999999-14:00", "2020-01-02T03:04:05.123456", "1960-01-02T03:04:05.000001Z",
]  # fmt: skip


def write_gml(path, times):
    gml(path, times, [None] * len(times))


def write_nested_gml(path, times):
    """Below properties, at two places with one name, of which GDAL calls the second by its whole path."""
    inner = "<ogr:valid><gml:TimeInstant><gml:timePosition>{0}</gml:timePosition></gml:TimeInstant><ogr:when>{0}</ogr:when></ogr:valid>"
    cells = [(inner + "<ogr:more><ogr:when>{0}</ogr:when></ogr:more>").format(each) for each in times]
    path.write_text(GML.format("".join(MEMBER.format(at, each) for at, each in enumerate(cells))))


def write_kml(path, times):
    """Several folders, empty ones and nested ones among them; the times are those of the second with features."""
    mark = "<Placemark><TimeStamp><when>{}</when></TimeStamp><Point><coordinates>1,2</coordinates></Point></Placemark>"
    other = mark.format("1999-12-31T23:59:59.654321Z")
    layer = f"<Folder><name>b</name>{''.join(map(mark.format, times))}<Folder><name>c</name>{other}</Folder></Folder>"
    text = f"<Document><name>d</name><Folder><name>x</name></Folder><Folder><name>a</name>{other * 3}</Folder>{layer}</Document>"
    path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2">{text}</kml>')


def write_geojson(path, times):
    geojson(path, times, times)


def write_topojson(path, times):
    members = [{"type": "Point", "coordinates": [1, 2], "properties": {"when": each}} for each in times]
    path.write_text(json.dumps({"type": "Topology", "arcs": [], "objects": {"a": {"type": "GeometryCollection", "geometries": members}}}))


OF_29 = [
    "2020-01-02T03:04:05.123+01:15", "2020-01-02T03:04:05.12345678Z", "2020-01-02T03:04:05.123+05:53", "2020-01-02T03:04:05.000400001",
    "1960-01-02T03:04:05.00000001Z",
]  # fmt: skip


def write_flatgeobuf(path, times):
    """GDAL writes milliseconds: the texts are put in the place of others of their length."""
    held = [f"2001-02-03T04:05:0{at}.678+01:15" for at in range(len(times))]
    when = pa.array(held).cast(pa.timestamp("ms", "+01:15"))
    point = shapely.to_wkb(shapely.Point(1, 2))
    with_null = path.name == "null.fgb"  # which GDAL reads feature by feature, since its columns do not hold together
    shapes = [None if with_null and at == 1 else point for at in range(len(times))]
    table = pa.table({"n": range(len(times)), "s": held, "when": when, "g": pa.array(shapes, pa.binary())})
    index = "NO" if with_null else "YES"
    pyogrio.write_arrow(table, path, driver="FlatGeobuf", geometry_name="g", geometry_type="Point", crs="EPSG:4326", SPATIAL_INDEX=index)
    raw = path.read_bytes()
    for old, new in zip(held, times, strict=True):
        at = raw.rindex(old.encode())  # the first one is text
        raw = raw[:at] + new.encode() + raw[at + len(old) :]
    path.write_bytes(raw)


WRITERS = {
    "a.gml": (write_gml, "when", None), "nested.gml": (write_nested_gml, "when", None), "deeper.gml": (write_nested_gml, "more|when", None),
    "position.gml": (write_nested_gml, "timePosition", None), "a.kml": (write_kml, "timestamp", "b"), "a.geojson": (write_geojson, "when", None),
    "a.geojsonl": (write_geojson, "when", None), "a.topojson": (write_topojson, "when", None), "a.fgb": (write_flatgeobuf, "when", None),
    "null.fgb": (write_flatgeobuf, "when", None),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_times_and_zones_are_what_the_file_says_in_every_format(tmp_path, name):
    write, column, layer = WRITERS[name]
    times = OF_29 if name.endswith(".fgb") else TIMES
    write(tmp_path / name, times)
    for batch_rows in (1, 3, 65_536):
        source = open_source(SourceSpec(str(tmp_path / name), layer=layer))
        found = pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)
        assert sorted(found[column].to_pylist()) == sorted(times), batch_rows
        assert not source.delivery.misfits


@pytest.mark.parametrize("prefix", ["", "k:"])
def test_nothing_of_a_time_of_kml_is_cut(tmp_path, prefix):
    """Moments and both ends of spans; the time of a view is no time of its placemark."""
    view = "<LookAt><TimeStamp><when>1999-01-01T00:00:00.654321Z</when></TimeStamp></LookAt>"
    span = "<TimeSpan><begin>{0}</begin><end>{0}</end></TimeSpan>"
    marks = []
    for at, each in enumerate(WHEN):
        time = "" if each is None else (f"<TimeStamp><when>{each}</when></TimeStamp>" if at % 2 else span.format(each))
        marks.append(f"<Placemark><name>{at}</name>{view if at % 3 else ''}{time}<Point><coordinates>1,2</coordinates></Point></Placemark>")
    text = f"<kml><Document><name>d</name>{''.join(marks)}</Document></kml>".replace("</", "\0").replace("<", f"<{prefix}")
    text = text.replace("\0", f"</{prefix}").replace(
        f"<{prefix}kml>", f'<{prefix}kml xmlns{":k" if prefix else ""}="http://www.opengis.net/kml/2.2">'
    )
    (tmp_path / "a.kml").write_text(text)
    for batch_rows in (1, 2, 65_536):
        found = rows_of(tmp_path / "a.kml", batch_rows)
        moments = [each if at % 2 else None for at, each in enumerate(WHEN)]
        spans = [None if at % 2 else each for at, each in enumerate(WHEN)]
        assert [found[name].to_pylist() for name in ("timestamp", "begin", "end")] == [moments, spans, spans], batch_rows
