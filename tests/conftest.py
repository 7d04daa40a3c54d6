"""Fixtures for tests of any room."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from estate import Estate
from iso_schemas import Schemas
from kernels import PATHS, on
from stores import fresh

# No test is about a time: on a machine that others use too, any example may take long.
settings.register_profile("merestone", deadline=None, suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.too_slow])
settings.load_profile("merestone")


IN_MEMORY = Path("/dev/shm")  # noqa: S108 - Linux's disk in memory
ROOM = 4 << 30


def pytest_configure(config):
    """Temporary files rest in memory where there is room, unless somebody says where: tests sync a hundred thousand small files.

    Processes that are started from here inherit the place: the workers, and commands under test.
    """
    config.in_memory = None
    if config.option.basetemp is not None or "TMPDIR" in os.environ or not os.access(IN_MEMORY, os.W_OK | os.X_OK):
        return
    for old in IN_MEMORY.glob("merestone-tests-*"):  # of runs that were killed
        if not Path("/proc", old.name.rpartition("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    disk = os.statvfs(IN_MEMORY)
    if disk.f_bavail * disk.f_frsize >= ROOM:
        config.in_memory = IN_MEMORY / f"merestone-tests-{os.getpid()}"
        config.in_memory.mkdir(mode=0o700)
        os.environ["TMPDIR"] = tempfile.tempdir = str(config.in_memory)


def pytest_unconfigure(config):
    """What killed processes left is gone, too."""
    if config.in_memory is not None:
        shutil.rmtree(config.in_memory, ignore_errors=True)


def pytest_report_header():
    """Which path the tests take: a compiled extension that was built from other sources than these is not used."""
    compiled = "compiled" in PATHS
    return "kernel: compiled" if compiled else "kernel: NumPy, slow; build the extensions with `python setup.py build_ext --inplace`"


def pytest_xdist_auto_num_workers():
    """`-n auto`: one more than there are cores, since tests wait for processes and disks about a quarter of their time."""
    return len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)) + 1


def pytest_addoption(parser):
    parser.addoption("--store", choices=("local", "memory"), default="local", help="where the products of tests are published")


@pytest.fixture
def store_kind(request):
    """Where products are published: `--store`, or what a test says."""
    return request.config.getoption("--store")


@pytest.fixture
def estate(tmp_path, store_kind):
    """Makes products below the test's folder: `estate(fields, **clauses)`."""
    made = []

    def make(fields=(), **clauses):
        made.append(Estate(tmp_path / f"product{len(made)}", fields, store=fresh() if store_kind == "memory" else None, **clauses))
        return made[-1]

    return make


@pytest.fixture(params=PATHS)
def each_kernel(request):
    """The test is run with the compiled kernel and with the NumPy path, where both are at hand."""
    with on(request.param):
        yield request.param


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """The published ISO schemas; skips where their wheels are not at hand."""
    return Schemas(tmp_path_factory.mktemp("schemas"))
