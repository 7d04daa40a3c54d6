"""The schemas by which an event store was written, kept in it, and what of them conflicts with the one that runs.

Not here: the rules of evolution (`schema`).

Each version of the schema that ever wrote to a store leaves its file as `_schemas/<version>.yaml` beside the events: so a store says what its
fields mean for as long as it is kept, and a Merestone that would write them otherwise is refused before it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from merestone.errors import CorruptError
from merestone.lineage.event.schema import SCHEMA, check_evolution, read_schema, schema_text
from merestone.storage.port import Store

SCHEMAS = "_schemas"
_HINT = "use the Merestone version that wrote the store, or a newer one; a file that was altered is restored from a backup"


def check_schema(store: Store, root: str) -> None:
    """Refuse to write events into a store whose schemas conflict with the one that runs.

    Raises:
        CorruptError: a field would go, be renamed, narrowed or required otherwise than it was; or a recorded schema cannot be read.
    """
    for path, problem in conflicts(store, root):
        raise CorruptError(f"lineage of schema {SCHEMA.version} does not go into this store, {path}: {problem}", field=path, hint=_HINT)


def record_schema(store: Store, root: str) -> str:
    """As `check_schema`; then the schema that runs stands in the store, by the name that is returned.

    Raises:
        CorruptError: as `check_schema`.
        StoreError: the store cannot be written.
    """
    check_schema(store, root)
    path = f"{_folder(root)}{SCHEMA.version}.yaml"
    if store.size(path) is None:
        with suppress(FileExistsError):  # another writer of the same version came first
            store.create(path, schema_text().encode())
    return path


def conflicts(store: Store, root: str) -> Iterator[tuple[str, str]]:
    """The recorded schemas that the one that runs cannot follow, each with the reasons in one sentence.

    Raises:
        StoreError: the store cannot be read.
    """
    running = schema_text().encode()
    for path, _ in store.list(_folder(root)):
        data = store.get(path)
        if data == running:
            continue
        try:
            recorded = read_schema(data.decode())
        except ValueError as fault:
            yield path, f"is not a readable schema: {fault}"
            continue
        if path.removeprefix(_folder(root)) != f"{recorded.version}.yaml":
            yield path, f"holds schema {recorded.version}"
        elif problems := check_evolution(recorded, SCHEMA):
            yield path, "; ".join(problems)


def _folder(root: str) -> str:
    return f"{root}/{SCHEMAS}/" if root else f"{SCHEMAS}/"
