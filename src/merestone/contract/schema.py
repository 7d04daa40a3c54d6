"""The JSON Schema (draft 2020-12) of the contract document, made from its definition.

Not here: laws that bind several clauses beyond what a schema can say (`laws`), JSON Schema of features.
"""

from __future__ import annotations

from merestone.contract.definition import CONTRACT
from merestone.json_value import JsonObject


def json_schema() -> JsonObject:
    """The schema that editors and other tools can check a contract file with."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Merestone contract",
        "description": "The agreement on one spatial data product: what must hold for every delivery and every published version.",
        **CONTRACT.schema(),
    }
