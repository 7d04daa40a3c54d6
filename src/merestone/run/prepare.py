"""What is settled before a row is read: contract, columns, CRS operation, domain, layouts, and whether the short-cut holds.

Not here: reading rows (`receive`), the verdict (`line`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyproj import CRS

from merestone.change.guards import Box
from merestone.contract.body import body, from_body
from merestone.contract.document import Contract, Derived, Field
from merestone.contract.registry import read_contract
from merestone.contract.rules import RULE_VERSION, rules_hash
from merestone.contract.stamp import Stamp
from merestone.contract.succession import breaks
from merestone.dataset.columns import stored_type
from merestone.dataset.current import Current
from merestone.dataset.known import Halves
from merestone.dataset.manifest import Manifest
from merestone.dataset.partition import Partitions, Tree, tree_from_json
from merestone.errors import MissingError, UsageError
from merestone.gate.delivery import other_crs
from merestone.gate.feature import DEGREES
from merestone.gate.findings import reasons
from merestone.gate.quantities import Quantity, quantities
from merestone.gate.topology import VERSION as TOPOLOGY_VERSION
from merestone.gate.whereabouts import Ground, Reference
from merestone.geometry import kernel
from merestone.geometry.form import Grid
from merestone.identity.derived import derived_key
from merestone.identity.digest import KERNELS, LAYOUT, Layout, layout_of_contract, second_geometry
from merestone.identity.grid import source_grid
from merestone.normalise import crs as crs_stage
from merestone.normalise.cast import MACHINERY, PARTITION_COLUMN, CastPlan, cast_batch, plan_cast
from merestone.normalise.crs import Operation
from merestone.outcome import PASS, REJECT, Finding, RowFaults, Severity, Steps
from merestone.publish.files import Layout as FileLayout
from merestone.publish.files import layout_of
from merestone.run.key_table import read_key_table
from merestone.run.publication import KeyRule, Publication
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, Source

KEY = MACHINERY + "key"


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """How the rows of the last version are read: in the schema of today's files, with the columns that their own key is made of."""

    schema: Any
    key_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Values of one run; nothing in it changes while rows are read.

    geometry: the name of the primary geometry column. delivered_geometry: its name in the delivery. limits: what ordinates cannot leave,
    in the contract's CRS (degrees), None for projected ones. last_extent: the extent of the last version in the CRS of this delivery, where
    that is known exactly. crs: "EPSG:<code>" of the contract. metres: metres in one unit of it.
    stored_layout digests what is stored, source_layout what is delivered, old_layout what is stored in the domain of the last version
    (None where the domains are the same). short_cut: same bytes, same verdict. comparable: the source digests of the last version are of
    the same domain, so that equal ones mean equal deliveries. rewritten: something that no digest holds is agreed anew (a derived measure,
    the epoch), so that every row is stored anew. unreadable: rows cannot be processed at all. judged: rows have to keep the contract's rules
    (a comparison only reads in its types and on its grid). compared: rows are held against a version or make one, so that they have digests and
    refused ones are kept (a check only counts and names them). rekeyed: the key rule is another than the last version's, which the publication
    names a migration for. key_table: hashes of old and new keys, pair by pair, from the file that it names. published: how the rows of the
    last version stand in its files, and the columns of their key.

    For the rules over a whole delivery: grounds, per geometry column where its positions are expected; quantities, the numbers that have a
    unit; measuring, the CRS in which shapes can be measured to judge them; last_distributions, how large they were in the last version, which
    is called last_name; unique, the fields in which no value stands twice.
    """

    publication: Publication
    contract: Contract
    contract_body: dict[str, Any]
    new_contract: bool
    source: Source
    cast: CastPlan
    operation: Operation | None
    other_operations: tuple[tuple[str, Operation], ...]
    findings: tuple[Finding, ...]
    unreadable: bool
    geometry: str
    delivered_geometry: str | None
    delivered_edges: str | None
    key_columns: tuple[str, ...]
    partition_column: str | None
    partitions: Partitions
    tree: Tree | None
    bounds: tuple[float, float, float, float] | None
    layout: FileLayout
    stored_layout: Layout
    source_layout: Layout
    old_layout: Layout | None
    domain: dict[str, Any]
    processing: dict[str, Any]
    short_cut: bool
    comparable: bool
    rewritten: bool
    same_crs: bool
    crs: str
    unit: str
    metres: float
    geographic: bool
    limits: tuple[float, float, float, float] | None
    last_extent: Box | None
    rekeyed: bool
    key_table: tuple[Halves, Halves] | None
    published: PublishedRows
    judged: bool = True
    compared: bool = True
    grounds: Mapping[str, Ground] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    measuring: CRS | None = None
    last_distributions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    last_name: str = ""
    unique: tuple[str, ...] = ()

    @property
    def absent(self) -> frozenset[str]:
        """Fields that were not delivered, or in a type that cannot be cast: a finding says so."""
        return frozenset(each.target for each in self.cast.columns if each.place is None or each.told)

    @property
    def spool_schema(self) -> Any:
        """Candidates on their way: the columns of a data file, the geometry, and the canonical key bytes."""
        return self.layout.row_schema.append(pa.field(KEY, pa.binary()))

    @property
    def one_digest(self) -> bool:
        """Whether the source digest is the digest of what is stored: nothing is transformed, and both are on one grid."""
        return self.same_crs and self.source_layout == self.stored_layout and all(each.is_identity for _, each in self.other_operations)

    @property
    def spatial(self) -> bool:
        """Whether partitions are cells in space."""
        return self.publication.partition.by == "kdtree"

    @property
    def deciding_layout(self) -> Layout:
        """The layout in which a row is compared with the published one."""
        return self.old_layout or self.stored_layout

    @property
    def keeps_rows(self) -> bool:
        """Whether a published row can stay as it is where nothing but noise differs: its digest and its key would be made alike today."""
        return self.old_layout is None and not self.rekeyed

    def cast_rows(self, raw: Any) -> tuple[Any, list[RowFaults]]:
        """One delivered batch in the agreed types, with its key: a derived one is made here."""
        batch, faults = cast_batch(raw, self.cast)
        rule = self.publication.key
        if rule.derive is None or rule.published is not None:
            return batch, faults
        return batch.add_column(0, pa.field(self.key_columns[0], pa.string()), derived_key(rule.derive, batch, rule.made_from)), faults

    @property
    def key_is_text(self) -> bool:
        """Whether two keys can differ in what a person overlooks."""
        return "string" in self.key_record()["types"]

    @property
    def migrates(self) -> bool:
        """Whether features may be found again under another key, so that keys alone decide nothing."""
        return self.rekeyed or self.key_table is not None

    @property
    def key_name(self) -> str:
        """The key as messages name it."""
        rule = self.publication.key
        return f"{self.key_columns[0]} ({rule.words})" if rule.derive is not None else ", ".join(self.key_columns)

    def layout_with(self, extent: tuple[float, float, float, float] | None) -> FileLayout:
        """The file layout with the bounds of the Hilbert order: the last version's, or on a first one those of all rows."""
        if self.bounds is not None or extent is None:
            return self.layout
        return replace(self.layout, bounds=extent)

    def cast_steps(self, faulty: npt.NDArray[np.bool_], faults: Sequence[RowFaults] = ()) -> Steps:
        """The lineage of the cast: one event a feature. It knows no geometry, so that both CRS are the contract's."""
        n = len(faulty)
        verdict = np.where(faulty, REJECT, PASS).astype(np.uint8)
        why = reasons(faults, n, severity="error")
        told = pa.compute.if_else(pa.array(faulty), pa.compute.coalesce(why, pa.scalar("a value does not fit the agreed type")),
                                  pa.scalar(None, pa.string()))
        return Steps("attr_cast", "CAST", verdict, told, self.crs, self.crs, tool_version=f"pyarrow {pa.__version__}")

    def other_geometries(self, batch: Any) -> tuple[Any, Any, list[RowFaults]]:
        """The batch with its second geometries, each in the CRS that its field promises: as they are there, and in canonical form on the grid."""
        faults: list[RowFaults] = []
        exact = batch
        for name, operation in self.other_operations:
            field = self.contract.field(name)
            if field is None:
                continue
            place = batch.schema.names.index(name)
            wkb = batch.column(place)
            failed = np.zeros(batch.num_rows, bool)
            if not operation.is_identity:
                wkb, failed = crs_stage.apply_operation(wkb, operation)
                exact = exact.set_column(place, exact.schema.field(place), wkb.cast(pa.binary()))
            stored, flags = kernel.canonical(wkb, *second_geometry(field, self.contract))
            bad = np.flatnonzero(failed | ((flags & _UNFIT) != 0))
            if len(bad):
                faults.append(RowFaults("geometry", name, "ordinate", "error", "a geometry that the grid can hold", bad,
                                        pa.array(["cannot be stored"] * len(bad)), "have the producer repair the geometry"))
            batch = batch.set_column(place, batch.schema.field(place), stored.cast(pa.binary()))
        return exact, batch, faults

    def key_record(self) -> dict[str, Any]:
        """The key rule as it stands in every manifest."""
        return _key_record(self.publication.key, self.cast)

    def source_record(self) -> dict[str, Any]:
        """What was read and what was asserted about it, for the record and the lineage."""
        found: Delivery = self.source.delivery
        spec = self.publication.source
        return {
            "path": found.path, "driver": found.driver, "layer": found.layer, "encoding": found.encoding,
            "crs": self.operation.source if self.operation is not None else None, "crs_note": found.geometry.note if found.geometry else None,
            "asserted": {name: value for name, value in (("crs", spec.crs), ("encoding", spec.encoding)) if value is not None},
            "operation": self.processing["operation"],
        }


