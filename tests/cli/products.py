"""The rows that the commands are tried on."""

from __future__ import annotations

from shapely import Point

FIELDS = (
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "owner", "type": "string"},
    {"name": "rank", "type": "integer"},
    {"name": "area", "type": "decimal(8,2)"},
)


def rows(count=40, **changes):
    """Points p0..; `changes` are rows by key, None leaves one out."""
    out = {f"p{n}": {"pid": f"p{n}", "owner": "a", "rank": n, "area": n + 0.25, "geometry": Point(5 + n / 100, 52)} for n in range(count)}
    for pid, row in changes.items():
        if row is None:
            del out[pid]
        else:
            out[pid] = {**out.get(pid, {"pid": pid, "owner": "a", "rank": 0, "area": 0.25, "geometry": Point(5, 52)}), **row}
    return list(out.values())
