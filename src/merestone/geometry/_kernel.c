/* The compiled kernel: columns of WKB in, columns out. No Python object per row, and the GIL is released.
 *
 * Called through compiled.py only, which hands over Arrow buffers. fallback.py answers the same calls with NumPy; tests hold the two
 * equal to each other and to a slow reference. The parts: _wkb.h reads, _form.h gives the canonical form, _move.h compares two
 * geometries, _valid.h sees which are valid; ../columnar/_columns.h holds Arrow columns and the attribute section of the digest,
 * ../columnar/_blake2b.h hashes; this file turns rows into calls.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../columnar/_columns.h"
#include "_form.h"
#include "_move.h"
#include "_valid.h"

/* ---- what each call is given ---- */

/* The bytes of the first n values of a column of variable length. */
static size_t bytes_of(const Column *column, Py_ssize_t n)
{
    int64_t start = n ? offset_at(&column->offsets, column->width, column->first) : 0;
    int64_t end = n ? offset_at(&column->offsets, column->width, column->first + n) : 0;
    return (size_t)(end - start);
}

static int wkb_take(PyObject *given, Py_ssize_t n, Column *wkb)
{
    if (!column_take(given, n, wkb))
        return 0;
    if (wkb->kind != VARIABLE) {
        PyErr_SetString(PyExc_TypeError, "geometry is a column of binary values");
        return 0;
    }
    return 1;
}

/* (precision, z precision, m precision, keep z, keep m, either way) */
static int form_take(PyObject *given, Form *form)
{
    int xy, z, m;
    memset(form, 0, sizeof *form);
    if (!PyArg_ParseTuple(given, "iiippp", &xy, &z, &m, &form->keep_z, &form->keep_m, &form->either_way))
        return 0;
    form->xy = make_scale(xy);
    form->z = make_scale(z);
    form->m = make_scale(m);
    return 1;
}

static PyObject *finish_bytes(int rc, Arena *out)
{
    PyObject *result = rc == NO_MEMORY ? PyErr_NoMemory() : PyBytes_FromStringAndSize((const char *)out->data, (Py_ssize_t)out->size);
    free(out->data);
    return result;
}

/* ---- scan ---- */

enum { NAN_XY = 1, INFINITE = 2, NAN_Z = 4, SCAN_UNREADABLE = 8, UNCLOSED_RING = 16, TRAILING_BYTES = 32, SHORT_RING = 64, SHORT_LINE = 128 };

typedef struct {
    Visitor visitor;
    int32_t parts;
    int64_t vertices;
    double xmin, ymin, xmax, ymax;
    unsigned flags;
} Look;

static int look_head(Visitor *visitor, const Head *head, uint32_t count)
{
    Look *look = (Look *)visitor;
    if (!is_container(head->type) && count > 0)
        look->parts++;
    if (head->type == LINE && count == 1)
        look->flags |= SHORT_LINE;
    return 1;
}

static int look_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Look *look = (Look *)visitor;
    size_t stride = 8 * (size_t)dimensions(head);
    const uint8_t *first = at, *last = at + (n ? n - 1 : 0) * stride;
    look->vertices += n;
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double x = load_double(at, head->swap), y = load_double(at + 8, head->swap);
        if (isfinite(x) && isfinite(y)) {
            look->xmin = x < look->xmin ? x : look->xmin;
            look->xmax = x > look->xmax ? x : look->xmax;
            look->ymin = y < look->ymin ? y : look->ymin;
            look->ymax = y > look->ymax ? y : look->ymax;
        } else {
            if (isfinite(x)) {
                look->xmin = x < look->xmin ? x : look->xmin;
                look->xmax = x > look->xmax ? x : look->xmax;
            }
            if (isfinite(y)) {
                look->ymin = y < look->ymin ? y : look->ymin;
                look->ymax = y > look->ymax ? y : look->ymax;
            }
            look->flags |= (isnan(x) || isnan(y) ? NAN_XY : 0u) | (isinf(x) || isinf(y) ? INFINITE : 0u);
        }
        if (head->z) {
            double z = load_double(at + 16, head->swap);
            look->flags |= (isnan(z) ? NAN_Z : 0u) | (isinf(z) ? INFINITE : 0u);
        }
        if (head->m && isinf(load_double(at + 16 + 8 * head->z, head->swap)))
            look->flags |= INFINITE;
    }
    if (ring && n > 0) {
        if (n < 4)
            look->flags |= SHORT_RING;
        if (load_double(first, head->swap) != load_double(last, head->swap) || load_double(first + 8, head->swap) != load_double(last + 8, head->swap))
            look->flags |= UNCLOSED_RING;
    }
    return 1;
}

