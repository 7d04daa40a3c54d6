"""The gate backwards: what a contract could promise about a delivery, seen from its rows.

Not here: reading the delivery (`source`), writing the draft (`contract.draft`, `run.init`). What is a guess is called one; a person
confirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.contract.contract import Dimensions, FieldType, GeometryType
from merestone.contract.field_type import MAX_DECIMAL
from merestone.errors import UsageError
from merestone.gate.delivery import equal_groups, text_hash
from merestone.gate.fineness import JUDGED_ORDINATES, Lattice, coarse_features, measured_precision
from merestone.geometry import kernel
from merestone.normalise.values import delivered_kind
from merestone.source.columns import is_json_text
from merestone.source.port import Delivery
from merestone.words import listed, percent

CODES = 12
"""Up to how many different values a column is worth mentioning as a code list."""
_SAMPLED = 100_000
"""About how many rows of each delivery are compared with the previous one."""
_PER_BATCH, _MEASURED = 1_000, 50  # rows of a batch, and batches, whose coordinates are looked at feature by feature
_FINEST_PROMISE = 15
_NEARLY_ALL = 0.9
_CONTRACT_KINDS = frozenset(
    {
        "string",
        "integer",
        "number",
        "boolean",
        "date",
        "time",
        "timestamp",
        "timestamp_local",
        "decimal",
        "binary",
        "list",
        "struct",
    }
)
_AS_TEXT = {"json": "nested values, kept as JSON text", "null": "no row holds a value; its type is a guess"}
_ID_NAMES = frozenset({"id", "key", "code", "gid", "uid", "uuid", "ident", "identifier", "iso", "nr", "no", "ref", "localid", "lokalid"})
_ID_ENDINGS = ("_id", "id", "_key", "code", "_nr", "_no", "nummer", "number", "kood", "_mid", "_uuid", "_ref", "fid")
_UUID = r"^\{?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\}?$"
_EXACT = 2.0**53  # whole numbers up to here are one double each
_MADE_ANEW = frozenset({"fid", "ogc_fid", "objectid", "object_id", "oid", "rowid", "row_id", "index", "globalid", "global_id", "guid"})


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What one attribute column holds. `uuids`: it holds nothing else, as far as it may be a key.

    `codes` are its values where there are few; `values` 64-bit hashes of all, where it may be a key.
    """

    name: str
    kind: FieldType
    rows: int
    nulls: int
    duplicates: int | None
    integral: bool
    counter: bool
    uuids: bool = False
    codes: tuple[str, ...] = ()
    values: npt.NDArray[np.uint64] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class GeometryFacts:
    """What the primary geometry column holds; bounds as delivered, x before y, NaN where nothing has a position."""

    type: GeometryType
    dimensions: Dimensions
    nulls: int
    empty: int
    ordinates: int
    decimals: int
    """Measured precision: 0 to 16, 16 for ordinates on no grid."""
    bounds: tuple[float, float, float, float]
    coarse: tuple[float, ...] = ()
    """The share of features that lie on the grid of 1, 0.1, ... with all ordinates, of a sample; 0 where they form a regular lattice."""


