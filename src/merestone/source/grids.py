"""The grid files of this machine that one publication may use: its own folder, then PROJ's.

Not here: which grids an operation reads (`reference.grids`).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

import pyproj.datadir

from merestone.errors import UsageError
from merestone.reference.grids import GridFile


@dataclass(frozen=True, slots=True)
class GridFolders:
    """Folders in the order in which a grid file is looked for. Equal values find equal files wherever they are used."""

    folders: tuple[str, ...]

    @classmethod
    def of(cls, folder: str | None) -> GridFolders:
        """The folder that a publication names, if any, then the folders of this machine's PROJ.

        Raises:
            UsageError: the folder does not exist, or its path has a character that PROJ takes for the end of a path.
        """
        if folder is not None and any(each in folder for each in ',"'):
            raise UsageError(f"{folder} has a comma or a quotation mark in its path", field="crs.grids", hint="rename the folder")
        if folder is not None and not Path(folder).is_dir():
            raise UsageError(f"{folder} is not a folder", field="crs.grids", hint="name the folder that holds the grid files")
        own = pyproj.datadir.get_data_dir().split(os.pathsep)
        return cls((*([folder] if folder is not None else []), *own, pyproj.datadir.get_user_data_dir()))  # type: ignore[attr-defined]  # public, without a stub

    def get(self, name: str) -> GridFile | None:
        """The file with a name, or with the name that PROJ's database gives the same grid; None where there is none."""
        for each in (name, *_other_names(name)):
            for folder in self.folders:
                path = Path(folder, each)
                if path.is_file():
                    kept = path.stat()
                    return GridFile(name, str(path), _sha256(str(path), kept.st_size, kept.st_mtime_ns))
        return None


@lru_cache(maxsize=64)
def _sha256(path: str, size: int, mtime_ns: int) -> str:
    """The digest of a file's bytes; size and time tell a file that was replaced from the one that was read before."""
    del size, mtime_ns
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=64)
def _other_names(name: str) -> tuple[str, ...]:
    """What a grid was called before PROJ published it as GeoTIFF, such as BETA2007.gsb."""
    database = Path(pyproj.datadir.get_data_dir().split(os.pathsep)[0], "proj.db").absolute()
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT old_proj_grid_name, original_grid_name FROM grid_alternatives WHERE proj_grid_name = ?", (name,))
        return tuple(dict.fromkeys(each for row in rows for each in row if each))
