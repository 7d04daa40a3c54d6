"""The gate backwards: what a contract could promise about a delivery, seen from its rows.

Not here: reading the delivery (`source`), what two exports have in common (`previous`, `join`), which column is the key (`keys`), writing the
draft (`text`, `init`). What is a guess is called one; a person confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.contract.contract import Dimensions, FieldType, GeometryType
from merestone.contract.field_type import MAX_DECIMAL
from merestone.errors import UsageError
from merestone.gate.delivery import equal_groups, text_hash
from merestone.gate.fineness import Lattice, axis_precision, coarse_features
from merestone.geometry import kernel
from merestone.normalise.values import delivered_kind
from merestone.source.columns import is_json_text
from merestone.source.port import Delivery
from merestone.words import listed

CODES = 12
"""Up to how many different values a column is worth mentioning as a code list."""
_PER_BATCH, _MEASURED = 1_000, 50  # rows of a batch, and batches, whose coordinates are looked at feature by feature
_FINEST_PROMISE = 15
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
NEARLY_CLEAN = 0.9
"""The share of the rows from which on a column with another value in each is followed as a key, though some rows are faulty."""
COUNTS = 7
"""The rank from which on a key candidate counts rows."""
_COUNT = r"^(0|[1-9]\d{0,14})$"
_EXACT = 2.0**53  # whole numbers up to here are one double each
_MADE_ANEW = frozenset({"fid", "ogc_fid", "objectid", "object_id", "oid", "rowid", "row_id", "index", "globalid", "global_id", "guid"})


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What one attribute column holds.

    duplicates: rows that share their value; None where a repeat was met and not followed. integral: a number column of whole numbers.
    counter: its values count the rows of the file from 0 or 1, as numbers or as text. in_order: they count them from some other number.
    series: they are whole numbers without a gap, in any order.
    uuids: it holds nothing else, as far as it may be a key. codes: its values where there are few.
    """

    name: str
    kind: FieldType
    rows: int
    nulls: int
    duplicates: int | None
    integral: bool
    counter: bool
    in_order: bool = False
    series: bool = False
    uuids: bool = False
    codes: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class GeometryFacts:
    """What the primary geometry column holds; bounds as delivered, x before y, NaN where nothing has a position."""

    type: GeometryType
    dimensions: Dimensions
    nulls: int
    empty: int
    ordinates: int
    axes: tuple[int, int]
    """Decimals along x and along y, as measured: 0 to 16, 16 for ordinates on no grid."""
    single: bool
    """Whether every ordinate looked at is a 32-bit float that was widened; `axes` are then what such a float holds."""
    bounds: tuple[float, float, float, float]
    coarse: tuple[float, ...] = ()
    """The share of features that lie on the grid of 1, 0.1, ... with all ordinates, of a sample; 0 where they form a regular lattice."""

    @property
    def decimals(self) -> int:
        """The decimals that no ordinate needs more of, but for noise: those of the finer axis."""
        return max(self.axes)


