"""Input without end: archives that unpack for ever, views that never end, documents that nest too deep, values that take a pattern
time beyond their length. Each ends with a message, and none as a fault of ours."""

import gzip
import io
import json
import sqlite3
import struct
import time
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from merestone.contract.field_type import FieldType
from merestone.contract.laws import _is_decimal
from merestone.errors import SourceError, StoreError
from merestone.masking import masked
from merestone.source import sqlite_bound, unpack
from merestone.source.open import open_source
from merestone.source.port import SourceSpec
from merestone.source.xml_features import census_of_gml, census_of_kml

DEEP = 50_000
ARRAYS = "[" * DEEP + "]" * DEEP
OBJECTS = '{"a":' * DEEP + "1" + "}" * DEEP
GML = '<gml:FeatureCollection xmlns:gml="http://www.opengis.net/gml/3.2">{}</gml:FeatureCollection>'
FEATURE = '{{"type":"Feature","properties":{{"pid":"p1","owner":{0}}},"geometry":{{"type":"Point","coordinates":[5,52]}}}}'
POSITIONS = '{"type":"Feature","properties":{"pid":"p1"},"geometry":{"type":"Polygon","coordinates":' + ARRAYS + "}}"
COLLECTION = '{{"type":"FeatureCollection","features":[{}]}}'

SOURCES = {
    "properties.geojson": COLLECTION.format(FEATURE.format(OBJECTS)),
    "arrays.geojson": COLLECTION.format(FEATURE.format(ARRAYS)),
    "positions.geojson": COLLECTION.format(POSITIONS),
    "members.geojson": '{"type":"FeatureCollection","foreign":' + OBJECTS + ',"features":[]}',
    "lines.geojsonl": FEATURE.format(OBJECTS) + "\n",
    "sequence.geojsons": "\x1e" + FEATURE.format(ARRAYS) + "\n",
    "topology.topojson": '{"type":"Topology","objects":' + OBJECTS + ',"arcs":[]}',
    "elements.gml": GML.format("<a>" * DEEP + "</a>" * DEEP),
    "folders.kml": '<kml xmlns="http://www.opengis.net/kml/2.2">' + "<Folder>" * DEEP + "</Folder>" * DEEP + "</kml>",
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_delivery_that_nests_too_deep(name, packed, product, merestone, tmp_path):
    path = tmp_path / name
    path.write_text(SOURCES[name])
    if packed:
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(SOURCES[name].encode()))
    for words in (
        ["publish", product.file, "--source", path],
        ["check", product.file, "--source", path],
        ["init", path],
        ["diff", path, path],
    ):
        ended = merestone(*words)
        assert ended.code in (1, 2, 3), (words[0], ended.said[:500])
        assert len(ended.said) < 5000, "the message repeats the input"
    assert not product.url.exists() or product.version is None


@pytest.mark.parametrize("text", [ARRAYS, OBJECTS, "a: " + ARRAYS, "- " * 20_000, "a:\n" + "".join(" " * n + "a:\n" for n in range(600))])
def test_a_document_that_nests_too_deep(text, product, merestone, tmp_path):
    path = tmp_path / "deep.yaml"
    path.write_text(text)
    for words in (["publish", path], ["contract", "lint", path], ["check", product.first, "--contract", path]):
        ended = merestone(*words)
        assert ended.code in (1, 2), ended.said[:500]
        assert len(ended.said) < 5000


def test_metadata_that_nests_too_deep(product, merestone, tmp_path):
    table = pa.table({"pid": ["p1"], "geometry": pa.array([b""], pa.binary())})
    for n, key in enumerate(("geo", "pandas", "merestone")):
        for text in (ARRAYS, OBJECTS):
            path = tmp_path / f"m{n}.parquet"
            pq.write_table(table.replace_schema_metadata({key: text}), path)
            for words in (["check", product.file, "--source", path], ["init", path], ["apply", path, "--onto", tmp_path / "copy.parquet"]):
                ended = merestone(*words)
                assert ended.code in (1, 2, 3), (key, words[0], ended.said[:500])


def test_events_and_records_that_nest_too_deep(published, merestone, tmp_path):
    events = tmp_path / "e.ndjson"
    events.write_text(ARRAYS + "\n" + OBJECTS + "\n")
    ended = merestone("lineage", "ingest", published.file, events)
    assert ended.code in (0, 1, 2, 3), ended.said[:500]
    assert "2" in ended.said
    record = tmp_path / "r.xml"
    record.write_text(
        '<gmd:MD_Metadata xmlns:gmd="http://www.isotc211.org/2005/gmd">' + "<a>" * DEEP + "</a>" * DEEP + "</gmd:MD_Metadata>"
    )
    for words in (["lineage", "iso19115", "--lint", record], ["lineage", "iso19115", published.file, "--extend", record]):
        ended = merestone(*words)
        assert ended.code in (1, 2, 3), ended.said[:500]


