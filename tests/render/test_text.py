from __future__ import annotations

from dataclasses import replace

import pytest

from merestone.cli import next_steps
from merestone.render import text
from merestone.results.finding import Finding, Sample
from merestone.results.result import Changed, CheckResult, Counts, DiffResult, PublishResult, most_changed

KEY = Finding(
    "schema",
    "pid",
    "key_null",
    "error",
    "a key in every row",
    "2 null keys (rows 2 and 5 of the file)",
    2,
    (Sample(None, 2), Sample(None, 5)),
    remedy="fill the key",
)


def said_of(result, look=""):
    """What a terminal shows of a publish."""
    return "\n".join([text.publish(result), *next_steps.publish(result, "parcels.yaml", "merestone publish parcels.yaml", look)])


def result(**more):
    base = {
        "name": "parcels",
        "status": "published",
        "version": 2,
        "features": 1000,
        "delivered": 1000,
        "run_id": "r",
        "current": 1,
        "seconds": 9.2,
    }
    return PublishResult(**(base | more))


def test_a_publish_says_what_changed_what_was_ignored_and_what_was_written():
    said = said_of(
        result(
            delta=Counts(added=57, changed=412, removed=12, refreshed=1_190_482),
            changed=Changed(371, 38, 3, largest_move=2.41, most=("owner_class", 290)),
            files_written=6,
            files_carried=19,
            bytes_written=48_000_000,
        )
    )
    first, *rest = said.splitlines()
    assert first.startswith("parcels v2 published: 57 added, 412 changed, 12 removed  ")
    assert first.endswith(" 9 s")
    assert rest == [
        "  changed    371 attributes, 38 geometry, 3 both (largest move 2.41 m); most in owner_class (290)",
        "  ignored    1,190,482 delivered in other bytes, same content",
        "  files      6 of 25 rewritten (48 MB), 19 carried",
        "  next       merestone changes parcels.yaml --html v2.html",
    ]


def test_a_first_publish_counts_features_and_says_how_to_read_them():
    said = said_of(result(version=1, current=None, features=1, delta=Counts(added=1), files_written=1, bytes_written=640))
    assert said.startswith("parcels v1 published: 1 feature  ")
    assert "1 written (640 B)" in said
    assert "merestone read parcels.yaml" in said


def test_an_unchanged_delivery_names_the_version_that_stays():
    said = said_of(result(status="unchanged", version=1))
    assert said.startswith("parcels unchanged: 1,000 rows delivered, same content. v1 stays current.")


def test_rows_that_are_held_are_not_called_the_same():
    said = said_of(result(status="unchanged", version=1, unchanged=997, rejected=3, held=2))
    assert said.startswith(
        "parcels unchanged: 1,000 rows delivered, 997 with the same content, 3 rejected, 2 held as last accepted. v1 stays current."
    )


def test_an_undecided_precision_is_told_once_and_not_every_night():
    undecided = Finding("geometry", "geometry", "precision", "warning", "7 decimals", "undecided: 99 % of 12 ordinates have 2 decimals", 12)
    other = Finding("service", "day", "freshness", "warning", "1,440 minutes", "a guess", 1)
    for status in ("published", "planned", "unchanged"):
        said = said_of(result(status=status, findings=(undecided, other)))
        assert "undecided" not in said
        assert "service.freshness" in said
    assert "geometry.precision" in said_of(result(version=1, current=None, findings=(undecided,)))
    assert "geometry.precision" in text.check(CheckResult("a.gpkg", "a.contract.yaml", "pass", 6, (undecided,)))


@pytest.mark.parametrize("columns", [[("b", 2), ("a", 2), ("c", 1)], [("c", 1), ("a", 2), ("b", 2)]])
def test_of_attributes_that_changed_as_often_the_first_by_name_is_told(columns):
    assert most_changed(columns) == ("a", 2)
    assert most_changed([(name, 0) for name, _ in columns]) is None


