"""Canonical key bytes: what separates one feature from another, typed, and ordered alike on every machine.

    one component   tag, body                       components follow each other in the order of the key rule
    integer         'i', 8 bytes big-endian with the sign bit flipped ('j', 8 bytes big-endian: beyond 2^63 - 1)
    text            's', NFC UTF-8 with 00 written as 00 FF; 00 00 at the end unless it is the last component
    bytes           'x', as text, without normalisation
    date            'd', days since 1970, 4 bytes big-endian with the sign bit flipped
    time, instant, local time   't', 'T', 'L', microseconds, as an integer
    decimal         'D', scale, 16 bytes big-endian with the sign bit flipped
    boolean         'b', one byte

So the order of the bytes is the order of the values, component by component.

Not here: which columns are the key (the publication says), uniqueness (`gate`), hashes of other things (`digest`).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import one_chunk, plain
from merestone.columnar.unicode import nfc
from merestone.contract.contract import FieldType
from merestone.identity.canonical import to_microseconds
from merestone.identity.text import hexadecimal

_CONTROL = "[\\x{00}-\\x{1f}\\x{7f}-\\x{9f}]"
_AMBIGUOUS = _CONTROL + r"|\\u[0-9a-f]{4}"  # in a key of one text: what has to be written out for its id to be of no other text
_NOTHING_SEEN = (
    r"\A[\p{Z}\p{Cf}\x{09}-\x{0d}\x{1c}-\x{1f}\x{85}\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}"
    r"\x{2800}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}]*\z"
)
"""A text of blanks and of characters that no font draws (Unicode: default ignorable ones, fillers, the blank of Braille)."""
_SIGN = np.uint64(1 << 63)
_EMPTY = pa.scalar(b"", pa.binary())


def key_bytes(
    data: pa.Table | pa.RecordBatch, columns: Sequence[str], types: Sequence[FieldType | None] | None = None
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The canonical key of each row.

    Args:
        data: pyarrow.RecordBatch or Table.
        columns: the key columns, in the order of the key rule.
        types: the contract's types of these columns, where it has them; they allow integers that a format stores as floats.

    Returns:
        Binary array (null where a component is null), and the mask of these rows.

    Raises:
        KeyError: a key column is missing.
        ValueError: a key column is of a type that cannot be a key; a float that is not an integer. Names the column.
    """
    if not columns:
        raise ValueError("a key has at least one column")
    kinds = list(types) if types is not None else [None] * len(columns)
    arrays = [key_values(_column(data, name), name, kind) for name, kind in zip(columns, kinds, strict=True)]
    null = np.zeros(data.num_rows, np.bool_)
    for each in arrays:
        null |= np.asarray(each.is_null())
    parts = [_component(each, last=place == len(arrays) - 1) for place, each in enumerate(arrays)]
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _EMPTY)
    return joined, null


def key_hash(keys: pa.Array) -> pa.Array:
    """BLAKE2b with 16 bytes of canonical keys: fixed_size_binary(16), null for null."""
    return hashing.blake2b16(keys)


def key_values(array: pa.Array | pa.ChunkedArray, name: str, kind: FieldType | None = None) -> pa.Array:
    """A key column as one plain array of its type, floats made integers where the contract says so.

    Raises:
        ValueError: the type cannot be a key, or a float is not an integer.
    """
    array = plain(array)
    there = array.type
    if pa.types.is_floating(there):
        if kind is None or kind.kind != "integer":
            raise ValueError(f"key column {name!r} holds floating-point numbers ({there}); a key is an integer or a text")
        whole = pc.or_kleene(pc.is_null(array), pc.equal(array, pc.round(array, ndigits=0)))
        if not pc.all(pc.and_(whole, pc.less(pc.abs(array), 2.0**63)), skip_nulls=True).as_py():
            bad = array.filter(pc.invert(pc.fill_null(whole, False))).to_pylist()[:1]
            raise ValueError(f"key column {name!r} holds {bad[0] if bad else 'a number'}, which is not an integer")
        return array.cast(pa.int64())
    if pa.types.is_null(there):
        return array.cast(pa.string())
    if not _is_key_type(there):
        raise ValueError(f"key column {name!r} is of type {there}, which cannot be a key")
    return array


