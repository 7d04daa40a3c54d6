"""Candidates at rest in a scratch folder: memory is bounded by settings and not by the dataset.

Not here: what a candidate is (`line.receiving.candidates`), the dataset's own files (`writer.files`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.errors import StoreError
from merestone.json_value import JsonObject
from merestone.normalise.cast import MACHINERY

ROW = MACHINERY + "row"
_PACKED, _PLAIN = pa.ipc.IpcWriteOptions(compression="lz4"), pa.ipc.IpcWriteOptions()


class Spool:
    """Record batches of one schema, written once and read in order as often as wanted.

    Args:
        folder: the scratch folder.
        name: the name of the file, which no other spool there has.
        schema: of the batches.
        packed: whether they are compressed: half the disk for a third more time. What waits a moment only is not.

    Raises:
        StoreError: the scratch folder is full or cannot be written.
    """

    def __init__(self, folder: str, name: str, schema: pa.Schema, *, packed: bool = True) -> None:
        self._path = Path(folder) / f"{name}.arrow"
        self.schema = schema
        self.rows = 0
        self.bytes = 0
        self._options = _PACKED if packed else _PLAIN
        self._sink: Any = None
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        try:
            if self._writer is None:
                self._sink = pa.OSFile(str(self._path), "wb")
                self._writer = pa.ipc.new_stream(self._sink, self.schema, options=self._options)
            self._writer.write_batch(batch)
        except OSError as fault:
            raise StoreError(
                f"the scratch folder {self._path.parent} cannot be written: {fault}",
                field=str(self._path.parent),
                hint="free some space there, or point TMPDIR to a larger disk",
            ) from fault
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def close(self) -> None:
        """End writing."""
        if self._writer is not None:
            self._writer.close()
            self._sink.close()
            self._writer = self._sink = None

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Every batch, in the order of writing; where columns are named, these alone, in the order of the schema: others are not unpacked."""
        self.close()
        if not self.rows:
            return
        options = pa.ipc.IpcReadOptions(included_fields=[self.schema.get_field_index(name) for name in columns] or None)
        with pa.OSFile(str(self._path), "rb") as handle, pa.ipc.open_stream(handle, options=options) as reader:
            yield from reader

    def table(self) -> pa.Table:
        """All rows at once; for spools that are known to be small (a bucket of `shuffle`)."""
        return pa.Table.from_batches(list(self.batches()), self.schema)

    def drop(self) -> None:
        """Delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)


class Numbers:
    """Rows of numbers at rest: float64 (n, width), appended and read in order."""

    def __init__(self, folder: str, name: str, width: int) -> None:
        self._path = Path(folder) / f"{name}.numbers"
        self._width = width
        self._path.write_bytes(b"")

    def append(self, values: npt.NDArray[np.float64]) -> None:
        """Add rows."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(values, np.float64).tobytes())

    def some(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """A few rows, by their numbers from 0; NaN for one that is not there."""
        out = np.full((len(rows), self._width), np.nan)
        size = self._width * 8
        with self._path.open("rb") as file:
            for place, row in enumerate(rows.tolist()):
                file.seek(row * size)
                data = file.read(size)
                if len(data) == size:
                    out[place] = np.frombuffer(data, np.float64)
        return out

    def chunks(self, rows: int) -> Iterator[npt.NDArray[np.float64]]:
        """All rows in order, at most `rows` at a time."""
        with self._path.open("rb") as file:
            while data := file.read(rows * self._width * 8):
                yield np.frombuffer(data, np.float64).reshape(-1, self._width)


def shuffle(spool: Spool, folder: str, name: str, bucket: npt.NDArray[np.int32], buckets: int, extra: JsonObject) -> list[Spool]:
    """Split a spool into buckets; a column ROW says which row of the spool each one was.

    Args:
        spool: what to split.
        folder: the scratch folder.
        name: a stem for the files.
        bucket: int32 (rows,), the bucket of each row; -1 leaves a row out.
        buckets: how many there are.
        extra: columns to add, name to an Arrow array over all rows.
    """
    schema = spool.schema.append(pa.field(ROW, pa.int64()))
    for column, values in extra.items():
        schema = schema.append(pa.field(column, values.type))
    out = [Spool(folder, f"{name}-{n}", schema) for n in range(buckets)]
    at = 0
    for batch in spool.batches():
        end = at + batch.num_rows
        added = [pa.array(np.arange(at, end)), *(values[at:end] for values in extra.values())]
        whole = pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)
        here = bucket[at:end]
        at = end
        order = np.argsort(here, kind="stable")
        edges = np.searchsorted(here[order], np.arange(buckets + 1))
        for n in np.flatnonzero(np.diff(edges)):
            out[n].write(whole.take(pa.array(order[edges[n] : edges[n + 1]])))
    for each in out:
        each.close()
    return out


def bucket_plan(rows_per_partition: npt.NDArray[np.int64], bytes_per_row: float, budget: int) -> npt.NDArray[np.int32]:
    """Which bucket each partition goes to; a bucket holds about `budget` bytes; neighbouring codes stay together."""
    filled = np.cumsum(rows_per_partition * bytes_per_row)
    out: npt.NDArray[np.int32] = np.minimum(filled // max(budget, 1), max(0, os.sysconf("SC_OPEN_MAX") // 4)).astype(np.int32)
    return out
