"""Shapefiles: encodings, widths, cut names, numbers and blanks."""

from __future__ import annotations

import copy
import shutil
import struct
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merestone.errors import SourceError
from merestone.source.columns import decoded
from merestone.source.open import open_source
from merestone.source.port import SourceSpec, UnreadableValueError

CASES = Path(__file__).parents[1] / "cases"
FIELDS = [("name", "C", 10, 0), ("flag", "L", 1, 0), ("big", "N", 20, 0), ("num", "N", 12, 2), ("day", "D", 8, 0)]


def dbf(path: Path, fields, rows, *, ldid=0):
    """A dBASE III table; each row is (deleted, cells as bytes)."""
    length = 1 + sum(width for _, _, width, _ in fields)
    body = struct.pack("<BBBBIHH17xBxx", 3, 120, 1, 1, len(rows), 33 + 32 * len(fields), length, ldid)
    for name, kind, width, decimals in fields:
        raw = name if isinstance(name, bytes) else name.encode()
        body += raw.ljust(11, b"\0") + kind.encode() + b"\0" * 4 + bytes([width, decimals]) + b"\0" * 14
    body += b"\r"
    for deleted, cells in rows:
        body += b"*" if deleted else b" "
        for cell, (_, kind, width, _) in zip(cells, fields, strict=True):
            body += cell.ljust(width) if kind == "C" else cell.rjust(width)
    path.write_bytes(body + b"\x1a")
    return path


def read(path: Path, **spec):
    source = open_source(SourceSpec(str(path), **spec))
    return pa.Table.from_batches(list(source.batches()), schema=source.delivery.schema), source


def test_values_without_loss(tmp_path):
    rows = [
        (False, (b"  ab ", b"T", b"9007199254740993", b"1.25", b"20200102")),
        (True, (b"deleted", b"T", b"1", b"1", b"20200102")),
        (False, (b"", b"?", b"", b"", b"")),
        (False, (b"x\0\0 \0", b"n", b"-9223372036854775808", b"*" * 12, b"00000000")),
    ]
    found, _ = read(dbf(tmp_path / "a.dbf", FIELDS, rows))
    assert found.to_pydict() == {
        "name": ["  ab", None, "x"],  # a leading blank is content, padding is none
        "flag": [True, None, False],
        "big": [9007199254740993, None, -(2**63)],
        "num": [1.25, None, None],
        "day": [date(2020, 1, 2), None, None],
    }
    assert found.schema.field("big").type == pa.int64()


def test_wide_number_columns_that_hold_floats_are_floats(tmp_path):
    rows = [(False, (b"1.5e3",)), (False, (b"7",))]
    found, _ = read(dbf(tmp_path / "a.dbf", [("x", "N", 20, 0)], rows))
    assert found["x"].to_pylist() == [1500.0, 7.0]


def test_a_cell_that_is_no_number_names_field_and_record(tmp_path):
    path = dbf(tmp_path / "a.dbf", [("n", "N", 5, 0)], [(True, (b"x",)), (False, (b"1",)), (False, (b"12.5",))])
    with pytest.raises(SourceError, match=r"field n, record 3: '12.5' is not an integer"):
        read(path)


def test_a_day_that_is_none_names_field_and_record(tmp_path):
    with pytest.raises(UnreadableValueError, match="field d, record 1: '2021-02-30' is not a date") as fault:
        read(dbf(tmp_path / "a.dbf", [("d", "D", 8, 0)], [(False, (b"20210230",))]))
    assert (fault.value.finding.field, fault.value.finding.rule, fault.value.finding.features[0].row) == ("d", "unreadable", 1)


def test_memo_fields_are_refused_by_name(tmp_path):
    with pytest.raises(SourceError, match="type 'M'"):
        read(dbf(tmp_path / "a.dbf", [("m", "M", 10, 0)], []))


def test_an_empty_table(tmp_path):
    found, _ = read(dbf(tmp_path / "a.dbf", FIELDS, []))
    assert (found.num_rows, found.column_names) == (0, ["name", "flag", "big", "num", "day"])


