"""The log and the status of a dataset say what its manifests and records say."""

import json

import pytest

from dataset.build import Miniature, row
from merestone.dataset.current import current
from merestone.dataset.log import log, status
from merestone.dataset.record import RunRecord, read_records
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError
from merestone.render import jsonout
from merestone.storage.local import LocalStore
from merestone.writer.records import write_record

FIRST = {f"p{n}": row("a", n, (n, n), f"district=D{n % 2}") for n in range(8)}
SECOND = {**FIRST, "p0": row("b", 0, (5, 5), "district=D0")}


@pytest.fixture
def mini(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    mini.publish(FIRST)
    mini.publish(SECOND)
    return mini


def attempt(mini, run, status_, minute, **other):
    record = RunRecord(run, 1, status_, "parcels", f"2026-04-01T00:{minute:02d}:00Z", f"2026-04-01T00:{minute:02d}:30Z", version=2, **other)
    write_record(mini.store, record)
    return record


def sizes(mini, names):
    return sum((mini.store.root / name).stat().st_size for name in names)


def test_the_log_tells_every_version_newest_first(mini):
    newest, oldest = log(Dataset(mini.store))
    assert (newest.version, newest.parent, oldest.version, oldest.parent) == (2, 1, 1, None)
    assert newest.counts["changed"] == 1
    assert oldest.counts["added"] == 8
    assert (newest.files_written, newest.files_carried) == (1, 1)
    manifest = current(mini.store).manifest
    written = [file.path for file in Dataset(mini.store).files() if file.version == 2] + [manifest.changes.path]
    assert newest.bytes_written == sizes(mini, written)
    assert json.loads(jsonout.dumps(newest))["version"] == 2


def test_status_tells_what_is_fresh_and_what_failed_since(mini):
    dataset = Dataset(mini.store)
    assert status(dataset).since == ()
    attempt(mini, "bad0", "refused", 1, refused_by="contract")
    fresh = attempt(mini, "same", "unchanged", 2, counts={"delivered": 8, "suppressed": 2, "held": 1})
    attempt(mini, "bad1", "refused", 3, refused_by="guard")
    attempt(mini, "bad2", "failed", 4)
    attempt(mini, "back", "rolled_back", 5)
    found = status(dataset)
    assert found.fresh_utc == fresh.ended_utc
    assert [each.run_id for each in found.since] == ["bad1", "bad2"]
    assert (found.suppressed_share, found.held) == (0.25, 1)
    assert (found.version, found.versions, found.features) == (2, 2, 8)
    assert [each["status"] for each in json.loads(jsonout.dumps(found))["since"]] == ["refused", "failed"]


def test_status_tells_storage_apart(mini):
    head = current(mini.store)
    mini.store.create("data/district=D0/lost-n-0.parquet", b"left by a dead attempt")
    found = status(Dataset(mini.store))
    everything = {name for name, _ in mini.store.list("") if name.startswith(("data/", "_changes/", "_pages/"))}
    live = {file.path for file in (*Dataset(mini.store).files(), *head.manifest.files.pages)} | {
        ref.path for _, ref in head.manifest.index.log
    }
    lost = {"data/district=D0/lost-n-0.parquet"}
    assert found.live_bytes == sizes(mini, live)
    assert found.loose_bytes == sizes(mini, lost)
    assert found.old_bytes == sizes(mini, everything - live - lost) > 0


def test_an_unreadable_record_is_named(mini):
    mini.store.create("_runs/x-1.json", b"{}")
    with pytest.raises(CorruptError, match=r"_runs/x-1\.json"):
        status(Dataset(mini.store))
    (mini.store.root / "_runs/x-1.json").unlink()
    mini.store.create("_runs/x-1.json", RunRecord("x", 1, "failed", "n", "a", None).to_bytes().replace(b'"failed"', b'"fine"'))
    with pytest.raises(CorruptError, match=r"_runs/x-1\.json"):
        status(Dataset(mini.store))


def test_records_of_later_versions_with_more_keys_are_read(mini):
    record = attempt(mini, "r", "unchanged", 1)
    doc = json.loads(record.to_bytes()) | {"later": 1, "run_id": "s"}
    mini.store.create("_runs/s-1.json", json.dumps(doc).encode())
    assert [each.run_id for each in read_records(mini.store) if each.status == "unchanged"] == ["r", "s"]