_UNFIT = 1 | 2 | 4  # collapsed, unreadable, bad ordinate


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
    cast = plan_cast(contract, delivery, dict(publication.columns), key_columns, rule.column if rule.by == "column" else None,
                     publication.extra_columns)
    cast = cast.settle(source.batches()) if cast.suspects else cast
    findings = [*delivery.findings, *cast.findings, *crs_stage.check_crs(contract, delivery)]
    findings += _exact_types(cast, key_columns, rule.column if rule.by == "column" else None)
    rekeyed, key_table = False, None
    if head is not None:
        now = _key_record(publication.key, cast)
        rekeyed, changed = _key_change(publication, now, head.manifest)
        findings += changed
        if publication.key_migration not in (None, "renumber") and not any(_stops_reading(each, key_columns) for each in findings):
            key_table = read_key_table(str(publication.key_migration), head.manifest.key, now)
    unreadable = any(_stops_reading(each, (*key_columns, rule.column, contract.geometry_name)) for each in findings)
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
    made = _assemble(publication, head, contract, new_contract, source, cast, operation, tuple(others), findings, unreadable=unreadable,
                     rekeyed=rekeyed, key_table=key_table)
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
        made, findings=findings, grounds=grounds, quantities=tuple(known),
        measuring=CRS.from_user_input(made.operation.source) if made.operation is not None and any(each.measured for each in known) else None,
        last_distributions=last.delivery.get("distributions", {}) if last is not None else {},
        last_name=f"v{last.version}" if last is not None else "",
        unique=tuple(each.name for each in contract.schema_fields if each.unique and each.name in present and made.key_columns != (each.name,)),
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
    return Ground(column, operation.source, degrees, tuple(references), area, None if degrees else in_degrees, operation.swap,
                  (agreed, theirs) if theirs is not None else None)


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
        raise UsageError(f"{publication.contract} differs from the contract {last.contract_version} that v{last.version} was published under, "
                         "but has the same contract_version", field="contract_version", hint="raise the stamp: PATCH for words, MINOR or MAJOR for clauses")
    elif contract.contract_version.major != Stamp.parse(last.contract_version).major:
        raise UsageError(f"contract {contract.contract_version} is another MAJOR than {last.contract_version}, which is published here",
                         field="contract_version", hint="give the new major its own destination; the old one stays live beside it")
    else:
        changed = True
        broken = breaks(from_body(last.contract), contract)
        if broken:
            raise UsageError(f"contract {contract.contract_version} cannot follow {last.contract_version}, which is published here: {'; '.join(broken)}",
                             field="contract_version", hint="that is another MAJOR: give it its own destination; the old one stays live beside it")
    rule = publication.partition
    before = last.partitioning
    if before["by"] != rule.by or (rule.by == "column" and before.get("column") != rule.column):
        raise UsageError(f"partition is by {rule.by} {rule.column or ''}, the published dataset by {before['by']} {before.get('column') or ''}".rstrip(),
                         field="partition", hint="keep the scheme; changing it (resort --partition) is not in this version")
    return changed


