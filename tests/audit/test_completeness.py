"""The gate over completeness passes on what the pipeline writes, and names what is missing when something is taken away."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from shapely import Point

from cli.products import FIELDS, rows
from estate import save
from merestone.audit import completeness
from merestone.audit.completeness import check_runs, check_version
from merestone.dataset.feed import Feed
from merestone.line.rollback import roll_back
from merestone.lineage.store.reading import read_run
from merestone.lineage.store.run_manifest import read_manifest, runs_of
from merestone.lineage.store.writing import RunWriter

NOW = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def nights(estate, tmp_path):
    """Four nights: added; changed, removed, held and moved; nothing changed but bytes; added again."""
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    made = estate(fields, geometry_type="point", key=["pid"], epsg=28992, precision=3).by_place(10).agreed()
    made.settings |= {"rejects": {"max_fraction": 0.5}, "crs": {"accept": ["EPSG:4326"]}}
    changed = {"p3": {"owner": "b"}, "p5": {"geometry": Point(5.3, 52.3)}, "p7": None, "p9": {"owner": None}, "p99": {"rank": 99}}
    for number, given in enumerate((rows(), rows(**changed), rows(**{**changed, "p9": {}, "p11": {"rank": 5}}))):
        assert made.publish(save(given, tmp_path / f"{number}.gpkg")).status == "published"
    return made


def rules(found):
    return {(gap.rule, gap.samples) for _, gap in found.gaps}


def test_what_the_pipeline_writes_is_complete(nights):
    for version in (1, 2, 3):
        found = check_version(nights.dataset, version, now=NOW)
        assert rules(found) == set()
        assert found.complete
        assert len(found.runs) == version
        assert found.features == nights.manifest(version).features


def test_behind_a_rollback_only_what_made_the_content_counts(nights):
    roll_back(nights.dataset, to=1, reason="wrong export")
    found = check_version(nights.dataset, None, now=NOW)
    assert found.complete
    assert found.runs == [nights.manifest(1).run_id]


def without(nights, monkeypatch, tmp_path, version, condition):
    """Let a version name a run from which the events that meet a condition are missing: sealed anew, so that nothing else is wrong."""
    manifest = nights.manifest(version)
    store = nights.dataset.store
    table = read_run(store, manifest.run_id)
    kept = table.filter(pc.invert(condition(table)))
    assert kept.num_rows < table.num_rows
    writer = RunWriter(str(tmp_path), manifest.run_id, 1, "forged")
    writer.write(kept)
    plan = runs_of(store, only=[manifest.run_id])[0][-1].plan
    sealed = writer.seal(store, "_forged", run_date=date(2026, 3, 3), plan=plan, tool={}, time=NOW)
    mine = read_manifest(store, sealed.run_manifest)
    real = completeness.reading.scan
    monkeypatch.setattr(
        completeness.reading,
        "scan",
        lambda store, attempts, root, **more: (
            real(store, [mine], "_forged", **more) if attempts[-1].run_id == manifest.run_id else real(store, attempts, root, **more)
        ),
    )
    return check_version(nights.dataset, None, now=NOW)


def of(**values):
    def condition(table):
        mask = pa.chunked_array([pa.array([True] * table.num_rows)])
        for name, value in values.items():
            mask = pc.and_(mask, pc.fill_null(pc.equal(table.column(name), value), False))
        return mask

    return condition


@pytest.mark.parametrize(
    ("version", "condition", "rule"),
    [
        (1, of(feature_id="p0"), ("not_accepted", ("p0",))),
        (2, of(feature_id="p3"), ("not_accepted", ("p3",))),
        (2, of(feature_id="p3", stage="validate"), ("not_accepted", ("p3",))),
        (2, of(feature_id="p3", stage="snap"), ("stage_missing", ("p3",))),
        (2, of(feature_id="p7"), ("removed_untold", ("p7",))),
        (2, of(feature_id="p9", stage="publish"), ("held_untold", ("p9",))),
        (3, of(feature_id="p11"), ("not_accepted", ("p11",))),
    ],
)
def test_what_is_missing_is_named(nights, monkeypatch, tmp_path, version, condition, rule):
    found = without(nights, monkeypatch, tmp_path, version, condition)
    assert not found.complete
    assert rule in rules(found)


def test_what_no_change_log_holds_resolves_to_no_run(nights, monkeypatch):
    real = completeness.read_classes

    def log(store, changes):
        classes = real(store, changes)
        return Feed(classes.table.slice(1)) if changes == nights.manifest(1).changes else classes

    monkeypatch.setattr(completeness, "read_classes", log)
    found = check_version(nights.dataset, None, now=NOW)
    assert ("unresolved", ("p0",)) in rules(found)


def test_accepted_and_rejected_agree_with_the_version(nights, monkeypatch):
    real = completeness.load_table
    monkeypatch.setattr(completeness, "load_table", lambda *given: real(*given).slice(3))
    found = check_version(nights.dataset, 1, now=NOW)
    assert {rule for rule, _ in rules(found)} == {"not_published"}
    monkeypatch.setattr(completeness, "load_table", real)
    told = completeness._Outcomes(pa.array([], pa.string()), pa.array(["p1", "p2", "zz"]), {"held": pa.array(["p2"])})
    found = completeness.Completeness()
    completeness._compare_live(real(nights.dataset.store, nights.manifest(1).index).column("key").combine_chunks(), told, "r", found)
    assert rules(found) == {("rejected_published", ("p1",))}


def test_runs_without_a_dataset_are_checked_for_their_chain(nights):
    store = nights.dataset.store
    assert check_runs(store, runs_of(store), now=NOW).complete
    early = datetime(2000, 1, 1, tzinfo=UTC)
    found = check_runs(store, runs_of(store), now=early)
    assert {rule for rule, _ in rules(found)} == {"future"}
    assert found.complete


def test_the_last_step_alone_opens_one_run(nights, monkeypatch):
    opened = []
    real = completeness.read_classes
    versions = {nights.manifest(version).changes.path: version for version in (1, 2, 3)}
    monkeypatch.setattr(completeness, "read_classes", lambda store, log: opened.append(versions[log.path]) or real(store, log))
    assert check_version(nights.dataset, None, now=NOW, last_step=True).complete
    assert opened == [3]
    opened.clear()
    assert check_version(nights.dataset, None, now=NOW).complete
    assert opened == [3, 2, 1], "each run that the version stands on, once"
