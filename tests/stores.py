"""A store in memory that obeys the port, and on demand the ways in which a real one goes wrong."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from merestone.errors import StoreError
from merestone.storage.port import LostReplyError


class MemoryHold:
    """A hold that ends with `release`, or when the store's process is said to have died."""

    def __init__(self, store, name):
        self.store, self.name = store, name

    def release(self):
        self.store.holds.discard(self.name)


class MemoryStore:
    """Objects in a dictionary.

    `faults` is a list of (verb, name's beginning, what happens), each used once, in order, by the first call that fits:
    "refuse" (nothing is done, StoreError), "lose" (done, but no answer), "drop" (not done and no answer), "late" (no answer, and done by
    the next `settle`), "deny" (done, but answered as if somebody else had been first: a client that repeated itself).
    """

    def __init__(self):
        self.url = "memory"
        self.objects = {}
        self.holds = set()
        self.faults = []
        self.pending = []

    def _fault(self, verb, name):
        for n, (faulty, start, what) in enumerate(self.faults):
            if faulty == verb and name.startswith(start):
                del self.faults[n]
                return what
        return None

    def _call(self, verb, name, act, denied):
        what = self._fault(verb, name)
        if what == "refuse":
            raise StoreError(f"cannot {verb} {name}", hint="retry")
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
        if self._fault("get", name):
            raise StoreError(f"cannot read {name}")
        try:
            return self.objects[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def open(self, name):
        return pa.PythonFile(pa.BufferReader(self.get(name)), "r")

    def create(self, name, data):
        def act():
            if name in self.objects:
                raise FileExistsError(name)
            self.objects[name] = bytes(data)

        def denied():
            raise FileExistsError(name)

        self._call("create", name, act, denied)

    def create_from(self, name, local_path):
        with open(local_path, "rb") as file:  # noqa: PTH123 - a test's file
            self.create(name, file.read())

    def create_held(self, name, data):
        self.create(name, data)
        self.holds.add(name)
        return MemoryHold(self, name)

    def held(self, name):
        return name in self.holds

    def swap(self, name, expected, data):
        def act():
            if self.objects.get(name) != expected:
                return False
            self.objects[name] = bytes(data)
            return True

        return self._call("swap", name, act, lambda: False)

    def list(self, prefix):
        yield from ((name, len(data)) for name, data in sorted(self.objects.items()) if name.startswith(prefix))

    def delete(self, name):
        what = self._fault("delete", name)
        if what:
            raise StoreError(f"cannot delete {name}")
        self.objects.pop(name, None)

    def size(self, name):
        return len(self.objects[name]) if name in self.objects else None