static PyObject *kernel_scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *targets[8], *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Py_buffer out[8] = {{0}};
    static const Py_ssize_t widths[8] = {1, 1, 1, 1, 4, 8, 32, 2};
    if (!PyArg_ParseTuple(args, "OnOOOOOOOO", &given, &n, &targets[0], &targets[1], &targets[2], &targets[3], &targets[4], &targets[5],
                          &targets[6], &targets[7]))
        return NULL;
    if (!wkb_take(given, n, &wkb))
        goto done;
    for (int i = 0; i < 8; i++)
        if (!writable(targets[i], n * widths[i], &out[i]))
            goto done;
    uint8_t *kind = out[0].buf, *has_z = out[1].buf, *has_m = out[2].buf, *empty = out[3].buf;
    int32_t *parts = out[4].buf;
    int64_t *vertices = out[5].buf;
    double *bounds = out[6].buf;
    uint16_t *flags = out[7].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n; row++) {
        Look look = {{look_head, look_run}, 0, 0, INFINITY, INFINITY, -INFINITY, -INFINITY, 0};
        Head head = {0};
        kind[row] = has_z[row] = has_m[row] = empty[row] = 0;
        parts[row] = 0;
        vertices[row] = 0;
        flags[row] = 0;
        bounds[row * 4] = bounds[row * 4 + 1] = bounds[row * 4 + 2] = bounds[row * 4 + 3] = NAN;
        if (!is_present(&wkb, row))
            continue;
        Span value = value_at(&wkb, row);
        Bytes in = {value.at, value.at + value.size};
        if (walk(&in, &look.visitor, &head) < 0) {
            kind[row] = 255;
            flags[row] = SCAN_UNREADABLE;
            continue;
        }
        kind[row] = (uint8_t)head.type;
        has_z[row] = (uint8_t)head.z;
        has_m[row] = (uint8_t)head.m;
        empty[row] = look.vertices == 0;
        parts[row] = look.parts;
        vertices[row] = look.vertices;
        flags[row] = (uint16_t)(look.flags | (in.at < in.end ? TRAILING_BYTES : 0u));
        if (look.xmin <= look.xmax) {
            bounds[row * 4] = look.xmin;
            bounds[row * 4 + 2] = look.xmax;
        }
        if (look.ymin <= look.ymax) {
            bounds[row * 4 + 1] = look.ymin;
            bounds[row * 4 + 3] = look.ymax;
        }
    }
    Py_END_ALLOW_THREADS
    result = finish_none(1);
done:
    for (int i = 0; i < 8; i++)
        release(&out[i]);
    column_release(&wkb);
    return result;
}

/* ---- decimals ---- */

#define MOST_DECIMALS 16

typedef struct {
    Visitor visitor;
    int64_t *x, *y;         /* histograms */
    const double *bounds;   /* only vertices within, or NULL */
} Digits;

/* As rint, without a call where no fraction has more than the bits that a sum with 2^52 leaves. */
static inline double whole_of(double value)
{
    return fabs(value) < 0x1p51 ? (value + 0x1.8p52) - 0x1.8p52 : rint(value);
}

/* The least d for which the value is the double nearest to a number of d decimals. Two roundings make an error below 2^-51 of the product:
 * one that is farther from a whole number needs no division to tell. */
