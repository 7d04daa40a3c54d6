"""Opening deliveries: formats, layers, cut files, nothing written beside them."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

from merestone.errors import SourceError, UsageError
from merestone.source.columns import is_json_text
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"
FORMATS = {
    "gpkg": "GPKG", "fgb": "FlatGeobuf", "geojson": "GeoJSON", "geojsonl": "GeoJSONSeq", "shp": "ESRI Shapefile", "gml": "GML",
    "gdb": "OpenFileGDB",
}  # fmt: skip
ROWS = 300


def table() -> pa.Table:
    points = shapely.to_wkb(shapely.points(np.arange(ROWS) % 180, np.arange(ROWS) % 90))
    numbers = [None if row % 7 == 0 else 2**53 + row for row in range(ROWS)]
    return pa.table({
        "code": pa.array([f"{row:04d}" for row in range(ROWS)]),
        "number": pa.array(numbers, pa.int64()),
        "geometry": pa.array(points.tolist(), pa.binary()),
    })  # fmt: skip


def write(path: Path) -> Path:
    kind = path.suffix.removeprefix(".")
    if kind == "parquet":
        pq.write_table(table(), path)
        return path
    # whole 64-bit integers, and rows in the order they were written
    options = {"gdb": {"TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"}, "fgb": {"SPATIAL_INDEX": "NO"}}.get(kind, {})
    pyogrio.write_arrow(table(), path, driver=FORMATS[kind], geometry_name="geometry", geometry_type="Point", crs="EPSG:4326", **options)
    return path


def read(path: Path | str, *, batch_rows: int = 65_536, **spec: str) -> pa.Table:
    source = open_source(SourceSpec(str(path), **spec))
    return pa.Table.from_batches(list(source.batches(batch_rows)), schema=source.delivery.schema)


def everything_under(folder: Path) -> dict[str, int]:
    return {str(each.relative_to(folder)): each.stat().st_mtime_ns for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("kind", [*FORMATS, "parquet"])
def test_each_format_keeps_order_text_and_integers_beyond_2_to_53_and_leaves_nothing_behind(tmp_path, kind):
    (tmp_path / "some parcels#1").mkdir()
    path = write(tmp_path / "some parcels#1" / f"a.{kind}")
    before = everything_under(tmp_path)
    found = read(path, batch_rows=64)
    assert found["code"].to_pylist() == table()["code"].to_pylist()
    assert found["number"].cast(pa.int64()).to_pylist() == table()["number"].to_pylist()
    source = open_source(SourceSpec(str(path)))
    geometry = source.delivery.geometry
    if kind != "parquet":
        assert geometry is not None
        positions = shapely.get_coordinates(shapely.from_wkb(found[geometry.name].to_pylist()))
        assert positions.tolist() == shapely.get_coordinates(shapely.from_wkb(table()["geometry"].to_pylist())).tolist()
    assert max(batch.num_rows for batch in source.batches(64)) <= 64
    assert source.late_findings() == ()
    assert everything_under(tmp_path) == before


@pytest.mark.parametrize("kind", ["gpkg", "geojson", "gml", "parquet"])
def test_gzip_is_read_without_a_file_beside_it(tmp_path, kind):
    plain = write(tmp_path / f"a.{kind}")
    folder = tmp_path / "delivered"
    folder.mkdir()
    packed = folder / f"a.{kind}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed)["code"].to_pylist() == table()["code"].to_pylist()
    assert list(everything_under(folder)) == [packed.name]


def test_a_large_gzip_leaves_no_note_of_its_size(tmp_path):
    points = [
        {"type": "Point", "coordinates": [1, 2], "properties": {"name": np.random.default_rng(at).bytes(500).hex()}} for at in range(2000)
    ]
    topology = {"type": "Topology", "arcs": [], "objects": {"a": {"type": "GeometryCollection", "geometries": points}}}
    packed = tmp_path / "a.topojson.gz"
    packed.write_bytes(gzip.compress(json.dumps(topology).encode(), 1))
    assert read(packed).num_rows == len(points)
    assert list(everything_under(tmp_path)) == [packed.name]


@pytest.mark.parametrize("kind", ["gpkg", "shp", "geojson", "gml", "gdb"])
def test_zip_with_one_dataset(tmp_path, kind):
    write(tmp_path / f"a.{kind}")
    packed = tmp_path / "delivered.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in everything_under(tmp_path):
            if name != packed.name and not name.endswith(".xsd"):
                archive.write(tmp_path / name, name)
    assert read(packed)["code"].to_pylist() == table()["code"].to_pylist()


def test_zip_with_several_files_wants_one_named(tmp_path):
    packed = tmp_path / "delivered.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for stem in ("roads", "parcels"):
            archive.write(write(tmp_path / f"{stem}.geojson"), f"{stem}.geojson")
    with pytest.raises(SourceError, match="parcels, roads") as fault:
        read(packed)
    assert fault.value.field == "source.layer"
    assert read(packed, layer="roads").num_rows == ROWS


def test_layers_are_listed_where_one_must_be_named(tmp_path):
    path = tmp_path / "a.gpkg"
    for layer in ("parcel", "road"):
        pyogrio.write_arrow(table(), path, layer=layer, driver="GPKG", geometry_name="geometry", geometry_type="Point", crs="EPSG:4326",
                            append=path.exists())  # fmt: skip
    with pytest.raises(SourceError, match="2 layers: parcel, road"):
        read(path)
    with pytest.raises(SourceError, match="no layer 'parcels'; its layers: parcel, road"):
        read(path, layer="parcels")
    assert read(path, layer="road").num_rows == ROWS


@pytest.mark.parametrize("kind", ["gpkg", "fgb", "geojson", "geojsonl", "gml", "parquet", "shp", "dbf"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_a_cut_file_is_an_error_and_never_a_smaller_delivery(tmp_path, kind, share):
    path = write(tmp_path / f"a.{'shp' if kind == 'dbf' else kind}")
    cut = path.with_suffix(f".{kind}")
    whole = cut.read_bytes()
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(SourceError) as fault:
        read(path)
    assert fault.value.exit_code == 3
    assert fault.value.hint
    assert path.name in fault.value.message


def test_a_broken_line_of_a_text_sequence_is_named(tmp_path):
    path = write(tmp_path / "a.geojsonl")
    lines = path.read_text().split("\n")
    lines[100] = '{"type": "Feature", "prop'
    path.write_text("\n".join(lines))
    with pytest.raises(SourceError, match="at record 101: "):
        read(path)


def test_a_text_sequence_under_the_suffix_of_a_collection_is_counted_too(tmp_path):
    path = tmp_path / "a.geojson"
    shutil.copy(write(tmp_path / "b.geojsonl"), path)
    assert open_source(SourceSpec(str(path))).delivery.driver == "GeoJSONSeq"
    path.write_text(path.read_text() + '{"type": "Feature", "geom')
    with pytest.raises(SourceError, match="at record 301: "):
        read(path)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nothing.gpkg", None, "does not exist"),
        ("a.xyz", "x", "no format that is read has the suffix '.xyz'"),
        ("a.gpkg", "<OGRVRTDataSource></OGRVRTDataSource>", "truncated or not GPKG"),
        ("a.gml", "<OGRVRTDataSource></OGRVRTDataSource>", "truncated or not GML"),
        ("a.geojson", "pid,x,y\n", "truncated or not GeoJSON"),
        ("a.zip", "x", "truncated or not a zip file"),
        ("a.gpkg", "", r"a\.gpkg is empty \(0 bytes\)"),
        ("a", "", r"is empty \(0 bytes\)"),
        ("a.geojson.gz", "x", "cannot be read"),
    ],
)
def test_what_is_not_what_its_name_says_is_refused(tmp_path, name, text, expected):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(SourceError, match=expected):
        read(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("{here}/-", "standard input cannot be a delivery"),
        ("{here}/12:30.gpkg", "{here}/12:30.gpkg does not exist"),
    ],
)
def test_what_is_no_file_of_this_machine_is_told_for_what_it_is(tmp_path, path, expected):
    with pytest.raises(SourceError) as fault:
        read(path.format(here=tmp_path))
    assert expected.format(here=tmp_path) in fault.value.message
    assert fault.value.hint


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_geopackage_tells_how_much_of_it_arrived_and_nothing_of_sqlite(tmp_path, share):
    path = write(tmp_path / "a.gpkg")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(SourceError, match=f"is truncated: {int(len(whole) * share)} of {len(whole)} bytes$"):
        read(path)


def test_a_damaged_geopackage_is_told_without_the_calls_of_sqlite(tmp_path):
    path = write(tmp_path / "a.gpkg")
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\x07" * (len(whole) - 4096)
    path.write_bytes(whole)
    with pytest.raises(SourceError) as fault:
        read(path)
    assert "sqlite3_" not in fault.value.message
    assert "SELECT" not in fault.value.message
    assert fault.value.message.count("malformed") <= 1


@pytest.mark.parametrize(("kind", "helps"), [("geojson", False), ("shp", True)])
def test_wrong_bytes_name_an_encoding_setting_only_where_it_helps(tmp_path, kind, helps):
    path = tmp_path / f"a.{kind}"
    named = table().set_column(0, "code", pa.array([f"Fl\u00e9chin {row}" for row in range(ROWS)]))
    pyogrio.write_arrow(named, path, driver=FORMATS[kind], geometry_name="geometry", geometry_type="Point", crs="EPSG:4326")
    bytes_of = path if kind == "geojson" else path.with_suffix(".dbf")
    bytes_of.write_bytes(bytes_of.read_bytes().replace(b"\xc3\xa9", b"\xe9 " if kind == "shp" else b"\xe9"))
    with pytest.raises(SourceError) as fault:
        read(path)
    assert ("state the true encoding in source.encoding" in fault.value.hint) == helps
    if helps:
        assert read(path, encoding="cp1252").num_rows == ROWS
    else:
        assert "iconv -f WINDOWS-1252 -t UTF-8" in fault.value.hint


def test_csv_belongs_to_a_later_version(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,y\n")
    with pytest.raises(UsageError, match="not read in this version") as fault:
        read(tmp_path / "a.csv")
    assert "ogr2ogr OUT.gpkg IN.csv" in fault.value.hint


def test_the_primary_key_of_a_geopackage_is_a_column_and_other_row_numbers_are_not(tmp_path):
    source = open_source(SourceSpec(str(CASES / "K07/curr.gpkg")))
    assert source.delivery.fid_column == "fid"
    assert read(CASES / "K07/curr.gpkg")["fid"].to_pylist() == list(range(1, 101))
    for kind in ("geojson", "fgb", "shp", "gdb"):
        other = open_source(SourceSpec(str(write(tmp_path / f"a.{kind}")))).delivery
        assert other.fid_column is None
        assert other.schema.names[:2] == ["code", "number"]
        assert len(other.schema) == 3


def test_the_row_number_of_a_view_is_no_column(tmp_path):
    path = write(tmp_path / "a.gpkg")
    with sqlite3.connect(path) as database:
        database.execute("create view v as select code, geom from a")
        database.execute("insert into gpkg_contents (table_name, data_type, identifier, srs_id) values ('v', 'features', 'v', 4326)")
        database.execute("insert into gpkg_geometry_columns values ('v', 'geom', 'POINT', 4326, 0, 0)")
    database.close()
    source = open_source(SourceSpec(str(path), layer="v"))
    assert source.delivery.schema.names == ["code", "geom"]
    assert read(path, layer="v")["code"].to_pylist() == table()["code"].to_pylist()


def unindexed(path: Path) -> Path:
    """A GeoPackage without triggers that need functions of GDAL's."""
    pyogrio.write_arrow(table(), path, driver="GPKG", geometry_name="geometry", geometry_type="Point", crs="EPSG:4326", SPATIAL_INDEX="NO")
    return path


