"""Events and rejection logs of other tools, read in batches: each line or row becomes an event or a quarantined row, and none is lost.

Not here: the mapping of a log (`mapping`), sealing (`store`), the command (`audit.ingest`).

Batches are judged in columns. A row that a column check doubts, and no other, is judged anew by `LineageEvent`, whose word counts: the
column checks may doubt too much, never too little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar.arrays import one_chunk
from merestone.columnar.unicode import nfc
from merestone.errors import SourceError, UsageError
from merestone.json_value import Json, JsonObject
from merestone.lineage.event import columns
from merestone.lineage.event.collector import LineageCollector, base_stage
from merestone.lineage.event.record import IDENTITY, LineageEvent, make_event_id
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, SCHEMA
from merestone.lineage.exchange.mapping import LogMapping, exact_float, read_time, whole_times
from merestone.lineage.store.writing import names_files
from merestone.reference.identity import canonical_crs

LINES = (".ndjson", ".jsonl", ".json", ".log")
COLUMNS = (".parquet", ".arrow", ".feather")
BATCH_ROWS = 20_000
BATCH_BYTES = 1 << 25
LINE_BYTES = 1 << 20
"""A longer line is quarantined without being read whole."""
_TEXT = 10_000  # characters of a quarantined line that are kept
_NAMES = frozenset(each.name for each in SCHEMA.fields)
_TEXTS = tuple(each.name for each in SCHEMA.fields if each.type == "string")
_REQUIRED = tuple(each.name for each in SCHEMA.fields if each.required and each.name != "event_id")
_CONTROL = r"[\x{00}-\x{1f}\x{7f}-\x{9f}]"
_NOT_BLANK = r"[^\s\x{00}-\x{20}\x{7f}-\x{a0}\p{Z}]"

Bools = npt.NDArray[np.bool_]
Reserved = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A line (or row, from 1) that is not an event, and why; `text` is its content."""

    line: int
    reason: str
    text: str

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {"line": self.line, "reason": self.reason, "text": self.text}


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines or rows of a file: `lines` of them, the events among them (LINEAGE_ARROW_SCHEMA, in their order), and the others."""

    lines: int
    events: pa.Table
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A batch before it is judged.

    `table` holds the fields as typed columns, null where the value is missing or doubted; `numbers` the line of each row; `one` gives the
    event of a row or says by ValueError why there is none; `text` what the row said.
    """

    table: pa.Table
    doubt: Bools
    numbers: npt.NDArray[np.int64]
    one: Callable[[int], LineageEvent]
    text: Callable[[int], str]


def read_batches(path: str, mapping: LogMapping | None = None, *, reserved: Reserved | None = None) -> Iterator[Batch]:
    """The lines or rows of a file in order, batch by batch, in bounded memory.

    Args:
        path: .ndjson or .jsonl (events, or with a mapping the lines of a log), .parquet, .arrow or .feather (events).
        mapping: of a log; its events all come with the sequence 0: whoever keeps them numbers them.
        reserved: run to the stages that others may not tell of.

    Raises:
        UsageError: another ending, or a mapping for a file of columns.
        SourceError: the file cannot be read.
    """
    ending = Path(path).suffix.lower()
    if ending in LINES:
        return _of_lines(path, mapping, reserved or {})
    if mapping is not None:
        raise UsageError(
            f"{path}: a mapping reads lines of JSON", field="mapping", hint=f"give a file that ends in one of {', '.join(LINES)}"
        )
    if ending not in COLUMNS:
        raise UsageError(f"{path}: events are read from {', '.join((*LINES, *COLUMNS))}", field=path, hint="rename the file, or convert it")
    return _of_columns(path, reserved or {})


def event_of(values: Mapping[str, Json]) -> LineageEvent:
    """One event from its fields; `event_id` may be there and has to be right then.

    Raises:
        ValueError: as `LineageEvent`, an unknown field, an event_id that is not that of the event, a target_crs without an EPSG code.
    """
    if unknown := values.keys() - _NAMES:
        raise ValueError(f"{min(map(str, unknown))} is not a field of the lineage schema {SCHEMA.version}")
    given = dict(values)
    claimed = given.pop("event_id", None)
    if missing := [name for name in _REQUIRED if name not in given]:
        raise ValueError(f"{missing[0]} is missing")
    return _checked(LineageEvent(**given), claimed)


def _checked(event: LineageEvent, claimed: Any = None) -> LineageEvent:
    canonical_crs(event.target_crs)
    identity = make_event_id(event.run_id, event.stage, event.feature_id, event.event_type)
    if claimed is not None and claimed != identity:
        raise ValueError(f"event_id {claimed!r} is not that of the event")
    return event


# --- lines of JSON -----------------------------------------------------------------------------------------------------------------------


