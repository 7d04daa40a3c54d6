"""Tables of a fixed schema, each as a class: a column is declared once, and is read as an attribute that a type checker knows.

Not here: which tables there are (each room declares its own beside what it says of them), columns whose names a contract gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias, overload

import pyarrow as pa

Values: TypeAlias = pa.Array | pa.ChunkedArray
"""What a column can be made of."""


class TableColumn:
    """A column of a shape. Of the class it is this description; of a table of that shape it is the values.

    Args:
        kind: its type; None where the schema of the shape is made elsewhere and says it.
        nullable: whether it can hold nulls.
        name: its name, where Python cannot have an attribute of that name.
    """

    def __init__(self, kind: pa.DataType | None = None, *, nullable: bool = True, name: str = "") -> None:
        self._kind = kind
        self._nullable = nullable
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, rows: None, owner: type) -> TableColumn: ...
    @overload
    def __get__(self, rows: TableShape, owner: type) -> pa.ChunkedArray: ...
    def __get__(self, rows: TableShape | None, owner: type) -> TableColumn | pa.ChunkedArray:
        return self if rows is None else rows.table.column(self.name)

    @property
    def field(self) -> pa.Field:
        """The column as a field of an Arrow schema."""
        return pa.field(self.name, self._kind, self._nullable)


class TableShape:
    """A table whose columns are known. It may have been read without some of them; to ask for one of those is a KeyError.

    A subclass declares its columns in the order of its schema. Where the schema is made elsewhere (`class Rows(TableShape, schema=...)`), it
    declares those that are read by name.
    """

    __slots__ = ("table",)
    schema: ClassVar[pa.Schema]

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __init_subclass__(cls, schema: pa.Schema | None = None) -> None:
        columns = [each for each in vars(cls).values() if isinstance(each, TableColumn)]
        if schema is None:
            schema = pa.schema([each.field for each in columns])
        elif strange := [each.name for each in columns if each.name not in schema.names]:
            raise TypeError(f"{cls.__name__} declares {', '.join(strange)}, which its schema does not have")
        cls.schema = schema

    def __len__(self) -> int:
        return self.table.num_rows

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        return cls(cls.schema.empty_table())

    @classmethod
    def of(cls, columns: Mapping[TableColumn, Values]) -> Self:
        """The rows of some columns; every column of the schema has to be there, in any order."""
        named = {each.name: values for each, values in columns.items()}
        return cls(pa.Table.from_arrays([named[name] for name in cls.schema.names], schema=cls.schema))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Some tables of the shape as one, in their order."""
        return cls(pa.concat_tables([each.table for each in parts])) if parts else cls.empty()

    def filter(self, mask: Any) -> Self:
        """The rows where a boolean array is true."""
        return type(self)(self.table.filter(mask))

    def take(self, rows: Any) -> Self:
        """Some rows, by an array of their places."""
        return type(self)(self.table.take(rows))

    def with_column(self, column: TableColumn, values: Values) -> Self:
        """The same rows with other values in one column."""
        place = self.table.schema.get_field_index(column.name)
        return type(self)(self.table.set_column(place, self.schema.field(column.name), values))
