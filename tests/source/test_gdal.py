"""GDAL keeps its options per process: what reads a delivery sets them for its own calls alone."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pyogrio
import pytest
from shapely import Point

from estate import save
from merestone.source import gdal
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

ROWS = 40
BATCH = 10
OPTIONS = {**gdal._CONFIG, **gdal._ROW_BY_ROW}


def state():
    return {name: pyogrio.get_gdal_config_option(name) for name in OPTIONS}


@pytest.fixture
def users_own():
    """What the program around us has set, some of it against what we want."""
    before = state()
    pyogrio.set_gdal_config_options({"GDAL_PAM_ENABLED": "YES", "GML_SKIP_RESOLVE_ELEMS": "NONE", "OGR_GEOJSON_MAX_OBJ_SIZE": "0.001"})
    yield state()
    pyogrio.set_gdal_config_options(before)


@pytest.fixture
def opened(monkeypatch):
    """The options that held when GDAL opened a file, by the file's name."""
    held = {}
    real = pyogrio.open_arrow

    def opening(path, **options):
        made = real(path, **options)

        @contextmanager
        def entered():
            held.setdefault(path.rpartition("/")[2], []).append(state())
            with made as found:
                yield found

        return entered()

    monkeypatch.setattr(pyogrio, "open_arrow", opening)
    return held


def deliver(path):
    return save([{"pid": f"{path.stem}{n}", "geometry": Point(n, n)} for n in range(ROWS)], path)


@pytest.mark.parametrize("suffix", ["geojson", "gpkg", "fgb", "gml"])
def test_options_of_the_program_around_are_left_alone(tmp_path, users_own, suffix):
    source = open_source(SourceSpec(str(deliver(tmp_path / f"a.{suffix}"))))
    assert state() == users_own
    batches = source.batches(BATCH)
    next(batches)
    assert state() == users_own, "between two batches"
    assert sum(each.num_rows for each in batches) == ROWS - BATCH
    assert state() == users_own


def test_a_delivery_that_ends_early_takes_its_options_back(tmp_path, users_own, monkeypatch):
    monkeypatch.setattr(gdal, "fault_of", lambda *_: "bad")
    source = open_source(SourceSpec(str(deliver(tmp_path / "a.gpkg"))))
    with pytest.raises(gdal.SourceError, match="bad"):
        list(source.batches(BATCH))
    assert state() == users_own


def broken_for(name, monkeypatch):
    """The driver's own way to Arrow gives bad buffers for one file: it is read feature by feature from its third batch on."""
    seen = []

    def fault(batch, *_):
        mine = batch.column("pid")[0].as_py().startswith(name)
        seen.extend([0] if mine else [])
        return "bad" if mine and len(seen) == 3 else None

    monkeypatch.setattr(gdal, "fault_of", fault)


def texts(batches):
    return [text for batch in batches for text in batch.column("pid").to_pylist()]


def test_one_delivery_read_feature_by_feature_does_not_change_how_another_is_read(tmp_path, opened, monkeypatch):
    broken_for("a", monkeypatch)
    one, other = (open_source(SourceSpec(str(deliver(tmp_path / f"{name}.gpkg")))) for name in "ab")
    first = one.batches(BATCH)
    head = [next(first) for _ in range(3)]  # the third comes feature by feature, and its stream is open
    assert opened["a.gpkg"][-1]["OGR_GPKG_STREAM_BASE_IMPL"] == "YES"
    assert texts(other.batches(BATCH)) == [f"b{n}" for n in range(ROWS)]
    assert {each["OGR_GPKG_STREAM_BASE_IMPL"] for each in opened["b.gpkg"]} == {None}
    assert texts([*head, *first]) == [f"a{n}" for n in range(ROWS)]


def test_the_same_in_two_threads(tmp_path, opened, monkeypatch):
    broken_for("a", monkeypatch)
    one, other = (open_source(SourceSpec(str(deliver(tmp_path / f"{name}.gpkg")))) for name in "ab")
    before, turn, found = state(), threading.Barrier(2), {}

    def read(name, source):
        turn.wait()
        found[name] = texts(source.batches(BATCH))

    threads = [threading.Thread(target=read, args=each) for each in (("a", one), ("b", other))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {name: [f"{name}{n}" for n in range(ROWS)] for name in "ab"}
    assert {each["OGR_GPKG_STREAM_BASE_IMPL"] for each in opened["b.gpkg"]} == {None}
    assert state() == before
