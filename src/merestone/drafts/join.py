"""Two exports held against each other: how many rows a key joins, and how much of what else is known of them agrees.

Not here: which columns may be keys (`infer`), which of them is chosen (`keys`), what is drafted of it (`previous`, `init`).

A set of values that comes back proves nothing, since those of any counter do. What proves a key is that the rows it joins are the same things:
their other columns and their places agree. Columns that agree by chance (a status that is nearly always "in use") say little; each says as
much as one can tell things apart by it. Columns that agree under no key are left out, and so are those that count rows. All keys are
judged on the same rows of the smaller export: their figures can be compared, and an export that shrank speaks against none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.gate.delivery import text_hash
from merestone.geometry import kernel
from merestone.source.port import Source

Hashes = npt.NDArray[np.uint64]

_ROWS = 100_000
_CELLS = 4_000_000
"""How many rows, and how many of their values, are held against each other."""
_CREDIBLE = 0.75
_SAYS = 0.1
"""A column whose agreement is above chance by less than this share under every key is left out."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)
_PLACE, _ROW = "\0place", "\0row"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a key joins: `rows` of the `smaller` export's rows; `alike` is the share of what else is known of them that agrees, less chance."""

    key: tuple[str, ...]
    rows: int
    smaller: int
    alike: float

    @property
    def score(self) -> float:
        """Rows that are joined, as far as they agree; what does not agree is an edit under a key that is right nearly always, else a wrong join."""
        return self.rows * (self.alike + (1 - self.alike) * (self.alike - _CREDIBLE))


