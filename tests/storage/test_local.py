"""What the local store promises: whole objects or none, one winner in every race, and faults that name the folder."""

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from merestone.errors import StoreError, UsageError
from merestone.storage import local
from merestone.storage.local import LocalStore
from merestone.storage.open import open_store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "ds")


def hidden(folder):
    return [path.name for path in Path(folder).rglob(".*") if path.name.endswith(".tmp")]


def python(code, *args):
    """Another process that runs `code` with the store's root and `args`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, args)], env=env, stdout=subprocess.PIPE, text=True)


def test_an_object_comes_back_as_it_was_created(store):
    store.create("data/a=1/x.parquet", b"abc")
    assert store.get("data/a=1/x.parquet") == b"abc"
    assert store.size("data/a=1/x.parquet") == 3
    with store.open("data/a=1/x.parquet") as handle:
        handle.seek(1)
        assert handle.read() == b"bc"


def test_create_never_replaces(store):
    store.create("a", b"1")
    with pytest.raises(FileExistsError):
        store.create("a", b"2")
    assert store.get("a") == b"1"
    assert hidden(store.root) == []


def test_create_from_copies_a_file(store, tmp_path):
    big = os.urandom(3 * 1024 * 1024 + 7)
    (tmp_path / "part").write_bytes(big)
    store.create_from("data/part", str(tmp_path / "part"))
    assert store.get("data/part") == big
    with pytest.raises(FileExistsError):
        store.create_from("data/part", str(tmp_path / "part"))


def test_absence_is_told_apart_from_inability(store):
    with pytest.raises(FileNotFoundError):
        store.get("nothing")
    with pytest.raises(FileNotFoundError):
        store.open("no/thing")
    assert store.size("nothing") is None
    assert list(store.list("no/")) == []
    store.delete("nothing")
    (store.root / "folder").mkdir(parents=True)
    with pytest.raises(StoreError):
        store.get("folder")


def test_swap_compares_before_it_replaces(store):
    assert not store.swap("p", b"0", b"1")
    assert store.swap("p", None, b"1")
    assert not store.swap("p", None, b"2")
    assert not store.swap("p", b"0", b"2")
    assert store.get("p") == b"1"
    assert store.swap("p", b"1", b"2")
    assert store.get("p") == b"2"


def test_list_is_in_name_order_and_leaves_out_what_is_not_an_object(store):
    names = ["a-b", "a/b", "a/c/d", "a.txt", "a0", "é", "z/.hidden"]
    for name in names:
        store.create(name, name.encode())
    store.swap("p", None, b"1")
    (store.root / "a" / ".77-1.tmp").write_bytes(b"left by a dead process")
    (store.root / "link").symlink_to(store.root / "a.txt")
    found = list(store.list(""))
    assert [name for name, _ in found] == sorted([*names, "p"], key=str.encode)
    assert dict(found)["é"] == 2
    assert [name for name, _ in store.list("a/")] == ["a/b", "a/c/d"]
    with pytest.raises(ValueError, match="must end"):
        list(store.list("a"))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\\b", "a\0b"])
def test_names_that_lead_elsewhere_are_refused(store, name):
    for call in (store.get, store.open, store.size, store.delete, store.location, lambda n: store.create(n, b"")):
        with pytest.raises(StoreError, match="is not a name below"):
            call(name)


def test_a_name_longer_than_the_disk_has_is_a_store_error(store):
    store.create("a/x", b"")
    name = f"a/{'r' * 300}/b"
    for asked in (store.get, store.open, store.size, lambda name: store.create(name, b"")):
        with pytest.raises(StoreError, match=r"cannot name a/rrr"):
            asked(name)


def test_symbolic_links_below_the_root_are_not_followed(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_bytes(b"alive")
    store.create("data/x", b"1")
    (store.root / "data" / "out").symlink_to(outside)
    (store.root / "direct").symlink_to(outside / "canary")
    for name in ("data/out/canary", "direct"):
        for call in (store.get, store.open, store.delete, lambda n: store.create(n, b""), lambda n: store.swap(n, b"alive", b"dead")):
            with pytest.raises(StoreError, match="symbolic link"):
                call(name)
    assert (outside / "canary").read_bytes() == b"alive"
    assert [path.name for path in outside.iterdir()] == ["canary"]


def test_the_root_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "ds").symlink_to(tmp_path / "disk")
    LocalStore(tmp_path / "ds").create("a", b"1")
    assert (tmp_path / "disk" / "a").read_bytes() == b"1"


def record_calls(monkeypatch):
    """The order of durable system calls, as (verb, what)."""
    calls = []
    names = {}
    real_open, real_fsync = os.open, os.fsync

    def opened(path, *args, **kwargs):
        descriptor = real_open(path, *args, **kwargs)
        names[descriptor] = Path(path).name
        return descriptor

    def synced(descriptor):
        calls.append(("fsync", names[descriptor]))
        real_fsync(descriptor)

    def named(verb, real):
        def call(*args):
            calls.append((verb, Path(args[-1]).name))
            return real(*args)

        return call

    monkeypatch.setattr(local.os, "open", opened)
    monkeypatch.setattr(local.os, "fsync", synced)
    for verb in ("link", "replace", "unlink", "mkdir"):
        monkeypatch.setattr(local.os, verb, named(verb, getattr(os, verb)))
    return calls


def kinds(calls):
    return [(verb, "temporary" if name.endswith(".tmp") else name) for verb, name in calls]


def test_bytes_are_synced_before_the_name_and_the_folder_after_it(store, monkeypatch):
    store.create("m/first", b"1")
    calls = record_calls(monkeypatch)
    store.create("m/a", b"1")
    assert kinds(calls) == [("fsync", "temporary"), ("link", "a"), ("unlink", "temporary"), ("fsync", "m")]
    calls.clear()
    assert store.swap("m/a", b"1", b"2")
    assert kinds(calls) == [("fsync", "temporary"), ("replace", "a"), ("unlink", "temporary"), ("fsync", "m")]


def test_new_folders_are_synced_in_the_folder_above(store, monkeypatch):
    calls = record_calls(monkeypatch)
    store.create("a/b/x", b"1")
    above = [entry for entry in kinds(calls) if entry[0] in ("mkdir", "fsync")]
    assert above == [
        ("mkdir", "ds"),
        ("fsync", store.root.parent.name),
        ("mkdir", "a"),
        ("fsync", "ds"),
        ("mkdir", "b"),
        ("fsync", "a"),
        ("fsync", "temporary"),
        ("fsync", "b"),
    ]


@pytest.mark.parametrize(
    ("code", "hint"),
    [(errno.ENOSPC, "free space"), (errno.EROFS, "read-only"), (errno.EACCES, "write permission"), (errno.EIO, "look at the disk")],
)
def test_a_fault_of_the_disk_names_the_folder_and_leaves_nothing(store, monkeypatch, code, hint):
    store.swap("p", None, b"old")

    def fails(_descriptor, _data):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local.os, "write", fails)
    for call in (lambda: store.create("data/x", b"1"), lambda: store.swap("p", b"old", b"new")):
        with pytest.raises(StoreError, match=os.strerror(code)) as caught:
            call()
        assert hint in caught.value.hint
        assert str(store.root) in caught.value.hint
        assert caught.value.exit_code == 4
    monkeypatch.undo()
    assert [name for name, _ in store.list("")] == ["p"]
    assert store.get("p") == b"old"
    assert hidden(store.root) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_refuses_is_the_one_that_exists(tmp_path, monkeypatch, code):
    """What is not there yet cannot be at fault."""
    (tmp_path / "mine").mkdir()
    store = LocalStore(tmp_path / "mine" / "published" / "parcels")

    def fails(*_given, **_more):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local.os, "mkdir", fails)
    with pytest.raises(StoreError) as caught:
        store.create("data/x", b"1")
    assert f"{tmp_path / 'mine'}" in caught.value.hint
    assert "published" not in caught.value.hint


def test_a_file_system_without_hard_links_is_named(store, monkeypatch):
    def refuses(_source, _target):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(local.os, "link", refuses)
    with pytest.raises(StoreError, match="refuses hard links"):
        store.create("a", b"1")


def test_short_writes_are_continued(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(local.os, "write", lambda descriptor, data: real(descriptor, bytes(data[:2])))
    store.create("a", b"12345")
    assert store.get("a") == b"12345"


def test_a_destination_below_a_file_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="Not a directory"):
        LocalStore(tmp_path / "file" / "ds").create("a", b"1")


def test_a_full_disk_leaves_no_object(tmp_path):
    """On a real full disk where one can be mounted, else against the limit of the file size that the kernel keeps."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        os.geteuid() == 0
        and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False).returncode == 0
    )
    try:
        store = LocalStore(disk / "ds")
        store.swap("p", None, b"old")
        if mounted:
            with pytest.raises(StoreError, match="No space left") as caught:
                store.create("data/x", b"x" * 100_000)
            assert "free space" in caught.value.hint
            assert [name for name, _ in store.list("")] == ["p"]
        else:
            code = """
                import resource, signal, sys
                from merestone.errors import StoreError
                from merestone.storage.local import LocalStore
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
                try:
                    LocalStore(sys.argv[1]).create("data/x", b"x" * 100_000)
                except StoreError as fault:
                    print(fault.hint)
            """
            out, _ = python(code, store.root).communicate(timeout=60)
            assert "file size limit" in out
            assert [name for name, _ in store.list("")] == ["p"]
        assert hidden(disk) == []
    finally:
        if mounted:
            subprocess.run(["umount", disk], check=True)