def test_published_state_that_nests_too_deep_is_corrupt(published, merestone):
    for name in (
        "_current.json",
        "_manifests/v000002.json",
        *[each.relative_to(published.url) for each in published.url.glob("_runs/*.json")][:1],
    ):
        kept = (published.url / name).read_bytes()
        (published.url / name).write_text(OBJECTS)
        for command in ("status", "log", "verify"):
            ended = merestone(command, published.file)
            assert ended.code in (0, 6), (name, command, ended.said[:500])
        (published.url / name).write_bytes(kept)


# --- archives ----------------------------------------------------------------------------------------------------------------------------


def bomb(path, unpacked):
    """A gzip or zip file that unpacks to many zeros, written without holding them."""
    if path.suffix == ".gz":
        with gzip.open(path, "wb", 9) as file:
            for _ in range(unpacked >> 20):
                file.write(b"\0" * (1 << 20))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(path.stem, "w", force_zip64=True) as file:
            for _ in range(unpacked >> 20):
                file.write(b"\0" * (1 << 20))
    return path


@pytest.mark.parametrize("name", ["a.gpkg", "a.parquet", "a.gml", "a.geojson", "a.geojsonl", "a.kml", "a.fgb"])
@pytest.mark.parametrize("kind", [".gz", ".zip"])
def test_an_archive_that_unpacks_without_end(name, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "LEAST_BYTES", 1 << 22)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    path = bomb(tmp_path / (name + kind), 1 << 24)
    with pytest.raises(SourceError, match="it may have no end") as caught:
        open_source(SourceSpec(str(path)))
    assert caught.value.hint
    assert not list((tmp_path / "scratch").iterdir()), "what was unpacked stays"


def test_what_unpacks_to_much_of_its_size_is_read_where_it_is_large_enough_to_be_real(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(1 << 22)))
    monkeypatch.setattr(unpack, "LEAST_BYTES", 1 << 22)
    with gzip.open(path) as packed:
        unpack.unpack(packed, tmp_path / "out", path, "a.gz")
    assert (tmp_path / "out").stat().st_size == 1 << 22


def test_a_full_disk_for_what_is_unpacked_is_no_fault_of_the_delivery(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x" * 100))
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr(unpack, "_BLOCK", 1 << 16)
    path.write_bytes(gzip.compress(bytes(1 << 20)))
    with gzip.open(path) as packed, pytest.raises(StoreError, match="No space left") as caught:
        unpack.unpack(packed, full, path, "a.gz")
    assert "TMPDIR" in caught.value.hint


def test_an_encrypted_archive_and_one_packed_in_an_unknown_way_are_named(tmp_path):
    for n, (at_local, at_central, value) in enumerate(((6, 8, 1), (8, 10, 98))):
        path = tmp_path / f"a{n}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.gpkg", b"x")
        data = bytearray(path.read_bytes())
        struct.pack_into("<H", data, at_local, value)
        struct.pack_into("<H", data, data.index(b"PK\x01\x02") + at_central, value)
        path.write_bytes(data)
        with pytest.raises(SourceError, match="cannot be read"):
            open_source(SourceSpec(str(path)))


def test_a_header_that_lies_about_its_size_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "LEAST_BYTES", 1 << 20)
    path = bomb(tmp_path / "a.gpkg.zip", 1 << 24)
    with zipfile.ZipFile(path) as archive:
        info = archive.infolist()[0]
    data = bytearray(path.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, central + 24, 100)
    path.write_bytes(data)
    assert info.file_size == 1 << 24
    with pytest.raises(SourceError):
        open_source(SourceSpec(str(path)))


def test_the_bound_is_far_above_what_real_data_reach():
    text = json.dumps(
        [{"type": "Feature", "properties": {"name": "x"}, "geometry": {"type": "Point", "coordinates": [n / 7, 52]}} for n in range(5000)]
    )
    assert len(text) / len(zlib.compress(text.encode(), 9)) < unpack.RATIO / 4


# --- views -------------------------------------------------------------------------------------------------------------------------------

ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n)"
VIEWS = {  # SQL of the producer, with the name of a table
    "rows without end": f"{ENDLESS} select x as fid, 'p' || x as pid, (select geom from {{0}} limit 1) as geom from n",  # noqa: S608 - the test is its producer
    "no first row": f"{ENDLESS} select x as fid, 'p' || x as pid, (select geom from {{0}} limit 1) as geom from n where x < 0",  # noqa: S608 - as above
    "a cell without end": f"select fid, ({ENDLESS} select count(*) from n) as pid, geom from {{0}}",  # noqa: S608 - as above
    "a cell in a later row": f"select fid, case when fid < 2 then pid else ({ENDLESS} select count(*) from n) end as pid, geom from {{0}}",  # noqa: S608 - as above
}


