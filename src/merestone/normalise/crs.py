"""Which CRS a delivery is in, whether that is agreed, and the one PROJ operation that brings it into the contract's CRS.

Not here: axis order by evidence, rounding (`snap`), what a file says about its CRS (`source`).
Clauses: contract section 3, surface 2 (canonical identifiers of any spelling); ISO 19111 (a compound CRS is another CRS than its
horizontal part); RFC 7946 and GeoParquet 1.1 (OGC:CRS84 and EPSG:4326 are one for data in x, y order).
PROJ's database counts as a constant. Its grid folder is passed in, its network is never used.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyproj
import pyproj.network
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError, ProjError
from pyproj.transformer import AreaOfInterest, TransformerGroup

from merestone.contract.contract import Contract, Field
from merestone.errors import MissingError
from merestone.geometry import kernel
from merestone.results.finding import PASS, REJECT, WARN, Finding, RowFaults, Steps
from merestone.source.port import Delivery, GeometryColumn

_SAME_IN_XY = {"OGC:CRS84": "EPSG:4326", "OGC:CRS83": "EPSG:4269", "OGC:CRS27": "EPSG:4267"}
_BEYOND_M = 1e8  # no projection of the Earth reaches so far; where a formula diverges (Mercator at a pole) PROJ returns such numbers
_EQUIVALENT = 70  # PROJ's confidence for "equivalent definition, another name"; 25 is a guess
_SAME_NAMES = 90


class FallbackRule(Protocol):
    """The publication's `crs` clause: strategies in order, what a missing grid does, and where grids are."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Of best, grid, ballpark."""
        ...

    @property
    def missing_grids(self) -> Literal["refuse", "fallback"]:
        """Whether a missing grid stops the run."""
        ...

    @property
    def grids(self) -> str | None:
        """A folder of grid files beside PROJ's own."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """What a CRS is: `code` as AUTHORITY:NUMBER ("EPSG:25833+7837" for a compound without a code of its own), None where unknown."""

    code: str | None
    name: str
    reason: str = ""
    compound: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One way from the delivered CRS to the contract's, fixed for a run and recorded.

    `pipeline` is PROJ's own text of it, in x, y order; `accuracy_m` is None where PROJ does not know it. `swap`: the delivery is y, x by
    contract, and is put into x, y first. `grids` are used, `missing_grids` would have been better. `metres` is the size of one unit of
    the target, None for degrees.
    """

    name: str
    pipeline: str
    source: str
    target: str
    accuracy_m: float | None
    strategy_index: int | None = None
    grids: tuple[str, ...] = ()
    missing_grids: tuple[str, ...] = ()
    swap: bool = False
    from_degrees: bool = False
    metres: float | None = None
    grid_folder: str | None = None

    @property
    def is_identity(self) -> bool:
        """Whether coordinates stay exactly as they are delivered."""
        return self.pipeline == "noop" and not self.swap

    def to_json(self) -> dict[str, Any]:
        """What decides the numbers that come out: the record of a version, and part of the processing key."""
        return {
            "name": self.name,
            "pipeline": self.pipeline,
            "source": self.source,
            "target": self.target,
            "accuracy_m": self.accuracy_m,
            "strategy_index": self.strategy_index,
            "grids": list(self.grids),
            "missing_grids": list(self.missing_grids),
            "swap": self.swap,
            "proj": pyproj.proj_version_str,
            "database": str(pyproj.database.get_database_metadata("EPSG.VERSION")),
        }


def identify(text: str) -> Identity:
    """The authority code of a CRS in any spelling: WKT of any dialect, PROJJSON, URN, http URI, authority string.

    A code counts only where the parameters are those of its definition; codes of units, meridians and ellipsoids never do.
    """
    return _identify(text)


