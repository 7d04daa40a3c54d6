/* The compiled kernel: columns of WKB and of attributes in, columns out. No Python object per row, and the GIL is released.
 *
 * Called through compiled.py only, which hands over Arrow buffers. fallback.py answers the same calls with NumPy; tests hold the two
 * equal to each other and to a slow reference. The parts: _wkb.h reads, _form.h gives the canonical form, _move.h compares two
 * geometries, _valid.h sees which are valid, _blake2b.h hashes; this file turns rows into calls and holds the attribute section of the digest.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_blake2b.h"
#include "_form.h"
#include "_move.h"
#include "_valid.h"

/* ---- columns ---- */

enum { SIGNED, UNSIGNED, FLOAT, BOOLEAN, FIXED, VARIABLE, LIST, CODED };

/* A column of n rows as Arrow lays it out: a null validity buffer means that every row is there. */
typedef struct {
    int kind, tag;
    Py_buffer name, validity, offsets, data, extra;
    Py_ssize_t first, width;  /* rows to skip in the buffers; bytes of a value, or of an offset */
    uint8_t *intro;           /* length and bytes of the name, as each field begins */
    size_t intro_size;
} Column;

static void column_release(Column *column)
{
    Py_buffer *buffers[] = {&column->name, &column->validity, &column->offsets, &column->data, &column->extra};
    for (size_t i = 0; i < 5; i++)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    free(column->intro);
}

static int holds(const Py_buffer *buffer, Py_ssize_t bytes)
{
    return bytes <= 0 || (buffer->buf && buffer->len >= bytes);
}

/* Parse (kind, tag, name, validity, offsets, data, extra, first, width) and check that the buffers hold n rows. */
static int column_take(PyObject *given, Py_ssize_t n, Column *column)
{
    int fits;
    Py_ssize_t end;
    memset(column, 0, sizeof *column);
    if (!PyArg_ParseTuple(given, "iiy*z*z*z*z*nn", &column->kind, &column->tag, &column->name, &column->validity, &column->offsets,
                          &column->data, &column->extra, &column->first, &column->width))
        return 0;
    end = column->first + n;
    fits = n >= 0 && column->first >= 0 && column->width >= 0 && (!column->validity.buf || holds(&column->validity, (end + 7) / 8));
    if (n > 0) {
        switch (column->kind) {
        case BOOLEAN: fits = fits && holds(&column->data, (end + 7) / 8); break;
        case VARIABLE: case LIST:
            fits = fits && (column->width == 4 || column->width == 8) && holds(&column->offsets, (end + 1) * column->width);
            break;
        case FLOAT: fits = fits && (column->width == 4 || column->width == 8) && holds(&column->data, end * column->width); break;
        case SIGNED: case UNSIGNED:
            fits = fits && (column->width == 1 || column->width == 2 || column->width == 4 || column->width == 8)
                   && holds(&column->data, end * column->width);
            break;
        case FIXED: fits = fits && holds(&column->data, end * column->width); break;
        case CODED: fits = fits && (column->width == 4 || column->width == 8) && holds(&column->extra, end * 4); break;
        default: fits = 0;
        }
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "a column's buffers do not hold its rows");
        return 0;
    }
    column->intro_size = 4 + (size_t)column->name.len;
    if (!(column->intro = malloc(column->intro_size))) {
        PyErr_NoMemory();
        return 0;
    }
    uint32_t length = (uint32_t)column->name.len;
    memcpy(column->intro, &length, 4);
    memcpy(column->intro + 4, column->name.buf, (size_t)column->name.len);
    return 1;
}

static inline int is_present(const Column *column, Py_ssize_t row)
{
    const uint8_t *bits = column->validity.buf;
    row += column->first;
    return !bits || bits[row >> 3] >> (row & 7) & 1;
}

static inline int64_t offset_at(const Py_buffer *offsets, Py_ssize_t width, Py_ssize_t index)
{
    int32_t narrow;
    int64_t wide;
    if (width == 8) {
        memcpy(&wide, (const uint8_t *)offsets->buf + index * 8, 8);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)offsets->buf + index * 4, 4);
    return narrow;
}

