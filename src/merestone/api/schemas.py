"""The JSON Schema of every object that a command prints as JSON, made from the classes of the answers.

Not here: how a class becomes a schema (`results.json_form`), the files below docs/reference/schemas (`docs/generate.py` writes them).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from merestone.api import answers, lineage_answers
from merestone.contract.schema import json_schema as contract_document
from merestone.errors import UsageError
from merestone.json_value import JsonObject
from merestone.results import json_form
from merestone.results.diagnosis import DiagnoseResult
from merestone.results.result import ApplyResult, CheckResult, DiffResult, PublishResult

CLASSES: Final[Mapping[str, tuple[type, ...]]] = {
    "init": (answers.DraftResult,),
    "publish": (PublishResult,),
    "check": (CheckResult,),
    "diagnose": (DiagnoseResult,),
    "diff": (DiffResult,),
    "read": (answers.ReadResult, answers.FeatureCollection),
    "files": (answers.FilesResult,),
    "changes": (answers.ChangesResult,),
    "apply": (ApplyResult,),
    "log": (answers.LogResult,),
    "status": (answers.StatusResult,),
    "rollback": (answers.RollbackResult,),
    "verify": (answers.VerifyResult,),
    "contract lint": (answers.LintResult,),
    "contract show": (answers.ContractResult,),
    "contract infer": (answers.InferResult,),
    "lineage summary": (lineage_answers.SummaryResult,),
    "lineage why": (lineage_answers.WhyResult,),
    "lineage validate-schema": (lineage_answers.SchemaFaultsResult,),
    "lineage check-partitions": (lineage_answers.ProblemsResult,),
    "lineage scorecard": (lineage_answers.ScorecardResult,),
    "lineage history": (lineage_answers.HistoryResult,),
    "lineage rejects": (lineage_answers.EventsResult,),
    "lineage runs": (lineage_answers.RunsResult,),
    "lineage query": (lineage_answers.EventsResult,),
    "lineage check-complete": (lineage_answers.CompleteResult,),
    "lineage ingest": (lineage_answers.IngestResult,),
    "lineage retain": (lineage_answers.RetainResult, lineage_answers.HoldResult),
    "lineage iso19115": (lineage_answers.Iso19115Result, lineage_answers.ProblemsResult),
    "lineage openlineage": (lineage_answers.OpenLineageResult,),
    "lineage prov": (lineage_answers.ProvResult,),
    "lineage head": (lineage_answers.HeadResult,),
    "lineage prove": (lineage_answers.ProveResult,),
    "lineage evidence": (lineage_answers.EvidenceResult,),
}
"""Command to the classes of its answers; of several, the first is the usual one. `contract schema` prints a schema itself."""


def json_schema(command: str) -> JsonObject:
    """The JSON Schema (draft 2020-12) of the object that a command prints where it could run.

    Args:
        command: the full name, such as "publish" or "lineage why"; "error" for a command that could not run.

    Raises:
        UsageError: no such command exists.

    Example:
        >>> merestone.json_schema("publish")["properties"]["status"]["enum"]
        ['published', 'unchanged', 'refused', 'planned']
    """
    if command == "error":
        return json_form.schema(answers.ErrorResult, "merestone: error")
    if command == "contract schema":
        return {"$schema": json_form.DRAFT, "title": "merestone contract schema", "const": contract_document()}
    classes = CLASSES.get(command)
    if classes is None:
        known = ("error", "contract schema", *CLASSES)
        raise UsageError(f"no command is called {command!r}", field="command", hint=f"they are {', '.join(known)}")
    title = f"merestone {command}"
    if len(classes) == 1:
        return json_form.schema(classes[0], title)
    return json_form.schema_of_any(classes, title)
