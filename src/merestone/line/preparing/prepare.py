"""What is settled before a row is read: contract, columns, CRS operation, domain, layouts, and what the parent still says.

Not here: reading rows (`receive`), the order of the line (`publish`), the rules over a whole delivery (`whole_rules`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from merestone.change.guards import Box
from merestone.contract.body import from_body
from merestone.contract.contract import Contract, Derived, Field
from merestone.contract.files import read_contract
from merestone.contract.rules_hash import rule_version, rules_hash
from merestone.dataset.columns import stored_type
from merestone.dataset.current import Current
from merestone.dataset.known import Halves
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.dataset.scheme import Scheme
from merestone.errors import UsageError
from merestone.gate.delivery import other_crs
from merestone.gate.feature import DEGREES
from merestone.geometry.kernel_values import Grid
from merestone.identity.digest import LAYOUT, layout_of_contract
from merestone.json_value import JsonObject
from merestone.line.comparing.published_rows import PublishedRows
from merestone.line.preparing.contract_change import is_another
from merestone.line.preparing.digest_layouts import DigestLayouts, old_layout, source_layout
from merestone.line.preparing.key_rule import exact_types, key_change, key_record, stops_reading
from merestone.line.preparing.key_table import read_key_table
from merestone.line.preparing.parent_terms import ParentTerms
from merestone.line.preparing.placement import placement_after
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.projection import Projection
from merestone.line.preparing.reading import Reading, placing_column
from merestone.line.preparing.whole_rules import WholeRules, whole_rules
from merestone.normalise.agreed_crs import check_crs, is_agreed
from merestone.normalise.cast import CastPlan, plan_cast
from merestone.normalise.epochs import check_epoch, stored_epoch
from merestone.normalise.transform import operation_for
from merestone.publication.publication import CrsRule, Publication
from merestone.reference.ground import metres_per_unit, unit_name
from merestone.reference.identity import identify
from merestone.reference.operation import Operation
from merestone.reference.systems import horizontal, of_code
from merestone.results.finding import Finding
from merestone.source.grids import GridFolders
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, Source
from merestone.writer.files import FileLayout, layout_of

_NO_BOUNDS = (0.0, 0.0, 1.0, 1.0)  # of the Hilbert order, until the extent of a first version is known


def prepare(
    publication: Publication,
    head: Current | None,
    source: Source | None = None,
    *,
    scheme: Scheme | None = None,
    evidence: Current | None = None,
    versions: Iterable[HistoryLine] = (),
    now: datetime,
) -> Prepared:
    """Settle everything that needs no row.

    Args:
        publication: how the dataset is made.
        head: the version that the delivery is to follow.
        source: a reader in place of the publication's.
        scheme: how `head` places its rows.
        evidence: a version that says what is expected, where nothing follows it.
        versions: all versions of the dataset, newest first; read only where the contract is another than the published one.
        now: the time that the age of the delivery is judged at, aware.

    Raises:
        UsageError: the contract is missing or broken, or does not follow from the published one.
        StampError: its stamp is taken, or lower than the published one.
        SourceError: the delivery cannot be opened.
        MissingError: a PROJ grid is missing.
    """
    contract = read_contract(publication.contract)
    last = head.manifest if head is not None else None
    published = (head or evidence).manifest if (head or evidence) is not None else None  # type: ignore[union-attr]  # one of them is there
    witness = published if published is not None and published.features else None  # a version without features says nothing of them
    new_contract = is_another(contract, publication.contract, published, versions) or last is None
    _same_scheme(publication, last)
    source = source or open_source(publication.source)
    delivery = source.delivery
    reading = _reading(publication, contract, delivery)
    placed_by = publication.partition.column if publication.partition.by == "column" else None
    findings = [*delivery.findings, *reading.cast.findings, *check_crs(contract, delivery, publication.crs.accept)]
    findings += exact_types(reading.cast, publication.key.delivered, placed_by)
    if delivery.geometry is not None:
        findings += check_epoch(delivery.geometry, *_delivered_before(witness))
    rekeyed, key_table, changed = _key_change(publication, reading, last, findings)
    findings += changed
    needed = (*publication.key.delivered, publication.partition.column, contract.geometry_name)
    unreadable = any(stops_reading(each, needed) for each in findings)
    operation, others, impossible = (None, (), []) if unreadable else _operations(publication, contract, delivery, reading.cast)
    findings += impossible
    unreadable |= bool(impossible)
    projection = _projection(contract, operation, others)
    domain, processing, digests = _digests(publication, contract, delivery, projection, last)
    layout = _layout(publication, contract, delivery, reading.cast, last)
    placement, partitions = placement_after(publication.partition, last, scheme)
    parent = _parent_terms(
        publication,
        contract,
        last,
        digests,
        domain,
        processing,
        layout,
        extent=last_extent(last, projection),
        new_contract=new_contract,
        rekeyed=rekeyed,
        key_table=key_table,
    )
    rules = WholeRules()
    if not unreadable:
        present = {each.target for each in reading.cast.columns if each.place is not None}
        rules = whole_rules(contract, projection, present, publication.key.columns, witness, last_extent(witness, projection), now)
        findings += _another_crs(publication, projection, witness)
    return Prepared(
        publication=publication,
        contract=contract,
        source=source,
        reading=reading,
        projection=projection,
        digests=digests,
        placement=placement,
        partitions=partitions,
        parent=parent,
        rules=rules,
        layout=layout,
        domain=domain,
        processing=processing,
        findings=tuple(findings),
        unreadable=unreadable,
        columnless=_is_columnless(delivery),
    )


def _is_columnless(delivery: Delivery) -> bool:
    """Whether nothing is delivered but a geometry; columns of KML's own are there in each document, also in one without a placemark."""
    own = (delivery.geometry is not None) + len(delivery.other_geometries)
    return len(delivery.schema) == own or (delivery.driver == "KML" and delivery.rows == 0)