def _is_key_type(there: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(there)
        or pa.types.is_string(there)
        or pa.types.is_large_string(there)
        or pa.types.is_binary(there)
        or pa.types.is_large_binary(there)
        or pa.types.is_fixed_size_binary(there)
        or pa.types.is_boolean(there)
        or pa.types.is_date(there)
        or pa.types.is_time(there)
        or pa.types.is_timestamp(there)
        or pa.types.is_decimal128(there)
    )


def _column(data: pa.Table | pa.RecordBatch, name: str) -> pa.Array | pa.ChunkedArray:
    if name not in data.schema.names:
        raise KeyError(f"key column {name!r} is not among {', '.join(data.schema.names)}")
    return data.column(name)


def _component(array: pa.Array, *, last: bool) -> pa.Array:
    """One component's bytes, null for null."""
    there = array.type
    if pa.types.is_string(there) or pa.types.is_large_string(there):
        return _text(nfc(array).cast(pa.large_binary() if pa.types.is_large_string(there) else pa.binary()), b"s", last=last)
    if pa.types.is_binary(there) or pa.types.is_large_binary(there) or pa.types.is_fixed_size_binary(there):
        return _text(array.cast(pa.large_binary() if pa.types.is_large_binary(there) else pa.binary()), b"x", last=last)
    mask = np.asarray(array.is_null())
    if pa.types.is_boolean(there):
        body = np.asarray(array.fill_null(False)).astype(np.uint8).reshape(-1, 1)
        return _fixed(b"b", body, mask)
    if pa.types.is_date(there):
        days = np.asarray(array.cast(pa.date32()).cast(pa.int32()).fill_null(0)).view(np.uint32) ^ np.uint32(1 << 31)
        return _fixed(b"d", days.astype(">u4").view(np.uint8).reshape(-1, 4), mask)
    if pa.types.is_decimal128(there):
        raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * 16 : (array.offset + len(array)) * 16].reshape(-1, 16)
        body = np.empty((len(array), 17), np.uint8)
        body[:, 0] = there.scale & 0xFF
        body[:, 1:] = raw[:, ::-1]
        body[:, 1] ^= 0x80
        return _fixed(b"D", body, mask)
    if pa.types.is_uint64(there):
        values = np.asarray(array.fill_null(0))
        tags = np.where(values >= _SIGN, ord("j"), ord("i")).astype(np.uint8)
        return _fixed(tags, _big_endian(np.where(values >= _SIGN, values, values ^ _SIGN)), mask)
    tag = b"i"
    if pa.types.is_time(there) or pa.types.is_timestamp(there):
        tag = b"t" if pa.types.is_time(there) else b"L" if there.tz is None else b"T"
        array = to_microseconds(array)
    return _fixed(tag, _big_endian(np.asarray(array.cast(pa.int64()).fill_null(0)).view(np.uint64) ^ _SIGN), mask)


