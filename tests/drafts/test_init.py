from __future__ import annotations

import re

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyogrio
import pytest
import shapely

from estate import geoparquet
from merestone.api.checking import check
from merestone.api.publishing import publish
from merestone.contract.files import examine
from merestone.drafts.init import draft, init
from merestone.drafts.named import after_folder, dataset_name
from merestone.errors import SourceError, StoreError, UsageError
from merestone.publication.reader import read_publication


def roads(count=600, shift=0, **columns):
    """Roads with a key, a GUID that each export makes anew, and 5 decimals."""
    at = np.round(10 + np.random.default_rng(3).random((count, 2)), 5)
    lines = shapely.linestrings(np.stack([at, np.round(at + np.array([0.001, 0.002]), 5)], axis=1))
    data = {
        "road_id": [f"R{n:04d}" for n in range(count)],
        "guid": [f"g{shift + n}" for n in range(count)],
        "width": [3.5] * count,
        "lanes": [2] * count,
        "surface": ["a", "b"] * (count // 2),
    }
    return gpd.GeoDataFrame(data | columns, geometry=lines, crs="EPSG:4326")


@pytest.fixture
def night(tmp_path):
    def write(name, frame, **more):
        path = tmp_path / name
        frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_file(path, **more)
        return str(path)

    return write


def read(result):
    contract, messages = examine(str(result.contract))
    assert contract is not None, messages
    return contract, messages


def test_the_drafts_lint_clean_but_for_marks_and_read_back(night, tmp_path):
    result = init(night("roads.gpkg", roads()), out=str(tmp_path / "out"), owner="steward@example.org")
    contract, messages = read(result)
    assert {each.level for each in messages} == {"confirm"}
    assert contract.key == ("road_id",)
    assert (contract.geometry_type, contract.coordinate_precision, contract.crs_epsg) == ("linestring", 5, 4326)
    assert [(each.name, str(each.type), each.nullable) for each in contract.schema_fields] == [
        ("road_id", "string", False),
        ("guid", "string", True),
        ("width", "number", True),
        ("lanes", "integer", True),
        ("surface", "string", True),
    ]
    assert contract.product_owner_id == "steward@example.org"
    publication = read_publication(str(result.publication))
    assert publication.source.path == str(tmp_path / "roads.gpkg")
    assert publication.key.columns == ("road_id",)
    assert result.paths == (tmp_path / "out" / "roads.contract.yaml", tmp_path / "out" / "roads.yaml")


def test_the_row_number_is_never_the_key_and_the_notes_say_why(night, tmp_path):
    notes = "\n".join(init(night("roads.gpkg", roads()), out=str(tmp_path / "out")).notes)
    assert "key: road_id, unique and never null in 600 rows" in notes
    assert "not the key: fid, fid is the row number (FID)" in notes


def test_features_that_were_rounded_are_told_beside_fine_ones(night, tmp_path):
    some = roads(1_000)
    some.loc[:979, "geometry"] = shapely.transform(some.geometry.to_numpy()[:980], lambda xy: np.round(xy, 3))
    result = init(night("rounded.parquet", some), out=str(tmp_path / "out"))
    assert read(result)[0].coordinate_precision == 5
    assert "precision: 98 % of the features have 4 decimals or fewer in all ordinates" in "\n".join(result.notes)
    sound = init(night("roads.gpkg", roads(1_000)), out=str(tmp_path / "sound"))
    assert not any(note.startswith("precision") for note in sound.notes)


def test_a_column_that_each_export_makes_anew_is_volatile(night, tmp_path):
    old = night("old.gpkg", roads())
    result = init(night("roads.gpkg", roads(shift=9000)), previous=old, out=str(tmp_path / "out"))
    contract, _ = read(result)
    assert [each.name for each in contract.schema_fields if each.volatile] == ["guid"]
    assert "volatile: guid, made anew in each export: differs for 600 of 600 features" in "\n".join(result.notes)


def test_a_key_that_is_dealt_out_anew_gives_way(night, tmp_path):
    frame = roads().rename(columns={"road_id": "zz"})
    old = night("old.gpkg", frame.assign(gid=range(1000, 1600)))
    new = night("roads.gpkg", frame.sample(frac=1, random_state=1).assign(gid=range(1000, 1600)))
    result = init(new, previous=old, out=str(tmp_path / "out"))
    assert "not the key: gid, it joins 600 rows, and 0 % of what can be compared agrees under it" in "\n".join(result.notes)
    assert read(result)[0].key == ("zz",)


@pytest.mark.parametrize(
    ("faulty", "rows", "allowed", "words"),
    [
        (1, 400, 0.005, "rejects.max_fraction is drafted as 0.005: up to that share of rows goes to quarantine"),
        (9, 400, 0.05, "rejects.max_fraction is drafted as 0.05: "),
        (228, 400, 0.05, "57 % of the rows would be rejected; rejects.max_fraction is drafted as 0.05 and not more"),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_what_is_broken_today_is_no_promise(night, tmp_path, faulty, rows, allowed, words, before):
    """The share that may be rejected is a round figure and small; a draft of two exports accepts the worse one."""
    bow_tie = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    areas = [bow_tie] * faulty + [shapely.box(0, 0, 1, 1 + at / 1000) for at in range(rows - faulty)]
    frame = gpd.GeoDataFrame({"id": [f"a{at * 7}" for at in range(rows)]}, geometry=areas, crs="EPSG:4326")
    whole = frame.assign(geometry=[shapely.box(0, 0, 1, 1)] * rows) if before else frame
    options = {"previous": night("old.geojson", frame)} if before else {}
    result = init(night("areas.geojson", whole), out=str(tmp_path / "out"), **options)
    said = "\n".join(result.notes)
    assert words in said
    assert f"{faulty} of {rows} rows{' of the older export' * before} would be rejected: validity: row 1 self-intersection at 1, 1" in said
    assert read_publication(str(result.publication)).rejects.max_fraction == allowed
    assert ("is the data wrong, or the contract?" in result.publication.read_text()) == (faulty == 228)


@pytest.mark.parametrize(
    ("path", "after"), [("2016.geojson", True), ("a/2016-05-01.gpkg", True), ("roads-2016.gpkg", False), ("roads.gpkg", False)]
)
def test_a_name_that_is_the_folder_s_is_told(path, after):
    assert after_folder(path) is after


def test_nulls_in_a_key_of_several_columns_are_no_rejects(night, tmp_path):
    """They refuse the delivery, whatever share of rejects is tolerated."""
    frame = roads().assign(part=[None if at == 3 else "a" for at in range(600)])
    result = init(night("roads.gpkg", frame), key=["road_id", "part"], out=str(tmp_path / "out"))
    assert read_publication(str(result.publication)).rejects.max_fraction == 0
    assert "1 row has a null in road_id and part: publish refuses the delivery and names the rows" in result.notes


def test_missing_geometry_is_allowed_where_it_is_missing(night, tmp_path):
    frame = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=[shapely.Point(1, 2), None], crs="EPSG:25832")
    contract, _ = read(init(night("p.gpkg", frame), out=str(tmp_path / "out")))
    assert contract.geometry.nullable
    assert not contract.geometry.empty
    assert contract.coordinate_precision == 3


def test_a_missing_crs_is_asserted_only_where_it_fits(night, tmp_path):
    frame = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=[shapely.Point(1, 2), shapely.Point(3, 4)])
    with pytest.warns(UserWarning, match="crs"):
        degrees = night("d.shp", frame)
    result = init(degrees, out=str(tmp_path / "out"))
    assert read_publication(str(result.publication)).source.crs == "EPSG:4326"
    assert "# confirm: the file states no CRS" in result.publication.read_text()
    with pytest.warns(UserWarning, match="crs"):
        metres = night("m.shp", frame.assign(geometry=frame.geometry.translate(500000, 6000000)))
    with pytest.raises(UsageError, match=r"states no CRS .* not degrees"):
        init(metres, out=str(tmp_path / "out"))


def test_a_missing_crs_can_be_asserted_and_a_stated_one_is_not_overruled(night, tmp_path):
    frame = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=[shapely.Point(155000, 463000), shapely.Point(155010, 463010)])
    with pytest.warns(UserWarning, match="crs"):
        metres = night("m.shp", frame)
    result = init(metres, crs="EPSG:28992", out=str(tmp_path / "out"))
    assert read(result)[0].crs_epsg == 28992
    assert read_publication(str(result.publication)).source.crs == "EPSG:28992"
    assert "CRS" not in result.publication.read_text(), "what a person says is no guess to be confirmed"
    stated = night("stated.gpkg", frame.set_crs("EPSG:28992"))
    assert read_publication(str(init(stated, crs="EPSG:28992", out=str(tmp_path / "same")).publication)).source.crs is None
    with pytest.raises(UsageError, match=r"the file itself says Amersfoort .* EPSG:25832 is asserted") as caught:
        init(stated, crs="EPSG:25832", out=str(tmp_path / "other"))
    assert "leave out crs" in caught.value.hint
    with pytest.raises(UsageError, match="is not a CRS that PROJ knows"):
        init(metres, crs="EPSG:no", out=str(tmp_path / "none"))


