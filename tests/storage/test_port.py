"""What every store promises, asked of each of them alike."""

import errno
import os
import threading
from collections import Counter
from urllib.parse import urlsplit

import pytest
from shapely import Point

from estate import Estate, save
from merestone.errors import StoreError, UsageError
from merestone.storage import open as opening
from merestone.storage.local import LocalStore
from merestone.storage.memory import MemoryStore
from merestone.storage.open import open_store
from merestone.storage.place import parse_place, place_name, shown_place
from merestone.storage.port import BusyError, LostReplyError
from merestone.storage.retry import Policy, RetryingStore
from stores import FaultyStore, fresh

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "use", "type": "string"}]


@pytest.fixture(params=["local", "memory", "retrying"])
def store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "ds")
    return fresh() if request.param == "memory" else RetryingStore(fresh())


def test_an_object_comes_back_as_it_was_created(store):
    store.create("data/a=1/x.parquet", b"abcdef")
    assert store.get("data/a=1/x.parquet") == b"abcdef"
    assert store.size("data/a=1/x.parquet") == 6
    assert store.get_range("data/a=1/x.parquet", 1, 3) == b"bcd"
    assert store.get_range("data/a=1/x.parquet", 4, 9) == b"ef"
    assert store.get_range("data/a=1/x.parquet", 9, 9) == b""
    held = store.buffer("data/a=1/x.parquet")
    store.delete("data/a=1/x.parquet")
    assert held == b"abcdef", "what is held keeps its bytes"
    assert held.readonly
    store.create("empty", b"")
    assert store.buffer("empty") == b""


def test_what_is_opened_can_be_read_from_any_place(store):
    store.create("x", bytes(range(100)))
    with store.open("x") as file:
        assert file.size() == 100
        file.seek(90)
        assert file.read(5) == bytes(range(90, 95))
        assert file.tell() == 95
        file.seek(-1, 2)
        assert file.read() == bytes([99])
        assert file.read() == b""
        file.seek(10)
        assert file.read(0) == b""
        assert file.read() == bytes(range(10, 100))


def test_create_never_replaces(store, tmp_path):
    (tmp_path / "file").write_bytes(b"2")
    store.create("a", b"1")
    for again in (lambda: store.create("a", b"2"), lambda: store.create_from("a", str(tmp_path / "file"))):
        with pytest.raises(FileExistsError):
            again()
    assert store.get("a") == b"1"


def test_a_large_file_is_created_from_its_place(store, tmp_path):
    data = bytes(range(256)) * 12_289
    (tmp_path / "part").write_bytes(data)
    store.create_from("data/part", str(tmp_path / "part"))
    assert store.get("data/part") == data


def test_swap_compares_before_it_replaces(store):
    assert not store.swap("p", b"0", b"1")
    assert store.swap("p", None, b"1")
    assert not store.swap("p", None, b"2")
    assert not store.swap("p", b"0", b"2")
    assert store.swap("p", b"1", b"2")
    assert store.get("p") == b"2"


def test_of_racing_swappers_one_wins_each_round(store):
    won = []

    def race():
        for _ in range(40):
            seen = store.get("p")
            won.append(store.swap("p", seen, b"%d" % (int(seen) + 1)))

    store.create("p", b"0")
    racers = [threading.Thread(target=race) for _ in range(4)]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    assert int(store.get("p")) == sum(won)
    assert len(won) == 160


def test_absence_is_told_apart_from_inability(store):
    for ask in (store.get, store.open, store.buffer, lambda name: store.get_range(name, 0, 1)):
        with pytest.raises(FileNotFoundError):
            ask("no/thing")
    assert store.size("nothing") is None
    assert list(store.list("no/")) == []
    store.delete("nothing")
    store.create("a", b"1")
    store.delete("a")
    assert store.size("a") is None


