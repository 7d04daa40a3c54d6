"""What a change is, decided in pandas and shapely from two deliveries, and what stands published after it.

The grid, the classes and the half-grid bound are those of the specification, worked out here a second time; nothing of Merestone is used.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import shapely

LINES, AREAS = ("LineString", "MultiLineString"), ("Polygon", "MultiPolygon")


@dataclass
class Judge:
    """Reads deliveries one after the other. `state` is what stands published: compared fields, `_token`, `_shape`, `_place` by key."""

    contract: dict
    key: str
    partition: str | None = None
    state: pd.DataFrame = field(default_factory=pd.DataFrame)
    suppressed: set = field(default_factory=set)
    held: set = field(default_factory=set)
    kinds: dict = field(default_factory=dict)  # of the changed: how many in attributes, how many in geometry
    raw: int = 0  # features whose geometry came in other bytes than in the delivery before
    given: pd.Series = field(default_factory=lambda: pd.Series(dtype=object))

    @property
    def fields(self):
        """Fields whose change is a change, and their types."""
        return {
            each["name"]: each["type"]
            for each in self.contract["schema_fields"]
            if not each.get("volatile") and "derived" not in each and each["name"] != self.key
        }

    def table(self, found, *, snapped=False):
        """Rows as they compare, by key text. `snapped`: coordinates stand on the grid already."""
        key_kind = next((each["type"] for each in self.contract["schema_fields"] if each["name"] == self.key), "string")
        shapes = np.asarray(found.geometry.array, dtype=object)
        precision = self.contract["coordinate_precision"]
        placed = shapes if snapped else on_grid(shapes, precision)
        columns = {name: comparable(found[name], kind) for name, kind in self.fields.items()}
        columns |= {"_token": tokens(placed), "_shape": placed, "_given": shapes}
        if self.partition and not snapped:
            columns["_place"] = comparable(found[self.partition], "string")
        out = pd.DataFrame(columns, index=comparable(found[self.key], key_kind), dtype=object)
        assert out.index.is_unique
        return out

    def judge(self, found):
        """The fates of a delivery's rows, and the delta, as `publish --json` tells them."""
        now, was = self.table(found), self.state
        bad = self._rejected(now)
        good = now[~bad]
        both = good.index.intersection(was.index) if len(was) else good.index[:0]
        a, b = (was.loc[both], good.loc[both]) if len(was) else (good.iloc[:0], good.iloc[:0])
        names = list(self.fields)
        values = differs(a[names], b[names]).any(axis=1)
        shapes = a["_token"].to_numpy() != b["_token"].to_numpy()
        bound = 10.0 ** -self.contract["coordinate_precision"] * 0.501
        near = np.zeros(len(both), bool)
        for n in np.flatnonzero(shapes):
            near[n] = within(a["_shape"].iloc[n], b["_given"].iloc[n], bound)
        changed = values.to_numpy() | (shapes & ~near)
        moved = ~changed & differs(a[["_place"]], b[["_place"]]).any(axis=1).to_numpy() if self.partition else np.zeros(len(both), bool)
        kept = near & ~changed
        self.kinds = {"attributes": int(values.sum()), "geometry": int((shapes & ~near).sum())}
        given = pd.Series(shapely.to_wkb(now["_given"].to_numpy()), index=now.index, dtype=object)
        again = given.index.intersection(self.given.index)
        self.raw, self.given = int((given.loc[again].to_numpy() != self.given.loc[again].to_numpy()).sum()), given
        turned = np.array(
            [
                c and not v and _is_line(x) and token(shapely.reverse(x)) == t
                for c, v, x, t in zip(changed, values, b["_shape"], a["_token"], strict=True)
            ],
            bool,
        )
        added = good.index.difference(was.index)
        rejected_before = now[bad].index.intersection(was.index) if len(was) else now.index[:0]
        gone = was.index.difference(now.index)
        self.state = good[[*names, "_token", "_shape", *(["_place"] if self.partition else [])]].copy()
        stays = both[kept]
        self.state.loc[stays, ["_token", "_shape"]] = a.loc[stays, ["_token", "_shape"]]
        self.state = pd.concat([self.state, was.loc[rejected_before]]) if len(rejected_before) else self.state
        self.suppressed = (self.suppressed - set(gone) - set(both[changed])) | set(stays)
        self.held = set(rejected_before)
        return {
            "delivered": len(now),
            "rejected": int(bad.sum()),
            "held": len(rejected_before),
            "features": len(self.state),
            "unchanged": int((~changed & ~moved & ~kept).sum()),
            "delta": {
                "added": len(added),
                "changed": int(changed.sum()),
                "removed": len(gone),
                "moved": int(moved.sum()),
                "reversed": int(turned.sum()),
                "rekeyed": self._rekeyed(good.loc[added], was.loc[gone]) if len(was) else 0,
                "suppressed": int((kept & ~moved).sum()),
                "reprocessed": 0,
            },
        }

    def _rejected(self, now):
        clause = self.contract.get("geometry", {})
        shapes = now["_shape"].to_numpy()
        nothing, empty = shapely.is_missing(shapes), shapely.is_empty(shapes)
        bad = ~nothing & ~shapely.is_valid(shapes) | ~nothing & ~shapely.is_valid(now["_given"].to_numpy())
        return bad | (nothing & (not clause.get("nullable"))) | (empty & (not clause.get("empty")))

    def _rekeyed(self, added, removed):
        def contents(rows):
            return pd.Series(
                [
                    json.dumps([row[0].hex() if row[0] else None, *map(str, row[1:])])
                    for row in rows[["_token", *self.fields]].itertuples(index=False)
                ],
                dtype=object,
            )

        one, other = contents(added), contents(removed)
        one, other = one[~one.duplicated(keep=False)], other[~other.duplicated(keep=False)]
        return len(set(one) & set(other))