def _key_record(rule: KeyRule, cast: CastPlan) -> dict[str, Any]:
    """The key rule as it stands in every manifest."""
    if rule.published is not None:
        return dict(rule.published)
    types = {each.target: str(each.kind) for each in cast.columns}
    if rule.derive is None:
        return {"columns": list(rule.columns), "types": [types.get(name, "string") for name in rule.columns], "derive": None}
    return {"columns": list(rule.columns), "types": ["string"] * len(rule.columns), "derive": rule.derive,
            "from": [{"name": name, "type": types.get(name, "string")} for name in rule.made_from]}


def _key_change(publication: Publication, now: dict[str, Any], last: Manifest) -> tuple[bool, list[Finding]]:
    """Whether keys are made by another rule than those that are published, and what is to be said of it.

    Raises:
        UsageError: they are, and the publication names no migration.
    """
    was = last.key
    there, here = _typed(was), _typed(now)
    same_rule = (list(there), was["derive"]) == (list(here), now["derive"])
    if same_rule and there == here:
        return False, []
    if publication.key_migration is not None:
        return True, []
    if same_rule:
        return False, [
            Finding("schema", name, "key_type", "error", f"{name} is {kind}, as it was published", f"{name} is {here[name]}", 1,
                    remedy="have the producer deliver the key in its type; a key of another type is another key")
            for name, kind in there.items() if here[name] != kind
        ]
    before = KeyRule.of_manifest(was, published=True).words
    raise UsageError(f"the key is {publication.key.words}, the published one is {before}", field="key",
                     hint="keep the key, or name the migration: `key_migration: FILE` with old and new keys, or `renumber` to find features again by "
                          "their content")


