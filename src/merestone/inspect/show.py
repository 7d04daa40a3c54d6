"""A change between two versions as values to show: counts for a summary, features for a map.

Not here: the feed itself (`dataset.feed`), how it looks (`render.text`, `render.map`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.dataset import feed
from merestone.dataset.feed import Changes, Feed
from merestone.dataset.manifest import DataFile
from merestone.dataset.version import Dataset, Version
from merestone.identity import key as keys
from merestone.json_value import JsonObject
from merestone.reference.ground import metres_per_unit, unit_name
from merestone.reference.systems import horizontal, of_code
from merestone.render import sampling
from merestone.render.map import FEATURES, ChangeMap, MapFeature
from merestone.results.result import CLASSES, Changed, Counts, DiffResult, most_changed, of_feed

CONTEXT = 4_000
"""How many unchanged features are drawn pale beneath a change."""
_CONTEXT_ROWS = 200_000  # rows that are read for them, at most
_VALUES = 12  # attributes that are shown of an added or removed feature


def counts(change: Changes) -> Counts:
    """How many keys each class and label has. A feed does not hold rows that look the same to a reader, so they are not known here."""
    return of_feed(change.counts())


def changes(
    dataset: Dataset, from_version: int | None, to_version: int | None, *, with_rows: bool = False, with_keys: bool = False
) -> tuple[Changes, DiffResult]:
    """What leads from one version to another (`feed.changes`), and its summary.

    Args:
        dataset: the dataset.
        from_version: the version to start from, 0 for nothing; the parent of `to_version` by default.
        to_version: the version to arrive at; the current one by default.
        with_rows: read the rows before and after.
        with_keys: list the keys of each class and label as text.

    Raises:
        UsageError, CorruptError: as `feed.changes`.
    """
    clock = time.perf_counter()
    change = feed.changes(dataset, from_version, to_version, with_rows=with_rows)
    result = difference(dataset, change, with_keys=with_keys)
    return change, replace(result, seconds=time.perf_counter() - clock)


def difference(dataset: Dataset, change: Changes, *, with_keys: bool = False) -> DiffResult:
    """The summary of a change."""
    target = dataset.manifest(change.to_version)
    touched, found = change.touched, counts(change)
    changed = touched.filter(pc.equal(touched.kind, "changed"))
    shapes, values = (np.asarray(each.combine_chunks()).astype(bool) for each in (changed.geometry, changed.attributes))
    fields = pc.value_counts(pc.list_flatten(changed.fields.combine_chunks())).to_pylist()
    unit = unit_name(of_code(int(target.contract["crs_epsg"])))
    listed = None
    if with_keys:
        text = keys.ids_of(touched.key.combine_chunks()) if len(touched) else pa.array([], pa.string())
        kinds = touched.kind.combine_chunks()
        listed = {name: tuple(text.filter(pc.equal(kinds, name)).to_pylist()) for name in (*CLASSES, "reprocessed")}
        listed |= {name: tuple(text.filter(touched.table.column(name).combine_chunks()).to_pylist()) for name in feed.LABELS}
    present = len(touched) - found.removed
    return DiffResult(
        before=f"{target.name} v{change.from_version}" if change.from_version else f"{target.name}, from nothing",
        after=f"v{change.to_version}",
        delta=found,
        unchanged=target.features - present,
        keys=listed,
        changed=Changed(
            attributes=int((values & ~shapes).sum()),
            geometry=int((shapes & ~values).sum()),
            both=int((values & shapes).sum()),
            largest_move=pc.max(changed.geometry_change).as_py(),
            unit={"degree": "degrees"}.get(unit, unit),
            most=most_changed((each["values"], each["counts"]) for each in fields),
        ),
    )


def change_map(dataset: Dataset, change: Changes, attribution: str = "") -> ChangeMap:
    """A change as a map: rows before and after, of as many features as a page shows, on a ground of unchanged ones.

    Args:
        dataset: the dataset.
        change: a change of it, its rows need not be read.
        attribution: whose data this is.

    Raises:
        CorruptError: a data file is missing, cut or altered.
    """
    target = dataset.version(change.to_version)
    body = target.manifest.contract
    epsg = int(body["crs_epsg"])
    touched = change.touched.filter(pc.is_in(change.touched.kind, value_set=pa.array(CLASSES)))
    shown, cells = touched, None
    if len(touched) > FEATURES:
        kinds = np.asarray(pc.index_in(touched.kind.combine_chunks(), value_set=pa.array(CLASSES))).astype(np.int64)
        places = _places(dataset, change, target, touched)
        shown = touched.take(pa.array(sampling.sample(kinds, places, FEATURES)))
        cells = sampling.count_cells(kinds, places, len(CLASSES))
    features = list(_features(dataset, change, target, shown))
    return ChangeMap(
        name=target.manifest.name,
        before=f"v{change.from_version}" if change.from_version else "nothing",
        after=f"v{change.to_version}",
        crs=f"EPSG:{epsg}",
        features=features,
        totals=counts(change),
        geographic=bool(horizontal(of_code(epsg)).is_geographic),
        metres=metres_per_unit(of_code(epsg)),
        precision=int(body["coordinate_precision"]),
        context=_context(target, change.touched),
        attribution=attribution,
        cells=cells,
    )


def _places(dataset: Dataset, change: Changes, target: Version, touched: Feed) -> npt.NDArray[np.float64]:
    """(n, 2) the middle of each touched feature's box where it lies now, or lay before it was removed; NaN where it has none."""
    had, has = (np.asarray(each.combine_chunks()).astype(bool) for each in (touched.had, touched.has))
    out = np.full((len(touched), 2), np.nan)
    out[has] = feed.places_of(target, touched.filter(pa.array(has)), Feed.partition)
    gone = had & ~has
    if gone.any():
        out[gone] = feed.places_of(dataset.version(change.from_version), touched.filter(pa.array(gone)), Feed.old_partition)
    return out


