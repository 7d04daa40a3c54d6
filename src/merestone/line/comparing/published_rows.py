"""Published rows, read again by key from the partitions that hold them.

Not here: reading files (`dataset.rows`), which rows are asked for (`settle`, `rewrite`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves, sort_by_hash
from merestone.dataset.manifest import DataFile
from merestone.dataset.rows import read_rows
from merestone.errors import CorruptError
from merestone.identity import key as keys
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """How the rows of the last version are read: in the schema of today's files, with the columns that their own key is made of."""

    schema: pa.Schema
    key_columns: tuple[str, ...]

    def read(self, store: Store, files: Sequence[DataFile]) -> tuple[pa.Table, pa.Array]:
        """The rows of some files, pyarrow.Table in one chunk, and their canonical keys.

        Raises:
            CorruptError: a file is damaged.
        """
        rows = read_rows(store, list(files), self.schema).combine_chunks()
        return rows, keys.key_bytes(rows, self.key_columns)[0]


def by_partition(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """The files of each partition."""
    out: dict[str, list[DataFile]] = {}
    for each in files:
        out.setdefault(each.partition, []).append(each)
    return out


@dataclass(frozen=True, slots=True)
class Published:
    """The features of the last version where they lie.

    Args:
        rows: how they are read.
        store: the dataset's.
        files: of each partition.
        names: the name of each partition code that is asked for.
    """

    rows: PublishedRows
    store: Store
    files: Mapping[str, Sequence[DataFile]]
    names: Sequence[str] | Mapping[int, str]

    def of_keys(self, hashes: Halves, partition: npt.NDArray[np.int32]) -> pa.Table:
        """The rows of some keys, in the order asked for: pyarrow.Table of `rows.schema`.

        Args:
            hashes: key hashes, uint64 (n, 2).
            partition: int32 (n,), the partition that the index names for each.

        Raises:
            CorruptError: a file is damaged, or lacks a feature that the index says it holds.
        """
        parts, places = [], []
        for code in np.unique(partition):
            here, name = np.flatnonzero(partition == code), self.names[code]
            rows, canonical = self.rows.read(self.store, self.files.get(name, []))
            there = halves(hashing.blake2b16(canonical))
            order = sort_by_hash(there)
            at = find(there[order], hashes[here])
            if (at < 0).any():
                raise CorruptError(
                    f"partition {name or 'data'} lacks {int((at < 0).sum())} features that the index says it holds",
                    field=name,
                    hint="run merestone verify DATASET; restore the file, or roll back",
                )
            parts.append(rows.take(pa.array(order[at])))
            places.append(here)
        table = pa.concat_tables(parts) if parts else self.rows.schema.empty_table()
        back = np.argsort(np.concatenate(places)) if places else np.zeros(0, np.int64)
        return table.take(pa.array(back))
