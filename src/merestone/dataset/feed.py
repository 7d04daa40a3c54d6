"""What changed between two versions, from their change logs, folded so that only the difference of the two ends remains.

Not here: writing change logs (`writer.files`), deciding what changed (`change`), drawing changes (`render`).

Folding: a key that comes back to what it was is left out; added and then removed is nothing; removed and then added is changed, moved or
nothing, as the digests and partitions of the two ends say. Rows that were suppressed, held or merely delivered in other bytes look the
same to a reader before and after, and are not part of the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.dataset.known import CHANGES_SCHEMA
from merestone.dataset.manifest import HistoryLine, Manifest, ObjectRef
from merestone.dataset.proved import HINT, opened, proving
from merestone.dataset.values import split_new, without_values
from merestone.dataset.version import Dataset, Version, boxes
from merestone.errors import CorruptError, UsageError
from merestone.identity import key as keying
from merestone.storage.port import Store

LABELS = ("reversed", "rekeyed", "backfilled")
"""What a feed says of keys in a class. A change log does not hold `backfilled`: it follows from the version where the feed starts."""
CLASSES = ("added", "changed", "removed", "moved", "reprocessed")
ADDED, CHANGED, REMOVED, MOVED, REPROCESSED = range(len(CLASSES))
FEED_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        pa.field("class", pa.string(), nullable=False),
        *(CHANGES_SCHEMA.field(name) for name in ("reversed", "rekeyed")),
        pa.field("backfilled", pa.bool_(), nullable=False),
        *(CHANGES_SCHEMA.field(name) for name in ("attributes", "geometry", "geometry_change", "fields")),
        ("digest", pa.binary(16)),
        ("old_digest", pa.binary(16)),
        ("partition", pa.string()),
        ("old_partition", pa.string()),
    ]
)
Feed: TypeAlias = pa.Table
"""A change feed: FEED_SCHEMA, one row per touched key, with its class, labels, digests and partitions before and after."""
_LOGGED = [name for name in CHANGES_SCHEMA.names if name != "source_digest"]


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two versions.

    `table`: FEED_SCHEMA, one row per touched key, ordered by key bytes. `before` and `after`: the rows of the two versions in the order of
    `table`, those that existed (`had(table)`) and those that exist (`has(table)`); None unless asked for, `before` also from version 0.
    `key`: the key columns of each row of `table`, with their names and types; where the key rule changed on the way, the columns of both
    rules, null in the rows of the other one (as text where both rules have a column of that name in two types).
    """

    from_version: int
    to_version: int
    table: Feed
    key: pa.Table
    before: Any = None
    after: Any = None

    def counts(self) -> dict[str, int]:
        """How many keys each class and label has."""
        return counted(self.table)


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
    table = fold([read_log(dataset.store, step.changes) for step in reversed(steps)])
    version = Version(dataset.store, target)
    if base is not None:
        table = _label_backfilled(table, Version(dataset.store, base))
    key = key_columns(version, table, base)
    if not with_rows:
        return Changes(start, target.version, table, key)
    before = after = None
    if base is not None:
        before = rows_of(Version(dataset.store, base), table.filter(had(table)), "old_partition")
    after = rows_of(version, table.filter(has(table)), "partition")
    return Changes(start, target.version, table, key, before, after)


def backwards(change: Changes) -> Changes:
    """The way back: what was added is removed, and what each row was before is what it becomes."""
    table = change.table
    kinds = table.column("class")
    turned = pc.if_else(pc.equal(kinds, "added"), "removed", pc.if_else(pc.equal(kinds, "removed"), "added", kinds))
    for one, other in (("digest", "old_digest"), ("partition", "old_partition")):
        now, then = table.column(one), table.column(other)
        table = table.set_column(table.schema.get_field_index(one), FEED_SCHEMA.field(one), then)
        table = table.set_column(table.schema.get_field_index(other), FEED_SCHEMA.field(other), now)
    table = table.set_column(table.schema.get_field_index("class"), FEED_SCHEMA.field("class"), turned)
    table = _with_backfilled(table, np.zeros(table.num_rows, bool))  # on the way back the values go
    return Changes(change.to_version, change.from_version, table, change.key, change.after, change.before)


def rekeyed(kinds: Any, digest: Any, old_digest: Any, told: npt.NDArray[np.bool_]) -> Any:
    """Which rows of a feed are added or removed and hold one content, unique on both sides, among the rows that are `reported`."""
    codes = np.asarray(pc.index_in(kinds, value_set=pa.array(CLASSES))).astype(np.int64)
    return _rekeyed(np.where(told, codes, -1), digest, old_digest)