static int decimals_of(double value)
{
    for (int d = 0; d < MOST_DECIMALS; d++) {
        double moved = value * POWER_OF_TEN[d], whole = whole_of(moved);
        if (fabs(moved - whole) <= fabs(moved) * 0x1p-51 && whole / POWER_OF_TEN[d] == value)
            return d;
    }
    return MOST_DECIMALS;
}

static int digits_head(Visitor *Py_UNUSED(visitor), const Head *Py_UNUSED(head), uint32_t Py_UNUSED(count))
{
    return 1;
}

static int digits_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Digits *digits = (Digits *)visitor;
    const double *within = digits->bounds;
    n -= ring && n > 1;  /* the last vertex of a ring repeats its first: it measures nothing new */
    size_t stride = 8 * (size_t)dimensions(head);
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double x = load_double(at, head->swap), y = load_double(at + 8, head->swap);
        if (within && !(x >= within[0] && y >= within[1] && x <= within[2] && y <= within[3]))
            continue;
        if (isfinite(x))
            digits->x[decimals_of(x)]++;
        if (isfinite(y))
            digits->y[decimals_of(y)]++;
    }
    return 1;
}

static PyObject *kernel_decimals(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *target, *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Py_buffer out = {0};
    double bounds[4];
    int bounded;
    if (!PyArg_ParseTuple(args, "OnOp(dddd)", &given, &n, &target, &bounded, &bounds[0], &bounds[1], &bounds[2], &bounds[3]))
        return NULL;
    if (!wkb_take(given, n, &wkb) || !writable(target, 2 * (MOST_DECIMALS + 1) * 8, &out))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    int64_t counts[2 * (MOST_DECIMALS + 1)], *totals = out.buf;
    for (Py_ssize_t row = 0; row < n; row++) {
        Span value = is_present(&wkb, row) ? value_at(&wkb, row) : (Span){(const uint8_t *)"", 0};
        Bytes in = {value.at, value.at + value.size};
        Head head;
        memset(counts, 0, sizeof counts);
        Digits digits = {{digits_head, digits_run}, counts, counts + MOST_DECIMALS + 1, bounded ? bounds : NULL};
        if (walk(&in, &digits.visitor, &head) >= 0)  /* nothing counts of a value that cannot be read to its end */
            for (int i = 0; i < 2 * (MOST_DECIMALS + 1); i++)
                totals[i] += counts[i];
    }
    Py_END_ALLOW_THREADS
    result = finish_none(1);
done:
    release(&out);
    column_release(&wkb);
    return result;
}

/* ---- measures ---- */

typedef struct {
    Visitor visitor;
    double area, length, part_area, part_length;
    int rings, empty_shell, broken;
} Tape;

static void tape_part(Tape *tape)
{
    tape->area += tape->part_area;
    tape->length += tape->part_length;
    tape->part_area = tape->part_length = 0;
}

static int tape_head(Visitor *visitor, const Head *head, uint32_t count)
{
    Tape *tape = (Tape *)visitor;
    tape_part(tape);
    tape->rings = 0;
    tape->broken |= head->type > COLLECTION || (head->type == LINE && count == 1);
    return 1;
}

/* Area and length as GEOS adds them up, part by part, in the order of the vertices and relative to the first x: the sums are the same doubles. */
static int tape_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Tape *tape = (Tape *)visitor;
    size_t stride = 8 * (size_t)dimensions(head);
    double sum = 0, length = 0, x0, x1, y0, y1, first_x, first_y;
    int hole = ring && tape->rings++ > 0;
    if (ring && !hole)
        tape->empty_shell = n == 0;
    if (n == 0 || head->type == POINT)
        return 1;
    x0 = first_x = load_double(at, head->swap);
    y0 = y1 = first_y = load_double(at + 8, head->swap);
    x1 = 0;
    for (uint32_t i = 1; i < n; i++) {
        double x, y, dx, dy;
        at += stride;
        x = load_double(at, head->swap);
        y = load_double(at + 8, head->swap);
        dx = x - x0;
        dy = y - y1;
        length += sqrt(dx * dx + dy * dy);
        if (i > 1)
            sum += x1 * (y0 - y);
        y0 = y1;
        x1 = x - first_x;
        y1 = y;
        x0 = x;
    }
    tape->part_length += length;
    if (ring) {
        tape->broken |= n < 3 || x0 != first_x || y1 != first_y || (hole && tape->empty_shell);
        tape->part_area += hole ? -fabs(sum / 2) : fabs(sum / 2);
    }
    return 1;
}

