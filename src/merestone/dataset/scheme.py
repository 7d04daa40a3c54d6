"""How a version places its rows: its partitions with the values that they stand for, and for kdtree its splits.

Not here: names of partitions and the kd-tree (`partition`), the files of the partitions (`pages`), where a run puts rows (`line.preparing.placement`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from merestone.dataset.manifest import Manifest
from merestone.dataset.pages import PartitionFiles
from merestone.dataset.partition import Tree, tree_from_table
from merestone.dataset.proved import proving, read_table
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where the rows of a version lie. `values`: partition name to column value (column scheme); `tree`: the splits (kdtree)."""

    values: dict[str, str | None]
    tree: Tree | None


def scheme_of(store: Store, manifest: Manifest, entries: Mapping[str, PartitionFiles]) -> Scheme:
    """How a version places its rows; `entries` are its live entries.

    Raises:
        CorruptError: the object that holds the splits is missing or altered.
    """
    values = {each.partition: each.value for each in entries.values()} if manifest.partitioning["by"] == "column" else {}
    if manifest.tree is None:
        return Scheme(values, None)
    table = read_table(store, manifest.tree)
    with proving(manifest.tree):
        return Scheme(values, tree_from_table(table))
