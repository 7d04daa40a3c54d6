"""What a night writes besides data, and what commands read, at 10 and at 365 versions of many files.

    python bench/history.py [--files 8900] [--versions 365] [--touched 150]

The first two versions are published from exports. The nights between are made of the product's own parts (change log, sealed lineage, page,
history, manifest, commit) without an export: each changes one feature in each of `--touched` random partitions and names the files that
are there already. Metadata are the manifest, the page and a piece of the history. Objects are counted where they are opened; a listing counts as one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from publish import CONTRACT, PUBLICATION

import estate
from merestone.audit.completeness import check_version
from merestone.dataset.current import current
from merestone.dataset.feed import changes
from merestone.dataset.known import CHANGES_SCHEMA
from merestone.dataset.log import log, status
from merestone.dataset.manifest import IndexRef
from merestone.dataset.pages import PartitionFiles, live_entries
from merestone.dataset.record import RunRecord
from merestone.dataset.version import Dataset
from merestone.identity import key as keys
from merestone.inspect.browse import why
from merestone.line import environment
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.store.writing import RunWriter
from merestone.results.finding import PASS, Steps
from merestone.storage.local import LocalStore
from merestone.writer.commit import begin
from merestone.writer.files import write_table
from merestone.writer.pages import write_page

FOLDERS = ("_manifests/", "_pages/", "_history/")
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
PER_PARTITION = 4


class Counting(LocalStore):
    """A local store that counts what is opened and listed."""

    def __init__(self, root):
        super().__init__(root)
        self.opened, self.listed = 0, 0

    def get(self, name):
        """As the store's, counted."""
        """As the store's."""
        self.opened += 1
        return super().get(name)

    def open(self, name):
        """As the store's, counted."""
        """As the store's."""
        self.opened += 1
        return super().open(name)

    def list(self, prefix):
        """As the store's, counted."""
        """As the store's."""
        self.listed += 1
        return super().list(prefix)


def metadata(store):
    """Bytes of metadata objects by name."""
    return {name: size for folder in FOLDERS for name, size in store.list(folder)}


