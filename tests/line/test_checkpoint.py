"""Nights over an index that was written whole in between."""

from __future__ import annotations

import geopandas
import shapely

import merestone
from merestone.audit.verify import verify
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source
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


def test_nights_go_on_over_a_checkpoint_of_the_index(tmp_path, monkeypatch):
    """The index is written whole now and then; what comes after it is the same as without."""
    nights = [
        [(n, f"road {n}") for n in range(30)],
        [(n, f"road {n}" if n % 5 else "edited") for n in range(1, 30)],
        [(n, f"road {n}") for n in range(2, 33)],
        [(n, f"road {n}") for n in range(1, 33)],
    ]
    seen = []
    for often in (False, True):
        folder = tmp_path / str(often)
        folder.mkdir()
        monkeypatch.setattr("merestone.line.writing.write.needs_checkpoint", lambda *_, often=often: often)
        counts = []
        for number, night in enumerate(nights):
            counts.append(_publish_points(folder, number, night))
        seen.append(counts)
        manifest = merestone.open(folder / "published").manifest()
        assert (manifest.index.checkpoint is not None) == often
        assert verify(open_store(str(folder / "published"))).whole
    assert seen[0] == seen[1]


def _publish_points(folder, number, night):
    contract = folder / "c.contract.yaml"
    contract.write_text(POINTS)
    product = folder / "c.yaml"
    product.write_text("contract: c.contract.yaml\nsource: 0.parquet\ndestination: ./published\n")
    source = folder / f"{number}.parquet"
    geopandas.GeoDataFrame(
        {"pid": [pid for pid, _ in night], "name": [name for _, name in night]},
        geometry=[shapely.Point(500_000 + pid, 6_200_000) for pid, _ in night],
        crs=25832,
    ).to_parquet(source)
    publication = with_source(read_publication(str(product)), str(source))
    result = publish(publication, PublishSettings())
    if result.refused_by == "guard":
        result = publish(publication, PublishSettings(confirm=result.confirm))
    return result.delta