# --- reading ---------------------------------------------------------------------------------------------------------------------------


def _reading(publication: Publication, contract: Contract, delivery: Delivery) -> Reading:
    column = publication.partition.column if publication.partition.by == "column" else None
    cast = plan_cast(contract, delivery, dict(publication.columns), publication.key.delivered, column, publication.extra_columns)
    return Reading(
        cast=cast,
        key=publication.key,
        geometry=contract.geometry_name,
        delivered_geometry=delivery.geometry.name if delivery.geometry is not None else None,
        partition_column=placing_column(cast, column) if column is not None else None,
    )


def _key_change(
    publication: Publication, reading: Reading, last: Manifest | None, findings: Sequence[Finding]
) -> tuple[bool, tuple[Halves, Halves] | None, list[Finding]]:
    """Whether keys are made by another rule than the published ones, the table of old and new keys, and what is to be said of it."""
    if last is None:
        return False, None, []
    now = key_record(publication.key, reading.cast)
    rekeyed, changed = key_change(publication, now, last)
    table = None
    if publication.key_migration not in (None, "renumber") and not any(
        stops_reading(each, publication.key.delivered) for each in (*findings, *changed)
    ):
        table = read_key_table(str(publication.key_migration), last.key, now)
    return rekeyed, table, changed


# --- positions -------------------------------------------------------------------------------------------------------------------------


def _operations(
    publication: Publication, contract: Contract, delivery: Delivery, cast: CastPlan
) -> tuple[Operation | None, tuple[tuple[str, Operation], ...], list[Finding]]:
    """The operation of the primary geometry, those of the second ones, and what stands in their way."""
    operation: Operation | None = None
    others: list[tuple[str, Operation]] = []
    impossible: list[Finding] = []
    grids = GridFolders.of(publication.crs.grids)
    for name, column, field in _geometries(contract, delivery, cast):
        chosen = operation_for(contract, column, _fallback(publication, contract, column, field), grids, field=field)
        if isinstance(chosen, Finding):
            impossible.append(chosen)
        elif field is None:
            operation = chosen
        else:
            others.append((name, chosen))
    return operation, tuple(others), impossible


