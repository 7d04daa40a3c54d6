"""The oracle: nights published one after the other leave what the last of them leaves in an empty folder, judged by plain dictionaries.

A feature of the model lies on whole millimetres. How it is delivered (which way a ring runs, one part or Multi, noise) is its dress, and
no part of what it is; so the model knows every class without rounding, hashing or comparing geometry.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely import (
    LineString,
    MultiLineString,
    MultiPolygon,
    Point,
    Polygon,
    from_wkb,
    get_coordinates,
    get_type_id,
    normalize,
)

from estate import Estate, digest, geoparquet
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source

EAST, NORTH = 500_000_000, 5_600_000_000  # millimetres in EPSG:25832
KEYS = "abcdefgh"
EDGE = 0.54  # of a millimetre: rounds up, yet within half a step and the usual noise


@dataclass(frozen=True)
class Row:
    """A feature, and its dress: `turn` (rings, parts), `multi`, `noise` in millimetres, `guid` (volatile), `bad` (breaks a rule)."""

    name: str | None = "x"
    rank: int | None = 1
    shape: Any = ("point", ((0, 0),))
    district: str | None = "n"
    turn: int = 0
    multi: bool = False
    noise: float = 0.0
    guid: int = 0
    bad: bool = False

    def seen(self, inside: bool) -> tuple[Any, ...]:
        """What a consumer sees of it; rounding the noise at the edge moves it by a millimetre."""
        return (self.name, self.rank, self.district if inside else None, self.placed())

    def placed(self) -> Any:
        if self.shape is None or self.shape[0] == "empty":
            return self.shape
        step = 1 if self.noise == EDGE else 0
        return (self.shape[0], *(tuple((x + step, y) for x, y in run) for run in self.shape[1:]))

    def geometry(self, kind: str) -> Any:
        """The shapely geometry as delivered."""
        if self.shape is None:
            return None
        if self.shape[0] == "empty":
            return {"point": Point(), "multilinestring": LineString(), "multipolygon": Polygon(), "geometry": Polygon()}[kind]
        runs = [[((EAST + x + self.noise) / 1000, (NORTH + y) / 1000) for x, y in run] for run in self.shape[1:]]
        if self.shape[0] == "point":
            return Point(runs[0][0])
        multi = len(runs) > 1 or (self.multi and kind != "geometry")
        order = runs[::-1] if self.turn % 2 else runs
        if self.shape[0] == "line":
            return MultiLineString(order) if multi else LineString(order[0])
        spun = [run[self.turn % len(run) :] + run[: self.turn % len(run)] for run in order]
        rings = [Polygon(run[::-1] if self.turn // 2 % 2 else run) for run in spun]
        return MultiPolygon(rings) if multi else rings[0]


def shapes(kind):
    at = st.tuples(st.integers(0, 5), st.integers(0, 3)).map(lambda xy: (xy[0] * 1000, xy[1] * 1000 + 7))
    point = at.map(lambda xy: ("point", (xy,)))
    run = st.tuples(at, st.integers(1, 9), st.integers(2, 4)).map(
        lambda t: tuple((t[0][0] + t[1] * n, t[0][1] + n * n) for n in range(t[2]))
    )
    line = st.lists(run, min_size=1, max_size=2, unique=True).map(lambda runs: ("line", *sorted(runs)))
    square = st.tuples(at, st.integers(2, 40)).map(lambda t: ring(*t[0], t[1]))
    area = st.one_of(square.map(lambda one: ("area", one)), square.map(lambda one: ("area", one, tuple((x + 100_000, y) for x, y in one))))
    return {"point": point, "multilinestring": line, "multipolygon": area, "geometry": st.one_of(point, line, area)}[kind]


def ring(x, y, size):
    return ((x, y), (x + size, y), (x + size, y + size + 1), (x, y + size))


def turned(shape):
    """A line drawn the other way; an area that way is the same area."""
    return ("line", *sorted(run[::-1] for run in shape[1:])) if shape and shape[0] == "line" else shape


def edits(kind):
    key = st.sampled_from(KEYS)
    return st.one_of(
        st.tuples(st.just("put"), key, shapes(kind)),
        st.tuples(st.just("remove"), key),
        st.tuples(st.just("name"), key, st.sampled_from(["x", "y", "\u00e9", None, ""])),
        st.tuples(st.just("rank"), key, st.sampled_from([None, 1, 2])),
        st.tuples(st.just("shape"), key, shapes(kind)),
        st.tuples(st.just("shape"), key, st.sampled_from([None, ("empty",)])),
        st.tuples(st.just("turned"), key),
        st.tuples(st.just("district"), key, st.sampled_from(["n", "s", "N", "", None])),
        st.tuples(st.just("dress"), key, st.integers(0, 7), st.booleans()),
        st.tuples(st.just("noise"), key, st.sampled_from([0.0, 0.3, -0.4, EDGE])),
        st.tuples(st.just("swap"), key, key),
        st.tuples(st.just("bad"), key),
        st.tuples(st.just("good"), key),
    )


def apply(state, edit, night):
    kind, key, *rest = edit
    if kind == "put":
        state.setdefault(key, Row(shape=rest[0], district="n" if key < "e" else "s"))
    elif key not in state:
        return
    elif kind == "remove":
        if len(state) > 1:
            del state[key]
    elif kind == "swap":
        if rest[0] in state:
            state[key], state[rest[0]] = state[rest[0]], state[key]
    elif kind == "turned":
        state[key] = replace(state[key], shape=turned(state[key].shape))
    elif kind == "dress":
        state[key] = replace(state[key], turn=rest[0], multi=rest[1])
    elif kind in ("bad", "good"):
        state[key] = replace(state[key], bad=kind == "bad")
    else:
        state[key] = replace(state[key], **{kind: rest[0]})
    if key in state:
        state[key] = replace(state[key], guid=night)


@st.composite
def stories(draw, kind):
    """Versions: the first from nothing, each other by edits of the one before."""
    state: dict[str, Row] = {}
    for key in KEYS[: draw(st.integers(2, 8))]:
        state[key] = Row(shape=draw(shapes(kind)), district=draw(st.sampled_from("nsw")))
    versions = [dict(state)]
    for night in range(1, draw(st.integers(2, 4))):
        for edit in draw(st.lists(edits(kind), max_size=8)):
            apply(state, edit, night)
        versions.append(dict(state))
    return versions


@dataclass
class Model:
    """What is published: key to row (the delivered one that was stored), and the partition value it has."""

    inside: bool
    by: str
    rows: dict[str, Row]
    homes: dict[str, str | None]
    old: set[str]  # suppressed or held: published is not what was delivered last
    sources: dict[str, Any]  # what was accepted last, on the grid: the same again needs no second look
    turned: dict[str, set[str]] = field(default_factory=dict)  # lines that differ in direction alone, in all of their parts or in some

    def night(self, delivered):
        """The class of every key, and the fates."""
        classes, accepted = {}, {}
        self.turned = {"all": set(), "some": set()}
        for key, row in delivered.items():
            before = self.rows.get(key)
            if row.bad:
                classes[key] = "rejected" if before is None else "held"
                self.old |= {key} if before else set()
                continue
            elsewhere = before is not None and self.by == "column" and self.homes[key] != row.district
            again = self.sources.get(key) == row.seen(self.inside)
            near = (  # the geometry differs by noise, and the published one stays
                before is not None
                and row.noise == EDGE
                and before.noise != EDGE
                and row.shape is not None
                and row.shape[0] != "empty"
                and before.placed() == replace(row, noise=0).placed()
            )
            quiet = near and before.seen(self.inside) == replace(row, noise=0).seen(self.inside)
            if near and not quiet:
                row = replace(row, noise=0)  # noqa: PLW2901 - as it is stored
            if not quiet:  # what is suppressed on the contract's own grid is looked at again each night
                accepted[key] = row.seen(self.inside)
            if before is None:
                classes[key] = "added"
            elif quiet or row.seen(self.inside) == before.seen(self.inside):
                classes[key] = "moved" if elsewhere else "suppressed" if quiet and not again else "unchanged"
            else:
                classes[key] = "changed"
                self.note_turn(key, before, row)
            self.old = self.old | {key} if near else self.old - {key}
            if not quiet:
                self.rows[key] = row if classes[key] != "unchanged" or row.noise != EDGE else before
            self.homes[key] = row.district
        for key in self.rows.keys() - delivered.keys():
            classes[key] = "removed"
            self.old.discard(key)
        for key in [key for key, kind in classes.items() if kind == "removed"]:
            del self.rows[key], self.homes[key], self.sources[key]
        if {"added", "changed", "removed", "moved"} & set(
            classes.values()
        ):  # nothing else makes a version that could remember what was delivered
            self.sources |= accepted
        return classes

    def note_turn(self, key, before, row):
        was, now = before.placed(), row.placed()
        if before.seen(self.inside)[:3] != row.seen(self.inside)[:3] or not was or not now or {was[0], now[0]} != {"line"}:
            return
        if turned(was) == now:
            self.turned["all"].add(key)
        elif sorted(min(run, run[::-1]) for run in was[1:]) == sorted(min(run, run[::-1]) for run in now[1:]):
            self.turned["some"].add(key)


def deliver(path, state, kind, seed):
    keys = list(state)
    np.random.default_rng(seed).shuffle(keys)
    rows = [state[key] for key in keys]
    columns = {
        "guid": pa.array([row.guid for row in rows], pa.int64()),
        "district": pa.array([row.district for row in rows], pa.string()),
        "pid": pa.array(keys, pa.string()),
        "name": pa.array([row.name for row in rows], pa.string()),
        "rank": pa.array([row.rank for row in rows], pa.int64()),
        "geometry": [row.geometry(kind) for row in rows],
        "flag": pa.array([None if row.bad else "ok" for row in rows], pa.string()),
    }
    names = list(columns)[seed % 7 :] + list(columns)[: seed % 7]
    return geoparquet(path, {name: columns[name] for name in names}, epsg=25832)


def product(folder, kind, by, inside):
    fields = [
        {"name": "pid", "type": "string", "nullable": False},
        {"name": "name", "type": "string"},
        {"name": "rank", "type": "integer"},
        {"name": "guid", "type": "integer", "volatile": True},
        {"name": "flag", "type": "string", "nullable": False},
    ]
    made = Estate(
        folder,
        fields + ([{"name": "district", "type": "string"}] if inside else []),
        epsg=25832,
        precision=3,
        geometry_type=kind,
        geometry={"nullable": True, "empty": True},
    )
    made.settings |= {
        "rejects": {"max_fraction": 1},
        "files": {"target_rows": 3, "row_group_rows": 2},
    }
    made.agreed()
    if by == "column":
        made.by_column("district")
    elif by == "kdtree":
        made.by_place(2)
    if not inside and by != "column":
        made.settings["extra_columns"] = "warn"
    return made


CLASSES = ("added", "changed", "removed", "moved", "suppressed", "held")


@pytest.mark.parametrize(
    ("by", "inside", "kind"),
    [
        ("none", True, "multilinestring"),
        ("column", True, "multipolygon"),
        ("column", False, "multilinestring"),
        ("column", False, "multipolygon"),
        ("kdtree", False, "point"),
        ("kdtree", True, "multipolygon"),
        ("kdtree", False, "geometry"),
    ],
)
def test_nights_one_by_one_equal_the_last_alone(by, inside, kind):
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)
    @given(stories(kind))
    def check(versions):
        folder = Path(tempfile.mkdtemp(prefix="oracle-"))
        try:
            run(folder, versions)
        finally:
            shutil.rmtree(folder)

    def run(folder, versions):
        estate = product(folder / "nights", kind, by, inside)
        model = Model(inside, by, {}, {}, set(), {})
        seen_files: dict[str, str] = {}
        tree = None
        for night, state in enumerate(versions):
            told = estate.publish(deliver(folder / f"{night}.parquet", state, kind, night))
            expected = model.night(state)
            delta, result = told.result.delta, told.result
            assert told.status in ("published", "unchanged"), told.said
            assert result.delivered == len(state)
            fates = result.unchanged + delta.added + delta.changed + delta.moved + delta.suppressed + delta.reprocessed + result.rejected
            assert fates == len(state)
            for name in CLASSES:
                keys = sorted(key for key, each in expected.items() if each == name)
                if told.log or name not in ("held", "suppressed"):
                    assert told.keys(name) == keys, f"night {night}: {name}\n{told.said}"
            assert delta.suppressed == sum(each == "suppressed" for each in expected.values())
            assert (told.status == "published") == bool(delta.touched or night == 0)
            assert result.rejected == sum(row.bad for row in state.values())
            told_reversed = {key for key, line in told.log.items() if line["reversed"]}
            assert model.turned["all"] <= told_reversed <= model.turned["all"] | model.turned["some"]
            assert delta.reversed == len(told_reversed)
            assert result.features == len(model.rows)
            now = estate.bytes_of()
            assert all(seen_files.get(path, check_) == check_ for path, check_ in now.items())
            seen_files |= now
            manifest = estate.manifest()
            assert sum(file.rows for file in estate.files()) == manifest.features == len(model.rows)
            if by == "kdtree":
                tree = tree or estate.tree()
                assert estate.tree() == tree
        assert {path: digest(estate.url / path) for path in seen_files} == seen_files

        assert estate.manifest().set_digest == estate.set_digest()

        fresh = product(folder / "alone", kind, by, inside)
        fresh.publish(folder / f"{len(versions) - 1}.parquet")
        same(estate, fresh, model, versions[-1])
        if by == "kdtree":
            assert estate.partitions() == estate.in_tree(tree)
        elif by == "column":
            values, alone = estate.values(), fresh.values()
            homes = {key: values[home] for key, home in estate.partitions().items()}
            assert homes == model.homes
            assert {key: alone[home] for key, home in fresh.partitions().items()} == {key: homes[key] for key in fresh.rows()}
            folders = {home.lower() for home in estate.partitions().values()}
            assert len(folders) == len(set(homes.values()))
        else:
            assert set(estate.partitions().values()) <= {""}

    check()


def same(estate, fresh, model, last):
    """Both have the model's keys and values."""
    mine, theirs = estate.rows(), fresh.rows()
    assert set(mine) == set(model.rows)
    assert set(theirs) == {key for key, row in last.items() if not row.bad}
    for key in mine:
        row = mine[key]
        told = (row["name"], row["rank"], row["district"] if model.inside else None)
        assert told == model.rows[key].seen(model.inside)[:3], key
        check_geometry(row["geometry"], model.rows[key].placed(), key)
        if key in model.old or key not in theirs:
            continue
        assert {name: value for name, value in row.items() if name != "guid"} == {
            name: value for name, value in theirs[key].items() if name != "guid"
        }, key
    if not model.old:
        assert estate.manifest().set_digest == fresh.manifest().set_digest
        assert estate.manifest().features == fresh.manifest().features