# --- values ----------------------------------------------------------------------------------------------------------------------------


def comparable(column, kind):
    """Values of one contract type in one form, whatever read them; None for nothing."""
    return [_value(each, kind) for each in column]


def _value(value, kind):
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
        return None
    if kind == "integer":
        assert int(value) == float(value)
        return int(value)
    if kind == "number":
        return float(value) + 0.0
    if kind == "boolean":
        return bool(value)
    if kind == "string":
        if isinstance(value, dict | list | np.ndarray):
            return _json(value)
        if isinstance(value, pd.Timestamp):  # a driver of GDAL's took text for a date
            return value.isoformat()
        text = value if isinstance(value, str) and value.isascii() else unicodedata.normalize("NFC", str(value))
        return _json(json.loads(text)) if text[:1] == "{" else text
    if kind.startswith("list"):
        value = json.loads(value) if isinstance(value, str) else value
        return tuple(_value(each, kind[5:-1]) for each in value)
    if kind == "date":
        return pd.Timestamp(value).date().isoformat()
    if kind.startswith("timestamp"):
        stamp = pd.Timestamp(value)
        return (stamp.tz_convert("UTC") if stamp.tz is not None else stamp).as_unit("us").isoformat()
    raise AssertionError(kind)


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def differs(one, other):
    """Where two tables of the same shape differ; nothing equals nothing."""
    left, right = one.to_numpy(dtype=object), other.to_numpy(dtype=object)
    unequal = np.array([x != y for x, y in zip(left.ravel(), right.ravel(), strict=True)], bool).reshape(left.shape)
    return pd.DataFrame(unequal, index=one.index, columns=one.columns)


# --- shapes ----------------------------------------------------------------------------------------------------------------------------


