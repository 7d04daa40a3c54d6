"""Datasets written in another domain: layout, grid, PROJ operation, rules, CRS of delivery. What the producer did not change is never "changed"."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from pyproj import CRS, Transformer
from shapely import LineString, Point, from_wkb

from estate import geoparquet
from merestone.dataset.index import load_table
from merestone.errors import MissingError, UsageError
from merestone.geometry import kernel
from merestone.identity import digest as digests
from merestone.identity.digest import LAYOUT, digest_batch, layout_of_contract
from merestone.line.preparing import prepare
from merestone.line.processing import process_batch
from merestone.storage.open import open_store

PID = {"name": "pid", "type": "string", "nullable": False}
NAME = {"name": "name", "type": "string"}
FLAG = {"name": "flag", "type": "string"}
EAST, NORTH = 500_000.0, 5_600_000.0


def other_layout(columns, geometry, grid, shape, rows):
    """A layout of another time: the digest of today's digest."""
    plain = kernel.digest(columns, geometry, grid, shape, rows)
    return pa.array([hashlib.blake2b(each, digest_size=16).digest() for each in plain.to_pylist()], pa.binary(16))


@pytest.fixture
def of_layout(monkeypatch):
    """Let Merestone write another layout: `of_layout(0)`, and today's again: `of_layout(LAYOUT)`."""
    monkeypatch.setitem(digests.KERNELS, 0, other_layout)
    return lambda version: monkeypatch.setattr(prepare, "LAYOUT", version)


@pytest.fixture
def product(estate):
    made = estate([PID, NAME, FLAG], epsg=25832, precision=3, geometry_type="linestring")
    made.settings["guard"] = {"max_changed_fraction": 0.0, "min_touched": 0}  # nothing here may look like a change unless it says so
    made.settings["rejects"] = {"max_fraction": 1}
    made.settings["crs"] = {"accept": ["EPSG:25831", "EPSG:25833"]}
    return made


def line(k, nudge=0.0):
    return LineString([(EAST + k + nudge, NORTH), (EAST + k, NORTH + 1.5), (EAST + k + 7, NORTH + k)])


def deliver(path, shapes, name=None, flag=None, epsg=25832, keys=None):
    size = len(shapes)
    return geoparquet(
        path,
        {
            "pid": pa.array(keys or list("abcdefgh"[:size])),
            "name": pa.array(name or ["x"] * size),
            "flag": pa.array(flag or ["ok"] * size, pa.string()),
            "geometry": list(shapes),
        },
        epsg=epsg,
    )


def stored_digests(product):
    """Key to the digest in the index, which must be that of the stored row in the domain that the manifest states."""
    manifest = product.manifest()
    table = load_table(open_store(str(product.url)), manifest.index)
    said = dict(zip(table.column("key").to_pylist(), table.column("digest").to_pylist(), strict=True))
    from merestone.contract.body import from_body  # noqa: PLC0415 - only here
    from merestone.identity.key import key_bytes  # noqa: PLC0415

    rows, contract = product.table().combine_chunks(), from_body(manifest.contract)
    from dataclasses import replace  # noqa: PLC0415

    layout = replace(layout_of_contract(contract, ["pid"]), version=manifest.domain["layout"])
    canonical, _ = key_bytes(rows, ["pid"])
    true = dict(zip(canonical.to_pylist(), digest_batch(rows, layout, contract.geometry_name).to_pylist(), strict=True))
    assert said == true
    return said


# --- layout ----------------------------------------------------------------------------------------------------------------------------


def test_another_layout_reprocesses_all_and_changes_nothing(product, tmp_path, of_layout):
    of_layout(0)
    first = deliver(tmp_path / "1.parquet", [line(k) for k in range(4)])
    product.publish(first)
    assert product.manifest().domain["layout"] == 0
    stored_digests(product)
    assert product.publish(first).status == "unchanged"
    of_layout(LAYOUT)
    night = product.publish(first)
    assert (night.status, night.result.delta.touched, night.result.delta.reprocessed) == ("published", 0, 4), night.said
    assert product.manifest().domain["layout"] == LAYOUT
    stored_digests(product)
    assert product.publish(first).status == "unchanged"
    assert product.publish(first).result.delta.reprocessed == 0


