"""The only builder of lineage rows: one event at a time (`add`), or what the stages did to a batch, in columns (`add_columns`).

Not here: the check of one event (`event`), files (`store`). Stages never come here: they return `outcome.Steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.lineage import columns
from merestone.lineage.crs import canonical_crs
from merestone.lineage.event import LineageEvent, check_value, make_sequence
from merestone.lineage.schema import LINEAGE_ARROW_SCHEMA, SCHEMA
from merestone.outcome import PASS, REJECT, WARN, Steps

OUTSIDE_CHAIN = "publish"
"""The stage whose events follow no other: a removal has no predecessor, and a held row follows a REJECT."""

PER_ROW = ("change_class", "from_partition", "to_partition")
_OUTCOMES = pa.array(["PASS", "WARN", "REJECT"], pa.string())  # in the order of the numbers in outcome.py


class LineageCollector:
    """Gathers events; `to_table` gives them in the schema's form, `drain` in compact form for `store.RunWriter`.

    Rows stand in the order in which they came. Nothing is dropped and nothing is counted once for twice: deduplication is the reader's.
    """

    def __init__(self) -> None:
        self._events: list[LineageEvent] = []
        self._tables: list[Any] = []
        self._next: dict[tuple[str, int, int], int] = {}

    def add(self, event: LineageEvent) -> None:
        """Add one event; its `target_crs` is written as EPSG:<code>.

        Raises:
            ValueError: it is no LineageEvent, or its target_crs has no EPSG code.
        """
        if not isinstance(event, LineageEvent):
            raise ValueError(f"{event!r} is no LineageEvent")  # noqa: TRY004 - every refusal of an event is a ValueError
        canonical_crs(event.target_crs)
        event.event_id()
        self._events.append(event)

    def add_columns(
        self, feature_ids: Any, steps: Sequence[Steps], *, run_id: str, attempt: int, batch: int, time: datetime,
        audit_tag: str | None = None, contract_version: str | None = None,
    ) -> int:
        """Add what stages did to the rows of one batch; the number of events that came of it.

        Args:
            feature_ids: pyarrow string array, one id a row.
            steps: in the order of the stage plan, each as long as `feature_ids`. A row has no event of a stage after one that refused it
                (the stage `publish` stands outside of that). A qualified CAST (`attr_cast.area_m2`) has events for WARN and REJECT alone.
                A REJECT keeps the event type of its stage, so that a later attempt which accepts the row corrects it: both have one id.
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
        rows, stages = len(feature_ids), len(steps)
        ids = columns.one_chunk(feature_ids)
        if ids.type != pa.string():
            raise ValueError(f"feature_id is of type {ids.type}; it has to be a string array")
        for name, value in (("run_id", run_id), ("event_time_utc", time), ("audit_tag", audit_tag), ("contract_version", contract_version)):
            check_value(name, value)
        columns.check_feature_ids(ids)
        for step in steps:
            _check_step(step, rows)
        met = _met(steps, rows)
        flat = np.flatnonzero(met.ravel())
        count = len(flat)
        start = self._next.get((run_id, attempt, batch), 0)
        first = make_sequence(attempt, batch, start)
        if not count:
            return 0
        make_sequence(attempt, batch, start + count - 1)
        row, stage = np.divmod(flat, stages)
        place = stage * rows + row  # in columns that stand one stage after the other
        digests = np.empty((rows, stages, 16), np.uint8)
        for at, step in enumerate(steps):
            digests[:, at] = columns.event_ids(run_id, step.stage, ids, step.event_type)
        verdict = np.concatenate([step.verdict for step in steps])[place]
        built = {
            "event_id": columns.id_array(digests.reshape(-1, 16)[flat]),
            "run_id": columns.constant(run_id, count),
            "sequence": pa.array(np.arange(first, first + count, dtype=np.int64)),
            "event_time_utc": pa.array(np.full(count, _microseconds(time), np.int64)).view(pa.timestamp("us", "UTC")),
            "stage": _of_stage([step.stage for step in steps], stage),
            "event_type": _of_stage([step.event_type for step in steps], stage),
            "feature_id": pa.DictionaryArray.from_arrays(row.astype(np.int32), ids),
            "source_crs": _of_stage([step.source_crs for step in steps], stage),
            "target_crs": _of_stage([canonical_crs(step.target_crs) for step in steps], stage),
            "outcome": pa.DictionaryArray.from_arrays(verdict.astype(np.int32), _OUTCOMES),
            "strategy_index": _values([_own(step, "strategy_index") for step in steps], rows, stage, place, pa.int32()),
            "accuracy_m": _values([_own(step, "accuracy_m") for step in steps], rows, stage, place, pa.float64()),
            "rejection_reason": _values([step.reason for step in steps], rows, stage, place, pa.string()),
            "tool_version": _of_stage([step.tool_version for step in steps], stage),
            "audit_tag": columns.constant(audit_tag, count),
            "contract_version": columns.constant(contract_version, count),
            **{name: _values([step.extra.get(name) for step in steps], rows, stage, place, pa.string()) for name in PER_ROW},
        }
        _check_verdicts(verdict, built["rejection_reason"], built["event_type"])
        self._flush()
        self._tables.append(pa.Table.from_arrays([built[name] for name in columns.COMPACT_SCHEMA.names], schema=columns.COMPACT_SCHEMA))
        self._next[run_id, attempt, batch] = start + count
        return count

    def __len__(self) -> int:
        return len(self._events) + sum(int(each.num_rows) for each in self._tables)

    def to_table(self) -> Any:
        """All events so far (pyarrow.Table of LINEAGE_ARROW_SCHEMA)."""
        self._flush()
        if not self._tables:
            return LINEAGE_ARROW_SCHEMA.empty_table()
        return pa.concat_tables([columns.expand(each) for each in self._tables])

    def drain(self) -> Any:
        """All events so far in compact form; the collector is empty afterwards, but goes on counting the events of each batch."""
        self._flush()
        taken, self._tables = columns.concat(self._tables), []
        return taken

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
        value = _own(step, name)
        if isinstance(value, (pa.Array, pa.ChunkedArray)):
            wanted = LINEAGE_ARROW_SCHEMA.field(name).type
            if value.type != wanted:
                raise ValueError(f"{name} of stage {step.stage} is of type {value.type}; it has to be {wanted}")
            known = value.drop_null()
            if not pc.all(pc.greater_equal(known, pa.scalar(0, wanted)), min_count=0).as_py():  # NaN is not >= 0 either
                raise ValueError(f"{name} of stage {step.stage} holds a value that is not a number from 0")
        else:
            check_value(name, value)
    if step.verdict.dtype != np.uint8 or step.verdict.shape != (rows,) or (rows and int(step.verdict.max()) > REJECT):
        raise ValueError(f"verdict of stage {step.stage} is not one of {PASS}, {WARN}, {REJECT} for each of {rows} rows")
    for name, value in (("reason", step.reason), *((each, step.extra.get(each)) for each in PER_ROW)):
        if value is not None and not isinstance(value, str) and len(value) != rows:
            raise ValueError(f"{name} of stage {step.stage} has {len(value)} values for {rows} rows")
    mask = step.extra.get("rows")
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != (rows,)):
        raise ValueError(f"rows of stage {step.stage} is not a truth value for each of {rows} rows")
    if unknown := step.extra.keys() - {"rows", "strategy_index", "accuracy_m", *PER_ROW}:
        raise ValueError(f"stage {step.stage} carries unknown columns: {', '.join(sorted(unknown))}")