def key_columns(version: Version, feed: Feed, base: Manifest | None = None) -> pa.Table:
    """The key columns behind the canonical key bytes of a feed, as a pyarrow.Table with the names and types of the version.

    `base` is where the feed starts: features that are there alone have keys of its rule; see `Changes`.
    """
    schema = _key_schema(version.columns.schema, version.manifest)
    gone = ~np.asarray(has(feed).combine_chunks()).astype(bool)
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
    if feed.num_rows == 0:
        return schema.empty_table()
    return pa.Table.from_arrays(keying.decode_keys(feed.column("key"), schema.types), schema=schema)


def had(table: pa.Table) -> pa.ChunkedArray:
    """Which rows of a feed existed before: a boolean array."""
    return pc.not_equal(table.column("class"), "added")


def has(table: pa.Table) -> pa.ChunkedArray:
    """Which rows of a feed exist after: a boolean array."""
    return pc.not_equal(table.column("class"), "removed")


def read_log(store: Store, ref: ObjectRef) -> pa.Table:
    """The rows of a change log that a reader can see, as a pyarrow.Table of CHANGES_SCHEMA without `source_digest`.

    Raises:
        CorruptError: it is missing, cut or altered.
    """
    parts = []
    with opened(store, ref) as parquet, proving(ref):
        for part in parquet.groups(_LOGGED):
            names = part.column("class").cast(pa.string())
            parts.append(part.set_column(1, "class", names).filter(pc.is_in(names, value_set=pa.array(CLASSES))))
    columns = {"partition": pa.string(), "old_partition": pa.string(), "digest": pa.binary(16), "old_digest": pa.binary(16)}
    tables = [
        pa.table(
            {
                each.name: pa.array(np.zeros(part.num_rows, bool))
                if each.name == "backfilled"
                else part.column(each.name).cast(columns.get(each.name, each.type))
                for each in FEED_SCHEMA
            }
        )
        for part in parts
    ]
    return pa.concat_tables(tables) if tables else FEED_SCHEMA.empty_table()


def fold(logs: Sequence[pa.Table]) -> Feed:
    """Several steps as one.

    Args:
        logs: tables as of `read_log`, oldest first; a key stands at most once in each.

    Returns:
        pyarrow.Table of FEED_SCHEMA, ordered by key bytes.
    """
    table = pa.concat_tables([log.select(FEED_SCHEMA.names) for log in logs]).combine_chunks() if logs else FEED_SCHEMA.empty_table()
    if table.num_rows == 0:
        return FEED_SCHEMA.empty_table()
    if len(logs) > 1:
        table = _fold(table, np.repeat(np.arange(len(logs)), [log.num_rows for log in logs]))
    table = table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")]))
    return table.cast(FEED_SCHEMA)


def rows_of(version: Version, feed: pa.Table, partition: str) -> pa.Table:
    """The published rows of some keys, one for each row of `feed` and in its order.

    Args:
        version: where to read.
        feed: a table with `key` (canonical key bytes) and the column `partition` names, ordered by key.
        partition: the name of the column that says where each row lies; only those partitions' files are read.

    Raises:
        CorruptError: a row is not where the change log says.
    """
    schema = version.columns.schema
    places = set(feed.column(partition).unique().to_pylist())
    names = tuple(version.manifest.key["columns"])
    keys = feed.column("key").combine_chunks()
    rows, found = [], []
    for file in version.files:
        if file.partition not in places:
            continue
        for batch in version.file_batches(file):
            here, _ = keying.key_bytes(batch, names)
            wanted = pc.is_in(here, value_set=keys)
            if wanted.true_count:
                rows.append(batch.filter(wanted))
                found.append(here.filter(wanted))
    table = pa.Table.from_batches(rows, schema)
    at = pa.chunked_array(found, pa.binary())
    if not at.equals(feed.column("key")):
        order = pc.sort_indices(at)
        table, at = table.take(order), at.take(order)
    if not at.combine_chunks().equals(keys):
        raise CorruptError(
            f"version {version.number} holds {len(at)} of {len(keys)} features that its change log puts there",
            field=version.manifest.changes.path,
            hint=HINT,
        )
    return table


def places_of(version: Version, feed: pa.Table, partition: str) -> npt.NDArray[np.float64]:
    """(n, 2) the middle of the box of each feature of a feed, NaN where it has no position; arguments and errors as of `rows_of`."""
    places = set(feed.column(partition).unique().to_pylist())
    keys, names = feed.column("key").combine_chunks(), tuple(version.manifest.key["columns"])
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


