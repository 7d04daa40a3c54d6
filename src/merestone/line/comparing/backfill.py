"""Backfilled features: changed in fields alone that held no value in the last version, since a contract had only just asked for them.

Not here: the guards, which do not count them (`change_verdict`, `guards_before_processing`), classes (`settle`).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from merestone.change import classes
from merestone.dataset.values import split_new, without_values
from merestone.line.comparing.settle import Settled
from merestone.line.run import Run
from merestone.results.finding import Finding
from merestone.rules import catalogue


def filled_fields(run: Run, settled: Settled) -> frozenset[str]:
    """The fields with changes that held no value in the last version.

    A field that the last version's contract did not have held none. Of any other that held none in the features that changed, the footers
    of the data files say it.

    Args:
        run: after pass 2.
        settled: the candidates, or a sample of them.

    Raises:
        CorruptError: a data file is missing, cut or altered.
    """
    if run.head is None:
        return frozenset()
    new, known = split_new(settled.column_changes, run.head.manifest.contract)
    return frozenset(new | without_values(run.store, run.files, known - settled.held_before))


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
