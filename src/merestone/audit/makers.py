"""Which run made each live feature of a version: the one that wrote its published row.

Not here: whether the events of these runs are complete (`completeness`), what they tell (`iso`).

A row that was moved, held, or delivered again without a change keeps the run that wrote it. The index says which version met a key last, so
logs are read only of versions that a live feature may come from, newest first, until every feature is resolved.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from merestone.audit.completeness import made_by
from merestone.dataset.feed import read_classes
from merestone.dataset.index import load_table
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.dataset.tables import IndexRows
from merestone.dataset.version import Dataset
from merestone.identity import key as keys

WROTE = pa.array(["added", "changed", "reprocessed"])
"""The classes of features whose published row a run wrote."""


def makers(dataset: Dataset, manifest: Manifest) -> Iterator[tuple[HistoryLine, pa.Array]]:
    """The versions whose runs wrote the live features of a version, newest first, each with the ids of these features (a string array).

    Raises:
        CorruptError: the index or a change log cannot be read.
    """
    index = IndexRows(load_table(dataset.store, manifest.index).select([IndexRows.key.name, IndexRows.version.name]))
    met = pc.unique(index.version).to_pylist()
    waiting = pa.array([], pa.binary())  # met by a later version that did not write them
    left = len(index)
    for line in made_by(dataset, manifest.version):
        if not left:
            return
        here = index.filter(pc.equal(index.version, line.version)).key.combine_chunks() if line.version in met else None
        candidates = waiting if here is None else pa.concat_arrays([waiting, here.cast(pa.binary())])
        if not len(candidates):
            continue
        log = read_classes(dataset.store, line.changes)
        wrote = log.filter(pc.is_in(log.kind, WROTE)).key.combine_chunks().cast(pa.binary())
        mine = pc.is_in(candidates, wrote)
        found, waiting = candidates.filter(mine), candidates.filter(pc.invert(mine))
        if len(found):
            left -= len(found)
            yield line, keys.ids_of(found)
