"""What changed between two versions, from their change logs, folded so that only the difference of the two ends remains.

Not here: writing change logs (`writer.files`), deciding what changed (`change`), drawing changes (`render`).

Folding: a key that comes back to what it was is left out; added and then removed is nothing; removed and then added is changed, moved or
nothing, as the digests and partitions of the two ends say. Rows that were suppressed, held or merely delivered in other bytes look the
same to a reader before and after, and are not part of the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.table_shape import TableColumn, TableShape, Values
from merestone.dataset.manifest import HistoryLine, Manifest, ObjectRef
from merestone.dataset.proved import HINT, opened, proving, read_table
from merestone.dataset.tables import DIGEST, ChangeLog
from merestone.dataset.values import split_new, without_values
from merestone.dataset.version import Dataset, Version, boxes
from merestone.errors import CorruptError, UsageError
from merestone.identity import key as keying
from merestone.storage.port import Store

LABELS = ("reversed", "rekeyed", "backfilled")
"""What a feed says of keys in a class. A change log does not hold `backfilled`: it follows from the version where the feed starts."""
CLASSES = ("added", "changed", "removed", "moved", "reprocessed")
ADDED, CHANGED, REMOVED, MOVED, REPROCESSED = range(len(CLASSES))
_LOGGED = [name for name in ChangeLog.schema.names if name != ChangeLog.source_digest.name]


class Feed(TableShape):
    """A change feed: one row per touched key, with its class, labels, digests and partitions before and after."""

    key = TableColumn(pa.binary(), nullable=False)
    kind = TableColumn(pa.string(), nullable=False, name="class")
    reversed = TableColumn(pa.bool_(), nullable=False)
    rekeyed = TableColumn(pa.bool_(), nullable=False)
    backfilled = TableColumn(pa.bool_(), nullable=False)
    attributes = TableColumn(pa.bool_(), nullable=False)
    geometry = TableColumn(pa.bool_(), nullable=False)
    geometry_change = TableColumn(pa.float64())
    fields = TableColumn(pa.list_(pa.string()))
    digest = TableColumn(DIGEST)
    old_digest = TableColumn(DIGEST)
    partition = TableColumn(pa.string())
    old_partition = TableColumn(pa.string())

    @property
    def had(self) -> pa.ChunkedArray:
        """Which rows existed before: a boolean array."""
        return pc.not_equal(self.kind, "added")

    @property
    def has(self) -> pa.ChunkedArray:
        """Which rows exist after: a boolean array."""
        return pc.not_equal(self.kind, "removed")


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two versions.

    `touched`: one row per touched key, ordered by key bytes. `before` and `after`: the rows of the two versions in the same order, those
    that existed (`touched.had`) and those that exist (`touched.has`); None unless asked for, `before` also from version 0.
    `key`: the key columns of each touched key, with their names and types; where the key rule changed on the way, the columns of both
    rules, null in the rows of the other one (as text where both rules have a column of that name in two types).
    """

    from_version: int
    to_version: int
    touched: Feed
    key: pa.Table
    before: pa.Table | None = None
    after: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The touched features as an Arrow table."""
        return self.touched.table

    def counts(self) -> dict[str, int]:
        """How many keys each class and label has."""
        return counted(self.touched.table)


def counted(table: pa.Table) -> dict[str, int]:
    """How many features of a feed or a change log each class and label has; rekeyed ones are counted as pairs, as everywhere."""
    kinds = table.column("class").cast(pa.string())
    found = {each["values"]: each["counts"] for each in pc.value_counts(kinds).to_pylist()}
    pairs = pc.and_(table.column("rekeyed"), pc.equal(kinds, "added"))
    labels = {name: table.column(name) for name in LABELS if name in table.column_names} | {"rekeyed": pairs}
    return {name: found.get(name, 0) for name in CLASSES} | {name: pc.sum(each).as_py() or 0 for name, each in labels.items()}


def changes(dataset: Dataset, from_version: int | None = None, to_version: int | None = None, *, with_rows: bool = False) -> Changes:
    """What leads from one version to another.

    Args:
        dataset: the dataset.
        from_version: the version to start from, 0 for the empty dataset; the parent of `to_version` by default.
        to_version: the version to arrive at; the current one by default.
        with_rows: read the rows before and after, from the files of touched partitions only.

    Raises:
        UsageError: the version does not exist, or they are in the wrong order.
        CorruptError: a change log or data file is missing, cut or altered.
    """
    target = dataset.manifest(to_version)
    start = (target.parent or 0) if from_version is None else from_version
    if start > target.version:
        dataset.manifest(start)  # one that does not exist is a UsageError here
        raise UsageError(
            f"changes lead from an older version to a newer one, not from {start} to {target.version}",
            field="from_version",
            hint=f"ask «from_version={target.version}», «to_version={start}», and read the classes the other way round",
        )
    steps, base = _steps(dataset, start, target.version)
    touched = fold([read_log(dataset.store, step.changes) for step in reversed(steps)])
    version = Version(dataset.store, target)
    if base is not None:
        touched = _label_backfilled(touched, Version(dataset.store, base))
    key = key_columns(version, touched, base)
    if not with_rows:
        return Changes(start, target.version, touched, key)
    before = after = None
    if base is not None:
        before = rows_of(Version(dataset.store, base), touched.filter(touched.had), Feed.old_partition)
    after = rows_of(version, touched.filter(touched.has), Feed.partition)
    return Changes(start, target.version, touched, key, before, after)


def backwards(change: Changes) -> Changes:
    """The way back: what was added is removed, and what each row was before is what it becomes."""
    touched = change.touched
    kinds = touched.kind
    turned = pc.if_else(pc.equal(kinds, "added"), "removed", pc.if_else(pc.equal(kinds, "removed"), "added", kinds))
    back = (
        touched.with_column(Feed.kind, turned)
        .with_column(Feed.digest, touched.old_digest)
        .with_column(Feed.old_digest, touched.digest)
        .with_column(Feed.partition, touched.old_partition)
        .with_column(Feed.old_partition, touched.partition)
        .with_column(Feed.backfilled, pa.array(np.zeros(len(touched), bool)))  # on the way back the values go
    )
    return Changes(change.to_version, change.from_version, back, change.key, change.after, change.before)


def rekeyed(kinds: Values, digest: Values, old_digest: Values, reported: npt.NDArray[np.bool_]) -> Values:
    """Which rows of a feed are added or removed and hold one content, unique on both sides, among the rows that are `reported`."""
    codes = np.asarray(pc.index_in(kinds, value_set=pa.array(CLASSES))).astype(np.int64)
    return _rekeyed(np.where(reported, codes, -1), digest, old_digest)


def key_columns(version: Version, feed: Feed, base: Manifest | None = None) -> pa.Table:
    """The key columns behind the canonical key bytes of a feed, as a pyarrow.Table with the names and types of the version.

    `base` is where the feed starts: features that are there alone have keys of its rule; see `Changes`.
    """
    schema = _key_schema(version.columns.schema, version.manifest)
    gone = ~np.asarray(feed.has.combine_chunks()).astype(bool)
    if base is None or not gone.any() or _rule(base) == _rule(version.manifest):
        return _decoded(feed, schema)
    older = Version(version.store, base)
    sides = [_decoded(feed.filter(pa.array(~gone)), schema), _decoded(feed.filter(pa.array(gone)), _key_schema(older.columns.schema, base))]
    types = {each.name: each.type for each in reversed([*sides[0].schema, *sides[1].schema])}
    both = {name for name in sides[0].column_names if name in sides[1].column_names}
    types |= {name: pa.string() for name in both if sides[0].schema.field(name).type != sides[1].schema.field(name).type}
    filled = [
        pa.table(
            {
                name: side.column(name).cast(kind) if name in side.column_names else pa.nulls(side.num_rows, kind)
                for name, kind in types.items()
            }
        )
        for side in sides
    ]
    back = np.empty(len(gone), np.int64)
    back[np.concatenate([np.flatnonzero(~gone), np.flatnonzero(gone)])] = np.arange(len(gone))
    return pa.concat_tables(filled).take(pa.array(back))


def _rule(manifest: Manifest) -> tuple[list[str], list[str]]:
    return list(manifest.key["columns"]), list(manifest.key.get("types", ()))


def _key_schema(schema: pa.Schema, manifest: Manifest) -> pa.Schema:
    return pa.schema([schema.field(name) for name in manifest.key["columns"]])


def _decoded(feed: Feed, schema: pa.Schema) -> pa.Table:
    if not len(feed):
        return schema.empty_table()
    return pa.Table.from_arrays(keying.decode_keys(feed.key, schema.types), schema=schema)


def read_log(store: Store, ref: ObjectRef) -> Feed:
    """The rows of a change log that a reader can see, as the feed of its step.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    parts = []
    with opened(store, ref) as parquet, proving(ref):
        for part in parquet.groups(_LOGGED):
            log = ChangeLog(part)
            seen = log.filter(pc.is_in(log.kind.cast(pa.string()), value_set=pa.array(CLASSES)))
            columns = {each.name: seen.table.column(each.name).cast(each.type) for each in Feed.schema if each.name in _LOGGED}
            columns[Feed.backfilled.name] = pa.chunked_array([np.zeros(len(seen), bool)], pa.bool_())
            parts.append(Feed(pa.table({name: columns[name] for name in Feed.schema.names})))
    return Feed.concat(parts)