def test_a_file_with_several_layers_says_how_to_name_one(night, tmp_path):
    night("two.gpkg", roads(20), layer="north")
    source = night("two.gpkg", roads(20), layer="south")
    with pytest.raises(SourceError, match="has 2 layers: north, south") as caught:
        init(source, out=str(tmp_path / "out"))
    assert "layer" in caught.value.hint
    assert read(init(source, layer="south", out=str(tmp_path / "out")))[0].name == "south"


def test_without_a_key_every_candidate_says_why_not(night, tmp_path):
    frame = roads().assign(road_id=["R1"] * 600).rename(columns={"guid": "GlobalID"})
    old = night("old.geojson", frame)
    new = night("roads.geojson", frame.assign(GlobalID=[f"n{n}" for n in range(600)]).rename(columns={"road_id": "road_nr"}))
    with pytest.raises(UsageError, match="can be the key") as caught:
        init(new, previous=old, out=str(tmp_path / "out"), key=())
    assert "road_nr (600 rows share their value with another)" in caught.value.message
    assert "GlobalID (only 0 % of its values come back" in caught.value.message


def test_a_named_key_is_told_off_only_for_what_publish_refuses(night, tmp_path):
    frame = roads()
    old = night("old.gpkg", frame.drop(columns="road_id"))
    notes = "\n".join(init(night("roads.gpkg", frame), previous=old, key=("road_id",), out=str(tmp_path / "out")).notes)
    assert "road_id is not a clean key: the previous delivery has no such column" in notes
    assert "publish will refuse" not in notes


