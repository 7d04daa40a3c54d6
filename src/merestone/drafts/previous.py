"""What holds in two exports: the facts that a contract may promise of both, and what differs between them, in words.

Not here: what one export holds (`infer`), which key joins them (`keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.change.made_anew import ALL, made_anew
from merestone.contract.contract import Dimensions, FieldType, GeometryType
from merestone.drafts.infer import COUNTS, ColumnFacts, GeometryFacts, Inferred, KeyCandidate, minted, why_not
from merestone.drafts.join import Exports
from merestone.gate.fineness import JUDGED_ORDINATES
from merestone.normalise.values import delivered_kind, never
from merestone.reference.identity import identify
from merestone.reference.systems import horizontal, of_code
from merestone.source.columns import is_json_text
from merestone.source.port import Delivery, Source
from merestone.words import listed

_FEW = 10
"""Below so many features nothing is said of a column that changed in all of them."""
_NEARLY_ALL = 0.9
_LAST_DIGITS = 1e-6
"""Numbers that lie closer, as a share of themselves, differ in their last digits only: a 32-bit float holds seven."""
_EXACT = 2.0**53
_WIDER = {frozenset({single, f"multi{single}"}) for single in ("point", "linestring", "polygon")}


@dataclass(frozen=True, slots=True)
class Both:
    """The facts that hold in both exports.

    inferred: the newer export's columns that both have, with types, gaps and keys that hold in both. came: columns of the newer export alone.
    gone: of the older alone. torn: columns of which no
    type takes the values of both. said: what differs, in words.
    """

    inferred: Inferred
    came: tuple[ColumnFacts, ...]
    gone: tuple[str, ...]
    torn: tuple[str, ...]
    said: tuple[str, ...]


def both(newer: Inferred, older: Inferred, deliveries: tuple[Delivery, Delivery], asked: Sequence[str]) -> Both:
    """What holds in two exports; columns of the newer one that a person named as key stay, whatever the older one has."""
    columns, came, said, torn = [], [], [], []
    for each in newer.columns:
        then = older.column(each.name)
        if then is None and each.name not in asked:
            came.append(each)
            continue
        if then is not None:
            kind, words = _common_kind(each, then, deliveries)
            if kind is None:
                torn.append(each.name)
            if words:
                said.append(words)
            each = replace(  # noqa: PLW2901 - the facts of both
                each,
                kind=kind or each.kind,
                integral=_integral(each) and _integral(then),
                note=each.note if each.note and then.note else "",
            )
        columns.append(each)
    names = {each.name for each in columns}
    gone = tuple(each.name for each in older.columns if each.name not in {one.name for one in newer.columns})
    fids = {each.fid_column for each in deliveries}
    added = [each.name for each in came if each.name not in fids]
    if added:
        said.append(f"only in the newer export: {listed(added, len(added))}")
    left = [each for each in gone if each not in fids]
    if left:
        said.append(f"only in the older export: {listed(left, len(left))}")
    keys = [_candidate(each, newer, older) for each in newer.keys]
    keys = [each for each in keys if each.name in names or each.why_not]
    keys.sort(key=lambda each: (bool(each.why_not), each.rank))
    geometry, differs = _geometry(newer.geometry, older.geometry)
    said += differs
    return Both(Inferred(newer.rows, tuple(columns), geometry, tuple(keys)), tuple(came), gone, tuple(torn), tuple(said))


def compared_as(newer: Inferred, older: Inferred) -> dict[str, str]:
    """How columns are compared that hold numbers with decimals, or text on one side and numbers on the other: see `join.hashes`."""
    how = {}
    for each in newer.columns:
        then = older.column(each.name)
        kinds = {each.kind.kind, then.kind.kind} if then is not None else set()
        if "string" in kinds and kinds & {"integer", "number"}:
            how[each.name] = "padded"
        elif kinds & {"number", "decimal"} and kinds <= {"integer", "number", "decimal"}:
            how[each.name] = "number"
    return how


def exports_of(sources: tuple[Source, Source], facts: tuple[Inferred, Inferred], names: Sequence[str], how: dict[str, str]) -> Exports:
    """Two exports, the newer one first, to be held against each other; columns that count rows say nothing of what a row is."""
    crs = [crs_of(each.delivery) for each in sources]
    numbered = {each.delivery.fid_column for each in sources}
    columns = [[one.column(name) for one in facts] for name in names]
    return Exports(
        *sources,
        names,
        rows=(facts[0].rows, facts[1].rows),
        place=crs[0] == crs[1],
        degrees=crs[0] is None or is_degrees(crs[0]),
        aside=[name for name, pair in zip(names, columns, strict=True) if name in numbered or any(each and each.in_order for each in pair)],
        how=how,
    )


def crs_of(delivery: Delivery) -> str | None:
    """The CRS of a delivery's geometry by its code, or by its name where it has none; None where the file does not say."""
    if delivery.geometry is None or delivery.geometry.crs is None:
        return None
    found = identify(delivery.geometry.crs)
    return found.code or found.name


