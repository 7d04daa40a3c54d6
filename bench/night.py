"""What a night of a made-up estate costs: unchanged, changed, in another order, with rows put in.

Against reading the export once, digesting it once, and a rebuild of all partitions by DuckDB, in one run; ratios are of processor time.

    python bench/night.py [--features 1000000]

Every measurement is a process of its own. Memory is the peak of what is resident without mapped file pages, where the system tells (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from publish import CONTRACT, PUBLICATION

import estate

GROUP = 131_072
READ = """\
import sys, pyarrow.parquet as pq
for batch in pq.ParquetFile(sys.argv[1]).iter_batches(65_536, use_threads=False):
    pass
"""
DIGEST = """\
import sys, pyarrow as pa, pyarrow.parquet as pq
from merestone import fingerprint_table
file = pq.ParquetFile(sys.argv[1])
names = [name for name in file.schema_arrow.names if name not in ("uprn", "geometry")]
for batch in file.iter_batches(65_536, use_threads=False):
    fingerprint_table(pa.Table.from_batches([batch]), "uprn", geometry_column="geometry", grid=0.01, attributes=names)
"""
REBUILD = """\
import sys, duckdb
duckdb.sql(f"COPY (SELECT * FROM read_parquet('{sys.argv[1]}')) TO '{sys.argv[2]}' (FORMAT parquet, PARTITION_BY (district), COMPRESSION zstd)")
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds by the clock and of the processor, and the peak in MB."""

    wall: float
    cpu: float
    peak: float
    text: str


def measured(command: list[str]) -> Cost:
    """What a command costs."""
    begun = time.perf_counter()
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        status = Path(f"/proc/{done.pid}/status")
        while not over.wait(0.02):
            try:
                lines = status.read_text().splitlines()
            except OSError:
                return
            peak[0] = max([peak[0], *(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))])

    watcher = threading.Thread(target=watch)
    watcher.start()
    text = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    over.set()
    watcher.join()
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command[:4])} ended with {os.waitstatus_to_exitcode(status)}: {text[-2000:]}")
    return Cost(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, peak[0] or usage.ru_maxrss / 1024, text)


def shuffled(source: Path, target: Path) -> None:
    """The same rows in an order of chance."""
    table = pq.read_table(source)
    _write(table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows))), target)


def sorted_otherwise(source: Path, target: Path) -> None:
    """The same rows in the order of another column."""
    _write(pq.read_table(source).sort_by([("postcode", "ascending"), ("number", "ascending")]), target)


def put_in(source: Path, target: Path) -> None:
    """One row more behind each hundredth, with a key of its own."""
    table = pq.read_table(source)
    places = np.sort(np.random.default_rng(2).integers(0, table.num_rows, table.num_rows // 100))
    new = table.take(pa.array(places))
    keys = pa.array(np.arange(len(places), dtype=np.int64) + 10**12)
    new = new.set_column(table.schema.get_field_index("uprn"), table.schema.field("uprn"), keys)
    order = np.argsort(np.concatenate([np.arange(table.num_rows), places + 0.5]), kind="stable")
    _write(pa.concat_tables([table, new]).take(pa.array(order)), target)


def _write(table: pa.Table, target: Path) -> None:
    pq.write_table(table, target, compression="zstd", row_group_size=GROUP)


def written(folder: Path) -> int:
    """Bytes of the objects below a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=1_000_000)
    features = parser.parse_args().features
    with tempfile.TemporaryDirectory(prefix="bench-night-") as name:
        folder = Path(name)
        first, clustered = folder / "1.parquet", folder / "2.parquet"
        estate.write(str(first), features)
        estate.write(str(clustered), features, night=2, pattern="clustered")
        made: dict[str, Callable[[Path, Path], None]] = {"shuffled": shuffled, "other order": sorted_otherwise, "1 % put in": put_in}
        nights = {"unchanged": first, "clustered": clustered}
        for label, make in made.items():
            nights[label] = folder / f"{label.replace(' ', '-').replace('%', 'percent')}.parquet"
            make(first, nights[label])
        (folder / "estate.contract.yaml").write_text(CONTRACT)
        print(f"{features:,} address points, 6 attributes, by district; the clustered night changes 0.4 % of them")
        print(f"{'':26}{'seconds':>9}{'CPU':>9}{'peak MB':>9}{'MB written':>12}")
        read = _shown("read once", measured([sys.executable, "-c", READ, str(first)]))
        digests = _shown("read and digest once", measured([sys.executable, "-c", DIGEST, str(first)]))
        rebuilt = folder / "rebuilt"
        rebuild = _shown("DuckDB rebuild", measured([sys.executable, "-c", REBUILD, str(first), str(rebuilt)]), rebuilt)
        destination = folder / "published"
        publication = folder / "estate.yaml"
        publication.write_text(PUBLICATION.format(source=first, destination=destination))
        base = _shown("first night", _publish(publication, first), destination)
        print(f"{'':26}{base.cpu / rebuild.cpu:.2f} of the rebuild")
        for label, source in nights.items():
            there = folder / "night"
            shutil.copytree(destination, there)
            publication.write_text(PUBLICATION.format(source=source, destination=there))
            before = written(there)
            cost = _publish(publication, source)
            _shown(label, cost, there, before)
            record = json.loads(max((there / "_runs").glob("*.json"), key=lambda path: path.stat().st_mtime).read_text())
            stages = ", ".join(f"{stage} {spent:.1f}" for stage, spent in record["stages"].items())
            print(
                f"{'':26}{cost.cpu / digests.cpu:.2f} of reading and digesting, {cost.wall / rebuild.wall:.2f} of the rebuild by the clock"
            )
            print(f"{'':26}{record['delivery'].get('met')}; {stages}")
            shutil.rmtree(there)
        print(f"reading once is {read.cpu / digests.cpu:.2f} of reading and digesting")


def _publish(publication: Path, source: Path) -> Cost:
    command = [str(Path(sys.executable).with_name("merestone")), "publish", str(publication), "--source", str(source), "--json"]
    return measured(command)


def _shown(label: str, cost: Cost, folder: Path | None = None, before: int = 0) -> Cost:
    size = f"{(written(folder) - before) / 1e6:12.1f}" if folder is not None else ""
    print(f"{label:26}{cost.wall:9.1f}{cost.cpu:9.1f}{cost.peak:9.0f}{size}")
    return cost


if __name__ == "__main__":
    main()