def test_a_refusal_names_every_finding_with_its_next_step():
    other = Finding(
        "semantics",
        "land_use",
        "enum",
        "error",
        "one of residential",
        "mixed_use (row b)",
        1,
        (Sample("b", 2, 10.01, 56.0, "mixed_use"),),
        remedy="have the producer deliver one of the agreed values",
        per_row=True,
    )
    warning = Finding("geometry", "geometry", "z_dropped", "warning", "x and y", "Z in 3 rows", 3)
    said = said_of(result(status="refused", refused_by="contract", version=1, findings=(warning, KEY, other)))
    assert said.startswith("parcels REFUSED by its contract. v1 stays current; nothing published.")
    assert "pid: 2 null keys (rows 2 and 5 of the file)" in said
    assert "land_use: mixed_use (row b)" in said
    assert "b is at 10.01, 56" in said
    assert "next: fill the key" in said
    assert said.index("schema.key_null") < said.index("warning: ")
    assert "cannot be confirmed" in said


def of_geometry(rule="validity", *, number, observed, samples=1, **more):
    features = tuple(Sample(f"p{each}", each + 1, 10.5, 56.25) for each in range(samples))
    return Finding("geometry", "geometry", rule, "error", "a valid geometry", observed, number, features, remedy="mend it", **more)


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (
            of_geometry(number=32, observed="p0 too short, part6 too short and 30 more", per_row=True),
            "32 rows in all; p0 is at 10.5, 56.25",
        ),
        (of_geometry("overlap", number=32, observed="p0 and p1 share 3 m2 and 31 more"), "32 in all; p0 is at 10.5, 56.25"),
        (
            Finding(
                "schema",
                "pid",
                "key_duplicate",
                "error",
                "a key only once",
                "key 4 twice (rows 4 and 9), key 105-4 twice (rows 1 and 5)",
                4,
                tuple(Sample("7", row) for row in (4, 9, 1, 5)),
            ),
            "4 rows in all",
        ),
        (Finding("crs", "geometry", "units", "error", "degrees", "the ordinates are no degrees: 5 6 7 8", 891), "891 in all"),
    ],
)
def test_every_finding_tells_how_many(finding, told):
    assert told in [line.strip() for line in text.finding(finding)]


@pytest.mark.parametrize(
    "finding",
    [
        KEY,
        Finding("geometry", "geometry", "precision", "error", "4 decimals", "99 % of 24,110 ordinates have 0 decimals", 24_110),
        Finding("guard", "pid", "changed", "error", "at most 20 % changed", "50 % changed", 1_241),
        Finding("semantics", "use", "enum", "error", "one of a", "b in 3 rows (rows x, y and z)", 3, per_row=True),
    ],
)
def test_a_number_is_not_told_twice(finding):
    assert not any("in all" in line for line in text.finding(finding))


def test_a_place_is_not_told_twice():
    said = text.finding(of_geometry(number=1, observed="p0 self-intersection at 10.5, 56.25", per_row=True))
    assert sum("10.5, 56.25" in line for line in said) == 1


def test_a_check_that_ended_before_the_first_row_does_not_claim_an_empty_delivery():
    assert "(no row was checked): 1 error" in text.check(CheckResult("a.gpkg", "c.yaml", "fail", 0, (KEY,)))


def test_a_refused_first_delivery_claims_no_version():
    assert said_of(result(status="refused", refused_by="contract", version=None, current=None)).splitlines()[0] == (
        "parcels REFUSED by its contract. Nothing published."
    )


def test_a_guard_prints_the_token_and_what_it_is_good_for():
    guard = Finding(
        "guard",
        "pid",
        "changed",
        "error",
        "at most 20 % changed",
        "74 % changed. 99.9 % of them by the same 0.96 m",
        740,
        remedy="repeat with --confirm",
    )
    said = said_of(result(status="refused", refused_by="guard", version=2, current=2, findings=(guard,), confirm="7c1e-a90b"))
    assert said.startswith("parcels STOPPED by a guard. v2 stays current; nothing published.")
    assert "--confirm 7c1e-a90b (this delivery against v2 only)" in said
    assert "pid: 74 % changed. 99.9 %" in said


