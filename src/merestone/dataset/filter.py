"""Which features a consumer wants: a box, an area, conditions on attributes; and what a feed says to one who sees only those.

Conditions are a small language of their own and no SQL: names and values are data, whatever stands in them.

    filter     = condition { "and" condition }
    condition  = name operator literal | name "is" [ "not" ] "null"
    operator   = "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    name       = a word of letters, digits and _, or any text in double quotes ("" for one of them)
    literal    = 'text' ('' for one of them) | a number | true | false

Null is equal to nothing and unequal to nothing: only `is null` meets it. Text compares as NFC, by code point.

Not here: reading the area from a file (`inspect.filtered`), folding change logs (`feed`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.columnar.table_shape import Values
from merestone.columnar.unicode import nfc
from merestone.dataset import feed
from merestone.dataset.feed import Changes, Feed
from merestone.dataset.manifest import Box
from merestone.document.forms import shorten
from merestone.errors import UsageError
from merestone.geometry import kernel
from merestone.later import later

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")

Mask = npt.NDArray[np.bool_]
_EXAMPLE = "write conditions such as  owner = 'Müller' and \"floor area\" >= 100 and closed is null"
_OPERATOR = "an operator belongs (=, !=, <, <=, >, >=, is null, is not null)"
_VALUE = "a value belongs (text in single quotes, a number, true or false)"
_OTHERWISE = {
    "or": "conditions are joined with `and` only: ask twice",
    "like": "conditions have no patterns: compare with = or with a range, such as  name >= 'A' and name < 'B'",
    "in": "conditions have no lists: ask once for each value",
    "between": "write the two ends, such as  rank >= 1 and rank <= 5",
    "not": "write != for a value, and `is not null`",
}
_INTEGER_DIGITS = 19  # longer ones are compared as decimals
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | (?P<quoted>"(?:[^"]|"")+") | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])) |
    (?P<operator><=|>=|<>|!=|=|<|>) | (?P<word>[^\W\d]\w*)
)""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
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
    area: shapely.Geometry | None = None
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

    def matches(self, rows: pa.Table | pa.RecordBatch, geometry: str) -> Mask:
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
        wkb = one_chunk(rows.column(geometry))
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
    reader = _Reader(text)
    out = [reader.condition()]
    while not reader.ended:
        reader.skip("and")
        out.append(reader.condition())
    return tuple(out)


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
                f"{each.name} is volatile: feeds do not hold its changes and cannot be filtered by it",
                field="where",
                hint="filter by a column that is not volatile",
            )


def filtered(change: Changes, wanted: Filter, geometry: str) -> Changes:
    """A change as one sees it who knows only the wanted features: what leaves the filter is removed, what comes into it is added.

    Args:
        change: with its rows (`feed.changes(..., with_rows=True)`).
        wanted: the filter.
        geometry: the name of the geometry column.
    """
    whole = change.touched
    had, has = (np.asarray(each.combine_chunks()).astype(bool) for each in (whole.had, whole.has))
    there, here = np.zeros(len(had), bool), np.zeros(len(has), bool)
    if change.before is not None:
        there[had] = wanted.matches(change.before, geometry)
    if change.after is not None:
        here[has] = wanted.matches(change.after, geometry)
    seen = there | here
    comes, goes = here & ~there & had, there & ~here & has
    kinds = np.asarray(whole.kind.to_pylist(), dtype=object)
    kinds[comes], kinds[goes] = "added", "removed"
    both = pa.array(there & here)
    kind = pa.array(kinds.tolist(), pa.string())
    digest, old_digest = _where(pa.array(here), whole.digest), _where(pa.array(there), whole.old_digest)
    out = Feed.of(
        {
            Feed.key: whole.key,
            Feed.kind: kind,
            # Said of a feature that is there before and after.
            Feed.reversed: pc.and_(whole.reversed, both),
            Feed.backfilled: pc.and_(whole.backfilled, both),
            Feed.attributes: pc.and_(whole.attributes, both),
            Feed.geometry: pc.and_(whole.geometry, both),
            Feed.geometry_change: _where(both, whole.geometry_change),
            Feed.fields: _where(both, whole.fields),
            Feed.rekeyed: feed.rekeyed(kind, digest, old_digest, seen),
            Feed.digest: digest,
            Feed.old_digest: old_digest,
            Feed.partition: _where(pa.array(here), whole.partition),
            Feed.old_partition: _where(pa.array(there), whole.old_partition),
        }
    )
    return replace(
        change,
        touched=out.filter(pa.array(seen)),
        key=change.key.filter(pa.array(seen)),
        before=None if change.before is None else change.before.filter(pa.array((there)[had])),
        after=None if change.after is None else change.after.filter(pa.array(here[has])),
    )


def _where(mask: pa.Array, values: pa.ChunkedArray) -> Values:
    """The values where `mask` is true, null elsewhere."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))


# --- one condition ---------------------------------------------------------------------------------------------------------------------


