"""The publication file is read strictly: every key known, every path absolute, nothing ignored that matters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from merestone.drafts.text import Note, PublicationFacts, draft_publication
from merestone.errors import UsageError
from merestone.publication.publication import (
    CrsRule,
    FilesRule,
    GuardRule,
    KeyRule,
    LineageRetention,
    PartitionRule,
    Publication,
    RejectsRule,
)
from merestone.publication.reader import (
    NOT_IN_EFFECT,
    NOT_YET,
    PUBLICATION,
    read_publication,
    read_publication_and_contract,
    with_source,
)
from merestone.source.port import SourceSpec

CONTRACT = {
    "contract_version": "v1.0.0-crs:EPSG:28992-res:10cm",
    "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
    "crs_epsg": 28992,
    "axis_order": "lon_lat",
    "geometry_type": "polygon",
    "coordinate_precision": 3,
    "freshness_sla_minutes": 1440,
    "availability_target": 0.99,
    "product_owner_id": "steward@example.org",
    "schema_fields": [{"name": "parcel_id", "type": "integer", "nullable": False}, {"name": "district", "type": "string"}],
}
MINIMAL = {"contract": "parcels.contract.yaml", "source": "export.gpkg", "destination": "./published", "key": "parcel_id"}
WHOLE = """\
name: parcels
contract: parcels.contract.yaml
source: {path: export.gpkg, layer: parcel, crs: EPSG:28992, encoding: cp1252}
columns: {OLD_NAME: new_name}
key: parcel_id
destination: ./published/parcels
partition: {by: column, column: district}
mode: incremental
files: {target_rows: 100000, row_group_rows: 10000}
crs: {strategies: [best, grid, ballpark], missing_grids: refuse, grids: DIR}
extra_columns: refuse
guard: {max_changed_fraction: 0.2}
rejects: {max_fraction: 0, published: hold}
retention: {versions: 30, grace: PT24H}
lineage: {audit_tag: nightly, retention: {window: P6Y, basis: "..."}}
engine: local
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agree(tmp_path)
    return tmp_path


def agree(folder: Path, **clauses) -> None:
    (folder / "parcels.contract.yaml").write_text(json.dumps(CONTRACT | clauses), "utf-8")


def write(folder: Path, publication) -> str:
    path = folder / "parcels.yaml"
    path.write_text(publication if isinstance(publication, str) else json.dumps(publication), "utf-8")
    return str(path)


def refused(folder: Path, publication) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_publication(write(folder, publication))
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value


def test_the_file_of_the_specification_is_read(folder):
    publication = read_publication(write(folder, WHOLE))
    assert publication == Publication(
        path=str(folder / "parcels.yaml"),
        name="parcels",
        contract=str(folder / "parcels.contract.yaml"),
        source=SourceSpec(str(folder / "export.gpkg"), layer="parcel", crs="EPSG:28992", encoding="cp1252"),
        destination=str(folder / "published" / "parcels"),
        key=KeyRule(("parcel_id",)),
        columns=(("OLD_NAME", "new_name"),),
        partition=PartitionRule("column", "district"),
        files=FilesRule(100_000, 10_000),
        crs=CrsRule(("best", "grid", "ballpark"), "refuse", str(folder / "DIR")),
        extra_columns="refuse",
        guard=GuardRule(0.2),
        rejects=RejectsRule(0.0, "hold"),
        audit_tag="nightly",
        lineage_retention=LineageRetention("P6Y", "..."),
        notices=publication.notices,
    )
    assert [notice.split(" is ")[0] for notice in publication.notices] == ["retention"]


def test_the_defaults(folder):
    publication = read_publication(write(folder, MINIMAL))
    assert publication == Publication(
        path=str(folder / "parcels.yaml"),
        name="parcels",
        contract=str(folder / "parcels.contract.yaml"),
        source=SourceSpec(str(folder / "export.gpkg")),
        destination=str(folder / "published"),
        key=KeyRule(("parcel_id",)),
    )


def test_paths_are_relative_to_the_file_and_not_to_the_work_folder(folder, monkeypatch):
    (folder / "sub").mkdir()
    path = write(folder, MINIMAL | {"source": "../up/x.gpkg"})
    monkeypatch.chdir(folder / "sub")
    publication = read_publication("../parcels.yaml")
    assert publication == read_publication(path)
    assert publication.source.path == str(folder.parent / "up" / "x.gpkg")
    assert read_publication(write(folder, MINIMAL | {"destination": "/data/out"})).destination == "/data/out"
    assert read_publication(write(folder, MINIMAL | {"destination": "file:///data/out"})).destination == "/data/out"


def test_no_partitions_in_both_spellings(folder):
    for value in ("none", {"by": "none"}):
        assert read_publication(write(folder, MINIMAL | {"partition": value})).partition == PartitionRule("none")


