"""Where rows go: the partition scheme of a run, and the partition of each candidate.

Not here: names of partitions and the kd-tree (`dataset.partition`), which partitions a change touches (`change.plan`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change.guards import Box
from merestone.columnar.unicode import nfc
from merestone.dataset.known import Halves
from merestone.dataset.manifest import Manifest
from merestone.dataset.partition import Partitions, Tree, build_tree, leaf_names, place
from merestone.dataset.scheme import Scheme
from merestone.json_value import JsonObject
from merestone.publication.publication import PartitionRule
from merestone.scratch.spool import Numbers

SAMPLE = 1 << 20  # positions that the kd-tree is drawn from, about
CHUNK = 1 << 18  # positions that are placed at a time


@dataclass(frozen=True, slots=True)
class Placement:
    """The partition scheme of one run.

    Args:
        rule: as the publication has it.
        tree: the kd-tree of the last version, if there is one.
        bounds: of the Hilbert order, those of the last version; None until a version has positions.
    """

    rule: PartitionRule
    tree: Tree | None = None
    bounds: Box | None = None

    @property
    def spatial(self) -> bool:
        """Whether partitions are cells in space."""
        return self.rule.by == "kdtree"

    def record(self, bounds: Box) -> JsonObject:
        """The scheme as it stands in the manifest; values stand in its pages, the tree in an object of its own."""
        scheme: JsonObject = {"by": self.rule.by, "bounds": list(bounds)}
        if self.rule.by == "column":
            return scheme | {"column": self.rule.column}
        return scheme | ({"target_rows": self.rule.target_rows} if self.rule.by == "kdtree" else {})


def placement_after(rule: PartitionRule, last: Manifest | None, scheme: Scheme | None) -> tuple[Placement, Partitions]:
    """The scheme that follows a version, and the codes of its partitions; of a first publish where there is none.

    Args:
        rule: as the publication has it.
        last: the version that is followed.
        scheme: how that version places its rows.
    """
    column = rule.column if rule.by == "column" else None
    if last is None or scheme is None:
        return Placement(rule), Partitions(column)
    west, south, east, north = last.partitioning["bounds"]
    bounds = (west, south, east, north) if last.files.bbox is not None else None  # of no position they are nothing
    return Placement(rule, scheme.tree, bounds), Partitions(column, scheme.values.items())


def codes_of(partitions: Partitions, values: pa.Array) -> npt.NDArray[np.int32]:
    """The code of each row's partition value; values compare as text (NFC)."""
    if pa.types.is_floating(values.type):
        raise TypeError("a partition column of floats is refused before any row is read")
    text = values if pa.types.is_string(values.type) else values.cast(pa.string())
    text = nfc(text)
    met = pc.index_in(text, value_set=partitions.column_values)
    codes = partitions.value_codes[np.asarray(met.fill_null(0))] if len(partitions.value_codes) else np.zeros(len(text), np.int32)
    if met.null_count:
        new = np.flatnonzero(np.asarray(met.is_null()))
        encoded = text.take(pa.array(new)).dictionary_encode(null_encoding="encode")
        codes[new] = partitions.of_values(encoded.dictionary.to_pylist())[np.asarray(encoded.indices)]
    return codes


def place_candidates(
    placement: Placement,
    partitions: Partitions,
    *,
    by_value: npt.NDArray[np.int32],
    centres: Numbers,
    hashes: Halves,
    rejected: npt.NDArray[np.bool_],
    before: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], Tree | None]:
    """The partition code of each of n candidates, and the kd-tree, if there is one.

    Args:
        placement: the scheme.
        partitions: the codes of partitions.
        by_value: int32 (n,), the code of each row's partition value, where a column places them.
        centres: x, y of the middle of each stored geometry, where cells place them.
        hashes: uint64 (n, 2), key hashes.
        rejected: bool (n,); a rejected row keeps the partition of its published feature.
        before: int32 (n,), the partition of the published feature, -1 where there is none.
    """
    tree = placement.tree
    if placement.rule.by == "column":
        placed = by_value.copy()
    elif placement.rule.by == "none":
        placed = np.full(len(hashes), partitions.of_names([""])[0], np.int32)
    else:
        if tree is None:
            tree = _draw(centres, rejected, hashes, placement.rule.target_rows)
        codes = partitions.of_names(leaf_names(tree))
        placed = np.concatenate([codes[place(tree, each)] for each in centres.chunks(CHUNK)] or [np.zeros(0, np.int32)])
    held = rejected & (before >= 0)
    placed[held] = before[held]
    return placed, tree


def _draw(centres: Numbers, rejected: npt.NDArray[np.bool_], hashes: Halves, target_rows: int) -> Tree:
    """The kd-tree, from all accepted features or from about SAMPLE of them: those of least key hash; row order has no say."""
    total = int((~rejected).sum())
    limit = np.uint64(min(SAMPLE / max(total, 1), 1.0) * float(2**64 - 2**12))
    points, at = [np.zeros((0, 2))], 0
    for chunk in centres.chunks(CHUNK):
        here = slice(at, at + len(chunk))
        at = here.stop
        points.append(chunk[~rejected[here] & ((hashes[here, 0] <= limit) | (total <= SAMPLE))])
    return build_tree(np.concatenate(points), target_rows, total)
