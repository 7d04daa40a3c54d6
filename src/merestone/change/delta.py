"""The four classes of touched keys for data that fits in dictionaries, and which partitions they touch.

Not here: the same at millions of rows (`probe`, `classes`); a property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
D = TypeVar("D")
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Delta:
    """Touched keys in exactly four disjoint sets; `moved` is equal digest, other partition."""

    added: frozenset[Hashable] = field(default_factory=frozenset)
    changed: frozenset[Hashable] = field(default_factory=frozenset)
    removed: frozenset[Hashable] = field(default_factory=frozenset)
    moved: frozenset[Hashable] = field(default_factory=frozenset)

    def __init__(
        self,
        added: Iterable[Hashable] = (),
        changed: Iterable[Hashable] = (),
        removed: Iterable[Hashable] = (),
        moved: Iterable[Hashable] = (),
    ) -> None:
        for name, keys in (("added", added), ("changed", changed), ("removed", removed), ("moved", moved)):
            object.__setattr__(self, name, frozenset(keys))
        if len(self.touched) != len(self.added) + len(self.changed) + len(self.removed) + len(self.moved):
            raise ValueError("a key is in more than one class")

    @property
    def touched(self) -> frozenset[Hashable]:
        """Every key in one of the four classes."""
        return self.added | self.changed | self.removed | self.moved

    def summary(self) -> dict[str, int]:
        """How many keys each class has."""
        return {"added": len(self.added), "changed": len(self.changed), "removed": len(self.removed), "moved": len(self.moved)}


def diff_against_manifest(current: Mapping[K, D], current_partition: Mapping[K, P], previous: Mapping[K, tuple[D, P]]) -> Delta:
    """Classify every key of two states.

    Args:
        current: key to digest.
        current_partition: key to partition, for every key of `current`.
        previous: key to (digest, partition).

    Raises:
        KeyError: a key of `current` has no partition.
    """
    both = current.keys() & previous.keys()
    changed = {key for key in both if current[key] != previous[key][0]}
    return Delta(
        added=current.keys() - previous.keys(),
        changed=changed,
        removed=previous.keys() - current.keys(),
        moved={key for key in both - changed if current_partition[key] != previous[key][1]},
    )


def partitions_to_rewrite(delta: Delta, current_partition: Mapping[K, P], previous: Mapping[K, tuple[D, P]]) -> set[P]:
    """Both sides of every move, the old partition of every removal, the new one of every addition; the empty name counts."""
    now = {current_partition[key] for key in current_partition.keys() & (delta.added | delta.changed | delta.moved)}
    before = {previous[key][1] for key in previous.keys() & (delta.changed | delta.removed | delta.moved)}
    return now | before
