"""`merestone publish` as processes: killed, interrupted, two at once, on disks that are full, read-only or limited."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cli.products import rows
from estate import save
from merestone.dataset.record import read_records
from merestone.line import environment
from merestone.writer.records import intents

COMMAND = [sys.executable, "-m", "merestone.cli.main", "publish"]
STEPS = [
    f"{what}.{when}" for what in ("intent", "data", "changes", "lineage", "manifest", "pointer", "record") for when in ("before", "after")
]
DAC_OVERRIDE, DAC_READ_SEARCH, CAPBSET_DROP = 1, 2, 24


def call(*arguments, env=None, **options):
    """Run it; what it printed and how it ended."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **(env or {})}, **options)


def doc(done):
    """The one object on standard output."""
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    return json.loads(done.stdout)


def live(product):
    """Pointer and live files, byte for byte."""
    names = ["_current.json", "_manifests/v000001.json", *(each.path for each in product.files(1))]
    return {name: (product.url / name).read_bytes() for name in names}


@pytest.fixture
def standing(product, merestone):
    assert merestone("publish", product.file).code == 0
    return product


# --- kill -9 ----------------------------------------------------------------------------------------------------------------------------


def test_a_process_that_is_killed_at_each_step(standing, merestone):
    """One dataset, one dead process after another: each finds what the last one left."""
    dead = 0
    for at in STEPS:
        done = call(standing.file, "--source", standing.second, env={"MERESTONE_KILL_AT": at})
        after = STEPS.index(at) >= STEPS.index("pointer.after")
        if standing.version != 1 and at != "pointer.after":
            assert done.returncode in (0, -signal.SIGKILL)  # already published: only the record is left to be written
        else:
            assert done.returncode == -signal.SIGKILL
            dead += 1
        assert (standing.version == 1) == (not after)
        assert standing.rows() == standing.rows(1) if not after else standing.rows()["p3"]["owner"] == "b"
        assert merestone("verify", standing.file).code == 0
    assert dead == STEPS.index("pointer.after") + 1
    last = merestone("publish", standing.file, "--source", standing.second, "--json")
    assert (last.code, last.doc["status"]) == (0, "unchanged")
    assert not list(intents(standing.dataset.store))
    told = [each.status for each in read_records(standing.dataset.store)]
    assert told.count("published") == 2
    assert told.count("abandoned") >= dead - 2  # one was killed before it had said that it runs, one after it had published
    assert set(told) == {"published", "abandoned", "unchanged"}


