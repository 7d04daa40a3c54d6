"""The change log, the index and what was withdrawn as tables: one row a feature, with the columns that are written to files.

Not here: the published features in memory (`known`), reading the index (`index`), folding change logs into a feed (`feed`).
"""

from __future__ import annotations

import pyarrow as pa

from merestone.columnar.shape import Column, Shape

DIGEST = pa.binary(16)
PARTITION_NAME = pa.dictionary(pa.int32(), pa.string())


class ChangeLog(Shape):
    """What one version did to each feature that it met, ordered by key bytes (docs/spec/changes.md)."""

    key = Column(pa.binary(), nullable=False)
    kind = Column(pa.dictionary(pa.int8(), pa.string()), nullable=False, name="class")
    reversed = Column(pa.bool_(), nullable=False)
    rekeyed = Column(pa.bool_(), nullable=False)
    attributes = Column(pa.bool_(), nullable=False)
    geometry = Column(pa.bool_(), nullable=False)
    geometry_change = Column(pa.float64())
    fields = Column(pa.list_(pa.string()))
    digest = Column(DIGEST)
    source_digest = Column(DIGEST)
    old_digest = Column(DIGEST)
    partition = Column(PARTITION_NAME)
    old_partition = Column(PARTITION_NAME)


class IndexRows(Shape):
    """The published features as the index has them: key, digests, partition, and the version that met the key last."""

    key = Column(pa.binary(), nullable=False)
    digest = Column(DIGEST, nullable=False)
    source_digest = Column(DIGEST, nullable=False)
    partition = Column(PARTITION_NAME, nullable=False)
    version = Column(pa.int64(), nullable=False)


class CheckpointRows(Shape):
    """The index as a checkpoint holds it, in the order of a delivery (docs/spec/changes.md)."""

    key = Column(pa.binary(), nullable=False)
    key_hash = Column(DIGEST, nullable=False)
    source_digest = Column(DIGEST, nullable=False)
    digest = Column(DIGEST)
    partition = Column(pa.int32(), nullable=False)
    version = Column(pa.int64(), nullable=False)


class WithdrawnRows(Shape):
    """What was withdrawn, one row a feature.

    digest: what was withdrawn of it, null where its removal was. present: whether it is published now. wrong: a person named it as wrong.
    """

    key = Column(pa.binary(), nullable=False)
    digest = Column(DIGEST)
    present = Column(pa.bool_(), nullable=False)
    wrong = Column(pa.bool_(), nullable=False)
