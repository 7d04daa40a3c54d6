"""What a roll-back took back, feature by feature: the page that a manifest names, as columns.

Not here: making it (`writer.rollback`), what a delivery brings back of it (`change.withdrawn`).
"""

from __future__ import annotations

import pyarrow as pa

from merestone.dataset.manifest import Manifest
from merestone.dataset.proved import altered, read_table
from merestone.storage.port import Store

WITHDRAWN_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        ("digest", pa.binary(16)),
        pa.field("present", pa.bool_(), nullable=False),
        pa.field("wrong", pa.bool_(), nullable=False),
    ]
)
"""`digest`: what was withdrawn of a feature, null where its removal was. `present`: whether the feature is published now. `wrong`: a person
named it as wrong."""


def read_withdrawn(store: Store, manifest: Manifest) -> pa.Table:
    """The entries of a version as a pyarrow.Table of WITHDRAWN_SCHEMA, ordered by key. Raises CorruptError where the page is damaged."""
    if manifest.withdrawn_page is None:
        return WITHDRAWN_SCHEMA.empty_table()
    table = read_table(store, manifest.withdrawn_page)
    if table.schema.names != WITHDRAWN_SCHEMA.names:
        raise altered(manifest.withdrawn_page, "is not a page of withdrawn features")
    return table.cast(WITHDRAWN_SCHEMA)
