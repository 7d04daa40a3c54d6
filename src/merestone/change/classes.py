"""What became of each candidate: class, labels, and what changed in it.

Not here: whether so much change may be published (`guards`), reading the published rows (the line does, and hands both sides in).
Source: the classes of docs/spec/changes.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.dataset.known import CHANGE_CLASSES, Halves
from merestone.geometry import kernel
from merestone.identity.digest import Layout, digest_batch

ADDED, CHANGED, REMOVED, MOVED, SUPPRESSED, REPROCESSED, REFRESHED, HELD = range(len(CHANGE_CLASSES))
UNCHANGED, REJECTED, DIFFERS = 100, 101, 102  # not written to the change log; DIFFERS is settled by `compare`

Codes = npt.NDArray[np.int16]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Before:
    """The index rows of the candidates: digest and source digest uint64 (n, 2), partition code int32 (n,); zeros and -1 where new."""

    digest: Halves
    source: Halves
    partition: npt.NDArray[np.int32]


def classify(
    *,
    known: Mask,
    rejected: Mask,
    trusted: Mask,
    source_equal: Mask,
    digest: Halves,
    deciding: Halves,
    before: Before,
    partition: npt.NDArray[np.int32],
    hold: bool,
) -> Codes:
    """The class of each candidate, as far as digests decide it.

    Args:
        known: the key was published before.
        rejected: the row was refused.
        trusted: the probe found the same source digest under the same rules; only its place differs.
        source_equal: the source digest is the published one's.
        digest: what would be stored, uint64 (n, 2).
        deciding: the digest in the domain of the last version: decides equality (the same array where the domain is the same).
        before: what the index says.
        partition: the new partition code of each row.
        hold: whether a rejected row keeps the feature that was published (otherwise it is removed).
    """
    equal = (deciding == before.digest).all(axis=1)
    stored_equal = (digest == before.digest).all(axis=1)
    elsewhere = partition != before.partition
    out = np.full(len(known), DIFFERS, np.int16)
    same = known & equal & stored_equal
    out[same] = np.where(elsewhere[same], MOVED, np.where(source_equal[same], UNCHANGED, REFRESHED))
    out[known & equal & ~stored_equal] = REPROCESSED
    out[known & ~equal & source_equal] = REPROCESSED
    out[trusted & elsewhere] = MOVED
    out[~known] = ADDED
    out[rejected & known] = HELD if hold else REMOVED
    out[rejected & ~known] = REJECTED
    return out


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates against their published rows, row by row.

    suppressed, attributes, geometry, reversed: bool (n,); move: float64 (n,), the largest distance in units of the contract's CRS (NaN
    where the geometry is the same or one side has none); fields: for each compared attribute a bool (n,) of "differs"; blanks: attributes
    differ only in blanks at the end of text.
    """

    suppressed: Mask
    attributes: Mask
    geometry: Mask
    reversed: Mask
    move: npt.NDArray[np.float64]
    fields: tuple[tuple[str, Mask], ...]
    blanks: Mask


def compare(after: pa.Table, before: pa.Table, layout: Layout, geometry: str, delivered: pa.Array, *, turned: bool) -> Comparison:
    """Judge rows whose digests differ.

    Args:
        after: pyarrow.Table of candidate rows as they would be stored.
        before: pyarrow.Table of the published rows of the same keys, in the same order and schema.
        layout: the digest layout that both sides are judged in: that of the last version.
        geometry: the name of the geometry column.
        delivered: WKB of the delivered geometry in the contract's CRS before rounding.
        turned: it was delivered in another CRS, whose axes may run in other directions.
    """
    n = after.num_rows
    changed = []
    any_attribute = np.zeros(n, bool)
    only_blanks = np.ones(n, bool)
    for each in layout.fields:
        alone = layout.only(each.name)
        differs = _differ(after, before, alone)
        changed.append((each.name, differs))
        any_attribute |= differs
        if differs.any() and pa.types.is_string(after.schema.field(each.name).type):
            trimmed = [pa.compute.utf8_rtrim_whitespace(side.column(each.name)).fill_null("\0") for side in (after, before)]
            only_blanks &= ~differs | np.asarray(pa.compute.equal(*trimmed).combine_chunks())
        else:
            only_blanks &= ~differs
    new, old = after.column(geometry).combine_chunks(), before.column(geometry).combine_chunks()
    moved = _differ(after, before, layout.only_geometry(), geometry)
    near = kernel.within(
        delivered,
        old,
        _noise(layout.grid.precision, turned=turned),
        z_tolerance=_noise(layout.grid.z),
        m_tolerance=_noise(layout.grid.m),
        shape=layout.shape,
    )
    return Comparison(
        suppressed=near & ~any_attribute & moved,
        attributes=any_attribute,
        geometry=moved,
        reversed=np.asarray(kernel.is_reversed(new, old), bool) & moved & ~any_attribute,
        move=np.where(moved, kernel.largest_move(new, old), np.nan),
        fields=tuple(changed),
        blanks=only_blanks & any_attribute & ~moved,
    )


def _noise(precision: int, *, turned: bool = False) -> float:
    """How far a delivered ordinate may lie from the published one and still be noise at a rounding edge, whatever side it fell on.

    Half a grid step and a thousandth: rounding turns over half a thousandth below the half step, and the other half is for the noise.
    Noise in both axes of another CRS can meet in one of the contract's, which makes it longer by the square root of two (ADR 0026).
    """
    step = 10.0**-precision
    return step / 2 + step / 2000 * (1 + (math.sqrt(2) if turned else 1))


def _differ(after: pa.Table, before: pa.Table, layout: Layout, geometry: str | None = None) -> Mask:
    left, right = digest_batch(after, layout, geometry), digest_batch(before, layout, geometry)
    return np.asarray(pa.compute.not_equal(left, right), dtype=bool)


def rekeyed(added: Halves, removed: Halves) -> tuple[Mask, Mask]:
    """Which added and removed features have the same content and are the only ones with it on their side; bool (n,), bool (m,)."""
    if not len(added) or not len(removed):  # the usual night, and every first publish
        return np.zeros(len(added), bool), np.zeros(len(removed), bool)
    one = [_void(side) for side in (added, removed)]
    unique = []
    for side in one:
        values, counts = np.unique(side, return_counts=True)
        unique.append(values[counts == 1])
    both = np.intersect1d(*unique)
    return np.isin(one[0], both), np.isin(one[1], both)


def _void(digests: Halves) -> npt.NDArray[np.void]:
    return np.ascontiguousarray(digests.astype(">u8")).view("V16").ravel()


def found_elsewhere(after: Halves, before: Halves, same_key: Halves) -> int:
    """How many changed or added contents stood in the last version under another key (a sign that keys were handed out anew)."""
    now, then = _void(after), _void(before)
    return int((np.isin(now, then) & (now != _void(same_key))).sum())
