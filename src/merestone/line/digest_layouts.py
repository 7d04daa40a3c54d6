"""What the digests of a run are made of: of what is delivered, of what is stored, and of the last version.

Not here: the digest itself (`identity.digest`), how fine a grid may be (`identity.grid`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from merestone.contract.body import from_body
from merestone.contract.contract import Contract
from merestone.dataset.manifest import Manifest
from merestone.errors import MissingError
from merestone.geometry.form import Grid
from merestone.identity.digest import KERNELS, Layout, layout_of_contract
from merestone.identity.grid import source_grid
from merestone.reference.area import largest_ordinate
from merestone.reference.ground import metres_per_unit
from merestone.reference.operation import Operation
from merestone.reference.systems import of_code, system


@dataclass(frozen=True, slots=True)
class DigestLayouts:
    """The layouts of one run.

    Args:
        stored: of what is stored.
        source: of what is delivered.
        old: of what is stored, in the domain of the last version; None where that is today's.
        one: whether the source digest is the digest of what is stored: nothing is transformed, and both are on one grid.
    """

    stored: Layout
    source: Layout
    old: Layout | None
    one: bool

    @property
    def deciding(self) -> Layout:
        """The layout in which a row is compared with the published one."""
        return self.old or self.stored


def old_layout(last: Manifest, stored: Layout, contract: Contract, key_columns: Sequence[str]) -> Layout | None:
    """The layout that the digests of the last version are of, for today's attributes; None where it is today's.

    Attributes that are or were the key count as they counted then: those of the last version's key do not, nor do those of today's that
    it did not have.

    Raises:
        MissingError: the last version was written under a layout that this version of Merestone does not know.
    """
    was = last.domain
    if was["layout"] not in KERNELS:
        raise MissingError(
            f"v{last.version} has digests of layout {was['layout']}, which this version of Merestone does not know",
            field="domain",
            hint="use the Merestone version that wrote it, or a newer one",
        )
    then = from_body(last.contract)
    grids = {each.name: each.grid for each in layout_of_contract(then).fields}
    leave_out = {*last.key["columns"], *(name for name in key_columns if then.field(name) is None)}
    old = replace(
        stored,
        version=was["layout"],
        grid=Grid(was["precision"], was["z_precision"], was["m_precision"]),
        shape=replace(stored.shape, dimensions=was["dimensions"], direction=was["direction"]),
        fields=tuple(replace(each, grid=grids.get(each.name, each.grid)) for each in layout_of_contract(contract, leave_out).fields),
    )
    return None if old == stored else old


def source_precision(precision: int, epsg: int, operation: Operation) -> int:
    """Decimals of the source digest's grid, in units of the delivered CRS (spec: not above 1/100 of the contract's grid on the ground)."""
    return source_grid(
        precision,
        metres_per_unit(of_code(epsg)),
        metres_per_unit(system(operation.source)),
        largest_ordinate(operation.source),
    )


def source_layout(stored: Layout, contract: Contract, delivered: Grid, others: Mapping[str, Operation]) -> Layout:
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
