"""Cases N01, N02, N06, N09, N10, N13, N15 to N19: what a driver hands over, cuts, drops or guesses."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import zipfile
from contextlib import closing, nullcontext
from pathlib import Path

import pyogrio
import pytest
import shapely

from estate import save
from merestone.compare.sides import open_side
from merestone.drafts import init
from merestone.errors import SourceError
from merestone.source.open import open_source
from merestone.source.port import SourceSpec, UnreadableValueError

CASES = Path(__file__).parent
POINT = {"geometry_type": "point"}


def refused(night, product, version=None):
    """Nothing was published, and what was stays."""
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version == night.result.version


# --- N01 -------------------------------------------------------------------------------------------------------------------------------


def by_row(path, key):
    """Key to place, read feature by feature."""
    meta, _, shapes, columns = pyogrio.raw.read(path)
    keys = columns[meta["fields"].tolist().index(key)]
    return {each: None if shape is None else shapely.from_wkb(shape) for each, shape in zip(keys.tolist(), shapes, strict=True)}


@pytest.mark.parametrize("name", ["n", "six"])
def test_n01_a_null_geometry_in_a_flatgeobuf_moves_no_other(estate, name):
    path = CASES / f"N01/{name}.fgb"
    kinds = pyogrio.read_info(path)["dtypes"].tolist()
    names = pyogrio.read_info(path)["fields"].tolist()
    fields = [{"name": each, "type": "string" if kind == "object" else "integer"} for each, kind in zip(names, kinds, strict=True)]
    product = estate(fields, key="id", geometry_type="point", geometry={"nullable": True})
    night = product.publish(path)
    assert (night.status, night.result.rejected) == ("published", 0), night.said
    assert product.shapes() == by_row(path, "id")
    assert None in product.shapes().values()


@pytest.mark.parametrize("where", [{0}, {5}, {0, 1, 2}, {2, 3}, {1, 3, 5}, set(range(6))])
def test_n01_wherever_the_nulls_stand(estate, tmp_path, where):
    rows = [{"id": at, "geometry": None if at in where else shapely.Point(at, at)} for at in range(6)]
    path = save(rows, tmp_path / "d.fgb", SPATIAL_INDEX="NO", geometry_type="Point")
    product = estate([{"name": "id", "type": "integer"}], key="id", geometry_type="point", geometry={"nullable": True})
    night = product.publish(path)
    assert (night.status, night.result.rejected) == ("published", 0), night.said
    assert product.shapes() == {row["id"]: row["geometry"] for row in rows}


# --- N02, N15 --------------------------------------------------------------------------------------------------------------------------


def geopackage(path, columns, rows, *, srs_id=4326):
    """A GeoPackage of points whose cells are written by SQLite, as they are; `columns` is name to declared type."""
    save([{"geometry": shapely.Point(at, at)} for at in range(len(rows))], path, srs_id, layer="t")
    with closing(sqlite3.connect(path)) as database:
        for trigger in [name for (name,) in database.execute("select name from sqlite_master where type = 'trigger'")]:
            database.execute(f'drop trigger "{trigger}"')
        for name, kind in columns.items():
            database.execute(f'alter table t add column "{name}" {kind}')
        cells = ", ".join(f"{name} = ?" for name in columns)
        database.executemany(f"update t set {cells} where fid = ?", [(*row, at) for at, row in enumerate(rows, start=1)])  # noqa: S608 - ours
        database.commit()
    return path


def types_of(night):
    """Field to the rows that have no value of its type, and how they are shown."""
    found = [each for each in night.result.findings if each.rule == "type"]
    assert len({each.field for each in found}) == len(found), "one finding a column"
    return {each.field: [(sample.row, sample.observed) for sample in each.features] for each in found}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def test_n02_cells_that_are_not_of_their_columns_type(estate):
    product = estate(
        [field("id", "string"), field("name", "string"), field("v", "integer")], key="id", epsg=28992, precision=3, geometry_type="polygon"
    )
    night = product.publish(CASES / "N02/d.gpkg")
    refused(night, product)
    assert types_of(night) == {"v": [(1, "'abc'"), (2, "'12abc'"), (3, "1.75"), (4, "1e+20"), (5, "1e+30")]}
    for words in ("v", "'12abc'", "integer"):
        assert words in night.said


B = [field("pid", "string"), field("floors", "integer"), field("units", "integer"), field("built", "date"), field("height", "number"),
     field("listed", "boolean")]  # fmt: skip


def test_n15_one_finding_a_column_with_rows_and_values(estate):
    product = estate(B, epsg=25832, precision=3, **POINT)
    night = product.publish(CASES / "N15/dirty.gpkg")
    refused(night, product)
    assert types_of(night) == {
        "floors": [(3, "'unknown'"), (4, "2.7"), (10, "x'41'"), (12, "''")],
        "units": [(5, "5000000000")],
        "built": [(6, "'2020-02-31'"), (7, "'05/03/2020'")],
        "height": [(8, "'12,5'"), (11, "'n/a'")],
        "listed": [(9, "7")],
    }
    clean = product.publish(CASES / "N15/clean.gpkg")
    assert (clean.status, clean.result.features) == ("published", 12), clean.said


def test_n15_times_and_flags(estate):
    product = estate([field("pid", "string"), field("at", "timestamp"), field("ok", "boolean")], epsg=25832, precision=3, **POINT)
    night = product.publish(CASES / "N15/more.gpkg")
    refused(night, product)
    assert types_of(night) == {
        "at": [(3, "'05.03.2024 10:00'"), (4, "'2024-13-45T10:00:00Z'"), (5, "1709632800"), (6, "'2024-01-05T25:61:00Z'")],
        "ok": [(2, "'t'"), (3, "'true'"), (4, "'no'"), (5, "-1")],
    }


@pytest.mark.parametrize(
    ("declared", "agreed", "value", "shown"),
    [
        ("INTEGER", "integer", "x", "'x'"),
        ("INTEGER", "integer", b"1", "x'31'"),
        ("INTEGER", "integer", 0.5, "0.5"),
        ("SMALLINT", "integer", 40_000, "40000"),
        ("MEDIUMINT", "integer", -(2**31) - 1, "-2147483649"),
        ("DOUBLE", "number", "", "''"),
        ("REAL", "number", b"\0", "x'00'"),
        ("BOOLEAN", "boolean", "maybe", "'maybe'"),
        ("BOOLEAN", "boolean", 0.5, "0.5"),
        ("TEXT", "string", b"ab", "x'6162'"),
        ("TEXT", "string", "before\0after", r"'before\x00after'"),
        ("TEXT(20)", "string", "\0", r"'\x00'"),
        ("BLOB", "binary", "text", "'text'"),
        ("DATE", "date", "2023-02-29", "'2023-02-29'"),
        ("DATE", "date", "20230101", "20230101"),
        ("DATE", "date", "2023-1-1", "'2023-1-1'"),
        ("DATE", "date", "", "''"),
        ("DATETIME", "timestamp", "2023-06-31T00:00:00Z", "'2023-06-31T00:00:00Z'"),
        ("DATETIME", "timestamp", "2023-06-30T24:00:00Z", "'2023-06-30T24:00:00Z'"),
        ("DATETIME", "timestamp", "2023-06-30T10:00:00.1234567Z", "'2023-06-30T10:00:00.1234567Z'"),
        ("DATETIME", "timestamp", "2023-06-30T10:00:00Z or so", "'2023-06-30T10:00:00Z or so'"),
        ("DATETIME", "timestamp", "now", "'now'"),
    ],
)  # fmt: skip
def test_n15_each_declared_type_by_itself(estate, tmp_path, declared, agreed, value, shown):
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER", "v": declared}, [(1, None), (2, value), (3, None)])
    product = estate([field("pid", "integer"), field("v", agreed)], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert types_of(night) == {"v": [(2, shown)]}, night.said


@pytest.mark.parametrize(
    ("declared", "agreed", "values"),
    [
        ("INTEGER", "integer", [2**63 - 1, -(2**63), 0]),
        ("MEDIUMINT", "integer", [2**31 - 1, -(2**31), 7]),
        ("SMALLINT", "integer", [32_767, -32_768]),
        ("DOUBLE", "number", [1, 2.5, -1e300]),
        ("BOOLEAN", "boolean", [0, 1]),
        ("TEXT", "string", ["", "å\n", "12"]),
        ("BLOB", "binary", [b"", b"\0\1"]),
        ("DATE", "date", ["2024-02-29", "0001-01-01", "9999-12-31"]),
        ("DATETIME", "timestamp", ["2024-02-29T23:59:59.999Z", "2024-03-31 10:00:00", "2024-03-01T00:30:00+02:00", "2024-03-01T00:00:00.120000Z"]),
    ],
)  # fmt: skip
def test_n15_what_fits_passes(estate, tmp_path, declared, agreed, values):
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER", "v": declared}, [(at, each) for at, each in enumerate([*values, None])])
    product = estate([field("pid", "integer"), field("v", agreed)], **POINT)
    night = product.publish(path)
    assert (night.status, night.result.rejected, types_of(night)) == ("published", 0, {}), night.said
    assert [row["v"] for row in product.rows().values()].count(None) == 1


def test_n02_a_key_that_is_no_integer(estate, tmp_path):
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER"}, [(1,), ("7b",), (3,)])
    product = estate([field("pid", "integer")], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert types_of(night) == {"pid": [(2, "'7b'")]}


def test_n02_beyond_one_batch_and_with_quarantine(estate, tmp_path):
    rows = [(at, "x" if at in {3, 70_000} else at) for at in range(70_001)]
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER", "v": "INTEGER"}, rows)
    product = estate([field("pid", "integer"), field("v", "integer")], **POINT)
    product.settings["rejects"] = {"max_fraction": 0.01}
    product.terms["coordinate_precision"] = 0
    with closing(sqlite3.connect(path)) as database:  # points within the range of degrees
        database.create_function("moved", 1, lambda blob: blob[:13] + shapely.to_wkb(shapely.Point(1, 1))[5:])
        database.execute("update t set geom = moved(geom)")
        database.commit()
    night = product.publish(path)
    assert (night.status, night.result.rejected) == ("published", 2), night.said
    assert types_of(night) == {"v": [(4, "'x'"), (70_001, "'x'")]}
    assert {3, 70_000}.isdisjoint(product.rows())


def test_n02_diff_and_init_name_the_cell(tmp_path):
    assert open_side(str(geopackage(tmp_path / "good.gpkg", {"pid": "INTEGER"}, [(1,), (2,)])))
    bad = geopackage(tmp_path / "bad.gpkg", {"pid": "INTEGER", "v": "INTEGER"}, [(1, 1), (2, "12abc")])
    with pytest.raises(UnreadableValueError, match=r"field v, record 2: '12abc' is not an integer"):
        open_side(str(bad))
    drafted = init.draft(str(bad))
    assert any("'12abc'" in each and "1 of 2 rows would be rejected" in each for each in drafted.notes), drafted.notes


# --- N18 -------------------------------------------------------------------------------------------------------------------------------

WELLS = [field("well", "string"), field("depth", "number")]


def test_n18_geometries_in_another_reference_system_than_their_layer(estate):
    product = estate(WELLS, key="well", epsg=25832, precision=3, **POINT)
    night = product.publish(CASES / "N18/mixed.gpkg")
    refused(night, product)
    for words in ("EPSG:25833", "EPSG:25832", "10 geometries", "rows 21, 22"):
        assert words in night.said
    clean = product.publish(CASES / "N18/clean.gpkg")
    assert (clean.status, clean.result.features) == ("published", 30), clean.said


@pytest.mark.parametrize(
    ("srs_id", "order", "status"),
    [(0, "<", "published"), (-1, ">", "published"), (4326, ">", "published"), (25833, "<", "refused"), (31467, ">", "refused")],
)
def test_n18_what_a_blob_may_say(estate, tmp_path, srs_id, order, status):
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER"}, [(at,) for at in range(3)])
    with closing(sqlite3.connect(path)) as database:
        (blob,) = database.execute("select geom from t where fid = 2").fetchone()
        flags = blob[3] & 0xFE | (order == "<")
        database.execute("update t set geom = ? where fid = 2", (blob[:3] + bytes([flags]) + struct.pack(order + "i", srs_id) + blob[8:],))
        database.commit()
    product = estate([field("pid", "integer")], **POINT)
    night = product.publish(path)
    assert night.status == status, night.said
    assert status == "published" or "rows 2" in night.said


def test_n18_a_blob_that_is_no_geometry(estate, tmp_path):
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER"}, [(at,) for at in range(3)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("update t set geom = 'POINT (1 1)' where fid = 2")
        database.commit()
    product = estate([field("pid", "integer")], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert [(row, "POINT" in shown) for row, shown in types_of(night)["geometry"]] == [(2, True)]


# --- N19 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stale", "stale_low"])
def test_n19_a_stale_count_condemns_nothing(estate, name):
    product = estate([field("tree", "string"), field("species", "string")], key="tree", epsg=25832, precision=3, **POINT)
    assert product.publish(CASES / "N19/clean.gpkg").status == "published"
    night = product.publish(CASES / f"N19/{name}.gpkg")
    assert (night.status, night.result.features) == ("unchanged", 9), night.said
    assert product.publish(CASES / "N19/clean.gpkg").status == "unchanged"


# --- N06 -------------------------------------------------------------------------------------------------------------------------------


def geojson(path, *features, **members):
    """Features as they are written here, byte for byte."""
    head = "".join(f"{json.dumps(name)}: {json.dumps(value)}, " for name, value in members.items())
    path.write_text('{"type": "FeatureCollection", ' + head + '"features": [\n' + ",\n".join(features) + "\n]}", encoding="utf-8")
    return path


def feature(properties, *, geometry='{"type": "Point", "coordinates": [1, 2]}', more=""):
    return f'{{"type": "Feature", {more}"properties": {properties}, "geometry": {geometry}}}'


@pytest.mark.parametrize(("name", "member"), [("attr", "name"), ("geometry", "geometry")])
def test_n06_a_member_twice_in_one_object(estate, name, member):
    product = estate([field("pid", "string"), field("name", "string")], **POINT)
    night = product.publish(CASES / f"N06/{name}.geojson")
    refused(night, product)
    for words in (f"the member '{member}' stands twice", "feature 1", "line 1"):
        assert words in night.said


@pytest.mark.parametrize(
    ("text", "member", "line"),
    [
        (feature('{"pid": "a", "o": {"x": 1, "x": 2}}'), "x", 3),
        (feature('{"pid": "a", "l": [[{"x": 1, "x": 1}]]}'), "x", 3),
        (feature('{"pid": "a"}', more='"type": "Feature", '), "type", 3),
        (feature('{"pid": "a",\n "na\\u006de": 1,\n "name": 2}'), "name", 5),
        (feature('{"pid": "a"}', geometry='{"type": "Point", "coordinates": [1, 2], "coordinates": [3, 4]}'), "coordinates", 3),
    ],
)
def test_n06_at_every_level_and_in_text_sequences(estate, tmp_path, text, member, line):
    product = estate([field("pid", "string")], **POINT)
    product.settings["extra_columns"] = "warn"
    night = product.publish(geojson(tmp_path / "d.geojson", feature('{"pid": "b"}'), text))
    refused(night, product)
    assert f"the member '{member}' stands twice in one object: feature 2 in line {line}" in night.said
    lines = tmp_path / "d.geojsonl"
    lines.write_text(feature('{"pid": "b"}') + "\n\n" + text.replace("\n", "") + "\n")
    night = product.publish(lines)
    refused(night, product)
    assert f"the member '{member}' stands twice in one object: feature 2 in line 3" in night.said


def test_n06_a_member_of_the_collection(estate, tmp_path):
    path = tmp_path / "d.geojson"
    path.write_text(
        '{"type": "FeatureCollection", "features": [' + feature('{"pid": "a"}') + '],\n"features": [' + feature('{"pid": "b"}') + "]}"
    )
    night = estate([field("pid", "string")], **POINT).publish(path)
    assert night.status == "refused"
    assert "the member 'features' stands twice in one object: line 2" in night.said


# --- N10 -------------------------------------------------------------------------------------------------------------------------------


def test_n10_a_feature_id_is_no_property(estate):
    product = estate([field("id", "string"), field("n", "string")], key="id", **POINT)
    night = product.publish(CASES / "N10/some.geojson")
    refused(night, product)
    assert "1 null key (row 1 of the file)" in night.said
    text = estate([field("pid", "string")], **POINT)
    night = text.publish(CASES / "N10/text.geojson")
    assert (night.status, set(text.rows())) == ("published", {"p0", "p1"}), night.said


def test_n10_unless_the_publication_names_it(estate):
    product = estate([field("place", "string"), field("pid", "string")], key="place", **POINT)
    night = product.publish({"path": str(CASES / "N10/text.geojson"), "feature_id": "place"})
    assert (night.status, set(product.rows())) == ("published", {"parcels.0", "parcels.1"}), night.said


@pytest.mark.parametrize(
    ("kind", "ids", "properties", "keys"),
    [
        ("integer", ['"a.1"', '"a.2"'], ["7", "8"], {7, 8}),
        ("string", ["1", "2"], ['"x"', '"y"'], {"x", "y"}),
        ("string", ['"x"', "2"], ['"007"', '"8"'], {"007", "8"}),
    ],
)
def test_n10_the_property_keeps_its_own_type(estate, tmp_path, kind, ids, properties, keys):
    features = [feature(f'{{"id": {own}}}', more=f'"id": {given}, ') for given, own in zip(ids, properties, strict=True)]
    product = estate([field("id", kind)], key="id", **POINT)
    night = product.publish(geojson(tmp_path / "d.geojson", *features))
    assert (night.status, set(product.rows())) == ("published", keys), night.said
    (tmp_path / "d.geojsonl").write_text("\n".join(features) + "\n")
    assert product.publish(tmp_path / "d.geojsonl").status == "unchanged"


# --- N16 -------------------------------------------------------------------------------------------------------------------------------


def test_n16_malformed_positions_are_named(estate):
    product = estate([field("k", "string")], key="k", geometry_type="multipolygon")
    night = product.publish(CASES / "N16/bad.geojson")
    refused(night, product)
    shown = dict(types_of(night)["geometry"])
    assert set(shown) == {2, 3, 4, 5, 6}
    for row, words in {2: "11.5", 3: "null", 4: "null", 5: '"14.51"', 6: "[15.51]"}.items():
        assert words in shown[row]
    clean = product.publish(CASES / "N16/clean.geojson")
    assert (clean.status, clean.result.features) == ("published", 6), clean.said
    strings = estate([field("k", "string")], key="k", **POINT)
    night = strings.publish(CASES / "N16/strings.geojson")
    refused(night, strings)
    assert [row for row, _ in types_of(night)["geometry"]] == [1]


@pytest.mark.parametrize(
    ("kind", "coordinates", "words"),
    [
        ("Point", "[1]", "coordinates is [1]"),
        ("Point", "[[1, 2]]", "coordinates is [[1, 2]]"),
        ("Point", "[1, true]", "[1, true]"),
        ("LineString", "[[0, 0], [1, null]]", "coordinates[1] is [1, null]"),
        ("LineString", "[[0, 0], {}]", "coordinates[1] is {}"),
        ("MultiPoint", "[[0, 0], []]", "coordinates[1] is []"),
        ("Polygon", "[[[0, 0], [1, 0], [1, 1], [0, 0]], [0, 0]]", "coordinates[1][0] is 0"),
        ("Circle", "[0, 0]", '"Circle" is not a type'),
        ("GeometryCollection", "[]", "without a list of geometries"),
    ],
)
def test_n16_each_form(estate, tmp_path, kind, coordinates, words):
    good = feature('{"k": "a"}', geometry='{"type": "LineString", "coordinates": [[0, 0], [1, 1]]}')
    bad = feature('{"k": "b"}', geometry=f'{{"type": "{kind}", "coordinates": {coordinates}}}')
    product = estate([field("k", "string")], key="k")
    for path in (geojson(tmp_path / "d.geojson", good, bad), tmp_path / "d.geojsonl"):
        if path.suffix == ".geojsonl":
            path.write_text(f"{good}\n{bad}\n")
        night = product.publish(path)
        refused(night, product)
        assert [(row, words in shown) for row, shown in types_of(night)["geometry"]] == [(2, True)], night.said


def test_n16_text_after_a_nul(estate, tmp_path):
    path = geojson(tmp_path / "d.geojson", feature('{"k": 1, "v": null}'), feature('{"k": 2, "v": "a\\u0000b"}'))
    product = estate([field("k", "integer"), field("v", "string")], key="k", **POINT)
    night = product.publish(path)
    refused(night, product)
    assert types_of(night) == {"v": [(2, r"'a\x00b'")]}


@pytest.mark.parametrize("value", [2**63, -(2**64)])
def test_n16_an_integer_beyond_64_bits_is_never_another_number(estate, tmp_path, value):
    lines = tmp_path / "d.geojsonl"
    lines.write_text(feature('{"k": 1, "v": 1}') + "\n" + feature(f'{{"k": 2, "v": {value}}}') + "\n")
    product = estate([field("k", "integer"), field("v", "integer")], key="k", **POINT)
    night = product.publish(lines)
    refused(night, product)
    assert types_of(night) == {"v": [(2, str(value))]} or "v: " in night.said
    collection = geojson(tmp_path / "d.geojson", feature(f'{{"k": 2, "v": {value}}}'))
    unread = value > 0 and pyogrio.__gdal_version__ >= (3, 12)  # else GDAL bounds it and warns, which is refused
    with pytest.raises(SourceError, match="Unrecognized number") if unread else nullcontext():
        refused(product.publish(collection), product)


# --- N17 -------------------------------------------------------------------------------------------------------------------------------

HYDRANTS = [field("asset", "string"), field("kind", "string")]


@pytest.mark.parametrize(
    ("name", "words"), [("arcgis", "exceededTransferLimit is true"), ("ogcapi", "numberMatched is 40 and it holds 36 features")]
)
def test_n17_a_part_removes_nothing(estate, name, words):
    product = estate(HYDRANTS, key="asset", **POINT)
    assert product.publish(CASES / "N17/night1.geojson").result.features == 40
    night = product.publish(CASES / f"N17/{name}.geojson")
    refused(night, product, 1)
    assert words in night.said
    assert len(product.rows()) == 40


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"numberMatched": 2, "numberReturned": 2}, "published"),
        ({"numberMatched": "unknown", "numberReturned": 1}, "published"),
        ({"numberMatched": 2, "links": [{"rel": "next", "href": "x"}, {"rel": "self"}]}, "published"),
        ({"totalFeatures": "unknown", "links": [{"rel": "prev", "href": "x"}]}, "published"),
        ({"exceededTransferLimit": False}, "published"),
        ({"exceededTransferLimit": True}, "refused"),
        ({"totalFeatures": 3}, "refused"),
        ({"numberMatched": "3"}, "refused"),
        ({"links": {"next": "x"}}, "refused"),
        ({"links": [{"rel": "next", "href": "x"}], "numberReturned": 2}, "refused"),
    ],
)
def test_n17_what_a_file_says_of_itself(estate, tmp_path, members, status):
    path = geojson(tmp_path / "d.geojson", feature('{"k": 1}'), feature('{"k": 2}'), **members)
    night = estate([field("k", "integer")], key="k", **POINT).publish(path)
    assert night.status == status, night.said
    with pytest.raises(SourceError, match="is a part") if status == "refused" else nullcontext():
        open_side(str(path))


def test_n17_members_after_the_features_and_esris_own_json(estate, tmp_path):
    esri = {
        "geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields": [{"name": "k", "type": "esriFieldTypeInteger"}],
        "features": [{"attributes": {"k": at}, "geometry": {"x": at, "y": at}} for at in range(3)],
    }  # fmt: skip
    product = estate([field("k", "integer")], key="k", **POINT)
    for limit, status in ((True, "refused"), (False, "published")):
        path = tmp_path / f"{limit}.json"
        path.write_text(json.dumps({**esri, "exceededTransferLimit": limit}))
        assert product.publish(path).status == status


def test_a_json_text_that_breaks_off_or_goes_on_is_an_error(tmp_path):
    whole = geojson(tmp_path / "whole.geojson", *(feature(f'{{"k": {at}}}') for at in range(3))).read_text()
    for name, text, words in (
        ("cut", whole[:-40], "after feature 2"),
        ("more", whole + "{}", "there is text after its end"),
        ("comma", whole.replace("},\n{", "}\n{", 1), "',' is missing in line 3, after feature 1"),
        ("deep", whole.replace("[1, 2]", "[" * 50_000 + "]" * 50_000, 1), "nested too deeply"),
    ):
        path = tmp_path / f"{name}.geojson"
        path.write_text(text)
        with pytest.raises(SourceError, match=words):
            open_source(SourceSpec(str(path)))


def test_a_feature_larger_than_what_is_read_at_once_and_many_small_ones(tmp_path):
    ring = [[at % 360 / 4, at // 360 / 400] for at in range(150_000)]
    long = feature('{"k": -1}', geometry=json.dumps({"type": "LineString", "coordinates": ring}))
    many = [feature(f'{{"k": {at}}}') for at in range(20_000)]
    source = open_source(SourceSpec(str(geojson(tmp_path / "d.geojson", *many, long, *many, numberMatched=40_001))))
    assert source.delivery.rows == sum(batch.num_rows for batch in source.batches()) == 40_001
    assert source.delivery.findings == source.delivery.misfits == ()


# --- N13 -------------------------------------------------------------------------------------------------------------------------------

PARCELS = {"key": "no", "epsg": 25832, "precision": 0, "geometry_type": "polygon", "extent": [400_000, 5_800_000, 600_000, 6_000_000]}


@pytest.mark.parametrize("name", ["badpos_at_row_900", "ref_at_row_900"])
def test_n13_a_geometry_that_ends_the_stream_removes_nothing(estate, name):
    product = estate([field("no", "string")], **PARCELS)
    assert product.publish(CASES / "N13/clean1000.gml").result.features == 1000
    night = product.publish(CASES / f"N13/{name}.gml")
    refused(night, product, 1)
    assert "f899" in night.said
    assert len(product.rows()) == 1000


def test_n13_linked_members_are_named(estate):
    product = estate([field("no", "integer"), field("area", "number")], **{**PARCELS, "geometry_type": "geometry"})
    product.settings["extra_columns"] = "warn"
    night = product.publish(CASES / "N13/refs.gml")
    refused(night, product)
    for words in ("f2 curveMember -> #c1", "f3 curveMember -> #c1", "f4 surfaceMember -> #g1"):
        assert words in night.said


GML = (
    '<?xml version="1.0"?><wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs/2.0" xmlns:gml="http://www.opengis.net/gml/3.2" '
    'xmlns:p="http://example.org/p" xmlns:xlink="http://www.w3.org/1999/xlink" {root}>{members}</wfs:FeatureCollection>'
)


def gml(path, *geometries, root="", srs=lambda _: 25832):
    """One line a geometry property, written as it is."""
    members = "".join(
        f'<wfs:member><p:parcel gml:id="f{at}"><p:no>{at}</p:no><p:geom>{each.format(f"urn:ogc:def:crs:EPSG::{srs(at)}")}</p:geom></p:parcel></wfs:member>\n'
        for at, each in enumerate(geometries)
    )
    path.write_text(GML.format(root=root, members=members))
    return path


LINE = '<gml:LineString gml:id="l" srsName="{}"><gml:posList>500000 5900000 500010 5900000</gml:posList></gml:LineString>'


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        (LINE.replace("5900000 500010", "5900000 x"), "f2 posList"),
        (LINE.replace(" 5900000<", "<"), "f2"),
        (LINE.replace("<gml:posList>", '<gml:posList srsDimension="3">'), "f2 posList"),
        ('<gml:LineString srsName="{}"><gml:pos>500000 5900000</gml:pos><gml:pos>500010</gml:pos></gml:LineString>', "f2 pos '500010'"),
        ('<gml:LineString srsName="{}"><gml:coordinates>500000,5900000 500010,abc</gml:coordinates></gml:LineString>', "f2 coordinates"),
        ('<gml:MultiCurve srsName="{}"><gml:curveMember xlink:href="#l"/></gml:MultiCurve>', "f2 curveMember -> #l"),
        ('<gml:MultiCurve srsName="{}"><gml:curveMember xlink:href="http://example.org/l"/></gml:MultiCurve>', "f2 curveMember -> http"),
    ],
)
def test_n13_what_a_lenient_reader_drops(estate, tmp_path, geometry, words):
    product = estate([field("no", "integer")], **{**PARCELS, "geometry_type": "geometry"})
    night = product.publish(gml(tmp_path / "d.gml", LINE, LINE, geometry, LINE))
    refused(night, product)
    assert words in night.said


def test_n13_a_geometry_property_that_is_a_link(estate, tmp_path):
    path = gml(tmp_path / "d.gml", LINE, LINE, LINE)
    path.write_text(path.read_text().replace('<p:geom><gml:LineString gml:id="l" srsName="urn:ogc:def:crs:EPSG::25832">', "<p:geom>", 0))
    text = path.read_text().split("\n")
    text[1] = '<wfs:member><p:parcel gml:id="f1"><p:no>1</p:no><p:geom xlink:href="#l"/></p:parcel></wfs:member>'
    path.write_text("\n".join(text))
    night = estate([field("no", "integer")], **{**PARCELS, "geometry_type": "geometry"}).publish(path)
    assert night.status == "refused"
    assert "f1 geom -> #l" in night.said


@pytest.mark.parametrize(
    ("root", "status"),
    [
        ('numberMatched="3" numberReturned="3"', "published"),
        ('numberMatched="unknown" numberReturned="3"', "published"),
        ('numberOfFeatures="3"', "published"),
        ('numberMatched="4" numberReturned="3"', "refused"),
        ('numberOfFeatures="4"', "refused"),
        ('numberMatched="unknown" next="https://example.org/"', "refused"),
    ],
)
def test_n17_what_a_gml_says_of_itself(estate, tmp_path, root, status):
    product = estate([field("no", "integer")], **{**PARCELS, "geometry_type": "geometry"})
    night = product.publish(gml(tmp_path / "d.gml", LINE, LINE, LINE, root=root))
    assert night.status == status, night.said


def test_n17_a_page_of_a_wfs_removes_nothing(estate):
    product = estate([field("asset", "string"), field("kind", "string")], key="asset", epsg=25833, precision=2, **POINT)
    assert product.publish(CASES / "N17/night1.gml").result.features == 40
    night = product.publish(CASES / "N17/paged.gml")
    refused(night, product, 1)
    assert "numberMatched is 40 and it holds 36 features" in night.said


def test_n18_a_feature_in_another_reference_system(estate, tmp_path):
    product = estate([field("no", "integer")], **{**PARCELS, "geometry_type": "geometry"})
    night = product.publish(gml(tmp_path / "d.gml", LINE, LINE, LINE, LINE, srs=lambda at: 25833 if at == 2 else 25832))
    refused(night, product)
    for words in ("1 geometries say EPSG:25833: f2", "EPSG:25832"):
        assert words in night.said


KML = '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'


@pytest.mark.parametrize(
    ("coordinates", "words"),
    [("1,2", None), ("1, 2", None), ("x,y", "'x,y'"), ("1", "'1'"), ("1,2,", "'1,2,'"), ("1,2 3,", "'3,'"), ("1;2", "'1;2'")],
)
def test_n16_tuples_of_kml(estate, tmp_path, coordinates, words):
    marks = [
        f"<Placemark><name>{at}</name><Point><coordinates>{each}</coordinates></Point></Placemark>"
        for at, each in enumerate(["0,0", coordinates])
    ]
    path = tmp_path / "d.kml"
    path.write_text(KML.format("\n".join(marks)))
    product = estate([field("Name", "string")], key="Name", **POINT)
    product.settings["extra_columns"] = "warn"
    night = product.publish(path)
    assert night.status == ("published" if words is None else "refused"), night.said
    assert words is None or f"placemark 2 {words}" in night.said


# --- N09 -------------------------------------------------------------------------------------------------------------------------------


def test_n09_a_geopackage_and_its_log_in_one_archive(estate, tmp_path):
    with zipfile.ZipFile(CASES / "N09/both.zip") as archive:
        archive.extractall(tmp_path)
    shutil.copytree(tmp_path, tmp_path / "copy", ignore=shutil.ignore_patterns("product*", "copy"))
    with closing(sqlite3.connect(tmp_path / "copy/field.gpkg")) as database:  # SQLite itself is the judge
        (name,) = database.execute("select table_name from gpkg_contents").fetchone()
        columns = [each[1] for each in database.execute(f'pragma table_info("{name}")')]
        rows = [dict(zip(columns, row, strict=True)) for row in database.execute(f'select * from "{name}"')]  # noqa: S608 - its own name
    wanted = [each for each in columns if each not in {"fid", "geom"}]
    kinds = {str: "string", int: "integer", float: "number"}
    fields = [field(each, next(kinds[type(row[each])] for row in rows if row[each] is not None)) for each in wanted]
    assert len(rows) == 3
    epsg = pyogrio.read_info(tmp_path / "copy/field.gpkg")["crs"].removeprefix("EPSG:")
    for source in (CASES / "N09/both.zip", tmp_path / "field.gpkg"):
        product = estate(fields, key=wanted[0], epsg=int(epsg), precision=3 if int(epsg) != 4326 else 7)
        night = product.publish(source)
        assert night.status == "published", night.said
        assert {key: {each: row[each] for each in wanted} for key, row in product.rows().items()} == {
            row[wanted[0]]: {each: row[each] for each in wanted} for row in rows
        }


# --- N02: bytes behind the end of a geometry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wkt",
    ["POINT (1 2)", "LINESTRING Z (0 0 1, 1 1 2)", "POLYGON ((0 0, 3 0, 3 3, 0 0), (1 0.5, 2 0.5, 2 1, 1 0.5))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))",
     "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 1 1))"],
)  # fmt: skip
@pytest.mark.parametrize("tail", [b"", b"x", b"\0" * 21])
def test_n02_bytes_behind_the_end_of_a_geometry(estate, tmp_path, wkt, tail):
    shape = shapely.from_wkt(wkt)
    path = tmp_path / "d.gpkg"
    other = shapely.Point(5, 5, 5) if shape.has_z else shapely.Point(5, 5)
    save(
        [{"pid": at, "geometry": each} for at, each in enumerate([shape, None, other, shape])],
        path,
        layer="t",
        SPATIAL_INDEX="NO",
    )
    with closing(sqlite3.connect(path)) as database:
        (blob,) = database.execute("select geom from t where fid = 4").fetchone()
        database.execute("update t set geom = ? where fid = 4", (blob + tail,))
        database.commit()
    product = estate([field("pid", "integer")], geometry={"nullable": True, "dimensions": "xyz" if shape.has_z else "xy"})
    product.settings["rejects"] = {"max_fraction": 0.9}
    night = product.publish(path)
    cut = [each for each in night.result.findings if each.rule == "cut_value"]
    assert [(each.count, each.features[0].row) for each in cut] == ([(1, 4)] if tail else []), night.said
    assert (night.status, night.result.rejected) == ("published", 1 if tail else 0), night.said
    product.settings["rejects"] = {"max_fraction": 0}
    assert product.publish(path).status == ("refused" if tail else "unchanged")


def test_n02_a_float_keeps_the_digits_that_the_file_has(estate, tmp_path):
    values = [0.1, 16777217.0, None, 1e300, -3]
    path = geopackage(tmp_path / "d.gpkg", {"pid": "INTEGER", "v": "FLOAT"}, list(enumerate(values)))
    product = estate([field("pid", "integer"), field("v", "number")], **POINT)
    night = product.publish(path)
    assert night.status == "published", night.said
    assert [product.rows()[at]["v"] for at in range(5)] == values