def test_a_listing_has_every_object_in_the_order_of_their_bytes(store):
    names = [*(f"a/{n}" for n in range(23)), "a-b", "a.txt", "a0", "\u00e9", "z/.hidden", "b/c/d"]
    for name in names:
        store.create(name, name.encode())
    assert list(store.list("")) == [(name, len(name.encode())) for name in sorted(names, key=str.encode)]
    assert [name for name, _ in store.list("a/")] == sorted(names[:23])
    with pytest.raises(ValueError, match="must end"):
        list(store.list("a"))


def test_what_goes_while_a_listing_runs_does_not_break_it(store):
    for n in range(30):
        store.create(f"a/{n:02d}", b"")
    seen = []
    for name, _ in store.list("a/"):
        seen.append(name)
        store.delete("a/29")
        if name == "a/00":
            store.create("a/00b", b"")
    assert seen[:1] == ["a/00"]
    assert {f"a/{n:02d}" for n in range(29)} <= set(seen)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\\b", "a\0b"])
def test_names_that_lead_elsewhere_are_refused(store, name):
    for call in (store.get, store.open, store.size, store.delete, lambda n: store.create(n, b""), lambda n: store.swap(n, None, b"")):
        with pytest.raises(StoreError, match="is not a name below"):
            call(name)


ODD = ["plain", "a b", "100%", "a%20b", "x#y?z", "café", "日本", "a@2", "k=v&w", "file:x", "s3:x", "~", "[1]", "$HOME", "tail ", "-", "..."]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", ["local", "below", "memory", "retrying"])
def test_its_url_opens_it_again_whatever_it_is_called(tmp_path, monkeypatch, kind, name):
    monkeypatch.setenv("HOME", "/nowhere")
    made = {
        "local": lambda: LocalStore(tmp_path / name),
        "below": lambda: LocalStore(tmp_path / name / "x" / name),
        "memory": lambda: MemoryStore(name),
        "retrying": lambda: RetryingStore(LocalStore(tmp_path / name)),
    }
    store = made[kind]()
    store.create(f"data/{name}/x", b"1")
    assert urlsplit(store.url).scheme == ("memory" if kind == "memory" else "file")
    again = open_store(store.url)
    assert again.url == store.url
    assert again.get(f"data/{name}/x") == b"1"
    assert parse_place(parse_place(store.url).address) == parse_place(store.url)
    if kind == "local":
        assert shown_place(store.url) == str(tmp_path / name)
        assert place_name(store.url) == name
    if kind == "memory":
        assert place_name(store.url) == name


def test_stores_in_memory_are_told_apart_by_their_whole_name():
    one, other = MemoryStore("a/b"), MemoryStore("a")
    one.create("x", b"1")
    assert open_store(one.url).get("x") == b"1"
    assert open_store(other.url).size("x") is None


def test_a_store_in_memory_lives_as_long_as_somebody_holds_it():
    url = MemoryStore("short").url
    with pytest.raises(UsageError, match="no such store"):
        open_store(url)


# --- retries ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def faulty():
    made = FaultyStore()
    made.store.create("a", b"1")
    return made


def test_what_was_not_carried_out_is_repeated_with_growing_pauses(faulty):
    pauses = []
    store = RetryingStore(faulty, Policy(tries=4, pause=1), pauses.append)
    faulty.faults = [("create", "b", "busy")] * 3
    store.create("b", b"2")
    assert faulty.objects["b"] == b"2"
    assert pauses == [1, 2, 4]
    faulty.faults = [("swap", "b", "busy")]
    assert store.swap("b", b"2", b"3")
    faulty.faults = [("get", "a", "busy")] * 4
    with pytest.raises(BusyError):
        store.get("a")


def test_reads_without_an_answer_are_repeated_and_writes_are_not(faulty):
    store = RetryingStore(faulty, sleep=lambda _: None)
    for verb, read in (
        ("get", store.get),
        ("size", store.size),
        ("open", store.open),
        ("buffer", store.buffer),
        ("get_range", lambda name: store.get_range(name, 0, 1)),
        ("delete", store.delete),
    ):
        faulty.faults = [(verb, "a", "drop")]
        read("a")
        assert faulty.faults == []
    for what in ("lose", "drop", "late"):
        faulty.faults = [("create", "c", what), ("swap", "d", what)]
        with pytest.raises(LostReplyError):
            store.create("c", b"1")
        with pytest.raises(LostReplyError):
            store.swap("d", None, b"1")
        faulty.store.delete("c")
        faulty.store.delete("d")


