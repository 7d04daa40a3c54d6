"""What a published version is: the manifest as a value, and its JSON form.

Not here: writing it (`writer.commit`), its file entries (`pages`), the versions before it (`history`), the rows behind it (`rows`), the
state of the features (`index`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from merestone.document.json_reader import parse_json
from merestone.errors import CorruptError
from merestone.json_value import JsonObject

FORMAT = 1
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """An object that a version names: its path relative to the dataset, and what proves that it is whole.

    `rows` counts rows (Parquet) or lines. `footer_sha256` is the SHA-256 of a Parquet footer with its length and magic bytes, None for
    other objects; `tag` the store's own mark of the content as it answered to the upload, None where the store has none.
    """

    path: str
    rows: int
    bytes: int
    sha256: str
    footer_sha256: str | None = field(default=None, kw_only=True)
    tag: str | None = field(default=None, kw_only=True)

    def to_json(self) -> JsonObject:
        """The JSON object."""
        proof = {"footer_sha256": self.footer_sha256, "tag": self.tag}
        return {"path": self.path, "rows": self.rows, "bytes": self.bytes, "sha256": self.sha256, **proof}

    @classmethod
    def from_json(cls, doc: JsonObject) -> ObjectRef:
        """Read the JSON object back."""
        return cls(doc["path"], doc["rows"], doc["bytes"], doc["sha256"], footer_sha256=doc["footer_sha256"], tag=doc["tag"])


@dataclass(frozen=True, slots=True)
class DataFile(ObjectRef):
    """A GeoParquet file of the version. `bbox` is x, y minimum then maximum in the contract's CRS, None where no row has a position.

    `partition` is the partition's name (its folder below `data/`, "" for a dataset without partitions); `version` and `run_id` are those
    that wrote the file and its lineage.
    """

    partition: str = ""
    bbox: Box | None = None
    version: int = 0
    run_id: str = ""

    def to_json(self) -> JsonObject:
        """The JSON object, as `files` answers it."""
        return {
            **super(DataFile, self).to_json(),
            "partition": self.partition,
            "bbox": list(self.bbox) if self.bbox is not None else None,
            "version": self.version,
            "run_id": self.run_id,
        }


@dataclass(frozen=True, slots=True)
class FileSet:
    """The live data files of a version. `pages` hold their entries, oldest first: a checkpoint of all, and what later versions replaced.

    `count`, `bytes` and `bbox` (x, y minimum then maximum in the contract's CRS, None where no row has a position) are those of all live
    files together. Only `pages.live_entries` reads the pages.
    """

    pages: tuple[ObjectRef, ...] = ()
    count: int = 0
    bytes: int = 0
    bbox: Box | None = None

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {
            "count": self.count,
            "bytes": self.bytes,
            "bbox": list(self.bbox) if self.bbox is not None else None,
            "pages": [each.to_json() for each in self.pages],
        }

    @classmethod
    def from_json(cls, doc: JsonObject) -> FileSet:
        """Read the JSON object back."""
        bbox = doc["bbox"]
        return cls(
            tuple(ObjectRef.from_json(each) for each in doc["pages"]), doc["count"], doc["bytes"], tuple(bbox) if bbox is not None else None
        )


@dataclass(frozen=True, slots=True)
class IndexRef:
    """The feature index at a version: an optional checkpoint and the change logs after it, oldest first.

    A change log is the `_changes/` file of its version; a first version has no checkpoint, its log holds every feature.
    """

    checkpoint: ObjectRef | None
    checkpoint_version: int | None
    log: tuple[tuple[int, ObjectRef], ...]  # (version, change log)

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {
            "checkpoint": self.checkpoint.to_json() if self.checkpoint else None,
            "checkpoint_version": self.checkpoint_version,
            "log": [{"version": version, **ref.to_json()} for version, ref in self.log],
        }

    @classmethod
    def from_json(cls, doc: JsonObject) -> IndexRef:
        """Read the JSON object back."""
        checkpoint = doc["checkpoint"]
        return cls(
            ObjectRef.from_json(checkpoint) if checkpoint else None,
            doc["checkpoint_version"],
            tuple((each["version"], ObjectRef.from_json(each)) for each in doc["log"]),
        )


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """What the history keeps of one version: enough to find and prove its manifest, and to answer what needs no more than this.

    `sha256` is that of the manifest's bytes; `records` are the run records that first stood in the store when the version was committed.
    """

    version: int
    parent: int | None
    sha256: str
    run_id: str
    attempt: int
    time_utc: str
    contract_version: str
    contract_sha256: str
    key: JsonObject
    features: int
    counts: dict[str, int]
    set_digest: str
    delivery_digest: str
    changes: ObjectRef
    lineage: JsonObject | None
    rollback: JsonObject | None
    files_written: int
    files_carried: int
    bytes_written: int
    records: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "changes": self.changes.to_json(),
            "records": list(self.records),
        }

    @classmethod
    def from_json(cls, doc: JsonObject) -> HistoryLine:
        """Read the JSON object back; keys that later versions add are passed over."""
        known = {name: doc[name] for name in cls.__dataclass_fields__}
        return cls(**known | {"changes": ObjectRef.from_json(doc["changes"]), "records": tuple(doc["records"])})


@dataclass(frozen=True, slots=True)
class Chunk(ObjectRef):
    """A piece of the history: `rows` lines, of the versions `first` to `last`."""

    first: int = 0
    last: int = 0

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {**super(Chunk, self).to_json(), "first": self.first, "last": self.last}

    @classmethod
    def from_json(cls, doc: JsonObject) -> Chunk:
        """Read the JSON object back."""
        return cls.of(ObjectRef.from_json(doc), doc["first"], doc["last"])

    @classmethod
    def of(cls, ref: ObjectRef, first: int, last: int) -> Chunk:
        """The object `ref`, which holds the lines of the versions `first` to `last`."""
        return cls(ref.path, ref.rows, ref.bytes, ref.sha256, first, last, footer_sha256=ref.footer_sha256, tag=ref.tag)


@dataclass(frozen=True, slots=True)
class History:
    """The versions before this one, oldest first: older ones in chunks, the newest as lines of the manifest itself."""

    chunks: tuple[Chunk, ...] = ()
    recent: tuple[HistoryLine, ...] = ()

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return {"chunks": [each.to_json() for each in self.chunks], "recent": [each.to_json() for each in self.recent]}

    @classmethod
    def from_json(cls, doc: JsonObject) -> History:
        """Read the JSON object back."""
        return cls(tuple(Chunk.from_json(each) for each in doc["chunks"]), tuple(HistoryLine.from_json(each) for each in doc["recent"]))


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that one version is. Names are those of the JSON (docs/spec/manifest.md).

    `domain`: what a digest of this version means: layout, grids, CRS, edges, epoch.
    `processing`: what makes "the same bytes get the same verdict" true: source domain, rules hash, rule version, PROJ operation, layout.
    `partitioning`: the scheme, and the bounds of the Hilbert order; `tree`: for kdtree, the object that holds its splits.
    `history`: the versions before this one; the commit fills it in. `records`: as in `HistoryLine`. `bytes_written`: what the version
    added, its data files, change log, index, findings and pages.
    `counts`: the fates of the delivered rows and the classes, as in a publish result.
    `withdrawn`: delivery digests that a rollback took back; publishing one again trips a guard. `withdrawn_page` holds what it took back
    feature by feature, with digests of `withdrawn_domain`.
    """

    version: int
    parent: int | None
    parent_sha256: str | None
    run_id: str
    attempt: int
    time_utc: str
    name: str
    contract_version: str
    contract_sha256: str
    contract: JsonObject
    key: JsonObject
    domain: JsonObject
    processing: JsonObject
    partitioning: JsonObject
    features: int
    counts: dict[str, int]
    files: FileSet
    changes: ObjectRef
    index: IndexRef
    findings: ObjectRef | None
    lineage: JsonObject | None
    delivery: JsonObject
    set_digest: str
    files_written: int
    files_carried: int
    bytes_written: int = 0
    tree: ObjectRef | None = None
    history: History = field(default_factory=History)
    records: tuple[str, ...] = ()
    rollback: JsonObject | None = None
    withdrawn: tuple[str, ...] = ()
    withdrawn_page: ObjectRef | None = None
    withdrawn_domain: JsonObject | None = None
    tool: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> JsonObject:
        """The JSON object, keys in a fixed order."""
        return {
            "format": self.format,
            "version": self.version,
            "parent": self.parent,
            "parent_sha256": self.parent_sha256,
            "run_id": self.run_id,
            "attempt": self.attempt,
            "time_utc": self.time_utc,
            "name": self.name,
            "contract_version": self.contract_version,
            "contract_sha256": self.contract_sha256,
            "contract": self.contract,
            "key": self.key,
            "domain": self.domain,
            "processing": self.processing,
            "partitioning": self.partitioning,
            "tree": self.tree.to_json() if self.tree else None,
            "features": self.features,
            "counts": self.counts,
            "files": self.files.to_json(),
            "changes": self.changes.to_json(),
            "index": self.index.to_json(),
            "findings": self.findings.to_json() if self.findings else None,
            "lineage": self.lineage,
            "delivery": self.delivery,
            "set_digest": self.set_digest,
            "files_written": self.files_written,
            "files_carried": self.files_carried,
            "bytes_written": self.bytes_written,
            "rollback": self.rollback,
            "withdrawn": list(self.withdrawn),
            "withdrawn_page": self.withdrawn_page.to_json() if self.withdrawn_page else None,
            "withdrawn_domain": self.withdrawn_domain,
            "tool": self.tool,
            "records": list(self.records),
            "history": self.history.to_json(),
        }

    def to_bytes(self) -> bytes:
        """The bytes that stand on disk: UTF-8 JSON without NaN, a line for each key."""
        lines = (f"{json.dumps(name)}: {_compact(value)}" for name, value in self.to_json().items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> Manifest:
        """Read a manifest.

        Raises:
            CorruptError: the bytes are not a manifest that this version of Merestone understands.
        """
        try:
            doc = parse_json(data)
            if doc["format"] != FORMAT:
                raise CorruptError(
                    f"{where} has format {doc['format']}, this version of Merestone reads format {FORMAT}",
                    field=where,
                    hint="use the Merestone version that wrote it, or a newer one",
                )
            return cls(
                version=doc["version"],
                parent=doc["parent"],
                parent_sha256=doc["parent_sha256"],
                run_id=doc["run_id"],
                attempt=doc["attempt"],
                time_utc=doc["time_utc"],
                name=doc["name"],
                contract_version=doc["contract_version"],
                contract_sha256=doc["contract_sha256"],
                contract=doc["contract"],
                key=doc["key"],
                domain=doc["domain"],
                processing=doc["processing"],
                partitioning=doc["partitioning"],
                features=doc["features"],
                counts=doc["counts"],
                files=FileSet.from_json(doc["files"]),
                changes=ObjectRef.from_json(doc["changes"]),
                index=IndexRef.from_json(doc["index"]),
                findings=ObjectRef.from_json(doc["findings"]) if doc["findings"] else None,
                lineage=doc["lineage"],
                delivery=doc["delivery"],
                set_digest=doc["set_digest"],
                files_written=doc["files_written"],
                files_carried=doc["files_carried"],
                bytes_written=doc["bytes_written"],
                tree=ObjectRef.from_json(doc["tree"]) if doc["tree"] else None,
                history=History.from_json(doc["history"]),
                records=tuple(doc["records"]),
                rollback=doc.get("rollback"),
                withdrawn=tuple(doc["withdrawn"]),
                withdrawn_page=ObjectRef.from_json(doc["withdrawn_page"]) if doc["withdrawn_page"] else None,
                withdrawn_domain=doc["withdrawn_domain"],
                tool=doc.get("tool", {}),
                format=doc["format"],
            )
        except (ValueError, KeyError, TypeError) as fault:
            raise CorruptError(
                f"{where} is not a readable manifest: {fault!r}",
                field=where,
                hint="restore the file from a backup; «verify(DATASET)» names every damaged file",
            ) from fault


def line_of(manifest: Manifest, checksum: str) -> HistoryLine:
    """What the history keeps of a version; `checksum` is that of its manifest's bytes."""
    shared = {name: getattr(manifest, name) for name in HistoryLine.__dataclass_fields__ if name not in ("sha256", "delivery_digest")}
    return HistoryLine(**shared, sha256=checksum, delivery_digest=str(manifest.delivery.get("set_digest", "")))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def sha256(data: bytes) -> str:
    """The checksum that manifests and pointers carry, hex."""
    return hashlib.sha256(data).hexdigest()