def test_another_source_keeps_what_is_asserted(folder, monkeypatch):
    publication = read_publication(write(folder, WHOLE))
    monkeypatch.chdir(folder)
    tonight = with_source(publication, "nights/2.gpkg")
    assert tonight.source == SourceSpec(str(folder / "nights" / "2.gpkg"), layer="parcel", crs="EPSG:28992", encoding="cp1252")
    with pytest.raises(UsageError, match="not in this version"):
        with_source(publication, "s3://bucket/x.gpkg")


# --- name and key: the contract's, unless both agree -----------------------------------------------------------------------------------


def test_name_and_key_default_to_the_contracts(folder):
    agree(folder, name="cadastre", key=["district", "parcel_id"])
    publication, contract = read_publication_and_contract(
        write(folder, {name: MINIMAL[name] for name in ("contract", "source", "destination")})
    )
    assert publication.name == contract.name == "cadastre"
    assert publication.key.columns == contract.key == ("district", "parcel_id")
    assert read_publication(write(folder, MINIMAL | {"key": ["district", "parcel_id"], "name": "cadastre"})) == publication


@pytest.mark.parametrize(
    ("change", "field"), [({"name": "other"}, "name"), ({"key": "district"}, "key"), ({"key": ["parcel_id", "district"]}, "key")]
)
def test_name_and_key_agree_where_both_speak(folder, change, field):
    agree(folder, name="cadastre", key=["district", "parcel_id"])
    fault = refused(folder, {name: each for name, each in MINIMAL.items() if name != "key"} | change)
    assert fault.field == field
    assert "but the contract's is" in fault.message


def test_without_a_key_nothing_can_be_compared(folder):
    fault = refused(folder, {name: each for name, each in MINIMAL.items() if name != "key"})
    assert fault.field == "key"
    assert "no key" in fault.message


# --- what is refused -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"sorce": "x"}, "sorce", "known keys: name, contract"),
        ({"guard": {"max_change_fraction": 0.1}}, "guard.max_change_fraction", "did you mean max_changed_fraction?"),
        ({"source": {"path": "x", "Layer": "y"}}, "source.Layer", "did you mean layer?"),
        ({"source": {"layer": "y"}}, "source.path", "is missing"),
        ({"source": ["x"]}, "source", "it is a list"),
        ({"source": {"path": "x", "crs": 28992}}, "source.crs", "28992 is a number"),
        ({"source": {"path": "x", "crs": "EPSG:0"}}, "source.crs", "is not a CRS that PROJ knows"),
        ({"columns": {"a": "b", "c": "b"}}, "columns.c", "already the target of a"),
        ({"columns": ["a"]}, "columns", "it is a list"),
        ({"key": []}, "key", "0 entries"),
        ({"key": ["a", "a"]}, "key", "names a twice"),
        ({"key": 5}, "key", "5 is a number"),
        ({"partition": {"by": "column"}}, "partition.column", "is missing"),
        ({"partition": {"column": "district"}}, "partition.column", "has no meaning for by: kdtree"),
        ({"partition": {"by": "column", "column": "a", "target_rows": 5}}, "partition.target_rows", "belongs to by: kdtree"),
        ({"partition": {"by": "kdtree", "target_rows": 0}}, "partition.target_rows", "0 is not an integer"),
        ({"partition": "kdtree"}, "partition", "is not one of none"),
        ({"mode": "incrementel"}, "mode", "did you mean incremental?"),
        ({"files": {"target_rows": "many"}}, "files.target_rows", "is text"),
        ({"crs": {"strategies": ["best", "best"]}}, "crs.strategies", "twice"),
        ({"crs": {"strategies": []}}, "crs.strategies", "0 entries"),
        ({"crs": {"missing_grids": "ignore"}}, "crs.missing_grids", "refuse, fallback"),
        ({"extra_columns": "drop"}, "extra_columns", "refuse, warn"),
        ({"guard": {"max_changed_fraction": 20}}, "guard.max_changed_fraction", "0.2 is 20 %"),
        ({"rejects": {"max_fraction": 1.5}}, "rejects.max_fraction", "at most 1"),
        ({"rejects": {"published": "keep"}}, "rejects.published", "hold, remove"),
        ({"retention": {"versions": 0}}, "retention.versions", "0 is not"),
        ({"retention": {"grace": "24h"}}, "retention.grace", "ISO 8601"),
        ({"lineage": {"retention": {"window": "P6Y"}}}, "lineage.retention.basis", "is missing"),
        ({"lineage": {"audit_tag": 5}}, "lineage.audit_tag", "5 is a number"),
        ({"engine": "dask"}, "engine", "local, spark"),
        ({"name": ""}, "name", "blank"),
    ],
)
def test_unknown_keys_and_values_are_named_with_the_next_step(folder, change, path, words):
    fault = refused(folder, MINIMAL | change)
    assert fault.field == path
    assert words in f"{fault.message} {fault.hint}"