/* The bytes of a variable-length value. Offsets that leave the data give nothing rather than a read beyond it. */
static inline Span value_at(const Column *column, Py_ssize_t row)
{
    int64_t start = offset_at(&column->offsets, column->width, column->first + row);
    int64_t end = offset_at(&column->offsets, column->width, column->first + row + 1);
    Span span = {(const uint8_t *)"", 0};
    if (start >= 0 && end > start && end <= column->data.len) {
        span.at = (const uint8_t *)column->data.buf + start;
        span.size = (size_t)(end - start);
    }
    return span;
}

/* The bytes of the first n values of a column of variable length; 0 where its offsets make no sense. */
static size_t bytes_of(const Column *column, Py_ssize_t n)
{
    int64_t start = n ? offset_at(&column->offsets, column->width, column->first) : 0;
    int64_t end = n ? offset_at(&column->offsets, column->width, column->first + n) : 0;
    return start >= 0 && end > start && end <= column->data.len ? (size_t)(end - start) : 0;
}

/* ---- attribute values ---- */

static int put_value(Arena *out, uint8_t tag, const void *value, size_t size)
{
    uint8_t *to;
    uint32_t length = (uint32_t)size;
    if (!reserve(out, 5 + size))
        return 0;
    to = out->data + out->size;
    to[0] = tag;
    memcpy(to + 1, &length, 4);
    if (size)
        memcpy(to + 5, value, size);
    out->size += 5 + size;
    return 1;
}

static int64_t integer_at(const Column *column, Py_ssize_t row)
{
    const uint8_t *at = (const uint8_t *)column->data.buf + (column->first + row) * column->width;
    int8_t b; int16_t h; int32_t w; int64_t q;
    int is_signed = column->kind == SIGNED;
    switch (column->width) {
    case 1: memcpy(&b, at, 1); return is_signed ? b : (int64_t)(uint8_t)b;
    case 2: memcpy(&h, at, 2); return is_signed ? h : (int64_t)(uint16_t)h;
    case 4: memcpy(&w, at, 4); return is_signed ? w : (int64_t)(uint32_t)w;
    default: memcpy(&q, at, 8); return q;
    }
}

static double float_at(const Column *column, Py_ssize_t row)
{
    const uint8_t *at = (const uint8_t *)column->data.buf + (column->first + row) * column->width;
    float narrow;
    double wide;
    if (column->width == 8) {
        memcpy(&wide, at, 8);
        return wide;
    }
    memcpy(&narrow, at, 4);
    return narrow;
}

/* NaN is no value. */
static int has_value(const Column *column, Py_ssize_t row)
{
    return is_present(column, row) && !(column->kind == FLOAT && isnan(float_at(column, row)));
}

/* Append tag, length, value. The value must be there. 0 without memory. */
static int put_field_value(Arena *out, const Column *column, Py_ssize_t row)
{
    uint8_t tag = (uint8_t)column->tag;
    switch (column->kind) {
    case SIGNED: case UNSIGNED: {
        int64_t value[2] = {integer_at(column, row), 0};  /* beyond int64: 16 bytes */
        return put_value(out, tag, value, column->kind == UNSIGNED && value[0] < 0 ? 16 : 8);
    }
    case FLOAT: {
        double value = float_at(column, row);
        if (fabs(value) < 9007199254740992.0 && value == rint(value)) {
            int64_t whole = (int64_t)value;
            return put_value(out, 'i', &whole, 8);
        }
        return put_value(out, tag, &value, 8);
    }
    case BOOLEAN: {
        Py_ssize_t at = column->first + row;
        uint8_t value = ((const uint8_t *)column->data.buf)[at >> 3] >> (at & 7) & 1;
        return put_value(out, tag, &value, 1);
    }
    case FIXED: {  /* extra: bytes in front of each value, such as a decimal's scale */
        uint32_t length = (uint32_t)(column->extra.len + column->width);
        return put_byte(out, tag) && put_count(out, length) && put(out, column->extra.buf, (size_t)column->extra.len)
               && put(out, (const uint8_t *)column->data.buf + (column->first + row) * column->width, (size_t)column->width);
    }
    case VARIABLE: {
        Span value = value_at(column, row);
        return put_value(out, tag, value.at, value.size);
    }
    default: {  /* LIST: count, then the elements, which stand encoded one after the other; extra: where each begins */
        int64_t start = offset_at(&column->offsets, column->width, column->first + row);
        int64_t end = offset_at(&column->offsets, column->width, column->first + row + 1);
        int64_t from = 0, to = 0;
        if (start >= 0 && end > start && (end + 1) * 8 <= column->extra.len) {
            from = offset_at(&column->extra, 8, (Py_ssize_t)start);
            to = offset_at(&column->extra, 8, (Py_ssize_t)end);
        }
        if (from < 0 || to < from || to > column->data.len)
            from = to = end = start = 0;
        return put_byte(out, tag) && put_count(out, (uint32_t)(4 + to - from)) && put_count(out, (uint32_t)(end - start))
               && put(out, (const uint8_t *)column->data.buf + from, (size_t)(to - from));
    }
    }
}