def read_classes(store: Store, ref: ObjectRef) -> Feed:
    """Key and class of every row of a change log, also of those that a reader cannot see; the other columns are not read.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    log = ChangeLog(read_table(store, ref, [ChangeLog.key.name, ChangeLog.kind.name]))
    return Feed(log.table.set_column(1, Feed.kind.name, log.kind.cast(pa.string())))


def fold(logs: Sequence[Feed]) -> Feed:
    """Several steps as one, ordered by key bytes.

    Args:
        logs: as of `read_log`, oldest first; a key stands at most once in each.
    """
    steps = Feed(Feed.concat(logs).table.combine_chunks())
    if not len(steps):
        return Feed.empty()
    table = steps.table
    if len(logs) > 1:
        table = _fold(steps, np.repeat(np.arange(len(logs)), [len(log) for log in logs]))
    table = table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")]))
    return Feed(table.cast(Feed.schema))


def rows_of(version: Version, feed: Feed, partition: TableColumn) -> pa.Table:
    """The published rows of some keys, one for each row of `feed` and in its order.

    Args:
        version: where to read.
        feed: the keys, ordered by their bytes.
        partition: the column that says where each row lies (`Feed.partition`, `Feed.old_partition`); only those partitions' files are read.

    Raises:
        CorruptError: a row is not where the change log says.
    """
    schema = version.columns.schema
    places = set(feed.table.column(partition.name).unique().to_pylist())
    names = tuple(version.manifest.key["columns"])
    keys = feed.key.combine_chunks()
    rows, found = [], []
    for file in version.files:
        if file.partition not in places:
            continue
        for batch in version.file_batches(file):
            here, _ = keying.key_bytes(batch, names)
            wanted = pc.is_in(here, value_set=keys)
            if pc.any(wanted).as_py():
                rows.append(batch.filter(wanted))
                found.append(here.filter(wanted))
    table = pa.Table.from_batches(rows, schema)
    at = pa.chunked_array(found, pa.binary())
    if not at.equals(feed.key):
        order = pc.sort_indices(at)
        table, at = table.take(order), at.take(order)
    if not at.combine_chunks().equals(keys):
        raise CorruptError(
            f"version {version.number} holds {len(at)} of {len(keys)} features that its change log puts there",
            field=version.manifest.changes.path,
            hint=HINT,
        )
    return table


def places_of(version: Version, feed: Feed, partition: TableColumn) -> npt.NDArray[np.float64]:
    """(n, 2) the middle of the box of each feature of a feed, NaN where it has no position; arguments and errors as of `rows_of`."""
    places = set(feed.table.column(partition.name).unique().to_pylist())
    keys, names = feed.key.combine_chunks(), tuple(version.manifest.key["columns"])
    out = np.full((len(keys), 2), np.nan)
    for file in version.files:
        if file.partition not in places:
            continue
        for columns, box in boxes(version, file):
            here, _ = keying.key_bytes(columns, names)
            at = np.asarray(pc.fill_null(pc.index_in(here, value_set=keys), -1))
            out[at[at >= 0]] = (box[at >= 0, :2] + box[at >= 0, 2:]) / 2
    return out


def _steps(dataset: Dataset, start: int, target: int) -> tuple[list[HistoryLine], Manifest | None]:
    """The versions after `start` up to the target, newest first, and the manifest of `start` (None for 0).

    Raises:
        UsageError: version `start` does not exist.
    """
    base = dataset.manifest(start) if start else None
    steps = []
    for each in dataset.history():
        if each.version <= start:
            break
        if each.version <= target:
            steps.append(each)
    return steps, base


def _fold(steps: Feed, step: npt.NDArray[np.int64]) -> pa.Table:
    """One row per key out of many; see the module's docstring. `step` gives the log of each row."""
    key = np.asarray(steps.key.combine_chunks().dictionary_encode().indices)
    order = np.lexsort((step, key))
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    ends = np.r_[starts[1:], len(order)]
    first, last = order[starts], order[ends - 1]
    kinds = np.asarray(pc.index_in(steps.kind, value_set=pa.array(CLASSES))).astype(np.int64)
    has_before, has_after = kinds[first] != ADDED, kinds[last] != REMOVED

    head, tail = steps.take(pa.array(first)), steps.take(pa.array(last))
    # A move keeps its digest; a log need not repeat it.
    kept = pc.coalesce(head.old_digest, head.digest)
    old_digest = pc.if_else(pa.array(kinds[first] == MOVED), kept, head.old_digest)
    digest, place, old_place = tail.digest, tail.partition, head.old_partition
    differs = ~np.asarray(pc.fill_null(pc.equal(old_digest, digest), fill_value=False))
    elsewhere = ~np.asarray(pc.fill_null(pc.equal(old_place, place), fill_value=False))

    def whether(values: npt.NDArray[np.bool_], *, every: bool = False) -> npt.NDArray[np.bool_]:
        """Whether any (or every) step of a key says so."""
        combine = np.logical_and if every else np.logical_or
        out: npt.NDArray[np.bool_] = combine.reduceat(values[order], starts)
        return out

    silent = kinds == REPROCESSED
    only_reprocessed = whether(silent | (kinds == MOVED), every=True)
    both = has_before & has_after
    kind = np.full(len(first), -1)
    kind[~has_before & has_after] = ADDED
    kind[has_before & ~has_after] = REMOVED
    kind[both & differs] = np.where(only_reprocessed[both & differs], REPROCESSED, CHANGED)
    kind[both & ~differs & elsewhere] = MOVED

    changed = kind == CHANGED
    turned, attributes, shapes = (
        np.asarray(each.combine_chunks()).astype(bool) for each in (steps.reversed, steps.attributes, steps.geometry)
    )
    single = ends - starts == 1
    # What a key that went and came back differs in is not in the logs: both may.
    returned = changed & whether((kinds == REMOVED) | (kinds == ADDED))
    geometry = changed & (whether(shapes) | returned)
    sizes = pc.if_else(pa.array(single), head.geometry_change, pa.scalar(None, pa.float64()))
    fields = _union(steps, order, starts, ends, changed & ~returned)
    out = pa.table(
        {
            "key": head.key,
            "class": pa.array(np.array([*CLASSES, ""], dtype=object)[kind], pa.string()),
            "reversed": pa.array(changed & whether(turned | (kinds != CHANGED), every=True) & ~returned),
            "rekeyed": _rekeyed(kind, digest, old_digest),
            "backfilled": pa.array(np.zeros(len(kind), bool)),
            "attributes": pa.array(changed & (whether(attributes) | returned)),
            "geometry": pa.array(geometry),
            "geometry_change": pc.if_else(pa.array(geometry), sizes, pa.scalar(None, pa.float64())),
            "fields": fields,
            "digest": pc.if_else(pa.array(has_after), digest, pa.scalar(None, pa.binary(16))),
            "old_digest": pc.if_else(pa.array(has_before), old_digest, pa.scalar(None, pa.binary(16))),
            "partition": pc.if_else(pa.array(has_after), place, pa.scalar(None, pa.string())),
            "old_partition": pc.if_else(pa.array(has_before), old_place, pa.scalar(None, pa.string())),
        }
    )
    return out.filter(pa.array(kind >= 0))


