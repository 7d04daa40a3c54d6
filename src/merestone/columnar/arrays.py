"""Single Arrow arrays and their buffers: a column as one plain array, where the values of a binary column lie, and one made of offsets and bytes.

Not here: what the values mean; casts of a delivery to a contract's types (`normalise`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.errors import CorruptError

Ints = npt.NDArray[np.int64]


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array; one that is in one piece is not copied."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without chunks, dictionary, run-end encoding, views or extension type."""
    array = one_chunk(array)
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    return array


def places(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints, Ints, Ints]:
    """The bytes of a binary column (padded: a word can be read at any place), starts, ends, and the rows that are not null."""
    _, offsets, data = values.buffers()
    n = len(values)
    wide = pa.types.is_large_binary(values.type)
    ends = np.zeros(n + 1, np.int64)
    if n:
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[values.offset : values.offset + n + 1].astype(np.int64)
    low, high = int(ends[0]), int(ends[-1])
    raw = np.zeros(high - low + 64, np.uint8)
    if high > low:
        raw[: high - low] = np.frombuffer(data, np.uint8)[low:high]
    rows = np.arange(n) if values.null_count == 0 else np.flatnonzero(np.asarray(values.is_valid()))
    return raw, ends[:-1] - low, ends[1:] - low, rows


def binary(offsets: Ints, data: Any, mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A binary array; large only where 2 GiB are not enough."""
    large = offsets[-1] >= 2**31
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    starts = offsets if large else offsets.astype(np.int32)
    kind = pa.large_binary() if large else pa.binary()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [valid, pa.py_buffer(starts), pa.py_buffer(data)])


def proved(array: pa.Array) -> pa.Array:
    """The array itself, once its buffers hold its rows and its offsets and codes lie inside their data.

    Raises:
        CorruptError: they do not. What lies outside is never taken for an empty value.
    """
    kind, looked_at = array.type, array
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):  # whether text is UTF-8 is asked where text comes in
        looked_at = array.view(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    try:
        looked_at.validate(full=_has_offsets(looked_at.type))
    except pa.ArrowInvalid as fault:
        raise CorruptError(
            f"a column of {len(array)} rows does not hold together: {fault}",
            hint="read or write it again; «verify(DATASET)» proves a dataset",
        ) from fault
    return array


def _has_offsets(kind: pa.DataType) -> bool:
    of_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return of_bytes or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_dictionary(kind)


def one_binary(values: Any) -> pa.Array:
    """A single array of binary or large_binary, of values that are bytes in any of Arrow's forms.

    Raises:
        CorruptError: the array's offsets lie outside its data.
        TypeError: the values are not bytes.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    if isinstance(values, pa.ChunkedArray):  # more than one array can hold
        values = values.cast(pa.large_binary()).combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return proved(values)
    if pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        cast: pa.Array = values.cast(pa.binary())
        return cast
    raise TypeError(f"the values are bytes in a column of binary, not of {kind}")
