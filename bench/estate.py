"""A made-up estate of address points and its next nights, of any size: the same arguments give the same content.

    python bench/estate.py OUT.parquet --features 1000000 --night 2 --pattern clustered

GeoParquet 1.1 in EPSG:27700, key `uprn`, rows in no spatial order. With `--keys text` the key is a text of 36 characters, made from the number as
a UUID is. Night n > 1 is night 1 with `--change` of the features changed anew:
two thirds edited (every third of them moved by metres), a sixth removed, a sixth added; inside a few districts (clustered) or anywhere.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS

BATCH = 250_000
GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"], "crs": CRS.from_epsg(27700).to_json_dict()}},
}
SCHEMA = pa.schema(
    [
        ("uprn", pa.int64()),
        ("number", pa.int32()),
        ("street", pa.string()),
        ("postcode", pa.string()),
        ("class", pa.string()),
        ("updated", pa.date32()),
        ("district", pa.string()),
        ("geometry", pa.binary()),
    ]
)


def points(x, y):
    """WKB points (little-endian) of two float64 arrays."""
    rows = np.zeros(len(x), np.dtype([("order", "u1"), ("type", "<u4"), ("x", "<f8"), ("y", "<f8")]))
    rows["order"], rows["type"], rows["x"], rows["y"] = 1, 1, x, y
    offsets = np.arange(len(x) + 1, dtype=np.int32) * 21
    return pa.BinaryArray.from_buffers(pa.binary(), len(x), [None, pa.py_buffer(offsets), pa.py_buffer(rows.tobytes())])


def uuids(numbers):
    """36 characters of each number (splitmix64 twice): as long as those of a UUID, as unordered, and never the same for two numbers."""
    mixed = []
    with np.errstate(over="ignore"):
        for seed in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
            z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed.append(z ^ (z >> np.uint64(31)))
    raw = np.stack(mixed, axis=1).astype(">u8").view(np.uint8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[np.stack([raw >> 4, raw & 15], axis=2).reshape(len(numbers), 32)]
    text = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def write(
    out: str,
    features: int,
    *,
    districts: int | None = None,
    night: int = 1,
    change: float = 0.004,
    pattern: str = "clustered",
    keys: str = "integer",
) -> dict:
    """Write one night's export; returns what changed against night 1."""
    districts = districts or max(10, features // 4_000)
    side = int(np.ceil(np.sqrt(districts)))
    hot = max(1, round(districts * change * 4)) if pattern == "clustered" else districts
    rate = min(0.9, change * districts / hot)
    names = pa.array([f"D{n:04d}" for n in range(districts)])
    streets, codes, kinds = (
        pa.array([f"street {n}" for n in range(20_000)]),
        pa.array([f"AB{n % 99} {n % 9}XY" for n in range(9_999)]),
        pa.array(list("RCXL")),
    )
    told = {"features": 0, "edited": 0, "removed": 0, "added": 0}
    schema = SCHEMA if keys == "integer" else SCHEMA.set(0, pa.field("uprn", pa.string()))
    with pq.ParquetWriter(out, schema.with_metadata({"geo": json.dumps(GEO)}), compression="zstd") as writer:
        for start in range(0, features, BATCH):
            n = min(BATCH, features - start)
            base = np.random.default_rng([7, start])
            key = start + np.arange(n) + 1
            district = base.integers(0, districts, n)
            x = (district % side) * 6_000 + base.integers(0, 600_000, n) / 100
            y = (district // side) * 12_000 + base.integers(0, 1_200_000, n) / 100
            number, street, code, kind = (
                base.integers(1, 300, n),
                base.integers(0, 20_000, n),
                base.integers(0, 9_999, n),
                base.integers(0, 4, n),
            )
            day = base.integers(15_000, 19_000, n)
            take = np.arange(n)
            if night > 1:
                later = np.random.default_rng([11, night, start])
                hit = (district * hot // districts != (district + 1) * hot // districts) & (later.random(n) < rate)
                fate = later.random(n)
                edit = hit & (fate < 2 / 3)
                move = edit & (fate < 2 / 9)
                day[edit] = 19_000 + night
                x[move] += 1 + later.integers(0, 500, int(move.sum())) / 100
                gone, new = hit & (fate >= 5 / 6), np.flatnonzero(hit & (fate >= 2 / 3) & (fate < 5 / 6))
                take = np.concatenate([np.flatnonzero(~gone), new])
                key = np.concatenate([key[~gone], night * 10**9 + start + np.arange(len(new))])
                told["edited"] += int(edit.sum())
                told["removed"] += int(gone.sum())
                told["added"] += len(new)
            writer.write_table(
                pa.table(
                    [
                        pa.array(key) if keys == "integer" else uuids(key),
                        pa.array(number[take], pa.int32()),
                        streets.take(pa.array(street[take])),
                        codes.take(pa.array(code[take])),
                        kinds.take(pa.array(kind[take])),
                        pa.array(day[take].astype(np.int32)).cast(pa.date32()),
                        names.take(pa.array(district[take])),
                        points(x[take], y[take]),
                    ],
                    schema=schema,
                ),
                row_group_size=65_536,
            )
            told["features"] += len(take)
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--districts", type=int)
    parser.add_argument("--night", type=int, default=1)
    parser.add_argument("--change", type=float, default=0.004)
    parser.add_argument("--keys", choices=("integer", "text"), default="integer")
    parser.add_argument("--pattern", choices=("clustered", "scattered"), default="clustered")
    print(json.dumps(write(**vars(parser.parse_args()))))