def _delivered_before(last: Manifest | None) -> tuple[JsonObject | None, str]:
    """How the last version was delivered, and what it is called."""
    return (None, "") if last is None else (last.delivery.get("source"), f"v{last.version}")


def _fallback(publication: Publication, contract: Contract, column: GeometryColumn, field: Field | None) -> CrsRule:
    """The `crs` clause; where the delivered CRS is refused anyway, a missing grid does not hide what else is wrong."""
    epsg = contract.crs_epsg if field is None or field.crs_epsg is None else field.crs_epsg
    accepted = is_agreed(column, epsg) or (column.crs is not None and identify(column.crs).code in publication.crs.accept)
    return publication.crs if accepted else replace(publication.crs, missing_grids="fallback")


def _projection(contract: Contract, operation: Operation | None, others: tuple[tuple[str, Operation], ...]) -> Projection:
    target = of_code(contract.crs_epsg)
    geographic = bool(horizontal(target).is_geographic)
    return Projection(
        operation=operation,
        others=others,
        crs=f"EPSG:{contract.crs_epsg}",
        unit=unit_name(target),
        metres=metres_per_unit(target),
        geographic=geographic,
        limits=DEGREES if geographic else None,
    )


def _another_crs(publication: Publication, projection: Projection, last: Manifest | None) -> list[Finding]:
    """What is to be said of a delivery in another CRS that the publication accepts; `check_crs` refuses the others."""
    operation = projection.operation
    if operation is None or operation.source == projection.crs or operation.source not in publication.crs.accept:
        return []
    before = last.delivery.get("source", {}).get("crs") if last is not None else None
    accuracy = "accuracy unknown" if operation.accuracy_m is None else f"accuracy {operation.accuracy_m:g} m"
    if before == operation.source:
        return []
    return [other_crs(projection.crs, operation.source, f"{operation.name} ({accuracy})")]


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


# --- digests ---------------------------------------------------------------------------------------------------------------------------


def _digests(
    publication: Publication, contract: Contract, delivery: Delivery, projection: Projection, last: Manifest | None
) -> tuple[JsonObject, JsonObject, DigestLayouts]:
    """The domain and the processing key as manifests have them, and the layouts of the digests."""
    operation = projection.operation
    grid = Grid(contract.coordinate_precision, contract.geometry.z_precision, contract.geometry.m_precision)
    stored = replace(layout_of_contract(contract, publication.key.columns), version=LAYOUT)
    elsewhere = {name: each for name, each in projection.others if not each.is_identity}
    of_source, finer = source_layout(stored, contract, operation, elsewhere)
    delivered = of_source.grid
    domain = {
        "layout": LAYOUT,
        "crs": projection.crs,
        "precision": grid.precision,
        "z_precision": grid.z_precision,
        "m_precision": grid.m_precision,
        "dimensions": contract.geometry.ordinates,
        "direction": contract.geometry.direction,
        "edges": contract.geometry.edges,
        "epoch": stored_epoch(delivery.geometry, contract.crs_epsg),
    }
    numbers = {each.name: each.number.to_json() for each in stored.fields if each.number is not None}
    if numbers:
        domain["numbers"] = numbers
    processing = {
        "source_domain": {
            "layout": LAYOUT,
            "crs": operation.source if operation is not None else None,
            "precision": delivered.precision,
            "z_precision": delivered.z_precision,
            "m_precision": delivered.m_precision,
        },
        "rules_hash": rules_hash(contract),
        "rule_version": rule_version(contract),
        "layout": LAYOUT,
        "operation": operation.to_json() if operation is not None else None,
    }
    if elsewhere:  # second geometries in another CRS than their field's
        grids = {each.name: each.grid.precision for each in of_source.fields if each.grid is not None}
        processing["second_geometries"] = {
            name: {"precision": grids.get(name), "operation": each.to_json()} for name, each in elsewhere.items()
        }
    return (
        domain,
        processing,
        DigestLayouts(
            stored=stored,
            source=of_source,
            old=old_layout(last, stored, contract, publication.key.columns) if last is not None else None,
            one=projection.changes_nothing and of_source == stored,
            finer=finer,
        ),
    )


