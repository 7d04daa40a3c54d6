"""Bad input over a dataset that stands: a message with the next step, the right code, no version lost or made, a record of the attempt.

`test_publish` asks the same of a first publish; here something is published already, and every byte of it must stay.
"""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from cli.products import FIELDS, rows
from estate import geoparquet, save
from merestone.errors import StoreError
from merestone.line import environment
from merestone.line import publish as the_line

ENDINGS = ("gpkg", "shp", "geojson", "geojsonl", "fgb", "gml", "parquet", "gdb", "topojson")


@pytest.fixture
def standing(product, merestone):
    """The product after its first night, which every test here must find again."""
    assert merestone("publish", product.file).code == 0
    return product


def kept(product):
    """All that a failed attempt must leave as it is: everything but evidence of attempts."""
    return {name: sum_ for name, sum_ in product.everything().items() if not name.startswith(("_runs/", "_lineage/", "_intents/"))}


def fails(product, merestone, arguments, code, named, *, record="failed"):
    """Call it for a person and for a machine: both end alike, nothing of what stands is touched, and each attempt has its record."""
    before, evidence, told = kept(product), product.everything(), len(product.records())
    said = merestone("publish", *arguments)
    assert said.code == code, said.said
    assert named in said.said
    assert "next: " in said.said or "--confirm" in said.said
    heard = merestone("publish", *arguments, "--json")
    assert heard.code == code, heard.said
    if code == 1:
        assert heard.doc["status"] == "refused"
        assert all(each["remedy"] for each in heard.doc["findings"] if each["severity"] == "error")
    else:
        assert heard.doc["status"] == "error"
        assert heard.doc["error"]["hint"]
        assert named in heard.doc["error"]["message"]
    assert kept(product) == before, "something else than evidence was written"
    assert {name: product.everything().get(name) for name in evidence} == evidence, "a file that stood there was touched"
    assert not list(product.url.glob("_intents/*"))
    new = [each["status"] for each in product.records()[told:]]
    assert new == ([record] * 2 if record else [])
    return heard.doc


# --- the delivery ----------------------------------------------------------------------------------------------------------------------


def missing(folder):
    return folder / "nowhere.gpkg"


def a_folder(folder):
    (folder / "bad.gpkg").mkdir()
    return folder / "bad.gpkg"


def several_layers(folder):
    path = save(rows(), folder / "bad.gpkg", layer="roads")
    return save(rows(), path, layer="paths", mode="a")


def without_key(folder):
    path = folder / "bad.gpkg"
    gpd.GeoDataFrame(rows(), geometry="geometry", crs=4326).drop(columns="pid").to_file(path)
    return path


def null_key(folder):
    return save(rows(p3={"pid": None}), folder / "bad.gpkg")


def duplicate_key(folder):
    return save(rows(p3={"pid": "p4"}), folder / "bad.gpkg")


def without_crs(folder):
    path = save(rows(), folder / "bad.shp")
    path.with_suffix(".prj").unlink()
    return path


def another_spheroid(folder):
    path = save(rows(), folder / "bad.shp")
    path.with_suffix(".prj").write_text(
        'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378388.0,297.0]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
    )
    return path


def another_epsg(folder):
    return save([{**each, "geometry": Point(121000 + each["rank"], 487000)} for each in rows()], folder / "bad.gpkg", epsg=28992)


def no_rows_of_the_contract(folder):
    path = folder / "bad.parquet"
    pq.write_table(pa.table({"pid": ["p1"]}), path)
    return path


def a_text(folder):
    path = folder / "bad.xyz"
    path.write_text("1 2 3\n")
    return path


def bytes_of_no_text(folder):
    path = save(rows(), folder / "bad.shp")
    table = bytearray(path.with_suffix(".dbf").read_bytes())
    start, length = int.from_bytes(table[8:10], "little"), int.from_bytes(table[10:12], "little")
    table[start + 4 * length + 1] = 0xFF
    path.with_suffix(".dbf").write_bytes(table)
    path.with_suffix(".cpg").write_text("UTF-8")
    return path