def _big_endian(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return values.astype(">u8").view(np.uint8).reshape(-1, 8)


def _fixed(tag: bytes | npt.NDArray[np.uint8], body: npt.NDArray[np.uint8], mask: npt.NDArray[np.bool_]) -> pa.Array:
    """Rows of one width, tag first, as a binary array."""
    n, width = len(body), body.shape[1]
    rows = np.empty((n, width + 1), np.uint8)
    rows[:, 0] = tag[0] if isinstance(tag, bytes) else tag
    rows[:, 1:] = body
    small = n * (width + 1) < 2**31
    kind, offsets = pa.binary() if small else pa.large_binary(), np.arange(n + 1, dtype=np.int64) * (width + 1)
    if small:
        offsets = offsets.astype(np.int32)
    valid = None if not mask.any() else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(kind, n, [valid, pa.py_buffer(offsets), pa.py_buffer(rows)])


def _text(values: pa.Array, tag: bytes, *, last: bool) -> pa.Array:
    kind = values.type
    if pc.any(pc.match_substring(values, b"\0")).as_py():
        values = pc.replace_substring(values, b"\0", b"\0\xff")
    parts = [pa.scalar(tag, kind), values] + ([] if last else [pa.scalar(b"\0\0", kind)])
    joined: pa.Array = pc.binary_join_element_wise(*parts, pa.scalar(b"", kind))
    return joined


# ---- back to values ----


def decode_keys(keys: pa.Array | pa.ChunkedArray, types: Sequence[pa.DataType] | None = None) -> list[pa.Array]:
    """The columns that canonical keys were made of, in order.

    Args:
        keys: binary array; all keys of one rule, that is with the same tags in the same places. Null keys give nulls.
        types: pyarrow types to cast the columns to; without them int64 (uint64 where needed), string, binary, date32, time64[us],
            timestamp[us] (UTC for instants), decimal128(38, scale), bool.

    Raises:
        ValueError: bytes that are not canonical keys, or keys of different rules.
    """
    keys = one_chunk(keys)
    valid = keys.drop_null()
    if len(valid) == 0:
        return [pa.nulls(len(keys), kind) for kind in types or []]
    data, start, end = _flat(valid)
    if (end == start).any():
        raise ValueError("a canonical key is empty")
    columns = []
    while (end > start).any():
        values, start = _take_component(data, start, end)
        columns.append(values)
    if keys.null_count:
        place = np.cumsum(np.asarray(keys.is_valid())) - 1
        where = pa.array(place, mask=np.asarray(keys.is_null()))
        columns = [each.take(where) for each in columns]
    if types is not None:
        if len(types) != len(columns):
            raise ValueError(f"keys have {len(columns)} components, {len(types)} types are given")
        columns = [each.cast(kind) for each, kind in zip(columns, types, strict=True)]
    return columns


_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]
_FIXED_WIDTH = {ord("i"): 8, ord("j"): 8, ord("t"): 8, ord("T"): 8, ord("L"): 8, ord("d"): 4, ord("b"): 1, ord("D"): 17}


def _flat(values: pa.Array) -> tuple[_Bytes, _Places, _Places]:
    """The bytes of a binary array without nulls, and where each value starts and ends."""
    _, offsets, data = values.buffers()
    wide = pa.types.is_large_binary(values.type)
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data if data is not None else b"", np.uint8), places[:-1], places[1:]


def _take_component(data: _Bytes, start: _Places, end: _Places) -> tuple[pa.Array, _Places]:
    if (end <= start).any():
        raise ValueError("keys of different rules: some have fewer components")
    tags = data[start]
    distinct = set(np.unique(tags).tolist())
    if distinct in ({ord("s")}, {ord("x")}):
        return _take_text(data, start + 1, end, pa.string() if distinct == {ord("s")} else pa.binary())
    widths = {_FIXED_WIDTH.get(tag) for tag in distinct}
    if None in widths or len(widths) != 1 or (len(distinct) > 1 and distinct != {ord("i"), ord("j")}):
        raise ValueError(f"no canonical keys of one rule: tags {sorted(distinct)}")
    width = widths.pop() or 0
    if (end - start <= width).any():
        raise ValueError("a canonical key is cut short")
    body = data[(start + 1)[:, None] + np.arange(width)]
    return _fixed_values(chr(min(distinct)), tags, body), start + 1 + width


def _fixed_values(tag: str, tags: _Bytes, body: _Bytes) -> pa.Array:
    if tag == "b":
        return pa.array(body[:, 0] != 0)
    if tag == "d":
        days = np.ascontiguousarray(body).view(">u4").ravel().astype(np.uint32) ^ np.uint32(1 << 31)
        return pa.array(days.view(np.int32)).cast(pa.date32())
    if tag == "D":
        scales = np.unique(body[:, 0])
        if len(scales) != 1:
            raise ValueError("decimal keys of different scales")
        raw = np.ascontiguousarray(body[:, :0:-1])
        raw[:, 15] ^= 0x80
        kind = pa.decimal128(38, int(scales[0].astype(np.int8)))
        return pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(raw)])
    numbers = np.ascontiguousarray(body).view(">u8").ravel().astype(np.uint64)
    large = tags == ord("j")
    if large.any():
        return pa.array(np.where(large, numbers, numbers ^ _SIGN))
    integers = pa.array((numbers ^ _SIGN).view(np.int64))
    kinds = {"i": pa.int64(), "t": pa.time64("us"), "T": pa.timestamp("us", "UTC"), "L": pa.timestamp("us")}
    return integers.cast(kinds[tag])


