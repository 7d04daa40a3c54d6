"""Merestone: a contract at the boundary, a publish that costs what the change costs, and a record of every move.

`publish`, `check`, `diff` and the other functions do what the commands of the same name do, and answer with values that print as the same
JSON. A refusal is an answer; a question that could not be answered is a `MerestoneError`. Questions about lineage are in
`merestone.api.lineage`. The reference is docs/reference/api.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merestone.api.answers import ChangesResult as ChangesResult
    from merestone.api.answers import ContractResult as ContractResult
    from merestone.api.answers import DraftResult as DraftResult
    from merestone.api.answers import FilesResult as FilesResult
    from merestone.api.answers import InferResult as InferResult
    from merestone.api.answers import LintResult as LintResult
    from merestone.api.answers import LogResult as LogResult
    from merestone.api.answers import ReadResult as ReadResult
    from merestone.api.answers import RollbackResult as RollbackResult
    from merestone.api.answers import StatusResult as StatusResult
    from merestone.api.answers import VerifyResult as VerifyResult
    from merestone.api.changes import changes as changes
    from merestone.api.checking import check as check
    from merestone.api.checking import diagnose as diagnose
    from merestone.api.comparing import apply as apply
    from merestone.api.comparing import diff as diff
    from merestone.api.contracts import contract_schema as contract_schema
    from merestone.api.contracts import lint as lint
    from merestone.api.contracts import show_contract as show_contract
    from merestone.api.datasets import files as files
    from merestone.api.datasets import log as log
    from merestone.api.datasets import read as read
    from merestone.api.datasets import status as status
    from merestone.api.datasets import verify as verify
    from merestone.api.drafting import draft as draft
    from merestone.api.drafting import infer as infer
    from merestone.api.places import open_dataset as open  # noqa: A004 - `merestone.open(path)` is the public name
    from merestone.api.places import read_contract as read_contract
    from merestone.api.places import read_publication as read_publication
    from merestone.api.publishing import publish as publish
    from merestone.api.publishing import rollback as rollback
    from merestone.api.schemas import json_schema as json_schema
    from merestone.change.delta import Delta as Delta
    from merestone.change.delta import diff_against_manifest as diff_against_manifest
    from merestone.change.delta import partitions_to_rewrite as partitions_to_rewrite
    from merestone.contract.contract import Contract as Contract
    from merestone.dataset.version import Dataset as Dataset
    from merestone.dataset.version import Version as Version
    from merestone.errors import ConflictError as ConflictError
    from merestone.errors import CorruptError as CorruptError
    from merestone.errors import InternalError as InternalError
    from merestone.errors import MerestoneError as MerestoneError
    from merestone.errors import MissingError as MissingError
    from merestone.errors import SourceError as SourceError
    from merestone.errors import StampError as StampError
    from merestone.errors import StoreError as StoreError
    from merestone.errors import UnknownOutcomeError as UnknownOutcomeError
    from merestone.errors import UsageError as UsageError
    from merestone.identity.frame import fingerprint_frame as fingerprint_frame
    from merestone.identity.frame import fingerprint_table as fingerprint_table
    from merestone.lineage.event.collector import LineageCollector as LineageCollector
    from merestone.lineage.event.record import LineageEvent as LineageEvent
    from merestone.lineage.event.record import make_event_id as make_event_id
    from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA as LINEAGE_ARROW_SCHEMA
    from merestone.lineage.store.deduplication import deduplicate as deduplicate
    from merestone.lineage.store.verdict import conformance_summary as conformance_summary
    from merestone.publication.publication import Publication as Publication
    from merestone.results.diagnosis import DiagnoseResult as DiagnoseResult
    from merestone.results.finding import Finding as Finding
    from merestone.results.finding import Sample as Sample
    from merestone.results.progress import Progress as Progress
    from merestone.results.result import ApplyResult as ApplyResult
    from merestone.results.result import Changed as Changed
    from merestone.results.result import CheckResult as CheckResult
    from merestone.results.result import Counts as Counts
    from merestone.results.result import DiffResult as DiffResult
    from merestone.results.result import PublishResult as PublishResult

__version__ = "0.1.0"

# Where each public name lives. They are imported on first use, which keeps `import merestone` quick.
_HOMES = {
    "ApplyResult": "merestone.results.result:ApplyResult",
    "Changed": "merestone.results.result:Changed",
    "ChangesResult": "merestone.api.answers:ChangesResult",
    "CheckResult": "merestone.results.result:CheckResult",
    "ConflictError": "merestone.errors:ConflictError",
    "Contract": "merestone.contract.contract:Contract",
    "ContractResult": "merestone.api.answers:ContractResult",
    "CorruptError": "merestone.errors:CorruptError",
    "Counts": "merestone.results.result:Counts",
    "Dataset": "merestone.dataset.version:Dataset",
    "Delta": "merestone.change.delta:Delta",
    "DiagnoseResult": "merestone.results.diagnosis:DiagnoseResult",
    "DiffResult": "merestone.results.result:DiffResult",
    "DraftResult": "merestone.api.answers:DraftResult",
    "FilesResult": "merestone.api.answers:FilesResult",
    "Finding": "merestone.results.finding:Finding",
    "InferResult": "merestone.api.answers:InferResult",
    "InternalError": "merestone.errors:InternalError",
    "LINEAGE_ARROW_SCHEMA": "merestone.lineage.event.schema:LINEAGE_ARROW_SCHEMA",
    "LineageCollector": "merestone.lineage.event.collector:LineageCollector",
    "LineageEvent": "merestone.lineage.event.record:LineageEvent",
    "LintResult": "merestone.api.answers:LintResult",
    "LogResult": "merestone.api.answers:LogResult",
    "MerestoneError": "merestone.errors:MerestoneError",
    "MissingError": "merestone.errors:MissingError",
    "Progress": "merestone.results.progress:Progress",
    "Publication": "merestone.publication.publication:Publication",
    "PublishResult": "merestone.results.result:PublishResult",
    "ReadResult": "merestone.api.answers:ReadResult",
    "RollbackResult": "merestone.api.answers:RollbackResult",
    "Sample": "merestone.results.finding:Sample",
    "SourceError": "merestone.errors:SourceError",
    "StampError": "merestone.errors:StampError",
    "StatusResult": "merestone.api.answers:StatusResult",
    "StoreError": "merestone.errors:StoreError",
    "UnknownOutcomeError": "merestone.errors:UnknownOutcomeError",
    "UsageError": "merestone.errors:UsageError",
    "VerifyResult": "merestone.api.answers:VerifyResult",
    "Version": "merestone.dataset.version:Version",
    "apply": "merestone.api.comparing:apply",
    "changes": "merestone.api.changes:changes",
    "check": "merestone.api.checking:check",
    "conformance_summary": "merestone.lineage.store.verdict:conformance_summary",
    "contract_schema": "merestone.api.contracts:contract_schema",
    "deduplicate": "merestone.lineage.store.deduplication:deduplicate",
    "diagnose": "merestone.api.checking:diagnose",
    "diff": "merestone.api.comparing:diff",
    "diff_against_manifest": "merestone.change.delta:diff_against_manifest",
    "draft": "merestone.api.drafting:draft",
    "files": "merestone.api.datasets:files",
    "fingerprint_frame": "merestone.identity.frame:fingerprint_frame",
    "fingerprint_table": "merestone.identity.frame:fingerprint_table",
    "infer": "merestone.api.drafting:infer",
    "json_schema": "merestone.api.schemas:json_schema",
    "lint": "merestone.api.contracts:lint",
    "log": "merestone.api.datasets:log",
    "make_event_id": "merestone.lineage.event.record:make_event_id",
    "open": "merestone.api.places:open_dataset",
    "partitions_to_rewrite": "merestone.change.delta:partitions_to_rewrite",
    "publish": "merestone.api.publishing:publish",
    "read": "merestone.api.datasets:read",
    "read_contract": "merestone.api.places:read_contract",
    "read_publication": "merestone.api.places:read_publication",
    "rollback": "merestone.api.publishing:rollback",
    "show_contract": "merestone.api.contracts:show_contract",
    "status": "merestone.api.datasets:status",
    "verify": "merestone.api.datasets:verify",
}

__all__ = [
    "LINEAGE_ARROW_SCHEMA",
    "ApplyResult",
    "Changed",
    "ChangesResult",
    "CheckResult",
    "ConflictError",
    "Contract",
    "ContractResult",
    "CorruptError",
    "Counts",
    "Dataset",
    "Delta",
    "DiagnoseResult",
    "DiffResult",
    "DraftResult",
    "FilesResult",
    "Finding",
    "InferResult",
    "InternalError",
    "LineageCollector",
    "LineageEvent",
    "LintResult",
    "LogResult",
    "MerestoneError",
    "MissingError",
    "Progress",
    "Publication",
    "PublishResult",
    "ReadResult",
    "RollbackResult",
    "Sample",
    "SourceError",
    "StampError",
    "StatusResult",
    "StoreError",
    "UnknownOutcomeError",
    "UsageError",
    "VerifyResult",
    "Version",
    "__version__",
    "apply",
    "changes",
    "check",
    "conformance_summary",
    "contract_schema",
    "deduplicate",
    "diagnose",
    "diff",
    "diff_against_manifest",
    "draft",
    "files",
    "fingerprint_frame",
    "fingerprint_table",
    "infer",
    "json_schema",
    "lint",
    "log",
    "make_event_id",
    "open",
    "partitions_to_rewrite",
    "publish",
    "read",
    "read_contract",
    "read_publication",
    "rollback",
    "show_contract",
    "status",
    "verify",
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
