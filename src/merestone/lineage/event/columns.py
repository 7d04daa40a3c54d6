"""Events in columns: the compact form that travels in memory, its way to the schema's form and back, and hashes over columns.

Not here: where the values come from (`collector`), the tree over the hashes (`merkle`).

The compact form keeps the event id as 16 bytes and every other text as a dictionary column: about 70 bytes an event in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import one_chunk
from merestone.columnar.hashed_values import Piece
from merestone.columnar.unicode import nfc
from merestone.lineage.event.record import SEPARATOR, check_identity
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, SCHEMA

_HEX = np.frombuffer("".join(f"{each:02x}" for each in range(256)).encode(), dtype=np.uint16)
_CONTROL = "[\\x{00}-\\x{1f}\\x{7f}-\\x{9f}]"
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
ID = pa.binary(16)

COMPACT_SCHEMA: pa.Schema = pa.schema(
    [
        pa.field(each.name, ID if each.name == "event_id" else _DICTIONARY if each.type == pa.string() else each.type)
        for each in LINEAGE_ARROW_SCHEMA
    ]
)


def check_feature_ids(feature_ids: pa.Array) -> None:
    """The checks of `event.check_identity` over a pyarrow string array.

    Raises:
        ValueError: a null, an empty text, a control character, a text that is not NFC; names the first.
    """
    if feature_ids.null_count:
        raise ValueError(f"feature_id is missing in row {pc.index(pc.is_null(feature_ids), True).as_py()} of the batch")
    lengths = pc.binary_length(feature_ids)
    bad = pc.or_(pc.equal(lengths, 0), pc.match_substring_regex(feature_ids, _CONTROL))
    bad = pc.or_(bad, pc.not_equal(nfc(feature_ids), feature_ids))
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        check_identity("feature_id", feature_ids[row].as_py())
        raise ValueError(f"feature_id {feature_ids[row].as_py()!r} in row {row} of the batch may not be part of an event's identity")


def event_ids(run_id: pa.Array | str, stage: pa.Array | str, feature_id: pa.Array, event_type: pa.Array | str) -> npt.NDArray[np.uint8]:
    """`event.make_event_id` of many events whose texts are checked: uint8, shape (events, 16).

    `feature_id` is a pyarrow string array or dictionary column; the others are such columns too, or one text for all.
    """
    pieces: list[Piece] = []
    for given in (run_id, stage, feature_id, event_type):
        pieces += [SEPARATOR.encode(), given.encode() if isinstance(given, str) else given]
    return hashing.hashed(pieces[1:], len(feature_id), 16)


def raw(digests: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """A fixed_size_binary(size) array without nulls as uint8 of shape (rows, size)."""
    data = np.frombuffer(digests.buffers()[1], np.uint8) if len(digests) else np.empty(0, np.uint8)
    return data[digests.offset * size : (digests.offset + len(digests)) * size].reshape(-1, size)


def id_array(digests: npt.NDArray[np.uint8]) -> pa.Array:
    """Digests of shape (rows, 16) as a pyarrow fixed_size_binary(16) array."""
    rows = np.ascontiguousarray(digests)
    return pa.Array.from_buffers(ID, len(rows), [None, pa.py_buffer(rows)])


def to_hex(ids: pa.Array) -> pa.Array:
    """A fixed_size_binary(16) array as a string array of hex digits."""
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(_HEX[raw(ids, 16)]))


def from_hex(texts: pa.Array) -> pa.Array:
    """The way back of `to_hex`.

    Raises:
        ValueError: a text that is not 32 hex digits.
    """
    if texts.null_count or not pc.all(pc.match_substring_regex(texts, "^[0-9a-f]{32}$")).as_py():
        raise ValueError("event_id is not 32 lower-case hex digits")
    _, offsets_buffer, data = texts.buffers()
    first = np.frombuffer(offsets_buffer, np.int32)[texts.offset] if len(texts) else 0
    digits = np.frombuffer(data, np.uint8)[first : first + 32 * len(texts)] if len(texts) else np.empty(0, np.uint8)
    nibbles = np.where(digits >= ord("a"), digits - (ord("a") - 10), digits - ord("0")).astype(np.uint8)
    return id_array((nibbles[0::2] << np.uint8(4) | nibbles[1::2]).astype(np.uint8).reshape(-1, 16))


def words(ids: pa.ChunkedArray) -> npt.NDArray[np.uint64] | None:
    """Event ids (a column of texts) as four numbers each, shape (rows, 4); None where one of them has not 32 bytes."""
    found = [np.empty((0, 4), np.uint64)]
    for chunk in ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]:
        if chunk.type != pa.string() or chunk.null_count:
            return None
        if not len(chunk):
            continue
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if not (np.diff(ends) == 32).all():
            return None
        found.append(np.frombuffer(data, np.uint64, 4 * len(chunk), int(ends[0])).reshape(-1, 4))
    return found[1] if len(found) == 2 else np.concatenate(found)


def mixed(of: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One number for the four of each id: equal for equal ids, and hardly ever for others."""
    odd = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
    return np.asarray(of @ odd, np.uint64)


