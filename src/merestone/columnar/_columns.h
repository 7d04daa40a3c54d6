/* Columns of n rows as Arrow lays them out, and the attribute section of a digest (docs/spec/fingerprint.md).
 *
 * Nothing here trusts the buffers: each must hold its rows, and offsets must stay inside their data, before a row is read.
 */
#ifndef MERESTONE_COLUMNS_H
#define MERESTONE_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>

#include "_blake2b.h"
#include "_bytes.h"

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

/* Whether n + 1 offsets from `first` on never go back and stay within `limit`. */
static int offsets_hold(const Py_buffer *offsets, Py_ssize_t width, Py_ssize_t first, Py_ssize_t n, int64_t limit)
{
    int64_t before = offset_at(offsets, width, first), back = 0;
    if (before < 0)
        return 0;
    for (Py_ssize_t i = 1; i <= n; i++) {
        int64_t next = offset_at(offsets, width, first + i);
        back |= next - before;
        before = next;
    }
    return back >= 0 && before <= limit;
}

/* Whether every value lies inside its data. Offsets that leave it are corruption: they must not pass for an empty value. */
static int values_hold(const Column *column, Py_ssize_t n)
{
    switch (column->kind) {
    case VARIABLE: return offsets_hold(&column->offsets, column->width, column->first, n, column->data.len);
    case LIST: {
        Py_ssize_t elements = column->extra.len / 8 - 1;
        return elements >= 0 && offsets_hold(&column->offsets, column->width, column->first, n, elements)
               && offsets_hold(&column->extra, 8, 0, elements, column->data.len);
    }
    case CODED:
        for (Py_ssize_t row = 0; row < n; row++) {
            int32_t code;
            if (!is_present(column, row))
                continue;
            memcpy(&code, (const uint8_t *)column->extra.buf + (column->first + row) * 4, 4);
            if (code < 0 || ((Py_ssize_t)code + 2) * column->width > column->offsets.len
                || !offsets_hold(&column->offsets, column->width, code, 1, column->data.len))
                return 0;
        }
        return 1;
    default: return 1;
    }
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
    if (n > 0 && !values_hold(column, n)) {
        PyErr_SetString(PyExc_ValueError, "a column's offsets lie outside its data");
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

/* The bytes of a variable-length value. */
static inline Span value_at(const Column *column, Py_ssize_t row)
{
    int64_t start = offset_at(&column->offsets, column->width, column->first + row);
    int64_t end = offset_at(&column->offsets, column->width, column->first + row + 1);
    Span span = {(const uint8_t *)"", 0};
    if (end > start) {
        span.at = (const uint8_t *)column->data.buf + start;
        span.size = (size_t)(end - start);
    }
    return span;
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
        int64_t from = offset_at(&column->extra, 8, (Py_ssize_t)start), to = offset_at(&column->extra, 8, (Py_ssize_t)end);
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

#define TOGETHER 64  /* payloads that are laid side by side before they are hashed */

#endif
