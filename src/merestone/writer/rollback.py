"""Going back: a new version with the files and the index of an old one, and a reason.

Not here: the commit itself (`commit`), deciding who may roll back.

Nothing is deleted, and history is not rewritten: version 4 with the content of version 2 stands on top of version 3, its change log shows
consumers what the step from 3 to 4 takes back, and the deliveries of the versions that were left behind are remembered as withdrawn.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.columnar.table_shape import TableColumn, Values
from merestone.dataset.current import Current, read_manifest
from merestone.dataset.feed import counted, fold, read_log
from merestone.dataset.history import lines
from merestone.dataset.index import load_table
from merestone.dataset.known import CHANGE_CLASSES
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.dataset.tables import DIGEST, ChangeLog, IndexRows, WithdrawnRows
from merestone.dataset.verify import damages_of
from merestone.dataset.withdrawn import read_withdrawn
from merestone.errors import CorruptError, UsageError
from merestone.identity import key as keys
from merestone.json_value import JsonObject
from merestone.results.finding import SAMPLES
from merestone.results.progress import Watch, nobody
from merestone.storage.port import Store
from merestone.writer.commit import Committed, RunningAttempt
from merestone.writer.files import write_table


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a roll-back committed. `withdrawn` are the delivery digests that it added to the list, `notices` what a person should know."""

    committed: Committed
    to_version: int
    withdrawn: tuple[str, ...]
    notices: tuple[str, ...] = ()


def rollback(
    attempt: RunningAttempt,
    head: Current,
    *,
    to: int,
    reason: str,
    now: str,
    lineage: JsonObject | None = None,
    wrong: Collection[bytes] = (),
    watch: Watch = nobody,
) -> RolledBack:
    """Commit a version with the content of an older one. The caller ends the attempt (`finish` with status rolled_back).

    Args:
        attempt: a running attempt (`commit.begin`).
        head: what was current when it began.
        to: the version whose content comes back.
        reason: why, in a person's words; kept in the manifest.
        now: the time, UTC, ISO 8601 with Z.
        wrong: canonical keys of the features whose withdrawn content is wrong: any of them that comes back stops a publish. Without them the whole
            change that is taken back is remembered.
        watch: is called after each object of the older version that is proven.
        lineage: what the manifest says of sealed lineage; by default that of `head`; the chain of runs has no gap.

    Raises:
        UsageError: the older version does not exist, no reason, or one of `wrong` is not part of the change that is taken back.
        CorruptError: an object of that version is missing, cut or altered; nothing was written then.
        ConflictError, StoreError, UnknownOutcomeError: as `RunningAttempt.commit`.
    """
    if not reason.strip():
        raise UsageError("a roll-back needs a reason", field="reason", hint='say why: «reason="wrong export of 2026-03-02"»')
    passed, target = _find(attempt.store, head, to)
    _prove(attempt.store, target, watch)
    attempt.step("changes.before")
    log = difference(attempt.store, head.manifest, passed, target)
    memory = _memory(attempt.store, head.manifest, target, log, wrong)
    name = f"_changes/{attempt.run_id}-{attempt.intent.nonce}.parquet"
    changes = write_table(attempt.store, name, log.table)
    attempt.step("changes.after")
    page = write_table(attempt.store, f"_pages/{attempt.run_id}-{attempt.intent.nonce}-withdrawn.parquet", memory.table)
    withdrawn = _withdrawn(passed, target)
    counts = _counts(log, target.features)

    def build(version: int) -> Manifest:
        return replace(
            target,
            version=version,
            parent=head.manifest.version,
            parent_sha256=head.sha256,
            run_id=attempt.run_id,
            attempt=attempt.number,
            time_utc=now,
            counts=counts,
            changes=changes,
            lineage=head.manifest.lineage if lineage is None else lineage,
            files_written=0,
            files_carried=target.files.count,
            bytes_written=changes.bytes,
            rollback={"to": to, "reason": reason},
            withdrawn_page=page if len(memory) else None,
            withdrawn_domain=head.manifest.domain if len(memory) else None,
            withdrawn=tuple(dict.fromkeys([*(each for each in head.manifest.withdrawn if each != _delivered(target)), *withdrawn])),
        )

    return RolledBack(attempt.commit(build, head), to, withdrawn)


