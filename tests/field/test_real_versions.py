"""Real versions of real datasets, published one after the other and judged by tools that know nothing of Merestone."""

from __future__ import annotations

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import merestone as ms
from field import readers
from field.deliveries import write
from field.judge import Judge
from field.products import NO_KEY, NOT_READ, PRODUCTS, TWINS, Night, Product

pytestmark = pytest.mark.field
FATES = ("unchanged", "rejected")
CLASSES = ("added", "changed", "moved", "suppressed", "reprocessed")


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_versions_in_a_row(product, draft, merestone, validator, record_property):
    made = draft(product)
    file = made.publication()
    judge = Judge(made.contract, product.key, made.settings.get("partition", {}).get("column"))
    published = []
    for night, (path, found) in zip(product.nights, made.deliveries, strict=True):
        where = f"{product} / {night.path}"
        ended = merestone("publish", file, "--source", path, "--json")
        if night.refused:
            refused(ended, night, where)
            continue
        expected = judge.judge(found)
        if ended.doc.get("refused_by") == "guard":
            assert night.guard, f"{where}: stopped by a guard, and no mass change was expected: {ended.doc['findings']}"
            ended = merestone("publish", file, "--source", path, "--json", "--confirm", ended.doc["confirm"])
        else:
            assert not night.guard, f"{where}: a mass change that no guard stopped"
        assert ended.code == 0, f"{where}: {ended.doc.get('findings') or ended.err}"
        doc = ended.doc
        said = {name: doc[name] for name in ("delivered", "rejected", "held", "features", "unchanged")}
        said["delta"] = {name: doc["delta"][name] for name in expected["delta"]}
        assert said == expected, f"{where}: {expected}"
        assert doc["delivered"] == sum(doc[each] for each in FATES) + sum(doc["delta"][each] for each in CLASSES), where
        if doc["status"] == "published":
            assert kinds(ms.open(made.folder / "published")) == judge.kinds, where
        known = {**doc["delta"], **judge.kinds}
        assert {name: known[name] for name in night.says} == dict(night.says), where
        record_property("night", json.dumps({"night": night.path, **said, **judge.kinds, "raw": judge.raw}))
        published.append(doc["version"])
        every_reader_agrees(made, judge, merestone, where)
        every_file_is_valid(made, merestone, validator, where)
    if published:
        as_a_first_publish(made, judge, path, merestone)


WRITTEN_ANEW = [(product, each) for product in PRODUCTS for each in product.formats]


@pytest.mark.parametrize(("product", "suffix"), WRITTEN_ANEW, ids=[f"{product} {each}" for product, each in WRITTEN_ANEW])
def test_the_same_content_written_anew_by_geopandas_is_unchanged(product, suffix, draft, merestone, tmp_path):
    made = draft(product, last=True)
    file, (path, found) = made.publication(), made.deliveries[-1]
    assert merestone("publish", file, "--source", path).code == 0
    target = tmp_path / f"anew.{suffix}"
    ids = ["id"] if path.name.endswith(("topojson", "topojson.gz")) else []  # of features: GDAL makes a column of them
    write(found.iloc[::-1][[*reversed(found.columns)]].drop(columns=ids, errors="ignore"), target)  # other rows first, other columns first
    is_unchanged(merestone, file, target)


@pytest.mark.parametrize(("one", "other", "key", "drop", "columns"), TWINS, ids=[other for _, other, *_ in TWINS])
def test_twins_of_one_publisher_are_unchanged(one, other, key, drop, columns, draft, merestone, data):
    made = draft(
        Product(
            "twin",
            "",
            (Night(one),),
            key,
            drop=drop,
            settings={"rejects": {"max_fraction": 0.1}, **({"extra_columns": "warn"} if drop else {})},
        )
    )
    assert merestone("publish", made.publication()).code == 0
    is_unchanged(merestone, made.publication(columns=columns) if columns else made.publication(), data / other)


def test_flattened_stations_are_those_that_their_publisher_flattened(draft, merestone, data):
    made = draft(Product("twin", "", (Night("db_stations/v4.2.1/data.ndjson.gz", "flat stations"),), "id"))
    assert merestone("publish", made.publication()).code == 0
    is_unchanged(merestone, made.publication(), data / "db_stations/v4.2.1/stations.fgb")


def is_unchanged(merestone, file, source):
    """Published already: exit 0, and nothing written but the record of the run and what it rejected."""
    target = file.parent / "published"
    before = {each for each in target.rglob("*") if each.is_file()}
    ended = merestone("publish", file, "--source", source, "--json")
    assert ended.code == 0, ended.out or ended.err
    doc = ended.doc
    assert (doc["status"], doc["version"]) == ("unchanged", 1), {each: doc[each] for each in ("status", "delta")}
    assert doc["delivered"] == doc["unchanged"] + doc["rejected"]
    written = {each.relative_to(target) for each in target.rglob("*") if each.is_file()} - {each.relative_to(target) for each in before}
    homes = {each.parts[0] for each in written}
    assert homes <= ({"_runs", "_lineage"} if doc["rejected"] else {"_runs"}), written


