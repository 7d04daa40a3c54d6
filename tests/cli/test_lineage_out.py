"""`lineage iso19115`: written, printed, put into a record, and checked."""

import json
import subprocess
import sys
import zipfile

import pytest

from merestone.render.iso19115_lint import lint, read_record


@pytest.mark.parametrize("encoding", ["gmd", "mdb"])
def test_a_record_is_written_to_a_file(published, merestone, tmp_path, encoding):
    out = tmp_path / "record.xml"
    doc = merestone("lineage", "iso19115", f"{published.file}@2", "--encoding", encoding, "--out", out, "--json").doc
    assert (doc["status"], doc["version"], doc["encoding"], doc["out"]) == ("written", 2, encoding, str(out))
    text = out.read_bytes()
    assert lint(read_record(text, "test")) == []
    assert doc["steps"] == text.count(b"Step id=")
    merestone("lineage", "iso19115", published.file, "--encoding", encoding, "--out", out)
    assert out.read_bytes() == text


def test_a_record_is_printed_where_no_file_is_named(published, merestone):
    said = merestone("lineage", "iso19115", published.file).out
    assert said.startswith("<?xml")
    assert merestone("lineage", "iso19115", published.file, "--json").doc["xml"] == said


def test_the_record_of_a_run(published, merestone):
    run = published.manifest(1).run_id
    assert merestone("lineage", "iso19115", published.url, "--run", run, "--json").doc["version"] == 1
    assert merestone("lineage", "iso19115", published.url, "--run", "nix", "--json").code == 2


def test_x02_lineage_goes_into_a_plain_record_and_hostile_ones_are_refused(published, merestone, tmp_path):
    record = tmp_path / "plain.xml"
    plain = (
        '<gmd:MD_Metadata xmlns:gmd="http://www.isotc211.org/2005/gmd" xmlns:gco="http://www.isotc211.org/2005/gco"><gmd:fileIdentifier>'
        "<gco:CharacterString>id-1</gco:CharacterString></gmd:fileIdentifier></gmd:MD_Metadata>"
    )
    record.write_text(plain)
    said = merestone("lineage", "iso19115", published.file, "--extend", record).out
    assert "id-1" in said
    assert "Merkle root" in said
    (tmp_path / "canary.txt").write_text("CANARY")
    hostile = tmp_path / "record.xml"
    hostile.write_text('<!DOCTYPE m SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY c SYSTEM "canary.txt">]>' + plain.replace("id-1", "&c;"))
    for option in ("--extend", "--lint"):
        ended = merestone("lineage", "iso19115", published.file, option, hostile)
        assert ended.code == 3
        assert "DOCTYPE" in ended.said
        assert "CANARY" not in ended.said
    other = tmp_path / "other.xml"
    other.write_text("<a/>")
    assert merestone("lineage", "iso19115", published.file, "--extend", other).code == 3
    assert merestone("lineage", "iso19115", published.file, "--extend", tmp_path / "none.xml").code == 3


def test_a_record_is_checked(published, merestone, tmp_path):
    out = tmp_path / "record.xml"
    merestone("lineage", "iso19115", published.file, "--out", out)
    assert merestone("lineage", "iso19115", "--lint", out, "--json").doc == {"status": "pass", "problems": []}
    out.write_text(out.read_text().replace('codeListValue="dataset"', 'codeListValue="banana"'))
    ended = merestone("lineage", "iso19115", "--lint", out)
    assert ended.code == 1
    assert "banana" in ended.out


def test_without_a_dataset_it_is_wrong_usage(merestone):
    assert merestone("lineage", "iso19115").code == 2


def test_a_proof_is_written_with_its_verifier_beside_it(published, merestone, tmp_path):
    out = tmp_path / "proof.json"
    ended = merestone("lineage", "prove", published.file, "p3", "--out", out)
    script, root = tmp_path / "verify_lineage.py", json.loads(out.read_text())["root"]
    assert f"python {script} {out} {root}" in ended.out
    assert subprocess.run([sys.executable, "-I", script, out, root], check=False, capture_output=True).returncode == 0
    assert json.loads(merestone("lineage", "prove", published.file, "p3").out) == json.loads(out.read_text())
    assert merestone("lineage", "prove", published.file, "nix").code == 2


def test_evidence_is_written(published, merestone, tmp_path):
    ended = merestone("lineage", "evidence", f"{published.file}@1", "--out", tmp_path / "e.zip")
    assert ended.code == 0
    assert "evidence for product v1" in ended.out
    assert zipfile.ZipFile(tmp_path / "e.zip").testzip() is None


def test_a_run_is_told_to_other_catalogues(published, merestone, tmp_path):
    out = tmp_path / "run.json"
    run = published.manifest(2).run_id
    doc = merestone("lineage", "openlineage", published.file, "--out", out, "--json").doc
    assert (doc["run_id"], doc["version"], doc["out"]) == (run, 2, str(out))
    assert [json.loads(line) for line in out.read_text().splitlines()] == doc["events"]
    doc = merestone("lineage", "prov", published.file, "--run", published.manifest(1).run_id, "--out", out, "--json").doc
    assert (doc["version"], json.loads(out.read_text())) == (1, doc["document"])
    assert json.loads(merestone("lineage", "prov", published.file).out)["activity"]["run:run"]["m:run_id"] == run
    assert merestone("lineage", "prov", published.file, "--run", "nix").code == 2
