"""Apply: a step replayed onto a copy, a file or another dataset, which is proved before and after by the digest of the set.

The copy must be at the version that the step starts from, feature by feature, whatever its format; then the touched rows are replaced in
a file beside it, that file is read back and has to have the digest of the version that the step ends at, and only then it takes the place
of the old one. Another dataset gets the same rows through a publish of its own, with its own lineage and run record.

Not here: where steps come from (`step`), formats (`inspect.extract`, `source`), the publish (`line`).
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.compare.sides import Adapted, VersionSource, swapped
from merestone.compare.step import End, VersionStep
from merestone.contract.body import from_body
from merestone.contract.contract import Contract
from merestone.dataset.current import Current, current
from merestone.dataset.known import Sum, halves
from merestone.dataset.version import Dataset, Version
from merestone.errors import ConflictError, InternalError, UsageError
from merestone.identity import key as keys
from merestone.identity.digest import Layout, digest_batch
from merestone.inspect import extract
from merestone.inspect.output import written_whole
from merestone.json_value import JsonObject
from merestone.line import environment
from merestone.line.publish import PublishSettings, publish_onto
from merestone.normalise.agreed_crs import check_crs
from merestone.normalise.cast import CastPlan, cast_batch, plan_cast
from merestone.normalise.values import arrow_type, is_text
from merestone.publication.publication import GuardRule, KeyRule, PartitionRule, Publication
from merestone.results.finding import Finding
from merestone.results.progress import Watch, nobody, staged
from merestone.results.result import ApplyResult, of_feed
from merestone.rules import catalogue
from merestone.scratch.read_once import ReadOnce
from merestone.source.open import open_unjudged
from merestone.source.port import Source, SourceSpec
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place
from merestone.storage.port import Store

_NO_LIMIT = GuardRule(max_changed_fraction=None)  # the step has passed the guards where it comes from, and is proved by its digest here
_JSON = ("GeoJSON", "GeoJSONSeq")


def apply(step: VersionStep, onto: str, watch: Watch = nobody) -> ApplyResult:
    """Replay a step.

    Args:
        step: what to replay.
        onto: a file (.parquet, .gpkg, .geojson, .geojsons, .geojsonl), the folder or URL of a dataset. Where nothing is there yet, the step
            has to start from nothing.
        watch: is called after each batch of rows.

    Returns:
        applied, unchanged (the copy is at the end of the step already) or refused (it is not where the step starts).

    Raises:
        UsageError: the copy cannot hold the rows (a format, other columns, another CRS).
        SourceError: the file cannot be read.
        StoreError: the file cannot be written. The old one stays.
        ConflictError: somebody else has written the copy meanwhile, and it stays as they wrote it.
        MerestoneError: as `line.publish`, for a dataset.
    """
    clock = time.perf_counter()
    place = parse_place(onto, field="onto")
    file = Path(place.path)
    if not place.is_local or file.is_dir() or not (file.suffix or file.is_file()):
        return _onto_dataset(step, onto, open_store(onto, field="onto"), clock, watch)
    with environment.scratch() as folder:
        return _onto_file(step, place.path, folder, clock, watch)


# --- a file ----------------------------------------------------------------------------------------------------------------------------


def _onto_file(step: VersionStep, onto: str, folder: str, clock: float, watch: Watch) -> ApplyResult:
    extract.check_version_path(onto, "onto")
    seen = _stamp(onto)
    rows = _of_file(onto, step, folder) if seen is not None else None
    with staged(watch, "read", step.start.features) as met:
        found = rows.digest(step.start, met) if rows is not None else str(Sum())
    if found != step.start.set_digest:
        there = rows is not None and (found if step.start.contract == step.end.contract else rows.digest(step.end)) == step.end.set_digest
        return _result(step, onto, "unchanged" if there else "refused", found, clock)
    form = step.form
    if rows is not None and rows.source.delivery.driver == "GPKG":
        form = extract.RowForm(rows.source.delivery.layer or form.name, form.contract, form.key, form.columns)
    with written_whole(onto, "onto") as beside:
        with staged(watch, "write", step.end.features) as met:
            extract.write_rows(form, _counted(_merged(step, rows), met), beside)
        with staged(watch, "read back", step.end.features) as met:
            arrived = _of_file(beside, step, None).digest(step.end, met)
        if arrived != step.end.set_digest:
            raise UsageError(
                f"{onto} stays as it is: written as {Path(onto).suffix}, the rows do not read back as version {step.end.version}",
                field="onto",
                hint="some values have no exact form in this format; use GeoParquet, or a dataset",
            )
        if _stamp(onto) != seen:
            raise ConflictError(
                f"{onto} was written by somebody else meanwhile, and stays as they wrote it", field="onto", hint="repeat the command"
            )
    return _result(step, onto, "applied", arrived, clock)


def _stamp(path: str) -> tuple[int, int, int] | None:
    """What differs between two writings of a file; None where the file does not exist."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True, slots=True)
