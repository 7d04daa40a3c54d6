"""Under which terms two sides are compared: key, types, grid and CRS, from a contract where there is one, otherwise from the rows.

Not here: opening the sides (`sides`), the comparison (`diff`), drafting a contract to publish under (`drafts.init`).

Without a contract: the key is found as `drafts.init` finds it and has to serve on both sides; columns on one side only are said and not
compared; an integer column that a null made a float column is still of integers; types that cannot be brought together are compared as
text and said; the grid is the finer of the two measured ones, and across CRSs not finer than the newer side's on the ground.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from merestone.compare.one_form import TIMES, as_text, times_as_text
from merestone.compare.sides import Adapted, DiffSide, in_order
from merestone.contract.body import body, from_body
from merestone.contract.contract import Contract, Dimensions, FieldType, GeometryType
from merestone.contract.files import read_contract
from merestone.drafts.infer import ColumnFacts, GeometryFacts, Inferred
from merestone.drafts.init import epsg_of, infer, precision_of
from merestone.drafts.keys import asked_key, joining_key
from merestone.drafts.previous import compared_as, exports_of
from merestone.drafts.text import ContractFacts, FieldFacts, draft_contract, possible_precision
from merestone.errors import UsageError
from merestone.identity.text import nfc_name
from merestone.json_value import JsonObject
from merestone.publication.publication import CrsRule, KeyRule, PartitionRule, Publication, RejectsRule
from merestone.reference.ground import metres_per_unit
from merestone.reference.identity import identify
from merestone.reference.systems import of_code
from merestone.results.progress import Watch, nobody
from merestone.scratch.read_once import ReadOnce
from merestone.source.port import Source, SourceSpec
from merestone.words import plural

_MULTI: dict[str, GeometryType] = {"point": "multipoint", "linestring": "multilinestring", "polygon": "multipolygon"}
_NO_ID = "00000000-0000-4000-8000-000000000000"  # a contract needs one; this one is nobody's product
_FINEST_Z = 3


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How one comparison is called, beside the two sides.

    key and ignore name columns; contract is a file; precision counts decimals; layer is that of files that have several; with_keys lists
    the keys of each class and label; progress watches.
    """

    key: tuple[str, ...] = ()
    contract: str | None = None
    precision: int | None = None
    ignore: tuple[str, ...] = ()
    layer: str | None = None
    with_keys: bool = False
    progress: Watch = nobody

    @property
    def changes_nothing(self) -> bool:
        """Whether two versions of one dataset are compared as they were published."""
        return not self.key and self.contract is None and self.precision is None and not self.ignore


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """The terms: a publication for each side (older, newer), their rows as the contract wants them, and what a person should know."""

    publications: tuple[Publication, Publication]
    sources: tuple[Source, Source]
    notes: tuple[str, ...]


def settle_terms(older: DiffSide, newer: DiffSide, settings: ComparisonSettings, folder: str) -> ComparisonTerms:
    """Settle the terms of a comparison.

    Args:
        older: A.
        newer: B.
        settings: what was asked for.
        folder: where the contract of the comparison may be written, and the scratch dataset is going to be.

    Raises:
        UsageError: no column can be the key, a setting names a column that does not exist, a side has no geometry, or its CRS is not known.
        SourceError: a side cannot be read.
    """
    notes: list[str] = []
    stated = next((each.version for each in (older, newer) if each.version is not None), None)
    named = next((each.publication for each in (older, newer) if each.publication is not None), None)
    derived: JsonObject | None = None
    if settings.contract is not None or stated is not None:
        contract = read_contract(settings.contract) if settings.contract is not None else from_body(stated.manifest.contract)  # type: ignore[union-attr]  # one of them is there
        key = settings.key or contract.key or (tuple(stated.manifest.key["columns"]) if stated is not None else ())
        if settings.contract is None and stated is not None:
            key = settings.key or tuple(stated.manifest.key["columns"])
            derived = stated.manifest.key if not settings.key and stated.manifest.key["derive"] is not None else None
            notes.append(f"compared under the contract {contract.contract_version} of {stated.manifest.name} v{stated.number}")
        sides = [_renamed_names(each, named) for each in (older, newer)]
        path = _adjusted(contract, key, sides, (older, newer), settings, folder, notes)
        sources = tuple(in_order(each, contract) for each in (older, newer))
        key = key or _without_key(settings.contract or older.shown)
    else:
        then, now = (_read_once(side, folder, name) for side, name in ((older, "older-rows"), (newer, "newer-rows")))
        path, key, sources = _drafted(then, now, settings, folder, notes)
    mapped = named.columns if named is not None else ()
    publications = [
        Publication(
            path="",
            name="diff",
            contract=path,
            source=SourceSpec(side.source.delivery.path),
            destination=str(Path(folder) / "compared"),
            key=KeyRule(key) if derived is None else KeyRule.of_manifest(derived, published=side.version is not None),
            columns=mapped if side.version is None else (),
            partition=PartitionRule(),
            crs=replace(named.crs if named is not None else CrsRule(), accept=_delivered(older, newer)),
            extra_columns="warn",
            rejects=RejectsRule(max_fraction=1.0),
        )
        for side in (older, newer)
    ]
    return ComparisonTerms((publications[0], publications[1]), (sources[0], sources[1]), tuple(notes))


