"""A step that can be replayed: what leads from one version to another, with all that must be known to do it elsewhere and to prove it.

It comes from a dataset, or from a feed file.
Not here: folding change logs (`dataset.feed`), replaying (`apply`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from merestone.contract.body import from_body
from merestone.contract.contract import Contract
from merestone.dataset import feed
from merestone.dataset.columns import Columns, geo_of
from merestone.dataset.feed import Changes, Feed
from merestone.dataset.known import Sum
from merestone.dataset.manifest import Manifest
from merestone.dataset.version import Dataset
from merestone.document.json_reader import parse_json
from merestone.errors import CorruptError, SourceError, UsageError
from merestone.identity.digest import Layout, layout_of_contract
from merestone.inspect.extract import FEED_METADATA, RowForm
from merestone.json_value import JsonObject
from merestone.storage.place import local_path

FORMAT = 1
_PARQUET = (".parquet", ".geoparquet")
_HINT = "write it with «changes(DATASET, out=FILE.parquet)», without a filter"


@dataclass(frozen=True, slots=True)
class End:
    """One end of a step: version (0: nothing), its contract's body, and the digest of the whole set."""

    version: int
    contract: JsonObject
    set_digest: str
    features: int

    def layout(self, key: tuple[str, ...]) -> Layout:
        """What the digests of this version are made of."""
        return layout_of_contract(from_body(self.contract), key)

    def to_json(self) -> JsonObject:
        """The object in the metadata of a feed."""
        return {"version": self.version, "contract": self.contract, "set_digest": self.set_digest, "features": self.features}


@dataclass(frozen=True, slots=True)
class VersionStep:
    """What leads from `start` to `end`.

    rule: the key rule, as manifests have it. columns: what a reader of `end` sees. keys: canonical key bytes of the touched features, ordered.
    has: bool (n,), which of them exist at the end. after: pyarrow.Table of their rows, in the order of `keys`. partitioning: the scheme of
    the dataset (by, column, target_rows). counts: how many keys each class and label has.
    """

    name: str
    start: End
    end: End
    rule: JsonObject
    columns: Columns
    keys: pa.Array
    has: npt.NDArray[np.bool_]
    after: pa.Table
    partitioning: JsonObject
    counts: dict[str, int]

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(self.rule["columns"])

    @property
    def contract(self) -> Contract:
        """The contract at the end."""
        return from_body(self.end.contract)

    @property
    def form(self) -> RowForm:
        """The form of the rows at the end."""
        return RowForm(self.name, self.end.contract, self.key, self.columns)


def of_dataset(dataset: Dataset, from_version: int | None, to_version: int | None) -> VersionStep:
    """The step between two versions of a dataset.

    Raises:
        UsageError, CorruptError: as `feed.changes`.
    """
    change = feed.changes(dataset, from_version, to_version, with_rows=True)
    target = dataset.version(change.to_version)
    manifest = target.manifest
    start, end = _ends(dataset, change)
    return VersionStep(
        manifest.name,
        start,
        end,
        manifest.key,
        target.columns,
        change.touched.key.combine_chunks(),
        np.asarray(change.touched.has.combine_chunks()).astype(bool),
        change.after if change.after is not None else target.columns.schema.empty_table(),
        _scheme(manifest),
        change.counts(),
    )


def about(dataset: Dataset, change: Changes) -> JsonObject:
    """What a feed file has to say of itself to be replayed without the dataset."""
    target = dataset.version(change.to_version)
    manifest, columns = target.manifest, target.columns
    start, end = _ends(dataset, change)
    return {
        "format": FORMAT,
        "name": manifest.name,
        "from": start.to_json(),
        "to": end.to_json(),
        "key": manifest.key,
        "geometry": columns.geometry,
        "geo": geo_of(columns.schema, f"version {manifest.version}"),
        "partitioning": _scheme(manifest),
    }


def of_file(path: str) -> VersionStep:
    """The step in a feed file.

    Raises:
        SourceError: it is missing, truncated, or no Parquet.
        UsageError: it is not a feed, is filtered, or of another format of feeds.
    """
    file = local_path(path, what="a feed")  # pyarrow takes a URL for an address in the network
    if Path(file).suffix.lower() not in _PARQUET:
        raise UsageError(f"{path} is a text feed, which cannot be replayed: text formats have no exact types", field=path, hint=_HINT)
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as fault:
        raise SourceError(f"{path} cannot be read: {fault}", field=path, hint="copy or write it again") from fault
    described = (table.schema.metadata or {}).get(FEED_METADATA.encode())
    if described is None:
        raise UsageError(f"{path} is not a feed of a whole dataset", field=path, hint=_HINT)
    try:
        doc = parse_json(described)
    except ValueError as fault:
        raise SourceError(f"{path}: what it says of itself is not JSON: {fault}", field=path, hint="copy or write it again") from None
    if not isinstance(doc, dict) or "format" not in doc:
        raise UsageError(f"{path} is not a feed of a whole dataset", field=path, hint=_HINT)
    if doc["format"] != FORMAT:
        raise UsageError(f"{path} is a feed of format {doc['format']}, this version of Merestone reads {FORMAT}", field=path, hint=_HINT)
    try:
        start, end = (End(each["version"], each["contract"], each["set_digest"], each["features"]) for each in (doc["from"], doc["to"]))
        geometry = str(doc["geometry"])
        touched = Feed(table)
        rows = table.filter(touched.has)
        struct = rows.column("after").combine_chunks()
        fields = [struct.type.field(place) for place in range(struct.type.num_fields)]
        schema = pa.schema([*fields, pa.field(geometry, pa.binary())], metadata={"geo": json.dumps(doc["geo"])})
        geo_of(schema, path)
        after = pa.Table.from_arrays([*struct.flatten(), rows.column("geometry").cast(pa.binary())], schema=schema)
        return VersionStep(
            doc["name"],
            start,
            end,
            doc["key"],
            Columns(schema, geometry, int(end.contract["crs_epsg"])),
            touched.key.cast(pa.binary()).combine_chunks(),
            np.asarray(touched.has.combine_chunks()).astype(bool),
            after,
            doc["partitioning"],
            feed.counted(table),
        )
    except (KeyError, TypeError, ValueError, pa.ArrowException) as fault:
        raise CorruptError(f"{path} is a damaged feed: {fault!r}", field=path, hint="copy or write it again") from fault


def _ends(dataset: Dataset, change: Changes) -> tuple[End, End]:
    last = dataset.manifest(change.to_version)
    end = End(last.version, last.contract, last.set_digest, last.features)
    if change.from_version == 0:
        return End(0, last.contract, str(Sum()), 0), end
    first = dataset.manifest(change.from_version)
    if any(first.key.get(each) != last.key.get(each) for each in ("columns", "types")):
        raise UsageError(
            f"the key changed between version {first.version} and version {last.version}",
            field="from_version",
            hint="apply «from_version=0», which replays the whole dataset",
        )
    return End(first.version, first.contract, first.set_digest, first.features), end


def _scheme(manifest: Manifest) -> JsonObject:
    return {name: manifest.partitioning[name] for name in ("by", "column", "target_rows") if name in manifest.partitioning}