@pytest.mark.parametrize("batch_rows", [1, 2, 7])
def test_batches_keep_shapes_and_records_together(tmp_path, batch_rows):
    for part in ("shp", "shx", "dbf", "prj", "cpg"):
        shutil.copy(CASES / f"F15/same.{part}", tmp_path / f"a.{part.upper()}")
    source = open_source(SourceSpec(str(tmp_path / "a.SHP")))
    batches = list(source.batches(batch_rows))
    assert [row for batch in batches for row in batch["pid"].to_pylist()] == ["t1", "t2", "t3"]
    assert len({row for batch in batches for row in batch["geometry"].to_pylist()}) == 3


def test_a_deleted_record_takes_its_shape_with_it(tmp_path):
    for part in ("shp", "shx", "dbf", "prj", "cpg"):
        shutil.copy(CASES / f"F15/same.{part}", tmp_path / f"a.{part}")
    whole, _ = read(tmp_path / "a.shp")
    raw = bytearray((tmp_path / "a.dbf").read_bytes())
    start, length = struct.unpack("<HH", raw[8:12])
    raw[start + length] = ord("*")
    (tmp_path / "a.dbf").write_bytes(raw)
    found, _ = read(tmp_path / "a.shp")
    assert found.to_pylist() == [whole.to_pylist()[0], whole.to_pylist()[2]]


def test_parts_of_different_exports_are_refused(tmp_path):
    for part in ("shp", "shx", "prj", "cpg"):
        shutil.copy(CASES / f"F15/same.{part}", tmp_path / f"a.{part}")
    with pytest.raises(SourceError, match=r"no \.dbf"):
        read(tmp_path / "a.shp")
    dbf(tmp_path / "a.dbf", [("n", "N", 5, 0)], [(False, (b"1",))])
    with pytest.raises(SourceError, match=r"the \.dbf has 1 records, the \.shx 3"):
        read(tmp_path / "a.shp")


NAMES = ["Ærø Bæk", "Årrago 7", "Größe Š€"]


@pytest.mark.parametrize(("name", "codec"), [("cp1252_with_cpg", "cp1252"), ("utf8_with_cpg", "utf-8")])
def test_declared_encodings(name, codec):
    found, source = read(CASES / f"S04/{name}.shp")
    assert found["name"].to_pylist() == NAMES
    assert (source.delivery.encoding, source.delivery.findings) == (codec, ())


def test_without_a_cpg_the_guess_is_told():
    found, source = read(CASES / "S04/cp1252_no_cpg.shp")
    assert found["name"].to_pylist() == NAMES
    (told,) = source.delivery.findings
    assert (told.severity, told.rule) == ("warning", "encoding")
    assert "CP1252" in told.observed


def test_a_cpg_that_lies_refuses_the_delivery():
    _, source = read(CASES / "S04/utf8_lying_cpg.shp")
    (told,) = source.delivery.findings
    assert (told.severity, told.rule) == ("error", "encoding")
    assert "utf8_lying_cpg.cpg (1252)" in told.observed
    assert "valid UTF-8" in told.observed
    assert open_source(SourceSpec(str(CASES / "S04/utf8_lying_cpg.shp"), encoding="utf-8")).delivery.findings == ()


def test_bytes_of_no_encoding_are_named():
    with pytest.raises(SourceError, match="field name, record 2: byte 0x81 0x8D not valid in UTF-8") as fault:
        read(CASES / "S04/bad_bytes.shp")
    assert "bad_bytes" in fault.value.message
    again = copy.copy(fault.value)  # by way of what pickle uses
    assert (again.message, again.hint, again.finding) == (fault.value.message, fault.value.hint, fault.value.finding)
    assert (again.finding.surface, again.finding.rule, again.finding.field) == ("schema", "encoding", "name")


def test_neither_utf_8_nor_cp1252_asks_for_the_encoding(tmp_path):
    path = dbf(tmp_path / "a.dbf", [("name", "C", 8, 0)], [(False, (b"\xc3x",)), (False, (b"\x81",))])
    with pytest.raises(SourceError, match="neither UTF-8 nor CP1252") as fault:
        read(path)
    assert "source.encoding" in str(fault.value.hint)
    assert read(path, encoding="cp437")[0]["name"].to_pylist() == ["├x", "ü"]
    with pytest.raises(SourceError, match="not an encoding"):
        read(path, encoding="klingon")


