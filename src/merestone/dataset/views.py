"""A version as other tools open it: SQL for DuckDB, a VRT for GDAL and QGIS. Both list the live files one by one.

Not here: reading rows ourselves (`version`).

A folder of a dataset also holds the files of older versions, so a wildcard over it would mix them; and partition folders look like Hive's,
readers are asked not to make columns of them. A text made here shows one version for ever; make it again after the next publish.
"""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from merestone.dataset.version import Version

_WILD = re.compile(r"([*?\[])")
_SIMPLE = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.binary(): "BLOB",
}


def file_paths(version: Version) -> list[str]:
    """The live data files as absolute paths (or URLs), in the manifest's order."""
    return [version.store.location(file.path) for file in version.files]


def duckdb_view(version: Version, name: str | None = None) -> str:
    """SQL that makes a view of the version in DuckDB (1.5 or newer, no extension needed), the covering column left out.

    A field that is newer than the files comes as typed nulls.

    Args:
        version: what to show.
        name: the view's name; the dataset's by default.
    """
    head = f"CREATE OR REPLACE VIEW {_quoted(name or version.manifest.name)} AS\n"
    if not version.files:
        return f"{head}SELECT {_columns(version, set())} WHERE false;\n"
    there = {each for file in version.newest_file() for each in version.file_schema(file).names}
    files = ",\n         ".join(_literal(path) for path in file_paths(version))
    return (
        f"{head}SELECT {_columns(version, there)}\nFROM read_parquet(\n"
        f"        [{files}],\n        union_by_name = true, hive_partitioning = false);\n"
    )


def gdal_vrt(version: Version, name: str | None = None, adbc_driver: str | None = None) -> str:
    """A VRT (OGR virtual format) that unites the live files as one layer.

    Args:
        version: what to show.
        name: the layer's name; the dataset's by default.
        adbc_driver: path of a DuckDB library, for a GDAL without a Parquet driver (GDAL 3.12 or newer then reads through ADBC);
            None for a GDAL with one.
    """
    columns = version.columns
    layer = name or version.manifest.name
    lines = [
        "<OGRVRTDataSource>",
        f"  <OGRVRTUnionLayer name={quoteattr(layer)}>",
        f"    <GeometryField name={quoteattr(columns.geometry)}>",
        "      <GeometryType>wkbUnknown</GeometryType>",
        f"      <SRS>EPSG:{columns.epsg}</SRS>",
        "    </GeometryField>",
        "    <FieldStrategy>Union</FieldStrategy>",
        f"    <FeatureCount>{version.manifest.features}</FeatureCount>",
    ]
    for n, (file, path) in enumerate(zip(version.files, file_paths(version), strict=True)):
        stem = file.path.rsplit("/", 1)[-1].removesuffix(".parquet")
        lines.append(f"    <OGRVRTLayer name={quoteattr(f'{layer}_{n}')}>")
        if adbc_driver is None:
            lines.append(f"      <SrcDataSource>{escape(path)}</SrcDataSource>")
        else:
            # Without words of our own, DuckDB would make a column of the folder's name and put it in the place of the real one.
            there = set(version.file_schema(file).names)
            source = f"read_parquet({_literal(path)}, hive_partitioning = false)"
            sql = f"SELECT {_columns(version, there)} FROM {source}"  # noqa: S608 - names and paths are quoted by `_quoted` and `_literal`
            options = {"ADBC_DRIVER": adbc_driver, "SQL": " ".join(sql.split())}
            lines.append(f"      <SrcDataSource>ADBC:{escape(path)}</SrcDataSource>")
            lines.append(
                "      <OpenOptions>"
                + "".join(f'<OOI key="{key}">{escape(value)}</OOI>' for key, value in options.items())
                + "</OpenOptions>"
            )
        lines += [f"      <SrcLayer>{escape(stem)}</SrcLayer>", f"      <FeatureCount>{file.rows}</FeatureCount>"]
        lines.append("    </OGRVRTLayer>")
    return "\n".join([*lines, "  </OGRVRTUnionLayer>", "</OGRVRTDataSource>", ""])


def _columns(version: Version, there: set[str]) -> str:
    """The columns of a version as a select list; what is not there as typed nulls."""
    return ",\n       ".join(
        _quoted(each.name) if each.name in there else f"CAST(NULL AS {sql_type(each.type)}) AS {_quoted(each.name)}"
        for each in version.columns.schema
    )


def _literal(path: str) -> str:
    """A path as SQL text that no wildcard in it makes a pattern of."""
    return "'" + _WILD.sub(r"[\1]", path).replace("'", "''") + "'"


def sql_type(kind: Any) -> str:
    """The DuckDB type of a stored type."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    members = (kind.field(n) for n in range(kind.num_fields))
    return "STRUCT(" + ", ".join(f"{_quoted(each.name)} {sql_type(each.type)}" for each in members) + ")"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