@dataclass(slots=True)
class _Side:
    """One export: which of its rows are held, their row numbers ascending, and their values."""

    source: Source
    place: str | None
    keys: dict[tuple[str, ...], Hashes] = field(default_factory=dict)
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    table: Any = None

    def take_keys(self, keys: Sequence[tuple[str, ...]], how: Mapping[str, str]) -> None:
        """Hash the keys of every row."""
        parts: dict[tuple[str, ...], list[Hashes]] = {each: [] for each in keys}
        for batch in self.source.batches():
            held: dict[str, Hashes] = {}
            for key in keys:
                for name in key:
                    if name not in held:
                        held[name] = hashes(batch.column(name), "padded" if how.get(name) == "padded" else "")
                parts[key].append(together([held[name] for name in key]))
        self.keys = {key: np.concatenate([np.zeros(0, np.uint64), *each]) for key, each in parts.items()}

    def take_rows(self, rows: npt.NDArray[np.int64], columns: Sequence[str], digits: int) -> None:
        """Hold the values of some rows; of a geometry its box, rounded."""
        first = 0
        kinds = {name: _plain(pa.array([], self.source.delivery.schema.field(name).type)) for name in columns}
        empty = {_ROW: pa.array([], pa.int64()), **kinds, **({_PLACE: pa.array([], pa.uint64())} if self.place is not None else {})}
        parts = [pa.table(empty)]
        for batch in self.source.batches():
            begin, end = np.searchsorted(rows, (first, first + batch.num_rows))
            at = pa.array(rows[begin:end] - first)
            arrays = {name: _plain(batch.column(name).take(at)) for name in columns}
            if self.place is not None:
                arrays[_PLACE] = pa.array(_boxes(batch.column(self.place).take(at), digits))
            parts.append(pa.table({_ROW: pa.array(rows[begin:end]), **arrays}))
            first += batch.num_rows
        self.rows = rows
        self.table = pa.concat_tables(parts).combine_chunks()

    def at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where rows stand in the table."""
        return np.searchsorted(self.rows, rows)


class Exports:
    """Two exports of one dataset."""

    def __init__(
        self,
        source: Source,
        older: Source,
        columns: Sequence[str],
        *,
        rows: tuple[int, int],
        place: bool,
        degrees: bool,
        aside: Sequence[str] = (),
        how: Mapping[str, str] | None = None,
    ) -> None:
        """Start.

        Args:
            source: the newer export.
            older: the older one.
            columns: attribute columns that both have.
            rows: how many rows the newer and the older one have.
            place: whether their geometries can be compared: in one CRS.
            degrees: whether the unit of that is the degree.
            aside: columns that say nothing of what a row is, such as those that count rows.
            how: columns that are compared otherwise than value for value, see `hashes`.
        """
        places = [each.delivery.geometry.name if place and each.delivery.geometry else None for each in (source, older)]
        self._sides = _Side(source, places[0]), _Side(older, places[1])
        self._columns, self._rows, self._digits = tuple(columns), rows, 4 if degrees else 0
        self._aside, self._how = frozenset(aside), how or {}
        self._pairs: dict[tuple[str, ...], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}

    @property
    def older(self) -> Source:
        """The older export."""
        return self._sides[1].source

    def judge(self, keys: Sequence[tuple[str, ...]]) -> tuple[Joined, ...]:
        """What each of some keys joins; each delivery is passed twice. Values that stand twice join nothing."""
        for side in self._sides:
            side.take_keys(keys, self._how)
        small = int(self._rows[1] < self._rows[0])
        sample = _sample(self._rows[small], len(self._columns))
        joined, self._pairs = {}, {}
        for key in keys:
            mine, theirs = (_once(self._sides[at].keys[key]) for at in (small, 1 - small))
            joined[key] = len(np.intersect1d(mine.values, theirs.values, assume_unique=True))
            self._pairs[key] = _meet(mine, theirs, sample)
        for side in self._sides:
            side.keys = {}
        wanted = [np.unique(np.concatenate([np.zeros(0, np.int64), *(pair[at] for pair in self._pairs.values())])) for at in (0, 1)]
        self._sides[small].take_rows(wanted[0], self._columns, self._digits)
        self._sides[1 - small].take_rows(wanted[1], self._columns, self._digits)
        if small:
            self._pairs = {key: (theirs, mine) for key, (mine, theirs) in self._pairs.items()}
        return tuple(Joined(key, joined[key], self._rows[small], alike) for key, alike in zip(keys, self._alike(keys), strict=True))

    def among(self, found: Sequence[Joined]) -> tuple[Joined, ...]:
        """Judged keys held against each other, by columns that are part of none of them: each is then judged by the same."""
        keys = [each.key for each in found]
        alike = self._alike(keys, {name for key in keys for name in key})
        return tuple(replace(each, alike=share) for each, share in zip(found, alike, strict=True))

    def _alike(self, keys: Sequence[tuple[str, ...]], without: Collection[str] = ()) -> list[float]:
        """The share of agreement under each key, its own columns left out; 1 for all where nothing can be compared."""
        located = self._sides[0].place is not None and self._sides[1].place is not None
        names = [each for each in (*self._columns, *((_PLACE,) if located else ())) if each not in without]
        agreed, weight = {}, {}
        for name in names:
            if name in self._aside:
                continue
            now, then = (hashes(side.table.column(name), self._how.get(name, "")) for side in self._sides)
            chance = _chance(now, then)
            found = {}
            for key in keys:
                mine, theirs = (side.at(rows) for side, rows in zip(self._sides, self._pairs[key], strict=True))
                if name not in key and len(mine):
                    found[key] = (float((now[mine] == then[theirs]).mean()) - chance) / (1 - chance) if chance < 1 else 0.0
            if found and max(found.values()) >= _SAYS:
                agreed[name] = found
                weight[name] = -math.log2(max(chance, 1 / max(len(now), len(then), 2)))  # in bits: how well it distinguishes rows
        out = []
        for key in keys:
            parts = [(weight[name], min(max(found[key], 0.0), 1.0)) for name, found in agreed.items() if key in found]
            total = sum(each for each, _ in parts)
            out.append(sum(each * share for each, share in parts) / total if total else float(len(self._pairs[key][0]) > 0))
        return out

    def pairs(self, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
        """The values of the rows that a judged key joins, newer and older: pyarrow.Table of the common columns, row by row."""
        now, then = (
            side.table.select(self._columns).take(pa.array(side.at(rows))) for side, rows in zip(self._sides, self._pairs[key], strict=True)
        )
        return now, then

    def met(self, name: str, values: pa.Array) -> float:
        """Which share of some different values of a column the older export holds anywhere."""
        wanted = values.cast(pa.string())
        found = pa.array([], pa.string())
        for batch in self.older.batches():
            there = _plain(batch.column(name)).cast(pa.string())
            found = pc.unique(pa.concat_arrays([found, there.filter(pc.is_in(there, value_set=wanted))]))
        return len(found) / max(len(values), 1)


@dataclass(frozen=True, slots=True)
class _Once:
    """Keys that stand once, ascending, and their row numbers."""

    values: Hashes
    rows: npt.NDArray[np.int64]


def _once(keys: Hashes) -> _Once:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    alone = np.ones(len(keys), bool)
    twice = ordered[1:] == ordered[:-1]
    alone[1:] &= ~twice
    alone[:-1] &= ~twice
    return _Once(ordered[alone], order[alone].astype(np.int64))


def _meet(mine: _Once, theirs: _Once, sample: npt.NDArray[np.int64] | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The row numbers of pairs with one key, in the order of the first side; those alone whose first is in the sample."""
    _, left, right = np.intersect1d(mine.values, theirs.values, assume_unique=True, return_indices=True)
    rows, others = mine.rows[left], theirs.rows[right]
    order = np.argsort(rows)
    rows, others = rows[order], others[order]
    if sample is not None:
        chosen = np.isin(rows, sample, assume_unique=True)
        rows, others = rows[chosen], others[chosen]
    return rows, others


