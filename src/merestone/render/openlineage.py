"""A run as OpenLineage run events (spec 2-0-2): START, then COMPLETE, or FAIL where no version came of it.

Not here: the facts (`run_facts`), sending them anywhere. The same run gives the same text.
"""

from __future__ import annotations

import json

from merestone.json_value import Json, JsonObject
from merestone.render.run_facts import RunFacts, stamp

SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
_FACETS = "https://openlineage.io/spec/facets"


def events(facts: RunFacts, producer: str) -> list[JsonObject]:
    """The events of a run, in order.

    Args:
        facts: the run.
        producer: a URI that names the software.
    """
    foreign = facts.foreign
    job = {
        "namespace": facts.namespace if foreign is None else foreign.namespace,
        "name": f"{facts.name}.publish" if foreign is None else foreign.job,
        "facets": {
            "jobType": _facet(
                producer,
                "2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
                processingType="BATCH",
                integration="MERESTONE" if foreign is None else next(iter(facts.tools), "unknown").upper(),
                jobType="JOB",
            ),
        },
    }
    start = {
        "eventType": "START",
        "eventTime": stamp(facts.started),
        "producer": producer,
        "schemaURL": f"{SCHEMA}#/$defs/RunEvent",
        "run": {"runId": facts.uuid, "facets": _run_facets(facts, producer)},
        "job": job,
        "inputs": [],
        "outputs": [],
    }
    end = {
        **start,
        "eventType": "COMPLETE" if facts.complete else "FAIL",
        "eventTime": stamp(facts.ended),
        "inputs": _inputs(facts, producer),
        "outputs": _outputs(facts, producer),
    }
    return [start, end]


def ndjson(found: list[JsonObject]) -> str:
    """Events as one JSON object a line."""
    return "".join(json.dumps(each, ensure_ascii=False, allow_nan=False) + "\n" for each in found)


def _facet(producer: str, schema: str, **more: Json) -> JsonObject:
    return {"_producer": producer, "_schemaURL": f"{_FACETS}/{schema}", **more}


def _own(producer: str, **more: Json) -> JsonObject:
    """A facet of our own."""
    return {"_producer": producer, "_schemaURL": f"{SCHEMA}#/$defs/RunFacet", **more}


def _run_facets(facts: RunFacts, producer: str) -> JsonObject:
    tool = "merestone" if facts.foreign is None else next(iter(facts.tools), None)
    engine = _facet(
        producer,
        "1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
        name=tool,
        version=facts.tools.get(tool or "", "unknown"),
        openlineageAdapterVersion=producer.rpartition(":")[2],
    )
    facets = {
        **({"processing_engine": engine} if tool is not None else {}),
        "merestone_lineage": _own(
            producer,
            runId=facts.run_id,
            attempt=facts.attempt,
            merkleRoot=facts.root,
            runManifest=facts.run_manifest,
            contract=facts.contract,
            verdict=facts.verdict,
            delta=facts.delta,
            steps=[
                {
                    "stage": each.stage,
                    "eventType": each.event_type,
                    "sourceCrs": each.source_crs,
                    "targetCrs": each.target_crs,
                    "passed": each.passed,
                    "warned": each.warned,
                    "rejected": each.rejected,
                    "tools": list(each.tools),
                }
                for each in facts.steps
            ],
        ),
    }
    if not facts.complete:
        failure = f"{facts.verdict['features_rejected']} of {facts.verdict['features']} features rejected"
        failure = "; ".join([failure, *facts.findings[:3]])
        failure = f"{failure}; no version was published" if facts.foreign is None else facts.foreign.reason or failure
        facets["errorMessage"] = _facet(
            producer, "1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet", message=failure, programmingLanguage="Python"
        )
    return facets


def _inputs(facts: RunFacts, producer: str) -> list[JsonObject]:
    found: list[JsonObject] = [] if facts.foreign is None else [_dataset(each, "inputFacets") for each in facts.foreign.inputs]
    if facts.delivery is not None:
        counted = (
            {}
            if facts.delivery_rows is None
            else {
                "inputStatistics": _facet(
                    producer,
                    "1-0-0/InputStatisticsInputDatasetFacet.json#/$defs/InputStatisticsInputDatasetFacet",
                    rowCount=facts.delivery_rows,
                )
            }
        )
        version = {} if facts.delivery_digest is None else {"version": _version(facts.delivery_digest, producer)}
        found.append(
            {"namespace": facts.namespace, "name": f"{facts.name}/delivery/{facts.delivery}", "facets": version, "inputFacets": counted}
        )
    if facts.previous is not None:
        found.append(
            {
                "namespace": facts.namespace,
                "name": facts.name,
                "facets": {"version": _version(str(facts.previous), producer)},
                "inputFacets": {},
            }
        )
    return found


def _outputs(facts: RunFacts, producer: str) -> list[JsonObject]:
    if facts.foreign is not None:
        return [_dataset(each, "outputFacets") for each in facts.foreign.outputs]
    if facts.version is None:
        return []
    facets = {
        "version": _version(str(facts.version), producer),
        "schema": _facet(
            producer,
            "1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
            fields=[{"name": name, "type": kind} for name, kind in facts.fields],
        ),
        "dataSource": _facet(
            producer, "1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet", name=facts.name, uri=facts.namespace
        ),
    }
    counted = {
        "outputStatistics": _facet(
            producer,
            "1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
            rowCount=facts.features,
            size=facts.size,
            fileCount=facts.files,
        )
    }
    return [{"namespace": facts.namespace, "name": facts.name, "facets": facets, "outputFacets": counted}]


def _dataset(uri: str, facets: str) -> JsonObject:
    """A dataset by its URI, under the names that the standard gives: `file` and a path, a bucket and a key, a server and a table."""
    scheme, found, rest = uri.partition("://")
    if not found or scheme == "file":
        return {"namespace": "file", "name": rest or uri, "facets": {}, facets: {}}
    place, _, name = rest.partition("/")
    return {"namespace": f"{scheme}://{place}", "name": name or place, "facets": {}, facets: {}}


def _version(text: str, producer: str) -> JsonObject:
    return _facet(producer, "1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet", datasetVersion=text)
