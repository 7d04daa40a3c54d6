"""Thresholds gate by shares of features; every form tells the same numbers, whatever names are in it."""

import re

import pytest

from merestone.render.iso19115_lint import read_record
from merestone.render.scorecard import Score, Thresholds, junit, page, percent, text, to_json

SCORES = (
    Score("r1", 1, "2026-03-01T01:00:00.000000Z", 400, 100, 98, 2, 0, 0),
    Score("r<2>", None, "2026-03-02T01:00:00.000000Z", 400, 100, 90, 7, 3, 0),
    Score("r3", 2, "2026-03-03T01:00:00.000000Z", 0, 0, 0, 0, 0, 0),
)


@pytest.mark.parametrize(
    ("limits", "broken"),
    [
        (Thresholds(), []),
        (Thresholds(max_rejected=0.03), []),
        (Thresholds(max_rejected=0.029), ["r<2>"]),
        (Thresholds(max_rejected=0), ["r<2>"]),
        (Thresholds(max_warned=0.01), ["r1", "r<2>"]),
        (Thresholds(0.02, 0.07), ["r<2>"]),
    ],
)
def test_a_share_above_the_limit_breaks_and_one_at_it_does_not(limits, broken):
    doc = to_json("parcels", SCORES, limits)
    assert [each["run_id"] for each in doc["runs"] if each["breaches"]] == broken
    assert doc["status"] == ("fail" if broken else "pass")
    root = read_record(junit("parcels", SCORES, limits).encode(), "test")
    cases = list(root.iter("testcase"))
    assert [each.get("name") for each in cases] == [f"run {each.run_id}" for each in SCORES]
    assert [each.get("name")[4:] for each in cases if each.find("failure") is not None] == broken
    assert root.get("failures") == str(len(broken))
    assert text("parcels", SCORES, limits).count("BREAKS ") == sum(len(each["breaches"]) for each in doc["runs"])


def test_a_conflict_breaks_in_any_case():
    doc = to_json("parcels", [Score("r", 1, "2026-03-01T01:00:00Z", 4, 1, 1, 0, 0, 2)], Thresholds())
    assert doc["runs"][0]["breaches"] == ["2 events in conflict"]


def test_the_page_stands_alone_and_no_name_becomes_markup():
    made = page("<script>x</script>", SCORES, Thresholds(0.01, 0.01))
    assert "<script" not in made
    assert "http" not in made.replace("http-equiv", "")
    assert made.count("<svg") == 3
    assert made.count("<circle") == 2 * len(SCORES)
    assert made.count("stroke-dasharray") == 2
    assert sorted(re.findall(r"<title>(.*?)</title>", made))[:1] == ["&lt;script&gt;x&lt;/script&gt;: lineage scorecard"]
    assert made.count("<tr class='bad'>") == 2


def test_no_runs_is_a_page_too():
    assert "nothing to judge, and the gate FAILS" in page("parcels", [], Thresholds())
    assert "FAILS" not in page("parcels", [], Thresholds(allow_empty=True))
    assert to_json("parcels", [], Thresholds())["status"] == "fail"


def test_what_is_not_nothing_never_reads_as_nothing():
    assert [percent(each) for each in (0, 1, 0.0123, 1e-7)] == ["0.00 %", "100.00 %", "1.23 %", "1e-05 %"]
