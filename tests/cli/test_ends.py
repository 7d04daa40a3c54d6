"""The process of a command ends with a code that is true, whatever its standard streams are and whenever it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from shapely import Point

import merestone as library
from estate import save
from merestone.cli import edge
from merestone.errors import OutputError

RUN = (sys.executable, "-c", "from merestone.cli.start import main; main()")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device here is always full")  # noqa: PTH110


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ends")
    rows = [{"pid": f"p{at}", "owner": f"o{at}", "geometry": Point(-100 + at / 100, 50)} for at in range(30)]
    save(rows, folder / "parcels.geojson")
    return library.draft(folder / "parcels.geojson", owner="steward@example.org", out=folder).publication


def run(line, **streams):
    """A command as a shell runs it; `line` may redirect."""
    words = " ".join(f"'{each}'" for each in RUN)
    return subprocess.run(["bash", "-c", f"{words} {line}"], capture_output=True, text=True, timeout=60, check=False, **streams)


@needs_full
def test_an_answer_that_cannot_be_written_is_neither_a_refusal_nor_a_fault(product):
    for line, version in ((f"publish '{product}' >/dev/full", 1), (f"publish '{product}' --json >&-", 1)):
        ended = run(line)
        assert (ended.returncode, ended.stderr.count("\n")) == (74, 2), ended.stderr
        assert "the answer cannot be written to standard output" in ended.stderr
        assert "what the command did stands" in ended.stderr
        assert library.status(product).version == version
    for line in (f"read '{product}' >/dev/full", "--version >&-"):
        ended = run(line)
        assert (ended.returncode, ended.stderr.count("\n")) == (74, 2), (line, ended.stderr)


@needs_full
def test_a_reader_that_goes_and_a_lost_message_change_no_exit_code(product):
    library.publish(product)
    assert run(f"read '{product}' | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}").returncode == 0
    for streams in ("2>/dev/full", "--json >/dev/full 2>&-"):
        ended = run(f"read nothing.yaml {streams}")
        assert ended.returncode == 2, (streams, ended.stderr)
        assert "Traceback" not in ended.stderr


def test_an_output_says_what_it_could_not_do(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(edge, "hush", lambda: None)
    with pytest.raises(OutputError, match="No space left on device; what the command did stands"):
        edge.write("done\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_loaded_ends_in_one_line(number):
    """The process says when its handlers stand; what it loads after that takes longer than the signal."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # also where the tests run in the background of a shell
        "from merestone.cli import start\n"
        "class Slow:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'merestone.cli.main':\n"
        "            print('loading', flush=True); time.sleep(30)\n"
        "sys.meta_path.insert(0, Slow)\n"
        "start.main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert (process.returncode, said) == (128 + number, f"merestone: {word}\n")


@pytest.mark.parametrize(
    ("command", "said"), [("publish", "interrupted; nothing published"), ("read", "interrupted"), (None, "interrupted")]
)
def test_only_a_command_that_publishes_says_that_nothing_was(command, said):
    assert str(edge.stopped(KeyboardInterrupt(), command)) == said
