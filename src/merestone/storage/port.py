"""Bytes by name: the few verbs that Merestone asks of a store.

Not here: what the bytes mean, which name is the pointer (`writer.commit`), any one store (`local`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from merestone.errors import StoreError


class Hold(Protocol):
    """A sign that the process which created an object is alive. It ends with `release` or with the process, however that ends."""

    def release(self) -> None:
        """Give the sign up; the object stays."""
        ...


class LostReplyError(StoreError):
    """A request was sent and no answer came: it may have been carried out, or may yet be. The caller has to read back."""


class Store(Protocol):
    """A place that keeps bytes under relative names ("data/district=D0001/r1-ab12-0.parquet"; "/" separates, no ".." or absolute).

    Every verb raises StoreError where the store cannot be reached or refuses to write (full disk, no permission), naming the object.
    """

    url: str

    def get(self, name: str) -> bytes:
        """All bytes of an object. Raises FileNotFoundError where there is none."""
        ...

    def open(self, name: str) -> Any:
        """A seekable binary file object for pyarrow (pyarrow.NativeFile). Raises FileNotFoundError where there is none."""
        ...

    def create(self, name: str, data: bytes) -> str | None:
        """Write an object that must not exist, durably (fsync of file and folder). Raises FileExistsError where it exists.

        Returns:
            The store's own mark of the content (an ETag), None where it keeps none.
        """
        ...

    def create_from(self, name: str, local_path: str) -> str | None:
        """As `create`, with the bytes of a local file (for files too large to hold)."""
        ...

    def create_held(self, name: str, data: bytes) -> Hold:
        """As `create`, and from the first moment that the object can be seen it is `held` by this process."""
        ...

    def held(self, name: str) -> bool:
        """Whether the process that made the object with `create_held` still holds it. False where there is none."""
        ...

    def swap(self, name: str, expected: bytes | None, data: bytes) -> bool:
        """Replace an object's bytes if it still holds `expected` (None: if it does not exist). False where it holds something else."""
        ...

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Names and sizes below a prefix (a folder name ending in "/"), in name order; temporary files of `create` never appear."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; no error where there is none."""
        ...

    def size(self, name: str) -> int | None:
        """The size of an object in bytes, None where there is none."""
        ...
