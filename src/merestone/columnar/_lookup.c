/* Rows met again by their hash, in entries of fixed width that lie mapped. No Python object per row, and the GIL is released.
 *
 * Called through compiled_lookup.py only. plain_lookup.py answers the same calls with NumPy; tests hold the two equal.
 */
#include "_columns.h"

enum { DEAD = 1, CLAIMED = 2 };          /* of an entry */
enum { SAME = 1, AGAIN = 2 };            /* of a row */
enum { DONE, NO_PROOF, NO_TABLE };       /* why `meet` stops */
enum { MAIN, OTHER, MET, SEARCHED, WHY, GROUP, CURSOR };
#define AHEAD 32   /* entries that a row may lie behind the place where it is expected */
#define LOST 64    /* rows after another that were met in no place: the next ones are not looked for behind it */
#define EARLY 16   /* rows for which memory is asked before it is needed */

/* Entries in groups of 2^shift: where the hashes (16 bytes), digests (16) and codes (4) of each group lie in `data`. */
typedef struct {
    Py_buffer data, starts[3], proven;
    int shift;
    int64_t rows;
} Entries;

/* Rows apart, sorted by hash: hash (2 x 8 bytes), slot (4), digest (2 x 8), code (4). */
typedef struct {
    Py_buffer hash, slot, source, code;
    int64_t rows;
} Apart;

static const int WIDTH[3] = {16, 16, 4};

static void entries_release(Entries *entries)
{
    release(&entries->data);
    release(&entries->proven);
    for (int i = 0; i < 3; i++)
        release(&entries->starts[i]);
}

static void apart_release(Apart *apart)
{
    release(&apart->hash);
    release(&apart->slot);
    release(&apart->source);
    release(&apart->code);
}

static int view(PyObject *given, int64_t bytes, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS) < 0)
        return 0;
    if (buffer->len < bytes) {
        PyErr_SetString(PyExc_ValueError, "an array is too small");
        return 0;
    }
    return 1;
}

/* (data, hashes, digests, codes, proven, shift, rows) */
static int entries_take(PyObject *given, Entries *entries)
{
    PyObject *data, *starts[3], *proven;
    long long rows;
    if (!PyArg_ParseTuple(given, "OOOOOiL", &data, &starts[0], &starts[1], &starts[2], &proven, &entries->shift, &rows))
        return 0;
    if (rows < 0 || rows > INT32_MAX || entries->shift < 0 || entries->shift > 30) {
        PyErr_SetString(PyExc_ValueError, "entries of no such size");
        return 0;
    }
    int64_t groups = (rows + ((int64_t)1 << entries->shift) - 1) >> entries->shift;
    entries->rows = rows;
    if (!view(data, 0, &entries->data) || !view(proven, groups, &entries->proven))
        return 0;
    for (int i = 0; i < 3; i++) {
        if (!view(starts[i], groups * 8, &entries->starts[i]))
            return 0;
        for (int64_t group = 0; group < groups; group++) {
            int64_t start = ((const int64_t *)entries->starts[i].buf)[group], left = rows - (group << entries->shift);
            int64_t here = left < (int64_t)1 << entries->shift ? left : (int64_t)1 << entries->shift;
            if (start < 0 || start > entries->data.len || here * WIDTH[i] > entries->data.len - start) {
                PyErr_SetString(PyExc_ValueError, "entries reach out of their bytes");
                return 0;
            }
        }
    }
    return 1;
}

/* (hash, slot, digest, code) */
static int apart_take(PyObject *given, Apart *apart)
{
    PyObject *hash, *slot, *source, *code;
    if (!PyArg_ParseTuple(given, "OOOO", &hash, &slot, &source, &code) || !view(slot, 0, &apart->slot))
        return 0;
    apart->rows = apart->slot.len / 4;
    return view(hash, apart->rows * 16, &apart->hash) && view(source, apart->rows * 16, &apart->source) && view(code, apart->rows * 4, &apart->code);
}

static inline const uint8_t *entry(const Entries *entries, int column, int64_t slot)
{
    int64_t start = ((const int64_t *)entries->starts[column].buf)[slot >> entries->shift];
    return (const uint8_t *)entries->data.buf + start + (slot & (((int64_t)1 << entries->shift) - 1)) * WIDTH[column];
}

static inline int is_proven(const Entries *entries, int64_t slot)
{
    return ((const uint8_t *)entries->proven.buf)[slot >> entries->shift];
}

/* Sixteen bytes as they lie, from their big-endian halves. */
typedef struct {
    uint64_t at[2];
} Sixteen;

static inline Sixteen laid(const uint64_t *halves)
{
    return (Sixteen){{__builtin_bswap64(halves[0]), __builtin_bswap64(halves[1])}};
}

