"""What a mass change looks like, measured on a sample, for the guards' messages.

Not here: the guards and their words (`change.guards`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change import classes
from merestone.change.guards import MOST, Evidence, common_factor, common_shift
from merestone.change.made_anew import ALL, made_anew
from merestone.dataset.known import Known
from merestone.geometry import kernel
from merestone.line.comparing.settle import Settled
from merestone.line.preparing.prepared import Prepared
from merestone.normalise.snap import KINDS
from merestone.results.result import Counts
from merestone.words import percent

Met = Callable[[str, pa.Array], float]
"""Which share of some different values of a column the last version holds anywhere."""


def evidence_of(
    prepared: Prepared, settled: Settled, counts: Counts, elsewhere: int, features: int, keyed: str, met: Met, kept: int
) -> Evidence:
    """Gather the evidence; geometry and values are judged on `settled.sample`.

    Args:
        prepared: the values of the run.
        settled: the candidates and their classes.
        counts: how many there are of each class.
        elsewhere: how many changed or added contents stood under other keys.
        features: how many features the last version has.
        keyed: what the key is called.
        met: asks the last version for values.
        kept: how many of them are in the delivery too, or in the sample of it.
    """
    changed = settled.codes == classes.CHANGED
    share = {name: count / max(counts.changed, 1) for name, count in settled.column_changes.items()}
    column = max(share.items(), key=lambda pair: pair[1], default=None)
    facts = Evidence(
        keys=keyed,
        features=features,
        changed=counts.changed,
        found_elsewhere=elsewhere,
        rekeyed=counts.rekeyed,
        column=column,
        removed=counts.removed - counts.rekeyed,
        touched=counts.added + counts.changed + counts.removed - counts.rekeyed,
        metres=prepared.projection.metres,
        geometry_changed=int((settled.geometry & changed).sum()),
        column_cause=column_cause(settled, column[0], met, kept) if column and column[1] >= MOST else "",
    )
    if not settled.sample or not facts.geometry_changed:
        return facts
    after, before = (
        [kernel.scan(each.column(prepared.geometry).combine_chunks()) for each in side] for side in zip(*settled.sample, strict=True)
    )
    new, old = (np.concatenate([scan.bounds for scan in side]) for side in (after, before))
    vertices = np.concatenate([one.vertices != other.vertices for one, other in zip(after, before, strict=True)])
    differs = np.isfinite(new[:, 0]) & np.isfinite(old[:, 0]) & (new != old).any(axis=1)
    if not differs.any():
        return facts
    kinds, kinds_before = (np.concatenate([scan.kind for scan in side])[differs] for side in (after, before))
    new, old = new[differs], old[differs]
    now, then = (new[:, :2] + new[:, 2:]) / 2, (old[:, :2] + old[:, 2:]) / 2
    size = np.abs(then - now).max(axis=1)
    crossed = np.abs(then - now[:, ::-1]).max(axis=1)
    shift = common_shift(new, old)
    if shift is not None and prepared.projection.geographic:
        # Degrees of longitude shrink with latitude; the message speaks of metres on the ground.
        shift = (shift[0] * float(np.cos(np.radians(np.median(then[:, 1])))), shift[1], shift[2])
    return replace(
        facts,
        shift=shift,
        vertices=float((vertices[differs] & (kinds == kinds_before)).mean()),
        retyped=_retyped(kinds, kinds_before),
        swapped=float((crossed < size / 100).mean()),
        scaled=common_factor(now.ravel(), then.ravel()),
    )


def _retyped(now: npt.NDArray[np.uint8], then: npt.NDArray[np.uint8]) -> tuple[str, float] | None:
    """The types between which most geometries changed, in words, and the share of all; None where none did."""
    pairs, counts = np.unique(np.stack([then, now], axis=1)[now != then], axis=0, return_counts=True)
    if not len(pairs):
        return None
    was, is_now = (KINDS[kind] if kind < len(KINDS) else "what cannot be read" for kind in pairs[counts.argmax()])
    return f"{was} became {is_now}", float(counts.max()) / len(now)


def column_cause(settled: Settled, name: str, met: Met, kept: int) -> str:
    """What became of the values of a column, where almost all of them in the sample show the same; empty where they do not.

    Only values that the export made anew are called volatile: a key, a code or a price that is edited in most rows is content.

    Args:
        settled: the candidates, with a sample of those that changed.
        name: the column.
        met: asks the last version for values.
        kept: how many features are in both versions, or in the sample of them.
    """
    pairs = [(after.column(name), then.column(name)) for after, then in settled.sample if name in after.schema.names]
    if not pairs:
        return ""
    now, then = (pa.chunked_array([chunk for each in side for chunk in each.chunks], side[0].type) for side in zip(*pairs, strict=True))
    differs = pc.fill_null(pc.not_equal(now, then), True) if not pa.types.is_nested(now.type) else None
    if differs is None:
        return ""
    differs = pc.and_not(differs, pc.and_(now.is_null(), then.is_null()))
    now, then = now.filter(differs), then.filter(differs)
    if not len(now):
        return ""
    if now.null_count >= MOST * len(now):
        return "it is null now: the export lost the column"
    if then.null_count >= MOST * len(now):
        return "it was null before: the export has begun to fill it"
    if pa.types.is_string(now.type):
        folded = [pc.utf8_lower(pc.utf8_trim_whitespace(side)) for side in (now, then)]
        if _share(pc.equal(*folded)) >= MOST:
            return "the texts differ in case or blanks only"
        if _share(_misread(now, then)) >= MOST:
            return f"its letters are misread ({_example(now, then)}): text in one encoding was taken for another; have it exported again"
    if pa.types.is_integer(now.type) or pa.types.is_floating(now.type):
        factor = common_factor(
            *(np.asarray(side.cast(pa.float64(), safe=False).fill_null(np.nan).combine_chunks()) for side in (now, then))
        )
        if factor is not None and factor[1] >= MOST:
            return f"{percent(factor[1])} of the numbers are the old ones times {factor[0]:g}: another unit"
    if settled.column_changes.get(name, 0) >= ALL * kept and made_anew(
        now.combine_chunks(), then.combine_chunks(), lambda values: met(name, values)
    ):
        return "no value was there before, and nearly all differ from each other: declare it `volatile` in the contract if each export makes it anew"
    return ""


def _misread(now: pa.ChunkedArray, then: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which texts kept their ASCII letters and have other signs in place of the rest, as text has that was decoded or encoded wrongly."""
    plain = [pc.replace_substring_regex(side, r"[^\x21-\x3e\x40-\x7e]+", "") for side in (now, then)]  # neither blanks nor "?"
    return pc.and_(pc.equal(*plain), pc.invert(pc.string_is_ascii(then)))