def on_grid(shapes, precision):
    """Shapes with every ordinate on the grid: the decimal number nearest to the ordinate's exact value, as Python writes it."""
    inv = 10.0**precision

    def snapped(xy):
        steps = xy * inv
        nearest = np.rint(steps)
        doubtful = np.abs(np.abs(steps - nearest) - 0.5) < 1e-5
        nearest[doubtful] = [np.rint(round(each, precision) * inv) for each in xy[doubtful].tolist()]
        return nearest / inv

    return shapely.transform(shapely.force_2d(shapes), snapped)


def tokens(shapes):
    """The token of each shape; a point is told from another by its bytes alone."""
    if (shapely.get_type_id(shapes) == shapely.GeometryType.POINT).all() and not shapely.is_empty(shapes).any():
        return list(shapely.to_wkb(shapely.transform(shapes, lambda xy: xy + 0.0)))
    return [token(each) for each in shapes]


def token(one):
    """What tells one shape from another: its parts, rings and vertices, but not where a ring starts or which way it runs."""
    if one is None:
        return None
    if one.is_empty:
        return b"empty"
    one = shapely.transform(one, lambda xy: xy + 0.0)  # no negative zero
    if one.geom_type in LINES:
        return b"".join(sorted(shapely.to_wkb(shapely.remove_repeated_points(each)) for each in shapely.get_parts(one)))
    if one.geom_type in AREAS:
        return b"".join(
            sorted(
                b"(" + _ring(each.exterior) + b"".join(sorted(_ring(hole) for hole in each.interiors)) for each in shapely.get_parts(one)
            )
        )
    if one.geom_type == "GeometryCollection":
        return b"".join(sorted(b"[" + token(each) for each in shapely.get_parts(one)))
    return b"".join(sorted(shapely.to_wkb(each) for each in shapely.get_parts(one)))


def _ring(ring):
    """A ring from its least rotation, in its lesser direction."""
    xy = shapely.get_coordinates(ring)[:-1]
    xy = xy[np.any(xy != np.roll(xy, 1, axis=0), axis=1)] if len(xy) > 1 else xy
    best = None
    for way in (xy, xy[::-1]):
        least = np.flatnonzero(way[:, 0] == way[:, 0].min())
        least = least[way[least, 1] == way[least, 1].min()]
        for at in least:
            turned = np.roll(way, -at, axis=0)
            seen = turned.tolist()
            if best is None or seen < best[0]:
                best = (seen, turned.tobytes())
    return len(xy).to_bytes(4, "big") + (best[1] if best else b"")


def _is_line(one):
    return one is not None and one.geom_type in LINES


def within(published, given, bound):
    """Whether every ordinate of a delivered shape lies within a distance of the published one's, vertex for vertex."""
    if published is None or given is None:
        return False
    one, other = shapely.get_parts(published), shapely.get_parts(given)
    if len(one) != len(other) or {each.geom_type for each in one} != {each.geom_type for each in other}:
        return False
    waiting = list(other)
    for each in one:
        match = next((n for n, there in enumerate(waiting) if _part_within(each, there, bound)), None)
        if match is None:
            return False
        waiting.pop(match)
    return True


def _part_within(one, other, bound):
    if one.geom_type != "Polygon":
        a, b = shapely.get_coordinates(one), shapely.get_coordinates(other)
        return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) <= bound)
    if len(one.interiors) != len(other.interiors) or not _ring_within(one.exterior, other.exterior, bound):
        return False
    waiting = list(other.interiors)
    for hole in one.interiors:
        match = next((n for n, there in enumerate(waiting) if _ring_within(hole, there, bound)), None)
        if match is None:
            return False
        waiting.pop(match)
    return True


def _ring_within(one, other, bound):
    a, b = shapely.get_coordinates(one)[:-1], shapely.get_coordinates(other)[:-1]
    if a.shape != b.shape:
        return False
    return any(
        bool(np.abs(a - np.roll(way, -at, axis=0)).max() <= bound)
        for way in (b, b[::-1])
        for at in np.flatnonzero(np.abs(way - a[0]).max(axis=1) <= bound)
    )
