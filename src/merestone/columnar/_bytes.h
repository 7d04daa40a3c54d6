/* Bytes that lie somewhere, and bytes that grow. */
#ifndef MERESTONE_BYTES_H
#define MERESTONE_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the compiled kernel is for little-endian machines; others use the NumPy path"
#endif

enum { NO_MEMORY = -2 };

typedef struct {
    const uint8_t *at;
    size_t size;
} Span;

/* Bytes that grow. */
typedef struct {
    uint8_t *data;
    size_t size, room;
} Arena;

static int reserve(Arena *arena, size_t more)
{
    if (more > arena->room - arena->size) {
        size_t room = arena->room ? arena->room : 4096;
        uint8_t *data;
        while (room - arena->size < more)
            room *= 2;
        if (!(data = realloc(arena->data, room)))
            return 0;
        arena->data = data;
        arena->room = room;
    }
    return 1;
}

static inline int put(Arena *arena, const void *from, size_t size)
{
    if (!reserve(arena, size))
        return 0;
    if (size)
        memcpy(arena->data + arena->size, from, size);
    arena->size += size;
    return 1;
}

static inline int put_byte(Arena *arena, uint8_t value)
{
    return put(arena, &value, 1);
}

static inline int put_count(Arena *arena, uint32_t value)
{
    return put(arena, &value, 4);
}

#endif
