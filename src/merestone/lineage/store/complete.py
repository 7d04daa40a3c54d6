"""Whether the events of a run tell the whole story: no gap in the sequence, no stage left out, nothing after a refusal.

Not here: which rows stand (`deduplication`), the comparison with what was published (`line`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.json_value import JsonObject
from merestone.lineage.event.collector import OUTSIDE_CHAIN, base_stage
from merestone.lineage.event.record import ATTEMPT_BITS
from merestone.results.finding import SAMPLES

SKEW = timedelta(minutes=5)
"""How far a clock may run ahead before its time is doubted."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is missing or doubtful. `samples`: up to 20 feature ids, or sequences for rules about them."""

    rule: str
    message: str
    count: int
    samples: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {"rule": self.rule, "message": self.message, "count": self.count, "samples": list(self.samples)}


def check_sequence(table: pa.Table, *, now: datetime) -> list[Gap]:
    """What is wrong with the order of a run's rows as they were sealed (not deduplicated). Order is never taken from time.

    - `sequence_twice`: one sequence on events of different ids. A replayed row (same id) is none.
    - `sequence_gap`: a number is missing inside a batch; reported, never filled. Batches of Merestone begin at 0, others where they do.
    - `future`: event_time_utc lies beyond `now` and the skew of clocks; it is kept, and no freshness may be taken from it.
    """
    order = Order(now)
    order.add(table)
    return order.gaps()


class Order:
    """`check_sequence` for a run that comes in tables, each with all rows of its features: 8 bytes an event are kept.

    A number that is missing is a gap in attempts of `dense` alone, whose numbers Merestone made. The numbers of other programs need only grow;
    what is missing among them is reported as `sequence_sparse`, a doubt.
    """

    def __init__(self, now: datetime, *, dense: Collection[int] | None = None) -> None:
        self._dense = None if dense is None else np.array(sorted(dense), np.int64)
        self._latest = pa.scalar(now + SKEW, pa.timestamp("us", "UTC"))
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._ahead = 0
        self._early: tuple[str, ...] = ()

    def add(self, table: pa.Table) -> None:
        """Take rows with sequence, event_id, event_time_utc and feature_id."""
        pairs = (
            table.select(["sequence", "event_id"]).group_by(["sequence", "event_id"]).aggregate([])
        )  # an event stands in one table alone
        self._numbers.append(np.asarray(one_chunk(pairs.column("sequence"))))
        ahead = np.asarray(pc.greater(one_chunk(table.column("event_time_utc")), self._latest))
        if ahead.any():
            self._ahead += int(ahead.sum())
            self._early = (*self._early, *_features(table, ahead))[:SAMPLES]

    def gaps(self) -> list[Gap]:
        """What was found; nothing can be added afterwards."""
        found: list[Gap] = []
        numbers = np.concatenate(self._numbers) if self._numbers else np.empty(0, np.int64)
        self._numbers.clear()
        numbers.sort()
        again = numbers[1:] == numbers[:-1]
        if again.any():
            twice = np.unique(numbers[1:][again])
            found.append(Gap("sequence_twice", "one sequence stands on several events", len(twice), _shown(twice)))
            numbers = numbers[np.concatenate([[True], ~again])]
        if self._dense is not None:
            ours = np.isin(numbers >> ATTEMPT_BITS, self._dense)
            found += _sparse(numbers[~ours])
            numbers = numbers[ours]
        jumps = np.flatnonzero(np.diff(numbers) > 1)
        inside = jumps[numbers[jumps + 1] >> 24 == numbers[jumps] >> 24]
        firsts = np.concatenate([[0], jumps + 1]) if len(numbers) else np.empty(0, np.int64)
        late = firsts[(numbers[firsts] >> 48 > 0) & (numbers[firsts] & 0xFFFFFF > 0)]  # a batch of ours that does not begin at 0 ...
        late = late[(late == 0) | (numbers[late - 1] >> 24 != numbers[late] >> 24)]  # ... and no gap inside one
        missing = [range(int(numbers[at]) + 1, int(numbers[at + 1])) for at in inside]
        missing += [range(int(numbers[at]) & ~0xFFFFFF, int(numbers[at])) for at in late]
        if missing:
            missing.sort(key=lambda each: each.start)
            words = tuple(str(each.start) if len(each) == 1 else f"{each.start} to {each.stop - 1}" for each in missing[:SAMPLES])
            found.append(Gap("sequence_gap", "numbers are missing inside a batch", sum(map(len, missing)), words))
        if self._ahead:
            found.append(Gap("future", f"event_time_utc is after {self._latest.as_py().isoformat()}", self._ahead, self._early))
        return found