def _take_text(data: _Bytes, start: _Places, end: _Places, kind: pa.DataType) -> tuple[pa.Array, _Places]:
    """The texts that start at `start`, as an array of `kind`, and where the next component starts."""
    stop, after = _text_end(data, start, end)
    sizes = stop - start
    offsets = np.zeros(len(start) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    index = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], sizes)
    picked = pa.py_buffer(np.ascontiguousarray(data[index]))
    raw = pa.Array.from_buffers(pa.large_binary(), len(start), [None, pa.py_buffer(offsets), picked])
    if pc.any(pc.match_substring(raw, b"\0")).as_py():
        raw = pc.replace_substring(raw, b"\0\xff", b"\0")
    return raw.cast(pa.binary()).cast(kind), after


def _text_end(data: _Bytes, start: _Places, end: _Places) -> tuple[_Places, _Places]:
    """Where each text stops, and where the next component starts: after its terminator 00 00, or at the end of the key."""
    pairs = np.flatnonzero((data[:-1] == 0) & (data[1:] == 0)) if len(data) > 1 else np.zeros(0, np.int64)
    found = np.searchsorted(pairs, start)
    stop = np.append(pairs, len(data))[found]
    last = stop + 2 > end
    stop = np.where(last, end, stop)
    return stop, np.where(last, stop, stop + 2)


# ---- as text ----


