"""Whether the Arrow buffers that a driver hands over hold together, looked at before anyone reads a value from them.

Drivers fill buffers in C, and a slip there is another row's value: offsets that go back, a null that is marked nowhere. All that follows
trusts the buffers.
Not here: what a driver's columns mean (`vector`), reading them another way (`gdal`), whether text is UTF-8 (`columns`).
Layout: Apache Arrow columnar format 1.5, "Physical Memory Layout".
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from merestone.source.columns import storage_of

_SHORTEST_WKB = 9  # byte order, type, and a count of 0


def fault_of(batch: pa.RecordBatch, schema: pa.Schema, geometries: Collection[int]) -> str | None:
    """What is wrong with the buffers of a record batch, None where they hold together.

    Args:
        batch: a pyarrow.RecordBatch as the driver gave it.
        schema: the schema that the driver announced.
        geometries: the places of the columns that hold WKB; a valid value there is never shorter than a geometry can be.
    """
    if batch.schema.types != schema.types:
        return "its columns have other types than the driver announced"
    for at, field in enumerate(schema):
        said = _fault(storage_of(batch.column(at)), at in geometries)
        if said is not None:
            return f"column {field.name or 'geometry'!r}: {said}"
    return None


def _fault(array: pa.Array, is_wkb: bool) -> str | None:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        # Bytes that are not text are found later, with their row. Here they must not hide what is wrong with the offsets.
        array = array.view(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as fault:
        return str(fault)
    if not is_wkb or not len(array):
        return None
    kind = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    offsets = np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array) + 1]
    short = np.diff(offsets) < _SHORTEST_WKB
    if array.null_count:
        short &= np.asarray(array.is_valid())
    return f"row {int(short.argmax()) + 1} of the batch is too short for a geometry and is not marked null" if short.any() else None
