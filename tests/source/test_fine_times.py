"""Times with more than milliseconds are what the file has, in every format that can hold them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from merestone.source.open import open_source
from merestone.source.port import SourceSpec

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
        if name == "a.gml":
            assert hours.type == pa.time64("ns")
            assert hours.cast(pa.int64()).to_pylist() == NANOSECONDS, batch_rows
            assert pc.unique(found["note"]).to_pylist() == ["at 03:04:05.123456"]
        else:
            assert hours.to_pylist() == HOUR, batch_rows


def test_a_gml_with_milliseconds_keeps_the_types_that_gdal_gives_it(tmp_path):
    gml(tmp_path / "a.gml", WHEN[1:3], HOUR[1:3])
    found = rows_of(tmp_path / "a.gml", 1)
    assert found["hour"].type == pa.time32("ms")
    assert found["when"].to_pylist() == WHEN[1:3]


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