/* measures(wkb, n, area, length): float64 each, NaN where there is no geometry, or none that can be built. */
static PyObject *kernel_measures(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *targets[2], *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Py_buffer out[2] = {{0}};
    if (!PyArg_ParseTuple(args, "OnOO", &given, &n, &targets[0], &targets[1]))
        return NULL;
    if (!wkb_take(given, n, &wkb) || !writable(targets[0], n * 8, &out[0]) || !writable(targets[1], n * 8, &out[1]))
        goto done;
    double *area = out[0].buf, *length = out[1].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n; row++) {
        Span value = is_present(&wkb, row) ? value_at(&wkb, row) : (Span){(const uint8_t *)"", 0};
        Bytes in = {value.at, value.at + value.size};
        Head head;
        Tape tape = {{tape_head, tape_run}, 0, 0, 0, 0, 0, 0, 0};
        int known = walk(&in, &tape.visitor, &head) >= 0 && !tape.broken;
        tape_part(&tape);
        area[row] = known ? tape.area : NAN;
        length[row] = known ? tape.length : NAN;
    }
    Py_END_ALLOW_THREADS
    result = finish_none(1);
done:
    release(&out[0]);
    release(&out[1]);
    column_release(&wkb);
    return result;
}

/* ---- validity ---- */

/* doubtful(wkb, n, out): 1 where a value is not valid beyond doubt, a null among them; bytes. */
static PyObject *kernel_doubtful(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *target, *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Soundness soundness = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "OnO", &given, &n, &target))
        return NULL;
    if (!wkb_take(given, n, &wkb) || !writable(target, n, &out))
        goto done;
    uint8_t *doubtful = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n && rc != NO_MEMORY; row++) {
        Span value = is_present(&wkb, row) ? value_at(&wkb, row) : (Span){(const uint8_t *)"", 0};
        rc = surely_valid(&soundness, (Bytes){value.at, value.at + value.size});
        doubtful[row] = rc != 1;
    }
    Py_END_ALLOW_THREADS
    result = finish_none(rc);
done:
    soundness_free(&soundness);
    release(&out);
    column_release(&wkb);
    return result;
}

/* ---- canonical form and digest ---- */

/* encode(wkb, n, form, offsets) -> (address, size, owner): the value of a geometry as an attribute: G, or 0x02 and the bytes as they are. */
static PyObject *kernel_encode(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *wanted, *target, *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Form form = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "OnOO", &given, &n, &wanted, &target))
        return NULL;
    if (!wkb_take(given, n, &wkb) || !form_take(wanted, &form) || !writable(target, (n + 1) * 8, &out))
        goto done;
    int64_t *offsets = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    offsets[0] = 0;
    for (Py_ssize_t row = 0; row < n && rc != NO_MEMORY; row++) {
        if (is_present(&wkb, row)) {
            Span value = value_at(&wkb, row);
            rc = form_value(value.at, value.size, &form);
            if (rc == UNREADABLE)
                rc = put_byte(&form.out, 2) && put(&form.out, value.at, value.size) ? 1 : NO_MEMORY;
        }
        offsets[row + 1] = (int64_t)form.out.size;
    }
    Py_END_ALLOW_THREADS
    result = finish_owned(rc, &form.out);
done:
    form_free(&form);
    release(&out);
    column_release(&wkb);
    return result;
}