def test_a_real_edit_is_seen_through_another_layout(product, tmp_path, of_layout):
    of_layout(0)
    product.publish(deliver(tmp_path / "1.parquet", [line(k) for k in range(5)]))
    of_layout(LAYOUT)
    product.agreed()
    shapes = [line(0), line(1, 0.001), line(2).reverse(), line(3), line(9)]
    night = product.publish(deliver(tmp_path / "2.parquet", shapes, name=["x", "x", "x", "y", "x"], keys=["a", "b", "c", "d", "new"]))
    assert (night.keys("changed"), night.keys("added"), night.keys("removed"), night.keys("reprocessed")) == (
        ["b", "c", "d"],
        ["new"],
        ["e"],
        ["a"],
    )
    assert (night.log["c"]["reversed"], night.log["d"]["fields"], round(night.log["b"]["geometry_change"], 6)) == (True, ["name"], 0.001)
    stored_digests(product)


def test_noise_and_rejects_keep_no_digest_of_another_layout(product, tmp_path, of_layout):
    of_layout(0)
    product.terms["schema_fields"][2]["nullable"] = False
    product.publish(deliver(tmp_path / "1.parquet", [line(k) for k in range(3)]))
    value = product.rows()["b"]["geometry"]
    of_layout(LAYOUT)
    night = product.publish(deliver(tmp_path / "2.parquet", [line(0), line(1, 0.0005004), line(2)], flag=["ok", "ok", None]))
    assert (night.keys("reprocessed"), night.keys("held")) == (["a", "b"], ["c"]), night.said
    assert night.result.delta.suppressed == night.result.delta.touched == 0
    assert product.rows()["b"]["geometry"] != value  # stored as delivered: its digest is of the new domain
    stored_digests(product)


def test_a_layout_that_is_not_known_is_no_reason_to_guess(product, tmp_path, of_layout, monkeypatch):
    of_layout(0)
    first = deliver(tmp_path / "1.parquet", [line(0)])
    product.publish(first)
    of_layout(LAYOUT)
    monkeypatch.delitem(digests.KERNELS, 0)
    with pytest.raises(MissingError, match="digests of layout 0"):
        product.publish(first)
    assert product.version == 1


# --- grid ------------------------------------------------------------------------------------------------------------------------------


def finer(product, precision):
    product.stamp("v1.1.0")
    product.terms["coordinate_precision"] = precision


def test_a_finer_grid_rounds_each_ordinate_once(product, tmp_path):
    """0.44496 is 0.445 on the finer grid and 0.44 on the old one; rounded twice it would be 0.45, and every such feature changed."""
    product.terms["coordinate_precision"] = 2
    draw = np.random.default_rng(5)
    exact = [Point(EAST + x, NORTH + y) for x, y in np.round(draw.uniform(0, 10, (400, 2)), 5)]
    product.terms["geometry_type"] = "point"
    keys = [f"k{n}" for n in range(400)]
    first = deliver(tmp_path / "1.parquet", exact, keys=keys)
    product.publish(first)
    finer(product, 3)
    night = product.publish(first)
    assert (night.result.delta.touched, night.result.delta.suppressed, night.result.delta.reprocessed) == (0, 0, 400), night.said
    assert {key: shape.coords[0] for key, shape in product.shapes().items()} == {
        key: tuple(round(each, 3) for each in shape.coords[0]) for key, shape in zip(keys, exact, strict=True)
    }
    stored_digests(product)
    assert product.publish(first).status == "unchanged"


def test_a_finer_grid_in_another_crs(product, tmp_path):
    product.terms |= {"coordinate_precision": 2, "geometry_type": "point"}
    to = Transformer.from_crs(25832, 25833, always_xy=True)
    draw = np.random.default_rng(6)
    far = [Point(*to.transform(EAST + x, NORTH + y)) for x, y in draw.uniform(0, 10, (300, 2))]
    keys = [f"k{n}" for n in range(300)]
    product.publish(deliver(tmp_path / "1.parquet", far, epsg=25833, keys=keys))
    finer(product, 4)
    night = product.publish(tmp_path / "1.parquet")
    assert (night.result.delta.touched, night.result.delta.reprocessed) == (0, 300), night.said
    stored_digests(product)