def is_degrees(crs: str) -> bool:
    """Whether the unit of a system is the degree, as far as its code says."""
    code = crs.removeprefix("EPSG:")
    return code.isdigit() and bool(horizontal(of_code(int(code))).is_geographic)


def _integral(each: ColumnFacts) -> bool:
    return each.integral or each.kind.kind == "integer"


def _candidate(each: KeyCandidate, newer: Inferred, older: Inferred) -> KeyCandidate:
    """The candidate in the light of both exports; whether its values come back is for `join` to say."""
    now, then = newer.column(each.name), older.column(each.name)
    if then is None:
        return replace(each, near=False, why_not=each.why_not or "the previous delivery has no such column")
    if each.why_not or now is None:
        return each
    if then.counter:
        each = replace(each, rank=max(each.rank, COUNTS))
    faults = why_not(then, FieldType("integer") if _integral(then) else then.kind, older.rows)
    if not faults:
        return each
    words = f"in the previous delivery: {faults}"
    # Rows of the older export that are faulty join nothing: that is for `join` to count.
    fit = then.kind.kind in {"string", "integer", "number"} and not then.note and (then.nulls or then.duplicates is not None)
    return replace(each, doubt=f"{each.name}, {words}; publish refuses that one") if fit else replace(each, why_not=words)


# --- types -------------------------------------------------------------------------------------------------------------------------------


def _common_kind(now: ColumnFacts, then: ColumnFacts, deliveries: tuple[Delivery, Delivery]) -> tuple[FieldType | None, str]:
    """The type that takes the values of both exports, None where there is none; and what is said where they differ."""
    if now.kind == then.kind and bool(now.note) == bool(then.note):
        return now.kind, ""
    there = [_given(delivery, each.name) for delivery, each in zip(deliveries, (now, then), strict=True)]
    if pa.types.is_null(there[0][0]):
        return then.kind, ""
    if pa.types.is_null(there[1][0]):
        return now.kind, ""
    kinds = {now.kind.kind, then.kind.kind}
    words = f"{now.name} is {now.kind} now and was {then.kind} before"
    if now.kind == then.kind:  # plain text on one side, nested values as text on the other
        return now.kind, f"{now.name} holds {now.note or 'plain text'} now and {then.note or 'plain text'} before"
    if kinds <= {"integer", "number"}:
        return FieldType("number"), f"{words}: drafted as number"
    if kinds == {"decimal"}:
        scale = max(now.kind.scale or 0, then.kind.scale or 0)
        whole = max((each.kind.precision or 0) - (each.kind.scale or 0) for each in (now, then))
        return FieldType("decimal", whole + scale, scale), f"{words}: drafted as decimal({whole + scale},{scale})"
    for kind in (now.kind, then.kind):
        if all(never(given, kind, json_text=text, utc=utc) is None for given, text, utc in there):
            return kind, f"{words}: drafted as {kind}"
    return None, f"{words}, and no type takes both"


