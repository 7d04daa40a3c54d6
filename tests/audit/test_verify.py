"""Whatever is altered in a published dataset with its lineage, in versions or in runs that made none, is named by its path."""

import hashlib
import io
import json

import pyarrow.parquet as pq
import pytest

from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.audit.ingest import ingest
from merestone.audit.verify import verify
from merestone.lineage.store.run_manifest import sealed_runs


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Two versions and a refused run."""
    folder = tmp_path_factory.mktemp("verify")
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    made = Estate(folder / "product", fields, geometry_type="point", key=["pid"]).agreed()
    for number, given in enumerate((rows(), rows(p3={"owner": "b"}, p7=None))):
        assert made.publish(save(given, folder / f"{number}.gpkg")).status == "published"
    made.refused = made.publish(save(rows(p3={"owner": None}), folder / "bad.gpkg")).result.run_id
    return made


@pytest.fixture
def altered(nights):
    """Alter objects of the dataset; they are as they were after the test."""
    kept = {}

    def alter(name, data):
        place = nights.url / name
        kept.setdefault(place, place.read_bytes())
        if data is None:
            place.unlink()
        else:
            place.write_bytes(data)

    yield alter
    for place, data in kept.items():
        place.write_bytes(data)


def manifest_of(run):
    return f"_lineage/_runs/{run}-1.json"


def runs(nights):
    return {"first": nights.manifest(1).run_id, "second": nights.manifest(2).run_id, "refused": nights.refused}


def part_of(nights, run):
    doc = json.loads((nights.url / manifest_of(run)).read_text())
    return f"_lineage/{doc['parts'][0]['path']}"


def damages(nights):
    return {each.path: each.versions for each in verify(nights.dataset.store).damages}


def test_what_was_published_is_whole(nights):
    seen = []
    report = verify(nights.dataset.store, seen.append)
    assert report.whole
    assert [each.stage for each in seen if each.ended] == ["prove", "prove lineage"]
    assert report.versions == (1, 2)


@pytest.mark.parametrize(("run", "versions"), [("first", (1,)), ("second", (2,)), ("refused", ())])
@pytest.mark.parametrize(
    "change",
    [lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:], lambda _: None, lambda data: data[:-9]],
    ids=["flip", "drop", "cut"],
)
def test_an_altered_part_is_named_with_its_versions(nights, altered, run, versions, change):
    name = part_of(nights, runs(nights)[run])
    altered(name, change((nights.url / name).read_bytes()))
    assert damages(nights) == {name: versions}


@pytest.mark.parametrize(("run", "versions"), [("first", (1,)), ("second", (2,)), ("refused", ())])
@pytest.mark.parametrize("change", [lambda data: data + b" ", lambda _: None], ids=["replace", "drop"])
def test_an_altered_run_manifest_is_named_even_of_a_run_that_made_no_version(nights, altered, run, versions, change):
    name = manifest_of(runs(nights)[run])
    altered(name, change((nights.url / name).read_bytes()))
    assert damages(nights) == {name: versions}


def test_an_edited_row_is_found_even_where_every_checksum_beside_it_was_mended(nights, altered):
    run = runs(nights)["refused"]
    name, sealed = part_of(nights, run), manifest_of(run)
    table = pq.read_table(nights.url / name, partitioning=None)
    place = table.schema.get_field_index("rejection_reason")
    said = table.column(place).to_pylist()
    changed = [each and each.replace("owner", "ownex") for each in said]
    assert changed != said
    out = io.BytesIO()
    pq.write_table(table.set_column(place, table.schema.field(place), [changed]), out, compression="zstd")
    altered(name, out.getvalue())
    doc = json.loads((nights.url / sealed).read_text())
    doc["parts"][0] |= {"bytes": len(out.getvalue()), "sha256": hashlib.sha256(out.getvalue()).hexdigest()}
    altered(sealed, json.dumps(doc).encode())
    record = f"_runs/{run}-1.json"
    told = json.loads((nights.url / record).read_text())
    told["lineage"]["sha256"] = hashlib.sha256(json.dumps(doc).encode()).hexdigest()
    altered(record, json.dumps(told).encode())
    assert name in damages(nights)


def test_runs_that_changed_places_are_named(nights, altered):
    first, second = (manifest_of(runs(nights)[each]) for each in ("first", "second"))
    one, other = (nights.url / first).read_bytes(), (nights.url / second).read_bytes()
    altered(first, other)
    altered(second, one)
    assert {first, second} <= set(damages(nights))


@pytest.mark.parametrize("name", ["_manifests/v000001.json", "_manifests/v000002.json"])
def test_a_replaced_manifest_of_a_version_is_named(nights, altered, name):
    altered(
        name, (nights.url / name).read_bytes().replace(b'"features": 39', b'"features": 40').replace(b'"features": 40', b'"features": 41')
    )
    assert any(path in (name, "_current.json") for path in damages(nights))


def test_an_altered_run_record_is_named(nights, altered):
    name = f"_runs/{nights.refused}-1.json"
    altered(name, b"{}")
    assert damages(nights) == {name: ()}


EVENT = {
    "run_id": "f1",
    "sequence": 1,
    "event_time_utc": "2024-05-01T10:00:00Z",
    "stage": "validate",
    "event_type": "VALIDATE",
    "feature_id": "p1",
    "source_crs": "EPSG:25832",
    "target_crs": "EPSG:25832",
    "outcome": "PASS",
}


def test_no_run_vanishes_with_its_record_once_another_was_sealed(tmp_path):
    """A refused run and an ingested one have no version as a witness: the run after them is it."""
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    made = Estate(tmp_path / "product", fields, geometry_type="point", key=["pid"]).agreed()
    made.publish(save(rows(), tmp_path / "0.gpkg"))
    (tmp_path / "events.ndjson").write_text(json.dumps(EVENT) + "\n")
    ingest(str(made.url), str(tmp_path / "events.ndjson"))
    refused = made.publish(save(rows(p3={"owner": None}), tmp_path / "bad.gpkg")).result.run_id
    made.publish(save(rows(p3={"owner": "b"}), tmp_path / "1.gpkg"))
    store = made.dataset.store
    assert verify(store).whole
    assert [each.run_id for each in sealed_runs(store)] == [made.manifest(1).run_id, "f1", refused, made.manifest(2).run_id]
    for path, record in (("_lineage/_runs/f1-0.json", None), (manifest_of(refused), f"_runs/{refused}-1.json")):
        kept = {name: (made.url / name).read_bytes() for name in (path, record) if name is not None}
        for name in kept:
            (made.url / name).unlink()
        assert path in {each.path for each in verify(store).damages}
        for name, data in kept.items():
            (made.url / name).write_bytes(data)
    assert verify(store).whole


def test_a_damaged_run_manifest_does_not_stop_the_next_night(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"]).agreed()
    made.publish(save(rows(), tmp_path / "0.gpkg"))
    (tmp_path / "events.ndjson").write_text(json.dumps(EVENT) + "\n")
    ingest(str(made.url), str(tmp_path / "events.ndjson"))
    (made.url / "_lineage/_runs/f1-0.json").write_text('{"torn')
    assert made.publish(save(rows(p3={"owner": "b"}), tmp_path / "1.gpkg")).status == "published"
    assert "_lineage/_runs/f1-0.json" in {each.path for each in verify(made.dataset.store).damages}
