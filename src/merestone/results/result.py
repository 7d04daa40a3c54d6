"""What publish, check, diff and apply answer, as values. `form.to_json` makes the object that each command prints of them.

Not here: how they come about (`line`, `compare`), what they look like (`render`), what is wrong with a delivery (`finding`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict

from merestone.json_value import Json
from merestone.results.finding import Finding
from merestone.results.json_form import PERSON, renamed, to_json, when_set
from merestone.results.notebook import Shown

CLASSES = ("added", "changed", "removed", "moved")
"""The four sets that touched keys fall into; no key is in two of them."""
LABELS = ("reversed", "rekeyed", "suppressed", "reprocessed", "backfilled", "refreshed")
"""What is counted beside the classes: of keys in a class, or of keys that no class holds."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many features each class and each label has; see the reference page on change classes.

    Attributes:
        added: features that were not published before.
        changed: features whose content differs from what is published.
        removed: published features that the delivery does not hold.
        moved: features with the same content in another partition.
        reversed: changed features that differ in the direction of a line only.
        rekeyed: pairs of an added and a removed feature with the same content.
        suppressed: features that differ from what is published by noise only; what is published stays; null where it is read from change
            logs, which do not hold it.
        reprocessed: features delivered as before and made again under new rules.
        backfilled: changed features that differ only in fields which a contract added and which held no value before.
        refreshed: unchanged features that came in other bytes; null where it is read from change logs.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    moved: int = 0
    reversed: int = 0
    rekeyed: int = 0
    suppressed: int | None = 0
    reprocessed: int = 0
    backfilled: int = 0
    refreshed: int | None = 0

    @property
    def touched(self) -> int:
        """Features in one of the four classes."""
        return self.added + self.changed + self.removed + self.moved

    def to_json(self) -> dict[str, int | None]:
        """The object `delta`."""
        return dict(to_json(self))

    def known(self) -> dict[str, int]:
        """The classes and labels that are known, by name."""
        return {name: value for name, value in self.to_json().items() if value is not None}


@dataclass(frozen=True, slots=True)
class Changed:
    """What the changed features have in common. Each feature is counted in exactly one of the first three numbers.

    Attributes:
        attributes: features with other attributes only.
        geometry: features with another geometry only.
        both: features with other attributes and another geometry.
        largest_move: the largest move of a vertex, in `unit`; null where no geometry changed.
        unit: the unit of the CRS.
        most: the attribute that changed most often and how often.
    """

    attributes: int = 0
    geometry: int = 0
    both: int = 0
    largest_move: float | None = None
    unit: str = "m"
    most: tuple[str, int] | None = None