def _of_lines(path: str, mapping: LogMapping | None, reserved: Reserved) -> Iterator[Batch]:
    first = 1
    for lines in _lines(path):
        values: list[JsonObject] = []
        rows: list[int] = []
        refused: list[Quarantined] = []
        for at, line in enumerate(lines):
            try:
                values.append(_object(line, first=first + at == 1))
                rows.append(at)
            except (ValueError, RecursionError) as fault:
                refused.append(Quarantined(first + at, str(fault) or type(fault).__name__, _shown(line)))

        def text(row: int, rows: Sequence[int] = rows, lines: Sequence[bytes] = lines) -> str:
            return _shown(lines[rows[row]])

        numbers = np.array(rows, np.int64) + first
        draft = _draft_of_log(values, numbers, mapping, text) if mapping is not None else _draft_of_events(values, numbers, text)
        yield _judged(draft, len(lines), refused, reserved)
        first += len(lines)


def _lines(path: str) -> Iterator[list[bytes]]:
    """The lines of a file, cut at LINE_BYTES + 1, in batches of bounded size."""
    try:
        with Path(path).open("rb") as file:
            batch: list[bytes] = []
            size = 0
            while line := file.readline(LINE_BYTES + 1):
                rest = line
                while len(rest) > LINE_BYTES and not rest.endswith(b"\n"):
                    rest = file.readline(LINE_BYTES + 1) or b"\n"
                batch.append(line)
                size += len(line)
                if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch
    except OSError as fault:
        raise SourceError(f"{path} cannot be read: {fault.strerror or fault}", field=path, hint="check the file and its path") from fault


def _object(line: bytes, *, first: bool) -> JsonObject:
    """The JSON object of a line. Raises ValueError or RecursionError where there is none, or more than one may be meant."""
    if not line.strip():
        raise ValueError("the line is empty")
    if len(line) > LINE_BYTES and not line.endswith(b"\n"):
        raise ValueError(f"the line is longer than {LINE_BYTES:,} bytes")
    value = _DECODER.decode(line.decode("utf-8-sig" if first else "utf-8"))
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")  # noqa: TRY004 - as every other fault of a line
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _pairs(found: list[tuple[str, Any]]) -> JsonObject:
    made = dict(found)
    if len(made) < len(found):
        raise ValueError("a name stands twice in one object")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _shown(line: bytes) -> str:
    return line.decode("utf-8", errors="backslashreplace").rstrip("\r\n")[:_TEXT]


def _draft_of_events(values: list[JsonObject], numbers: npt.NDArray[np.int64], text: Callable[[int], str]) -> _Draft:
    doubt = np.zeros(len(values), np.bool_)
    if any(values) and not set().union(*values) <= _NAMES:
        doubt |= np.array([not each.keys() <= _NAMES for each in values])
    given = {name: [each.get(name) for each in values] for name in _NAMES}
    given["accuracy_m"] = [exact_float(each) for each in given["accuracy_m"]]

    def one(row: int) -> LineageEvent:
        found = dict(values[row])
        if isinstance(found.get("event_time_utc"), str):
            found["event_time_utc"] = read_time(found["event_time_utc"])
        if "accuracy_m" in found:
            found["accuracy_m"] = exact_float(found["accuracy_m"])
        return event_of(found)

    return _Draft(_typed(given, doubt, len(values), whole_times(given["event_time_utc"])), doubt, numbers, one, text)


def _draft_of_log(lines: list[JsonObject], numbers: npt.NDArray[np.int64], mapping: LogMapping, text: Callable[[int], str]) -> _Draft:
    given, times = mapping.columns(lines)
    doubt = np.zeros(len(lines), np.bool_)
    table = _typed({name: given.get(name, [None] * len(lines)) for name in _NAMES}, doubt, len(lines), times)
    return _Draft(table, doubt, numbers, lambda row: _checked(mapping.event(lines[row], 0)), text)


def _typed(given: Mapping[str, list[Any]], doubt: Bools, rows: int, times: pa.Array) -> pa.Table:
    """Lists of Python values as columns of the schema; a value of another type is null, and its row doubted."""
    arrays = []
    for field in LINEAGE_ARROW_SCHEMA:
        values = given[field.name]
        if field.name == "event_time_utc":
            doubt |= np.asarray(times.is_null()) & np.array([each is not None for each in values], np.bool_)
            arrays.append(times)
            continue
        kind: Any = str if field.type == pa.string() else float if field.type == pa.float64() else int
        if set(map(type, values)) <= {kind, type(None)}:
            try:
                arrays.append(pa.array(values, field.type))
                continue
            except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
                pass  # one of them is half of a surrogate pair, or out of range: found below, one by one
        fits = [_fitting(each, kind, field.type) for each in values]
        doubt |= np.array([each is None and value is not None for each, value in zip(fits, values, strict=True)], np.bool_)
        arrays.append(pa.array(fits, field.type))
    return pa.Table.from_arrays(arrays, names=LINEAGE_ARROW_SCHEMA.names) if rows else LINEAGE_ARROW_SCHEMA.empty_table()


