"""Faults of single rows: nulls, code lists, patterns, and geometry that is missing, invalid or out of the world.

Not here: types of columns (`normalise.cast`), geometry types, collapse and transforms (`normalise.snap`, `normalise.transform`), faults that only
the whole delivery shows (`delivery`).

One function per rule family. Each takes columns, answers with `RowFaults` and names the clause of docs/reference/contract.md that it enforces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.columnar.patterns import fault_of, matches
from merestone.contract.contract import Contract, Field
from merestone.contract.laws import bound
from merestone.errors import UsageError
from merestone.gate.findings import reasons, rejected
from merestone.geometry import kernel
from merestone.geometry.kernel_values import (
    INFINITE,
    NAN_XY,
    NAN_Z,
    NULL_KIND,
    SHORT_LINE,
    SHORT_RING,
    TRAILING_BYTES,
    UNCLOSED_RING,
    UNREADABLE,
    Scan,
    Shapes,
)
from merestone.json_value import Json
from merestone.later import later
from merestone.results.finding import PASS, REJECT, WARN, RowFaults, Steps
from merestone.rules import catalogue
from merestone.words import plural

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")

DEGREES = (-180.0, -90.0, 180.0, 90.0)
"""What longitude and latitude can be in a geographic CRS in degrees; x before y."""
_LISTED = 12
_NO_TEXTS = frozenset({"", "null", "<null>", "none", "nil", "nan", "n/a", "#n/a", "na", "n.a.", "-", "--", "?", "-9999", "-999", "-99999"})
_NO_NUMBERS = (-9999.0, -99999.0, -999999.0, -999.0, -32768.0, -2147483648.0, -3.4028234663852886e38, -1.7976931348623157e308)
"""What systems write where they have no value."""

Bound = pa.Scalar | int | float | str | None


def check_rows(  # noqa: PLR0913 - each is another look at the same rows
    batch: pa.RecordBatch | pa.Table,
    contract: Contract,
    *,
    delivered: Scan,
    stored: Scan,
    canonical: pa.Array,
    exact: pa.Array | None = None,
    limits: tuple[float, float, float, float] | None = None,
    skip: npt.NDArray[np.bool_] | None = None,
    miscast: Sequence[RowFaults] = (),
    absent: Collection[str] = (),
) -> list[RowFaults]:
    """Every rule that one row decides, over the candidates of a batch; all faults of a row at once.

    Args:
        batch: pyarrow RecordBatch or Table (n rows) with the contract's fields, cast to the contract's types.
        contract: the agreement.
        delivered: scan of the geometry as delivered (before transform and snap): missing, empty, NaN, infinite.
        stored: scan of `canonical`.
        canonical: pyarrow binary array (n), the geometry that would be stored, in the contract's CRS.
        exact: the same before rounding, where it is at hand: it says whether the delivery or the grid makes a geometry invalid.
        limits: xmin, ymin, xmax, ymax that ordinates cannot leave (`DEGREES` where the contract's CRS is geographic), None otherwise.
        skip: (n,) True for rows whose geometry a stage before has rejected already (no transform, collapse).
        miscast: the faults of `cast_batch` for these rows: what could not be cast is null in `batch`, and was no null in the delivery.
        absent: fields that were not delivered, or in another type: a finding says so, and their nulls are none.

    Returns:
        Faults with positions in the batch; empty where all is well.
    """
    usable = np.ones(len(canonical), dtype=np.bool_) if skip is None else ~skip
    faults = [
        *nulls(batch, contract, miscast, absent),
        *substitutes(batch, contract),
        *code_lists(batch, contract),
        *patterns(batch, contract),
        *ranges(batch, contract),
        *sizes(batch, contract),
        *presence(contract, delivered),
        *left_over(contract, delivered),
        *dimensions(contract, delivered),
    ]
    bad_numbers = ordinates(contract, delivered, stored, limits, usable)
    for each in bad_numbers:
        if each.severity == "error":
            usable[each.rows] = False
    return [
        *faults,
        *bad_numbers,
        *outside(contract, stored, canonical, usable),
        *wide(contract, stored, canonical, limits, usable),
        *validity(contract, delivered, stored, canonical, usable, exact),
    ]


def steps(faults: Iterable[RowFaults], length: int, *, crs: str) -> Steps:
    """What the gate says of each row, for lineage: stage `validate`, event type VALIDATE.

    Args:
        faults: from `check_rows`.
        length: rows of the batch.
        crs: the contract's CRS, "EPSG:<code>"; the gate looks at rows that are in it already.
    """
    faults = list(faults)
    verdict = np.full(length, PASS, dtype=np.uint8)
    for each in faults:
        if each.severity == "warning":
            verdict[each.rows] = WARN
    verdict[rejected(faults, length)] = REJECT
    return Steps("validate", "VALIDATE", verdict, reasons(faults, length), crs, crs)


# --- attributes ------------------------------------------------------------------------------------------------------------------------


def nulls(
    batch: pa.RecordBatch | pa.Table, contract: Contract, miscast: Sequence[RowFaults] = (), absent: Collection[str] = ()
) -> list[RowFaults]:
    """`schema_fields[].nullable: false`. A field that is recomputed from the geometry is not looked at."""
    found = []
    for field in _fields(batch, contract):
        if field.nullable or field.name in absent or (field.derived is not None and field.derived.measure):
            continue
        column = batch.column(field.name)
        missing = _where(column.is_null()) if column.null_count else np.empty(0, dtype=np.int64)
        rows = np.setdiff1d(missing, np.concatenate([missing[:0], *(each.rows for each in miscast if each.field == field.name)]))
        if len(rows):
            found.append(catalogue.NULL.faults(field.name, rows, name=field.name))
    return found


def substitutes(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[RowFaults]:
    """`semantics.<field>.null_means`: null is how a missing value is said; no other value stands for it (unless the code list has it)."""
    found = []
    for field in _fields(batch, contract):
        meaning = contract.meaning(field.name)
        if meaning is None or meaning.null_means is None or field.type.kind not in ("string", "integer", "number", "decimal"):
            continue
        column = one_chunk(batch.column(field.name))
        agreed = {str(value).strip().lower() for value in meaning.enum or ()}
        if field.type.kind == "string":
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(column))
            wrong = pc.is_in(folded, value_set=pa.array(sorted(_NO_TEXTS - agreed), pa.string()))
        else:
            marks = [number for number in _NO_NUMBERS if f"{number:g}" not in agreed]
            wrong = pc.is_in(column.cast(pa.float64(), safe=False), value_set=pa.array(marks, pa.float64()))
        rows = _where(pc.and_(wrong, pc.is_valid(column)))
        if len(rows):
            shown = column.take(pa.array(rows, pa.int64())).cast(pa.string())
            observed = pc.binary_join_element_wise("'", shown, "'", "") if field.type.kind == "string" else shown
            found.append(catalogue.NULL_CONVENTION.faults(field.name, rows, observed, name=field.name, means=meaning.null_means))
    return found


def code_lists(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[RowFaults]:
    """`semantics.<field>.enum`. Null is the business of `nullable`; of a list, every item must be in the code list.

    Raises:
        UsageError: the code list does not fit the type of the field.
    """
    found = []
    for field in _fields(batch, contract):
        meaning = contract.meaning(field.name)
        if meaning is None or meaning.enum is None:
            continue
        column = one_chunk(batch.column(field.name))
        in_list = field.type.kind == "list"
        values = pc.list_flatten(column) if in_list else column
        allowed = _allowed(field, meaning.enum, values.type)
        wrong = pc.and_(pc.invert(pc.is_in(values, value_set=allowed)), pc.is_valid(values))
        rows = _where(wrong)
        observed = values.take(pa.array(rows, pa.int64())).cast(pa.string())
        if in_list:
            rows, first = np.unique(pc.list_parent_indices(column).to_numpy(zero_copy_only=False)[rows], return_index=True)
            observed = observed.take(pa.array(first, pa.int64()))
        if len(rows):
            case, severity = ("open", "warning") if meaning.open else ("", "error")
            allowed_words = _one_of(meaning.enum)
            found.append(
                catalogue.ENUM.faults(field.name, rows, observed, case=case, severity=severity, name=field.name, allowed=allowed_words)  # type: ignore[arg-type]  # one of two
            )
    return found


def patterns(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[RowFaults]:
    """`schema_fields[].pattern`: the whole text must match."""
    found = []
    for field in _fields(batch, contract):
        if field.pattern is None or field.type.kind != "string":
            continue
        column = one_chunk(batch.column(field.name))
        rows = _where(pc.and_(pc.is_valid(column), pc.invert(_matches(column, field))))
        if len(rows):
            quoted = pc.binary_join_element_wise("'", column.take(pa.array(rows, pa.int64())), "'", "")
            found.append(catalogue.PATTERN.faults(field.name, rows, quoted, name=field.name, pattern=field.pattern))
    return found


def _matches(column: pa.Array, field: Field) -> pa.Array:
    """Boolean array: which texts the field's pattern matches."""
    pattern = field.pattern or ""
    try:
        found: pa.Array = matches(column, pattern)
    except pa.ArrowInvalid as broken:
        fault = fault_of(pattern)
        if fault is None:
            raise  # the texts are at fault, and the reader has let them pass
        raise UsageError(
            f"the pattern of {field.name} {fault.words}",
            field=f"schema_fields.{field.name}.pattern",
            hint=f"{fault.instead}; «lint(CONTRACT)» shows the place",
        ) from broken
    return found


def ranges(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[RowFaults]:
    """`schema_fields[].min` and `max`; both may be reached."""
    found = []
    for field in _fields(batch, contract):
        if field.min is None and field.max is None:
            continue
        column = one_chunk(batch.column(field.name))
        low, high = (None if each is None else pa.scalar(bound(field.type, each)).cast(column.type) for each in (field.min, field.max))
        rows = _beyond_limits(column, low, high)
        if len(rows):
            shown = column.take(pa.array(rows, pa.int64())).cast(pa.string())
            found.append(catalogue.RANGE.faults(field.name, rows, shown, limits=_limits(field.min, field.max)))
    return found


def sizes(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[RowFaults]:
    """`schema_fields[].min_length` and `max_length` of texts in characters, `min_items` and `max_items` of lists."""
    found = []
    for field in _fields(batch, contract):
        low, high = (field.min_items, field.max_items) if field.type.kind == "list" else (field.min_length, field.max_length)
        if low is None and high is None:
            continue
        rule, unit = (catalogue.ITEMS, "item") if field.type.kind == "list" else (catalogue.LENGTH, "character")
        column = one_chunk(batch.column(field.name))
        counts = pc.list_value_length(column) if field.type.kind == "list" else pc.utf8_length(column)
        rows = _beyond_limits(counts, low, high)
        if len(rows):
            shown = pa.array([plural(each, unit) for each in counts.take(pa.array(rows, pa.int64())).to_pylist()], pa.string())
            found.append(rule.faults(field.name, rows, shown, limits=_limits(low, high)))
    return found


def _beyond_limits(values: pa.Array, low: Bound, high: Bound) -> npt.NDArray[np.int64]:
    """Rows whose value lies below the one or above the other; null and NaN lie nowhere."""
    sides = [compare(values, side) for compare, side in ((pc.less, low), (pc.greater, high)) if side is not None]
    return _where(sides[0] if len(sides) == 1 else pc.or_(*sides))


def _limits(low: Bound, high: Bound) -> str:
    if low is None or high is None:
        return f"at least {low}" if high is None else f"at most {high}"
    return f"from {low} to {high}"


def _allowed(field: Field, enum: tuple[Json, ...], kind: pa.DataType) -> pa.Array:
    texts = [unicodedata.normalize("NFC", value if isinstance(value, str) else str(value)) for value in enum if value is not None]
    # Not silenced: a code that is not a value of the type, or a type that text cannot be cast to, is the contract's fault, and the error says so.
    try:
        return pa.array(texts, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
        raise UsageError(
            f"the code list of {field.name} does not fit its type {field.type}: {fault}",
            field=f"semantics.{field.name}.enum",
            hint="write the values in the field's type; «lint(CONTRACT)» shows the place",
        ) from fault


def _one_of(enum: tuple[Json, ...]) -> str:
    shown = ", ".join(str(value) for value in enum[:_LISTED])
    return f"one of {shown}" + (f", ... ({len(enum)} values)" if len(enum) > _LISTED else "")


# --- geometry --------------------------------------------------------------------------------------------------------------------------


def presence(contract: Contract, delivered: Scan) -> list[RowFaults]:
    """`geometry.nullable` and `geometry.empty`: a missing geometry is a missing value, an empty one is the empty set of points (SFA)."""
    found = []
    name = contract.geometry_name
    if not contract.geometry.nullable:
        rows = np.flatnonzero(delivered.kind == NULL_KIND)
        if len(rows):
            found.append(catalogue.NULL_GEOMETRY.faults(name, rows))
    if not contract.geometry.empty:
        rows = np.flatnonzero(delivered.empty)
        if len(rows):
            found.append(catalogue.EMPTY_GEOMETRY.faults(name, rows))
    return found


def left_over(contract: Contract, delivered: Scan) -> list[RowFaults]:
    """Bytes behind the end of a geometry: what they hold was delivered, and nobody reads it."""
    rows = np.flatnonzero(np.asarray(delivered.flags) & TRAILING_BYTES)
    if not len(rows):
        return []
    return [catalogue.CUT_VALUE.faults(contract.geometry_name, rows)]


def dimensions(contract: Contract, delivered: Scan) -> list[RowFaults]:
    """`geometry.dimensions`: every position has the ordinates that are promised; what is delivered beyond them is left out."""
    promised = contract.geometry.dimensions
    if promised in ("xy", "any"):
        return []
    lacks_z = ("z" in promised) & ~np.asarray(delivered.has_z, dtype=np.bool_)
    lacks_m = ("m" in promised) & ~np.asarray(delivered.has_m, dtype=np.bool_)
    rows = np.flatnonzero(delivered.placed & (lacks_z | lacks_m))
    if not len(rows):
        return []
    words = np.array(["", "no Z", "no M", "no Z and no M"], dtype=object)[lacks_z[rows] + 2 * lacks_m[rows]]
    return [
        catalogue.Z_MISSING.faults(
            contract.geometry_name,
            rows,
            pa.array(words.tolist(), pa.string()),
            promised=promised,
            letters=" and ".join(promised[2:].upper()),
        )
    ]


def ordinates(
    contract: Contract, delivered: Scan, stored: Scan, limits: tuple[float, float, float, float] | None, usable: npt.NDArray[np.bool_]
) -> list[RowFaults]:
    """Coordinates are numbers in a CRS: NaN and infinity are not positions, and 182 is not a longitude.

    The numbers are judged as delivered (a transform must not hide them), the range as stored.
    """
    name, found = contract.geometry_name, []
    flags = np.asarray(delivered.flags)
    finite = np.ones(len(usable), dtype=np.bool_)
    for flag, words in ((NAN_XY, "NaN"), (INFINITE, "infinite"), (NAN_Z, "NaN in Z")):
        rows = np.flatnonzero(finite & (flags & flag > 0))
        finite[rows] = False
        if len(rows):
            found.append(catalogue.ORDINATE.faults(name, rows, what=words))
    if limits is None:
        return found
    inside = usable & finite
    for axis, word in ((0, "longitude"), (1, "latitude")):
        low, high = limits[axis], limits[axis + 2]
        least, most = stored.bounds[:, axis], stored.bounds[:, axis + 2]
        rows = np.flatnonzero(inside & ((least < low) | (most > high)))
        inside[rows] = False
        if len(rows):
            seen = pa.array(np.where(most[rows] > high, most[rows], least[rows])).cast(pa.string())
            observed = pc.binary_join_element_wise(f"{word} ", seen, f" outside {low:g}..{high:g}", "")
            found.append(catalogue.ORDINATE.faults(name, rows, observed, case="range", axis=word, low=low, high=high))
    return found


def _beyond(
    canonical: pa.Array, rows: npt.NDArray[np.int64], low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Of rows whose box reaches out of an extent across the antimeridian those with a part that does: a shape may be cut there."""
    shapes = shapely.from_wkb(canonical.take(pa.array(rows, pa.int64())).to_numpy(zero_copy_only=False), on_invalid="ignore")
    parts, owner = shapely.get_parts(shapes, return_index=True)
    west, south, east, north = shapely.bounds(parts).T
    out = ((west < low[0]) & (east > high[0])) | (south < low[1]) | (north > high[1])
    return np.asarray(rows[np.unique(owner[out])], np.int64)


def outside(contract: Contract, stored: Scan, canonical: pa.Array, usable: npt.NDArray[np.bool_]) -> list[RowFaults]:
    """`extent`: every position lies within it, but for half a step of the grid, which rounding may add."""
    if contract.extent is None:
        return []
    half = 0.5 * 10.0**-contract.coordinate_precision
    low, high = np.array(contract.extent[:2]) - half, np.array(contract.extent[2:]) + half
    west, south, east, north = stored.bounds.T
    beside = (west < low[0]) | (east > high[0]) if low[0] <= high[0] else (west < low[0]) & (east > high[0])
    rows = np.flatnonzero(usable & (beside | (south < low[1]) | (north > high[1])))
    if len(rows) and low[0] > high[0]:
        rows = _beyond(canonical, rows, low, high)
    if not len(rows):
        return []
    boxes = [" ".join(f"{each:.10g}" for each in box) for box in stored.bounds[rows].tolist()]
    observed = pa.array([f"reaches out: {box}" for box in boxes], pa.string())
    agreed = " ".join(f"{each:.10g}" for each in contract.extent)
    return [catalogue.EXTENT.faults(contract.geometry_name, rows, observed, box=agreed)]


def wide(
    contract: Contract, stored: Scan, canonical: pa.Array, limits: tuple[float, float, float, float] | None, usable: npt.NDArray[np.bool_]
) -> list[RowFaults]:
    """A part that is wider than half the globe usually crosses the antimeridian uncut (RFC 7946 section 3.1.9).

    A warning; an error where `negative.antimeridian` promises that such parts are cut or do not occur; nothing where it says `crossing`.
    """
    promised = (contract.addition("negative") or {}).get("antimeridian")
    if limits is None or promised == "crossing":
        return []
    half = (limits[2] - limits[0]) / 2
    rows = np.flatnonzero(usable & (stored.bounds[:, 2] - stored.bounds[:, 0] > half) & (stored.kind != 1) & (stored.kind != 4))
    if not len(rows):
        return []
    shapes = shapely.from_wkb(canonical.take(pa.array(rows, pa.int64())).to_numpy(zero_copy_only=False), on_invalid="ignore")
    parts, owner = shapely.get_parts(shapes, return_index=True)
    boxes = shapely.bounds(parts)
    rows = rows[np.unique(owner[boxes[:, 2] - boxes[:, 0] > half])]
    if not len(rows):
        return []
    return [catalogue.ANTIMERIDIAN.faults(contract.geometry_name, rows, severity="warning" if promised is None else "error", half=half)]


def validity(
    contract: Contract, delivered: Scan, stored: Scan, canonical: pa.Array, usable: npt.NDArray[np.bool_], exact: pa.Array | None = None
) -> list[RowFaults]:
    """Simple Features validity (OGC 06-103r4) of lines and areas, with reason and position; points cannot be invalid.

    Faces of a solid stand upright and above each other; their validity in the plane says nothing: `3d_solid` judges the shell.
    """
    name, found = contract.geometry_name, []
    flags = np.asarray(delivered.flags)
    good = usable.copy()
    for flag, words in (
        (UNREADABLE, "not readable as WKB"),
        (UNCLOSED_RING, "a ring is not closed"),
        (SHORT_RING, "a ring of fewer than four points"),
        (SHORT_LINE, "a line of one point"),
    ):
        rows = np.flatnonzero(good & (flags & flag > 0))
        good[rows] = False
        if len(rows):
            found.append(catalogue.VALIDITY.faults(name, rows, what=words))
    judged = good & ~np.isin(stored.kind, (0, 1, 4)) & ~np.asarray(stored.empty, dtype=np.bool_)
    rows = np.flatnonzero(judged if contract.topology_rule_set != "3d_solid" else judged & ~np.asarray(stored.has_z, dtype=np.bool_))
    if not len(rows):
        return found
    failing = rows[~kernel.valid(canonical if len(rows) == len(canonical) else canonical.take(pa.array(rows, pa.int64())))]
    if len(failing):
        why = pa.array([_reason(text) for text in shapely.is_valid_reason(_shapes(canonical, failing))], pa.string())
        by_grid = shapely.is_valid(_shapes(exact, failing)) if exact is not None else np.zeros(len(failing), np.bool_)
        for case, mine in (("", ~by_grid), ("rounded", by_grid)):
            if mine.any():
                reasons, precision = why.filter(pa.array(mine)), contract.coordinate_precision
                found.append(catalogue.VALIDITY.faults(name, failing[mine], reasons, case=case, precision=precision))
    return found


def _shapes(wkb: pa.Array, rows: npt.NDArray[np.int64]) -> Shapes:
    """Some rows of a column as shapely geometries, None where one cannot be built."""
    some: Shapes = shapely.from_wkb(wkb.take(pa.array(rows, pa.int64())).to_numpy(zero_copy_only=False), on_invalid="ignore")
    return some


def _reason(text: str | None) -> str:
    """Words for GEOS' "Self-intersection[10.5 56]": "self-intersection at 10.5, 56"."""
    if text is None:
        return "cannot be built: a ring or line has too few points"
    what, bracket, place = text.partition("[")
    words = what.lower()
    return f"{words} at {place.rstrip(']').replace(' ', ', ')}" if bracket else words


# --- shared by the rules above ---------------------------------------------------------------------------------------------------------


def _fields(batch: pa.RecordBatch | pa.Table, contract: Contract) -> list[Field]:
    present = set(batch.schema.names)
    return [field for field in contract.schema_fields if field.name in present]


def _where(mask: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.flatnonzero(pc.fill_null(mask, fill_value=False).to_numpy(zero_copy_only=False)).astype(np.int64)
