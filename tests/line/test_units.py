"""Every unit of every pass runs from its pickle in a process that shares nothing with ours, and gives the same bytes."""

from __future__ import annotations

import inspect
import itertools
import multiprocessing
import shutil
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from shapely import LineString, Point, Polygon

from estate import Estate, geoparquet
from merestone.engine.processes import Processes
from merestone.engine.threads import Threads
from merestone.engine.window import in_order
from merestone.geometry import kernel
from merestone.line import environment
from merestone.line.check import check
from merestone.line.publish import PublishSettings, publish
from merestone.line.run import Run
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication

FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "use", "type": "string"},
    {"name": "size", "type": "number", "unit": "m2"},
    {"name": "district", "type": "string"},
    {"name": "code", "type": "string", "unique": True},
]


@dataclass(frozen=True)
class OneProcess:
    """One process that was spawned, not forked, and stays for many calls: a fresh one costs seconds of imports."""

    pool: ProcessPoolExecutor

    def run_units(self, task, units):
        return in_order(self.pool, task, units, ahead=1)

    @property
    def workers(self):
        return 1

    def share(self, _workers):
        return self


@pytest.fixture(scope="module")
def one_process():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield OneProcess(pool)


@pytest.fixture
def same_hour(monkeypatch):
    """A clock that stands still and a chance that repeats itself, started anew by each call."""

    def start():
        numbers = itertools.count()
        monkeypatch.setattr(environment, "nonce", lambda: f"{next(numbers):08x}")
        monkeypatch.setattr(environment, "now", lambda: datetime(2026, 3, 1, tzinfo=UTC))
        monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # how long the stages take is on record

    return start


def deliver(path, *, edit=(), gone=(), bad=()):
    rows = [n for n in range(40) if n not in gone]
    east, north = 9.0, 51.0

    def shape(n):
        x, y = east + n * 0.001, north + (n % 3) * 0.001
        side = 0.0002 if n in edit else 0.0001
        if n in bad:  # a bow-tie
            return Polygon([(x, y), (x + side, y + side), (x + side, y), (x, y + side)])
        return Polygon([(x, y), (x + side, y), (x + side, y + side), (x, y + side)])

    columns = {
        "pid": pa.array([f"p{n:03}" for n in rows]),
        "use": pa.array(["forest" if n in edit else "field" for n in rows]),
        "size": pa.array([float(n) for n in rows]),
        "district": pa.array([f"d{(n + (1 if n in edit else 0)) % 3}" for n in rows]),
        "code": pa.array([f"c{n}" for n in rows]),
        "geometry": [shape(n) for n in rows],
    }
    return geoparquet(path, columns, epsg=4326)


@pytest.fixture
def store_kind():
    """On a disk: a store in memory is one of this process."""
    return "local"


@pytest.fixture
def same_place(tmp_path):
    """Makes a product where the one before was made, which is gone: records name their place."""

    def make(fields, **clauses):
        shutil.rmtree(tmp_path / "product", ignore_errors=True)
        return Estate(tmp_path / "product", fields, **clauses)

    return make


def nights(product, engines, paths):
    """What a product holds after some nights, each with its engine. A night that takes long renews its lease, which leaves an empty lock file."""
    for path, engine in zip(paths, engines, strict=True):
        product.write(path)
        result = publish(read_publication(str(product.folder / "product.yaml")), PublishSettings(), engine=engine)
        assert result.status == "published", result
    objects = [path for path in sorted(product.url.rglob("*")) if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(product.url)): path.read_bytes() for path in objects}


@pytest.mark.parametrize("by", ["column", "kdtree"])
def test_a_publish_in_other_processes_gives_the_bytes_of_one_in_threads(same_place, tmp_path, same_hour, one_process, by):
    """Transformed, with rejected, changed, moved and removed rows, and a last version to compare with.

    By column, the second night has a fresh process for each unit.
    """
    paths = [
        deliver(tmp_path / "1.parquet", bad=[7]),
        deliver(tmp_path / "2.parquet", edit=[1, 2, 30], gone=[5, 6], bad=[8]),
    ]
    stores = []
    other = [one_process, Processes(2, units_per_process=1) if by == "column" else one_process]
    for each in ([Threads(2), Threads(2)], other):
        product = same_place(FIELDS, geometry_type="polygon", precision=3, epsg=25832, topology_rule_set="planar")
        product.settings["crs"] = {"accept": ["EPSG:4326"]}
        product.settings |= {"rejects": {"max_fraction": 0.2}, "guard": {"max_changed_fraction": 1.0}}
        product = product.by_column("district") if by == "column" else product.by_place(20)
        same_hour()
        stores.append(nights(product, each, paths))
    assert stores[0].keys() == stores[1].keys()
    assert {name for name in stores[0] if stores[0][name] != stores[1][name]} == set()
    assert len([name for name in stores[0] if name.startswith("data/")]) > 3


