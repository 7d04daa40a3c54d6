/* How far one geometry lies from another: the size of a change, and whether a difference is only noise.
 *
 * Distances are planar, in the units of the coordinates. Measures of effort bound the time that hostile input can take.
 */
#ifndef MERESTONE_MOVE_H
#define MERESTONE_MOVE_H

#include "_wkb.h"

#define EFFORT 20000000.0   /* comparisons spent on one pair of geometries (or on aligning one pair of rings) */
#define PAIRED_PARTS 200    /* more parts than this are not paired, their outlines are compared */

typedef struct {
    size_t first, n;  /* vertices, without repeats and without a ring's closing vertex */
    double x;         /* least x: what runs are sorted by */
} Run;

typedef struct {
    uint32_t type;
    int level, bits;
    size_t first, n;  /* runs: one for a point or line, the rings of a polygon */
    double x;
} Part;

typedef struct {
    Visitor visitor;
    double *vertices;  /* x, y, z, m each; 0 where there is none */
    Run *runs;
    Part *parts;
    size_t vertices_n, vertices_room, runs_n, runs_room, parts_n, parts_room;
    size_t members;    /* of collections, at any depth; empty ones count too */
    int keep;          /* dimension bits that count */
} Outline;

static void *grown(void *data, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return data;
    size_t more = n * 2 + 16;
    void *bigger = realloc(data, more * size);
    if (bigger)
        *room = more;
    return bigger;
}

static int outline_head(Visitor *visitor, const Head *head, uint32_t count)
{
    Outline *o = (Outline *)visitor;
    if (is_container(head->type)) {
        if (head->type > MULTIPOLYGON)
            o->members += count;
        return 1;
    }
    if (count == 0)
        return 1;
    Part *parts = grown(o->parts, o->parts_n, &o->parts_room, sizeof *parts);
    if (!parts)
        return NO_MEMORY;
    o->parts = parts;
    Part part = {head->type, head->level, (head->z | head->m << 1) & o->keep, o->runs_n, 0, INFINITY};
    o->parts[o->parts_n++] = part;
    return 1;
}

static int outline_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Outline *o = (Outline *)visitor;
    Part *part = &o->parts[o->parts_n - 1];
    size_t stride = 8 * (size_t)dimensions(head), first = o->vertices_n;
    int repeats_go = head->type != CIRCULAR;
    Run *runs = grown(o->runs, o->runs_n, &o->runs_room, sizeof *runs);
    double *vertices;
    if (!runs)
        return NO_MEMORY;
    o->runs = runs;
    if (!(vertices = grown(o->vertices, (first + n + 1) * 4, &o->vertices_room, sizeof *vertices)))
        return NO_MEMORY;
    o->vertices = vertices;
    Run run = {first, 0, INFINITY};
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double *to = vertices + (first + run.n) * 4;
        to[0] = load_double(at, head->swap);
        to[1] = load_double(at + 8, head->swap);
        to[2] = head->z && (o->keep & 1) ? load_double(at + 16, head->swap) : 0;
        to[3] = head->m && (o->keep & 2) ? load_double(at + 16 + 8 * head->z, head->swap) : 0;
        if (repeats_go && run.n && memcmp(to - 4, to, 32) == 0)
            continue;
        if (to[0] < run.x)
            run.x = to[0];
        run.n++;
    }
    while (ring && run.n > 1 && memcmp(vertices + first * 4, vertices + (first + run.n - 1) * 4, 32) == 0)
        run.n--;
    o->vertices_n = first + run.n;
    if (run.n == 0)
        return 1;
    if (run.x < part->x)
        part->x = run.x;
    o->runs[o->runs_n++] = run;
    part->n++;
    return 1;
}

static void outline_free(Outline *o)
{
    free(o->vertices);
    free(o->runs);
    free(o->parts);
}

/* Fill an outline; its head tells the outermost type. A part whose rings were all empty is no part. */
static int outline_of(const uint8_t *at, size_t size, int keep, Outline *o, Head *head)
{
    Bytes in = {at, at + size};
    int rc;
    o->visitor.head = outline_head;
    o->visitor.run = outline_run;
    o->vertices_n = o->runs_n = o->parts_n = o->members = 0;
    o->keep = keep;
    if ((rc = walk(&in, &o->visitor, head)) < 0)
        return rc;
    size_t n = 0;
    for (size_t i = 0; i < o->parts_n; i++)
        if (o->parts[i].n)
            o->parts[n++] = o->parts[i];
    o->parts_n = n;
    return 1;
}