def feature_ids(data: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> pa.Array:
    r"""Each row's key as the text that lineage and messages use (string array, null where a component is null).

    One column: its value as NFC text, control characters written out (a line break as \u000a), an empty text as two quotes. More columns: a JSON array.
    Without columns nothing names a row: null.
    """
    if not columns:
        return pa.nulls(data.num_rows, pa.string())
    return _texts([plain(_column(data, name)) for name in columns])


def ids_of(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same text, from canonical key bytes; they may be of several rules, as in the log of a version that changed the rule."""
    keys = one_chunk(keys)
    rules = _rules_of(keys)
    if len(rules) <= 1:
        columns = decode_keys(keys)
        return _texts(columns) if columns else pa.nulls(len(keys), pa.string())
    out = pa.concat_arrays([_texts(decode_keys(keys.take(pa.array(rows)))).cast(pa.string()) for rows in rules])
    back = np.full(len(keys), -1, np.int64)
    back[np.concatenate(rules)] = np.arange(len(out))
    return out.take(pa.array(back, mask=back < 0))


def _rules_of(keys: pa.Array) -> list[_Places]:
    """The rows of each rule, by the tags of the components: int64 arrays, nulls in none."""
    there = np.flatnonzero(np.asarray(keys.is_valid()))
    if not len(there):
        return []
    data, start, end = _flat(keys.drop_null())
    if (end == start).any():
        raise ValueError("a canonical key is empty")
    start = start.copy()  # it is advanced, and start and end are views of one array
    rule = np.zeros(len(there), np.int64)
    open_ = np.arange(len(there))
    while len(open_):
        tags = data[start[open_]].astype(np.int64)
        # Beyond every number so far: a key that ends here is of another rule than one that goes on.
        rule[open_] = np.unique(rule[open_] * 256 + tags, return_inverse=True)[1] + (rule.max() + 1)
        for tag in np.unique(tags):
            mine = open_[tags == tag]
            width = _FIXED_WIDTH.get(int(tag))
            start[mine] = start[mine] + 1 + width if width is not None else _text_end(data, start[mine] + 1, end[mine])[1]
        open_ = open_[end[open_] > start[open_]]
    order = np.argsort(rule, kind="stable")
    return [there[each] for each in np.split(order, np.flatnonzero(np.diff(rule[order])) + 1)]


def _texts(arrays: list[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        text = as_text(arrays[0])
        return _visible(pc.if_else(pc.equal(text, ""), '""', text), _AMBIGUOUS)
    parts: list[pa.Array | pa.Scalar] = []
    for place, each in enumerate(arrays):
        parts += [pa.scalar("," if place else "["), _as_json(each)]
    return _visible(pc.binary_join_element_wise(*parts, pa.scalar("]"), pa.scalar("")))


def as_text(array: pa.Array) -> pa.Array:
    """A key column's values as text (NFC), null for null."""
    there = array.type
    if pa.types.is_string(there) or pa.types.is_large_string(there):
        return nfc(array.cast(pa.string()))
    if pa.types.is_binary(there) or pa.types.is_large_binary(there) or pa.types.is_fixed_size_binary(there):
        return hexadecimal(array)
    return array.cast(pa.string())


def _as_json(array: pa.Array) -> pa.Array:
    text, there = as_text(array), array.type
    if pa.types.is_integer(there) or pa.types.is_boolean(there):
        return text
    special = pc.fill_null(pc.match_substring_regex(text, '["\\\\]|' + _CONTROL), False)
    if pc.any(special).as_py():
        quoted = [json.dumps(value, ensure_ascii=False)[1:-1] for value in text.filter(special).to_pylist()]
        text = pc.replace_with_mask(text, special, pa.array(quoted, pa.string()))
    quotes = pa.scalar('"')
    joined: pa.Array = pc.binary_join_element_wise(quotes, text, quotes, pa.scalar(""))
    return joined


def written(text: str) -> str:
    r"""One text as an id in lineage and messages: NFC, a control character as an escape (a line break as \u000a).

    A backslash that would read as such an escape is one too (\u005c); two texts never have one id.
    """
    return _escaped(unicodedata.normalize("NFC", text))


def written_ids(text: str) -> tuple[str, ...]:
    """The ids under which lineage may know the feature that a person asks for: that of the text itself first, then the text taken as an id."""
    return tuple(dict.fromkeys((written(text), text)))


def unusable(data: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """The rows whose key, or a part of it, is a text without a visible character, or has a NUL (docs/spec/gate.md#keys)."""
    found = np.zeros(data.num_rows, np.bool_)
    for name in columns:
        array = plain(_column(data, name))
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            found |= np.asarray(pc.fill_null(pc.match_substring(array, "\0"), False))
            doubtful = np.flatnonzero(_begins_unseen(array))
            found[doubtful] |= np.asarray(pc.fill_null(pc.match_substring_regex(array.take(pa.array(doubtful)), _NOTHING_SEEN), False))
    return found


def _begins_unseen(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """The texts that do not begin with a visible character of ASCII: few of the keys of real data."""
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, ends, values = texts.buffers()
    offsets = np.frombuffer(ends, kind)[texts.offset : texts.offset + len(texts) + 1] if ends is not None else np.zeros(1, kind)
    data = (
        np.append(np.frombuffer(values or b"", np.uint8), np.uint8(0))
        if values is None or not values.size
        else np.frombuffer(values, np.uint8)
    )
    first = data[np.minimum(offsets[:-1], len(data) - 1)]
    return np.asarray((offsets[1:] == offsets[:-1]) | (first <= 0x20) | (first >= 0x7F))


def _visible(text: pa.Array, special: str = _CONTROL) -> pa.Array:
    """Texts with what matches `special` written out."""
    bad = pc.fill_null(pc.match_substring_regex(text, special), False)
    if not pc.any(bad).as_py():
        return text
    escape = _escaped if special == _AMBIGUOUS else _without_controls
    return pc.replace_with_mask(text, bad, pa.array([escape(value) for value in text.filter(bad).to_pylist()], pa.string()))


def _escaped(text: str) -> str:
    return _without_controls(re.sub(r"\\(?=u[0-9a-f]{4})", r"\\u005c", text))


def _without_controls(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)