static inline int equals(const uint8_t *at, Sixteen wanted)
{
    uint64_t first, second;
    memcpy(&first, at, 8);
    memcpy(&second, at + 8, 8);
    return first == wanted.at[0] && second == wanted.at[1];
}

/* The first of sorted rows that is not less than the wanted one. */
static int64_t lower_bound(const uint64_t *sorted, int64_t rows, const uint64_t *wanted)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const uint64_t *here = sorted + 2 * middle;
        if (here[0] < wanted[0] || (here[0] == wanted[0] && here[1] < wanted[1]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The place among the rows apart, -1 where it is not there. */
static inline int64_t apart_at(const Apart *apart, const uint64_t *wanted)
{
    const uint64_t *sorted = apart->hash.buf;
    int64_t at = apart->rows ? lower_bound(sorted, apart->rows, wanted) : 0;
    return at < apart->rows && sorted[2 * at] == wanted[0] && sorted[2 * at + 1] == wanted[1] ? at : -1;
}

static inline uint64_t bucket_of(uint64_t first, int bits)
{
    return bits ? first >> (64 - bits) : 0;
}

/* The entry of a hash, alive, by the table: -1 where there is none, -2 - g where group g has to be proven first. */
static int64_t search(const Entries *entries, const uint8_t *state, const uint32_t *table, int bits, const uint64_t *wanted)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    Sixteen bytes = laid(wanted);
    for (uint64_t at = bucket_of(wanted[0], bits); table[at]; at = (at + 1) & mask) {
        int64_t slot = (int64_t)table[at] - 1;
        if (slot >= entries->rows)
            continue;
        if (!is_proven(entries, slot))
            return -2 - (slot >> entries->shift);
        if (equals(entry(entries, 0, slot), bytes) && !(state[slot] & DEAD))
            return slot;
    }
    return -1;
}

static int table_take(PyObject *given, int bits, Py_buffer *table)
{
    if (given == Py_None)
        return 1;
    if (bits < 0 || bits > 40) {
        PyErr_SetString(PyExc_ValueError, "a table of no such size");
        return 0;
    }
    return view(given, (int64_t)4 << bits, table);
}

/* meet(entries, apart, state, table, bits, hashes, digests, n, start, slots, codes, flags, cursor) -> the row that comes next.
 *
 * Each row is looked for where it is expected, a little behind that, among the rows apart, and last in the table. It stops before a row that
 * needs a group that is not proven, or the table where there is none; cursor says why. */
static PyObject *lookup_meet(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *given_apart, *given_state, *given_table, *given_hashes, *given_digests, *out[4], *result = NULL;
    Py_ssize_t n, row;
    int bits;
    Entries entries = {0};
    Apart apart = {0};
    Py_buffer state = {0}, table = {0}, hashes = {0}, digests = {0}, slots = {0}, codes = {0}, flags = {0}, place = {0};
    if (!PyArg_ParseTuple(args, "OOOOiOOnnOOOO", &given, &given_apart, &given_state, &given_table, &bits, &given_hashes, &given_digests, &n, &row,
                          &out[0], &out[1], &out[2], &out[3]))
        return NULL;
    if (!entries_take(given, &entries) || !apart_take(given_apart, &apart) || !writable(given_state, entries.rows, &state)
        || !table_take(given_table, bits, &table) || !view(given_hashes, n * 16, &hashes)
        || (given_digests != Py_None && !view(given_digests, n * 16, &digests)) || !writable(out[0], n * 4, &slots)
        || !writable(out[1], n * 4, &codes) || !writable(out[2], n, &flags) || !writable(out[3], CURSOR * 8, &place))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    int64_t *cursor = place.buf, lost = 0, in_group = ((int64_t)1 << entries.shift) - 1;
    const uint64_t *wanted = hashes.buf, *digest = digests.buf;
    uint8_t *marks = state.buf, *said = flags.buf;
    const uint32_t *lookup = table.buf;
    int32_t *slot_of = slots.buf, *code_of = codes.buf;
    cursor[WHY] = DONE;
    for (; row < n; row++) {
        const uint64_t *hash = wanted + 2 * row;
        Sixteen bytes = laid(hash);
        int64_t slot = -1, at_apart = -1, main = cursor[MAIN], other = cursor[OTHER];
        if (lookup && lost > 2) {  /* rows come in another order: ask for the memory of those that are next */
            if (row + 2 * EARLY < n)
                __builtin_prefetch(&lookup[bucket_of(wanted[2 * (row + 2 * EARLY)], bits)]);
            if (row + EARLY < n) {
                int64_t soon = (int64_t)lookup[bucket_of(wanted[2 * (row + EARLY)], bits)] - 1;
                if (soon >= 0 && soon < entries.rows) {
                    __builtin_prefetch(entry(&entries, 0, soon));
                    __builtin_prefetch(entry(&entries, 1, soon));
                    __builtin_prefetch(entry(&entries, 2, soon));
                    __builtin_prefetch(&marks[soon], 1);
                }
            }
        }
        const uint8_t *here = NULL;
        for (int64_t ahead = 0, most = lost > LOST ? 0 : AHEAD; ahead <= most && slot < 0; ahead++) {
            int64_t at = main + ahead;
            if (at < entries.rows) {
                if (here && at & in_group)
                    here += WIDTH[0];
                else if (is_proven(&entries, at))
                    here = entry(&entries, 0, at);
                else {
                    cursor[GROUP] = at >> entries.shift;
                    cursor[WHY] = NO_PROOF;
                    break;
                }
                if (equals(here, bytes)) {
                    slot = at;
                    cursor[MAIN] = at + 1;
                    break;
                }
            }
            if (ahead == 0 && other >= 0 && other < entries.rows) {
                if (!is_proven(&entries, other)) {
                    cursor[GROUP] = other >> entries.shift;
                    cursor[WHY] = NO_PROOF;
                    break;
                }
                if (equals(entry(&entries, 0, other), bytes)) {
                    slot = other;
                    cursor[OTHER] = main;
                    cursor[MAIN] = other + 1;
                }
            }
        }
        if (cursor[WHY] != DONE)
            break;
        int in_place = slot >= 0;
        if (in_place && !(marks[slot] & DEAD)) {
            cursor[MET]++;
            lost = 0;
        } else {
            slot = -1;
            at_apart = apart_at(&apart, hash);
            if (at_apart < 0 && entries.rows && !in_place) {  /* a hash has one entry: what is dead here is alive nowhere else */
                if (!lookup) {
                    cursor[MAIN] = main;
                    cursor[OTHER] = other;
                    cursor[WHY] = NO_TABLE;
                    break;
                }
                slot = search(&entries, marks, lookup, bits, hash);
                if (slot < -1) {
                    cursor[MAIN] = main;
                    cursor[OTHER] = other;
                    cursor[GROUP] = -2 - slot;
                    cursor[WHY] = NO_PROOF;
                    break;
                }
                if (slot >= 0)
                    cursor[OTHER] = slot + 1;
                lost++;
            }
            if (slot >= 0 || at_apart >= 0)
                cursor[in_place ? MET : SEARCHED]++;
        }
        said[row] = 0;
        slot_of[row] = -1;
        code_of[row] = -1;
        if (slot >= 0) {
            slot_of[row] = (int32_t)slot;
            memcpy(&code_of[row], entry(&entries, 2, slot), 4);
            if (digest && equals(entry(&entries, 1, slot), laid(digest + 2 * row)))
                said[row] |= SAME;
        } else if (at_apart >= 0) {
            slot = ((const int32_t *)apart.slot.buf)[at_apart];
            slot_of[row] = (int32_t)slot;
            code_of[row] = ((const int32_t *)apart.code.buf)[at_apart];
            if (digest && !memcmp((const uint64_t *)apart.source.buf + 2 * at_apart, digest + 2 * row, 16))
                said[row] |= SAME;
        }
        if (slot >= 0 && slot < state.len) {
            if (marks[slot] & CLAIMED)
                said[row] |= AGAIN;
            marks[slot] |= CLAIMED;
        }
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromSsize_t(row);
done:
    entries_release(&entries);
    apart_release(&apart);
    Py_buffer *buffers[] = {&state, &table, &hashes, &digests, &slots, &codes, &flags, &place};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        release(buffers[i]);
    return result;
}

/* fill(entries, table, bits): every entry in the table of 2^bits numbers, which is all zeros; 0 is empty, others are slot + 1. */
static PyObject *lookup_fill(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *given_table, *result = NULL;
    int bits;
    Entries entries = {0};
    Py_buffer table = {0};
    if (!PyArg_ParseTuple(args, "OOi", &given, &given_table, &bits))
        return NULL;
    if (!entries_take(given, &entries))
        goto done;
    if (bits < 0 || bits > 40 || entries.rows >= (int64_t)1 << bits) {
        PyErr_SetString(PyExc_ValueError, "the table is too small");
        goto done;
    }
    if (!writable(given_table, (Py_ssize_t)4 << bits, &table))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    uint32_t *buckets = table.buf;
    uint64_t mask = ((uint64_t)1 << bits) - 1, soon[EARLY] = {0};
    for (int64_t slot = 0; slot < entries.rows + EARLY; slot++) {
        if (slot >= EARLY) {
            uint64_t at = soon[slot % EARLY];
            while (buckets[at])
                at = (at + 1) & mask;
            buckets[at] = (uint32_t)(slot - EARLY + 1);
        }
        if (slot < entries.rows) {
            uint64_t first;
            memcpy(&first, entry(&entries, 0, slot), 8);
            soon[slot % EARLY] = bucket_of(__builtin_bswap64(first), bits);
            __builtin_prefetch(&buckets[soon[slot % EARLY]], 1);
        }
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    entries_release(&entries);
    release(&table);
    return result;
}

/* seek(entries, apart, state, table, bits, hashes, n, slots): the slot of each hash that is alive, -1 where there is none; all is proven. */
static PyObject *lookup_seek(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *given_apart, *given_state, *given_table, *given_hashes, *out, *result = NULL;
    Py_ssize_t n;
    int bits;
    Entries entries = {0};
    Apart apart = {0};
    Py_buffer state = {0}, table = {0}, hashes = {0}, slots = {0};
    if (!PyArg_ParseTuple(args, "OOOOiOnO", &given, &given_apart, &given_state, &given_table, &bits, &given_hashes, &n, &out))
        return NULL;
    if (!entries_take(given, &entries) || !apart_take(given_apart, &apart) || !view(given_state, entries.rows, &state)
        || !table_take(given_table, bits, &table) || !view(given_hashes, n * 16, &hashes) || !writable(out, n * 4, &slots))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < n; row++) {
        const uint64_t *hash = (const uint64_t *)hashes.buf + 2 * row;
        int64_t at = apart_at(&apart, hash), slot = -1;
        if (at >= 0)
            slot = ((const int32_t *)apart.slot.buf)[at];
        else if (table.buf)
            slot = search(&entries, state.buf, table.buf, bits, hash);
        ((int32_t *)slots.buf)[row] = (int32_t)(slot < 0 ? -1 : slot);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    entries_release(&entries);
    apart_release(&apart);
    release(&state);
    release(&table);
    release(&hashes);
    release(&slots);
    return result;
}

/* among(entries, wanted, n, slots): the slot of each of a few sorted hashes, one pass over all entries; -1 stands where there is none. */
static PyObject *lookup_among(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *given_wanted, *out, *result = NULL;
    Py_ssize_t n;
    Entries entries = {0};
    Py_buffer wanted = {0}, slots = {0};
    uint8_t *sieve = NULL;
    if (!PyArg_ParseTuple(args, "OOnO", &given, &given_wanted, &n, &out))
        return NULL;
    if (!entries_take(given, &entries) || !view(given_wanted, n * 16, &wanted) || !writable(out, n * 4, &slots))
        goto done;
    int bits = 12;  /* of a hash that a sieve knows: eight and more for each wanted one */
    while (bits < 30 && (int64_t)1 << bits < n * 8)
        bits++;
    if (!(sieve = calloc((size_t)1 << (bits - 3), 1))) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const uint64_t *sorted = wanted.buf;
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t at = bucket_of(sorted[2 * i], bits);
        sieve[at >> 3] |= (uint8_t)(1 << (at & 7));
    }
    for (int64_t slot = 0; slot < entries.rows; slot++) {
        uint64_t hash[2], at;
        memcpy(hash, entry(&entries, 0, slot), 16);
        hash[0] = __builtin_bswap64(hash[0]);
        at = bucket_of(hash[0], bits);
        if (!(sieve[at >> 3] >> (at & 7) & 1))
            continue;
        hash[1] = __builtin_bswap64(hash[1]);
        int64_t place = lower_bound(sorted, n, hash);
        if (place < n && sorted[2 * place] == hash[0] && sorted[2 * place + 1] == hash[1])
            ((int32_t *)slots.buf)[place] = (int32_t)slot;
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    free(sieve);
    entries_release(&entries);
    release(&wanted);
    release(&slots);
    return result;
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"meet", lookup_meet, METH_VARARGS, NULL},
    {"fill", lookup_fill, METH_VARARGS, NULL},
    {"seek", lookup_seek, METH_VARARGS, NULL},
    {"among", lookup_among, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Counts up when a call changes, so that compiled_lookup.py knows an extension that was built from other sources than its own. */
static int name_calls(PyObject *module)
{
    return PyModule_AddIntConstant(module, "CALLS", 1);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, name_calls},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},  /* no state of its own; two calls never share a state array or a cursor */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_lookup", "See merestone.columnar.lookup.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__lookup(void)
{
    return PyModuleDef_Init(&definition);
}
