"""How a publish and a check are called, beside the publication: two small values.

Not here: how a dataset is made (`publication`), how a comparison is called (`compare.terms.ComparisonSettings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from merestone.results.progress import Watch, nobody


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """How one publish is called.

    Args:
        run_id: a name for the run; None derives it from the delivery and the current version.
        confirm: the token of a stop that a person lets pass.
        dry_run: whether nothing is written.
        progress: is called as the run goes on.
    """

    run_id: str | None = None
    confirm: str | None = None
    dry_run: bool = False
    progress: Watch = nobody


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How one check is called.

    Args:
        delivery: what to call the delivery.
        contract: what to call the contract.
        errors: a layer to write with every place of every finding, GeoPackage or GeoJSON.
        page: whether the HTML page is asked for.
        now: the time that the age of the data is judged at, aware; None is the time of the check.
        allow_empty: whether a delivery without rows may pass.
        progress: is called as the check goes on.
    """

    delivery: str
    contract: str
    errors: str | None = None
    page: bool = False
    now: datetime | None = None
    allow_empty: bool = False
    progress: Watch = nobody

    @property
    def drawn(self) -> bool:
        """Whether somebody asked where the findings are."""
        return self.errors is not None or self.page
