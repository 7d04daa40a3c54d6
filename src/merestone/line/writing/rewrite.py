"""Pass 3, touched partitions: which rows leave each, and which arrive.

Not here: writing one (`rewrite_partition`), which partitions are touched (`change.plan`), making it a version (`writer.commit`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.plan import Plan
from merestone.dataset.known import Halves, sort_by_hash
from merestone.dataset.manifest import DataFile
from merestone.engine.port import Engine
from merestone.line.comparing.published_rows import by_partition
from merestone.line.comparing.settle_bucket import CODE
from merestone.line.writing.rewrite_partition import RewriteJob, RewriteUnit, rewrite_partition
from merestone.scratch.spool import Spool


@dataclass(frozen=True, slots=True)
class Leaving:
    """Published rows that are not carried in their place: key hashes, uint64 (k, 2), and the partition codes that hold them, int32 (k,)."""

    hash: Halves
    partition: npt.NDArray[np.int32]

    def by_code(self) -> dict[int, Halves]:
        """The hashes of each partition code, sorted."""
        order = np.argsort(self.partition, kind="stable")
        codes, starts = np.unique(self.partition[order], return_index=True)
        parts = np.split(self.hash[order], starts[1:]) if len(codes) else []
        return {int(code): part[sort_by_hash(part)] for code, part in zip(codes, parts, strict=True)}


def rewrite(
    job: RewriteJob,
    plan: Plan,
    files: Sequence[DataFile],
    names: Sequence[str],
    ready: Sequence[Spool],
    leaving: Leaving,
    engine: Engine,
) -> list[DataFile]:
    """Write every touched partition that still has rows.

    Args:
        job: where and how.
        plan: what has to come out, exactly.
        files: the live files of the last version.
        names: the name of each partition code.
        ready: spools of the rows to write, by bucket.
        leaving: the published rows that are not carried in their place.
        engine: what carries out the units.

    Raises:
        StoreError, CorruptError, InternalError: as `rewrite_partition`; nothing is committed then.
    """
    here, gone, none = by_partition(files), leaving.by_code(), np.zeros((0, 2), np.uint64)
    code_of = {name: code for code, name in enumerate(names)}

    def unit(name: str, arriving: pa.Table | None) -> RewriteUnit:
        return RewriteUnit(job, name, tuple(here.get(name, ())), gone.get(code_of[name], none), arriving, plan.rows[name])

    def units() -> Iterator[RewriteUnit]:
        left = set(plan.touched)
        for spool in ready:
            table = spool.table().combine_chunks()
            spool.drop()
            if not table.num_rows:
                continue  # every row of the bucket turned out to be suppressed
            code = np.asarray(table.column(CODE))
            order = np.argsort(code, kind="stable")
            edges = np.flatnonzero(np.diff(code[order], prepend=-1))
            for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
                name = names[code[order[start]]]
                left.discard(name)
                yield unit(name, table.take(pa.array(order[start:end])))
        for name in sorted(left):  # partitions that only lose rows
            yield unit(name, None)

    return [file for written in engine.run_units(rewrite_partition, units()) for file in written]
