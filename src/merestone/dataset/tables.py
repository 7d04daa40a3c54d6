"""The change log, the index and what was withdrawn as tables: one row a feature, with the columns that are written to files.

Not here: the published features in memory (`known`), reading the index (`index`), folding change logs into a feed (`feed`).
"""

from __future__ import annotations

import pyarrow as pa

from merestone.columnar.table_shape import TableColumn, TableShape

DIGEST = pa.binary(16)
PARTITION_NAME = pa.dictionary(pa.int32(), pa.string())


class ChangeLog(TableShape):
    """What one version did to each feature that it met, ordered by key bytes (docs/spec/changes.md)."""

    key = TableColumn(pa.binary(), nullable=False)
    kind = TableColumn(pa.dictionary(pa.int8(), pa.string()), nullable=False, name="class")
    reversed = TableColumn(pa.bool_(), nullable=False)
    rekeyed = TableColumn(pa.bool_(), nullable=False)
    attributes = TableColumn(pa.bool_(), nullable=False)
    geometry = TableColumn(pa.bool_(), nullable=False)
    geometry_change = TableColumn(pa.float64())
    fields = TableColumn(pa.list_(pa.string()))
    digest = TableColumn(DIGEST)
    source_digest = TableColumn(DIGEST)
    old_digest = TableColumn(DIGEST)
    partition = TableColumn(PARTITION_NAME)
    old_partition = TableColumn(PARTITION_NAME)


class IndexRows(TableShape):
    """The published features as the index has them: key, digests, partition, and the version that met the key last."""

    key = TableColumn(pa.binary(), nullable=False)
    digest = TableColumn(DIGEST, nullable=False)
    source_digest = TableColumn(DIGEST, nullable=False)
    partition = TableColumn(PARTITION_NAME, nullable=False)
    version = TableColumn(pa.int64(), nullable=False)


class CheckpointRows(TableShape):
    """The index as a checkpoint holds it, in the order of a delivery (docs/spec/changes.md)."""

    key = TableColumn(pa.binary(), nullable=False)
    key_hash = TableColumn(DIGEST, nullable=False)
    source_digest = TableColumn(DIGEST, nullable=False)
    digest = TableColumn(DIGEST)
    partition = TableColumn(pa.int32(), nullable=False)
    version = TableColumn(pa.int64(), nullable=False)


class WithdrawnRows(TableShape):
    """What was withdrawn, one row a feature.

    digest: what was withdrawn of it, null where its removal was. present: whether it is published now. wrong: a person named it as wrong.
    """

    key = TableColumn(pa.binary(), nullable=False)
    digest = TableColumn(DIGEST)
    present = TableColumn(pa.bool_(), nullable=False)
    wrong = TableColumn(pa.bool_(), nullable=False)