def check_chain(table: pa.Table, plan: Sequence[str]) -> list[Gap]:
    """Which features lack a stage of the plan, or go on after a refusal, by the rows of one run as they were sealed.

    PASS or WARN at stage N needs PASS or WARN at stage N-1 of the plan in the same attempt; nothing follows a REJECT. The stage `publish`
    stands outside. A stage that is not in the plan is named (`stage_unknown`).
    """
    stages = one_chunk(one_chunk(table.column("stage")).dictionary_encode())
    place = {stage: at for at, stage in enumerate(plan)}
    bases = [base_stage(each) for each in stages.dictionary.to_pylist()]
    level = np.array([place.get(each, -2 if each == OUTSIDE_CHAIN else -1) for each in bases], np.int64)[np.asarray(stages.indices)]
    found: list[Gap] = []
    if (unknown := level == -1).any():
        names = sorted({each for each in bases if each not in place and each != OUTSIDE_CHAIN})
        found.append(Gap("stage_unknown", f"stages {', '.join(names)} are not in the plan", int(unknown.sum()), _features(table, unknown)))
    inside = level >= 0
    if not inside.any():
        return found
    rows = np.flatnonzero(inside)
    level = level[rows]
    features = one_chunk(one_chunk(table.column("feature_id")).dictionary_encode())
    attempt = np.asarray(one_chunk(table.column("sequence")))[rows] >> 48
    subject, group = np.unique(np.stack([attempt, np.asarray(features.indices)[rows].astype(np.int64)]), axis=1, return_inverse=True)
    group = group.reshape(-1)
    refused = np.asarray(pc.equal(one_chunk(table.column("outcome")), "REJECT"))[rows]
    reached = np.zeros((subject.shape[1], len(plan)), np.bool_)
    stopped = np.zeros_like(reached)  # by any step of the stage, even where another step of it passes
    reached[group, level] = True
    stopped[group[refused], level[refused]] = True
    ids = features.dictionary
    for at in range(1, len(plan)):
        lacking = reached[:, at] & ~reached[:, at - 1]
        if lacking.any():
            found.append(
                Gap(
                    "stage_missing",
                    f"{plan[at]} stands without {plan[at - 1]} before it",
                    int(lacking.sum()),
                    _of(ids, subject[1][lacking]),
                )
            )
    after = (np.cumsum(stopped, axis=1) - stopped > 0) & reached  # a REJECT at an earlier stage
    if (late := after.any(axis=1)).any():
        found.append(Gap("after_reject", "a stage follows a REJECT", int(late.sum()), _of(ids, subject[1][late])))
    return found


def _sparse(numbers: npt.NDArray[np.int64]) -> list[Gap]:
    """What is missing between the numbers that another program made, batch by batch."""
    steps = np.diff(numbers)
    jumps = np.flatnonzero((steps > 1) & (numbers[1:] >> 24 == numbers[:-1] >> 24))
    if not len(jumps):
        return []
    lows, highs = numbers[jumps[:SAMPLES]] + 1, numbers[jumps[:SAMPLES] + 1] - 1
    words = tuple(str(low) if low == high else f"{low} to {high}" for low, high in zip(lows.tolist(), highs.tolist(), strict=True))
    message = "numbers are missing; another program made them, and may leave some out"
    return [Gap("sequence_sparse", message, int((steps[jumps] - 1).sum()), words)]


def _shown(numbers: npt.NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(str(each) for each in numbers[:SAMPLES].tolist())


def _features(table: pa.Table, mask: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.column("feature_id").take(pa.array(np.flatnonzero(mask)[:SAMPLES])).to_pylist()))


def _of(ids: pa.Array, codes: npt.NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(ids.take(pa.array(codes[:SAMPLES])).to_pylist())
