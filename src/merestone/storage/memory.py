"""A store in memory with the manners of an object store, for tests and for trying things out.

It has no folders, no rename and no append; objects carry tags; listings come in pages; a large object arrives in parts and can be seen only
when it is whole. What runs on it asks nothing of a store that an object store cannot keep.

Not here: faults (a wrapper of the tests), other stores.
"""

from __future__ import annotations

import bisect
import hashlib
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from merestone.storage.names import check_name, check_prefix
from merestone.storage.port import ObjectFile
from merestone.storage.ranged import RangedFile

PAGE = 1000
"""Names of one page of a listing, as S3 gives them."""
_PART_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    tag: str


class MemoryStore:
    """Objects in a dictionary. `memory://NAME` opens it again, within this process and as long as somebody holds it."""

    def __init__(self, name: str, *, page: int = PAGE) -> None:
        """Begin empty.

        Args:
            name: what its URL calls it.
            page: names of one page of a listing.
        """
        self.url = f"memory://{quote(name, safe='')}"
        self._page = page
        self._objects: dict[str, _Object] = {}
        self._lock = threading.Lock()
        _stores[self.url] = self

    def get(self, name: str) -> bytes:
        """See the port."""
        return self._object(name).data

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """See the port."""
        return self._object(name).data[start : start + length]

    def open(self, name: str) -> ObjectFile:
        """See the port. What is open keeps its bytes, whatever becomes of the object."""
        data = self._object(name).data
        return pa.PythonFile(RangedFile(lambda start, length: data[start : start + length], len(data)), "r")

    def buffer(self, name: str) -> memoryview:
        """See the port."""
        return memoryview(self._object(name).data)

    def create(self, name: str, data: bytes) -> str | None:
        """See the port."""
        check_name(name, self.url)
        made = _Object(bytes(data), _tag(data))
        with self._lock:
            if name in self._objects:
                raise FileExistsError(name)
            self._objects[name] = made
        return made.tag

    def create_from(self, name: str, local_path: str) -> str | None:
        """See the port."""
        with Path(local_path).open("rb") as file:
            parts = iter(lambda: file.read(_PART_BYTES), b"")
            return self.create(name, b"".join(parts))

    def swap(self, name: str, expected: bytes | None, data: bytes) -> bool:
        """See the port."""
        check_name(name, self.url)
        with self._lock:
            found = self._objects.get(name)
        if (found.data if found is not None else None) != expected:
            return False
        return self._put_if(name, found.tag if found is not None else None, data)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """See the port."""
        check_prefix(prefix, self.url)
        after = ""
        while page := self._listed(prefix, after):
            yield from page
            after = page[-1][0]

    def delete(self, name: str) -> None:
        """See the port."""
        check_name(name, self.url)
        with self._lock:
            self._objects.pop(name, None)

    def size(self, name: str) -> int | None:
        """See the port."""
        check_name(name, self.url)
        with self._lock:
            found = self._objects.get(name)
        return len(found.data) if found is not None else None

    def location(self, name: str) -> str:
        """See the port: a URL that no other program opens."""
        return f"{self.url}/{quote(name)}"

    def strays(self, prefix: str) -> Iterator[str]:
        """See the port: nothing."""
        check_prefix(prefix, self.url)
        return iter(())

    def _object(self, name: str) -> _Object:
        check_name(name, self.url)
        with self._lock:
            found = self._objects.get(name)
        if found is None:
            raise FileNotFoundError(name)
        return found

    def _put_if(self, name: str, tag: str | None, data: bytes) -> bool:
        """The conditional write of an object store (If-Match, or If-None-Match where no tag is given)."""
        with self._lock:
            found = self._objects.get(name)
            if (found.tag if found is not None else None) != tag:
                return False
            self._objects[name] = _Object(bytes(data), _tag(data))
            return True

    def _listed(self, prefix: str, after: str) -> Sequence[tuple[str, int]]:
        with self._lock:
            names = sorted((name for name in self._objects if name.startswith(prefix)), key=str.encode)
            first = bisect.bisect_right(names, after.encode(), key=str.encode)
            return [(name, len(self._objects[name].data)) for name in names[first : first + self._page]]


_stores: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()


def memory_store(url: str) -> MemoryStore | None:
    """The store of a URL, None where this process has none."""
    return _stores.get(url)


def _tag(data: bytes) -> str:
    """What S3 makes of an upload: a digest of the content. Equal bytes have equal tags."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