@pytest.mark.parametrize(("path", "key", "rules"), NO_KEY, ids=[path for path, *_ in NO_KEY])
def test_without_a_usable_key_rows_are_named(path, key, rules, draft, merestone):
    made = draft(Product("none", "", (Night(path),), key))
    found = made.deliveries[0][1][key]
    refused(merestone("publish", made.publication(), "--json"), Night(path, refused=tuple(rules)), path)
    findings = {each["rule"]: each for each in merestone("publish", made.publication(), "--json").doc["findings"]}
    if "key_null" in rules:
        assert findings["key_null"]["count"] == found.isna().sum()
        assert all(pd.isna(found.iloc[each["row"] - 1]) for each in findings["key_null"]["features"])
    if "key_duplicate" not in rules:
        assert "key_duplicate" not in findings
        return
    twice = found[found.notna() & found.duplicated(keep=False)]
    assert findings["key_duplicate"]["count"] in (len(twice), twice.nunique(), len(twice) - twice.nunique())
    assert {each["row"] - 1 for each in findings["key_duplicate"]["features"]} <= {*np.flatnonzero(found.isin(twice))}
    assert not (made.folder / "published" / "_current.json").exists()


@pytest.mark.parametrize(("path", "code", "words"), NOT_READ, ids=[path for path, *_ in NOT_READ])
def test_formats_of_a_later_version_are_refused_in_words(path, code, words, data, merestone, tmp_path):
    for command in (["init", data / path, "--out", tmp_path], ["publish", publication_of(data / path, tmp_path), "--json"]):
        ended = merestone(*command)
        assert ended.code == code
        assert path in ended.err
        assert words in ended.err
    assert ended.doc["error"]["hint"]


def publication_of(path, folder):
    (folder / "contract.yaml").write_text(
        json.dumps(
            {
                "contract_version": "v1.0.0-crs:EPSG:4326-res:1m",
                "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
                "crs_epsg": 4326,
                "axis_order": "lon_lat",
                "geometry_type": "point",
                "coordinate_precision": 6,
                "freshness_sla_minutes": 1440,
                "availability_target": 0.99,
                "product_owner_id": "steward@example.org",
                "schema_fields": [{"name": "id", "type": "string"}],
            }
        ),
        encoding="utf-8",
    )
    file = folder / "product.yaml"
    file.write_text(json.dumps({"contract": "contract.yaml", "source": str(path), "key": "id", "destination": "./out"}), encoding="utf-8")
    return file


def test_a_key_of_another_type_is_refused(draft, merestone, data):
    """Norway's municipality numbers were integers in 2020 (301) and are text since (0301); the columns have other names, too."""
    night = Night("no_kommuner/2020/Kommuner-medium.gpkg")
    made = draft(Product("kommuner", "", (night,), "kommunenummer", settings={"rejects": {"max_fraction": 0.1}}))
    assert merestone("publish", made.publication()).code == 0
    ended = merestone("publish", made.publication(), "--source", data / "no_kommuner/2024/Kommuner-M.gpkg", "--json")
    assert (ended.code, ended.doc["refused_by"], ended.doc["version"]) == (1, "contract", 1)
    found = {(each["field"], each["rule"]) for each in ended.doc["findings"] if each["severity"] == "error"}
    assert ("kommunenummer", "column_type") in found, found
    assert ("navn", "missing") in found


def test_every_file_gives_a_draft_or_a_clear_message(data, merestone, tmp_path):
    """Every file of the folder, also those that are no deliveries."""
    drafts, messages = 0, 0
    for n, path in enumerate(every_file(data)):
        folder = tmp_path / str(n)
        ended = merestone("init", path, "--out", folder)
        assert ended.code in (0, 1, 2, 3), f"{path}: {ended.err}"
        if ended.code == 0:
            drafts += 1
            contract = next(folder.glob("*.contract.yaml"))
            lint = merestone("contract", "lint", contract)
            assert lint.code == 0, f"{path}: {lint.out}{lint.err}"
        else:
            messages += 1
            assert path.name in ended.err, ended.err
            assert not folder.exists(), path
    assert drafts > 70
    assert messages > 80


def every_file(data):
    beside = {".cpg", ".dbf", ".gfs", ".prj", ".shx"}
    for path in sorted(data.rglob("*")):
        if path.suffix == ".gdb" or (path.is_file() and path.suffix not in beside and ".gdb" not in {each.suffix for each in path.parents}):
            yield path


def refused(ended, night, where):
    """Refused, and every named rule with rows to look at."""
    assert ended.code == 1, f"{where}: {ended.out or ended.err}"
    assert (ended.doc["status"], ended.doc["refused_by"]) == ("refused", "contract"), where
    found = {each["rule"]: each for each in ended.doc["findings"] if each["severity"] == "error"}
    for rule in night.refused:
        assert rule in found, f"{where}: {sorted(found)}"
        assert found[rule]["count"] > 0, where
        assert all(each["row"] >= 1 for each in found[rule]["features"]), where
        assert 1 <= len(found[rule]["features"]) <= 20, where
    assert all(any(word in json.dumps(each) for each in found.values()) for word in night.words), where


