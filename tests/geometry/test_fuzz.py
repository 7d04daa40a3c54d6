"""The fuzz target runs for a moment with every test run, so that it stays fit to run for long (`make sanitize`)."""

from __future__ import annotations

import pytest

from geometry import fuzz
from kernels import PATHS


@pytest.mark.skipif(len(PATHS) < 2, reason="the extensions are not built here, so there is nothing to compare")
def test_both_paths_agree_on_what_is_drawn():
    assert fuzz.main(seconds=2.0, seed=7) > 5
