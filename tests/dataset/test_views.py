"""DuckDB and GDAL read exactly the live rows through the texts made for them."""

from pathlib import Path

import duckdb
import pandas as pd
import pyogrio
import pytest
from shapely import from_wkb

from dataset.build import Miniature, row, seen
from merestone.contract.contract import Field, FieldType
from merestone.dataset.version import Dataset
from merestone.dataset.views import duckdb_view, file_paths, gdal_vrt
from merestone.storage.local import LocalStore

FIRST = {f"p{n}": row(f"n{n}", n, (n, 2 * n), f"district=D{n % 3}") for n in range(9)}
SECOND = {pid: each for pid, each in FIRST.items() if pid != "p8"}
SECOND |= {"p0": row("edited", 100, (0.5, 0.5), "district=D0"), "p9": row(None, None, None)}


@pytest.fixture(params=["ds", "o'hare [1] * ?"])
def mini(request, tmp_path):
    mini = Miniature(LocalStore(tmp_path / request.param))
    mini.publish(FIRST)
    mini.publish(SECOND)
    return mini


def through_duckdb(sql, name="parcels"):
    with duckdb.connect() as con:
        con.execute(sql)
        names = [each[0] for each in con.execute(f'SELECT * FROM "{name}" LIMIT 0').description]  # noqa: S608 - a test's own name
        rows = con.execute(f'SELECT pid, name, rank, geometry FROM "{name}"').fetchall()  # noqa: S608 - as above
    return names, {pid: (name, rank, from_wkb(bytes(shape)).wkt if shape is not None else None) for pid, name, rank, shape in rows}


@pytest.mark.parametrize(("version", "state"), [(1, FIRST), (2, SECOND)])
def test_duckdb_sees_one_version_and_no_superseded_file(mini, version, state):
    names, rows = through_duckdb(duckdb_view(Dataset(mini.store).version(version)))
    assert rows == seen(state)
    assert names == ["pid", "name", "rank", "geometry"], "no covering column, no column made of a folder's name"


def test_duckdb_gets_typed_nulls_for_a_field_that_no_file_has(mini):
    mini.publish(SECOND, added_fields=(Field("cost", FieldType("decimal", 10, 2)),))
    version = Dataset(mini.store).version()
    with duckdb.connect() as con:
        con.execute(duckdb_view(version, 'a "name"'))
        kinds = {each[0]: each[1] for each in con.execute('DESCRIBE "a ""name"""').fetchall()}
        assert kinds["cost"] == "DECIMAL(10,2)"
        assert con.execute('SELECT count(*), count(cost) FROM "a ""name"""').fetchone() == (9, 0)


def test_duckdb_sees_an_empty_version(mini):
    mini.publish({})
    with duckdb.connect() as con:
        con.execute(duckdb_view(Dataset(mini.store).version()))
        assert con.execute("SELECT count(*) FROM parcels").fetchone() == (0,)


def adbc_driver():
    """The library of this DuckDB, as GDAL loads it."""
    if pyogrio.__gdal_version__ < (3, 12):
        pytest.skip("this GDAL does not load DuckDB 2 through ADBC")
    package = Path(duckdb.__file__).parent
    driver = next((each for folder in (package.parent, package) for each in folder.glob("_duckdb*.so")), None)
    if driver is None:
        pytest.skip("this DuckDB has no shared library that GDAL could load")
    return driver


@pytest.mark.parametrize(("version", "state"), [(1, FIRST), (2, SECOND)])
def test_gdal_sees_one_version(mini, tmp_path, version, state):
    driver = adbc_driver()
    vrt = tmp_path / "parcels.vrt"
    vrt.write_text(gdal_vrt(Dataset(mini.store).version(version), adbc_driver=str(driver)), encoding="utf-8")
    frame = pyogrio.read_dataframe(vrt)
    assert frame.crs.to_epsg() == 28992
    assert list(frame.columns) == ["pid", "name", "rank", "geometry"], "no covering column, no column made of a folder's name"
    rows = zip(frame["pid"], frame["name"], frame["rank"], frame.geometry, strict=True)
    got = {
        pid: (None if pd.isna(name) else name, None if pd.isna(rank) else int(rank), shape.wkt if shape else None)
        for pid, name, rank, shape in rows
    }
    assert got == seen(state)


def test_gdal_sees_the_partition_column_as_it_was_published(tmp_path):
    """Hive-style readers would turn the folder `name=%2301` into the value of `name`."""
    mini = Miniature(LocalStore(tmp_path / "ds"))
    mini.publish({"p1": row("01", 1, (1, 1), "name=1"), "p2": row(None, 2, (2, 2), "name=__HIVE_DEFAULT_PARTITION__")})
    version = Dataset(mini.store).version()
    assert through_duckdb(duckdb_view(version))[1] == seen(mini.states[1])
    driver = adbc_driver()
    (tmp_path / "x.vrt").write_text(gdal_vrt(version, adbc_driver=str(driver)), encoding="utf-8")
    frame = pyogrio.read_dataframe(tmp_path / "x.vrt")
    assert [None if pd.isna(name) else name for name in frame["name"]] == ["01", None]


def test_a_vrt_for_a_gdal_with_parquet_lists_the_files_plainly(mini):
    version = Dataset(mini.store).version()
    text = gdal_vrt(version)
    assert text.count("<SrcDataSource>") == len(file_paths(version)) == 3
    assert "ADBC" not in text
