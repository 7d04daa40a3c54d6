"""What outlived its window goes, on confirmation; what live features need stays; counts and roots stay; no break in between loses anything."""

import copy
import json
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime

import pytest

from audit.test_iso import counted, stored
from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.audit import retain as retaining
from merestone.audit.completeness import check_version
from merestone.audit.evidence_file import evidence, proof_of, verifier
from merestone.audit.ingest import ingest
from merestone.audit.iso import record_of_run
from merestone.audit.questions import runs, scores
from merestone.audit.retain import hold, release, retain
from merestone.audit.verify import verify
from merestone.dataset.feed import Feed
from merestone.errors import ConflictError, CorruptError, StoreError, UsageError
from merestone.inspect.browse import lineage_summary, why
from merestone.line import environment
from merestone.line.rollback import roll_back
from merestone.lineage.retention.expiry import cutoff, hold_of, read_holds
from merestone.lineage.store.reading import history
from merestone.lineage.store.run_manifest import attempts_of
from merestone.lineage.store.select import Conditions, select
from merestone.lineage.store.verdict import conformance_summary, run_summary
from merestone.render.iso19115 import ENCODINGS, render
from merestone.render.iso19115_lint import lint, read_record
from merestone.storage.local import LocalStore

NIGHTS = [datetime(2020, 1, day, 3, tzinfo=UTC) for day in (1, 2, 3)] + [datetime(2026, 1, 1, 3, tzinfo=UTC)]
LATER = datetime(2027, 1, 1, tzinfo=UTC)
FIRST = {"window": "P6Y", "basis": "six years, as the directive says"}


