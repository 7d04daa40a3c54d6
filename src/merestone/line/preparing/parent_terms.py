"""What holds between a run and the version that it follows: its parent.

Not here: whether a contract may follow another (`contract.breaking`), the digests of both (`digest_layouts`).
"""

from __future__ import annotations

from dataclasses import dataclass

from merestone.change.guards import Box
from merestone.dataset.known import Halves
from merestone.line.comparing.published_rows import PublishedRows


@dataclass(frozen=True, slots=True)
class ParentTerms:
    """What a run may take over from its parent.

    Args:
        new_contract: the contract is another one, or a parent does not exist.
        short_cut: the same bytes get the same verdict.
        comparable: the source digests of the parent are of the same domain; equal ones mean equal deliveries.
        other_rules: the parent was not judged by the rules for one feature that are in force.
        rewritten: something that no digest holds is agreed anew (a derived measure, the epoch); every row is stored anew.
        rekeyed: the key rule is another one, for which the publication names a migration.
        key_table: hashes of old and new keys, pair by pair, from the file that the migration names.
        keeps_rows: a published row can stay as it is where nothing but noise differs: its digest and key would be made alike today.
        extent: of the parent, in the CRS of this delivery, where that is known exactly.
        published: how its rows are read.
    """

    new_contract: bool
    short_cut: bool
    comparable: bool
    other_rules: bool
    rewritten: bool
    rekeyed: bool
    key_table: tuple[Halves, Halves] | None
    keeps_rows: bool
    extent: Box | None
    published: PublishedRows

    @property
    def migrates(self) -> bool:
        """Whether features may be found again under another key; keys alone decide nothing."""
        return self.rekeyed or self.key_table is not None
