"""How far a command is, at a terminal and with -v; and how Ctrl-C and SIGTERM end it."""

from __future__ import annotations

import os
import pty
import re
import signal
import sqlite3
import sys
import termios
import threading

import pytest

from merestone.cli import edge, main
from merestone.cli import progress as watching
from merestone.dataset.record import read_records
from merestone.line import environment
from merestone.line.undisturbed import undisturbed
from merestone.results.progress import Progress
from merestone.source import sqlite_bound
from merestone.writer.records import intents
from transcript import masked


@pytest.fixture
def terminal(monkeypatch):
    """Runs a command line whose standard error is a terminal; its exit code, and what the terminal showed."""
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 120))
    shown = os.fdopen(writer, "w", buffering=1)
    seen: list[bytes] = []

    def read():
        while True:
            try:
                block = os.read(reader, 65536)
            except OSError:  # what a terminal says when its last writer has gone
                return
            if not block:
                return
            seen.append(block)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def run(words):
        # Here and not above: pytest puts its own stream back when a test begins.
        monkeypatch.setattr(sys, "stderr", shown)
        monkeypatch.setattr(watching, "_WAIT", 0)
        code = main.root.main([str(each) for each in words], prog_name="merestone", standalone_mode=False)
        shown.close()
        thread.join(5)
        return code, b"".join(seen).decode()

    yield run
    shown.close()
    os.close(reader)


@pytest.fixture
def commands(published, merestone, tmp_path):
    """What takes long on large data."""
    copy, mirror = tmp_path / "copy.parquet", tmp_path / "mirror"
    assert merestone("read", f"{published.file}@1", "--out", copy).code == 0
    return {
        "verify": ["verify", published.file],
        "diff": ["diff", published.first, published.second, "--key", "pid"],
        "apply to a file": ["apply", published.file, "--onto", copy],
        "apply to a dataset": ["apply", published.file, "--onto", mirror, "--from", "0"],
        "rollback": ["rollback", published.file, "--to", "1", "--reason", "test"],
        "check": ["check", published.file],
        "publish": ["publish", published.file, "--source", published.first],
    }


STAGES = {
    "verify": ["prove objects", "prove lineage"],
    "diff": ["prepare", "read the delivery", "process candidates"],
    "apply to a file": ["read the copy", "write the copy", "read it back"],
    "apply to a dataset": ["read the copy", "read the delivery", "write files", "commit"],
    "rollback": ["prove objects"],
    "check": ["read the delivery"],
    "publish": ["read the delivery", "process candidates"],
}


@pytest.mark.parametrize("name", STAGES)
def test_a_terminal_shows_stage_rows_rate_and_time_left_and_then_nothing(name, commands, terminal):
    code, said = terminal(commands[name])
    assert code == 0, said
    for stage in STAGES[name]:
        assert f"{stage}: " in said, said
    assert "rows/s]" in said
    assert re.search(r"\r +\r$", said), "the line stays when the command has ended"


@pytest.mark.parametrize("name", STAGES)
def test_a_pipe_and_q_show_nothing_and_v_a_line_a_stage(name, commands, merestone):
    words = commands[name]
    (piped, quiet, told) = (merestone(*words), merestone(*words, "-q"), merestone(*words, "-v"))
    for ended in (piped, quiet):
        assert "rows/s" not in ended.err
        assert not any(f"{stage}: " in ended.err for stage in STAGES[name]), ended.err
    assert f"{STAGES[name][0]}: " in told.err or "already" in told.said, told.err
    if name in {"check", "publish"}:
        assert re.search(r"^read the delivery: [0-9.]+ s, 4\d rows$", told.err, re.MULTILINE), told.err
    assert len(masked(quiet.out)) <= len(masked(piped.out))  # but for how long they took


def test_the_line_counts_the_rows_of_a_stage_once_and_takes_a_total_that_comes_late(monkeypatch):
    monkeypatch.setattr(watching, "_WAIT", 3600)
    line = watching._Line()
    for rows, total in ((0, None), (10, None), (25, 100), (60, 100)):
        line(Progress("pass 1", rows, total))
        assert (line._bar.n, line._bar.total) == (rows, total)
    line(Progress("pass 2", 5, 7))
    assert (line._bar.n, line._bar.total, line._bar.desc) == (5, 7, "process candidates")
    line(Progress("pass 2", ended=True))
    assert line._bar is None


# --- signals -----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """Ctrl-C as Python takes it, also where the tests run in the background of a shell, which ignores it."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


@pytest.fixture
def handled(monkeypatch):
    """The handlers of the installed command, for one command."""
    kept = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(edge, "stopped_by", None)

    def install():
        for each in kept:
            signal.signal(each, main._stopped)

    install()
    yield install
    for each, handler in kept.items():
        signal.signal(each, handler)