def test_a_first_publish_that_is_killed_leaves_nothing_that_anybody_takes_for_a_dataset(product, merestone):
    for at in ("data.after", "manifest.after", "pointer.before"):
        assert call(product.file, env={"MERESTONE_KILL_AT": at}).returncode == -signal.SIGKILL
        assert product.version is None
        for command in ("log", "status", "read", "verify"):
            assert merestone(command, product.url, "--json").code == 2
    done = merestone("publish", product.file, "--json")
    assert (done.code, done.doc["status"], done.doc["features"]) == (0, "published", 40)
    assert [each["status"] for each in product.records()] == ["abandoned"] * 3 + ["published"]


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0.0, 0.3, 0.6])
def test_ctrl_c_at_any_time_ends_quietly(delay, standing, merestone):
    """Whenever it comes, also while Python still starts: no traceback of ours, and what is published is told by the pointer alone."""
    command = [*COMMAND, str(standing.file), "--source", str(standing.second), "--json"]
    hook = "import sys, time; print('up', file=sys.stderr, flush=True); from merestone.cli.main import main; main()"
    with subprocess.Popen([sys.executable, "-c", hook, *command[3:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        time.sleep(delay + 0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 130), err
    if process.returncode == 0:
        assert standing.version == 2
    elif out:
        assert json.loads(out)["error"]["kind"] == "interrupted"
    assert merestone("publish", standing.file, "--source", standing.second).code == 0
    assert standing.rows()["p3"]["owner"] == "b"


# --- two at once ------------------------------------------------------------------------------------------------------------------------


def publishing(product, source):
    command = [*COMMAND, str(product.file), "--source", str(source), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def hold_where_it_has_begun(product, process):
    """Stop it once it has said that it runs; one that is done before that is seen goes on as it was."""
    while process.poll() is None and not list(intents(product.dataset.store)):
        time.sleep(0.001)
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)


def test_of_two_publishers_one_wins_and_the_other_loses_nothing(standing, merestone, tmp_path):
    conflicts = 0
    for night in range(
        8
    ):  # twice as the system lets them run, in either order; then the first is held where it has begun until the other is done
        mine = save(rows(p3={"owner": f"b{night}"}), tmp_path / f"mine{night}.gpkg")
        theirs = save(rows(p4={"owner": f"c{night}"}), tmp_path / f"theirs{night}.gpkg")
        before = standing.version
        first = publishing(standing, mine)
        if night > 1:
            hold_where_it_has_begun(standing, first)
        second = publishing(standing, theirs)
        told = second.communicate(timeout=300)
        first.send_signal(signal.SIGCONT)
        ended = [(first, *first.communicate(timeout=300)), (second, *told)]
        codes = sorted(process.returncode for process, _, _ in ended)
        assert codes in ([0, 0], [0, 5]), [err for _, _, err in ended]
        for process, out, err in ended:
            said = json.loads(out)
            assert "Traceback" not in err
            if process.returncode == 5:
                conflicts += 1
                assert said["error"]["kind"] == "conflict"
                assert "repeat" in said["error"]["hint"]
                assert (standing.version or 0) > before  # numbers may be left out: the loser's manifest may stand there, an orphan
        assert merestone("verify", standing.file).code == 0
        if codes == [0, 5]:
            loser = next(source for (process, _, _), source in zip(ended, (mine, theirs), strict=True) if process.returncode == 5)
            won = standing.version or 0
            again = merestone("publish", standing.file, "--source", loser, "--json")
            assert (again.code, again.doc["status"]) == (0, "published")
            assert again.doc["version"] > won
            failed = next(each for each in standing.records() if each["status"] == "failed")
            assert failed["error"]["kind"] == "conflict"
            break
    assert conflicts, "they never met"


def test_a_publisher_that_comes_second_is_told_who_won(standing, merestone, monkeypatch, tmp_path):
    """The same, with the order fixed: the other one publishes while this one is about to move the pointer."""
    third = save(rows(p4={"owner": "c"}), tmp_path / "third.gpkg")
    real = environment.fault_step

    def overtaken():
        def step(name):
            if name == "pointer.before":
                monkeypatch.setattr(environment, "fault_step", real)
                assert call(standing.file, "--source", third).returncode == 0

        return step

    monkeypatch.setattr(environment, "fault_step", overtaken)
    lost = merestone("publish", standing.file, "--source", standing.second, "--json")
    assert (lost.code, lost.doc["error"]["kind"]) == (5, "conflict")
    assert "another publisher won" in lost.err
    assert standing.rows()["p4"]["owner"] == "c"
    again = merestone("publish", standing.file, "--source", standing.second, "--json")
    assert (again.code, again.doc["status"], standing.rows()["p3"]["owner"], standing.rows()["p4"]["owner"]) == (0, "published", "b", "a")
    assert merestone("verify", standing.file).code == 0


# --- bad disks --------------------------------------------------------------------------------------------------------------------------


def without_rights():
    """Root, but bound by the rights of files like anybody else."""
    if os.geteuid() == 0:
        for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="how root gives up its rights is told for Linux only")
@pytest.mark.parametrize("which", ["", "data", "_intents", "_manifests", "_runs"])
def test_a_folder_that_cannot_be_written(which, standing, merestone):
    folder = standing.url / which
    before = live(standing)
    mode = folder.stat().st_mode
    parts = [each for each in [folder, *folder.rglob("*")] if each.is_dir()] if which == "data" else [folder]
    for part in parts:
        part.chmod(0o500)
    try:
        ended = [call(standing.file, "--source", standing.second, *more, preexec_fn=without_rights) for more in ((), ("--json",))]
    finally:
        for part in parts:
            part.chmod(mode)
    said = ended[0].stderr + ended[0].stdout
    assert "write permission" in said if which != "_runs" else "v2 is current, but the record of its run is not complete" in said
    assert [each.returncode for each in ended] == [0 if which == "_runs" else 4, 4], said  # the second run cannot complete the record
    error = doc(ended[1])["error"]
    assert error["kind"] == "store"
    assert str(standing.url) in error["message"] + error["hint"]
    if which != "_runs":
        assert "next: " in said
        assert live(standing) == before
    assert merestone("verify", standing.file).code == 0
    assert merestone("publish", standing.file, "--source", standing.second).code == 0
    assert standing.rows()["p3"]["owner"] == "b"


def test_a_destination_that_is_a_file(product):
    product.url.write_text("mine")
    for more in ((), ("--json",)):
        done = call(product.file, *more)
        assert done.returncode == 4, done.stderr
        assert "published" in done.stderr
        assert "next: " in done.stderr
    assert doc(done)["error"]["kind"] == "store"
    assert product.url.read_text() == "mine"


def limited(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("size", [0, 1000, 6000, *(pytest.param(each, marks=pytest.mark.soak) for each in (100, 3000))])
def test_a_limit_on_the_size_of_files(size, standing, merestone):
    """Whatever file it meets first, in the destination or in the scratch folder: a store fault, and nothing lost."""
    before = live(standing)
    done = call(standing.file, "--source", standing.second, "--json", preexec_fn=limited(size))
    assert done.returncode == 4, done.stderr
    error = doc(done)["error"]
    assert error["kind"] == "store"
    assert error["hint"]
    assert live(standing) == before
    assert merestone("verify", standing.file).code == 0
    assert merestone("publish", standing.file, "--source", standing.second).code == 0


DISK = """
set -e
mount -t tmpfs -o size=512k tmpfs "$1"
if [ "$2" = destination ]; then cp -a "$3/published" "$1/published"; fi
fill() { dd if=/dev/zero of="$1/fill" bs=1k count="$2" 2>/dev/null || true; }
free=$(df -k --output=avail "$1" | tail -1)
fill "$1" $((free - $4))
set +e
shift 4
"$@"
code=$?
if [ -d "$DISK/published" ]; then rm -rf "$OUT"; cp -a "$DISK/published" "$OUT"; fi
exit $code
"""


def on_a_full_disk(tmp_path, what, folder, free, *arguments):
    """Run a publish in a mount name space of its own, where `disk` is a file system of half a megabyte with `free` kB left."""
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or unshare is None:
        pytest.skip("a small file system needs Linux and unshare")
    disk = tmp_path / "disk"
    disk.mkdir(exist_ok=True)
    space = [unshare, "-m"] if os.geteuid() == 0 else [unshare, "-Urm"]
    probe = subprocess.run([*space, "mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"this system lets nobody mount a small file system: {probe.stderr.decode().strip()}")
    env = {**os.environ, "DISK": str(disk), "OUT": str(tmp_path / "after")}
    if what == "scratch":
        env["TMPDIR"] = str(disk)
    command = [*space, "sh", "-c", DISK, "sh", str(disk), what, str(folder), str(free), *COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=env)


@pytest.mark.parametrize("free", [0, 12, 28, *(pytest.param(each, marks=pytest.mark.soak) for each in (4, 20, 36, 44))])
def test_a_full_disk_below_the_destination(free, standing, merestone, tmp_path):
    before = live(standing)
    full = {**standing.settings, "destination": str(tmp_path / "disk" / "published"), "source": str(standing.second)}
    file = standing.folder / "full.yaml"
    file.write_text(json.dumps(full))
    done = on_a_full_disk(tmp_path, "destination", standing.folder, free, file, "--json")
    assert done.returncode in ((4,) if free < 20 else (0, 4)), done.stderr
    if done.returncode == 4:
        error = doc(done)["error"]
        assert error["kind"] == "store"
        assert "free space" in error["hint"] or "ulimit" in error["hint"]
    after = tmp_path / "after"
    assert merestone("verify", after).code == 0
    if done.returncode == 4:
        assert {name: (after / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("free", [8, *(pytest.param(each, marks=pytest.mark.soak) for each in (4, 12))])
def test_a_full_scratch_disk(free, standing, merestone, tmp_path):
    before = live(standing)
    done = on_a_full_disk(tmp_path, "scratch", standing.folder, free, standing.file, "--source", standing.second, "--json")
    assert done.returncode == 4, done.stderr
    error = doc(done)["error"]
    assert "TMPDIR" in error["hint"]
    assert live(standing) == before
    assert [each["error"]["kind"] for each in standing.records()[1:]] == ["store"]
    assert merestone("publish", standing.file, "--source", standing.second).code == 0


# --- what is told afterwards ------------------------------------------------------------------------------------------------------------


def test_status_and_log_tell_what_became_of_each_run(standing, merestone, tmp_path):
    """One night of every kind; each stands in the status with its reason until a good one comes, and only versions stand in the log."""

    def since():
        told = merestone("status", standing.file, "--json").doc
        said = merestone("status", standing.file).out
        assert all(each["why"] in said for each in told["since"])
        return told["version"], [(each["status"], each["refused_by"], each["why"].partition(" ")[0]) for each in told["since"]]

    night = [standing.file, "--source", standing.second]
    assert since() == (1, [])
    assert merestone("publish", standing.file, "--source", save(rows(p3={"pid": None}), tmp_path / "bad.gpkg")).code == 1
    kinds = [("refused", "contract", "schema.key_null:")]
    assert since() == (1, kinds)
    assert merestone("publish", standing.file, "--source", save(rows(9), tmp_path / "few.gpkg")).code == 1
    kinds.append(("refused", "guard", "guard.changed:"))
    assert since() == (1, kinds)
    assert merestone("publish", standing.file, "--source", tmp_path / "nowhere.gpkg").code == 3
    kinds.append(("failed", None, str(tmp_path / "nowhere.gpkg")))
    assert since() == (1, kinds)
    assert call(*night, env={"MERESTONE_KILL_AT": "manifest.after"}).returncode == -signal.SIGKILL
    assert since() == (1, kinds), "nobody knows yet that it is dead"
    assert merestone("publish", standing.file, "--source", tmp_path / "nowhere.gpkg").code == 3
    kinds += [("abandoned", None, "its"), ("failed", None, str(tmp_path / "nowhere.gpkg"))]
    assert since() == (1, kinds)
    assert merestone("publish", *night).code == 0
    assert since() == (3, []), "the orphan's number is not used again"
    fresh = merestone("status", standing.file, "--json").doc["fresh_utc"]
    assert merestone("publish", *night, "--json").doc["status"] == "unchanged"
    assert merestone("status", standing.file, "--json").doc["fresh_utc"] > fresh
    assert call(standing.file, env={"MERESTONE_KILL_AT": "record.before"}).returncode == -signal.SIGKILL
    assert merestone("rollback", standing.file, "--to", "3", "--reason", "wrong export").code == 0
    assert [each["status"] for each in standing.records()[-2:]] == ["published", "rolled_back"]
    assert since() == (5, [])
    stopped = merestone("publish", standing.file, "--json")
    assert (stopped.code, stopped.doc["findings"][0]["rule"]) == (1, "withdrawn")
    assert since()[1][0][:2] == ("refused", "guard")
    versions = merestone("log", standing.file, "--json").doc["versions"]
    assert [(each["version"], each["reason"]) for each in versions] == [(5, "wrong export"), (4, None), (3, None), (1, None)]
    assert merestone("publish", standing.file, "--confirm", stopped.doc["confirm"], "--json").doc["version"] == 6
    assert merestone("verify", standing.file).code == 0
