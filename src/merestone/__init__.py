"""Merestone: a contract at the boundary, a publish that costs what the change costs, and a record of every move."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merestone.identity.frame import fingerprint_frame, fingerprint_table

__version__ = "0.1.0"

# Where each public name lives. They are imported on first use, so that `import merestone` stays quick.
_HOMES = {
    "fingerprint_frame": "merestone.identity.frame",
    "fingerprint_table": "merestone.identity.frame",
}

__all__ = ["__version__", "fingerprint_frame", "fingerprint_table"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