def check_geometry(wkb, placed, key):
    """The stored geometry is the model's, to the millimetre."""
    if placed is None:
        assert wkb is None, key
        return
    stored = from_wkb(wkb)
    if placed[0] == "empty":
        assert stored.is_empty, key
        return
    plain = Row(shape=placed).geometry("multi")
    if get_type_id(stored) != get_type_id(plain):
        plain = {5: MultiLineString, 6: MultiPolygon}[get_type_id(stored)]([plain])
    exact = stored.geom_type.endswith("LineString")
    if exact:
        lines = [
            sorted(np.round(get_coordinates(part) * 1000).astype(int).tolist() for part in getattr(each, "geoms", [each]))
            for each in (stored, plain)
        ]
        assert lines[0] == lines[1], key
    else:
        ours, its = (np.round(get_coordinates(normalize(each)) * 1000).astype(int).tolist() for each in (stored, plain))
        assert ours == its, key


def test_the_model_can_fail(tmp_path):
    """A line drawn the other way is another line to the model too; an area is not."""
    line = Row(shape=("line", ((0, 0), (1, 1))))
    assert line.seen(inside=True) != replace(line, shape=turned(line.shape)).seen(inside=True)
    assert Row(turn=3).seen(inside=True) == Row(turn=0).seen(inside=True)
    estate = product(tmp_path, "point", "none", inside=True)
    estate.write(deliver(tmp_path / "1.parquet", {"a": Row()}, "point", 1))
    publication = with_source(read_publication(str(tmp_path / "product.yaml")), str(tmp_path / "1.parquet"))
    publish(publication, PublishSettings())
    with pytest.raises(AssertionError):
        same(estate, estate, Model(True, "none", {"a": Row(name="other")}, {}, set(), {}), {"a": Row()})