/* The attribute section: count of the fields that have a value, then those in the columns' order (by name, as the caller sorted). */
static int put_attributes(Arena *out, const Column *columns, Py_ssize_t columns_n, Py_ssize_t row)
{
    size_t begin = out->size;
    uint32_t count = 0;
    if (!put_count(out, 0))
        return 0;
    for (Py_ssize_t i = 0; i < columns_n; i++) {
        if (!has_value(&columns[i], row))
            continue;
        if (!put(out, columns[i].intro, columns[i].intro_size) || !put_field_value(out, &columns[i], row))
            return 0;
        count++;
    }
    memcpy(out->data + begin, &count, 4);
    return 1;
}

/* ---- calls: what each is given ---- */

static int columns_take(PyObject *given, Py_ssize_t n, Column **columns, Py_ssize_t *columns_n)
{
    Py_ssize_t count = PyTuple_Size(given), i;
    *columns = NULL;
    *columns_n = 0;
    if (count < 0 || !(*columns = calloc((size_t)count + 1, sizeof **columns))) {
        if (count >= 0)
            PyErr_NoMemory();
        return 0;
    }
    for (i = 0; i < count; i++) {
        *columns_n = i + 1;
        if (!column_take(PyTuple_GetItem(given, i), n, &(*columns)[i]))
            return 0;
    }
    return 1;
}

static void columns_release(Column *columns, Py_ssize_t columns_n)
{
    for (Py_ssize_t i = 0; i < columns_n; i++)
        column_release(&columns[i]);
    free(columns);
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

/* A writable array of at least `bytes`. */
static int writable(PyObject *given, Py_ssize_t bytes, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0)
        return 0;
    if (buffer->len < bytes) {
        PyErr_SetString(PyExc_ValueError, "an output array is too small");
        return 0;
    }
    return 1;
}

static void release(Py_buffer *buffer)
{
    if (buffer->obj)
        PyBuffer_Release(buffer);
}

static PyObject *finish_bytes(int rc, Arena *out)
{
    PyObject *result = rc == NO_MEMORY ? PyErr_NoMemory() : PyBytes_FromStringAndSize((const char *)out->data, (Py_ssize_t)out->size);
    free(out->data);
    return result;
}

static void capsule_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* What grew in an arena, handed over as it lies: (address, size, owner). */
static PyObject *finish_owned(int rc, Arena *out)
{
    size_t size = out->size;
    uint8_t *data = rc == NO_MEMORY ? NULL : realloc(out->data, size ? size : 1);
    PyObject *owner = data ? PyCapsule_New(data, NULL, capsule_free) : PyErr_NoMemory();
    if (!owner)
        free(data ? data : out->data);
    memset(out, 0, sizeof *out);
    return owner ? Py_BuildValue("NnN", PyLong_FromVoidPtr(data), (Py_ssize_t)size, owner) : NULL;
}

static PyObject *finish_none(int rc)
{
    if (rc == NO_MEMORY)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
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

typedef int (*Take)(PyObject *given, Py_ssize_t n, Column **columns, Py_ssize_t *columns_n);
typedef int (*Put)(Arena *out, const Column *columns, Py_ssize_t columns_n, Py_ssize_t row);

/* The bytes of all rows, one after the other: `take` reads the columns of args (columns, n, offsets), `put_row` appends those of one row. */
static PyObject *bytes_of_rows(PyObject *args, Take take, Put put_row)
{
    PyObject *given, *target, *result = NULL;
    Py_ssize_t n, columns_n = 0;
    Column *columns = NULL;
    Arena arena = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "O!nO", &PyTuple_Type, &given, &n, &target))
        return NULL;
    if (!take(given, n, &columns, &columns_n) || !writable(target, (n + 1) * 8, &out))
        goto done;
    int64_t *offsets = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    offsets[0] = 0;
    for (Py_ssize_t row = 0; row < n && rc == 1; row++) {
        rc = put_row(&arena, columns, columns_n, row) ? 1 : NO_MEMORY;
        offsets[row + 1] = (int64_t)arena.size;
    }
    Py_END_ALLOW_THREADS
    result = finish_owned(rc, &arena);
