"""The digest of a delivery's files, for deliveries that nothing else identifies: those without keys, or with columns that cannot be read.

Not here: digests of rows (`identity.digest`), which files belong to a delivery (`located`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from merestone.errors import SourceError
from merestone.source.located import files_beside

_BLOCK = 1 << 20


def digest_of_bytes(path: str) -> str:
    """The SHA-256 over the bytes of a delivery's files, sorted by name, each after its length (8 bytes, big-endian); hex.

    Raises:
        SourceError: a file cannot be read.
    """
    place = Path(path)
    files = {each for each in place.rglob("*") if each.is_file()} if place.is_dir() else {place, *files_beside(path)}
    total = hashlib.sha256()
    try:
        for each in sorted(files):
            total.update(each.stat().st_size.to_bytes(8))
            with each.open("rb") as file:
                while block := file.read(_BLOCK):
                    total.update(block)
    except OSError as fault:
        raise SourceError(
            f"{path} cannot be read: {fault.strerror or fault}", field=path, hint="check the file and its permissions"
        ) from fault
    return total.hexdigest()
