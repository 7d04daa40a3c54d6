"""What became of each candidate: class, labels, and what changed in it.

Not here: whether so much change may be published (`guards`), reading the published rows (the line does, and hands both sides in).
Source: the classes of docs/spec/changes.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar.rounding import NumberGrid
from merestone.dataset.known import CHANGE_CLASSES, Halves
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.digest import DigestField, Layout, digest_batch

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
    in_last_domain: Halves,
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
        in_last_domain: the same in the domain of the last version: it decides equality (the same array where the domain is the same).
        before: what the index says.
        partition: the new partition code of each row.
        hold: whether a rejected row keeps the feature that was published (otherwise it is removed).
    """
    equal = (in_last_domain == before.digest).all(axis=1)
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
class Noise:
    """How far beyond half a step a delivered value may lie from the published one and be noise, in steps of its grid.

    geometry: of all geometries; 0: the digest alone decides. numbers: name of a field to its grid and noise.
    """

    geometry: float
    numbers: Mapping[str, tuple[NumberGrid, float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates against their published rows, row by row.

    suppressed, attributes, geometry, reversed: bool (n,); move: float64 (n,), the largest distance in units of the contract's CRS (NaN
    where the geometry is the same or one side has none); fields: for each compared attribute a bool (n,) of "differs"; blanks: attributes
    differ only in blanks at the end of text; held_before: the attributes that held a value in a published row in which they differ;
    kept: for each column a bool (n,) of "differs by noise only: the published value stays".
    """

    suppressed: Mask
    attributes: Mask
    geometry: Mask
    reversed: Mask
    move: npt.NDArray[np.float64]
    fields: tuple[tuple[str, Mask], ...]
    blanks: Mask
    held_before: frozenset[str]
    kept: tuple[tuple[str, Mask], ...]


def compare(
    after: pa.Table, before: pa.Table, layout: Layout, geometry: str, *, delivered: pa.Table, noise: Noise, in_place: Mask
) -> Comparison:
    """Judge rows whose digests differ.

    Args:
        after: pyarrow.Table of candidate rows as they would be stored.
        before: pyarrow.Table of the published rows of the same keys, in the same order and schema.
        layout: the digest layout that both sides are judged in: that of the last version.
        geometry: the name of the geometry column.
        delivered: the columns that noise can keep, as delivered: geometries in the CRS of their field and numbers, all before rounding.
        noise: how much of it there may be.
        in_place: bool (n,), rows whose stored geometry lies in the partition of the published one. Where another attribute changes, a
            published geometry cannot stay outside of them.
    """
    n = after.num_rows
    changed = []
    any_attribute = np.zeros(n, bool)
    only_blanks = np.ones(n, bool)
    kept: dict[str, Mask] = {}
    held_before = set()
    for each in layout.fields:
        alone = layout.only(each.name)
        differs = _differ(after, before, alone)
        if differs.any():
            if (differs & np.asarray(before.column(each.name).is_valid())).any():
                held_before.add(each.name)
            near = differs & _near(each, delivered, before, noise)
            if near.any():
                kept[each.name] = near
                differs &= ~near
        changed.append((each.name, differs))
        any_attribute |= differs
        if differs.any() and pa.types.is_string(after.schema.field(each.name).type):
            trimmed = [pa.compute.utf8_rtrim_whitespace(side.column(each.name)).fill_null("\0") for side in (after, before)]
            only_blanks &= ~differs | np.asarray(pa.compute.equal(*trimmed).combine_chunks())
        else:
            only_blanks &= ~differs
    new, old = after.column(geometry).combine_chunks(), before.column(geometry).combine_chunks()
    moved = _differ(after, before, layout.only_geometry(), geometry)
    near = moved & _within(delivered.column(geometry).combine_chunks(), old, layout.grid, layout.shape, noise.geometry)
    near &= in_place | ~any_attribute
    moved &= ~near
    if near.any():
        kept[geometry] = near
    loud = any_attribute | moved
    held = np.logical_or.reduce([*kept.values(), np.zeros(n, bool)])
    return Comparison(
        suppressed=held & ~loud,
        attributes=any_attribute,
        geometry=moved,
        reversed=np.asarray(kernel.is_reversed(new, old), bool) & moved & ~any_attribute,
        move=np.where(moved, kernel.largest_move(new, old), np.nan),
        fields=tuple(changed),
        blanks=only_blanks & any_attribute & ~moved,
        held_before=frozenset(held_before),
        kept=tuple(kept.items()),
    )


def _near(field: DigestField, delivered: pa.Table, before: pa.Table, noise: Noise) -> Mask:
    """Rows in which an attribute lies within noise of the published value; none where it is neither a geometry nor a number with a grid."""
    if field.grid is not None:
        return _within(
            delivered.column(field.name).combine_chunks(),
            before.column(field.name).combine_chunks(),
            field.grid,
            field.shape,
            noise.geometry,
        )
    if field.name not in noise.numbers:
        return np.zeros(before.num_rows, bool)
    grid, steps = noise.numbers[field.name]
    one, other = (side.column(field.name).combine_chunks() for side in (delivered, before))
    both = np.asarray(pa.compute.and_(one.is_valid(), other.is_valid()))
    here, there = (np.asarray(each.fill_null(0), np.float64) for each in (one, other))
    return np.asarray(both & grid.near(here, there, steps), np.bool_)


def _within(delivered: pa.Array, published: pa.Array, grid: Grid, shape: Shape, noise: float) -> Mask:
    """Rows whose delivered geometry lies within (1/2 + noise) grid steps of the published one, each axis by its own grid (ADR 0026)."""
    if noise == 0:
        return np.zeros(len(published), bool)
    reach = [(0.5 + noise) * 10.0**-precision for precision in (grid.precision, grid.z, grid.m)]
    return kernel.within(delivered, published, reach[0], z_tolerance=reach[1], m_tolerance=reach[2], shape=shape)


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