def _read_once(side: DiffSide, folder: str, name: str) -> DiffSide:
    """A side whose rows are looked at before they are compared."""
    return replace(side, source=ReadOnce(side.source, folder, name))


def _delivered(older: DiffSide, newer: DiffSide) -> tuple[str, ...]:
    """The CRSs of both sides: whatever they are, they are compared in one."""
    columns = [side.source.delivery.geometry for side in (older, newer)]
    stated = [identify(column.crs).code for column in columns if column is not None and column.crs is not None]
    return tuple(code for code in stated if code is not None)


# --- under a contract ------------------------------------------------------------------------------------------------------------------


def _renamed_names(side: DiffSide, named: Publication | None) -> set[str]:
    """The names that a side's columns have under the contract."""
    mapped = {nfc_name(old): new for old, new in named.columns} if named is not None and side.version is None else {}
    return {mapped.get(nfc_name(each), each) for each in side.source.delivery.schema.names}


def _adjusted(
    contract: Contract,
    key: Sequence[str],
    names: Sequence[set[str]],
    sides: tuple[DiffSide, DiffSide],
    settings: ComparisonSettings,
    folder: str,
    notes: list[str],
) -> str:
    """The contract as a file of its own: what is ignored, or is missing on a side, does not count; the grid is the one asked for."""
    known = {each.name for each in contract.schema_fields}
    for name in settings.ignore:
        if name not in known and not any(name in each for each in names):
            raise _no_column(name, [*known, *names[0], *names[1]], "ignore")
    quiet = set(settings.ignore)
    for present, side in zip(names, sides, strict=True):
        for each in contract.schema_fields:
            if each.name not in present and each.name not in key and each.name not in quiet and each.compared:
                notes.append(f"{side.shown} has no column {each.name}: it is not compared")
                quiet.add(each.name)
    fields = tuple(replace(each, volatile=True) if each.name in quiet and each.name not in key else each for each in contract.schema_fields)
    precision = contract.coordinate_precision if settings.precision is None else settings.precision
    wanted = replace(contract, schema_fields=fields, coordinate_precision=precision)
    return _written(json.dumps(body(wanted), ensure_ascii=False), folder)


def _without_key(shown: str) -> tuple[str, ...]:
    raise UsageError(f"{shown} names no key: features cannot be identified", field="key", hint="name the key: «key=COLUMNS»")


# --- without a contract ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Columns:
    """What becomes of the columns of both sides: the fields to compare, and how arrays of each side are made ready."""

    fields: list[FieldFacts] = field(default_factory=list)
    made: tuple[JsonObject, JsonObject] = field(default_factory=lambda: ({}, {}))


def _drafted(
    older: DiffSide, newer: DiffSide, settings: ComparisonSettings, folder: str, notes: list[str]
) -> tuple[str, tuple[str, ...], tuple[Source, ...]]:
    then, now = infer(older.source, settings.key), infer(newer.source, settings.key)
    for name in (*settings.key, *settings.ignore):
        for side, facts in ((older, then), (newer, now)):
            if facts.column(name) is None and (name in settings.key or (then.column(name) is None and now.column(name) is None)):
                raise _no_column(name, [each.name for each in facts.columns], "key" if name in settings.key else "ignore", side.shown)
    key = _key(older, newer, then, now, settings, notes)
    columns = _matched(older, newer, then, now, key, settings.ignore, notes)
    second = [each.name for side in (older, newer) for each in side.source.delivery.other_geometries]
    if second:
        notes.append(f"only the first geometry is compared, not {', '.join(dict.fromkeys(second))}; a contract can name more")
    epsg, crs = _reference_system(older, newer, then, now, notes)
    shape = _shape(older, newer, then, now, notes)
    precision = _grid(newer, then, now, epsg, settings.precision, notes)
    z = "z" in shape.dimensions
    text = draft_contract(
        ContractFacts(
            name="diff",
            product_id=_NO_ID,
            epsg=epsg,
            axis_order="lon_lat",
            geometry_type=shape.type,
            coordinate_precision=precision,
            fields=tuple(columns.fields),
            key=key,
            dimensions=shape.dimensions,
            z_precision=_FINEST_Z if z else None,
            m_precision=_FINEST_Z if "m" in shape.dimensions else None,
            null_geometry=True,
            empty_geometry=True,
            spherical=older.source.delivery.geometry is not None and older.source.delivery.geometry.edges == "spherical",
        )
    )
    sources = tuple(
        Adapted(side.source, made, crs=assumed) if made or assumed else side.source
        for side, made, assumed in zip((older, newer), columns.made, crs, strict=True)
    )
    return _written(text, folder), key, sources


