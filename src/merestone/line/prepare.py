"""What is settled before a row is read: contract, columns, CRS operation, domain, layouts, and whether the short-cut holds.

Not here: reading rows (`receive`), the verdict (`line`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyproj import CRS

from merestone.change.guards import Box
from merestone.contract.body import body, from_body
from merestone.contract.contract import Contract, Derived, Field
from merestone.contract.files import read_contract
from merestone.contract.rules import RULE_VERSION, rules_hash
from merestone.contract.stamp import Stamp
from merestone.contract.succession import breaks
from merestone.dataset.columns import stored_type
from merestone.dataset.current import Current
from merestone.dataset.known import Halves
from merestone.dataset.manifest import Manifest
from merestone.dataset.partition import Partitions, Tree, tree_from_json
from merestone.errors import UsageError
from merestone.gate.delivery import other_crs
from merestone.gate.feature import DEGREES
from merestone.gate.quantities import quantities
from merestone.gate.topology import VERSION as TOPOLOGY_VERSION
from merestone.gate.whereabouts import Ground, Reference
from merestone.geometry.form import Grid
from merestone.identity.digest import LAYOUT, layout_of_contract
from merestone.line.domain import old_layout, source_layout, source_precision
from merestone.line.key_rule import exact_types, key_change, key_record, stops_reading
from merestone.line.key_table import read_key_table
from merestone.line.prepared import Prepared, PublishedRows
from merestone.normalise import crs as crs_stage
from merestone.normalise.cast import PARTITION_COLUMN, CastPlan, plan_cast
from merestone.normalise.crs import Operation
from merestone.publication.publication import Publication
from merestone.publish.files import layout_of
from merestone.results.finding import Finding, Severity
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, Source


def prepare(publication: Publication, head: Current | None, source: Source | None = None, *, evidence: Current | None = None) -> Prepared:
    """Settle everything that needs no row.

    Args:
        publication: how the dataset is made.
        head: the version that the delivery is to follow.
        source: a reader in place of the publication's.
        evidence: a version that tells where positions are expected and how large numbers are, in place of `head`.

    Raises:
        UsageError: the contract is missing or broken, or does not follow from the published one.
        SourceError: the delivery cannot be opened.
        MissingError: a PROJ grid is missing.
    """
    contract = read_contract(publication.contract)
    new_contract = _follows(contract, publication, head)
    source = source or open_source(publication.source)
    delivery = source.delivery
    rule = publication.partition
    key_columns = publication.key.delivered
    cast = plan_cast(
        contract, delivery, dict(publication.columns), key_columns, rule.column if rule.by == "column" else None, publication.extra_columns
    )
    cast = cast.settle(source.batches()) if cast.suspects else cast
    findings = [*delivery.findings, *cast.findings, *crs_stage.check_crs(contract, delivery)]
    findings += exact_types(cast, key_columns, rule.column if rule.by == "column" else None)
    rekeyed, key_table = False, None
    if head is not None:
        now = key_record(publication.key, cast)
        rekeyed, changed = key_change(publication, now, head.manifest)
        findings += changed
        if publication.key_migration not in (None, "renumber") and not any(stops_reading(each, key_columns) for each in findings):
            key_table = read_key_table(str(publication.key_migration), head.manifest.key, now)
    unreadable = any(stops_reading(each, (*key_columns, rule.column, contract.geometry_name)) for each in findings)
    operation: Operation | None = None
    others: list[tuple[str, Operation]] = []
    if not unreadable and delivery.geometry is not None:
        crs_stage.use_grids(publication.crs.grids)
        for name, column, field in _geometries(contract, delivery, cast):
            chosen = crs_stage.operation_for(contract, column, publication.crs, field=field)
            if isinstance(chosen, Finding):
                findings.append(chosen)
                unreadable = True
            elif field is None:
                operation = chosen
            else:
                others.append((name, chosen))
    made = _assemble(
        publication,
        head,
        contract,
        new_contract,
        source,
        cast,
        operation,
        tuple(others),
        findings,
        unreadable=unreadable,
        rekeyed=rekeyed,
        key_table=key_table,
    )
    return made if unreadable else _watching(made, evidence or head)


def _watching(made: Prepared, evidence: Current | None) -> Prepared:
    """With what the rules over a whole delivery need to know before the first row."""
    contract, last = made.contract, evidence.manifest if evidence is not None else None
    grounds = {}
    if made.operation is not None:
        there = _last_extent(last, made.operation, same_crs=made.same_crs) if last is not None else None
        if there is not None and made.operation.swap and not made.same_crs:  # noted as it was delivered, y first
            there = there[1], there[0], there[3], there[2]
        grounds[made.geometry] = _ground(made.geometry, made.operation, contract.extent, contract.crs_epsg, last, there)
    for name, operation in made.other_operations:
        grounds[name] = _ground(name, operation, None, contract.crs_epsg, None, None)
    present = {each.target for each in made.cast.columns if each.place is not None and not each.told}
    known = [each for each in quantities(contract) if each.field.name in present]
    findings = made.findings
    if made.operation is not None and made.operation.source != made.crs:
        before = last.delivery.get("source", {}).get("crs") if last is not None else None
        severity: Severity = "warning" if made.publication.destination else "error"
        accuracy = "accuracy unknown" if made.operation.accuracy_m is None else f"accuracy {made.operation.accuracy_m:g} m"
        if severity == "error" or before != made.operation.source:
            findings = (*findings, other_crs(made.crs, made.operation.source, f"{made.operation.name} ({accuracy})", severity))
    return replace(
        made,
        findings=findings,
        grounds=grounds,
        quantities=tuple(known),
        measuring=CRS.from_user_input(made.operation.source)
        if made.operation is not None and any(each.measured for each in known)
        else None,
        last_distributions=last.delivery.get("distributions", {}) if last is not None else {},
        last_name=f"v{last.version}" if last is not None else "",
        unique=tuple(
            each.name for each in contract.schema_fields if each.unique and each.name in present and made.key_columns != (each.name,)
        ),
    )


def _ground(column: str, operation: Operation, extent: Box | None, epsg: int, last: Manifest | None, there: Box | None) -> Ground:
    """Where the positions of one delivered geometry column are expected."""
    crs = CRS.from_user_input(operation.source)
    degrees = bool(crs.is_geographic) and crs.axis_info[0].unit_name == "degree"
    agreed = f"EPSG:{epsg}"
    references = []
    if extent is not None:
        box = extent if operation.source == agreed else crs_stage.box_in(extent, agreed, operation.source)
        references += [Reference("the contract's extent", box, 0.5)] if box is not None else []
    if there is not None and last is not None:
        references.append(Reference(f"the extent of v{last.version}", there, 1.0))
    area, in_degrees = crs_stage.area_of_use(operation.source), crs_stage.degrees_of_use(operation.source)
    if degrees and area is not None and area[2] > DEGREES[2]:  # across the antimeridian: both ends of the globe
        area = DEGREES[0], area[1], DEGREES[2], area[3]
    if area is not None and area != DEGREES:
        references.append(Reference(f"the area of use of {operation.source}", area, 0.1))
    if degrees:
        references.append(Reference("the range of degrees", DEGREES))
    theirs = crs_stage.area_of_use(agreed) if operation.source != agreed else None
    return Ground(
        column,
        operation.source,
        degrees,
        tuple(references),
        area,
        None if degrees else in_degrees,
        operation.swap,
        (agreed, theirs) if theirs is not None else None,
        crs_stage.box_in(theirs, agreed, operation.source) if theirs is not None else None,
    )


def _geometries(contract: Contract, delivery: Delivery, cast: CastPlan) -> list[tuple[str, GeometryColumn, Field | None]]:
    """The delivered geometry columns that are published: name, description, and the contract's field for a second one."""
    found: list[tuple[str, GeometryColumn, Field | None]] = []
    if delivery.geometry is not None:
        found.append((contract.geometry_name, delivery.geometry, None))
    columns = {each.name: each for each in delivery.other_geometries}
    places = {each.target: each.place for each in cast.columns}
    for each in contract.schema_fields:
        place = places.get(each.name)
        if each.type.kind == "geometry" and place is not None and delivery.schema.field(place).name in columns:
            found.append((each.name, columns[delivery.schema.field(place).name], each))
    return found


