"""Cases S and Q: columns that are cut, too many, nested or named like machinery; GeoParquet with two geometries or round edges."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point, from_wkb

from estate import geoparquet, save
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}
POINT = {"geometry_type": "point"}


def field(name, kind="string", **clauses):
    return {"name": name, "type": kind, **clauses}


def refused(night, product, version=None):
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version


def only(night, changed, rows):
    assert night.status == "published", night.said
    assert night.keys("changed") == sorted(changed)
    assert night.result.delta.touched == len(changed)
    assert night.result.unchanged == rows - len(changed)


# --- S03 -------------------------------------------------------------------------------------------------------------------------------


def s03(estate):
    return estate([KEY, field("construction_year", "integer"), field("construction_type"), field("name")], geometry_type="polygon")


def test_s03_names_cut_to_ten_characters(estate):
    product = s03(estate)
    product.publish(CASES / "S03/prev.gpkg")
    night = product.publish(CASES / "S03/cut.shp")
    refused(night, product, 1)
    for words in (
        "construction_year missing",
        "construction_type missing",
        "shapefile names end after 10 characters (constructi, construc_1)",
    ):
        assert words in night.said


def test_s03_mapped_by_the_publication(estate):
    product = s03(estate)
    product.publish(CASES / "S03/prev.gpkg")
    product.settings["columns"] = {"constructi": "construction_year", "construc_1": "construction_type"}
    assert product.publish(CASES / "S03/cut.shp").status == "unchanged"


# --- S04 -------------------------------------------------------------------------------------------------------------------------------


def s04(estate):
    product = estate([KEY, field("name")], **POINT).as_cases_run()
    product.publish(CASES / "S04/prev.gpkg")
    return product


@pytest.mark.parametrize("name", ["cp1252_with_cpg", "utf8_with_cpg"])
def test_s04_the_code_page_is_told(estate, name):
    product = s04(estate)
    assert product.publish(CASES / f"S04/{name}.shp").status == "unchanged"


def test_s04_the_code_page_is_not_told(estate):
    product = s04(estate)
    night = product.publish(CASES / "S04/cp1252_no_cpg.shp")
    assert any(rule == "encoding" for _, rule in night.rules()), night.said
    if night.status == "refused":
        assert "encoding" in night.said
    else:
        assert night.result.delta.touched == 0
    assert product.publish({"path": CASES / "S04/cp1252_no_cpg.shp", "encoding": "cp1252"}).status == "unchanged"
    names = [row["name"] for row in product.rows().values()]
    assert not [name for name in names if any(char in "\ufffd?" or "\x80" <= char <= "\x9f" for char in name)]


def test_s04_the_code_page_is_a_lie(estate):
    product = s04(estate)
    night = product.publish(CASES / "S04/utf8_lying_cpg.shp")
    assert "1252" in night.said
    assert "valid UTF-8" in night.said
    if night.status == "published":
        assert any(rule == "encoding" for _, rule in night.rules())


def test_s04_bytes_that_are_no_text(estate):
    product = s04(estate)
    before = product.rows()
    night = product.publish(CASES / "S04/bad_bytes.shp")
    assert (night.status, night.result.refused_by, night.rules("error")) == ("refused", "contract", {("name", "encoding")})
    assert "name: record 2: byte 0x81 0x8D not valid in UTF-8" in night.said
    assert night.doc["findings"][0]["features"] == [{"id": None, "row": 2, "x": None, "y": None}]
    assert (product.version, product.rows()) == (1, before)
    assert product.records()[-1]["status"] == "refused"


# --- S06 -------------------------------------------------------------------------------------------------------------------------------


NESTED = [KEY, field("tags", "list<string>"), field("attr", "struct<k: integer, u: string>")]


@pytest.mark.parametrize("prev", ["geojson", "parquet"])
@pytest.mark.parametrize("curr", ["geojson", "parquet"])
def test_s06_lists_and_nested_values(estate, prev, curr):
    product = estate(NESTED, **POINT).as_cases_run()
    product.publish(CASES / f"S06/prev.{prev}")
    only(product.publish(CASES / f"S06/curr.{curr}"), ["b", "c"], 3)
    schema = product.table().schema
    assert pa.types.is_list(schema.field("tags").type)
    assert schema.field("attr").type == pa.struct([("k", pa.int64()), ("u", pa.string())])
    assert product.rows()["c"]["tags"] == []


@pytest.mark.parametrize("curr", ["curr.geojson", "curr.parquet"])
def test_s06_undeclared(estate, curr):
    product = estate([KEY], **POINT)
    night = product.publish(CASES / f"S06/{curr}")
    refused(night, product)
    assert "tags not in the contract" in night.said
    assert "attr not in the contract" in night.said


# --- S07 -------------------------------------------------------------------------------------------------------------------------------


def s07(estate, folder):
    """The published version holds one text of a million characters; it is made here because it is large."""
    product = estate([KEY, field("remark")], **POINT).as_cases_run()
    texts = {"a": "long " * 200_000, "b": "\u00f8" * 300, "c": "short"}
    product.publish(
        save(
            [{"pid": key, "remark": text, "geometry": Point(10 + n / 100, 56)} for n, (key, text) in enumerate(texts.items())],
            folder / "prev.gpkg",
        )
    )
    return product


def test_s07_a_million_characters(estate, tmp_path):
    product = s07(estate, tmp_path)
    assert product.publish(CASES / "S07/same.parquet").status == "unchanged"


def test_s07_texts_cut_at_254(estate, tmp_path):
    product = s07(estate, tmp_path)
    night = product.publish(CASES / "S07/cut.shp")
    assert "remark: 2 values fill the DBF width of 254 bytes exactly, they may be cut" in night.said
    if night.status == "published":
        only(night, ["a", "b"], 3)
    else:
        refused(night, product, 1)


# --- S10 -------------------------------------------------------------------------------------------------------------------------------


def test_s10_names_that_collide_with_machinery(estate):
    columns = [name for name in pq.read_schema(CASES / "S10/prev.parquet").names if name != "shape"]
    fields = [KEY if name == "pid" else field(name) for name in columns]
    product = estate(fields, geometry_type="point", geometry={"name": "shape"}).as_cases_run()
    product.publish(CASES / "S10/prev.parquet")
    night = product.publish(CASES / "S10/curr.parquet")
    only(night, ["b"], 3)
    assert night.log["b"]["fields"] == ["select"]
    assert "most in select" in night.said
    given = pq.ParquetFile(CASES / "S10/curr.parquet").read()
    rows = {row["pid"]: row for row in given.to_pylist()}
    mine = product.rows()
    for key, row in rows.items():
        assert {name: mine[key][name] for name in columns} == {name: row[name] for name in columns}
    assert product.table().schema.names[: len(columns)] == columns


@pytest.mark.parametrize(
    "names",
    [
        ["__key"],
        ["__row"],
        ["__partition"],
        ["__partition__"],
        ["__delivered"],
        ["key", "digest", "class", "geometry_bbox"],
        ["bbox", "geometry", "geom"],
        ["PID", "Pid"],
        ["data", "_changes", "filename", "file_row_number"],
    ],
)
@pytest.mark.parametrize("by", ["none", "column", "kdtree"])
def test_s10_names_of_our_own_machinery(estate, tmp_path, names, by):
    fields = [KEY, *(field(name) for name in names)]
    product = estate(fields, **POINT).as_cases_run()
    shape = "shape" if "geom" in names else "geom" if "geometry" in names else "geometry"
    if by == "column":
        product.by_column(names[0])
    elif by == "kdtree":
        product.by_place(1)

    def night(number, **edit):
        columns = {"pid": pa.array(["a", "b"])} | {name: pa.array([f"{name} a", edit.get(name, f"{name} b")]) for name in names}
        return geoparquet(tmp_path / f"{number}.parquet", {**columns, shape: [Point(0, 0), Point(1, 1)]}, geometry=shape)

    assert product.publish(night(1)).status == "published"
    only(product.publish(night(2, **{names[0]: "new"})), ["b"], 2)
    assert product.rows()["b"][names[0]] == "new"
    assert [product.rows()["a"][name] for name in names] == [f"{name} a" for name in names]
    assert product.publish(night(3, **{names[0]: "new"})).status == "unchanged"


# --- S11 (agreed: tests/line/test_incremental_schema.py) -------------------------------------------------------------------------------


def s11(estate):
    product = estate([KEY, field("name"), field("remark")], geometry_type="polygon").as_cases_run()
    product.publish(CASES / "S11/prev.gpkg")
    return product


def test_s11_a_column_too_many(estate):
    product = s11(estate)
    night = product.publish(CASES / "S11/extra.gpkg")
    refused(night, product, 1)
    assert "phone not in the contract" in night.said
    product.settings["extra_columns"] = "warn"
    night = product.publish(CASES / "S11/extra.gpkg")
    assert "phone not in the contract" in night.said
    assert "phone" not in product.table().schema.names


def test_s11_a_column_too_few(estate):
    product = s11(estate)
    before = product.rows()
    night = product.publish(CASES / "S11/missing.gpkg")
    refused(night, product, 1)
    assert "remark missing" in night.said
    assert product.rows() == before


def test_s11_all_faults_of_a_delivery_at_once(estate, tmp_path):
    product = estate(
        [KEY, field("name", nullable=False), field("kind", nullable=True), field("n", "integer")],
        geometry_type="polygon",
        semantics={"kind": {"enum": ["x", "y"]}},
    )
    rows = [{"pid": "a", "name": None, "kind": "z", "n": "one", "extra": 1, "geometry": Point(0, 0)}]
    night = product.publish(save(rows, tmp_path / "1.gpkg"))
    refused(night, product)
    assert {rule for _, rule in night.rules("error")} >= {"extra", "column_type", "null", "enum", "geometry_type"}, night.said


# --- Q02, Q04 --------------------------------------------------------------------------------------------------------------------------


def test_q02_two_geometry_columns(estate):
    fields = [KEY, field("entrance", "geometry", crs_epsg=4326, coordinate_precision=7)]
    product = estate(fields, epsg=25832, precision=3, geometry_type="polygon", geometry={"name": "outline"}).as_cases_run()
    product.publish(CASES / "Q02/prev.parquet")
    only(product.publish(CASES / "Q02/curr.parquet"), ["b"], 3)
    assert product.rows()["a"]["entrance"] is None
    meta = [json.loads(pq.read_schema(product.url / path).metadata[b"geo"]) for path in product.bytes_of()]
    for each in meta:
        assert each["primary_column"] == "outline"
        assert set(each["columns"]) == {"outline", "entrance"}
        assert each["columns"]["outline"]["crs"]["id"]["code"] == 25832
        assert each["columns"]["entrance"].get("crs", {"id": {"code": "CRS84"}})["id"]["code"] in (4326, "CRS84")
    delivered = {row["pid"]: row for row in pq.ParquetFile(CASES / "Q02/curr.parquet").read().to_pylist()}
    for key in ("b", "c"):
        assert from_wkb(product.rows()[key]["entrance"]).distance(from_wkb(delivered[key]["entrance"])) < 1e-7


def test_q04_edges_on_the_sphere(estate):
    product = estate([KEY], geometry_type="polygon")
    refused(product.publish(CASES / "Q04/spherical.parquet"), product)
    round_ = estate([KEY], geometry_type="polygon", geometry={"edges": "spherical"})
    assert round_.publish(CASES / "Q04/spherical.parquet").status == "published"
    for path in round_.bytes_of():
        meta = json.loads(pq.read_schema(round_.url / path).metadata[b"geo"])
        assert meta["columns"]["geometry"]["edges"] == "spherical"


def test_q04_planar_then_spherical_is_not_no_change(estate):
    product = estate([KEY], geometry_type="polygon").as_cases_run()
    product.publish(CASES / "Q04/planar.parquet")
    night = product.publish(CASES / "Q04/spherical.parquet")
    assert night.status != "unchanged"
    assert "edges planar to spherical" in night.said


def test_q04_no_sphere_under_a_projection(estate):
    product = estate([KEY], geometry_type="polygon", epsg=25832, precision=3)
    refused(product.publish(CASES / "Q04/spherical.parquet"), product)


# --- N05 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "later"),
    [
        ("semantics", {"use": {"null_means": "not known"}}),
        ("semantics", {"use": {"enum": ["house"]}}),
        ("schema_fields", [{**KEY}, field("use", pattern="[a-z]+")]),
        ("extent", [155_000, 462_000, 155_060, 464_000]),
    ],
    ids=["null_means", "enum", "pattern", "extent"],
)
def test_n05_a_new_promise_is_held_against_published_rows_at_both_doors(estate, clause, later):
    product = estate([KEY, field("use")], geometry_type="polygon", epsg=28992, precision=2).as_cases_run()
    source = CASES / "N05/p.gpkg"
    assert product.publish(source).status == "published"
    product.terms[clause] = later
    product.stamp("v1.1.0")
    product.write(source)
    publication = with_source(read_publication(str(product.folder / "product.yaml")), str(source))
    checked, _ = check(publication, CheckSettings(str(source), ""))
    night = product.publish(source)
    refused(night, product, 1)
    assert checked.status == "fail"
    assert [each.to_json() for each in checked.findings] == [each.to_json() for each in night.result.findings]
    if clause == "semantics":
        assert {sample.row for each in night.result.findings for sample in each.features} >= {4, 8}
