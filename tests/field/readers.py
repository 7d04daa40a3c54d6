"""A version as independent tools read it: GeoPandas, DuckDB, and GDAL through ADBC."""

from __future__ import annotations

from pathlib import Path

import _duckdb
import duckdb
import geopandas as gpd
import pandas as pd
import pyogrio
import shapely


def with_geopandas(files, geometry):
    """The live files, one after the other."""
    return gpd.GeoDataFrame(pd.concat([gpd.read_parquet(each) for each in files], ignore_index=True), geometry=geometry)


def with_duckdb(view: str, name: str, geometry: str):
    """The view that `merestone files --as duckdb` prints, without any extension of DuckDB's."""
    with duckdb.connect() as db:
        db.execute(view)
        relation = db.sql(f'SELECT * REPLACE (ST_AsWKB("{geometry}") AS "{geometry}") FROM "{name}"')  # noqa: S608 - names of our own
        table = relation.to_arrow_table().to_pandas(types_mapper=pd.ArrowDtype).astype(object)
    table = table.where(table.notna(), None)
    return gpd.GeoDataFrame(table.drop(columns=geometry), geometry=gpd.GeoSeries(shapely.from_wkb(table[geometry].to_numpy())))


def with_gdal(files):
    """The live files, one after the other; GDAL's own Parquet driver is in no wheel, so it asks DuckDB's library."""
    driver = str(Path(_duckdb.__file__))
    parts = [pyogrio.read_dataframe(f"ADBC:{each}", ADBC_DRIVER=driver) for each in files]
    joined = gpd.GeoDataFrame(pd.concat(parts, ignore_index=True))
    return joined, {each.crs for each in parts}