def _typed(record: dict[str, Any]) -> dict[str, str]:
    """The columns that a key is read from, with their types."""
    if record["derive"] is not None:
        return {each["name"]: each["type"] for each in record.get("from", ())}
    return dict(zip(record["columns"], record["types"], strict=True))


def _exact_types(cast: CastPlan, key_columns: tuple[str, ...], partition_column: str | None) -> list[Finding]:
    """Keys and partition columns need a type in which equal means equal."""
    kinds = {each.target: str(each.kind) for each in cast.columns if each.place is not None}
    found = [
        Finding("schema", name, "key_type", "error", "a key of text, integer, date or boolean type", f"{name} is {kinds[name]}", 1,
                remedy="give the key an exact type in the contract: integer for 12.0, string for codes")
        for name in key_columns if _inexact(kinds.get(name, ""))
    ]
    column = PARTITION_COLUMN if PARTITION_COLUMN in kinds else partition_column
    if column is not None and _inexact(kinds.get(column, "")):
        found.append(Finding(
            "schema", partition_column or column, "partition_type", "error", "a partition column of text, integer, date or boolean type",
            f"{partition_column} is {kinds[column]}", 1, remedy="partition by a column of codes, or by kdtree"))
    return found


def _stops_reading(finding: Finding, needed: Sequence[str | None]) -> bool:
    """Whether rows cannot be keyed, placed or transformed at all."""
    hopeless = finding.surface == "crs" or finding.rule in ("key_type", "partition_type")
    return finding.severity == "error" and (hopeless or (finding.rule in ("missing", "type") and finding.field in needed))


