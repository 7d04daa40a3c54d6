"""Records are valid by the published schemas and by our own checks, whatever text is in them; the same facts give the same bytes."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.render.iso19115 import ENCODINGS, ProcessStep, Record, RecordSource, counts, render
from merestone.render.iso19115_extend import MARK, extend
from merestone.render.iso19115_lint import lint, read_record

TIME = datetime(2026, 3, 3, 1, 2, 3, 456789, tzinfo=UTC)
HOSTILE = "]]>&amp;<gmd:x/>\x00\x0b\r\n\ud800\ufffe\U0001f642 \"'"
STEPS = (
    ProcessStep(
        "crs_normalize",
        "TRANSFORM",
        "EPSG:27700",
        "EPSG:4258",
        12,
        0,
        0,
        TIME,
        TIME + timedelta(seconds=9),
        ("PROJ 9.5.1",),
        (),
        "OSTN15; strategy_index 0",
        "proj=pipeline",
    ),
    ProcessStep("validate", "VALIDATE", "EPSG:4258", "EPSG:4258", 9, 2, 1, TIME, TIME, (), (("REJECT", HOSTILE, 1), ("WARN", "close", 2))),
)
RECORD = Record(
    identifier="3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
    resource="3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e11",
    predecessor="3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e12",
    title="parcels",
    abstract="All parcels.",
    contact="steward@example.org",
    time=TIME,
    version=3,
    epsg=4258,
    extent=(-8.65, 49.86, 1.77, 60.86),
    statement="12 features met. Merkle root ab.",
    rationale="Contract v1.0.0.",
    steps=STEPS,
    sources=(RecordSource("delivery.gpkg", "GPKG file", "EPSG:27700"), RecordSource("parcels, version 2", "11 features", None)),
)
EDGES = {
    "whole": RECORD,
    "nothing recorded": replace(RECORD, steps=(), statement="No processing was recorded."),
    "no version": replace(RECORD, version=None, extent=None),
    "nothing known": replace(RECORD, contact=None, epsg=None, extent=None, sources=(), rationale=""),
    "hostile": replace(
        RECORD,
        title=HOSTILE,
        abstract=HOSTILE,
        statement=HOSTILE,
        rationale=HOSTILE,
        contact=HOSTILE,
        sources=(RecordSource(HOSTILE, HOSTILE, "EPSG:1"),),
    ),
}


def texts(text, name):
    """The text of every element of that name, in order."""
    root = read_record(text.encode("utf-8"), "test")
    return ["".join(each.itertext()).strip() for each in root.iter() if isinstance(each.tag, str) and each.tag.rpartition("}")[2] == name]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("what", EDGES)
def test_a_record_is_valid_and_passes_our_own_checks(schemas, what, encoding):
    text = render(EDGES[what], encoding)
    assert schemas.faults(text, encoding) == []
    assert lint(read_record(text.encode(), "test")) == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_it_says_is_what_it_was_told(encoding):
    text = render(RECORD, encoding)
    assert texts(text, "statement") == [RECORD.statement]
    assert [line.partition(";")[2].partition(".")[0].strip() for line in texts(text, "description") if "PASS" in line] == list(
        map(counts, STEPS)
    )
    times = texts(text, "DateTime" if encoding == "gmd" else "timePosition")
    assert times[-2:] == ["2026-03-03T01:02:12Z", "2026-03-03T01:02:03Z"]
    assert "proj=pipeline" in text
    assert "PROJ 9.5.1" in text
    assert "2 WARN: close" in text
    assert texts(text, "edition")[:1] == ["3"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_times_of_any_zone_are_told_in_utc(encoding):
    there = TIME.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert render(replace(RECORD, time=there), encoding) == render(RECORD, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_run_without_a_version_claims_no_finished_dataset(encoding):
    assert "completed" in render(RECORD, encoding)
    text = render(EDGES["no version"], encoding)
    assert "completed" not in text
    assert "edition" not in text


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_recorded_means_no_steps_and_a_statement(encoding):
    text = render(EDGES["nothing recorded"], encoding)
    assert "processStep" not in text
    assert texts(text, "statement") == ["No processing was recorded."]


@given(st.text(st.characters(), max_size=40), st.sampled_from(ENCODINGS))
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back_or_is_written_out(text, encoding):
    made = render(replace(RECORD, statement=f"<{text}>"), encoding)
    (said,) = texts(made, "statement")
    assert said == "<" + "".join(c if _fits(c) else f"\\u{ord(c):04x}" for c in text) + ">"


def _fits(char):
    code = ord(char)
    return code in (9, 10) or (32 <= code < 0x7F) or (0xA0 <= code < 0xD800) or 0xE000 <= code < 0xFFFE or code > 0xFFFF


@given(st.tuples(*[st.floats(-180, 180)] * 2, *[st.floats(-90, 90)] * 2))
@settings(max_examples=50, deadline=None)
def test_an_extent_is_written_as_plain_decimals(sides):
    west, east, south, north = sides
    text = render(replace(RECORD, extent=(west, min(south, north), east, max(south, north))), "gmd")
    written = [float(each) for each in texts(text, "Decimal")]
    assert all(
        math.isclose(one, other, abs_tol=1e-6)
        for one, other in zip(written, (west, east, min(south, north), max(south, north)), strict=True)
    )
    assert "e-" not in "".join(texts(text, "Decimal"))


def test_another_encoding_is_refused():
    with pytest.raises(ValueError, match="'iso' is none of gmd, mdb"):
        render(RECORD, "iso")


# --- into a record that is there already ------------------------------------------------------------------------------------------------


def foreign(encoding):
    """A record of somebody else, with a lineage of its own."""
    text = render(replace(RECORD, title="theirs", statement="Digitised in 1987.", steps=STEPS[1:], sources=()), encoding)
    return text.replace('"merestone-', '"x-').replace("<?xml", "<?xml", 1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lineage_goes_into_a_record_beside_what_it_has(schemas, encoding):
    made = extend(foreign(encoding).encode(), RECORD, "test")
    assert schemas.faults(made, encoding) == []
    assert lint(read_record(made.encode(), "test")) == []
    assert texts(made, "statement") == [f"Digitised in 1987. {MARK}{RECORD.statement}"]
    assert "theirs" in texts(made, "title")
    assert len([each for each in texts(made, "description") if "PASS" in each]) == 3
    assert extend(made.encode(), RECORD, "test") == made


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_next_version_takes_the_place_of_the_one_before(encoding):
    once = extend(foreign(encoding).encode(), RECORD, "test")
    twice = extend(once.encode(), replace(RECORD, statement="Second.", steps=STEPS[:1]), "test")
    assert texts(twice, "statement") == [f"Digitised in 1987. {MARK}Second."]
    assert len([each for each in texts(twice, "description") if "PASS" in each]) == 2


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_record_without_lineage_gets_it_where_the_schema_wants_it(schemas, encoding):
    root = read_record(render(RECORD, encoding).encode(), "test")
    for child in list(root):
        if child.tag.rpartition("}")[2] in ("dataQualityInfo", "resourceLineage"):
            root.remove(child)
    space = root.tag[1:].partition("}")[0]
    ET.SubElement(root, f"{{{space}}}metadataMaintenance")
    made = extend(ET.tostring(root), RECORD, "test")
    assert schemas.faults(made, encoding) == []
    assert texts(made, "statement") == [MARK + RECORD.statement]


def test_several_lineages_become_one_with_one_statement():
    root = read_record(foreign("gmd").encode(), "test")
    quality = next(each for each in root if each.tag.endswith("dataQualityInfo"))
    root.append(read_record(ET.tostring(quality).replace(b"1987", b"1999").replace(b'id="x-', b'id="y-'), "test"))
    made = extend(ET.tostring(root), RECORD, "test")
    assert texts(made, "statement") == [f"Digitised in 1987. Digitised in 1999. {MARK}{RECORD.statement}"]
    assert lint(read_record(made.encode(), "test")) == []


def test_prefixes_that_only_text_uses_stay_bound():
    text = foreign("gmd").replace("<gmd:MD_Metadata ", '<gmd:MD_Metadata xmlns:q="urn:q" ', 1)
    assert 'xmlns:q="urn:q"' in extend(text.encode(), RECORD, "test")


def test_something_else_than_a_record_is_refused():
    with pytest.raises(ValueError, match="neither gmd:MD_Metadata nor mdb:MD_Metadata"):
        extend(b"<a/>", RECORD, "test")
