"""What a roll-back took back, feature by feature: the page that a manifest names, as columns.

Not here: making it (`writer.rollback`), what a delivery brings back of it (`change.withdrawn`).
"""

from __future__ import annotations

from merestone.dataset.manifest import Manifest
from merestone.dataset.proved import altered, read_table
from merestone.dataset.tables import WithdrawnRows
from merestone.storage.port import Store


def read_withdrawn(store: Store, manifest: Manifest) -> WithdrawnRows:
    """The entries of a version, ordered by key. Raises CorruptError where the page is damaged."""
    if manifest.withdrawn_page is None:
        return WithdrawnRows.empty()
    table = read_table(store, manifest.withdrawn_page)
    if table.schema.names != WithdrawnRows.schema.names:
        raise altered(manifest.withdrawn_page, "is not a page of withdrawn features")
    return WithdrawnRows(table.cast(WithdrawnRows.schema))
