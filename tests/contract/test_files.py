"""A contract file is read, or refused with everything that is wrong with it."""

from __future__ import annotations

import json

import pytest

from merestone.contract import files
from merestone.contract.contract import Contract
from merestone.contract.files import examine, read_contract
from merestone.document.yaml_reader import read_yaml
from merestone.errors import UsageError


def write(folder, tree) -> str:
    path = folder / "c.contract.yaml"
    path.write_text(json.dumps(tree), "utf-8")
    return str(path)


def refused(path: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_contract(path)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value


def test_a_sound_file_is_read(tmp_path, bare):
    contract = read_contract(write(tmp_path, bare))
    assert isinstance(contract, Contract)
    assert len(contract.digest) == 64


def test_a_file_is_parsed_once_and_anew_when_its_bytes_have_changed(tmp_path, bare, monkeypatch):
    parsed = []
    monkeypatch.setattr(files, "read_yaml", lambda data, path: parsed.append(path) or read_yaml(data, path))
    path = write(tmp_path, bare)
    assert read_contract(path) == read_contract(path)
    assert len(parsed) == 1
    write(tmp_path, bare | {"product_owner_id": "another@example.org"})
    assert read_contract(path).product_owner_id == "another@example.org"
    write(tmp_path, bare | {"axis_order": "lonlat"})
    for _ in range(2):
        assert refused(path).field == "axis_order"
    assert len(parsed) == 3


def test_a_missing_file_is_named(tmp_path):
    fault = refused(str(tmp_path / "none.yaml"))
    assert "none.yaml does not exist" in fault.message
    assert "merestone.draft(SOURCE) drafts a contract" in fault.hint


def test_a_folder_is_no_contract(tmp_path):
    assert "cannot be read" in refused(str(tmp_path)).message


def test_a_name_that_no_file_can_have_is_no_crash():
    assert "control character" in refused("a\0b").message


def test_a_stamp_needs_a_registry():
    assert "not in this version" in refused("v1.2.0-crs:EPSG:4326-res:10m").message
    assert "not in this version" in refused("registry/parcels@v1.2.0-crs:EPSG:4326-res:10m").message


def test_one_problem_is_told_in_one_line(tmp_path, bare):
    fault = refused(write(tmp_path, bare | {"axis_order": "lonlat"}))
    assert fault.field == "axis_order"
    assert fault.hint == "did you mean lon_lat?"
    assert "\n" not in fault.message


def test_all_problems_are_told(tmp_path, bare):
    del bare["product_id"]
    fault = refused(write(tmp_path, bare | {"axis_order": "lonlat", "keys": "a"}))
    assert "has 3 problems" in fault.message
    assert all(word in fault.message for word in ("product_id", "axis_order", "did you mean key?"))
    assert "check with merestone.lint(" in fault.hint


def test_many_problems_are_counted_not_poured_out(tmp_path, bare):
    bare["schema_fields"] = [{"name": f"f{n}", "type": "int"} for n in range(500)]
    fault = refused(write(tmp_path, bare))
    assert "and 480 more" in fault.message
    assert len(fault.message) < 5000


def test_a_lint_error_is_no_contract_to_publish_against(tmp_path, bare):
    path = write(tmp_path, bare | {"key": "nothing"})
    assert "nothing is not a field of schema_fields" in refused(path).message
    contract, messages = examine(path)
    assert contract is not None
    assert [each.level for each in messages] == ["error"]


def test_examine_tells_problems_as_errors(tmp_path, bare):
    contract, messages = examine(write(tmp_path, bare | {"axis_order": "lonlat"}))
    assert contract is None
    assert [(each.level, each.path) for each in messages] == [("error", "axis_order")]


def test_broken_yaml_names_file_and_line(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("a: [1\nb: 2\n")
    fault = refused(str(path))
    assert str(path) in fault.message
    assert "line 3" in fault.message or "line 2" in fault.message