def _follows(contract: Contract, publication: Publication, head: Current | None) -> bool:
    """Whether the contract is another than the published one; refuses what cannot follow from it."""
    if head is None:
        return True
    last = head.manifest
    if contract.digest == last.contract_sha256:
        changed = False
    elif str(contract.contract_version) == last.contract_version:
        raise UsageError(
            f"{publication.contract} differs from the contract {last.contract_version} that v{last.version} was published under, "
            "but has the same contract_version",
            field="contract_version",
            hint="raise the stamp: PATCH for words, MINOR or MAJOR for clauses",
        )
    elif contract.contract_version.major != Stamp.parse(last.contract_version).major:
        raise UsageError(
            f"contract {contract.contract_version} is another MAJOR than {last.contract_version}, which is published here",
            field="contract_version",
            hint="give the new major its own destination; the old one stays live beside it",
        )
    else:
        changed = True
        broken = breaks(from_body(last.contract), contract)
        if broken:
            raise UsageError(
                f"contract {contract.contract_version} cannot follow {last.contract_version}, which is published here: {'; '.join(broken)}",
                field="contract_version",
                hint="that is another MAJOR: give it its own destination; the old one stays live beside it",
            )
    rule = publication.partition
    before = last.partitioning
    if before["by"] != rule.by or (rule.by == "column" and before.get("column") != rule.column):
        raise UsageError(
            f"partition is by {rule.by} {rule.column or ''}, the published dataset by {before['by']} {before.get('column') or ''}".rstrip(),
            field="partition",
            hint="keep the scheme; changing it (resort --partition) is not in this version",
        )
    return changed