def _holds(condition: Condition, rows: pa.Table | pa.RecordBatch) -> Mask:
    name = unicodedata.normalize("NFC", condition.name)
    if name not in rows.schema.names:
        raise UsageError(
            f"the dataset has no column {shorten(name)}", field="where", hint=f"its columns are {', '.join(rows.schema.names)}"
        )
    column = one_chunk(rows.column(name))
    if condition.operator in ("null", "not null"):
        missing = np.asarray(column.is_null()).astype(bool)
        return missing if condition.operator == "null" else ~missing
    column, value = _comparable(condition, column)
    found: Mask = np.asarray(pc.fill_null(_COMPARE[condition.operator](column, value), fill_value=False)).astype(bool)
    return found


def _comparable(condition: Condition, column: pa.Array) -> tuple[pa.Array, pa.Scalar]:
    """A column and a value of one type, in which comparing loses nothing."""
    kind, value = column.type, condition.value
    wrong = _unequal(condition, kind)
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


def _unequal(condition: Condition, kind: pa.DataType) -> UsageError:
    """The refusal of a value that a column of some type cannot be compared with."""
    held, example = next(((words, example) for fits, words, example in _KINDS if fits(kind)), (f"values of type {kind}", None))
    value = condition.value
    said = str(value).lower() if isinstance(value, bool) else f"the text '{value}'" if isinstance(value, str) else f"the number {value}"
    hint = f"compare it with {example}" if example else "such a column can only be asked for `is null` and `is not null`"
    return UsageError(f"{condition.name} holds {held} and cannot be compared with {shorten(said)}", field="where", hint=hint)


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str, str], ...] = (
    (pa.types.is_boolean, "true and false", "true or false, without quotes"),
    (pa.types.is_integer, "integers", "a number such as 12, without quotes"),
    (pa.types.is_floating, "numbers", "a number such as 12.5, without quotes"),
    (pa.types.is_decimal, "decimals", "a number such as 12.50, without quotes"),
    (pa.types.is_string, "text", "text in single quotes, such as 'Smith'"),
    (pa.types.is_date, "dates", "a date in single quotes, such as '2026-03-01'"),
    (pa.types.is_time, "times of the day", "a time in single quotes, such as '12:30:00'"),
    (pa.types.is_timestamp, "points in time", "a time in single quotes, such as '2026-03-01T12:30:00Z'"),
)


def _decimals(column: pa.Array, value: Decimal, wrong: UsageError) -> tuple[pa.Array, pa.Scalar]:
    try:
        exact = pa.scalar(value)
        wide = pa.decimal256(76, max(exact.type.scale, getattr(column.type, "scale", 0), 0))
        return (column.cast(pa.decimal128(20, 0)) if pa.types.is_integer(column.type) else column).cast(wide), exact.cast(wide)
    except pa.ArrowInvalid as fault:  # more digits than a decimal holds
        raise wrong from fault


# --- reading conditions ----------------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads conditions token by token; what stands where something else belongs is named."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def ended(self) -> bool:
        """Whether all is read."""
        return self._at == len(self._tokens)

    def condition(self) -> Condition:
        """The next condition."""
        kind, token = self._next("word", "quoted", belongs="a column name belongs")
        name = token[1:-1].replace('""', '"') if kind == "quoted" else token
        kind, token = self._next("operator", "word", belongs=_OPERATOR)
        if kind == "operator":
            return Condition(name, token, self._value())
        if token.lower() != "is":
            raise self._wrong(_OPERATOR, -1)
        negated = not self.ended and self._tokens[self._at][1].lower() == "not"
        self._at += negated
        self.skip("null")
        return Condition(name, "not null" if negated else "null")

    def skip(self, word: str) -> None:
        """Go on behind a word."""
        if self._next("word", belongs=f"`{word}` belongs")[1].lower() != word:
            raise self._wrong(f"`{word}` belongs", -1)

    def _value(self) -> str | int | Decimal | bool:
        kind, token = self._next("text", "number", "word", "quoted", belongs=_VALUE)
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind == "number":
            whole = len(token) <= _INTEGER_DIGITS and re.fullmatch(r"[+-]?\d+", token)
            return int(token) if whole else Decimal(token)
        if kind == "word" and token.lower() in ("true", "false"):
            return token.lower() == "true"
        raise self._wrong("a value belongs; text stands in single quotes", -1)

    def _next(self, *kinds: str, belongs: str) -> tuple[str, str]:
        if self.ended or self._tokens[self._at][0] not in kinds:
            raise self._wrong(belongs, 0)
        self._at += 1
        return self._tokens[self._at - 1]

    def _wrong(self, belongs: str, step: int) -> UsageError:
        at = self._at + step
        if at == len(self._tokens):
            said = f"the conditions end where {belongs}, after: {shorten(self._text)}" if self._tokens else "no condition is given"
            return UsageError(said, field="where", hint=_EXAMPLE)
        token = self._tokens[at][1]
        said = f"`{shorten(token)}` stands where {belongs}, in: {shorten(self._text)}"
        return UsageError(said, field="where", hint=_OTHERWISE.get(token.lower(), _EXAMPLE))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            left = text[at:].strip()
            quote = {"'": "a single quote that is not closed", '"': "a double quote that is not closed"}.get(
                left[0], "what is not a condition"
            )
            raise UsageError(f"the conditions hold {quote}: {shorten(left)}", field="where", hint=_EXAMPLE)
        at = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]
