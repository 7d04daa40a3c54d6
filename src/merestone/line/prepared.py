"""The values of one run that no row changes: how a delivery is read, cast, keyed, transformed, digested and stored.

Not here: how they are settled (`prepare`).
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
from merestone.contract.contract import Contract
from merestone.dataset.known import Halves
from merestone.dataset.partition import Partitions, Tree
from merestone.gate.findings import reasons
from merestone.gate.quantities import Quantity
from merestone.gate.whereabouts import Ground
from merestone.geometry import kernel
from merestone.identity.derived import derived_key
from merestone.identity.digest import Layout, second_geometry
from merestone.line.key_rule import key_record
from merestone.normalise import crs as crs_stage
from merestone.normalise.cast import MACHINERY, CastPlan, cast_batch
from merestone.normalise.crs import Operation
from merestone.publication.publication import Publication
from merestone.publish.files import Layout as FileLayout
from merestone.results.finding import PASS, REJECT, Finding, RowFaults, Steps
from merestone.source.port import Delivery, Source

KEY = MACHINERY + "key"


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """How the rows of the last version are read: in the schema of today's files, with the columns that their own key is made of."""

    schema: Any
    key_columns: tuple[str, ...]


_UNFIT = 1 | 2 | 4  # collapsed, unreadable, bad ordinate


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
        told = pa.compute.if_else(
            pa.array(faulty), pa.compute.coalesce(why, pa.scalar("a value does not fit the agreed type")), pa.scalar(None, pa.string())
        )
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
                faults.append(
                    RowFaults(
                        "geometry",
                        name,
                        "ordinate",
                        "error",
                        "a geometry that the grid can hold",
                        bad,
                        pa.array(["cannot be stored"] * len(bad)),
                        "have the producer repair the geometry",
                    )
                )
            batch = batch.set_column(place, batch.schema.field(place), stored.cast(pa.binary()))
        return exact, batch, faults

    def key_record(self) -> dict[str, Any]:
        """The key rule as it stands in every manifest."""
        return key_record(self.publication.key, self.cast)

    def source_record(self) -> dict[str, Any]:
        """What was read and what was asserted about it, for the record and the lineage."""
        found: Delivery = self.source.delivery
        spec = self.publication.source
        return {
            "path": found.path,
            "driver": found.driver,
            "layer": found.layer,
            "encoding": found.encoding,
            "crs": self.operation.source if self.operation is not None else None,
            "crs_note": found.geometry.note if found.geometry else None,
            "asserted": {name: value for name, value in (("crs", spec.crs), ("encoding", spec.encoding)) if value is not None},
            "operation": self.processing["operation"],
        }
