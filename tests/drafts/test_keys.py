"""The key of a draft: judged by what it joins, or, of one export, in the order of what a steward would take."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from drafts.exports import Export, held_together, key_of
from merestone.drafts.keys import first_key, joining_key
from merestone.errors import UsageError

N = 400
NAMES = [f"{word} {at}" for at in range(100) for word in ("Elm", "Oak", "Ash", "Fir")]
CODES = [f"E{7 * at + 1000:05d}" for at in range(N)]
STATUS = ["in use"] * (N - 20) + ["planned"] * 20
OLD = list(range(N))
NEW = [each for each in OLD if each not in (50, 90, 91, 92, 150, 222, 223, 300, 301, 302, 303, 310, 390)]  # the export shrank


def areas(rows, *, edited=0, **more):
    """Areas of a register as they stand in some rows of it; some names are edited."""
    names = [NAMES[at] for at in rows]
    names[:edited] = [f"{each} New" for each in names[:edited]]
    columns = {"code": [CODES[at] for at in rows], "name": names, "status": [STATUS[at] for at in rows]}
    return {**{name: made(rows) for name, made in more.items()}, **columns}


def shuffled(rows):
    return np.random.default_rng(len(rows)).permutation(len(rows)).tolist()


def digest(rows):
    return [hashlib.md5(f"{at} {len(rows)} {rows[0]}".encode()).hexdigest() for at in rows]  # noqa: S324


NUMBERS = {
    "a row number": lambda rows: list(range(len(rows))),
    "a row number held as text": lambda rows: [str(at) for at in range(len(rows))],
    "a row number held as floats": lambda rows: [float(at + 1) for at in range(len(rows))],
    "a sequence that begins elsewhere": lambda rows: list(range(70_000, 70_000 + len(rows))),
    "numbers dealt out in another order": shuffled,
    "ids that each export makes": digest,
    "a number within text": lambda rows: [f"F{at}" for at in range(len(rows))],
}


@pytest.mark.parametrize("what", NUMBERS)
@pytest.mark.parametrize("order", [(NEW, OLD), (OLD, NEW), (OLD, OLD[::-1])], ids=["shrank", "grew", "turned round"])
def test_the_code_that_joins_the_same_things_is_the_key(what, order):
    now, then = ({"id": NUMBERS[what], "objectid": NUMBERS["a row number"]} for _ in order)
    chosen = key_of(Export(areas(order[0], edited=5, **now), order[0]), Export(areas(order[1], **then), order[1]))
    assert chosen.columns == ("code",)
    said = "\n".join(chosen.said)
    assert f"it joins {min(map(len, order))} of the {min(map(len, order))} rows of the smaller export (100 %)" in said
    assert "not the key: id, " in said


def test_numbers_that_count_rows_are_no_evidence_for_each_other():
    """Every place was surveyed anew and nothing else is known: two sequences agree with each other, and with nothing."""

    def known(rows):
        return {"code": [CODES[at] for at in rows], "seq": list(range(5_000, 5_000 + len(rows))), "id": [str(n) for n in range(len(rows))],
                "kind": [f"K{at % 9}" for at in rows]}  # fmt: skip

    assert key_of(Export(known(NEW), [at + 1_000 for at in NEW]), Export(known(OLD), OLD)).columns == ("code",)


def test_an_id_made_of_the_content_joins_what_did_not_change_and_no_more():
    now, then = areas(NEW, edited=30), areas(NEW)
    for columns in (now, then):
        columns["id"] = [hashlib.md5(repr(row).encode()).hexdigest() for row in zip(*columns.values(), strict=True)]  # noqa: S324
    chosen = key_of(Export(now, NEW), Export(then, NEW))
    assert chosen.columns == ("code",)


def test_where_nothing_differs_the_draft_names_every_key_that_would_do():
    chosen = key_of(
        Export(areas(OLD, id=NUMBERS["a row number held as text"])), Export(areas(OLD, id=NUMBERS["a row number held as text"]))
    )
    assert chosen.columns == ("code",)
    assert "name joins the two exports just as well: look which of them is the key" in chosen.said


def test_a_name_that_a_reform_gave_to_another_area_is_not_the_key():
    """Two areas in five keep their code; the others are merged, and a new code carries an old name: more rows are joined, and wrongly."""
    kept, merged = OLD[:88], OLD[88:220]

    def county(rows):
        return [f"C{at // 27}" for at in rows]

    now = areas(kept + merged, county=county)
    now["code"] = CODES[:88] + [f"N{at:05d}" for at in merged]
    chosen = key_of(Export(now, kept + [at + 1_000 for at in merged]), Export(areas(OLD, county=county), OLD))
    assert chosen.columns == ("code",)
    assert "it joins 88 of the 220 rows of the smaller export" in "\n".join(chosen.said)
    assert "not the key: name, it joins 220 rows" in "\n".join(chosen.said)


@pytest.mark.parametrize("fault", [None, "E01000"], ids=["null", "twice"])
def test_a_key_that_was_not_clean_before_is_the_key_and_its_faults_are_named(fault):
    then = areas(OLD)
    then["code"][7] = fault
    chosen = key_of(Export(areas(NEW, edited=3), NEW), Export(then, OLD))
    assert chosen.columns == ("code",)
    assert "code, in the previous delivery: " in "\n".join(chosen.said)
    with pytest.raises(UsageError, match=r"can be the key: code \((null in 1|2 rows share)") as caught:
        key_of(Export({name: each for name, each in then.items() if name != "name"}, OLD), Export(areas(NEW), NEW))
    assert "repair one of them" in caught.value.hint


def test_a_code_that_became_text_is_judged_by_its_number():
    then = areas(OLD, key=lambda rows: [301 + at for at in rows])
    now = areas(NEW, key=lambda rows: [f"{301 + at:04d}" for at in rows])
    for columns in (then, now):
        del columns["code"]
        columns["name"] = columns["name"][: len(columns["name"]) - 1] + columns["name"][:1]
    assert key_of(Export(now, NEW), Export(then, OLD)).columns == ("key",)


def numbered(rows, edited=0):
    """Parcels that a district and a number name together."""
    return {
        "id": list(range(len(rows))),
        "district": [f"D{at // 40}" for at in rows],
        "number": [at % 40 for at in rows],
        "status": [STATUS[at] for at in rows],
        "height": [float(at % 7 + (n < edited)) for n, at in enumerate(rows)],
    }


def test_columns_that_identify_together_are_the_key_where_the_only_other_counts_rows():
    chosen = key_of(Export(numbered(NEW, edited=9), NEW), Export(numbered(OLD), OLD))
    assert chosen.columns == ("district", "number")
    assert "not the key: id, " in "\n".join(chosen.said)


def test_columns_that_identify_together_are_named_where_none_does_alone():
    alone = Export({name: each for name, each in numbered(OLD).items() if name != "id"}, OLD)
    with pytest.raises(UsageError, match="can be the key") as caught:
        first_key(alone.facts(), alone)
    assert "unique together: district,number" in caught.value.hint
    shared, exports = held_together(alone, alone)
    assert joining_key(shared.inferred, exports, (alone, alone)).columns == ("district", "number")


def test_a_row_number_is_refused_where_it_is_all_there_is_and_joins_other_things():
    now, then = (Export({"id": list(range(len(rows))), "status": [STATUS[at] for at in rows]}, rows) for rows in (NEW, OLD))
    with pytest.raises(UsageError, match="a number that each export hands out anew"):
        key_of(now, then)


@pytest.mark.parametrize(
    "what", ["a row number", "a row number held as text", "a row number held as floats", "numbers dealt out in another order"]
)
def test_without_an_older_export_the_code_comes_first_and_numbers_last(what):
    source = Export(areas(OLD, id=NUMBERS[what], population=lambda rows: [977 * at + 13 for at in rows]))
    usable = [each.name for each in source.facts().keys if not each.why_not]
    assert usable[:1] == ["code"]
    assert usable.index("id") > usable.index("name") or what.startswith("numbers")
    assert usable.index("name") < usable.index("population")
    chosen = first_key(source.facts(), source)
    assert chosen.columns == ("code",)
    assert {each.split(",")[0] for each in chosen.said if each.startswith("not the key")} == {
        f"not the key: {name}" for name in ("id", "name", "population")
    }
