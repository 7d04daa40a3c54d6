"""What the published schemas let through is a fault here; so are the other ways to say nothing in a valid record."""

import re

import pytest

from merestone.errors import SourceError
from merestone.render.iso19115 import ENCODINGS, render
from merestone.render.iso19115_lint import CODES, lint, read_record
from render.test_iso19115 import RECORD


def naive(text):
    return re.sub(r"(T\d\d:\d\d:\d\d)Z<", r"\1<", text, count=1)


def local(text):
    return re.sub(r"(T\d\d:\d\d:\d\d)Z<", r"\1+01:00<", text, count=1)


def odd(text):
    before, _, after = text.rpartition("2026-03-03T01:02:03Z</")  # the last step's
    return f"{before}30/11/2026 02:09</{after}"


def dangling(text):
    return text.replace('xlink:href="#merestone-source-1"', 'xlink:href="#nowhere"', 1)


def twice(text):
    return text.replace('id="merestone-step-2"', 'id="merestone-step-1"')


def invented(text):
    return text.replace('codeListValue="dataset"', 'codeListValue="banana"', 1)


def swapped(text):
    blocks = re.split(r"(?=      <(?:gmd|mrl):(?:processStep|source)>\n)", text)
    return "".join(
        [
            blocks[0],
            blocks[-1].partition("</gmd:LI_Lineage>")[0].partition("    </mrl:LI_Lineage>")[0],
            *blocks[1:-1],
            re.search(r" *</(?:gmd|mrl):LI_Lineage>.*", text, re.DOTALL)[0],
        ]
    )


def speechless(text):
    return re.sub(r"<(gmd|mrl):description>\s*<gco:CharacterString>validate.*?</\1:description>", "", text, count=1, flags=re.DOTALL)


def timeless(text):
    return re.sub(r"<(gmd:dateTime|mrl:stepDateTime)>.*?</\1>", "", text, count=1, flags=re.DOTALL)


def zeros(text):
    return re.sub(r"<gco:Decimal>[^<]*", "<gco:Decimal>0.0", text)


def infinite(text):
    return re.sub(r"<gco:Decimal>[^<]*", "<gco:Decimal>NaN", text, count=1)


def empty(text):
    return text.replace(f">{RECORD.statement}<", "> <")


def two_statements(text):
    found = re.search(r" *<(gmd|mrl):statement>.*?</\1:statement>\n", text, re.DOTALL)[0]
    return text.replace(found, found + found)


def no_lineage(text):
    return re.sub(r"<(gmd|mrl):LI_Lineage>.*</\1:LI_Lineage>", "", text, flags=re.DOTALL)


def strange_list(text):
    return text.replace("CI_RoleCode", "CI_FancyCode")


BROKEN = {
    naive: "is not a time in UTC",
    local: "is not a time in UTC",
    odd: "is not a time in UTC",
    dangling: "links to #nowhere",
    twice: "stands 2 times",
    invented: "MD_ScopeCode has no value 'banana'",
    swapped: "the order is",
    speechless: "has no description",
    timeless: "has no time",
    zeros: "all zeros",
    infinite: "is not a place on Earth",
    empty: "statement is empty",
    two_statements: "exactly one",
    no_lineage: "has no LI_Lineage",
    strange_list: "is not a code list that this check knows",
}
LET_THROUGH = {"gmd": (naive, dangling, invented), "mdb": (odd, naive, dangling, invented)}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("breaks", BROKEN, ids=lambda each: each.__name__)
def test_a_broken_record_is_named(breaks, encoding):
    text = render(RECORD, encoding)
    broken = breaks(text)
    assert broken != text
    assert any(BROKEN[breaks] in each for each in lint(read_record(broken.encode(), "test")))


@pytest.mark.parametrize(
    ("encoding", "breaks"),
    [(encoding, each) for encoding, names in LET_THROUGH.items() for each in names],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_the_schemas_would_let_it_through(schemas, encoding, breaks):
    assert schemas.faults(breaks(render(RECORD, encoding)), encoding) == []


def test_a_date_that_is_none_is_named():
    text = render(RECORD, "gmd")
    assert lint(read_record(text.replace("<gco:Date>2026-03-03", "<gco:Date>2026-13-03", 1).encode(), "test")) == [
        "Date '2026-13-03' is not a date"
    ]
    for sound in ("2026", "2026-03"):
        assert lint(read_record(text.replace("<gco:Date>2026-03-03", f"<gco:Date>{sound}", 1).encode(), "test")) == []


def test_another_document_is_named():
    assert lint(read_record(b"<a/>", "test")) == ["the root is a, neither gmd:MD_Metadata nor mdb:MD_Metadata"]


@pytest.mark.parametrize("data", [b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"<a>", b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/x'><a/>"])
def test_xml_that_reaches_out_or_is_cut_is_not_read(data):
    with pytest.raises(SourceError, match=r"DOCTYPE|not well-formed"):
        read_record(data, "test")


def test_the_code_lists_hold_what_our_records_use():
    for encoding in ENCODINGS:
        for name, value in re.findall(r"#(\w+)\" codeListValue=\"(\w+)\"", render(RECORD, encoding)):
            assert value in CODES[name]