def _given(delivery: Delivery, name: str) -> tuple[pa.DataType, bool, bool]:
    field = delivery.schema.field(name)
    given = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    text = is_json_text(field)
    return (pa.null() if delivered_kind(given, json_text=text).kind == "null" else given), text, name in delivery.utc_columns


def _geometry(now: GeometryFacts | None, then: GeometryFacts | None) -> tuple[GeometryFacts | None, list[str]]:
    """What holds of the geometries of both exports; the box stays that of the newer one, see `extent`."""
    if now is None or then is None:
        return now, []
    said: list[str] = []
    if not now.ordinates or not then.ordinates:  # without a position nothing is known of type and dimensions
        there = now if now.ordinates else then
        return replace(there, nulls=now.nulls + then.nulls, empty=now.empty + then.empty, bounds=now.bounds), said
    kind: GeometryType = now.type
    if now.type != then.type:
        pair = frozenset({now.type, then.type})
        kind = next(each for each in (now.type, then.type) if each.startswith("multi")) if pair in _WIDER else "geometry"
        said.append(f"geometries are {now.type} now and were {then.type} before: drafted as {kind}")
    dimensions: Dimensions = now.dimensions if now.dimensions == then.dimensions else "any"
    if now.dimensions != then.dimensions:
        said.append(f"positions have {now.dimensions} now and had {then.dimensions} before: drafted as any")
    judged = [each for each in (now, then) if each.ordinates >= JUDGED_ORDINATES] or [now]
    coarser = min(judged, key=lambda each: each.decimals)
    if coarser is then and coarser.decimals < now.decimals:
        said.append(
            f"coordinates have {now.decimals} decimals now and had {then.decimals} before: drafted for {then.decimals}, which both have"
        )
    return replace(
        now,
        type=kind,
        nulls=now.nulls + then.nulls,
        empty=now.empty + then.empty,
        axes=coarser.axes,
        ordinates=coarser.ordinates,
        single=coarser.single,
        coarse=coarser.coarse,
        dimensions=dimensions,
    ), said


# --- columns under the key -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loose:
    """Columns that are not compared, with the reason; number columns that differ in their last digits, with the clause that leaves those out.

    doubted: columns that are compared, and that a person should look at, with the reason.
    """

    volatile: dict[str, str]
    rounded: dict[str, tuple[str, int]]
    said: tuple[str, ...]
    doubted: dict[str, str] = field(default_factory=dict)


def unmeasured(inferred: Inferred, key: Sequence[str], fid_column: str | None) -> Loose:
    """Columns of one export that systems may make anew: compared, until a comparison shows that they are. What is not compared hides edits."""
    found = {each.name: minted(each, fid_column) for each in inferred.columns if each.name not in key and each.name != fid_column}
    doubted = {name: f"{words}. Is it? Then `volatile: true` leaves it out of comparison" for name, words in found.items() if words}
    return Loose({}, {}, tuple(f"compared like any other: {words}" for words in doubted.values()), doubted)


