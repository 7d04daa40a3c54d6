"""A product on disk to publish to, night after night, and plain readings of what came of it.

The readings go round Merestone where they can: data files are opened by the paths that the manifest names, rows become dictionaries.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS
from shapely import from_wkb

from merestone.cli import next_steps
from merestone.dataset.known import CHANGE_CLASSES
from merestone.dataset.pages import live_entries
from merestone.dataset.version import Dataset
from merestone.identity.key import ids_of
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source
from merestone.render import jsonout, text
from merestone.results.result import PublishResult
from merestone.storage.open import open_store
from stores import StorePath

CLASSES = (*CHANGE_CLASSES,)
TOUCHED = ("added", "changed", "removed", "moved")


@dataclass(frozen=True, slots=True)
class Night:
    """What one publish said, and what it left in the change log: key text to class, key text to the line of the log."""

    result: PublishResult
    classes: dict[str, str]
    log: dict[str, dict[str, Any]]

    @property
    def status(self):
        return self.result.status

    @property
    def said(self):
        """The text that a person sees."""
        return "\n".join([text.publish(self.result), *next_steps.publish(self.result, "product.yaml", "merestone publish product.yaml")])

    @property
    def doc(self):
        """The object that `--json` prints, after a round trip."""
        return json.loads(jsonout.dumps(self.result))

    @property
    def heard(self):
        """Text and JSON together: where a case wants a name to be told."""
        return self.said + "\n" + json.dumps(self.doc, ensure_ascii=False)

    def keys(self, name):
        """The keys of one class, sorted."""
        return sorted(key for key, kind in self.classes.items() if kind == name)

    def rules(self, severity=None):
        """The (field, rule) of the findings."""
        return {(each.field, each.rule) for each in self.result.findings if severity in (None, each.severity)}


class Estate:
    """One product. `terms` and `settings` are contract and publication as they would be typed; both are written anew for each night."""

    def __init__(
        self,
        folder: Path,
        fields: Any = (),
        *,
        key: str | list[str] | None = "pid",
        epsg: int = 4326,
        precision: int = 7,
        store: Any = None,
        **clauses: Any,
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.url: Any = folder / "published" if store is None else StorePath(store)
        self.terms: dict[str, Any] = {
            "contract_version": f"v1.0.0-crs:EPSG:{epsg}-res:1m",
            "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
            "crs_epsg": epsg,
            "axis_order": "lon_lat",
            "geometry_type": "geometry",
            "coordinate_precision": precision,
            "schema_fields": [dict(each) for each in fields],
            "freshness_sla_minutes": 1440,
            "availability_target": 0.99,
            "product_owner_id": "steward@example.org",
            **(
                {"extent": [-180, -90, 180, 90]} if clauses.get("crs_epsg", epsg) in (4326, 4258) else {}
            ),  # else a first publish asks which ordinate is x
            **clauses,
        }
        self.settings: dict[str, Any] = {
            "name": "product",
            "contract": "product.contract.yaml",
            "destination": "published" if store is None else store.url,
            "partition": "none",
        }
        if key is not None:
            self.settings["key"] = key
        self.agrees = False
        self.sees_the_order = True  # whoever runs the tests knows which ordinate is x; False: nobody says so

    def publish(self, source: Path | str | dict[str, Any], *, confirm=None, dry_run=False, run_id=None) -> Night:
        """Publish a file (or a `source` mapping); where a guard stops it and somebody `agrees`, once more with the token."""
        self.write(source)
        publication = read_publication(str(self.folder / "product.yaml"))
        if not isinstance(source, dict):
            publication = with_source(publication, str(source))
        before = self.version
        result = publish(publication, PublishSettings(run_id=run_id, confirm=confirm, dry_run=dry_run))
        if self.agrees and result.refused_by == "guard" and confirm is None:
            result = publish(publication, PublishSettings(run_id=run_id, confirm=result.confirm, dry_run=dry_run))
        order = {each.rule for each in result.findings if each.surface == "guard"} == {"axis_order"}
        if order and self.sees_the_order and confirm is None and not dry_run:
            result = publish(publication, PublishSettings(run_id=run_id, confirm=result.confirm, dry_run=dry_run))
        log = self.log() if self.version != before else {}
        return Night(result, {key: line["class"] for key, line in log.items()}, log)

    def write(self, source: Path | str | dict[str, Any]) -> None:
        """Write contract and publication. JSON is YAML."""
        source = source if isinstance(source, dict) else {"path": str(source)}
        source = {**source, "path": str(Path(source["path"]).absolute())}
        (self.folder / "product.contract.yaml").write_text(json.dumps(self.terms, ensure_ascii=False), encoding="utf-8")
        (self.folder / "product.yaml").write_text(json.dumps({**self.settings, "source": source}, ensure_ascii=False), encoding="utf-8")

    def by_column(self, column: str) -> Estate:
        """Partition by a column."""
        self.settings["partition"] = {"by": "column", "column": column}
        return self

    def by_place(self, target_rows: int) -> Estate:
        """Partition by kd-tree."""
        self.settings["partition"] = {"by": "kdtree", "target_rows": target_rows}
        return self

    def as_cases_run(self) -> Estate:
        """With the guard that the cases are run with, as their README names it."""
        self.settings["guard"] = {"max_changed_fraction": 1.0}
        return self

    def agreed(self) -> Estate:
        """Guards as by default, and a person who confirms what they stop."""
        self.agrees = True
        return self

    def stamp(self, version: str) -> None:
        """Raise the contract's stamp, "v1.1.0"."""
        self.terms["contract_version"] = version + self.terms["contract_version"][self.terms["contract_version"].index("-") :]

    # --- readings ---------------------------------------------------------------------------------------------------------------------

    @property
    def dataset(self) -> Dataset:
        return Dataset(open_store(str(self.url)))

    @property
    def version(self) -> int | None:
        """The version that the pointer names."""
        pointer = self.url / "_current.json"
        return json.loads(pointer.read_text())["version"] if pointer.exists() else None

    def manifest(self, version: int | None = None):
        return self.dataset.manifest(version)

    def files(self, version: int | None = None):
        """The live data files."""
        return self.dataset.files(version)

    def values(self, version: int | None = None) -> dict[str, str | None]:
        """Partition name to column value, as the pages say."""
        return {name: each.value for name, each in live_entries(self.dataset.store, self.manifest(version).files).items()}

    def tree(self, version: int | None = None) -> Any:
        """The splits of the kd-tree as nested dictionaries, None for a leaf; read from the object that the manifest names."""
        rows = read_file(self.url / self.manifest(version).tree.path).to_pylist()
        splits = {row["path"]: row for row in rows}

        def grown(path: str) -> Any:
            if path not in splits:
                return None
            row = splits[path]
            return {"axis": row["axis"], "at": row["at"], "below": grown(path + "0"), "above": grown(path + "1")}

        return grown("")

    def table(self, version: int | None = None):
        """All rows as a reader gets them."""
        return self.dataset.to_arrow(version=version)

    def rows(self, version: int | None = None) -> dict[Any, dict[str, Any]]:
        """Key to row, geometry as canonical WKB; no key twice."""
        return rows_of(self.table(version), self.keys)

    @property
    def keys(self) -> list[str]:
        key = self.settings.get("key", self.terms.get("key"))
        return [key] if isinstance(key, str) else list(key)

    def shapes(self, version: int | None = None) -> dict[Any, Any]:
        """Key to shapely geometry."""
        name = self.dataset.version(version).columns.geometry
        return {key: None if row[name] is None else from_wkb(row[name]) for key, row in self.rows(version).items()}

    def partitions(self, version: int | None = None) -> dict[Any, str]:
        """Key to partition, from the data files themselves."""
        out: dict[Any, str] = {}
        for file in self.files(version):
            for key in rows_of(read_file(self.url / file.path), self.keys):
                assert key not in out, f"{key} is in {out.get(key)} and in {file.partition}"
                out[key] = file.partition
        return out

    def in_tree(self, tree: Any, version: int | None = None) -> dict[Any, str]:
        """Key to the leaf of a manifest's tree, judged from the stored geometry."""
        return {key: leaf(tree, centre(shape)) for key, shape in self.shapes(version).items()}

    def log(self, version: int | None = None) -> dict[str, dict[str, Any]]:
        """The change log of a version, by key text."""
        table = pq.ParquetFile(self.url / self.manifest(version).changes.path).read()
        ids = ids_of(table.column("key").combine_chunks()).to_pylist()
        assert len(set(ids)) == len(ids)
        return dict(zip(ids, table.to_pylist(), strict=True))

    def set_digest(self) -> str:
        """The digest of the whole set, summed anew from what the change logs leave of each feature."""
        digests: dict[bytes, bytes] = {}
        for version in self.dataset.versions():
            for line in self.log(version).values():
                digests[line["key"]] = line["digest"]
        total = 0
        for key, value in digests.items():
            if value is not None:
                joined = hashlib.blake2b(key, digest_size=16).digest() + value
                total += int.from_bytes(hashlib.blake2b(joined, digest_size=16).digest())
        return f"{total % 2**128:032x}"

    def lineage(self) -> list[dict[str, Any]]:
        """Every event of every sealed run."""
        return [event for path in sorted(self.url.glob("_lineage/**/*.parquet")) for event in pq.ParquetFile(path).read().to_pylist()]

    def records(self) -> list[dict[str, Any]]:
        """The run records, oldest first."""
        docs = [json.loads(path.read_text()) for path in self.url.glob("_runs/*.json")]
        return sorted(docs, key=lambda doc: (doc["started_utc"], doc["attempt"]))

    def bytes_of(self, version: int | None = None) -> dict[str, str]:
        """Live data file to the checksum of what stands on disk."""
        return {file.path: digest(self.url / file.path) for file in self.files(version)}

    def everything(self) -> dict[str, str]:
        """Every file below the destination, with its checksum."""
        return {str(path.relative_to(self.url)): digest(path) for path in self.url.rglob("*") if path.is_file()}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_file(path: Path) -> Any:
    """A data file by itself: no folder becomes a column."""
    return pq.ParquetFile(path).read()


