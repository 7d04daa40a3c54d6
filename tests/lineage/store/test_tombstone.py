"""Tombstones and holds decide what may be forgotten: what is none of them is named, whatever it holds."""

import json
from contextlib import suppress

import pytest

from lineage.altered import JUNK, LEFT_OUT, altered, places
from merestone.errors import CorruptError
from merestone.lineage.retention.expiry import Prefix, read_holds
from merestone.lineage.store.tombstone import entries, expired_runs, read_tombstone

STEP = {
    "stage": "snap",
    "event_type": "SNAP",
    "source_crs": "EPSG:4326",
    "target_crs": "EPSG:4326",
    "strategy_index": None,
    "passed": 1,
    "warned": 0,
    "rejected": 0,
    "first": "2019-03-03T01:00:00.000000Z",
    "last": "2019-03-03T01:00:00.000000Z",
    "accuracy_m": [0.1, 0.2],
    "tools": {},
    "classes": {},
}
VERDICT = dict.fromkeys(("total_events", "passed", "features", "features_passed"), 1) | dict.fromkeys(
    ("rejected", "warned", "features_rejected", "features_warned"), 0
)
BASELINE = {"run_manifest": "_baseline/20260303T010000Z-ab/_runs/r1-1.json", "sha256": "1" * 64, "events": 1, "root": "2" * 64}
TOMBSTONE = {
    "format": 1,
    "expired_utc": "2026-03-03T01:00:00.000000Z",
    "window": "P6Y",
    "basis": "law",
    "by": "somebody",
    "tool": {},
    "previous": {"tombstone": "_tombstones/20250303T010000Z-ab.json", "sha256": "3" * 64},
    "prefixes": [
        {
            "run_date": "2019-03-03",
            "objects": 1,
            "bytes": 9,
            "runs": [
                {
                    "run_id": "r1",
                    "verdict": VERDICT,
                    "steps": [STEP],
                    "attempts": [
                        {"run_manifest": "_runs/r1-1.json", "sha256": "4" * 64, "events": 1, "root": "5" * 64, "baseline": BASELINE}
                    ],
                }
            ],
        }
    ],
}
HOLDS = [
    {
        "format": 1,
        "id": "h1",
        "kind": kind,
        "value": value,
        "reason": "a case",
        "placed_by": "somebody",
        "placed_utc": "2026-03-03T01:00:00Z",
    }
    for kind, value in (("date", "2019-03-03..2019-03-04"), ("feature", "a"), ("all", ""))
]


def test_a_tombstone_with_anything_in_it_is_read_or_named(store):
    name = "_lineage/_tombstones/20260303T010000Z-ab.json"
    store.create(name, json.dumps(TOMBSTONE).encode())
    assert list(expired_runs(store, "_lineage")) == ["_runs/r1-1.json"]
    named = 0
    for place in list(places(TOMBSTONE)):
        for value in [*JUNK, *([LEFT_OUT] if place and isinstance(place[-1], str) else [])]:
            store.delete(name)
            store.create(name, json.dumps(altered(TOMBSTONE, place, value)).encode())
            try:
                entries(name, read_tombstone(store, name))
            except CorruptError:
                named += 1
    assert named > 300


@pytest.mark.parametrize("hold", HOLDS, ids=lambda each: each["kind"])
def test_a_hold_with_anything_in_it_holds_or_is_named(store, hold):
    name = "_lineage/_holds/h1.json"
    for place in list(places(hold)):
        for value in [*JUNK, *([LEFT_OUT] if place else [])]:
            store.delete(name)
            store.create(name, json.dumps(altered(hold, place, value)).encode())
            with suppress(CorruptError):
                Prefix("2019-03-03", held_by=[each.id for each in read_holds(store) if each.covers("2019-03-03", [], store, "_lineage")])
    store.delete(name)
    store.create(name, json.dumps(hold).encode())
    assert read_holds(store)[0].covers("2019-03-03", [], store, "_lineage") == (hold["kind"] != "feature")
