"""Which event stores are fit to be read."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, VERSION_KEY
from merestone.lineage.store.hygiene import check_partitions
from merestone.lineage.store.writing import RunWriter
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    """A good store of two reference systems."""
    store = LocalStore(tmp_path / "dataset")
    collector = LineageCollector()
    for n, target in enumerate(("EPSG:4326", "urn:ogc:def:crs:EPSG::25832", "OGC:CRS84")):
        collector.add(
            LineageEvent(
                run_id="r1",
                sequence=n,
                event_time_utc=TIME,
                stage="crs_normalize",
                event_type="TRANSFORM",
                feature_id="a",
                source_crs="EPSG:25832",
                target_crs=target,
                outcome="PASS",
            )
        )
    writer = RunWriter(str(tmp_path), "r1", 1, "ab")
    writer.write(collector.drain())
    writer.seal(store, run_date=date(2026, 3, 3), plan=[], tool={}, time=TIME)
    return store


def put(store, path, schema=LINEAGE_ARROW_SCHEMA):
    target = Path(store.root) / "_lineage" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(schema.empty_table(), target)


def about_files(store):
    """The problems, without those of parts that no run lists."""
    return [each for each in check_partitions(store, "_lineage") if not each.endswith("is listed by no sealed run")]


def test_what_merestone_writes_is_fit(store):
    assert check_partitions(store, "_lineage") == []
    assert check_partitions(LocalStore(Path(store.root) / "_lineage")) == []


@pytest.mark.parametrize("target", ["utm32", "EPSG%3A999999", "epsg%3A4258", "EPSG%3A04258", "OGC%3ACRS84", ""])
def test_a_target_that_is_no_canonical_code_fails(store, target):
    put(store, f"run_date=2026-03-03/run_id=r2/target_crs={target}/part.parquet")
    [problem, *_] = check_partitions(store, "_lineage")
    assert problem.startswith(f"folder target_crs={target}: ")
    assert not any(each.startswith("folder ") for each in check_partitions(store, "_lineage", require_epsg_target=False))


def test_a_folder_without_a_file_fails_too(store):
    (Path(store.root) / "_lineage/target_crs=utm32").mkdir()
    assert check_partitions(store, "_lineage") == ["folder target_crs=utm32: 'utm32' is not a canonical EPSG:<code>"]


@pytest.mark.parametrize("other", ["EPSG:25832", "epsg%3A25832", "urn:ogc:def:crs:EPSG::25832"])
def test_two_spellings_of_one_system_fail(store, other):
    put(store, f"target_crs={other}/part.parquet")
    both = ", ".join(sorted([f"target_crs={other}", "target_crs=EPSG%3A25832"]))
    assert f"folders {both} mean one system, EPSG:25832" in check_partitions(store, "_lineage", require_epsg_target=False)


@pytest.mark.parametrize(
    ("version", "good"),
    [("1.2.0", True), ("1.3.7", True), ("1.4.0", False), ("1.1.0", False), ("2.2.0", False), ("one", False), ("", False)],
)
def test_files_of_unknown_schema_versions_fail(store, version, good):
    put(store, "target_crs=EPSG%3A4326/part.parquet", LINEAGE_ARROW_SCHEMA.with_metadata({VERSION_KEY: version.encode()}))
    assert (about_files(store) == []) is good


def test_files_that_say_nothing_or_cannot_be_read_fail(store):
    put(store, "target_crs=EPSG%3A4326/bare.parquet", LINEAGE_ARROW_SCHEMA.remove_metadata())
    store.create("_lineage/target_crs=EPSG%3A4326/torn.parquet", b"PAR1")
    put(store, "loose.parquet")
    problems = about_files(store)
    assert [each.split(" ")[0] for each in problems] == [
        "loose.parquet",
        "target_crs=EPSG%3A4326/bare.parquet",
        "target_crs=EPSG%3A4326/torn.parquet",
    ]


def test_an_empty_root_fails_unless_told(tmp_path):
    store = LocalStore(tmp_path)
    assert check_partitions(store, "_lineage") == [f"{store.root}/_lineage holds no event files"]
    assert check_partitions(store, "_lineage", allow_empty=True) == []


def test_hidden_files_are_nobodys_business(store):
    put(store, "_tmp/target_crs=utm32/part.parquet")
    (Path(store.root) / "_lineage/.work/target_crs=utm32").mkdir(parents=True)
    assert check_partitions(store, "_lineage") == []
