"""Parquet files."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from . import RecordBatch, Schema, Table

class Statistics:
    has_min_max: bool
    has_null_count: bool
    min: Any
    max: Any
    null_count: int | None
    num_values: int

class ColumnChunkMetaData:
    path_in_schema: str
    physical_type: str
    num_values: int
    compression: str
    encodings: tuple[str, ...]
    statistics: Statistics | None
    has_dictionary_page: bool
    dictionary_page_offset: int | None
    data_page_offset: int
    total_compressed_size: int
    total_uncompressed_size: int
    geo_statistics: Any

class RowGroupMetaData:
    num_rows: int
    num_columns: int
    total_byte_size: int
    def column(self, i: int) -> ColumnChunkMetaData: ...

class ColumnSchema:
    name: str
    path: str
    physical_type: str
    logical_type: Any
    max_definition_level: int
    max_repetition_level: int

class ParquetSchema:
    names: list[str]
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[ColumnSchema]: ...
    def column(self, i: int) -> ColumnSchema: ...
    def to_arrow_schema(self) -> Schema: ...

class FileMetaData:
    num_rows: int
    num_row_groups: int
    num_columns: int
    created_by: str
    serialized_size: int
    metadata: dict[bytes, bytes] | None
    schema: ParquetSchema
    def row_group(self, i: int) -> RowGroupMetaData: ...

class ParquetFile:
    metadata: FileMetaData
    schema: ParquetSchema
    schema_arrow: Schema
    num_row_groups: int
    def __init__(self, source: Any, **options: Any) -> None: ...
    def read(self, columns: Sequence[str] | None = ..., use_threads: bool = ..., use_pandas_metadata: bool = ...) -> Table: ...
    def read_row_group(self, i: int, columns: Sequence[str] | None = ..., use_threads: bool = ...) -> Table: ...
    def read_row_groups(self, row_groups: Sequence[int], columns: Sequence[str] | None = ..., use_threads: bool = ...) -> Table: ...
    def iter_batches(
        self, batch_size: int = ..., row_groups: Sequence[int] | None = ..., columns: Sequence[str] | None = ..., use_threads: bool = ...
    ) -> Iterator[RecordBatch]: ...
    def close(self, force: bool = ...) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

class SortingColumn:
    def __init__(self, column_index: int, descending: bool = ..., nulls_first: bool = ...) -> None: ...

class ParquetWriter:
    schema: Schema
    def __init__(self, where: Any, schema: Schema, **options: Any) -> None: ...
    def write_table(self, table: Table, row_group_size: int | None = ...) -> None: ...
    def write_batch(self, batch: RecordBatch, row_group_size: int | None = ...) -> None: ...
    def write(self, table_or_batch: Table | RecordBatch, row_group_size: int | None = ...) -> None: ...
    def add_key_value_metadata(self, key_value_metadata: dict[str, str]) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

def read_table(source: Any, **options: Any) -> Table: ...
def read_schema(where: Any, **options: Any) -> Schema: ...
def read_metadata(where: Any, **options: Any) -> FileMetaData: ...
def write_table(table: Table, where: Any, **options: Any) -> None: ...
