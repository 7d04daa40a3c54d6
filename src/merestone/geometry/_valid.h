/* Which geometries are valid beyond doubt (Simple Features, OGC 06-103r4 section 6.1): nearly all that there are, so that few need GEOS.
 *
 * Whatever is not certain is left in doubt: touching rings, repeated vertices, collections, and segments so close that the sign of an
 * orientation is lost in the rounding of doubles (Shewchuk 1997, Adaptive Precision Floating-Point Arithmetic, section 4.1, bound A).
 */
#ifndef MERESTONE_VALID_H
#define MERESTONE_VALID_H

#include "_wkb.h"

#define ORIENTATION_ERROR 3.3306690738754716e-16  /* (3 + 16 e) e with e = 2^-53 */
#define DIRECTION_ERROR 1e-15                     /* of a sum of two products of differences: less than 8 e */
#define UNDERFLOW_ERROR 1e-290                    /* where products are so small, their error is not relative */
#define ALL_PAIRS 40                              /* segments up to which each is held against each, without sorting */
#define MOST_PAIRS 64                             /* per segment: a geometry that needs more is left to GEOS, which has an index */
#define MOST_RINGS 200                            /* held against each other pair by pair */

typedef struct {
    double west, south, east, north;
} Box2;

typedef struct {
    double ax, ay, bx, by;
    Box2 box;
    size_t ring;
} Segment;

typedef struct {
    size_t first, n;  /* its segments */
    int part, hole;
    Box2 box;
} Ring;

typedef struct {
    Visitor visitor;
    int doubt, part, rings_of_part;
    Segment *segments;
    const Segment **order;
    Ring *rings;
    size_t segments_n, segments_room, order_room, rings_n, rings_room;
} Soundness;

static int sound_head(Visitor *visitor, const Head *head, uint32_t count)
{
    Soundness *s = (Soundness *)visitor;
    if (head->type > MULTIPOLYGON || count == 0)
        s->doubt = 1;
    if (head->type == POLYGON) {
        s->part++;
        s->rings_of_part = 0;
    }
    return 1;
}

static inline Box2 box_of(double ax, double ay, double bx, double by)
{
    Box2 box = {ax < bx ? ax : bx, ay < by ? ay : by, ax > bx ? ax : bx, ay > by ? ay : by};
    return box;
}

static inline int overlap(const Box2 *a, const Box2 *b)
{
    return (a->west <= b->east) & (b->west <= a->east) & (a->south <= b->north) & (b->south <= a->north);
}

static int room_for(void **at, size_t *room, size_t wanted, size_t size)
{
    void *more;
    if (wanted <= *room)
        return 1;
    if (!(more = realloc(*at, 2 * wanted * size)))
        return 0;
    *at = more;
    *room = 2 * wanted;
    return 1;
}

static int sound_ring(Soundness *s, const Head *head, const uint8_t *at, uint32_t n)
{
    size_t stride = 8 * (size_t)dimensions(head);
    double ax = load_double(at, head->swap), ay = load_double(at + 8, head->swap);
    Ring *ring;
    Segment *segment;
    if (n < 4 || !(ax - ax == 0) || !(ay - ay == 0)) {
        s->doubt = 1;
        return 1;
    }
    if (!room_for((void **)&s->segments, &s->segments_room, s->segments_n + n, sizeof *s->segments)
        || !room_for((void **)&s->rings, &s->rings_room, s->rings_n + 1, sizeof *s->rings))
        return NO_MEMORY;
    ring = &s->rings[s->rings_n];
    *ring = (Ring){s->segments_n, n - 1, s->part, s->rings_of_part++ > 0, {ax, ay, ax, ay}};
    segment = &s->segments[s->segments_n];
    for (uint32_t i = 1; i < n; i++, segment++) {
        double bx, by;
        at += stride;
        bx = load_double(at, head->swap);
        by = load_double(at + 8, head->swap);
        if (!(bx - bx == 0) || !(by - by == 0)) {  /* NaN or infinite */
            s->doubt = 1;
            return 1;
        }
        *segment = (Segment){ax, ay, bx, by, box_of(ax, ay, bx, by), s->rings_n};
        ring->box.west = bx < ring->box.west ? bx : ring->box.west;
        ring->box.east = bx > ring->box.east ? bx : ring->box.east;
        ring->box.south = by < ring->box.south ? by : ring->box.south;
        ring->box.north = by > ring->box.north ? by : ring->box.north;
        ax = bx;
        ay = by;
    }
    if (ax != s->segments[ring->first].ax || ay != s->segments[ring->first].ay)
        s->doubt = 1;
    s->segments_n += n - 1;
    s->rings_n++;
    return 1;
}

static int sound_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Soundness *s = (Soundness *)visitor;
    size_t stride = 8 * (size_t)dimensions(head);
    double x0, y0;
    int moves = head->type == POINT;
    if (s->doubt || n == 0) {
        s->doubt = 1;
        return 1;
    }
    if (ring)
        return sound_ring(s, head, at, n);
    x0 = load_double(at, head->swap);
    y0 = load_double(at + 8, head->swap);
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double x = load_double(at, head->swap), y = load_double(at + 8, head->swap);
        if (!(x - x == 0) || !(y - y == 0))
            s->doubt = 1;
        moves |= x != x0 || y != y0;
    }
    if (!moves)  /* a line is valid where it has two positions */
        s->doubt = 1;
    return 1;
}

