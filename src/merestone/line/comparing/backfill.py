"""Backfilled features: changed in fields alone that held no value in the last version, since a contract had only just asked for them.

Not here: the guards, which do not count them (`change_verdict`, `guards_before_processing`), classes (`settle`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from merestone.change import classes
from merestone.dataset.manifest import DataFile
from merestone.dataset.proved import opened
from merestone.line.comparing.settle import Settled
from merestone.line.run import Run
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.storage.port import Store


def filled_fields(run: Run, settled: Settled, features: int) -> frozenset[str]:
    """The fields with changes that held no value in the last version.

    A field that the last version's contract did not have held none. Of any other that changed in more features than a guard lets pass, the
    footers of the data files say it.

    Args:
        run: after pass 2.
        settled: the candidates, or a sample of them.
        features: how many features these stand for: of the last version, or of the sample.

    Raises:
        CorruptError: a data file is missing, cut or altered.
    """
    if run.head is None:
        return frozenset()
    then = {each["name"] for each in run.head.manifest.contract["schema_fields"]}
    changed = settled.column_changes
    new = {name for name in changed if name not in then}
    rule = run.publication.guard
    limit = min((each for each in (rule.max_changed_fraction, rule.max_column_changed_fraction) if each is not None), default=None)
    many = [name for name, count in changed.items() if name in then and limit is not None and count > limit * features]
    return frozenset(new | _without_values(run.store, run.files, many))


def backfilled(settled: Settled, filled: Collection[str]) -> npt.NDArray[np.bool_]:
    """Bool (n,), the candidates that changed in the filled fields alone."""
    out = (settled.codes == classes.CHANGED) & settled.attributes & ~settled.geometry
    for name, rows in settled.fields:
        if name not in filled:
            out[rows] = False
    return out if filled else np.zeros(len(out), bool)


def backfill_finding(filled: Collection[str], count: int, features: int) -> Finding:
    """What is said of backfilled features: they are changes that no guard counts."""
    names = ", ".join(sorted(filled))
    return catalogue.BACKFILLED.finding(names, count=count, names=names, total=features)


def _without_values(store: Store, files: Sequence[DataFile], fields: Sequence[str]) -> set[str]:
    """The fields that are null in every row of some files, by the statistics in their footers."""
    left = set(fields)
    for file in files:
        if not left:
            break
        with opened(store, file) as parquet:
            left -= {name for name in left if not _all_null(parquet.metadata, name)}
    return left


def _all_null(meta: object, name: str) -> bool:
    """Whether a column is null in every row of a file; one that the file does not have is."""
    for group in range(meta.num_row_groups):  # type: ignore[attr-defined]  # pyarrow.parquet.FileMetaData
        row_group = meta.row_group(group)  # type: ignore[attr-defined]
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            if column.path_in_schema.split(".")[0] != name:
                continue
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count != column.num_values:
                return False
    return True
