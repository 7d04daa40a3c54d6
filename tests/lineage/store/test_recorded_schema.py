"""A store keeps the schema of its events; what conflicts with it is neither written nor read."""

import hashlib
import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.altered import sealed_again
from lineage.events import event, table
from merestone.errors import CorruptError
from merestone.lineage.event.schema import SCHEMA, VERSION_KEY, schema_text
from merestone.lineage.proof.inclusion import prove, verify_runs
from merestone.lineage.store import recorded_schema
from merestone.lineage.store.reading import history, read_run, scan
from merestone.lineage.store.run_manifest import attempts_of
from merestone.lineage.store.verdict import conformance_summary

SHIPPED = f"_lineage/_schemas/{SCHEMA.version}.yaml"
NEXT = "1.4.0"


def record(store, text, version=SCHEMA.version):
    path = f"_lineage/_schemas/{version}.yaml"
    if store.size(path) is not None:
        store.delete(path)
    store.create(path, text.encode())
    return path


def test_the_schema_stands_beside_the_events_once(store, seal):
    seal("r1", table([event("a")]))
    seal("r2", table([event("a", run="r2")]))
    assert [name for name, _ in store.list("_lineage/_schemas/")] == [SHIPPED]
    assert store.get(SHIPPED).decode() == schema_text()
    assert verify_runs(store) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("- name: audit_tag", "- name: label"), "field label is gone"),
        (lambda text: text.replace("type: float64", "type: int64"), "field accuracy_m turns from int64 to float64"),
        (
            lambda text: text.replace("enum: [PASS, REJECT, WARN]", "enum: [PASS, REJECT, WARN, HELD]"),
            "field outcome loses the values HELD",
        ),
        (lambda text: text.replace("partition_keys: [run_id, target_crs]", "partition_keys: [run_id]"), "partition_keys"),
        (lambda text: text.replace("required: true", "required: false", 1), "field event_id turns required"),
        (
            lambda text: text.replace(
                "  - name: contract_version", "  - name: later\n    type: string\n    required: false\n  - name: contract_version"
            ),
            "field later is gone",
        ),
        (lambda text: text[:200], "is not a readable schema"),
        (lambda text: text.replace("schema_version: 1.3.0", "schema_version: 1.2.0"), "holds schema 1.2.0"),
    ],
    ids=["renamed", "narrowed", "value", "partitions", "requirement", "unknown", "torn", "misnamed"],
)
def test_a_store_of_another_schema_takes_no_events(store, seal, change, said):
    seal("r1", table([event("a")]))
    path = record(store, change(schema_text()))
    before = sorted(store.list(""))
    with pytest.raises(CorruptError, match=r"does not go into this store, _lineage/_schemas/.*yaml") as fault:
        seal("r2", table([event("a", run="r2")]))
    assert said in fault.value.message
    assert sorted(store.list("")) == before
    assert [each.path for each in verify_runs(store)] == [path]


@pytest.mark.parametrize("version", [NEXT, "2.0.0"])
def test_a_store_that_a_newer_version_wrote_to_takes_no_events(store, seal, version):
    record(store, schema_text().replace(f"schema_version: {SCHEMA.version}", f"schema_version: {version}"), version)
    with pytest.raises(CorruptError, match=r"falls from|another major version"):
        seal("r1", table([event("a")]))


def test_a_store_of_an_older_minor_version_goes_on(store, seal):
    older = schema_text().replace("schema_version: 1.3.0", "schema_version: 1.2.0").partition("  - name: change_class")[0]
    record(store, older, "1.2.0")
    seal("r1", table([event("a")]))
    assert sorted(name for name, _ in store.list("_lineage/_schemas/")) == ["_lineage/_schemas/1.2.0.yaml", SHIPPED]


def test_other_words_for_the_same_fields_are_no_conflict(store, seal):
    record(store, schema_text().replace("the verdict;", "the outcome;"))
    assert seal("r1", table([event("a")])).events == 1


def test_two_writers_may_record_the_same_schema_at_once(store, seal, monkeypatch):
    monkeypatch.setattr(type(store), "size", lambda *_: None)  # each of them saw that it was not there yet
    seal("r1", table([event("a")]))
    assert seal("r2", table([event("a", run="r2")])).events == 1