def test_an_edit_below_the_old_grid_is_none_and_one_above_it_is(product, tmp_path):
    product.agreed()
    product.terms["coordinate_precision"] = 2
    product.publish(deliver(tmp_path / "1.parquet", [line(k) for k in range(3)]))
    finer(product, 3)
    night = product.publish(deliver(tmp_path / "2.parquet", [line(0, 0.004), line(1, 0.02), line(2)]))
    assert (night.keys("changed"), night.keys("reprocessed")) == (["b"], ["a", "c"]), night.said
    assert from_wkb(product.rows()["a"]["geometry"]).coords[0][0] == EAST + 0.004


def test_held_rows_are_of_the_finer_grid_too(product, tmp_path):
    product.terms["coordinate_precision"] = 2
    product.terms["schema_fields"][2]["nullable"] = False
    product.publish(deliver(tmp_path / "1.parquet", [line(k) for k in range(2)]))
    finer(product, 3)
    night = product.publish(deliver(tmp_path / "2.parquet", [line(0), line(5)], flag=["ok", None]))
    assert night.classes == {"a": "reprocessed", "b": "held"}
    stored_digests(product)


def test_a_finer_second_geometry_is_no_change(estate, tmp_path):
    product = estate(
        [PID, {"name": "door", "type": "geometry", "crs_epsg": 25832, "coordinate_precision": 2}],
        epsg=25832,
        precision=3,
        geometry_type="point",
    )
    product.settings["guard"] = {"max_changed_fraction": 0.0, "min_touched": 0}
    draw = np.random.default_rng(7)
    keys = [f"k{n}" for n in range(200)]
    doors = [Point(EAST + x, NORTH + y) for x, y in np.round(draw.uniform(0, 10, (200, 2)), 5)]
    columns = {
        "pid": pa.array(keys),
        "door": pa.array([each.wkb for each in doors]),
        "geometry": [Point(EAST, NORTH + n) for n in range(200)],
    }
    crs = CRS.from_epsg(25832).to_json_dict()
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {name: {"encoding": "WKB", "geometry_types": [], "crs": crs} for name in ("geometry", "door")},
    }
    source = geoparquet(tmp_path / "1.parquet", columns, geo=geo)
    product.publish(source)
    product.stamp("v1.1.0")
    product.terms["schema_fields"][1]["coordinate_precision"] = 3
    night = product.publish(source)
    assert (night.status, night.result.delta.touched, night.result.delta.reprocessed) == ("published", 0, 200), night.said


@pytest.mark.parametrize("dimensions", ["xy", "xyz"])
def test_a_second_geometry_is_digested_as_it_is_stored(estate, tmp_path, dimensions):
    """Its Z lies on the grid of Z, or does not count at all: then another Z is nothing that a reader could see."""
    door = {"name": "door", "type": "geometry", "crs_epsg": 25832, "coordinate_precision": 3}
    product = estate([PID, door], epsg=25832, precision=3, geometry={"dimensions": dimensions, "z_precision": 1})
    crs = CRS.from_epsg(25832).to_json_dict()
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {name: {"encoding": "WKB", "geometry_types": [], "crs": crs} for name in ("geometry", "door")},
    }
    shape = Point(EAST, NORTH) if dimensions == "xy" else Point(EAST, NORTH, 1)
    for number, z in enumerate((7.123, 7.1)):
        columns = {"pid": pa.array(["a"]), "door": pa.array([Point(EAST, NORTH, z).wkb]), "geometry": [shape]}
        night = product.publish(geoparquet(tmp_path / f"{number}.parquet", columns, geo=geo))
    assert (night.status, night.result.unchanged) == ("unchanged", 1), night.said
    stored_digests(product)


@pytest.mark.parametrize("clause", [{"dimensions": "xyz"}, {"direction": "irrelevant"}, {"edges": "spherical"}])
def test_other_clauses_of_the_domain_are_another_major(product, tmp_path, clause):
    first = deliver(tmp_path / "1.parquet", [line(0)])
    product.publish(first)
    product.stamp("v1.1.0")
    product.terms["geometry"] = clause
    with pytest.raises(UsageError, match=next(iter(clause))):
        product.publish(first)


# --- what is delivered, and the rules --------------------------------------------------------------------------------------------------