@pytest.mark.parametrize("key", ["contract", "source", "destination"])
def test_three_keys_have_no_default(folder, key):
    fault = refused(folder, {name: each for name, each in MINIMAL.items() if name != key})
    assert fault.field == key
    assert "is missing" in fault.message


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"contract": "v1.2.0-crs:EPSG:28992-res:10cm"}, "contract"),
        ({"contract": "https://example.org/parcels.yaml"}, "contract"),
        ({"source": "s3://bucket/x.gpkg"}, "source"),
        ({"source": {"path": "https://example.org/x.gpkg"}}, "source.path"),
        ({"source": {"path": "x.csv", "x": "lon"}}, "source.x"),
        ({"source": {"path": "x.csv", "y": "lat"}}, "source.y"),
        ({"source": {"path": "x.csv", "wkt": "geom"}}, "source.wkt"),
        ({"destination": "s3://bucket/prefix"}, "destination"),
        ({"destination": "gs://bucket/prefix"}, "destination"),
        ({"partition": {"by": "quadkey", "level": 8}}, "partition.by"),
        ({"partition": {"by": "h3", "resolution": 5}}, "partition.by"),
        ({"mode": "append"}, "mode"),
        ({"mode": "rebuild"}, "mode"),
        ({"engine": "spark"}, "engine"),
    ],
)
def test_what_comes_later_is_refused_where_it_matters(folder, change, path):
    fault = refused(folder, MINIMAL | change)
    assert fault.field == path
    assert "not in this version" in fault.message
    assert path in {".".join(map(str, later.path)) for later in NOT_YET}


def test_what_comes_later_and_changes_nothing_is_a_notice(folder):
    publication = read_publication(write(folder, MINIMAL | {"retention": {"versions": 3}}))
    assert publication.notices == ("retention is not yet in effect: old versions are kept until a version that can reclaim them",)
    assert len(read_publication(write(folder, WHOLE)).notices) == len(NOT_IN_EFFECT)


def test_all_problems_are_told_at_once_with_their_lines(folder):
    fault = refused(folder, "contract: parcels.contract.yaml\nsource: x\nmode: append\ndestination: s3://b\nguards: {}\n")
    assert all(words in fault.message for words in ("3 problems", "line 3, mode", "line 4, destination", "line 5, guards"))


def test_broken_files_are_named(folder):
    assert "more than one document" in refused(folder, "a: 1\n---\nb: 2\n").message
    assert "written twice" in refused(folder, "source: x\nsource: y\n").message
    assert "does not exist" in refused(folder, MINIMAL | {"contract": "none.yaml"}).message
    agree(folder, axis_order="xy")
    assert "parcels.contract.yaml" in refused(folder, MINIMAL).message
    with pytest.raises(UsageError, match="does not exist") as caught:
        read_publication(str(folder / "none.yaml"))
    assert "merestone.draft(SOURCE)" in (caught.value.hint or "")


# --- the definition and its drafts -----------------------------------------------------------------------------------------------------


def test_the_definition_knows_the_keys_of_the_specification():
    assert [clause.name for clause in PUBLICATION.clauses] == [
        "name",
        "contract",
        "source",
        "columns",
        "key",
        "key_migration",
        "destination",
        "partition",
        "mode",
        "files",
        "crs",
        "extra_columns",
        "guard",
        "rejects",
        "retention",
        "lineage",
        "engine",
    ]


def test_a_draft_is_read_back(folder):
    drafted = draft_publication(
        PublicationFacts(
            contract="parcels.contract.yaml",
            source="./x y.gpkg",
            destination="./published/no",
            layer="no",
            crs="EPSG:28992",
            encoding="cp1252",
            key=("parcel_id",),
            columns=(("OLD: NAME", "district"),),
            partition={"by": "column", "column": "district"},
            max_rejected=0.03,
            notes={"partition": Note("the only column with few values", confirm=True), "rejects": Note("7 rows are faulty", confirm=True)},
        )
    )
    publication = read_publication(write(folder, drafted))
    assert publication.source == SourceSpec(str(folder / "x y.gpkg"), layer="no", crs="EPSG:28992", encoding="cp1252")
    assert publication.columns == (("OLD: NAME", "district"),)
    assert publication.partition == PartitionRule("column", "district")
    assert publication.rejects == RejectsRule(0.03)
    assert publication.destination == str(folder / "published" / "no")


def test_a_plain_draft_leaves_the_defaults(folder):
    agree(folder, key="parcel_id")
    drafted = draft_publication(PublicationFacts("parcels.contract.yaml", "export.gpkg", "./published"))
    assert read_publication(write(folder, drafted)) == read_publication(write(folder, MINIMAL))
