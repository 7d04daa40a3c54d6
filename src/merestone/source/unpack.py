"""Files out of archives, within bounds: what unpacks without end is refused before it fills a disk or runs for ever.

Not here: which member of an archive is the delivery (`located`), documents that nest (`xml_check`, `document.yaml_reader`).
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path
from typing import Final, Protocol

from merestone.errors import SourceError, StoreError

LEAST_BYTES: Final = 1 << 30
"""Any archive may unpack to so much."""
RATIO: Final = 200
"""Beyond that it may unpack to so many times its own size. Real data reach about 50; a run of one byte reaches 1,032."""


class Readable(Protocol):
    """What gives the bytes of a member, as they unpack."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, none at the end."""
        ...


_BLOCK: Final = 1 << 20
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def scratch_folder() -> Path:
    """A folder for what is unpacked. Raises StoreError where none can be made."""
    try:
        return Path(tempfile.mkdtemp(prefix="merestone-"))
    except OSError as fault:
        raise _no_room(Path(tempfile.gettempdir()), fault) from fault


def unpack(packed: Readable, target: Path, archive: Path, shown: str) -> None:
    """Write what a member of an archive holds to a file.

    Args:
        packed: the member, as it unpacks.
        target: the file to write.
        archive: the archive, whose size sets the bound.
        shown: what messages call the delivery.

    Raises:
        SourceError: it unpacks to more than the bound.
        StoreError: the disk of the scratch folder is full.
        OSError, zlib.error, zipfile.BadZipFile: the archive is damaged.
    """
    limit = _limit(archive)
    done = 0
    with target.open("wb") as plain:
        while block := packed.read(_BLOCK):
            done = _counted(done, block, limit, archive, shown)
            try:
                plain.write(block)
            except OSError as fault:
                raise _no_room(target.parent, fault) from fault


def check_length(packed: Readable, archive: Path, shown: str) -> None:
    """Read to the end, within the bound, what GDAL will unpack by itself. Raises SourceError where there is more."""
    limit = _limit(archive)
    done = 0
    while block := packed.read(_BLOCK):
        done = _counted(done, block, limit, archive, shown)


def discard(scratch: Path | None) -> None:
    """Remove a scratch folder; what cannot be removed is the operating system's to clean."""
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)


def _limit(archive: Path) -> int:
    return max(LEAST_BYTES, RATIO * archive.stat().st_size)


def _counted(done: int, block: bytes, limit: int, archive: Path, shown: str) -> int:
    done += len(block)
    if done > limit:
        raise SourceError(
            f"{shown} unpacks to more than {limit:,} bytes, from {archive.stat().st_size:,}: it may have no end",
            field=shown,
            hint="look at the archive; where it is whole, unpack it and name the file",
        )
    return done


def _no_room(folder: Path, fault: OSError) -> StoreError:
    hint = (
        "free some space there, or point TMPDIR to a larger disk"
        if fault.errno in _NO_ROOM
        else "point TMPDIR to a folder that can be written"
    )
    return StoreError(f"the scratch folder {folder} cannot be written: {fault.strerror or fault}", field="TMPDIR", hint=hint)