@lru_cache(maxsize=64)
def _identify(text: str) -> Identity:
    try:
        crs = CRS.from_user_input(re.sub(r"^https?://www\.opengis\.net/gml/srs/epsg\.xml#", "EPSG:", text))
    except CRSError as fault:
        return Identity(None, "", f"cannot be read: {str(fault)[:120]}")
    if crs.is_bound and crs.source_crs is not None:
        crs = crs.source_crs
    if crs.is_compound:
        return _identify_compound(crs)
    best: str | None = None
    for match in crs.list_authority(min_confidence=_EQUIVALENT):
        code = f"{match.auth_name}:{match.code}"
        agreed = CRS.from_user_input(code)
        if match.confidence < _SAME_NAMES and _differences(crs, agreed):
            continue
        if best is None or (match.auth_name == "EPSG" and not best.startswith("EPSG:")):
            best = code
    if best is None:
        claimed = crs.to_json_dict().get("id")
        reason = (
            f"its parameters are not those of {claimed['authority']}:{claimed['code']}" if claimed else "no definition has its parameters"
        )
        return Identity(None, crs.name, reason)
    return Identity(_SAME_IN_XY.get(best, best), crs.name)


def _identify_compound(crs: CRS) -> Identity:
    own = [match for match in crs.list_authority(min_confidence=_EQUIVALENT) if match.auth_name == "EPSG"]
    parts = [_identify(part.to_wkt("WKT2_2019")) for part in crs.sub_crs_list]
    if own:
        return Identity(f"EPSG:{own[0].code}", crs.name, compound=True)
    if len(parts) == 2 and all(part.code and part.code.startswith("EPSG:") for part in parts):
        vertical = str(parts[1].code).removeprefix("EPSG:")
        return Identity(f"{parts[0].code}+{vertical}", parts[1].name, compound=True)
    return Identity(None, crs.name, "a compound CRS whose parts have no code", compound=True)


def differences(given: str, agreed: str) -> list[str]:
    """What sets one CRS apart from another, in words: "false northing 0 instead of -6000000". Empty where the parameters agree."""
    return _differences(CRS.from_user_input(given), CRS.from_user_input(agreed))


def _differences(given: CRS, agreed: CRS) -> list[str]:
    if given.is_bound and given.source_crs is not None:
        given = given.source_crs
    if given.is_projected != agreed.is_projected or given.is_compound != agreed.is_compound:
        return [f"a {given.type_name} instead of a {agreed.type_name}"]
    out = []
    if given.ellipsoid is not None and agreed.ellipsoid is not None:
        out += _number("semi-major axis", given.ellipsoid.semi_major_metre, agreed.ellipsoid.semi_major_metre, 1.0)
        out += _number("inverse flattening", given.ellipsoid.inverse_flattening, agreed.ellipsoid.inverse_flattening, 1.0)
    if given.prime_meridian is not None and agreed.prime_meridian is not None:
        one, other = (float(each.longitude) * float(each.unit_conversion_factor) for each in (given.prime_meridian, agreed.prime_meridian))
        out += _number("prime meridian", one, other, float(agreed.prime_meridian.unit_conversion_factor))
    if given.coordinate_operation is not None and agreed.coordinate_operation is not None:
        if given.coordinate_operation.method_name != agreed.coordinate_operation.method_name:
            out.append(f"method {given.coordinate_operation.method_name} instead of {agreed.coordinate_operation.method_name}")
        else:
            theirs = {param.name: param for param in given.coordinate_operation.params}
            for param in agreed.coordinate_operation.params:
                found = theirs.get(param.name)
                unit = float(param.unit_conversion_factor)
                value = 0.0 if found is None else float(found.value) * float(found.unit_conversion_factor)
                out += _number(param.name.lower(), value, float(param.value) * unit, unit)
    if given.axis_info and agreed.axis_info:
        out += _number("unit", given.axis_info[0].unit_conversion_factor, agreed.axis_info[0].unit_conversion_factor, 1.0)
    return out


def _number(name: str, given: float, agreed: float, unit: float) -> list[str]:
    """A difference beyond what spellings of one number leave; both values in base units, told in `unit`."""
    if math.isclose(given, agreed, rel_tol=1e-9, abs_tol=1e-12):
        return []
    return [f"{name} {given / unit:.15g} instead of {agreed / unit:.15g}"]


