"""Pages and history: any sequence of versions leaves the entries and lines that a plain dictionary leaves, and few objects to read."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.build import Miniature, row
from merestone.dataset.current import Current, Pointer, current, manifest_name
from merestone.dataset.history import line, lines
from merestone.dataset.manifest import DataFile, FileSet, line_of, sha256
from merestone.dataset.pages import PartitionFiles, live_entries, live_files
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError, UsageError
from merestone.storage.local import LocalStore
from merestone.writer.commit import begin
from merestone.writer.history import RECENT, next_history
from merestone.writer.pages import MOST_PAGES, write_page
from merestone.writer.rollback import rollback
from stores import fresh

NAMES = [f"d={n}" for n in range(9)]
BOX = st.none() | st.tuples(*[st.floats(-1e9, 1e9)] * 4)
NIGHTS = st.lists(st.dictionaries(st.sampled_from(NAMES), st.lists(BOX, max_size=2), max_size=4), max_size=60)


def written(version, partition, boxes):
    """The files that a version writes in a partition, one for each box."""
    return tuple(
        DataFile(
            f"data/{partition}/r{version}-n-{n}.parquet",
            n + 1,
            100 * version + n,
            sha256(f"{version}{partition}{n}".encode()),
            partition,
            box,
            run_id=f"r{version}",
            footer_sha256=sha256(b"f"),
            tag="e" if n else None,
        )
        for n, box in enumerate(boxes)
    )


@given(NIGHTS, st.booleans())
@settings(deadline=None)
def test_pages_and_checkpoints_give_what_a_dictionary_gives(nights, by_column):
    store, files, plain = fresh(), FileSet(), {}
    for version, night in enumerate(nights, 1):
        new = {name: PartitionFiles(name, name[2:] if by_column else None, written(version, name, boxes)) for name, boxes in night.items()}
        old = live_entries(store, files)
        files = write_page(store, f"r{version}-n", version, files, old, new)
        plain |= {name: [dataclasses.replace(file, version=version) for file in each.files] for name, each in new.items()}
        live = live_files(store, files)
        assert list(live) == sorted((file for each in plain.values() for file in each), key=lambda file: file.path)
        assert (files.count, files.bytes) == (len(live), sum(file.bytes for file in live))
        boxes = [file.bbox for file in live if file.bbox is not None]
        assert files.bbox == (
            tuple(f(side) for f, side in zip((min, min, max, max), zip(*boxes, strict=True), strict=True)) if boxes else None
        )
        assert 1 <= len(files.pages) <= MOST_PAGES
        if by_column:
            assert {each.value for each in live_entries(store, files).values()} == {name[2:] for name in plain}, "a value keeps its name"


def test_a_version_writes_what_it_replaces_and_a_checkpoint_when_the_log_is_long():
    store = fresh()
    names = [f"d={n}" for n in range(120)]
    files = write_page(store, "r1-n", 1, FileSet(), {}, {name: PartitionFiles(name, None, written(1, name, [None])) for name in names})
    rows = []
    for version in range(2, 2 + 2 * MOST_PAGES):
        name = names[version % 100]
        files = write_page(
            store,
            f"r{version}-n",
            version,
            files,
            live_entries(store, files),
            {name: PartitionFiles(name, None, written(version, name, [None]))},
        )
        rows.append(files.pages[-1].rows)
        assert len(files.pages) <= MOST_PAGES
    assert sorted(set(rows)) == [1, 120]
    assert rows.count(120) == 2
    many = {name: PartitionFiles(name, None, written(99, name, [None])) for name in names[:31]}
    assert write_page(store, "r99-n", 99, files, live_entries(store, files), many).pages[-1].rows == 120, "more than a quarter"


def test_a_version_that_replaces_nothing_writes_no_page():
    store = fresh()
    files = write_page(store, "r1-n", 1, FileSet(), {}, {"": PartitionFiles("", None, written(1, "", [None]))})
    assert write_page(store, "r2-n", 2, files, live_entries(store, files), {}) == files


def test_pages_that_do_not_add_up_are_corrupt():
    store = fresh()
    files = write_page(store, "r1-n", 1, FileSet(), {}, {"": PartitionFiles("", None, written(1, "", [None]))})
    for wrong in (dataclasses.replace(files, count=2), dataclasses.replace(files, bytes=1)):
        with pytest.raises(CorruptError, match=r"_pages/r1-n-1\.parquet"):
            live_entries(store, wrong)


# --- history ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """One real manifest, to make many of."""
    mini = Miniature(LocalStore(tmp_path_factory.mktemp("history") / "ds"))
    mini.publish({"p": row()})
    return current(mini.store)


def follow(store, head, base, version):
    """A version on top of `head`, without files of its own."""
    manifest = dataclasses.replace(
        base.manifest,
        version=version,
        parent=head.manifest.version if head else None,
        parent_sha256=head.sha256 if head else None,
        history=next_history(store, head, f"r{version}-n"),
    )
    data = manifest.to_bytes()
    store.create(manifest_name(version), data)
    pointer = Pointer(manifest_name(version), version, manifest.run_id, sha256(data))
    return Current(pointer.to_bytes(), pointer, manifest, sha256(data))


def test_the_history_holds_every_version_in_few_objects(base, monkeypatch):
    monkeypatch.setattr("merestone.writer.history.RECENT", 4)
    store, head, expected = fresh(), None, []
    real = store.get
    for version in range(1, 2 * 64 + 3 * 4 + 4):
        head = follow(store, head, base, 2 * version)  # gaps are legal
        expected.insert(0, line_of(head.manifest, head.sha256))
        assert len(head.manifest.history.chunks) <= 3 * 3
        assert len(head.manifest.history.recent) < 4
    reads = []
    store.get = lambda name: (reads.append(name), real(name))[1]
    assert list(lines(store, head)) == expected
    assert len(reads) == len(head.manifest.history.chunks) == 5, "two chunks of 64 versions and three of 4"
    for wanted in expected:
        reads.clear()
        assert line(store, head, wanted.version) == wanted
        assert len(reads) <= 1
    assert line(store, head, 3) is None
    assert line(store, head, expected[0].version + 2) is None


def test_an_old_version_is_read_without_those_between(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    for n in range(RECENT + 3):
        mini.publish({"p": row(rank=n)})
    reads = []
    real = mini.store.get
    mini.store.get = lambda name: (reads.append(name), real(name))[1]
    assert Dataset(mini.store).to_arrow(version=2)["rank"].to_pylist() == [1]
    assert [name for name in reads if name.startswith("_manifests/")] == [manifest_name(RECENT + 3), manifest_name(2)]
    with pytest.raises(UsageError, match="no version 99"):
        Dataset(mini.store).manifest(99)


def test_a_damaged_piece_of_the_history_is_named(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    for n in range(RECENT + 2):
        mini.publish({"p": row(rank=n)})
    ((name, size),) = mini.store.list("_history/")
    path = Path(mini.store.root / name)
    data = path.read_bytes()
    for at in range(0, size, 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(CorruptError, match=name):
            Dataset(mini.store).versions()
    path.write_bytes(data)
    assert Dataset(mini.store).versions() == list(range(1, RECENT + 3))


def test_a_roll_back_names_the_pages_of_the_version_it_goes_back_to(tmp_path):
    mini = Miniature(LocalStore(tmp_path / "ds"))
    first = mini.publish({"p": row(), "q": row(partition="district=D2")})
    mini.publish({"p": row("b"), "q": row(partition="district=D2")})
    head = current(mini.store)
    attempt = begin(mini.store, run_id="r", nonce="n", name="parcels", started_utc=mini.time(), parent=head)
    done = rollback(attempt, head, to=1, reason="wrong", now=mini.time())
    attempt.leave()
    assert done.committed.manifest.files == first.files
    assert Dataset(mini.store).files() == Dataset(mini.store).files(1)
