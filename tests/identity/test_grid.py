"""The range rule, the source digest's grid, and grids given as lengths."""

from __future__ import annotations

import math

import pytest

from merestone.identity.grid import decimals_of_grid, range_limit, source_grid
from merestone.reference.ground import METRES_PER_DEGREE


def test_range_rule():
    assert range_limit(180.0) == 10
    assert range_limit(10_000_000.0) == 5
    assert range_limit(9.007e5) == 7
    assert range_limit(9.01e5) == 6
    assert range_limit(9.1e6) == 5
    assert range_limit(0.0) == 15
    assert range_limit(1e30) == -18
    for size in (1.0, 180.0, 6.5e5, 1e7, 2e7):
        most = range_limit(size)
        assert size * 10 ** (most + 3) < 2**53 <= size * 10 ** (most + 4)
    for bad in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="finite"):
            range_limit(bad)


@pytest.mark.parametrize(
    ("contract", "unit", "source_unit", "largest", "expected"),
    [
        (2, 1.0, 1.0, 1e7, 4),  # metres to metres: a hundredth of a centimetre
        (2, 1.0, METRES_PER_DEGREE, 180.0, 10),  # 1e-4 m is 9e-10 degrees: 1e-10, as fine as the range rule allows
        (0, 1.0, METRES_PER_DEGREE, 180.0, 8),  # 0.01 m is 9e-8 degrees
        (7, METRES_PER_DEGREE, 1.0, 1e7, 4),  # 1e-7 degrees is 11 mm, a hundredth of it 1.1e-4 m
        (7, METRES_PER_DEGREE, 1.0, 1e9, 3),  # the range rule holds it back
        (0, METRES_PER_DEGREE, 1.0, 1e7, -3),  # a grid of whole degrees
        (3, 1.0, 0.3048, 1e6, 5),  # feet: 1e-5 m is 3.3e-5 ft
        (3, 0.3048, 0.3048, 1e6, 5),
    ],
)
def test_source_grid(contract, unit, source_unit, largest, expected):
    precision = source_grid(contract, unit, source_unit, largest)
    assert precision == expected
    assert precision <= range_limit(largest)
    if precision < range_limit(largest):  # neither too coarse nor finer than needed
        wanted = 10.0**-contract * unit / 100
        assert 10.0**-precision * source_unit <= wanted * 1.00001 < 10.0 ** -(precision - 1) * source_unit * 1.0001


def test_grids_as_lengths():
    for precision in range(-15, 16):
        assert decimals_of_grid(10.0**-precision) == precision
        assert decimals_of_grid(float(f"1e{-precision}")) == precision
    assert decimals_of_grid(10) == -1
    assert decimals_of_grid(0.1**3) == 3
    for bad in (0.0, -1e-3, 2e-3, 5e-7, math.nan, math.inf, 1e-16, 1.0000001e-3, True, "1e-3", None):
        with pytest.raises(ValueError, match="power of ten"):
            decimals_of_grid(bad)
