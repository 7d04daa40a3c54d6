"""From a place to its store.

Not here: what a text means as a place (`place`), the stores themselves (`local`), what they must offer (`port`).
"""

from __future__ import annotations

import os

from merestone.storage.local import LocalStore
from merestone.storage.place import local_path
from merestone.storage.port import Store


def open_store(place: str | os.PathLike[str], *, field: str | None = None) -> Store:
    """The store at a path, a `file://` URL or a store's own `url`. Nothing is read or written.

    Args:
        place: see `storage.place`.
        field: the key or option that names it, for errors.

    Raises:
        UsageError: the text means no place, or one of a scheme that has no store in this version.
    """
    return LocalStore(local_path(place, field=field, what="a dataset"))
