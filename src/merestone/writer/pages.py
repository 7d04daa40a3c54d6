"""A version's page of file entries: what it replaces, or all live entries where the log of pages has grown long.

Not here: reading pages (`dataset.pages`), which partitions a change touches (`change.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from merestone.dataset.manifest import Box, FileSet
from merestone.dataset.pages import PartitionFiles, in_path_order, page_table
from merestone.storage.port import Store
from merestone.writer.files import write_table

PAGES = "_pages/"
MOST_PAGES = 32
SHARE = 4  # a checkpoint follows when the log holds more than a quarter of its rows


def write_page(
    store: Store, stem: str, version: int, before: FileSet, old: Mapping[str, PartitionFiles], new: Mapping[str, PartitionFiles]
) -> FileSet:
    """Write the page of a version, and say which files are live after it.

    Args:
        store: where the dataset is.
        stem: how the objects of the attempt are called.
        version: the number that the version would get; part of the name, since a number that turns out to be taken needs another page.
        before: the live files of the parent.
        old: its entries.
        new: the partitions that the version replaces, with all their files; those without files are gone.

    Raises:
        StoreError: the store refused.
    """
    stamped = {name: _stamped(each, version) for name, each in new.items()}
    files = in_path_order({**old, **stamped}.values())
    pages = before.pages
    if stamped or not pages:
        whole = not pages or _needs_checkpoint(before, sum(max(len(each.files), 1) for each in new.values()))
        entries = [
            each for each in ({**old, **stamped} if whole else stamped).values() if not whole or each.files or each.value is not None
        ]
        ref = write_table(store, f"{PAGES}{stem}-{version}.parquet", page_table(entries).table, **_PLAIN)
        pages = (ref,) if whole else (*pages, ref)
    boxes = [file.bbox for file in files if file.bbox is not None]
    return FileSet(pages, len(files), sum(file.bytes for file in files), _around(boxes))


# Nearly every value of an entry stands once: dictionaries and statistics would cost more than they save.
_PLAIN = {"use_dictionary": ["version", "run_id"], "write_statistics": False, "store_schema": False, "compression_level": 9}


def _needs_checkpoint(before: FileSet, rows: int) -> bool:
    checkpoint, *log = before.pages
    return len(before.pages) >= MOST_PAGES or SHARE * (sum(each.rows for each in log) + rows) > checkpoint.rows


def _stamped(entry: PartitionFiles, version: int) -> PartitionFiles:
    return replace(entry, files=tuple(replace(file, version=version) for file in entry.files))


def _around(boxes: list[Box]) -> Box | None:
    if not boxes:
        return None
    west, south, east, north = zip(*boxes, strict=True)
    return min(west), min(south), max(east), max(north)
