"""The head of a dataset's record: what, kept in another place, answers for all that was ever published, sealed or recorded in it.

Not here: what the objects inside the dataset answer for each other (`verify`, `witnesses`).

Somebody who may write to the store can take the newest run away with every trace of it. A head that was printed, signed or stored under an object lock
names the current manifest, the sealed runs that no other names, and what no run lists yet. From these everything older can be reached.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merestone.dataset.current import current
from merestone.dataset.verify import Damage
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError, SourceError, UsageError
from merestone.json_value import Json, JsonObject
from merestone.lineage.event.checked_json import HASH, PATH, read_json
from merestone.lineage.store.witness import seen
from merestone.lineage.store.writing import checksum_of
from merestone.storage.place import local_path
from merestone.storage.port import Store

FORMAT = 1
_OBJECT = {"path": PATH, "sha256": HASH}
_FORM: JsonObject = {"format": int, "version": (None, int), "objects": [_OBJECT], "digest": HASH}


@dataclass(frozen=True, slots=True)
class Head:
    """What a head names. `objects` are `path` and `sha256` of the current manifest, the heads of the runs, and what no run lists yet."""

    version: int | None
    runs: tuple[str, ...]
    objects: tuple[dict[str, str], ...]

    @property
    def digest(self) -> str:
        """One digest over all of it."""
        return digest_of(self.version, self.objects)


def head_of(dataset: Dataset) -> Head:
    """The head as it is now.

    Raises:
        UsageError: nothing was ever published or sealed there.
        CorruptError: what is current cannot be read.
    """
    store, now = dataset.store, current(dataset.store)
    state = seen(store)
    objects = [{"path": each["run_manifest"], "sha256": each["sha256"]} for each in state.heads]
    objects += [{"path": each["path"], "sha256": each["sha256"]} for each in state.remembered(store)]
    if now is not None:
        objects.append({"path": now.pointer.manifest, "sha256": now.sha256})
    if not objects:
        raise UsageError(f"{dataset.url} holds nothing that a head could name", field=dataset.url, hint="check the path")
    return Head(
        now.manifest.version if now is not None else None,
        tuple(each["run_manifest"] for each in state.heads),
        tuple(sorted(objects, key=lambda each: each["path"])),
    )


def digest_of(version: int | None, objects: Any) -> str:
    """The SHA-256 of version and objects, as JSON with sorted names and without blanks."""
    text = json.dumps({"version": version, "objects": list(objects)}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_head(path: str) -> JsonObject:
    """A head that was kept in a file.

    Raises:
        SourceError: the file cannot be read, is not a head, or its digest is another.
    """
    try:
        found = read_json(Path(local_path(path, what="a head")).read_bytes(), _FORM)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise SourceError(
            f"{path} is not a readable head: {reason}", field="head", hint="give the file that «lineage.head(DATASET, out=FILE)» wrote"
        ) from fault
    if digest_of(found["version"], found["objects"]) != found["digest"]:
        raise SourceError(f"{path} is altered: its digest is another", field="head", hint="compare the digest with one kept elsewhere")
    return found


def missing(store: Store, head: Mapping[str, Json]) -> Iterator[Damage]:
    """What a head that was kept names and what is not in the dataset any more, or not as it was then."""
    for each in head["objects"]:
        try:
            found = checksum_of(store, each["path"])[1]
        except FileNotFoundError:
            found = "nothing"
        if found != each["sha256"]:
            problem = "is missing: the head names it" if found == "nothing" else "is not what the head names"
            yield Damage(each["path"], problem, f"sha256 {each['sha256']}", found if found == "nothing" else f"sha256 {found}", ())
    try:
        now = current(store)
    except CorruptError:
        return  # `verify` names the pointer or the manifest
    if head["version"] is not None and (now is None or now.manifest.version < head["version"]):
        stands = f"version {now.manifest.version}" if now is not None else "nothing"
        yield Damage("_current.json", "is behind the head", f"version {head['version']} or later", stands, ())
