"""`publish` and `check`: what they answer, and that bad input ends with the right code, a next step, and nothing published."""

import json
import os
import shlex
import sqlite3

import geopandas as gpd
import pytest
from shapely import Point

from cli.products import rows
from estate import save
from merestone.line import publish as the_line


def test_two_nights(product, merestone):
    first = merestone("publish", product.file, "--json")
    assert first.code == 0
    assert (first.err, first.doc["status"], first.doc["version"], first.doc["delta"]["added"]) == ("", "published", 1, 40)
    second = merestone("publish", product.file, "--source", product.second)
    assert second.code == 0
    assert second.out.startswith("product v2 published: 1 added, 2 changed, 1 removed")
    assert f"merestone changes {product.file} --html v2.html" in second.out
    again = merestone("publish", product.file, "--source", product.second, "--json")
    assert (again.code, again.doc["status"], again.doc["version"]) == (0, "unchanged", 2)


def test_a_dry_run_writes_nothing(product, merestone):
    ended = merestone("publish", product.file, "--dry-run", "--json")
    assert (ended.code, ended.doc["status"], ended.doc["version"], ended.doc["run_id"]) == (0, "planned", None, None)
    assert not product.url.exists()


def suggested(said):
    """The command that a report ends with, as a shell would split it, without the program's name."""
    line = next(line for line in said.splitlines() if line.startswith(("  next ", "  confirm "))).strip().partition(" ")[2].strip()
    return shlex.split(line.partition(", which")[0])[1:]


def test_the_command_that_a_dry_run_suggests_does_what_was_planned(product, merestone, tmp_path):
    """With the very delivery, and from a folder with a blank in its name: one command leads to the next."""
    merestone("publish", product.file)
    second = save(rows(p3={"owner": "b"}), tmp_path / "second night.gpkg")
    planned = merestone("publish", product.file, "--source", second, "--run-id", "night-2", "--dry-run")
    assert suggested(planned.out) == ["publish", str(product.file), "--source", str(second), "--run-id", "night-2"]
    done = merestone(*suggested(planned.out), "--json").doc
    assert (done["status"], done["delta"]["changed"], done["run_id"]) == ("published", 1, "night-2")

    half = save(rows(20), tmp_path / "half.gpkg")
    planned = merestone("publish", product.file, "--source", half, "--dry-run")
    assert (planned.code, "gives the token" in planned.out) == (1, True)
    stopped = merestone(*suggested(planned.out))
    assert (stopped.code, suggested(stopped.out)[-2]) == (1, "--confirm")
    look = next(line for line in stopped.out.splitlines() if line.startswith("  look ")).strip().partition(" ")[2].strip()
    looked = merestone(*[str(tmp_path / word) if word == "change.html" else word for word in shlex.split(look)[1:]])
    assert (looked.code, "20 removed" in looked.out, (tmp_path / "change.html").is_file()) == (0, True, True)
    planned = merestone(*suggested(stopped.out), "--dry-run")
    assert (planned.code, suggested(planned.out)) == (0, suggested(stopped.out))
    done = merestone(*suggested(planned.out), "--json").doc
    assert (done["status"], done["delta"]["removed"]) == ("published", 20)


