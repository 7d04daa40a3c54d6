"""The digest of a feature: what counts (`Layout`), and fingerprint layout 1 over Arrow batches (docs/spec/fingerprint.md).

Not here: the bytes of geometry and fields (`geometry.kernel`), columns in their plain types (`canonical`), keys (`key`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from merestone.contract.contract import Contract, Field, FieldType
from merestone.geometry import kernel
from merestone.geometry.form import Grid, Shape
from merestone.identity.canonical import column_of, sorted_columns

LAYOUT = 1  # what is written; older ones stay readable in `KERNELS`
_ROWS = 1 << 16  # digested at a time: nested columns are encoded, and that should not need the memory of a whole table

DIGEST_TYPE = pa.binary(16)
_ANY_SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class DigestField:
    """An attribute that counts: its column, the contract's type (None: the Arrow type decides), and a second geometry's own grid and shape."""

    name: str
    type: FieldType | None = None
    grid: Grid | None = None
    shape: Shape = _ANY_SHAPE


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

    def with_grid(self, grid: Grid) -> Layout:
        """The same layout on another grid, such as that of the source digest."""
        return replace(self, grid=grid)


def layout_of_contract(contract: Contract, leave_out: Collection[str] = ()) -> Layout:
    """The layout of the published digest.

    Fields that are volatile or derived do not count, nor do those in `leave_out`, which names the key columns.
    """
    clause = contract.geometry
    left_out = {unicodedata.normalize("NFC", name) for name in leave_out}
    fields = tuple(
        DigestField(each.name, each.type, *(second_geometry(each, contract) if each.type.kind == "geometry" else ()))
        for each in contract.schema_fields
        if each.compared and each.name not in left_out
    )
    return Layout(
        fields=fields,
        grid=Grid(contract.coordinate_precision, clause.z_precision, clause.m_precision),
        shape=Shape("any" if contract.geometry_type == "raster" else contract.geometry_type, clause.dimensions, clause.direction),
    )


def second_geometry(field: Field, contract: Contract) -> tuple[Grid, Shape]:
    """The grid and the shape in which a second geometry is stored and digested: its own decimals, dimensions as the contract keeps them."""
    precision = contract.coordinate_precision if field.coordinate_precision is None else field.coordinate_precision
    return Grid(precision, contract.geometry.z_precision, contract.geometry.m_precision), Shape("any", contract.geometry.dimensions)


def digest_batch(data: Any, layout: Layout, geometry_column: str | None) -> Any:
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
        return _digest(data, layout, None)
    parts = [_digest(batch, layout, geometry_column) for batch in table.to_batches(max_chunksize=_ROWS)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], DIGEST_TYPE)


def _digest(batch: Any, layout: Layout, geometry_column: str | None) -> Any:
    columns = sorted_columns([column_of(each.name, batch.column(each.name), each.type, each.grid, each.shape) for each in layout.fields])
    geometry = None if geometry_column is None else batch.column(geometry_column)
    return KERNELS[layout.version](columns, geometry, layout.grid, layout.shape, batch.num_rows)


# How each layout digests prepared columns and WKB. A layout that was ever published stays here: datasets written under it are compared in it.
KERNELS: dict[int, Callable[..., Any]] = {1: kernel.digest}