@pytest.fixture
def clock(monkeypatch):
    """Say what time it is."""

    def at(time):
        monkeypatch.setattr(environment, "now", lambda: time)

    return at


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Old: 40 features added; one changed and one removed; a refused run. New: another one changed."""
    folder = tmp_path_factory.mktemp("retain")
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    made = Estate(folder / "product", fields, geometry_type="point", key=["pid"], epsg=28992, precision=3).agreed()
    made.settings["crs"] = {"accept": ["EPSG:4326"]}
    second = {"p3": {"owner": "b"}, "p7": None}
    deliveries = (rows(), rows(**second), rows(**second, p1={"owner": None}), rows(**second, p5={"owner": "c"}))
    made.ids = []
    with pytest.MonkeyPatch.context() as patch:
        for number, (time, given) in enumerate(zip(NIGHTS, deliveries, strict=True)):
            patch.setattr(environment, "now", lambda time=time: time)
            made.ids.append(made.publish(save(given, folder / f"{number}.gpkg")).result.run_id)
    assert made.version == 3
    return made


@pytest.fixture
def nights(built, tmp_path, clock):
    """A copy of what was built, years later."""
    made = copy.deepcopy(built)
    made.folder, made.url = tmp_path / "product", tmp_path / "product" / "published"
    shutil.copytree(built.folder, made.folder)
    clock(LATER)
    return made


def everything(made):
    return {path.relative_to(made.url).as_posix(): path.read_bytes() for path in sorted(made.url.rglob("*")) if path.is_file()}


def expire(made, **more):
    planned = retain(str(made.url), **{**FIRST, **more}, confirm=None)
    return retain(str(made.url), **{**FIRST, **more}, confirm=planned.confirm)


def prefixes(made):
    return sorted(each.name for each in (made.url / "_lineage").glob("run_date=*") if any(each.rglob("*.parquet")))


@pytest.mark.parametrize(
    ("today", "window", "first"),
    [
        (date(2026, 11, 30), "P6Y", date(2020, 11, 30)),
        (date(2024, 2, 29), "P1Y", date(2023, 2, 28)),
        (date(2026, 3, 31), "P1M", date(2026, 2, 28)),
        (date(2026, 1, 1), "P18M", date(2024, 7, 1)),
        (date(2026, 1, 1), "P1Y2M1W3D", date(2024, 10, 22)),
        (date(2026, 1, 10), "P9D", date(2026, 1, 1)),
        (date(2026, 1, 10), "P9000Y", date.min),
    ],
)
def test_the_first_day_that_is_kept(today, window, first):
    assert cutoff(today, window) == first


@pytest.mark.parametrize("window", ["", "P", "P0D", "PT24H", "6Y", "P6", "P-1Y", "P1.5Y", "p6y"])
def test_a_window_that_is_none_is_refused(window):
    with pytest.raises(UsageError, match="is not a window"):
        cutoff(date(2026, 1, 1), window)


def test_a_dry_run_tells_and_changes_nothing(nights):
    before = everything(nights)
    found = retain(str(nights.url), **FIRST, confirm=None)
    assert (found.status, found.first_kept) == ("planned", "2021-01-01")
    assert [(each["run_date"], each["runs"], each["carried_features"], each["held_by"]) for each in found.prefixes] == [
        ("2020-01-01", [nights.ids[0]], 37, []),
        ("2020-01-02", [nights.ids[1]], 1, []),
        ("2020-01-03", [nights.ids[2]], 0, []),
    ]
    assert found.bytes == sum(len(data) for name, data in before.items() if "/run_date=2020" in name)
    with pytest.raises(UsageError, match="not the token"):
        retain(str(nights.url), **FIRST, confirm="0000-0000")
    with pytest.raises(UsageError, match="not the token"):
        retain(str(nights.url), "P6Y", "another basis", confirm=found.confirm)
    assert everything(nights) == before


@pytest.mark.parametrize(("window", "basis"), [(None, None), ("P6Y", None), ("P6Y", "  "), (None, "a law")])
def test_without_window_and_basis_nothing_expires(nights, window, basis):
    with pytest.raises(UsageError, match="a window and its legal basis"):
        retain(str(nights.url), window, basis, confirm=None)


def test_the_publication_file_says_window_and_basis(nights):
    nights.settings["lineage"] = {"retention": {"window": "P6Y", "basis": "law"}}
    nights.write(nights.folder / "x.gpkg")
    found = retain(str(nights.folder / "product.yaml"), None, None, confirm=None)
    assert (found.status, found.window, found.basis) == ("planned", "P6Y", "law")


def test_what_live_features_need_stays_and_counts_and_roots_stay(nights, schemas):
    store, url = nights.dataset.store, str(nights.url)
    summaries = {run: run_summary(store, run) for run in nights.ids}
    told = {run: (runs_counts(record_of_run(url, run)), stored(store, run)) for run in nights.ids}
    p0 = history(store, "p0")
    done = expire(nights)
    assert (done.status, prefixes(nights)) == ("done", ["run_date=2026-01-01"])
    assert verify(store).damages == ()
    assert check_version(nights.dataset, None, now=LATER).gaps == []
    assert history(store, "p0").equals(p0)
    assert {each["run_id"] for each in history(store, "p3").to_pylist()} == {nights.ids[1]}
    assert {each["run_id"] for each in history(store, "p5").to_pylist()} == {nights.ids[3]}
    assert history(store, "p7").num_rows == 0
    assert why(nights.dataset, "p3")["runs"][0]["version"] == 2
    for run in nights.ids:
        after = run_summary(store, run)
        assert {**after, "reasons": None} == {**summaries[run], "reasons": None}
        assert conformance_summary(f"{url}/_lineage", run) == {name: after[name] for name in conformance_summary(f"{url}/_lineage", run)}
        record = record_of_run(url, run)
        assert runs_counts(record) == told[run][0] == told[run][1]
        for encoding in ENCODINGS:
            text = render(record, encoding)
            assert schemas.faults(text, encoding) == []
            assert lint(read_record(text.encode(), "test")) == []
        assert ("expired on 2027-01-01 after P6Y (six years, as the directive says)" in record.statement) == (run != nights.ids[3])
    assert lineage_summary(store, nights.ids[2])["expired"]["basis"] == FIRST["basis"]
    assert [bool(each["expired_utc"]) for each in runs(nights.dataset)] == [False, True, True, True]
    assert [each.rejected for each in scores(nights.dataset, [], 30)] == [0, 0, 1, 0]
    assert [table.num_rows for table in select(store, [attempts_of(store, nights.ids[2])], Conditions())] == []
    again = retain(url, **FIRST, confirm=None)
    assert (again.status, again.prefixes) == ("nothing", [])


def runs_counts(record):
    return counted(render(record, "gmd"))


def test_the_evidence_of_what_expired_verifies(nights, tmp_path):
    expire(nights)
    (tmp_path / "verify_lineage.py").write_text(verifier())
    for feature, number in (("p0", 1), ("p3", 2), ("p5", 3)):
        proof = proof_of(str(nights.url), feature)
        assert proof["version"] == number
        assert ("_baseline" in proof["run_manifest"]) == (number < 3)
        (tmp_path / "p.json").write_text(json.dumps(proof))
        ended = subprocess.run(
            [sys.executable, "-I", tmp_path / "verify_lineage.py", tmp_path / "p.json", proof["root"]], capture_output=True, check=False
        )
        assert ended.returncode == 0
    with pytest.raises(UsageError, match="met a feature 'p7'"):
        proof_of(str(nights.url), "p7")
    evidence(str(nights.url), str(tmp_path / "e.zip"))
    with zipfile.ZipFile(tmp_path / "e.zip") as whole:
        whole.extractall(tmp_path / "e")
    assert subprocess.run([sys.executable, "-I", tmp_path / "e" / "verify_lineage.py", tmp_path / "e"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("what", "kept"),
    [
        ("all", {"2020-01-01", "2020-01-02", "2020-01-03"}),
        ("date=2020-01-02", {"2020-01-02"}),
        ("date=2019-12-01..2020-01-02", {"2020-01-01", "2020-01-02"}),
        ("run=RUN", {"2020-01-03"}),
        ("feature=p7", {"2020-01-01", "2020-01-02"}),
        ("feature=p12345", set()),
    ],
)
def test_a_hold_keeps_what_it_names_until_it_is_released(nights, what, kept):
    url = str(nights.url)
    placed = hold(url, what.replace("RUN", nights.ids[2]), "case 7/20")
    found = retain(url, **FIRST, confirm=None)
    assert {each["run_date"] for each in found.prefixes if each["held_by"] == [placed.id]} == kept
    assert found.holds[0]["reason"] == "case 7/20"
    expire(nights)
    assert set(prefixes(nights)) == {f"run_date={each}" for each in (*kept, "2026-01-01")}
    assert verify(nights.dataset.store).damages == ()
    release(url, placed.id, "case closed")
    assert read_holds(nights.dataset.store)[0].released["reason"] == "case closed"
    if kept:
        expire(nights)
    assert prefixes(nights) == ["run_date=2026-01-01"]
    with pytest.raises(UsageError, match="released already"):
        release(url, placed.id, "again")


@pytest.mark.parametrize(
    "what", ["", "p7", "run=", "date=2020", "date=2020-02-01..2020-01-01", "date=2020-01-01..2020-01-02..2020-01-03", "ALL"]
)
def test_a_hold_on_nothing_is_refused(what):
    with pytest.raises(UsageError, match="nothing that can be held"):
        hold_of(what)


@pytest.mark.parametrize(("typed", "meant"), [("20200102", ["2020-01-02"]), ("2020-W01-4..20200103", ["2020-01-02", "2020-01-03"])])
def test_a_day_is_held_in_whatever_form_of_iso_8601_it_is_typed(nights, typed, meant):
    hold(str(nights.url), f"date={typed}", "case 7/20")
    found = retain(str(nights.url), **FIRST, confirm=None)
    assert [each["run_date"] for each in found.prefixes if each["held_by"]] == meant


def test_an_id_is_held_however_its_letters_are_composed():
    assert hold_of("feature=e\u0301") == ("feature", "\u00e9")


def test_an_unreadable_hold_stops_everything(nights):
    placed = hold(str(nights.url), "all", "r")
    (nights.url / "_lineage/_holds" / f"{placed.id}.json").write_text("{}")
    with pytest.raises(CorruptError, match="not a readable hold"):
        retain(str(nights.url), **FIRST, confirm=None)


@pytest.mark.parametrize("where", ["_baseline/", "_tombstones/", "delete"])
def test_a_break_at_any_step_loses_nothing_and_is_made_good(nights, monkeypatch, where, clock):
    store = nights.dataset.store
    before = {key: history(store, key).num_rows for key in ("p0", "p3", "p7")}
    create, delete = LocalStore.create, LocalStore.delete
    count = 0

    def breaks(self, name, *data):
        nonlocal count
        if where == "delete" or where in name:
            count += 1
            if count == 2 or where == "_tombstones/":
                raise StoreError("gone")
        return (create if data else delete)(self, name, *data)

    monkeypatch.setattr(LocalStore, "delete" if where == "delete" else "create", breaks)
    with pytest.raises(StoreError, match="gone"):
        expire(nights)
    monkeypatch.setattr(LocalStore, "create", create)
    monkeypatch.setattr(LocalStore, "delete", delete)
    assert verify(store).damages == ()
    assert {key: history(store, key).num_rows for key in ("p0", "p3", "p7")} == (
        before if where != "delete" else {**before, "p3": before["p3"] - 4, "p7": 0}
    )
    clock(datetime(2027, 1, 3, tzinfo=UTC))
    assert expire(nights).status == "done"
    assert verify(store).damages == ()
    assert prefixes(nights) == ["run_date=2026-01-01"]
    assert history(store, "p0").num_rows == before["p0"]
    assert len([each for each in (nights.url / "_lineage/_baseline").iterdir() if any(each.rglob("*.json"))]) == 1


def test_altered_lineage_does_not_expire(nights):
    part = next((nights.url / "_lineage" / "run_date=2020-01-02").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptError, match="nothing expired"):
        expire(nights)
    assert len(prefixes(nights)) == 4


def test_a_publish_meanwhile_stops_it(nights, monkeypatch):
    planned = retain(str(nights.url), **FIRST, confirm=None)
    heads = iter([1, 2])
    monkeypatch.setattr("merestone.audit.retain.current", lambda _: next(heads))
    with pytest.raises(ConflictError, match="nothing expired"):
        retain(str(nights.url), **FIRST, confirm=planned.confirm)
    assert len(prefixes(nights)) == 4


def test_a_hold_that_is_placed_meanwhile_stops_it(nights, monkeypatch):
    planned = retain(str(nights.url), **FIRST, confirm=None)
    real = retaining.retention.proof.verify_run

    def slow(store, run, root):
        if run.run_id == nights.ids[0]:
            hold(str(nights.url), "feature=p7", "case 7/20")
        return real(store, run, root)

    monkeypatch.setattr("merestone.lineage.proof.inclusion.verify_run", slow)
    with pytest.raises(ConflictError, match="a hold changed"):
        retain(str(nights.url), **FIRST, confirm=planned.confirm)
    assert len(prefixes(nights)) == 4


@pytest.mark.parametrize("kind", ["_baseline/*/_runs/*.json", "_baseline/*/run_date=*/**/*.parquet", "_runs/*.json"])
def test_what_stays_is_verified(nights, kind):
    expire(nights)
    place = min((nights.url / "_lineage").glob(kind))
    data = place.read_bytes()
    for altered in (data + b" ", None):
        place.write_bytes(altered) if altered is not None else place.unlink()
        assert place.relative_to(nights.url).as_posix() in {each.path for each in verify(nights.dataset.store).damages}
    place.write_bytes(data)
    assert verify(nights.dataset.store).whole


def test_tombstones_are_chained(nights, clock):
    expire(nights)
    clock(datetime(2033, 1, 1, tzinfo=UTC))
    expire(nights)
    assert prefixes(nights) == []
    first, second = sorted((nights.url / "_lineage/_tombstones").iterdir())
    assert json.loads(second.read_text())["previous"]["tombstone"] == f"_tombstones/{first.name}"
    assert verify(nights.dataset.store).whole
    assert check_version(nights.dataset, None, now=LATER).complete
    first.write_text(first.read_text().replace("six years", "one year"))
    assert {each.path for each in verify(nights.dataset.store).damages} == {f"_lineage/_tombstones/{first.name}"}


def test_behind_a_rollback_the_runs_of_the_content_that_is_live_count(nights):
    roll_back(nights.dataset, to=1, reason="wrong export")
    found = retain(str(nights.url), **FIRST, confirm=None)
    assert [each["carried_features"] for each in found.prefixes] == [40, 0, 0]
    expire(nights)
    assert {each["run_id"] for each in history(nights.dataset.store, "p7").to_pylist()} == {nights.ids[0]}
    assert check_version(nights.dataset, None, now=LATER).complete


def test_publishing_goes_on_over_expired_lineage(nights, tmp_path):
    expire(nights)
    assert nights.publish(save(rows(p3={"owner": "b"}, p7=None, p5={"owner": "d"}), tmp_path / "next.gpkg")).status == "published"
    assert verify(nights.dataset.store).whole
    assert check_version(nights.dataset, None, now=LATER).complete


def test_a_store_of_events_alone_expires_whole(tmp_path, clock):
    event = {
        "run_id": "r1",
        "sequence": 1,
        "event_time_utc": "2020-05-01T10:00:00Z",
        "stage": "a",
        "event_type": "CAST",
        "feature_id": "p1",
        "source_crs": "EPSG:4326",
        "target_crs": "EPSG:4326",
        "outcome": "PASS",
    }
    (tmp_path / "e.ndjson").write_text(json.dumps(event))
    clock(NIGHTS[0])
    ingest(str(tmp_path / "store"), str(tmp_path / "e.ndjson"))
    clock(LATER)
    planned = retain(str(tmp_path / "store"), **FIRST, confirm=None)
    assert retain(str(tmp_path / "store"), **FIRST, confirm=planned.confirm).status == "done"
    assert conformance_summary(tmp_path / "store" / "_lineage", "r1")["passed"] == 1
    assert not list((tmp_path / "store").rglob("*.parquet"))


def test_what_no_change_log_explains_is_carried_on_from_every_run(nights, monkeypatch):
    real = retaining.read_classes

    def log(store, changes):
        classes = real(store, changes)
        return Feed(classes.table.slice(1)) if changes == nights.manifest(1).changes else classes  # without p0

    monkeypatch.setattr(retaining, "read_classes", log)
    found = retain(str(nights.url), **FIRST, confirm=None)
    assert [each["carried_features"] for each in found.prefixes] == [37, 2, 1]