def kinds(dataset):
    """Of the changed features, how many changed in attributes and how many in geometry: by the change log."""
    log = pq.read_table(dataset.store.location(dataset.manifest().index.log[-1][1].path)).to_pandas()
    changed = log[log["class"] == "changed"]
    return {name: int(changed[name].sum()) for name in ("attributes", "geometry")}


def every_reader_agrees(made, judge, merestone, where):
    """GeoPandas, DuckDB and GDAL see what the judgement says stands published."""
    target = made.folder / "published"
    files = merestone("files", target).out.split()
    view = merestone("files", target, "--as", "duckdb").out
    geometry = ms.open(target).version().columns.geometry
    epsg = made.contract["crs_epsg"]
    seen = readers.with_geopandas(files, geometry)
    assert seen.crs.to_epsg() == epsg, where
    same(judge, seen, f"{where}: GeoPandas")
    same(judge, readers.with_duckdb(view, "field", geometry), f"{where}: DuckDB")
    seen, crs = readers.with_gdal(files)
    assert {each.to_epsg() for each in crs} == {epsg}, where
    same(judge, seen, f"{where}: GDAL")


def every_file_is_valid(made, merestone, validator, where):
    """A public validator of GeoParquet passes every live file."""
    for each in merestone("files", made.folder / "published").out.split():
        report = validator.check(each)
        # Boxes of rows without geometry are null, so no statistics of theirs can be found; all else has to pass.
        excused = {"/conf/distribution/geospatial-statistics"} if "/cell=none/" in each else set()
        failed = [one for one in report["outcomes"] if one["status"] == "fail" and one["id"] not in excused]
        assert not failed, f"{where}: {each}: {failed}"


def same(judge, seen, where):
    """Keys, compared values and shapes are those of the judgement."""
    table = judge.table(seen, snapped=True)
    state = judge.state
    assert set(table.index) == set(state.index), where
    table = table.loc[state.index]
    for name in (*judge.fields, "_token"):
        unequal = [(key, a, b) for key, a, b in zip(state.index, state[name], table[name], strict=True) if a != b]
        assert not unequal, f"{where}: {name}: {len(unequal)}, such as {unequal[:3]}"


def as_a_first_publish(made, judge, path, merestone):
    """The last delivery alone, in an empty folder, leaves the same keys, values, partitions and set digest."""
    fresh = merestone("publish", made.publication("fresh"), "--source", path, "--json")
    assert fresh.code == 0, fresh.err
    one, other = (ms.open(made.folder / each) for each in ("published", "fresh"))
    loose = [each["name"] for each in made.contract["schema_fields"] if each.get("volatile") or "derived" in each]
    left, right = (rows(each, made.product.key, loose) for each in (one, other))
    aside = {*judge.held, *judge.suppressed}
    assert set(left) - aside == set(right) - aside
    assert {key: row for key, row in left.items() if key not in aside} == {key: row for key, row in right.items() if key not in aside}
    if not aside:
        assert one.manifest().set_digest == other.manifest().set_digest
    scheme = one.manifest().partitioning
    places, alone = (places_of(each, made.product.key) for each in (one, other))
    if scheme["by"] == "kdtree":  # the splits are drawn once, by the first version
        tree = pq.read_table(one.store.location(one.manifest().tree.path)).to_pylist()
        alone = {key: cell({each["path"]: each for each in tree}, place) for key, place in centres(other, made.product.key).items()}
    assert {key: places[key] for key in set(left) - aside} == {key: alone[key] for key in set(right) - aside}


def rows(dataset, key, loose):
    """Every row as text, by key, without columns that may differ."""
    table = dataset.to_arrow().drop_columns(["bbox"]) if "bbox" in dataset.to_arrow().schema.names else dataset.to_arrow()
    table = table.drop_columns([each for each in loose if each in table.schema.names])
    return {row[key]: repr(row) for row in table.to_pylist()}


def frames(dataset):
    for each in dataset.files():
        yield each, gpd.read_parquet(dataset.store.location(each.path))


def places_of(dataset, key):
    return {one: file.partition for file, found in frames(dataset) for one in found[key]}


def centres(dataset, key):
    out = {}
    for _, found in frames(dataset):
        box = found.geometry.bounds.to_numpy()
        out |= dict(zip(found[key], (box[:, :2] + box[:, 2:]) / 2, strict=True))
    return out


def cell(splits, centre):
    """The leaf of a place, by walking the splits of a version, by path."""
    if np.isnan(centre).any():
        return "cell=none"
    path = ""
    while path in splits:
        split = splits[path]
        path += "0" if centre[split["axis"]] < split["at"] else "1"
    return f"cell={path or 'root'}"
