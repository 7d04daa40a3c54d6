"""What stops a run before its candidates are processed: keys, measures, and a mass change that a sample puts beyond doubt.

Not here: the guards (`change.guards`), the verdict after pass 2 (`change_verdict`), which reports all guards together.

The sample is of the candidates with the least key hashes; neither chance nor the order of rows has a say, and a rerun stops alike.
How many of all candidates changed is at least what Hoeffding's inequality leaves of the sample's share with an error of one in a billion.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from merestone.change import classes, guards
from merestone.dataset.known import Known
from merestone.errors import InternalError
from merestone.line.comparing.backfill import backfilled, filled_fields
from merestone.line.comparing.settle import settle
from merestone.line.judging.change_verdict import published_before
from merestone.line.judging.guarding import emptied, measured
from merestone.line.judging.mass_change import evidence_of
from merestone.line.judging.values_met import met_in
from merestone.line.processing.process import process
from merestone.line.receiving.candidates import Candidates
from merestone.line.run import Run
from merestone.results.finding import Finding
from merestone.results.result import Counts

FEW = 10_000  # candidates that are processed sooner than a person reads two reports
SAMPLES = (100, 1_000)  # candidates that are classed before pass 2; the larger sample only where the smaller one leaves a doubt
ERROR = 1e-9


def stops_before_processing(run: Run, known: Known) -> list[Finding]:
    """The guards that fire before pass 2; none where the passes cost little: one report then names all guards."""
    gone = emptied(run, known)
    if gone or len(run.delivery.candidates) <= FEW or run.terms.parent.migrates:
        return gone
    mass = _mass_change(run, known)
    return [*([mass] if mass is not None else []), *measured(run, known)]


def _mass_change(run: Run, known: Known) -> Finding | None:
    """Whether more of the last version changed than `max_changed_fraction` allows, beyond doubt."""
    candidates, limit, features = run.delivery.candidates, run.publication.guard.max_changed_fraction, len(known)
    size, lost = len(candidates), len(run.delivery.removed)
    if limit is None or not features or (size + lost) / features <= limit:
        return None
    # A removal may turn out to be half of a pair with one content, which counts once.
    surely = max(lost - int((candidates.slot < 0).sum()), 0)
    for n in SAMPLES:
        rows = np.sort(np.argpartition(candidates.hash[:, 0], n)[:n])
        share, facts = _classed(run, known, rows)
        least = ((share - math.sqrt(math.log(1 / ERROR) / (2 * n))) * size + surely) / features
        stops = guards.allowed(limit, int(least * features), run.publication.guard.min_touched) or limit
        if least > stops:
            return guards.changed_fraction(facts, share=least, limit=stops, sampled=(n, size))
        if (share * size + lost) / features <= limit:
            return None  # nor would a larger sample say so
    return None


def _classed(run: Run, known: Known, rows: npt.NDArray[np.int64]) -> tuple[float, guards.Evidence]:
    """What share of some candidates is added or changed, and what their change looks like."""
    terms = run.terms
    if run.head is None:
        raise InternalError("a sample is compared with a version, and there is none")
    folder = Path(run.folder) / f"sample-{len(rows)}"
    folder.mkdir()
    sample = run.delivery.candidates.some(rows, str(folder))
    before = published_before(run, known, sample.slot)
    processed = process(terms, sample, before, str(folder), run.engine)
    settled = settle(
        terms,
        run.published,
        sample,
        processed,
        before,
        np.maximum(before.partition, 0),
        str(folder),
        run.engine,
        hold=True,
    )
    added, changed = int((settled.codes == classes.ADDED).sum()), int((settled.codes == classes.CHANGED).sum())
    touched = np.isin(settled.codes, (classes.ADDED, classes.CHANGED))
    changed -= int(backfilled(settled, filled_fields(run, settled)).sum())
    elsewhere = _elsewhere(sample, known, touched) if terms.parent.comparable else 0
    kept = int((sample.slot >= 0).sum())
    counts = Counts(added=added, changed=changed)
    facts = evidence_of(terms, settled, counts, elsewhere, len(known), terms.reading.key_name, met_in(run), kept)
    return (added + changed) / len(rows), replace(facts, touched=added + changed)


def _elsewhere(sample: Candidates, known: Known, touched: npt.NDArray[np.bool_]) -> int:
    """How many touched contents of a sample stood in the last version, necessarily under another key."""
    return int(known.sources_among(sample.source[touched, 0]).sum())
