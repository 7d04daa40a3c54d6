"""A miniature publisher: whole states in, real GeoParquet files, change logs and manifests out, through the real commit.

It knows no contract gate and no geometry rules: a state is a dictionary of rows, and a digest is that of the row's text. So what readers,
feeds, roll-backs and proofs do can be compared with plain dictionaries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from shapely import Point, from_wkb, to_wkb

from contracts import contract
from merestone.columnar import hashing
from merestone.contract.body import body
from merestone.contract.contract import Field, FieldType
from merestone.dataset.current import current
from merestone.dataset.known import CHANGES_SCHEMA, Sum, halves
from merestone.dataset.manifest import FileSet, IndexRef, Manifest
from merestone.dataset.pages import PartitionFiles, live_entries
from merestone.dataset.record import RunRecord
from merestone.writer.commit import begin
from merestone.writer.files import layout_of, write_partition, write_table
from merestone.writer.pages import write_page

FIELDS = (
    Field("pid", FieldType("string"), nullable=False),
    Field("name", FieldType("string")),
    Field("rank", FieldType("integer")),
)
CONTRACT = contract(schema_fields=FIELDS, crs_epsg=28992)
Row = tuple[str | None, int | None, Any, str]  # name, rank, geometry (shapely or None), partition


def row(name="a", rank=1, at=(0.0, 0.0), partition="district=D1"):
    """A point feature; `at=None` has no geometry."""
    return (name, rank, None if at is None else Point(*at), partition)


def key_bytes(pid):
    """The canonical key of one text column, as docs/spec/changes.md says."""
    return b"s" + pid.encode()


def digest_of(each):
    """The published digest: of what is seen, not of where it is kept."""
    name, rank, geometry, _ = each
    return blake2b(json.dumps([name, rank, geometry.wkt if geometry else None]).encode(), digest_size=16).digest()


@dataclass
class Miniature:
    """A dataset under `store` to which whole states are published one after the other."""

    store: Any
    contract: Any = CONTRACT
    row_group_rows: int = 10_000
    target_rows: int = 100_000
    states: dict[int, dict[str, Row]] = field(default_factory=dict)
    sources: dict[str, bytes] = field(default_factory=dict)
    clock: int = 0

    def time(self):
        self.clock += 1
        return f"2026-03-{1 + self.clock // 24:02d}T{self.clock % 24:02d}:00:00Z"

    def publish(self, state, *, delivery=None, noise=(), added_fields=()):
        """Publish a state, {pid: row}.

        Args:
            state: the whole of the new version.
            delivery: the set digest of the delivery; made up by default.
            noise: pids that are delivered in other bytes, same content (class refreshed).
            added_fields: nullable fields that this version's contract has on top.
        """
        if added_fields:
            self.contract = replace(self.contract, schema_fields=(*self.contract.schema_fields, *added_fields))
        head = current(self.store)
        before = self.states[head.manifest.version] if head else {}
        run_id, nonce = f"run{self.clock}", f"n{self.clock}"
        attempt = begin(self.store, run_id=run_id, nonce=nonce, name="parcels", started_utc=self.time(), parent=head)
        stem = f"{run_id}-{nonce}"
        log = self.log(before, state, noise)
        changes = write_table(self.store, f"_changes/{stem}.parquet", log)
        touched = {
            name
            for column in ("partition", "old_partition")
            for name, kind in zip(log.column(column).to_pylist(), log.column("class").to_pylist(), strict=True)
            if name is not None and kind not in ("refreshed", "suppressed", "held")
        }
        old = live_entries(self.store, head.manifest.files) if head else {}
        carried = [file for each in old.values() for file in each.files if each.partition not in touched]
        layout = layout_of(
            self.contract,
            (),
            bounds=(0.0, 0.0, 1000.0, 1000.0),
            epoch=None,
            target_rows=self.target_rows,
            row_group_rows=self.row_group_rows,
        )

        def build(version):
            new = {}
            for partition in sorted(touched):
                rows = {pid: each for pid, each in state.items() if each[3] == partition}
                files = ()
                if rows and version not in self.states:
                    files = tuple(
                        write_partition(self.store, self.table(rows, layout), layout, partition=partition, stem=stem, run_id=run_id)
                    )
                new[partition] = PartitionFiles(partition, partition.partition("=")[2], files)
            written = [file for each in new.values() for file in each.files]
            files = write_page(self.store, stem, version, head.manifest.files if head else FileSet(), old, new)
            classes = log.column("class").to_pylist()
            counts = {name: classes.count(name) for name in ("added", "changed", "removed", "moved", "suppressed", "reprocessed", "held")}
            present = sum(count for name, count in counts.items() if name != "removed")
            index = head.manifest.index if head else IndexRef(None, None, ())
            return Manifest(
                version=version,
                parent=head.manifest.version if head else None,
                parent_sha256=head.sha256 if head else None,
                run_id=run_id,
                attempt=attempt.number,
                time_utc=self.time(),
                name="parcels",
                contract_version=str(self.contract.contract_version),
                contract_sha256="0" * 64,
                contract=body(self.contract),
                key={"columns": ["pid"], "types": ["string"], "derive": None},
                domain={"layout": 1},
                processing={},
                partitioning={"by": "column", "column": "district"},
                features=len(state),
                counts={"delivered": len(state), "unchanged": len(state) - present, "rejected": 0, **counts},
                files=files,
                changes=changes,
                index=IndexRef(index.checkpoint, index.checkpoint_version, (*index.log, (version, changes))),
                findings=None,
                lineage=None,
                delivery={"rows": len(state), "set_digest": delivery or f"delivery-{stem}"},
                set_digest=set_digest(state),
                files_written=len(written),
                files_carried=len(carried),
                bytes_written=sum(each.bytes for each in (*written, changes)),
                withdrawn=head.manifest.withdrawn if head else (),
            )

        done = attempt.commit(build, head)
        attempt.finish(
            RunRecord(
                run_id,
                attempt.number,
                "published",
                "parcels",
                self.time(),
                self.time(),
                version=done.manifest.version,
                parent_version=head.manifest.version if head else None,
                counts=done.manifest.counts,
            )
        )
        self.states[done.manifest.version] = dict(state)
        return done.manifest

    def log(self, before, after, noise):
        lines = []
        for pid in sorted({*before, *after}, key=key_bytes):
            old, new = before.get(pid), after.get(pid)
            if new is not None and (pid in noise or pid not in self.sources or old is None or digest_of(old) != digest_of(new)):
                self.sources[pid] = blake2b(f"{pid}{self.clock}".encode(), digest_size=16).digest()
            one, two = old and digest_of(old), new and digest_of(new)
            kind = (
                "added"
                if old is None
                else "removed"
                if new is None
                else "changed"
                if one != two
                else "moved"
                if old[3] != new[3]
                else "refreshed"
                if pid in noise
                else None
            )
            if kind is None:
                continue
            within = kind == "changed"
            fields = [name for n, name in enumerate(("name", "rank")) if within and old[n] != new[n]]
            geometry = within and old[2] != new[2]
            lines.append(
                {
                    "key": key_bytes(pid),
                    "class": kind,
                    "reversed": False,
                    "rekeyed": False,
                    "attributes": bool(fields),
                    "geometry": geometry,
                    "geometry_change": old[2].distance(new[2]) if geometry and old[2] and new[2] else None,
                    "fields": fields or None,
                    "digest": two,
                    "source_digest": self.sources[pid] if new else None,
                    "old_digest": one,
                    "partition": new and new[3],
                    "old_partition": old and old[3],
                }
            )
        plain = pa.Table.from_pylist(lines, schema=pa.schema([(each.name, plain_type(each.type)) for each in CHANGES_SCHEMA]))
        return plain.cast(CHANGES_SCHEMA)

    def table(self, rows, layout):
        known = {
            "pid": list(rows),
            "name": [each[0] for each in rows.values()],
            "rank": [each[1] for each in rows.values()],
            layout.geometry: [None if each[2] is None else to_wkb(each[2], byte_order=1, flavor="iso") for each in rows.values()],
        }
        return pa.table({each.name: pa.array(known.get(each.name, [None] * len(rows)), each.type) for each in layout.row_schema})


def plain_type(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def set_digest(state):
    """The digest of the whole set, as the manifest carries it."""
    total = Sum()
    if state:
        keys = pa.array([key_bytes(pid) for pid in state], pa.binary())
        total.add(halves(hashing.blake2b16(keys)), halves(pa.array([digest_of(each) for each in state.values()], pa.binary(16))))
    return str(total)


def state_of(table, geometry="geometry"):
    """What a reader got, as {pid: (name, rank, wkt)}."""
    shapes = from_wkb(np.array(table.column(geometry).to_pylist(), dtype=object))
    names, ranks = table.column("name").to_pylist(), table.column("rank").to_pylist()
    pids = table.column("pid").to_pylist()
    assert len(set(pids)) == len(pids)
    return {pid: (name, rank, shape.wkt if shape else None) for pid, name, rank, shape in zip(pids, names, ranks, shapes, strict=True)}


def seen(state):
    """A state as a reader sees it."""
    return {pid: (name, rank, shape.wkt if shape else None) for pid, (name, rank, shape, _) in state.items()}
