"""A run as W3C PROV in its JSON form (PROV-JSON, member submission of 2013-04-24).

Not here: the facts (`run_facts`). The same run gives the same text.
"""

from __future__ import annotations

import json

from merestone.json_value import JsonObject
from merestone.render.run_facts import RunFacts, stamp

VOCABULARY = "urn:merestone:prov:"


def document(facts: RunFacts) -> JsonObject:
    """The PROV-JSON document: delivery and versions are entities, the run and its steps activities, the software agents."""
    prefix = {"m": VOCABULARY, "run": f"urn:uuid:{facts.uuid}:", "data": f"{facts.namespace.rstrip('/')}#"}
    entities: JsonObject = {}
    out: JsonObject = {"prefix": prefix, "entity": entities}
    run = "run:run"
    activities: JsonObject = {
        run: {
            "prov:startTime": stamp(facts.started),
            "prov:endTime": stamp(facts.ended),
            "prov:label": f"run {facts.run_id} of {facts.name}",
            "m:run_id": facts.run_id,
            "m:attempt": facts.attempt,
            "m:merkle_root": facts.root,
            "m:run_manifest": facts.run_manifest,
            **({"m:contract": facts.contract} if facts.contract else {}),
            **{f"m:{name}": value for name, value in facts.verdict.items()},
        }
    }
    agents: JsonObject = {}
    used: JsonObject = {}
    associated: JsonObject = {}
    informed: JsonObject = {}
    derived: JsonObject = {}
    sources = []
    if facts.delivery is not None:
        entities["run:delivery"] = {
            "prov:label": facts.delivery,
            **_known({"m:rows": facts.delivery_rows, "m:set_digest": facts.delivery_digest, "m:crs": facts.delivery_crs}),
        }
        sources.append("run:delivery")
    if facts.previous is not None:
        entities[f"data:v{facts.previous}"] = {"prov:label": f"{facts.name}, version {facts.previous}", "m:version": facts.previous}
        sources.append(f"data:v{facts.previous}")
    for number, source in enumerate(sources, 1):
        used[f"_:used{number}"] = {"prov:activity": run, "prov:entity": source}
    if facts.version is not None:
        made = f"data:v{facts.version}"
        entities[made] = {
            "prov:label": f"{facts.name}, version {facts.version}",
            "m:version": facts.version,
            **_known({"m:features": facts.features, "m:crs": facts.crs, "m:bytes": facts.size}),
        }
        out["wasGeneratedBy"] = {"_:made": {"prov:entity": made, "prov:activity": run, "prov:time": stamp(facts.ended)}}
        for number, source in enumerate(sources, 1):
            derived[f"_:derived{number}"] = {"prov:generatedEntity": made, "prov:usedEntity": source, "prov:activity": run}
    for number, step in enumerate(facts.steps, 1):
        name = f"run:step{number}"
        activities[name] = {
            "prov:startTime": stamp(step.first),
            "prov:endTime": stamp(step.last),
            "prov:label": f"{step.stage}/{step.event_type}",
            "m:source_crs": step.source_crs,
            "m:target_crs": step.target_crs,
            "m:passed": step.passed,
            "m:warned": step.warned,
            "m:rejected": step.rejected,
        }
        informed[f"_:part{number}"] = {"prov:informed": run, "prov:informant": name}
        for tool in step.tools:
            agent = next((key for key, value in agents.items() if value["prov:label"] == tool), f"run:tool{len(agents) + 1}")
            agents[agent] = {"prov:label": tool, "prov:type": {"$": "prov:SoftwareAgent", "type": "prov:QUALIFIED_NAME"}}
            associated[f"_:by{len(associated) + 1}"] = {"prov:activity": name, "prov:agent": agent}
    out["activity"] = activities
    parts = {"agent": agents, "used": used, "wasDerivedFrom": derived, "wasAssociatedWith": associated, "wasInformedBy": informed}
    return {**out, **{name: value for name, value in parts.items() if value}}


def text(found: JsonObject) -> str:
    """The document as JSON text."""
    return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _known(values: JsonObject) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
