"""What every reader does to its columns: names in NFC, text that is text, plain Arrow types, and the mark of JSON text.

Not here: the contract's types (`normalise.cast`), the encodings of DBF (`dbf`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.errors import SourceError
from merestone.source.port import UnreadableValueError

JSON_TEXT = {b"merestone:content": b"json"}  # field metadata: each value is one JSON text (objects, mixed arrays, mixed types)
DATETIME_TEXT = {b"merestone:content": b"datetime"}  # field metadata: each value is an ISO 8601 date and time, with or without a zone


def is_json_text(field: pa.Field) -> bool:
    """Whether a field of a delivered schema holds JSON texts."""
    return (field.metadata or {}).get(b"merestone:content") == b"json"


def nfc_names(names: Sequence[str], path: str) -> list[str]:
    """Column names in Unicode normal form C (UAX #15).

    Raises:
        SourceError: two columns have the same name.
    """
    out = [unicodedata.normalize("NFC", name) for name in names]
    seen: set[str] = set()
    for name in out:
        if name in seen:
            raise SourceError(
                f"{path} has two columns called {name!r} (names are compared in Unicode form NFC)",
                field=name,
                hint="rename one of them in the export",
            )
        seen.add(name)
    return out


def geometry_label(wanted: str, attributes: Sequence[str]) -> str:
    """A name for the geometry column that no attribute has: an attribute may be called `geometry`, and is data."""
    taken = set(attributes)
    while wanted in taken:
        wanted += "_"
    return wanted


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The storage type under any extension types (a registered extension must not change what is read)."""
    return plain_type(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else kind


def storage_of(array: pa.Array) -> pa.Array:
    """The storage array under any extension type."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array


def checked_text(array: pa.Array, *, path: str, name: str, first_row: int) -> pa.Array:
    """The same array, its text proved to be UTF-8, whatever the layout.

    Args:
        array: a pyarrow array of one batch, unproved.
        path: the file, for the message.
        name: the column, for the message.
        first_row: the number of the batch's first row in the file, from 1.

    Raises:
        SourceError: a value is not UTF-8; names file, column, record and bytes.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as fault:
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            is_large = pa.types.is_large_string(array.type)
            raw = array.view(pa.large_binary() if is_large else pa.binary()).cast(pa.binary())
            return decoded(raw, "utf-8", path=path, name=name, first_row=first_row, remedy=_ALWAYS_UTF8)
        raise SourceError(f"{path}: column {name!r} is damaged: {fault}", field=name, hint="export it again") from fault
    return array


_ALWAYS_UTF8 = (
    "have it exported again as UTF-8, which its format demands (source.encoding is for shapefiles); a text file can be converted: "
    "iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
)
_STATED = "have it exported again as UTF-8, or state the true encoding in source.encoding"


def decoded(raw: pa.Array, codec: str, *, path: str, name: str, first_row: int, remedy: str = _STATED) -> pa.Array:
    """Bytes of one column as text.

    Args:
        raw: a pyarrow binary array; no value contains a zero byte.
        codec: the name of a Python codec.
        path: the file, for the message.
        name: the column, for the message.
        first_row: the number of the batch's first row in the file, from 1.
        remedy: what helps against bytes that are not of the encoding.

    Returns:
        A pyarrow string array of the same length and nulls.

    Raises:
        SourceError: a value has bytes that the encoding does not know; names file, column, record and bytes.
    """
    try:
        if codec == "utf-8":
            return raw.cast(pa.string())
        return _decoded_at_once(raw, codec)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        pass
    for row, value in enumerate(raw):
        if value.is_valid:
            try:
                value.as_py().decode(codec)
            except UnicodeDecodeError as fault:
                raise undecodable(fault, value.as_py(), codec, path=path, name=name, row=first_row + row, remedy=remedy) from None
    raise SourceError(
        f"{path}: the text of column {name!r} is not {codec.upper()}", field=name, hint="state the encoding in source.encoding"
    )


def undecodable(
    fault: UnicodeDecodeError, value: bytes, codec: str, *, path: str, name: str, row: int, remedy: str = _STATED
) -> UnreadableValueError:
    """The error for bytes that an encoding does not know."""
    end = fault.start + 1
    while end < min(len(value), fault.start + 8) and value[end] >= 0x80:  # the whole run of odd bytes helps more than the first
        end += 1
    shown = " ".join(f"0x{byte:02X}" for byte in value[fault.start : end])
    return UnreadableValueError(
        path,
        name,
        row,
        rule="encoding",
        expected=f"text in {codec.upper()}",
        observed=f"byte {shown} not valid in {codec.upper()}",
        remedy=remedy,
    )


def _decoded_at_once(raw: pa.Array, codec: str) -> pa.Array:
    """Decode all values in one call: each is led by a zero byte, which no value contains and every such codec keeps."""
    valid = raw.is_valid()
    filled = raw.fill_null(b"")
    offsets = np.frombuffer(filled.buffers()[1], dtype=np.int32)[filled.offset : filled.offset + len(filled) + 1]
    data = np.frombuffer(filled.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    joined = np.insert(data, offsets[:-1] - offsets[0], 0).tobytes()
    text = np.frombuffer(joined.decode(codec).encode("utf-8"), dtype=np.uint8)
    zeros = np.flatnonzero(text == 0)
    ends = np.append(zeros, len(text))[1:] if len(zeros) else zeros
    lengths = np.zeros(len(raw) + 1, dtype=np.int32)
    np.cumsum(ends - zeros - 1, out=lengths[1:])
    values = pa.StringArray.from_buffers(len(raw), pa.py_buffer(lengths), pa.py_buffer(text[text != 0].tobytes()))
    return pc.if_else(valid, values, pa.scalar(None, pa.string()))
