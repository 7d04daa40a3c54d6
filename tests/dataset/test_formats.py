"""What stands on disk is what docs/spec says: JSON documents against their schemas, tables against their columns."""

import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from dataset.build import Miniature, row
from merestone.dataset.current import POINTER, Pointer, current, manifest_name
from merestone.dataset.manifest import Manifest
from merestone.dataset.pages import FileEntries
from merestone.dataset.partition import TREE_SCHEMA
from merestone.dataset.record import RunRecord
from merestone.dataset.tables import ChangeLog, CheckpointRows, WithdrawnRows
from merestone.errors import CorruptError
from merestone.gate.findings import FindingLines
from merestone.storage.local import LocalStore
from merestone.writer.commit import begin
from merestone.writer.files import Rejects
from merestone.writer.records import Intent, write_up_abandoned
from merestone.writer.rollback import rollback

SPEC = Path(__file__).parents[2] / "docs" / "spec"
NOW = "2026-03-09T00:00:00Z"


def schema(name):
    return json.loads((SPEC / f"{name}.schema.json").read_text(encoding="utf-8"))


def strict(node):
    """The same schema, but nothing that it does not name may stand in the document: what we write is all documented."""
    if isinstance(node, list):
        return [strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    node = {key: strict(value) for key, value in node.items()}
    if "required" in node and "properties" in node:
        node["additionalProperties"] = False
    return node


def check(name, data, *, closed=True):
    document = schema(name)
    jsonschema.Draft202012Validator.check_schema(document)
    jsonschema.Draft202012Validator(strict(document) if closed else document).validate(json.loads(data))


@pytest.fixture
def mini(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    mini.publish({"p": row(), "q": row(None, None, None, "district=D2")})
    mini.publish({"p": row("b"), "q": row(None, None, None, "district=D2")})
    return mini


def start(mini, run_id="r"):
    head = current(mini.store)
    return begin(mini.store, run_id=run_id, nonce="n", name="parcels", started_utc=NOW, parent=head), head


def test_what_is_written_fits_the_schemas(mini):
    attempt, head = start(mini)
    check("intent", mini.store.get("_intents/r-1.json"))
    done = rollback(attempt, head, to=1, reason="wrong export", now=NOW)
    attempt.leave()
    write_up_abandoned(mini.store, now=NOW, by="next")
    attempt, _ = start(mini, "dead")
    attempt.leave()
    write_up_abandoned(mini.store, now=NOW, by="next")
    check("pointer", mini.store.get(POINTER))
    for number in (1, 2, done.committed.manifest.version):
        check("manifest", mini.store.get(manifest_name(number)))
    records = [name for name, _ in mini.store.list("_runs/")]
    assert len(records) == 4
    for name in records:
        check("run-record", mini.store.get(name))


@pytest.mark.parametrize("name", ["manifest", "pointer", "intent", "run-record"])
def test_later_fields_are_allowed_and_missing_ones_are_not(mini, name):
    attempt, _ = start(mini)
    data = {
        "manifest": mini.store.get(manifest_name(2)),
        "pointer": mini.store.get(POINTER),
        "intent": mini.store.get("_intents/r-1.json"),
        "run-record": mini.store.get(next(iter(mini.store.list("_runs/")))[0]),
    }[name]
    attempt.leave()
    document = json.loads(data)
    check(name, json.dumps({**document, "later": 1}), closed=False)
    with pytest.raises(jsonschema.ValidationError):
        check(name, json.dumps({**document, "later": 1}))
    for key in schema(name)["required"]:
        less = {other: value for other, value in document.items() if other != key}
        with pytest.raises(jsonschema.ValidationError):
            check(name, json.dumps(less), closed=False)


def test_values_come_back_from_their_bytes(mini):
    manifest = current(mini.store).manifest
    assert Manifest.from_bytes(manifest.to_bytes(), where="m") == manifest
    pointer = current(mini.store).pointer
    assert Pointer.from_bytes(pointer.to_bytes()) == pointer
    intent = Intent("r", 1, "n", "parcels", NOW, None)
    assert Intent.from_bytes(intent.to_bytes(), where="i") == intent
    record = RunRecord("r", 1, "refused", "parcels", NOW, None, refused_by="guard", findings=[{"rule": "x"}], stages={"pass 1": 0.5})
    assert RunRecord.from_bytes(record.to_bytes(), where="r") == record


def test_a_manifest_of_a_later_format_says_so(mini):
    data = current(mini.store).manifest.to_bytes().replace(b'"format": 1', b'"format": 2')
    with pytest.raises(CorruptError, match="format 2"):
        Manifest.from_bytes(data, where="m")


def documented(title, page="changes.md"):
    """The (column, type) pairs of a table in a page of docs/spec."""
    text = (SPEC / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    return [(name.strip(" `"), kind.strip()) for name, kind in rows]


def shown(arrow):
    # Parquet calls the items of a list "element".
    return [(each.name, str(each.type).replace("<element:", "<item:") + ("" if each.nullable else ", not null")) for each in arrow]


@pytest.mark.parametrize(
    ("title", "arrow"),
    [
        ("Change log", ChangeLog.schema),
        ("Index checkpoint", CheckpointRows.schema),
        ("Findings", FindingLines.schema),
        ("Rejects", Rejects.schema),
    ],
)
def test_the_documented_columns_are_those_of_the_code(title, arrow):
    assert documented(title) == shown(arrow)


@pytest.mark.parametrize(
    ("title", "arrow"), [("Pages", FileEntries.schema), ("Splits", TREE_SCHEMA), ("Withdrawn features", WithdrawnRows.schema)]
)
def test_the_documented_columns_of_pages_are_those_of_the_code(title, arrow):
    assert documented(title, "manifest.md") == shown(arrow)


def test_the_change_log_on_disk_has_the_documented_columns(mini):
    path = mini.store.root / current(mini.store).manifest.changes.path
    assert shown(pq.read_schema(path)) == documented("Change log")