def most_changed(columns: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    """The attribute that changed most often and how often; of several the first by name, which makes every command name the same one."""
    return min((each for each in columns if each[1]), key=lambda each: (-each[1], each[0]), default=None)


@dataclass(frozen=True, slots=True)
class PublishResult(Shown):
    """What `publish` answers: a new version, no change, a refusal, or a plan.

    Attributes:
        name: the name of the dataset.
        status: published, unchanged, refused or planned (a dry run).
        refused_by: what refused the delivery.
        version: the version that readers see when the run ends; null before the first.
        features: how many features that version holds.
        delivered: rows in the delivery.
        delta: features per class and label.
        changed: what the changed features have in common.
        unchanged: delivered rows whose feature did not change.
        rejected: delivered rows that went to quarantine.
        held: rejected rows whose last accepted row stays published.
        files_written: data files that the run wrote, or would write.
        files_carried: data files that the version takes over as they are.
        bytes_written: bytes of the data files written; an estimate in a dry run.
        rows_written: rows in the data files written.
        partitions_touched: partitions that a change touched; a new one and an emptied one count.
        partitions: partitions of the version.
        run_id: the run; null in a dry run.
        confirm: the token that lets the run pass the guard that stopped it.
        expires: until when the token holds, UTC.
        findings: what is wrong with the delivery or the change.
        notices: settings without effect in this version, and records that are not complete.
        current: the version that readers saw when the run began.
        seconds: how long the run took.
        rebuild: files and bytes of a full rebuild, in a dry run.
    """

    name: str
    status: Literal["published", "unchanged", "refused", "planned"]
    version: int | None
    features: int
    delivered: int
    run_id: str | None
    refused_by: Literal["contract", "guard", "policy", "profile"] | None = None
    delta: Counts = Counts()
    changed: Changed | None = None
    unchanged: int = 0
    rejected: int = 0
    held: int = 0
    files_written: int = 0
    files_carried: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    partitions_touched: int = 0
    partitions: int = 0
    confirm: str | None = None
    expires: str | None = None
    findings: tuple[Finding, ...] = ()
    notices: tuple[str, ...] = ()

    current: int | None = field(default=None, metadata=PERSON)
    seconds: float = field(default=0.0, metadata=PERSON)
    rebuild: tuple[int, int] | None = field(default=None, metadata=PERSON)

    @property
    def refused(self) -> bool:
        """Whether the delivery was refused or stopped; nothing was published then."""
        return self.status == "refused"


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Rows of either side that could not be compared, among them those whose partner on the other side could not.

    Attributes:
        before: rows of the first side.
        after: rows of the second side.
    """

    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class DiffResult(Shown):
    """What `diff` answers: how two files or dataset versions differ.

    Attributes:
        status: compared, or refused where the two cannot be compared; the findings say why.
        before: what the first side is called.
        after: what the second side is called.
        delta: features per class and label.
        changed: what the changed features have in common.
        unchanged: features that are the same on both sides.
        not_compared: rows that could not be compared.
        keys: the keys of each class and label, where they were asked for.
        findings: what is wrong with a side.
        notes: the terms of the comparison, in words.
        html: the page that was written.
        out: the file of changes that was written.
        seconds: how long the comparison took.
    """

    before: str
    after: str
    delta: Counts
    unchanged: int
    status: Literal["compared", "refused"] = "compared"
    changed: Changed | None = None
    not_compared: NotCompared = NotCompared()
    keys: Mapping[str, tuple[str, ...]] | None = field(default=None, metadata=when_set())
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    html: str | None = None
    out: str | None = None

    seconds: float = field(default=0.0, metadata=PERSON)

    @property
    def refused(self) -> bool:
        """Whether the two sides could not be compared."""
        return self.status == "refused"

    @property
    def compared_nothing(self) -> bool:
        """Whether neither side has a row that was compared."""
        return not self.refused and not self.unchanged and self.delta == Counts()

    @property
    def complete(self) -> bool:
        """Whether every row of both sides was compared, and there was one."""
        return not self.refused and not self.compared_nothing and self.not_compared == NotCompared()


@dataclass(frozen=True, slots=True)
class ApplyResult(Shown):
    """What `apply` answers: whether a copy was brought from one version to another, and proved.

    Attributes:
        name: the name of the dataset that the change comes from.
        start: the version that the copy had to hold; 0 for nothing.
        end: the version that it was to hold.
        onto: the copy.
        status: applied; unchanged where the copy held the version already; refused where it held neither.
        delta: features per class and label in the change.
        features: features of the version to arrive at.
        set_digest: the digest of all features that the copy holds now.
        expected: the digest that it should have.
        version: the current version of a dataset that was applied to; null for a file.
        findings: why the target dataset refused the change.
        seconds: how long it took.
    """

    name: str
    start: int = field(metadata=renamed("from"))
    end: int = field(metadata=renamed("to"))
    onto: str
    status: Literal["applied", "unchanged", "refused"]
    delta: Counts
    features: int
    set_digest: str
    expected: str
    version: int | None = None
    findings: tuple[Finding, ...] = ()

    seconds: float = field(default=0.0, metadata=PERSON)

    @property
    def refused(self) -> bool:
        """Whether the copy stays as it was because it does not hold the version that the change starts from."""
        return self.status == "refused"


class AxisOrder(TypedDict):
    """What the positions of a geometry column say of axis order and units: ok, swapped, units or undecidable, and the evidence."""

    decision: str
    evidence: list[str]


@dataclass(frozen=True, slots=True)
class NotJudged:
    """Rules that a check could not judge, and so did not pass.

    Attributes:
        rules: their names, such as schema.key_duplicate.
        why: what they need.
    """

    rules: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class CheckResult(Shown):
    """What `check` answers: whether a delivery keeps its contract. A check that could not run is never a pass.

    Attributes:
        status: pass, fail, or error where a check could not run.
        delivery: what the delivery is called.
        contract: what the contract is called.
        rows: rows that were checked.
        findings: what is wrong with the delivery.
        axes: axis order and units of each geometry column, with the evidence.
        not_judged: rules that could not be judged, and why: those on keys where nothing names a key.
        seconds: how long the check took.
        errors: checks that could not run.
        drawn: whether a map or a layer of the findings was written.
    """

    delivery: str
    contract: str
    status: Literal["pass", "fail", "error"]
    rows: int
    findings: tuple[Finding, ...] = ()
    seconds: float = field(default=0.0, metadata=PERSON)
    errors: tuple[str, ...] = field(default=(), metadata=PERSON)
    drawn: bool = field(default=False, metadata=PERSON)
    axes: Mapping[str, AxisOrder] = field(default_factory=dict)
    not_judged: tuple[NotJudged, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the delivery breaks its contract, or could not be checked."""
        return self.status != "pass"


def of_counts(counts: Mapping[str, Json]) -> Counts:
    """The counts that a manifest or a run record holds, by name; what it does not hold is 0."""
    return Counts(**{name: int(counts.get(name, 0)) for name in CLASSES + LABELS})


def of_feed(counts: Mapping[str, int]) -> Counts:
    """The counts of a feed, which does not hold rows that look the same to a reader: `suppressed` and `refreshed` are not known."""
    given = {name: counts[name] for name in CLASSES + LABELS if name in counts}
    return replace(Counts(**given), suppressed=None, refreshed=None)