def rewritten(store, sealed, change):
    """The part of a sealed run under another Arrow schema, with the checksum that it has now."""
    part = f"_lineage/{sealed.parts[0].path}"
    told = change(pq.read_table(pa.BufferReader(store.get(part)), partitioning=None))
    out = io.BytesIO()
    pq.write_table(told, out)
    store.delete(part)
    store.create(part, out.getvalue())
    return part


def as_type(name, kind):
    def change(told):
        at = told.schema.get_field_index(name)
        return told.set_column(at, told.schema.field(at).with_type(kind), told.column(name).cast(kind))

    return change


def versioned(version):
    return lambda told: told.replace_schema_metadata({VERSION_KEY: version})


def loose(name):
    def change(told):
        at = told.schema.get_field_index(name)
        return told.set_column(at, pa.field(name, told.schema.field(at).type), pa.nulls(len(told), told.schema.field(at).type))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (as_type("sequence", pa.string()), "field sequence turns from string to int64"),
        (as_type("sequence", pa.int32()), "field sequence turns from int32 to int64|fields are new"),
        (as_type("event_time_utc", pa.timestamp("us")), "field event_time_utc turns from"),
        (lambda told: told.drop_columns(["outcome"]), "field outcome is new and required"),
        (lambda told: told.drop_columns(["audit_tag"]), "fields are new, so schema_version needs a higher minor version"),
        (lambda told: told.append_column("later", pa.nulls(len(told), pa.string())), "field later is gone"),
        (versioned("2.0.0"), "is of lineage schema 2.0.0"),
        (versioned("1.x"), "is of lineage schema 1.x"),
        (lambda told: told.replace_schema_metadata({}), "is of lineage schema unknown"),
        (loose("outcome"), "lacks outcome in "),
    ],
    ids=["text", "int32", "zone", "missing", "optional", "unknown", "major", "version", "unversioned", "null"],
)
def test_a_part_of_another_schema_is_not_read_as_if_it_meant_the_same(store, seal, change, said):
    sealed = seal("r1", table([event("a"), event("b", sequence=2)]))
    rewritten(store, sealed, change)
    attempts = attempts_of(store, "r1")
    whole = [lambda: read_run(store, "r1"), lambda: history(store, "a")]
    some = [
        lambda: conformance_summary(f"{store.url}/_lineage", "r1"),
        lambda: list(scan(store, attempts, names=("feature_id", "outcome"), rows=1)),
    ]
    for question in [*whole, *some]:
        with pytest.raises(CorruptError, match=re.escape(sealed.parts[0].path)) as fault:
            question()
        assert any(each in fault.value.message for each in said.split("|"))


def test_events_of_an_older_minor_version_are_read(store, seal):
    sealed = seal("r1", table([event("a"), event("b", sequence=2)]))
    rewritten(
        store,
        sealed,
        lambda told: versioned("1.2.0")(told.drop_columns(["change_class", "from_partition", "to_partition", "contract_version"])),
    )
    assert read_run(store, "r1").column("change_class").to_pylist() == [None, None]
    assert history(store, "b").column("contract_version").to_pylist() == [None]
    assert conformance_summary(f"{store.url}/_lineage", "r1")["passed"] == 2


def newer(told):
    """As a later minor version writes: a further optional field at the end."""
    return versioned(NEXT)(told.append_column("later", pa.array(["x"] * len(told))))


def test_events_of_a_newer_minor_version_are_read_but_not_called_altered(store, seal):
    sealed = seal("r1", table([event("a"), event("b", sequence=2)]))
    part = rewritten(store, sealed, newer)
    doc = json.loads(store.get(sealed.run_manifest))
    data = store.get(part)
    doc["parts"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    store.delete(sealed.run_manifest)
    store.create(sealed.run_manifest, sealed_again({**doc, "schema_version": NEXT}))
    assert read_run(store, "r1").column("feature_id").to_pylist() == ["a", "b"]
    assert history(store, "b").num_rows == 1
    [found] = verify_runs(store)
    assert (found.path, f"of lineage schema {NEXT}" in found.message, "differs" in found.message) == (part, True, False)
    with pytest.raises(CorruptError, match=f"of lineage schema {NEXT}"):
        prove(store, sealed.run_manifest, "a")


def test_a_publish_is_refused_before_its_work_is_done(store):
    record(store, schema_text().replace("- name: audit_tag", "- name: label"))
    with pytest.raises(CorruptError, match="field label is gone"):
        recorded_schema.check_schema(store, "_lineage")
    assert [name for name, _ in store.list("")] == [SHIPPED]