def export(path, files, edited=()):
    """An export of PER_PARTITION address points in each of so many districts; those of `edited` districts have one other street."""
    n = files * PER_PARTITION
    district = np.arange(n) // PER_PARTITION
    cents = np.random.default_rng(7).integers(1, 300_000, (2, n)) / 100
    street = np.where((np.arange(n) % PER_PARTITION == 0) & np.isin(district, list(edited)), "edited street", "street")
    table = pa.table(
        [
            pa.array(np.arange(1, n + 1)),
            pa.array(np.ones(n, np.int32)),
            pa.array(street),
            pa.array(["AB1 2CD"] * n),
            pa.array(["R"] * n),
            pa.array(np.full(n, 18_000, np.int32)).cast(pa.date32()),
            pa.array([f"D{each:05d}" for each in district]),
            estate.points((district % 100) * 6_000.0 + cents[0], (district // 100) * 12_000.0 + cents[1]),
        ],
        schema=estate.SCHEMA.with_metadata({"geo": json.dumps(estate.GEO)}),
    )
    pq.write_table(table, path)


def night(store, number, touched, noise, folder):
    """One version: a feature changed in each of `touched` partitions."""
    head = current(store)
    moment = BEGUN + timedelta(days=number)
    run_id, nonce = f"{noise.integers(1 << 63):016x}", f"{noise.integers(1 << 31):08x}"
    attempt = begin(store, run_id=run_id, nonce=nonce, name=head.manifest.name, started_utc=environment.stamp(moment), parent=head)
    stem = f"{run_id}-{nonce}"
    old = live_entries(store, head.manifest.files)
    names = sorted(noise.choice(sorted(old), touched, replace=False))
    uprn = np.array([int(each.removeprefix("district=D")) for each in names]) * PER_PARTITION + 1
    key = keys.key_bytes(pa.table({"uprn": pa.array(np.sort(uprn))}), ["uprn"])[0]
    digest = pa.array([noise.bytes(16) for _ in names], pa.binary(16))
    place = pa.array(names).dictionary_encode()
    same = {"class": "changed", "reversed": False, "rekeyed": False, "attributes": True, "geometry": False}
    columns = {
        "key": key,
        **{name: pa.array([value] * touched) for name, value in same.items()},
        "geometry_change": pa.nulls(touched, pa.float64()),
        "fields": pa.array([["street"]] * touched),
        **dict.fromkeys(("digest", "source_digest", "old_digest"), digest),
        "partition": place,
        "old_partition": place,
    }
    rows = pa.table({each.name: columns[each.name].cast(each.type) for each in CHANGES_SCHEMA}, schema=CHANGES_SCHEMA)
    log_ref = write_table(store, f"_changes/{stem}.parquet", rows)
    collector, writer = LineageCollector(), RunWriter(folder, run_id, attempt.number, nonce)
    step = Steps("validate", "VALIDATE", np.full(touched, PASS, np.uint8), pa.nulls(touched, pa.string()), "EPSG:27700", "EPSG:27700")
    collector.add_columns(keys.ids_of(key), [step], run_id=run_id, attempt=attempt.number, batch=0, time=moment)
    writer.write(collector.drain())
    sealed = writer.seal(store, run_date=moment.date(), plan=["validate"], tool=environment.tools(), time=moment, about={})
    new = {name: PartitionFiles(name, old[name].value, tuple(_by(file, run_id) for file in old[name].files)) for name in names}
    last = head.manifest

    def build(version):
        log = (*last.index.log, (version, log_ref))
        return type(last)(
            **{name: getattr(last, name) for name in last.__dataclass_fields__}
            | {
                "version": version,
                "parent": last.version,
                "parent_sha256": head.sha256,
                "run_id": run_id,
                "attempt": attempt.number,
                "time_utc": environment.stamp(moment),
                "files": write_page(store, stem, version, last.files, old, new),
                "changes": log_ref,
                # The real index of sixty nights is a checkpoint; here the oldest log stands for it.
                "index": IndexRef(None, None, (log[0], *log[1:][-60:])),
                "lineage": sealed.to_json(),
                "counts": {**last.counts, "changed": touched},
                "files_written": touched,
                "files_carried": last.files.count - touched,
                "bytes_written": log_ref.bytes,
            }
        )

    done = attempt.commit(build, head)
    attempt.finish(
        RunRecord(
            run_id,
            attempt.number,
            "published",
            last.name,
            environment.stamp(moment),
            environment.stamp(moment + timedelta(minutes=1)),
            parent_version=last.version,
            version=done.manifest.version,
        )
    )
    return done.manifest


def _by(file, run_id):
    return type(file)(**{name: getattr(file, name) for name in file.__dataclass_fields__} | {"run_id": run_id})


def measure(root, versions):
    """Objects, listings and time of each command."""
    box = (0.0, 0.0, 100.0, 100.0)
    now = datetime(2100, 1, 1, tzinfo=UTC)
    commands = {
        "log": log,
        "status": status,
        "read, one file's box": lambda dataset: dataset.to_arrow(bbox=box),
        "files": Dataset.files,
        "changes of the last step": changes,
        "why of a feature": lambda dataset: why(dataset, str(feature_of(dataset))),
        "check-complete --last-step": lambda dataset: check_version(dataset, None, now=now, last_step=True),
        "check-complete": lambda dataset: check_version(dataset, None, now=now),
    }
    print(f"\nat {versions} versions{'':17}{'objects':>9}{'listings':>9}{'CPU s':>8}{'seconds':>9}")
    for name, command in commands.items():
        store = Counting(root)
        begun, cpu = time.perf_counter(), time.process_time()
        command(Dataset(store))
        print(f"{name:30}{store.opened:9,}{store.listed:9,}{time.process_time() - cpu:8.2f}{time.perf_counter() - begun:9.2f}", flush=True)


def feature_of(dataset):
    """A feature that the last version changed."""
    log_of_last = pq.read_table(dataset.store.location(dataset.current().manifest.changes.path), columns=["key"])
    return keys.ids_of(log_of_last.column("key").combine_chunks())[0].as_py()


def published(folder, source):
    """A publish by the command; returns what it answered."""
    command = [str(Path(sys.executable).with_name("merestone")), "publish", str(folder / "estate.yaml"), "--source", str(source), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=8_900)
    parser.add_argument("--versions", type=int, default=365)
    parser.add_argument("--touched", type=int, default=150)
    options = parser.parse_args()
    noise = np.random.default_rng(5)
    with tempfile.TemporaryDirectory(prefix="bench-history-") as name:
        folder = Path(name)
        destination = folder / "published"
        store = LocalStore(destination)
        export(folder / "1.parquet", options.files)
        export(folder / "2.parquet", options.files, noise.choice(options.files, options.touched, replace=False))
        (folder / "estate.contract.yaml").write_text(CONTRACT)
        (folder / "estate.yaml").write_text(PUBLICATION.format(source=folder / "1.parquet", destination=destination))
        published(folder, folder / "1.parquet")
        before = metadata(store)
        print(f"{options.files:,} files; the first version writes {sum(before.values()) / 1e3:,.0f} kB of metadata")
        told = published(folder, folder / "2.parquet")
        after = metadata(store)
        print(f"published from an export: {told['files_written']} files, {kilobytes(before, after)} kB of metadata", flush=True)
        plain, checkpoints, seconds = [], [], []
        for version in range(3, options.versions + 1):
            before, begun = after, time.process_time()
            manifest = night(store, version, options.touched, noise, str(folder))
            seconds.append(time.process_time() - begun)
            after = metadata(store)
            (checkpoints if len(manifest.files.pages) == 1 else plain).append(kilobytes(before, after))
            if version in (10, options.versions):
                measure(destination, version)
        print(f"\nmetadata of a night with {options.touched} changed partitions, kB: median {np.median(plain):.0f}, most {max(plain)}")
        print(f"nights with a checkpoint: {len(checkpoints)} of {options.versions - 2}, kB: {', '.join(map(str, checkpoints))}")
        parts = {
            each: round(sum(size for name, size in after.items() if name.startswith(each) and name not in before) / 1e3) for each in FOLDERS
        }
        print(f"of the last night, kB: {parts}; CPU seconds of a night, median: {np.median(seconds):.2f}")


def kilobytes(before, after):
    return round(sum(size for name, size in after.items() if name not in before) / 1e3)


if __name__ == "__main__":
    main()