static inline uint32_t multi_of(uint32_t type)
{
    return type <= POLYGON ? type + 3 : type;
}

/* ---- within: the same but for noise ---- */

typedef struct {
    double limit[4];
    int either_way;
    const Outline *a, *b;
    uint8_t *reach;   /* scratch: positions of b that a prefix of a can have reached */
    size_t reach_room;
    double effort;    /* what is left of it; when it is used up, the two count as different */
    int no_memory;
} Near;

/* A limit plus what doubles of this size may be off by their own rounding: two or three units in the last place. */
static inline double allowed(const Near *near, int k, double ordinate)
{
    return near->limit[k] + ldexp(fabs(ordinate), -51);
}

static inline int near_vertex(const Near *near, const double *a, const double *b)
{
    for (int k = 0; k < 4; k++) {
        double apart = fabs(a[k] - b[k]);
        if (!(apart <= allowed(near, k, b[k]) && apart < INFINITY) && !(isnan(a[k]) && isnan(b[k]) && k == 3))
            return 0;
    }
    return 1;
}

/* Whether the vertices of `a`, from `start` in direction `step`, follow those of `b` one after the other: each lies near its
 * counterpart, and none of b is left out. Neighbours in `a` may share a counterpart, since the grid drops repeats. */
static int follows(Near *near, const double *a, size_t na, size_t start, int step, const double *b, size_t nb)
{
    size_t low = 0, high = 0;
    uint8_t *reach = near->reach;
    memset(reach, 0, nb);
    for (size_t i = 0; i < na; i++) {
        size_t at = step > 0 ? (start + i) % na : (start + na - i) % na;
        const double *vertex = a + at * 4;
        size_t new_low = nb, new_high = 0;
        if (i == 0) {
            if (!near_vertex(near, vertex, b))
                return 0;
            reach[0] = 1;
            continue;
        }
        for (size_t j = high + 1 < nb ? high + 1 : nb - 1;; j--) {  /* downwards: reach[j - 1] is still the last step's */
            int before = (j <= high && reach[j]) || (j > low && reach[j - 1]);
            reach[j] = before && near_vertex(near, vertex, b + j * 4);
            if (reach[j]) {
                new_low = j;
                if (new_high < j)
                    new_high = j;
            }
            if (j == low)
                break;
        }
        if (new_low == nb)
            return 0;
        low = new_low;
        high = new_high;
    }
    return reach[nb - 1];
}

static int near_run(Near *near, const Run *ra, const Run *rb, int ring, int both_ways)
{
    const double *a = near->a->vertices + ra->first * 4, *b = near->b->vertices + rb->first * 4;
    if (ra->n < rb->n)
        return 0;
    if (rb->n > near->reach_room) {
        uint8_t *reach = realloc(near->reach, rb->n * 2);
        if (!reach) {
            near->no_memory = 1;
            return 0;
        }
        near->reach = reach;
        near->reach_room = rb->n * 2;
    }
    if (!ring)
        return follows(near, a, ra->n, 0, 1, b, rb->n) || (both_ways && follows(near, a, ra->n, ra->n - 1, -1, b, rb->n));
    for (size_t start = 0; start < ra->n; start++) {
        if (!near_vertex(near, a + start * 4, b))
            continue;
        if ((near->effort -= (double)ra->n) < 0)
            return 0;
        if (follows(near, a, ra->n, start, 1, b, rb->n) || (both_ways && follows(near, a, ra->n, start, -1, b, rb->n)))
            return 1;
    }
    return 0;
}

typedef int (*Fits)(Near *, size_t, size_t);

/* Pair n items of a with n of b one to one, so that each pair fits: greedily, then along augmenting paths.
 * `x_of` gives an item's least x; only items within the limit of each other are tried. */
static int pair_all(Near *near, size_t n, Fits fits, double (*xa)(const Near *, size_t), double (*xb)(const Near *, size_t), size_t a0, size_t b0);

