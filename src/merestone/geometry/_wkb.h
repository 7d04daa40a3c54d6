/* Reading well-known binary: ISO 19125 with the types of SQL/MM, ISO (1001, 2001, 3001) and EWKB (high bits) dialects, both byte orders.
 *
 * Nothing here trusts the bytes: every count is checked against what is left before it is used, and nesting is bounded.
 */
#ifndef MERESTONE_WKB_H
#define MERESTONE_WKB_H

#include <math.h>

#include "../columnar/_bytes.h"

enum { POINT = 1, LINE, POLYGON, MULTIPOINT, MULTILINE, MULTIPOLYGON, COLLECTION,
       CIRCULAR, COMPOUND, CURVEPOLYGON, MULTICURVE, MULTISURFACE, POLYHEDRAL = 15, TIN, TRIANGLE };

#define MAX_DEPTH 32  /* of nested collections; deeper bytes are unreadable */

/* What a step says: 1 something was there, 0 nothing (empty), below 0 it has to stop. */
enum { UNREADABLE = -1 };  /* and NO_MEMORY */

typedef struct {
    const uint8_t *at, *end;
} Bytes;

typedef struct {
    int swap;        /* the bytes are in the other order than the machine's */
    uint32_t type;   /* POINT .. TRIANGLE */
    int z, m;        /* dimensions that the coordinates have */
    int level;       /* how many collections lie around it; multis do not count */
} Head;

static inline int dimensions(const Head *head)
{
    return 2 + head->z + head->m;
}

static inline size_t left(const Bytes *in)
{
    return (size_t)(in->end - in->at);
}

static inline double load_double(const uint8_t *at, int swap)
{
    uint64_t bits;
    double value;
    memcpy(&bits, at, 8);
    if (swap)
        bits = __builtin_bswap64(bits);
    memcpy(&value, &bits, 8);
    return value;
}

static inline int take_count(Bytes *in, int swap, uint32_t *count)
{
    if (left(in) < 4)
        return 0;
    memcpy(count, in->at, 4);
    if (swap)
        *count = __builtin_bswap32(*count);
    in->at += 4;
    return 1;
}

static int take_head(Bytes *in, Head *head)
{
    uint32_t code = 0, srid;
    if (left(in) < 5 || in->at[0] > 1)
        return 0;
    head->swap = in->at[0] == 0;
    in->at += 1;
    take_count(in, head->swap, &code);
    head->z = (code & 0x80000000u) != 0;
    head->m = (code & 0x40000000u) != 0;
    if ((code & 0x20000000u) && !take_count(in, head->swap, &srid))
        return 0;
    code &= 0x1fffffffu;
    if (code >= 4000)
        return 0;
    head->z |= code / 1000 == 1 || code / 1000 == 3;
    head->m |= code / 1000 >= 2;
    head->type = code % 1000;
    head->level = 0;
    return (head->type >= POINT && head->type <= MULTISURFACE) || (head->type >= POLYHEDRAL && head->type <= TRIANGLE);
}

/* A run of vertices: its count, then room for all of them. */
static int take_run(Bytes *in, const Head *head, uint32_t *n)
{
    return take_count(in, head->swap, n) && *n <= left(in) / (8 * (size_t)dimensions(head));
}

static inline int is_container(uint32_t type)
{
    return (type >= MULTIPOINT && type <= COLLECTION) || (type >= COMPOUND && type <= TIN);
}

/* Which types a member of each container may have, one bit a type. A collection's members bring their own dimensions. */
static int may_hold(const Head *outer, const Head *member)
{
    static const uint32_t held[] = {
        [MULTIPOINT] = 1u << POINT,
        [MULTILINE] = 1u << LINE,
        [MULTIPOLYGON] = 1u << POLYGON,
        [COLLECTION] = ~0u,
        [COMPOUND] = 1u << LINE | 1u << CIRCULAR,
        [CURVEPOLYGON] = 1u << LINE | 1u << CIRCULAR | 1u << COMPOUND,
        [MULTICURVE] = 1u << LINE | 1u << CIRCULAR | 1u << COMPOUND,
        [MULTISURFACE] = 1u << POLYGON | 1u << CURVEPOLYGON,
        [POLYHEDRAL] = 1u << POLYGON | 1u << TRIANGLE,
        [TIN] = 1u << POLYGON | 1u << TRIANGLE,
    };
    if (!(held[outer->type] >> member->type & 1))
        return 0;
    return outer->type == COLLECTION || (outer->z == member->z && outer->m == member->m);
}

static int take_member(Bytes *in, const Head *outer, Head *member)
{
    if (!take_head(in, member) || !may_hold(outer, member))
        return 0;
    member->level = outer->level + !(outer->type >= MULTIPOINT && outer->type <= MULTIPOLYGON);
    return 1;
}

/* POINT EMPTY is a point whose x and y are both NaN (GeoPackage requirement 152; OGC 12-128r19). */
static inline int is_empty_point(const uint8_t *at, int swap)
{
    return isnan(load_double(at, swap)) && isnan(load_double(at + 8, swap));
}

/* Walk a geometry and tell the visitor what comes by, in the order of the bytes. */
typedef struct Visitor Visitor;
struct Visitor {
    int (*head)(Visitor *, const Head *, uint32_t count);  /* vertices, rings or members; an empty point has 0 */
    int (*run)(Visitor *, const Head *, const uint8_t *at, uint32_t n, int ring);
};

static int walk_body(Bytes *in, Visitor *visitor, const Head *head, int depth)
{
    size_t stride = 8 * (size_t)dimensions(head);
    uint32_t count, n;
    int rc;
    if (head->type == POINT) {
        if (left(in) < stride)
            return UNREADABLE;
        n = !is_empty_point(in->at, head->swap);
        if ((rc = visitor->head(visitor, head, n)) < 0 || (n && (rc = visitor->run(visitor, head, in->at, 1, 0)) < 0))
            return rc;
        in->at += stride;
        return 1;
    }
    if (head->type == LINE || head->type == CIRCULAR) {
        if (!take_run(in, head, &n))
            return UNREADABLE;
        if ((rc = visitor->head(visitor, head, n)) < 0 || (n && (rc = visitor->run(visitor, head, in->at, n, 0)) < 0))
            return rc;
        in->at += n * stride;
        return 1;
    }
    if (!take_count(in, head->swap, &count) || count > left(in) / 4)
        return UNREADABLE;
    if ((rc = visitor->head(visitor, head, count)) < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        if (is_container(head->type)) {
            Head member;
            if (depth >= MAX_DEPTH || !take_member(in, head, &member))
                return UNREADABLE;
            if ((rc = walk_body(in, visitor, &member, depth + 1)) < 0)
                return rc;
        } else {
            if (!take_run(in, head, &n))
                return UNREADABLE;
            if ((rc = visitor->run(visitor, head, in->at, n, 1)) < 0)
                return rc;
            in->at += n * stride;
        }
    }
    return 1;
}

static int walk(Bytes *in, Visitor *visitor, Head *head)
{
    return take_head(in, head) ? walk_body(in, visitor, head, 0) : UNREADABLE;
}

#endif
