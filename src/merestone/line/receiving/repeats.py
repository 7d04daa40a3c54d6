"""What stands twice in a delivery: keys, and values of fields that promise each only once; found from what pass 1 kept of every row.

Not here: the findings' words (`gate.delivery`), a second claim of a published key (`change.probe`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves, sort_by_hash
from merestone.gate import delivery as gate_delivery
from merestone.line.preparing.reading import KEY
from merestone.line.receiving.receive_batch import ReceivedBatch, text_hashes
from merestone.results.finding import SAMPLES, Finding
from merestone.scratch.spool import Spool

_Question = Callable[[Any], tuple[Halves, npt.NDArray[np.bool_]]]


class RowKeys:
    """The canonical key of every delivered row, and its values of fields that promise each only once, as text; at rest."""

    def __init__(self, folder: str, unique: Sequence[str], ids_of: Callable[[Any], Any]) -> None:
        self._unique, self._ids_of = tuple(unique), ids_of
        self._spool = Spool(folder, "row-keys", pa.schema([(KEY, pa.binary()), *((name, pa.string()) for name in self._unique)]))

    def add(self, batch: ReceivedBatch) -> None:
        """Take in the rows of the next batch."""
        columns = [batch.keys.cast(pa.binary()), *(batch.rows.column(name).cast(pa.string()) for name in self._unique)]
        self._spool.write(pa.RecordBatch.from_arrays(columns, schema=self._spool.schema))

    def keys(self) -> Iterator[Any]:
        """The canonical key of every row, batch after batch; null where it has none."""
        for batch in self._spool.batches(KEY):
            yield batch.column(KEY)

    def repeated_keys(self, name: str, repeated: Halves) -> Finding | None:
        """The finding on keys that several rows carry: `repeated` are their hashes, uint64 (k, 2); the key is called `name`."""
        if not len(repeated):
            return None
        (groups,) = self._equal_rows([partial(_of_keys, repeated[sort_by_hash(repeated)])])
        return gate_delivery.duplicate_keys(name, groups, [each[0] for each in self._named(groups.firsts()).values()])

    def repeated_values(self, unique: dict[str, list[npt.NDArray[np.uint64]]]) -> list[Finding]:
        """The findings on values that stand twice in a field: `unique` are the hashes of all values, by field."""
        asked: dict[str, _Question] = {}
        for name, parts in unique.items():
            values = np.sort(np.concatenate(parts))
            twice = np.unique(values[1:][values[1:] == values[:-1]])
            if len(twice):
                asked[name] = partial(_of_values, name, twice)
        found = []
        for name, groups in zip(asked, self._equal_rows(list(asked.values())) if asked else [], strict=True):
            if len(groups):
                shown = np.union1d(groups.rows[:SAMPLES], groups.firsts())
                found.append(gate_delivery.repeated_values(name, groups, self._named(shown, name)))
        return found

    def _numbered(self) -> Iterator[tuple[int, Any]]:
        row = 1
        for batch in self._spool.batches():
            yield row, batch
            row += batch.num_rows

    def _equal_rows(self, asked: Sequence[_Question]) -> list[gate_delivery.KeyGroups]:
        """For each question the rows in question with equal hashes; a question gives the hash of every row of a batch, and which are meant."""
        hashes: list[list[Halves]] = [[] for _ in asked]
        rows: list[list[npt.NDArray[np.int64]]] = [[] for _ in asked]
        for first, batch in self._numbered():
            for number, question in enumerate(asked):
                here, wanted = question(batch)
                hashes[number].append(here[wanted])
                rows[number].append(np.flatnonzero(wanted) + first)
        return [gate_delivery.equal_groups(np.concatenate(each), np.concatenate(at)) for each, at in zip(hashes, rows, strict=True)]

    def _named(self, rows: npt.NDArray[np.int64], *fields: str) -> dict[int, tuple[str, ...]]:
        """Feature id and values, as text, of the few rows (ascending, from 1) that a finding shows."""
        out: dict[int, tuple[str, ...]] = {}
        for first, batch in self._numbered():
            at = rows[(rows >= first) & (rows < first + batch.num_rows)] - first
            if len(at):
                columns = [self._ids_of(batch.column(KEY)), *(batch.column(name) for name in fields)]
                texts = zip(*(each.take(pa.array(at)).to_pylist() for each in columns), strict=True)
                out.update(zip((at + first).tolist(), texts, strict=True))
        return out


def _of_keys(wanted: Halves, batch: pa.RecordBatch) -> tuple[Halves, npt.NDArray[np.bool_]]:
    hashes = halves(hashing.blake2b16(batch.column(KEY)))
    return hashes, find(wanted, hashes) >= 0


def _of_values(name: str, wanted: npt.NDArray[np.uint64], batch: pa.RecordBatch) -> tuple[Halves, npt.NDArray[np.bool_]]:
    column = batch.column(name)
    hashes = text_hashes(column)
    return np.column_stack([hashes, hashes]), np.isin(hashes, wanted) & np.asarray(column.is_valid())
