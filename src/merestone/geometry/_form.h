/* The canonical form of a geometry, as the bytes G of fingerprint layout 2 (docs/spec/fingerprint.md), and back to WKB.
 *
 *     G = type, dimensions, part count, parts        the type is always the multi one
 *
 * One walk rounds to the grid, drops repeats, turns and rotates rings, sorts holes and parts.
 * A digest hashes these bytes; a stored geometry is written from them: so the two cannot disagree.
 */
#ifndef MERESTONE_FORM_H
#define MERESTONE_FORM_H

#include "../columnar/_rounding.h"
#include "_wkb.h"

enum { COLLAPSED = 1, FLAG_UNREADABLE = 2, BAD_ORDINATE = 4, WRONG_TYPE = 8, DROPPED_Z = 16, DROPPED_M = 32 };

typedef struct {
    Scale xy, z, m;
    int keep_z, keep_m;
    int either_way;      /* the direction of lines means nothing */
    Arena out;           /* G grows here */
    int64_t *run;        /* vertices of the run at hand */
    int64_t *spare;
    size_t run_room;     /* in integers, of each */
    Span *spans;
    size_t spans_room;
    unsigned flags;
    int curved;          /* a type that is not stored came by: a curve or a surface */
} Form;

static void form_free(Form *form)
{
    free(form->out.data);
    free(form->run);
    free(form->spare);
    free(form->spans);
}

static inline int kept(const Form *form, const Head *head)
{
    return 2 + (head->z && form->keep_z) + (head->m && form->keep_m);
}

static inline uint8_t dimension_bits(const Form *form, const Head *head)
{
    return (uint8_t)((head->z && form->keep_z) | (head->m && form->keep_m) << 1);
}

/* Round one vertex to `to`. Ordinates that no grid can hold are noted: they are a finding, and such a ring has no area. */
static inline void round_vertex(Form *form, const Head *head, const uint8_t *at, int64_t *to)
{
    int64_t x = to[0] = to_grid(load_double(at, head->swap), &form->xy);
    int64_t y = to[1] = to_grid(load_double(at + 8, head->swap), &form->xy);
    int64_t *next = to + 2;
    if (!on_grid(x) || !on_grid(y))
        form->flags |= BAD_ORDINATE;
    if (head->z && form->keep_z) {
        *next = to_grid(load_double(at + 16, head->swap), &form->z);
        if (!on_grid(*next))
            form->flags |= BAD_ORDINATE;
        next++;
    }
    if (head->m && form->keep_m) {
        double m = load_double(at + 16 + 8 * head->z, head->swap);
        *next = isnan(m) ? INT64_MIN : to_grid(m, &form->m);
        if (!on_grid(*next) && *next != INT64_MIN)
            form->flags |= BAD_ORDINATE;
    }
}

