"""A run as OpenLineage and as PROV: the counts are the store's, every name that is used is there, the same run gives the same text."""

import json
import uuid

import pytest

from cli.products import FIELDS, rows
from estate import save
from merestone.audit.facts import facts_of
from merestone.lineage.store.verdict import conformance_summary
from merestone.render import openlineage, prov


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    from estate import Estate  # noqa: PLC0415 - the fixture of that name is for one test

    folder = tmp_path_factory.mktemp("facts")
    fields = [dict(each) for each in FIELDS]
    fields[1]["nullable"] = False
    made = Estate(folder / "product", fields, geometry_type="point", key=["pid"], epsg=28992, precision=3).agreed()
    made.settings["crs"] = {"accept": ["EPSG:4326"]}
    made.publish(save(rows(), folder / "first.gpkg"))
    made.publish(save(rows(p3={"owner": "b"}, p7=None), folder / "second.gpkg"))
    made.refused = made.publish(save(rows(p3={"owner": None}), folder / "bad.gpkg")).result.run_id
    return made


def test_openlineage_tells_start_and_end(nights):
    facts = facts_of(str(nights.url), None)
    start, end = openlineage.events(facts, "urn:test")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"] == end["run"]
    assert str(uuid.UUID(start["run"]["runId"])) == start["run"]["runId"]
    assert start["eventTime"] < end["eventTime"]
    (out,) = end["outputs"]
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 39
    assert out["facets"]["version"]["datasetVersion"] == "2"
    assert [each["name"] for each in out["facets"]["schema"]["fields"]] == [each["name"] for each in FIELDS]
    assert [each["name"] for each in end["inputs"]] == ["product/delivery/second.gpkg", "product"]
    told = end["run"]["facets"]["merestone_lineage"]
    assert told["verdict"] == conformance_summary(f"{nights.url}/_lineage", facts.run_id)
    assert told["merkleRoot"] == nights.manifest(2).lineage["root"]
    for facets in (end["run"]["facets"], out["facets"], out["outputFacets"], end["job"]["facets"], end["inputs"][0]["inputFacets"]):
        assert all({"_producer", "_schemaURL"} <= each.keys() for each in facets.values())
    assert openlineage.ndjson([start, end]) == openlineage.ndjson(openlineage.events(facts_of(f"{nights.url}@2", None), "urn:test"))


def test_a_refused_run_fails_and_makes_nothing(nights):
    facts = facts_of(str(nights.url), nights.refused)
    _, end = openlineage.events(facts, "urn:test")
    assert (end["eventType"], end["outputs"]) == ("FAIL", [])
    assert end["run"]["facets"]["errorMessage"]["message"].startswith("1 of 2 features rejected")
    document = prov.document(facts)
    assert "wasGeneratedBy" not in document
    assert "data:v2" in document["entity"]


def test_prov_names_only_what_it_defines(nights):
    for version in (1, 2):
        document = prov.document(facts_of(f"{nights.url}@{version}", None))
        defined = {**document["entity"], **document["activity"], **document["agent"]}
        for kind in ("wasGeneratedBy", "used", "wasDerivedFrom", "wasAssociatedWith", "wasInformedBy"):
            for relation in document[kind].values():
                assert all(value in defined for name, value in relation.items() if name != "prov:time")
        for name in (*defined, *(key for each in defined.values() for key in each)):
            prefix = name.partition(":")[0]
            assert prefix in document["prefix"] or prefix == "prov"
        assert "data:v1" in document["entity"]
        assert len(document["used"]) == version
    steps = [each for each in document["activity"].values() if "m:run_id" not in each]
    counts = [(each["m:passed"], each["m:warned"], each["m:rejected"]) for each in steps]
    assert sum(map(sum, counts)) == document["activity"]["run:run"]["m:total_events"]
    assert json.loads(prov.text(document)) == document