def _key(
    older: DiffSide, newer: DiffSide, then: Inferred, now: Inferred, settings: ComparisonSettings, notes: list[str]
) -> tuple[str, ...]:
    """The key that was asked for, or the one that joins the two sides best; why it, into `notes`."""
    facts = _both(now, then, older.shown, settings.ignore)
    names = [each.name for each in now.columns if then.column(each.name) is not None and each.name not in settings.ignore]
    sources = (newer.source, older.source)
    exports = exports_of(sources, (now, then), names, compared_as(now, then))
    path = newer.source.delivery.path
    chosen = asked_key(settings.key, facts, exports, path) if settings.key else joining_key(facts, exports, sources, aside=True)
    notes += chosen.said
    return chosen.columns


def _both(now: Inferred, then: Inferred, shown: str, ignore: Sequence[str]) -> Inferred:
    """The newer side's key candidates, without those that cannot be the key on the older side; near is what nearly is one on both."""
    there = {each.name: each for each in then.keys}
    out = []
    for each in now.keys:
        other = there.get(each.name)
        why = each.why_not or ("does not count" if each.name in ignore else "")
        if not why and other is None:
            why = f"{shown} has no such column"
        elif not why and other is not None:
            why = (
                f"in {shown}: {other.why_not}"
                if other.why_not
                else ""
                if other.kind == each.kind
                else (f"is {each.kind}, in {shown} {other.kind}; a key of another type is another key")
            )
        same = other is not None and other.kind == each.kind and each.name not in ignore
        near = same and other is not None and all(not side.why_not or side.near for side in (each, other))
        out.append(replace(each, why_not=why, near=near))
    return replace(now, keys=tuple(sorted(out, key=lambda each: (bool(each.why_not), each.rank))))


def _matched(
    older: DiffSide, newer: DiffSide, then: Inferred, now: Inferred, key: Sequence[str], ignore: Sequence[str], notes: list[str]
) -> _Columns:
    out = _Columns()
    numbered = {each.source.delivery.fid_column for each in (older, newer)} - set(key)
    for side, mine, other in ((older, then, now), (newer, now, then)):
        only = [each.name for each in mine.columns if other.column(each.name) is None and each.name not in numbered]
        if only:
            notes.append(f"only in {side.shown}, not compared: {', '.join(only)}")
    for each in then.columns:
        twin = now.column(each.name)
        if twin is None or each.name in numbered or (each.name in ignore and each.name not in key):
            continue
        kind = _one_type(each, twin)
        if kind is None:
            kind = FieldType("string")
            kinds = {each.kind.kind, twin.kind.kind}
            timed = bool(kinds & TIMES) and kinds <= {*TIMES, "string"}
            how = "dates and times written in one way" if timed else "text"
            notes.append(f"{each.name} is {each.kind} in {older.shown} and {twin.kind} in {newer.shown}: compared as {how}")
            for made, side in zip(out.made, (older, newer), strict=True):
                there = side.source.delivery.schema.field(each.name).type
                made[each.name] = (pa.string(), times_as_text if timed else as_text(there))
        out.fields.append(FieldFacts(each.name, kind, nullable=each.name not in key))
    return out


def _one_type(one: ColumnFacts, other: ColumnFacts) -> FieldType | None:
    """The type in which both columns can be compared without loss, None where there is none."""
    if one.kind == other.kind:
        return FieldType("integer") if one.integral and other.integral else one.kind
    for mine, its in ((one, other), (other, one)):
        if mine.nulls == mine.rows:  # a column without a value says nothing about its type
            return its.kind
    kinds = {one.kind.kind: one, other.kind.kind: other}
    if set(kinds) == {"integer", "number"}:
        return FieldType("integer") if kinds["number"].integral else FieldType("number")
    if set(kinds) == {"decimal", "integer"}:
        return FieldType("decimal", 38, kinds["decimal"].kind.scale)
    if set(kinds) == {"decimal"}:
        return FieldType("decimal", 38, max(one.kind.scale, other.kind.scale))
    if set(kinds) == {"decimal", "number"}:
        return FieldType("number")
    return None


