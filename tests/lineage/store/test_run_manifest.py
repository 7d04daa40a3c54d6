"""Run manifests are read as they were sealed, or not at all."""

import json
from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.altered import JUNK, LEFT_OUT, altered, places
from lineage.events import TIME, event, table
from merestone.errors import CorruptError, MerestoneError
from merestone.lineage.event.record import make_sequence
from merestone.lineage.proof.inclusion import prove, verify_runs
from merestone.lineage.retention.expiry import prefixes
from merestone.lineage.store.reading import history, read_run, why
from merestone.lineage.store.run_manifest import attempts_of, read_manifest, runs_of, sealed_runs
from merestone.lineage.store.steps import run_steps
from merestone.lineage.store.verdict import conformance_summary, run_summary
from merestone.lineage.store.writing import Besides, RunWriter
from merestone.storage.local import LocalStore


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


QUESTIONS = [
    lambda store, _: sealed_runs(store),
    lambda store, _: conformance_summary(f"{store.url}/_lineage", "r2"),
    lambda store, _: run_summary(store, "r2"),
    lambda store, _: run_steps(store, attempts_of(store, "r2"), "_lineage"),
    lambda store, _: history(store, "a"),
    lambda store, _: why(store, "a"),
    lambda store, _: prefixes(store, date(2027, 1, 1)),
    lambda store, path: prove(store, path, "a"),
]


def test_no_value_in_a_run_manifest_is_taken_for_a_fault_of_ours(store, seal):
    """A run manifest that was tampered with may hold anything: it is named, and `verify` goes on to the others."""
    first = seal("r1", table([event("a")]))
    sealed = seal("r2", table([event("a", run="r2")]))
    path = sealed.run_manifest
    doc = json.loads(store.get(path)) | {"heads": [first.to_json()]}
    tried = 0
    for place in list(places(doc)):
        for value in [*JUNK, *([LEFT_OUT] if place and isinstance(place[-1], str) else [])]:
            store.delete(path)
            store.create(path, json.dumps(altered(doc, place, value)).encode())
            for question in QUESTIONS[tried % 4 :: 4]:  # each place meets all of them, a value at a time
                with suppress(MerestoneError):
                    question(store, path)
            tried += 1
            harmed = {each.path for each in verify_runs(store, remembered={first.run_manifest: first.sha256, path: sealed.sha256})}
            assert path in harmed
            assert first.run_manifest not in harmed
    assert tried > 400


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b'"', b"\x00"])
def test_what_is_no_json_object_is_named(store, seal, data):
    path = seal("r1", table([event("a")])).run_manifest
    store.delete(path)
    store.create(path, data)
    assert [each.path for each in verify_runs(store)] == [path]


def test_a_run_manifest_under_the_name_of_another_run_is_named(store, seal):
    """Otherwise a copied or planted attempt would count as evidence of a run that it knows nothing of."""
    sealed = seal("r1", table([event("a")]))
    seal("r2", table([event("a", "validate", "REJECT", run="r2")]))
    store.create("_lineage/_runs/r2-2.json", store.get(sealed.run_manifest))
    with pytest.raises(CorruptError, match=r"_runs/r2-2\.json is not a readable run manifest: it is that of _runs/r1-1\.json"):
        run_summary(store, "r2")
    assert [each.path for each in verify_runs(store)] == ["_lineage/_runs/r2-2.json"]


@pytest.fixture
def seal_at(store, tmp_path):
    def sealing(run, hour, heads=(), attempt=1):
        scratch = tmp_path / f"{run}-{attempt}"
        scratch.mkdir()
        writer = RunWriter(str(scratch), run, attempt, "n")
        writer.write(table([event("a", run=run, sequence=make_sequence(attempt, 0, 0))]))
        return writer.seal(
            store, run_date=date(2026, 3, 3), plan=["validate"], tool={}, time=TIME.replace(hour=hour), besides=Besides(heads)
        )

    return sealing


@given(clocks=st.lists(st.integers(0, 23), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_a_clock_that_is_set_back_does_not_turn_runs_round(tmp_path_factory, clocks):
    folder = tmp_path_factory.mktemp("clocks")
    store, heads = LocalStore(folder / "dataset"), ()
    for number, hour in enumerate(clocks):
        scratch = folder / str(number)
        scratch.mkdir()
        writer = RunWriter(str(scratch), f"r{number}", 1, "n")
        writer.write(table([event("a", run=f"r{number}")]))
        sealed = writer.seal(
            store, run_date=date(2026, 3, 3), plan=["validate"], tool={}, time=TIME.replace(hour=hour), besides=Besides(heads)
        )
        heads = [sealed.to_json()]
    wanted = [f"r{number}" for number in range(len(clocks))]
    assert [each.run_id for each in sealed_runs(store)] == wanted
    assert [each[-1].run_id for each in runs_of(store)] == wanted
    assert [each["run_id"] for each in why(store, "a")] == wanted[::-1]
    assert history(store, "a").column("run_id").to_pylist() == wanted
    assert [each.run_id for each in sealed_runs(LocalStore(store.root / "_lineage"), "")] == wanted


def test_the_last_attempt_of_a_run_is_that_of_the_highest_number_whatever_the_clock_says(store, seal_at):
    seal_at("r1", 9)
    seal_at("r1", 5, attempt=2)
    seal_at("r0", 7)
    assert [[each.attempt for each in attempts] for attempts in runs_of(store)] == [[1], [1, 2]]
    assert run_summary(store, "r1")["attempts"] == [1, 2]


def test_runs_that_claim_each_other_for_the_one_before_are_still_listed(store, seal_at):
    names = [seal_at(run, hour).run_manifest for run, hour in (("r0", 3), ("r1", 2))]
    for name, other in (names, names[::-1]):
        doc = json.loads(store.get(name)) | {"heads": [{"run_manifest": other, "sha256": "0" * 64, "root": "0" * 64}]}
        store.delete(name)
        store.create(name, json.dumps(doc).encode())
    assert len(sealed_runs(store)) == 2
    assert {each.path for each in verify_runs(store)} == set(names)