def measured(inferred: Inferred, key: tuple[str, ...], exports: Exports, dealt_out: Sequence[str], fid_column: str | None) -> Loose:
    """Columns that the newer export made anew, by the rows that a judged key joins.

    A column is volatile where its values are made anew, where it counts the rows of the file, or where its values come back for other things.
    That it changed in most rows does not make it so.
    """
    now, then = exports.pairs(key)
    if not now.num_rows:
        return unmeasured(inferred, key, fid_column)
    volatile: dict[str, str] = {}
    rounded: dict[str, tuple[str, int]] = {}
    said = []
    for each in inferred.columns:
        if each.name in key or each.name == fid_column or each.name not in now.schema.names:
            continue
        new, old = (side.column(each.name).combine_chunks() for side in (now, then))
        differs = _differs(new, old)
        count, compared = int(differs.sum()), len(differs)
        few = f"differs for {count:,} of {compared:,} features"
        if each.counter and count:
            volatile[each.name] = f"counts the rows of the file, and {few}"
        elif compared >= _FEW and each.name in dealt_out and count > compared / 2:
            volatile[each.name] = f"dealt out anew in each export: {few}"
        elif compared >= _FEW and new.type == old.type and count >= ALL * _held(new, old) > 0:
            some = pa.array(differs)
            if made_anew(new.filter(some), old.filter(some), lambda values, name=each.name: exports.met(name, values)):  # type: ignore[misc]
                volatile[each.name] = f"made anew in each export: {few}, and no value was there before"
        if each.name in volatile:
            said.append(f"volatile: {each.name}, {volatile[each.name]}")
        elif count and each.kind.kind == "number" and (found := _last_digits(new, old)) is not None:
            rounded[each.name] = found
            said.append(f"{each.name} differs in its last digits: drafted with {found[0]}: {found[1]}")
        elif compared >= _FEW and count > _NEARLY_ALL * compared and pc.count_distinct(new).as_py() == 1:
            said.append(f"{each.name} has one value in all rows, and another one than before: is it the time or the number of the export?")
    return Loose(volatile, rounded, tuple(said))


def _held(now: pa.Array, then: pa.Array) -> int:
    """How many rows have a value in both exports."""
    return int(pc.sum(pc.and_(now.is_valid(), then.is_valid())).as_py() or 0)


def _differs(now: pa.Array, then: pa.Array) -> npt.NDArray[np.bool_]:
    if now.type != then.type:
        now, then = (side.cast(pa.string()) if not pa.types.is_binary(side.type) else side for side in (now, then))
    if pa.types.is_floating(now.type):
        one, other = (np.asarray(side.fill_null(np.nan)) for side in (now, then))
        apart: npt.NDArray[np.bool_] = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        return apart
    if pa.types.is_null(now.type):
        return np.zeros(len(now), bool)
    same = pc.fill_null(pc.equal(now, then), False)
    return ~np.asarray(pc.or_(same, pc.and_(now.is_null(), then.is_null())))


def _last_digits(now: pa.Array, then: pa.Array) -> tuple[str, int] | None:
    """`decimals` or `digits` that leave out what differs, where nearly all that differs is in the last digits; None where it is more."""
    if not all(pa.types.is_integer(each.type) or pa.types.is_floating(each.type) for each in (now, then)):
        return None
    one, other = (np.asarray(side.cast(pa.float64()).fill_null(np.nan), dtype=np.float64) for side in (now, then))
    good = np.isfinite(one) & np.isfinite(other)
    one, other = one[good], other[good]
    apart = one != other
    near = apart & (np.abs(one - other) <= _LAST_DIGITS * np.maximum(np.abs(one), np.abs(other)))
    if not near.any() or near.sum() < apart.sum() / 2:
        return None
    one, other, largest = one[near], other[near], float(np.abs(np.concatenate([one, other])).max())
    for decimals in range(11):
        if largest * 10.0 ** (decimals + 3) >= _EXACT:
            break
        grid = [np.round(side, decimals) for side in (one, other)]
        written = any(
            float((np.abs(side - on) <= np.spacing(np.abs(side))).mean()) >= 0.99 for side, on in zip((one, other), grid, strict=True)
        )
        if written and float((grid[0] == grid[1]).mean()) >= 0.99:
            return "decimals", decimals
    for digits in range(15, 3, -1):
        grid = [_significant(side, digits) for side in (one, other)]
        if float((grid[0] == grid[1]).mean()) >= 0.99:
            return "digits", digits
    return None


def _significant(values: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(values))))
    return np.where(values == 0, 0.0, np.round(values * scale) / scale)
