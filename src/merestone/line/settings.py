"""How a publish and a check are called, beside the publication: two small values.

Not here: how a dataset is made (`publication`), how a comparison is called (`compare.terms.ComparisonSettings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """How one publish is called. `shown` is the publication file as it was typed, `command` what repeats the run without a token, for real."""

    run_id: str | None = None
    confirm: str | None = None
    dry_run: bool = False
    shown: str = ""
    command: str = ""

    @property
    def repeat(self) -> str:
        """What repeats the run for real, with the token that it was given."""
        return self.command + (f" --confirm {self.confirm}" if self.confirm is not None else "")


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How one check is called.

    Args:
        delivery: what to call the delivery.
        contract: what to call the contract.
        errors: a layer to write with every place of every finding, GeoPackage or GeoJSON.
        page: whether the HTML page is asked for.
        now: the time that the age of the data is judged at, aware; None is the time of the check.
    """

    delivery: str
    contract: str
    errors: str | None = None
    page: bool = False
    now: datetime | None = None

    @property
    def drawn(self) -> bool:
        """Whether somebody asked where the findings are."""
        return self.errors is not None or self.page
