"""Every way to end: a message that names the thing and the next step, the right code, and with --json exactly one object."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from merestone.cli import edge
from merestone.errors import CorruptError, InternalError, MerestoneError, StoreError, UsageError


def raises(fault):
    def command():
        raise fault

    return command


def end(capsys, command, *, as_json=False, debug=False):
    code = edge.end(command, edge.Call(as_json=as_json, debug=debug))
    return code, *capsys.readouterr()


@pytest.mark.parametrize("kind", [each for each in MerestoneError.__subclasses__() if each is not InternalError])
def test_an_error_is_told_with_its_next_step_and_code(kind, capsys):
    code, out, err = end(capsys, raises(kind("the thing broke", field="thing", hint="do this")))
    assert (code, out, err) == (kind.exit_code, "", "merestone: the thing broke\n  next: do this\n")


@pytest.mark.parametrize("kind", [each for each in MerestoneError.__subclasses__() if each is not InternalError])
def test_with_json_an_error_is_one_object_on_standard_output(kind, capsys):
    code, out, err = end(capsys, raises(kind("the thing broke", field="thing", hint="do this")), as_json=True)
    error = {"kind": kind.kind, "retry": kind.retry, "message": "the thing broke", "field": "thing", "hint": "do this"}
    assert json.loads(out) == {"status": "error", "error": error}
    assert out.count("\n") == 1
    assert code == kind.exit_code
    assert f'"retry": {json.dumps(kind.retry)}' in out, "as the script of docs/how-to/nightly-job.md looks for it"
    assert "the thing broke" in err


def test_the_code_of_a_command_is_the_exit_code_and_none_is_done(capsys):
    assert end(capsys, lambda: 6)[0] == 6
    assert end(capsys, lambda: None)[0] == 0


def test_an_unexpected_fault_is_ours_and_shows_no_traceback(capsys):
    code, out, err = end(capsys, raises(ZeroDivisionError("by zero")), as_json=True)
    assert code == 70
    assert json.loads(out)["error"]["kind"] == "internal"
    assert "ZeroDivisionError: by zero" in err
    assert "--debug" in err
    assert "Traceback" not in out + err


@pytest.mark.parametrize("fault", [ZeroDivisionError("by zero"), InternalError("an invariant broke")])
def test_with_debug_the_traceback_is_kept_in_a_file_that_the_message_names(fault, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, _, err = end(capsys, raises(fault), debug=True)
    (kept,) = tmp_path.iterdir()
    assert code == 70
    assert str(kept) in err
    assert type(fault).__name__ in kept.read_text()
    assert "Traceback" in kept.read_text()


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_ends_as_shells_expect(fault, capsys):
    code, out, err = end(capsys, raises(fault), as_json=True)
    assert code == 130
    assert err == "merestone: interrupted\n"
    assert json.loads(out)["error"]["kind"] == "interrupted"


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([2, 2], "interrupted; v2 stays current; nothing published"),
        ([None, None], "interrupted; nothing published"),
        ([2, 3], "interrupted, but v3 became current before that"),
        ([2, CorruptError("unreadable")], "interrupted; run `merestone status` to see which version is current"),
    ],
)
def test_an_interrupted_commit_says_which_version_is_current(versions, said, capsys):
    seen = iter(versions)

    def current():
        now = next(seen)
        if isinstance(now, Exception):
            raise now
        return now

    def command():
        with edge.names_current(current):
            raise KeyboardInterrupt

    assert end(capsys, command) == (130, "", f"merestone: {said}\n")


def test_a_command_that_commits_and_fails_tells_the_failure_itself(capsys):
    def command():
        with edge.names_current(lambda: 1):
            raise StoreError("disk full")

    assert end(capsys, command)[0] == 4


def test_wrong_usage_names_option_and_help(merestone):
    ended = merestone("rollback", "somewhere", "--to", "1", "--json")
    assert ended.code == 2
    error = {
        "kind": "usage",
        "retry": False,
        "message": "Missing option '--reason'",
        "field": "reason",
        "hint": "merestone rollback --help",
    }
    assert ended.doc["error"] == error
    assert merestone("read", "--json").doc["error"]["hint"] == "merestone read --help"
    assert merestone("nonsense", "--json").doc["error"]["kind"] == "usage"
    assert merestone("log", "x", "--nonsense").code == 2


def test_json_after_two_dashes_is_a_name(merestone):
    assert merestone("log", "--", "--json").out == ""


def test_a_reader_that_goes_away_is_no_fault(published):
    command = [sys.executable, "-m", "merestone.cli.main", "read", str(published.file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_result_of_a_publish_survives_a_closed_pipe(product):
    command = [sys.executable, "-m", "merestone.cli.main", "publish", str(product.file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    assert product.version == 1


def test_names_that_are_no_text_reach_the_message_escaped(tmp_path):
    command = [sys.executable, "-m", "merestone.cli.main", "log", b"nowhere-\xff", "--json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "usage"


def test_usage_errors_of_our_own_pass_through_unchanged(merestone, tmp_path):
    ended = merestone("log", tmp_path / "nowhere", "--json")
    assert ended.doc["error"]["message"] == f"{tmp_path / 'nowhere'} does not exist"
    assert ended.code == UsageError.exit_code
    assert not Path(tmp_path / "nowhere").exists()


HOSTILE = "a\x1b[31mred\x1b]0;title\x07\x9b2J\r\x7f\u202eb"


def test_an_error_that_repeats_hostile_text_does_not_drive_the_terminal(capsys):
    fault = UsageError(HOSTILE, field=HOSTILE, hint=HOSTILE)
    _, out, err = end(capsys, raises(fault), as_json=True)
    assert all(each.isprintable() for each in err.split("\n"))
    assert not any(each in out for each in "\x1b\x07\x9b\r\x7f")
    assert json.loads(out)["error"]["message"] == HOSTILE


def test_answers_and_notes_do_not_drive_the_terminal(capsys):
    edge.answer({}, f"{HOSTILE}\tb\nc", as_json=False)
    edge.note(HOSTILE)
    for said in capsys.readouterr():
        assert not any(each in said for each in "\x1b\x07\x9b\r\x7f")
        assert "\\x1b[31mred" in said


def test_an_unknown_command_or_option_does_not_drive_the_terminal(merestone):
    for words in ([HOSTILE], ["publish", f"--{HOSTILE}"], ["read", "x", "--bbox", HOSTILE], ["changes", "x", "--from", HOSTILE]):
        ended = merestone(*words)
        assert ended.code == 2
        assert not any(each in ended.said for each in "\x1b\x07\x9b\r\x7f")


def test_a_traceback_file_holds_no_secret(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    end(capsys, raises(ZeroDivisionError("https://u:hunter2@h/x")), debug=True)
    kept = next(tmp_path.glob("merestone-traceback-*")).read_text()
    assert "ZeroDivisionError" in kept
    assert "hunter2" not in kept


def test_a_number_below_zero_is_told_how_to_be_typed(merestone):
    ended = merestone("lineage", "why", "streets.yaml", "-3")
    assert ended.code == 2
    assert "write -- before a value that begins with -" in ended.err
    assert "lineage why ... -- -3" in ended.err
