"""The committed JSON Schema is the one that the definition makes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from merestone.contract.schema import json_schema

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "contract.schema.json"


def test_the_committed_schema_is_up_to_date():
    assert json.loads(COMMITTED.read_text("utf-8")) == json_schema(), "run `make docs`"


def test_it_is_a_schema_of_draft_2020_12():
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(json_schema())
