"""The age of the data: times that have not come count for nothing, late data are better than older ones, and older ones are doubted."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
import shapely

from contracts import BASE, contract
from estate import Estate, geoparquet
from merestone.contract.contract import Field, FieldType
from merestone.gate.freshness import clock, early_faults, freshness, record
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

NOW = datetime(2026, 8, 1, 6, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def dated(kind="timestamp", zone=None, **clauses):
    seen = Field("edited", FieldType(kind), time_zone=zone)
    return contract(schema_fields=(*BASE.schema_fields, seen), freshness_from="edited", freshness_sla_minutes=1440, **clauses)


@pytest.mark.parametrize(("age", "late"), [(1440 * MINUTE, False), (1441 * MINUTE, True)])
def test_freshness_is_judged_from_the_newest_value(age, late):
    assert (freshness(dated(), NOW, newest=NOW - age) is not None) is late


def test_freshness_from_the_delivery_time_is_labelled():
    finding = freshness(contract(freshness_sla_minutes=10), NOW, newest=None, delivered_at=NOW - HOUR)
    assert finding.severity == "warning"
    assert "not measured on the data" in finding.observed


def test_a_field_that_should_hold_the_time_but_does_not_is_a_finding():
    assert freshness(dated(), NOW, newest=None).observed == "no row holds a time"
    assert freshness(dated(), NOW, newest=None, early=3).observed == "no row holds a time that has come"


# --- times that have not come yet ------------------------------------------------------------------------------------------------------


KINDS = {
    "timestamp": (pa.timestamp("us", "UTC"), None, NOW + 5 * MINUTE),
    "timestamp_local": (pa.timestamp("us"), "America/New_York", datetime(2026, 8, 1, 2, 5)),  # noqa: DTZ001 - local by type
    "local without a zone": (pa.timestamp("us"), None, datetime(2026, 8, 1, 20, 5)),  # noqa: DTZ001 - as far east as there is
    "date": (pa.date32(), None, date(2026, 8, 1)),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_time_has_come_until_the_last_moment_that_a_clock_can_show(name):
    kind, zone, latest = KINDS[name]
    step = DAY if name == "date" else timedelta(seconds=1)
    field = "timestamp_local" if name == "local without a zone" else name
    found = clock(dated(field, zone), NOW)
    values = pa.array([latest - step, latest, None, latest + step, latest + 30 * DAY], kind)
    assert found.early(values).tolist() == [3, 4]
    assert found.newest(values) == latest
    assert [each.observed.to_pylist()[0][:10] for each in early_faults(found, values)] == [str(latest + step)[:10]]


def test_tomorrow_has_begun_somewhere():
    assert clock(dated("date"), NOW.replace(hour=10, minute=30)).latest == date(2026, 8, 2)
    assert clock(dated("date"), NOW.replace(hour=9, minute=30)).latest == date(2026, 8, 1)
    assert clock(dated("date"), NOW.replace(hour=3).astimezone(timezone(-5 * HOUR))).latest == date(2026, 8, 1)


# --- against what is published ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "published", "same", "severity"),
    [
        (9 * DAY, None, False, "error"),  # a first version keeps its promise
        (9 * DAY, 10 * DAY, False, "warning"),  # late, and newer than what is published
        (9 * DAY, 9 * DAY, True, "warning"),
        (9 * DAY, 9 * DAY, False, "error"),  # a new promise that the data do not keep
        (9 * DAY, 8 * DAY, True, "warning"),  # older: a guard stops it
        (HOUR, MINUTE, True, "warning"),  # fresh, and older than what is published
        (HOUR, 2 * HOUR, True, None),
    ],
)
def test_late_data_are_held_to_what_is_published(age, published, same, severity):
    promise = dated()
    last = None if published is None else record(promise, NOW - published)
    finding = freshness(promise, NOW, newest=NOW - age, last=last, same_promise=same, version="v1")
    assert (finding and finding.severity) == severity
    assert finding is None or (("older than" in finding.observed) == (published is not None and age > published))


# --- through both doors ----------------------------------------------------------------------------------------------------------------

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "seen", "type": "timestamp"}]
TODAY = datetime.now(UTC).replace(microsecond=0)


def delivery(made, name, times):
    columns = {"pid": pa.array([f"p{n:03}" for n in range(len(times))]), "seen": pa.array(times, pa.timestamp("us", "UTC"))}
    return geoparquet(
        made.folder / f"{name}.parquet", {**columns, "geometry": [shapely.Point(5, 52 + n / 1000) for n in range(len(times))]}
    )


def both(made, path):
    """What `publish` says, after `check` was seen to say the same but for guards."""
    made.write(path)
    publication = with_source(read_publication(str(made.folder / "product.yaml")), str(path))
    checked, _ = check(publication, CheckSettings(str(path), ""))
    night = made.publish(path)
    said = {(each.rule, each.severity, each.count) for each in night.result.findings if each.surface == "service"}
    if night.result.refused_by != "guard":
        assert {(each.rule, each.severity, each.count) for each in checked.findings if each.surface == "service"} == said
        assert (checked.status == "fail") == (night.status == "refused")
    return night, said


def test_the_nights_of_a_product_whose_age_is_measured(tmp_path):
    made = Estate(tmp_path, FIELDS, geometry_type="point", freshness_from="seen").as_cases_run()
    hours = [TODAY - HOUR * n for n in range(2, 102)]
    future = datetime(2099, 1, 1, tzinfo=UTC)

    night, said = both(made, delivery(made, "stuck", [future, *[TODAY - 40 * DAY] * 99]))
    assert (night.status, said) == ("refused", {("future", "warning", 1), ("freshness", "error", 1)})  # 2099 makes nothing fresh

    night, said = both(made, delivery(made, "many", [*[future] * 6, *hours[6:]]))
    assert (night.status, said) == ("refused", {("future", "error", 6)})

    night, said = both(made, delivery(made, "first", [*[future] * 5, *hours[5:]]))
    assert (night.status, said) == ("published", {("future", "warning", 5)})
    assert made.manifest().delivery["newest"] == {"field": "seen", "time": hours[5].isoformat()}

    night, said = both(made, delivery(made, "again", [*[future] * 5, *hours[5:-1], TODAY - 200 * DAY]))
    assert (night.status, said) == ("published", {("future", "warning", 5)})  # of rows that did not change, too

    night, _ = both(made, delivery(made, "older", [hours[0] - 3 * DAY] * 100))
    assert (night.status, night.rules("error")) == ("refused", {("seen", "older")})
    assert made.publish(tmp_path / "older.parquet", confirm=night.result.confirm).status == "published"  # the newest rows may be gone
    assert made.manifest().delivery["newest"]["time"] == (hours[0] - 3 * DAY).isoformat()

    night, said = both(made, delivery(made, "late", [hours[0] - 2 * DAY] * 100))
    assert (night.status, said) == ("published", {("freshness", "warning", 1)})  # late, but newer than what is published


def test_a_stuck_export_is_late_by_the_time_of_its_bytes(tmp_path):
    made = Estate(tmp_path, FIELDS, geometry_type="point", freshness_from="delivered_at").as_cases_run()
    path = delivery(made, "stuck", [TODAY] * 9)
    for age, late in ((HOUR, False), (3 * DAY, True), (-3 * DAY, False)):  # a time that has not come says nothing
        written = (TODAY - age).timestamp()
        os.utime(path, (written, written))
        night, said = both(made, path)
        assert night.status in ("published", "unchanged")
        assert said == ({("freshness", "warning", 1)} if late else set())
        assert ("delivery time, not measured on the data" in night.said) == late