def _fold(table: Any, step: npt.NDArray[np.int64]) -> Any:
    """One row per key out of many; see the module's docstring. `step` gives the log of each row."""
    key = np.asarray(table.column("key").combine_chunks().dictionary_encode().indices)
    order = np.lexsort((step, key))
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    ends = np.r_[starts[1:], len(order)]
    first, last = order[starts], order[ends - 1]
    kinds = _codes(table)
    has_before, has_after = kinds[first] != ADDED, kinds[last] != REMOVED

    head, tail = table.take(pa.array(first)), table.take(pa.array(last))
    # A move keeps its digest; a log need not repeat it.
    kept = pc.coalesce(head.column("old_digest"), head.column("digest"))
    old_digest = pc.if_else(pa.array(kinds[first] == MOVED), kept, head.column("old_digest"))
    digest, place, old_place = tail.column("digest"), tail.column("partition"), head.column("old_partition")
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
    flag = {name: np.asarray(table.column(name).combine_chunks()).astype(bool) for name in ("reversed", "attributes", "geometry")}
    single = ends - starts == 1
    # What a key that went and came back differs in is not in the logs: both may.
    returned = changed & whether((kinds == REMOVED) | (kinds == ADDED))
    geometry = changed & (whether(flag["geometry"]) | returned)
    sizes = pc.if_else(pa.array(single), head.column("geometry_change"), pa.scalar(None, pa.float64()))
    fields = _union(table, order, starts, ends, changed & ~returned)
    out = pa.table(
        {
            "key": head.column("key"),
            "class": pa.array(np.array([*CLASSES, ""], dtype=object)[kind], pa.string()),
            "reversed": pa.array(changed & whether(flag["reversed"] | (kinds != CHANGED), every=True) & ~returned),
            "rekeyed": _rekeyed(kind, digest, old_digest),
            "backfilled": pa.array(np.zeros(len(kind), bool)),
            "attributes": pa.array(changed & (whether(flag["attributes"]) | returned)),
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


def _label_backfilled(table: pa.Table, base: Version) -> pa.Table:
    """Mark the features that changed only in fields which held no value in the version where the feed starts.

    Raises:
        CorruptError: a data file of that version is missing, cut or altered.
    """
    changed, values, shapes = (
        np.asarray(each.combine_chunks()).astype(bool)
        for each in (pc.equal(table.column("class"), "changed"), table.column("attributes"), table.column("geometry"))
    )
    lists = table.column("fields").combine_chunks()
    label = changed & values & ~shapes & np.asarray(lists.is_valid())
    if not label.any():
        return table
    owner, names = np.asarray(pc.list_parent_indices(lists)), pc.list_flatten(lists)
    new, known = split_new(names.filter(pa.array(label[owner])).unique().to_pylist(), base.manifest.contract)
    filled = new | without_values(base.store, base.files, known) if known else new
    other = ~np.asarray(pc.is_in(names, value_set=pa.array(sorted(filled), pa.string())))
    label[owner[other]] = False
    return _with_backfilled(table, label)


def _with_backfilled(table: pa.Table, label: npt.NDArray[np.bool_]) -> pa.Table:
    place = table.schema.get_field_index("backfilled")
    return table.set_column(place, FEED_SCHEMA.field("backfilled"), pa.array(label))


def _codes(table: pa.Table) -> npt.NDArray[np.int64]:
    codes: npt.NDArray[np.int64] = np.asarray(pc.index_in(table.column("class"), value_set=pa.array(CLASSES))).astype(np.int64)
    return codes


def _rekeyed(kind: npt.NDArray[np.int64], digest: Any, old_digest: Any) -> Any:
    """Added and removed keys that hold one content, unique on both sides."""
    new, old = _unique(digest.filter(pa.array(kind == ADDED))), _unique(old_digest.filter(pa.array(kind == REMOVED)))
    pairs = new.filter(pc.is_in(new, value_set=old))
    return pc.or_(
        pc.and_(pa.array(kind == ADDED), pc.is_in(digest, value_set=pairs)),
        pc.and_(pa.array(kind == REMOVED), pc.is_in(old_digest, value_set=pairs)),
    )


def _unique(digests: pa.ChunkedArray) -> pa.Array:
    counted = pc.value_counts(pc.drop_null(digests))
    return counted.field("values").filter(pc.equal(counted.field("counts"), 1))


def _union(
    table: pa.Table, order: npt.NDArray[np.int64], starts: Iterable[int], ends: Iterable[int], told: npt.NDArray[np.bool_]
) -> pa.Array:
    """The names that changed in any step of a key, sorted; null where unknown."""
    lists = table.column("fields").combine_chunks().take(pa.array(order))
    group = np.repeat(np.arange(len(told)), np.fromiter(ends, np.int64) - np.fromiter(starts, np.int64))
    owner = group[np.asarray(pc.list_parent_indices(lists))]
    pairs = pa.table({"owner": owner, "name": pc.list_flatten(lists)})
    pairs = pairs.group_by(["owner", "name"]).aggregate([]).sort_by([("owner", "ascending"), ("name", "ascending")])
    counts = np.bincount(np.asarray(pairs.column("owner")), minlength=len(told))
    offsets = np.r_[0, np.cumsum(counts)].astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pairs.column("name").combine_chunks(), mask=pa.array(~told | (counts == 0)))
