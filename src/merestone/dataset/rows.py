"""The published rows of some files, whole and in one schema.

Not here: which files a reader needs (`version`), which rows a change touches (`change`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merestone.dataset.manifest import DataFile, ObjectRef
from merestone.errors import CorruptError
from merestone.storage.port import Store

HINT = "restore the file from a backup, or roll back: merestone rollback DATASET --to N --reason ...; merestone verify names every damaged file"


_BLOCK = 1 << 22


def checksum(handle: Any) -> str:
    """The sha256 of an open file, hex; it is read to its end."""
    digest = hashlib.sha256()
    while block := handle.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def open_object(store: Store, ref: ObjectRef, *, prove: bool = False) -> tuple[Any, Any]:
    """A Parquet object that a manifest names: the open handle (close it) and the pyarrow.parquet.ParquetFile.

    Pages carry checksums of their own, which every reading proves. The footer carries none: a flipped bit there can shift a value's scale
    or its statistics unseen.

    Args:
        store: where the dataset is.
        ref: the object.
        prove: read it whole first, and hold its checksum against the manifest's: for whatever a new version is built from.

    Raises:
        CorruptError: it is missing, cut, altered, or holds another number of rows than the manifest says.
    """
    try:
        size = store.size(ref.path)
        if size != ref.bytes:
            state = "is missing" if size is None else f"has {size} bytes where the manifest says {ref.bytes}"
            raise CorruptError(f"{ref.path} {state}", field=ref.path, hint=HINT)
        handle = store.open(ref.path)
        if prove:
            if checksum(handle) != ref.sha256:
                handle.close()
                raise CorruptError(f"{ref.path} is altered: its checksum is not the one that the manifest names", field=ref.path, hint=HINT)
            handle.seek(0)
        file = pq.ParquetFile(handle, memory_map=False, page_checksum_verification=True)
    except (FileNotFoundError, pa.ArrowInvalid) as fault:
        raise CorruptError(f"{ref.path} cannot be read: {fault}", field=ref.path, hint=HINT) from fault
    if file.metadata.num_rows != ref.rows:
        raise CorruptError(f"{ref.path} holds {file.metadata.num_rows} rows where the manifest says {ref.rows}", field=ref.path, hint=HINT)
    return handle, file


def read_rows(store: Store, files: Iterable[DataFile], schema: Any) -> Any:
    """All rows of some data files as one pyarrow.Table of `schema`, proved; a column that a file is older than comes as typed nulls.

    Raises:
        CorruptError: a file is missing, cut or altered.
    """
    parts = []
    for ref in files:
        handle, file = open_object(store, ref, prove=True)
        with handle:
            there = set(file.schema_arrow.names)
            try:
                table = file.read(columns=[name for name in schema.names if name in there], use_threads=False)
            except (OSError, pa.ArrowInvalid) as fault:
                raise CorruptError(f"{ref.path} is altered: {fault}", field=ref.path, hint=HINT) from fault
        columns = [
            table.column(each.name).cast(each.type) if each.name in there else pa.chunked_array([pa.nulls(table.num_rows, each.type)])
            for each in schema
        ]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()
