"""The benches start: none of them imports what is not there any more. What they measure is run by hand, and told in the documents."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = sorted((Path(__file__).parents[2] / "bench").glob("*.py"))


@pytest.mark.parametrize("script", BENCHES, ids=lambda each: each.stem)
def test_a_bench_tells_its_usage(script):
    told = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("usage:")
