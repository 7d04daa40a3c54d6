/* Rows of columns as bytes, and their hashes. No Python object per row, and the GIL is released.
 *
 * Called through compiled.py only, which hands over Arrow buffers. fallback.py answers the same calls with NumPy; tests hold the two equal.
 */
#include "_columns.h"

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
static PyObject *hashing_attributes(PyObject *Py_UNUSED(module), PyObject *args)
{
    return bytes_of_rows(args, columns_take, put_attributes);
}

/* elements(column, n, offsets) -> (address, size, owner): each value as a list holds it: tag, length, value, or one zero byte for null. */
static PyObject *hashing_elements(PyObject *Py_UNUSED(module), PyObject *args)
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
        return value_at(&values, code);
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
static PyObject *hashing_joined(PyObject *Py_UNUSED(module), PyObject *args)
{
    return bytes_of_rows(args, pieces_take, put_pieces);
}

/* hashed(pieces, n, out, size): the BLAKE2b hash of each row's joined pieces in `size` bytes, 16 or 32. */
static PyObject *hashing_hashed(PyObject *Py_UNUSED(module), PyObject *args)
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

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"attributes", hashing_attributes, METH_VARARGS, NULL},
    {"elements", hashing_elements, METH_VARARGS, NULL},
    {"joined", hashing_joined, METH_VARARGS, NULL},
    {"hashed", hashing_hashed, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Counts up when a call changes, so that compiled.py knows an extension that was built from other sources than its own. */
static int name_calls(PyObject *module)
{
    return PyModule_AddIntConstant(module, "CALLS", 2);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, name_calls},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},  /* no state of its own, and none of Python's is touched while rows are read */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_hashing", "See merestone.columnar.hashing.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__hashing(void)
{
    return PyModuleDef_Init(&definition);
}