@dataclass(frozen=True, slots=True)
class KeyCandidate:
    """A column as a key: `rank` 0 is best; `why_not` is empty for a usable one; `doubt` says what to look at; `near`: few rows are faulty."""

    name: str
    kind: FieldType
    rank: int
    why_not: str = ""
    doubt: str = ""
    near: bool = False


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
            _Column(each, delivery, each.name in asked or id_like(each.name) < 2 or _systems_own(each.name))
            for each in delivery.schema
            if each.name not in geometries
        ]
        self._rows = 0
        self._kinds: set[int] = set()
        self._seen = dict.fromkeys(("nulls", "empty", "z", "m", "present"), 0)
        self._histogram = np.zeros((2, 17), dtype=np.int64)
        self._bounds = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self._sample: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
        self._singles: list[npt.NDArray[np.float32]] | None = []

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
            self._hold_singles(box)
            with np.errstate(invalid="ignore"):
                self._bounds[:2] = np.fmin(self._bounds[:2], np.fmin.reduce(box[:, :2]))
                self._bounds[2:] = np.fmax(self._bounds[2:], np.fmax.reduce(box[:, 2:]))

    def _hold_singles(self, box: npt.NDArray[np.float64]) -> None:
        """Look whether ordinates are 32-bit floats, by the outermost ones of each feature; some are kept."""
        if self._singles is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            single = box.astype(np.float32)
        self._singles = [*self._singles, single[:1_000]][:20] if np.array_equal(single.astype(np.float64), box, equal_nan=True) else None

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
        axes = axis_precision(self._histogram)
        held = _decimals_of_singles(np.concatenate(self._singles), axes) if self._singles else axes
        bounds = tuple(float(value) if np.isfinite(value) else float("nan") for value in self._bounds)
        return GeometryFacts(
            _geometry_type(self._kinds - {0, 255}),
            dimensions,
            seen["nulls"],
            seen["empty"],
            int(self._histogram.sum()),
            held,
            held != axes,
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


def _decimals_of_singles(boxes: npt.NDArray[np.float32], measured: tuple[int, int]) -> tuple[int, int]:
    """How many decimals 32-bit floats hold along x and y: those of their shortest spelling, and no more than the gap between neighbours allows.

    Where that spelling is as long as the measured decimals, the values are decimal ones that such a float holds exactly.
    """
    out = list(measured)
    for place, axis in enumerate((boxes[:, (0, 2)].ravel(), boxes[:, (1, 3)].ravel())):
        held = axis[np.isfinite(axis)]
        if not len(held):
            continue
        decimals = [len(np.format_float_positional(each, unique=True, trim="-").partition(".")[2]) for each in held]
        spelt = int(np.quantile(decimals, 0.99, method="higher"))
        if spelt < measured[place]:
            out[place] = min(spelt, max(0, math.floor(-math.log10(float(np.spacing(np.abs(held).max()))))))
    return out[0], out[1]


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
    """One column while batches come in; as a possible key it is dropped where many rows repeat or lack a value, unless its name is that of a key."""

    source: pa.Field
    delivery: Delivery
    followed: bool
    name: str = ""
    kind: FieldType = field(default_factory=lambda: FieldType("string"))
    note: str = ""
    nulls: int = 0
    integral: bool = True
    counter: bool = True
    first: int | None = None
    in_order: bool = True
    range: tuple[int, int] | None = None
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
        self._count(array, text, before)
        self.uuids = self.uuids and self.kind.kind == "string" and pc.all(pc.match_substring_regex(text, _UUID)).as_py() is True
        hashes = text_hash(text)
        held = hashes[array.is_valid().to_numpy(zero_copy_only=False)]
        if not self.followed and len(np.unique(held)) < NEARLY_CLEAN * len(hashes):
            self.hashes = None
            return
        self.hashes.append(held)

    def _count(self, array: pa.Array, text: pa.Array, before: int) -> None:
        """Whether the values go on counting rows, and between which whole numbers they lie."""
        numbers = _whole(array, text) if self.counter else None
        if numbers is None:
            self.counter = False
        elif len(numbers):
            self.first = int(numbers[0]) - before if self.first is None else self.first
            low, high = self.range or (int(numbers[0]), int(numbers[0]))
            self.range = min(low, int(numbers.min())), max(high, int(numbers.max()))
            if not (numbers - np.arange(before, before + len(numbers)) == self.first).all():
                self.in_order = False

    def facts(self, rows: int) -> ColumnFacts:
        values = None if self.hashes is None else np.concatenate([np.empty(0, dtype=np.uint64), *self.hashes])
        duplicates = None if values is None else len(equal_groups(values, np.arange(len(values), dtype=np.int64)).rows)
        integral = self.kind.kind == "number" and self.integral and self.nulls < rows
        counts = self.counter and rows > 1
        in_order = counts and self.in_order
        series = counts and duplicates == 0 and self.range is not None and self.range[1] - self.range[0] == rows - 1
        codes = tuple(self.codes or ())
        return ColumnFacts(
            self.name,
            self.kind,
            rows,
            self.nulls,
            duplicates,
            integral,
            in_order and self.first in (0, 1),
            in_order,
            series,
            self.uuids and values is not None,
            codes,
            self.note,
        )


def _whole(array: pa.Array, text: pa.Array) -> npt.NDArray[np.int64] | None:
    """The values as whole numbers, also where they are held as text or as floats; None where one is missing or is none."""
    if array.null_count or not pc.all(pc.match_substring_regex(text, _COUNT)).as_py():
        return None
    return np.asarray(text.cast(pa.int64()), dtype=np.int64)


def _promisable(kind: FieldType, *, within: bool = False) -> bool:
    """Whether a contract has this type; a list or a struct holds simple values."""
    if kind.kind in {"list", "struct"}:
        return not within and all(_promisable(member, within=True) for _, member in kind.members)
    return kind.kind in _CONTRACT_KINDS and (kind.precision or 0) <= MAX_DECIMAL


def id_like(name: str) -> int:
    """How much a name sounds like that of an identifier: 0 most, 1 somewhat, 2 not at all."""
    lower = name.lower()
    return 0 if lower in _ID_NAMES else 1 if lower.endswith(_ID_ENDINGS) else 2


def minted(each: ColumnFacts, fid_column: str | None) -> str:
    """Why a column looks like an identifier that systems make anew in every export; empty where it does not."""
    if each.name == fid_column:
        return f"{each.name} is the row number (FID) of the file, which many programs hand out anew in every export"
    if each.counter:
        return f"{each.name} counts the rows of the file: a new export may number them anew"
    if _systems_own(each.name):
        return f"systems often make {each.name} anew in every export: compare with an older one"
    if each.uuids:
        return f"{each.name} holds UUIDs, which some systems make anew in every export: compare with an older one"
    return ""


def _candidate(each: ColumnFacts, delivery: Delivery, rows: int) -> KeyCandidate:
    """The column as a key: a code before a text, a text before a number, and what systems make anew last."""
    doubt = minted(each, delivery.fid_column)
    named = id_like(each.name)
    unnamed = {"string": 3, "integer": 4}.get(each.kind.kind, 5)  # a whole number that no name calls an id is often a measure
    rank = named if named < 2 else unnamed
    if each.name == delivery.fid_column:
        rank = COUNTS + 1
    elif each.counter:
        rank = COUNTS
    elif doubt:
        rank = 2 if each.uuids and not _systems_own(each.name) else 6
    elif each.series:
        rank = max(rank, 2)
        doubt = f"{each.name} is a whole series without a gap, as numbers are that an export hands out: compare with an older one"
    kind = FieldType("integer") if each.kind.kind == "number" and each.integral else each.kind
    faults = why_not(each, kind, rows)
    near = bool(faults) and each.duplicates is not None and each.nulls + each.duplicates <= (1 - NEARLY_CLEAN) * rows
    return KeyCandidate(each.name, kind, rank, faults, doubt, near and kind.kind in {"string", "integer"} and not each.note)


def _systems_own(name: str) -> bool:
    """Whether the column's name is one that systems give to numbers of their own; OBJECTID_1 is what a join leaves behind."""
    return name.lower().rstrip("_0123456789") in _MADE_ANEW


def why_not(each: ColumnFacts, kind: FieldType, rows: int) -> str:
    """Why a column cannot be the key, from its values alone."""
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


def code_lists(inferred: Inferred) -> list[str]:
    """Columns with few values, in words: an `enum` may be worth agreeing on, but is not guessed."""
    return [
        f"{each.name} has {len(each.codes)} values: {listed(each.codes[:6], len(each.codes))}"
        for each in inferred.columns
        if 1 < len(each.codes) <= each.rows / 20 and each.kind.kind == "string"
    ]
