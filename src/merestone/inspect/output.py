"""Files that a person asks for (`out`, `html`, `errors` ...): where they may be written, and that they are written whole or not at all.

Not here: what they hold (`extract`, `render`), objects of a dataset (`storage`, which alone writes there).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path

import pyarrow as pa

from merestone.dataset.current import MANIFESTS, POINTER
from merestone.errors import StoreError, UsageError
from merestone.inspect.browse import parse_address
from merestone.lineage.store.writing import ROOT, RUNS
from merestone.publication.reader import named_places
from merestone.source.located import files_beside
from merestone.storage.place import local_path, parse_place

_counter = itertools.count()  # of the outputs of this process, which its threads may write to one path
_MARKS = (POINTER, MANIFESTS, f"{ROOT}/{RUNS}")  # any of these makes a folder one of Merestone's


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None] = ()) -> None:
    """Refuse to write over what a command reads, into a dataset, or to one file twice. To be called before anything is read.

    Links, `..`, another spelling and hard links make no difference.

    Args:
        outputs: parameter to the file that it names; None where it was not given.
        inputs: what the command reads, as typed; None where it was not given. With a publication file goes all that it names: contract,
            source, key migration, grids, destination. With a shapefile go its parts.

    Raises:
        UsageError: one of them may not be written.
    """
    read = [each for typed in inputs if typed is not None for each in _inputs_of(typed)]
    seen: dict[str, str] = {}
    for parameter, typed in outputs.items():
        if typed is None:
            continue
        target = _target(typed, parameter)
        for place in read:
            if _same(target, place) or (not Path(place).is_file() and _below(target, place)):
                raise _refused(typed, parameter, f"is what this command reads ({place})" if _same(target, place) else f"lies in {place}")
        twin = next((each for each, path in seen.items() if _same(path, target)), None)
        if twin is not None:
            raise _refused(typed, parameter, f"is also the file of {twin}")
        seen[parameter] = target


@contextmanager
def written_whole(path: str, parameter: str = "out") -> Iterator[str]:
    """A temporary name beside `path` to write to; it takes the place of `path` at the end, and is gone where something went wrong.

    Raises:
        UsageError: `path` is not a file of this machine, or lies in a dataset.
        StoreError: the place cannot be written.
    """
    target = Path(_target(path, parameter))
    place = target.with_name(f".{target.stem}.{os.getpid()}-{next(_counter)}.part{target.suffix}")  # noqa: TID251 - others may write beside us
    try:
        yield str(place)
        place.replace(target)
    except (OSError, pa.ArrowException, RuntimeError) as fault:  # RuntimeError: what pyogrio raises, whatever GDAL met
        raise StoreError(
            f"{path} cannot be written: {getattr(fault, 'strerror', None) or fault}",
            field=path,
            hint="check the folder, its permissions and the space on the disk",
        ) from fault
    finally:
        with suppress(OSError):  # what cannot be removed is a leftover with a telling name, and the first fault is the one to tell
            place.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text as UTF-8, whole or not at all. Raises StoreError where it cannot be written."""
    with written_whole(fspath(path)) as place:
        Path(place).write_text(text, encoding="utf-8", newline="\n")


def _target(typed: str, parameter: str) -> str:
    """The absolute path of an output. Raises UsageError where it lies in a dataset or is a folder."""
    path = local_path(typed, field=parameter, what="a file to write")
    if Path(path).is_dir():
        raise _refused(typed, parameter, "is a folder")
    for folder in {*Path(path).parents, *Path(os.path.realpath(path)).parents}:
        # Path.exists() raises for a folder that may not be entered.
        if any(os.path.exists(folder / mark) for mark in _MARKS):  # noqa: PTH110
            raise _refused(typed, parameter, f"lies in the dataset {folder}")
    return path


def _refused(typed: str, parameter: str, why: str) -> UsageError:
    return UsageError(f"{typed}, to be written for {parameter}, {why}; nothing was written", field=parameter, hint="name another file")


def _inputs_of(typed: str) -> list[str]:
    """The local files and folders that stand behind an argument: a file with its parts, a dataset, a publication file with all it names."""
    address = parse_address(typed)
    place = parse_place(address.where)
    if not place.is_local:
        return []
    found = [place.path, *map(str, files_beside(place.path))]
    if Path(place.path).suffix.lower() in (".yaml", ".yml", ".json") and Path(place.path).is_file():
        for named in named_places(place.path).values():
            if not parse_place(named).is_local:
                continue
            found += [named, *map(str, files_beside(named))]
    return found


def _same(one: str, other: str) -> bool:
    """Whether two paths are one file: by name behind all links, or, where both exist, by what the disk says (hard links, case)."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - of two texts
    except OSError:  # one of them does not exist
        return False


def _below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, which need not exist yet, also through links and under another spelling of the folder."""
    real = Path(os.path.realpath(path))
    return real.is_relative_to(os.path.realpath(folder)) or any(_same(str(each), folder) for each in real.parents)