def test_a_doubtful_key_says_what_to_confirm_beside_it(night, tmp_path):
    frame = roads().rename(columns={"road_id": "GlobalID"}).drop(columns="guid")
    result = init(night("roads.gpkg", frame), out=str(tmp_path / "out"))
    assert read(result)[0].key == ("GlobalID",)
    (line,) = [each for each in result.contract.read_text().splitlines() if each.startswith("key:")]
    assert line == "key: GlobalID  # confirm: systems often make GlobalID anew in every export: compare with an older one"


def test_shares_are_written_as_everywhere(night, tmp_path):
    frame = roads().drop(columns="guid")
    old = night("old.gpkg", frame.assign(road_id=["gone", *frame.road_id[1:]]))
    result = init(night("roads.gpkg", frame), previous=old, out=str(tmp_path / "out"))
    assert "# confirm: it joins 599 of the 600 rows of the smaller export (99.9 %), and 100 % of" in result.contract.read_text()
    again = init(night("same.gpkg", frame), previous=old.replace("old", "roads"), out=str(tmp_path / "out"))
    assert "# confirm: it joins 600 of the 600 rows of the smaller export (100 %)" in again.contract.read_text()


def test_without_a_possible_key_the_nearest_columns_are_named(night, tmp_path):
    frame = gpd.GeoDataFrame({"id": ["a", "a", "b"]}, geometry=[shapely.Point(n, n) for n in range(3)], crs="EPSG:4326")
    with pytest.raises(UsageError, match=re.escape("can be the key: id (2 rows share their value with another)")) as caught:
        init(night("p.geojson", frame), out=str(tmp_path / "out"))
    assert "key=COLUMNS" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_key_can_be_named_and_must_be_there(night, tmp_path):
    source = night("roads.gpkg", roads())
    assert read(init(source, key=("surface", "road_id"), out=str(tmp_path / "one")))[0].key == ("surface", "road_id")
    assert "surface is not a clean key: 600 rows share" in "\n".join(init(source, key=("surface",), out=str(tmp_path / "two")).notes)
    with pytest.raises(UsageError, match="has no column nope"):
        init(source, key=("nope",), out=str(tmp_path / "three"))