def test_of_racing_creators_exactly_one_wins(store):
    code = """
        import sys
        from merestone.storage.local import LocalStore
        store, me = LocalStore(sys.argv[1]), sys.argv[2]
        won = 0
        for n in range(60):
            try:
                store.create(f"m/{n:03d}", me.encode() * 1000)
                won += 1
            except FileExistsError:
                pass
        print(won)
    """
    racers = [python(code, store.root, name) for name in "abc"]
    won = {name: int(racer.communicate(timeout=60)[0]) for name, racer in zip("abc", racers, strict=True)}
    assert sum(won.values()) == 60
    holders = [store.get(name) for name, _ in store.list("m/")]
    assert {name: sum(body == name.encode() * 1000 for body in holders) for name in "abc"} == won


def test_of_racing_swappers_exactly_one_wins_each_round(store):
    """Each success adds one to the counter: a lost update would leave the sum too small."""
    code = """
        import sys
        from merestone.storage.local import LocalStore
        store = LocalStore(sys.argv[1])
        won = 0
        for _ in range(100):
            try:
                seen = store.get("p")
            except FileNotFoundError:
                seen = None
            won += store.swap("p", seen, b"%d" % (int(seen or b"0") + 1))
        print(won)
    """
    racers = [python(code, store.root) for _ in range(3)]
    won = [int(racer.communicate(timeout=60)[0]) for racer in racers]
    assert int(store.get("p")) == sum(won)
    assert sum(won) >= 100


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counting open descriptors needs /proc")
def test_no_descriptor_is_left_open(store):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(20):
        store.create(f"a{n}", b"1")
        store.swap("p", None, b"1")
        store.get(f"a{n}")
        list(store.list(""))
        with pytest.raises(FileExistsError):
            store.create(f"a{n}", b"1")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_paths_and_file_urls_open_the_same_store(tmp_path, monkeypatch):
    assert open_store(tmp_path / "ds").url == (tmp_path / "ds").as_uri()
    assert open_store((tmp_path / "d s").as_uri()).url == (tmp_path / "d s").as_uri()
    monkeypatch.chdir(tmp_path)
    assert open_store("ds").url == (tmp_path / "ds").as_uri()
    assert open_store(open_store("ds").url).url == (tmp_path / "ds").as_uri()
    assert not (tmp_path / "ds").exists()


@pytest.mark.parametrize("url", ["s3://bucket/x", "gs://b/x", "AZ://b", "file://elsewhere/x"])
def test_other_urls_are_refused_as_usage(url):
    with pytest.raises(UsageError):
        open_store(url)