def _label_backfilled(feed: Feed, base: Version) -> Feed:
    """Mark the features that changed only in fields which held no value in the version where the feed starts.

    Raises:
        CorruptError: a data file of that version is missing, cut or altered.
    """
    changed, values, shapes = (
        np.asarray(each.combine_chunks()).astype(bool) for each in (pc.equal(feed.kind, "changed"), feed.attributes, feed.geometry)
    )
    lists = feed.fields.combine_chunks()
    label = changed & values & ~shapes & np.asarray(lists.is_valid())
    if not label.any():
        return feed
    owner, names = np.asarray(pc.list_parent_indices(lists)), pc.list_flatten(lists)
    new, known = split_new(names.filter(pa.array(label[owner])).unique().to_pylist(), base.manifest.contract)
    filled = new | without_values(base.store, base.files, known) if known else new
    other = ~np.asarray(pc.is_in(names, value_set=pa.array(sorted(filled), pa.string())))
    label[owner[other]] = False
    return feed.with_column(Feed.backfilled, pa.array(label))


def _rekeyed(kind: npt.NDArray[np.int64], digest: Values, old_digest: Values) -> Values:
    """Added and removed keys that hold one content, unique on both sides."""
    new, old = _unique(digest.filter(pa.array(kind == ADDED))), _unique(old_digest.filter(pa.array(kind == REMOVED)))
    pairs = new.filter(pc.is_in(new, value_set=old))
    return pc.or_(
        pc.and_(pa.array(kind == ADDED), pc.is_in(digest, value_set=pairs)),
        pc.and_(pa.array(kind == REMOVED), pc.is_in(old_digest, value_set=pairs)),
    )


def _unique(digests: Values) -> pa.Array:
    counted = pc.value_counts(pc.drop_null(digests))
    return counted.field("values").filter(pc.equal(counted.field("counts"), 1))


def _union(steps: Feed, order: npt.NDArray[np.int64], starts: Iterable[int], ends: Iterable[int], known: npt.NDArray[np.bool_]) -> pa.Array:
    """The names that changed in any step of a key, sorted; null where they are not `known`."""
    lists = steps.fields.combine_chunks().take(pa.array(order))
    group = np.repeat(np.arange(len(known)), np.fromiter(ends, np.int64) - np.fromiter(starts, np.int64))
    owner = group[np.asarray(pc.list_parent_indices(lists))]
    pairs = pa.table({"owner": owner, "name": pc.list_flatten(lists)})
    pairs = pairs.group_by(["owner", "name"]).aggregate([]).sort_by([("owner", "ascending"), ("name", "ascending")])
    counts = np.bincount(np.asarray(pairs.column("owner")), minlength=len(known))
    offsets = np.r_[0, np.cumsum(counts)].astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pairs.column("name").combine_chunks(), mask=pa.array(~known | (counts == 0)))
