"""One recorded operation, chosen with the grid files that the publication may use."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from threading import Barrier

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

from gridfiles import tiff_grid
from merestone.errors import MissingError, UsageError
from merestone.normalise.transform import apply_operation, transform_steps
from merestone.publication.publication import CrsRule
from merestone.reference.grids import GridFiles, NoGrids, names_in
from merestone.reference.operation import Operation, Wanted, _offered, _Way, choose_operation
from merestone.reference.systems import of_code
from merestone.results.finding import WARN, Finding
from merestone.source.grids import GridFolders

FALLBACK = CrsRule(missing_grids="fallback")
NONE, STRICT, PLAIN = NoGrids(), CrsRule(), Wanted()
OSTN15 = "uk_os_OSTN15_NTv2_OSGBtoETRS.tif"


def chosen(source: str, target: int, rule: CrsRule = STRICT, grids: GridFiles = NONE, wanted: Wanted = PLAIN) -> Operation:
    operation = choose_operation(source, target, rule, grids, wanted)
    assert isinstance(operation, Operation)
    return operation


def north(operation: Operation) -> float:
    """How many arc-seconds the operation moves a point of Great Britain to the north of where it is without a grid."""
    point = pa.array([shapely.to_wkb(shapely.Point(400_000, 300_000))], pa.binary())
    ends = [apply_operation(point, each)[0] for each in (operation, chosen("EPSG:27700", 4277))]
    there, here = (shapely.get_coordinates(shapely.from_wkb(each.to_pylist()))[0] for each in ends)
    return float((there - here)[1] * 3600)


def test_a_missing_grid_stops_the_run_and_names_file_and_accuracy():
    with pytest.raises(MissingError) as fault:
        choose_operation("EPSG:27700", 4258, CrsRule(), NONE, Wanted(1.0))
    assert fault.value.exit_code == 8
    assert "missing grid uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in fault.value.message
    assert "accuracy unknown (ballpark) where 1.0 m is required" in fault.value.message


def test_where_worse_is_allowed_the_required_accuracy_still_holds():
    refused = choose_operation("EPSG:27700", 4258, FALLBACK, NONE, Wanted(1.0))
    assert isinstance(refused, Finding)
    assert refused.severity == "error"
    assert "accuracy unknown (ballpark) where 1.0 m is required" in refused.observed
    assert "uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in refused.observed
    allowed = chosen("EPSG:27700", 4258, FALLBACK)
    assert (allowed.accuracy_m, allowed.strategy_index) == (None, 2)
    assert allowed.missing_grids == ("uk_os_OSTN15_NTv2_OSGBtoETRS.tif",)
    steps = transform_steps(allowed, np.zeros(2, bool), 2)
    assert steps.verdict.tolist() == [WARN, WARN]
    assert steps.accuracy_m is None
    assert "accuracy unknown" in steps.reason[0].as_py()
    named = choose_operation("EPSG:27700", 4258, replace(FALLBACK, strategies=("best", "grid")), NONE)
    assert isinstance(named, Finding)


def test_an_operation_of_known_accuracy_stands_in_for_a_missing_grid():
    operation = chosen("EPSG:31287", 25833, FALLBACK)
    assert operation.strategy_index == 1
    assert operation.accuracy_m is not None
    assert operation.accuracy_m > 0.1


def test_with_the_grid_in_its_folder_the_best_operation_is_used(tmp_path):
    path = tiff_grid(tmp_path / OSTN15)
    operation = chosen("EPSG:27700", 4258, CrsRule(), GridFolders.of(str(tmp_path)), Wanted(1.0))
    assert operation.accuracy_m == pytest.approx(0.03)
    assert (operation.strategy_index, operation.missing_grids) == (0, ())
    assert [(each.name, each.path, each.sha256) for each in operation.grids] == [(OSTN15, str(path), sha256(path.read_bytes()).hexdigest())]
    assert str(tmp_path) not in json.dumps(operation.to_json())
    assert north(operation) == pytest.approx(1.0, abs=1e-6)


def test_a_grid_goes_by_the_name_that_it_had_before_proj_published_it(tmp_path):
    tiff_grid(tmp_path / "OSTN15_NTv2_OSGBtoETRS.gsb")  # PROJ knows a file by what is in it
    operation = chosen("EPSG:27700", 4258, CrsRule(), GridFolders.of(str(tmp_path)), Wanted(1.0))
    assert [each.name for each in operation.grids] == [OSTN15]
    assert north(operation) == pytest.approx(1.0, abs=1e-6)


def folders(tmp_path, *shifts: float) -> list[GridFolders]:
    """A folder with a grid of the same name for each shift; the first name has what PROJ's text has to quote."""
    found = []
    for place, shift in enumerate(shifts):
        folder = tmp_path / f"a folder {place}"
        folder.mkdir()
        tiff_grid(folder / OSTN15, shift)
        found.append(GridFolders.of(str(folder)))
    return found


