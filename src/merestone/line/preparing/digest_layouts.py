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
from merestone.geometry.kernel_values import MOST_DECIMALS, Grid
from merestone.identity.digest import KERNELS, DigestField, Layout, layout_of_contract
from merestone.identity.grid import source_grid
from merestone.reference.area import largest_ordinate
from merestone.reference.ground import metres_per_unit
from merestone.reference.operation import Operation
from merestone.reference.systems import of_code, system

_MORE = 2  # decimals that Z, M and numbers have more in the source digest where the delivery is in another CRS


@dataclass(frozen=True, slots=True)
class DigestLayouts:
    """The layouts of one run.

    Args:
        stored: of what is stored.
        source: of what is delivered.
        old: of what is stored, in the domain of the last version; None where that is today's.
        one: whether the source digest is the digest of what is stored: nothing is transformed, and both are on one grid.
        finer: whether the source digest is on finer grids in all that can be noise.
    """

    stored: Layout
    source: Layout
    old: Layout | None
    one: bool
    finer: bool

    @property
    def in_last_domain(self) -> Layout:
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
    then_fields = {each.name: each for each in layout_of_contract(then).fields}
    leave_out = {*last.key["columns"], *(name for name in key_columns if then.field(name) is None)}
    old = replace(
        stored,
        version=was["layout"],
        grid=Grid(was["precision"], was["z_precision"], was["m_precision"]),
        shape=replace(stored.shape, dimensions=was["dimensions"], direction=was["direction"]),
        fields=tuple(_as_then(each, then_fields.get(each.name)) for each in layout_of_contract(contract, leave_out).fields),
    )
    return None if old == stored else old


def _as_then(field: DigestField, then: DigestField | None) -> DigestField:
    return field if then is None else replace(field, grid=then.grid, number=then.number)


def source_layout(stored: Layout, contract: Contract, operation: Operation | None, others: Mapping[str, Operation]) -> tuple[Layout, bool]:
    """The layout of the source digest, and whether it is finer than what is stored in all that can be noise.

    Delivered in the contract's CRS, a geometry is digested on the contract's grid; in another one, on a grid of its units not above 1/100
    of the contract's on the ground, and Z, M and numbers with two decimals more than the contract has.
    Where all is finer, a source digest that is known leaves no noise unseen.
    """
    if operation is None or operation.is_identity:
        grid, finer = stored.grid, False
    else:
        precision, finer = _source_precision(stored.grid.precision, contract.crs_epsg, operation)
        grid = Grid(precision, min(stored.grid.z + _MORE, MOST_DECIMALS), min(stored.grid.m + _MORE, MOST_DECIMALS))
    fields = []
    for each in stored.fields:
        field, other = contract.field(each.name), others.get(each.name)
        if field is not None and each.grid is not None:
            fine = False
            if other is not None:
                precision, fine = _source_precision(each.grid.precision, field.crs_epsg or contract.crs_epsg, other)
                each = replace(each, grid=Grid(precision, each.grid.z, each.grid.m))  # noqa: PLW2901 - the same field on its own grid
            finer = finer and fine
        elif each.number is not None and grid is not stored.grid:
            each = replace(each, number=each.number.finer(_MORE))  # noqa: PLW2901 - the same field on its own grid
        fields.append(each)
    return replace(stored, grid=grid, fields=tuple(fields)), finer


def _source_precision(precision: int, epsg: int, operation: Operation) -> tuple[int, bool]:
    """Decimals of the source digest's grid, in units of the delivered CRS; and whether the range rule left it as fine as it should be."""
    units = metres_per_unit(of_code(epsg)), metres_per_unit(system(operation.source))
    found = source_grid(precision, *units, largest_ordinate(operation.source))
    return found, found == source_grid(precision, *units, 0.0)