def _fitting(value: Any, kind: Any, wanted: pa.DataType) -> Any:
    if type(value) is not kind:
        return None
    try:
        pa.scalar(value, wanted)
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return None
    return value


# --- columns -----------------------------------------------------------------------------------------------------------------------------


def _of_columns(path: str, reserved: Reserved) -> Iterator[Batch]:
    first = 1
    for batch in _record_batches(path):
        yield judge_columns(batch, first, reserved)
        first += batch.num_rows


def judge_columns(batch: pa.RecordBatch, first: int = 1, reserved: Reserved | None = None) -> Batch:
    """The events among the rows of a batch that has the fields of the schema as columns; others are quarantined.

    Args:
        batch: a pyarrow.RecordBatch.
        first: the number of its first row.
        reserved: run to the stages that others may not tell of.
    """
    doubt = np.full(batch.num_rows, not set(batch.schema.names) <= _NAMES)
    arrays = []
    for field in LINEAGE_ARROW_SCHEMA:
        column = batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        fitted = _cast(column, field.type)
        if fitted is None:
            doubt |= np.asarray(column.is_valid())
            fitted = pa.nulls(batch.num_rows, field.type)
        arrays.append(fitted)

    def one(row: int) -> LineageEvent:
        return event_of(batch.slice(row, 1).to_pylist()[0])

    def text(row: int) -> str:
        try:
            return json.dumps(batch.slice(row, 1).to_pylist()[0], ensure_ascii=False, default=str)[:_TEXT]
        except ValueError:  # bytes that are not text, a time finer than Python can hold
            return ""

    table = pa.Table.from_arrays(arrays, names=LINEAGE_ARROW_SCHEMA.names)
    return _judged(_Draft(table, doubt, np.arange(first, first + batch.num_rows), one, text), batch.num_rows, [], reserved or {})


def _record_batches(path: str) -> Iterator[pa.RecordBatch]:
    try:
        if path.lower().endswith(".parquet"):
            with pq.ParquetFile(path) as file:
                _one_of_each(path, file.schema_arrow.names)
                yield from file.iter_batches(batch_size=BATCH_ROWS)
        else:
            with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
                _one_of_each(path, reader.schema.names)
                for at in range(reader.num_record_batches):
                    batch = reader.get_batch(at)
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield batch.slice(start, BATCH_ROWS)
    except (OSError, pa.ArrowException) as fault:
        raise SourceError(f"{path} cannot be read: {fault}", field=path, hint="check the file and its path") from fault


