"""Coordinates moved by the chosen operation, and what becomes of the rows."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

from contracts import contract
from merestone.contract.stamp import Stamp
from merestone.normalise.transform import apply_operation, no_transform_faults, operation_for, transform_steps
from merestone.publication.publication import CrsRule
from merestone.reference.grids import NoGrids
from merestone.reference.operation import Operation, Wanted, choose_operation
from merestone.results.finding import PASS, REJECT
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"


def agreed(epsg: int, **clauses):
    return contract(crs_epsg=epsg, contract_version=Stamp.parse(f"v1.0.0-crs:EPSG:{epsg}-res:1m"), **clauses)


def wkb(shapes):
    return pa.array([None if shape is None else shapely.to_wkb(shape) for shape in shapes], pa.binary())


def chosen(source: str, target: int, *, swap: bool = False) -> Operation:
    operation = choose_operation(source, target, CrsRule(), NoGrids(), Wanted(swap=swap))
    assert isinstance(operation, Operation)
    return operation


def test_the_pole_has_no_value_in_web_mercator_and_keeps_its_feature():
    source = open_source(SourceSpec(str(CASES / "G08/polar.geojson")))
    (batch,) = source.batches()
    column = source.delivery.geometry
    assert column is not None
    operation = operation_for(agreed(3857, coordinate_precision=2), column, CrsRule(), NoGrids())
    assert isinstance(operation, Operation)
    given = batch[column.name]
    moved, failed = apply_operation(given, operation)
    assert (len(moved), failed.tolist()) == (3, [True, True, False])
    (fault,) = no_transform_faults(operation, failed, given, "geometry")
    assert fault.rows.tolist() == [0, 1]
    assert set(fault.observed.to_pylist()) == {"EPSG:3857 has no value at latitude -90 or 90"}
    steps = transform_steps(operation, failed, 3)
    assert steps.verdict.tolist() == [REJECT, REJECT, PASS]
    assert (steps.stage, steps.event_type, steps.source_crs, steps.target_crs) == ("crs_normalize", "TRANSFORM", "EPSG:4326", "EPSG:3857")
    assert steps.strategy_index == 0
    assert no_transform_faults(operation, np.zeros(3, bool), given, "geometry") == []


def test_rows_without_vertices_and_numbers_that_are_none_stay():
    operation = chosen("EPSG:4326", 25833)
    broken = bytearray(shapely.to_wkb(shapely.Point(14.0, 52.0)))
    broken[5:13] = struct.pack("<d", np.nan)
    given = pa.array([None, shapely.to_wkb(shapely.Point()), bytes(broken), shapely.to_wkb(shapely.Point(15.0, 52.0, 7.5))], pa.binary())
    moved, failed = apply_operation(given, operation)
    assert failed.tolist() == [False] * 4
    assert moved[0].as_py() is None
    assert shapely.from_wkb(moved[1].as_py()).is_empty
    assert struct.unpack("<d", moved[2].as_py()[13:21])[0] == 52.0
    last = shapely.from_wkb(moved[3].as_py())
    assert (round(last.x, 3), last.z) == (500_000.0, 7.5)


def test_a_delivery_in_y_x_order_is_swapped_and_the_swap_recorded():
    same = chosen("EPSG:4326", 4326, swap=True)
    assert (same.is_identity, same.to_json()["swap"]) == (False, True)
    moved, _ = apply_operation(wkb([shapely.LineString([(52, 14), (53, 15)])]), same)
    assert shapely.from_wkb(moved[0].as_py()) == shapely.LineString([(14, 52), (15, 53)])
    other = chosen("EPSG:4326", 25833, swap=True)
    straight = chosen("EPSG:4326", 25833)
    one, _ = apply_operation(wkb([shapely.Point(52, 14)]), other)
    two, _ = apply_operation(wkb([shapely.Point(14, 52)]), straight)
    assert one == two


def test_threads_give_the_same_numbers():
    operation = chosen("EPSG:4326", 25833)
    given = wkb(shapely.points(np.linspace(12, 15, 2000), np.linspace(50, 54, 2000)))
    expected, _ = apply_operation(given, operation)
    with ThreadPoolExecutor(4) as pool:
        assert all(moved == expected for moved, _ in pool.map(lambda _: apply_operation(given, operation), range(12)))
