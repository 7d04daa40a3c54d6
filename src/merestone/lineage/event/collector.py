"""The only builder of lineage rows: one event at a time (`add`), or what the stages did to a batch, in columns (`add_columns`).

Not here: the check of one event (`event`), files (`store`). Stages never come here: they return `results.finding.Steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.lineage.event import columns
from merestone.lineage.event.record import LineageEvent, check_value, make_sequence
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, SCHEMA
from merestone.reference.identity import canonical_crs
from merestone.results.finding import PASS, REJECT, WARN, Steps

OUTSIDE_CHAIN = "publish"
"""The stage whose events follow no other: a removal has no predecessor, and a held row follows a REJECT."""

OWN_STAGES = frozenset({"crs_normalize", "attr_cast", "validate", "snap", OUTSIDE_CHAIN})
"""The stages of a publish. A run that another program writes from Python has names of its own for what it does."""

PER_ROW = ("change_class", "from_partition", "to_partition")
_OUTCOMES = pa.array(["PASS", "WARN", "REJECT"], pa.string())  # in the order of the numbers in results/finding.py


class LineageCollector:
    """Gathers events; `to_table` gives them in the schema's form, `drain` in compact form for `store.RunWriter`.

    Rows stand in the order in which they came. Nothing is dropped and nothing is counted once for twice: deduplication is the reader's.
    """

    def __init__(self) -> None:
        self._events: list[LineageEvent] = []
        self._tables: list[pa.Table] = []
        self._next: dict[tuple[str, int, int], int] = {}

    def add(self, event: LineageEvent) -> None:
        """Add one event; its `target_crs` is written as EPSG:<code>.

        Raises:
            ValueError: it is not a LineageEvent, or its target_crs has no EPSG code.
        """
        if not isinstance(event, LineageEvent):
            raise ValueError(f"{event!r} is not a LineageEvent")  # noqa: TRY004 - every refusal of an event is a ValueError
        canonical_crs(event.target_crs)
        event.event_id()
        self._events.append(event)

    def add_columns(
        self,
        feature_ids: pa.Array,
        steps: Sequence[Steps],
        *,
        run_id: str,
        attempt: int,
        batch: int,
        time: datetime,
        audit_tag: str | None = None,
        contract_version: str | None = None,
    ) -> int:
        """Add what stages did to the rows of one batch; the number of events that came of it.

        Args:
            feature_ids: pyarrow string array, one id a row.
            steps: in the order of the stage plan, each as long as `feature_ids`. A row has no event of a stage after one that refused it
                (the stage `publish` stands outside of that). A qualified CAST (`attr_cast.area_m2`) has events for WARN and REJECT alone.
                A REJECT keeps the event type of its stage; a later attempt which accepts the row corrects it: both have one id.
                `extra` may hold `rows` (bool array: the rows that the stage met, by default all) and `change_class`, `from_partition`,
                `to_partition`, `strategy_index` (int32) and `accuracy_m` (float64), each one value or an array of one per row.
            run_id: the run.
            attempt: from 1.
            batch: a number that no other batch of the attempt has; repeated calls for a batch continue its count.
            time: when the batch was processed, aware.
            audit_tag: carried from upstream.
            contract_version: of the contract that judged.

        Raises:
            ValueError: as `LineageEvent`, for columns; or the batch would exceed 2^24 events. Nothing is added then.
        """
        rows = len(feature_ids)
        ids = one_chunk(feature_ids)
        if ids.type != pa.string():
            raise ValueError(f"feature_id is of type {ids.type}; it has to be a string array")
        for name, value in (("run_id", run_id), ("event_time_utc", time), ("audit_tag", audit_tag), ("contract_version", contract_version)):
            check_value(name, value)
        columns.check_feature_ids(ids)
        for step in steps:
            _check_step(step, rows)
        events = _Events(steps, rows)
        count = len(events.row)
        start = self._next.get((run_id, attempt, batch), 0)
        first = make_sequence(attempt, batch, start)
        if not count:
            return 0
        make_sequence(attempt, batch, start + count - 1)
        verdict = events.verdict()
        features, stages, kinds = columns.coded(events.row, ids), events.of_stage("stage"), events.of_stage("event_type")
        built: dict[str, pa.Array] = {
            "event_id": columns.id_array(columns.event_ids(run_id, stages, features, kinds)),
            "run_id": events.alike(run_id),
            "sequence": pa.array(np.arange(first, first + count, dtype=np.int64)),
            "event_time_utc": pa.array(np.full(count, _microseconds(time), np.int64)).view(pa.timestamp("us", "UTC")),
            "stage": stages,
            "event_type": kinds,
            "feature_id": features,
            "source_crs": events.of_stage("source_crs"),
            "target_crs": events.of_stage("target_crs", canonical_crs),
            "outcome": columns.coded(verdict.astype(np.int32), _OUTCOMES) if verdict.any() else events.alike("PASS"),
            "strategy_index": events.values("strategy_index", pa.int32()),
            "accuracy_m": events.values("accuracy_m", pa.float64()),
            "rejection_reason": events.values("reason", pa.string()),
            "tool_version": events.of_stage("tool_version"),
            "audit_tag": events.alike(audit_tag),
            "contract_version": events.alike(contract_version),
            **{name: events.values(name, pa.string()) for name in PER_ROW},
        }
        _check_verdicts(verdict, built["rejection_reason"], built["event_type"])
        self._flush()
        self._tables.append(pa.Table.from_arrays([built[name] for name in columns.COMPACT_SCHEMA.names], schema=columns.COMPACT_SCHEMA))
        self._next[run_id, attempt, batch] = start + count
        return count

    def __len__(self) -> int:
        return len(self._events) + sum(int(each.num_rows) for each in self._tables)

    def to_table(self) -> pa.Table:
        """All events so far (pyarrow.Table of LINEAGE_ARROW_SCHEMA)."""
        self._flush()
        if not self._tables:
            return LINEAGE_ARROW_SCHEMA.empty_table()
        return pa.concat_tables([columns.expand(each) for each in self._tables])

    def drain(self) -> pa.Table:
        """All events so far in compact form; the collector is empty afterwards, but goes on counting the events of each batch."""
        self._flush()
        return columns.concat(self._tables)

    def _flush(self) -> None:
        """Turn the events that came one by one into a table."""
        if not self._events:
            return
        events, self._events = self._events, []
        values: dict[str, list[Any]] = {"event_id": [each.event_id() for each in events]}
        for field in SCHEMA.fields:
            if field.name != "event_id":
                values[field.name] = [getattr(each, field.name) for each in events]
        values["target_crs"] = [canonical_crs(each) for each in values["target_crs"]]
        values["event_time_utc"] = [each.astimezone(UTC) for each in values["event_time_utc"]]
        table = pa.Table.from_arrays([pa.array(values[each.name], each.type) for each in LINEAGE_ARROW_SCHEMA], schema=LINEAGE_ARROW_SCHEMA)
        self._tables.append(columns.compact(table))


def base_stage(stage: str) -> str:
    """The stage of the plan that a qualified stage belongs to (`attr_cast.area_m2`: `attr_cast`)."""
    return stage.partition(".")[0]


def _check_step(step: Steps, rows: int) -> None:
    for name in ("stage", "event_type", "source_crs", "target_crs", "tool_version"):
        check_value(name, getattr(step, name))
    for name in ("strategy_index", "accuracy_m"):
        _check_numbers(step, name, rows)
    if step.verdict.dtype != np.uint8 or step.verdict.shape != (rows,) or (rows and int(step.verdict.max()) > REJECT):
        raise ValueError(f"verdict of stage {step.stage} is not one of {PASS}, {WARN}, {REJECT} for each of {rows} rows")
    for name in ("reason", *PER_ROW):
        _check_texts(f"{name} of stage {step.stage}", _own(step, name), rows)
    mask = step.extra.get("rows")
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != (rows,)):
        raise ValueError(f"rows of stage {step.stage} is not a truth value for each of {rows} rows")
    if unknown := step.extra.keys() - {"rows", "strategy_index", "accuracy_m", *PER_ROW}:
        raise ValueError(f"stage {step.stage} carries unknown columns: {', '.join(sorted(unknown))}")


def _check_numbers(step: Steps, name: str, rows: int) -> None:
    """Refuse what is neither one value nor a column of numbers from 0."""
    value = _own(step, name)
    if not isinstance(value, (pa.Array, pa.ChunkedArray)):
        check_value(name, value)
        return
    wanted = LINEAGE_ARROW_SCHEMA.field(name).type
    if value.type != wanted:
        raise ValueError(f"{name} of stage {step.stage} is of type {value.type}; it has to be {wanted}")
    if len(value) != rows:
        raise ValueError(f"{name} of stage {step.stage} has {len(value)} values for {rows} rows")
    known = value.drop_null()
    good = pc.and_(pc.greater_equal(known, pa.scalar(0, wanted)), pc.is_finite(known))
    if not pc.all(good, min_count=0).as_py():
        raise ValueError(f"{name} of stage {step.stage} holds a value that is not a number from 0")


def _check_texts(what: str, value: Any, rows: int) -> None:
    """Refuse what is neither a text, nor nothing, nor a text or nothing for each row: Arrow would write numbers and times as texts."""
    if value is None:
        return
    if isinstance(value, str):
        check_value("rejection_reason", value)
        return
    if not isinstance(value, (pa.Array, pa.ChunkedArray)):
        raise ValueError(f"{what} is of type {type(value).__name__}; it has to be a text or a string array")  # noqa: TRY004 - every refusal of an event is a ValueError
    kind = value.type.value_type if pa.types.is_dictionary(value.type) else value.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise ValueError(f"{what} is of type {value.type}; it has to be a string array")
    if len(value) != rows:
        raise ValueError(f"{what} has {len(value)} values for {rows} rows")


def _own(step: Steps, name: str) -> Any:
    """A value of the stage, or the column that `extra` has in its place."""
    return step.extra.get(name, getattr(step, name, None))


def _met(steps: Sequence[Steps], rows: int) -> npt.NDArray[np.bool_]:
    """Which row has an event of which stage: shape (rows, stages)."""
    met = np.ones((rows, len(steps)), np.bool_)
    refused = np.zeros(rows, np.bool_)  # by an earlier stage of the plan
    refusing = refused.copy()  # by the stage at hand, whose qualified steps all stand
    at_hand = ""
    for at, step in enumerate(steps):
        mask = step.extra.get("rows")
        if mask is not None:
            met[:, at] = mask
        if base_stage(step.stage) == OUTSIDE_CHAIN:
            continue
        if base_stage(step.stage) != at_hand:
            at_hand = base_stage(step.stage)
            refused |= refusing
        met[:, at] &= ~refused
        refusing |= (step.verdict == REJECT) & met[:, at]
        if step.event_type == "CAST" and step.stage != at_hand:
            met[:, at] &= step.verdict != PASS
    return met


class _Events:
    """The events of one batch, row by row and within a row in the order of the stages: `row` and `stage` of each (int32).

    Columns of the events are made from what the steps hold: one value a stage, or an array of one value a row.
    """

    def __init__(self, steps: Sequence[Steps], rows: int) -> None:
        self.steps, self.rows = steps, rows
        met = _met(steps, rows)
        self.all = bool(met.all())
        if self.all:
            self.row = np.repeat(np.arange(rows, dtype=np.int32), len(steps))
            self.stage = np.tile(np.arange(len(steps), dtype=np.int32), rows)
        else:
            row, stage = np.nonzero(met)
            self.row, self.stage = row.astype(np.int32), stage.astype(np.int32)
        self.alike = columns.Alike(len(self.row))

    def verdict(self) -> npt.NDArray[np.uint8]:
        """The verdict of each event."""
        if not any(step.verdict.any() for step in self.steps):
            return np.zeros(len(self.row), np.uint8)
        whole = np.stack([step.verdict for step in self.steps], axis=1)
        return whole.ravel() if self.all else whole[self.row, self.stage]

    def of_stage(self, name: str, written: Callable[[str], str] = str) -> pa.Array:
        """A dictionary column from one text (or None) a stage."""
        return self._from([None if (value := _own(step, name)) is None else written(value) for step in self.steps])

    def values(self, name: str, kind: pa.DataType) -> pa.Array:
        """A column from one value, one array of a value per row, or None, a stage; texts as a dictionary column."""
        text = kind == pa.string()
        given = [_single(_own(step, name)) for step in self.steps]
        if not any(isinstance(each, pa.Array) for each in given):
            return self._from(given) if text else self._numbers(given, kind)
        parts = [pc.cast(each, kind) if isinstance(each, pa.Array) else pa.repeat(pa.scalar(each, kind), self.rows) for each in given]
        whole = pa.concat_arrays(parts).take(pa.array(self.stage.astype(np.int64) * self.rows + self.row))
        return pc.dictionary_encode(whole) if text else whole

    def _from(self, names: list[str | None]) -> pa.Array:
        known = list(dict.fromkeys(each for each in names if each is not None))
        if len(known) < 2 and (not known or None not in names):
            return self.alike(known[0] if known else None)
        codes = np.array([known.index(each) if each is not None else -1 for each in names], np.int32)[self.stage]
        return columns.coded(pa.array(codes, mask=codes < 0) if None in names else codes, pa.array(known, pa.string()))

    def _numbers(self, given: list[Any], kind: pa.DataType) -> pa.Array:
        if all(each == given[0] for each in given):
            return pa.repeat(pa.scalar(given[0], kind), len(self.row))
        return pa.array(given, kind).take(pa.array(self.stage))


def _single(value: Any) -> Any:
    """An array in one chunk; None where nothing in it has a value."""
    if not isinstance(value, (pa.Array, pa.ChunkedArray)):
        return value
    return None if value.null_count == len(value) else one_chunk(value)


def _check_verdicts(verdict: npt.NDArray[np.uint8], reasons: pa.Array, event_types: pa.Array) -> None:
    """`event.check_verdict` over columns."""
    worded = np.asarray(pc.is_valid(reasons))
    if bool((worded & (verdict == PASS)).any()):
        raise ValueError("outcome is PASS with a rejection_reason; a doubt is a WARN")
    if pc.any(pc.equal(pc.utf8_trim_whitespace(reasons.dictionary), "")).as_py():
        worded = np.asarray(pc.not_equal(pc.utf8_trim_whitespace(pc.cast(reasons, pa.string())), "").fill_null(False))
    if bool((~worded & (verdict == REJECT)).any()):
        raise ValueError("outcome is REJECT without a rejection_reason")
    if "REJECT" in event_types.dictionary.to_pylist():
        typed = np.asarray(pc.equal(pc.cast(event_types, pa.string()), "REJECT"))
        if bool((typed & (verdict != REJECT)).any()):
            raise ValueError("event_type is REJECT and outcome is not; an event of type REJECT has outcome REJECT")


def _microseconds(time: datetime) -> int:
    """Microseconds since 1970 in UTC, exactly."""
    since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