def in_wal_mode(path: Path, statement: str) -> sqlite3.Connection:
    """An edit that is committed and only in the log, as long as the connection is open."""
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode=wal")
    writer.execute(statement)
    writer.commit()
    return writer


def codes(path: Path, **spec: str) -> set[str]:
    return set(read(path, **spec)["code"].to_pylist())


def test_the_edits_of_a_write_ahead_log_are_read_and_nothing_is_written(tmp_path):
    path = unindexed(tmp_path / "a.gpkg")
    writer = in_wal_mode(path, "update a set code = 'new' where fid = 7")
    writer.execute("update a set code = 'never' where fid = 8")  # not committed
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert {"a.gpkg", "a.gpkg-wal", "a.gpkg-shm"} == set(before)
    assert codes(path) == {*table()["code"].to_pylist(), "new"} - {"0006"}
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    packed = tmp_path / "d.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a.gpkg", "a.gpkg-wal"):
            archive.writestr(name, before[name])
    assert "new" in codes(packed)
    writer.rollback()
    writer.close()
    before_close = everything_under(tmp_path)
    for _ in open_source(SourceSpec(str(path))).batches(100):  # the file itself says WAL, and still nothing appears beside it
        assert everything_under(tmp_path) == before_close


@pytest.mark.parametrize("at", [0, 12, 20, 32 + 8, 32 + 16, 32 + 24 + 100])
def test_a_damaged_write_ahead_log_is_refused(tmp_path, at):
    path = unindexed(tmp_path / "a.gpkg")
    writer = in_wal_mode(path, "update a set code = 'new' || hex(randomblob(500))")
    broken = tmp_path / "broken"
    broken.mkdir()
    shutil.copyfile(path, broken / "a.gpkg")
    log = bytearray((tmp_path / "a.gpkg-wal").read_bytes())
    log[at] ^= 0xFF
    (broken / "a.gpkg-wal").write_bytes(log)
    writer.close()
    with pytest.raises(SourceError, match=r"edits in a log that cannot be read \(a.gpkg-wal\)"):
        read(broken / "a.gpkg")


