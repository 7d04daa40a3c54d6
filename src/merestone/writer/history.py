"""The history that a new version carries: that of its parent, and the parent's own line.

Not here: reading it (`dataset.history`), the commit that asks for it (`commit`).
"""

from __future__ import annotations

from merestone.dataset.current import Current
from merestone.dataset.history import chunk_table, read_chunk
from merestone.dataset.manifest import Chunk, History, line_of
from merestone.storage.port import Store
from merestone.writer.files import write_table

HISTORY = "_history/"
RECENT = 16
"""So many versions become a chunk, and so many chunks of one size a larger one."""


def next_history(store: Store, parent: Current | None, stem: str) -> History:
    """The history of a version that follows `parent`; writes a chunk when enough lines have gathered.

    Args:
        store: where the dataset is.
        parent: the version that it follows, None for the first.
        stem: how the objects of the attempt are called.

    Raises:
        CorruptError: chunks are to be merged, and one of them is missing or altered.
        StoreError: the store refused.
    """
    if parent is None:
        return History()
    history = parent.manifest.history
    recent = (*history.recent, line_of(parent.manifest, parent.sha256))
    if len(recent) < RECENT:
        return History(history.chunks, recent)
    found, kept, size = list(recent), list(history.chunks), RECENT
    while [each.rows for each in kept[-(RECENT - 1) :]] == [size] * (RECENT - 1):
        merged, kept = kept[-(RECENT - 1) :], kept[: -(RECENT - 1)]
        found = [each for chunk in merged for each in read_chunk(store, chunk)] + found
        size = len(found)
    ref = write_table(store, f"{HISTORY}{stem}.parquet", chunk_table(found).table, use_dictionary=False, store_schema=False)
    return History((*kept, Chunk.of(ref, found[0].version, found[-1].version)), ())
