"""Tampering is found and named; an event is proved with nothing but hashes."""

import hashlib
import io
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.altered import sealed_again
from merestone.errors import CorruptError, UsageError
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.proof.inclusion import prove, verify_runs
from merestone.lineage.store.writing import Besides, RunWriter
from merestone.storage.local import LocalStore

TIME = datetime(2026, 3, 3, 1, tzinfo=UTC)


@pytest.fixture
def sealed(tmp_path):
    """A store of three chained runs of several parts, and what the dataset would remember of them."""
    store = LocalStore(tmp_path / "dataset")
    remembered, heads = {}, ()
    for night in range(3):
        writer = RunWriter(str(tmp_path), f"r{night}", 1, "ab", part_rows=9, group_rows=4)
        for batch in range(4):
            collector = LineageCollector()
            for n in range(5):
                for at, (stage, kind) in enumerate((("snap", "SNAP"), ("validate", "VALIDATE"))):
                    collector.add(
                        LineageEvent(
                            run_id=f"r{night}",
                            sequence=(batch * 5 + n) * 2 + at,
                            event_time_utc=TIME + timedelta(microseconds=n),
                            stage=stage,
                            event_type=kind,
                            feature_id=f"ä{batch}{n}",
                            source_crs="EPSG:25832",
                            target_crs="EPSG:4326",
                            outcome="WARN",
                            rejection_reason="<&\x00>",
                            accuracy_m=0.1 * n if n else None,
                        )
                    )
            writer.write(collector.drain())
        run = writer.seal(store, run_date=date(2026, 3, 3 + night), plan=["snap", "validate"], tool={}, time=TIME, besides=Besides(heads))
        heads = [run.to_json()]
        remembered[run.run_manifest] = run.sha256
    return store, remembered


def names(store, ending):
    return [name for name, _ in store.list("_lineage/") if name.endswith(ending)]


def replace(store, name, data):
    store.delete(name)
    store.create(name, data)


def edited(data, column, row, value):
    """A part with one value changed, of valid Parquet."""
    table = pq.read_table(pa.BufferReader(data), partitioning=None)
    values = table.column(column).to_pylist()
    values[row] = value
    place = LINEAGE_ARROW_SCHEMA.get_field_index(column)
    out = io.BytesIO()
    field = LINEAGE_ARROW_SCHEMA.field(column)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), out)
    return out.getvalue()


def resealed(store, name, run_manifest):
    """Make the run manifest agree with a part that was altered, as far as checksums go."""
    doc = json.loads(store.get(run_manifest))
    for part in doc["parts"]:
        if f"_lineage/{part['path']}" == name:
            data = store.get(name)
            part["bytes"], part["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    replace(store, run_manifest, sealed_again(doc))


def test_what_was_sealed_verifies(sealed):
    store, remembered = sealed
    assert len(names(store, ".parquet")) == 12
    assert verify_runs(store) == []
    assert verify_runs(store, remembered=remembered) == []
    assert verify_runs(LocalStore(Path(store.root) / "nothing")) == []


@pytest.mark.parametrize("place", [10, 200, -60, -3])
def test_a_flipped_byte_is_found(sealed, place):
    store, _ = sealed
    name = names(store, ".parquet")[5]
    data = bytearray(store.get(name))
    data[place] ^= 1
    replace(store, name, bytes(data))
    found = verify_runs(store)
    assert {each.path for each in found} == {name}
    assert "bytes with checksum" in found[0].message


def test_a_dropped_part_is_found(sealed):
    store, _ = sealed
    name = names(store, ".parquet")[0]
    store.delete(name)
    assert [each.to_json() for each in verify_runs(store)] == [{"path": name, "message": "is missing: a sealed run lists it"}]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", "PASS"),
        ("rejection_reason", None),
        ("event_id", "0" * 32),
        ("accuracy_m", 9.0),
        ("event_time_utc", TIME - timedelta(days=1)),
        ("feature_id", "zz"),
        ("run_id", "r9"),
    ],
)
def test_an_edited_row_is_found_even_where_the_checksums_were_mended(sealed, column, value):
    store, remembered = sealed
    name = next(each for each in names(store, ".parquet") if "run_id=r1" in each)
    replace(store, name, edited(store.get(name), column, 3, value))
    assert {each.path for each in verify_runs(store)} == {name}
    resealed(store, name, "_lineage/_runs/r1-1.json")
    found = verify_runs(store, remembered=remembered)
    assert {each.path for each in found} == {name, "_lineage/_runs/r1-1.json"}
    assert any("Merkle root differs" in each.message for each in found)
    if column in ("event_id", "feature_id", "run_id"):
        assert any("event_id" in each.message for each in found)


def rewritten(data, change):
    """A part written anew without compression, so that a text of the same length leaves the size as it was."""
    out = io.BytesIO()
    pq.write_table(change(pq.read_table(pa.BufferReader(data), partitioning=None)), out, compression="none", use_dictionary=False)
    return out.getvalue()