def test_a_stop_tells_what_would_change_how_to_look_and_what_to_do_where_it_is_not_meant_before_it_offers_to_confirm():
    guard = Finding("guard", "pid", "changed", "error", "at most 20 % changed", "50 % changed", 1_241)
    stopped = result(
        status="refused",
        refused_by="guard",
        findings=(guard,),
        delta=Counts(added=3, removed=1_241),
        unchanged=1_240,
        confirm="7c1e-a90b",
    )
    lines = said_of(stopped, "merestone diff parcels.yaml a.gpkg").splitlines()
    assert lines[3:] == [
        "  change     3 added, 1,241 removed; 1,240 unchanged",
        "  if not meant: correct the delivery; v1 stays current until then",
        "  look       merestone diff parcels.yaml a.gpkg",
        "  if meant: repeat with --confirm 7c1e-a90b (this delivery against v1 only)",
        "  confirm    merestone publish parcels.yaml --confirm 7c1e-a90b",
    ]
    withdrawn = replace(stopped, findings=(replace(guard, rule="withdrawn"),), delta=Counts())
    assert "merestone diff" not in said_of(withdrawn, "merestone diff parcels.yaml a.gpkg")


def test_a_dry_run_promises_nothing_was_written():
    said = said_of(
        result(
            status="planned",
            version=1,
            delta=Counts(added=2),
            files_written=1,
            files_carried=3,
            bytes_written=1_234_567,
            rebuild=(4, 5_000_000),
        )
    )
    assert said.startswith("parcels v1 would change: 2 added (dry run, nothing written)")
    assert "1 of 4 to rewrite (about 1.2 MB), 3 carried; a rebuild writes 4 (about 5.0 MB)" in said


def test_quarantined_and_held_rows_are_counted():
    said = said_of(result(rejected=3, held=2, delta=Counts(changed=1)))
    assert "  rejected   3 rows in quarantine, 2 of them stay as last accepted" in said


def test_no_more_than_forty_findings_are_listed_and_the_rest_is_said():
    many = tuple(Finding("schema", f"c{n}", "extra", "error", "a field of the contract", f"c{n} not in the contract", 1) for n in range(50))
    said = said_of(result(status="refused", refused_by="contract", findings=many))
    assert "c39 not in" in said
    assert "c40 not in" not in said
    assert "and 10 findings more" in said
    assert "--json lists every finding" in said


def test_control_characters_of_a_delivery_never_reach_the_terminal():
    evil = Finding("semantics", "a", "enum", "error", "one of x", "\x1b[2Jnull (row \u202eb)", 1, (Sample("\x07b", 1, 1.0, 2.0),))
    said = "\n".join(text.finding(evil))
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\\x1b[2J" in said
    assert "\\x07b is at" in said


def test_a_diff_lists_classes_and_asked_for_keys():
    said = text.diff(
        DiffResult("a.gpkg", "b.gpkg", Counts(added=1, removed=1, rekeyed=1), 7, keys={"added": ("x",), "changed": (), "removed": ("y",)})
    )
    assert said.startswith("a.gpkg to b.gpkg: 1 added, 1 removed, 7 unchanged")
    assert "  added      x" in said
    assert "  rekeyed    1 feature with the same content" in said


@pytest.mark.parametrize(("status", "word"), [("pass", "passes"), ("fail", "BREAKS"), ("error", "could not be checked")])
def test_a_check_says_its_verdict(status, word):
    assert word in text.check(CheckResult("a.gpkg", "c.yaml", status, 10, (KEY,) if status == "fail" else ()))