/* canonical(wkb, n, form, wanted type, offsets, flags) -> (address, size, owner): the geometry as it is stored. */
static PyObject *kernel_canonical(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *wanted, *targets[2], *result = NULL;
    Py_ssize_t n;
    int want;
    Column wkb = {0};
    Form form = {0};
    Arena stored = {0};
    Py_buffer out[2] = {{0}};
    if (!PyArg_ParseTuple(args, "OnOiOO", &given, &n, &wanted, &want, &targets[0], &targets[1]))
        return NULL;
    if (!wkb_take(given, n, &wkb) || !form_take(wanted, &form) || !writable(targets[0], (n + 1) * 8, &out[0]) || !writable(targets[1], n, &out[1]))
        goto done;
    int64_t *offsets = out[0].buf;
    uint8_t *flags = out[1].buf;
    int rc = reserve(&stored, bytes_of(&wkb, n)) ? 1 : NO_MEMORY;  /* what is stored is about as long as what was delivered */
    Py_BEGIN_ALLOW_THREADS
    offsets[0] = 0;
    for (Py_ssize_t row = 0; row < n && rc != NO_MEMORY; row++) {
        flags[row] = 0;
        if (is_present(&wkb, row)) {
            Span value = value_at(&wkb, row);
            form.out.size = 0;
            rc = form_value(value.at, value.size, &form);
            if (rc == UNREADABLE || form.curved) {
                if (rc == 1)
                    form.flags |= WRONG_TYPE;
                if (rc != NO_MEMORY)
                    rc = put(&stored, value.at, value.size) ? 1 : NO_MEMORY;
            } else if (rc != NO_MEMORY) {
                rc = write_value(form.out.data, &form, want, &stored);
            }
            flags[row] = (uint8_t)form.flags;
        }
        offsets[row + 1] = (int64_t)stored.size;
    }
    Py_END_ALLOW_THREADS
    result = finish_owned(rc, &stored);
done:
    free(stored.data);
    form_free(&form);
    release(&out[0]);
    release(&out[1]);
    column_release(&wkb);
    return result;
}

/* Geometry section and attribute section of one row. */
static int put_payload(Form *form, const Column *wkb, const Column *columns, Py_ssize_t columns_n, Py_ssize_t row)
{
    if (!wkb || !is_present(wkb, row)) {
        if (!put_byte(&form->out, 0))
            return NO_MEMORY;
    } else {
        Span value = value_at(wkb, row);
        size_t at = form->out.size;
        int rc;
        if (!put_byte(&form->out, 1) || (rc = form_value(value.at, value.size, form)) == NO_MEMORY)
            return NO_MEMORY;
        if (rc == UNREADABLE) {
            form->out.data[at] = 2;
            if (!put(&form->out, value.at, value.size))
                return NO_MEMORY;
        }
    }
    return put_attributes(&form->out, columns, columns_n, row) ? 1 : NO_MEMORY;
}

/* digest(columns, wkb or None, n, form, out): out takes 16 bytes a row. */
static PyObject *kernel_digest(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *geometry, *wanted, *target, *result = NULL;
    Py_ssize_t n, columns_n = 0;
    Column *columns = NULL, wkb = {0};
    Form form = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "O!OnOO", &PyTuple_Type, &given, &geometry, &n, &wanted, &target))
        return NULL;
    if (!columns_take(given, n, &columns, &columns_n) || (geometry != Py_None && !wkb_take(geometry, n, &wkb)) || !form_take(wanted, &form)
        || !writable(target, n * B2_OUT, &out))
        goto done;
    uint8_t *digests = out.buf;
    const Column *shape = geometry == Py_None ? NULL : &wkb;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n && rc == 1; row += TOGETHER) {
        Py_ssize_t rows = n - row < TOGETHER ? n - row : TOGETHER;
        size_t ends[TOGETHER];
        Message messages[TOGETHER];
        form.out.size = 0;
        for (Py_ssize_t i = 0; i < rows && rc == 1; i++) {
            rc = put_payload(&form, shape, columns, columns_n, row + i);
            ends[i] = form.out.size;
        }
        if (rc != 1)
            break;
        for (Py_ssize_t i = 0; i < rows; i++) {
            size_t start = i ? ends[i - 1] : 0;
            messages[i].at = form.out.data + start;
            messages[i].size = ends[i] - start;
        }
        blake2b_each(messages, (size_t)rows, digests + row * B2_OUT, B2_OUT);
    }
    Py_END_ALLOW_THREADS
    result = finish_none(rc);
