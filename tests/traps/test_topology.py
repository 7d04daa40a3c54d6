"""Overlap and gap on real parcels, at 1 row in 10,000, in three reference systems, through `check` and through `publish`."""

from __future__ import annotations

import json

import pytest
import shapely

from merestone.cli.main import root
from traps.parcels import good

SYSTEMS = [4326, 28992, 2193]


@pytest.fixture
def run(capsys):
    """Runs a command line with --json: (exit code, the object printed)."""

    def merestone(*arguments):
        capsys.readouterr()
        code = root.main([*map(str, arguments), "--json"], prog_name="merestone", standalone_mode=False)
        return code, json.loads(capsys.readouterr().out)

    return merestone


def planar(epsg):
    """The clauses under which the parcels are good."""
    unit = 1 / 111_320 if epsg == 4326 else 1.0
    # Degrees of longitude are three quarters as long there, so that a strip of 0.9 m may measure less in degrees.
    return {"topology_rule_set": "planar", "topology_parameters": {"gap_width": (0.5 if epsg == 4326 else 0.9) * unit}}, unit


def with_trap(epsg, trap):
    """The parcels with one of them made larger or smaller by 0.3 m, and which one."""
    made, (_, unit) = good(epsg), planar(epsg)
    table = made.table.copy()
    shapes = table.geometry.to_numpy()
    tree = shapely.STRtree(shapes)
    row = next(row for row, shape in enumerate(shapes) if _surrounded(shape, shapes[tree.query(shape, predicate="touches")]))
    moved = shapes[row].buffer((0.3 if trap == "overlap" else -0.3) * unit, join_style="mitre")
    table.loc[row, "geometry"] = shapely.transform(moved, lambda xy: xy.round(made.contract["coordinate_precision"]))
    return table, table["parcel"][row]


def _surrounded(shape, beside):
    """Whether a parcel has neighbours on most sides, so that a change of it meets them."""
    return len(beside) > 2 and shapely.length(shapely.intersection(shape.exterior, shapely.union_all(beside))) > 0.7 * shape.length


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_good_parcels_have_no_finding(run, tmp_path, epsg):
    delivery, contract = good(epsg).write(tmp_path, **planar(epsg)[0])
    code, found = run("check", delivery, "--contract", contract)
    assert (code, found["status"], found["findings"]) == (0, "pass", [])


@pytest.mark.parametrize("epsg", SYSTEMS)
@pytest.mark.parametrize("trap", ["overlap", "gap"])
def test_one_parcel_in_ten_thousand_is_found(run, tmp_path, epsg, trap):
    table, parcel = with_trap(epsg, trap)
    delivery, contract = good(epsg).write(tmp_path, table, **planar(epsg)[0])
    code, said = run("check", delivery, "--contract", contract)
    assert (code, said["status"]) == (1, "fail")
    found = {each["rule"]: each for each in said["findings"]}
    assert (found[trap]["surface"], found[trap]["field"], found[trap]["severity"]) == ("geometry", "geometry", "error")
    assert any(parcel in (sample["id"], *sample["observed"].split()) for sample in found[trap]["features"])
    assert all(abs(sample["x"]) > 0 and abs(sample["y"]) > 0 and sample["row"] for sample in found[trap]["features"])
    assert set(found) <= {trap, "mismatched_edge", "gap"}


def test_a_night_that_breaks_the_coverage_is_refused_and_a_good_one_is_published(run, tmp_path):
    epsg = 28992
    first = good(epsg).table.iloc[:3000]
    delivery, contract = good(epsg).write(tmp_path, first, **planar(epsg)[0])
    publication = tmp_path / "parcels.yaml"
    publication.write_text(
        json.dumps({"contract": contract.name, "source": delivery.name, "destination": "out", "partition": {"target_rows": 500}})
    )
    code, said = run("publish", publication)
    assert (code, said["status"], said["version"]) == (0, "published", 1)

    broken = first.copy()
    broken.loc[7, "geometry"] = first.geometry[7].buffer(1, join_style="mitre")
    broken.to_parquet(delivery)
    code, said = run("publish", publication)
    assert (code, said["refused_by"], said["version"]) == (1, "contract", 1)
    overlap = next(each for each in said["findings"] if each["rule"] == "overlap")
    assert any(sample["row"] == 8 or first["parcel"][7] in sample["observed"] for sample in overlap["features"])
    assert run("publish", publication, "--dry-run")[0] == 1

    fewer = first.drop(index=[7, 20])
    fewer.loc[9, "kind"] = "TAX" if first["kind"][9] == "FEE" else "FEE"
    fewer.to_parquet(delivery, index=False)
    code, said = run("publish", publication)
    assert (code, said["status"], said["version"], said["delta"]["removed"]) == (0, "published", 2, 2)

    first.to_parquet(delivery)
    assert run("publish", publication)[1]["delta"]["added"] == 2


def test_a_rule_set_that_is_agreed_later_judges_all_that_is_published(run, tmp_path):
    table, _ = with_trap(28992, "overlap")
    delivery, contract = good(28992).write(tmp_path, table)
    publication = tmp_path / "parcels.yaml"
    publication.write_text(json.dumps({"contract": contract.name, "source": delivery.name, "destination": "out"}))
    assert run("publish", publication)[1]["version"] == 1
    good(28992).write(tmp_path, table, **planar(28992)[0], contract_version="v1.1.0-crs:EPSG:28992-res:1m")
    code, said = run("publish", publication)
    assert (code, said["refused_by"]) == (1, "contract")
    assert "overlap" in {each["rule"] for each in said["findings"]}