@dataclass(frozen=True, slots=True)
class KeyCandidate:
    """A column as a key: `rank` 0 is best; `why_not` is empty for a usable one; `doubt` says what to look at."""

    name: str
    kind: FieldType
    rank: int
    why_not: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the rows of a delivery say; `keys` are ranked, usable ones first."""

    rows: int
    columns: tuple[ColumnFacts, ...]
    geometry: GeometryFacts | None
    keys: tuple[KeyCandidate, ...]

    def column(self, name: str) -> ColumnFacts | None:
        """The facts of one column."""
        return next((each for each in self.columns if each.name == name), None)


class Inference:
    """Takes the batches of a delivery one after the other; memory is bounded but for 8 bytes a row and possible key column."""

    def __init__(self, delivery: Delivery, *, asked: Sequence[str] = ()) -> None:
        """Start.

        Args:
            delivery: the description of the source.
            asked: columns that a person named as key: followed to the end even where they are not unique.
        """
        geometries = {each.name for each in (delivery.geometry, *delivery.other_geometries) if each is not None}
        self._delivery = delivery
        self._columns = [
            _Column(each, delivery, each.name in asked or _id_like(each.name)) for each in delivery.schema if each.name not in geometries
        ]
        self._rows = 0
        self._kinds: set[int] = set()
        self._seen = dict.fromkeys(("nulls", "empty", "z", "m", "present"), 0)
        self._histogram = np.zeros((2, 17), dtype=np.int64)
        self._bounds = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self._sample: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a batch of `delivery.schema`."""
        for each in self._columns:
            each.add(batch.column(each.name), self._rows)
        if self._delivery.geometry is not None:
            self._look(batch.column(self._delivery.geometry.name))
        self._rows += batch.num_rows

    def _look(self, wkb: pa.Array) -> None:
        scan = kernel.scan(wkb)
        self._kinds |= set(np.unique(scan.kind).tolist())
        solid = (scan.kind != 0) & ~scan.empty
        for name, count in (
            ("nulls", (scan.kind == 0).sum()),
            ("empty", scan.empty.sum()),
            ("z", (scan.has_z & solid).sum()),
            ("m", (scan.has_m & solid).sum()),
            ("present", solid.sum()),
        ):
            self._seen[name] += int(count)
        self._histogram += kernel.decimals(wkb)
        if len(self._sample) < _MEASURED:
            some = np.arange(0, len(wkb), len(wkb) // _PER_BATCH + 1)
            self._sample.append((kernel.coordinates(wkb.take(pa.array(some))), scan.vertices[some]))
        if solid.any():
            box = scan.bounds[solid]
            with np.errstate(invalid="ignore"):
                self._bounds[:2] = np.fmin(self._bounds[:2], np.fmin.reduce(box[:, :2]))
                self._bounds[2:] = np.fmax(self._bounds[2:], np.fmax.reduce(box[:, 2:]))

    def result(self) -> Inferred:
        """What was seen."""
        columns = tuple(each.facts(self._rows) for each in self._columns)
        keys = sorted((_candidate(each, self._delivery, self._rows) for each in columns), key=lambda each: (bool(each.why_not), each.rank))
        return Inferred(self._rows, columns, self._geometry(), tuple(keys))

    def _geometry(self) -> GeometryFacts | None:
        if self._delivery.geometry is None:
            return None
        seen = self._seen
        whole_z, whole_m = (0 < seen["present"] == seen[name] for name in ("z", "m"))
        dimensions: Dimensions = "xyzm" if whole_z and whole_m else "xyz" if whole_z else "xym" if whole_m else "xy"
        bounds = tuple(float(value) if np.isfinite(value) else float("nan") for value in self._bounds)
        return GeometryFacts(
            _geometry_type(self._kinds - {0, 255}),
            dimensions,
            seen["nulls"],
            seen["empty"],
            int(self._histogram.sum()),
            measured_precision(self._histogram),
            (bounds[0], bounds[1], bounds[2], bounds[3]),
            self._coarse(),
        )

    def _coarse(self) -> tuple[float, ...]:
        """See `GeometryFacts.coarse`."""
        if not self._sample:
            return ()
        xy, sizes = (np.concatenate(each) for each in zip(*self._sample, strict=True))
        shares = []
        for decimals in range(_FINEST_PROMISE):
            lattice = Lattice(decimals + 1)
            lattice.see(xy)
            on = coarse_features(xy, sizes, decimals)
            shares.append(float(on.mean()) if len(on) and not lattice.is_regular(len(xy)) else 0.0)
        return tuple(shares)


def _geometry_type(kinds: set[int]) -> GeometryType:
    families: tuple[tuple[set[int], GeometryType], ...] = (
        ({1}, "point"),
        ({1, 4}, "multipoint"),
        ({2}, "linestring"),
        ({2, 5}, "multilinestring"),
        ({3}, "polygon"),
        ({3, 6}, "multipolygon"),
        ({7}, "geometrycollection"),
    )
    return next((name for family, name in families if kinds and kinds <= family), "geometry")


# --- columns ---------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Column:
    """One column while batches come in; as a possible key it is dropped at its first null or repeat, unless its name is that of a key."""

    source: Any
    delivery: Delivery
    followed: bool
    name: str = ""
    kind: FieldType = field(default_factory=lambda: FieldType("string"))
    note: str = ""
    nulls: int = 0
    integral: bool = True
    counter: bool = True
    uuids: bool = True
    codes: dict[str, None] | None = field(default_factory=dict)
    hashes: list[npt.NDArray[np.uint64]] | None = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.source.name
        found = delivered_kind(self.source.type, json_text=is_json_text(self.source), utc=self.name in self.delivery.utc_columns)
        self.kind = found
        if found.kind in _AS_TEXT:
            self.kind, self.note = FieldType("string"), _AS_TEXT[found.kind]
        elif not _promisable(found):
            raise UsageError(
                f"column {self.name} of {self.delivery.path} has the type {self.source.type}, which no contract can promise",
                field=self.name,
                hint=f"leave the column out of the export, or convert it there: to text, to a number, or to a decimal of at most {MAX_DECIMAL} digits",
            )
        if self.kind.kind not in {"string", "integer", "number"} or self.note:
            self.hashes, self.codes = None, None

    def add(self, array: pa.Array, before: int) -> None:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self.kind.kind == "number" and array.null_count < len(array):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array) if pa.types.is_floating(array.type) else array
            whole = pc.and_(pc.equal(array, pc.floor(array)), pc.less(pc.abs(array), _EXACT))
            self.integral = self.integral and bool(pc.all(whole).as_py() is not False)
        self.nulls += array.null_count
        if self.hashes is None:
            return
        text = array.cast(pa.string())
        if self.codes is not None:
            self.codes.update(dict.fromkeys(pc.unique(text.drop_null()).to_pylist()[: CODES + 1]))
            if len(self.codes) > CODES:
                self.codes = None
        if self.kind.kind == "integer" and self.counter:
            numbers = array.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
            steps = numbers - np.arange(before, before + len(numbers))
            self.counter = array.null_count == 0 and (len(numbers) == 0 or bool((steps == steps[0]).all() and steps[0] in (0, 1)))
        self.uuids = self.uuids and self.kind.kind == "string" and pc.all(pc.match_substring_regex(text, _UUID)).as_py() is True
        hashes = text_hash(text)
        if not self.followed and (array.null_count or len(np.unique(hashes)) < len(hashes)):
            self.hashes = None
            return
        self.hashes.append(hashes[array.is_valid().to_numpy(zero_copy_only=False)])

    def facts(self, rows: int) -> ColumnFacts:
        values = None if self.hashes is None else np.concatenate([np.empty(0, dtype=np.uint64), *self.hashes])
        duplicates = None if values is None else len(equal_groups(values, np.arange(len(values), dtype=np.int64)).rows)
        integral = self.kind.kind == "number" and self.integral and self.nulls < rows
        counter = self.kind.kind == "integer" and self.counter and rows > 1
        codes = tuple(self.codes or ())
        return ColumnFacts(
            self.name,
            self.kind,
            rows,
            self.nulls,
            duplicates,
            integral,
            counter,
            self.uuids and values is not None,
            codes,
            values,
            self.note,
        )