done:
    form_free(&form);
    columns_release(columns, columns_n);
    column_release(&wkb);
    release(&out);
    return result;
}

/* ---- coordinates out and in ---- */

typedef struct {
    Visitor visitor;
    Arena out;
    const double *xy;       /* new positions, or NULL to collect the old ones */
    size_t xy_left;         /* vertices not used yet */
} Copy;

static int collect_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int Py_UNUSED(ring))
{
    Copy *copy = (Copy *)visitor;
    size_t stride = 8 * (size_t)dimensions(head);
    if (!reserve(&copy->out, (size_t)n * 16))
        return NO_MEMORY;
    for (uint32_t i = 0; i < n; i++, at += stride) {
        double position[2] = {load_double(at, head->swap), load_double(at + 8, head->swap)};
        memcpy(copy->out.data + copy->out.size, position, 16);
        copy->out.size += 16;
    }
    return 1;
}

static PyObject *kernel_coordinates(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    if (!PyArg_ParseTuple(args, "On", &given, &n))
        return NULL;
    if (!wkb_take(given, n, &wkb))
        goto done;
    Copy copy = {{digits_head, collect_run}, {0}, NULL, 0};
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n && rc != NO_MEMORY; row++) {
        Span value = is_present(&wkb, row) ? value_at(&wkb, row) : (Span){(const uint8_t *)"", 0};
        Bytes in = {value.at, value.at + value.size};
        size_t begin = copy.out.size;
        Head head;
        if ((rc = walk(&in, &copy.visitor, &head)) == UNREADABLE)
            copy.out.size = begin;
    }
    Py_END_ALLOW_THREADS
    result = finish_bytes(rc, &copy.out);
done:
    column_release(&wkb);
    return result;
}

static int copy_head(Visitor *visitor, const Head *head, uint32_t count)
{
    static const double nan4[4] = {NAN, NAN, NAN, NAN};
    Copy *copy = (Copy *)visitor;
    uint8_t intro[5] = {1};
    uint32_t code = head->type + 1000u * (uint32_t)head->z + 2000u * (uint32_t)head->m;
    memcpy(intro + 1, &code, 4);
    if (!put(&copy->out, intro, sizeof intro))
        return NO_MEMORY;
    if (head->type != POINT)
        return put_count(&copy->out, count) ? 1 : NO_MEMORY;
    return count || put(&copy->out, nan4, 8 * (size_t)dimensions(head)) ? 1 : NO_MEMORY;
}

static int copy_run(Visitor *visitor, const Head *head, const uint8_t *at, uint32_t n, int ring)
{
    Copy *copy = (Copy *)visitor;
    size_t d = (size_t)dimensions(head);
    if ((ring && !put_count(&copy->out, n)) || !reserve(&copy->out, n * d * 8))
        return NO_MEMORY;
    if (n > copy->xy_left)
        return UNREADABLE;
    copy->xy_left -= n;
    for (uint32_t i = 0; i < n; i++, copy->xy += 2) {
        double vertex[4] = {copy->xy[0], copy->xy[1]};
        for (size_t k = 0; k < d; k++, at += 8)
            if (k >= 2)
                vertex[k] = load_double(at, head->swap);
        memcpy(copy->out.data + copy->out.size, vertex, d * 8);
        copy->out.size += d * 8;
    }
    return 1;
}