@pytest.mark.parametrize(
    ("declared", "ldid", "raw", "expected"),
    [
        (None, 0x03, b"\x80", "€"),
        (None, 0x57, b"\x80", "€"),  # "whatever this machine uses" is no declaration: guessed
        (None, 0x26, b"\x80", "\u0410"),
        ("ISO-8859-1", 0, b"\x80", "€"),  # a C1 control character is never meant
        ("88591", 0, b"\xe6", "æ"),
        ("ANSI 1251", 0, b"\xc0", "\u0410"),
        ("932", 0, b"\x93\xfa\x96{", "日本"),
        ("GB18030", 0, b"\xd6\xd0", "中"),
    ],
)
def test_declarations_and_what_they_mean(tmp_path, declared, ldid, raw, expected):
    path = dbf(tmp_path / "a.dbf", [("name", "C", 8, 0)], [(False, (raw,)), (False, (b"",))], ldid=ldid)
    if declared is not None:
        path.with_suffix(".cpg").write_text(declared)
    assert read(path)[0]["name"].to_pylist() == [expected, None]


def test_an_unknown_cpg_is_named(tmp_path):
    path = dbf(tmp_path / "a.dbf", [("name", "C", 8, 0)], [])
    path.with_suffix(".cpg").write_text("KLINGON")
    with pytest.raises(SourceError, match=r"a\.cpg names an unknown encoding 'KLINGON'"):
        read(path)


def test_column_names_are_decoded_too(tmp_path):
    path = dbf(tmp_path / "a.dbf", [("größe".encode("cp1252"), "C", 8, 0)], [(False, (b"a",))], ldid=0x03)
    assert read(path)[0].column_names == ["größe"]


def test_values_that_fill_their_width_are_told():
    found, source = read(CASES / "S07/cut.shp")
    (told,) = source.late_findings()
    assert told.observed == "remark: 2 values fill the DBF width of 254 bytes exactly, they may be cut"
    assert (told.severity, told.rule, told.count) == ("warning", "width", 2)
    assert len(found["remark"][1].as_py().encode()) == 254
    list(source.batches())
    assert source.late_findings() == (told,)  # counted anew on each reading, not added up


def test_codes_of_one_length_are_not_called_cut(tmp_path):
    fields = [("guid", "C", 36, 0), ("code", "C", 4, 0), ("text", "C", 36, 0)]
    rows = [(False, (b"g" * 36, b"0301", b"t" * 36)), (False, (b"h" * 36, b"1", b"short"))]
    _, source = read(dbf(tmp_path / "a.dbf", fields, rows))
    assert [told.field for told in source.late_findings()] == ["text"]


@given(st.lists(st.none() | st.text(st.characters(codec="cp1252", exclude_characters="\0"), max_size=12)), st.integers(0, 3))
def test_decoding_all_at_once_is_decoding_one_by_one(texts, skip):
    raw = pa.array([None if text is None else text.encode("cp1252") for text in texts], pa.binary()).slice(skip)
    assert decoded(raw, "cp1252", path="p", name="n", first_row=1).to_pylist() == texts[skip:]


@pytest.mark.parametrize("batch_rows", [1, 2, 65_536])
def test_text_behind_a_nul_is_named_and_padding_is_none(tmp_path, batch_rows):
    padded = dbf(
        tmp_path / "a.dbf", [("name", "C", 6, 0)], [(False, (each,)) for each in (b"ab\0\0\0\0", b"ab\0   ", b"\0     ", b"abcdef")]
    )
    source = open_source(SourceSpec(str(padded)))
    assert [each for batch in source.batches(batch_rows) for each in batch.column(0).to_pylist()] == ["ab", "ab", None, "abcdef"]
    for cell in (b"ab\0cd ", b"\0    x", b"a\0\0\0\0b"):
        cut = dbf(tmp_path / "b.dbf", [("name", "C", 6, 0)], [(False, (each,)) for each in (b"ab\0\0\0\0", b"ok", cell)])
        with pytest.raises(UnreadableValueError, match=r"field name, record 3: '.*' goes on behind a NUL"):
            list(open_source(SourceSpec(str(cut))).batches(batch_rows))