def _features(dataset: Dataset, change: Changes, target: Version, shown: Feed) -> Iterator[MapFeature]:
    if not len(shown):
        return
    had, has = shown.had, shown.has
    after = feed.rows_of(target, shown.filter(has), Feed.partition)
    before = None
    if pc.any(had).as_py():
        source = dataset.version(change.from_version)
        before = feed.rows_of(source, shown.filter(had), Feed.old_partition)
    then, now = _Side(before, had, target), _Side(after, has, target)
    ids = keys.ids_of(shown.key.combine_chunks()).to_pylist()
    for place, row in enumerate(shown.table.to_pylist()):
        old, new = then.row(place), now.row(place)
        yield MapFeature(
            key=ids[place],
            kind=row["class"],
            before=old.pop("", None),
            after=new.pop("", None),
            fields=tuple(_differences(row["class"], row["fields"], old, new)),
            labels=tuple(name for name in feed.LABELS if row[name]),
            move=row["geometry_change"],
        )


class _Side:
    """The rows of one side, found by their place among all shown ones; the geometry is under the name ""."""

    def __init__(self, rows: pa.Table | None, there: pa.ChunkedArray, version: Version) -> None:
        flags = np.asarray(there.combine_chunks()).astype(bool)
        self._place = np.where(flags, np.cumsum(flags) - 1, -1)
        self._rows = rows
        self._keys = set(version.manifest.key["columns"])
        self._geometry = version.columns.geometry

    def row(self, place: int) -> JsonObject:
        if self._rows is None or self._place[place] < 0:
            return {}
        row = self._rows.slice(int(self._place[place]), 1).to_pylist()[0]
        out = {name: value for name, value in row.items() if name not in self._keys and name != self._geometry}
        return {**out, "": row.get(self._geometry)}


def _differences(kind: str, fields: list[str] | None, old: JsonObject, new: JsonObject) -> Iterator[tuple[str, Any, Any]]:
    if kind in ("added", "removed"):
        values = [(name, old.get(name), new.get(name)) for name in (new or old)]
        yield from [each for each in values if each[1] is not None or each[2] is not None][:_VALUES]
    elif kind == "changed":
        # A feature that went and came back has no list of fields: its values are compared.
        for name in fields or [name for name in new if old.get(name) != new.get(name)]:
            yield name, old.get(name), new.get(name)


def _context(version: Version, changed: Feed) -> list[bytes]:
    """Some features that did not change, evenly drawn from the files that lie nearest: those of touched partitions."""
    places = {each for side in (changed.partition, changed.old_partition) for each in side.unique().to_pylist()}
    chosen: list[DataFile] = []
    rows = 0
    for file in sorted(version.files, key=lambda each: (each.partition not in places, each.path)):
        if rows + file.rows > _CONTEXT_ROWS and chosen:
            break
        chosen.append(file)
        rows += file.rows
    columns, step = list(version.manifest.key["columns"]), max(1, rows // CONTEXT)
    touched = changed.key.combine_chunks()
    out: list[bytes] = []
    for file in chosen:
        for batch in version.file_batches(file):
            canonical, _ = keys.key_bytes(batch, columns)
            still = batch.column(version.columns.geometry).filter(pc.invert(pc.is_in(canonical, value_set=touched))).drop_null()
            out += still.take(pa.array(np.arange(0, len(still), step))).to_pylist()
    return out[:CONTEXT]
