"""One call of each command as a person would type it; the help and the reference show it.

Not here: longer stories (docs/tutorial.md, docs/how-to).
"""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "init": "merestone init parcels.gpkg --owner you@example.org --previous parcels-of-last-week.gpkg",
    "publish": "merestone publish parcels.yaml --source exports/today.gpkg",
    "check": "merestone check exports/today.gpkg --contract parcels.contract.yaml --html findings.html",
    "diagnose": "merestone diagnose exports/today.gpkg --contract parcels.contract.yaml",
    "diff": "merestone diff yesterday.gpkg today.shp --key parcel_id --html change.html",
    "read": "merestone read parcels.yaml@3 --bbox 155000,463000,156000,464000 --columns parcel_id,owner --out part.gpkg",
    "files": "merestone files parcels.yaml --as duckdb > parcels.sql",
    "changes": "merestone changes parcels.yaml --from 3 --where \"owner = 'Smith'\" --html change.html",
    "apply": "merestone apply parcels.yaml --from 3 --to 5 --onto copy.gpkg",
    "log": "merestone log parcels.yaml",
    "status": "merestone status parcels.yaml --json",
    "rollback": 'merestone rollback parcels.yaml --to 41 --reason "wrong export of 2 March"',
    "verify": "merestone verify parcels.yaml",
    "contract lint": "merestone contract lint parcels.contract.yaml",
    "contract schema": "merestone contract schema > contract.schema.json",
    "contract show": "merestone contract show parcels.yaml@3",
    "contract infer": "merestone contract infer export.gpkg --out parcels.contract.yaml",
    "lineage scorecard": "merestone lineage scorecard parcels.yaml --last 7 --max-rejected 0.001 --junit scores.xml",
    "lineage history": "merestone lineage history parcels.yaml 0301-17/4",
    "lineage rejects": "merestone lineage rejects parcels.yaml@3 --out rejects.parquet",
    "lineage runs": "merestone lineage runs parcels.yaml",
    "lineage query": "merestone lineage query parcels.yaml --stage validate --outcome REJECT --limit 100",
    "lineage check-complete": "merestone lineage check-complete parcels.yaml",
    "lineage ingest": "merestone lineage ingest parcels.yaml events.ndjson --plan load,clean",
    "lineage retain": 'merestone lineage retain parcels.yaml --window P6Y --basis "Archives Act, section 4"',
    "lineage iso19115": "merestone lineage iso19115 parcels.yaml@3 --encoding mdb --out lineage.xml",
    "lineage openlineage": "merestone lineage openlineage parcels.yaml --out events.ndjson",
    "lineage head": "merestone lineage head parcels.yaml --out head.json",
    "lineage prov": "merestone lineage prov parcels.yaml --out prov.json",
    "lineage prove": "merestone lineage prove parcels.yaml 0301-17/4 --out proof.json",
    "lineage evidence": "merestone lineage evidence parcels.yaml@3 --out evidence.zip",
    "lineage check-partitions": "merestone lineage check-partitions --root published/parcels/_lineage --require-epsg-target",
    "lineage summary": "merestone lineage summary parcels.yaml@3",
    "lineage validate-schema": "merestone lineage validate-schema lineage_schema.yaml",
    "lineage why": "merestone lineage why parcels.yaml 0301-17/4",
}
"""Full name of a command to its example."""
