"""The published rows of some files, whole and in one schema.

Not here: which files a reader needs (`version`), which rows a change touches (`change`), the proof of what is read (`proved`).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from merestone.dataset.manifest import DataFile
from merestone.dataset.proved import opened, proving
from merestone.storage.port import Store


def read_rows(store: Store, files: Iterable[DataFile], schema: pa.Schema) -> pa.Table:
    """All rows of some data files as one pyarrow.Table of `schema`, proved to the last byte; a column that a file is older than comes as typed nulls.

    Raises:
        CorruptError: a file is missing, cut or altered.
    """
    parts = []
    for ref in files:
        with opened(store, ref, whole=True) as file:
            there = set(file.schema.names)
            parts.append(shaped(ref, file.read([name for name in schema.names if name in there]), schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def shaped(ref: DataFile, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema`; one that the file is older than comes as typed nulls. Raises CorruptError where a type does not fit."""
    there = set(table.schema.names)
    with proving(ref):
        columns = [
            table.column(each.name).cast(each.type) if each.name in there else pa.chunked_array([pa.nulls(table.num_rows, each.type)])
            for each in schema
        ]
    return pa.Table.from_arrays(columns, schema=schema)
