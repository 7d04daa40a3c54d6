"""Which version is current: the pointer, and the manifest that it names, read and proved.

Not here: moving the pointer (`writer.commit`), reading rows (`version`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from merestone.dataset.manifest import Manifest, sha256
from merestone.dataset.record import read_records
from merestone.document.json_reader import parse_json
from merestone.document.own_digest import fault_of, with_digest
from merestone.errors import CorruptError
from merestone.storage.port import Store

POINTER = "_current.json"
MANIFESTS = "_manifests/"
_NAME = re.compile(r"_manifests/v(\d{6,})\.json")
_RESTORE = "restore it from a backup; «verify(DATASET)» names every damaged file"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The content of `_current.json`. `sha256` is that of the manifest's bytes, so no two pointers are ever equal."""

    manifest: str
    version: int
    run_id: str
    sha256: str

    def to_bytes(self) -> bytes:
        """The bytes that stand on disk (UTF-8 JSON), with their own digest, which shows whether the pointer or its manifest is damaged."""
        return with_digest({"manifest": self.manifest, "version": self.version, "run_id": self.run_id, "sha256": self.sha256})

    @classmethod
    def from_bytes(cls, data: bytes) -> Pointer:
        """Read a pointer.

        Raises:
            CorruptError: the bytes are not a pointer, or not as they were written.
        """
        try:
            doc = parse_json(data)
            if fault := fault_of(data):
                raise CorruptError(f"{POINTER} {fault}", field=POINTER, hint=_RESTORE)
            return cls(doc["manifest"], int(doc["version"]), str(doc["run_id"]), str(doc["sha256"]))
        except (ValueError, KeyError, TypeError) as fault:
            raise CorruptError(f"{POINTER} is not a readable pointer: {fault!r}", field=POINTER, hint=_RESTORE) from fault


@dataclass(frozen=True, slots=True)
class Current:
    """The version that readers see: the pointer's bytes (what a swap has to find), its manifest and the manifest's checksum."""

    pointer_bytes: bytes
    pointer: Pointer
    manifest: Manifest
    sha256: str


def manifest_name(version: int) -> str:
    """The name of a version's manifest."""
    return f"{MANIFESTS}v{version:06d}.json"


def manifest_numbers(store: Store) -> list[int]:
    """The numbers of all manifests that stand in the store, orphans too, ascending."""
    found = (_NAME.fullmatch(name) for name, _ in store.list(MANIFESTS))
    return sorted(int(match[1]) for match in found if match)


def read_manifest(store: Store, version: int, checksum: str) -> Manifest:
    """One manifest, proved by the checksum that its successor or the pointer carries.

    Raises:
        CorruptError: it is missing, altered, or not the manifest of that version.
    """
    name = manifest_name(version)
    try:
        data = store.get(name)
    except FileNotFoundError:
        raise CorruptError(f"{name} is missing", field=name, hint=_RESTORE) from None
    if sha256(data) != checksum:
        raise CorruptError(f"{name} is altered: its checksum is not the one recorded", field=name, hint=_RESTORE)
    manifest = Manifest.from_bytes(data, where=name)
    if manifest.version != version:
        raise CorruptError(f"{name} says that it is version {manifest.version}", field=name, hint=_RESTORE)
    return manifest


def current(store: Store) -> Current | None:
    """The current version, or None where nothing was ever published here.

    Manifests without a pointer are the leftovers of a first publish that was cut off, and legal, as long as nothing says more was there.

    Raises:
        CorruptError: the pointer or its manifest is missing, altered or unreadable. Never taken for "nothing there".
    """
    try:
        data = store.get(POINTER)
    except FileNotFoundError:
        _nothing_published(store)
        return None
    pointer = Pointer.from_bytes(data)
    if pointer.manifest != manifest_name(pointer.version):
        raise CorruptError(f"{POINTER} names {pointer.manifest} for version {pointer.version}", field=POINTER, hint=_RESTORE)
    manifest = read_manifest(store, pointer.version, pointer.sha256)
    if manifest.run_id != pointer.run_id:
        raise CorruptError(f"{POINTER} names run {pointer.run_id}, {pointer.manifest} run {manifest.run_id}", field=POINTER, hint=_RESTORE)
    return Current(data, pointer, manifest, pointer.sha256)


def chain(store: Store, head: Current) -> Iterator[tuple[Manifest, str]]:
    """The current version and its ancestors, newest first, each with its checksum; every link is proved.

    Raises:
        CorruptError: an ancestor is missing or altered.
    """
    manifest, checksum = head.manifest, head.sha256
    while True:
        yield manifest, checksum
        if manifest.parent is None:
            return
        if manifest.parent_sha256 is None or manifest.parent >= manifest.version:
            name = manifest_name(manifest.version)
            raise CorruptError(f"{name} names no possible parent", field=name, hint=_RESTORE)
        checksum = manifest.parent_sha256
        manifest = read_manifest(store, manifest.parent, checksum)


def _nothing_published(store: Store) -> None:
    """Tell the leftovers of an unfinished first publish from a dataset that lost its pointer."""
    for number in manifest_numbers(store):
        name = manifest_name(number)
        if Manifest.from_bytes(store.get(name), where=name).parent is not None:
            raise CorruptError(f"{POINTER} is missing, but {name} has a parent: versions were published here", field=POINTER, hint=_RESTORE)
    for record in read_records(store):
        if record.status in ("published", "unchanged", "rolled_back"):
            raise CorruptError(
                f"{POINTER} is missing, but run {record.run_id} published version {record.version} here", field=POINTER, hint=_RESTORE
            )
