"""What other catalogues of lineage want to know of a run: the facts that OpenLineage, PROV and ISO 19115 tell in their own ways.

Not here: those ways (`openlineage`, `prov`, `iso19115`), gathering the facts (`audit.facts`, `audit.iso`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

_SPACE = UUID("4f3d8b1e-9a67-5c1d-8a52-6f0f3d0c7e21")


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One stage and operation: its events, when they were (aware), and the software that acted."""

    stage: str
    event_type: str
    source_crs: str
    target_crs: str
    passed: int
    warned: int
    rejected: int
    first: datetime
    last: datetime
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignFacts:
    """What a run of another program says of itself: its job, whether it completed, why it did not, and URIs of what it read and wrote."""

    namespace: str
    job: str
    run: str
    complete: bool
    reason: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run of a dataset.

    `namespace` is where the dataset is (a URL); `version` the one that the run made, None where it made none; `previous` the version before;
    `delivery` the file's name, rows and set digest; `fields` names and types; times are aware; `root` is the Merkle root of its events.
    `findings` are what a delivery was refused for. Of a run of another program, `foreign` holds what it says of itself.
    """

    namespace: str
    name: str
    run_id: str
    attempt: int
    started: datetime
    ended: datetime
    version: int | None
    previous: int | None
    contract: str | None
    delivery: str | None
    delivery_rows: int | None
    delivery_digest: str | None
    delivery_crs: str | None
    features: int | None
    size: int | None
    files: int | None
    crs: str | None
    root: str
    run_manifest: str
    verdict: dict[str, int]
    steps: tuple[StepFacts, ...]
    tools: dict[str, str]
    fields: tuple[tuple[str, str], ...] = ()
    delta: dict[str, int] = field(default_factory=dict)
    foreign: ForeignFacts | None = None
    recorded_by: str = ""
    findings: tuple[str, ...] = ()

    @property
    def written_by(self) -> str:
        """The version of Merestone that wrote the run down."""
        return self.tools.get("merestone", "unknown") if self.foreign is None else self.recorded_by.rpartition(" ")[2] or "unknown"

    @property
    def complete(self) -> bool:
        """Whether the run did what it was to do: a publish made a version; another program says so itself."""
        return self.version is not None if self.foreign is None else self.foreign.complete

    @property
    def uuid(self) -> str:
        """The run as a UUID, the same each time: its own name where that is one."""
        if self.foreign is None:
            return str(uuid5(_SPACE, f"{self.namespace}\x1f{self.name}\x1f{self.run_id}"))
        try:
            return str(UUID(self.foreign.run))
        except ValueError:
            return str(uuid5(_SPACE, f"{self.foreign.namespace}\x1f{self.foreign.job}\x1f{self.foreign.run}"))


def stamp(time: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
