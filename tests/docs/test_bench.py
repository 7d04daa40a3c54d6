"""Every bench runs to its end on small data. What they measure on large data is run by hand, and stands in the documents."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SMALL = {
    "fingerprint": ("--points", "500", "--polygons", "500", "--files", "200"),
    "gate": ("--rows", "2000", "--peer-rows", "200"),
    "history": ("--files", "20", "--versions", "4", "--touched", "3"),
    "lineage": ("2000",),
    "night": ("--features", "500"),
    "publish": ("--features", "500"),
    "topology": ("--rows", "2000", "--night", "500"),
}


def test_every_bench_is_run_here():
    helpers = {"estate"}
    assert {each.stem for each in BENCH.glob("*.py")} - helpers == set(SMALL)


# Three of them start many processes: `make soak` runs these.
SLOW = {"history", "night", "publish"}


@pytest.mark.parametrize("name", [pytest.param(each, marks=pytest.mark.soak) if each in SLOW else each for each in SMALL])
def test_a_bench_runs_to_its_end(name):
    done = subprocess.run([sys.executable, BENCH / f"{name}.py", *SMALL[name]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
