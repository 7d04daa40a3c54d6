"""Fixtures for tests of any room."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from estate import Estate
from iso_schemas import Schemas
from kernels import PATHS, on
from stores import fresh

# No test is about a time: on a machine that others use too, any example may take long.
settings.register_profile("merestone", deadline=None, suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.too_slow])
settings.load_profile("merestone")


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