def test_two_folders_one_after_the_other_give_what_each_gives_alone(tmp_path):
    one, other = folders(tmp_path, 1.0, 2.0)
    first, second = (chosen("EPSG:27700", 4258, CrsRule(), each) for each in (one, other))
    assert (north(first), north(second)) == (pytest.approx(1.0, abs=1e-6), pytest.approx(2.0, abs=1e-6))
    assert first.to_json() != second.to_json()
    with pytest.raises(MissingError):  # and a publication without a folder finds none
        choose_operation("EPSG:27700", 4258, CrsRule(), GridFolders.of(None))


def test_a_grid_that_is_replaced_at_its_place_is_read_anew(tmp_path):
    tiff_grid(tmp_path / OSTN15, 1.0)
    assert north(chosen("EPSG:27700", 4258, CrsRule(), GridFolders.of(str(tmp_path)))) == pytest.approx(1.0, abs=1e-6)
    tiff_grid(tmp_path / "new.tif", 3.0).replace(tmp_path / OSTN15)
    assert north(chosen("EPSG:27700", 4258, CrsRule(), GridFolders.of(str(tmp_path)))) == pytest.approx(3.0, abs=1e-6)


def test_threads_with_different_folders_do_not_see_each_other(tmp_path):
    made = folders(tmp_path, *map(float, range(1, 5)))
    start = Barrier(len(made))

    def work(place: int) -> list[float]:
        start.wait()
        return [north(chosen("EPSG:27700", 4258, CrsRule(), made[place])) for _ in range(20)]

    with ThreadPoolExecutor(len(made)) as pool:
        for place, found in enumerate(pool.map(work, range(len(made)))):
            assert found == [pytest.approx(place + 1.0, abs=1e-6)] * 20


def test_the_settings_of_the_process_stay_as_they_are_and_reach_no_operation(tmp_path):
    before, network = pyproj.datadir.get_data_dir(), pyproj.network.is_network_enabled()
    one, other = folders(tmp_path, 1.0, 2.0)
    chosen("EPSG:27700", 4258, CrsRule(), one)
    assert (pyproj.datadir.get_data_dir(), pyproj.network.is_network_enabled()) == (before, network)
    try:
        pyproj.datadir.append_data_dir(one.folders[0])  # another library in the process
        operation = chosen("EPSG:27700", 4258, CrsRule(), other)
        assert north(operation) == pytest.approx(2.0, abs=1e-6)
    finally:
        pyproj.datadir.set_data_dir(before)
    assert operation.to_json() == chosen("EPSG:27700", 4258, CrsRule(), other).to_json()


def test_a_folder_that_is_none_is_refused(tmp_path):
    for name, words in (("gone", "not a folder"), ("a,b", "comma")):
        with pytest.raises(UsageError, match=words):
            GridFolders.of(str(tmp_path / name))


PAIRS = [
    "31467 25832",
    "4267 4269",
    "28992 4258",
    "4230 4258",
    "27200 2193",
    "27572 2154",
    "21781 2056",
    "4283 7844",
    "23030 25830",
    "9000 4258",
]


@pytest.mark.parametrize("pair", PAIRS)
def test_best_operation_and_pipelines_are_those_of_proj_where_it_has_all_grids(pair, tmp_path):
    source, target = map(int, pair.split())
    offered = _offered(of_code(source), of_code(target), None)
    for name in {name for each in offered for name in names_in(each.pipeline)}:
        tiff_grid(tmp_path / name)
    script = """if True:
        import json, sys, warnings, pyproj
        from pyproj.transformer import TransformerGroup
        warnings.simplefilter("ignore")
        pyproj.datadir.append_data_dir(sys.argv[3])
        group = TransformerGroup(int(sys.argv[1]), int(sys.argv[2]), always_xy=True)
        print(json.dumps([[each.description, each.definition] for each in group.transformers]))
    """
    found = subprocess.run([sys.executable, "-c", script, *pair.split(), str(tmp_path)], capture_output=True, text=True, check=True)
    theirs = json.loads(found.stdout)
    names = [" + ".join(each for each in name.split(" + ") if each != "axis order change (2D)") for name, _ in theirs]
    ways = [_Way.of(each, of_code(source), of_code(target), NONE) for each in offered]
    mine = [(each.name, each.pipeline) for each in ways]
    expected = list(zip(names, ["noop" if text.startswith("proj=noop") else text for _, text in theirs], strict=True))
    assert (mine[0], sorted(mine)) == (expected[0], sorted(expected))


def test_the_record_says_what_decides_the_numbers():
    record = chosen("EPSG:25832", 25833, CrsRule()).to_json()
    assert record["pipeline"].startswith("proj=pipeline")
    assert (record["source"], record["target"], record["accuracy_m"]) == ("EPSG:25832", "EPSG:25833", 0.0)
    assert record["proj"] == pyproj.proj_version_str
    assert record["database"]
    assert not pyproj.network.is_network_enabled()
