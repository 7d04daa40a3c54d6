"""A store that goes wrong on demand as real ones do, and a dataset in any store as paths."""

from __future__ import annotations

import fnmatch
import itertools
import re
import tempfile
from contextlib import suppress
from pathlib import Path

from merestone.errors import StoreError
from merestone.storage.memory import MemoryStore
from merestone.storage.open import open_store
from merestone.storage.port import BusyError, LostReplyError

_numbers = itertools.count()


def fresh(page=7):
    """An empty store in memory, with pages so small that listings have several."""
    return MemoryStore(f"test{next(_numbers)}", page=page)


class FaultyStore:
    """Another store, with faults.

    `faults` is a list of (verb, name's beginning, what happens), each used once, in order, by the first call that fits:
    "refuse" (nothing is done, StoreError), "busy" (nothing is done, BusyError), "lose" (done, but no answer), "drop" (not done and no
    answer), "late" (no answer, and done by the next `settle`), "deny" (done, but answered as if somebody else had been first: a client that
    repeated itself). Reads know "refuse", "busy" and "drop". `calls` counts the calls of each verb.
    """

    def __init__(self, store=None):
        self.store = store if store is not None else fresh()
        self.url = self.store.url
        self.faults = []
        self.pending = []
        self.calls = {}

    @property
    def objects(self):
        """Name to bytes, past all faults."""
        return {name: self.store.get(name) for name, _ in self.store.list("")}

    def _fault(self, verb, name):
        self.calls[verb] = self.calls.get(verb, 0) + 1
        for n, (faulty, start, what) in enumerate(self.faults):
            if faulty == verb and name.startswith(start):
                del self.faults[n]
                return what
        return None

    def _read(self, verb, name, act):
        what = self._fault(verb, name)
        if what == "drop":
            raise LostReplyError(f"no answer to {verb} {name}")
        if what == "busy":
            raise BusyError(f"busy at {verb} {name}")
        if what:
            raise StoreError(f"cannot {verb} {name}")
        return act()

    def _write(self, verb, name, act, denied):
        what = self._fault(verb, name)
        if what == "refuse":
            raise StoreError(f"cannot {verb} {name}", hint="retry")
        if what == "busy":
            raise BusyError(f"busy at {verb} {name}")
        if what == "drop":
            raise LostReplyError(f"no answer to {verb} {name}")
        if what == "late":
            self.pending.append(act)
            raise LostReplyError(f"no answer to {verb} {name}")
        answer = act()
        if what == "lose":
            raise LostReplyError(f"no answer to {verb} {name}")
        return denied() if what == "deny" else answer

    def settle(self):
        """Carry out what is late."""
        for act in self.pending:
            with suppress(FileExistsError):
                act()
        self.pending = []

    def get(self, name):
        return self._read("get", name, lambda: self.store.get(name))

    def get_range(self, name, start, length):
        return self._read("get_range", name, lambda: self.store.get_range(name, start, length))

    def open(self, name):
        return self._read("open", name, lambda: self.store.open(name))

    def buffer(self, name):
        return self._read("buffer", name, lambda: self.store.buffer(name))

    def size(self, name):
        return self._read("size", name, lambda: self.store.size(name))

    def list(self, prefix):
        what = self._fault("list", prefix)
        for n, each in enumerate(self.store.list(prefix)):
            if what and n == 1:
                break
            yield each
        if what:
            raise BusyError(f"busy at list {prefix}")

    def create(self, name, data):
        return self._write("create", name, lambda: self.store.create(name, data), lambda: _exists(name))

    def create_from(self, name, local_path):
        data = Path(local_path).read_bytes()
        return self._write("create", name, lambda: self.store.create(name, data), lambda: _exists(name))

    def swap(self, name, expected, data):
        return self._write("swap", name, lambda: self.store.swap(name, expected, data), lambda: False)

    def delete(self, name):
        return self._write("delete", name, lambda: self.store.delete(name), lambda: None)

    def location(self, name):
        return self.store.location(name)

    def strays(self, prefix):
        return self.store.strays(prefix)


def _exists(name):
    raise FileExistsError(name)


class StorePath:
    """An object or a folder of a store, with what tests ask of a `pathlib.Path`; a program that wants a file gets a copy of the object."""

    def __init__(self, store, name=""):
        self.store, self._name = store, name

    def __truediv__(self, name):
        return StorePath(self.store, f"{self._name}/{name}".strip("/"))

    def __str__(self):
        return f"{self.store.url}/{self._name}".rstrip("/")

    def __fspath__(self):
        place = Path(tempfile.mkdtemp(prefix="merestone-test-")) / self.name
        place.write_bytes(self.read_bytes())
        return str(place)

    def __lt__(self, other):
        return self._name < other._name

    def __eq__(self, other):
        return (self.store, self._name) == (other.store, other._name)

    def __hash__(self):
        return hash(self._name)

    @property
    def name(self):
        return self._name.rpartition("/")[2]

    def exists(self):
        return self.is_file() or any(True for _ in self._below())

    def is_file(self):
        return bool(self._name) and self.store.size(self._name) is not None

    def read_bytes(self):
        return self.store.get(self._name)

    def read_text(self, encoding="utf-8"):
        return self.read_bytes().decode(encoding)

    def stat(self):
        return _Stat(self.store.size(self._name))

    def _below(self):
        return (StorePath(self.store, name) for name, _ in self.store.list(f"{self._name}/" if self._name else ""))

    def rglob(self, pattern):
        return (each for each in self._below() if fnmatch.fnmatch(each.name, pattern))

    def glob(self, pattern):
        """`**` matches folders, `*` within one name."""
        steps = {"**/": "(?:.*/)?", "*": "[^/]*"}
        wanted = re.compile("".join(steps.get(each) or re.escape(each) for each in re.split(r"(\*\*/|\*)", pattern)))
        return (each for each in self._below() if wanted.fullmatch(each.relative_to(self)))

    def relative_to(self, other):
        return self._name.removeprefix(other._name).strip("/")


class _Stat:
    def __init__(self, size):
        self.st_size = size


def path_of(url):
    """A store by its URL, as a path."""
    return StorePath(open_store(url))