def test_the_log_of_another_file_is_refused(tmp_path):
    path = unindexed(tmp_path / "a.gpkg")
    writer = in_wal_mode(path, "update a set code = 'new'")
    log = (tmp_path / "a.gpkg-wal").read_bytes()
    writer.close()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "a.gpkg"
    pyogrio.write_arrow(
        table().slice(0, 3), other, driver="GPKG", layer="b", geometry_name="geometry", geometry_type="Point", crs="EPSG:4326"
    )
    other.with_name("a.gpkg-wal").write_bytes(log)
    with pytest.raises(SourceError, match=r"log|malformed|GPKG"):
        read(other)


def test_an_edit_that_was_cut_off_is_undone(tmp_path):
    path = unindexed(tmp_path / "a.gpkg")
    writer = sqlite3.connect(path)
    writer.execute("pragma cache_size=1")  # pages go to the file before the edit is done
    writer.execute("pragma cache_spill=1")
    writer.execute("begin immediate")
    writer.execute("update a set code = code || 'x' || hex(randomblob(200))")
    torn = tmp_path / "torn"
    torn.mkdir()
    for name in ("a.gpkg", "a.gpkg-journal"):
        shutil.copyfile(tmp_path / name, torn / name)
    writer.rollback()
    writer.close()
    assert (torn / "a.gpkg").read_bytes() != path.read_bytes()
    assert codes(torn / "a.gpkg") == set(table()["code"].to_pylist())
    assert codes(path) == set(table()["code"].to_pylist())  # a journal that is done with says nothing