def a_number_that_is_none(folder):
    path = save([{**each, "rank": 7777} for each in rows()], folder / "bad.shp")
    table = path.with_suffix(".dbf").read_bytes()
    at = table.rindex(b"7777")
    path.with_suffix(".dbf").write_bytes(table[:at] + b"7-77" + table[at + 4 :])
    return path


@pytest.mark.parametrize(
    ("what", "code", "named", "record"),
    [
        (bytes_of_no_text, 1, "pid: record 5: byte 0xFF", "refused"),
        (a_number_that_is_none, 1, "rank: record 40: '7-77' is", "refused"),
        (missing, 3, "nowhere.gpkg", "failed"),
        (a_folder, 3, "bad.gpkg", "failed"),
        (several_layers, 3, "roads", "failed"),
        (without_key, 1, "pid", "refused"),
        (null_key, 1, "schema.key_null", "refused"),
        (duplicate_key, 1, "p4", "refused"),
        (without_crs, 1, "crs.crs_missing", "refused"),
        (another_spheroid, 1, "crs.crs_mismatch", "refused"),
        (a_text, 3, "bad.xyz", "failed"),
        (no_rows_of_the_contract, 1, "geometry", "refused"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_bad_delivery(what, code, named, record, standing, merestone, tmp_path):
    named = named.rpartition(".")[2] if code == 1 else named
    source = what(tmp_path)
    doc = fails(standing, merestone, [standing.file, "--source", source], code, named, record=record)
    assert code != 1 or doc["refused_by"] == "contract"
    checked = merestone("check", standing.file, "--source", source)
    assert (checked.code, named in checked.said) == (code, True)


def test_a_key_of_floats(estate, merestone, tmp_path):
    fields = [{"name": "pid", "type": "number", "nullable": False}]
    bad = estate(fields, geometry_type="point")
    bad.write(geoparquet(tmp_path / "floats.parquet", {"pid": pa.array([1.0, 2.0]), "geometry": [Point(5, 52), Point(6, 52)]}))
    fails(bad, merestone, [bad.folder / "product.yaml"], 1, "pid", record="refused")
    assert bad.version is None


def test_a_missing_grid_is_named_with_what_it_is_good_for(estate, merestone, tmp_path):
    wanting = estate(FIELDS, geometry_type="point", epsg=4258)
    wanting.settings["crs"] = {"accept": ["EPSG:27700"]}
    here = [{**each, "geometry": Point(-2 + each["rank"] / 1000, 52)} for each in rows()]
    wanting.write(save(here, tmp_path / "here.gpkg", epsg=4258))
    file = wanting.folder / "product.yaml"
    assert merestone("publish", file).code == 0
    british = save([{**each, "geometry": Point(400000 + each["rank"], 250000)} for each in rows()], tmp_path / "bng.gpkg", epsg=27700)
    doc = fails(wanting, merestone, [file, "--source", british], 8, "uk_os_OSTN15_NTv2_OSGBtoETRS.tif")
    assert " m" in doc["error"]["message"], "the accuracy is told"


def whole(ending, folder):
    path = folder / f"whole.{ending}"
    if ending == "topojson":
        shapes = [
            {
                "type": "Point",
                "coordinates": each["geometry"].coords[0],
                "properties": {name: value for name, value in each.items() if name != "geometry"},
            }
            for each in rows()
        ]
        path.write_text(
            json.dumps({"type": "Topology", "objects": {"whole": {"type": "GeometryCollection", "geometries": shapes}}, "arcs": []})
        )
        return path
    options = {"driver": "OpenFileGDB", "TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"} if ending == "gdb" else {}
    return save(rows(), path, **options)


def cut(path, share, folder):
    """A copy of a delivery whose file (of a geodatabase: whose layer's table) ends early."""
    bad = folder / f"bad{path.suffix}"
    if path.is_dir():
        shutil.copytree(path, bad)
        victims = [max(bad.glob("*.gdbtable"))]
    else:
        for each in path.parent.glob(f"{path.stem}.*"):
            shutil.copy(each, bad.with_suffix(each.suffix))
        victims = [bad.with_suffix(each) for each in ((".shp", ".dbf") if path.suffix == ".shp" else (path.suffix,))]
    for victim in victims:
        data = victim.read_bytes()
        victim.write_bytes(data[: int(len(data) * share)])
    return bad


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_cut_delivery_is_unreadable_and_never_a_smaller_one(ending, share, standing, merestone, tmp_path):
    bad = cut(whole(ending, tmp_path), share, tmp_path)
    fails(standing, merestone, [standing.file, "--source", bad], 3, bad.name)


@pytest.mark.parametrize("part", ["a00000001.gdbtable", "a00000009.gdbtablx"])
def test_a_geodatabase_of_which_one_table_is_cut(part, standing, merestone, tmp_path):
    path = whole("gdb", tmp_path)
    data = (path / part).read_bytes()
    (path / part).write_bytes(data[: len(data) // 2])
    fails(standing, merestone, [standing.file, "--source", path], 3, "whole.gdb")


@pytest.mark.parametrize("part", [".shp", ".dbf", ".shx"])
def test_a_shapefile_of_which_one_file_is_cut(part, standing, merestone, tmp_path):
    path = whole("shp", tmp_path)
    data = path.with_suffix(part).read_bytes()
    path.with_suffix(part).write_bytes(data[: len(data) * 7 // 10])
    fails(standing, merestone, [standing.file, "--source", path], 3, "whole")


# --- publication and contract ----------------------------------------------------------------------------------------------------------


def edits(product, **settings):
    product.settings |= settings
    product.write(product.first)


def terms(product, **clauses):
    product.terms |= clauses
    product.write(product.first)


def field_renamed(product):
    product.terms["schema_fields"][1]["name"] = "holder"
    product.write(product.first)


SETTINGS = [
    ("wrong layer", lambda p: p.write({"path": str(p.first), "layer": "roads"}), 3, "roads", "failed"),
    ("broken YAML", lambda p: p.file.write_text("name: [product\n"), 2, "product.yaml", None),
    ("two documents", lambda p: p.file.write_text(p.file.read_text() + "\n---\nname: x\n"), 2, "product.yaml", None),
    ("a key twice", lambda p: p.file.write_text("name: a\nname: b\n"), 2, "name", None),
    ("no text", lambda p: p.file.write_bytes(b"\xff\xfe\x00name"), 2, "product.yaml", None),
    ("empty", lambda p: p.file.write_text(""), 2, "product.yaml", None),
    ("unknown key", lambda p: edits(p, partion="none"), 2, "partion", "failed"),
    ("unknown key within", lambda p: edits(p, files={"target_row": 5}), 2, "files.target_row", "failed"),
    ("wrong type", lambda p: edits(p, guard={"max_changed_fraction": "a lot"}), 2, "guard.max_changed_fraction", "failed"),
    ("unknown clause", lambda p: terms(p, axis_ordre="lon_lat"), 2, "axis_ordre", "failed"),
    ("broken contract", lambda p: p.contract.write_text("crs_epsg: [\n"), 2, "product.contract.yaml", "failed"),
    ("missing contract", lambda p: p.contract.unlink(), 2, "product.contract.yaml", "failed"),
    ("same stamp, other body", field_renamed, 5, "same number", "failed"),
    ("another major", lambda p: p.stamp("v2.0.0") or p.write(p.first), 2, "MAJOR", "failed"),
    ("another key", lambda p: edits(p, key="owner"), 2, "owner", "failed"),
    ("another scheme", lambda p: edits(p, partition="none"), 2, "partition", "failed"),
    ("missing publication", lambda p: p.file.unlink(), 2, "product.yaml", None),
]


@pytest.mark.parametrize(("spoil", "code", "named", "record"), [each[1:] for each in SETTINGS], ids=[each[0] for each in SETTINGS])
def test_bad_settings(spoil, code, named, record, standing, merestone):
    spoil(standing)
    fails(standing, merestone, [standing.file], code, named, record=record)


# --- what is published ------------------------------------------------------------------------------------------------------------------


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def one_bit(path):
    """In the values of a Parquet file's first column; of other files, in the middle."""
    data = bytearray(path.read_bytes())
    at = len(data) // 2
    if path.suffix == ".parquet":
        column = pq.read_metadata(path).row_group(0).column(0)
        at = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 3
    data[at] ^= 1
    path.write_bytes(data)


def one_bit_of_the_footer(path):
    """Where no checksum of a page looks: in the text of who wrote the file, which no reader minds; of other files, in the middle."""
    data = bytearray(path.read_bytes())
    at = data.rindex(b"parquet-cpp") if path.suffix == ".parquet" else len(data) // 2
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [cut_in_half, one_bit, one_bit_of_the_footer, Path.unlink, lambda path: path.write_bytes(b"")],
    ids=["half", "bit", "footer", "gone", "empty"],
)
@pytest.mark.parametrize("what", ["_current.json", "manifest", "index"])
def test_a_damaged_state_is_corrupt_and_stays_as_it_is(what, damage, standing, merestone):
    name = {"_current.json": what, "manifest": "_manifests/v000001.json", "index": standing.manifest().changes.path}[what]
    damage(standing.url / name)
    fails(standing, merestone, [standing.file, "--source", standing.second], 6, Path(name).name)


@pytest.mark.parametrize("damage", [cut_in_half, Path.unlink, one_bit, one_bit_of_the_footer], ids=["half", "gone", "bit", "footer"])
def test_a_damaged_data_file_is_found_where_it_is_read_and_not_carried_on(damage, standing, merestone):
    touched = next(each for each in standing.files() if "p3" in set(pq.ParquetFile(standing.url / each.path).read()["pid"].to_pylist()))
    damage(standing.url / touched.path)
    fails(standing, merestone, [standing.file, "--source", standing.second], 6, touched.path)
    assert merestone("verify", standing.file).code == 6


# --- guards -----------------------------------------------------------------------------------------------------------------------------


def half(folder):
    return save(rows(20), folder / "half.gpkg")


def test_an_empty_delivery_over_a_filled_dataset_stops_and_can_be_meant(standing, merestone, tmp_path):
    empty = geoparquet(
        tmp_path / "empty.parquet",
        {
            "pid": pa.array([], pa.string()),
            "owner": pa.array([], pa.string()),
            "rank": pa.array([], pa.int64()),
            "area": pa.array([], pa.decimal128(8, 2)),
            "geometry": [],
        },
    )
    doc = fails(standing, merestone, [standing.file, "--source", empty], 1, "empty", record="refused")
    assert (doc["refused_by"], doc["findings"][0]["rule"]) == ("guard", "empty")
    done = merestone("publish", standing.file, "--source", empty, "--confirm", doc["confirm"], "--json")
    assert (done.code, done.doc["status"], done.doc["features"], done.doc["delta"]["removed"]) == (0, "published", 0, 40)
    assert merestone("publish", standing.file, "--source", empty, "--json").doc["status"] == "unchanged"


def test_a_token_holds_for_one_delivery_against_one_version(standing, merestone, tmp_path):
    half_, third = half(tmp_path), save(rows(19), tmp_path / "third.gpkg")
    doc = fails(standing, merestone, [standing.file, "--source", half_], 1, "changed", record="refused")
    token = doc["confirm"]
    for given in ("0000-0000", token[:-1], "", "x" * 300):
        fails(standing, merestone, [standing.file, "--source", half_, "--confirm", given], 1, "changed", record="refused")
    fails(standing, merestone, [standing.file, "--source", third, "--confirm", token], 1, "changed", record="refused")
    done = merestone("publish", standing.file, "--source", half_, "--confirm", token, "--json")
    assert (done.code, done.doc["version"], done.doc["delta"]["removed"]) == (0, 2, 20)
    (used,) = standing.records()[-1]["confirmations"]
    assert (used["token"], used["guards"], used["by"]) == (token, ["changed"], environment.who())
    assert merestone("publish", standing.file, "--source", standing.first, "--confirm", token).code == 1, "used: it is for another version"


def test_a_token_does_not_confirm_a_breach(standing, merestone, tmp_path):
    token = fails(standing, merestone, [standing.file, "--source", half(tmp_path)], 1, "changed", record="refused")["confirm"]
    fails(standing, merestone, [standing.file, "--source", null_key(tmp_path), "--confirm", token], 1, "key_null", record="refused")


def test_a_token_expires(standing, merestone, tmp_path, monkeypatch):
    arguments = [standing.file, "--source", half(tmp_path)]
    token = merestone("publish", *arguments, "--json").doc["confirm"]
    later = environment.now() + timedelta(days=7)
    monkeypatch.setattr(environment, "now", lambda: later)
    assert merestone("publish", *arguments, "--confirm", token).code == 1
    earlier = later - timedelta(minutes=10)
    monkeypatch.setattr(environment, "now", lambda: earlier)
    assert merestone("publish", *arguments, "--confirm", token).code == 0


# --- run ids ----------------------------------------------------------------------------------------------------------------------------


def test_a_run_id_belongs_to_one_delivery(standing, merestone):
    assert merestone("publish", standing.file, "--source", standing.second, "--run-id", "night-2").code == 0
    fails(standing, merestone, [standing.file, "--run-id", "night-2"], 2, "night-2")
    again = merestone("publish", standing.file, "--source", standing.second, "--run-id", "night-2", "--json")
    assert (again.code, again.doc["status"]) == (0, "unchanged")
    assert [(each["attempt"], each["status"]) for each in standing.records() if each["run_id"] == "night-2"] == [
        (1, "published"),
        (2, "unchanged"),
    ]


def test_a_run_id_belongs_to_its_delivery_also_when_the_attempt_failed_or_was_refused(standing, merestone, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise StoreError("the disk is full", hint="free space")

    with monkeypatch.context() as patch:
        patch.setattr(the_line, "write_version", broken)
        assert merestone("publish", standing.file, "--source", standing.second, "--run-id", "a").code == 4
    assert merestone("publish", standing.file, "--source", half(tmp_path), "--run-id", "b").code == 1
    fails(standing, merestone, [standing.file, "--source", half(tmp_path), "--run-id", "a"], 2, "run id a ")
    fails(standing, merestone, [standing.file, "--source", standing.second, "--run-id", "b"], 2, "run id b ")
    assert merestone("publish", standing.file, "--source", standing.second, "--run-id", "a").code == 0


def test_an_attempt_of_a_known_run_that_fails_before_a_row_is_read_is_on_record(standing, merestone, tmp_path):
    assert merestone("publish", standing.file, "--run-id", "night-1").code == 0
    fails(standing, merestone, [standing.file, "--source", missing(tmp_path), "--run-id", "night-1"], 3, "nowhere.gpkg")
    fails(standing, merestone, [standing.file, "--source", without_key(tmp_path), "--run-id", "night-1"], 1, "pid", record="refused")


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------------------------

STEPS = [
    f"{what}.{when}" for what in ("intent", "data", "changes", "lineage", "manifest", "pointer", "record") for when in ("before", "after")
]
PUBLISHED = STEPS.index("pointer.after")
ORPHANED = ("manifest.after", "pointer.before")  # a manifest stands there that nobody names: its number is not used again


def night_after(product, merestone, at):
    """The next run over what a run left that was stopped at a step: it ends at the second night, and each attempt has a true record."""
    done = STEPS.index(at) >= PUBLISHED
    again = merestone("publish", product.file, "--source", product.second, "--json")
    assert (again.code, again.doc["version"], again.doc["status"]) == (0, 3 if at in ORPHANED else 2, "unchanged" if done else "published")
    wanted = ["published", "unchanged"] if done else ["failed", "published"]
    assert sorted(each["status"] for each in product.records()[1:]) == wanted
    assert not list(product.url.glob("_intents/*"))
    assert merestone("verify", product.file).code == 0


def once(at, fault):
    """A step hook that raises a fault at one step, once."""
    faults = {at: fault}

    def step(name):
        if name in faults:
            raise faults.pop(name)

    return lambda: step


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_at_any_step_tells_which_version_is_current_and_leaves_a_true_record(at, as_json, standing, merestone, monkeypatch):
    before = kept(standing)
    with monkeypatch.context() as patch:
        patch.setattr(environment, "fault_step", once(at, KeyboardInterrupt()))
        ended = merestone("publish", standing.file, "--source", standing.second, *(["--json"] if as_json else []))
    done = STEPS.index(at) >= PUBLISHED
    said = "interrupted, but v2 became current before that" if done else "interrupted; v1 stays current; nothing published"
    assert (ended.code, ended.err) == (130, f"merestone: {said}\n")
    assert not as_json or (ended.doc["status"], ended.doc["error"]["kind"]) == ("error", "interrupted")
    assert standing.version == (2 if done else 1)
    assert {name: standing.everything().get(name) for name in before if not done or name != "_current.json"} == {
        name: sum_ for name, sum_ in before.items() if not done or name != "_current.json"
    }
    assert merestone("verify", standing.file).code == 0
    night_after(standing, merestone, at)
    assert done or [each["error"]["kind"] for each in standing.records() if each["status"] == "failed"] == ["interrupted"]


@pytest.mark.parametrize("at", [each for each in STEPS[1:] if each != "pointer.after"])  # where nothing is written
def test_a_disk_that_fills_up_at_any_step_is_told_for_what_it_is(at, standing, merestone, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(environment, "fault_step", once(at, StoreError("the disk is full", field="x", hint="free space")))
        ended = merestone("publish", standing.file, "--source", standing.second, "--json")
    if STEPS.index(at) < PUBLISHED:
        assert (ended.code, ended.doc["error"]["kind"], standing.version) == (4, "store", 1)
        assert ended.doc["error"]["message"] == "the disk is full"
    else:  # only the record is missing: the version is current, so the command has done what it was asked
        assert (ended.code, ended.doc["status"], ended.doc["version"], standing.version) == (0, "published", 2, 2)
        assert "v2 is current, but the record of its run is not complete: the disk is full; the next publish completes it" in ended.err
    night_after(standing, merestone, at)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_roll_back_whose_record_cannot_be_written_is_done_and_says_so(as_json, published, merestone, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(environment, "fault_step", once("record.before", StoreError("the disk is full", field="x", hint="free space")))
        ended = merestone("rollback", published.file, "--to", "1", "--reason", "wrong export", *(["--json"] if as_json else []))
    assert (ended.code, published.version) == (0, 3)
    assert "v3 is current, but the record of its run is not complete" in ended.err
    assert not as_json or ended.doc["status"] == "rolled_back"
    merestone("publish", published.file)
    assert next(each["status"] for each in published.records() if each["version"] == 3) == "rolled_back"


def test_rejected_rows_are_kept_even_where_the_record_of_their_run_is_not(standing, merestone, monkeypatch, tmp_path):
    standing.settings["rejects"] = {"max_fraction": 0.5}
    standing.terms["schema_fields"][1]["nullable"] = False
    standing.stamp("v1.1.0")
    standing.write(standing.first)
    with monkeypatch.context() as patch:
        patch.setattr(environment, "fault_step", once("record.before", StoreError("the disk is full", field="x", hint="free space")))
        ended = merestone("publish", standing.file, "--source", save(rows(p3={"owner": None}), tmp_path / "bad.gpkg"), "--json")
    assert (ended.code, ended.doc["status"], ended.doc["rejected"]) == (0, "published", 1)
    (file,) = standing.url.glob("_runs/*.rejects.parquet")
    assert pq.read_table(file).column("feature_id").to_pylist() == ["p3"]


# --- what cannot even begin -------------------------------------------------------------------------------------------------------------


def misspelt(product):
    product.file.write_text(product.file.read_text().replace('"source"', '"sorce"'))
    return "sorce"


def broken_contract(product):
    product.contract.write_text("contract_version: [")
    return "contract"


def no_contract(product):
    product.contract.unlink()
    return "product.contract.yaml"


def bad_stamp(product):
    product.contract.write_text(product.contract.read_text().replace("v1.0.0-crs", "v1-crs"))
    return "contract_version"


def torn_pointer(product):
    (product.url / "_current.json").write_text("{")
    return "_current.json"


def lost_manifest(product):
    (product.url / "_manifests" / "v000001.json").unlink()
    return "v000001.json"


@pytest.mark.parametrize(
    ("what", "code"),
    [(misspelt, 2), (broken_contract, 2), (no_contract, 2), (bad_stamp, 2), (torn_pointer, 6), (lost_manifest, 6)],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_an_attempt_that_cannot_begin_is_on_record(what, code, standing, merestone):
    named = what(standing)
    before = kept(standing)
    said = merestone("publish", standing.file)
    heard = merestone("publish", standing.file, "--json")
    assert (said.code, heard.code) == (code, code)
    assert named in said.err
    last = standing.records()[-2:]
    assert [(each["status"], each["error"]["kind"], each["version"]) for each in last] == [("failed", heard.doc["error"]["kind"], None)] * 2
    # The record names the next step as a call of the library, the command line as a command.
    assert {**last[1]["error"], "hint": None} == {**heard.doc["error"], "hint": None}
    assert bool(last[1]["error"]["hint"]) == bool(heard.doc["error"]["hint"])
    assert last[1]["name"] == "product"
    assert kept(standing) == before
    assert not list(standing.url.glob("_intents/*"))
    assert merestone("publish", standing.file, "--dry-run").code == code
    assert len(standing.records()) == 3


@pytest.mark.parametrize("what", [misspelt, broken_contract])
def test_a_mistake_makes_no_folder_where_nothing_was_ever_published(what, product, merestone):
    what(product)
    assert merestone("publish", product.file).code == 2
    assert not product.url.exists()
    product.url.mkdir()
    assert merestone("publish", product.file).code == 2
    assert not list(product.url.iterdir())


def test_a_publication_that_is_no_yaml_leads_nowhere(standing, merestone):
    standing.file.write_text("destination: [")
    before = standing.everything()
    assert merestone("publish", standing.file).code == 2
    assert standing.everything() == before


def test_a_record_that_cannot_be_written_does_not_hide_the_mistake(standing, merestone):
    misspelt(standing)
    shutil.rmtree(standing.url / "_intents", ignore_errors=True)
    (standing.url / "_intents").write_text("a file where a folder should be")
    ended = merestone("publish", standing.file)
    assert ended.code == 2
    assert "sorce" in ended.err


@pytest.mark.parametrize("at", [each for each in STEPS if not each.startswith(("data", "lineage"))])
def test_ctrl_c_at_any_step_of_a_roll_back(at, published, merestone, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(environment, "fault_step", once(at, KeyboardInterrupt()))
        ended = merestone("rollback", published.file, "--to", "1", "--reason", "wrong export")
    done = STEPS.index(at) >= PUBLISHED
    assert (ended.code, published.version) == (130, 3 if done else 2)
    assert ("v3 became current" if done else "v2 stays current") in ended.err
    again = merestone("rollback", published.file, "--to", "1", "--reason", "wrong export", "--json")
    assert (again.code, again.doc["version"]) == (0, 4 if done or at in ORPHANED else 3)
    assert "failed" not in [each["status"] for each in published.records()] or not done
    assert merestone("verify", published.file).code == 0
