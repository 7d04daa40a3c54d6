"""Features that a run finds again under another key, where the publication says that keys may change.

Not here: how they are found (`change.migration`), the key rules before and after (`key_rule`), the file of pairs (`key_table`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.change.migration import Migrated, Side, by_content, by_table
from merestone.columnar import hashing
from merestone.dataset.known import halves
from merestone.dataset.tables import IndexRows
from merestone.line.processing.process import Processed
from merestone.line.run import Run
from merestone.publication.publication import KeyRule
from merestone.results.finding import Finding
from merestone.rules import catalogue


def features_under_other_keys(
    run: Run,
    processed: Processed,
    before: Before,
    codes: npt.NDArray[np.int16],
    removed: IndexRows,
) -> Migrated | None:
    """Which features only got another key; None where no migration is named or it has no effect."""
    parent, candidates = run.terms.parent, run.delivery.candidates
    if not parent.migrates:
        return None
    changed, fresh = codes == classes.CHANGED, np.isin(codes, (classes.CHANGED, classes.ADDED))
    gone = halves(hashing.blake2b16(removed.key.combine_chunks().cast(pa.binary())))
    older = Side(np.concatenate([gone, candidates.hash[changed]]), np.concatenate([halves(removed.digest), before.digest[changed]]))
    newer = Side(candidates.hash[fresh], processed.in_last_domain[fresh])
    return by_table(parent.key_table, older, newer) if parent.key_table is not None else by_content(older, newer)


def migration_findings(run: Run, migrated: Migrated, features: int) -> list[Finding]:
    """What became of the keys, for the report and the record."""
    again, rekeyed = len(migrated.before), run.terms.parent.rekeyed
    if not again and not rekeyed:
        return []
    other = f", {migrated.edited:,} of them with other content" if migrated.edited else ""
    was = KeyRule.of_manifest(run.head.manifest.key, published=True).words if run.head is not None and rekeyed else ""
    rule = f"the key was {was} and is {run.publication.key.words}: " if was else ""
    key = run.terms.reading.key_name
    return [catalogue.KEY_MIGRATION.finding(key, count=again, case="done", severity="warning", rule=rule, total=features, edited=other)]
