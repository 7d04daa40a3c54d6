"""Examples of the public names whose docstring has none: types, errors and the functions for small data.

Not here: the examples of the library's functions, which stand in their docstrings. `tests/docs/test_api.py` runs them all.
"""

# ruff: noqa: INP001 - beside the script that reads it, no package

from __future__ import annotations

from typing import Final

_PUBLISH = '>>> result = merestone.publish("parcels.yaml", source="tuesday.geojson")\n'

EXAMPLES_OF_TYPES: Final = {
    "ApplyResult": '>>> merestone.apply("parcels.yaml", onto="copy.gpkg", from_version=0).version is None\nTrue',
    "Changed": _PUBLISH + ">>> result.changed.most\n('owner', 1)",
    "ChangesResult": '>>> change = merestone.changes("parcels.yaml")\n>>> change.start, change.end, change.delta.changed\n(1, 2, 1)',
    "CheckResult": '>>> merestone.check("parcels.yaml").refused\nFalse',
    "ConflictError": ">>> merestone.ConflictError.exit_code, merestone.ConflictError.retry\n(5, True)",
    "Contract": ">>> contract = merestone.read_contract(\"parcels.contract.yaml\")\n>>> contract.key\n('parcel_id',)",
    "ContractResult": '>>> len(merestone.show_contract("parcels.yaml").sha256)\n64',
    "CorruptError": ">>> merestone.CorruptError.exit_code, merestone.CorruptError.retry\n(6, False)",
    "Counts": ">>> counts = merestone.Counts(added=2, changed=1, rekeyed=1)\n>>> counts.touched\n3",
    "Dataset": '>>> dataset = merestone.open("parcels.yaml")\n>>> dataset.versions()\n[1, 2]',
    "Delta": '>>> merestone.Delta(added={"p4"}, removed={"p1"}).summary()["added"]\n1',
    "DiagnoseResult": (
        '>>> found = merestone.diagnose("monday.geojson", contract="parcels.contract.yaml")\n'
        ">>> [each.name for each in found.steps if each.state == 'fault']\n[]"
    ),
    "DiffResult": '>>> merestone.diff("parcels.yaml@1", "parcels.yaml@2", keys=True).keys["changed"]\n(\'p2\',)',
    "DraftResult": '>>> merestone.draft("monday.geojson", out="drafts").publication.name\n\'monday.yaml\'',
    "FilesResult": '>>> merestone.files("parcels.yaml", view="duckdb").duckdb.startswith("CREATE")\nTrue',
    "Finding": (
        '>>> found = merestone.check("broken.geojson", contract="parcels.contract.yaml").findings\n'
        ">>> [(each.rule, each.count) for each in found if each.severity == 'error']\n[('key_null', 1)]"
    ),
    "InferResult": '>>> "contract_version" in merestone.infer("monday.geojson").text\nTrue',
    "InternalError": ">>> merestone.InternalError.exit_code\n70",
    "LINEAGE_ARROW_SCHEMA": '>>> merestone.LINEAGE_ARROW_SCHEMA.field("event_id").nullable\nFalse',
    "LineageCollector": (
        ">>> collector = merestone.LineageCollector()\n>>> collector.add(merestone.LineageEvent(\n"
        '...     run_id="load-1", sequence=1, event_time_utc=datetime(2026, 3, 1, tzinfo=UTC), stage="load",\n'
        '...     event_type="VALIDATE", feature_id="p1", source_crs="EPSG:28992", target_crs="EPSG:28992", outcome="PASS"))\n'
        ">>> collector.to_table().num_rows\n1"
    ),
    "LineageEvent": (
        ">>> event = merestone.LineageEvent(\n"
        '...     run_id="load-1", sequence=1, event_time_utc=datetime(2026, 3, 1, tzinfo=UTC), stage="load",\n'
        '...     event_type="VALIDATE", feature_id="p1", source_crs="EPSG:28992", target_crs="EPSG:28992", outcome="PASS")\n'
        ">>> len(event.event_id())\n32"
    ),
    "LintResult": '>>> merestone.lint("parcels.contract.yaml").errors\n0',
    "LogResult": '>>> merestone.log("parcels.yaml").versions[0].counts["changed"]\n1',
    "MerestoneError": (
        '>>> try:\n...     merestone.publish("nowhere.yaml")\n... except merestone.MerestoneError as fault:\n'
        "...     print(fault.kind, fault.exit_code, fault.retry)\nusage 2 False"
    ),
    "MissingError": ">>> merestone.MissingError.exit_code\n8",
    "Progress": (
        '>>> seen = []\n>>> result = merestone.publish("parcels.yaml", source="tuesday.geojson", progress=seen.append)\n'
        ">>> seen[0]\nProgress(stage='prepare', rows=0, total=None, ended=False)"
    ),
    "Publication": '>>> merestone.read_publication("parcels.yaml").guard.max_changed_fraction\n1.0',
    "PublishResult": _PUBLISH + ">>> result.status, result.refused\n('published', False)",
    "ReadResult": '>>> merestone.read("parcels.yaml", out="parcels.parquet").crs\n\'EPSG:28992\'',
    "RollbackResult": '>>> merestone.rollback("parcels.yaml", to=1, reason="wrong export").delta.changed\n1',
    "Sample": (
        '>>> found = merestone.check("broken.geojson", contract="parcels.contract.yaml").findings\n'
        ">>> next(each for each in found if each.rule == 'key_null').features[0].row\n2"
    ),
    "SourceError": (
        '>>> try:\n...     merestone.publish("parcels.yaml", source="nowhere.geojson")\n... except merestone.SourceError as fault:\n'
        "...     print(fault.exit_code)\n3"
    ),
    "StampError": ">>> merestone.StampError.kind, merestone.StampError.exit_code\n('stamp', 5)",
    "StatusResult": '>>> merestone.status("parcels.yaml").sla_minutes\n1440',
    "StoreError": ">>> merestone.StoreError.exit_code, merestone.StoreError.retry\n(4, True)",
    "UnknownOutcomeError": ">>> merestone.UnknownOutcomeError.exit_code\n7",
    "UsageError": (
        '>>> try:\n...     merestone.rollback("parcels.yaml", to=9, reason="none")\n... except merestone.UsageError as fault:\n'
        "...     print(fault.hint)\nthe newest is 2; merestone.log(DATASET) lists them all"
    ),
    "VerifyResult": '>>> merestone.verify("parcels.yaml").damages\n()',
    "Version": ">>> merestone.open(\"parcels.yaml\").version(1).to_arrow(columns=[\"owner\"]).column(\"owner\").to_pylist()\n['Smith', 'Jansen', 'Ali']",
    "conformance_summary": (
        '>>> run = merestone.log("parcels.yaml").versions[0].run_id\n'
        '>>> merestone.conformance_summary("published/parcels/_lineage", run)["rejected"]\n0'
    ),
    "deduplicate": (">>> table = merestone.LINEAGE_ARROW_SCHEMA.empty_table()\n>>> merestone.deduplicate(table).num_rows\n0"),
    "diff_against_manifest": (
        '>>> delta = merestone.diff_against_manifest({"p1": "a", "p2": "b"}, {"p1": "north", "p2": "north"}, {"p1": ("a", "south")})\n'
        ">>> sorted(delta.added), sorted(delta.moved)\n(['p2'], ['p1'])"
    ),
    "fingerprint_frame": (
        '>>> frame = geopandas.read_file("monday.geojson")\n'
        '>>> digests = merestone.fingerprint_frame(frame, "parcel_id", grid=0.01, attributes=["owner"])\n>>> len(digests["p1"])\n32'
    ),
    "fingerprint_table": (
        '>>> table = pyarrow.table({"id": ["p1"], "geometry": [shapely.to_wkb(shapely.Point(1, 2))]})\n'
        ">>> merestone.fingerprint_table(table, \"id\", grid=0.01, attributes=[]).column_names\n['id', 'digest']"
    ),
    "make_event_id": '>>> len(merestone.make_event_id("load-1", "load", "p1", "VALIDATE"))\n32',
    "partitions_to_rewrite": (
        '>>> delta = merestone.Delta(removed={"p1"})\n>>> merestone.partitions_to_rewrite(delta, {}, {"p1": ("a", "south")})\n{\'south\'}'
    ),
}
"""Public name to its example, as doctest has it."""