def _reference_system(
    older: DiffSide, newer: DiffSide, then: Inferred, now: Inferred, notes: list[str]
) -> tuple[int, tuple[str | None, str | None]]:
    """The EPSG code that is compared in (A's), and the CRS to assume for each side that states none."""
    columns = []
    for side, facts in ((older, then), (newer, now)):
        if side.source.delivery.geometry is None or facts.geometry is None:
            raise UsageError(
                f"{side.shown} has no geometry column", field=side.shown, hint="name a spatial file, or its layer: «layer=NAME»"
            )
        columns.append((side, side.source.delivery.geometry, facts.geometry))
    assumed: list[str | None] = [None, None]
    stated = [column.crs for _, column, _ in columns]
    for place, (side, column, measured) in enumerate(columns):
        if stated[place] is not None:
            continue
        assumed[place] = stated[1 - place]
        if assumed[place] is None:
            code, _ = epsg_of(column, measured.bounds, side.shown)
            assumed[place] = f"EPSG:{code}"
        name = identify(assumed[place] or "").code or "that of the other side"
        notes.append(f"{side.shown} states no CRS ({column.note}); {name} is assumed")
    _, column, measured = columns[0]
    epsg, _ = epsg_of(replace(column, crs=assumed[0] or column.crs), measured.bounds, older.shown)
    return epsg, (assumed[0], assumed[1])


def _shape(older: DiffSide, newer: DiffSide, then: Inferred, now: Inferred, notes: list[str]) -> GeometryFacts:
    """Type and dimensions that hold both sides."""
    one, other = then.geometry, now.geometry
    if one is None or other is None:
        raise UsageError("a side has no geometry column", field="geometry", hint="name the layer: «layer=NAME»")
    if not one.ordinates:
        return other
    if not other.ordinates:
        return one
    types = {one.type, other.type}
    kind: GeometryType = one.type if len(types) == 1 else "geometry"
    for single, multi in _MULTI.items():
        if types == {single, multi}:
            kind = multi
    letters = "".join(each for each in "xyzm" if each in one.dimensions and each in other.dimensions)
    dimensions: Dimensions = letters  # type: ignore[assignment]  # x and y are in both
    for side, facts in ((older, one), (newer, other)):
        lost = [each.upper() for each in facts.dimensions if each not in letters]
        if lost:
            notes.append(f"{' and '.join(lost)} only in {side.shown}: not compared")
    return replace(one, type=kind, dimensions=dimensions)


def _grid(newer: DiffSide, then: Inferred, now: Inferred, epsg: int, asked: int | None, notes: list[str]) -> int:
    one, other, column = then.geometry, now.geometry, newer.source.delivery.geometry
    if asked is not None or one is None or other is None or column is None:
        return asked or 0
    theirs = (identify(column.crs).code or "").removeprefix("EPSG:") if column.crs is not None else str(epsg)
    mine, _ = precision_of(epsg, one)
    if theirs == str(epsg):
        finer, why = max(
            (precision_of(epsg, each) for each in (one, other) if each.ordinates or each is one),
            key=lambda each: each[0],
        )
        notes.append(f"grid: {plural(finer, 'decimal')}; {why}")
        return finer
    if theirs.isdigit() and other.ordinates:
        their_grid = metres_per_unit(of_code(int(theirs))) * 10.0 ** -precision_of(int(theirs), other)[0]
        coarsest = math.floor(-math.log10(their_grid / metres_per_unit(of_code(epsg))) + 1e-9)
        mine = possible_precision(epsg, max(0, min(mine, coarsest)))
    notes.append(f"grid: {plural(mine, 'decimal')}, what both sides hold once in EPSG:{epsg}")
    return mine


def _written(text: str, folder: str) -> str:
    path = Path(folder) / "diff.contract.yaml"
    path.write_text(text, encoding="utf-8", newline="\n")
    return str(path)


def _no_column(name: str, names: Sequence[str], option: str, shown: str = "neither side") -> UsageError:
    said = f"{shown} has a column {name}" if shown == "neither side" else f"{shown} has no column {name}"
    return UsageError(said, field=option, hint=f"columns are {', '.join(dict.fromkeys(names))}")
