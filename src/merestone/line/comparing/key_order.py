"""The canonical keys of candidates, read from their spool: of some rows, and of all in the order of their bytes, a range at a time.

Not here: what a canonical key is (`identity.key`), what is written in that order (`change_log`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.line.preparing.reading import KEY
from merestone.scratch.spool import ROW, Spool

RANGE_BYTES = 16 << 20  # of keys that are sorted at a time; sorting needs them about three times
SAMPLED = 64  # keys of a batch that decide where ranges begin
_SCHEMA = pa.schema([(KEY, pa.binary()), (ROW, pa.int64())])


def key_batches(spool: Spool, rows: npt.NDArray[np.int64]) -> Iterator[pa.Array]:
    """The canonical keys of some rows of a spool (ascending), a pyarrow binary array for each batch that holds any."""
    at = 0
    for batch in spool.batches(KEY):
        end = at + batch.num_rows
        low, high = np.searchsorted(rows, (at, end))
        if high > low:
            yield batch.column(KEY).take(pa.array(rows[low:high] - at)).cast(pa.binary())
        at = end


def key_bytes(spool: Spool, rows: npt.NDArray[np.int64]) -> pa.Array:
    """As `key_batches`, in one array: for rows that are known to be few."""
    parts = list(key_batches(spool, rows))
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())


def in_order(
    batches: Callable[[], Iterable[pa.Array]], folder: str, *, budget: int = RANGE_BYTES
) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """Sort keys that may not fit into memory: what exceeds the budget is split into ranges at rest, which are sorted one by one.

    Args:
        batches: gives all keys, binary arrays; called twice where they exceed the budget.
        folder: the scratch folder.
        budget: bytes of keys that are held at a time, about.

    Yields:
        Keys in ascending order of their bytes, within and across ranges, with their places among all keys, int64.

    Raises:
        StoreError: the scratch folder is full or cannot be written.
    """
    held: list[pa.Array] = []
    sample: list[pa.Array] = []
    size = 0
    for part in batches():
        size += part.nbytes
        sample.append(part.take(pa.array(np.unique(np.linspace(0, len(part) - 1, SAMPLED, dtype=np.int64)))) if len(part) else part)
        held = [*held, part] if size <= budget else []
    if size <= budget:
        keys = pa.concat_arrays(held) if held else pa.array([], pa.binary())
        yield _sorted(keys, np.arange(len(keys)))
        return
    for spool in _split(batches(), _edges(pa.concat_arrays(sample), size, budget), folder):
        table = spool.table()
        spool.drop()
        yield _sorted(table.column(KEY).combine_chunks(), np.asarray(table.column(ROW)))


def _sorted(keys: pa.Array, places: npt.NDArray[np.int64]) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    order = pc.sort_indices(keys)
    return keys.take(order), places[np.asarray(order)]


def _edges(sample: pa.Array, size: int, budget: int) -> pa.Array:
    """The keys at which ranges begin, but for the first range."""
    ranges = min(-(-size // budget), max(2, os.sysconf("SC_OPEN_MAX") // 4), len(sample))
    places = np.linspace(0, len(sample), ranges, endpoint=False, dtype=np.int64)[1:]
    return sample.take(pc.sort_indices(sample).take(pa.array(places)))


def _split(batches: Iterable[pa.Array], edges: pa.Array, folder: str) -> list[Spool]:
    """The ranges, in order, each with its keys and their places."""
    out = [Spool(folder, f"keys-{n}", _SCHEMA) for n in range(len(edges) + 1)]
    at = 0
    for part in batches:
        order = np.asarray(pc.sort_indices(pa.concat_arrays([edges, part]))).astype(np.int64) - len(edges)
        begins = np.flatnonzero(order < 0)  # each edge stands before the keys of its range
        rows = order[order >= 0]
        bounds = [0, *(begins - np.arange(len(begins))).tolist(), len(rows)]
        for spool, low, high in zip(out, bounds[:-1], bounds[1:], strict=True):
            if high > low:
                mine = pa.array(rows[low:high])
                spool.write(pa.RecordBatch.from_arrays([part.take(mine), pa.array(rows[low:high] + at)], schema=_SCHEMA))
        at += len(part)
    for spool in out:
        spool.close()
    return out