/* On which side of a segment's line a position lies: 1 left, -1 right, 0 not certain. */
static inline int side_of(const Segment *s, double x, double y)
{
    double l = (s->bx - s->ax) * (y - s->ay), r = (s->by - s->ay) * (x - s->ax);
    double area = l - r, error = ORIENTATION_ERROR * (fabs(l) + fabs(r)) + UNDERFLOW_ERROR;
    return (area > error) - (area < -error);
}

/* Whether two segments surely have no position in common. */
static int surely_apart(const Segment *a, const Segment *b)
{
    int one = side_of(a, b->ax, b->ay);
    if (one && one == side_of(a, b->bx, b->by))
        return 1;
    one = side_of(b, a->ax, a->ay);
    return one && one == side_of(b, a->bx, a->by);
}

/* Whether a segment and the one that goes on from its end surely have nothing else in common: it turns, or goes on forward. */
static int surely_goes_on(const Segment *a, const Segment *b)
{
    double x, y;
    if (side_of(a, b->bx, b->by))
        return 1;
    x = (a->bx - a->ax) * (b->bx - b->ax);
    y = (a->by - a->ay) * (b->by - b->ay);
    return x + y > DIRECTION_ERROR * (fabs(x) + fabs(y)) + UNDERFLOW_ERROR;
}

/* Of two segments whose boxes overlap, the one that was delivered first first. */
static int surely_sound_pair(const Soundness *s, const Segment *a, const Segment *b)
{
    const Ring *ring = &s->rings[a->ring];
    if (a + 1 == b && a->ring == b->ring)
        return surely_goes_on(a, b);
    if (a->ring == b->ring && a == s->segments + ring->first && b == a + ring->n - 1)
        return surely_goes_on(b, a);
    return surely_apart(a, b);
}

static int compare_west(const void *left_side, const void *right_side)
{
    const Segment *a = *(const Segment *const *)left_side, *b = *(const Segment *const *)right_side;
    return (a->box.west > b->box.west) - (a->box.west < b->box.west);
}

/* Whether no two segments surely meet but where one goes on from the other. NO_MEMORY without memory. */
static int surely_simple(Soundness *s)
{
    size_t n = s->segments_n;
    double effort = MOST_PAIRS * (double)n;
    if (n <= ALL_PAIRS) {
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++)
                if (overlap(&s->segments[i].box, &s->segments[j].box) && !surely_sound_pair(s, &s->segments[i], &s->segments[j]))
                    return 0;
        return 1;
    }
    if (!room_for((void **)&s->order, &s->order_room, n, sizeof *s->order))
        return NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        s->order[i] = &s->segments[i];
    qsort(s->order, n, sizeof *s->order, compare_west);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n && s->order[j]->box.west <= s->order[i]->box.east; j++) {
            const Segment *a = s->order[i], *b = s->order[j];
            if (--effort < 0)
                return 0;
            if (overlap(&a->box, &b->box) && !(a < b ? surely_sound_pair(s, a, b) : surely_sound_pair(s, b, a)))
                return 0;
        }
    return 1;
}

/* Whether the first vertex of a ring lies within another that it does not meet: 1, 0, or -1 where that is not certain. */
static int lies_within(const Soundness *s, const Ring *ring, const Ring *outer)
{
    double x = s->segments[ring->first].ax, y = s->segments[ring->first].ay;
    int within = 0;
    for (size_t i = outer->first; i < outer->first + outer->n; i++) {
        const Segment *segment = &s->segments[i];
        int side;
        if ((segment->ay > y) == (segment->by > y))
            continue;
        if (!(side = side_of(segment, x, y)))
            return -1;
        within ^= (side > 0) == (segment->by > segment->ay);
    }
    return within;
}

/* Whether rings that do not meet surely stand as polygons want them: holes in their shell, all others beside each other. */
static int surely_arranged(const Soundness *s)
{
    if (s->rings_n > MOST_RINGS)
        return 0;
    for (size_t i = 0; i < s->rings_n; i++) {
        const Ring *one = &s->rings[i];
        for (size_t j = i + 1; j < s->rings_n; j++) {
            const Ring *other = &s->rings[j];
            if (one->part == other->part && !one->hole) {  /* a shell comes before its holes */
                if (lies_within(s, other, one) != 1)
                    return 0;
            } else if ((one->part == other->part || (!one->hole && !other->hole)) && overlap(&one->box, &other->box)
                       && (lies_within(s, one, other) != 0 || lies_within(s, other, one) != 0)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Whether one WKB value is valid beyond doubt. NO_MEMORY without memory. */
static int surely_valid(Soundness *s, Bytes in)
{
    Head head;
    int rc;
    s->visitor = (Visitor){sound_head, sound_run};
    s->doubt = s->part = s->rings_of_part = 0;
    s->segments_n = s->rings_n = 0;
    if ((rc = walk(&in, &s->visitor, &head)) < 0)
        return rc == NO_MEMORY ? rc : 0;
    if (s->doubt)
        return 0;
    return (rc = surely_simple(s)) == 1 ? surely_arranged(s) : rc;
}

static void soundness_free(Soundness *s)
{
    free(s->segments);
    free(s->order);
    free(s->rings);
}

#endif
