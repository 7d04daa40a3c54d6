"""A contract without a key can be checked: what needs a key is not judged, and never passed; `publish` asks for one."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

import merestone
from estate import Estate, geoparquet
from merestone.cli.main import root
from merestone.errors import UsageError

FIELDS = [
    {"name": "pid", "type": "string"},
    {"name": "lot", "type": "string", "unique": True},
    {"name": "use", "type": "string", "nullable": False},
]
KEYS = {"schema.key_null", "schema.key_blank", "schema.key_type", "schema.key_duplicate"}


@pytest.fixture(scope="module")
def plots(tmp_path_factory):
    """A contract without a key, a sound delivery whose would-be keys are nothing of the sort, and one with a fault of every sort."""
    made = Estate(tmp_path_factory.mktemp("plots"), FIELDS, key=None, geometry_type="polygon", topology_rule_set="planar")
    del made.terms["extent"]
    shapes = [shapely.box(5 + n / 100, 52, 5.01 + n / 100, 52.01) for n in range(6)]
    columns = {"pid": pa.array(["a", "a", None, "", " ", "b"]), "lot": pa.array([f"L{n}" for n in range(6)]), "use": pa.array(["home"] * 6)}
    made.good = geoparquet(made.folder / "good.parquet", {**columns, "geometry": shapes})
    columns |= {"lot": pa.array(["L1", "L1", "L2", "L3", "L4", "L5"]), "use": pa.array(["home", None] * 3)}
    bow = shapely.Polygon([(6, 52), (7, 53), (7, 52), (6, 53)])
    made.bad = geoparquet(made.folder / "bad.parquet", {**columns, "geometry": [*shapes[:4], shapes[0], bow]})
    made.write(made.good)
    made.contract = made.folder / "product.contract.yaml"
    return made


def test_a_sound_delivery_passes_and_says_what_was_not_judged(plots, capsys):
    result = merestone.check(plots.good, contract=plots.contract)
    assert (result.status, {each.rule for each in result.findings if each.severity == "error"}) == ("pass", set())
    assert {name for each in result.not_judged for name in each.rules} == KEYS
    assert root.main(["check", str(plots.good), "--contract", str(plots.contract)], prog_name="merestone", standalone_mode=False) == 0
    said = capsys.readouterr().out
    assert "not judged" in said
    assert "schema.key_duplicate" in said
    assert "key: COLUMN" in said


def test_everything_else_is_judged_and_rows_are_named_by_number(plots):
    result = merestone.check(plots.bad, contract=plots.contract)
    assert result.status == "fail"
    found = {each.rule: each for each in result.findings if each.severity == "error"}
    assert found.keys() == {"null", "validity", "unique", "overlap"}
    samples = [sample for each in found.values() for sample in each.features]
    assert {sample.id for sample in samples} == {None}
    assert [sample.row for sample in found["null"].features] == [2, 4, 6]
    assert "rows 2, 4 and 6 of the file" in found["null"].observed
    assert "row 1" in found["overlap"].observed


def test_reports_of_builds_skip_what_was_not_judged_and_maps_are_drawn(plots, tmp_path):
    reports = {name: tmp_path / name for name in ("junit", "sarif", "html")}
    merestone.check(plots.bad, contract=plots.contract, errors=tmp_path / "places.geojson", **reports)
    junit = reports["junit"].read_text()
    assert junit.count("<skipped") == len(KEYS)
    notes = json.loads(reports["sarif"].read_text())["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert any("schema.key_duplicate" in each["message"]["text"] for each in notes)
    places = json.loads((tmp_path / "places.geojson").read_text())["features"]
    assert {each["properties"]["rule"] for each in places} >= {"geometry.validity", "geometry.overlap"} or len(places) > 3


def test_diagnose_calls_only_ok_what_was_judged(plots):
    step = next(each for each in merestone.diagnose(plots.good, contract=plots.contract).steps if each.name == "schema")
    assert (step.state, "keys are not judged" in step.words) == ("ok", True)


def test_publish_asks_for_a_key(plots):
    with pytest.raises(UsageError) as told:
        merestone.publish(plots.folder / "product.yaml", source=plots.good)
    assert "no key" in told.value.message
    assert "key: COLUMN" in told.value.hint


@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_any_number_of_rows_goes_through(plots, rows):
    at = np.arange(rows)
    columns = {"pid": pa.array(at.astype(str)), "lot": pa.array(at.astype(str)), "use": pa.array(["home"] * rows)}
    path = geoparquet(
        plots.folder / f"{rows}.parquet", {**columns, "geometry": [shapely.box(n % 50, n // 50, n % 50 + 1, n // 50 + 1) for n in at]}
    )
    assert merestone.check(path, contract=plots.contract).rows == rows
