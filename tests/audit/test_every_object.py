"""Of a dataset with every kind of object, nothing can be taken away, cut, altered, exchanged or slipped in without `verify` naming it."""

import json
import re
from datetime import UTC, datetime

import pytest

import merestone
from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.api import lineage
from merestone.audit.ingest import ingest
from merestone.audit.retain import hold, release, retain
from merestone.audit.verify import verify
from merestone.dataset.current import Pointer, manifest_name
from merestone.dataset.manifest import sha256
from merestone.errors import SourceError
from merestone.line import environment
from merestone.line.rollback import roll_back
from merestone.line.writing import write
from merestone.storage.memory import _Object
from merestone.writer import history
from stores import fresh

EVENT = {
    "run_id": "f1",
    "sequence": 1,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "validate",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:4326",
    "target_crs": "EPSG:4326",
    "outcome": "PASS",
}


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Versions, rejects, refusals as a whole, a roll-back, foreign events, quarantine, holds, expired lineage; an attempt that was cut off."""
    folder = tmp_path_factory.mktemp("every")
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    raw = fresh(page=1000)
    made = Estate(folder / "product", fields, geometry_type="point", key=["pid"], store=raw).agreed().by_place(5)
    made.raw = raw
    made.settings |= {"rejects": {"max_fraction": 0.5}, "guard": {"max_changed_fraction": 1.0}}

    def night(name, given):
        return made.publish(save(given, folder / f"{name}.gpkg")).result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "RECENT", 2)
        real = environment.now
        patch.setattr(environment, "now", lambda: datetime(2015, 1, 1, tzinfo=UTC))
        assert night("0", rows(9)).status == "published"
        patch.setattr(environment, "now", real)
        placed = hold(str(made.url), "run=none", "a case")
        release(str(made.url), placed.id, "settled")
        plan = retain(str(made.url), "P6Y", "the directive", None)
        assert retain(str(made.url), "P6Y", "the directive", plan.confirm).status == "done"
        patch.setattr(write, "needs_checkpoint", lambda *_: True)
        assert night("1", rows(9, p3={"owner": None}, p4={"owner": "b"}, p7=None)).rejected == 1
        patch.undo()
        patch.setattr(history, "RECENT", 2)
        (folder / "events.ndjson").write_text(json.dumps(EVENT) + "\nnot an event\n")
        ingest(str(made.url), str(folder / "events.ndjson"))
        assert night("2", rows(9, p5={"rank": 8})).status == "published"
        for bad, rule in (("key", "null"), ("columns", "missing")):
            given = rows(9, p3={"pid": None}) if bad == "key" else [{**each, "owner": None} for each in rows(9)]
            if bad == "columns":
                given = [{("holder" if name == "pid" else name): value for name, value in each.items()} for each in rows(9)]
            assert night(bad, given).status == "refused", rule
        roll_back(made.dataset, to=2, reason="wrong export")
        assert night("3", rows(9, p3={"owner": None})).status == "published"
        made.last = night("4", rows(9, p2={"pid": None})).run_id
    return made


@pytest.fixture(scope="module")
def store(nights):
    return nights.raw


@pytest.fixture
def whole(store):
    """The objects, as they are again after the test."""
    kept = dict(store._objects)
    yield kept
    store._objects.clear()
    store._objects.update(kept)


def damaged(store):
    return {each.path for each in verify(store).damages}


def unnamed(store, whole, alter):
    """Objects that `verify` does not name after they were altered, one at a time; `alter` gives other bytes, None to leave it out."""
    found = []
    for name, kept in whole.items():
        data = alter(name, kept.data)
        if data is None:
            continue
        store._objects[name] = _Object(data, "x")
        if name not in damaged(store):
            found.append(name)
        store._objects[name] = kept
    return found


def test_the_dataset_holds_every_kind_of_object(store, whole):
    assert verify(store).damages == ()
    kinds = {name.partition("/")[0] for name in whole} | {
        name.split("/")[1].partition("=")[0] for name in whole if name.startswith("_lineage/")
    }
    assert kinds >= {"_current.json", "_manifests", "data", "_changes", "_index", "_findings", "_pages", "_history", "_runs", "_lineage"}
    assert kinds >= {"_schemas", "_quarantine", "_tombstones", "_holds", "_baseline", "run_date"}
    assert any(name.endswith(".rejects.parquet") for name in whole)


def test_no_object_can_be_taken_away(store, whole):
    found = []
    for name in whole:
        gone = store._objects.pop(name)
        if name not in damaged(store):
            found.append(name)
        store._objects[name] = gone
    assert found == []


def test_no_byte_can_be_altered_and_nothing_cut(store, whole):
    names = sorted(whole)

    def alter(name, data):
        at = len(data) // 2
        return data[:-3] if names.index(name) % 3 == 0 else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    assert unnamed(store, whole, alter) == []


@pytest.mark.parametrize("at", [0, 20, 45, 70, -90, -70, -20, -2])
@pytest.mark.usefixtures("whole")
def test_a_flipped_pointer_is_the_fault_of_the_pointer_alone(store, at):
    data = bytearray(store.get("_current.json"))
    data[at] ^= 2
    store._objects["_current.json"] = _Object(bytes(data), "x")
    assert damaged(store) == {"_current.json"}


@pytest.mark.usefixtures("whole")
def test_a_word_that_is_altered_in_the_newest_record_is_named(nights, store):
    """No later run has seen it: it answers for itself."""
    name = f"_runs/{nights.last}-1.json"
    altered = store.get(name).replace(b'"name": "product"', b'"name": "prodact"')
    assert altered != store.get(name)
    store._objects[name] = _Object(altered, "x")
    assert damaged(store) == {name}


def alike(name):
    """The folder and the kind of an object: those of one kind can be exchanged."""
    return name.rpartition("/")[0].partition("=")[0], name.rpartition(".")[2]


def test_no_object_can_be_exchanged_for_another_of_its_kind(store, whole):
    def other(name, data):
        return next((each.data for one, each in whole.items() if alike(one) == alike(name) and each.data != data), None)

    assert unnamed(store, whole, other) == []


@pytest.mark.usefixtures("whole")
def test_the_pointer_of_an_older_version_is_told(store):
    older = manifest_name(2)
    doc = json.loads(store.get(older))
    store._objects["_current.json"] = _Object(Pointer(older, 2, doc["run_id"], sha256(store.get(older))).to_bytes(), "x")
    assert "_current.json" in damaged(store)


def test_nothing_can_be_slipped_in(store, whole):
    """Beside every object one like it: under another number, of another attempt, by a run that nobody knows."""
    forged = {}
    for name, kept in whole.items():
        folder, _, last = name.rpartition("/")
        if name == "_current.json":
            continue
        digits = list(re.finditer("[0-9a-f]+", last))
        at = max(digits, key=lambda each: len(each[0]))
        other = last[: at.start()] + ("9" * len(at[0]) if at[0] != "9" * len(at[0]) else "8") + last[at.end() :]
        forged[f"{folder}/{other}"] = kept
        forged[f"{folder}/x-{last}"] = kept
    assert not forged.keys() & whole.keys()
    for ending in (".rejects.parquet", ".parquet", ".yaml", "json"):  # a forged record would make its forged rejects unjudged
        mine = {name: forged.pop(name) for name in list(forged) if name.endswith(ending)}
        store._objects.update(mine)
        assert mine.keys() - damaged(store) == set()
        store._objects.clear()
        store._objects.update(whole)
    assert not forged


# --- what has no witness inside the dataset ------------------------------------------------------------------------------------------------


def anchored(nights, head):
    return {each.path for each in merestone.verify(nights.dataset, head=head).damages}


def test_a_head_that_was_kept_finds_a_newest_run_that_has_gone_with_all_its_traces(nights, store, whole, tmp_path):
    head = tmp_path / "head.json"
    made = lineage.head(nights.dataset, out=head)
    assert made.digest == json.loads(head.read_text())["digest"]
    assert anchored(nights, head) == set()
    traces = {name for name in whole if nights.last in name}
    assert len(traces) >= 2
    for name in traces:
        store.delete(name)
    assert verify(store).whole, "nothing inside remembers it"
    assert {f"_lineage/_runs/{nights.last}-1.json", f"_runs/{nights.last}-1.json"} <= anchored(nights, head)


@pytest.mark.usefixtures("whole")
def test_a_head_that_was_kept_finds_a_dataset_set_back_to_an_older_day(nights, store, tmp_path):
    head = tmp_path / "head.json"
    lineage.head(nights.dataset, out=head)
    newest = nights.manifest()
    older = manifest_name(newest.parent)
    store._objects["_current.json"] = _Object(
        Pointer(older, newest.parent, json.loads(store.get(older))["run_id"], sha256(store.get(older))).to_bytes(), "x"
    )
    assert "_current.json" in anchored(nights, head)


def test_a_later_run_leaves_a_head_valid_and_an_altered_head_is_refused(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"])
    made.publish(save(rows(4), tmp_path / "0.gpkg"))
    head = tmp_path / "head.json"
    lineage.head(made.dataset, out=head)
    made.publish(save(rows(4, p1={"owner": "b"}), tmp_path / "1.gpkg"))
    assert merestone.verify(made.dataset, head=head).whole
    head.write_text(head.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(SourceError, match="altered"):
        merestone.verify(made.dataset, head=head)
