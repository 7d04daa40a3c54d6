"""Cases L and X: spellings of a target system, clocks that jump, metadata records that reach out, ISO records at the edge."""

import re
import socket
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pytest

from estate import Estate
from merestone.audit.completeness import check_runs
from merestone.audit.ingest import ingest
from merestone.audit.iso import record_of_run, record_of_version
from merestone.errors import SourceError
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.hygiene import check_partitions
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.run_manifest import runs_of
from merestone.lineage.store.verdict import conformance_summary
from merestone.render.iso19115 import ENCODINGS, render
from merestone.render.iso19115_extend import extend
from merestone.render.iso19115_lint import lint, read_record
from merestone.storage.local import LocalStore
from render.test_iso19115 import RECORD, texts

CASES = Path(__file__).parent
NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


def taken_in(case, folder, plan):
    found = ingest(str(folder / "store"), str(CASES / case / "events.jsonl"), plan=plan)
    return found, LocalStore(folder / "store")


# --- L03 -------------------------------------------------------------------------------------------------------------------------------


def test_l03_one_partition_per_system_and_no_guess(tmp_path):
    found, store = taken_in("L03", tmp_path, ["crs_normalize"])
    assert (found.lines, found.events, [each["line"] for each in found.samples]) == (12, 8, [9, 10, 11, 12])
    for words, sample in zip(("utm32", "EPSG:999999", "../../x", "Site_Grid_7"), found.samples, strict=True):
        assert words in sample["reason"]
    targets = {name.split("/")[3] for name, _ in store.list("_lineage/run_date=2024-05-01/")}
    assert targets == {"target_crs=EPSG%3A25832", "target_crs=EPSG%3A4326"}
    table = read_run(store, "r1")
    assert pc.value_counts(table.column("target_crs")).to_pylist() == [
        {"values": "EPSG:25832", "counts": 6},
        {"values": "EPSG:4326", "counts": 2},
    ]
    assert check_partitions(store, "_lineage") == []
    (tmp_path / "store/_lineage/run_date=2024-05-01/run_id=r1/target_crs=utm32").mkdir(parents=True)
    assert any("utm32" in each for each in check_partitions(store, "_lineage"))


# --- L04 -------------------------------------------------------------------------------------------------------------------------------


def test_l04_order_comes_from_the_sequence_and_every_doubt_is_named(tmp_path):
    found, store = taken_in("L04", tmp_path, ["crs_normalize", "validate"])
    assert found.quarantined == 0
    rows = deduplicate(read_run(store, "r1")).sort_by("sequence").to_pylist()
    assert [each["feature_id"] for each in rows] == ["p1", "p2", "p3", "p4", "p5"]
    assert rows[2]["event_time_utc"] == datetime(2024, 5, 1, 9, 59, 58, tzinfo=UTC)
    assert rows[4]["event_time_utc"].year == 2031
    gaps = {(run, gap.rule): list(gap.samples) for run, gap in check_runs(store, runs_of(store), now=NOW).gaps}
    assert gaps == {
        ("r1", "stage_missing"): ["p4"],
        ("r1", "future"): ["p5"],
        ("r3", "sequence_twice"): ["2"],
        ("r3", "sequence_sparse"): ["3"],
    }
    assert conformance_summary(tmp_path / "store/_lineage", "r3")["features"] == 4


# --- X02: records ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["record.xml", "laughs.xml"])
def test_x02_a_record_with_a_doctype_is_never_read(name, monkeypatch):
    def no_network(*_):
        raise AssertionError("something was asked of the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    before = sorted((CASES / "X02").iterdir())
    data = (CASES / "X02" / name).read_bytes()
    for read in (lambda: read_record(data, name), lambda: extend(data, RECORD, name)):
        with pytest.raises(SourceError, match="DOCTYPE") as fault:
            read()
        assert "CANARY-7731" not in str(fault.value) + fault.value.hint
    assert sorted((CASES / "X02").iterdir()) == before


def test_x02_a_plain_record_takes_the_lineage():
    made = extend((CASES / "X02/plain.xml").read_bytes(), RECORD, "plain.xml")
    assert texts(made, "fileIdentifier") == ["id-1"]
    assert RECORD.statement in texts(made, "statement")[0]
    assert lint(read_record(made.encode(), "test")) == []


# --- X03 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_x03_rejects_alone_and_one_event(tmp_path, schemas, encoding):
    found, store = taken_in("X03", tmp_path, ["crs_normalize"])
    assert found.quarantined == 0
    made = {run: render(record_of_run(store.url, run), encoding) for run in ("r1", "r2")}
    for run, text in made.items():
        assert schemas.faults(text, encoding) == []
        assert lint(read_record(text.encode(), "test")) == []
        assert render(record_of_run(store.url, run), encoding) == text
        assert "completed" not in text
        total = conformance_summary(f"{store.url}/_lineage", run)
        assert (
            f"{total['features_passed']} passed, {total['features_warned']} warned, {total['features_rejected']} rejected"
            in texts(text, "statement")[0]
        )
    assert "0 passed, 0 warned, 3 rejected" in texts(made["r1"], "statement")[0]
    for reason in ("reason 1", "reason 2", "reason 3"):
        assert reason in made["r1"]
    assert len(re.findall("<(?:gmd|mrl):processStep>", made["r2"])) == 1
    assert "2024-05-01T10:00:00Z" in texts(made["r2"], "DateTime" if encoding == "gmd" else "timePosition")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_x03_a_dataset_without_rows(tmp_path, schemas, encoding):
    product = Estate(tmp_path / "product", [{"name": "pid", "type": "string", "nullable": False}], geometry_type="point", key=["pid"])
    token = product.publish(CASES / "X03/zero_rows.gpkg").result.confirm
    assert product.publish(CASES / "X03/zero_rows.gpkg", confirm=token).status == "published"
    text = render(record_of_version(str(product.url)), encoding)
    assert schemas.faults(text, encoding) == []
    assert lint(read_record(text.encode(), "test")) == []
    assert "EX_GeographicBoundingBox" not in text
    assert texts(text, "statement")[0].endswith("No processing was recorded.")
    assert "processStep" not in text
