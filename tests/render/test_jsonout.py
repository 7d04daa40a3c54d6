from __future__ import annotations

import json

import pytest

from merestone.errors import MissingError
from merestone.render import jsonout
from merestone.results.finding import Finding, Sample
from merestone.results.result import CheckResult, Counts, DiffResult, PublishResult

FINDING = Finding("crs", "geometry", "crs_missing", "error", "EPSG:4326", "none", 1, (Sample("a", 1, 2.0, 3.0, "x"),), "assert it")
FINDING_JSON = {
    "surface": "crs",
    "field": "geometry",
    "rule": "crs_missing",
    "severity": "error",
    "expected": "EPSG:4326",
    "observed": "none",
    "count": 1,
    "features": [{"id": "a", "row": 1, "x": 2.0, "y": 3.0, "observed": "x"}],
    "remedy": "assert it",
}


def test_publish_has_exactly_the_published_names():
    out = jsonout.publish(
        PublishResult(
            "p",
            "refused",
            4,
            10,
            11,
            "r1",
            Counts(1, 2, 3, 4, 5, 6, 7, 8),
            9,
            1,
            1,
            2,
            3,
            4,
            "guard",
            "7c1e-a90b",
            (FINDING,),
            file="p.yaml",
            seconds=3.0,
            rows_written=12,
            partitions_touched=5,
            partitions=6,
        )
    )
    assert out == {
        "status": "refused",
        "refused_by": "guard",
        "version": 4,
        "features": 10,
        "delivered": 11,
        "delta": {"added": 1, "changed": 2, "removed": 3, "moved": 4, "reversed": 5, "rekeyed": 6, "suppressed": 7, "reprocessed": 8},
        "unchanged": 9,
        "rejected": 1,
        "held": 1,
        "files_written": 2,
        "files_carried": 3,
        "bytes_written": 4,
        "rows_written": 12,
        "partitions_touched": 5,
        "partitions": 6,
        "run_id": "r1",
        "confirm": "7c1e-a90b",
        "findings": [FINDING_JSON],
    }


def test_diff_shows_keys_only_where_they_were_asked_for():
    assert "keys" not in jsonout.diff(DiffResult("a", "b", Counts(added=1), 0))
    out = jsonout.diff(DiffResult("a", "b", Counts(added=1), 0, {"added": ("x",)}))
    assert out["keys"] == {"added": ["x"]}
    assert out["delta"]["added"] == 1


def test_check_and_error():
    assert jsonout.check(CheckResult("d", "c", "fail", 3, (FINDING,))) == {"status": "fail", "findings": [FINDING_JSON], "axes": {}}
    assert jsonout.error(MissingError("no grid", field="x.tif", hint="install it")) == {
        "status": "error",
        "error": {"kind": "missing", "message": "no grid", "field": "x.tif", "hint": "install it"},
    }


def test_one_line_of_json_without_nan():
    assert json.loads(jsonout.dumps({"a": "é\n"})) == {"a": "é\n"}
    assert "\n" not in jsonout.dumps({"a": "é\n"})
    with pytest.raises(ValueError, match="Out of range float values"):
        jsonout.dumps({"a": float("nan")})
