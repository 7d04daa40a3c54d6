"""Whether the folders of an event store, ours or another's, are fit to be read: one spelling per reference system, known schema versions.

The rows are opened: a folder that names another run or system than its rows is a fault, and so is a part that no sealed run lists.
Not here: whether the events themselves are complete (`complete`) or unaltered (`proof`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.errors import CorruptError
from merestone.lineage.event.schema import SCHEMA, VERSION_KEY
from merestone.lineage.store.run_manifest import read_manifest
from merestone.lineage.store.writing import RUNS, below
from merestone.reference.identity import canonical_crs, is_canonical
from merestone.storage.place import shown_place
from merestone.storage.port import Store

_KEY = "target_crs="
_IN_ROWS = ("run_id", "target_crs")
_OURS = re.compile(r"part-\d+-[^-]+-\d{5,}\.parquet")


def check_partitions(store: Store, root: str = "", *, require_epsg_target: bool = True, allow_empty: bool = False) -> list[str]:
    """What is wrong with the folders and files of an event store, one sentence each; empty where nothing is.

    Args:
        store: any store, also one that Merestone did not write.
        root: the event store in it.
        require_epsg_target: every `target_crs=` folder has to name a canonical EPSG code.
        allow_empty: a root without event files passes.

    Raises:
        StoreError: the store cannot be read.
    """
    prefix = f"{root}/" if root else ""
    names = [name.removeprefix(prefix) for name, _ in store.list(prefix)]
    parts = [name for name in names if name.endswith(".parquet") and not _hidden(name)]
    problems: list[str] = []
    if not parts and not allow_empty:
        problems.append(f"{shown_place(store.url)}/{root}".rstrip("/") + " holds no event files")
    paths = [*parts, *_empty_folders(store, root)]
    folders = sorted({segment for path in paths for segment in path.split("/") if segment.startswith(_KEY)})
    spellings: dict[str, list[str]] = {}
    for folder in folders:
        target = unquote(folder.removeprefix(_KEY))
        if require_epsg_target and not is_canonical(target):
            problems.append(f"folder {folder}: {target!r} is not a canonical EPSG:<code>")
        spellings.setdefault(_meant(target), []).append(folder)
    problems += [f"folders {', '.join(alike)} mean one system, {meant}" for meant, alike in sorted(spellings.items()) if len(alike) > 1]
    for name in parts:
        if not any(segment.startswith(_KEY) for segment in name.split("/")):
            problems.append(f"{name} is in no {_KEY} folder")
        problems += _file_problems(store, prefix, name)
    return [*problems, *_unlisted(store, root, parts)]


def _unlisted(store: Store, root: str, parts: Sequence[str]) -> Iterator[str]:
    """Parts that no sealed run lists: no reader counts them. A store of another tool has no run manifests, and parts of other names."""
    names = [name for name, _ in store.list(below(root, f"{RUNS}/")) if name.endswith(".json")]
    listed: set[str] = set()
    for name in names:
        try:
            listed.update(part.path for part in read_manifest(store, name).parts)
        except CorruptError as fault:
            yield fault.message
    for part in parts:
        if part not in listed and (names or _OURS.fullmatch(part.rpartition("/")[2])):
            yield f"{part} is listed by no sealed run"


def _file_problems(store: Store, prefix: str, name: str) -> Iterator[str]:
    try:
        with store.open(prefix + name) as file:
            reader = pq.ParquetFile(file)
            metadata: dict[bytes, bytes] = reader.schema_arrow.metadata or {}
            yield from _other_rows(reader, name)
    except (pa.ArrowException, OSError, ValueError) as fault:
        yield f"{name} cannot be read: {fault}"
        return
    version = metadata.get(VERSION_KEY, b"").decode(errors="replace")
    if not version:
        yield f"{name} does not say by which version of the lineage schema it was written"
    elif not _known(version):
        yield f"{name} is of lineage schema {version}; known is {SCHEMA.version} and what came before it"


def _other_rows(reader: pq.ParquetFile, name: str) -> Iterator[str]:
    """What the folders of a file say of its rows, against the rows."""
    said = {key: unquote(value) for key, _, value in (each.partition("=") for each in name.split("/")[:-1]) if key in _IN_ROWS}
    there = [each for each in said if each in reader.schema_arrow.names]
    for each in said.keys() - set(there):
        yield f"{name} has no column {each}"
    found: dict[str, set[str]] = {each: set() for each in there}
    for batch in reader.iter_batches(columns=there) if there else ():
        for each in there:
            found[each].update(map(str, pc.unique(batch.column(each)).to_pylist()))
    for each in there:
        if others := sorted(found[each] - {said[each]}):
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            yield f"{name} holds rows of {each} {', '.join(map(repr, others[:3]))}{more}; its folder says {said[each]!r}"


def _known(version: str) -> bool:
    try:
        major, minor, _ = map(int, version.split("."))
    except ValueError:
        return False
    known_major, known_minor, _ = map(int, SCHEMA.version.split("."))
    return major == known_major and 2 <= minor <= known_minor  # 1.2.0 was the first


def _meant(target: str) -> str:
    """The system that a folder means, in one spelling; what names no system means itself."""
    try:
        return canonical_crs(target)
    except ValueError:
        return target.casefold()


def _hidden(name: str) -> bool:
    return any(segment.startswith((".", "_")) for segment in name.split("/"))


def _empty_folders(store: Store, root: str) -> Iterator[str]:
    """Folders without a file, which only a disk has: `Store.list` cannot see them."""
    prefix = f"{root}/" if root else ""
    for each in store.strays(prefix):
        name = each.removeprefix(prefix)
        if not _hidden(name):
            yield name