static inline int compare_ordinates(const int64_t *a, const int64_t *b, int d)
{
    for (int i = 0; i < d; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int run_reserve(Form *form, size_t ordinates)
{
    if (ordinates > form->run_room) {
        int64_t *run = realloc(form->run, ordinates * 2 * sizeof *run);
        if (!run)
            return 0;
        form->run = run;
        if (!(run = realloc(form->spare, ordinates * 2 * sizeof *run)))
            return 0;
        form->spare = run;
        form->run_room = ordinates * 2;
    }
    return 1;
}

/* As round_run, for x and y alone in the machine's byte order: nearly all runs that there are. */
static int64_t round_plane(Form *form, const Head *head, const uint8_t *at, uint32_t n)
{
    size_t stride = 8 * (size_t)dimensions(head);
    const Scale scale = form->xy;
    int64_t *to = form->run, x = 0, y = 0;
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double dx = load_double(at, 0), dy = load_double(at + 8, 0);
        double sx = scaled(dx, &scale), sy = scaled(dy, &scale);
        if (fabs(sx) < (double)GRID_LIMIT && fabs(sy) < (double)GRID_LIMIT) {
            double qx = nearest(sx), qy = nearest(sy);
            if (fabs(sx - qx) == 0.5)
                qx = nearest_at_half(dx, sx, qx, &scale);
            if (fabs(sy - qy) == 0.5)
                qy = nearest_at_half(dy, sy, qy, &scale);
            x = (int64_t)qx;
            y = (int64_t)qy;
        } else {
            x = to_grid(dx, &scale);
            y = to_grid(dy, &scale);
            if (!on_grid(x) || !on_grid(y))
                form->flags |= BAD_ORDINATE;
        }
        to[0] = x;
        to[1] = y;
        if (i == 0 || x != to[-2] || y != to[-1])
            to += 2;
    }
    return (to - form->run) / 2;
}

/* Round a run into form->run; gives the number of vertices left once consecutive repeats are dropped, if they are to be. */
static int64_t round_run(Form *form, const Head *head, const uint8_t *at, uint32_t n, int drop_repeats)
{
    int d = kept(form, head);
    size_t stride = 8 * (size_t)dimensions(head);
    int64_t *to;
    if (!run_reserve(form, ((size_t)n + 1) * (size_t)d))
        return NO_MEMORY;
    if (d == 2 && drop_repeats && !head->swap && form->xy.precision != RAW)
        return round_plane(form, head, at, n);
    to = form->run;
    for (uint32_t i = 0; i < n; i++, at += stride) {
        round_vertex(form, head, at, to);
        if (!drop_repeats || i == 0 || compare_ordinates(to - d, to, d) != 0)
            to += d;
    }
    return (to - form->run) / d;
}

static void reverse_run(int64_t *run, int64_t n, int d)
{
    for (int64_t i = 0, j = n - 1; i < j; i++, j--)
        for (int k = 0; k < d; k++) {
            int64_t ordinate = run[i * d + k];
            run[i * d + k] = run[j * d + k];
            run[j * d + k] = ordinate;
        }
}

static int compare_runs(const int64_t *a, const int64_t *b, int64_t ordinates)
{
    for (int64_t i = 0; i < ordinates; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* The start of the least rotation of a cyclic sequence, in linear time: two candidate starts race, and the loser jumps
 * past all that it has compared, since no start within that stretch can be better. */
static int64_t least_rotation(const int64_t *run, int64_t n, int d)
{
    int64_t i = 0, j = 1, k = 0;
    if (d == 2) {  /* one vertex is usually less than all others, and then the least rotation starts there */
        int64_t least = 0, ties = 0;
        for (int64_t at = 1; at < n; at++) {
            int64_t dx = (run[at * 2] > run[least * 2]) - (run[at * 2] < run[least * 2]);
            int64_t order = dx ? dx : (run[at * 2 + 1] > run[least * 2 + 1]) - (run[at * 2 + 1] < run[least * 2 + 1]);
            ties = order < 0 ? 0 : ties + (order == 0);
            least = order < 0 ? at : least;
        }
        if (!ties)
            return least;
    }
    while (i < n && j < n && k < n) {
        int64_t a = i + k < n ? i + k : i + k - n;
        int64_t b = j + k < n ? j + k : j + k - n;
        int order = compare_ordinates(run + a * d, run + b * d, d);
        if (order == 0) {
            k++;
            continue;
        }
        if (order > 0)
            i += k + 1;
        else
            j += k + 1;
        if (i == j)
            j++;
        k = 0;
    }
    return i < j ? i : j;
}

/* Rotate run (n vertices) into spare, so that it begins at its least rotation. */
static void rotate_least(const int64_t *run, int64_t *spare, int64_t n, int d)
{
    int64_t start = least_rotation(run, n, d);
    size_t vertex = (size_t)d * sizeof *run;
    memcpy(spare, run + start * d, (size_t)(n - start) * vertex);
    memcpy(spare + (n - start) * d, run, (size_t)start * vertex);
}

/* The sign of the exact area: integers throughout, relative to the first vertex, so that 128 bits hold it. */
static int area_sign(const int64_t *run, int64_t n, int d)
{
    unsigned __int128 twice = 0;
    int64_t x0, y0;
    if (n < 3)
        return 0;
    x0 = run[0];
    y0 = run[1];
    uint64_t far = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t ax = run[i * d], ay = run[i * d + 1];
        off |= (uint64_t)!on_grid(ax) | (uint64_t)!on_grid(ay);
        ax = (int64_t)((uint64_t)ax - (uint64_t)x0);
        ay = (int64_t)((uint64_t)ay - (uint64_t)y0);
        far |= (uint64_t)(ax ^ (ax >> 63)) | (uint64_t)(ay ^ (ay >> 63));
    }
    if (off)
        return 0;
    if (far >> 30 == 0) {  /* the ring is small: products fit 61 bits */
        __int128 sum = 0;
        for (int64_t i = 1; i + 1 < n; i++) {
            int64_t ax = run[i * d] - x0, ay = run[i * d + 1] - y0, bx = run[(i + 1) * d] - x0, by = run[(i + 1) * d + 1] - y0;
            sum += ax * by - bx * ay;
        }
        return (sum > 0) - (sum < 0);
    }
    for (int64_t i = 1; i + 1 < n; i++) {
        __int128 ax = run[i * d] - x0, ay = run[i * d + 1] - y0;
        __int128 bx = run[(i + 1) * d] - x0, by = run[(i + 1) * d + 1] - y0;
        twice += (unsigned __int128)(ax * by - bx * ay);
    }
    return twice == 0 ? 0 : (__int128)twice > 0 ? 1 : -1;
}

/* At least `wanted` (2 or 3) different positions; a measure is no position. */
static int has_positions(const int64_t *run, int64_t n, int d, int positions_in, int wanted)
{
    int64_t second = 0;
    for (int64_t i = 1; i < n; i++) {
        if (compare_ordinates(run, run + i * d, positions_in) == 0)
            continue;
        if (second == 0) {
            if (wanted == 2)
                return 1;
            second = i;
        } else if (compare_ordinates(run + second * d, run + i * d, positions_in) != 0) {
            return 1;
        }
    }
    return 0;
}

static int put_run(Form *form, const int64_t *run, int64_t n, int d)
{
    return put_count(&form->out, (uint32_t)n) && put(&form->out, run, (size_t)(n * d) * sizeof *run) ? 1 : NO_MEMORY;
}

static int form_point(Bytes *in, Form *form, const Head *head)
{
    int64_t vertex[4];
    size_t stride = 8 * (size_t)dimensions(head);
    int empty;
    if (left(in) < stride)
        return UNREADABLE;
    empty = is_empty_point(in->at, head->swap);
    if (!empty) {
        round_vertex(form, head, in->at, vertex);
        if (!put(&form->out, vertex, (size_t)kept(form, head) * sizeof *vertex))
            return NO_MEMORY;
    }
    in->at += stride;
    return !empty;
}

static int form_line(Bytes *in, Form *form, const Head *head)
{
    int d = kept(form, head), curve = head->type == CIRCULAR;
    const int64_t *run;
    uint32_t count;
    int64_t n;
    if (!take_run(in, head, &count))
        return UNREADABLE;
    /* A repeated control point of an arc tells which vertex is whose middle: it stays. */
    if ((n = round_run(form, head, in->at, count, !curve)) < 0)
        return NO_MEMORY;
    in->at += count * 8 * (size_t)dimensions(head);
    if (n == 0)
        return 0;
    run = form->run;
    if (!has_positions(run, n, d, 2 + (head->z && form->keep_z), 2))
        form->flags |= COLLAPSED;
    if (form->either_way) {
        memcpy(form->spare, run, (size_t)(n * d) * sizeof *run);
        reverse_run(form->spare, n, d);
        if (compare_runs(form->spare, run, n * d) < 0)
            run = form->spare;
    }
    return put_run(form, run, n, d);
}

enum { EXTERIOR, HOLE };

/* A ring: counter-clockwise outside, clockwise for a hole, from its least rotation, without its closing vertex.
 * Faces of a surface (PolyhedralSurface, TIN, Triangle) keep their direction: it says which side is out. */
static int form_ring(Bytes *in, Form *form, const Head *head, int role, int face, int *empty)
{
    int d = kept(form, head), sign;
    uint32_t count;
    int64_t n;
    if (!take_run(in, head, &count))
        return UNREADABLE;
    if ((n = round_run(form, head, in->at, count, 1)) < 0)
        return NO_MEMORY;
    in->at += count * 8 * (size_t)dimensions(head);
    while (n > 1 && compare_ordinates(form->run, form->run + (n - 1) * d, d) == 0)
        n--;
    *empty = n == 0;
    if (n == 0)
        return role == EXTERIOR ? put_run(form, form->run, 0, d) : 0;
    if (!has_positions(form->run, n, d, 2 + (head->z && form->keep_z), 3))
        form->flags |= COLLAPSED;
    sign = face ? 1 : area_sign(form->run, n, d);
    if (!face && sign != 0 && (sign > 0) == (role == HOLE))
        reverse_run(form->run, n, d);
    rotate_least(form->run, form->spare, n, d);
    if (sign == 0) {  /* no area, no side: the direction whose least rotation is smaller */
        size_t start = form->out.size + 4;
        int rc = put_run(form, form->spare, n, d);
        if (rc < 0)
            return rc;
        reverse_run(form->run, n, d);
        rotate_least(form->run, form->spare, n, d);
        for (int64_t i = 0; i < n * d; i++) {
            int64_t forward;
            memcpy(&forward, form->out.data + start + (size_t)i * 8, 8);
            if (forward != form->spare[i]) {
                if (form->spare[i] < forward)
                    memcpy(form->out.data + start, form->spare, (size_t)(n * d) * 8);
                break;
            }
        }
        return 1;
    }
    return put_run(form, form->spare, n, d);
}

static int compare_spans(const void *left_side, const void *right_side)
{
    const Span *a = left_side, *b = right_side;
    int order = memcmp(a->at, b->at, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* Where the parts of a list begin: kept as offsets in the arena's tail while it grows, since the arena may move. */
typedef struct {
    size_t *at;
    size_t n, room;
} Starts;

static int starts_add(Starts *starts, size_t at)
{
    if (starts->n == starts->room) {
        size_t room = starts->room ? starts->room * 2 : 16;
        size_t *more = realloc(starts->at, room * sizeof *more);
        if (!more)
            return 0;
        starts->at = more;
        starts->room = room;
    }
    starts->at[starts->n++] = at;
    return 1;
}

/* Sort the parts that begin at starts and end where the next begins, the last at the arena's end. */
static int sort_parts(Form *form, const Starts *starts)
{
    size_t n = starts->n, first, size, at;
    int sorted = 1;
    if (n < 2)
        return 1;
    if (n > form->spans_room) {
        Span *spans = realloc(form->spans, n * 2 * sizeof *spans);
        if (!spans)
            return NO_MEMORY;
        form->spans = spans;
        form->spans_room = n * 2;
    }
    first = starts->at[0];
    size = form->out.size - first;
    if (!reserve(&form->out, size))
        return NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        form->spans[i].at = form->out.data + starts->at[i];
        form->spans[i].size = (i + 1 < n ? starts->at[i + 1] : form->out.size) - starts->at[i];
        if (i && compare_spans(&form->spans[i - 1], &form->spans[i]) > 0)
            sorted = 0;
    }
    if (sorted)
        return 1;
    qsort(form->spans, n, sizeof *form->spans, compare_spans);
    at = form->out.size;
    for (size_t i = 0; i < n; i++) {
        memcpy(form->out.data + at, form->spans[i].at, form->spans[i].size);
        at += form->spans[i].size;
    }
    memcpy(form->out.data + first, form->out.data + form->out.size, size);
    return 1;
}

/* The body of one polygon: ring count, exterior, holes in order of their bytes. 0 where it has no point at all. */
static int form_polygon(Bytes *in, Form *form, const Head *head, int face)
{
    size_t begin = form->out.size;
    uint32_t rings, count = 0;
    Starts holes = {0};
    int rc = 1, empty, exterior_empty = 1;
    if (!take_count(in, head->swap, &rings) || rings > left(in) / 4)
        return UNREADABLE;
    if (!put_count(&form->out, 0))
        return NO_MEMORY;
    for (uint32_t i = 0; i < rings && rc >= 0; i++) {
        size_t start = form->out.size;
        rc = form_ring(in, form, head, i ? HOLE : EXTERIOR, face, &empty);
        if (rc < 0)
            break;
        if (i == 0)
            exterior_empty = empty;
        else if (empty)
            continue;
        else if (!starts_add(&holes, start))
            rc = NO_MEMORY;
        count++;
    }
    if (rc >= 0)
        rc = sort_parts(form, &holes);
    if (rc >= 0) {
        if (exterior_empty && holes.n == 0) {
            form->out.size = begin;
            rc = 0;
        } else {
            if (exterior_empty)
                form->flags |= COLLAPSED;
            memcpy(form->out.data + begin, &count, 4);
            rc = 1;
        }
    }
    free(holes.at);
    return rc;
}

static int form_geometry(Bytes *in, Form *form, const Head *head, int depth);

static int form_part(Bytes *in, Form *form, const Head *head, int face)
{
    switch (head->type) {
    case POINT: return form_point(in, form, head);
    case LINE: case CIRCULAR: return form_line(in, form, head);
    default: return form_polygon(in, form, head, face);
    }
}

/* Members of any container. Parts of multis are bodies, and empty ones are left out; of the others, full G's that all stay. */
static int form_members(Bytes *in, Form *form, const Head *head, int depth, uint32_t *count)
{
    int bodies = head->type <= MULTIPOLYGON || head->type == POLYHEDRAL || head->type == TIN;
    int ordered = head->type == COMPOUND;  /* a path */
    uint32_t members;
    Starts starts = {0};
    int rc = 1;
    *count = 0;
    if (!take_count(in, head->swap, &members) || members > left(in) / 5)
        return UNREADABLE;
    for (uint32_t i = 0; i < members && rc >= 0; i++) {
        size_t start = form->out.size;
        Head member;
        if (depth >= MAX_DEPTH || !take_member(in, head, &member)) {
            rc = UNREADABLE;
            break;
        }
        rc = bodies ? form_part(in, form, &member, head->type == POLYHEDRAL || head->type == TIN) : form_geometry(in, form, &member, depth + 1);
        if (rc < 0 || (bodies && rc == 0))
            continue;
        ++*count;
        if (!ordered && !(head->type == CURVEPOLYGON && i == 0) && !starts_add(&starts, start))
            rc = NO_MEMORY;
    }
    if (rc >= 0)
        rc = sort_parts(form, &starts);
    free(starts.at);
    return rc;
}

/* Append G of one geometry whose head has been read. */
static int form_geometry(Bytes *in, Form *form, const Head *head, int depth)
{
    size_t begin = form->out.size;
    uint8_t intro[6] = {(uint8_t)(head->type <= POLYGON ? head->type + 3 : head->type), dimension_bits(form, head)};
    uint32_t count;
    int rc;
    form->curved |= head->type > COLLECTION;
    if (head->z && !form->keep_z)
        form->flags |= DROPPED_Z;
    if (head->m && !form->keep_m)
        form->flags |= DROPPED_M;
    if (!put(&form->out, intro, sizeof intro))
        return NO_MEMORY;
    if (is_container(head->type)) {
        rc = form_members(in, form, head, depth, &count);
    } else {
        rc = form_part(in, form, head, head->type == TRIANGLE);
        count = rc > 0;
    }
    if (rc < 0)
        return rc;
    memcpy(form->out.data + begin + 2, &count, 4);
    return 1;
}

/* Append G of one WKB value. Sets form->flags. On UNREADABLE nothing is appended. */
static int form_value(const uint8_t *at, size_t size, Form *form)
{
    Bytes in = {at, at + size};
    size_t begin = form->out.size;
    Head head;
    int rc;
    form->flags = 0;
    form->curved = 0;
    rc = take_head(&in, &head) ? form_geometry(&in, form, &head, 0) : UNREADABLE;
    if (rc < 0) {
        form->out.size = begin;
        form->flags = FLAG_UNREADABLE;
    }
    return rc;
}

/* ---- G to ISO WKB, little-endian ---- */

/* What a contract's geometry_type asks for: 0 any, 1-3 single, 4-7 multi or collection, 8 multi of whatever it is. */
enum { WANT_ANY = 0, WANT_MULTI = 8 };

typedef struct {
    const uint8_t *at;
    const Form *form;
    Arena *to;
} Writer;

static uint32_t next_count(Writer *w)
{
    uint32_t count;
    memcpy(&count, w->at, 4);
    w->at += 4;
    return count;
}

static int write_head(Writer *w, uint32_t type, uint8_t bits)
{
    uint8_t head[5] = {1};
    type += bits == 3 ? 3000 : bits == 2 ? 2000 : bits == 1 ? 1000 : 0;
    memcpy(head + 1, &type, 4);
    return put(w->to, head, sizeof head);
}

static int write_vertices(Writer *w, uint32_t n, uint8_t bits)
{
    int d = 2 + (bits & 1) + (bits >> 1);
    const Scale *scales[4] = {&w->form->xy, &w->form->xy, bits & 1 ? &w->form->z : &w->form->m, &w->form->m};
    uint8_t *to;
    if (!reserve(w->to, (size_t)n * (size_t)d * 8))
        return 0;
    to = w->to->data + w->to->size;
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < d; k++, to += 8, w->at += 8) {
            int64_t q;
            double value;
            memcpy(&q, w->at, 8);
            value = from_grid(q, scales[k]);
            memcpy(to, &value, 8);
        }
    w->to->size += (size_t)n * (size_t)d * 8;
    return 1;
}

/* A run of integer vertices as stored: a ring is closed, and what has collapsed is padded with its first
 * vertex to the least number that readers accept. */
static int write_run(Writer *w, uint8_t bits, int ring)
{
    uint32_t n = next_count(w);
    uint32_t least = n == 0 ? 0 : ring ? 4 : 2;
    uint32_t total = n + (ring && n > 0);
    size_t vertex = 8 * (size_t)(2 + (bits & 1) + (bits >> 1));
    size_t first;
    if (total < least)
        total = least;
    if (!put_count(w->to, total))
        return 0;
    first = w->to->size;
    if (!write_vertices(w, n, bits) || !reserve(w->to, (total - n) * vertex))
        return 0;
    for (; n < total; n++) {
        memcpy(w->to->data + w->to->size, w->to->data + first, vertex);
        w->to->size += vertex;
    }
    return 1;
}

static int write_body(Writer *w, uint32_t single, uint8_t bits)
{
    uint32_t rings;
    if (single == POINT)
        return write_vertices(w, 1, bits);
    if (single == LINE)
        return write_run(w, bits, 0);
    rings = next_count(w);
    if (!put_count(w->to, rings))
        return 0;
    for (uint32_t i = 0; i < rings; i++)
        if (!write_run(w, bits, 1))
            return 0;
    return 1;
}

static int write_empty(Writer *w, uint32_t single, uint8_t bits)
{
    static const double nan4[4] = {NAN, NAN, NAN, NAN};
    return single == POINT ? put(w->to, nan4, 8 * (size_t)(2 + (bits & 1) + (bits >> 1))) : put_count(w->to, 0);
}

/* Write one G as WKB; 0 without memory. Only types 4 to 7 come here. `want` rules the outermost geometry. */
static int write_geometry(Writer *w, int want)
{
    uint32_t type = w->at[0], count;
    uint8_t bits = w->at[1];
    w->at += 2;
    count = next_count(w);
    if (type == COLLECTION) {
        if (!write_head(w, type, bits) || !put_count(w->to, count))
            return 0;
        for (uint32_t i = 0; i < count; i++)
            if (!write_geometry(w, WANT_ANY))
                return 0;
        return 1;
    }
    if (count <= 1 && want != WANT_MULTI && want != (int)type) {
        if (!write_head(w, type - 3, bits))
            return 0;
        return count ? write_body(w, type - 3, bits) : write_empty(w, type - 3, bits);
    }
    if (!write_head(w, type, bits) || !put_count(w->to, count))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!write_head(w, type - 3, bits) || !write_body(w, type - 3, bits))
            return 0;
    return 1;
}

/* Append the stored form of the G at `g`; adds WRONG_TYPE to form->flags where the wanted type cannot be given. */
static int write_value(const uint8_t *g, Form *form, int want, Arena *to)
{
    Writer writer = {g, form, to};
    uint32_t type = g[0], count;
    memcpy(&count, g + 2, 4);
    if (want != WANT_ANY && want != WANT_MULTI) {
        int fits = want >= MULTIPOINT ? (int)type == want : (int)type == want + 3 && count <= 1;
        if (!fits) {
            form->flags |= WRONG_TYPE;
            want = WANT_ANY;
        }
    }
    return write_geometry(&writer, want) ? 1 : NO_MEMORY;
}

#endif
