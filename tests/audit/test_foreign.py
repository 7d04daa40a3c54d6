"""Runs of other programs: written from Python, sealed or marked as failed, and told under their own names, times and outcomes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.api import lineage
from merestone.audit.completeness import check_version
from merestone.audit.ingest import ingest
from merestone.audit.iso import record_of_run, record_of_version
from merestone.audit.verify import verify
from merestone.errors import UsageError
from merestone.line import environment
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.store.run_manifest import attempts_of
from merestone.storage.open import open_store

THEN = datetime(2024, 5, 1, 10, tzinfo=UTC)


def table(*ids, stage="clean", outcome="PASS", **more):
    rows = len(ids)
    return pa.table(
        {
            "feature_id": pa.array(ids),
            "stage": [stage] * rows,
            "event_type": ["VALIDATE"] * rows,
            "outcome": [outcome] * rows,
            "event_time_utc": pa.array([THEN + timedelta(seconds=n) for n in range(rows)], pa.timestamp("us", "UTC")),
            "source_crs": ["EPSG:25832"] * rows,
            "target_crs": ["EPSG:25832"] * rows,
            **more,
        }
    )


def written(folder, *tables, **how):
    with lineage.run(
        folder, **{"job": "clean", "tool": "spark 3.5.1", "plan": ["clean"], "namespace": "estate", "run": "r1", **how}
    ) as run:
        for each in tables:
            run.write(each)
    return run


def told(folder, run_id):
    start, end = lineage.openlineage(folder, run_id=run_id).events
    return start, end


def test_a_run_that_passed_is_complete_and_the_jobs_own(tmp_path):
    run = written(
        tmp_path,
        table("p1", "p2"),
        inputs=["s3://bucket/in/parcels.parquet", "file:///srv/a.gpkg"],
        outputs=["postgres://db:5432/gis.public.parcels"],
    )
    assert (run.run_id, run.events, run.sealed.events) == ("estate/clean/r1", 2, 2)
    start, end = told(tmp_path, run.run_id)
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("estate", "clean")
    assert end["job"]["facets"]["jobType"]["integration"] == "SPARK"
    assert end["run"]["facets"]["processing_engine"]["name"] == "spark"
    assert "errorMessage" not in end["run"]["facets"]
    assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [("s3://bucket", "in/parcels.parquet"), ("file", "/srv/a.gpkg")]
    assert [(each["namespace"], each["name"]) for each in end["outputs"]] == [("postgres://db:5432", "gis.public.parcels")]
    doc = attempts_of(open_store(str(tmp_path)), run.run_id)[0].doc
    assert (doc["origin"], doc["tool"], doc["about"]["outcome"]) == ("foreign", {"spark": "3.5.1"}, "complete")
    assert doc["about"]["actor"] == environment.who()
    assert lineage.check_complete(tmp_path, run_ids=[run.run_id]).status == "pass"
    assert verify(open_store(str(tmp_path))).whole


def test_events_of_another_day_date_the_run(tmp_path):
    run = written(tmp_path, table("p1", "p2"))
    start, end = told(tmp_path, run.run_id)
    assert (start["eventTime"], end["eventTime"]) == ("2024-05-01T10:00:00.000000Z", "2024-05-01T10:00:01.000000Z")
    assert lineage.runs(tmp_path).runs[0]["run_date"] == "2024-05-01"
    [activity] = [each for name, each in lineage.prov(tmp_path, run_id=run.run_id).document["activity"].items() if name == "run:run"]
    assert activity["prov:startTime"] == "2024-05-01T10:00:00.000000Z"


@pytest.mark.parametrize(("outcomes", "ended"), [(["PASS", "PASS"], "COMPLETE"), (["PASS", "REJECT"], "COMPLETE"), (["REJECT"], "FAIL")])
def test_a_run_of_a_file_is_dated_by_its_events_and_completes_where_something_passed(tmp_path, outcomes, ended):
    events = [
        {
            "run_id": "etl/load/7b0c8a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
            "sequence": n,
            "event_time_utc": f"2024-05-01T10:0{n}:00Z",
            "stage": "load",
            "event_type": "VALIDATE",
            "feature_id": f"p{n}",
            "source_crs": "EPSG:25832",
            "target_crs": "EPSG:25832",
            "outcome": outcome,
            **({"rejection_reason": "bad"} if outcome == "REJECT" else {}),
        }
        for n, outcome in enumerate(outcomes)
    ]
    (tmp_path / "e.ndjson").write_text("".join(json.dumps(each) + "\n" for each in events))
    ingest(str(tmp_path / "store"), str(tmp_path / "e.ndjson"))
    start, end = told(tmp_path / "store", events[0]["run_id"])
    assert end["eventType"] == ended
    assert (start["eventTime"], end["eventTime"]) == ("2024-05-01T10:00:00.000000Z", f"2024-05-01T10:0{len(outcomes) - 1}:00.000000Z")
    assert (end["job"]["namespace"], end["job"]["name"], end["run"]["runId"]) == ("etl", "load", "7b0c8a52-6a1e-4d0e-9a55-5d2c9d1b7e10")
    assert end["job"]["facets"]["jobType"]["integration"] == "UNKNOWN"
    assert "processing_engine" not in end["run"]["facets"]
    assert lineage.runs(tmp_path / "store").runs[0]["run_date"] == "2024-05-01"


def test_a_run_that_raises_is_marked_as_failed_and_keeps_its_events(tmp_path):
    run = lineage.run(tmp_path, job="clean", tool="pandas", namespace="estate", run="r1")
    with pytest.raises(RuntimeError, match="disk"), run:  # noqa: PT012 - what the block raises is what is tried
        run.write(table("p1"))
        raise RuntimeError("the disk is full: postgres://me:secret@db/x")
    assert run.sealed.events == 1
    _, end = told(tmp_path, run.run_id)
    assert end["eventType"] == "FAIL"
    message = end["run"]["facets"]["errorMessage"]["message"]
    assert "the disk is full" in message
    assert "secret" not in message
    again = written(tmp_path, table("p1"))
    assert [each.attempt for each in attempts_of(open_store(str(tmp_path)), run.run_id)] == [1, 2]
    assert told(tmp_path, again.run_id)[1]["eventType"] == "COMPLETE"


def test_single_events_and_columns_share_one_order(tmp_path):
    with lineage.run(tmp_path, job="clean", tool="pandas", plan=["clean"], run="r1") as run:
        one = LineageEvent(
            run_id=run.run_id,
            sequence=0,
            event_time_utc=THEN,
            stage="clean",
            event_type="VALIDATE",
            feature_id="a",
            source_crs="EPSG:25832",
            target_crs="EPSG:25832",
            outcome="PASS",
        )
        run.add(one)
        assert run.write(iter(table("b", "c").to_batches())) == 2
        run.write(pa.RecordBatchReader.from_batches(table("d").schema, table("d").to_batches()))
        with pytest.raises(ValueError, match="not of run"):
            run.add(LineageEvent(**{each: getattr(one, each) for each in one.__slots__} | {"run_id": "x"}))
    events = lineage.query(tmp_path).events
    assert [(each["feature_id"], each["sequence"] & 0xFFFFFF) for each in events] == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]


BAD = {
    "no reason": (table("p1", outcome="REJECT"), "REJECT without a rejection_reason"),
    "no time zone": (table("p1").set_column(4, "event_time_utc", pa.array([THEN.replace(tzinfo=None)], pa.timestamp("us"))), "time zone"),
    **{
        f"stage {each}": (table("p1", stage=each), "a publish alone")
        for each in ("publish", "validate", "crs_normalize.1", "attr_cast.area_m2", "snap")
    },
    "sequence given": (table("p1").append_column("sequence", pa.array([4])), "numbers and names"),
    "unknown column": (table("p1").append_column("colour", pa.array(["red"])), "colour is not a field"),
    "missing column": (table("p1").drop_columns(["outcome"]), "outcome is missing"),
    "another system": (table("p1").set_column(6, "target_crs", pa.array(["utm32"])), "utm32"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_event_is_refused_with_its_row(tmp_path, what):
    given, message = BAD[what]
    with lineage.run(tmp_path, job="clean", tool="pandas") as run, pytest.raises(ValueError, match=message):
        run.write(given)
    assert run.events == 0


def test_memory_does_not_grow_with_the_events(tmp_path):
    with lineage.run(tmp_path, job="clean", tool="pandas", plan=["clean"]) as run:
        run._writer.part_rows = 1000
        for n in range(5):
            run.write(table(*(f"p{n}-{each}" for each in range(900))))
            assert run._writer._waiting_rows <= 1000
    assert run.sealed.events == 4500
    assert len(run.sealed.parts) == 5


@pytest.mark.parametrize("bad", [{"job": ""}, {"job": "a/b"}, {"run": "x\n"}, {"plan": ["publish"]}, {"job": "x" * 300}])
def test_names_that_cannot_be_kept_are_wrong_usage(tmp_path, bad):
    with pytest.raises(UsageError):
        lineage.run(tmp_path, **{"job": "clean", "tool": "pandas", **bad})


def test_what_others_say_of_a_publish_does_not_count_as_its_own(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"])
    run_id = made.publish(save(rows(4), tmp_path / "0.gpkg")).result.run_id
    before = record_of_version(str(made.url))
    event = {
        "run_id": run_id,
        "sequence": 1,
        "event_time_utc": "2024-05-01T10:00:00Z",
        "stage": "tiles",
        "event_type": "VALIDATE",
        "feature_id": "p1",
        "source_crs": "EPSG:4326",
        "target_crs": "EPSG:4326",
        "outcome": "REJECT",
        "rejection_reason": "too small",
    }
    (tmp_path / "e.ndjson").write_text(json.dumps(event) + "\n")
    assert ingest(str(made.url), str(tmp_path / "e.ndjson")).events == 1
    written(made.url, table("p1", "p2"))
    assert record_of_version(str(made.url)) == before
    assert told(made.url, run_id)[1]["eventType"] == "COMPLETE"
    assert check_version(made.dataset, None, now=datetime(2100, 1, 1, tzinfo=UTC)).complete
    assert record_of_run(str(made.url), "estate/clean/r1").version is None
    assert verify(made.dataset.store).whole


def test_the_writer_has_the_name_that_programs_know():
    import merestone.lineage  # noqa: PLC0415 - as a program would

    assert merestone.lineage.run is lineage.run
    with pytest.raises(AttributeError):
        merestone.lineage.walk  # noqa: B018
