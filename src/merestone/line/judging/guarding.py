"""The guards of a run that keys and measures decide.

Not here: the guards and their words (`change.guards`), the word of the person who lets one pass (`line.tokens`), the share of changed
features (`change_verdict`, `guards_before_processing`).
"""

from __future__ import annotations

from merestone.change import guards
from merestone.dataset.known import Known
from merestone.gate.freshness import older
from merestone.line.judging.mass_change import partitions_gone, renumbered
from merestone.line.run import Run
from merestone.results.finding import Finding


def measured(run: Run, known: Known, *, rejected: int = 0, again: int = 0, extent: guards.Box | None = None) -> list[Finding]:
    """The guards that keys and measures of pass 1 decide.

    Args:
        run: after pass 1.
        known: the last version.
        rejected: features that are removed since their delivered row was rejected.
        again: features whose key is gone and which were found again under another one, as the publication said they would be.
        extent: of all candidates as they come out; wanted where the delivery's own says nothing (another CRS than the last one's).
    """
    terms, received, rule, features = run.terms, run.delivery, run.publication.guard, len(known)
    keyed, lost = terms.reading.key_name, len(received.removed) - again
    found = [guards.null_geometry_fraction(terms.geometry, received.nowhere, received.rows, rule.max_null_geometry_fraction)]
    if run.head is None or run.head.manifest.files.bbox is None:  # nothing that is published says where positions are expected
        undecided = {name: each for name, each in received.verdicts.items() if each.decision == "undecidable" and each.finding is not None}
        found += [guards.axis_order(name, each.evidence, each.finding) for name, each in undecided.items()]
    if run.head is None:
        return [each for each in found if each is not None]
    gone_back = older(terms.contract, received.newest, terms.rules.last_newest)
    if gone_back is not None:
        found.append(guards.older(terms.contract.freshness_from or "", *gone_back, terms.rules.last_name))
    found.append(guards.withdrawn(received.set_digest, run.head.manifest.withdrawn, keyed))
    gone, survival = lost + rejected, rule.min_key_survival
    if survival is not None and lost < rule.min_touched:
        survival = min(survival, 1 - guards.FEW_SHARE)
    why = ""
    if lost and (rule.max_removed_fraction is not None or rule.min_key_survival is not None):
        fresh = received.candidates.source[received.candidates.slot < 0]
        why = renumbered(received.removed_source, fresh, keyed) if terms.parent.comparable else ""
        why = why or partitions_gone(known, received.removed, terms.partitions.names())
    found.append(guards.removed_fraction(keyed, gone, features, guards.allowed(rule.max_removed_fraction, gone, rule.min_touched), why))
    found.append(guards.key_survival(keyed, features - lost, features, survival, why))
    projection = terms.projection
    now, then = received.extent, terms.parent.extent
    if then is None:
        now, then = extent, run.head.manifest.files.bbox
    metres = None if projection.geographic or not projection.same_crs else projection.metres
    found.append(guards.extent_shift(terms.geometry, now, then, rule.max_extent_shift, metres=metres, outside=received.outside))
    return [each for each in found if each is not None]


def emptied(run: Run, known: Known) -> list[Finding]:
    """What an empty delivery over a filled dataset, or before any version, trips; the same before and after the passes.

    One token is a word for all of it.
    """
    keyed, received = run.terms.reading.key_name, run.delivery
    gone = guards.emptied(received.rows, len(known), keyed, first=run.head is None)
    if gone is None or run.head is None:
        return [] if gone is None else [gone]
    again = guards.withdrawn(received.set_digest, run.head.manifest.withdrawn, keyed)
    return [gone] if again is None else [gone, again]
