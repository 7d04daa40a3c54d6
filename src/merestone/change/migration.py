"""Which features only got another key: pairs of an old and a new key, by a table of them or by their content.

Not here: reading the table (`line.preparing.key_table`), the label `rekeyed` of the feed, which says that contents are the same (`classes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from merestone.dataset.known import Halves

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Side:
    """The touched features of one version: key hashes and content digests (in one domain on both sides), uint64 (n, 2) each."""

    keys: Halves
    digests: Halves


@dataclass(frozen=True, slots=True)
class Migrated:
    """What the pairs explain.

    before: int64 (n,), the rows of the older side that were found again under another key. edited: how many of them with other content.
    left: how many touched keys have a side, before or after, that no pair explains; edited features count once.
    """

    before: npt.NDArray[np.int64]
    edited: int
    left: int


def by_content(before: Side, after: Side) -> Migrated:
    """Pair features whose content stands once on each side, under two keys."""
    old, new = as_void(before.digests), as_void(after.digests)
    shared = np.intersect1d(_single(old), _single(new))
    there, here = np.flatnonzero(np.isin(old, shared)), np.flatnonzero(np.isin(new, shared))
    there, here = there[np.argsort(old[there])], here[np.argsort(new[here])]
    other = as_void(before.keys)[there] != as_void(after.keys)[here]
    return _found(before, after, there[other], here[other])


def by_table(table: tuple[Halves, Halves], before: Side, after: Side) -> Migrated:
    """Pair the keys that a table of old and new key hashes pairs, as far as both are touched."""
    old, new = as_void(before.keys), as_void(after.keys)
    there, here = _rows(old, as_void(table[0])), _rows(new, as_void(table[1]))
    both = (there >= 0) & (here >= 0) & (as_void(table[0]) != as_void(table[1]))
    return _found(before, after, there[both], here[both])


def _found(before: Side, after: Side, there: npt.NDArray[np.int64], here: npt.NDArray[np.int64]) -> Migrated:
    """Count what is explained: `there` and `here` are the rows of the pairs."""
    same = (before.digests[there] == after.digests[here]).all(axis=1)
    old, new = np.ones(len(before.keys), bool), np.ones(len(after.keys), bool)
    old[there], new[here] = False, False
    left = np.union1d(as_void(before.keys[old]), as_void(after.keys[new]))
    edited = int((~same).sum())
    return Migrated(there, edited, len(left) + edited)


def as_void(halves: Halves) -> npt.NDArray[np.void]:
    """Hashes as one value each, which NumPy can sort and look up."""
    return np.asarray(np.ascontiguousarray(halves.astype(">u8")).view("V16").ravel())


def _single(values: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    distinct, counts = np.unique(values, return_counts=True)
    once: npt.NDArray[np.void] = distinct[counts == 1]
    return once


def _rows(values: npt.NDArray[np.void], wanted: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """The row of each wanted value, -1 where it is not there."""
    if not len(values):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(values)
    at = np.minimum(np.searchsorted(values, wanted, sorter=order), len(values) - 1)
    return np.where(values[order[at]] == wanted, order[at], -1).astype(np.int64)
