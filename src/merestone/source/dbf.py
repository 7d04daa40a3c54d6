"""The attribute table of a shapefile (dBASE III): header, declared or guessed encoding, columns without loss.

Read here and not through GDAL, since GDAL recodes text before anyone can see that its bytes are not what the .cpg says, trims leading
blanks, and reads integers of nineteen digits as floats.
Not here: shapes (`shapefile`), what other formats do with text (`columns`).
Layout: dBASE III+ table file, as the ESRI Shapefile Technical Description (July 1998) refers to it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.errors import SourceError
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.columns import decoded, nfc_names, undecodable
from merestone.source.port import UnreadableValueError

_SCAN_ROWS = 65_536
# Byte 29 of the header. 0x57 ("current ANSI code page" of whatever machine wrote it) declares nothing and is not in the list.
_LDID = {
    0x01: "cp437", 0x02: "cp850", 0x03: "cp1252", 0x04: "mac_roman", 0x08: "cp865", 0x09: "cp437", 0x0A: "cp850", 0x0B: "cp437",
    0x0D: "cp437", 0x0E: "cp850", 0x0F: "cp437", 0x10: "cp850", 0x11: "cp437", 0x12: "cp850", 0x13: "cp932", 0x14: "cp850",
    0x15: "cp437", 0x16: "cp850", 0x17: "cp865", 0x18: "cp437", 0x19: "cp437", 0x1A: "cp850", 0x1B: "cp437", 0x1C: "cp863",
    0x1D: "cp850", 0x1F: "cp852", 0x22: "cp852", 0x23: "cp852", 0x24: "cp860", 0x25: "cp850", 0x26: "cp866", 0x37: "cp850",
    0x40: "cp852", 0x4D: "cp936", 0x4E: "cp949", 0x4F: "cp950", 0x50: "cp874", 0x58: "cp1252", 0x59: "cp1252", 0x64: "cp852",
    0x65: "cp866", 0x66: "cp865", 0x67: "cp861", 0x6A: "cp737", 0x6B: "cp857", 0x6C: "cp863", 0x78: "cp950", 0x79: "cp949",
    0x7A: "cp936", 0x7B: "cp932", 0x7C: "cp874", 0x86: "cp737", 0x87: "cp852", 0x88: "cp857", 0xC8: "cp1250", 0xC9: "cp1251",
    0xCA: "cp1254", 0xCB: "cp1253", 0xCC: "cp1257",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DbfField:
    """One column of the table: `kind` is C, N, F, L or D; `start` counts bytes from the deletion flag of the record."""

    name: str
    kind: str
    start: int
    width: int
    decimals: int


@dataclass(frozen=True, slots=True)
class DbfTable:
    """A table opened for reading; `records` is a memory map of shape (records, record length), `live` are the records not deleted."""

    path: str
    fields: tuple[DbfField, ...]
    records: npt.NDArray[np.uint8]
    live: npt.NDArray[np.int64]
    codec: str
    schema: pa.Schema
    findings: tuple[Finding, ...]


def open_dbf(path: Path, *, shown: str, encoding: str | None) -> DbfTable:
    """Read the header, settle the encoding, and map the records.

    Args:
        path: the .dbf file; a .cpg beside it is read.
        shown: the path that messages name.
        encoding: asserted by the publication; it beats what the file says.

    Raises:
        SourceError: not a table, cut off, of a column type that shapefiles do not have, or of an encoding that cannot be settled.
    """
    size = path.stat().st_size
    head = _read(path, min(size, 65_536))
    if size < 33:
        raise SourceError(f"{shown}: the .dbf is cut off or no dBASE table", field=shown, hint="export it again")
    count, start, length = int.from_bytes(head[4:8], "little"), int.from_bytes(head[8:10], "little"), int.from_bytes(head[10:12], "little")
    raw_fields = _fields(head[: min(start, len(head))], shown)
    if length != 1 + sum(width for _, _, width, _ in raw_fields) or not raw_fields:
        raise SourceError(f"{shown}: the .dbf header contradicts itself (record length {length})", field=shown, hint="export it again")
    if start + count * length > size:
        whole = max(size - start, 0) // length
        raise SourceError(f"{shown}: the .dbf ends after record {whole} of {count}", field=shown, hint="export or copy it again")
    records = np.memmap(path, dtype=np.uint8, mode="r", offset=start, shape=(count, length)) if count else np.zeros((0, length), np.uint8)
    live = np.flatnonzero(np.asarray(records[:, 0]) != ord("*"))
    places = _places(raw_fields)
    text_places = [(at, width) for (_, kind, width, _), at in zip(raw_fields, places, strict=True) if kind == "C"]
    codec, findings = _encoding(path, head[29], shown, encoding, text_places, records, live)
    names = nfc_names([_name(raw, codec, shown) for raw, _, _, _ in raw_fields], shown)
    fields = tuple(
        DbfField(name, kind, at, width, decimals) for name, (_, kind, width, decimals), at in zip(names, raw_fields, places, strict=True)
    )
    schema = pa.schema([pa.field(each.name, _arrow(each, records, live)) for each in fields])
    return DbfTable(shown, fields, records, live, codec, schema, findings)


def batches(table: DbfTable, batch_rows: int) -> Iterator[tuple[list[pa.Array], npt.NDArray[np.int64]]]:
    """The columns of each batch of live records, in field order, as pyarrow arrays of `table.schema`.

    With them, per field: how many values fill the width of their text column to the last byte.
    """
    for at in range(0, len(table.live), batch_rows):
        rows = table.live[at : at + batch_rows]
        chunk = _rows(table.records, rows)
        cells = [chunk[:, each.start : each.start + each.width] for each in table.fields]
        columns = [_column(part, each, kind, table, rows) for part, each, kind in zip(cells, table.fields, table.schema.types, strict=True)]
        yield columns, np.array([_brimful(part) if each.kind == "C" else 0 for part, each in zip(cells, table.fields, strict=True)])


def _brimful(cells: npt.NDArray[np.uint8]) -> int:
    return int(((cells[:, -1] != 0x20) & (cells != 0).all(axis=1)).sum())


def _read(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _fields(head: bytes, shown: str) -> list[tuple[bytes, str, int, int]]:
    out = []
    for at in range(32, len(head) - 31, 32):
        entry = head[at : at + 32]
        if entry[0] == 0x0D:
            break
        kind = chr(entry[11])
        name = entry[:11].split(b"\0")[0]
        if kind not in "CNFLD":
            raise SourceError(
                f"{shown}: field {name!r} has the DBF type {kind!r}, which shapefiles do not have",
                field=shown,
                hint="export character, number, logical and date fields only",
            )
        width, decimals = (entry[16] | entry[17] << 8, 0) if kind == "C" else (entry[16], entry[17])
        out.append((name, kind, width, decimals))
    return out


def _places(raw: list[tuple[bytes, str, int, int]]) -> list[int]:
    out, at = [], 1
    for _, _, width, _ in raw:
        out.append(at)
        at += width
    return out


def _name(raw: bytes, codec: str, shown: str) -> str:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError as fault:
        raise undecodable(fault, raw, codec, path=shown, name="(a column name)", row=0) from None


def _rows(records: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The records of some rows, copied out of the memory map; a run without gaps is read in one piece."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return np.array(records[rows[0] : rows[-1] + 1])
    return np.array(records[rows])


def _arrow(each: DbfField, records: npt.NDArray[np.uint8], live: npt.NDArray[np.int64]) -> pa.DataType:
    if each.kind == "C":
        return pa.string()
    if each.kind == "L":
        return pa.bool_()
    if each.kind == "D":
        return pa.date32()
    if each.decimals or each.kind == "F":
        return pa.float64()
    if each.width > 18 and not _all_int64(each, records, live):
        return pa.float64()
    return pa.int64()


def _all_int64(each: DbfField, records: npt.NDArray[np.uint8], live: npt.NDArray[np.int64]) -> bool:
    """Whether a wide number column without decimals holds 64-bit integers throughout (some writers put floats there)."""
    for at in range(0, len(live), _SCAN_ROWS):
        values = _numbers(_rows(records, live[at : at + _SCAN_ROWS])[:, each.start : each.start + each.width])
        try:
            values.cast(pa.int64())
        except pa.ArrowInvalid:
            return False
    return True


def _column(cells: npt.NDArray[np.uint8], each: DbfField, kind: pa.DataType, table: DbfTable, rows: npt.NDArray[np.int64]) -> pa.Array:
    if each.kind == "C":
        _refuse_text_behind_nul(cells, each, table, rows)
        raw = _trimmed(cells)
        # dBASE has no null for text: a field of blanks is an empty one, and every other reader gives null for it
        raw = pc.if_else(pc.equal(pc.binary_length(raw), 0), pa.scalar(None, pa.binary()), raw)
        try:
            return decoded(raw, table.codec, path=table.path, name=each.name, first_row=1)
        except SourceError:
            for row, value in zip(rows.tolist(), raw.to_pylist(), strict=True):  # deleted records count: the number is the record's own
                _decode_one(value, table, each.name, row + 1)
            raise
    if each.kind == "L":
        flags = cells[:, 0]
        truth = np.isin(flags, np.frombuffer(b"TtYy", np.uint8))
        known = truth | np.isin(flags, np.frombuffer(b"FfNn", np.uint8))
        return pa.array(truth, mask=~known)
    if each.kind == "D":
        text = _numbers(cells)
        text = pc.if_else(pc.equal(text, "00000000"), pa.scalar(None, pa.string()), text)
        text = pc.replace_substring_regex(text, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3")
        return _parsed(text, each, table, rows, lambda part: part.cast(pa.date32()), "a date YYYYMMDD")
    return _parsed(_numbers(cells), each, table, rows, lambda part: part.cast(kind), "a number" if kind == pa.float64() else "an integer")


def _refuse_text_behind_nul(cells: npt.NDArray[np.uint8], each: DbfField, table: DbfTable, rows: npt.NDArray[np.int64]) -> None:
    """A zero byte ends a text, and only padding may follow: what else stands there would be cut off in silence."""
    zero = cells == 0
    if not zero.any():
        return
    cut = (np.logical_or.accumulate(zero, axis=1) & ~zero & (cells != 0x20)).any(axis=1)
    if cut.any():
        at = int(cut.argmax())
        raise UnreadableValueError(
            table.path,
            each.name,
            int(rows[at]) + 1,
            rule="type",
            expected="text without NUL",
            observed=f"{cells[at].tobytes().rstrip(bytes([0, 0x20])).decode(table.codec, 'replace')!r} goes on behind a NUL",
            remedy="have the value repaired in the export",
        )


def _decode_one(value: bytes | None, table: DbfTable, name: str, row: int) -> None:
    if value is not None:
        try:
            value.decode(table.codec)
        except UnicodeDecodeError as fault:
            raise undecodable(fault, value, table.codec, path=table.path, name=name, row=row) from None


def _parsed(
    text: pa.Array, each: DbfField, table: DbfTable, rows: npt.NDArray[np.int64], parse: Callable[[pa.Array], pa.Array], wanted: str
) -> pa.Array:
    try:
        return parse(text)
    except pa.ArrowInvalid:
        for row, value in zip(rows.tolist(), text, strict=True):
            try:
                parse(pa.array([value.as_py()], pa.string()))
            except pa.ArrowInvalid:
                raise UnreadableValueError(
                    table.path,
                    each.name,
                    row + 1,
                    rule="type",
                    expected=wanted,
                    observed=f"{value.as_py()!r} is not {wanted}",
                    remedy="have the value repaired in the export",
                ) from None
        raise


def _trimmed(cells: npt.NDArray[np.uint8]) -> pa.Array:
    """A binary array of cells without what pads them: blanks at the end, and everything from a zero byte on."""
    count, width = cells.shape
    zero = cells == 0
    ends = np.where(zero.any(axis=1), zero.argmax(axis=1), width)
    kept = (cells != 0x20) & (np.arange(width)[None, :] < ends[:, None])
    lengths = np.where(kept.any(axis=1), width - kept[:, ::-1].argmax(axis=1), 0)
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    body = cells[np.arange(width)[None, :] < lengths[:, None]].tobytes()
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(body)])


def _numbers(cells: npt.NDArray[np.uint8]) -> pa.Array:
    """The text of number and date cells: blank cells and cells of asterisks (written where a value did not fit) are null."""
    plain = np.where(cells < 0x80, cells, ord("?"))  # a byte beyond ASCII is not a digit, and must not break the text before it is named
    text = pc.ascii_trim_whitespace(_trimmed(plain).cast(pa.string()))
    text = pc.replace_substring_regex(text, r"^\+", "")
    return pc.if_else(pc.match_substring_regex(text, r"^\**$"), pa.scalar(None, pa.string()), text)


def _declared(path: Path, ldid: int, shown: str) -> tuple[str | None, str]:
    """The codec that the .cpg or the header declares, and where it stands; None where neither does."""
    cpg = next((each for each in (path.with_suffix(".cpg"), path.with_suffix(".CPG")) if each.is_file()), None)
    if cpg is not None:
        text = _read(cpg, 64).decode("ascii", "replace").strip("\ufeff\ufffd\0 \r\n")
        declared = _cpg_codec(text)
        if declared is None:
            raise SourceError(
                f"{shown}: {cpg.name} names an unknown encoding {text!r}", field=shown, hint="state the encoding in source.encoding"
            )
        return declared, f"{cpg.name} ({text})"
    if ldid in _LDID:
        return _LDID[ldid], f"byte 29 of the .dbf (0x{ldid:02X}, {_LDID[ldid]})"
    return None, ""


def _encoding(
    path: Path,
    ldid: int,
    shown: str,
    asserted: str | None,
    text_places: list[tuple[int, int]],
    records: npt.NDArray[np.uint8],
    live: npt.NDArray[np.int64],
) -> tuple[str, tuple[Finding, ...]]:
    """The codec of the table's text, and what there is to say about how it was found.

    The .cpg and byte 29 of the header are the only declarations, and both are optional. Valid UTF-8 with letters beyond ASCII is very
    unlikely to be anything else; a single-byte declaration over such bytes is refused; an asserted encoding is taken as it is.
    """
    if asserted is not None:
        try:
            return codecs.lookup(asserted).name, ()
        except LookupError:
            raise SourceError(f"{asserted!r} is not an encoding", field="source.encoding", hint="use for example utf-8 or cp1252") from None
    declared, where = _declared(path, ldid, shown)
    if declared == "utf-8":
        return "utf-8", ()
    beyond_ascii, is_utf8, control, undefined = _byte_kinds(text_places, records, live)
    if not beyond_ascii:
        return declared or "utf-8", ()
    if declared is not None:
        if is_utf8:  # read as what it is; all other findings are about the true text
            return "utf-8", (catalogue.ENCODING.finding("", where=where),)
        if declared == "iso8859-1" and control:
            declared = "cp1252"  # 0x80 to 0x9F are control characters in ISO 8859-1: who declares it means the Windows code page
        return declared, ()
    if is_utf8:
        return "utf-8", (_guess("UTF-8"),)
    if undefined:
        raise SourceError(
            f"{shown}: no .cpg stands beside it, and the text is neither UTF-8 nor CP1252",
            field=shown,
            hint="state the encoding in source.encoding",
        )
    return "cp1252", (_guess("CP1252"),)


def _guess(codec: str) -> Finding:
    return catalogue.ENCODING.finding("", case="guess", severity="warning", codec=codec)


def _cpg_codec(text: str) -> str | None:
    """The codec that the text of a .cpg means: `UTF-8`, `1252`, `ANSI 1252`, `CP1252`, `OEM 850`, `88591`, `ISO 8859-1`, `Big5`."""
    digits = re.sub(r"^(ANSI|OEM|CP|WINDOWS|MS|IBM)[ _-]*(?=\d)", "", text.strip().upper())
    if digits in {"65001", "UTF8", "UTF-8"}:
        return "utf-8"
    part = re.fullmatch(r"(?:ISO)?[ _-]*8859[ _-]*(\d{1,2})", digits)
    try:
        return codecs.lookup(f"iso8859-{part[1]}" if part else f"cp{digits}" if digits.isdigit() else text.strip()).name
    except LookupError:
        return None


def _byte_kinds(
    text_places: list[tuple[int, int]], records: npt.NDArray[np.uint8], live: npt.NDArray[np.int64]
) -> tuple[bool, bool, bool, bool]:
    """What bytes the text holds: any beyond ASCII; all values valid UTF-8; any in 0x80..0x9F; any that CP1252 leaves undefined."""
    seen = np.zeros(256, dtype=bool)
    is_utf8 = True
    for at in range(0, len(live), _SCAN_ROWS):
        chunk = _rows(records, live[at : at + _SCAN_ROWS])
        for start, width in text_places:
            cells = chunk[:, start : start + width]
            cells = cells[(cells >= 0x80).any(axis=1)]
            if not len(cells):
                continue
            seen |= np.bincount(cells.ravel(), minlength=256) > 0
            if is_utf8:
                try:
                    _trimmed(cells).cast(pa.string())
                except pa.ArrowInvalid:
                    is_utf8 = False
    undefined = bool(seen[[0x81, 0x8D, 0x8F, 0x90, 0x9D]].any())
    return bool(seen[0x80:].any()), is_utf8, bool(seen[0x80:0xA0].any()), undefined
