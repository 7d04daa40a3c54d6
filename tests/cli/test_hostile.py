"""Damaged stores and damaged files, by the hundred: no command ends as a fault of ours, and none answers with a wrong row.

`make soak` takes all of them, `make test` one in eighty. Damage that was thought of one by one is in `test_bad_input` and `dataset.test_proved`.
"""

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cli.products import rows
from estate import save

SERVER = Path(__file__).with_name("hostile_server.py")
FORMATS = ("gpkg", "shp", "geojson", "geojsonl", "fgb", "gml", "kml", "parquet", "topojson")
HOW = {"kml": {"driver": "KML"}}
FEW, ALL = 80, 1
SIZES = [FEW, pytest.param(ALL, marks=pytest.mark.soak)]


def ended(calls, folder):
    """(calls,) how each call ended: its exit code, or the signal that ended the process."""
    file = folder / "calls.json"
    file.write_text(json.dumps([[str(each) for each in call] for call in calls]), encoding="utf-8")
    codes, faults = {}, {}
    while len(codes) < len(calls):
        begun = len(codes)
        done = subprocess.run([sys.executable, SERVER, file, str(begun)], capture_output=True, text=True, check=False, timeout=3000)
        for line in done.stdout.splitlines():
            number, _, said = line.partition(" ")
            if not said.startswith("begins"):
                code, _, words = said.partition(" ")
                codes[int(number)] = int(code)
                faults[int(number)] = words
        if len(codes) < len(calls):
            assert done.returncode, done.stderr
            codes[len(codes)] = done.returncode
            faults[len(codes) - 1] = done.stderr[-400:]
    for number, code in codes.items():
        assert 0 <= code < 70, f"{' '.join(map(str, calls[number]))} ended with {code}: {faults[number]}"
    return [codes[number] for number in range(len(calls))]


def say(subject, calls, codes):
    """What `make soak` prints."""
    sys.stdout.write(f"{subject}, {len(calls)} commands, by exit code: {dict(sorted(Counter(codes).items()))}\n")