def rows_of(table: Any, keys: list[str]) -> dict[Any, dict[str, Any]]:
    rows = table.to_pylist()
    out = {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}
    assert len(out) == len(rows), "a key stands twice in what is published"
    return out


def centre(shape: Any) -> tuple[float, float]:
    if shape is None or shape.is_empty:
        return (float("nan"), float("nan"))
    x0, y0, x1, y1 = shape.bounds
    return ((x0 + x1) / 2, (y0 + y1) / 2)


def leaf(tree: Any, at: tuple[float, float]) -> str:
    """The partition of a position: below a split on one side, at or above it on the other; `None` is a leaf."""
    if at[0] != at[0]:
        return "cell=none"
    path = ""
    while tree is not None:
        above = at[tree["axis"]] >= tree["at"]
        path += "01"[above]
        tree = tree["above" if above else "below"]
    return f"cell={path or 'root'}"


def frame(rows: list[dict[str, Any]], epsg: int | None = 4326) -> gpd.GeoDataFrame:
    """Rows with a shapely `geometry` as a GeoDataFrame."""
    return gpd.GeoDataFrame(rows, geometry="geometry", crs=epsg)


def save(rows: list[dict[str, Any]], path: Path, epsg: int | None = 4326, **options: Any) -> Path:
    """Write rows in the format that the name's ending says, with pyogrio; options go to its driver."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = frame(rows, epsg)
    if path.suffix == ".parquet":
        data.to_parquet(path, **options)
    else:
        data.to_file(path, engine="pyogrio", **options)
    return path


def geoparquet(
    path: Path, columns: dict[str, Any], *, geometry: str = "geometry", epsg: int | None = 4326, geo: dict[str, Any] | None = None
) -> Path:
    """Write Arrow columns as GeoParquet exactly as given; `columns[geometry]` holds WKB or shapely geometries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wkb = columns[geometry]
    if isinstance(wkb, list):
        wkb = pa.array([each if each is None or isinstance(each, bytes) else each.wkb for each in wkb], pa.binary())
    table = pa.table({**columns, geometry: wkb})
    column = {"encoding": "WKB", "geometry_types": []}
    if epsg is not None:
        column["crs"] = CRS.from_epsg(epsg).to_json_dict()
    meta = geo or {"version": "1.1.0", "primary_column": geometry, "columns": {geometry: column}}
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(meta)}), path)
    return path
