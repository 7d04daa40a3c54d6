"""`lineage summary`, `why`, `validate-schema` and `check-partitions`."""

import pytest

from cli.products import rows
from estate import save
from merestone.inspect import browse
from merestone.lineage.event.schema import schema_text


def test_summary_gives_the_verdict_of_the_run_behind_a_version(published, merestone):
    first = merestone("lineage", "summary", f"{published.file}@1", "--json").doc
    assert (first["version"], first["features"], first["features_passed"]) == (1, 40, 40)
    assert first["run_id"] == published.manifest(1).run_id
    assert sum(each["events"] for each in first["stages"]) == first["total_events"]
    assert first["deduplication"] is None
    said = merestone("lineage", "summary", published.file).out
    assert [each.split() for each in said.splitlines()[:2]] == [
        ["product:", "run", published.manifest(2).run_id],
        ["result", "v2"],
    ]


def test_summary_of_a_refused_run_tells_the_reasons(published, merestone, tmp_path):
    published.terms["schema_fields"][1]["nullable"] = False
    published.stamp("v1.1.0")
    published.write(published.first)
    bad = save(rows(p3={"owner": None}), tmp_path / "bad.gpkg")
    ended = merestone("publish", published.file, "--source", bad, "--json")
    assert ended.code == 1
    doc = merestone("lineage", "summary", published.file, "--run", ended.doc["run_id"], "--json").doc
    assert (doc["version"], doc["features_rejected"]) == (None, 1)
    assert doc["reasons"][0]["outcome"] == "REJECT"
    assert "REJECT" in merestone("lineage", "summary", published.file, "--run", ended.doc["run_id"]).out


def test_summary_behind_a_rollback_is_that_of_the_version_gone_back_to(published, merestone):
    merestone("rollback", published.file, "--to", "1", "--reason", "wrong export")
    assert merestone("lineage", "summary", published.file, "--json").doc["run_id"] == published.manifest(1).run_id


def test_a_run_that_is_not_there_is_wrong_usage(published, merestone):
    assert merestone("lineage", "summary", published.file, "--run", "nix", "--json").doc["error"]["kind"] == "usage"


def test_why_tells_the_versions_and_runs_that_touched_a_feature(published, merestone):
    doc = merestone("lineage", "why", published.file, "p3", "--json").doc
    assert (doc["present"], doc["version"], doc["since"]) == (True, 2, 2)
    assert [(each["version"], each["class"], each["fields"]) for each in doc["versions"]] == [(2, "changed", ["owner"]), (1, "added", [])]
    assert [(each["version"], each["outcome"]) for each in doc["runs"]] == [(2, "PASS"), (1, "PASS")]
    said = merestone("lineage", "why", published.file, "p3").out
    assert said.startswith("p3 stands in product v2 as v2 made it, partition cell=")
    assert "changed, in owner" in said
    heads = [each for each in said.splitlines() if each.startswith("  run ")]
    assert all(each.endswith("  PASS") for each in heads), "what passed did so at every stage, so no stage heads it"


def test_why_reads_no_more_than_the_newest_versions_unless_all_are_asked_for(published, merestone, monkeypatch):
    whole = merestone("lineage", "why", published.file, "p0", "--json").doc
    assert (whole["complete"], [each["version"] for each in whole["versions"]]) == (True, [1])
    monkeypatch.setattr(browse, "STEPS", 1)
    ended = merestone("lineage", "why", published.file, "p0", "--json")
    assert ended.doc["error"]["kind"] == "usage"
    assert "--all" in ended.doc["error"]["hint"]
    doc = merestone("lineage", "why", published.file, "p3", "--json").doc
    assert (doc["complete"], [each["version"] for each in doc["versions"]], [each["version"] for each in doc["runs"]]) == (False, [2], [2])
    assert "--all reads them" in merestone("lineage", "why", published.file, "p3").out
    assert merestone("lineage", "why", published.file, "p0", "--all", "--json").doc == whole


