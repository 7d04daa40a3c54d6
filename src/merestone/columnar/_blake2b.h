/* BLAKE2b without a key, written from RFC 7693 section 3; digests of 16 bytes (features) or 32 (hash trees).
 *
 * blake2b_each hashes many messages. Where the processor has AVX2 or AVX-512 it does four or eight at a time, one in each 64-bit lane:
 * payloads of features are one to three blocks long, so that lanes rarely wait for each other.
 */
#ifndef MERESTONE_BLAKE2B_H
#define MERESTONE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define B2_OUT 16
#define B2_BLOCK 128

typedef struct {
    const uint8_t *at;
    size_t size;
} Message;

static const uint64_t B2_IV[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

/* The state word 0 of an unkeyed hash: digest length, fanout 1, depth 1. */
#define B2_H0(size) (B2_IV[0] ^ 0x01010000u ^ (size))

#define B2_ROTATE(x, n) (((x) >> (n)) | ((x) << (64 - (n))))

#define B2_G(ROTATE, a, b, c, d, x, y)                                                  \
    a += b + (x); d ^= a; d = ROTATE(d, 32);                                            \
    c += d;       b ^= c; b = ROTATE(b, 24);                                            \
    a += b + (y); d ^= a; d = ROTATE(d, 16);                                            \
    c += d;       b ^= c; b = ROTATE(b, 63);

/* One round; the arguments are the round's row of SIGMA. Written out so that the message words stay in known places. */
#define B2_ROUND(R, v, m, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)\
    B2_G(R, v[0], v[4], v[8], v[12], m[s0], m[s1])                                      \
    B2_G(R, v[1], v[5], v[9], v[13], m[s2], m[s3])                                      \
    B2_G(R, v[2], v[6], v[10], v[14], m[s4], m[s5])                                     \
    B2_G(R, v[3], v[7], v[11], v[15], m[s6], m[s7])                                     \
    B2_G(R, v[0], v[5], v[10], v[15], m[s8], m[s9])                                     \
    B2_G(R, v[1], v[6], v[11], v[12], m[s10], m[s11])                                   \
    B2_G(R, v[2], v[7], v[8], v[13], m[s12], m[s13])                                    \
    B2_G(R, v[3], v[4], v[9], v[14], m[s14], m[s15])

#define B2_ROUNDS(R, v, m)                                                              \
    B2_ROUND(R, v, m, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)             \
    B2_ROUND(R, v, m, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)             \
    B2_ROUND(R, v, m, 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)             \
    B2_ROUND(R, v, m, 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)             \
    B2_ROUND(R, v, m, 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)             \
    B2_ROUND(R, v, m, 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)             \
    B2_ROUND(R, v, m, 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)             \
    B2_ROUND(R, v, m, 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)             \
    B2_ROUND(R, v, m, 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)             \
    B2_ROUND(R, v, m, 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)             \
    B2_ROUND(R, v, m, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)             \
    B2_ROUND(R, v, m, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)

/* An empty message still has one (zero) block. */
static size_t blake2b_blocks(size_t size)
{
    return size == 0 ? 1 : (size + B2_BLOCK - 1) / B2_BLOCK;
}

/* Where block `index` of a message can be read in full: in place, or padded with zeros in `pad`. */
static const uint8_t *blake2b_block(const Message *message, size_t index, uint8_t pad[B2_BLOCK])
{
    size_t start = index * B2_BLOCK;
    if (start + B2_BLOCK <= message->size)
        return message->at + start;
    memset(pad, 0, B2_BLOCK);
    if (start < message->size)
        memcpy(pad, message->at + start, message->size - start);
    return pad;
}

static void blake2b_one(const Message *message, uint8_t *out, size_t size)
{
    uint8_t pad[B2_BLOCK];
    uint64_t h[8], v[16], m[16];
    size_t blocks = blake2b_blocks(message->size);
    memcpy(h, B2_IV, sizeof h);
    h[0] = B2_H0(size);
    for (size_t index = 0; index < blocks; index++) {
        int last = index + 1 == blocks;
        memcpy(m, blake2b_block(message, index, pad), B2_BLOCK);
        memcpy(v, h, sizeof h);
        memcpy(v + 8, B2_IV, sizeof B2_IV);
        v[12] ^= last ? message->size : (index + 1) * B2_BLOCK;
        if (last)
            v[14] = ~v[14];
        B2_ROUNDS(B2_ROTATE, v, m)
        for (int i = 0; i < 8; i++)
            h[i] ^= v[i] ^ v[i + 8];
    }
    memcpy(out, h, size);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define B2_WIDE
typedef uint64_t Lanes4 __attribute__((vector_size(32)));
typedef uint64_t Lanes8 __attribute__((vector_size(64)));

/* Three of the four rotations go by whole bytes, for which one shuffle does. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
typedef uint8_t LaneBytes __attribute__((vector_size(32)));
#define BYTES_OF_LANE(l, b0, b1, b2, b3, b4, b5, b6, b7) \
    8 * l + b0, 8 * l + b1, 8 * l + b2, 8 * l + b3, 8 * l + b4, 8 * l + b5, 8 * l + b6, 8 * l + b7
#define BYTES_ROTATED(x, ...)                                                                              \
    ((Lanes4)__builtin_shufflevector((LaneBytes)(x), (LaneBytes)(x), BYTES_OF_LANE(0, __VA_ARGS__),         \
                                    BYTES_OF_LANE(1, __VA_ARGS__), BYTES_OF_LANE(2, __VA_ARGS__), BYTES_OF_LANE(3, __VA_ARGS__)))
#define LANES_ROTATE_32(x) BYTES_ROTATED(x, 4, 5, 6, 7, 0, 1, 2, 3)
#define LANES_ROTATE_24(x) BYTES_ROTATED(x, 3, 4, 5, 6, 7, 0, 1, 2)
#define LANES_ROTATE_16(x) BYTES_ROTATED(x, 2, 3, 4, 5, 6, 7, 0, 1)
#define LANES_ROTATE_63(x) (((x) + (x)) | ((x) >> 63))
#define LANES_ROTATE(x, n) LANES_ROTATE_##n(x)
#endif
#endif
#ifndef LANES_ROTATE
#define LANES_ROTATE B2_ROTATE
#endif

#define B2_NAME blake2b_four
#define B2_TARGET "avx2"
#define B2_LANES 4
#define B2_VECTOR Lanes4
#define B2_LANES_ROTATE LANES_ROTATE
#include "_blake2b_lanes.h"

#define B2_NAME blake2b_eight
#define B2_TARGET "avx512f"  /* which rotates by itself */
#define B2_LANES 8
#define B2_VECTOR Lanes8
#define B2_LANES_ROTATE B2_ROTATE
#include "_blake2b_lanes.h"
#endif

/* n digests of `size` bytes, a multiple of 8 up to 64, one after the other. */
static void blake2b_each(const Message *messages, size_t n, uint8_t *out, size_t size)
{
    size_t done = 0;
#ifdef B2_WIDE
    if (__builtin_cpu_supports("avx512f"))
        for (; done + 8 <= n; done += 8)
            blake2b_eight(messages + done, out + done * size, size);
    if (__builtin_cpu_supports("avx2"))
        for (; done + 4 <= n; done += 4)
            blake2b_four(messages + done, out + done * size, size);
#endif
    for (; done < n; done++)
        blake2b_one(messages + done, out + done * size, size);
}

#endif