@pytest.mark.parametrize("name", ["poi.gml", "poi.kml"])
def test_a_doctype_is_refused_and_nothing_is_expanded(tmp_path, name):
    for part in (name, "canary.txt"):
        shutil.copy(CASES / "X02" / part, tmp_path)
    before = everything_under(tmp_path)
    with pytest.raises(SourceError, match="DOCTYPE") as fault:
        read(tmp_path / name)
    assert "CANARY" not in str(fault.value)
    assert everything_under(tmp_path) == before


def test_entities_that_would_fill_the_memory_are_refused_at_once(tmp_path):
    steps = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    for encoding in ("utf-8", "utf-16"):
        text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY e0 "lol">{steps}]><x>&e11;</x>'
        (tmp_path / "a.gml").write_bytes(text.encode(encoding))
        with pytest.raises(SourceError, match="DOCTYPE"):
            read(tmp_path / "a.gml")


ZONING = """<gml:FeatureCollection gml:id="c" xmlns:gml="http://www.opengis.net/gml/3.2"
  xmlns:cp="urn:x-inspire:specification:gmlas:CadastralParcels:3.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="urn:x-inspire:specification:gmlas:CadastralParcels:3.0 http://inspire.ec.europa.eu/schemas/cp/3.0/CadastralParcels.xsd">
  <gml:featureMember><cp:CadastralZoning gml:id="z"><cp:label>a</cp:label>
    <cp:geometry><gml:Polygon gml:id="p"><gml:exterior><gml:LinearRing><gml:posList>0 0 4 0 4 4 0 4 0 0</gml:posList></gml:LinearRing></gml:exterior>
    </gml:Polygon></cp:geometry>
    <cp:referencePoint><gml:Point gml:id="q"><gml:pos>1 2</gml:pos></gml:Point></cp:referencePoint>
  </cp:CadastralZoning></gml:featureMember></gml:FeatureCollection>"""


