"""`geometry.dimensions` is a promise: a row without what is promised is refused, and `any` takes what each row has."""

from __future__ import annotations

import pyarrow as pa
import pytest
from shapely import Point, to_wkb

from estate import Estate, geoparquet

ROWS = {"flat": Point(5, 52), "high": Point(5.1, 52.1, 7), "none": None}


@pytest.fixture
def product(tmp_path):
    made = Estate(tmp_path, [{"name": "pid", "type": "string"}], geometry_type="point")

    def publish(dimensions, **settings):
        made.terms["geometry"] = {"dimensions": dimensions, "nullable": True}
        made.settings |= settings
        shapes = [None if each is None else to_wkb(each) for each in ROWS.values()]
        return made.publish(geoparquet(tmp_path / "d.parquet", {"pid": pa.array(list(ROWS)), "geometry": pa.array(shapes, pa.binary())}))

    made.night = publish
    return made


def test_a_row_without_the_promised_z_is_refused_with_its_row(product):
    night = product.night("xyz")
    assert night.status == "refused"
    found = next(each for each in night.result.findings if each.rule == "z_missing")
    assert (found.severity, found.per_row, [(each.id, each.row) for each in found.features]) == ("error", True, [("flat", 1)])
    assert "dimensions: any" in found.remedy


def test_a_share_of_such_rows_may_be_tolerated(product):
    night = product.night("xyz", rejects={"max_fraction": 0.5})
    assert (night.status, night.result.rejected) == ("published", 1)
    assert set(product.rows()) == {"high", "none"}


def test_any_keeps_what_each_row_has(product):
    night = product.night("any")
    assert (night.status, night.result.findings) == ("published", night.result.findings)
    assert ("geometry", "z_missing") not in night.rules()
    assert ("geometry", "z_dropped") not in night.rules()
    stored = product.shapes()
    assert {key: each is not None and each.has_z for key, each in stored.items()} == {"flat": False, "high": True, "none": False}
    assert product.night("any").status == "unchanged"


def test_more_than_promised_is_left_out_and_the_advice_promises_what_was_delivered(product):
    night = product.night("xy")
    found = next(each for each in night.result.findings if each.rule == "z_dropped")
    assert "dimensions: xyz}" in found.remedy


def test_the_advice_for_a_measure_does_not_promise_a_height(tmp_path):
    made = Estate(tmp_path, [{"name": "pid", "type": "string"}], geometry_type="point")
    measured = bytes.fromhex("01D1070000") + b"\0" * 24  # POINT M (0 0 0)
    night = made.publish(geoparquet(tmp_path / "d.parquet", {"pid": pa.array(["a"]), "geometry": pa.array([measured], pa.binary())}))
    found = next(each for each in night.result.findings if each.rule == "z_dropped")
    assert "dimensions: xym}" in found.remedy
