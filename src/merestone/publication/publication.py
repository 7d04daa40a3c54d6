"""The publication file: how a dataset is made (source, key, destination, partitions, guards), read strictly.

Not here: what a consumer may rely on (`contract`), the order of the line (`line`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from merestone.json_value import JsonObject
from merestone.masking import masked_within
from merestone.source.port import SourceSpec


@dataclass(frozen=True, slots=True)
class KeyRule:
    """One or more columns, or a named rule (`derive`) over immutable attributes (`made_from`), whose key is published as column `key`.

    published: the rule as a manifest has it, where rows of that version are delivered: they hold their keys already.
    """

    columns: tuple[str, ...]
    derive: str | None = None
    made_from: tuple[str, ...] = ()
    published: JsonObject | None = None

    @classmethod
    def of_manifest(cls, record: JsonObject, *, published: bool) -> KeyRule:
        """The rule of a published version, for its own rows (`published`) or for a delivery like those that it was made from."""
        made_from = tuple(each["name"] for each in record.get("from", ()))
        return cls(tuple(record["columns"]), record["derive"], made_from, dict(record) if published else None)

    @property
    def delivered(self) -> tuple[str, ...]:
        """The columns of the delivery that the key is read from."""
        return self.made_from if self.derive is not None and self.published is None else self.columns

    @property
    def words(self) -> str:
        """The rule in words."""
        return f"{self.derive} of {', '.join(self.made_from)}" if self.derive is not None else ", ".join(self.columns)


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """`by` is column, kdtree or none; `column` belongs to column, `target_rows` to kdtree."""

    by: Literal["column", "kdtree", "none"] = "kdtree"
    column: str | None = None
    target_rows: int = 50_000


@dataclass(frozen=True, slots=True)
class FilesRule:
    """How large a data file and a row group are, in rows."""

    target_rows: int = 100_000
    row_group_rows: int = 10_000


@dataclass(frozen=True, slots=True)
class CrsRule:
    """The fallbacks of the CRS stage, in order (`strategy_index` is the place in this list).

    accept: canonical codes of other systems that may be delivered, and are then transformed. grids: a folder of grid files beside PROJ's own.
    """

    strategies: tuple[str, ...] = ("best", "grid", "ballpark")
    missing_grids: Literal["refuse", "fallback"] = "refuse"
    grids: str | None = None
    accept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardRule:
    """Limits beyond which a change stops for a person's word. None: not guarded.

    min_touched: below so many features a limit on a share of features stops only above a half.
    """

    max_changed_fraction: float | None = 0.2
    max_removed_fraction: float | None = None
    max_moved_fraction: float | None = None
    min_key_survival: float | None = None
    max_null_geometry_fraction: float | None = None
    max_extent_shift: float | None = None
    max_column_changed_fraction: float | None = None
    max_withdrawn_fraction: float | None = 0.5
    min_touched: int = 20


@dataclass(frozen=True, slots=True)
class RejectsRule:
    """Row findings above `max_fraction` refuse the delivery; below it, rows go to quarantine."""

    max_fraction: float = 0.0
    published: Literal["hold", "remove"] = "hold"


@dataclass(frozen=True, slots=True)
class LineageRetention:
    """How long lineage is kept, an ISO 8601 duration, and the legal basis of that."""

    window: str
    basis: str


@dataclass(frozen=True, slots=True)
class Publication:
    """A read publication file; paths are absolute. `notices` says which accepted settings are not yet in effect."""

    path: str
    name: str
    contract: str
    source: SourceSpec
    destination: str
    key: KeyRule
    columns: tuple[tuple[str, str], ...] = ()
    key_migration: str | None = None
    partition: PartitionRule = PartitionRule()
    files: FilesRule = FilesRule()
    crs: CrsRule = CrsRule()
    extra_columns: Literal["refuse", "warn"] = "refuse"
    guard: GuardRule = GuardRule()
    rejects: RejectsRule = RejectsRule()
    audit_tag: str | None = None
    lineage_retention: LineageRetention | None = None
    notices: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The settings as they stand in the run record, without secrets."""
        return {name: masked_within(each) for name, each in asdict(self).items()}
