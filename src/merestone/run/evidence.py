"""What a mass change looks like, measured on a sample, for the guard's message.

Not here: the guard and its words (`change.guards`).
"""

from __future__ import annotations

import numpy as np

from merestone.change import classes
from merestone.change.classes import Before, found_elsewhere
from merestone.change.guards import Evidence, common_shift
from merestone.dataset.known import Halves
from merestone.geometry import kernel
from merestone.report.result import Counts
from merestone.run.prepare import Prepared
from merestone.run.process import Processed, Settled


def evidence_of(
    prepared: Prepared, settled: Settled, processed: Processed, before: Before, removed: Halves, counts: Counts, features: int, keyed: str
) -> Evidence:
    """Gather the evidence: contents found under other keys over all changes, geometry on a sample of up to 8,000 changed features."""
    codes = settled.codes
    changed = codes == classes.CHANGED
    fresh = changed | (codes == classes.ADDED)
    gone = np.concatenate([before.digest[changed], removed])
    elsewhere = found_elsewhere(processed.digest[fresh], gone, before.digest[fresh])
    share = {name: count / max(counts.changed, 1) for name, count in settled.column_changes.items()}
    column = max(share.items(), key=lambda pair: pair[1], default=None)
    facts = Evidence(
        keys=keyed, features=features, changed=counts.changed, found_elsewhere=elsewhere, rekeyed=counts.rekeyed, column=column,
        touched=counts.added + counts.changed + counts.removed - counts.rekeyed, metres=prepared.metres,
        geometry_changed=int((settled.geometry & changed).sum()),
    )
    if not settled.sample or not facts.geometry_changed:
        return facts
    new = np.concatenate([kernel.scan(after.column(0).combine_chunks()).bounds for after, _ in settled.sample])
    old = np.concatenate([kernel.scan(then.column(0).combine_chunks()).bounds for _, then in settled.sample])
    vertices = np.concatenate([
        kernel.scan(after.column(0).combine_chunks()).vertices != kernel.scan(then.column(0).combine_chunks()).vertices
        for after, then in settled.sample
    ])
    differs = np.isfinite(new[:, 0]) & np.isfinite(old[:, 0]) & (new != old).any(axis=1)
    if not differs.any():
        return facts
    now, then = (new[differs, :2] + new[differs, 2:]) / 2, (old[differs, :2] + old[differs, 2:]) / 2
    size = np.abs(then - now).max(axis=1)
    crossed = np.abs(then - now[:, ::-1]).max(axis=1)
    shift = common_shift(*(now - then).T)
    if shift is not None and prepared.geographic:
        # Degrees of longitude shrink with latitude; the message speaks of metres on the ground.
        shift = (shift[0] * float(np.cos(np.radians(np.median(then[:, 1])))), shift[1], shift[2])
    return Evidence(
        keys=facts.keys, features=facts.features, changed=facts.changed, found_elsewhere=facts.found_elsewhere, touched=facts.touched,
        rekeyed=facts.rekeyed, column=facts.column, shift=shift, metres=facts.metres, vertices=float(vertices[differs].mean()),
        swapped=float((crossed < size / 100).mean()), geometry_changed=facts.geometry_changed,
    )