/* with_coordinates(wkb, n, xy, offsets) -> (address, size, owner); the number of positions is checked by the caller. */
static PyObject *kernel_with_coordinates(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *positions, *target, *result = NULL;
    Py_ssize_t n;
    Column wkb = {0};
    Py_buffer xy = {0}, out = {0};
    if (!PyArg_ParseTuple(args, "OnOO", &given, &n, &positions, &target))
        return NULL;
    if (!wkb_take(given, n, &wkb) || PyObject_GetBuffer(positions, &xy, PyBUF_C_CONTIGUOUS) < 0 || !writable(target, (n + 1) * 8, &out))
        goto done;
    int64_t *offsets = out.buf;
    Copy copy = {{copy_head, copy_run}, {0}, xy.buf, (size_t)xy.len / 16};
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    offsets[0] = 0;
    for (Py_ssize_t row = 0; row < n && rc != NO_MEMORY; row++) {
        if (is_present(&wkb, row)) {
            Span value = value_at(&wkb, row);
            Bytes in = {value.at, value.at + value.size};
            size_t begin = copy.out.size, before = copy.xy_left;
            const double *at = copy.xy;
            Head head;
            if ((rc = walk(&in, &copy.visitor, &head)) == UNREADABLE) {  /* it goes through as it is, and takes no position */
                copy.out.size = begin;
                copy.xy_left = before;
                copy.xy = at;
                rc = put(&copy.out, value.at, value.size) ? 1 : NO_MEMORY;
            }
        }
        offsets[row + 1] = (int64_t)copy.out.size;
    }
    Py_END_ALLOW_THREADS
    result = finish_owned(rc, &copy.out);
done:
    release(&xy);
    release(&out);
    column_release(&wkb);
    return result;
}

/* ---- comparing two columns ---- */

static PyObject *kernel_largest_move(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given[2], *target, *result = NULL;
    Py_ssize_t n;
    Column sides[2] = {{0}};
    Outline a = {0}, b = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "OOnO", &given[0], &given[1], &n, &target))
        return NULL;
    if (!wkb_take(given[0], n, &sides[0]) || !wkb_take(given[1], n, &sides[1]) || !writable(target, n * 8, &out))
        goto done;
    double *moves = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n; row++) {
        Head head_a, head_b;
        moves[row] = NAN;
        if (!is_present(&sides[0], row) || !is_present(&sides[1], row))
            continue;
        Span va = value_at(&sides[0], row), vb = value_at(&sides[1], row);
        int ra = outline_of(va.at, va.size, 0, &a, &head_a), rb = outline_of(vb.at, vb.size, 0, &b, &head_b);
        if (ra == NO_MEMORY || rb == NO_MEMORY) {
            rc = NO_MEMORY;
            break;
        }
        if (ra > 0 && rb > 0)
            moves[row] = size_of_change(&a, &b);
    }
    Py_END_ALLOW_THREADS
    result = finish_none(rc);
done:
    outline_free(&a);
    outline_free(&b);
    column_release(&sides[0]);
    column_release(&sides[1]);
    release(&out);
    return result;
}

/* within(a, b, n, (xy, z, m limits), kept dimension bits, either way, out) */
static PyObject *kernel_within(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given[2], *target, *result = NULL;
    Py_ssize_t n;
    Column sides[2] = {{0}};
    Outline a = {0}, b = {0};
    Near near;
    Py_buffer out = {0};
    int keep;
    memset(&near, 0, sizeof near);
    if (!PyArg_ParseTuple(args, "OOn(ddd)ipO", &given[0], &given[1], &n, &near.limit[0], &near.limit[2], &near.limit[3], &keep, &near.either_way,
                          &target))
        return NULL;
    near.limit[1] = near.limit[0];
    near.a = &a;
    near.b = &b;
    if (!wkb_take(given[0], n, &sides[0]) || !wkb_take(given[1], n, &sides[1]) || !writable(target, n, &out))
        goto done;
    uint8_t *answers = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n && rc == 1; row++) {
        Head head_a, head_b;
        int there_a = is_present(&sides[0], row), there_b = is_present(&sides[1], row);
        answers[row] = !there_a && !there_b;
        if (!there_a || !there_b)
            continue;
        Span va = value_at(&sides[0], row), vb = value_at(&sides[1], row);
        int ra = outline_of(va.at, va.size, keep, &a, &head_a), rb = outline_of(vb.at, vb.size, keep, &b, &head_b);
        if (ra == NO_MEMORY || rb == NO_MEMORY)
            rc = NO_MEMORY;
        else if (ra > 0 && rb > 0)
            answers[row] = (uint8_t)is_near(&near, &head_a, &head_b);
        if (near.no_memory)
            rc = NO_MEMORY;
    }
    Py_END_ALLOW_THREADS
    result = finish_none(rc);