def test_a_run_id_is_taken_and_one_that_cannot_be_a_name_is_wrong_usage(product, merestone):
    assert merestone("publish", product.file, "--run-id", "night-1", "--json").doc["run_id"] == "night-1"
    ended = merestone("publish", product.file, "--run-id", "../1", "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (2, "run_id")


def test_a_guard_stops_and_its_token_confirms(product, merestone, tmp_path):
    merestone("publish", product.file)
    changed = save(rows(20), tmp_path / "half.gpkg")
    stopped = merestone("publish", product.file, "--source", changed, "--json")
    assert (stopped.code, stopped.doc["status"], stopped.doc["refused_by"], stopped.doc["version"]) == (1, "refused", "guard", 1)
    token = stopped.doc["confirm"]
    said = merestone("publish", product.file, "--source", changed)
    assert (said.code, said.out.partition("\n")[0]) == (1, "product STOPPED by a guard. v1 stays current; nothing published.")
    done = merestone("publish", product.file, "--source", changed, "--confirm", token, "--json")
    assert (done.code, done.doc["status"], done.doc["delta"]["removed"]) == (0, "published", 20)


def test_settings_without_effect_are_told_beside_the_object(product, merestone):
    product.settings["retention"] = {"versions": 30}
    product.write(product.first)
    ended = merestone("publish", product.file, "--json")
    assert ended.doc["status"] == "published"
    assert "note: retention is not yet in effect" in ended.err
    assert "note" in merestone("publish", product.file).out


def test_ctrl_c_before_the_commit_publishes_nothing_and_says_so(product, merestone, monkeypatch):
    merestone("publish", product.file)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(the_line, "write_version", interrupted)
    ended = merestone("publish", product.file, "--source", product.second)
    assert (ended.code, ended.err) == (130, "merestone: interrupted; v1 stays current; nothing published\n")
    assert product.version == 1


# --- bad input -------------------------------------------------------------------------------------------------------------------------


def null_key(folder):
    return save(rows(p3={"pid": None}), folder / "bad.gpkg")


def duplicate_key(folder):
    return save(rows(p3={"pid": "p4"}), folder / "bad.gpkg")


def without_key(folder):
    data = gpd.GeoDataFrame(rows(), geometry="geometry", crs=4326).drop(columns="pid")
    data.to_file(folder / "bad.gpkg")
    return folder / "bad.gpkg"


def without_crs(folder):
    # GeoPackage: srs_id 0 and -1 are "undefined"; written by hand, since writers fill one in.
    save(rows(), folder / "bad.gpkg")
    with sqlite3.connect(folder / "bad.gpkg") as database:
        database.execute("UPDATE gpkg_geometry_columns SET srs_id = 0")
        database.execute("UPDATE gpkg_contents SET srs_id = 0")
    database.close()
    return folder / "bad.gpkg"


def metres_as_degrees(folder):
    return save([{**each, "geometry": Point(121033.7 + each["rank"], 463212.1)} for each in rows()], folder / "bad.gpkg")


def missing(folder):
    return folder / "nowhere.gpkg"


def truncated(folder):
    path = folder / "bad.gpkg"
    path.write_bytes(save(rows(), folder / "good.gpkg").read_bytes()[:5000])
    return path


def no_data(folder):
    path = folder / "bad.gpkg"
    path.write_bytes(b"")
    return path


def wrong_layer(product):
    product.write({"path": str(product.first), "layer": "roads"})


def broken_yaml(product):
    product.file.write_text("name: [product\n")


def unknown_key(product):
    product.settings["partion"] = "none"
    product.write(product.first)


def not_yet(product):
    product.settings["mode"] = "append"
    product.write(product.first)


def no_contract(product):
    product.contract.unlink()


def broken_contract(product):
    product.terms["crs_epsg"] = "4326x"
    product.write(product.first)


def a_contract(product):
    product.file.write_bytes(product.contract.read_bytes())


def a_folder(product):
    product.file.unlink()
    product.file.mkdir()


def no_publication(product):
    product.file.unlink()


def key_not_in_contract(product):
    product.settings["key"] = "parcel_id"
    product.write(product.first)


def file_as_destination(product):
    (product.folder / "taken").write_text("")
    product.settings["destination"] = "taken/published"
    product.write(product.first)


DELIVERIES = [
    (null_key, 1, "schema.key_null"),
    (duplicate_key, 1, "schema.key_duplicate"),
    (without_key, 1, "schema.missing"),
    (without_crs, 1, "crs.crs_missing"),
    (metres_as_degrees, 1, "crs.units"),
    (missing, 3, "nowhere.gpkg"),
    (truncated, 3, "bad.gpkg"),
    (no_data, 3, "bad.gpkg"),
]
SETTINGS = [
    (wrong_layer, 3, "roads"),
    (broken_yaml, 2, "product.yaml"),
    (unknown_key, 2, "partion"),
    (not_yet, 2, "not in this version"),
    (no_contract, 2, "product.contract.yaml"),
    (broken_contract, 2, "crs_epsg"),
    (a_contract, 2, "is a contract"),
    (a_folder, 2, "product.yaml"),
    (no_publication, 2, "product.yaml"),
    (key_not_in_contract, 1, "parcel_id"),
    (file_as_destination, 4, "taken"),
]


def spoil(what, product, folder):
    """Make the delivery or the settings bad; the arguments of the command that meets it."""
    if what in [each[0] for each in DELIVERIES]:
        return [product.file, "--source", what(folder)]
    what(product)
    return [product.file]


@pytest.mark.parametrize(("what", "code", "named"), [*DELIVERIES, *SETTINGS], ids=lambda each: getattr(each, "__name__", None))
def test_bad_input_names_the_thing_and_the_next_step_and_publishes_nothing(what, code, named, product, merestone, tmp_path):
    arguments = spoil(what, product, tmp_path)
    ended = merestone("publish", *arguments)
    assert ended.code == code, ended.said
    assert named in ended.said
    assert "next: " in ended.said
    heard = merestone("publish", *arguments, "--json")
    assert heard.code == code
    if code == 1:
        assert (heard.doc["status"], heard.doc["refused_by"], heard.doc["version"]) == ("refused", "contract", None)
        assert all(each["remedy"] for each in heard.doc["findings"] if each["severity"] == "error")
    else:
        assert heard.doc["status"] == "error"
        assert heard.doc["error"]["hint"]
    assert product.version is None
    assert not list(product.url.glob("data/**/*.parquet"))


@pytest.mark.parametrize(("what", "code", "named"), [*DELIVERIES, SETTINGS[0]], ids=lambda each: getattr(each, "__name__", None))
def test_check_comes_to_the_same_end(what, code, named, product, merestone, tmp_path):
    ended = merestone("check", *spoil(what, product, tmp_path), "--json")
    assert ended.code == code, ended.said
    assert ended.doc["status"] == ("fail" if code == 1 else "error")
    assert named.rpartition(".")[2] in ended.out
    assert not product.url.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_destination_that_cannot_be_written_is_a_store_fault(product, merestone):
    product.url.mkdir()
    product.url.chmod(0o500)
    try:
        assert merestone("publish", product.file, "--json").code == 4
    finally:
        product.url.chmod(0o700)


# --- check -----------------------------------------------------------------------------------------------------------------------------


def test_check_passes_or_fails_a_delivery_against_a_contract_alone(product, merestone, tmp_path):
    product.terms["key"] = ["pid"]
    product.write(product.first)
    good = merestone("check", product.first, "--contract", product.contract)
    assert good.code == 0
    assert good.out.startswith(f"{product.first} passes {product.contract} (40 rows)")
    heard = merestone("check", product.first, "--contract", product.contract, "--layer", "first", "--json")
    assert (heard.code, heard.doc["status"], {each["severity"] for each in heard.doc["findings"]} <= {"warning"}) == (0, "pass", True)
    bad = merestone("check", null_key(tmp_path), "--contract", product.contract, "--json")
    assert (bad.code, bad.doc["status"], bad.doc["findings"][0]["rule"]) == (1, "fail", "key_null")
    assert merestone("check", product.first, "--contract", product.contract, "--layer", "roads").code == 3


def test_check_tolerates_the_share_of_rows_that_the_publication_tolerates(product, merestone, tmp_path):
    product.terms["schema_fields"][1]["nullable"] = False
    product.settings["rejects"] = {"max_fraction": 0.05}
    product.write(product.first)
    one = save(rows(p3={"owner": None}), tmp_path / "one.gpkg")
    ended = merestone("check", product.file, "--source", one, "--json")
    assert (ended.code, ended.doc["status"], ended.doc["findings"][0]["rule"]) == (0, "pass", "null")
    three = save(rows(p3={"owner": None}, p4={"owner": None}, p5={"owner": None}), tmp_path / "three.gpkg")
    assert merestone("check", product.file, "--source", three).code == 1


def test_check_says_how_it_is_called(product, merestone):
    assert "--contract FILE" in merestone("check", product.first).err
    assert merestone("check", product.first, "--contract", product.contract, "--source", product.first).code == 2
    assert merestone("check", product.file, "--layer", "x").code == 2
    ended = merestone("check", product.first, "--contract", product.contract, "--json")
    assert (ended.code, bool(ended.doc["not_judged"])) == (0, True), "this contract has no key: what needs one is not judged"


def test_init_drafts_what_publishes_once_the_extent_is_stated(product, merestone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = merestone("init", product.first, "--out", "drafts", "--owner", "steward@example.org", "--json")
    assert (ended.code, ended.doc["status"]) == (0, "done")
    assert ended.doc["unsettled"] == ["extent"]
    linted = merestone("contract", "lint", ended.doc["contract"])
    assert (linted.code, "axis_order is a guess: the positions fit both ways round: state the `extent`" in linted.out) == (0, True)
    checked = merestone("check", ended.doc["publication"])
    assert (checked.code, "without it a first publish stops" in checked.out) == (0, True)
    typed = merestone("publish", ended.doc["publication"], "--dry-run").out
    assert "if not meant: correct the delivery, or its contract" in typed
    look = next(line for line in typed.splitlines() if line.startswith("  look "))
    assert merestone(*look.split()[2:]).code == 0, "what is proposed works before anything is published"
    stopped = merestone("publish", ended.doc["publication"], "--json").doc
    assert (stopped["refused_by"], [each["rule"] for each in stopped["findings"] if each["severity"] == "error"]) == (
        "guard",
        ["axis_order"],
    )
    contract = tmp_path / ended.doc["contract"]
    contract.write_text(contract.read_text().replace("# extent:", "extent:", 1))  # degrees fit both ways round: as delivered
    assert merestone("publish", ended.doc["publication"], "--json").doc["features"] == 40
    again = merestone("init", product.first, "--out", "drafts")
    assert again.code == 2
    assert "nothing is overwritten" in again.err
    said = merestone("init", product.first, "--out", "more", "--key", "pid").out
    assert "next: state the `extent` in more/first.contract.yaml, then merestone publish more/first.yaml" in said
    assert json.loads(merestone("init", tmp_path / "nowhere.gpkg", "--json").out)["error"]["kind"] == "source"
