"""A mapping reads rejection logs exactly, or says what is wrong with it or with the line."""

import copy
from datetime import UTC, datetime

import pytest

from merestone.lineage.exchange.mapping import identity_text, read_mapping

TREE = {
    "mapping_version": 1,
    "plan": ["reproject", "validate"],
    "fields": {
        "run_id": {"field": "job.id"},
        "feature_id": {"field": "fid"},
        "event_time_utc": {"field": "ts", "unit": "ms"},
        "rejection_reason": {"field": "error", "default": "no reason was logged"},
        "stage": {"value": "validate"},
        "source_crs": {"value": "EPSG:25832"},
        "target_crs": {"field": "crs", "default": "EPSG:4326"},
        "audit_tag": {"field": "tag"},
    },
}
LINE = {"job": {"id": "j1"}, "fid": 7, "ts": 1_714_557_600_123, "error": "ring is open"}


def test_a_line_becomes_a_reject():
    event = read_mapping(TREE).event(LINE, 5)
    assert (event.run_id, event.feature_id, event.sequence, event.stage) == ("j1", "7", 5, "validate")
    assert (event.event_type, event.outcome, event.rejection_reason) == ("REJECT", "REJECT", "ring is open")
    assert event.event_time_utc == datetime(2024, 5, 1, 10, 0, 0, 123000, tzinfo=UTC)
    assert (event.target_crs, event.audit_tag) == ("EPSG:4326", None)
    assert read_mapping(TREE).plan == ("reproject", "validate")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fid": None}, "fid is missing; feature_id is read from it"),
        ({"fid": 1.5}, "feature_id is 1.5"),
        ({"fid": True}, "feature_id is True"),
        ({"job": "j1"}, "job.id is missing"),
        ({"ts": "2024"}, "whole number since 1970"),
        ({"ts": 1 << 60}, "beyond the year 9999"),
        ({"error": ["a"]}, "the reason is"),
        ({"error": "  "}, "REJECT without a rejection_reason"),
        ({"tag": 5}, "audit_tag is 5"),
    ],
)
def test_a_line_that_says_too_little_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        read_mapping(TREE).event({**LINE, **change}, 0)


def test_defaults_and_names_with_dots():
    line = {**LINE, "error": None, "job.id": "dotted"}
    event = read_mapping(TREE).event(line, 0)
    assert (event.run_id, event.rejection_reason) == ("dotted", "no reason was logged")


def test_control_characters_of_ids_are_written_out():
    assert identity_text("a\x1f\u0065\u0301") == "a\\u001f\u00e9"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("mapping_version",), 2, "mapping_version is 2"),
        (("mapping_version",), None, "mapping_version is None"),
        (("color",), 1, "color is not a clause"),
        (("plan",), "validate", "plan is not a list"),
        (("fields",), None, "fields is missing"),
        (("fields", "run_id"), None, r"fields\.run_id has to be"),
        (("fields", "shoe"), {"value": 1}, r"fields\.shoe: no field"),
        (("fields", "outcome"), {"value": "PASS"}, "no field that a mapping fills"),
        (("fields", "stage"), {"value": "a", "field": "b"}, "has to be"),
        (("fields", "stage"), {"value": "a", "x": 1}, r"fields\.stage\.x is unknown"),
        (("fields", "stage"), {"field": ""}, "is not a name"),
        (("fields", "stage"), {"field": "a", "unit": "ms"}, "unit"),
        (("fields", "event_type"), {"value": "KICK"}, "is none of"),
        (("fields", "event_time_utc"), {"field": "a", "unit": "h"}, "unit is 'h'"),
    ],
)
def test_a_broken_mapping_is_refused_with_its_path(place, value, message):
    tree = copy.deepcopy(TREE)
    inner = tree
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        read_mapping(tree)


@pytest.mark.parametrize("name", ["run_id", "feature_id", "event_time_utc", "rejection_reason", "stage", "source_crs", "target_crs"])
def test_required_fields_have_to_be_told(name):
    tree = copy.deepcopy(TREE)
    del tree["fields"][name]
    with pytest.raises(ValueError, match=rf"fields\.{name} is missing"):
        read_mapping(tree)
