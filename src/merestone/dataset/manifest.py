"""What a published version is: the manifest as a value, and its JSON form.

Not here: writing it (`publish.commit`), the rows behind it (`rows`), the state of the features (`index`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from merestone.errors import CorruptError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A file that a version names: its path relative to the dataset, and what proves that it is whole."""

    path: str
    rows: int
    bytes: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {"path": self.path, "rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> ObjectRef:
        """Read the JSON object back."""
        return cls(doc["path"], doc["rows"], doc["bytes"], doc["sha256"])


@dataclass(frozen=True, slots=True)
class DataFile(ObjectRef):
    """A GeoParquet file of the version. `bbox` is x, y minimum then maximum in the contract's CRS, None where no row has a position.

    `partition` is the partition's name (its folder below `data/`, "" for a dataset without partitions); `version` and `run_id` are those
    that wrote the file and its lineage.
    """

    partition: str = ""
    bbox: tuple[float, float, float, float] | None = None
    version: int = 0
    run_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "path": self.path,
            "rows": self.rows,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "partition": self.partition,
            "bbox": list(self.bbox) if self.bbox is not None else None,
            "version": self.version,
            "run_id": self.run_id,
        }

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> DataFile:
        """Read the JSON object back."""
        bbox = doc["bbox"]
        return cls(
            doc["path"],
            doc["rows"],
            doc["bytes"],
            doc["sha256"],
            doc["partition"],
            tuple(bbox) if bbox is not None else None,
            doc["version"],
            doc["run_id"],
        )


@dataclass(frozen=True, slots=True)
class IndexRef:
    """The feature index at a version: an optional checkpoint and the change logs after it, oldest first.

    A change log is the `_changes/` file of its version; a first version has no checkpoint, its log holds every feature.
    """

    checkpoint: ObjectRef | None
    checkpoint_version: int | None
    log: tuple[tuple[int, ObjectRef], ...]  # (version, change log)

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "checkpoint": self.checkpoint.to_json() if self.checkpoint else None,
            "checkpoint_version": self.checkpoint_version,
            "log": [{"version": version, **ref.to_json()} for version, ref in self.log],
        }

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> IndexRef:
        """Read the JSON object back."""
        checkpoint = doc["checkpoint"]
        return cls(
            ObjectRef.from_json(checkpoint) if checkpoint else None,
            doc["checkpoint_version"],
            tuple((each["version"], ObjectRef.from_json(each)) for each in doc["log"]),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that one version is. Names are those of the JSON (docs/spec/manifest.md).

    `domain`: what a digest of this version means: layout, grids, CRS, edges, epoch.
    `processing`: what makes "the same bytes get the same verdict" true: source domain, rules hash, rule version, PROJ operation, layout.
    `partitioning`: the scheme and, for kdtree, its splits; the bounds of the Hilbert order; partition value to folder.
    `counts`: the fates of the delivered rows and the classes, as in `publish --json`.
    `withdrawn`: delivery digests that a rollback took back; publishing one again trips a guard.
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
    contract: dict[str, Any]
    key: dict[str, Any]
    domain: dict[str, Any]
    processing: dict[str, Any]
    partitioning: dict[str, Any]
    features: int
    counts: dict[str, int]
    files: tuple[DataFile, ...]
    changes: ObjectRef
    index: IndexRef
    findings: ObjectRef | None
    lineage: dict[str, Any] | None
    delivery: dict[str, Any]
    set_digest: str
    files_written: int
    files_carried: int
    rollback: dict[str, Any] | None = None
    withdrawn: tuple[str, ...] = ()
    tool: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
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
            "features": self.features,
            "counts": self.counts,
            "files": [each.to_json() for each in self.files],
            "changes": self.changes.to_json(),
            "index": self.index.to_json(),
            "findings": self.findings.to_json() if self.findings else None,
            "lineage": self.lineage,
            "delivery": self.delivery,
            "set_digest": self.set_digest,
            "files_written": self.files_written,
            "files_carried": self.files_carried,
            "rollback": self.rollback,
            "withdrawn": list(self.withdrawn),
            "tool": self.tool,
        }

    def to_bytes(self) -> bytes:
        """The bytes that stand on disk (UTF-8 JSON, no NaN)."""
        return (json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> Manifest:
        """Read a manifest.

        Raises:
            CorruptError: the bytes are not a manifest that this version of Merestone understands.
        """
        try:
            doc = json.loads(data)
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
                files=tuple(DataFile.from_json(each) for each in doc["files"]),
                changes=ObjectRef.from_json(doc["changes"]),
                index=IndexRef.from_json(doc["index"]),
                findings=ObjectRef.from_json(doc["findings"]) if doc["findings"] else None,
                lineage=doc["lineage"],
                delivery=doc["delivery"],
                set_digest=doc["set_digest"],
                files_written=doc["files_written"],
                files_carried=doc["files_carried"],
                rollback=doc.get("rollback"),
                withdrawn=tuple(doc.get("withdrawn", ())),
                tool=doc.get("tool", {}),
                format=doc["format"],
            )
        except (ValueError, KeyError, TypeError) as fault:
            raise CorruptError(
                f"{where} is not a readable manifest: {fault!r}",
                field=where,
                hint="restore the file from a backup; `merestone verify` names every damaged file",
            ) from fault


def sha256(data: bytes) -> str:
    """The checksum that manifests and pointers carry, hex."""
    return hashlib.sha256(data).hexdigest()