def _one_of_each(path: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise SourceError(f"{path} has two columns of one name", field=path, hint="rename or drop one of them")


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """The column in the type of the schema where every value stays what it is; None where that is not sure."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    likely = {
        pa.string(): pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
        pa.int32(): pa.types.is_integer(kind),
        pa.int64(): pa.types.is_integer(kind),
        pa.float64(): pa.types.is_floating(kind),
    }.get(wanted, pa.types.is_timestamp(kind) and kind.tz is not None)
    if not likely and not pa.types.is_null(kind):
        return None
    try:
        column.validate(full=True)
        return one_chunk(pc.cast(column, wanted))
    except pa.ArrowException:
        return None


# --- judging -----------------------------------------------------------------------------------------------------------------------------


def _judged(draft: _Draft, lines: int, refused: list[Quarantined], reserved: Reserved) -> Batch:
    table, doubt = draft.table, draft.doubt | _doubtful(draft.table)
    targets, unknown = _targets(table.column("target_crs"))
    doubt |= unknown
    rows = np.flatnonzero(~doubt)
    table = table.set_column(table.schema.get_field_index("target_crs"), "target_crs", targets)
    accepted = table if len(rows) == table.num_rows else table.take(pa.array(rows))
    ids = _event_ids(accepted)
    claimed = one_chunk(accepted.column("event_id"))
    wrong = np.asarray(pc.fill_null(pc.not_equal(claimed, ids), False), np.bool_)
    if wrong.any():
        doubt[rows[wrong]] = True
        kept = pa.array(np.flatnonzero(~wrong))
        rows, accepted, ids = rows[~wrong], accepted.take(kept), ids.take(kept)
    accepted = pa.Table.from_arrays([ids, *accepted.columns[1:]], schema=LINEAGE_ARROW_SCHEMA)
    collector, rescued = LineageCollector(), []
    for row in np.flatnonzero(doubt).tolist():
        try:
            collector.add(draft.one(row))
            rescued.append(row)
        except (ValueError, RecursionError) as fault:
            refused.append(Quarantined(int(draft.numbers[row]), str(fault), draft.text(row)))
    if rescued:
        order = np.argsort(rows := np.concatenate([rows, np.array(rescued, np.int64)]))
        accepted, rows = pa.concat_tables([accepted, collector.to_table()]).take(pa.array(order)), rows[order]
    taken, nameless = _taken(accepted, reserved), _nameless(accepted)
    if (taken | nameless).any():
        for at in np.flatnonzero(taken | nameless).tolist():
            stage, run = accepted.column("stage")[at].as_py(), accepted.column("run_id")[at].as_py()
            reason = (
                f"run_id {run[:40]!r}... is too long to be part of a file name"
                if nameless[at]
                else f"run {run!r} was published by Merestone, which recorded its stage {base_stage(stage)} itself"
            )
            refused.append(Quarantined(int(draft.numbers[rows[at]]), reason, draft.text(int(rows[at]))))
        accepted = accepted.filter(pa.array(~(taken | nameless)))
    return Batch(lines, accepted, tuple(sorted(refused, key=lambda each: each.line)))


def _doubtful(table: pa.Table) -> Bools:
    """The rows that `LineageEvent` may refuse."""
    doubt = np.zeros(table.num_rows, np.bool_)

    def mark(mask: pa.ChunkedArray) -> None:
        nonlocal doubt
        doubt |= np.asarray(pc.fill_null(one_chunk(mask), False), np.bool_)

    for name in _REQUIRED:
        mark(pc.is_null(table.column(name)))
    for field in SCHEMA.fields:
        column = table.column(field.name)
        if field.enum:
            mark(pc.invert(pc.is_in(column, pa.array(field.enum))))
        if field.type == "string" and field.required:
            mark(pc.equal(column, ""))
        elif field.name in ("sequence", "strategy_index", "accuracy_m"):
            mark(pc.less(column, pa.scalar(0, column.type)))
    accuracy = table.column("accuracy_m")
    mark(pc.and_(pc.is_valid(accuracy), pc.invert(pc.is_finite(accuracy))))
    for name in IDENTITY:
        column = table.column(name)
        mark(pc.match_substring_regex(column, _CONTROL))
        mark(pc.not_equal(nfc(column), column))
    outcome, reason = table.column("outcome"), table.column("rejection_reason")
    refused = pc.equal(outcome, "REJECT")
    mark(pc.and_(pc.equal(table.column("event_type"), "REJECT"), pc.invert(refused)))
    mark(pc.and_(refused, pc.invert(pc.fill_null(pc.match_substring_regex(reason, _NOT_BLANK), False))))
    mark(pc.and_(pc.equal(outcome, "PASS"), pc.is_valid(reason)))
    return doubt


def _targets(column: pa.ChunkedArray) -> tuple[pa.Array, Bools]:
    """The target systems in their canonical spelling, and the rows whose system has none."""
    encoded = one_chunk(one_chunk(column).dictionary_encode())
    names: list[str | None] = []
    for each in encoded.dictionary.to_pylist():
        try:
            names.append(canonical_crs(each))
        except ValueError:
            names.append(None)
    canonical = pa.array(names, pa.string()).take(encoded.indices)
    return canonical, np.asarray(canonical.is_null(), np.bool_)


def _event_ids(table: pa.Table) -> pa.Array:
    """`make_event_id` over accepted rows: a string array."""
    return columns.to_hex(columns.id_array(columns.event_ids(*(one_chunk(table.column(name)) for name in IDENTITY))))


def _nameless(table: pa.Table) -> Bools:
    """The rows whose run cannot be sealed under its own name."""
    runs = one_chunk(one_chunk(table.column("run_id")).dictionary_encode())
    nameless: Bools = np.array([not names_files(each) for each in runs.dictionary.to_pylist()], np.bool_)
    return nameless.take(np.asarray(runs.indices))


def _taken(table: pa.Table, reserved: Reserved) -> Bools:
    """The rows that tell of a stage which is not theirs to tell."""
    taken = np.zeros(table.num_rows, np.bool_)
    if not reserved or not table.num_rows:
        return taken
    runs, stages = (one_chunk(one_chunk(table.column(name)).dictionary_encode()) for name in ("run_id", "stage"))
    bases = [base_stage(each) for each in stages.dictionary.to_pylist()]
    for code, run in enumerate(runs.dictionary.to_pylist()):
        if run in reserved:
            theirs = np.array([each in reserved[run] for each in bases], np.bool_)
            taken |= (np.asarray(runs.indices) == code) & theirs[np.asarray(stages.indices)]
    return taken
