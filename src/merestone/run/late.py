"""Warnings that only the comparison with the published version shows: keys that nearly match, texts that differ in blanks at their end.

Not here: breaches of the contract (`gate`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.gate.delivery import twin_keys
from merestone.gate.findings import listed
from merestone.identity import key as keys
from merestone.outcome import SAMPLES, Finding, Sample
from merestone.publish.spool import Spool
from merestone.run.prepare import KEY

MOST_TWINS = 20_000  # keys that are looked at one by one; a larger change is a case for the guards


def late_findings(
    spool: Spool, row: npt.NDArray[np.int32], blanks: list[int], added: npt.NDArray[np.bool_], removed: Any, key_columns: tuple[str, ...]
) -> list[Finding]:
    """The warnings.

    Args:
        spool: the candidates of pass 1, with their key bytes.
        row: int32 (n,), the delivered row of each candidate.
        blanks: candidates whose attributes differ from the published ones only in blanks at the end of text.
        added: bool (n,), candidates whose key is new.
        removed: pyarrow.Table of the index rows of keys that were not delivered.
        key_columns: names of the key columns.
    """
    out: list[Finding] = []
    if blanks:
        at = np.array(sorted(blanks)[:SAMPLES])
        names = keys.ids_of(key_bytes(spool, at)).to_pylist()
        out.append(Finding(
            "semantics", "", "blanks", "warning", "an edit that can be seen",
            f"{listed(names[:5], len(blanks))} differ{'s' if len(blanks) == 1 else ''} only in blanks at the end", len(blanks),
            tuple(Sample(name, int(number)) for name, number in zip(names, row[at], strict=True)),
            remedy="formats such as DBF lose trailing blanks; have the producer trim the text, or keep one format",
        ))
    fresh = np.flatnonzero(added)
    if len(fresh) and len(fresh) + removed.num_rows <= MOST_TWINS:
        texts = keys.ids_of(key_bytes(spool, fresh)).to_pylist()
        gone = keys.ids_of(removed.column("key").combine_chunks()).to_pylist() if removed.num_rows else []
        found = twin_keys(", ".join(key_columns), [*gone, *texts], [*[None] * len(gone), *row[fresh].tolist()])
        if found is not None:
            out.append(found)
    return out


def key_bytes(spool: Spool, rows: npt.NDArray[np.int64]) -> Any:
    """The canonical key bytes of some rows of a spool (ascending), as a pyarrow binary array."""
    parts, at = [], 0
    for batch in spool.batches():
        end = at + batch.num_rows
        low, high = np.searchsorted(rows, (at, end))
        if high > low:
            parts.append(pc.cast(batch.column(KEY), pa.binary()).take(pa.array(rows[low:high] - at)))
        at = end
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())