def test_nothing_is_overwritten(night, tmp_path):
    source = night("roads.gpkg", roads())
    init(source, out=str(tmp_path / "out"))
    with pytest.raises(UsageError, match="is there already; nothing is overwritten"):
        init(source, out=str(tmp_path / "out"))


def test_a_folder_that_cannot_be_written_is_named(night, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        init(night("roads.gpkg", roads()), out=str(tmp_path / "file" / "out"))


def test_an_empty_file_is_told(night, tmp_path):
    with pytest.raises(UsageError, match="has no rows"):
        init(night("roads.gpkg", roads().iloc[:0]), out=str(tmp_path / "out"))


def test_five_thousand_columns_are_drafted_and_read_back(tmp_path):
    columns = {f"a_rather_long_column_name_{at}": pa.array([at, at + 1]) for at in range(4_999)}
    path = geoparquet(tmp_path / "wide.parquet", {"pid": ["a", "b"], **columns, "geometry": [shapely.Point(1, 1), shapely.Point(2, 2)]})
    drafted = draft(str(path), key=["pid"])
    assert drafted.text.count("- {") + drafted.text.count("- name:") >= 5_000


def test_columns_of_one_export_are_comments_and_both_exports_fit_the_draft(night, tmp_path):
    frame = roads().drop(columns="guid")
    old = night("old.geojson", frame.drop(columns="lanes").assign(surveyor="B.", since=5, width=2))
    new = night("roads.geojson", frame.assign(since="2026-07-07"))
    result = init(new, previous=old, out=str(tmp_path / "out"), owner="steward@example.org")
    assert [each.name for each in read(result)[0].schema_fields] == ["road_id", "width", "surface"]
    text = result.contract.read_text()
    assert "  # - {name: since, type: " in text
    assert "  # - {name: lanes, type: integer, nullable: true}" in text
    assert read_publication(str(result.publication)).extra_columns == "warn"
    for words in (
        "only in the newer export: lanes",
        "only in the older export: surveyor",
        "no type takes both",
        "has since and lanes as comments",
    ):
        assert words in "\n".join(result.notes)
    for each in (old, new):
        found = check(result.publication, source=each)
        assert found.status == "pass", found.findings


def test_an_older_export_without_rows_or_places_says_nothing(night, tmp_path):
    frame = roads().drop(columns="guid")
    new = night("roads.gpkg", frame)
    alone, _ = read(init(new, out=str(tmp_path / "alone")))
    for n, older in enumerate((frame.iloc[:0], frame.assign(geometry=None))):
        made = init(new, previous=night(f"old{n}.gpkg", older), out=str(tmp_path / str(n)))
        contract, _ = read(made)
        assert (contract.key, contract.geometry_type, contract.schema_fields) == (alone.key, "linestring", alone.schema_fields)
        assert ("the older export has no rows: nothing was compared" in made.notes) == (n == 0)


UUIDS = [f"{at * 7919:08x}-0000-4000-8000-{at:012x}" for at in range(600)]


@pytest.mark.parametrize("older", ["none", "without rows", "with other keys"])
def test_one_export_shows_no_volatile_column(night, tmp_path, older):
    """What looks like a counter, or like an id that systems make anew, is compared, and asked about."""
    frame = roads().rename(columns={"guid": "GlobalID"})
    frame = frame.assign(row=[str(at) for at in range(600)], n=range(1, 601), uid=UUIDS)
    before = None
    if older != "none":
        then = frame.iloc[:0] if older == "without rows" else frame.assign(road_id=[f"X{at}" for at in range(600)])
        before = night("older.geojson", then)
    result = init(night("roads.geojson", frame), previous=before, key=("road_id",), out=str(tmp_path / "out"))
    assert [each.name for each in read(result)[0].schema_fields if each.volatile] == []
    said, text = "\n".join(result.notes), result.contract.read_text()
    for words in ("row counts the rows of the file", "n counts the rows", "systems often make GlobalID anew", "uid holds UUIDs"):
        assert f"compared like any other: {words}" in said
        assert re.search(rf"# confirm: {words}.*`volatile: true` leaves it out", text)


def test_a_counter_that_stays_with_its_feature_is_content(night, tmp_path):
    frame = roads().drop(columns="guid").assign(n=range(600))
    kept = init(night("new.geojson", frame), previous=night("old.geojson", frame.iloc[:400]), out=str(tmp_path / "kept"))
    assert [each.name for each in read(kept)[0].schema_fields if each.volatile] == []
    again = frame.iloc[::-1].assign(n=range(600))
    made = init(night("again.geojson", again), previous=str(tmp_path / "old.geojson"), out=str(tmp_path / "made"))
    assert [each.name for each in read(made)[0].schema_fields if each.volatile] == ["n"]


@pytest.mark.parametrize(
    ("path", "layer", "name"),
    [
        ("exports/2026-07-07.geojson.gz", None, "exports"),
        ("parcels_2024-01-31.gpkg", None, "parcels"),
        ("parcels-20240131T0200Z.gpkg", None, "parcels"),
        ("20260707020000_roads.fgb", None, "roads"),
        ("31.01.2024 parcels.zip", None, "parcels"),
        ("roads_2026-Q3.gpkg", None, "roads"),
        ("roads_2026W27.gpkg", None, "roads"),
        ("brp_definitief_2023.gpkg", None, "brp_definitief"),
        ("all.gpkg", "wegen 2024-07", "wegen"),
        ("census2016_short.gpkg", None, "census2016_short"),
        ("grenzen_2056.gpkg", None, "grenzen_2056"),
        ("parcels-1.5.gpkg", None, "parcels-1_5"),
    ],
)
def test_a_dated_file_gives_a_name_without_its_date(path, layer, name):
    assert dataset_name(path, layer) == name


# --- what the drafted grid breaks --------------------------------------------------------------------------------------------------------


def parcels(gap, count=20, extra=()):
    """Parcels on no grid. A corner of the last one lies as far above the edge opposite as `gap`: rounded to a coarser grid it touches it."""
    at = np.array([-100, 10]) + np.random.default_rng(5).random((count, 2))
    shapes = list(shapely.box(*at.T, *(at + 0.0123456789).T))
    low = 52.00000012
    shapes[-1] = shapely.Polygon([(-100, low), (-96, low), (-96, 54), (-98, low + gap), (-100, 54)])
    assert shapely.is_valid(shapes).all()
    codes = [f"P{at:03d}" for at in range(count + len(extra))]
    return gpd.GeoDataFrame({"code": codes}, geometry=[*shapes, *extra], crs="EPSG:4326")


@pytest.mark.parametrize(("gap", "decimals"), [(2e-8, 8), (2e-9, 9), (2e-7, 7)])
def test_a_draft_takes_a_grid_that_its_own_rows_hold_on(night, tmp_path, gap, decimals):
    result = init(night("parcels.parquet", parcels(gap)), out=str(tmp_path / "out"), owner="steward@example.org")
    contract, _ = read(result)
    assert contract.coordinate_precision == decimals
    assert not re.search(r"^rejects", result.publication.read_text(), re.MULTILINE)
    said = [each for each in result.notes if each.startswith("coordinate_precision is drafted as")]
    assert bool(said) == (decimals > 7)
    assert all("on 7 decimals 1 of 20 rows would break" in each for each in said)
    published = publish(str(result.publication))
    assert (published.status, published.features, published.rejected) == ("published", 20, 0)


def test_rows_that_every_near_grid_breaks_are_told_and_no_rejects_are_drafted_for_them(night, tmp_path):
    bow_tie = shapely.Polygon([(11, 51), (12, 52), (12, 51), (11, 52)])
    alone, beside = parcels(2e-11), parcels(2e-11, extra=[bow_tie])
    for name, frame, rejects in (("alone", alone, None), ("beside", beside, 0.05)):
        result = init(night(f"{name}.parquet", frame), out=str(tmp_path / name), owner="steward@example.org")
        assert any("1 of them hold as delivered and break on the grid that is drafted, 7 decimals" in each for each in result.notes)
        text = result.publication.read_text()
        assert bool(re.search(r"^rejects", text, re.MULTILINE)) == (rejects is not None)
        assert rejects is None or f"max_fraction: {rejects}" in text


CURVES = {
    "curvepolygon": "CURVEPOLYGON (CIRCULARSTRING (0 0, 1 1, 2 0, 1 -1, 0 0))",
    "compoundcurve": "COMPOUNDCURVE (CIRCULARSTRING (0 0, 1 1, 2 0), (2 0, 5 5))",
    "within a collection": "GEOMETRYCOLLECTION (POINT (1 1), CIRCULARSTRING (0 0, 1 1, 2 0))",
}


@pytest.mark.parametrize("wkt", CURVES.values(), ids=list(CURVES))
def test_a_curve_is_a_row_that_would_be_rejected(wkt, tmp_path):
    """It is not a row that the drafted grid breaks: nobody can build it."""
    lines = [f'{n},"POINT ({n}.25 50.75)"' for n in range(30)] + [f'30,"{wkt}"']
    (tmp_path / "all.csv").write_text("pid,wkt\n" + "\n".join(lines))
    vrt = f"""<OGRVRTDataSource><OGRVRTLayer name="all"><SrcDataSource>{tmp_path}/all.csv</SrcDataSource><LayerSRS>EPSG:25832</LayerSRS>
        <GeometryField encoding="WKT" field="wkt"/><Field name="pid" type="Integer"/></OGRVRTLayer></OGRVRTDataSource>"""
    (tmp_path / "all.vrt").write_text(vrt)
    file = tmp_path / "curves.gpkg"
    meta, table = pyogrio.read_arrow(tmp_path / "all.vrt")
    pyogrio.write_arrow(
        table,
        file,
        driver="GPKG",
        layer="all",
        geometry_name=meta["geometry_name"] or "wkb_geometry",
        geometry_type="Unknown",
        crs="EPSG:25832",
    )
    drafted = init(str(file), out=str(tmp_path / "draft"), owner="a@b.example")
    assert any("1 of 31 rows would be rejected: geometry_type" in each for each in drafted.notes), drafted.notes
