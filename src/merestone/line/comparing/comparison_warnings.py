"""Warnings that only the comparison with the published version shows: keys that nearly match, texts that differ in blanks at their end.

Not here: breaches of the contract (`gate`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.gate.delivery import TwinKeys, twin_keys
from merestone.identity import key as keys
from merestone.line.comparing.key_order import key_batches, key_bytes
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.scratch.spool import Spool
from merestone.words import listed

NAMED_TWINS = 1_000  # keys whose texts are compared; the finding names a few and counts these


def comparison_warnings(
    spool: Spool,
    row: npt.NDArray[np.int32],
    blanks: npt.NDArray[np.bool_],
    added: npt.NDArray[np.bool_],
    published: Iterable[pa.Array],
    key_name: str,
) -> list[Finding]:
    """The warnings.

    Args:
        spool: the candidates of pass 1, with their key bytes.
        row: int32 (n,), the delivered row of each candidate.
        blanks: bool (n,), candidates whose attributes differ from the published ones only in blanks at the end of text.
        added: bool (n,), candidates whose key is new.
        published: the canonical keys of the last version, binary arrays; read only where a key is new. Nothing where no two keys can look alike.
        key_name: what the key is called.
    """
    out: list[Finding] = []
    padded = np.flatnonzero(blanks)
    if len(padded):
        at = padded[:SAMPLES]
        names = keys.ids_of(key_bytes(spool, at)).to_pylist()
        samples = tuple(Sample(name, int(number)) for name, number in zip(names, row[at], strict=True))
        differ = "differs" if len(padded) == 1 else "differ"
        out.append(catalogue.BLANKS.finding("", count=len(padded), features=samples, names=listed(names[:5], len(padded)), differ=differ))
    if added.any():
        found = _twins(spool, row, np.flatnonzero(added), published, key_name)
        if found is not None:
            out.append(found)
    return out


def _twins(
    spool: Spool, row: npt.NDArray[np.int32], fresh: npt.NDArray[np.int64], published: Iterable[pa.Array], key_name: str
) -> Finding | None:
    """New keys that a person would read as another new one, or as a published one, whether that was delivered again or not."""
    looked = TwinKeys()
    for some in key_batches(spool, fresh):
        looked.add(keys.ids_of(some))
    there: list[str] = []
    for some in published:
        texts = keys.ids_of(some)
        there += texts.take(pa.array(looked.among(texts)[: NAMED_TWINS - len(there)])).to_pylist()
    suspects = np.sort(looked.suspects(NAMED_TWINS))
    if not len(suspects):
        return None
    here = keys.ids_of(key_bytes(spool, fresh[suspects])).to_pylist()
    return twin_keys(key_name, [*there, *here], [*[None] * len(there), *row[fresh[suspects]].tolist()])