static double part_x_a(const Near *near, size_t i) { return near->a->parts[i].x; }
static double part_x_b(const Near *near, size_t i) { return near->b->parts[i].x; }
static double run_x_a(const Near *near, size_t i) { return near->a->runs[i].x; }
static double run_x_b(const Near *near, size_t i) { return near->b->runs[i].x; }

static int hole_fits(Near *near, size_t i, size_t j)
{
    return near_run(near, &near->a->runs[i], &near->b->runs[j], 1, 1);
}

static int part_fits(Near *near, size_t i, size_t j)
{
    const Part *a = &near->a->parts[i], *b = &near->b->parts[j];
    int ring = a->type == POLYGON || a->type == TRIANGLE;
    if (a->type != b->type || a->level != b->level || a->bits != b->bits || a->n != b->n)
        return 0;
    if (!near_run(near, &near->a->runs[a->first], &near->b->runs[b->first], ring, ring || (a->type == LINE && near->either_way)))
        return 0;
    return a->n == 1 || pair_all(near, a->n - 1, hole_fits, run_x_a, run_x_b, a->first + 1, b->first + 1);
}

typedef struct {
    double x;
    size_t at;
} Keyed;

static int compare_keyed(const void *left_side, const void *right_side)
{
    const Keyed *a = left_side, *b = right_side;
    return (a->x > b->x) - (a->x < b->x);
}

#define NOBODY ((size_t)-1)

static int pair_all(Near *near, size_t n, Fits fits, double (*xa)(const Near *, size_t), double (*xb)(const Near *, size_t), size_t a0, size_t b0)
{
    Keyed *by_x = malloc(n * sizeof *by_x);
    size_t *owner = malloc(n * sizeof *owner), *mate = malloc(n * sizeof *mate);  /* by position in by_x; by item of a */
    size_t *from = malloc(n * sizeof *from), *queue = malloc(n * sizeof *queue);
    size_t *seen = calloc(n, sizeof *seen);  /* in which search, counted from 1 */
    int paired = 0;
    if (!by_x || !owner || !mate || !from || !queue || !seen) {
        near->no_memory = 1;
        goto done;
    }
    for (size_t j = 0; j < n; j++) {
        by_x[j].x = xb(near, b0 + j);
        by_x[j].at = b0 + j;
        owner[j] = mate[j] = NOBODY;
    }
    qsort(by_x, n, sizeof *by_x, compare_keyed);
    for (size_t i = 0; i < n; i++) {
        size_t head = 0, tail = 0;
        int found = 0;
        queue[tail++] = i;
        while (head < tail && !found) {
            size_t item = queue[head++], low = 0, high = n;
            double x = xa(near, a0 + item), around = 2 * allowed(near, 0, x), least = x - around;
            while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (by_x[middle].x < least)
                    low = middle + 1;
                else
                    high = middle;
            }
            for (size_t j = low; j < n && by_x[j].x <= x + around; j++) {
                if (near->effort < 0)
                    goto done;
                near->effort -= 1;
                if (seen[j] == i + 1 || !fits(near, a0 + item, by_x[j].at))
                    continue;
                seen[j] = i + 1;
                from[j] = item;
                if (owner[j] != NOBODY) {
                    queue[tail++] = owner[j];
                    continue;
                }
                for (size_t free_one = j; free_one != NOBODY;) {
                    size_t taker = from[free_one], given_up = mate[taker];
                    owner[free_one] = taker;
                    mate[taker] = free_one;
                    free_one = given_up;
                }
                found = 1;
                break;
            }
        }
        if (!found)
            goto done;
    }
    paired = 1;
done:
    free(by_x);
    free(owner);
    free(mate);
    free(from);
    free(queue);
    free(seen);
    return paired;
}

/* Whether two geometries have one structure and all ordinates within the limits. */
static int is_near(Near *near, const Head *head_a, const Head *head_b)
{
    near->effort = EFFORT;
    if (multi_of(head_a->type) != multi_of(head_b->type) || near->a->parts_n != near->b->parts_n || near->a->members != near->b->members)
        return 0;
    return near->a->parts_n == 0 || pair_all(near, near->a->parts_n, part_fits, part_x_a, part_x_b, 0, 0);
}

