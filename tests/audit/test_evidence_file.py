"""Proofs and evidence files verify with the independent script alone, and nothing altered does."""

import json
import shutil
import subprocess
import sys
import zipfile

import pytest

from cli.products import FIELDS, rows
from estate import save
from merestone.audit.evidence_file import evidence, proof_of, verifier
from merestone.errors import CorruptError, UsageError
from merestone.line.rollback import roll_back
from merestone.lineage.event.schema import SCHEMA
from merestone.render.iso19115_lint import lint, read_record


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    from estate import Estate  # noqa: PLC0415 - the fixture of that name is for one test

    folder = tmp_path_factory.mktemp("evidence")
    made = Estate(folder / "product", FIELDS, geometry_type="point", key=["pid"]).agreed()
    for number, given in enumerate((rows(), rows(p3={"owner": "ü\x1f<&"}, p7=None))):
        made.publish(save(given, folder / f"{number}.gpkg"))
    return made


def verify(folder, target, *more):
    """Run the script as a stranger would: another interpreter, no packages."""
    script = folder / "verify_lineage.py"
    if not script.exists():
        script.write_text(verifier(), encoding="utf-8")
    return subprocess.run([sys.executable, "-I", "-S", "-X", "utf8", script, target, *more], capture_output=True, text=True, check=False)


def test_the_script_is_short_and_needs_hashes_alone():
    lines = verifier().splitlines()
    assert len(lines) < 130  # formatted; the script is read by a stranger before it is run
    needs = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert needs == {"__future__", "hashlib", "json", "struct", "sys", "pathlib"}
    assert all(f'"{each.name}"' in verifier() for each in SCHEMA.fields)


def test_a_feature_is_proved_in_the_run_that_met_it_last(nights, tmp_path):
    proof = proof_of(str(nights.url), "p3")
    assert (proof["version"], proof["run_id"]) == (2, nights.manifest(2).run_id)
    assert proof["root"] == nights.manifest(2).lineage["root"]
    (tmp_path / "p.json").write_text(json.dumps(proof))
    ended = verify(tmp_path, tmp_path / "p.json", proof["root"])
    assert ended.returncode == 0, ended.stderr
    assert f"VERIFIED: {len(proof['proofs'])} events of p3" in ended.stdout
    assert proof_of(str(nights.url), "p0")["version"] == 1
    assert proof_of(f"{nights.url}@1", "p3")["version"] == 1
    assert proof_of(str(nights.url), "p3", nights.manifest(1).run_id)["version"] == 1


def test_what_was_never_met_cannot_be_proved(nights):
    for more in ((), (nights.manifest(1).run_id,)):
        with pytest.raises(UsageError, match="p12345"):
            proof_of(str(nights.url), "p12345", *more)