def _example(now: pa.ChunkedArray, then: pa.ChunkedArray) -> str:
    return f"{_short(then[0].as_py())} became {_short(now[0].as_py())}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _share(mask: pa.ChunkedArray) -> float:
    return float(pc.mean(pc.fill_null(mask, False).cast(pa.float64())).as_py() or 0.0)


def partitions_gone(known: Known, removed: npt.NDArray[np.int64], names: list[str]) -> str:
    """Whether almost all removed features are those of whole partitions: which ones; empty where not."""
    there = known.per_partition(len(names))
    gone = np.bincount(known.partition_of(removed), minlength=len(names))
    whole = np.flatnonzero((gone == there) & (there > 0))
    if not len(whole) or not len(removed) or gone[whole].sum() < MOST * len(removed) or len(whole) == int((there > 0).sum()):
        return ""
    named = ", ".join(sorted(names[each] or "data" for each in whole)[:3])
    more = f" and {len(whole) - 3:,} more" if len(whole) > 3 else ""
    return f"nothing was delivered for {len(whole):,} of {int((there > 0).sum()):,} partitions ({named}{more})"


def renumbered(gone: npt.NDArray[np.uint64], source: npt.NDArray[np.uint64], keyed: str) -> str:
    """Whether most missing contents came under new keys; uint64 (n, 2), the source digests of features gone and of rows with new keys."""
    came = int(np.isin(gone[:, 0], source[:, 0]).sum()) if len(source) else 0
    if came < MOST * len(gone):
        return ""
    return (
        f"{came:,} of {len(gone):,} missing features came with the same content under a new {keyed}: the keys were renumbered "
        "(`key_migration` in the publication names the old ones)"
    )


def commonest_move(before: npt.NDArray[np.int32], after: npt.NDArray[np.int32], names: list[str]) -> str:
    """The partitions between which most of some features moved; empty where most have no pair in common."""
    if not len(before):
        return ""
    pairs, counts = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    top = int(counts.argmax())
    if counts[top] < MOST * len(before):
        return ""
    return (
        f"{percent(float(counts[top]) / len(before))} of them from {names[pairs[top, 0]]} to {names[pairs[top, 1]]}: the value was renamed"
    )