def with_view(path, query):
    """A GeoPackage with a view `v` beside its layer."""
    with sqlite3.connect(path) as database:
        (layer,) = database.execute("select table_name from gpkg_geometry_columns").fetchone()
        database.execute(f"create view v as {query.format(layer)}")
        database.execute("insert into gpkg_contents (table_name, data_type, identifier, srs_id) values ('v', 'features', 'v', 4326)")
        database.execute("insert into gpkg_geometry_columns values ('v', 'geom', 'POINT', 4326, 0, 0)")


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(sqlite_bound, "LEAST_STEPS", 2_000_000)
    monkeypatch.setattr(sqlite_bound, "STEPS_PER_BYTE", 0)


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("query", VIEWS.values(), ids=VIEWS)
def test_a_view_that_never_ends(query, product):
    with_view(product.first, query)
    with pytest.raises(SourceError, match="it may have no end") as caught:
        open_source(SourceSpec(str(product.first), layer="v"))
    assert "store its rows in a table" in caught.value.hint


SLOW = {  # few steps of SQLite, each of which takes long
    "large values": "length(hex(randomblob(2000000)))",
    "replaced text": "length(replace(hex(zeroblob(1000000)), '00', 'ab'))",
    "patterns": "hex(zeroblob(1000000)) like '%00%00%00%00%1'",
}


@pytest.mark.parametrize("value", SLOW.values(), ids=SLOW)
def test_a_view_that_is_slow_in_time_ends_with_its_name(value, product, monkeypatch):
    monkeypatch.setattr(sqlite_bound, "LEAST_SECONDS", 0.4)
    monkeypatch.setattr(sqlite_bound, "BYTES_PER_SECOND", 1e12)
    with_view(product.first, f"select fid, ({ENDLESS} select sum({value}) from n where x < 100000) as pid, geom from {{0}}")  # noqa: S608 - as above
    with pytest.raises(SourceError, match=r"a query that goes on after 0.4 s: it may have no end") as caught:
        open_source(SourceSpec(str(product.first)))
    assert "store its rows in a table" in caught.value.hint


@pytest.mark.usefixtures("few_steps")
def test_a_view_that_never_ends_beside_the_layer_ends_every_command_well(product, merestone):
    with_view(product.first, VIEWS["no first row"])
    for words in (["publish", product.file], ["check", product.file], ["init", product.first], ["diff", product.first, product.first]):
        ended = merestone(*words)
        assert ended.code == 3, ended.said
        assert "it may have no end" in ended.said, ended.said


@pytest.mark.usefixtures("few_steps")
def test_a_view_that_ends_is_read(product):
    with_view(product.first, "select * from {0} where fid < 3")
    assert open_source(SourceSpec(str(product.first), layer="v")).delivery.rows == 2


# --- values against the expressions that read them ---------------------------------------------------------------------------------------

LONG = 100_000
_GML_POINT = (
    '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs/2.0" xmlns:gml="http://www.opengis.net/gml/3.2"><wfs:member><x><geometry>'
    '<gml:Point srsName="{0}"><gml:pos>{1}</gml:pos></gml:Point></geometry></x></wfs:member></wfs:FeatureCollection>'
)


def _gml(crs, pos):
    return census_of_gml(io.BytesIO(_GML_POINT.format(crs, pos).encode()), {})


def _kml(coordinates):
    return census_of_kml(io.BytesIO(f"<kml><Placemark><coordinates>{coordinates}</coordinates></Placemark></kml>".encode()), {})


@pytest.mark.parametrize(
    "read",
    [
        lambda: masked("a" * LONG),
        lambda: masked("1a" * LONG),
        lambda: masked("a={" * LONG),
        lambda: masked("OCI:" * LONG),
        lambda: _gml("EPSG:4326", "1" * LONG + "x"),
        lambda: _gml("a" * LONG, "5 52"),
        lambda: _kml("1" * LONG),
        lambda: _kml("5" + " " * LONG + "52"),
        lambda: _is_decimal(FieldType("decimal", 10, 2), "1" * LONG + "x"),
    ],
    ids=["a scheme", "a name", "a brace", "a user", "a position", "a reference system", "a tuple", "blanks", "a decimal"],
)
def test_a_long_value_takes_time_in_its_length_only(read):
    begun = time.process_time()
    read()
    assert time.process_time() - begun < 3


def test_secrets_are_masked_behind_long_names():
    long = "a" * 5000
    assert masked(f"{long}://user:secret@host/x") == f"{long}://***@host/x"
    assert masked(f"{long}_password=secret") == f"{long}_password=***"


def test_a_blank_beside_a_comma_is_no_fault_of_kml():
    assert not _kml(" 5 , 52 ,0  6,53 ").findings("0", "geometry")
    assert _kml("5 52").findings("0", "geometry")
