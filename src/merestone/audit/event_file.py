"""Events as a file for other tools.

Not here: which events (`lineage.select`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merestone.errors import UsageError
from merestone.inspect.output import written_whole
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store.reading import plain

ENDINGS = (".parquet", ".arrow", ".ndjson")


def check_ending(path: str) -> None:
    """Refuse a file name that no events can be written to. Raises UsageError."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path}: events are written as {', '.join(ENDINGS)}", field="out", hint=f"end the name with one of {', '.join(ENDINGS)}"
        )


def write(tables: Iterable[Any], path: str) -> int:
    """Write tables of the compiled schema; how many events there were.

    Raises:
        UsageError: the ending of the name.
        StoreError: the file cannot be written.
    """
    check_ending(path)
    count = 0
    with written_whole(path) as place:
        if path.lower().endswith(".ndjson"):
            with Path(place).open("w", encoding="utf-8", newline="\n") as file:
                for table in tables:
                    count += table.num_rows
                    for batch in table.to_batches(max_chunksize=10_000):
                        file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in plain(batch))
            return count
        opened = (
            pq.ParquetWriter(place, LINEAGE_ARROW_SCHEMA, compression="zstd")
            if path.lower().endswith(".parquet")
            else (pa.ipc.new_file(place, LINEAGE_ARROW_SCHEMA))
        )
        with opened as writer:
            for table in tables:
                count += table.num_rows
                writer.write_table(table)
    return count
