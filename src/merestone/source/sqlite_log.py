"""The edits of an SQLite file that are still in a log beside it: taken in, in a copy.

A write-ahead log (-wal) holds the newest rows, a rollback journal (-journal) the old pages of an edit that was cut off. Both are part of the
database. SQLite takes them in when it opens the file; that would write to the producer's file, so it is done to a copy.
Not here: reading rows (`vector`), files that come packed (`located`).
Layout: SQLite, "WAL-mode File Format" and "The Rollback Journal".
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from merestone.errors import SourceError
from merestone.source.located import Located

LOGS = ("-wal", "-journal")
"""What SQLite adds to the name of a database for its logs."""
_WAL_MAGIC = {0x377F0682, 0x377F0683}
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")  # zeros stand there once an edit is done
_HEADER, _FRAME = 32, 24  # bytes


def settled(found: Located) -> Located:
    """The same file where no log is beside it, else a copy with the log taken in; `keep` removes the copy.

    Raises:
        SourceError: the log is damaged or of another file, or the file is being written.
    """
    path, shown = found.path, found.shown
    logs = [each for each in (path.with_name(path.name + end) for end in LOGS) if _has_edits(each)]
    if not logs:
        return found
    names = ", ".join(each.name for each in logs)
    scratch = Path(tempfile.mkdtemp(prefix="merestone-"))
    copy = replace(found, path=scratch / path.name, gdal=str(scratch / path.name), scratch=scratch)
    try:
        _copy([path, *logs], scratch, shown)
        _take_in(copy.path)
    except sqlite3.Error as fault:
        shutil.rmtree(scratch, ignore_errors=True)
        raise _damaged(shown, names, str(fault)) from fault
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return copy


def _take_in(copy: Path) -> None:
    """Let SQLite take in the logs beside a copy.

    Raises:
        SourceError: it leaves out edits that are in the log.
        sqlite3.Error: it can make nothing of the file.
    """
    log = copy.with_name(copy.name + LOGS[0])
    whole = _committed(log) if log.is_file() else 0
    with closing(sqlite3.connect(copy)) as database:
        database.execute("select count(*) from sqlite_master").fetchone()
        if whole:
            _, frames, _ = database.execute("pragma wal_checkpoint(passive)").fetchone()
            if frames != whole:
                raise _damaged(copy.name, log.name, f"{max(frames, 0)} of {whole} pages can be read")
        (said,) = database.execute("pragma quick_check(1)").fetchone()
    if said != "ok":
        raise _damaged(copy.name, log.name, said)


def _has_edits(log: Path) -> bool:
    """Whether a log is there and holds anything."""
    if not log.is_file() or not log.stat().st_size:
        return False
    if log.name.endswith(LOGS[0]):
        return log.stat().st_size > _HEADER
    with log.open("rb") as file:
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC


def _committed(log: Path) -> int:
    """How many frames of a write-ahead log belong to edits that were finished, going by its marks and not its checksums.

    Frames of an older round stand behind those of the last one, with other salts.
    """
    raw = np.fromfile(log, np.uint8)
    header = raw[:_HEADER].view(">u4")
    shown = log.name.removesuffix(LOGS[0])
    if int(header[0]) not in _WAL_MAGIC or _checksum(raw[:_HEADER]) != (int(header[6]), int(header[7])):
        raise _damaged(shown, log.name, "its header is not that of a write-ahead log")
    size = _FRAME + int(header[2])
    count = (len(raw) - _HEADER) // size
    frames = np.lib.stride_tricks.as_strided(raw[_HEADER:], (count, _FRAME), (size, 1)).copy().view(">u4")
    others = (frames[:, 2] != header[4]) | (frames[:, 3] != header[5])
    whole = int(others.argmax()) if others.any() else count
    if not others[whole:].all():
        raise _damaged(shown, log.name, f"page {whole + 1} of it is not of the same round as those that follow")
    of_last_round = frames[:whole]
    ends = np.flatnonzero(of_last_round[:, 1])  # the last frame of an edit says how many pages the file has then
    return int(ends[-1]) + 1 if len(ends) else 0


def _checksum(header: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """The checksum of the first 24 bytes of a log; its words are in the byte order that the last bit of the magic number says."""
    words = header[:24].view(">u4" if header[3] & 1 else "<u4").tolist()
    first = second = 0
    for one, two in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) % 2**32
        second = (second + two + first) % 2**32
    return first, second


def _copy(files: list[Path], folder: Path, shown: str) -> None:
    """Copy files that belong together. Raises SourceError where one changes meanwhile."""
    before = _state(files)
    for each in files:
        shutil.copyfile(each, folder / each.name)
    if _state(files) != before:
        raise SourceError(
            f"{shown} is being written: its log changes", field=shown, hint="close the program that writes it, then try again"
        )


def _state(files: list[Path]) -> list[tuple[int, int]]:
    return [(each.stat().st_size, each.stat().st_mtime_ns) for each in files]


def _damaged(shown: str, log: str, said: str) -> SourceError:
    return SourceError(
        f"{shown} has edits in a log that cannot be read ({log}): {said}",
        field=shown,
        hint="deliver the file together with its log as they are, or close the program that writes it and deliver the file alone",
    )
