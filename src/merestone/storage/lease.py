"""Leases: who is at work, said by an object with an owner and a time at which it ends. They stand on the port, so every store keeps them.

A lease decides who is called dead, never who may write: that is the pointer's compare-and-swap. Its holder renews it while it lives. It has
ended when its time is over by more than the clocks of two machines may differ; or at once, where the owner was a process of this machine
that has ended.

Not here: attempts and their intents (`writer`), the store's verbs (`port`). The only clock and the only look at processes below `line`.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from merestone.errors import StoreError
from merestone.storage.port import LostReplyError, Store

SECONDS: Final = 90.0
"""How long a lease lasts from its last renewal. It is renewed three times within that."""
SKEW: Final = 60.0
"""How far apart the clocks of two machines may be."""

Clock = Callable[[], float]
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class Owner:
    """A process: `machine` is one boot of one system (one container of it), `process` its number and the time of its start."""

    machine: str
    process: str

    def is_gone(self) -> bool:
        """Whether this is known to be no more. Of a process elsewhere nothing is known."""
        if self.machine != _machine():
            return False
        number = int(self.process.partition("/")[0])
        return _process(number) != self.process


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """What a lease's object says. `number` grows with every new holder; `mark` separates two leases of one process."""

    owner: Owner
    ends: float
    number: int
    mark: str

    def to_bytes(self) -> bytes:
        """UTF-8 JSON."""
        return (json.dumps(asdict(self)) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> LeaseTerms | None:
        """Read what an object says, None where it is not a lease."""
        try:
            doc = json.loads(data)
            return cls(
                Owner(str(doc["owner"]["machine"]), str(doc["owner"]["process"])), float(doc["ends"]), int(doc["number"]), doc["mark"]
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def stands(self, now: float) -> bool:
        """Whether its holder has to be taken for alive."""
        return now <= self.ends + SKEW and not self.owner.is_gone()


class Lease:
    """A lease that this process holds, renewed by a thread until it is released, lost, or let go of."""

    def __init__(self, store: Store, name: str, terms: LeaseTerms, clock: Clock, seconds: float) -> None:
        self.name = name
        self.number = terms.number
        self._store, self._terms, self._clock, self._seconds = store, terms, clock, seconds
        self._ended = threading.Event()
        self._lock = threading.Lock()
        weakref.finalize(self, self._ended.set)  # a lease that nobody holds any more is renewed no longer
        threading.Thread(target=_keep, args=(weakref.ref(self), self._ended, seconds / 3), name=f"lease {name}", daemon=True).start()

    def renew(self) -> bool:
        """Let it last from now. False where it is not ours any more."""
        with self._lock:
            if self._ended.is_set():
                return False
            longer = LeaseTerms(self._terms.owner, self._clock() + self._seconds, self.number, self._terms.mark)
            try:
                done = self._store.swap(self.name, self._terms.to_bytes(), longer.to_bytes())
            except LostReplyError:
                done = _get(self._store, self.name) == longer.to_bytes()
            if done:
                self._terms = longer
            else:
                self._ended.set()
            return done

    def release(self) -> None:
        """Give it up; twice does no harm."""
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
            # Where the store cannot be reached the lease ends by its time.
            with suppress(StoreError):
                if _get(self._store, self.name) == self._terms.to_bytes():
                    self._store.delete(self.name)


def take(store: Store, name: str, *, clock: Clock = time.time, seconds: float = SECONDS) -> Lease | None:
    """Take a lease, also one whose holder is dead.

    Args:
        store: where its object is.
        name: the object.
        clock: seconds since 1970.
        seconds: how long it lasts from its last renewal.

    Returns:
        The lease, None where somebody else holds it.

    Raises:
        StoreError: the store cannot be reached.
    """
    mark = f"{os.getpid()}-{time.time_ns():x}-{next(_counter)}"
    while True:
        found = _get(store, name)
        old = LeaseTerms.from_bytes(found) if found is not None else None
        if old is not None and old.mark != mark and old.stands(clock()):
            return None
        if old is not None and old.mark == mark:  # our own success, whose answer got lost
            return Lease(store, name, old, clock, seconds)
        mine = LeaseTerms(this_process(), clock() + seconds, old.number + 1 if old is not None else 1, mark)
        try:
            if found is None:
                store.create(name, mine.to_bytes())
            elif not store.swap(name, found, mine.to_bytes()):
                continue
        except (FileExistsError, LostReplyError):
            continue  # look again at who has it
        return Lease(store, name, mine, clock, seconds)


def is_held(store: Store, name: str, *, clock: Clock = time.time) -> bool:
    """Whether somebody holds a lease who has to be taken for alive. Raises StoreError where the store cannot be reached."""
    found = _get(store, name)
    terms = LeaseTerms.from_bytes(found) if found is not None else None
    return terms is not None and terms.stands(clock())


def this_process() -> Owner:
    """The owner of the leases that this process takes."""
    return Owner(_machine(), _process(os.getpid()) or f"{os.getpid()}/")


def _keep(lease: weakref.ref[Lease], ended: threading.Event, every: float) -> None:
    while not ended.wait(every):
        held = lease()
        if held is None:
            return
        # The next time may reach the store; a lease that runs out lets others call this process dead, and does no other harm.
        with suppress(StoreError):
            held.renew()
        del held


def _get(store: Store, name: str) -> bytes | None:
    try:
        return store.get(name)
    except FileNotFoundError:
        return None


def _machine() -> str:
    """One boot of one system; on Linux also the namespace in which its process numbers mean something."""
    if sys.platform != "linux":
        return f"{socket.gethostname()}/{uuid.getnode():x}"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - the link itself cannot be opened as a path


def _process(number: int) -> str | None:
    """A living process by its number and, on Linux, the tick at which it started; None where there is none."""
    if sys.platform != "linux":
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass  # it lives, and is another user's
        return f"{number}/"
    try:
        # The name in parentheses may hold anything; state and times follow the last of them.
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else f"{number}/{fields[19]}"
