"""JSON as a type: one name for what a document, a record or an answer holds.

Not here: reading JSON (`document.json_reader`), checking its form (`document.forms`, `lineage.event.checked_json`), writing results (`results.json_form`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as JSON has it: None, bool, int, float, str, a list of such values, or a dict of them by name.

A type checker cannot follow a form that is only known when it is read, so it takes such a value as it comes. Whoever reads one from
outside checks its form before anything else is done with it.
"""
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object, to be written or already read."""
