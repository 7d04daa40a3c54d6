"""Which names an object may have, for every store alike.

Not here: names that mean something (`dataset`), paths that people write (`place`).
"""

from __future__ import annotations

from merestone.errors import StoreError


def check_name(name: str, store: str) -> list[str]:
    """The parts of an object's name.

    Args:
        name: relative, "/" between its parts.
        store: what messages call the store.

    Raises:
        StoreError: the name could lead out of the store, or holds what not every store takes.
    """
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise StoreError(
            f"{name!r} is not a name below {store}",
            field=name,
            hint="object names are relative, with '/' between the parts and no '..'",
        )
    return parts


def check_prefix(prefix: str, store: str) -> None:
    """Refuse a prefix that is not "" or a folder's name with "/" at its end. Raises ValueError, or StoreError as `check_name`."""
    if prefix and not prefix.endswith("/"):
        raise ValueError(f"{prefix!r} must end in '/'")
    if prefix:
        check_name(prefix[:-1], store)
