"""From a place to its store.

Not here: what a text means as a place (`place`), the stores themselves (`local`, `memory`), what they must offer (`port`).
"""

from __future__ import annotations

import os
from typing import Final

from merestone.errors import UsageError
from merestone.storage.local import LocalStore
from merestone.storage.memory import memory_store
from merestone.storage.place import not_in_this_version, parse_place
from merestone.storage.port import Store
from merestone.storage.retry import Policy, RetryingStore

SCHEMES = ("file", "memory")
"""The schemes of places that have a store in this version."""


POLICY: Final = Policy()
"""How often a request that a store did not carry out is repeated, and how fast."""


def open_store(place: str | os.PathLike[str], *, field: str | None = None, policy: Policy | None = None) -> Store:
    """The store at a path, a `file://` URL or a store's own `url`; what it does not carry out is repeated. Nothing is read or written here.

    Args:
        place: see `storage.place`.
        field: the key or option that names it, for errors.
        policy: how often a request is repeated; `POLICY` by default.

    Raises:
        UsageError: the text means no place, or one of a scheme that has no store in this version.
    """
    where = parse_place(place, field=field)
    policy = policy or POLICY
    if where.is_local:
        return RetryingStore(LocalStore(where.path), policy)
    if where.scheme == "memory":
        found = memory_store(f"memory://{where.authority}")
        if found is None:
            raise UsageError(
                f"{where.shown}: this process has no such store in memory", field=field or where.shown, hint="make it: MemoryStore(NAME)"
            )
        return RetryingStore(found, policy)
    raise not_in_this_version(where, "a dataset", field)