done:
    columns_release(columns, columns_n);
    release(&out);
    return result;
}

/* attributes(columns, n, offsets) -> (address, size, owner): the attribute section of each row; also the value of a struct. */
static PyObject *kernel_attributes(PyObject *Py_UNUSED(module), PyObject *args)
{
    return bytes_of_rows(args, columns_take, put_attributes);
}

/* elements(column, n, offsets) -> (address, size, owner): each value as a list holds it: tag, length, value, or one zero byte for null. */
static PyObject *kernel_elements(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *target, *result = NULL;
    Py_ssize_t n;
    Column column = {0};
    Arena arena = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "OnO", &given, &n, &target))
        return NULL;
    if (!column_take(given, n, &column) || !writable(target, (n + 1) * 8, &out))
        goto done;
    int64_t *offsets = out.buf;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    offsets[0] = 0;
    for (Py_ssize_t row = 0; row < n && rc == 1; row++) {
        rc = (has_value(&column, row) ? put_field_value(&arena, &column, row) : put_byte(&arena, 0)) ? 1 : NO_MEMORY;
        offsets[row + 1] = (int64_t)arena.size;
    }
    Py_END_ALLOW_THREADS
    result = finish_owned(rc, &arena);
done:
    column_release(&column);
    release(&out);
    return result;
}

#define TOGETHER 64  /* payloads that are laid side by side before they are hashed */

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

/* ---- texts joined row by row ---- */

/* How a piece of a row is written (the column's tag): its name for every row, its bytes, or name ":" length ":" text "," and nothing where
 * there is no value. The text of an integer is decimal, that of fixed bytes hexadecimal. */
enum { CONSTANT = 'c', PLAIN = 'p', ENTRY = 'e' };
#define MOST_HEX 32  /* bytes of a fixed value that can be an entry */

static size_t put_decimal(uint8_t text[20], int64_t value)
{
    uint8_t digits[20];
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t n = 0, at = 0;
    do {
        digits[n++] = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0)
        text[at++] = '-';
    while (n)
        text[at++] = digits[--n];
    return at;
}

/* The bytes of a piece in one row, where they lie or written into `room`. */
static Span piece_text(const Column *piece, Py_ssize_t row, uint8_t room[2 * MOST_HEX])
{
    Span span = {room, 0};
    switch (piece->kind) {
    case VARIABLE:
        return value_at(piece, row);
    case CODED: {  /* offsets and data are those of the dictionary, extra holds a code a row */
        Column values = *piece;
        int32_t code;
        memcpy(&code, (const uint8_t *)piece->extra.buf + (piece->first + row) * 4, 4);
        values.first = 0;
        if (code >= 0 && ((Py_ssize_t)code + 2) * piece->width <= piece->offsets.len)
            return value_at(&values, code);
        return span;
    }
    case SIGNED:
        span.size = put_decimal(room, integer_at(piece, row));
        return span;
    default: {  /* FIXED */
        const uint8_t *value = (const uint8_t *)piece->data.buf + (piece->first + row) * piece->width;
        if (piece->tag == PLAIN)
            return (Span){value, (size_t)piece->width};
        for (Py_ssize_t i = 0; i < piece->width; i++) {
            room[2 * i] = (uint8_t)"0123456789abcdef"[value[i] >> 4];
            room[2 * i + 1] = (uint8_t)"0123456789abcdef"[value[i] & 15];
        }
        span.size = 2 * (size_t)piece->width;
        return span;
    }
    }
}

