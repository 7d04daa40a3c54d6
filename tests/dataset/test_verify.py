"""Verify names every object that is missing or altered, all at once, and nothing that is whole."""

import dataclasses
import json

import pyarrow.parquet as pq
import pytest

from dataset.build import Miniature, row
from merestone.dataset.current import POINTER, current, manifest_name
from merestone.dataset.manifest import FileSet, sha256
from merestone.dataset.pages import PartitionFiles, page_table
from merestone.dataset.verify import verify
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.storage.local import LocalStore
from merestone.writer.files import write_table

STATES = [{f"p{n}": row("a", n, (n, n), f"district=D{n % 3}") for n in range(9)}]
STATES.append({**STATES[0], "p0": row("b", 0, (5, 5), "district=D0")})


@pytest.fixture
def mini(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    for state in STATES:
        mini.publish(state)
    return mini


def test_a_whole_dataset_has_no_damage(mini):
    seen = []
    report = verify(mini.store, seen.append)
    assert report.damages == ()
    assert report.whole
    assert report.versions == (1, 2)
    assert report.objects == 8, "four data files, two change logs and two pages"
    steps = [each.rows for each in seen]
    assert len(steps) == 10, "the begin, each object, and the end"
    assert (steps[0], steps[-1], seen[-1].total) == (0, report.rows, report.rows)
    assert steps == sorted(steps)
    assert [each.ended for each in seen] == [False] * 9 + [True]
    assert report.to_json()["status"] == "whole"
    json.dumps(report.to_json())


def test_nothing_published_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="holds no published dataset"):
        verify(LocalStore(tmp_path / "empty"))


def cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(("change", "problem"), [(lambda path: path.unlink(), "missing"), (cut, "cut or grown"), (flip, "altered")])
@pytest.mark.parametrize("which", ["new file", "carried file", "superseded file", "log"])
def test_each_damaged_object_is_named_with_its_versions(mini, which, change, problem):
    dataset = Dataset(mini.store)
    new, old = dataset.files(2), dataset.files(1)
    carried = next(file for file in new if file.version == 1)
    path, versions = {
        "new file": (next(file.path for file in new if file.version == 2), (2,)),
        "carried file": (carried.path, (1, 2)),
        "superseded file": (next(file.path for file in old if file not in new), (1,)),
        "log": (dataset.manifest(1).changes.path, (1, 2)),
    }[which]
    change(mini.store.root / path)
    damages = verify(mini.store).damages
    assert [(each.path, each.problem, tuple(sorted(each.versions))) for each in damages] == [(path, problem, versions)]
    assert not verify(mini.store).whole


def test_all_damages_come_at_once(mini):
    names = [file.path for file in Dataset(mini.store).files()]
    for name in names:
        flip(mini.store.root / name)
    assert {each.path for each in verify(mini.store).damages} == set(names)


@pytest.mark.parametrize("name", [POINTER, manifest_name(2), manifest_name(1)])
@pytest.mark.parametrize("change", [flip, cut, lambda path: path.unlink()])
def test_a_broken_chain_is_named(mini, name, change):
    change(mini.store.root / name)
    report = verify(mini.store)
    assert not report.whole
    assert name in {report.damages[0].path} | set(report.damages[0].problem.split())


def filed(mini, files):
    """A page with exactly these files, as a manifest names it."""
    entries = {}
    for file in files:
        entries.setdefault(file.partition, []).append(file)
    rows = page_table(PartitionFiles(name, None, tuple(each)) for name, each in entries.items())
    ref = write_table(mini.store, f"_pages/forged-{len(list(mini.store.list('_pages/')))}.parquet", rows.table)
    return FileSet((ref,), len(files), sum(each.bytes for each in files), None)


def rewrite(mini, **other):
    """Another manifest for the current version, with a pointer that fits."""
    head = current(mini.store)
    data = dataclasses.replace(head.manifest, **other).to_bytes()
    (mini.store.root / manifest_name(2)).write_bytes(data)
    (mini.store.root / POINTER).write_bytes(dataclasses.replace(head.pointer, sha256=sha256(data)).to_bytes())


def test_counts_and_set_digest_are_recomputed(mini):
    manifest, files = current(mini.store).manifest, Dataset(mini.store).files()
    rewrite(mini, set_digest="0" * 32)
    assert [each.problem for each in verify(mini.store).damages] == ["the set digest is not that of the index"]
    rewrite(mini, set_digest=manifest.set_digest, features=10)
    assert [each.problem for each in verify(mini.store).damages] == ["the files do not add up", "the index does not add up"]
    rewrite(mini, features=9, files=filed(mini, files[1:]))
    assert {each.problem for each in verify(mini.store).damages} >= {"the files do not add up", "partition district=D0 does not add up"}


def test_a_file_without_geo_metadata_is_not_geoparquet(mini):
    file, *others = Dataset(mini.store).files()
    path = mini.store.root / file.path
    table = pq.read_table(path)
    bare = json.dumps({"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}})
    for metadata, observed in (({}, "no `geo` metadata"), ({"geo": "{"}, "unreadable"), ({"geo": bare}, "no geometry_types")):
        pq.write_table(table.replace_schema_metadata(metadata), path)
        data = path.read_bytes()
        whole = dataclasses.replace(file, bytes=len(data), sha256=sha256(data))
        rewrite(mini, files=filed(mini, (whole, *others)))
        damages = [each for each in verify(mini.store).damages if each.problem == "not GeoParquet"]
        assert [each.path for each in damages] == [file.path]
        assert damages[0].observed.startswith(observed)


def test_another_number_of_rows_is_named(mini):
    file, *others = Dataset(mini.store).files()
    rewrite(mini, files=filed(mini, (dataclasses.replace(file, rows=file.rows + 1), *others)))
    assert "another number of rows" in {each.problem for each in verify(mini.store).damages}


def test_orphans_are_told_and_are_no_damage(mini):
    mini.store.create(manifest_name(7), mini.store.get(manifest_name(2)))
    report = verify(mini.store)
    assert report.whole
    assert report.orphans == (manifest_name(7),)


def test_the_log_of_a_rewritten_history_is_a_damage(mini):
    """Two versions that say different things of one object cannot both be right."""
    files = Dataset(mini.store).files()
    wrong = dataclasses.replace(next(file for file in files if file.version == 1), sha256="0" * 64)
    rewrite(mini, files=filed(mini, tuple(wrong if file.path == wrong.path else file for file in files)))
    assert "two versions say different things of one object" in {each.problem for each in verify(mini.store).damages}