def _own(step: Steps, name: str) -> Any:
    """A value of the stage, or the column that `extra` has in its place."""
    return step.extra.get(name, getattr(step, name))


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


def _of_stage(names: list[str | None], stage: npt.NDArray[np.int64]) -> Any:
    """A dictionary column from one text (or None) a stage."""
    known = list(dict.fromkeys(each for each in names if each is not None))
    if not known:
        return columns.constant(None, len(stage))
    codes = np.array([known.index(each) if each is not None else -1 for each in names], np.int32)[stage]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0) if None in names else codes, pa.array(known, pa.string()))


def _values(given: list[Any], rows: int, stage: npt.NDArray[np.int64], place: npt.NDArray[np.int64], kind: Any) -> Any:
    """A column from one value, one array of a value per row, or None, a stage; texts as a dictionary column."""
    text = kind == pa.string()
    if not any(isinstance(each, (pa.Array, pa.ChunkedArray)) for each in given):
        return _of_stage(given, stage) if text else pa.array(given, kind).take(pa.array(stage))
    parts = []
    for each in given:
        if isinstance(each, (pa.Array, pa.ChunkedArray)):
            parts.append(pc.cast(columns.one_chunk(each), kind))
        else:
            parts.append(pa.repeat(pa.scalar(each, kind), rows))
    whole = pa.concat_arrays(parts).take(pa.array(place))
    if not text:
        return whole
    return columns.constant(None, len(whole)) if whole.null_count == len(whole) else pc.dictionary_encode(whole)


def _check_verdicts(verdict: npt.NDArray[np.uint8], reasons: Any, event_types: Any) -> None:
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
