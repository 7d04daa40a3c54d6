"""Questions about the lineage of a dataset, one function for each command of `merestone lineage`.

Not here: the functions themselves, by subject (`lineage_questions`, `lineage_gates`, `lineage_keeping`, `lineage_records`), their answers
(`lineage_answers`).
"""

from __future__ import annotations

from merestone.api.lineage_gates import check_complete, check_partitions, scorecard, validate_schema
from merestone.api.lineage_keeping import hold, ingest, release, retain, run
from merestone.api.lineage_questions import LIMIT, history, query, rejects, runs, summary, why
from merestone.api.lineage_records import evidence, head, iso19115, lint_iso19115, openlineage, prov, prove
from merestone.lineage.event.record import EVENT_TYPES, OUTCOMES

__all__ = [
    "EVENT_TYPES",
    "LIMIT",
    "OUTCOMES",
    "check_complete",
    "check_partitions",
    "evidence",
    "head",
    "history",
    "hold",
    "ingest",
    "iso19115",
    "lint_iso19115",
    "openlineage",
    "prov",
    "prove",
    "query",
    "rejects",
    "release",
    "retain",
    "run",
    "runs",
    "scorecard",
    "summary",
    "validate_schema",
    "why",
]