def _sample(rows: int, columns: int) -> npt.NDArray[np.int64] | None:
    """The numbers of the rows that are looked at, without a pattern; None for all."""
    limit = max(1_000, min(_ROWS, _CELLS // max(columns, 1)))
    if rows <= limit:
        return None
    numbers = np.arange(rows, dtype=np.uint64) * _MIX
    return np.sort(np.argpartition(numbers, limit)[:limit])


def _chance(now: Hashes, then: Hashes) -> float:
    """How likely a value of one side equals one of the other, each taken at random."""
    if not len(now) or not len(then):
        return 0.0
    (one, counted), (other, counts) = (np.unique(side, return_counts=True) for side in (now, then))
    _, left, right = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return float((counted[left] / len(now)) @ (counts[right] / len(then)))


def _boxes(wkb: pa.Array, digits: int) -> Hashes:
    box = np.round(kernel.scan(wkb).bounds, digits) + 0.0
    words = np.where(np.isnan(box), np.inf, box).view(np.uint64)
    return together([words[:, at] for at in range(4)])


def together(parts: Sequence[Hashes]) -> Hashes:
    """One hash for several of each row."""
    out = np.zeros_like(parts[0])
    for each in parts:
        out = (out ^ each) * _MIX
        out ^= out >> np.uint64(29)
    return out


def hashes(array: pa.Array | pa.ChunkedArray, how: str = "") -> Hashes:
    """A 64-bit hash of each value, and one for whatever is missing.

    Args:
        array: an Arrow array.
        how: "padded": text without its leading zeros. "number": by what a 32-bit float holds of it; last digits do not count.
    """
    plain = _plain(array)
    if how == "number" and _numeric(plain.type):
        singles = np.asarray(plain.cast(pa.float64(), safe=False).fill_null(np.nan)).astype(np.float32) + np.float32(0)
        words = singles.view(np.uint32).astype(np.uint64) * _MIX
        missing = np.isnan(singles)
    else:
        if pa.types.is_floating(plain.type):
            plain = _whole_or_text(plain)
        text = plain if pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type) else plain.cast(pa.string())
        words, missing = text_hash(pc.replace_substring_regex(text, "^0+", "") if how == "padded" else text), np.asarray(plain.is_null())
    words[missing] = _NULL
    return words


def _numeric(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _whole_or_text(array: pa.Array) -> pa.Array:
    """Floats as whole numbers where all are: ids that a missing value turned into floats."""
    array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    whole = pc.all(pc.and_(pc.equal(array, pc.floor(array)), pc.less(pc.abs(array), 2.0**53))).as_py() is not False
    return array.cast(pa.int64()) if whole else array


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece without dictionaries; nested values by the text of their values."""
    array = one_chunk(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        return pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())
    return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array
