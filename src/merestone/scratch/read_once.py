"""A delivery that is read once and looked at several times: its rows rest on disk from the first look on.

Not here: rows of a run on their way (`spool`), what a delivery is (`source.port`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from merestone.results.finding import Finding
from merestone.scratch.spool import Spool
from merestone.source.port import BATCH_ROWS, Delivery, Source


class ReadOnce:
    """A source whose rows come from the delivery the first time and from a spool afterwards; see `merestone.source.port.Source`."""

    def __init__(self, source: Source, folder: str, name: str) -> None:
        """Start.

        Args:
            source: the delivery.
            folder: the scratch folder.
            name: a name for the spool that no other one there has.
        """
        self._source = source
        self._spool = Spool(folder, name, source.delivery.schema)
        self._stream: Iterator[pa.RecordBatch] | None = None
        self._whole = False

    @property
    def delivery(self) -> Delivery:
        """What is known before reading."""
        return self._source.delivery

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in their order, in the batches of the first reading.

        Raises:
            SourceError: the delivery breaks off or cannot be decoded.
            StoreError: the scratch folder is full or cannot be written.
        """
        first = self._stream is None
        if self._stream is None:
            self._stream = iter(self._source.batches(batch_rows))
        if first:
            yield from self._rest()
            return
        for _ in self._rest():  # what an earlier look left unread
            pass
        yield from self._spool.batches()

    def late_findings(self) -> tuple[Finding, ...]:
        """What the source has to say."""
        return self._source.late_findings()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        if self._whole or self._stream is None:
            return
        for batch in self._stream:
            self._spool.write(batch)
            yield batch
        self._spool.close()
        self._whole = True
