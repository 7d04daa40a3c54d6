/* B2_LANES messages at a time, one in each 64-bit lane of B2_VECTOR. Included by _blake2b.h once for each width of vector.
 *
 * Before: B2_NAME, B2_TARGET, B2_LANES, B2_VECTOR, B2_LANES_ROTATE. After: none of them is defined any more.
 */
__attribute__((target(B2_TARGET)))
static void B2_NAME(const Message messages[B2_LANES], uint8_t *out, size_t size)
{
    uint8_t pad[B2_LANES][B2_BLOCK];
    const uint8_t *from[B2_LANES];
    size_t blocks[B2_LANES], most = 0;
    B2_VECTOR h[8], v[16], m[16], before[8], live = {0}, count = {0}, end = {0};
    for (int i = 0; i < 8; i++)
        h[i] = (B2_VECTOR){0} + (i ? B2_IV[i] : B2_H0(size));
    for (int lane = 0; lane < B2_LANES; lane++) {
        blocks[lane] = blake2b_blocks(messages[lane].size);
        if (blocks[lane] > most)
            most = blocks[lane];
    }
    for (size_t index = 0; index < most; index++) {
        for (int lane = 0; lane < B2_LANES; lane++) {
            int last = index + 1 == blocks[lane];
            from[lane] = blake2b_block(&messages[lane], index, pad[lane]);
            live[lane] = index < blocks[lane] ? ~(uint64_t)0 : 0;
            end[lane] = last ? ~(uint64_t)0 : 0;
            count[lane] = last ? messages[lane].size : (index + 1) * B2_BLOCK;
        }
        for (int i = 0; i < 16; i++) {
            uint64_t word[B2_LANES];
            for (int lane = 0; lane < B2_LANES; lane++)
                memcpy(&word[lane], from[lane] + 8 * i, 8);
            memcpy(&m[i], word, sizeof word);
        }
        for (int i = 0; i < 8; i++) {
            before[i] = v[i] = h[i];
            v[i + 8] = (B2_VECTOR){0} + B2_IV[i];
        }
        v[12] ^= count;
        v[14] ^= end;
        B2_ROUNDS(B2_LANES_ROTATE, v, m)
        for (int i = 0; i < 8; i++)  /* a lane whose message has ended keeps its state */
            h[i] = ((before[i] ^ v[i] ^ v[i + 8]) & live) | (before[i] & ~live);
    }
    for (int lane = 0; lane < B2_LANES; lane++)
        for (size_t i = 0; i < size / 8; i++) {
            uint64_t word = h[i][lane];
            memcpy(out + lane * size + 8 * i, &word, 8);
        }
}

#undef B2_NAME
#undef B2_TARGET
#undef B2_LANES
#undef B2_VECTOR
#undef B2_LANES_ROTATE
