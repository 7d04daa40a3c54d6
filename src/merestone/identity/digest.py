"""The digest of a feature: what counts (`Layout`), and fingerprint layout 2 over Arrow batches (docs/spec/fingerprint.md).

Not here: the bytes of geometry and fields (`geometry.kernel`), columns in their plain types (`canonical`), keys (`key`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from merestone.columnar.rounding import NumberGrid
from merestone.contract.contract import Contract, Field, FieldType
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.canonical import column_of, kept, sorted_columns

LAYOUT = 2  # what is written; older ones stay readable in `KERNELS`
_ROWS = 1 << 16  # digested at a time: nested columns are encoded, and that should not need the memory of a whole table

DIGEST_TYPE = pa.binary(16)
_ANY_SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class DigestField:
    """An attribute that counts.

    `name` of its column; `type` of the contract (None: the Arrow type decides); `grid` and `shape` of a second geometry; `number`: to what a
    number is kept (None: all its bits count).
    """

    name: str
    type: FieldType | None = None
    grid: Grid | None = None
    shape: Shape = _ANY_SHAPE
    number: NumberGrid | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """What a digest is made of, and on which grid: the part of a domain that changes the bytes."""

    fields: tuple[DigestField, ...]
    grid: Grid
    shape: Shape = _ANY_SHAPE
    version: int = LAYOUT

    def only(self, name: str) -> Layout:
        """The same layout of one attribute; digest it without a geometry column to compare that attribute alone."""
        return replace(self, fields=tuple(each for each in self.fields if each.name == name))

    def only_geometry(self) -> Layout:
        """The same layout without attributes."""
        return replace(self, fields=())

    def kept_by_noise(self, geometry: str) -> tuple[str, ...]:
        """The columns whose published value may stay for a delivered one: geometries, and numbers that are kept to decimals or digits."""
        return (geometry, *(each.name for each in self.fields if each.grid is not None or each.number is not None))

    def with_grid(self, grid: Grid) -> Layout:
        """The same layout on another grid, such as that of the source digest."""
        return replace(self, grid=grid)


def layout_of_contract(contract: Contract, leave_out: Collection[str] = ()) -> Layout:
    """The layout of the published digest.

    Fields that are volatile or derived do not count, nor do those in `leave_out`, which names the key columns.
    """
    clause = contract.geometry
    left_out = {unicodedata.normalize("NFC", name) for name in leave_out}
    fields = tuple(_counted(each, contract) for each in contract.schema_fields if each.compared and each.name not in left_out)
    return Layout(
        fields=fields,
        grid=Grid(contract.coordinate_precision, clause.z_precision, clause.m_precision),
        shape=Shape("any" if contract.geometry_type == "raster" else contract.geometry_type, clause.ordinates, clause.direction),
    )


def _counted(field: Field, contract: Contract) -> DigestField:
    if field.type.kind == "geometry":
        return DigestField(field.name, field.type, *second_geometry(field, contract))
    return DigestField(field.name, field.type, number=field.number_grid)


def second_geometry(field: Field, contract: Contract) -> tuple[Grid, Shape]:
    """The grid and the shape in which a second geometry is stored and digested: its own decimals, dimensions as the contract keeps them."""
    precision = contract.coordinate_precision if field.coordinate_precision is None else field.coordinate_precision
    return Grid(precision, contract.geometry.z_precision, contract.geometry.m_precision), Shape("any", contract.geometry.ordinates)


def digest_batch(data: pa.RecordBatch | pa.Table, layout: Layout, geometry_column: str | None) -> pa.Array:
    """The digest of each row: fixed_size_binary(16), never null.

    Args:
        data: pyarrow.RecordBatch or Table with the layout's columns, and others that do not count.
        layout: what counts.
        geometry_column: the name of the WKB column, or None to digest attributes alone.

    Raises:
        KeyError: a column of the layout is missing.
        ValueError: a column of a type that has no place in a digest.
    """
    wanted = [each.name for each in layout.fields] + ([geometry_column] if geometry_column is not None else [])
    missing = [name for name in wanted if name not in data.schema.names]
    if missing:
        raise KeyError(f"column {missing[0]!r} is not among {', '.join(data.schema.names)}")
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    table = table.select(list(dict.fromkeys(wanted)))
    if not wanted:
        return KERNELS[layout.version](sorted_columns([]), None, layout.grid, layout.shape, data.num_rows)
    parts = [_digest(batch, layout, geometry_column) for batch in table.to_batches(max_chunksize=_ROWS)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], DIGEST_TYPE)


def _digest(batch: pa.RecordBatch, layout: Layout, geometry_column: str | None) -> pa.Array:
    columns = sorted_columns(
        [column_of(each.name, kept(batch.column(each.name), each.number), each.type, each.grid, each.shape) for each in layout.fields]
    )
    geometry = None if geometry_column is None else batch.column(geometry_column)
    return KERNELS[layout.version](columns, geometry, layout.grid, layout.shape, batch.num_rows)


# How each layout digests prepared columns and WKB. A layout that was ever published stays here: datasets written under it are compared in it.
KERNELS: dict[int, Callable[..., pa.Array]] = {LAYOUT: kernel.digest}
