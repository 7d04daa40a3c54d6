"""Two nights of a made-up estate: time and memory of each stage, against a GeoPandas rebuild of the same partitions, in one run.

    python bench/publish.py [--features 1000000]

Every measurement is a process of its own; memory is the peak of the whole process as the operating system counted it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import estate

CONTRACT = """\
contract_version: v1.0.0-crs:EPSG:27700-res:1m
product_id: 5a9c7b1e-3c0f-4c55-8a43-0f6b7f1f2d11
name: estate
crs_epsg: 27700
axis_order: lon_lat
extent: [0, 0, 700000, 1300000]
geometry_type: point
coordinate_precision: 2
key: uprn
schema_fields:
  - {name: uprn, type: integer, nullable: false}
  - {name: number, type: integer}
  - {name: street, type: string}
  - {name: postcode, type: string}
  - {name: class, type: string}
  - {name: updated, type: date}
  - {name: district, type: string}
freshness_sla_minutes: 1440
availability_target: 0.99
product_owner_id: steward@example.org
"""
PUBLICATION = """\
name: estate
contract: estate.contract.yaml
source: {source}
destination: {destination}
partition: {{by: column, column: district}}
"""
REBUILD = """\
import sys, pathlib, geopandas
source, out = sys.argv[1], pathlib.Path(sys.argv[2])
frame = geopandas.read_parquet(source)
for name, part in frame.groupby("district"):
    folder = out / f"district={name}"
    folder.mkdir(parents=True, exist_ok=True)
    part.to_parquet(folder / "part.parquet", compression="zstd", write_covering_bbox=True, schema_version="1.1.0")
"""


def measured(command: list[str]) -> tuple[float, float, str]:
    """Seconds, peak MB, and what the command printed."""
    begun = time.perf_counter()
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
    text = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command[:4])} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=1_000_000)
    features = parser.parse_args().features
    with tempfile.TemporaryDirectory(prefix="bench-publish-") as name:
        folder = Path(name)
        nights = {"first": folder / "1.parquet", "clustered": folder / "2.parquet", "scattered": folder / "3.parquet"}
        told = {
            "first": estate.write(str(nights["first"]), features),
            "clustered": estate.write(str(nights["clustered"]), features, night=2, pattern="clustered"),
            "scattered": estate.write(str(nights["scattered"]), features, night=2, pattern="scattered"),
        }
        (folder / "estate.contract.yaml").write_text(CONTRACT)
        (folder / "rebuild.py").write_text(REBUILD)
        rebuild = {
            each: measured([sys.executable, str(folder / "rebuild.py"), str(path), str(folder / f"rebuilt-{each}")])
            for each, path in nights.items()
        }
        print(f"{features:,} address points, 6 attributes, by district; night 2 changes 0.4 % of them")
        print(f"{'':26}{'seconds':>9}{'peak MB':>9}{'files':>8}{'MB written':>12}   against a GeoPandas rebuild")
        for base in ("clustered", "scattered"):
            destination = folder / f"published-{base}"
            (folder / "estate.yaml").write_text(PUBLICATION.format(source=nights["first"], destination=destination))
            for night in ("first", base, base):
                again = (destination / ".bench").exists()
                command = [
                    str(Path(sys.executable).with_name("merestone")),
                    "publish",
                    str(folder / "estate.yaml"),
                    "--source",
                    str(nights[night]),
                    "--json",
                ]
                seconds, peak, text = measured(command)
                result = json.loads(text)
                label = "first night" if night == "first" else f"{base}, again" if again else f"second night, {base}"
                print(
                    f"{label:26}{seconds:9.1f}{peak:9.0f}{result['files_written']:8}{result['bytes_written'] / 1e6:12.1f}   "
                    f"{rebuild[night][0] / seconds:4.1f} times as fast, {peak / rebuild[night][1]:.2f} of the memory"
                )
                if night != "first":
                    (destination / ".bench").touch()
                record = json.loads(next((destination / "_runs").glob(f"{result['run_id']}-*.json")).read_text())
                print("    " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in record["stages"].items()))
        for each, (seconds, peak, _) in rebuild.items():
            print(f"{'rebuild, ' + each:26}{seconds:9.1f}{peak:9.0f}")
        print("changed on night 2:", {each: told[each] for each in ("clustered", "scattered")})


if __name__ == "__main__":
    main()