def _layout(publication: Publication, contract: Contract, delivery: Delivery, cast: CastPlan, last: Manifest | None) -> FileLayout:
    """How rows stand in files."""
    kinds = {each.target: field.type for each, field in zip(cast.columns, cast.schema, strict=True)}
    kinds = dict.fromkeys(publication.key.columns, pa.string()) | kinds  # a derived key is text
    return layout_of(
        contract,
        tuple((name, kinds[name]) for name in publication.key.columns),
        bounds=tuple(last.partitioning["bounds"]) if last is not None else _NO_BOUNDS,
        epoch=stored_epoch(delivery.geometry, contract.crs_epsg),
        target_rows=publication.files.target_rows,
        row_group_rows=publication.files.row_group_rows,
    )


# --- the parent ------------------------------------------------------------------------------------------------------------------------


def _parent_terms(  # noqa: PLR0913 - each is settled by another part of the preparation
    publication: Publication,
    contract: Contract,
    last: Manifest | None,
    digests: DigestLayouts,
    domain: JsonObject,
    processing: JsonObject,
    layout: FileLayout,
    *,
    extent: Box | None,
    new_contract: bool,
    rekeyed: bool,
    key_table: tuple[Halves, Halves] | None,
) -> ParentTerms:
    other_rules = last is None or any(last.processing.get(part) != processing[part] for part in ("rules_hash", "rule_version"))
    known_under = last is not None and last.processing == processing and last.domain == domain and not rekeyed
    if publication.guard.max_extent_shift is not None and last is not None and last.features and extent is None:
        known_under = False  # the extent is then that of all rows as they come out
    same_source = last is not None and all(
        last.processing.get(part) == processing.get(part) for part in ("source_domain", "second_geometries")
    )
    agreed_anew = last is not None and (
        _measures(from_body(last.contract)) != _measures(contract) or last.domain.get("epoch") != domain["epoch"]
    )
    return ParentTerms(
        new_contract=new_contract,
        short_cut=known_under,
        comparable=same_source and not rekeyed,
        other_rules=other_rules,
        rewritten=rekeyed or agreed_anew,
        rekeyed=rekeyed,
        key_table=key_table,
        keeps_rows=digests.old is None and not rekeyed,
        extent=extent,
        published=_published_rows(layout.row_schema, last)
        if rekeyed and last is not None
        else PublishedRows(layout.row_schema, publication.key.columns),
    )


def _same_scheme(publication: Publication, last: Manifest | None) -> None:
    """Refuses another partition scheme than the published one."""
    if last is None:
        return
    rule, before = publication.partition, last.partitioning
    if before["by"] != rule.by or (rule.by == "column" and before.get("column") != rule.column):
        raise UsageError(
            f"partition is by {rule.by} {rule.column or ''}, the published dataset by {before['by']} {before.get('column') or ''}".rstrip(),
            field="partition",
            hint="keep the scheme; this version cannot change it",
        )


def _published_rows(schema: pa.Schema, last: Manifest) -> PublishedRows:
    """Rows whose key is of another rule: its columns, in their own types, stand beside today's or in the place of those of the same name."""
    for name, kind in zip(last.key["columns"], last.key["types"], strict=True):
        field = pa.field(name, stored_type(kind))
        schema = schema.set(schema.get_field_index(name), field) if name in schema.names else schema.append(field)
    return PublishedRows(schema, tuple(last.key["columns"]))


def last_extent(last: Manifest | None, projection: Projection) -> Box | None:
    """The extent of a version in the CRS of a delivery, where that is known exactly.

    In the CRS of the contract it is that of the files; in another it was noted when the version was delivered in it.
    """
    operation = projection.operation
    if last is None:
        return None
    if projection.same_crs:
        return last.files.bbox
    noted = last.delivery.get("extent")
    if noted is None or operation is None or last.delivery.get("source", {}).get("crs") != operation.source:
        return None
    return float(noted[0]), float(noted[1]), float(noted[2]), float(noted[3])


def _measures(contract: Contract) -> dict[str, Derived]:
    return {each.name: each.derived for each in contract.schema_fields if each.derived is not None}
