"""How fine a grid is: the range within which doubles hold it, and the grid of the source digest (docs/spec/fingerprint.md#two-digests).

Not here: rounding itself, which has one implementation (`geometry`).
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from merestone.geometry.kernel_values import MOST_DECIMALS

MOST_PRECISION = 15


def range_limit(max_ordinate: float) -> int:
    """The most decimals for which max_ordinate x 10^(decimals + 3) stays below 2^53; -18 to 15.

    `max_ordinate` is the largest absolute ordinate of the area of use: 180 gives 10, 10,000,000 gives 5.
    """
    if not isfinite(max_ordinate) or max_ordinate < 0:
        raise ValueError(f"an area of use has finite ordinates, not {max_ordinate}")
    size = Fraction(max_ordinate)
    return next((p for p in range(MOST_PRECISION, -MOST_DECIMALS, -1) if size * Fraction(10) ** (p + 3) < 2**53), -MOST_DECIMALS)


def source_grid(contract_precision: int, contract_unit_m: float, source_unit_m: float, source_max_ordinate: float) -> int:
    """Decimals of the source digest's grid, in source units, where the source's CRS is not the contract's.

    The coarsest power of ten of source units that is not above 1/100 of the contract's grid on the ground, never finer than the range
    rule allows. Units are given in metres (a degree counts as 111,320 m). With equal CRS the contract's own grid is used instead.
    """
    ground = Fraction(10) ** -contract_precision * Fraction(contract_unit_m) / 100
    step = ground / Fraction(source_unit_m)
    # A unit such as 0.3048 is not exact in binary; a millionth keeps 0.01 from counting as just below 0.01.
    step *= 1 + Fraction(1, 1_000_000)
    wanted = next((p for p in range(-MOST_DECIMALS, MOST_DECIMALS) if Fraction(10) ** -p <= step), MOST_DECIMALS)
    return min(wanted, range_limit(source_max_ordinate))


def decimals_of_grid(grid: float) -> int:
    """The decimals of a grid that is given as a length, such as 7 for 1e-7 and -1 for 10.

    Raises:
        ValueError: the grid is not a power of ten between 1e-15 and 1e15.
    """
    if isinstance(grid, bool) or not isinstance(grid, (int, float)):
        raise ValueError(f"the grid has to be a power of ten such as 1e-7, not {grid!r}")  # noqa: TRY004 - one error for a bad grid
    for precision in range(-MOST_PRECISION, MOST_PRECISION + 1):
        power = 10.0**-precision
        if abs(grid - power) <= 1e-12 * power:
            return precision
    raise ValueError(f"the grid has to be a power of ten such as 1e-7, not {grid!r}")
