"""Nights over an index that was written whole in between, in the order of a delivery."""

from __future__ import annotations

import geopandas
import pyarrow.parquet as pq
import pytest
import shapely

import merestone
from merestone.audit.verify import verify
from merestone.dataset import index
from merestone.dataset.record import read_records
from merestone.identity.key import ids_of
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source
from merestone.scratch import room
from merestone.storage.open import open_store

POINTS = """\
contract_version: v1.0.0-crs:EPSG:25832-res:1m
product_id: 0a4d8a34-9f7e-4d2c-8f60-6a6a6f0f5a03
name: points
key: pid
crs_epsg: 25832
axis_order: lon_lat
geometry_type: point
coordinate_precision: 2
schema_fields:
  - {name: pid, type: integer, nullable: false}
  - {name: name, type: string}
freshness_sla_minutes: 1440
availability_target: 0.99
product_owner_id: steward@example.org
"""


NIGHTS = [
    [(n, f"road {n}") for n in range(30)],
    [(n, f"road {n}" if n % 5 else "edited") for n in range(1, 30)],
    [(n, f"road {n}") for n in (*range(20, 33), *range(2, 20))],
    [(n, f"road {n}") for n in range(32, 0, -1)],
    [(n, f"road {n}" if n != 3 else "edited") for n in range(32, 0, -1)],
]


@pytest.mark.usefixtures("each_kernel")
@pytest.mark.parametrize("crs", [25832, 4326], ids=["one digest", "two digests"])
def test_nights_go_on_over_a_checkpoint_of_the_index(tmp_path, monkeypatch, crs):
    """The index is written whole now and then; what comes after it is the same as without, in whatever order rows come."""
    seen = []
    for often in (False, True):
        folder = tmp_path / str(often)
        folder.mkdir()
        monkeypatch.setattr("merestone.line.writing.write.needs_checkpoint", lambda *_, often=often: often)
        seen.append([_publish_points(folder, number, night, crs) for number, night in enumerate(NIGHTS)])
        manifest = merestone.open(folder / "published").manifest()
        assert (manifest.index.checkpoint is not None) == often
        if often:
            digests = pq.read_table(folder / "published" / manifest.index.checkpoint.path)["digest"]
            assert digests.null_count == (len(digests) if crs == 25832 else 0)
        assert verify(open_store(str(folder / "published"))).whole
        seen[-1].append(manifest.set_digest)
    assert seen[0] == seen[1]


def test_a_checkpoint_lies_in_the_order_of_its_delivery_and_the_record_says_how_rows_were_met(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "LOGGED", 10)
    monkeypatch.setattr(index, "WEEK", 2)
    monkeypatch.setattr(room, "MEMORY", 0)  # the table of a search lies in a file
    orders = [[*range(100, 140)], [*range(100, 140)], [*range(139, 99, -1)], [*range(139, 99, -1)]]
    met = []
    for number, order in enumerate(orders):
        _publish_points(tmp_path, number, [(n, "edited" if number and n == 100 + number else "road") for n in order])
        store = open_store(str(tmp_path / "published"))
        met.append(max(read_records(store), key=lambda record: record.started_utc).delivery.get("met"))
    assert met[:2] == [None, {"in_order": 40, "searched": 0}]
    assert met[2]["searched"] > 30
    assert met[3] == {"in_order": 40, "searched": 0}, "the checkpoint of the third night follows its order"
    manifest = merestone.open(tmp_path / "published").manifest()
    assert (manifest.index.checkpoint_version, len(manifest.index.log)) == (3, 1)
    keys = ids_of(pq.read_table(tmp_path / "published" / manifest.index.checkpoint.path)["key"].combine_chunks()).to_pylist()
    assert keys == [str(n) for n in orders[2]]


def _publish_points(folder, number, night, crs=25832):
    contract = folder / "c.contract.yaml"
    contract.write_text(POINTS)
    product = folder / "c.yaml"
    product.write_text(
        'contract: c.contract.yaml\nsource: 0.parquet\ndestination: ./published\ncrs: {accept: ["EPSG:4326"], missing_grids: fallback}\n'
    )
    source = folder / f"{number}.parquet"
    geopandas.GeoDataFrame(
        {"pid": [pid for pid, _ in night], "name": [name for _, name in night]},
        geometry=[shapely.Point(500_000 + pid, 6_200_000) for pid, _ in night],
        crs=25832,
    ).to_crs(crs).to_parquet(source)
    publication = with_source(read_publication(str(product)), str(source))
    result = publish(publication, PublishSettings())
    if result.refused_by == "guard":
        result = publish(publication, PublishSettings(confirm=result.confirm))
    return result.delta
