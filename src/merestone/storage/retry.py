"""Requests that a store did not carry out, repeated: a policy around any store.

Only `BusyError` is repeated: the store says that nothing was done. Reads without an answer (`LostReplyError`) are repeated too; a write
without an answer is for the caller to read back, since repeating it could meet its own success.

Not here: what a store's client repeats by itself, the commit's own rules (`writer.commit`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from merestone.storage.port import BusyError, LostReplyError, ObjectFile, Store

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Policy:
    """How often a request is sent in all, and the pause before it is sent again: `pause` seconds, twice that, and so on."""

    tries: int = 5
    pause: float = 0.2


class RetryingStore:
    """A store that repeats what another one did not carry out. See the port."""

    def __init__(self, store: Store, policy: Policy = Policy(), sleep: Callable[[float], None] = time.sleep) -> None:
        """Wrap a store.

        Args:
            store: where requests go.
            policy: how often, and how fast.
            sleep: waits so many seconds.
        """
        self.url = store.url
        self._store, self._policy, self._sleep = store, policy, sleep

    def get(self, name: str) -> bytes:
        """See the port."""
        return self._read(lambda: self._store.get(name))

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """See the port."""
        return self._read(lambda: self._store.get_range(name, start, length))

    def open(self, name: str) -> ObjectFile:
        """See the port. Reads of what is open are the other store's."""
        return self._read(lambda: self._store.open(name))

    def buffer(self, name: str) -> memoryview:
        """See the port."""
        return self._read(lambda: self._store.buffer(name))

    def create(self, name: str, data: bytes) -> str | None:
        """See the port."""
        return self._write(lambda: self._store.create(name, data))

    def create_from(self, name: str, local_path: str) -> str | None:
        """See the port."""
        return self._write(lambda: self._store.create_from(name, local_path))

    def swap(self, name: str, expected: bytes | None, data: bytes) -> bool:
        """See the port."""
        return self._write(lambda: self._store.swap(name, expected, data))

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """See the port. A listing that breaks off is read from its beginning, without what was named already."""
        last = ""
        for attempt in range(self._policy.tries):
            try:
                for name, size in self._store.list(prefix):
                    if name.encode() > last.encode():
                        last = name
                        yield name, size
            except (BusyError, LostReplyError):
                if attempt + 1 == self._policy.tries:
                    raise
                self._sleep(self._policy.pause * 2**attempt)
            else:
                return

    def delete(self, name: str) -> None:
        """See the port. To delete twice does no harm."""
        self._read(lambda: self._store.delete(name))

    def size(self, name: str) -> int | None:
        """See the port."""
        return self._read(lambda: self._store.size(name))

    def location(self, name: str) -> str:
        """See the port."""
        return self._store.location(name)

    def strays(self, prefix: str) -> Iterator[str]:
        """See the port."""
        return self._store.strays(prefix)

    def _read(self, request: Callable[[], Answer]) -> Answer:
        return self._repeated(request, (BusyError, LostReplyError))

    def _write(self, request: Callable[[], Answer]) -> Answer:
        return self._repeated(request, (BusyError,))

    def _repeated(self, request: Callable[[], Answer], faults: tuple[type[Exception], ...]) -> Answer:
        for attempt in range(self._policy.tries - 1):
            try:
                return request()
            except faults:
                self._sleep(self._policy.pause * 2**attempt)
        return request()