static int put_piece(Arena *out, const Column *piece, Py_ssize_t row)
{
    uint8_t room[2 * MOST_HEX], length[20];
    size_t name = (size_t)piece->name.len, digits;
    if (piece->tag == CONSTANT)
        return put(out, piece->name.buf, name);
    if (!is_present(piece, row))
        return 1;
    Span text = piece_text(piece, row, room);
    if (piece->tag == PLAIN)
        return put(out, text.at, text.size);
    digits = put_decimal(length, (int64_t)text.size);
    if (!reserve(out, name + digits + text.size + 3))
        return 0;
    uint8_t *to = out->data + out->size;
    memcpy(to, piece->name.buf, name);
    to += name;
    *to++ = ':';
    memcpy(to, length, digits);
    to += digits;
    *to++ = ':';
    memcpy(to, text.at, text.size);
    to += text.size;
    *to++ = ',';
    out->size = (size_t)(to - out->data);
    return 1;
}

static int put_pieces(Arena *out, const Column *pieces, Py_ssize_t pieces_n, Py_ssize_t row)
{
    for (Py_ssize_t i = 0; i < pieces_n; i++)
        if (!put_piece(out, &pieces[i], row))
            return 0;
    return 1;
}

static int pieces_take(PyObject *given, Py_ssize_t n, Column **pieces, Py_ssize_t *pieces_n)
{
    if (!columns_take(given, n, pieces, pieces_n))
        return 0;
    for (Py_ssize_t i = 0; i < *pieces_n; i++) {
        const Column *each = &(*pieces)[i];
        int known = each->kind == VARIABLE || each->kind == CODED || (each->kind == SIGNED && each->tag == ENTRY)
                    || (each->kind == FIXED && (each->tag == PLAIN || each->width <= MOST_HEX));
        if (each->tag != CONSTANT && !(known && (each->tag == PLAIN || each->tag == ENTRY))) {
            PyErr_SetString(PyExc_TypeError, "a piece is bytes, a text, an integer or of a fixed width");
            return 0;
        }
    }
    return 1;
}

/* joined(pieces, n, offsets) -> (address, size, owner): the pieces of each row, one after the other. */
static PyObject *kernel_joined(PyObject *Py_UNUSED(module), PyObject *args)
{
    return bytes_of_rows(args, pieces_take, put_pieces);
}

/* hashed(pieces, n, out, size): the BLAKE2b hash of each row's joined pieces in `size` bytes, 16 or 32. */
static PyObject *kernel_hashed(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *target, *result = NULL;
    Py_ssize_t n, size, pieces_n = 0;
    Column *pieces = NULL;
    Arena arena = {0};
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "O!nOn", &PyTuple_Type, &given, &n, &target, &size))
        return NULL;
    if (size != B2_OUT && size != 2 * B2_OUT) {
        PyErr_SetString(PyExc_ValueError, "a digest has 16 or 32 bytes");
        return NULL;
    }
    if (!pieces_take(given, n, &pieces, &pieces_n) || !writable(target, n * size, &out))
        goto done;
    int rc = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n && rc == 1; row += TOGETHER) {
        Py_ssize_t rows = n - row < TOGETHER ? n - row : TOGETHER;
        size_t ends[TOGETHER];
        Message messages[TOGETHER];
        arena.size = 0;
        for (Py_ssize_t i = 0; i < rows && rc == 1; i++) {
            rc = put_pieces(&arena, pieces, pieces_n, row + i) ? 1 : NO_MEMORY;
            ends[i] = arena.size;
        }
        if (rc != 1)
            break;
        for (Py_ssize_t i = 0; i < rows; i++) {
            size_t start = i ? ends[i - 1] : 0;
            messages[i].at = arena.data + start;
            messages[i].size = ends[i] - start;
        }
        blake2b_each(messages, (size_t)rows, (uint8_t *)out.buf + row * size, (size_t)size);
    }
    Py_END_ALLOW_THREADS
    result = finish_none(rc);
done:
    free(arena.data);
    columns_release(pieces, pieces_n);
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
    {"attributes", kernel_attributes, METH_VARARGS, NULL},
    {"elements", kernel_elements, METH_VARARGS, NULL},
    {"digest", kernel_digest, METH_VARARGS, NULL},
    {"joined", kernel_joined, METH_VARARGS, NULL},
    {"hashed", kernel_hashed, METH_VARARGS, NULL},
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
    return PyModule_AddIntConstant(module, "CALLS", 3);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, name_calls}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "See merestone.geometry.kernel.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
