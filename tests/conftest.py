"""Fixtures for tests of any room."""

from __future__ import annotations

import pytest

from estate import Estate
from iso_schemas import Schemas


@pytest.fixture
def estate(tmp_path):
    """Makes products below the test's folder: `estate(fields, **clauses)`."""
    made = []

    def make(fields=(), **clauses):
        made.append(Estate(tmp_path / f"product{len(made)}", fields, **clauses))
        return made[-1]

    return make


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """The published ISO schemas; skips where their wheels are not at hand."""
    return Schemas(tmp_path_factory.mktemp("schemas"))
