/* The factors of dropout: 0 with the probability p, otherwise 1 / (1 - p).
 *
 * STREAMS generators xoshiro128++ (Blackman and Vigna, 2021) advance together and draw the random numbers. Each
 * block of factors begins anew from numbers of SplitMix64, so that factors depend on the seed alone: not on threads, nor on
 * the instruction set. A factor is 0 if its number of 32 bits is below p 2^32.
 */
enum { STREAMS = 16 };
typedef uint32_t words __attribute__((vector_size(STREAMS * sizeof(uint32_t))));
typedef integer bits __attribute__((vector_size(STREAMS * sizeof(real))));

INLINE words rotate_bits(words x, int by) { return x << by | x >> (32 - by); }

/* The state of the generators at the beginning of a block. */
INLINE void dropout_begin(words state[4], uint64_t seed, int64_t block) {
    enum { NUMBERS = 4 * STREAMS / 2 };
    const uint64_t golden = 0x9e3779b97f4a7c15;
    uint64_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        uint64_t z = seed + (block * NUMBERS + i + 1) * golden;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        numbers[i] = z ^ z >> 31;
    }
    memcpy(state, numbers, sizeof numbers);
}

INLINE words dropout_next(words state[4]) {
    const words result = rotate_bits(state[0] + state[3], 7) + state[0], shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_bits(state[3], 11);
    return result;
}

static int dropout_factors(const void *given, int64_t block, char *memory) {
    const struct dropout_call *call = given;
    const int64_t first = block * DROPOUT_BLOCK, rest = call->count - first;
    const int64_t count = rest < DROPOUT_BLOCK ? rest : DROPOUT_BLOCK;
    const words limit = (uint32_t)call->limit - (words){0};
    const real kept = (real)(1 / (1 - call->probability));
    real *factors = (real *)call->factors + first;
    integer bits_of_kept;
    words state[4];
    (void)memory;
    memcpy(&bits_of_kept, &kept, sizeof kept);
    dropout_begin(state, (uint64_t)call->seed, block);
    for (int64_t i = 0; i < count; i += STREAMS) {
        const bits chosen = __builtin_convertvector(dropout_next(state) >= limit, bits) & bits_of_kept;
        memcpy(factors + i, &chosen, count - i < STREAMS ? (count - i) * sizeof(real) : sizeof chosen);
    }
    return 1;
}
