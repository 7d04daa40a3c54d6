"""What a Python caller or a command line gives, and cannot be meant: an answer that says what there is, never a fault of ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from shapely import Point

import merestone
from estate import save
from merestone.api import lineage
from merestone.errors import UsageError

ROWS = [{"pid": f"p{at}", "owner": f"o{at % 3}", "geometry": Point(-100 + at / 100, 50)} for at in range(30)]


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """Deliveries with the same columns, with others, and with others in case only; a dataset of the first."""
    folder = tmp_path_factory.mktemp("given")
    save(ROWS, folder / "a.gpkg")
    save(ROWS, folder / "b.geojson")
    save([{"PID": each["pid"], "Owner": each["owner"], "geometry": each["geometry"]} for each in ROWS], folder / "upper.geojson")
    save([{"code": each["pid"], "name": each["owner"], "geometry": each["geometry"]} for each in ROWS], folder / "other.geojson")
    made = merestone.draft(folder / "a.gpkg", owner="steward@example.org", out=folder)
    assert merestone.publish(made.publication).status == "published"
    return folder


CALLS = {
    "columns of a read": (lambda at: merestone.read(at / "a.yaml", out=at / "x.gpkg", columns=["PID"]), "pid, owner, geometry"),
    "columns of a read to Parquet": (lambda at: merestone.read(at / "a.yaml", out=at / "x.parquet", columns=["PID"]), "pid, owner"),
    "columns of Arrow": (lambda at: merestone.open(at / "a.yaml").to_arrow(columns=["PID"]), "pid, owner, geometry"),
    "one text as columns": (lambda at: merestone.read(at / "a.yaml", out=at / "x.parquet", columns="pid"), "columns=['pid']"),
    "one text as columns of Arrow": (lambda at: merestone.open(at / "a.yaml").to_arrow(columns="pid"), "columns=['pid']"),
    "one text as a key": (lambda at: merestone.diff(at / "a.gpkg", at / "a.gpkg", key="pid"), "key=['pid']"),
    "one text as a key to draft": (lambda at: merestone.infer(at / "a.gpkg", key="pid"), "key=['pid']"),
    "one text to ignore": (lambda at: merestone.diff(at / "a.gpkg", at / "a.gpkg", ignore="owner"), "ignore=['owner']"),
    "a number as a column": (lambda at: merestone.open(at / "a.yaml").to_arrow(columns=[1]), "list of texts"),
    "columns that differ in case": (lambda at: merestone.diff(at / "b.geojson", at / "upper.geojson"), "key=COLUMNS"),
    "other columns": (lambda at: merestone.diff(at / "b.geojson", at / "other.geojson"), "key=COLUMNS"),
    "a key that is not there": (lambda at: merestone.diff(at / "a.gpkg", at / "a.gpkg", key=["PID"]), "pid, owner"),
    "a box as text": (lambda at: merestone.read(at / "a.yaml", out=at / "x.parquet", bbox="0,0,1,1"), "xmin, ymin, xmax, ymax"),
    "a box of words": (lambda at: merestone.open(at / "a.yaml").to_arrow(bbox=["a", 0, 1, 1]), "xmin, ymin, xmax, ymax"),
    "a box that is none": (lambda at: merestone.open(at / "a.yaml").to_arrow(bbox=7), "xmin, ymin, xmax, ymax"),
    "a time as text": (lambda at: merestone.check(at / "a.yaml", now="2026-01-01"), "tzinfo=UTC"),
    "a time without a zone": (lambda at: merestone.status(at / "a.yaml", now=datetime(2026, 1, 1)), "tzinfo=UTC"),  # noqa: DTZ001
    "no command": (lambda _: merestone.json_schema("nope"), "publish, check"),
    "one text as runs": (lambda at: lineage.check_complete(at / "published/a", run_ids="abc"), "run_ids=['abc']"),
    "one text as what is wrong": (lambda at: merestone.rollback(at / "a.yaml", to=1, reason="x", wrong="p1"), "wrong=['p1']"),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_cannot_be_meant_is_answered_with_what_there_is(there, what):
    call, hint = CALLS[what]
    with pytest.raises(UsageError) as refused:
        call(there)
    assert hint in refused.value.hint, refused.value.hint


def test_what_can_be_meant_is_taken(there):
    made = merestone.read(there / "a.yaml", out=there / "y.geojson", columns=["owner"], bbox=(-101, 49, -99, 51))
    assert (made.features, made.columns) == (30, ("owner", "geometry"))
    assert json.loads((there / "y.geojson").read_text())["features"][0]["properties"] == {"owner": "o0"}
    assert merestone.status(there / "a.yaml", now=datetime.now(UTC)).fresh