def test_a_refusal_is_not_repeated(faulty):
    store = RetryingStore(faulty, sleep=lambda _: pytest.fail("a refusal is final"))
    faulty.faults = [("get", "a", "refuse")]
    with pytest.raises(StoreError):
        store.get("a")


def test_a_listing_that_breaks_off_is_taken_up_and_names_nothing_twice(faulty):
    for n in range(20):
        faulty.store.create(f"b/{n:02d}", b"")
    store = RetryingStore(faulty, sleep=lambda _: None)
    faulty.faults = [("list", "b/", "busy")] * 2
    assert [name for name, _ in store.list("b/")] == [f"b/{n:02d}" for n in range(20)]
    faulty.faults = [("list", "b/", "busy")] * 5
    with pytest.raises(BusyError):
        list(store.list("b/"))


class Busy(MemoryStore):
    """A store that carries out no request the first time it is made."""

    VERBS = ("get", "get_range", "open", "buffer", "create", "swap", "delete", "size")

    def __init__(self, name):
        super().__init__(name)
        self.refused = Counter()
        self._asked = set()
        for verb in self.VERBS:
            setattr(self, verb, self._once_busy(verb, getattr(self, verb)))

    def _once_busy(self, verb, act):
        def call(name, *more):
            if (verb, name, *more) in self._asked:
                return act(name, *more)
            self._asked.add((verb, name, *more))
            self.refused[verb] += 1
            raise BusyError(f"busy at {verb} {name}")

        return call

    def list(self, prefix):
        for each in super().list(prefix):
            if ("list", prefix) not in self._asked:
                self._asked.add(("list", prefix))
                self.refused["list"] += 1
                raise BusyError(f"busy at list {prefix}")
            yield each


def test_a_store_that_is_opened_repeats_what_was_not_carried_out(tmp_path, monkeypatch):
    """Two nights on a store that is busy at the first request of each kind for each object."""
    monkeypatch.setattr(opening, "POLICY", Policy(tries=2, pause=0))
    busy = Busy("busy")
    product = Estate(tmp_path / "product", FIELDS, store=open_store(busy.url))
    for night, use in enumerate(("field", "forest")):
        rows = [{"pid": f"p{n}", "use": use if n == 3 else "field", "geometry": Point(n, n)} for n in range(30)]
        assert product.publish(save(rows, tmp_path / f"{night}.gpkg")).status == "published"
    assert product.rows()["p3"]["use"] == "forest"
    assert {"get", "create", "swap", "list"} <= {verb for verb, times in busy.refused.items() if times}
    monkeypatch.setattr(opening, "POLICY", Policy(tries=1))
    with pytest.raises(BusyError):
        open_store(busy.url).get("nothing")


@pytest.mark.parametrize("fault", [errno.EAGAIN, errno.EBUSY, errno.ESTALE])
def test_a_disk_that_is_busy_is_read_again(tmp_path, monkeypatch, fault):
    store = open_store(tmp_path, policy=Policy(tries=3, pause=0))
    store.create("a", b"1")
    real, left = os.open, []

    def ask(request, times):
        def once_busy(*args, **kwargs):
            if left:
                raise OSError(left.pop(), os.strerror(fault))
            return real(*args, **kwargs)

        left[:] = [fault] * times
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", once_busy)
            return request()

    assert ask(lambda: store.get("a"), 2) == b"1"
    assert ask(lambda: store.get_range("a", 0, 1), 2) == b"1"
    with pytest.raises(BusyError, match="now"):
        ask(lambda: store.get("a"), 3)
    for write in (lambda: store.create("b", b"2"), lambda: store.swap("a", b"1", b"3")):
        with pytest.raises(StoreError):
            ask(write, 3)
        assert left == [fault] * 2, "of a write that fails so it is not known how far it came"