def test_a_check_in_another_process_says_what_one_in_threads_says(estate, tmp_path, one_process):
    product = estate(FIELDS, geometry_type="polygon", precision=3, epsg=25832, topology_rule_set="planar")
    product.settings["crs"] = {"accept": ["EPSG:4326"]}
    path = deliver(tmp_path / "1.parquet", bad=[7, 9], edit=[4])
    product.write(path)
    publication = read_publication(str(product.folder / "product.yaml"))
    found = [check(publication, CheckSettings(str(path), "contract"), engine=engine)[0] for engine in (Threads(2), one_process)]
    assert found[0].findings == found[1].findings
    assert {each.rule for each in found[0].findings} >= {"validity"}


TASKS = {
    "pass 1": {"receive_batch"},
    "pass 2": {"process_batch", "settle_bucket"},
    "topology": {"judge_topology"},
    "pass 3": {"rewrite_partition"},
    "commit": {"log_piece", "encode_part"},
}
"""The tasks of each stage that meets rows; a stage that is new has to say where its work is done."""
ROWLESS = {"prepare", "index"}


@pytest.fixture
def watched(monkeypatch, one_process):
    """(engine, tasks by stage, functions of the kernel that this process itself called by stage)."""
    stages, tasks, kernel_calls = [], defaultdict(set), defaultdict(set)

    class Watching:
        workers = 1

        def run_units(self, task, units):
            tasks[stages[-1] if stages else None].add(task.__name__)
            return one_process.run_units(task, units)

        def share(self, _workers):
            return self

    @contextmanager
    def stage(run, name, real=Run.stage):
        stages.append(name)
        with real(run, name):
            yield
        stages.pop()

    def watching(name, real):
        def call(*args, **kwargs):
            kernel_calls[stages[-1] if stages else None].add(name)
            return real(*args, **kwargs)

        return call

    monkeypatch.setattr(Run, "stage", stage)
    for name, function in vars(kernel).items():
        if inspect.isfunction(function) and not name.startswith("_"):
            monkeypatch.setattr(kernel, name, watching(name, function))
    return Watching(), tasks, kernel_calls


def test_every_stage_that_meets_rows_works_in_units(estate, tmp_path, watched):
    """A night with rejected, changed, moved, removed and kept rows under topology: this process itself looks at no geometry."""
    engine, tasks, kernel_calls = watched
    product = estate(FIELDS, geometry_type="polygon", precision=3, epsg=25832, topology_rule_set="planar")
    product.settings["crs"] = {"accept": ["EPSG:4326"]}
    product.settings |= {"rejects": {"max_fraction": 0.2}, "guard": {"max_changed_fraction": 1.0}}
    product.by_place(20)
    first, second = deliver(tmp_path / "1.parquet", bad=[7]), deliver(tmp_path / "2.parquet", edit=[1, 2, 30], gone=[5, 6], bad=[8])
    nights(product, [engine, engine], [first, second])
    assert tasks == TASKS
    assert kernel_calls == {}
    [*_, record] = product.records()
    assert record["stages"].keys() == TASKS.keys() | ROWLESS


def test_a_check_works_in_units_too(estate, tmp_path, watched):
    engine, tasks, kernel_calls = watched
    product = estate(FIELDS, geometry_type="polygon", precision=3, epsg=25832, topology_rule_set="planar")
    product.settings["crs"] = {"accept": ["EPSG:4326"]}
    path = deliver(tmp_path / "1.parquet", bad=[7, 9], edit=[4])
    product.write(path)
    result, _ = check(read_publication(str(product.folder / "product.yaml")), CheckSettings(str(path), "contract"), engine=engine)
    assert result.rows == 40
    assert tasks == {None: {"receive_batch", "process_batch", "judge_topology"}}
    assert kernel_calls == {}


def _twice(number):
    if number == 3:
        raise ValueError("three")
    return np.array([number, number])


@pytest.mark.parametrize("engine", [Threads(1), Threads(3), Processes(1)], ids=str)
def test_results_come_in_order_and_the_first_fault_ends_the_work(engine):
    assert [each.tolist() for each in engine.run_units(_twice, range(3))] == [[0, 0], [1, 1], [2, 2]]
    taken = []
    with pytest.raises(ValueError, match="three"):
        list(engine.run_units(_twice, (taken.append(n) or n for n in range(100))))
    assert len(taken) < 12  # units are taken as they are needed


def test_lines_and_points_survive_the_way_to_another_process(same_place, tmp_path, same_hour, one_process):
    """Geometries of each kind, a null and an empty one among them."""
    shapes = [Point(9, 51), LineString([(9, 51), (9.1, 51.2)]), None, Polygon([(9, 51), (9.1, 51), (9.1, 51.1)]), Polygon()]
    columns = {"pid": pa.array([f"p{n}" for n in range(5)]), "geometry": shapes}
    path = geoparquet(tmp_path / "1.parquet", columns, epsg=4326)
    stores = []
    for engine in (Threads(1), one_process):
        product = same_place(FIELDS[:1], precision=3, epsg=25832, geometry={"nullable": True, "empty": True})
        product.settings["crs"] = {"accept": ["EPSG:4326"]}
        same_hour()
        stores.append(nights(product, [engine], [path]))
    assert stores[0] == stores[1]
