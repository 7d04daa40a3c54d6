"""What the rules over a whole delivery need to know before the first row is read.

Not here: the rules (`gate.whereabouts`, `gate.quantities`, `gate.fineness`, `gate.freshness`,
`gate.delivery`), what is measured of each batch (`receive_batch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyproj import CRS

from merestone.change.guards import Box
from merestone.contract.contract import Contract
from merestone.dataset.manifest import Manifest
from merestone.gate.feature import DEGREES
from merestone.gate.fineness import promised_decimals
from merestone.gate.freshness import Clock, clock
from merestone.gate.quantities import Quantity, quantities
from merestone.gate.whereabouts import Ground, Reference
from merestone.json_value import Json
from merestone.line.preparing.projection import Projection
from merestone.reference.area import area_of_use, box_in, degrees_of_use
from merestone.reference.operation import Operation
from merestone.reference.systems import is_degrees, system


@dataclass(frozen=True, slots=True)
class WholeRules:
    """What is measured of every row. Nothing at all for a comparison, which holds no delivery to a contract.

    Args:
        grounds: per geometry column, where its positions are expected.
        geometries: the delivered geometry columns, each with the decimals that are promised of it; None where it is transformed.
        quantities: the numbers that have a unit.
        measuring: the CRS in which shapes are measured to judge them; None where none is.
        last_distributions: how large the numbers were in the last version, which is called last_name.
        last_coordinates: how fine its geometries were, by column; last_crs: the CRS that they were delivered in.
        unique: the fields in which no value stands twice.
        clock: what the age of the data is read from; last_newest: what the last version kept of that.
    """

    grounds: Mapping[str, Ground] = field(default_factory=dict)
    geometries: Mapping[str, int | None] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    measuring: CRS | None = None
    last_distributions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    last_name: str = ""
    last_coordinates: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    last_crs: str | None = None
    unique: tuple[str, ...] = ()
    clock: Clock | None = None
    last_newest: Mapping[str, Json] | None = None


def whole_rules(
    contract: Contract,
    projection: Projection,
    present: set[str],
    key_columns: tuple[str, ...],
    last: Manifest | None,
    last_extent: Box | None,
    now: datetime,
) -> WholeRules:
    """The rules over a whole delivery.

    Args:
        contract: the agreement.
        projection: how positions are delivered.
        present: the fields that are delivered.
        key_columns: a key of one column is unique by itself.
        last: a version that says where positions are expected and how large numbers are.
        last_extent: its extent in the CRS of the delivery, in x, y order as delivered; None where that is not known.
        now: the time that its age is judged at, aware.
    """
    age = clock(contract, now)
    geometry, grounds = contract.geometry_name, {}
    operation = projection.operation
    if operation is not None:
        there = last_extent
        if there is not None and operation.swap and not projection.same_crs:  # noted as it was delivered, y first
            there = there[1], there[0], there[3], there[2]
        stated = None if "extent" in contract.confirm else contract.extent  # a guess is not evidence
        grounds[geometry] = ground_of(geometry, operation, stated, contract.crs_epsg, last, there)
    for name, other in projection.others:
        grounds[name] = ground_of(name, other, None, contract.crs_epsg, None, None)
    known = tuple(each for each in quantities(contract) if each.field.name in present)
    measured = operation is not None and any(each.measured for each in known)
    columns = ((geometry, operation), *projection.others)
    return WholeRules(
        grounds=grounds,
        geometries={
            name: promised_decimals(contract, contract.field(name)) if each is None or each.is_identity else None for name, each in columns
        },
        quantities=known,
        measuring=system(operation.source) if operation is not None and measured else None,
        last_distributions=last.delivery.get("distributions", {}) if last is not None else {},
        last_name=f"v{last.version}" if last is not None else "",
        last_coordinates=last.delivery.get("coordinates", {}) if last is not None else {},
        last_crs=last.delivery.get("source", {}).get("crs") if last is not None else None,
        unique=tuple(each.name for each in contract.schema_fields if each.unique and each.name in present and key_columns != (each.name,)),
        clock=age if age is not None and age.column in present else None,
        last_newest=last.delivery.get("newest") if last is not None else None,
    )


def ground_of(column: str, operation: Operation, extent: Box | None, epsg: int, last: Manifest | None, there: Box | None) -> Ground:
    """Where the positions of one delivered geometry column are expected.

    Args:
        column: its name.
        operation: its way into the contract's CRS.
        extent: in the contract's CRS, as a person has stated it.
        epsg: the contract's CRS.
        last: the last version.
        there: its extent in the CRS of the delivery.
    """
    degrees = is_degrees(system(operation.source))
    agreed = f"EPSG:{epsg}"
    references = []
    if extent is not None:
        box = extent if operation.source == agreed else box_in(extent, agreed, operation.source)
        references += [Reference("the contract's extent", box, 0.5)] if box is not None else []
    if there is not None and last is not None:
        references.append(Reference(f"the extent of v{last.version}", there, 1.0, f"v{last.version}"))
    known = () if degrees else tuple(each.box for each in references)
    area, in_degrees = area_of_use(operation.source), degrees_of_use(operation.source)
    if degrees and area is not None and area[2] > DEGREES[2]:  # across the antimeridian: both ends of the globe
        area = DEGREES[0], area[1], DEGREES[2], area[3]
    if area is not None and area != DEGREES:
        references.append(Reference(f"the area of use of {operation.source}", area, 0.1))
    theirs = area_of_use(agreed) if operation.source != agreed else None
    theirs_here = box_in(theirs, agreed, operation.source) if theirs is not None else None
    if theirs_here is not None:
        references.append(Reference(f"the area of use of {agreed}", theirs_here, 0.1))
    if degrees:
        references.append(Reference("the range of degrees", DEGREES))
    return Ground(
        column,
        operation.source,
        degrees,
        tuple(references),
        area,
        None if degrees else in_degrees,
        operation.swap,
        (agreed, theirs) if theirs is not None else None,
        theirs_here,
        stated=extent is not None,
        pairs=tuple((box, there_too) for box in known if (there_too := box_in(box, operation.source, "EPSG:4326")) is not None),
    )