@pytest.mark.parametrize(
    ("asked", "area", "other"), [(None, 16, "referencePoint"), ("geometry", 16, "referencePoint"), ("referencePoint", 0, "geometry")]
)
def test_of_several_geometries_the_layer_s_own_is_the_first_and_any_can_be_named(tmp_path, asked, area, other):
    (tmp_path / "zones.gml").write_text(ZONING)
    source = open_source(SourceSpec(str(tmp_path / "zones.gml"), geometry=asked, crs="EPSG:32628"))
    primary, others = source.delivery.geometry, source.delivery.other_geometries
    assert primary is not None
    assert (primary.crs, [(each.name, each.crs, each.asserted) for each in others]) == ("EPSG:32628", [(other, "EPSG:32628", True)])
    (batch,) = source.batches()
    assert shapely.from_wkb(batch.column(primary.name)[0].as_py()).area == area
    assert shapely.from_wkb(batch.column(other)[0].as_py()).area == 16 - area
    with pytest.raises(SourceError, match="geometry, referencePoint"):
        open_source(SourceSpec(str(tmp_path / "zones.gml"), geometry="outline"))


def test_a_stale_gfs_beside_a_gml_is_not_believed(tmp_path):
    path = write(tmp_path / "a.gml")
    path.with_suffix(".xsd").unlink()
    path.with_suffix(".gfs").write_text(
        "<GMLFeatureClassList><GMLFeatureClass><Name>a</Name><ElementPath>a</ElementPath></GMLFeatureClass></GMLFeatureClassList>"
    )
    assert read(path)["code"].to_pylist() == table()["code"].to_pylist()


def test_what_gdal_remarks_is_a_finding_told_once(capfd):
    source = open_source(SourceSpec(str(CASES / "F11/curr.gpkg")))
    for _ in range(2):
        assert sum(batch.num_rows for batch in source.batches()) == 6
    (found,) = source.late_findings()
    assert (found.severity, found.rule) == ("warning", "driver")
    assert "surveyed" in found.observed
    assert source.late_findings() == ()
    assert capfd.readouterr() == ("", "")


