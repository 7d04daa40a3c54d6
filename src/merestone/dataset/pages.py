"""The live data files of a version: entries in pages, of which the newest of each partition stands.

Not here: writing a page (`writer.pages`), which files a reader needs (`version`).

A page is a Parquet object of `FileEntries`. For each partition that it names, its rows are all files of that partition; a partition without
files has one row without a path, which keeps the column value that its name stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.dataset.manifest import DataFile, FileSet, ObjectRef
from merestone.dataset.proved import HINT, altered, read_table
from merestone.errors import CorruptError
from merestone.storage.port import Store


class FileEntries(TableShape):
    """The rows of a page: one for each file, or for a partition without files."""

    partition = TableColumn(pa.string(), nullable=False)
    value = TableColumn(pa.string())
    path = TableColumn(pa.string())
    rows = TableColumn(pa.int64())
    bytes = TableColumn(pa.int64())
    sha256 = TableColumn(pa.binary(32))
    footer_sha256 = TableColumn(pa.binary(32))
    tag = TableColumn(pa.string())
    xmin = TableColumn(pa.float64())
    ymin = TableColumn(pa.float64())
    xmax = TableColumn(pa.float64())
    ymax = TableColumn(pa.float64())
    version = TableColumn(pa.int64())
    run_id = TableColumn(pa.string())


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """One partition of a version: its name, the column value that the name stands for (column schemes only), and its live files."""

    partition: str
    value: str | None
    files: tuple[DataFile, ...]


def live_entries(store: Store, files: FileSet, read: dict[str, dict[str, PartitionFiles]] | None = None) -> dict[str, PartitionFiles]:
    """Every partition of a version by name, in name order: the one way from a manifest to its data files.

    Args:
        store: where the dataset is.
        files: of the manifest.
        read: pages that were read before, by path; for a caller that goes through many versions. New ones are added.

    Raises:
        CorruptError: a page is missing, altered, or does not add up to what the manifest says.
    """
    known = {} if read is None else read
    found: dict[str, PartitionFiles] = {}
    for ref in files.pages:
        if ref.path not in known:
            known[ref.path] = _read_page(store, ref)
        found |= known[ref.path]
    live = dict(sorted(found.items()))
    last = files.pages[-1].path if files.pages else ""
    count, size = sum(len(each.files) for each in live.values()), sum(file.bytes for each in live.values() for file in each.files)
    if (count, size) != (files.count, files.bytes):
        raise CorruptError(
            f"the pages up to {last} name {count} files of {size} bytes where the manifest says {files.count} of {files.bytes}",
            field=last,
            hint=HINT,
        )
    return live


def live_files(store: Store, files: FileSet, read: dict[str, dict[str, PartitionFiles]] | None = None) -> tuple[DataFile, ...]:
    """The live data files of a version, ordered by path. Arguments and errors as of `live_entries`."""
    return in_path_order(live_entries(store, files, read).values())


def in_path_order(entries: Iterable[PartitionFiles]) -> tuple[DataFile, ...]:
    """The files of some partitions, ordered by path."""
    return tuple(sorted((file for each in entries for file in each.files), key=lambda file: file.path))


def page_table(entries: Iterable[PartitionFiles]) -> FileEntries:
    """Entries as the rows of a page, ordered by partition."""
    ordered = sorted(entries, key=lambda each: each.partition)
    files: list[tuple[PartitionFiles, DataFile | None]] = [(each, file) for each in ordered for file in each.files or (None,)]

    def of(column: TableColumn, value: Callable[[DataFile], object]) -> pa.Array:
        return pa.array([None if file is None else value(file) for _, file in files], column.field.type)

    def side(column: TableColumn, at: int) -> pa.Array:
        return of(column, lambda file: None if file.bbox is None else file.bbox[at])

    return FileEntries.of(
        {
            FileEntries.partition: pa.array([each.partition for each, _ in files], pa.string()),
            FileEntries.value: pa.array([each.value for each, _ in files], pa.string()),
            FileEntries.path: of(FileEntries.path, lambda file: file.path),
            FileEntries.rows: of(FileEntries.rows, lambda file: file.rows),
            FileEntries.bytes: of(FileEntries.bytes, lambda file: file.bytes),
            FileEntries.sha256: of(FileEntries.sha256, lambda file: bytes.fromhex(file.sha256)),
            FileEntries.footer_sha256: of(
                FileEntries.footer_sha256, lambda file: bytes.fromhex(file.footer_sha256) if file.footer_sha256 else None
            ),
            FileEntries.tag: of(FileEntries.tag, lambda file: file.tag),
            FileEntries.xmin: side(FileEntries.xmin, 0),
            FileEntries.ymin: side(FileEntries.ymin, 1),
            FileEntries.xmax: side(FileEntries.xmax, 2),
            FileEntries.ymax: side(FileEntries.ymax, 3),
            FileEntries.version: of(FileEntries.version, lambda file: file.version),
            FileEntries.run_id: of(FileEntries.run_id, lambda file: file.run_id),
        }
    )


def _read_page(store: Store, ref: ObjectRef) -> dict[str, PartitionFiles]:
    table = read_table(store, ref)
    if table.schema.names != FileEntries.schema.names:
        raise altered(ref, "is not a page of file entries")
    grouped: dict[str, tuple[str | None, list[DataFile]]] = {}
    columns = (each.to_pylist() for each in table.columns)
    for partition, value, path, rows, size, checksum, footer, tag, *box, version, run_id in zip(*columns, strict=True):
        _, files = grouped.setdefault(partition, (value, []))
        if path is not None:
            bbox = None if box[0] is None else (box[0], box[1], box[2], box[3])
            proof = footer.hex() if footer is not None else None
            files.append(DataFile(path, rows, size, checksum.hex(), partition, bbox, version, run_id, footer_sha256=proof, tag=tag))
    return {name: PartitionFiles(name, value, tuple(files)) for name, (value, files) in grouped.items()}