def difference(store: Store, now: Manifest, passed: list[HistoryLine], target: Manifest) -> ChangeLog:
    """The change log of the step from `now` back to `target`, ordered by key.

    What changed within a feature is what the logs of the versions between said, in reverse; the states of both indexes decide the rest,
    so that also source digests come back (class `refreshed`).
    """
    today = _state(store, now).rename_columns(["key", "digest_now", "source_now", "partition_now"])
    both = _state(store, target).join(today, "key", join_type="full outer").combine_chunks()
    absent_then, absent_now = both.column("digest").is_null(), both.column("digest_now").is_null()

    def differs(one: str, other: str) -> npt.NDArray[np.bool_]:
        return np.asarray(pc.fill_null(pc.not_equal(both.column(one), both.column(other)), fill_value=False))

    kind = np.full(both.num_rows, "", dtype=object)
    kind[differs("source_digest", "source_now")] = "refreshed"
    kind[differs("partition", "partition_now")] = "moved"
    kind[differs("digest", "digest_now")] = "changed"
    kind[np.asarray(absent_now)] = "added"
    kind[np.asarray(absent_then)] = "removed"
    touched = kind != ""
    both = both.append_column("class", pa.array(kind, pa.string())).filter(pa.array(touched))

    steps = fold([read_log(store, each.changes) for each in reversed(passed)])
    labels = steps.table.select(["key", "reversed", "rekeyed", "attributes", "geometry", "geometry_change"]).append_column(
        "reprocessed", pc.equal(steps.kind, "reprocessed")
    )
    # A join cannot carry lists: the place of the row comes along, and the lists are taken afterwards.
    joined = both.join(labels.append_column("place", pa.array(np.arange(len(steps)))), "key", join_type="left outer")
    joined = joined.sort_by("key").combine_chunks()
    classes = pc.if_else(
        pc.and_(pc.equal(joined.column("class"), "changed"), pc.fill_null(joined.column("reprocessed"), fill_value=False)),
        "reprocessed",
        joined.column("class"),
    )

    def label(name: str, *of: str) -> pa.ChunkedArray:
        return pc.and_(pc.is_in(classes, value_set=pa.array(of)), pc.fill_null(joined.column(name), fill_value=False))

    columns: dict[TableColumn, Values] = {
        ChangeLog.key: joined.column("key"),
        ChangeLog.kind: classes,
        ChangeLog.reversed: label("reversed", "changed"),
        ChangeLog.rekeyed: label("rekeyed", "added", "removed"),
        ChangeLog.attributes: label("attributes", "changed"),
        ChangeLog.geometry: label("geometry", "changed"),
        ChangeLog.geometry_change: joined.column("geometry_change"),
        ChangeLog.fields: steps.fields.combine_chunks().take(joined.column("place").combine_chunks()),
        ChangeLog.digest: joined.column("digest"),
        ChangeLog.source_digest: pc.if_else(
            pc.equal(joined.column("source_digest"), joined.column("digest")), pa.scalar(None, DIGEST), joined.column("source_digest")
        ),
        ChangeLog.old_digest: joined.column("digest_now"),
        ChangeLog.partition: joined.column("partition"),
        ChangeLog.old_partition: joined.column("partition_now"),
    }
    return ChangeLog.of({column: _as(values, column.field.type) for column, values in columns.items()})


def _state(store: Store, manifest: Manifest) -> pa.Table:
    """The index at a version without the versions, its partitions as plain text."""
    rows = IndexRows(load_table(store, manifest.index))
    table = rows.table.drop([IndexRows.version.name])
    name = IndexRows.partition.name
    return table.set_column(table.schema.get_field_index(name), name, rows.partition.cast(pa.string()))


def _find(store: Store, head: Current, to: int) -> tuple[list[HistoryLine], Manifest]:
    """The versions that are left behind, newest first, and the one to go back to."""
    passed: list[HistoryLine] = []
    for each in lines(store, head):
        if each.version == to and passed:
            return passed, read_manifest(store, each.version, each.sha256)
        passed.append(each)
        if each.version <= to:
            break
    what = "is the current version" if head.manifest.version == to else "is not a version of this dataset"
    raise UsageError(f"cannot roll back to {to}: it {what}", field="to", hint="«log(DATASET)» lists the versions")


