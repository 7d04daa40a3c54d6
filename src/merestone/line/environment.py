"""What a run takes from outside itself: the time, chance, the user, the number of cores, a scratch folder.

Not here: settings of the publication (`publication`), who is alive (`storage.lease`). No other module reads a clock, chance or the environment,
but for lines that say why (`banned-api` in pyproject.toml).
"""

from __future__ import annotations

import ctypes
import errno
import getpass
import os
import platform
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyproj

from merestone.errors import StoreError
from merestone.gate.freshness import SKEW
from merestone.geometry import kernel

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc's; other C libraries have none


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def stamp(time: datetime) -> str:
    """A time as it stands in records: ISO 8601 with Z, to the microsecond."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def day_of(time: str) -> date:
    """The UTC date of a time as `stamp` writes it."""
    return datetime.fromisoformat(time).astimezone(UTC).date()


def modified(path: str) -> datetime | None:
    """When the bytes of a delivery were last written: of a folder its newest file; None where that is not known, or has not come yet."""
    place = Path(path)
    files = [each for each in place.rglob("*") if each.is_file()] if place.is_dir() else [place] if place.is_file() else []
    newest = max((each.stat().st_mtime for each in files), default=None)
    found = None if newest is None else datetime.fromtimestamp(newest, UTC)
    return None if found is None or found > now() + SKEW else found


def nonce() -> str:
    """A text that sets this process's objects apart from those of any other attempt."""
    return secrets.token_hex(4)


def new_uuid() -> str:
    """A UUID that nothing else has."""
    return str(uuid.uuid4())


def work_folder() -> Path:
    """The folder in which the process works, which relative paths begin at."""
    return Path.cwd()


def who() -> str:
    """The user who runs this, for confirmations."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for the run's spools, gone at its end. It honours TMPDIR.

    Raises:
        StoreError: no folder for temporary files can be written.
    """
    try:
        folder = tempfile.mkdtemp(prefix="merestone-")
    except OSError as fault:
        raise StoreError(
            f"no scratch folder can be made: {fault.strerror or fault}",
            field="TMPDIR",
            hint="set TMPDIR to a folder with free space that this user may write, then repeat",
        ) from fault
    try:
        with room_in(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # best effort: what stays is the operating system's to clean


@contextmanager
def room_in(folder: str) -> Iterator[None]:
    """Name the scratch folder when it has no room. Stores name their own faults; no other file can be meant.

    Raises:
        StoreError: a write to the scratch folder failed for want of room.
    """
    try:
        yield
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise StoreError(
            f"the scratch folder {folder} has no room: {os.strerror(fault.errno)}",
            field=folder,
            hint="free some space there, or point TMPDIR to a larger disk",
        ) from fault


def tools() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "merestone": _version("merestone"),
        "python": platform.python_version(),
        "pyarrow": _version("pyarrow"),
        "pyogrio": _version("pyogrio"),
        "shapely": _version("shapely"),
        "pyproj": _version("pyproj"),
        "proj": pyproj.proj_version_str,
        "kernel": kernel.NAME,
    }


_version = cache(version)  # each call of `version` looks on the disk


def give_back_memory() -> None:
    """Return freed memory to the system: the next stage needs blocks of other sizes, and what two allocators keep would add up."""
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


def fault_step() -> Callable[[str], None]:
    """The step hook of a run. With MERESTONE_KILL_AT=<step> in the environment the process kills itself there: for crash tests only."""
    target = os.environ.get("MERESTONE_KILL_AT")

    def step(name: str) -> None:
        if name == target:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def folder_of(path: str) -> str:
    """The absolute folder of a path."""
    return str(Path(path).resolve().parent)