def test_why_tells_of_what_is_gone_and_what_went_back(published, merestone):
    assert merestone("lineage", "why", published.file, "p7").out.startswith("p7 is not in product v2: v2 removed it")
    merestone("rollback", published.file, "--to", "1", "--reason", "wrong export")
    doc = merestone("lineage", "why", published.file, "p7", "--json").doc
    assert (doc["present"], doc["since"], doc["versions"][0]["reason"]) == (True, 3, "wrong export")
    runs = {each["run_id"]: each["version"] for each in merestone("lineage", "why", published.file, "p3", "--json").doc["runs"]}
    assert [runs[published.manifest(number).run_id] for number in (1, 2)] == [1, 2]


@pytest.mark.parametrize("feature", ["P3", " p3", "p", ""])
def test_a_feature_that_nobody_knows_is_wrong_usage(feature, published, merestone):
    ended = merestone("lineage", "why", published.file, feature, "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (2, "usage")


@pytest.mark.parametrize(
    ("key", "fields", "good", "bad"),
    [
        ("nr", [{"name": "nr", "type": "integer", "nullable": False}], ["7", "-3"], ["x", "7.5", "007x"]),
        (
            ["pid", "nr"],
            [{"name": "pid", "type": "string", "nullable": False}, {"name": "nr", "type": "integer", "nullable": False}],
            ['["a,\\"b",7]'],
            ["a", '["a"]', '["a","x"]', "{}", "["],
        ),
    ],
)
def test_keys_of_other_types_are_written_as_messages_write_them(key, fields, good, bad, estate, merestone, tmp_path):
    product = estate(fields, key=key)
    shape = rows(1)[0]["geometry"]
    data = [{"pid": 'a,"b', "nr": 7, "geometry": shape}, {"pid": "c", "nr": -3, "geometry": shape}]
    names = [each["name"] for each in fields]
    product.write(save([{name: row[name] for name in (*names, "geometry")} for row in data], tmp_path / "in.gpkg"))
    file = product.folder / "product.yaml"
    assert merestone("publish", file).code == 0
    for feature in good:
        ended = merestone("lineage", "why", "--json", file, "--", feature)
        assert ended.code == 0, ended.said
        assert (ended.doc["present"], ended.doc["runs"][0]["outcome"], ended.doc["versions"][0]["class"]) == (True, "PASS", "added")
    for feature in bad:
        ended = merestone("lineage", "why", file, feature, "--json")
        assert (ended.code, ended.doc["error"]["field"]) == (2, feature)


def test_validate_schema(merestone, tmp_path):
    path = tmp_path / "lineage_schema.yaml"
    path.write_text(schema_text())
    assert merestone("lineage", "validate-schema", path, "--json").doc == {"status": "pass", "faults": []}
    path.write_text(schema_text().replace("name: outcome", "name: verdict"))
    ended = merestone("lineage", "validate-schema", path, "--json")
    assert (ended.code, ended.doc["status"]) == (1, "fail")
    assert "outcome" in ended.doc["faults"][0]
    assert merestone("lineage", "validate-schema", tmp_path / "nowhere").code == 2


def test_check_partitions(published, merestone, tmp_path):
    root = published.url / "_lineage"
    good = merestone("lineage", "check-partitions", "--root", root, "--require-epsg-target", "--json")
    assert (good.code, good.doc) == (0, {"status": "pass", "problems": []})
    (root / "run_date=2026-01-01" / "run_id=x" / "target_crs=epsg%3A4326").mkdir(parents=True)
    ended = merestone("lineage", "check-partitions", "--root", root, "--require-epsg-target")
    assert ended.code == 1
    assert "target_crs=epsg%3A4326" in ended.out
    (tmp_path / "empty").mkdir()
    assert merestone("lineage", "check-partitions", "--root", tmp_path / "empty").code == 1
    assert merestone("lineage", "check-partitions", "--root", tmp_path / "empty", "--allow-empty").code == 0
    assert merestone("lineage", "check-partitions", "--root", tmp_path / "nowhere").code == 2
