"""Run manifests are read as they were sealed, or not at all."""

import json

import pytest

from lineage.events import event, table
from merestone.errors import CorruptError
from merestone.lineage.reading import read_run
from merestone.lineage.run_manifest import read_manifest, sealed_runs


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"format": 2}', b"\xff"])
def test_a_damaged_run_manifest_is_named(store, text):
    store.create("_lineage/_runs/r1-1.json", text)
    with pytest.raises(CorruptError, match=r"r1-1\.json"):
        sealed_runs(store)


@pytest.mark.parametrize(("version", "read"), [("1.2.0", True), ("1.99.0", True), ("2.0.0", False), ("0.9.0", False), ("1.x", False)])
def test_events_of_another_major_version_are_not_read_as_if_they_meant_the_same(store, seal, version, read):
    sealed = seal("r1", table([event("a")]))
    doc = json.loads(store.get(sealed.run_manifest))
    store.delete(sealed.run_manifest)
    store.create(sealed.run_manifest, json.dumps({**doc, "schema_version": version}).encode())
    if read:
        assert read_run(store, "r1").num_rows == 1
    else:
        with pytest.raises(CorruptError, match=f"is of lineage schema {version}"):
            read_run(store, "r1")


def test_a_run_manifest_with_another_checksum_is_named(store, seal):
    sealed = seal("r1", table([event("a")]))
    assert read_manifest(store, sealed.run_manifest, sha256=sealed.sha256).root == sealed.root
    with pytest.raises(CorruptError, match="checksum differs"):
        read_manifest(store, sealed.run_manifest, sha256="0" * 64)
    with pytest.raises(CorruptError, match="is missing"):
        read_manifest(store, "_lineage/_runs/r9-1.json")
