"""The record of every move: events, their store, and reading them.

Not here: what the stages do (`normalise`, `gate`, `change`, `line`), rendering of results (`render`).
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """`merestone.lineage.run`, by which other programs write their runs: the function of the library (`api.lineage`), which stands above this room."""
    if name == "run":
        return import_module("merestone.api.lineage").run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