def damages(data, chance):
    """Names and bytes of what may become of an object."""
    at = chance.randrange(max(len(data), 1))
    yield "empty", b""
    yield "half", data[: len(data) // 2]
    yield "longer", data + b"\0" * 8
    yield "zeros", b"\0" * len(data)
    yield "flipped", data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else b"x"
    yield "a digit", _other_digit(data, chance)
    yield "twice", data[: len(data) // 2] + data
    yield "a byte short", data[1:]
    yield "a block of zeros", data[: at // 2] + b"\0" * min(64, len(data) - at // 2) + data[at // 2 + 64 :]
    yield "gone", None


def _other_digit(data, chance):
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data + b"1"
    at = chance.choice(places)
    return data[:at] + bytes([48 + (data[at] - 47) % 10]) + data[at + 1 :]


def features(file):
    """Rows by key of a GeoJSON file."""
    found = json.loads(file.read_text(encoding="utf-8"))["features"]
    return {each["properties"]["pid"]: (each["properties"], each["geometry"]) for each in found}


@pytest.mark.parametrize("every", SIZES)
def test_a_damaged_store_gives_no_wrong_row_and_no_fault_of_ours(published, merestone, tmp_path, every):
    third = save(rows(p3={"owner": "c"}, p8={"rank": 80}), tmp_path / "third.gpkg")
    refused = save(rows(p4={"owner": "x", "pid": None}), tmp_path / "refused.gpkg")
    assert merestone("publish", published.file, "--source", refused).code == 1
    whole = Path(published.url)
    truth = {}
    for version in (1, 2):
        assert merestone("read", f"{whole}@{version}", "--out", tmp_path / f"{version}.geojson").code == 0
        truth[version] = features(tmp_path / f"{version}.geojson")
    assert len(truth[1]) == 40
    assert len(truth[2]) == 40
    chance = random.Random(3)
    cases = [
        (name, what, data)
        for name in sorted(str(each.relative_to(whole)) for each in whole.rglob("*") if each.is_file())
        for what, data in damages((whole / name).read_bytes(), chance)
    ][::every]
    cases.insert(0, ("pointer", "sound", None))
    calls, outs = [], []
    for number, (name, what, data) in enumerate(cases):
        store = tmp_path / "damaged" / str(number) / whole.name
        shutil.copytree(whole, store)
        if what == "sound":
            pass
        elif data is None:
            (store / name).unlink()
        else:
            (store / name).write_bytes(data)
        moved = tmp_path / "damaged" / str(number) / "product.yaml"
        moved.write_text(published.file.read_text(encoding="utf-8").replace(str(whole), str(store)), encoding="utf-8")
        shutil.copy(published.contract, moved.parent)
        read = [store.parent / f"{version}.geojson" for version in (1, 2, 3, 4)]
        outs.append((number, read))
        calls += [
            ["read", f"{store}@1", "--out", read[0]],
            ["read", f"{store}@2", "--out", read[1]],
            ["changes", store, "--keys"],
            ["log", store],
            ["status", store],
            ["verify", store],
            ["lineage", "why", store, "p3"],
            ["lineage", "check-complete", store],
            ["publish", moved, "--source", third],
            ["read", f"{store}@3", "--out", read[2]],
            ["rollback", moved, "--to", "1", "--reason", "a test"],
            ["read", f"{store}@4", "--out", read[3]],
        ]
    codes = ended(calls, tmp_path)
    each = len(calls) // len(cases)
    assert codes[:each] == [0] * each, "of a sound store every question is answered"
    expected = {"p3": "c", "p8": 80}
    for (number, read), (name, what, _) in zip(outs, cases, strict=True):
        said = f"{name}, {what}"
        for version in (1, 2):
            if codes[number * each + version - 1] == 0:
                assert features(read[version - 1]) == truth[version], said
        if codes[number * each + 10] == codes[number * each + 11] == 0:
            assert features(read[3]) == truth[1], said
        if codes[number * each + 8] == codes[number * each + 9] == 0:
            found = features(read[2])
            assert {key: value[0]["owner" if key == "p3" else "rank"] for key, value in found.items() if key in expected} == expected, said
            assert found.keys() == {f"p{n}" for n in range(40)}, said
    say(f"{len(cases)} damaged stores", calls, codes)


@pytest.mark.parametrize("every", SIZES)
def test_a_damaged_delivery_is_no_fault_of_ours(product, merestone, tmp_path, every):
    assert merestone("publish", product.file).code == 0
    chance = random.Random(5)
    calls = []
    for ending in FORMATS:
        sound = tmp_path / ending / f"sound.{ending}"
        if ending == "topojson":
            _topojson(sound)
        else:
            save(rows(), sound, **HOW.get(ending, {}))
        found = [(number, *damage) for number in range(5) for damage in damages(sound.read_bytes(), chance) if damage[1] is not None]
        found = [(0, "sound", sound.read_bytes()), *found[:: every if every == ALL else 20]]
        for number, what, data in found:
            folder = tmp_path / ending / f"{number} {what}"
            shutil.copytree(sound.parent, folder, ignore=lambda _, names: [each for each in names if not each.startswith("sound")])
            (folder / sound.name).write_bytes(data)
            calls += [
                ["check", folder / sound.name, "--contract", product.contract],
                ["publish", product.file, "--source", folder / sound.name, "--dry-run"],
                ["diff", sound, folder / sound.name, "--key", "pid"],
                ["init", folder / sound.name, "--out", folder],
            ]
    codes = ended(calls, tmp_path)
    for number in range(0, len(calls), 4):
        if Path(calls[number][1]).parent.name == "0 sound":
            assert {*codes[number : number + 4]} <= {0, 1}, calls[number]
    say(f"{len(calls) // 4} damaged deliveries", calls, codes)


def _topojson(path):
    path.parent.mkdir()
    points = [
        {"type": "Point", "coordinates": list(row["geometry"].coords[0]), "properties": {k: v for k, v in row.items() if k != "geometry"}}
        for row in rows()
    ]
    objects = {"sound": {"type": "GeometryCollection", "geometries": points}}
    path.write_text(json.dumps({"type": "Topology", "arcs": [], "objects": objects}), encoding="utf-8")


@pytest.mark.parametrize("every", SIZES)
def test_a_damaged_document_is_no_fault_of_ours(product, tmp_path, every):
    chance = random.Random(7)
    calls = []
    for document in (product.contract, product.file):
        data = document.read_bytes()
        lines = data.splitlines(keepends=True)
        found = [damage for _ in range(12) for damage in damages(data, chance) if damage[1] is not None]
        for at in range(len(lines)):
            found += [
                ("without a line", b"".join(lines[:at] + lines[at + 1 :])),
                ("a line twice", b"".join(lines[: at + 1] + lines[at:])),
                ("another value", b"".join([*lines[:at], lines[at].partition(b":")[0] + b": [{}, -1e999, ~]\n", *lines[at + 1 :]])),
                ("deeper", b"".join([*lines[:at], b"  " + lines[at], *lines[at + 1 :]])),
            ]
        for number, (_, changed) in enumerate(found[::every]):
            folder = tmp_path / f"{document.stem} {number}"
            folder.mkdir()
            for each in (product.contract, product.file):
                (folder / each.name).write_bytes(changed if each == document else each.read_bytes())
            calls += [
                ["contract", "lint", folder / product.contract.name],
                ["publish", folder / product.file.name, "--dry-run"],
                ["status", folder / product.file.name],
            ]
    say(f"{len(calls) // 3} damaged documents", calls, ended(calls, tmp_path))
