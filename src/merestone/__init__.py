"""Merestone: a contract at the boundary, a publish that costs what the change costs, and a record of every move."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merestone.change.delta import Delta, diff_against_manifest, partitions_to_rewrite
    from merestone.identity.frame import fingerprint_frame, fingerprint_table
    from merestone.inspect.browse import open_dataset as open  # noqa: A004 - `merestone.open(path)` is the public name
    from merestone.lineage.event.collector import LineageCollector
    from merestone.lineage.event.record import LineageEvent, make_event_id
    from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
    from merestone.lineage.store.deduplication import deduplicate
    from merestone.lineage.store.verdict import conformance_summary

__version__ = "0.1.0"

# Where each public name lives. They are imported on first use, so that `import merestone` stays quick.
_HOMES = {
    "Delta": "merestone.change.delta:Delta",
    "LINEAGE_ARROW_SCHEMA": "merestone.lineage.event.schema:LINEAGE_ARROW_SCHEMA",
    "LineageCollector": "merestone.lineage.event.collector:LineageCollector",
    "LineageEvent": "merestone.lineage.event.record:LineageEvent",
    "conformance_summary": "merestone.lineage.store.verdict:conformance_summary",
    "deduplicate": "merestone.lineage.store.deduplication:deduplicate",
    "diff_against_manifest": "merestone.change.delta:diff_against_manifest",
    "fingerprint_frame": "merestone.identity.frame:fingerprint_frame",
    "fingerprint_table": "merestone.identity.frame:fingerprint_table",
    "make_event_id": "merestone.lineage.event.record:make_event_id",
    "open": "merestone.inspect.browse:open_dataset",
    "partitions_to_rewrite": "merestone.change.delta:partitions_to_rewrite",
}

__all__ = [
    "LINEAGE_ARROW_SCHEMA",
    "Delta",
    "LineageCollector",
    "LineageEvent",
    "__version__",
    "conformance_summary",
    "deduplicate",
    "diff_against_manifest",
    "fingerprint_frame",
    "fingerprint_table",
    "make_event_id",
    "open",
    "partitions_to_rewrite",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