/* ---- the size of a change ---- */

static inline double squared(const double *a, const double *b)
{
    double x = a[0] - b[0], y = a[1] - b[1];
    return x * x + y * y;
}

/* The largest squared distance between counterparts, under the alignment that makes it least; at most `best` is of interest. */
static double aligned(const double *a, const double *b, size_t n, int ring, double best)
{
    size_t starts = ring ? n : 1;
    double allowed = EFFORT / (double)n;
    if ((double)starts > allowed)
        starts = allowed < 1 ? 1 : (size_t)allowed;
    for (size_t start = 0; start < starts && best > 0; start++)
        for (int back = 0; back <= (ring ? 1 : 0); back++) {
            double worst = 0;
            for (size_t i = 0; i < n && worst < best; i++) {
                double distance = squared(a + 4 * i, b + 4 * (back ? (start + n - i) % n : (start + i) % n));
                if (!(distance <= worst))
                    worst = distance;
            }
            if (worst < best)
                best = worst;
        }
    return best;
}

static double part_move(const Outline *a, const Part *pa, const Outline *b, const Part *pb, double best)
{
    double worst = 0;
    int ring = pa->type == POLYGON || pa->type == TRIANGLE;
    if (pa->type != pb->type || pa->n != pb->n)
        return best;
    for (size_t i = 0; i < pa->n; i++)
        if (a->runs[pa->first + i].n != b->runs[pb->first + i].n)
            return best;
    for (size_t i = 0; i < pa->n && worst < best; i++) {
        const Run *ra = &a->runs[pa->first + i], *rb = &b->runs[pb->first + i];
        double move = aligned(a->vertices + 4 * ra->first, b->vertices + 4 * rb->first, ra->n, ring, best);
        if (move > worst)
            worst = move;
    }
    return worst < best ? worst : best;
}

/* Each part to the nearest of the same structure that is still free; infinite where the structures differ. */
static double structural_move(const Outline *a, const Outline *b)
{
    uint8_t taken[PAIRED_PARTS] = {0};
    double worst = 0;
    if (a->parts_n != b->parts_n || a->parts_n > PAIRED_PARTS)
        return INFINITY;
    for (size_t i = 0; i < a->parts_n; i++) {
        double best = INFINITY;
        size_t chosen = 0;
        for (size_t k = 0; k < b->parts_n && best > 0; k++) {
            size_t j = (i + k) % b->parts_n;
            double move;
            if (taken[j])
                continue;
            move = part_move(a, &a->parts[i], b, &b->parts[j], best);
            if (move < best) {
                best = move;
                chosen = j;
            }
        }
        if (best == INFINITY)
            return INFINITY;
        taken[chosen] = 1;
        if (best > worst)
            worst = best;
    }
    return worst;
}

/* The largest squared distance from a vertex of a to the nearest of b, no less than `worst`. The search begins where the last
 * one ended, since outlines are coherent, and stops as soon as a vertex cannot raise the result. */
static double directed_hausdorff(const Outline *a, const Outline *b, double worst)
{
    size_t hint = 0;
    double effort = 10 * EFFORT;
    for (size_t i = 0; i < a->vertices_n && effort > 0; i++) {
        double nearest = INFINITY;
        size_t at = hint;
        for (size_t k = 0; k < b->vertices_n; k++) {
            size_t j = hint + (k & 1 ? (k + 1) / 2 : b->vertices_n - k / 2);
            double distance;
            j %= b->vertices_n;
            distance = squared(a->vertices + 4 * i, b->vertices + 4 * j);
            if (distance < nearest) {
                nearest = distance;
                at = j;
                if (nearest <= worst)
                    break;
            }
            effort -= 1;
        }
        hint = at;
        if (nearest > worst && nearest != INFINITY)
            worst = nearest;
    }
    return worst;
}

static double size_of_change(const Outline *a, const Outline *b)
{
    double move;
    if (a->vertices_n == 0 || b->vertices_n == 0)
        return NAN;
    move = structural_move(a, b);
    if (move == INFINITY)
        move = directed_hausdorff(b, a, directed_hausdorff(a, b, 0));
    return sqrt(move);
}

#endif