ALTERED = {
    "outcome": lambda proof: proof["proofs"][0]["event"].update(outcome="REJECT"),
    "reason": lambda proof: proof["proofs"][0]["event"].update(rejection_reason="none"),
    "event id": lambda proof: proof["proofs"][0]["event"].update(event_id="0" * 32),
    "feature": lambda proof: proof.update(feature_id="p4"),
    "run": lambda proof: proof.update(run_id="another"),
    "root": lambda proof: proof.update(root="0" * 64),
    "way": lambda proof: proof["proofs"][0]["in_part"].reverse(),
    "side": lambda proof: proof["proofs"][0]["in_part"][0].update(side="left"),
    "nothing": lambda proof: proof.update(proofs=[]),
    "field": lambda proof: proof["proofs"][0]["event"].update(shoe_size="44"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_proof_does_not_verify(nights, tmp_path, what):
    proof = proof_of(str(nights.url), "p0")
    ALTERED[what](proof)
    (tmp_path / "p.json").write_text(json.dumps(proof))
    ended = verify(tmp_path, tmp_path / "p.json")
    assert ended.returncode == 1
    assert "NOT VERIFIED" in ended.stderr


def test_a_proof_under_another_root_does_not_verify(nights, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(proof_of(str(nights.url), "p0")))
    assert verify(tmp_path, tmp_path / "p.json", "0" * 64).returncode == 1


@pytest.fixture
def unpacked(nights, tmp_path):
    told = evidence(str(nights.url), str(tmp_path / "e.zip"))
    with zipfile.ZipFile(tmp_path / "e.zip") as whole:
        whole.extractall(tmp_path / "e")
    return tmp_path / "e", told


def test_an_evidence_file_holds_everything_and_verifies(nights, unpacked, tmp_path):
    folder, told = unpacked
    names = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    assert len(names) == told["files"]
    runs = [f"{nights.manifest(version).run_id}-1.json" for version in (1, 2)]
    assert {
        "contract.json",
        "manifests/v000001.json",
        "manifests/v000002.json",
        *(f"runs/lineage/{run}" for run in runs),
        f"runs/record/{runs[1]}",
        "iso/gmd.xml",
        "iso/mdb.xml",
        "conformance.json",
        "roots.json",
        "README.txt",
        "verify_lineage.py",
        "evidence.json",
    } == names
    ended = verify(folder, folder, told["manifest_sha256"])
    assert ended.returncode == 0, ended.stderr
    assert "2 versions in a chain, 2 runs" in ended.stdout
    assert lint(read_record((folder / "iso/gmd.xml").read_bytes(), "test")) == []
    roots = json.loads((folder / "roots.json").read_text())["runs"]
    assert [(each["version"], each["root"]) for each in roots] == [
        (version, nights.manifest(version).lineage["root"]) for version in (2, 1)
    ]
    assert roots[0]["root"] == told["root"]
    evidence(f"{nights.url}@2", str(tmp_path / "again.zip"))
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "e.zip").read_bytes()


def relist(folder):
    """Let the list agree with altered files, as a careful forger would."""
    import hashlib  # noqa: PLC0415 - beside its one use

    doc = json.loads((folder / "evidence.json").read_text())
    doc["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in doc["files"]}
    (folder / "evidence.json").write_text(json.dumps(doc))


@pytest.mark.parametrize("name", ["contract.json", "manifests/v000001.json", "conformance.json", "iso/mdb.xml"])
def test_an_altered_file_is_named(unpacked, name):
    folder, _ = unpacked
    (folder / name).write_bytes((folder / name).read_bytes().replace(b"1", b"2", 1))
    ended = verify(folder, folder)
    assert ended.returncode == 1
    assert name in ended.stderr


def test_a_forger_who_mends_the_list_still_breaks_the_chain(unpacked):
    folder, told = unpacked
    place = folder / "manifests/v000001.json"
    place.write_text(place.read_text().replace('"features": 40', '"features": 41', 1))
    relist(folder)
    assert "chain of manifests" in verify(folder, folder).stderr
    shutil.copy(folder / "manifests/v000002.json", place)
    relist(folder)
    assert verify(folder, folder).returncode == 1
    place = folder / "manifests/v000002.json"
    place.write_text(place.read_text() + " ")
    relist(folder)
    assert "newest manifest" in verify(folder, folder, told["manifest_sha256"]).stderr


def test_a_forged_run_manifest_is_named(unpacked, nights):
    folder, _ = unpacked
    place = folder / "runs/lineage" / f"{nights.manifest(2).run_id}-1.json"
    doc = json.loads(place.read_text())
    doc["counts"]["rejected"] = 0
    place.write_text(json.dumps(doc) + " ")
    relist(folder)
    assert "the run of version 2 is another one" in verify(folder, folder).stderr
    doc["root"] = "0" * 64
    place.write_text(json.dumps(doc))
    relist(folder)
    assert "its root is not the root over its parts" in verify(folder, folder).stderr


def flipped(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)


def swapped_runs(folder, names):
    one, other = (folder / each for each in names)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


TAMPERED = {
    "a flipped byte": (lambda folder, runs: flipped(folder, runs[1]), "is altered"),
    "a dropped run": (lambda folder, runs: (folder / runs[0]).unlink(), "missing"),
    "a file beside": (lambda folder, _: (folder / "iso" / "better.xml").write_text("<a/>"), "not in the list"),
    "a dropped list": (lambda folder, _: (folder / "evidence.json").unlink(), "not in the list"),
}
FORGED = {  # by somebody who mends evidence.json too
    "an edited count that keeps the size": (
        lambda folder, runs: (folder / runs[1]).write_bytes((folder / runs[1]).read_bytes().replace(b'"attempt": 1', b'"attempt": 2', 1)),
        "its root is not the root over its parts and itself",
    ),
    "runs in another order": (swapped_runs, "is another one"),
    "a dropped part": (
        lambda folder, runs: (folder / runs[1]).write_text(json.dumps({**json.loads((folder / runs[1]).read_text()), "parts": []})),
        "its root is not the root over its parts",
    ),
    "a replaced manifest": (
        lambda folder, _: shutil.copy(folder / "manifests/v000001.json", folder / "manifests/v000002.json"),
        "chain of manifests",
    ),
    "a softer contract": (
        lambda folder, _: (folder / "contract.json").write_bytes((folder / "contract.json").read_bytes().replace(b"point", b"lines", 1)),
        "contract.json is not that",
    ),
    "other roots": (lambda folder, _: (folder / "roots.json").write_text('{"runs": []}'), "roots.json holds other roots"),
}


@pytest.mark.parametrize("what", [*TAMPERED, *FORGED])
def test_every_kind_of_tampering_is_named_by_the_script(unpacked, nights, what):
    folder, _ = unpacked
    change, said = {**TAMPERED, **FORGED}[what]
    change(folder, [f"runs/lineage/{nights.manifest(version).run_id}-1.json" for version in (1, 2)])
    if what in FORGED:
        relist(folder)
    ended = verify(folder, folder)
    assert (ended.returncode, said in ended.stderr) == (1, True), ended.stderr


def test_a_dropped_first_version_breaks_the_chain(unpacked):
    folder, _ = unpacked
    (folder / "manifests/v000001.json").unlink()
    doc = json.loads((folder / "evidence.json").read_text())
    del doc["files"]["manifests/v000001.json"]
    (folder / "evidence.json").write_text(json.dumps(doc))
    assert "broken before version 2" in verify(folder, folder).stderr


def test_the_checksum_of_the_list_answers_for_every_file(unpacked):
    folder, told = unpacked
    assert verify(folder, folder, told["evidence_sha256"]).returncode == 0
    place = folder / "conformance.json"
    place.write_bytes(place.read_bytes().replace(b'"rejected": ', b'"rejected":  ', 1))
    relist(folder)
    assert verify(folder, folder).returncode == 0  # a verdict is counted from events that are not in the file ...
    assert "evidence.json is" in verify(folder, folder, told["evidence_sha256"]).stderr  # ... so somebody has to have kept this checksum


def test_behind_a_rollback_the_evidence_is_that_of_the_content(estate, tmp_path):
    made = estate(FIELDS, geometry_type="point", key=["pid"]).agreed()
    for number, given in enumerate((rows(5), rows(5, p3={"owner": "b"}))):
        made.publish(save(given, tmp_path / f"{number}.gpkg"))
    roll_back(made.dataset, to=1, reason="wrong export")
    told = evidence(str(made.url), str(tmp_path / "e.zip"))
    assert told["version"] == 3
    assert proof_of(str(made.url), "p3")["version"] == 1
    assert proof_of(f"{made.url}@2", "p3")["version"] == 2
    with zipfile.ZipFile(tmp_path / "e.zip") as whole:
        whole.extractall(tmp_path / "e")
    assert verify(tmp_path / "e", tmp_path / "e").returncode == 0


def test_altered_lineage_is_never_proved(estate, tmp_path):
    made = estate(FIELDS, geometry_type="point", key=["pid"])
    made.publish(save(rows(5), tmp_path / "one.gpkg"))
    place = made.url / made.manifest().lineage["run_manifest"]
    place.write_text(place.read_text().replace('"events": 5', '"events": 6', 1))
    with pytest.raises(CorruptError, match="checksum differs"):
        proof_of(str(made.url), "p1")
