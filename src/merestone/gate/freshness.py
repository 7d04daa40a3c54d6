"""How old the content of a delivery is, held to what is promised and to what is published; times that have not come yet count for nothing.

Not here: the age of what is published (`inspect.browse`).

Clauses: `freshness_sla_minutes`, `freshness_from`; docs/spec/gate.md#freshness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.contract.contract import Contract, Field
from merestone.gate.findings import FindingTally
from merestone.json_value import Json
from merestone.results.finding import Finding, RowFaults
from merestone.rules import catalogue

SKEW = timedelta(minutes=5)
"""How far a clock may be ahead of ours."""
MOST_EARLY = 0.05
"""Above this share of the rows, times that have not come yet refuse the delivery."""
_EAST = timezone(timedelta(hours=14))  # where a day begins first


@dataclass(frozen=True, slots=True)
class Clock:
    """The field that the age is read from, and the latest time in it that can be true: of the column's type, in its own zone."""

    column: str
    latest: date | datetime

    def early(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Rows whose time has not come yet."""
        later = pc.greater(values, pa.scalar(self.latest, values.type))
        return np.flatnonzero(pc.fill_null(later, fill_value=False).to_numpy(zero_copy_only=False)).astype(np.int64)

    def newest(self, values: pa.Array) -> date | datetime | None:
        """The newest time that has come; None without one."""
        found: date | datetime | None = pc.max(values.filter(pc.less_equal(values, pa.scalar(self.latest, values.type)))).as_py()
        return found


def clock(contract: Contract, now: datetime) -> Clock | None:
    """What the age of a delivery is read from, None where that is not a field; `now` is aware.

    A date has come where the day has begun anywhere on earth; so has a local time whose zone is not agreed.
    """
    found = contract.field(contract.freshness_from or "")
    if found is None:
        return None
    latest = now + SKEW
    if found.type.kind == "date":
        return Clock(found.name, latest.astimezone(_EAST).date())
    if found.type.kind == "timestamp_local":
        return Clock(found.name, latest.astimezone(ZoneInfo(found.time_zone) if found.time_zone else _EAST).replace(tzinfo=None))
    return Clock(found.name, latest)


def early_faults(found: Clock, values: pa.Array) -> list[RowFaults]:
    """The rows of one batch whose time has not come yet: a warning each."""
    rows = found.early(values)
    if not len(rows):
        return []
    shown = pc.cast(values.take(pa.array(rows)), pa.string())
    return [catalogue.FUTURE.faults(found.column, rows, shown, severity="warning", latest=_text(found.latest))]


def early_findings(tally: FindingTally, rows: int) -> list[Finding]:
    """What is said of all of them: they refuse the delivery where they are more than single faults."""
    return [
        replace(each, severity="error", remedy=catalogue.FUTURE.cases["many"].remedy) if each.count > MOST_EARLY * rows else each
        for each in tally.findings()
    ]


def freshness(
    contract: Contract,
    now: datetime,
    *,
    newest: date | datetime | None,
    early: int = 0,
    delivered_at: datetime | None = None,
    last: Mapping[str, Json] | None = None,
    same_promise: bool = False,
    version: str = "",
) -> Finding | None:
    """The age of the data against `freshness_sla_minutes` and against what is published.

    Data that are late are a warning where something is published: to keep that would help nobody. They are an error before the first version,
    and where a new promise meets data that are not newer. Data older than what is published are a warning here, and stop a publish as a guard.

    Args:
        contract: the promise; `freshness_from` names the field that holds the time, or is `delivered_at`, or None.
        now: time zone aware.
        newest: the newest value of `freshness_from` in the delivery that has come. A date counts to its end; a local time is that of the field's
            `time_zone`, or UTC.
        early: how many rows have a time that has not come yet.
        delivered_at: when the delivery arrived, used where the data hold no time; aware.
        last: what the last version kept of its newest time (`record`).
        same_promise: whether that was published under this contract.
        version: what it is called.
    """
    source = contract.freshness_from
    measured = source is not None and source != "delivered_at"
    moment = _instant(newest, contract.field(source or "")) if measured else delivered_at
    field_name = source if measured and source is not None else "delivered_at"
    promised = contract.freshness_sla_minutes
    if moment is None:
        if not measured:
            return None
        return catalogue.FRESHNESS.finding(field_name, case="early" if early else "unknown", name=field_name, promised=promised)
    gone_back = older(contract, newest, last)
    if gone_back is not None:
        return catalogue.FRESHNESS.finding(
            field_name, case="older", severity="warning", version=version, published=gone_back[1], moment=gone_back[0], name=field_name
        )
    minutes = (now - moment).total_seconds() / 60
    if minutes <= promised:
        return None
    published = _published(contract, last)
    kept = published is not None and (moment > published or same_promise)
    return catalogue.FRESHNESS.finding(
        field_name,
        severity="error" if measured and not kept else "warning",
        promised=promised,
        minutes=minutes,
        moment=moment.isoformat(),
        label="" if measured else " (delivery time, not measured on the data)",
    )


def record(contract: Contract, newest: date | datetime | None) -> dict[str, str] | None:
    """What a version keeps of its newest time: the field and the instant; None where there is none."""
    moment = _instant(newest, contract.field(contract.freshness_from or ""))
    return None if moment is None else {"field": str(contract.freshness_from), "time": moment.astimezone(UTC).isoformat()}


def older(contract: Contract, newest: date | datetime | None, last: Mapping[str, Json] | None) -> tuple[str, str] | None:
    """The newest time of the delivery and that of what is published, where the first lies before the second; None where it does not."""
    moment, published = _instant(newest, contract.field(contract.freshness_from or "")), _published(contract, last)
    return (moment.isoformat(), published.isoformat()) if moment is not None and published is not None and moment < published else None


def _published(contract: Contract, last: Mapping[str, Json] | None) -> datetime | None:
    return datetime.fromisoformat(last["time"]) if last and last.get("field") == contract.freshness_from else None


def _instant(value: date | datetime | None, field: Field | None) -> datetime | None:
    if value is None:
        return None
    zone = ZoneInfo(field.time_zone) if field is not None and field.time_zone is not None else UTC
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=zone)
    return datetime.combine(value, time.max, tzinfo=zone)


def _text(value: date | datetime) -> str:
    return value.isoformat(sep=" ", timespec="minutes") if isinstance(value, datetime) else value.isoformat()
