/* The one rounding of doubles to a grid of powers of ten (docs/spec/fingerprint.md, Rounding): ordinates and number fields alike.
 *
 *     q = the integer nearest to the exact binary value of x times 10^p, ties to even
 *
 * The product h = x * 10^p is off by at most half a unit in its last place, and below 2^51 all halves are whole numbers of such units. So
 * nearness to h and to the exact product can differ only where h itself is a half: there the error of the product, which fma gives exactly
 * (Ogita, Rump, Oishi 2005, Accurate Sum and Dot Product, section 3), decides.
 */
#ifndef MERESTONE_ROUNDING_H
#define MERESTONE_ROUNDING_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define GRID_LIMIT ((int64_t)1 << 50)  /* |q| beyond it: rounding would not be idempotent, so the double's own bits stand */
#define RAW 99                         /* a "precision" that keeps each double as it is */

typedef struct {
    int precision;
    double factor;  /* 10^|precision| */
} Scale;

static const double POWER_OF_TEN[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
                                      1e19, 1e20, 1e21, 1e22};
#define MOST_POWER 22  /* the largest power of ten that a double holds exactly */

static inline Scale make_scale(int precision)
{
    int size = precision < 0 ? -precision : precision;
    Scale scale = {precision, precision == RAW ? 1.0 : POWER_OF_TEN[size > MOST_POWER ? MOST_POWER : size]};
    return scale;
}

static inline int64_t bits_of(double value)
{
    int64_t bits;
    if (isnan(value))
        return 0x7ff8000000000000;
    if (value == 0)
        return 0;
    memcpy(&bits, &value, 8);
    return bits;
}

static inline int on_grid(int64_t q)
{
    return q <= GRID_LIMIT && q >= -GRID_LIMIT;
}

/* x * 10^p, rounded once. */
static inline double scaled(double x, const Scale *scale)
{
    return scale->precision >= 0 ? x * scale->factor : x / scale->factor;
}

/* The whole number nearest to h, ties to even; |h| < 2^51. */
static inline double nearest(double h)
{
    return (h + 0x1.8p52) - 0x1.8p52;
}

/* The whole number nearest to the exact product, where h = scaled(x) is a half and `even` the even neighbour. */
static inline double nearest_at_half(double x, double h, double even, const Scale *scale)
{
    double over = scale->precision >= 0 ? fma(x, scale->factor, -h) : fma(-h, scale->factor, x);  /* the sign of exact minus h */
    if (over == 0)
        return even;
    return over > 0 ? ceil(h) : floor(h);
}

/* The integer of one double; what cannot lie on the grid keeps its bits. */
static inline int64_t to_grid(double x, const Scale *scale)
{
    double h, q;
    if (scale->precision == RAW)
        return bits_of(x);
    h = scaled(x, scale);
    if (!(fabs(h) < 0x1p51))
        return bits_of(x);
    q = nearest(h);
    if (fabs(h - q) == 0.5)
        q = nearest_at_half(x, h, q, scale);
    return fabs(q) <= (double)GRID_LIMIT ? (int64_t)q : bits_of(x);
}

/* The double that is stored for q: one division, or for tens and hundreds one product. */
static inline double from_grid(int64_t q, const Scale *scale)
{
    double value;
    if (on_grid(q))
        return scale->precision >= 0 ? (double)q / scale->factor : (double)q * scale->factor;
    if (q == INT64_MIN)  /* no measure */
        q = 0x7ff8000000000000;
    memcpy(&value, &q, 8);
    return value;
}

#endif
