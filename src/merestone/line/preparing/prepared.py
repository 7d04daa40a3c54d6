"""What one run settles before it reads a row, by subject.

Not here: how it is settled (`prepare`), any one subject (`reading`, `projection`, `digest_layouts`, `placement`, `parent_terms`,
`whole_rules`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from merestone.change.guards import Box
from merestone.contract.contract import Contract
from merestone.dataset.partition import Partitions
from merestone.json_value import JsonObject
from merestone.line.preparing.digest_layouts import DigestLayouts
from merestone.line.preparing.parent_terms import ParentTerms
from merestone.line.preparing.placement import Placement
from merestone.line.preparing.projection import Projection
from merestone.line.preparing.reading import KEY, Reading
from merestone.line.preparing.whole_rules import WholeRules
from merestone.masking import masked
from merestone.publication.publication import Publication
from merestone.results.finding import Finding
from merestone.source.port import Delivery, Source
from merestone.writer.files import FileLayout


@dataclass(frozen=True, slots=True)
class Prepared:
    """The values of one run. A unit of a pass is given those that it needs, never this.

    Args:
        publication, contract: what was agreed.
        source: the delivery, which is read once.
        partitions: the codes of partitions; grows while rows are read.
        layout: how rows stand in files.
        domain: what a digest of the new version means, as manifests have it.
        processing: what decides a verdict on the same bytes, as manifests have it.
        findings: what is wrong before a row is read.
        unreadable: rows cannot be keyed, placed or transformed at all.
        columnless: nothing is delivered but what the format itself gives: text formats have no columns where they have no rows.
    """

    publication: Publication
    contract: Contract
    source: Source
    reading: Reading
    projection: Projection
    digests: DigestLayouts
    placement: Placement
    partitions: Partitions
    parent: ParentTerms
    rules: WholeRules
    layout: FileLayout
    domain: JsonObject
    processing: JsonObject
    findings: tuple[Finding, ...]
    unreadable: bool
    columnless: bool

    @property
    def geometry(self) -> str:
        """The name of the primary geometry column."""
        return self.contract.geometry_name

    @property
    def delivered_edges(self) -> str | None:
        """How the delivery means the edges between vertices, None where it has no geometry."""
        column = self.source.delivery.geometry
        return column.edges if column is not None else None

    @property
    def candidate_schema(self) -> pa.Schema:
        """Candidates on their way: the columns of a data file, the geometry, and the canonical key bytes."""
        return self.layout.row_schema.append(pa.field(KEY, pa.binary()))

    def layout_with(self, extent: Box | None) -> FileLayout:
        """The file layout with the bounds of the Hilbert order: the last version's, or on a first one those of all rows."""
        if self.placement.bounds is not None or extent is None:
            return self.layout
        return replace(self.layout, bounds=extent)

    def source_record(self) -> JsonObject:
        """What was read and what was asserted about it, for the record and the lineage."""
        found: Delivery = self.source.delivery
        spec = self.publication.source
        operation = self.projection.operation
        return {
            "path": masked(found.path),
            "driver": found.driver,
            "layer": found.layer,
            "encoding": found.encoding,
            "crs": operation.source if operation is not None else None,
            "crs_note": found.geometry.note if found.geometry else None,
            "epoch": found.geometry.epoch if found.geometry else None,
            "asserted": {name: value for name, value in (("crs", spec.crs), ("encoding", spec.encoding)) if value is not None},
            "operation": self.processing["operation"],
        }