def _assemble(
    publication: Publication,
    head: Current | None,
    contract: Contract,
    new_contract: bool,
    source: Source,
    cast: CastPlan,
    operation: Operation | None,
    others: tuple[tuple[str, Operation], ...],
    findings: list[Finding],
    *,
    unreadable: bool,
    rekeyed: bool,
    key_table: tuple[Halves, Halves] | None,
) -> Prepared:
    delivery, rule, last = source.delivery, publication.partition, head.manifest if head else None
    target = CRS.from_epsg(contract.crs_epsg)
    grid = Grid(contract.coordinate_precision, contract.geometry.z_precision, contract.geometry.m_precision)
    same_crs = operation is None or operation.is_identity
    delivered = grid
    if operation is not None and not operation.is_identity:
        delivered = Grid(
            source_precision(contract.coordinate_precision, contract.crs_epsg, operation), grid.z, grid.m
        )  # Z and M stay as they are
    epoch = delivery.geometry.epoch if delivery.geometry else None
    domain = {
        "layout": LAYOUT,
        "crs": f"EPSG:{contract.crs_epsg}",
        "precision": grid.precision,
        "z_precision": grid.z_precision,
        "m_precision": grid.m_precision,
        "dimensions": contract.geometry.dimensions,
        "direction": contract.geometry.direction,
        "edges": contract.geometry.edges,
        "epoch": epoch,
    }
    processing = {
        "source_domain": {
            "layout": LAYOUT,
            "crs": operation.source if operation is not None else None,
            "precision": delivered.precision,
            "z_precision": delivered.z_precision,
            "m_precision": delivered.m_precision,
        },
        "rules_hash": rules_hash(contract),
        "rule_version": RULE_VERSION,
        "layout": LAYOUT,
        "operation": operation.to_json() if operation is not None else None,
    }
    if contract.topology_rule_set != "none":
        processing["topology"] = TOPOLOGY_VERSION
    stored = replace(layout_of_contract(contract, publication.key.columns), version=LAYOUT)
    elsewhere = {name: each for name, each in others if not each.is_identity}
    of_source = source_layout(stored, contract, delivered, elsewhere)
    if elsewhere:  # second geometries in another CRS than their field's
        grids = {each.name: each.grid.precision for each in of_source.fields if each.grid is not None}
        processing["second_geometries"] = {
            name: {"precision": grids.get(name), "operation": each.to_json()} for name, each in elsewhere.items()
        }
    old = old_layout(last, stored, contract, publication.key.columns) if last is not None else None
    partitions, tree, bounds = _partitions(publication, last)
    kinds = {each.target: field.type for each, field in zip(cast.columns, cast.schema, strict=True)}
    kinds = dict.fromkeys(publication.key.columns, pa.string()) | kinds  # a derived key is text
    bounds_now = bounds or (0.0, 0.0, 1.0, 1.0)
    layout = layout_of(
        contract,
        tuple((name, kinds[name]) for name in publication.key.columns),
        bounds=bounds_now,
        epoch=epoch,
        target_rows=publication.files.target_rows,
        row_group_rows=publication.files.row_group_rows,
    )
    unit = target.axis_info[0].unit_name
    geographic = bool(target.is_geographic)
    last_extent = _last_extent(last, operation, same_crs=same_crs) if last is not None else None
    known_under = last is not None and last.processing == processing and last.domain == domain and not rekeyed
    if publication.guard.max_extent_shift is not None and last is not None and last.files and last_extent is None:
        known_under = False  # the extent is then that of all rows as they come out
    return Prepared(
        publication=publication,
        contract=contract,
        contract_body=body(contract),
        new_contract=new_contract,
        source=source,
        cast=cast,
        operation=operation,
        other_operations=others,
        findings=tuple(findings),
        unreadable=unreadable,
        geometry=contract.geometry_name,
        delivered_geometry=delivery.geometry.name if delivery.geometry else None,
        delivered_edges=delivery.geometry.edges if delivery.geometry else None,
        key_columns=publication.key.columns,
        partition_column=(PARTITION_COLUMN if PARTITION_COLUMN in cast.schema.names else rule.column) if rule.by == "column" else None,
        partitions=partitions,
        tree=tree,
        bounds=bounds,
        layout=layout,
        stored_layout=stored,
        source_layout=of_source,
        old_layout=old,
        domain=domain,
        processing=processing,
        short_cut=known_under,
        comparable=not rekeyed
        and last is not None
        and all(last.processing.get(part) == processing.get(part) for part in ("source_domain", "second_geometries")),
        same_crs=same_crs,
        rewritten=rekeyed
        or (last is not None and (_measures(from_body(last.contract)) != _measures(contract) or last.domain.get("epoch") != epoch)),
        crs=f"EPSG:{contract.crs_epsg}",
        unit="m" if unit == "metre" else unit,
        metres=111_320.0 if geographic else target.axis_info[0].unit_conversion_factor,
        geographic=geographic,
        limits=DEGREES if geographic else None,
        last_extent=last_extent,
        rekeyed=rekeyed,
        key_table=key_table,
        published=_published_rows(layout.row_schema, last)
        if rekeyed and last is not None
        else PublishedRows(layout.row_schema, publication.key.columns),
    )


