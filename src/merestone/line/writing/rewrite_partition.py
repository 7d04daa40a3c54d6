"""The task of pass 3: one partition written anew beside the old one, by itself and in any process.

Not here: which partitions are touched (`change.plan`), making the files a version (`writer.commit`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves
from merestone.dataset.manifest import DataFile
from merestone.errors import InternalError
from merestone.line.comparing.published_rows import PublishedRows
from merestone.line.preparing.reading import KEY
from merestone.storage.open import open_store
from merestone.storage.port import Store
from merestone.writer.files import FileLayout, sort_rows, write_partition


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """What all partitions of a run have in common: the store by its URL, the layout of files, how published rows are read, how objects are named."""

    store: str
    layout: FileLayout
    published: PublishedRows
    stem: str
    run_id: str


@dataclass(frozen=True, slots=True)
class RewriteUnit:
    """One partition.

    Args:
        job: what it has in common with the others.
        name: the partition.
        files: the files that hold it now.
        leaving: key hashes of its rows that are not carried, uint64 (k, 2), sorted.
        arriving: pyarrow.Table of the rows that come, with their key bytes; None where none do.
        rows: how many rows have to come out.
    """

    job: RewriteJob
    name: str
    files: tuple[DataFile, ...]
    leaving: Halves
    arriving: pa.Table | None
    rows: int


def rewrite_partition(unit: RewriteUnit) -> list[DataFile]:
    """Write one partition.

    Raises:
        StoreError: the store refused, or a file does not read back as it was written.
        CorruptError: a published file is damaged.
        InternalError: it came out with another number of rows than planned.
    """
    job, store = unit.job, open_store(unit.job.store)
    schema = job.layout.row_schema
    rows, key_bytes = carried_rows(unit, store)
    if unit.arriving is not None:
        rows = pa.concat_tables([rows, unit.arriving.select(schema.names).cast(schema)])
        key_bytes = pa.concat_arrays([key_bytes, unit.arriving.column(KEY).combine_chunks().cast(key_bytes.type)])
    if rows.num_rows != unit.rows:
        raise InternalError(
            f"partition {unit.name or 'data'} came out with {rows.num_rows} rows, {unit.rows} were planned; nothing was published",
            field=unit.name,
            hint="please report this, with the run record",
        )
    return write_partition(
        store,
        sort_rows(rows.combine_chunks(), key_bytes, job.layout),
        job.layout,
        partition=unit.name,
        stem=job.stem,
        run_id=job.run_id,
    )


def carried_rows(unit: RewriteUnit, store: Store) -> tuple[pa.Table, pa.Array]:
    """The rows of the partition that stay as they are, in the schema of today's files, and their canonical keys."""
    schema = unit.job.layout.row_schema
    rows, key_bytes = unit.job.published.read(store, unit.files)
    stays = pa.array(find(unit.leaving, halves(hashing.blake2b16(key_bytes))) < 0)
    return rows.filter(stays).select(schema.names).cast(schema), key_bytes.filter(stays)
