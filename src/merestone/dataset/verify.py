"""Proof that a published dataset is whole: pointer, chain of manifests, and every object of every version, byte by byte.

Not here: mending (nothing is changed), exit codes (`cli`), lineage (`lineage.proof`; `audit.verify` joins the two).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.columnar import hashing
from merestone.dataset.current import POINTER, Current, chain, current, manifest_name, manifest_numbers
from merestone.dataset.history import lines
from merestone.dataset.index import load_table
from merestone.dataset.known import Sum, halves
from merestone.dataset.log import objects
from merestone.dataset.manifest import DataFile, Manifest, ObjectRef, line_of, sha256
from merestone.dataset.pages import PartitionFiles, live_files
from merestone.dataset.proved import checksum, footer_of
from merestone.dataset.tables import IndexRows
from merestone.document.json_reader import parse_json
from merestone.errors import CorruptError, UsageError
from merestone.json_value import JsonObject
from merestone.results.progress import Watch, nobody, staged
from merestone.storage.place import shown_place
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it should be: which object, what was expected, what was found, which versions name it."""

    path: str
    problem: str
    expected: str
    observed: str
    versions: tuple[int, ...]

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return asdict(self) | {"versions": list(self.versions)}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at, and what is wrong. `orphans` are manifests outside the chain: legal, left by attempts that were cut off.

    `manifests` are those in the chain, newest first; `named` the objects that they name, None where that cannot be known.
    """

    versions: tuple[int, ...]
    objects: int
    bytes: int
    rows: int
    damages: tuple[Damage, ...]
    orphans: tuple[str, ...]
    manifests: tuple[Manifest, ...] = field(default=(), repr=False)
    named: frozenset[str] | None = field(default=None, repr=False)

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damages

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {
            "status": "whole" if self.whole else "damaged",
            "versions": list(self.versions),
            "objects": self.objects,
            "bytes": self.bytes,
            "rows": self.rows,
            "damages": [each.to_json() for each in self.damages],
            "orphans": list(self.orphans),
        }


def verify(store: Store, watch: Watch = nobody) -> VerifyReport:
    """Read everything that a version names and compare it with what the manifests say.

    Args:
        store: where the dataset is.
        watch: is called after each object.

    Returns:
        All damages at once: what cannot be read is a damage, not an exception.

    Raises:
        UsageError: nothing was ever published here.
        StoreError: the store cannot be reached.
    """
    damages: list[Damage] = []
    versions = _versions(store, damages)
    pages: dict[str, dict[str, PartitionFiles]] = {}
    named: dict[str, tuple[ObjectRef, list[Manifest]]] = {}
    for manifest in versions:
        for ref in _named(store, manifest, pages, damages):
            known, users = named.setdefault(ref.path, (ref, []))
            users.append(manifest)
            if (known.bytes, known.sha256, known.rows) != (ref.bytes, ref.sha256, ref.rows):
                damages.append(
                    Damage(
                        ref.path,
                        "two versions say different things of one object",
                        f"{known.rows} rows, {known.sha256}",
                        f"{ref.rows} rows, {ref.sha256}",
                        tuple(each.version for each in users),
                    )
                )
    total = rows = 0
    partial = bool(damages)  # a chain or pages that cannot be read may name more
    broken = {each.path for each in damages}
    with staged(watch, "prove", sum(ref.rows for ref, _ in named.values())) as met:
        for path in sorted(named):
            ref, users = named[path]
            found = list(damages_of_object(store, ref, tuple(each.version for each in users)))
            damages += found
            broken |= {each.path for each in found}
            total += ref.bytes
            rows += ref.rows
            met(ref.rows)
    for manifest in versions:
        damages += _sums(store, manifest, pages)
    if versions and not any(ref.path in broken for ref in (*_index_objects(versions[0]), *versions[0].files.pages)):
        damages += _index(store, versions[0], pages)
    chained = {manifest.version for manifest in versions}
    orphans = tuple(manifest_name(number) for number in manifest_numbers(store) if versions and number not in chained)
    whole = None if partial else frozenset(named)
    return VerifyReport(tuple(sorted(chained)), len(named), total, rows, tuple(damages), orphans, tuple(versions), whole)


def damages_of(store: Store, manifest: Manifest, watch: Watch = nobody) -> list[Damage]:
    """All that is wrong with the objects of one version: every byte is read, counts are added up. `watch` is called after each object."""
    damages: list[Damage] = []
    pages: dict[str, dict[str, PartitionFiles]] = {}
    named = {each.path: each for each in _named(store, manifest, pages, damages)}.values()
    with staged(watch, "prove", sum(each.rows for each in named)) as met:
        for ref in named:
            damages += damages_of_object(store, ref, (manifest.version,))
            met(ref.rows)
    return [*damages, *_sums(store, manifest, pages)]


def _versions(store: Store, damages: list[Damage]) -> list[Manifest]:
    """The versions that can be reached from the pointer, newest first; where the chain breaks is a damage."""
    out: list[Manifest] = []
    try:
        head = current(store)
        if head is None:
            shown = shown_place(store.url)
            raise UsageError(f"{shown} holds no published dataset", field=shown, hint="check the path")
        proved: list[tuple[Manifest, str]] = []
        for manifest, checksum in chain(store, head):
            out.append(manifest)
            proved.append((manifest, checksum))
        _history(store, head, proved, damages)
    except CorruptError as fault:
        seen = tuple(each.version for each in out)
        damages.append(Damage(fault.field or POINTER, fault.message, "a chain of versions down to the first", "it ends here", seen))
    return out


def _named(store: Store, manifest: Manifest, pages: dict[str, dict[str, PartitionFiles]], damages: list[Damage]) -> list[ObjectRef]:
    """Every object of a version; of one whose pages cannot be read, the pages."""
    try:
        return list(objects(store, manifest, pages))
    except CorruptError as fault:
        name = manifest_name(manifest.version)
        if fault.field not in {each.path for each in manifest.files.pages}:
            raise
        damages.append(Damage(str(fault.field), fault.message, "pages that add up to the files of the version", name, (manifest.version,)))
        return [*manifest.files.pages, manifest.changes, *_index_objects(manifest), *manifest.history.chunks]


def _history(store: Store, head: Current, versions: list[tuple[Manifest, str]], damages: list[Damage]) -> None:
    """The lines of the history against the manifests that they stand for."""
    try:
        said = list(lines(store, head))
    except CorruptError as fault:
        damages.append(Damage(fault.field or "_history/", fault.message, "a readable history", "none", (head.manifest.version,)))
        return
    held = [line_of(manifest, checksum) for manifest, checksum in versions]
    if said != held:
        wrong = sorted({each.version for each in (*said, *held) if each not in said or each not in held})
        name = manifest_name(head.manifest.version)
        damages.append(
            Damage(name, "the history differs from the manifests", f"{len(held)} versions", f"others at {wrong}", (head.manifest.version,))
        )


def damages_of_object(store: Store, ref: ObjectRef, versions: tuple[int, ...]) -> Iterator[Damage]:
    """What is wrong with one object: that it is missing, cut, altered, or no Parquet file with so many rows."""

    def damage(problem: str, expected: object, observed: object) -> Damage:
        return Damage(ref.path, problem, str(expected), str(observed), versions)

    size = store.size(ref.path)
    if size is None:
        yield damage("missing", f"{ref.bytes} bytes", "nothing")
        return
    if size != ref.bytes:
        yield damage("cut or grown", f"{ref.bytes} bytes", f"{size} bytes")
        return
    try:
        with store.open(ref.path) as handle:
            found = checksum(handle)
            if found != ref.sha256:
                yield damage("altered", f"sha256 {ref.sha256}", f"sha256 {found}")
                return
            if ref.footer_sha256 is not None and sha256(footer_of(handle, ref.bytes)) != ref.footer_sha256:
                yield damage("another footer than the manifest says", f"sha256 {ref.footer_sha256}", "another")
            handle.seek(0)
            meta = pq.read_metadata(handle)
    except (OSError, ValueError, pa.ArrowException) as fault:
        yield damage("unreadable", "a Parquet file", fault)
        return
    if meta.num_rows != ref.rows:
        yield damage("another number of rows", ref.rows, meta.num_rows)
    if isinstance(ref, DataFile):
        problem = _geo_problem((meta.metadata or {}).get(b"geo"))
        if problem:
            yield damage("not GeoParquet", "`geo` metadata of GeoParquet 1.1 with primary column, CRS and covering", problem)


def _geo_problem(geo: bytes | None) -> str | None:
    if geo is None:
        return "no `geo` metadata"
    try:
        doc = parse_json(geo)
        column = doc["columns"][doc["primary_column"]]
        missing = [name for name in ("encoding", "geometry_types", "crs", "covering") if name not in column]
        if not str(doc["version"]).startswith("1.1"):
            return f"version {doc['version']}"
        return f"no {', '.join(missing)}" if missing else None
    except (ValueError, KeyError, TypeError) as fault:
        return f"unreadable: {fault!r}"


def _sums(store: Store, manifest: Manifest, pages: dict[str, dict[str, PartitionFiles]]) -> Iterator[Damage]:
    if any(each.path not in pages for each in manifest.files.pages):
        return  # a page that cannot be read is among the damages
    rows = sum(file.rows for file in live_files(store, manifest.files, pages))
    if rows != manifest.features:
        yield Damage(
            manifest_name(manifest.version), "the files do not add up", f"{manifest.features} features", f"{rows} rows", (manifest.version,)
        )


def _index_objects(manifest: Manifest) -> Iterator[ObjectRef]:
    if manifest.index.checkpoint:
        yield manifest.index.checkpoint
    yield from (ref for _, ref in manifest.index.log)


def _index(store: Store, manifest: Manifest, pages: dict[str, dict[str, PartitionFiles]]) -> Iterator[Damage]:
    """The feature index of the current version against its files and its set digest."""
    name = manifest_name(manifest.version)
    versions = (manifest.version,)
    try:
        rows = IndexRows(load_table(store, manifest.index))
    except CorruptError as fault:
        yield Damage(fault.field or "_index/", fault.message, "a readable index", "none", versions)
        return
    if len(rows) != manifest.features:
        yield Damage(name, "the index does not add up", f"{manifest.features} features", f"{len(rows)} keys", versions)
    counted = pc.value_counts(rows.partition.cast(pa.string()))
    indexed = {each["values"]: each["counts"] for each in counted.to_pylist()}
    filed: dict[str, int] = {}
    for file in live_files(store, manifest.files, pages):
        filed[file.partition] = filed.get(file.partition, 0) + file.rows
    for partition in sorted({*indexed, *filed}):
        if indexed.get(partition, 0) != filed.get(partition, 0):
            yield Damage(
                name,
                f"partition {partition or '(none)'} does not add up",
                f"{indexed.get(partition, 0)} features in the index",
                f"{filed.get(partition, 0)} rows in the files",
                versions,
            )
    digest = Sum()
    digest.add(halves(hashing.blake2b16(rows.key.combine_chunks())), halves(rows.digest))
    if str(digest) != manifest.set_digest:
        yield Damage(name, "the set digest is not that of the index", manifest.set_digest, str(digest), versions)
