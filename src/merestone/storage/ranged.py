"""An object as a seekable file, over ranged reads: what stores without files of their own answer to `open`.

Not here: the reads themselves (`port`), Parquet (`dataset.rows`).
"""

from __future__ import annotations

import io
from collections.abc import Callable


class RangedFile(io.RawIOBase):
    """A read-only file of known size. Each read asks for exactly what is read; pyarrow asks for whole column chunks."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Begin at the first byte.

        Args:
            read: gives the bytes from a position on, at most so many.
            size: how many bytes there are.
        """
        super().__init__()
        self._read, self._size, self._at = read, size, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position; beyond the end nothing is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, all of them where no size is given."""
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._read(self._at, wanted) if wanted else b""
        self._at += len(data)
        return data

    def size(self) -> int:
        """How many bytes there are; pyarrow asks for it."""
        return self._size
