"""Which features a consumer wants: a box, an area, conditions on attributes; and what a feed says to one who sees only those.

Conditions are a small language of their own and no SQL: names and values are data, whatever stands in them.

    filter     = condition { "and" condition }
    condition  = name operator literal | name "is" [ "not" ] "null"
    operator   = "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    name       = a word of letters, digits and _, or any text in double quotes ("" for one of them)
    literal    = 'text' ('' for one of them) | a number | true | false

Null is equal to nothing and unequal to nothing: only `is null` meets it. Text compares as NFC, by code point.

Not here: reading the area from a file (`run.filtered`), folding change logs (`feed`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from merestone.columnar.unicode import nfc
from merestone.dataset import feed
from merestone.dataset.feed import FEED_SCHEMA, Changes
from merestone.dataset.manifest import Box
from merestone.errors import UsageError
from merestone.geometry import kernel

Mask = npt.NDArray[np.bool_]
_EXAMPLE = "write conditions such as  owner = 'Müller' and \"floor area\" >= 100 and closed is null"
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | (?P<quoted>"(?:[^"]|"")+") | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])) |
    (?P<operator><=|>=|<>|!=|=|<|>) | (?P<word>[^\W\d]\w*)
)""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: `operator` is one of the six, "null" or "not null"; `value` is text, a number (int or Decimal), a bool, or None."""

    name: str
    operator: str
    value: str | int | Decimal | bool | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Features whose box meets `bbox`, whose geometry meets `area` (shapely, in the dataset's CRS), and for which every condition holds."""

    bbox: Box | None = None
    area: Any = None
    where: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return self.bbox is not None or self.area is not None or bool(self.where)

    @property
    def reach(self) -> Box | None:
        """A box that every wanted feature meets, None where any place will do."""
        boxes = [self.bbox] if self.bbox is not None else []
        if self.area is not None and not self.area.is_empty:
            boxes.append(self.area.bounds)
        if len(boxes) < 2:
            return boxes[0] if boxes else None
        one, other = boxes
        low = max(one[0], other[0]), max(one[1], other[1])
        high = min(one[2], other[2]), min(one[3], other[3])
        return (*low, *high) if low[0] <= high[0] and low[1] <= high[1] else one

    def matches(self, rows: Any, geometry: str) -> Mask:
        """Which rows are wanted.

        Args:
            rows: pyarrow.Table or RecordBatch with the columns of the conditions and the geometry.
            geometry: the name of the geometry column (WKB).

        Raises:
            UsageError: a condition names a column that is not there, or compares it with a value of another type.
        """
        wanted = np.ones(rows.num_rows, np.bool_)
        for each in self.where:
            wanted &= _holds(each, rows)
        if self.bbox is None and self.area is None:
            return wanted
        wkb = rows.column(geometry)
        wkb = wkb.combine_chunks() if isinstance(wkb, pa.ChunkedArray) else wkb
        bounds = kernel.scan(wkb).bounds
        for box in (self.bbox, None if self.area is None or self.area.is_empty else self.area.bounds):
            if box is not None:
                wanted &= (bounds[:, 0] <= box[2]) & (bounds[:, 2] >= box[0]) & (bounds[:, 1] <= box[3]) & (bounds[:, 3] >= box[1])
        if self.area is not None:
            at = np.flatnonzero(wanted)
            shapes = shapely.from_wkb(wkb.take(pa.array(at)).to_numpy(zero_copy_only=False), on_invalid="ignore")
            shapely.prepare(self.area)
            wanted[at] = shapely.intersects(self.area, shapes)
        return wanted


def parse_where(text: str) -> tuple[Condition, ...]:
    """Read conditions.

    Raises:
        UsageError: the text is not of the grammar above; the message shows the place.
    """
    tokens = list(_tokens(text))
    out: list[Condition] = []
    at = 0
    while True:
        if len(tokens) - at < 3 or tokens[at][0] not in ("word", "quoted"):
            raise _wrong(text, tokens, at, "a condition")
        name = _unquoted(*tokens[at])
        kind, token = tokens[at + 1]
        if kind == "operator":
            out.append(Condition(name, token, _literal(text, tokens, at + 2)))
            at += 3
        elif kind == "word" and token.lower() == "is":
            negated = tokens[at + 2][1].lower() == "not"
            at += 3 + negated
            if at > len(tokens) or tokens[at - 1] != ("word", tokens[at - 1][1]) or tokens[at - 1][1].lower() != "null":
                raise _wrong(text, tokens, at - 1, "null")
            out.append(Condition(name, "not null" if negated else "null"))
        else:
            raise _wrong(text, tokens, at + 1, "an operator")
        if at == len(tokens):
            return tuple(out)
        if tokens[at][0] != "word" or tokens[at][1].lower() != "and":
            raise _wrong(text, tokens, at, "and")
        at += 1


def check(wanted: Filter, schema: pa.Schema, uncompared: Collection[str] = ()) -> None:
    """Refuse a filter that a version cannot answer, before rows are read.

    Args:
        wanted: the filter.
        schema: the pyarrow schema of the version's rows.
        uncompared: columns whose changes no feed holds (volatile ones); a filter on them could not be kept true.

    Raises:
        UsageError: as `Filter.matches`, or a condition on one of `uncompared`.
    """
    nothing = schema.empty_table()
    for each in wanted.where:
        _holds(each, nothing)
        if each.name in uncompared:
            raise UsageError(
                f"{each.name} is volatile: its changes are not changes of a feature; no feed can be filtered by it",
                field="where",
                hint="filter by a column that counts",
            )


def filtered(change: Changes, wanted: Filter, geometry: str) -> Changes:
    """A change as one sees it who knows only the wanted features: what leaves the filter is removed, what comes into it is added.

    Args:
        change: with its rows (`feed.changes(..., with_rows=True)`).
        wanted: the filter.
        geometry: the name of the geometry column.
    """
    table = change.table
    had, has = (np.asarray(each(table).combine_chunks()).astype(bool) for each in (feed.had, feed.has))
    there, here = np.zeros(len(had), bool), np.zeros(len(has), bool)
    if change.before is not None:
        there[had] = wanted.matches(change.before, geometry)
    if change.after is not None:
        here[has] = wanted.matches(change.after, geometry)
    told = there | here
    comes, goes = here & ~there & had, there & ~here & has
    kinds = np.asarray(table.column("class").to_pylist(), dtype=object)
    kinds[comes], kinds[goes] = "added", "removed"
    both = pa.array(there & here)
    columns: dict[str, Any] = {"key": table.column("key"), "class": pa.array(kinds.tolist(), pa.string())}
    for name in ("reversed", "attributes", "geometry"):  # said of a feature that is there before and after
        columns[name] = pc.and_(table.column(name), both)
    for name in ("geometry_change", "fields"):
        columns[name] = pc.if_else(both, table.column(name), pa.scalar(None, FEED_SCHEMA.field(name).type))
    for names, side in ((("digest", "partition"), here), (("old_digest", "old_partition"), there)):
        for name in names:
            columns[name] = pc.if_else(pa.array(side), table.column(name), pa.scalar(None, FEED_SCHEMA.field(name).type))
    columns["rekeyed"] = feed.rekeyed(columns["class"], columns["digest"], columns["old_digest"], told)
    out = pa.table({name: columns[name] for name in FEED_SCHEMA.names}).filter(pa.array(told)).cast(FEED_SCHEMA)
    return replace(
        change,
        table=out,
        key=change.key.filter(pa.array(told)),
        before=None if change.before is None else change.before.filter(pa.array((there)[had])),
        after=None if change.after is None else change.after.filter(pa.array(here[has])),
    )


# --- one condition ---------------------------------------------------------------------------------------------------------------------


def _holds(condition: Condition, rows: Any) -> Mask:
    name = unicodedata.normalize("NFC", condition.name)
    if name not in rows.schema.names:
        raise UsageError(
            f"the condition names no column of the dataset: {name}", field="where", hint=f"columns are {', '.join(rows.schema.names)}"
        )
    column = rows.column(name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if condition.operator in ("null", "not null"):
        missing = np.asarray(column.is_null()).astype(bool)
        return missing if condition.operator == "null" else ~missing
    column, value = _comparable(condition, column)
    found: Mask = np.asarray(pc.fill_null(_COMPARE[condition.operator](column, value), fill_value=False)).astype(bool)
    return found


def _comparable(condition: Condition, column: Any) -> tuple[Any, Any]:
    """A column and a value of one type, in which comparing loses nothing."""
    kind, value = column.type, condition.value
    wrong = UsageError(
        f"the condition does not fit: {condition.name} is of type {kind}, {value!r} is none of that", field="where", hint=_EXAMPLE
    )
    if isinstance(value, bool):
        if not pa.types.is_boolean(kind):
            raise wrong
        return column, pa.scalar(value)
    if isinstance(value, (int, Decimal)):
        if pa.types.is_floating(kind):
            return column, pa.scalar(
                float(Decimal(value)), kind
            )  # beyond every double it is an infinity, as an integer it would not convert
        if pa.types.is_integer(kind) and isinstance(value, int) and -(2**63) <= value < 2**63:
            return column, pa.scalar(value, pa.int64())
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            return _decimals(column, Decimal(value), wrong)
        raise wrong
    if not isinstance(value, str) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise wrong
    if pa.types.is_string(kind):
        return nfc(column), pa.scalar(unicodedata.normalize("NFC", value))
    if not pa.types.is_temporal(kind):
        raise wrong
    try:
        text = f"1970-01-01T{value}" if pa.types.is_time(kind) else value
        there = pa.array([text]).cast(pa.timestamp("us", tz=getattr(kind, "tz", None)) if not pa.types.is_date(kind) else kind)
        return column, there.cast(kind)[0]
    except pa.ArrowInvalid as fault:
        raise wrong from fault


def _decimals(column: Any, value: Decimal, wrong: UsageError) -> tuple[Any, Any]:
    try:
        exact = pa.scalar(value)
        wide = pa.decimal256(76, max(exact.type.scale, getattr(column.type, "scale", 0), 0))
        return (column.cast(pa.decimal128(20, 0)) if pa.types.is_integer(column.type) else column).cast(wide), exact.cast(wide)
    except pa.ArrowInvalid as fault:  # more digits than a decimal holds
        raise wrong from fault


# --- reading conditions ----------------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise UsageError(f"the condition cannot be read at {text[at:].strip()[:30]!r}", field="where", hint=_EXAMPLE)
        at = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


def _unquoted(kind: str, token: str) -> str:
    return token[1:-1].replace('""', '"') if kind == "quoted" else token


def _literal(text: str, tokens: list[tuple[str, str]], at: int) -> str | int | Decimal | bool:
    kind, token = tokens[at]
    if kind == "text":
        return token[1:-1].replace("''", "'")
    if kind == "number":
        return int(token) if re.fullmatch(r"[+-]?\d+", token) else Decimal(token)
    if kind == "word" and token.lower() in ("true", "false"):
        return token.lower() == "true"
    raise _wrong(text, tokens, at, "a value (text stands in single quotes)")


def _wrong(text: str, tokens: list[tuple[str, str]], at: int, wanted: str) -> UsageError:
    found = repr(tokens[at][1]) if at < len(tokens) else "the end"
    return UsageError(f"condition {text}: {wanted} is wanted at {found}", field="where", hint=_EXAMPLE)
