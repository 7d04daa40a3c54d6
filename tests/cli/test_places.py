"""What the command line makes of places: one answer for every command, and no secret in anything that it prints or leaves behind."""

import json
import os

import pytest

SECRET = "hunter2"  # noqa: S105 - the word that must not be seen
ADDRESSES = [
    "postgresql://ann:hunter2@host/db",
    "s3://AKIA:hunter2@bucket/parcels",
    "PG:host=db user=ann password='hunter2'",
]
NOWHERE = ["file://host/x", "${NOWHERE}", "C:\\x", "a\x1b[31mb", "x\udcff"]
# Commands in which @ stands where a place may be typed.
DOORS = [
    ["publish", "@"],
    ["publish", "{file}", "--source", "@"],
    ["check", "@", "--contract", "{contract}"],
    ["check", "{source}", "--contract", "@"],
    ["check", "{file}", "--source", "@"],
    ["check", "{file}", "--html", "@"],
    ["check", "{file}", "--errors", "@.gpkg"],
    ["check", "{file}", "--junit", "@"],
    ["check", "{file}", "--sarif", "@"],
    ["diagnose", "@", "--contract", "{contract}"],
    ["diff", "@", "{source}"],
    ["diff", "{source}", "@"],
    ["diff", "{source}", "{source}", "--contract", "@"],
    ["diff", "{source}", "{source}", "--html", "@"],
    ["read", "@"],
    ["read", "{file}", "--out", "@.parquet"],
    ["files", "@"],
    ["changes", "@"],
    ["changes", "{file}", "--html", "@"],
    ["changes", "{file}", "--out", "@.parquet"],
    ["changes", "{file}", "--polygon", "@"],
    ["apply", "{file}", "--onto", "@"],
    ["apply", "@.parquet", "--onto", "x.parquet"],
    ["log", "@"],
    ["status", "@"],
    ["rollback", "@", "--to", "1", "--reason", "x"],
    ["verify", "@"],
    ["init", "@"],
    ["init", "{source}", "--previous", "@"],
    ["init", "{source}", "--out", "@"],
    ["contract", "lint", "@"],
    ["contract", "show", "@"],
    ["contract", "infer", "@"],
    ["contract", "infer", "{source}", "--out", "@"],
    ["lineage", "summary", "@"],
    ["lineage", "why", "@", "p1"],
    ["lineage", "ingest", "@", "{events}"],
    ["lineage", "ingest", "{file}", "@.ndjson"],
    ["lineage", "ingest", "{file}", "{events}", "--mapping", "@"],
    ["lineage", "check-partitions", "--root", "@"],
    ["lineage", "validate-schema", "@"],
    ["lineage", "retain", "@", "--window", "P6Y", "--basis", "x"],
    ["lineage", "iso19115", "@"],
    ["lineage", "iso19115", "{file}", "--extend", "@"],
    ["lineage", "iso19115", "{file}", "--out", "@"],
    ["lineage", "iso19115", "--lint", "@"],
    ["lineage", "openlineage", "{file}", "--out", "@"],
    ["lineage", "evidence", "{file}", "--out", "@"],
    ["lineage", "prove", "{file}", "p1", "--out", "@"],
    ["lineage", "scorecard", "{file}", "--html", "@"],
    ["lineage", "query", "{file}", "--out", "@.ndjson"],
]


def typed(door, product, tmp_path, place):
    events = tmp_path / "events.ndjson"
    events.touch()
    named = {"file": product.file, "contract": product.contract, "source": product.first, "events": events}
    return [each.replace("@", place) if "@" in each else each.format(**named) for each in door]


def left_behind(product):
    """The bytes of everything below the product's folder, in one text."""
    return b"".join(each.read_bytes() for each in sorted(product.folder.rglob("*")) if each.is_file())


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_every_command_refuses_alike_and_repeats_no_secret(door, published, merestone, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for place, more in [*((each, []) for each in (*ADDRESSES, *NOWHERE)), (ADDRESSES[0], ["--json"])]:
        ended = merestone(*typed(door, published, tmp_path, place), *more)
        assert ended.code == 2, (place, ended.said)
        assert SECRET not in ended.said
        assert "\x1b" not in ended.said
        assert "next: " in ended.said
        if place in ADDRESSES:
            assert "not in this version" in ended.said or "extension" in ended.said, ended.said
    assert SECRET.encode() not in left_behind(published)
    assert not list(work.iterdir()), "a folder was made of what is no place"


def test_a_command_reads_a_file_url_as_the_path_that_it_means(published, merestone, monkeypatch):
    odd = published.folder / "a b%é"
    published.url.rename(odd)
    url = odd.as_uri()
    assert " " not in url
    assert merestone("status", url, "--json").doc["version"] == 2
    assert merestone("read", f"{url}@1", "--out", f"file://localhost{published.folder}/o%20.parquet").code == 0
    assert (published.folder / "o .parquet").exists()
    monkeypatch.setenv("DEST", str(odd))
    assert merestone("verify", "${DEST}").code == 0


def test_a_refused_source_leaves_a_record_without_its_secret(published, merestone):
    before = len(published.records())
    assert merestone("publish", published.file, "--source", ADDRESSES[0]).code == 2
    record = published.records()[-1]
    assert len(published.records()) == before + 1
    assert "postgresql://***@host/db" in json.dumps(record)


def test_a_secret_in_a_variable_is_in_no_record(published, merestone, monkeypatch):
    monkeypatch.setenv("PASSWORD", SECRET)
    published.settings["source"] = "postgresql://ann:${PASSWORD}@host/db"
    doc = json.loads(published.file.read_text()) | {"source": "https://host/${PASSWORD}/x"}
    published.file.write_text(json.dumps(doc))
    ended = merestone("publish", published.file)
    assert ended.code == 2
    assert SECRET not in ended.said
    assert SECRET.encode() not in left_behind(published)
    assert os.environ["PASSWORD"] == SECRET
