"""Objects that a version names, proved while they are read: what differs from the manifest raises `CorruptError` with the object's name.

Not here: which objects a reader needs (`version`, `pages`, `history`), proof of a whole dataset (`verify`).

Objects of up to SMALL bytes are read whole and held against their SHA-256. Of larger ones the footer is held against its own, and each
Parquet page against the checksum that it carries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from merestone.dataset.manifest import ObjectRef, sha256
from merestone.errors import CorruptError
from merestone.storage.port import ObjectFile, Store

HINT = "restore the file from a backup, or roll back: «rollback(DATASET, to=N, reason=TEXT)»; «verify(DATASET)» names every damaged file"
SMALL = 16 << 20
_BLOCK = 1 << 22
_MAGIC = b"PAR1"
# What Arrow raises on damaged bytes, besides its own exceptions: a Thrift structure that is cut, text that is not UTF-8, a length that overflows.
_UNREADABLE = (OSError, pa.ArrowException, ValueError, KeyError, IndexError, OverflowError, MemoryError)


def checksum(handle: ObjectFile) -> str:
    """The SHA-256 of an open file, hex; it is read to its end."""
    digest = hashlib.sha256()
    while block := handle.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def footer_of(handle: ObjectFile | BinaryIO, size: int) -> bytes:
    """The footer of an open Parquet file of `size` bytes: metadata, their length and the magic bytes. Raises ValueError where there is none."""
    handle.seek(max(size - 8, 0))
    end = handle.read(8)
    length = int.from_bytes(end[:4], "little") + 8
    if end[4:] != _MAGIC or length > size:
        raise ValueError("it does not end in a Parquet footer")
    handle.seek(size - length)
    found: bytes = handle.read(length)
    return found


class ProvedFile:
    """A Parquet object of a version, open. `schema` is its pyarrow.Schema, `metadata` its pyarrow.parquet.FileMetaData."""

    def __init__(self, ref: ObjectRef, handle: ObjectFile, metadata: pq.FileMetaData | None = None) -> None:
        self.ref = ref
        with proving(ref):
            self._parquet = pq.ParquetFile(handle, metadata=metadata, memory_map=False, page_checksum_verification=True)
            self.metadata = self._parquet.metadata
            self.schema = self._parquet.schema_arrow
        if self.metadata.num_rows != ref.rows:
            raise altered(ref, f"holds {self.metadata.num_rows} rows where the manifest says {ref.rows}")

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows as a pyarrow.Table. Raises CorruptError where a page differs from its checksum or cannot be decoded."""
        with proving(self.ref):
            return self._parquet.read(columns=None if columns is None else list(columns), use_threads=False)

    def groups(self, columns: Sequence[str] | None = None, numbers: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Row groups as pyarrow.Table each, all or those of the numbers given. Raises CorruptError as `read`."""
        for number in range(self.metadata.num_row_groups) if numbers is None else numbers:
            with proving(self.ref):
                table = self._parquet.read_row_group(number, columns=None if columns is None else list(columns), use_threads=False)
            yield table


@contextmanager
def opened(store: Store, ref: ObjectRef, *, whole: bool = False) -> Iterator[ProvedFile]:
    """A Parquet object that a version names.

    Args:
        store: where the dataset is.
        ref: the object.
        whole: prove every byte first, however large it is: for whatever a new version is built from.

    Raises:
        CorruptError: it is missing, cut, altered, or holds another number of rows than the manifest says.
    """
    if ref.bytes <= SMALL:
        yield ProvedFile(ref, pa.BufferReader(read_bytes(store, ref)))
        return
    _check_size(store, ref)
    try:
        handle = store.open(ref.path)
    except FileNotFoundError as fault:
        raise altered(ref, "is missing") from fault
    with handle:
        if whole or not ref.footer_sha256:
            if checksum(handle) != ref.sha256:
                raise altered(ref)
            handle.seek(0)
            yield ProvedFile(ref, handle)
            return
        with proving(ref):
            footer = footer_of(handle, ref.bytes)
        if sha256(footer) != ref.footer_sha256:
            raise altered(ref)
        with proving(ref):
            metadata = pq.read_metadata(pa.BufferReader(footer))
        handle.seek(0)
        yield ProvedFile(ref, handle, metadata)


def read_bytes(store: Store, ref: ObjectRef) -> bytes:
    """All bytes of an object that a version names.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    _check_size(store, ref)
    try:
        data = store.get(ref.path)
    except FileNotFoundError as fault:
        raise altered(ref, "is missing") from fault
    if sha256(data) != ref.sha256:
        raise altered(ref)
    return data


def read_table(store: Store, ref: ObjectRef, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet object that a version names, as one pyarrow.Table. Raises CorruptError as `opened`."""
    with opened(store, ref) as file:
        return file.read(columns)


def altered(ref: ObjectRef, how: str = "is altered: its checksum is not the one that the manifest names") -> CorruptError:
    """The error that names an object which is not what a version says."""
    return CorruptError(f"{ref.path} {how}", field=ref.path, hint=HINT)


@contextmanager
def proving(ref: ObjectRef) -> Iterator[None]:
    """What fails while the bytes of an object are decoded means that they are damaged."""
    try:
        yield
    except _UNREADABLE as fault:
        raise altered(ref, f"is altered: {fault}") from fault


def _check_size(store: Store, ref: ObjectRef) -> None:
    size = store.size(ref.path)
    if size != ref.bytes:
        raise altered(ref, "is missing" if size is None else f"has {size} bytes where the manifest says {ref.bytes}")
