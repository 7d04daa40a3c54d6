"""The columns of a dataset as a GeoPackage can hold them, without loss: what it has no type for is text or JSON text, and reads back as it was.

Not here: writing the file (`extract`), reading one (`source`).
Clauses: OGC 12-128r18 (GeoPackage 1.3), table 1: no decimals, times of day, local times, lists or structs; times to the millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.errors import MerestoneError, UsageError
from merestone.json_value import Json

MOST_COLUMNS = 2000
"""How many columns a table of SQLite has at most, as it is commonly built."""
_JSON = {"ARROW:extension:name": "arrow.json"}  # GDAL writes such text with the MIME type of JSON


class Held:
    """The rows of a dataset in columns that a GeoPackage has.

    schema: of the batches. fid: a name for the row number that no column has. fault: what stopped the rows, where something did.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        geometry: str | None,
        geometries: Sequence[str],
        fine: frozenset[str],
        as_json: Callable[[object], str],
    ) -> None:
        """Start.

        Args:
            schema: the Arrow schema of the rows.
            batches: pyarrow.RecordBatch of that schema.
            geometry: the geometry column, None where it is not among them.
            geometries: all columns of the dataset that hold geometries.
            fine: columns of times that need digits below the millisecond, and are written as text.
            as_json: a value as JSON text.

        Raises:
            UsageError: a name or a column that a GeoPackage cannot hold.
        """
        _check(schema, geometry, geometries)
        self._batches, self._fine, self._as_json = batches, fine, as_json
        self._makers = [self._maker(field) for field in schema]
        fields = [
            pa.field(field.name, pa.string(), metadata=_JSON if _is_nested(field.type) else None) if maker is not None else field
            for field, maker in zip(schema, self._makers, strict=True)
        ]
        self.schema = pa.schema(fields)
        self.fid = _unused({name.lower() for name in schema.names})
        self.fault: MerestoneError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                columns = [column if maker is None else maker(column) for column, maker in zip(batch.columns, self._makers, strict=True)]
                for field, column in zip(self.schema, columns, strict=True):
                    _refuse_finer(field, column)
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except MerestoneError as fault:
            self.fault = fault
            raise

    def _maker(self, field: pa.Field) -> Callable[[pa.Array], pa.Array] | None:
        """How the text of a column is made, None for a column that stays as it is."""
        kind = field.type
        if pa.types.is_decimal(kind):
            return lambda column: pa.array([None if each is None else f"{each:f}" for each in column.to_pylist()], pa.string())
        if _is_nested(kind):
            return lambda column: pa.array([None if each is None else self._as_json(each) for each in column.to_pylist()], pa.string())
        if pa.types.is_time(kind):
            return lambda column: column.cast(pa.string())
        if pa.types.is_timestamp(kind) and (kind.tz is None or field.name in self._fine):
            return lambda column: pc.replace_substring(column.cast(pa.string()), " ", "T")
        return None


def fine_times(schema: pa.Schema, batches: Callable[[list[str]], Iterable[pa.RecordBatch]]) -> frozenset[str]:
    """The columns of instants that have digits below the millisecond.

    Args:
        schema: the Arrow schema of the rows.
        batches: gives the rows with some of their columns.
    """
    names = [field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.tz is not None]
    if not names:
        return frozenset()
    return frozenset(name for batch in batches(names) for name in names if _is_finer(batch.column(name)))


def _check(schema: pa.Schema, geometry: str | None, geometries: Sequence[str]) -> None:
    if len(schema) > MOST_COLUMNS - 1:
        raise _refused(f"{len(schema):,} columns, where it holds {MOST_COLUMNS:,} with the row number", "fewer columns")
    for name in geometries:
        if name != geometry and name in schema.names:
            raise _refused(f"a second geometry, {name!r}", f"all columns but {name}")
    seen: dict[str, str] = {}
    for name in schema.names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            raise _refused(f"both {twin!r} and {name!r}, which are one name to SQLite", "one of them")


def _refused(what: str, choice: str) -> UsageError:
    return UsageError(f"a GeoPackage cannot hold {what}", field="out", hint=f"write .parquet, or choose {choice}: «columns»")


def _refuse_finer(field: pa.Field, column: pa.Array) -> None:
    if pa.types.is_timestamp(field.type) and _is_finer(column):
        raise _refused(f"the times of {field.name!r}: it keeps milliseconds, and some have more digits", f"all columns but {field.name}")


def _is_finer(column: pa.Array) -> bool:
    """Whether times have more digits than a GeoPackage keeps. GDAL also writes no part of a second right before 1970."""
    ticks = np.asarray(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(0))
    return bool((ticks % 1000).any() or ((ticks < 0) & (ticks % 1_000_000 != 0)).any())


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_struct(kind))


def _unused(names: set[str]) -> str:
    name = "fid"
    while name in names:
        name = "row_" + name
    return name


def geometries_of(contract: Mapping[str, Json], primary: str) -> list[str]:
    """The names of all geometry columns of a contract's body."""
    return [primary, *(each["name"] for each in contract["schema_fields"] if each["type"] == "geometry")]
