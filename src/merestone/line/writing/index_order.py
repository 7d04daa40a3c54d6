"""The checkpoint of the index, in the order of the delivery that the version was made from.

Not here: its form (`dataset.checkpoint`, `writer.checkpoint`), when one is written (`dataset.index`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.columnar import hashing
from merestone.columnar.lookup import AGAIN
from merestone.dataset.index import live_keys, live_rows, load
from merestone.dataset.known import Halves, Known, halves, unhalves
from merestone.dataset.manifest import IndexRef, ObjectRef
from merestone.dataset.partition import Partitions
from merestone.dataset.tables import CheckpointRows
from merestone.line.preparing.reading import KEY
from merestone.line.receiving.candidates import Candidates
from merestone.scratch.room import mapped, room_in
from merestone.storage.port import Store
from merestone.writer.checkpoint import write_checkpoint


def first_checkpoint(
    store: Store,
    name: str,
    candidates: Candidates,
    codes: npt.NDArray[np.int16],
    digest: Halves,
    placed: npt.NDArray[np.int32],
    names: list[str],
    version: int,
    folder: str,
) -> ObjectRef:
    """The checkpoint of a first version: every row that was added.

    Args:
        store: where the dataset is.
        name: of the object.
        candidates: every delivered row.
        codes: the class of each.
        digest: what is stored of each, uint64 (n, 2).
        placed: the partition code of each.
        names: the name of each partition code.
        version: the version.
        folder: the scratch folder.
    """

    def pieces() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in candidates.spool.batches(KEY):
            rows = start + np.flatnonzero(codes[start : start + batch.num_rows] == classes.ADDED)
            keys = batch.column(KEY).take(pa.array(rows - start))
            made = np.full(len(rows), version, np.int64)
            yield _piece(keys, candidates.hash[rows], candidates.source[rows], digest[rows], placed[rows], made)
            start += batch.num_rows

    return write_checkpoint(store, name, pieces(), names, folder)


def next_checkpoint(store: Store, name: str, index: IndexRef, keys: Iterable[pa.Array], folder: str) -> ObjectRef:
    """The checkpoint of a version in the order of its delivery; what stays though it was not delivered comes last.

    Args:
        store: where the dataset is.
        name: of the object.
        index: the index of the version: the last checkpoint, and the logs up to its own.
        keys: the canonical key of each delivered row; null where it has none.
        folder: the scratch folder.

    Raises:
        CorruptError: a file of the index is missing, cut or altered.
        StoreError: the store or the scratch folder cannot be written.
    """
    partitions = Partitions(None)
    known = load(store, index, partitions, room_in(folder))
    resting = _Resting(store, index, known, folder)

    def pieces() -> Iterator[pa.RecordBatch]:
        for batch in keys:
            slots, _, said = known.lookup.meet(halves(hashing.blake2b16(batch)), None)
            rows = np.flatnonzero((slots >= 0) & ((said & AGAIN) == 0) & np.asarray(batch.is_valid()))
            yield resting.piece(batch.take(pa.array(rows)), slots[rows])
        rest = known.unclaimed()
        at = 0
        for left in live_keys(store, index, rest):
            yield resting.piece(left, rest[at : at + len(left)])
            at += len(left)

    return write_checkpoint(store, name, pieces(), partitions.names(), folder)


class _Resting:
    """What the index says of each feature beside its hash, by slot: the version that made it, and the digest where it is not the source's."""

    def __init__(self, store: Store, index: IndexRef, known: Known, folder: str) -> None:
        self._known = known
        slots = known.slots()
        size = int(slots[-1]) + 1 if len(slots) else 1
        self._version = mapped(folder, (size,), np.int32)
        self._digest: npt.NDArray[Any] | None = None
        at = 0
        for batch in live_rows(store, index, slots, ["digest", "version"]):
            here = slots[at : at + batch.num_rows]
            at += batch.num_rows
            self._version[here] = np.asarray(batch.column("version"))
            digest, source = halves(batch.column("digest")), known.source_of(here)
            if self._digest is None and (digest != source).any():
                self._digest = mapped(folder, (size, 2), np.uint64)
                self._digest[slots[: at - batch.num_rows]] = known.source_of(slots[: at - batch.num_rows])
            if self._digest is not None:
                self._digest[here] = digest

    def piece(self, keys: pa.Array, slots: npt.NDArray[Any]) -> pa.RecordBatch:
        """Some features, as the checkpoint has them."""
        known, source = self._known, self._known.source_of(slots)
        digest = source if self._digest is None else self._digest[slots]
        return _piece(keys, known.hash_of(slots), source, digest, known.partition_of(slots), self._version[slots].astype(np.int64))


def _piece(
    keys: pa.Array, hashes: Halves, source: Halves, digest: Halves, partition: npt.NDArray[np.int32], version: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    """Rows of a checkpoint; a digest that is the source's is left out."""
    published = unhalves(digest)
    other = (digest != source).any(axis=1)
    if not other.all():
        valid = pa.py_buffer(np.packbits(other, bitorder="little"))
        published = pa.FixedSizeBinaryArray.from_buffers(published.type, len(other), [valid, published.buffers()[1]])
    columns = [keys.cast(pa.binary()), unhalves(hashes), unhalves(source), published, pa.array(partition), pa.array(version)]
    return pa.RecordBatch.from_arrays(columns, schema=CheckpointRows.schema)
