"""A planar coverage whose vertices jitter jointly, with edits, splits and additions: nothing is torn that was whole in the delivery."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from estate import geoparquet
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "use", "type": "string"}]
SIDE = 9
STEP = 0.001
NIGHTS = 6


class Coverage:
    """Squares between shared vertices, as {pid: (places of its vertices)}; a vertex that is moved is moved in all of them."""

    def __init__(self, noise):
        self.noise = noise
        at = np.stack(np.meshgrid(np.arange(SIDE + 1), np.arange(SIDE + 1), indexing="ij"), axis=-1).reshape(-1, 2)
        # Beside and at half steps, where rounding turns over.
        self.xy = at * 20.0 + [500_000, 5_600_000] + STEP * noise.choice([0.0, 0.49, 0.5, 0.51], (len(at), 2))
        self.faces = {f"{i}-{j}": self._square(i, j) for i in range(SIDE) for j in range(SIDE)}
        self.uses = dict.fromkeys(self.faces, "a")

    def _square(self, i, j):
        wide = SIDE + 1
        return [i * wide + j, (i + 1) * wide + j, (i + 1) * wide + j + 1, i * wide + j + 1]

    def night(self, number):
        """Move an inner vertex, split a square along its diagonal, change a use, add a square beyond the edge."""
        inner = (1 + number) * (SIDE + 1) + 2 + number
        self.xy[inner] += [0.25, -0.125]
        ring = self.faces.pop(f"{number}-5")
        self.faces |= {f"{number}-5a": ring[:3], f"{number}-5b": [ring[0], *ring[2:]]}
        self.uses |= {f"{number}-5a": "s", f"{number}-5b": "s", f"{number}-1": f"night {number}", f"new {number}": "n"}
        east = SIDE * (SIDE + 1)
        begin = len(self.xy)
        self.xy = np.concatenate([self.xy, self.xy[[east + number, east + number + 1]] + [20.0, 0.0]])
        self.faces[f"new {number}"] = [east + number, begin, begin + 1, east + number + 1]
        if number:  # it shares a vertex with the one before
            self.faces[f"new {number}"][1] = begin - 1

    def deliver(self, path):
        """All features, their vertices shaken jointly by a fiftieth of a step."""
        xy = self.xy + self.noise.uniform(-STEP / 50, STEP / 50, self.xy.shape)
        pids = sorted(self.faces)
        shapes = [shapely.Polygon(xy[self.faces[pid]]) for pid in pids]
        assert shapely.coverage_is_valid(shapes)
        return shapes, geoparquet(
            path, {"pid": pa.array(pids), "use": pa.array([self.uses[pid] for pid in pids]), "geometry": shapes}, epsg=25832
        )


@pytest.mark.parametrize("seed", range(3))
def test_what_is_whole_when_delivered_is_whole_when_published(estate, tmp_path, seed):
    coverage = Coverage(np.random.default_rng(seed))
    product = estate(FIELDS, epsg=25832, precision=3, geometry_type="polygon", topology_rule_set="planar")
    product.agrees = True
    for night in range(NIGHTS):
        if night:
            coverage.night(night - 1)
        shapes, path = coverage.deliver(tmp_path / f"{night}.parquet")
        product.write(path)
        publication = with_source(read_publication(str(product.folder / "product.yaml")), str(path))
        alone = check(publication, CheckSettings(str(path), ""))[0]
        result = product.publish(path)
        assert result.status == "published", result.said
        breaches = [{(each.rule, each.count) for each in said.findings if each.severity == "error"} for said in (alone, result.result)]
        assert breaches == [set(), set()]
        published = product.dataset.to_geodataframe().geometry.to_numpy()
        assert shapely.coverage_is_valid(published), f"night {night}: neighbours no longer share their vertices"
        assert len(published) == len(shapes)
        delivered, stored = (shapely.union_all(each, grid_size=STEP) for each in (shapes, published))
        rings = [sum(len(part.interiors) for part in shapely.get_parts(each)) for each in (delivered, stored)]
        assert rings[0] == rings[1], "a gap that was not delivered"
        assert stored.symmetric_difference(delivered).area < 1e-2 * len(shapes)
