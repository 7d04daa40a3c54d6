"""What a command has to say when it ends: the results of publish, diff and check as values.

Not here: how they came about (`line`), how they look (`text`, `jsonout`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from merestone.results.finding import Finding

CLASSES = ("added", "changed", "removed", "moved")
LABELS = ("reversed", "rekeyed", "suppressed", "reprocessed")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many keys each class and label has (spec/change.md section 4); `reversed` and `rekeyed` are counted again."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    moved: int = 0
    reversed: int = 0
    rekeyed: int = 0
    suppressed: int = 0
    reprocessed: int = 0

    @property
    def touched(self) -> int:
        """Keys in one of the four classes."""
        return self.added + self.changed + self.removed + self.moved

    def to_json(self) -> dict[str, int]:
        """The object `delta`."""
        return {name: getattr(self, name) for name in CLASSES + LABELS}


@dataclass(frozen=True, slots=True)
class Changed:
    """What the changed features have in common: each feature stands in exactly one of the first three numbers.

    `largest_move` in units of the CRS, `unit` their name; `most` the attribute that changed most often and how often.
    """

    attributes: int = 0
    geometry: int = 0
    both: int = 0
    largest_move: float | None = None
    unit: str = "m"
    most: tuple[str, int] | None = None


def most_changed(columns: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    """The attribute that changed most often and how often; of several the first by name, so that every command names the same one."""
    return min((each for each in columns if each[1]), key=lambda each: (-each[1], each[0]), default=None)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The end of `publish`, done, refused or planned.

    The first block is the JSON of spec/publication.md. The second is for a person: `file` is the publication file as it was typed,
    `command` what repeats the run, for real where it was dry,
    `current` the version that readers saw when the run began (None before the first), `refreshed` how many features came in other bytes
    with the same content, `notices` settings that are not yet in effect and a record that is not complete, `expires` until when the token
    holds, `rebuild` files and bytes of a full rebuild (a dry run), which writes every feature. `rows_written` is how many rows the
    new files hold; the change lies in `partitions_touched` of `partitions`, where one that is new or has become empty counts as well.
    """

    name: str
    status: Literal["published", "unchanged", "refused", "planned"]
    version: int | None
    features: int
    delivered: int
    run_id: str | None
    delta: Counts = Counts()
    unchanged: int = 0
    rejected: int = 0
    held: int = 0
    files_written: int = 0
    files_carried: int = 0
    bytes_written: int = 0
    refused_by: Literal["contract", "guard"] | None = None
    confirm: str | None = None
    findings: tuple[Finding, ...] = ()

    file: str = ""
    command: str = ""
    current: int | None = None
    seconds: float = 0.0
    changed: Changed | None = None
    refreshed: int = 0
    notices: tuple[str, ...] = ()
    expires: str | None = None
    rebuild: tuple[int, int] | None = None
    rows_written: int = 0
    partitions_touched: int = 0
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class DiffResult:
    """The end of `diff` and `changes`.

    `keys` holds the keys of each class and label, as text, where they were asked for. `notes` are the terms of the comparison, in words.
    `refused`: the two cannot be compared, the findings say why. `not_compared`: rows of either side that could not be compared, among
    them those whose partner on the other side could not.
    """

    before: str
    after: str
    delta: Counts
    unchanged: int
    keys: Mapping[str, tuple[str, ...]] | None = None
    changed: Changed | None = None
    refreshed: int = 0
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    refused: bool = False
    not_compared: tuple[int, int] = (0, 0)

    @property
    def complete(self) -> bool:
        """Whether every row of both sides was compared."""
        return not self.refused and self.not_compared == (0, 0)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The end of `apply`: `start` and `end` are versions, `set_digest` what the copy has now, `expected` what it should have.

    Refused without findings: the copy is not at `start`. `version` is the current one of a dataset that was applied to, else None.
    """

    name: str
    start: int
    end: int
    onto: str
    status: Literal["applied", "unchanged", "refused"]
    delta: Counts
    features: int
    set_digest: str
    expected: str
    version: int | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The end of `check`. `status` error means that a check could not run: it is never a pass.

    `drawn`: a map or layer was written already. `axes`: per geometry column, what its positions say of axis order and units, with the evidence.
    """

    delivery: str
    contract: str
    status: Literal["pass", "fail", "error"]
    rows: int
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    errors: tuple[str, ...] = field(default=())
    drawn: bool = False
    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