def _published_rows(schema: Any, last: Manifest) -> PublishedRows:
    """Rows whose key is of another rule: its columns, in their own types, stand beside today's or in the place of those of the same name."""
    for name, kind in zip(last.key["columns"], last.key["types"], strict=True):
        field = pa.field(name, stored_type(kind))
        schema = schema.set(schema.get_field_index(name), field) if name in schema.names else schema.append(field)
    return PublishedRows(schema, tuple(last.key["columns"]))


def extent_of(manifest: Manifest) -> Box | None:
    """The extent of a version in the CRS of its contract; None where no feature has a position."""
    boxes = np.array([each.bbox for each in manifest.files if each.bbox is not None])
    if not len(boxes):
        return None
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _last_extent(last: Manifest, operation: Operation | None, *, same_crs: bool) -> Box | None:
    """In the CRS of the contract it is that of the files; in another it was noted when the last version was delivered in it."""
    if same_crs:
        return extent_of(last)
    noted = last.delivery.get("extent")
    if noted is None or operation is None or last.delivery.get("source", {}).get("crs") != operation.source:
        return None
    return float(noted[0]), float(noted[1]), float(noted[2]), float(noted[3])


def _measures(contract: Contract) -> dict[str, Derived]:
    return {each.name: each.derived for each in contract.schema_fields if each.derived is not None}


def _partitions(publication: Publication, last: Any) -> tuple[Partitions, Tree | None, tuple[float, float, float, float] | None]:
    rule = publication.partition
    if last is None:
        return Partitions(rule.column if rule.by == "column" else None), None, None
    state = last.partitioning
    bounds = tuple(state["bounds"])
    if rule.by == "column":
        return Partitions(rule.column, state["values"].items()), None, bounds
    return Partitions(None), tree_from_json(state["tree"]) if rule.by == "kdtree" else None, bounds