def _memory(store: Store, head: Manifest, target: Manifest, log: ChangeLog, wrong: Collection[bytes]) -> WithdrawnRows:
    """What is withdrawn feature by feature, and what earlier roll-backs withdrew and this one does not bring back, by key."""
    kinds = log.kind.cast(pa.string())
    net = log.filter(pc.is_in(kinds, pa.array(["added", "changed", "removed"])))
    kinds = net.kind.cast(pa.string())
    key = net.key.combine_chunks()
    named = pa.array(sorted(wrong), pa.binary())
    strange = named.filter(pc.invert(pc.is_in(named, value_set=key)))
    if len(strange):
        texts = ", ".join(str(each) for each in keys.ids_of(strange).to_pylist()[:SAMPLES])
        raise UsageError(
            f"{texts}: not part of the change that is taken back", field="wrong", hint="«changes(DATASET)» lists the features of a step"
        )
    fresh = WithdrawnRows.of(
        {
            WithdrawnRows.key: key,
            WithdrawnRows.digest: net.old_digest,
            WithdrawnRows.present: pc.not_equal(kinds, "removed"),
            WithdrawnRows.wrong: pc.is_in(key, value_set=named),
        }
    )
    if wrong:
        fresh = fresh.filter(fresh.wrong)
    older = read_withdrawn(store, head)
    if not len(older) or head.withdrawn_domain != head.domain:
        return fresh
    state = _state(store, target).select(["key", "digest"])
    at = pc.index_in(older.key.combine_chunks(), value_set=state.column("key").combine_chunks())
    there = pc.is_valid(at)
    content = state.column("digest").combine_chunks().take(at)
    digest = older.digest.combine_chunks()
    same = pc.or_(pc.fill_null(pc.equal(digest, content), False), pc.and_(pc.is_null(digest), pc.invert(there)))
    kept = pc.and_(pc.invert(same), pc.invert(pc.is_in(older.key.combine_chunks(), value_set=key)))
    older = older.with_column(WithdrawnRows.present, there).filter(kept)
    return WithdrawnRows(WithdrawnRows.concat([fresh, older]).table.sort_by(WithdrawnRows.key.name))


def _prove(store: Store, target: Manifest, watch: Watch) -> None:
    """Every object of the version is whole: going back to a damaged one would make it current."""
    damages = damages_of(store, target, watch)
    if damages:
        first, more = damages[0], f" and {len(damages) - 1} more" if len(damages) > 1 else ""
        raise CorruptError(
            f"version {target.version} is damaged: {first.path}: {first.problem} ({first.observed} instead of {first.expected}){more}",
            field=first.path,
            hint="restore the file from a backup, or choose another version; «verify(DATASET)» names every damaged file",
        )


def _withdrawn(passed: list[HistoryLine], target: Manifest) -> tuple[str, ...]:
    """The deliveries of the versions that are left behind, oldest first; not the one that comes back."""
    digests = (each.delivery_digest for each in reversed(passed))
    return tuple(dict.fromkeys(each for each in digests if each and each != _delivered(target)))


def _delivered(manifest: Manifest) -> str:
    return str(manifest.delivery.get("set_digest", ""))


def _counts(log: ChangeLog, features: int) -> dict[str, int]:
    """Nothing was delivered; the classes are those of the step."""
    classes = np.asarray(log.kind.cast(pa.string()))
    out = {name: int((classes == name).sum()) for name in CHANGE_CLASSES} | counted(log.table)
    present = sum(out[name] for name in CHANGE_CLASSES if name not in ("removed", "refreshed"))
    return {"delivered": 0, "unchanged": features - present, "rejected": 0} | out


def _as(column: Values, kind: pa.DataType) -> pa.Array:
    array = one_chunk(column)
    if pa.types.is_dictionary(kind):
        plain = array.cast(pa.string())
        return plain.dictionary_encode().cast(kind)
    return array.cast(kind)
