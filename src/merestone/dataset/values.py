"""Which columns of a version hold no value at all, by the statistics in the footers of its data files.

Not here: what follows from it (`line.comparing.backfill`, `feed`), reading rows (`version`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from merestone.dataset.manifest import DataFile
from merestone.dataset.proved import opened
from merestone.json_value import Json
from merestone.storage.port import Store


def split_new(names: Iterable[str], contract: Mapping[str, Json]) -> tuple[set[str], set[str]]:
    """Columns that a version's contract (its body) does not have, and those of the others that may be null."""
    fields = {each["name"]: each for each in contract["schema_fields"]}
    asked = set(names)
    return asked - set(fields), {name for name in asked if name in fields and fields[name].get("nullable", True)}


def without_values(store: Store, files: Sequence[DataFile], names: Collection[str]) -> set[str]:
    """Those of some columns that are null in every row of some files. A column that holds values is mostly settled by the first file.

    Raises:
        CorruptError: a data file is missing, cut or altered.
    """
    left = set(names)
    for file in files:
        if not left:
            break
        with opened(store, file) as parquet:
            left -= {name for name in left if not _all_null(parquet.metadata, name)}
    return left


def _all_null(meta: Any, name: str) -> bool:
    """Whether a column is null in every row of a file; one that the file does not have is."""
    for group in range(meta.num_row_groups):
        row_group = meta.row_group(group)
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            if column.path_in_schema != name and not column.path_in_schema.startswith(f"{name}."):
                continue
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count != column.num_values:
                return False
    return True