def check_crs(contract: Contract, delivery: Delivery) -> tuple[Finding, ...]:
    """Whether the CRS of each delivered geometry is known, and either the agreed one or one that can be transformed into it.

    A different CRS is no fault in itself: the publication transforms it. A CRS that cannot be identified, a compound one against a plain
    one, and one that has the agreed name but other parameters are.
    """
    out = []
    if delivery.geometry is not None:
        out += _check_column(delivery.geometry, contract.crs_epsg, "crs")
    for column in delivery.other_geometries:
        field = contract.field(column.name)
        if field is not None and field.type.kind == "geometry":
            out += _check_column(column, field.crs_epsg or contract.crs_epsg, column.name)
    return tuple(out)


def _check_column(column: GeometryColumn, epsg: int, field: str) -> list[Finding]:
    agreed = f"EPSG:{epsg}"
    if column.crs is None:
        observed = f"CRS undefined ({column.note})" if column.note.startswith("srs_id") else f"CRS missing ({column.note or 'none stated'})"
        return [
            Finding(
                "crs", field, "crs_missing", "error", f"{agreed} is agreed", observed, 1,
                remedy="have the producer state the CRS, or assert it with source.crs in the publication (it is recorded as asserted)",
            )
        ]  # fmt: skip
    identity, target = identify(column.crs), CRS.from_epsg(epsg)
    if identity.code == agreed:
        return []
    if identity.name and _same_name(identity.name, target.name):
        reasons = differences(column.crs, agreed) or ([] if identity.code else ["another datum"])
        if reasons:
            return [_mismatch(field, agreed, f"CRS {identity.name} has the name of {agreed} but {', '.join(reasons)}")]
    if identity.compound or target.is_compound:
        shown = identity.code or "a CRS without a code"
        return [_mismatch(field, agreed, f"{shown} ({identity.name}) where {agreed} is agreed")]
    if identity.code is None:
        return [_mismatch(field, agreed, f"CRS could not be identified ({identity.name or column.crs[:60]}): {identity.reason}")]
    return []


def _mismatch(field: str, agreed: str, observed: str) -> Finding:
    return Finding(
        "crs", field, "crs_mismatch", "error", f"{agreed} is agreed", observed, 1,
        remedy=f"have the producer deliver {agreed}, or another CRS with an authority code",
    )  # fmt: skip


def _same_name(one: str, other: str) -> bool:
    """Whether two names differ in punctuation only: LKS92_Latvia_TM and LKS-92 / Latvia TM."""
    return re.sub(r"[\W_]+", "", one).lower() == re.sub(r"[\W_]+", "", other).lower()


def operation_for(contract: Contract, column: GeometryColumn, rule: FallbackRule, *, field: Field | None = None) -> Operation | Finding:
    """The operation for one delivered geometry column under a contract; see `choose_operation`.

    Args:
        contract: its CRS, extent, accuracy and axis order decide.
        column: a column that `check_crs` has passed.
        rule: the publication's `crs` clause.
        field: the contract's field where the column is a second geometry with a CRS of its own.
    """
    epsg = contract.crs_epsg if field is None or field.crs_epsg is None else field.crs_epsg
    area = None
    if contract.extent is not None:
        area = _degrees(contract.extent, CRS.from_epsg(contract.crs_epsg))
    swap = contract.axis_order == "lat_lon"
    return choose_operation(column.crs or "", epsg, rule, contract.required_accuracy_m, area, swap=swap)


