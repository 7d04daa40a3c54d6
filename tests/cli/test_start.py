"""What a command loads: each waits for its modules before it does anything. One process runs several, so that each is held to what came before."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyproj import CRS

from merestone.cli.main import root
from merestone.contract import files

FILES = ("pyogrio", "duckdb", "pyarrow.csv", "merestone.source.vector", "merestone.source.shapefile")
GEOMETRY = ("shapely", "merestone.geometry.fallback", "merestone.columnar.fallback", "merestone.gate.topology")
UNITS = ("ucumvert", "pint", "lark")
PANDAS = ("pandas", "geopandas")
LINE = ("merestone.line.publish", "merestone.gate.feature", "merestone.drafts")
LOOKING = ("sqlite3", *PANDAS, *FILES, *GEOMETRY, *UNITS, *LINE)

PROBE = """
import json, sys
loaded = {"import merestone": []}
import merestone
loaded["import merestone"] = sorted(sys.modules)
from merestone.cli.main import main
for line in json.loads(sys.argv[1]):
    sys.argv = ["merestone", *line]
    try:
        main()
    except SystemExit as end:
        assert end.code == (1 if "--source" in line else 0), (line, end.code)
    loaded[line[0]] = sorted(sys.modules)
print(json.dumps(loaded))
"""


def write(path, times):
    """Points on a fine grid with a time of nanoseconds, which no contract promises."""
    xy = np.array([[10.001, 52.001], [11.002, 52.002], [12.003, 52.003]])
    table = pa.table({"pid": [1, 2, 3], "seen": pa.array(times, pa.timestamp("ns", "UTC"))})
    table = table.append_column("geometry", pa.array(shapely.to_wkb(shapely.points(xy))))
    column = {"encoding": "WKB", "geometry_types": ["Point"], "crs": json.loads(CRS.from_epsg(4326).to_json())}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return str(path)


def test_commands_load_what_they_need(estate, tmp_path):
    product = estate(
        [{"name": "pid", "type": "integer", "nullable": False}, {"name": "seen", "type": "timestamp"}], geometry_type="point", key=["pid"]
    )
    product.write(write(tmp_path / "whole.parquet", [0, 1_000, None]))
    finer = write(tmp_path / "finer.parquet", [1, 1_000, None])
    file, contract = str(product.folder / "product.yaml"), str(product.folder / "product.contract.yaml")
    published = str(product.url)

    def run(*lines):
        done = subprocess.run([sys.executable, "-c", PROBE, json.dumps(lines)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return {name: set(names) for name, names in json.loads(done.stdout.splitlines()[-1]).items()}

    loaded = run(["publish", file], ["publish", file, "--source", finer])
    assert (
        loaded["publish"] & {*PANDAS, *FILES, "lark", "merestone.gate.topology", "merestone.columnar.fallback", "merestone.drafts"} == set()
    )
    loaded = run(["--version"], ["log", published], ["status", published], ["contract", "lint", contract])
    assert loaded["import merestone"] & {"numpy", "pyarrow", "pyproj", "click", "ruamel.yaml", *LOOKING} == set()
    assert loaded["--version"] & {"pyproj", "ruamel.yaml", *LOOKING} == set()
    for name in ("log", "status", "contract"):
        assert loaded[name] & {*LOOKING} == set(), name


def test_a_publish_reads_its_contract_once(product, monkeypatch):
    """And its publication file at most twice: once for what is current before it, which an interrupted run names."""
    seen = []
    there = files.read_yaml
    monkeypatch.setattr(files, "read_yaml", lambda data, path: seen.append(path) or there(data, path))
    assert root.main(["publish", str(product.file)], standalone_mode=False) == 0
    assert seen.count(str(product.contract)) == 1
    assert seen.count(str(product.file)) <= 2