class _CopyRows:
    """The rows of a copy, as the contract of one end of the step wants them."""

    source: Source
    step: VersionStep

    def batches(self, contract: Contract) -> Iterator[pa.RecordBatch]:
        """In the contract's types; what is missing is null."""
        plan = self._plan(contract)
        for batch in self.source.batches():
            yield cast_batch(batch, plan)[0]

    def digest(self, end: End, met: Callable[[int], None] = lambda _: None) -> str:
        """The digest of the set in the terms of one end of the step; `met` is called with the rows of each batch."""
        contract, layout = _contract(end), end.layout(self.step.key)
        total = Sum()
        for batch in _counted(self.batches(contract), met):
            _add(total, batch, layout, contract, self.step)
        return str(total)

    def _plan(self, contract: Contract) -> CastPlan:
        return plan_cast(contract, self.source.delivery, {}, self.step.key, None, "refuse")


def _counted(batches: Iterable[pa.RecordBatch], met: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    """The batches as they are, each counted once it is done with."""
    for batch in batches:
        yield batch
        met(batch.num_rows)


def _add(total: Sum, batch: pa.RecordBatch, layout: Layout, contract: Contract, step: VersionStep) -> None:
    canonical, _ = keys.key_bytes(batch, step.key)
    total.add(halves(hashing.blake2b16(canonical)), halves(digest_batch(batch, layout, contract.geometry_name)))


def _contract(end: End) -> Contract:
    return from_body(end.contract)


def _of_file(path: str, step: VersionStep, folder: str | None) -> _CopyRows:
    """The rows of a file that can be the copy.

    Args:
        path: the file.
        step: what is replayed.
        folder: where the rows rest between several looks at them; None where they are looked at once.

    Raises:
        UsageError: it has columns that the dataset has not, and which would be lost, or is in another CRS.
    """
    copy = open_unjudged(SourceSpec(local_path(path, field="onto", what="a copy")))
    source = _exact(copy if folder is None else ReadOnce(copy, folder, "copy"), step.contract)
    rows = _CopyRows(source, step)
    plan = plan_cast(step.contract, source.delivery, {}, step.key, None, "refuse")
    member = "id" if source.delivery.driver in _JSON else None  # of a GeoJSON feature: its key as text once more, which is written again
    wrong = [
        each
        for each in plan.findings
        if (each.rule == "extra" and each.field != member) or (each.rule == "missing" and each.field in step.key)
    ]
    wrong += [each for each in check_crs(step.contract, source.delivery) if each.severity == "error"]
    if not wrong and source.delivery.geometry is None:
        wrong.append(catalogue.MISSING.finding(step.columns.geometry, wanted="a geometry", name="the geometry"))
    if wrong and any(batch.num_rows for batch in source.batches()):  # without rows, text formats have no columns either
        raise UsageError(
            f"{path} is not a copy of {step.name}: {wrong[0].observed}",
            field="onto",
            hint=f"make one: «read(DATASET, out={path})»",
        )
    return rows


def _exact(source: Source, contract: Contract) -> Source:
    """A source with what JSON holds as text (decimals, bytes) in its own type again."""
    made: JsonObject = {}
    for each in source.delivery.schema:
        field = contract.field(each.name)
        if field is None or not is_text(each.type):
            continue
        if field.type.kind == "decimal":
            kind = arrow_type(field.type)
            made[each.name] = (kind, lambda array, kind=kind: array.cast(kind))
        elif field.type.kind == "binary":
            made[each.name] = (pa.binary(), _bytes)
    return Adapted(source, made) if made else source


def _bytes(array: pa.Array) -> pa.Array:
    return pa.array([None if each is None else base64.b64decode(each) for each in array.to_pylist()], pa.binary())


def _merged(step: VersionStep, rows: _CopyRows | None) -> Iterator[pa.RecordBatch]:
    """The rows of the copy with those of the step in the place of the old ones, in the columns of the end; new ones come last."""
    schema = step.columns.schema
    place = np.cumsum(step.has) - 1
    seen = np.zeros(len(step.has), bool)
    batches: Iterable[pa.RecordBatch] = rows.batches(step.contract) if rows is not None else ()
    for batch in batches:
        canonical, _ = keys.key_bytes(batch, step.key)
        found = pc.fill_null(pc.index_in(canonical, value_set=step.keys), -1).to_numpy(zero_copy_only=False)
        touched = found >= 0
        table = pa.Table.from_batches([batch.select(schema.names)]).cast(schema.remove_metadata()).replace_schema_metadata(schema.metadata)
        if touched.any():
            seen[found[touched]] = True
            fresh = touched & step.has[np.maximum(found, 0)]
            order = np.arange(len(found))
            order[fresh] = len(found) + np.arange(int(fresh.sum()))
            table = pa.concat_tables([table, step.after.take(pa.array(place[found[fresh]])).cast(schema)])
            table = table.take(pa.array(order[~touched | fresh]))
        yield from table.combine_chunks().to_batches()
    new = step.after.take(pa.array(place[step.has & ~seen])).cast(schema)
    yield from new.combine_chunks().to_batches()


# --- a dataset -------------------------------------------------------------------------------------------------------------------------


def _onto_dataset(step: VersionStep, onto: str, store: Store, clock: float, watch: Watch) -> ApplyResult:
    head = current(store)
    found = head.manifest.set_digest if head is not None else str(Sum())
    if found != step.start.set_digest or (head is not None and not _keyed_alike(head.manifest.key, step.rule)):
        return _result(step, onto, "unchanged" if found == step.end.set_digest else "refused", found, clock, _version(head))
    partition = _partition(step, head, onto)
    with environment.scratch() as folder:
        rows = _CopyRows(VersionSource(Version(store, head.manifest), onto), step) if head is not None else None
        merged = str(Path(folder) / "merged.parquet")
        total = Sum()
        with staged(watch, "read", step.end.features) as met:
            extract.write_rows(step.form, _counted(_delivered(step, rows, total), met), merged)
        if str(total) != step.end.set_digest:
            raise UsageError(
                f"{onto} stays as it is: the rows of the step do not add up to version {step.end.version}",
                field="DATASET",
                hint="the feed was altered; write it again",
            )
        contract = Path(folder) / "contract.json"
        contract.write_text(json.dumps(step.end.contract, ensure_ascii=False), encoding="utf-8")
        rule = KeyRule.of_manifest(head.manifest.key if head is not None else step.rule, published=True)
        publication = Publication(
            path="",
            name=head.manifest.name if head is not None else step.name,
            contract=str(contract),
            source=SourceSpec(merged),
            destination=store.url,
            key=rule,
            partition=partition,
            guard=_NO_LIMIT,
        )
        result = publish_onto(publication, PublishSettings(progress=watch), store, head)
        if result.confirm is not None and step.end.features == 0:  # an empty version was confirmed where it was made
            result = publish_onto(publication, PublishSettings(confirm=result.confirm, progress=watch), store, head)
    if result.status not in ("published", "unchanged"):
        return _result(step, onto, "refused", found, clock, _version(head), result.findings)
    made = Dataset(store).manifest(result.version)
    if made.set_digest != step.end.set_digest:
        raise InternalError(
            f"{onto} v{made.version} came out with set digest {made.set_digest}, {step.end.set_digest} was to be reached",
            field=onto,
            hint="take it back, «rollback(DATASET)», and please report this",
        )
    return _result(step, onto, "applied", made.set_digest, clock, made.version)


def _keyed_alike(one: JsonObject, other: JsonObject) -> bool:
    """Whether two key rules give the same bytes to the same published row."""
    return all(one.get(name) == other.get(name) for name in ("columns", "types"))


def _delivered(step: VersionStep, rows: _CopyRows | None, total: Sum) -> Iterator[pa.RecordBatch]:
    """The merged rows as a delivery, summed up on their way."""
    contract, layout = step.contract, step.end.layout(step.key)
    for batch in _merged(step, rows):
        _add(total, batch, layout, contract, step)
        # Where deliveries are agreed in y, x, this is one.
        yield _turned(batch, step) if contract.axis_order == "lat_lon" else batch


def _turned(batch: pa.RecordBatch, step: VersionStep) -> pa.RecordBatch:
    at = batch.schema.get_field_index(step.columns.geometry)
    return batch.set_column(at, batch.schema.field(at), swapped(batch.column(at)))


def _partition(step: VersionStep, head: Current | None, onto: str) -> PartitionRule:
    """The scheme of the target, or of the dataset that the step comes from."""
    scheme = head.manifest.partitioning if head is not None else step.partitioning
    column = scheme.get("column")
    if column is not None and column not in step.columns.schema.names:
        if head is not None:
            raise UsageError(
                f"{onto} is partitioned by {column}, which is not published: a feed does not say where a feature belongs",
                field="onto",
                hint="publish the delivery itself there",
            )
        return PartitionRule()
    rule = PartitionRule(by=scheme["by"], column=column)
    return PartitionRule(by=scheme["by"], target_rows=scheme["target_rows"]) if "target_rows" in scheme else rule


def _version(head: Current | None) -> int | None:
    return head.manifest.version if head is not None else None


def _result(
    step: VersionStep,
    onto: str,
    status: Literal["applied", "unchanged", "refused"],
    found: str,
    clock: float,
    version: int | None = None,
    findings: tuple[Finding, ...] = (),
) -> ApplyResult:
    delta = of_feed(step.counts)
    return ApplyResult(
        name=step.name,
        start=step.start.version,
        end=step.end.version,
        onto=onto,
        status=status,
        delta=delta,
        features=step.end.features,
        set_digest=found,
        expected=step.start.set_digest if status == "refused" and not findings else step.end.set_digest,
        version=version,
        findings=findings,
        seconds=time.perf_counter() - clock,
    )
