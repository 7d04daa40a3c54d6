"""Two publications with grid folders of their own, in one process: what each publishes is what it publishes in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from shapely import Point

from estate import geoparquet
from gridfiles import tiff_grid
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source

OSTN15 = "uk_os_OSTN15_NTv2_OSGBtoETRS.tif"
SHIFTS = (1.0, 2.0)
"""How many arc-seconds the grid of each folder moves a point to the north."""
ALONE = """if True:
    import sys
    from merestone.line.publish import PublishSettings, publish
    from merestone.publication.reader import read_publication, with_source
    file, *nights = sys.argv[1:]
    for number, path in enumerate(nights, 1):
        print(publish(with_source(read_publication(file), path), PublishSettings(run_id=f"night-{number}")).status)
"""


@pytest.fixture
def deliveries(tmp_path):
    """Two nights in the British National Grid; in the second, one feature moved and one is new."""

    def deliver(night, moved, rows):
        columns = {
            "pid": [f"p{n:02}" for n in range(rows)],
            "use": ["field"] * rows,
            "geometry": [Point(400_000 + 250 * n + (40 if n in moved else 0), 300_000 + 10 * n) for n in range(rows)],
        }
        return str(geoparquet(tmp_path / f"{night}.parquet", columns, epsg=27700))

    return [deliver("first", (), 30), deliver("second", (3,), 31)]


@pytest.fixture
def pair(estate, tmp_path):
    """Makes two products that differ in what lies in their grid folders, and in nothing else."""
    folders = []
    for place, shift in enumerate(SHIFTS):
        folders.append(tmp_path / f"grids{place}")
        folders[-1].mkdir()
        tiff_grid(folders[-1] / OSTN15, shift)

    def make():
        made = [
            estate([{"name": "pid", "type": "string", "nullable": False}, {"name": "use", "type": "string"}], epsg=4258) for _ in folders
        ]
        for product, folder in zip(made, folders, strict=True):
            product.settings |= {"crs": {"accept": ["EPSG:27700"], "grids": str(folder)}, "guard": {"max_changed_fraction": 1.0}}
        return made

    return make


def night(product, number, path):
    product.write(path)
    file = str(product.folder / "product.yaml")
    result = publish(with_source(read_publication(file), path), PublishSettings(run_id=f"night-{number}"))
    assert result.status == "published", result


def alone(product, deliveries):
    """Both nights in a process of their own."""
    product.write(deliveries[0])
    command = [sys.executable, "-c", ALONE, str(product.folder / "product.yaml"), *deliveries]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["published", "published"]


def published(product):
    """What every version is, without the names of its objects, attempts and times."""
    found = {}
    for number in product.dataset.versions():
        manifest = product.manifest(number)
        classes = [(key, line["class"], line["digest"], line["source_digest"]) for key, line in product.log(number).items()]
        live = [(file.partition, (product.url / file.path).read_bytes()) for file in product.files(number)]
        stated = (manifest.processing, manifest.domain, manifest.set_digest, manifest.counts, manifest.contract_sha256)
        found[number] = (json.dumps(stated), classes, live)
    return found


def test_grid_folders_of_two_publications_do_not_meet_in_one_process(pair, deliveries):
    apart = pair()
    for product in apart:
        alone(product, deliveries)
    expected = [published(each) for each in apart]
    assert [sorted(each) for each in expected] == [[1, 2], [1, 2]]

    in_turn = pair()  # night by night, so each meets what the other left in the process
    for number, path in enumerate(deliveries, 1):
        for product in in_turn:
            night(product, number, path)
    assert [published(each) for each in in_turn] == expected

    at_once = pair()
    start = Barrier(len(at_once))

    def both_nights(product):
        for number, path in enumerate(deliveries, 1):
            start.wait()
            night(product, number, path)

    with ThreadPoolExecutor(len(at_once)) as pool:
        list(pool.map(both_nights, at_once))
    assert [published(each) for each in at_once] == expected

    north = [product.shapes()["p00"].y for product in apart]  # and the grids did decide
    assert (north[1] - north[0]) * 3600 == pytest.approx(SHIFTS[1] - SHIFTS[0], abs=1e-3)
    assert [json.loads(each[2][0])[0]["operation"]["grids"][0]["name"] for each in expected] == [OSTN15, OSTN15]