def with_value(column, row, value):
    def change(table):
        values = table.column(column).to_pylist()
        values[row] = value
        field = LINEAGE_ARROW_SCHEMA.field(column)
        return table.set_column(LINEAGE_ARROW_SCHEMA.get_field_index(column), field, pa.array(values, field.type))

    return change


@pytest.mark.parametrize(
    "change",
    [
        with_value("outcome", 2, "PASS"),
        with_value("rejection_reason", 5, "<&\x00<"),
        with_value("sequence", 1, 77),
        lambda table: table.take(pa.array([1, 0, *range(2, len(table))])),
    ],
    ids=["outcome", "reason", "sequence", "order"],
)
def test_a_row_that_was_edited_and_kept_its_size_is_found(sealed, change):
    store, _ = sealed
    name, manifest = next(each for each in names(store, ".parquet") if "run_id=r2" in each), "_lineage/_runs/r2-1.json"
    honest = rewritten(store.get(name), lambda table: table)
    replace(store, name, honest)
    resealed(store, name, manifest)
    assert verify_runs(store) == []  # the same events in other bytes, and nobody remembers the last run manifest
    forged = rewritten(honest, change)
    assert len(forged) == len(honest)
    replace(store, name, forged)
    assert {each.path for each in verify_runs(store)} == {name}
    resealed(store, name, manifest)
    [found] = verify_runs(store)
    assert found.path == name
    assert "Merkle root differs" in found.message


def test_a_missing_required_value_is_found(sealed):
    store, _ = sealed
    name = names(store, ".parquet")[0]
    table = pq.read_table(pa.BufferReader(store.get(name)), partitioning=None)
    loose = pa.schema([pa.field(each.name, each.type) for each in table.schema], table.schema.metadata)
    out = io.BytesIO()
    pq.write_table(table.cast(loose).set_column(4, "stage", pa.nulls(len(table), pa.string())), out)
    replace(store, name, out.getvalue())
    assert any("lacks stage" in each.message for each in verify_runs(store))


def test_a_replaced_run_manifest_is_found_by_the_next_run_and_by_the_dataset(sealed):
    store, remembered = sealed
    for run, witnesses in (("r1", None), ("r2", remembered)):
        name = f"_lineage/_runs/{run}-1.json"
        doc = json.loads(store.get(name))
        replace(store, name, json.dumps({**doc, "tool": {"PROJ": "4"}}).encode())
        assert name in {each.path for each in verify_runs(store, remembered=witnesses)}


def test_swapped_and_missing_runs_are_found(sealed):
    store, remembered = sealed
    one, two = "_lineage/_runs/r0-1.json", "_lineage/_runs/r1-1.json"
    first, second = store.get(one), store.get(two)
    replace(store, one, second)
    replace(store, two, first)
    assert {one, two} <= {each.path for each in verify_runs(store, remembered=remembered)}
    replace(store, two, second)
    store.delete(one)
    assert [each.path for each in verify_runs(store)] == [one]


@pytest.mark.parametrize("change", [{"root": "00" * 32}, {"counts": {"total_events": 1}}, {"parts": []}])
def test_totals_that_do_not_agree_are_found(sealed, change):
    store, _ = sealed
    name = "_lineage/_runs/r2-1.json"
    replace(store, name, json.dumps({**json.loads(store.get(name)), **change}).encode())
    assert {each.path for each in verify_runs(store)} == {name}
    replace(store, name, b"{}")
    assert [each.path for each in verify_runs(store)] == [name]


def follow(proof):
    """The independent check: nothing but hashlib and the page docs/spec/lineage.md."""

    def hashed(data):
        return hashlib.blake2b(data, digest_size=32).digest()

    def up(leaf, steps):
        for each in steps:
            other = bytes.fromhex(each["hash"])
            leaf = hashed(b"\x01" + (other + leaf if each["side"] == "left" else leaf + other))
        return leaf

    event = b"".join(f"{name}:{len(text.encode())}:{text},".encode() for name, text in proof["event"].items())
    part = up(hashed(b"\x00" + event), proof["in_part"])
    return up(hashed(b"\x00" + part), proof["in_run"]).hex()


def test_an_event_is_proved(sealed):
    store, _ = sealed
    root = json.loads(store.get("_lineage/_runs/r1-1.json"))["root"]
    for batch in range(4):
        for n in range(5):
            proofs = json.loads(json.dumps(prove(store, "_lineage/_runs/r1-1.json", f"ä{batch}{n}")))
            assert [each["event"]["stage"] for each in proofs] == ["snap", "validate"]
            for each in proofs:
                assert follow(each) == each["root"] == root
                each["event"]["outcome"] = "PASS"
                assert follow(each) != root


def test_what_cannot_be_proved_is_said(sealed):
    store, _ = sealed
    with pytest.raises(UsageError, match="has no event of feature 'ä99'"):
        prove(store, "_lineage/_runs/r1-1.json", "ä99")
    name = next(each for each in names(store, ".parquet") if "run_id=r1" in each)
    replace(store, name, edited(store.get(name), "outcome", 3, "PASS"))
    with pytest.raises(CorruptError, match="Merkle root differs"):
        prove(store, "_lineage/_runs/r1-1.json", "ä00")