def _promisable(kind: FieldType, *, within: bool = False) -> bool:
    """Whether a contract has this type; a list or a struct holds simple values."""
    if kind.kind in {"list", "struct"}:
        return not within and all(_promisable(member, within=True) for _, member in kind.members)
    return kind.kind in _CONTRACT_KINDS and (kind.precision or 0) <= MAX_DECIMAL


def _id_like(name: str) -> bool:
    lower = name.lower()
    return lower in _ID_NAMES or lower in _MADE_ANEW or lower.endswith(_ID_ENDINGS)


def _candidate(each: ColumnFacts, delivery: Delivery, rows: int) -> KeyCandidate:
    lower = each.name.lower()
    rank = 0 if lower in _ID_NAMES else 1 if lower.endswith(_ID_ENDINGS) else 3
    doubt = ""
    if each.uuids:
        rank, doubt = 2, f"{each.name} holds UUIDs, which some systems make anew in every export: compare with an older one"
    if lower.rstrip("_0123456789") in _MADE_ANEW:  # OBJECTID_1: what a join leaves behind
        rank, doubt = 4, f"systems often make {each.name} anew in every export: compare with an older one"
    if each.counter:
        rank, doubt = 5, f"{each.name} counts the rows of the file: a new export may number them anew"
    if each.name == delivery.fid_column:
        rank, doubt = 6, f"{each.name} is the row number (FID) of the file, which many programs hand out anew in every export"
    kind = FieldType("integer") if each.kind.kind == "number" and each.integral else each.kind
    return KeyCandidate(each.name, kind, rank, _why_not(each, kind, rows), doubt)


