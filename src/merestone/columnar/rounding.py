"""The one rounding of doubles to a grid of powers of ten (docs/spec/fingerprint.md, Rounding), in NumPy: ordinates and number fields alike.

    q = the integer nearest to the exact binary value of x times 10^p, ties to even

The compiled extensions have the same in `_rounding.h`, and its comment says why a product of doubles is enough but for halves.

Not here: which grid a column has (`contract`, `identity.grid`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar.arrays import plain

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

GRID_LIMIT = 2**50  # |q| beyond it: rounding would not be idempotent, so the double's own bits stand
RAW_PRECISION = 99  # a "precision" that keeps each double as it is
MOST_POWER = 22  # the largest power of ten that a double holds exactly
NAN_BITS = 0x7FF8000000000000
NO_MEASURE = -(2**63)  # the integer of an M that is NaN
_SPLIT = 2.0**27 + 1  # Veltkamp's constant


def on_grid(q: Ints) -> Mask:
    """Which integers are multiples of the grid rather than the bits of a double."""
    return (q <= GRID_LIMIT) & (q >= -GRID_LIMIT)


def to_grid(values: Floats, precision: int, out: Ints) -> bool:
    """Write the integer of each double to `out`; what cannot lie on the grid keeps its bits. Says whether all lie on the grid."""
    if precision == RAW_PRECISION:
        held = np.zeros(len(values), np.bool_)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            factor = 10.0 ** abs(precision)
            product = values * factor if precision >= 0 else values / factor
            held = np.abs(product) < 2.0**51
            whole = bool(held.all())
            product = product if whole else np.where(held, product, 0.0)
        q = np.rint(product)
        halves = np.flatnonzero(np.abs(product - q) == 0.5)
        if len(halves):
            q[halves] = _at_half(values[halves], product[halves], q[halves], factor, fine=precision >= 0)
        out[:] = q
        held &= on_grid(out)
        if held.all():
            return True
    bits = np.where(np.isnan(values), np.nan, np.where(values == 0, 0.0, values)).view(np.int64)
    out[~held] = bits[~held]
    return False


def _at_half(x: Floats, product: Floats, even: Floats, factor: float, *, fine: bool) -> Floats:
    """The whole number nearest to the exact product, where the rounded one is a half: the sign of what rounding lost decides."""
    if fine:
        high, low = _two_product(x, factor)
        lost = (high - product) + low  # high is the product
    else:
        high, low = _two_product(product, factor)
        lost = (x - high) - low
    return np.where(lost == 0, even, np.where(lost > 0, np.ceil(product), np.floor(product)))


def _two_product(a: Floats, b: float) -> tuple[Floats, Floats]:
    """The product of doubles and its error, exactly (Dekker 1971); no overflow, since products are below 2^75 where this is asked."""
    high = a * b
    a1, b1 = _SPLIT * a, _SPLIT * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)


def from_grid(q: Ints, precision: int) -> Floats:
    """The double that is stored for each integer: one division, or for tens and hundreds one product."""
    held = on_grid(q)
    plain = np.where(held, q, 0)
    floats = plain / 10.0**precision if precision >= 0 else plain * 10.0**-precision
    return np.where(held, floats, np.where(q == NO_MEASURE, np.nan, q.view(np.float64)))


def to_grid_one(value: float, precision: int) -> int:
    """`to_grid` of one double."""
    if precision != RAW_PRECISION:
        product = value * 10.0**precision if precision >= 0 else value / 10.0**-precision
        if abs(product) < 2.0**51:
            q = round(product)
            if abs(product - q) == 0.5:
                q = round(Fraction(value) * Fraction(10) ** precision)
            if abs(q) <= GRID_LIMIT:
                return q
    if value != value:  # noqa: PLR0124 - NaN
        return NAN_BITS
    return int(struct.unpack("<q", struct.pack("<d", value + 0.0))[0])


def from_grid_one(q: int, precision: int) -> float:
    """`from_grid` of one integer."""
    if abs(q) <= GRID_LIMIT:
        return q / 10.0**precision if precision >= 0 else q * 10.0**-precision
    return float(struct.unpack("<d", struct.pack("<q", NAN_BITS if q == NO_MEASURE else q))[0])


# ---- number fields ----


@dataclass(frozen=True, slots=True)
class NumberGrid:
    """To what the values of a number field are kept: so many decimals, or so many significant digits (exactly one of both; 0 to 15, 1 to 15)."""

    decimals: int | None = None
    digits: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """As a domain has it."""
        return {"decimals": self.decimals} if self.digits is None else {"digits": self.digits}

    def words(self) -> str:
        """Such as `2 decimals`."""
        return f"{self.decimals} decimals" if self.digits is None else f"{self.digits} significant digits"

    def finer(self, more: int) -> NumberGrid:
        """The same with so many decimals or digits more, as far as doubles hold them."""
        if self.digits is not None:
            return NumberGrid(digits=min(self.digits + more, 15))
        return NumberGrid(decimals=min((self.decimals or 0) + more, 15))

    def places(self, values: Floats) -> Ints:
        """The decimals to which each value is kept: (n,); 99 for values that keep their own bits (not finite, out of range)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            size = np.abs(values)
            if self.digits is None:
                decimals = self.decimals or 0
                return np.where(size * 10.0 ** (decimals + 3) < 2.0**53, decimals, RAW_PRECISION)
            # Where the logarithm rounds up to a whole number, the value is nearer to that power of ten than its 15th digit.
            place = self.digits - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
            held = np.isfinite(size) & (np.abs(place) <= MOST_POWER)
        return np.where(held, place, RAW_PRECISION).astype(np.int64)

    def rounded(self, values: Floats) -> Floats:
        """The values as they are stored: each the double nearest to its decimal."""
        places = self.places(values)
        out = np.array(values, np.float64)
        for place in np.unique(places):
            if place != RAW_PRECISION:
                here = places == place
                q = np.empty(int(here.sum()), np.int64)
                to_grid(values[here], int(place), q)
                out[here] = from_grid(q, int(place))
        return out + 0.0  # -0.0 is 0.0

    def near(self, delivered: Floats, published: Floats, noise: float) -> Mask:
        """Whether each delivered value lies within (1/2 + noise) steps of the published one, by the step of the published one."""
        places = self.places(published)
        with np.errstate(invalid="ignore", over="ignore"):
            limit = (0.5 + noise) * 10.0 ** -places.astype(np.float64) + np.abs(published) * 2.0**-51
            close: Mask = (places != RAW_PRECISION) & (np.abs(delivered - published) <= limit)
        return close


def number_column(array: pa.Array, grid: NumberGrid) -> tuple[Any, Ints]:
    """A column of floats as it is stored, and the rows whose numbers keep their own bits: infinite, or out of range."""
    values = plain(array)
    mask = np.asarray(values.is_null()) if values.null_count else None
    floats = np.asarray(values.fill_null(0)).astype(np.float64)
    beyond = np.flatnonzero((grid.places(floats) == RAW_PRECISION) & ~np.isnan(floats))
    return pa.array(grid.rounded(floats), mask=mask), beyond