def stop_at(monkeypatch, target, number, times=1):
    left = [times]

    def step(name):
        if name == target and left[0]:
            left[0] -= 1
            os.kill(os.getpid(), number)

    monkeypatch.setattr(environment, "fault_step", lambda: step)


STEPS = [
    "intent.before",
    "intent.after",
    "data.after",
    "changes.after",
    "manifest.after",
    "pointer.before",
    "pointer.after",
    "record.before",
]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
@pytest.mark.parametrize("step", STEPS)
def test_a_publish_that_is_stopped_says_one_line_and_leaves_no_intent(step, number, product, merestone, monkeypatch, handled):
    assert merestone("publish", product.file, "--source", product.first).code == 0
    with monkeypatch.context() as patched:
        stop_at(patched, step, number)
        ended = merestone("publish", product.file, "--source", product.second)
    store = product.dataset.store
    assert ended.code == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert ended.err.count("\n") == 1, ended.err
    how = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert ended.err.startswith(f"merestone: {how}")
    assert not list(intents(store)), "the next run would have to write it up"
    done = step in STEPS[STEPS.index("pointer.before") :]
    assert product.version == (2 if done else 1)
    assert ("but v2 became current" if done else "v1 stays current") in ended.err
    assert sorted(each.status for each in read_records(store)) == (["published"] * 2 if done else ["failed", "published"])
    handled()
    again = merestone("publish", product.file, "--source", product.second, "--json")
    assert again.doc["status"] == ("unchanged" if done else "published")
    assert "abandoned" not in {each.status for each in read_records(store)}


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("step", ["intent.after", "changes.before", "pointer.before", "record.before"])
def test_a_roll_back_that_is_stopped_says_one_line_and_leaves_no_intent(step, published, merestone, monkeypatch):
    with monkeypatch.context() as patched:
        stop_at(patched, step, signal.SIGTERM)
        ended = merestone("rollback", published.file, "--to", 1, "--reason", "test")
    done = step in ("pointer.before", "record.before")
    assert (ended.code, ended.err.count("\n")) == (143, 1)
    assert ("but v3 became current" if done else "v2 stays current") in ended.err
    assert not list(intents(published.dataset.store))
    statuses = [each.status for each in read_records(published.dataset.store)]
    assert ("rolled_back" in statuses, "abandoned" in statuses) == (done, False)


@pytest.mark.usefixtures("handled")
def test_a_copy_stays_where_apply_is_stopped(published, merestone, monkeypatch, tmp_path):
    copy = tmp_path / "copy.parquet"
    assert merestone("read", f"{published.file}@1", "--out", copy).code == 0
    before, beside = copy.read_bytes(), sorted(tmp_path.iterdir())
    monkeypatch.setattr("merestone.compare.apply._add", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    ended = merestone("apply", published.file, "--onto", copy)
    assert (ended.code, ended.err.count("\n")) == (130, 1), ended.err
    assert copy.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == beside


@pytest.mark.usefixtures("handled")
def test_ctrl_c_within_a_query_of_sqlite_is_no_truncated_file(product, merestone, monkeypatch):
    """SQLite takes an exception of its caller for a wish to stop, and passes it on as one of its own."""
    monkeypatch.setattr(sqlite_bound, "_BETWEEN", 10)

    connect = sqlite3.connect
    real = sqlite3.Connection.set_progress_handler

    class Armed(sqlite3.Connection):
        def set_progress_handler(self, counted, every):
            def raising():
                signal.raise_signal(signal.SIGTERM)
                return counted()

            real(self, raising, every)

    monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, factory=Armed, **more))
    ended = merestone("publish", product.file)
    assert ended.code == 143, ended.err
    assert ended.err == "merestone: terminated; nothing published\n"


@pytest.mark.usefixtures("handled")
def test_a_command_in_the_background_of_a_shell_goes_on_ignoring_ctrl_c(monkeypatch):
    monkeypatch.setattr(main, "root", lambda **_: None)
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main.main()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is main._stopped


@pytest.mark.usefixtures("interruptible")
def test_a_second_signal_does_not_wait():
    met = []

    def publish():
        with undisturbed(met.append) as step:
            step("pointer.before")
            signal.raise_signal(signal.SIGINT)
            met.append("the first waits")
            signal.raise_signal(signal.SIGINT)
            met.append("the second waits")

    with pytest.raises(KeyboardInterrupt):
        publish()
    assert met == ["pointer.before", "the first waits"]


def test_signals_are_left_alone_in_other_threads():
    usual = signal.getsignal(signal.SIGINT)
    met = []

    def publish():
        with undisturbed(met.append) as step:
            step("pointer.before")

    thread = threading.Thread(target=publish)
    thread.start()
    thread.join()
    assert met == ["pointer.before"]
    assert signal.getsignal(signal.SIGINT) is usual