def choose_operation(
    source: str,
    target_epsg: int,
    rule: FallbackRule,
    required_accuracy_m: float | None = None,
    area_of_interest: tuple[float, float, float, float] | None = None,
    *,
    swap: bool = False,
) -> Operation | Finding:
    """One operation for the whole delivery, so that two machines and two nights give the same numbers.

    The strategies are tried in order, their place being `strategy_index`: `best` is what PROJ holds for best among all operations it
    knows, `grid` the best of known accuracy that this machine can do, `ballpark` an operation that leaves the datum shift out.

    Args:
        source: the delivered CRS in any spelling.
        target_epsg: the contract's CRS.
        rule: strategies, missing grids, grid folder.
        required_accuracy_m: the accuracy that the contract asks for, if any; unknown accuracy never meets it.
        area_of_interest: west, south, east, north in degrees.
        swap: the delivery is in y, x order by contract.

    Returns:
        The operation, or a finding where no strategy meets the required accuracy.

    Raises:
        MissingError: the best operation needs a grid that is not here, and the rule says refuse.
    """
    target = f"EPSG:{target_epsg}"
    code = identify(source).code
    label = code or source
    into = CRS.from_epsg(target_epsg)
    metres = None if into.is_geographic else into.axis_info[0].unit_conversion_factor
    if code == target:
        return Operation("none needed", "noop", label, target, 0.0, swap=swap, metres=metres)
    use_grids(rule.grids)
    given = CRS.from_user_input(label)
    area = None if area_of_interest is None else AreaOfInterest(*area_of_interest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "best transformation is not available": said below, with names
        group = TransformerGroup(given, into, always_xy=True, area_of_interest=area)
    missing = () if group.best_available else _grid_names(group.unavailable_operations[:1], here=False)
    frame = Operation(
        "",
        "",
        label,
        target,
        None,
        missing_grids=missing,
        swap=swap,
        from_degrees=given.is_geographic,
        metres=metres,
        grid_folder=rule.grids,
    )
    offers = [_offer(frame, index, chosen) for index, chosen in enumerate(_by_strategy(group, rule.strategies))]
    usable = [offer for offer in offers if offer is not None]
    enough = [offer for offer in usable if _meets(offer.accuracy_m, required_accuracy_m)]
    if missing and rule.missing_grids == "refuse":
        best = group.unavailable_operations[0]
        without = _accuracy_words(usable[0] if usable else None, required_accuracy_m)
        raise MissingError(
            f"missing grid {', '.join(missing)} for {best.name} (accuracy {best.accuracy:g} m), {label} to {target}; without it: {without}",
            field="crs.grids",
            hint="put the grid file into the folder that crs.grids names, or allow worse with crs.missing_grids: fallback",
        )
    if enough:
        return enough[0]
    words = _accuracy_words(usable[0] if usable else None, required_accuracy_m)
    grids = f"; missing grid {', '.join(missing)}" if missing else ""
    return Finding(
        "crs", "crs", "no_transform", "error", f"{label} to {target}" + _asked(required_accuracy_m), f"{words}{grids}", 1,
        remedy="install the grid, deliver the agreed CRS, or agree on another accuracy",
    )  # fmt: skip


def apply_operation(wkb: Any, operation: Operation) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Geometries in the target CRS, x and y only; Z and M stay.

    Args:
        wkb: a pyarrow binary array.
        operation: as chosen.

    Returns:
        ISO WKB, and a mask of the rows for which the operation gives no value somewhere (those rows come back with such values in them).
        Ordinates that were no numbers before stay as they are and fail nothing here.
    """
    failed = np.zeros(len(wkb), dtype=bool)
    if operation.is_identity:
        return wkb, failed
    xy = kernel.coordinates(wkb)
    x, y = (xy[:, 1], xy[:, 0]) if operation.swap else (xy[:, 0], xy[:, 1])
    moved = np.column_stack([x, y])
    known = np.isfinite(moved).all(axis=1)
    if operation.pipeline != "noop":
        use_grids(operation.grid_folder)
        there = np.column_stack(_transformer(operation.pipeline, operation.grid_folder).transform(moved[known, 0], moved[known, 1]))
        moved[known] = there
        lost = np.zeros(len(moved), dtype=bool)
        lost[known] = ~_has_value(there, operation)
        failed = _any_per_row(lost, kernel.scan(wkb).vertices)
    return kernel.with_coordinates(wkb, moved), failed


def no_transform_faults(operation: Operation, failed: npt.NDArray[np.bool_], wkb: Any, field: str) -> list[RowFaults]:
    """The fault of the rows that an operation gave no value for; empty where there are none.

    Args:
        operation: as applied.
        failed: the mask of `apply_operation`.
        wkb: the geometries as delivered.
        field: the geometry column.
    """
    rows = np.flatnonzero(failed)
    if not len(rows):
        return []
    at_pole = np.zeros(len(rows), dtype=bool)
    if operation.from_degrees:
        held = wkb.take(pa.array(rows))
        latitude = kernel.coordinates(held)[:, 0 if operation.swap else 1]
        at_pole = _any_per_row(np.abs(np.abs(latitude) - 90.0) < 1e-9, kernel.scan(held).vertices)
    polar, other = f"{operation.target} has no value at latitude -90 or 90", f"{operation.target} has no value at some of its vertices"
    return [
        RowFaults(
            "crs", field, "no_transform", "error", f"positions that {operation.target} can express", rows,
            pa.array(np.where(at_pole, polar, other).tolist(), pa.string()), "cut the feature to the area of use, or leave it out",
        )
    ]  # fmt: skip


def transform_steps(operation: Operation, failed: npt.NDArray[np.bool_], rows: int) -> Steps:
    """What the CRS stage did to the rows of one batch."""
    verdict = np.full(rows, PASS if operation.accuracy_m is not None else WARN, dtype=np.uint8)
    verdict[failed] = REJECT
    warned = f"{operation.name}: accuracy unknown"
    words = np.array([None, warned, f"{operation.name}: no value in {operation.target}"], dtype=object)
    return Steps(
        "crs_normalize",
        "TRANSFORM",
        verdict,
        pa.array(words[verdict].tolist(), pa.string()),
        operation.source,
        operation.target,
        strategy_index=operation.strategy_index,
        accuracy_m=operation.accuracy_m,
        tool_version=f"PROJ {pyproj.proj_version_str}",
    )


def largest_ordinate(crs: str) -> float:
    """The largest absolute ordinate in the area of use of a CRS, in its own units, for the range rule of grids."""
    given = CRS.from_user_input(crs)
    if given.is_geographic:
        return 180.0
    box = area_of_use(crs)
    return 2.1e7 / given.axis_info[0].unit_conversion_factor if box is None else max(abs(each) for each in box)


@lru_cache(maxsize=64)
def area_of_use(crs: str) -> tuple[float, float, float, float] | None:
    """Where a CRS is meant to be used: xmin, ymin, xmax, ymax in its own units; None where the EPSG dataset does not say.

    Across the antimeridian xmax is beyond 180 for a geographic CRS.
    """
    given = CRS.from_user_input(crs)
    degrees = degrees_of_use(crs)
    if degrees is None or given.geodetic_crs is None:
        return None
    if given.is_geographic:
        return degrees
    west, south, east, north = degrees
    try:
        into = Transformer.from_crs(given.geodetic_crs, given, always_xy=True)
        box = into.transform_bounds(west, south, east - 360.0 if east > 180.0 else east, north)
    except ProjError:  # a projection without a place for its own area of use: the area says nothing then
        return None
    unit = given.axis_info[0].unit_conversion_factor
    known = all(math.isfinite(each) and abs(each) * unit < _BEYOND_M for each in box)
    return (float(box[0]), float(box[1]), float(box[2]), float(box[3])) if known else None


@lru_cache(maxsize=64)
def degrees_of_use(crs: str) -> tuple[float, float, float, float] | None:
    """The area of use of a CRS in degrees: west, south, east, north; east is beyond 180 across the antimeridian."""
    area = CRS.from_user_input(crs).area_of_use
    if area is None:
        return None
    return area.west, area.south, area.east + (360.0 if area.east < area.west else 0.0), area.north


def box_in(box: tuple[float, float, float, float], crs: str, other: str) -> tuple[float, float, float, float] | None:
    """The box around a box in another CRS, x before y; None where it has no place there."""
    try:
        found = Transformer.from_crs(crs, other, always_xy=True).transform_bounds(*box)
    except (CRSError, ProjError):  # no way from one to the other: the box has no place there
        return None
    return (float(found[0]), float(found[1]), float(found[2]), float(found[3])) if all(map(math.isfinite, found)) else None


def use_grids(folder: str | None) -> None:
    """Let PROJ look into a folder for grids, and never on the network. Holds for the process; repeating it changes nothing."""
    pyproj.network.set_network_enabled(active=False)  # type: ignore[attr-defined]  # a compiled function without a stub
    if folder is not None and folder not in pyproj.datadir.get_data_dir().split(os.pathsep):
        pyproj.datadir.append_data_dir(folder)


@lru_cache(maxsize=16)
def _transformer(pipeline: str, folder: str | None) -> Transformer:
    """PROJ's transformer for a pipeline; pyproj keeps one per thread behind it. The folder only tells two set-ups apart."""
    del folder
    return Transformer.from_pipeline(pipeline)


def _by_strategy(group: TransformerGroup, strategies: Sequence[str]) -> list[Transformer | None]:
    exact = [each for each in group.transformers if not _is_ballpark(each)]
    rough = [each for each in group.transformers if _is_ballpark(each)]
    offers = {
        "best": exact[0] if exact and group.best_available else None,
        "grid": next((each for each in exact if each.accuracy is not None and each.accuracy >= 0), None),
        "ballpark": rough[0] if rough else None,
    }
    return [offers.get(each) for each in strategies]


def _is_ballpark(transformer: Transformer) -> bool:
    return "ballpark" in transformer.description.lower()


def _offer(frame: Operation, index: int, chosen: Transformer | None) -> Operation | None:
    if chosen is None:
        return None
    accuracy = chosen.accuracy if chosen.accuracy is not None and chosen.accuracy >= 0 and not _is_ballpark(chosen) else None
    pipeline = "noop" if chosen.definition.startswith("proj=noop") else chosen.definition
    grids = _grid_names(chosen.operations or (), here=True)
    return replace(frame, name=chosen.description, pipeline=pipeline, accuracy_m=accuracy, strategy_index=index, grids=grids)


def _grid_names(operations: Sequence[Any], *, here: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(grid.short_name for each in operations for grid in each.grids if bool(grid.available) == here))


def _meets(accuracy: float | None, required: float | None) -> bool:
    return required is None or (accuracy is not None and accuracy <= required)


def _accuracy_words(offer: Operation | None, required: float | None) -> str:
    asked = " (none is required)" if required is None else f" where {required} m is required"
    if offer is None:
        return "no operation" + asked
    return ("accuracy unknown (ballpark)" if offer.accuracy_m is None else f"accuracy {offer.accuracy_m:g} m") + asked


def _asked(required: float | None) -> str:
    return "" if required is None else f" within {required} m"


def _has_value(xy: npt.NDArray[np.float64], operation: Operation) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(xy).all(axis=1)
    if operation.metres is None:
        return np.asarray(finite & (np.abs(xy[:, 1]) <= 90.0 + 1e-9))
    return np.asarray(finite & (np.abs(xy) * operation.metres < _BEYOND_M).all(axis=1))


def _any_per_row(vertices: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether any vertex of each row is marked."""
    before = np.concatenate([[0], np.cumsum(vertices)])
    ends = np.cumsum(counts)
    return np.asarray(before[ends] > before[ends - counts])


def _degrees(extent: tuple[float, float, float, float], crs: CRS) -> tuple[float, float, float, float] | None:
    if crs.is_geographic:
        return extent
    try:
        west, south, east, north = Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform_bounds(*extent)
    except ProjError:  # an extent beyond what the projection can turn back
        return None
    return (west, south, east, north) if all(map(math.isfinite, (west, south, east, north))) else None
