"""Bytes by name: the few verbs that Merestone asks of a store. A disk, an object store and a dictionary can all keep them.

Not here: what the bytes mean, which name is the pointer (`writer.commit`), any one store (`local`, `memory`), who is alive (`lease`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self

from merestone.errors import StoreError


class LostReplyError(StoreError):
    """A request was sent and no answer came: it may have been carried out, or may yet be. The caller has to read back."""


class BusyError(StoreError):
    """The store did not carry the request out, and will if it is repeated: it is throttled, or restarts (`retry`)."""


class Reader(Protocol):
    """What reading a dataset asks of a store. `url` is a place that `open.open_store` opens; `place.shown_place` is how messages have it."""

    url: str

    def get(self, name: str) -> bytes:
        """All bytes of an object. Raises FileNotFoundError where there is none."""
        ...

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """The bytes from `start` on, at most `length`, fewer at the end. Raises FileNotFoundError where there is none."""
        ...

    def open(self, name: str) -> ObjectFile:
        """An object as a file, for pyarrow (a pyarrow.NativeFile). Raises FileNotFoundError where there is none."""
        ...

    def buffer(self, name: str) -> memoryview:
        """All bytes of an object, read-only, for reading here and there. What is mapped from a disk takes no memory of its own.

        Raises FileNotFoundError where there is none.
        """
        ...

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Names and sizes below a prefix (a folder name ending in "/", or "" for all), in the order of the names' bytes.

        A store answers page by page: an object that comes or goes meanwhile may or may not be named. An object that is not whole is never named.
        """
        ...

    def size(self, name: str) -> int | None:
        """The size of an object in bytes, None where there is none."""
        ...

    def location(self, name: str) -> str:
        """The object as other programs on this machine open it: an absolute path or a URL."""
        ...

    def strays(self, prefix: str) -> Iterator[str]:
        """Names below a prefix of what this store holds beside objects: on a disk empty folders; in most stores nothing."""
        ...


class ObjectFile(Protocol):
    """An object of a store as a file: read from a place on, a part at a time."""

    def read(self, nbytes: int | None = None, /) -> bytes:
        """The next bytes, at most so many; all that are left where no number is given."""
        ...

    def seek(self, position: int, whence: int = 0, /) -> int:
        """Go to a place, counted from the beginning (0), from here (1) or from the end (2)."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Store(Reader, Protocol):
    """A place that keeps bytes under relative names ("data/district=D0001/r1-ab12-0.parquet"; "/" separates, no ".." or absolute).

    Every verb raises StoreError where the store cannot be reached or refuses to write (full disk, no permission), naming the object.
    `url` opens the same store again, also in another process of this machine.
    """

    def create(self, name: str, data: bytes) -> str | None:
        """Write an object that must not exist; it is durable when this returns. Raises FileExistsError where it exists.

        Returns:
            The store's own mark of the content (an ETag), None where it keeps none.
        """
        ...

    def create_from(self, name: str, local_path: str) -> str | None:
        """As `create`, with the bytes of a file on this machine, which are never held whole."""
        ...

    def swap(self, name: str, expected: bytes | None, data: bytes) -> bool:
        """Replace an object's bytes if it still holds `expected` (None: if it does not exist). False where it holds something else.

        Of several that expect the same, one wins. A store with tags reads the object with its tag, compares the bytes, and replaces it on
        the condition that it still has that tag.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove an object; no error where there is none."""
        ...
