"""Look at contracts: what is wrong or unwise in one, what it says, what one may say.

Not here: reading one to publish under it (`places.read_contract`), what a clause means (`contract`).
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path as File

from merestone.api.answers import ContractResult, LintResult
from merestone.api.places import AnyDataset, Path, read_contract, text_of
from merestone.contract.body import body
from merestone.contract.files import examine, read_document
from merestone.contract.schema import json_schema
from merestone.dataset.version import Dataset
from merestone.inspect import browse
from merestone.json_value import JsonObject
from merestone.storage.place import local_path


def lint(contract: Path) -> LintResult:
    """Say what is wrong or unwise in a contract file.

    Raises:
        UsageError: the file is missing, is a publication file, or cannot be read as YAML.

    Example:
        >>> merestone.lint("parcels.contract.yaml").status
        'pass'
    """
    read, messages = examine(os.fspath(contract))
    found = Counter(each.level for each in messages)
    return LintResult(
        status="fail" if found["error"] else "pass",
        contract_version=str(read.contract_version) if read else None,
        errors=found["error"],
        warnings=found["warning"],
        confirm=found["confirm"],
        messages=tuple(messages),
    )


def show_contract(target: AnyDataset) -> ContractResult:
    """Show a contract as it is published, with every default filled in.

    Args:
        target: a contract file, or a version of a dataset.

    Raises:
        UsageError: the file or the version is not there, or the contract is broken.

    Example:
        >>> merestone.show_contract("parcels.yaml").contract["crs_epsg"]
        28992
    """
    named = text_of(target)
    if (
        not isinstance(target, Dataset)
        and File(local_path(named)).is_file()
        and "destination" not in read_document(named, what="contract").tree
    ):
        read = read_contract(named)
        return ContractResult(body(read), read.digest)
    manifest = browse.version_at(named).manifest
    return ContractResult(manifest.contract, manifest.contract_sha256)


def contract_schema() -> JsonObject:
    """The JSON Schema (draft 2020-12) of a contract document.

    Example:
        >>> merestone.contract_schema()["type"]
        'object'
    """
    return json_schema()