def test_another_crs_of_delivery_is_no_change(product, tmp_path):
    shapes = [line(k) for k in range(6)]
    product.publish(deliver(tmp_path / "1.parquet", shapes))
    files = product.bytes_of()
    to = Transformer.from_crs(25832, 25833, always_xy=True)
    other = [LineString([to.transform(*at) for at in each.coords]) for each in shapes]
    night = product.publish(deliver(tmp_path / "2.parquet", other, epsg=25833))
    assert night.status != "refused", night.said
    assert night.result.delta.touched == night.result.delta.reprocessed == 0, night.said
    assert product.bytes_of() == files
    assert product.publish(tmp_path / "1.parquet").status == "unchanged"


def test_noise_of_another_crs_at_a_rounding_edge_is_suppressed(product, tmp_path):
    shapes = [line(k) for k in range(4)]
    product.publish(deliver(tmp_path / "1.parquet", shapes))
    to = Transformer.from_crs(25832, 25833, always_xy=True)
    other = [LineString([to.transform(x + 0.00050003, y) for x, y in each.coords]) for each in shapes]
    night = product.publish(deliver(tmp_path / "2.parquet", other, epsg=25833))
    assert (night.result.delta.touched, night.result.delta.suppressed) == (0, 4), night.said
    assert product.shapes() == dict(zip("abcd", shapes, strict=True))


def test_the_same_numbers_in_another_crs_are_another_place(product, tmp_path):
    product.agreed()
    product.terms |= {"coordinate_precision": 3}
    shapes = [line(k) for k in range(3)]
    product.publish(deliver(tmp_path / "1.parquet", shapes, epsg=25833))
    night = product.publish(deliver(tmp_path / "2.parquet", shapes, epsg=25831))
    assert night.result.delta.changed == 3, night.said
    assert night.result.delta.reprocessed == 0


def test_another_operation_reprocesses_what_the_producer_left_alone(product, tmp_path, monkeypatch):
    """The same bytes from another PROJ database, which puts every position a metre north."""
    to = Transformer.from_crs(25832, 25833, always_xy=True)
    shapes = [LineString([to.transform(*at) for at in line(k).coords]) for k in range(4)]
    product.publish(deliver(tmp_path / "1.parquet", shapes, epsg=25833))
    real = process_batch.apply_operation

    def shifted(wkb, operation):
        from shapely import to_wkb, transform  # noqa: PLC0415

        moved, failed = real(wkb, operation)
        return pa.array(list(to_wkb(transform(from_wkb(np.array(moved.to_pylist(), object)), lambda at: at + np.array([0, 1]))))), failed

    def renamed(operation):
        return {**told(operation), "name": "another operation"}

    told = prepare.Operation.to_json
    monkeypatch.setattr(process_batch, "apply_operation", shifted)
    monkeypatch.setattr(prepare.Operation, "to_json", renamed)
    product.agreed()
    shapes[3] = LineString([(x + 5, y) for x, y in shapes[3].coords])
    night = product.publish(deliver(tmp_path / "2.parquet", shapes, epsg=25833))
    assert (night.keys("reprocessed"), night.keys("changed")) == (["a", "b", "c"], ["d"]), night.said
    assert product.shapes()["a"].coords[0][1] == pytest.approx(NORTH + 1, abs=0.002)


def test_a_row_that_new_rules_reject_is_not_held_and_refuses_every_night(product, tmp_path):
    """Its old source digest was accepted under other rules: knowing it is no verdict, and its published row breaks the new rule too."""
    first = deliver(tmp_path / "1.parquet", [line(k) for k in range(3)], name=["x", "x", "bad"])
    product.publish(first)
    product.stamp("v1.1.0")
    product.terms["schema_fields"][1]["pattern"] = "x|y"
    for _ in range(2):
        night = product.publish(first)
        assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
        assert {rule for _, rule in night.rules("error")} == {"pattern", "held_row"}


def test_other_rules_that_all_rows_keep_change_nothing(product, tmp_path):
    first = deliver(tmp_path / "1.parquet", [line(k) for k in range(3)])
    product.publish(first)
    files = product.bytes_of()
    product.stamp("v1.1.0")
    product.terms["schema_fields"][1]["pattern"] = "x"
    night = product.publish(first)
    assert (night.status, night.result.unchanged, night.result.delta.reprocessed) == ("published", 3, 0), night.said
    assert product.bytes_of() == files