done:
    free(near.reach);
    outline_free(&a);
    outline_free(&b);
    column_release(&sides[0]);
    column_release(&sides[1]);
    release(&out);
    return result;
}

/* ---- Hilbert order ---- */

/* Distance along the Hilbert curve of 2^order cells a side: quadrant by quadrant, turning the square as the curve does. */
static uint64_t hilbert_index(uint32_t x, uint32_t y, int order)
{
    uint64_t index = 0;
    for (int level = order - 1; level >= 0; level--) {
        uint32_t side = (uint32_t)1 << level, right = (x & side) != 0, top = (y & side) != 0;
        index += ((uint64_t)side * side) * ((3 * right) ^ top);
        if (!top) {
            if (right) {
                x = side - 1 - (x & (side - 1));
                y = side - 1 - (y & (side - 1));
            }
            uint32_t swap = x;
            x = y;
            y = swap;
        }
        x &= side - 1;
        y &= side - 1;
    }
    return index;
}

static uint32_t hilbert_cell(double value, double low, double high, int order)
{
    double cells = ldexp(1.0, order), at = high > low ? floor((value - low) / (high - low) * cells) : 0;
    return at < 0 ? 0 : at >= cells ? (uint32_t)cells - 1 : (uint32_t)at;
}

static PyObject *kernel_hilbert(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *xs, *ys, *target, *result = NULL;
    Py_buffer x = {0}, y = {0}, out = {0};
    double bounds[4];
    Py_ssize_t n;
    int order;
    if (!PyArg_ParseTuple(args, "OOn(dddd)iO", &xs, &ys, &n, &bounds[0], &bounds[1], &bounds[2], &bounds[3], &order, &target))
        return NULL;
    if (PyObject_GetBuffer(xs, &x, PyBUF_C_CONTIGUOUS) < 0 || PyObject_GetBuffer(ys, &y, PyBUF_C_CONTIGUOUS) < 0 || !writable(target, n * 8, &out))
        goto done;
    if (x.len < n * 8 || y.len < n * 8 || order < 1 || order > 31) {
        PyErr_SetString(PyExc_ValueError, "x and y have one float64 a row; order is 1 to 31");
        goto done;
    }
    const double *px = x.buf, *py = y.buf;
    uint64_t *indices = out.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++)
        indices[i] = isnan(px[i]) || isnan(py[i]) ? UINT64_MAX
            : hilbert_index(hilbert_cell(px[i], bounds[0], bounds[2], order), hilbert_cell(py[i], bounds[1], bounds[3], order), order);
    Py_END_ALLOW_THREADS
    result = finish_none(1);
done:
    release(&x);
    release(&y);
    release(&out);
    return result;
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"scan", kernel_scan, METH_VARARGS, NULL},
    {"decimals", kernel_decimals, METH_VARARGS, NULL},
    {"measures", kernel_measures, METH_VARARGS, NULL},
    {"doubtful", kernel_doubtful, METH_VARARGS, NULL},
    {"encode", kernel_encode, METH_VARARGS, NULL},
    {"canonical", kernel_canonical, METH_VARARGS, NULL},
    {"digest", kernel_digest, METH_VARARGS, NULL},
    {"coordinates", kernel_coordinates, METH_VARARGS, NULL},
    {"with_coordinates", kernel_with_coordinates, METH_VARARGS, NULL},
    {"largest_move", kernel_largest_move, METH_VARARGS, NULL},
    {"within", kernel_within, METH_VARARGS, NULL},
    {"hilbert", kernel_hilbert, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Counts up when a call changes, so that compiled.py knows an extension that was built from other sources than its own. */
static int name_calls(PyObject *module)
{
    return PyModule_AddIntConstant(module, "CALLS", 5);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, name_calls},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},  /* no state of its own, and none of Python's is touched while rows are read */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "See merestone.geometry.kernel.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