def _why_not(each: ColumnFacts, kind: FieldType, rows: int) -> str:
    if kind.kind not in {"string", "integer"} or each.note:
        return f"is {each.kind}, and a key is text or a whole number"
    faults = []
    if each.nulls:
        faults.append(f"null in {each.nulls:,} of {rows:,} rows")
    if each.duplicates is None and not each.nulls:
        faults.append("not unique")
    if each.duplicates:
        faults.append(f"{each.duplicates:,} rows share their value with another")
    return " and ".join(faults)


# --- compared with the previous delivery -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drift:
    """Two deliveries under one key. `compared` common keys were looked at; `changed` counts, per column, those whose value differs.

    `survived` is the share of the previous keys that come back. `volatile` are columns that changed for nearly every feature while most
    columns did not; `renumbered` says that nearly every feature has another geometry, which before stood under another key.
    """

    survived: float
    compared: int
    changed: tuple[tuple[str, int], ...]
    volatile: tuple[str, ...]
    renumbered: bool


class Comparison:
    """Compares two deliveries by the values of their common columns, on a sample of keys that is the same on both sides."""

    def __init__(self, key: Sequence[str], columns: Sequence[str], geometry: tuple[str | None, str | None], rows: int) -> None:
        """Start.

        Args:
            key: the key columns.
            columns: attribute columns that both deliveries have with the same type.
            geometry: the names of the geometry column now and before, None where there is none.
            rows: about how many rows the larger delivery has.
        """
        self._key, self._columns, self._geometry = list(key), [each for each in columns if each not in key], geometry
        self._located = None not in geometry
        self._every = np.uint64(max(1, rows // _SAMPLED))
        self._sides: tuple[list[npt.NDArray[np.uint64]], list[npt.NDArray[np.uint64]]] = ([], [])
        self._places: tuple[list[npt.NDArray[np.uint64]], list[npt.NDArray[np.uint64]]] = ([], [])
        self._keys: tuple[list[npt.NDArray[np.uint64]], list[npt.NDArray[np.uint64]]] = ([], [])

    def add(self, batch: pa.RecordBatch, *, before: bool) -> None:
        """Take in a batch of the newer delivery, or of the one before it."""
        side = int(before)
        keys = np.zeros(batch.num_rows, dtype=np.uint64)
        for name in self._key:
            keys = keys * np.uint64(0x9E3779B97F4A7C15) + text_hash(_text(batch.column(name)))
        self._keys[side].append(keys)
        chosen = np.flatnonzero((keys >> np.uint64(20)) % self._every == 0)
        at = pa.array(chosen)
        parts = [keys[chosen], *(text_hash(_text(batch.column(name).take(at))) for name in self._columns)]
        place = self._geometry[side]
        if self._located and place is not None:
            places = text_hash(batch.column(place))
            self._places[side].append(places)
            parts.append(places[chosen])
        self._sides[side].append(np.column_stack(parts))

    def result(self) -> Drift:
        """What the two sides say."""
        now, then = (_sorted_unique(np.concatenate(side)) if side else np.empty((0, 1), dtype=np.uint64) for side in self._sides)
        keys_now, keys_then = (np.unique(np.concatenate(side)) if side else np.empty(0, dtype=np.uint64) for side in self._keys)
        survived = len(np.intersect1d(keys_now, keys_then, assume_unique=True)) / len(keys_then) if len(keys_then) else 0.0
        _, left, right = np.intersect1d(now[:, 0], then[:, 0], assume_unique=True, return_indices=True)
        width = len(self._columns)
        differs = (now[left, 1 : width + 1] != then[right, 1 : width + 1]).sum(axis=0).tolist() if len(left) else [0] * width
        changed = tuple(zip(self._columns, differs, strict=True))
        most = [name for name, count in changed if len(left) and count > _NEARLY_ALL * len(left)]
        renumbered = False
        if self._located and len(left) > 1:
            moved = int((now[left, -1] != then[right, -1]).sum())
            places_now, places_then = (np.concatenate(side) for side in self._places)
            # Everything has moved, and yet the same shapes are there: they have other keys.
            renumbered = moved > _NEARLY_ALL * len(left) and float(np.isin(places_now, places_then).mean()) > 0.5
        volatile = () if renumbered or len(left) < 10 else tuple(most)
        return Drift(survived, len(left), changed, volatile, renumbered)


def _sorted_unique(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return rows[np.unique(rows[:, 0], return_index=True)[1]]


def _text(array: pa.Array) -> pa.Array:
    """A column as text, for comparing values only; nested values by their JSON-like form."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        return pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) or pa.types.is_fixed_size_binary(array.type):
        return array
    return array.cast(pa.string())


def with_previous(inferred: Inferred, previous: Inferred) -> Inferred:
    """The same facts, seen in both deliveries: nulls, types and keys hold only where they held before.

    Keys that do not come back are ranked last, since a key that each export makes anew turns every feature into another.
    """
    keys = [_survivor(each, inferred, previous) for each in inferred.keys]
    geometry = inferred.geometry
    if geometry is not None and previous.geometry is not None:
        then = previous.geometry
        pair = {geometry.type, then.type}
        wider = {frozenset({"point", "multipoint"}), frozenset({"linestring", "multilinestring"}), frozenset({"polygon", "multipolygon"})}
        kind: GeometryType = geometry.type
        if len(pair) > 1:
            kind = next(each for each in pair if each.startswith("multi")) if frozenset(pair) in wider else "geometry"
        enough = then.ordinates >= JUDGED_ORDINATES
        geometry = replace(
            geometry,
            type=kind,
            nulls=geometry.nulls + then.nulls,
            empty=geometry.empty + then.empty,
            decimals=min(geometry.decimals, then.decimals) if enough else geometry.decimals,
            dimensions=geometry.dimensions if geometry.dimensions == then.dimensions else "xy",
        )
    keys.sort(key=lambda each: (bool(each.why_not), each.rank))
    return replace(inferred, keys=tuple(keys), geometry=geometry)


def _survivor(each: KeyCandidate, inferred: Inferred, previous: Inferred) -> KeyCandidate:
    """The candidate in the light of the previous delivery."""
    new, old = inferred.column(each.name), previous.column(each.name)
    if each.why_not or new is None or new.values is None:
        return each
    if old is None:
        return replace(each, why_not="the previous delivery has no such column")
    if old.values is None or old.nulls or old.duplicates:
        return replace(each, why_not=f"in the previous delivery: {_why_not(old, each.kind, old.rows)}")
    back = len(np.intersect1d(new.values, old.values)) / max(len(old.values), 1)
    if back < 0.5:
        return replace(each, why_not=f"only {percent(back)} of its values come back from the previous delivery: it is made anew")
    return replace(each, doubt="" if each.rank < 5 else each.doubt)


def code_lists(inferred: Inferred) -> list[str]:
    """Columns with few values, in words: an `enum` may be worth agreeing on, but is not guessed."""
    return [
        f"{each.name} has {len(each.codes)} values: {listed(each.codes[:6], len(each.codes))}"
        for each in inferred.columns
        if 1 < len(each.codes) <= each.rows / 20 and each.kind.kind == "string"
    ]