def _inexact(kind: str) -> bool:
    return kind.partition("<")[0] in ("number", "binary", "geometry", "list", "struct")


def _assemble(
    publication: Publication, head: Current | None, contract: Contract, new_contract: bool, source: Source, cast: CastPlan, operation: Operation | None,
    others: tuple[tuple[str, Operation], ...], findings: list[Finding], *, unreadable: bool, rekeyed: bool,
    key_table: tuple[Halves, Halves] | None,
) -> Prepared:
    delivery, rule, last = source.delivery, publication.partition, head.manifest if head else None
    target = CRS.from_epsg(contract.crs_epsg)
    grid = Grid(contract.coordinate_precision, contract.geometry.z_precision, contract.geometry.m_precision)
    same_crs = operation is None or operation.is_identity
    delivered = grid
    if operation is not None and not operation.is_identity:
        delivered = Grid(source_precision(contract.coordinate_precision, contract.crs_epsg, operation), grid.z, grid.m)  # Z and M stay as they are
    epoch = delivery.geometry.epoch if delivery.geometry else None
    domain = {
        "layout": LAYOUT, "crs": f"EPSG:{contract.crs_epsg}", "precision": grid.precision, "z_precision": grid.z_precision,
        "m_precision": grid.m_precision, "dimensions": contract.geometry.dimensions, "direction": contract.geometry.direction,
        "edges": contract.geometry.edges, "epoch": epoch,
    }
    processing = {
        "source_domain": {"layout": LAYOUT, "crs": operation.source if operation is not None else None, "precision": delivered.precision,
                          "z_precision": delivered.z_precision, "m_precision": delivered.m_precision},
        "rules_hash": rules_hash(contract), "rule_version": RULE_VERSION, "layout": LAYOUT,
        "operation": operation.to_json() if operation is not None else None,
    }
    if contract.topology_rule_set != "none":
        processing["topology"] = TOPOLOGY_VERSION
    stored = replace(layout_of_contract(contract, publication.key.columns), version=LAYOUT)
    elsewhere = {name: each for name, each in others if not each.is_identity}
    source_layout = _source_layout(stored, contract, delivered, elsewhere)
    if elsewhere:  # second geometries in another CRS than their field's
        grids = {each.name: each.grid.precision for each in source_layout.fields if each.grid is not None}
        processing["second_geometries"] = {name: {"precision": grids.get(name), "operation": each.to_json()} for name, each in elsewhere.items()}
    old = _old_layout(last, stored, contract, publication.key.columns) if last is not None else None
    partitions, tree, bounds = _partitions(publication, last)
    kinds = {each.target: field.type for each, field in zip(cast.columns, cast.schema, strict=True)}
    kinds = dict.fromkeys(publication.key.columns, pa.string()) | kinds  # a derived key is text
    bounds_now = bounds or (0.0, 0.0, 1.0, 1.0)
    layout = layout_of(contract, tuple((name, kinds[name]) for name in publication.key.columns), bounds=bounds_now, epoch=epoch,
                       target_rows=publication.files.target_rows, row_group_rows=publication.files.row_group_rows)
    unit = target.axis_info[0].unit_name
    geographic = bool(target.is_geographic)
    last_extent = _last_extent(last, operation, same_crs=same_crs) if last is not None else None
    known_under = last is not None and last.processing == processing and last.domain == domain and not rekeyed
    if publication.guard.max_extent_shift is not None and last is not None and last.files and last_extent is None:
        known_under = False  # the extent is then that of all rows as they come out
    return Prepared(
        publication=publication, contract=contract, contract_body=body(contract), new_contract=new_contract, source=source, cast=cast,
        operation=operation, other_operations=others, findings=tuple(findings), unreadable=unreadable, geometry=contract.geometry_name,
        delivered_geometry=delivery.geometry.name if delivery.geometry else None,
        delivered_edges=delivery.geometry.edges if delivery.geometry else None, key_columns=publication.key.columns,
        partition_column=(PARTITION_COLUMN if PARTITION_COLUMN in cast.schema.names else rule.column) if rule.by == "column" else None,
        partitions=partitions, tree=tree, bounds=bounds, layout=layout, stored_layout=stored, source_layout=source_layout,
        old_layout=old, domain=domain, processing=processing, short_cut=known_under,
        comparable=not rekeyed and last is not None
        and all(last.processing.get(part) == processing.get(part) for part in ("source_domain", "second_geometries")),
        same_crs=same_crs,
        rewritten=rekeyed or (
            last is not None and (_measures(from_body(last.contract)) != _measures(contract) or last.domain.get("epoch") != epoch)),
        crs=f"EPSG:{contract.crs_epsg}", unit="m" if unit == "metre" else unit, metres=111_320.0 if geographic else target.axis_info[0].unit_conversion_factor,
        geographic=geographic, limits=DEGREES if geographic else None,
        last_extent=last_extent, rekeyed=rekeyed, key_table=key_table,
        published=_published_rows(layout.row_schema, last) if rekeyed and last is not None else PublishedRows(layout.row_schema, publication.key.columns),
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


def _old_layout(last: Manifest, stored: Layout, contract: Contract, key_columns: Sequence[str]) -> Layout | None:
    """The layout that the digests of the last version are of, for today's attributes; None where it is today's.

    Attributes that are or were the key count as they counted then: those of the last version's key do not, nor do those of today's that
    it did not have.

    Raises:
        MissingError: the last version was written under a layout that this version of Merestone does not know.
    """
    was = last.domain
    if was["layout"] not in KERNELS:
        raise MissingError(f"v{last.version} has digests of layout {was['layout']}, which this version of Merestone does not know", field="domain",
                           hint="use the Merestone version that wrote it, or a newer one")
    then = from_body(last.contract)
    grids = {each.name: each.grid for each in layout_of_contract(then).fields}
    leave_out = {*last.key["columns"], *(name for name in key_columns if then.field(name) is None)}
    old = replace(
        stored, version=was["layout"], grid=Grid(was["precision"], was["z_precision"], was["m_precision"]),
        shape=replace(stored.shape, dimensions=was["dimensions"], direction=was["direction"]),
        fields=tuple(replace(each, grid=grids.get(each.name, each.grid)) for each in layout_of_contract(contract, leave_out).fields),
    )
    return None if old == stored else old


def _measures(contract: Contract) -> dict[str, Derived]:
    return {each.name: each.derived for each in contract.schema_fields if each.derived is not None}


def source_precision(precision: int, epsg: int, operation: Operation) -> int:
    """Decimals of the source digest's grid, in units of the delivered CRS (spec: not above 1/100 of the contract's grid on the ground)."""
    return source_grid(precision, _metres(CRS.from_epsg(epsg)), _metres(CRS.from_user_input(operation.source)),
                       crs_stage.largest_ordinate(operation.source))


def _source_layout(stored: Layout, contract: Contract, delivered: Grid, others: Mapping[str, Operation]) -> Layout:
    """The layout of the source digest: each geometry on the grid of the CRS in which it was delivered."""
    fields = []
    for each in stored.fields:
        field, operation = contract.field(each.name), others.get(each.name)
        if field is not None and operation is not None and each.grid is not None:
            precision = source_precision(each.grid.precision, field.crs_epsg or contract.crs_epsg, operation)
            fields.append(replace(each, grid=Grid(precision, each.grid.z, each.grid.m)))
        else:
            fields.append(each)
    return replace(stored, grid=delivered, fields=tuple(fields))


def _metres(crs: CRS) -> float:
    return 111_320.0 if crs.is_geographic else crs.axis_info[0].unit_conversion_factor


def _partitions(publication: Publication, last: Any) -> tuple[Partitions, Tree | None, tuple[float, float, float, float] | None]:
    rule = publication.partition
    if last is None:
        return Partitions(rule.column if rule.by == "column" else None), None, None
    state = last.partitioning
    bounds = tuple(state["bounds"])
    if rule.by == "column":
        return Partitions(rule.column, state["values"].items()), None, bounds
    return Partitions(None), tree_from_json(state["tree"]) if rule.by == "kdtree" else None, bounds