class Alike:
    """Makes dictionary columns that say one text, or nothing, in each of `rows` rows; they share their codes."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._zeros: pa.Array | None = None
        self._nulls: pa.Array | None = None

    def __call__(self, text: str | None) -> pa.Array:
        """The column."""
        if text is None:
            if self._nulls is None:
                self._nulls = pa.DictionaryArray.from_arrays(pa.nulls(self._rows, pa.int32()), pa.array([], pa.string()))
            return self._nulls
        if self._zeros is None:
            self._zeros = pa.array(np.zeros(self._rows, np.int32))
        return coded(self._zeros, pa.array([text], pa.string()))


def coded(codes: npt.NDArray[np.int32] | pa.Array, texts: pa.Array) -> pa.Array:
    """A dictionary column from int32 codes (NumPy or pyarrow) that are known to be within the texts."""
    return pa.DictionaryArray.from_arrays(codes, texts, safe=False)


def is_uniform(column: pa.Array) -> bool:
    """Whether a column is a dictionary column that says one text in every row."""
    return isinstance(column, pa.DictionaryArray) and len(column.dictionary) == 1 and column.null_count == 0


def concat(tables: list[pa.Table]) -> pa.Table:
    """Compact tables as one, in order, with one chunk and one dictionary a column. The list is empty afterwards: nothing is held twice."""
    if not tables:
        return COMPACT_SCHEMA.empty_table()
    if len(tables) == 1 and all(column.num_chunks == 1 for column in tables[0].columns):
        return tables.pop()
    alike = Alike(sum(each.num_rows for each in tables))
    waiting = {name: [chunk for each in tables for chunk in each.column(name).chunks] for name in COMPACT_SCHEMA.names}
    tables.clear()
    return pa.Table.from_arrays([_joined(waiting.pop(name), alike) for name in COMPACT_SCHEMA.names], schema=COMPACT_SCHEMA)


def _joined(chunks: list[pa.Array], alike: Alike) -> pa.Array:
    """The chunks of one column as one array."""
    if pa.types.is_dictionary(chunks[0].type) and all(chunk.null_count == len(chunk) for chunk in chunks):
        return alike(None)
    if all(is_uniform(chunk) for chunk in chunks) and len({chunk.dictionary[0] for chunk in chunks}) == 1:
        return alike(chunks[0].dictionary[0].as_py())
    return pa.chunked_array(chunks).unify_dictionaries().combine_chunks()


def expand(table: pa.Table) -> pa.Table:
    """A compact table in the schema's form (LINEAGE_ARROW_SCHEMA).

    Raises:
        ValueError: the table holds 2^31 bytes of one text column; expand it in slices.
    """
    arrays = []
    for field in LINEAGE_ARROW_SCHEMA:
        column = table.column(field.name)
        if field.name == "event_id":
            chunks = [to_hex(each) for each in column.chunks]
            arrays.append(pa.chunked_array(chunks, pa.string()))
        else:
            arrays.append(_texts(column) if column.type != field.type else column)
    return pa.Table.from_arrays(arrays, schema=LINEAGE_ARROW_SCHEMA)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column as a string column."""
    chunks = []
    for each in column.chunks:
        if each.null_count == len(each):
            chunks.append(pa.nulls(len(each), pa.string()))
        elif each.null_count == 0 and len(each.dictionary) == 1:
            chunks.append(pa.repeat(each.dictionary[0], len(each)))
        else:
            chunks.append(pc.cast(each, pa.string()))
    return pa.chunked_array(chunks, pa.string())


def conform(table: pa.Table, names: Sequence[str] | None = None) -> pa.Table:
    """A table of an older or newer minor version of the schema in the compiled one (or its `names`).

    Raises:
        ValueError: a required field holds nulls, or a value does not fit its type.
    """
    fields = [LINEAGE_ARROW_SCHEMA.field(each) for each in (LINEAGE_ARROW_SCHEMA.names if names is None else names)]
    arrays = [
        pc.cast(table.column(each.name), each.type) if each.name in table.column_names else pa.nulls(table.num_rows, each.type)
        for each in fields
    ]
    for each, array in zip(fields, arrays, strict=True):
        if array.null_count and not each.nullable:
            raise ValueError(f"it lacks {each.name} in {array.null_count} rows")
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=LINEAGE_ARROW_SCHEMA.metadata))


def compact(table: pa.Table) -> pa.Table:
    """A table of the schema's form in compact form.

    Raises:
        ValueError: another schema, or a null in a required field (which Arrow itself lets pass).
    """
    if not table.schema.equals(LINEAGE_ARROW_SCHEMA):
        raise ValueError(f"the table is not of the lineage schema {SCHEMA.version}: {table.schema.names}")
    table = table.combine_chunks()
    arrays = []
    for field in LINEAGE_ARROW_SCHEMA:
        column = one_chunk(table.column(field.name))
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} is missing in {column.null_count} rows")
        if field.name == "event_id":
            column = from_hex(column)
        elif field.type == pa.string():
            column = pc.dictionary_encode(column)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=COMPACT_SCHEMA)
