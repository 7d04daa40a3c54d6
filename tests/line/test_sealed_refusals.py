"""A delivery that was read to its end and refused leaves a sealed run with its findings, whatever it was refused for; nothing else does."""

import json

import pytest

from cli.products import FIELDS, rows
from estate import Estate, save
from merestone.api import lineage
from merestone.audit.verify import verify
from merestone.dataset.current import current
from merestone.errors import SourceError, UsageError
from merestone.line.judging import guards_before_processing
from merestone.lineage.store.run_manifest import attempts_of, sealed_runs
from merestone.storage.open import open_store
from stores import fresh


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    made = Estate(folder / "product", FIELDS, geometry_type="point", key=["pid"], store=fresh(page=1000))
    made.publish(save(rows(9), folder / "first.gpkg"))
    made.deliveries = folder
    return made


def renamed(given, old, new):
    return [{(new if name == old else name): value for name, value in each.items()} for each in given]


REFUSED = {
    "columns": (renamed(rows(9), "pid", "identity"), "missing"),
    "null key": (rows(9, p3={"pid": None}), "key_null"),
    "key twice": ([*rows(9), *rows(1)], "key_duplicate"),
    "type": ([{**each, "rank": f"rank {each['rank']}"} for each in rows(9)], "column_type"),
    "guard before pass 2": ([{**each, "owner": "c"} for each in rows(9)], "changed"),
    "guard after pass 2": ([{**each, "owner": "b"} for each in rows(9)], "changed"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_is_sealed_with_its_findings_and_a_retry_is_the_same_run(product, why, monkeypatch):
    given, rule = REFUSED[why]
    if why == "guard before pass 2":  # as among many rows
        monkeypatch.setattr(guards_before_processing, "FEW", -1)
        monkeypatch.setattr(guards_before_processing, "SAMPLES", (8,))
        monkeypatch.setattr(guards_before_processing, "ERROR", 0.9)
    path = save(given, product.deliveries / f"{why.replace(' ', '-')}.gpkg")
    first, again = (product.publish(path).result for _ in range(2))
    assert first.status == again.status == "refused"
    assert first.run_id == again.run_id
    store = product.dataset.store
    attempts = attempts_of(store, first.run_id)
    assert [each.attempt for each in attempts] == [1, 2]
    assert (attempts[0].counts["total_events"] == 0) == (why not in ("type", "guard after pass 2")), "only what was looked at can be named"
    for each in attempts:
        assert rule in {finding["rule"] for finding in each.doc["findings"]}, each.doc["findings"]
        assert not each.foreign
    record = json.loads(store.get(f"_runs/{first.run_id}-1.json"))
    assert record["findings"] == attempts[0].doc["findings"]
    assert record["lineage"]["run_manifest"] == attempts[0].path
    assert verify(store).whole


def test_a_given_run_id_holds_for_one_delivery_whatever_names_it(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"])
    bad, other = (save(renamed(rows(n), "pid", "identity"), tmp_path / f"{n}.gpkg") for n in (5, 4))
    assert made.publish(bad, run_id="night-9").status == "refused"
    assert made.publish(bad, run_id="night-9").status == "refused"
    with pytest.raises(UsageError, match="used for another delivery"):
        made.publish(other, run_id="night-9")
    made.settings["columns"] = {"identity": "pid"}
    mapped = made.publish(bad, run_id="night-9").result
    assert (mapped.run_id, mapped.status) == ("night-9", "published"), "the steward maps the column, and the run goes on"


def test_another_delivery_without_keys_is_another_run(product):
    one, other = (product.publish(save(renamed(rows(n), "pid", "identity"), product.deliveries / f"n{n}.gpkg")).result for n in (7, 8))
    assert one.run_id != other.run_id


def test_a_dry_run_an_unchanged_night_and_what_breaks_off_seal_nothing(product):
    store = product.dataset.store
    before = len(sealed_runs(store))
    bad = save(renamed(rows(9), "pid", "identity"), product.deliveries / "dry.gpkg")
    assert product.publish(bad, dry_run=True).status == "refused"
    assert product.publish(save(rows(9), product.deliveries / "same.gpkg")).status == "unchanged"
    torn = product.deliveries / "torn.gpkg"
    torn.write_bytes(bad.read_bytes()[:8000])
    with pytest.raises(SourceError):
        product.publish(torn)
    assert len(sealed_runs(store)) == before


def test_the_next_run_names_every_head_and_lists_every_record(product):
    made = product.publish(save(rows(9, p3={"owner": "x"}), product.deliveries / "next.gpkg")).result
    assert made.status == "published"
    store = product.dataset.store
    runs = sealed_runs(store)
    assert runs[-1].run_id == made.run_id
    named = {head["run_manifest"] for each in runs for head in each.doc["heads"]}
    assert {each.path for each in runs} - named == {runs[-1].path}
    listed = {each["path"] for run in runs for each in run.doc["objects"]}
    records = {name for name, _ in store.list("_runs/") if name.endswith(".json")}
    assert records - listed == {f"_runs/{made.run_id}-1.json"}
    assert current(store).manifest.lineage["root"] == runs[-1].root


def test_a_refusal_without_features_says_why_in_every_form(product):
    bad = save(renamed(rows(6), "pid", "identity"), product.deliveries / "forms.gpkg")
    run_id = product.publish(bad).result.run_id
    _, end = lineage.openlineage(product.dataset, run_id=run_id).events
    assert end["eventType"] == "FAIL"
    assert "pid missing" in end["run"]["facets"]["errorMessage"]["message"]
    record = lineage.iso19115(product.dataset, run_id=run_id)
    assert "It was refused: " in record.text
    assert "pid missing" in record.text


@pytest.mark.parametrize("name", ["Server=h;Pwd=hunter2;", "WFS:https:/u:hunter2@h/x", "token=hunter2"])
def test_what_a_run_writes_down_of_its_source_holds_no_secret(product, name):
    folder = product.deliveries / name
    folder.mkdir(parents=True)
    product.publish(save(rows(1), folder / "a.gpkg"))
    store = product.dataset.store
    for each, _ in store.list(""):
        assert b"hunter2" not in store.get(each), each


def test_where_nothing_was_ever_published_nothing_is_whole(tmp_path):
    """A sealed refusal is no version: `verify` answers as `log` and `read` do."""
    made = Estate(tmp_path / "product", FIELDS, geometry_type="point", key=["pid"], store=fresh(page=1000))
    assert made.publish(save([*rows(9), *rows(1)], tmp_path / "twice.gpkg")).status == "refused"
    with pytest.raises(UsageError, match="holds no published dataset: its 1 sealed run published nothing"):
        verify(open_store(str(made.url)))
    made.publish(save(rows(9), tmp_path / "first.gpkg"))
    assert verify(open_store(str(made.url))).whole
