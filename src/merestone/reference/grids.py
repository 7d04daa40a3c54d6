"""Grid files by name: which ones an operation reads, where they are, and the text of the operation with those places in it.

PROJ finds grids by name in folders that hold for a process, and pyproj keeps one list of them for all threads. So the names are settled here,
and PROJ is given absolute paths: what another publication, thread or library has set cannot reach an operation. Not here: looking into folders
(`source.grids`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

_GRIDS = re.compile(r'(?P<head>(?:^|\s)\+?(?:grids|nadgrids|geoidgrids|xy_grids|z_grids|file|model)=)(?P<names>"[^"]*"|\S+)')
_BUILT_IN = ("null",)  # PROJ's own names for "no shift"


@dataclass(frozen=True, slots=True)
class GridFile:
    """One grid file of this machine. `sha256` is that of its bytes, in hex: the same name may stand for other numbers elsewhere."""

    name: str
    path: str
    sha256: str

    def to_json(self) -> dict[str, str]:
        """What decides the numbers: the record of a version, and part of the processing key. The path decides nothing."""
        return {"name": self.name, "sha256": self.sha256}


class GridFiles(Protocol):
    """The grid files that one publication may use."""

    def get(self, name: str) -> GridFile | None:
        """The file with a name, None where there is none."""
        ...


class NoGrids:
    """No grid file at all."""

    def get(self, name: str) -> GridFile | None:
        """None, whatever is asked for."""
        del name
        return None


def names_in(pipeline: str) -> tuple[str, ...]:
    """The grid files that an operation cannot do without, in order: an optional one is written with @ before its name."""
    found = [name for match in _GRIDS.finditer(pipeline) for name in match["names"].strip('"').split(",")]
    return tuple(dict.fromkeys(name for name in found if not name.startswith("@") and name not in _BUILT_IN))


def with_paths(pipeline: str, files: Mapping[str, str]) -> str:
    """The text of an operation with paths in the place of names. An optional grid without a path is left out."""

    def placed(match: re.Match[str]) -> str:
        wanted = match["names"].strip('"').split(",")
        kept = [files.get(name.removeprefix("@"), name) for name in wanted if not name.startswith("@") or name[1:] in files]
        return f'{match["head"]}"{",".join(kept or _BUILT_IN)}"'

    return _GRIDS.sub(placed, pipeline)
