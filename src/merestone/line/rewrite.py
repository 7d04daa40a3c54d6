"""Pass 3, touched partitions: carried rows and candidates, sorted, written beside what is there, read back.

Not here: which partitions are touched (`change.plan`), the change log (`log`), making it a version (`publish.commit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from merestone.change.plan import Plan
from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves, sort_by_hash
from merestone.dataset.manifest import DataFile
from merestone.dataset.rows import read_rows
from merestone.engine.threads import run_units
from merestone.errors import InternalError
from merestone.identity import key as keys
from merestone.line.prepared import KEY, PublishedRows
from merestone.line.process import CODE
from merestone.publish.files import Layout, sort_rows, write_partition
from merestone.scratch.spool import Spool
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Job:
    """What pass 3 needs besides the rows: where to write, the layout, how objects are named, and what is already published."""

    store: Store
    layout: Layout
    published: PublishedRows
    stem: str
    version: int
    run_id: str
    files: tuple[DataFile, ...]
    names: list[str]


def rewrite(job: Job, plan: Plan, ready: list[Spool], leaving: Halves, *, workers: int) -> list[DataFile]:
    """Write every touched partition that still has rows.

    Args:
        job: where and how.
        plan: what has to come out, exactly.
        ready: spools of the rows to write, by bucket.
        leaving: key hashes of published rows that are not carried in their place, uint64 (k, 2).
        workers: how many partitions at a time.

    Raises:
        StoreError: the store refused, or a file does not read back as it was written.
        CorruptError: a published file is damaged.
        InternalError: a partition came out with another number of rows than planned; nothing is committed then.
    """
    gone = leaving[sort_by_hash(leaving)]
    by_name: dict[str, list[DataFile]] = {}
    for file in job.files:
        by_name.setdefault(file.partition, []).append(file)
    left = set(plan.touched)

    def units() -> Iterator[tuple[str, Any]]:
        for spool in ready:
            table = spool.table().combine_chunks()
            spool.drop()
            if not table.num_rows:
                continue  # every row of the bucket turned out to be suppressed
            code = np.asarray(table.column(CODE))
            order = np.argsort(code, kind="stable")
            edges = np.flatnonzero(np.diff(code[order], prepend=-1))
            for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
                name = job.names[code[order[start]]]
                left.discard(name)
                yield name, table.take(pa.array(order[start:end]))
        for name in sorted(left):  # partitions that only lose rows
            yield name, None

    def task(unit: tuple[str, Any]) -> list[DataFile]:
        name, arriving = unit
        return _write(job, name, arriving, by_name.get(name, []), gone, plan.rows[name])

    return [file for files in run_units(task, units(), workers=workers) for file in files]


def _write(job: Job, name: str, arriving: Any, files: list[DataFile], gone: Halves, expected: int) -> list[DataFile]:
    schema = job.layout.row_schema
    rows = read_rows(job.store, files, job.published.schema).combine_chunks()
    canonical, _ = keys.key_bytes(rows, job.published.key_columns)
    stays = pa.array(find(gone, halves(hashing.blake2b16(canonical))) < 0)
    rows, key_bytes = rows.filter(stays).select(schema.names).cast(schema), canonical.filter(stays)
    if arriving is not None:
        rows = pa.concat_tables([rows, arriving.select(schema.names).cast(schema)])
        key_bytes = pa.concat_arrays([key_bytes, arriving.column(KEY).combine_chunks().cast(key_bytes.type)])
    if rows.num_rows != expected:
        raise InternalError(
            f"partition {name or 'data'} came out with {rows.num_rows} rows, {expected} were planned; nothing was published",
            field=name,
            hint="please report this, with the run record",
        )
    return write_partition(
        job.store,
        sort_rows(rows.combine_chunks(), key_bytes, job.layout),
        job.layout,
        partition=name,
        stem=job.stem,
        version=job.version,
        run_id=job.run_id,
    )