def test_geopackage_times_are_utc_whatever_their_spelling():
    source = open_source(SourceSpec(str(CASES / "F11/curr.gpkg")))
    assert source.delivery.utc_columns == {"surveyed"}
    instants = read(CASES / "F11/curr.gpkg")["surveyed"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    assert len(set(instants[:4])) == 1  # Z, .000Z, no zone, and an offset
    assert instants[4] - instants[0] == 124


def feature(properties: dict, at: list[float] | None = None) -> dict:
    geometry = None if at is None else {"type": "Point", "coordinates": at}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def test_geojson_keeps_text_of_times_lists_objects_and_names_that_machinery_uses(tmp_path):
    rows = [
        feature(
            {"t": "2021-01-01T00:00:00+01:00", "tags": ["a"], "o": {"k": 1}, "m": "1", "geometry": "x", "wkb_geometry": "y"}, [1, 2, 3]
        ),
        feature({"t": "2021-01-01T00:00:00.123456Z", "tags": [], "o": None, "m": 1, "geometry": "x", "wkb_geometry": "y"}, [1, 2]),
        feature({"t": None, "tags": None, "o": {"k": None}, "m": None, "geometry": "x", "wkb_geometry": "y"}),
    ]
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": rows}))
    found = read(tmp_path / "a.geojson")
    assert found["t"].to_pylist() == ["2021-01-01T00:00:00+01:00", "2021-01-01T00:00:00.123456Z", None]
    assert found["tags"].to_pylist() == [["a"], [], None]
    assert [text and json.loads(text) for text in found["o"].to_pylist()] == [{"k": 1}, None, {"k": None}]
    schema = open_source(SourceSpec(str(tmp_path / "a.geojson"))).delivery.schema
    assert [is_json_text(schema.field(name)) for name in ("o", "m", "t", "geometry")] == [True, True, False, False]
    assert found["geometry"].to_pylist() == ["x"] * 3
    assert found["wkb_geometry"].to_pylist() == ["y"] * 3
    geometry = open_source(SourceSpec(str(tmp_path / "a.geojson"))).delivery.geometry
    assert geometry is not None
    assert (geometry.name, geometry.crs) == ("geometry_", "OGC:CRS84")  # a height does not make it another CRS
    assert found["geometry_"].null_count == 1


def test_names_are_nfc_and_two_that_become_one_are_refused(tmp_path):
    assert "größe" in read(CASES / "F14/curr.geojson").column_names
    row = feature({"gr\u00f6\u00dfe": 1, "gro\u0308\u00dfe": 2}, [1, 2])
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [row]}))
    with pytest.raises(SourceError, match="two columns called 'größe'"):
        read(tmp_path / "a.geojson")


@pytest.mark.parametrize(
    ("name", "crs", "note"),
    [("noprj.shp", None, "no .prj"), ("srs0.gpkg", None, "srs_id 0"), ("plain.geojson", "OGC:CRS84", "RFC 7946")],
)
def test_a_crs_is_never_assumed(name, crs, note):
    geometry = open_source(SourceSpec(str(CASES / "C01" / name))).delivery.geometry
    assert geometry is not None
    assert (geometry.crs, geometry.note, geometry.asserted) == (crs, note, False)


def test_an_asserted_crs_fills_in_and_never_overrides():
    filled = open_source(SourceSpec(str(CASES / "C01/noprj.shp"), crs="EPSG:3059")).delivery
    assert filled.geometry is not None
    assert (filled.geometry.crs, filled.geometry.asserted, filled.findings) == ("EPSG:3059", True, ())
    same = open_source(SourceSpec(str(CASES / "C01/plain.geojson"), crs="EPSG:4326")).delivery
    assert same.findings == ()
    (fault,) = open_source(SourceSpec(str(CASES / "C01/plain.geojson"), crs="EPSG:3059")).delivery.findings
    assert (fault.rule, fault.severity) == ("crs_mismatch", "error")
    with pytest.raises(UsageError, match="'EPSG:0' is not a CRS that PROJ knows"):
        open_source(SourceSpec(str(CASES / "C01/noprj.shp"), crs="EPSG:0"))
