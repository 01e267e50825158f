/* The nondeterministic stack, forward: all inner weights of one sequence, and what is read from them, (a)-(d). */

/* The working memory of the forward pass. */
struct nd_scratch {
    vector *tops; /* a column of the numerators of W: [tile][y] */
    ivector *exponents;
    real *weights; /* W, if it has to be converted */
    int *begin, *end; /* of the strips: see nd_forward_pass */
    atomic_int *done;
    size_t bytes;
};

/* Number of elements of W. */
INLINE size_t nd_weights_size(const struct nd_record *rec) { return (size_t)rec->n * rec->C * rec->columns; }

INLINE struct nd_scratch nd_lay_out_scratch(const struct nd_record *rec, char *memory) {
    struct nd_scratch scratch;
    size_t used = 0;
    TAKE(scratch.tops, (size_t)rec->tiles * rec->C)
    TAKE(scratch.exponents, (size_t)rec->tiles)
    TAKE(scratch.weights, nd_weights_size(rec))
    TAKE(scratch.begin, (size_t)rec->tiles + 1)
    TAKE(scratch.end, (size_t)rec->tiles + 1)
    TAKE(scratch.done, (size_t)rec->tiles + 1)
    scratch.bytes = used;
    return scratch;
}

/* 2^x, in double not less than the smallest normal number where nothing may be lost without a trace. */
INLINE vector nd_power(const struct nd_record *rec, ivector x) {
    return power_of_two(sizeof(real) == 8 ? ilarger(x, rec->lowest) : x);
}

/* E of (e): raises the exponent of the sums for (tile, t) to at least this; returns the factor that keeps their value.
 * */
INLINE vector nd_raise(const struct nd_record *rec, ivector *exponent, ivector least) {
    ivector old = *exponent;
    *exponent = ilarger(old, least);
    return nd_power(rec, old - *exponent);
}

/* The second line of (e) (Eq. 24, pop): adds sum_k gamma[i -> k] gamma'[k -> t] over begin <= k < end, k <= t - 2, to
 * the columns first <= t < last of a tile. All rows k + 1 are in one tile. */
INLINE void nd_add_pops(const struct nd_record *rec, int tile, int first, int last, int begin, int end) {
    const int Q = rec->Q, S = rec->S, C = rec->C;
    const int from = (begin + 1) / LANES, lane = (begin + 1) % LANES;
    vector factors[TIME_TILE][LANES], scale[TIME_TILE];
    for (int t = first; t < last; t++) {
        ivector *exponent = rec->gamma_exponent + nd_column(rec, tile, t), least = *exponent;
        const ivector *kept = rec->gamma_exponent + nd_column(rec, tile, begin);
        const integer *popped = (const integer *)(rec->popped_exponent + nd_column(rec, from, t)) + lane;
        int count = (end < t - 1 ? end : t - 1) - begin;
        for (int k = 0; k < count; k++) least = ilarger(least, kept[k] + popped[k]);
        scale[t - first] = nd_raise(rec, exponent, least);
        for (int k = 0; k < count; k++) factors[t - first][k] = nd_power(rec, kept[k] + popped[k] - least);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            int count = (end < t - 1 ? end : t - 1) - begin;
            if (count <= 0) continue;
            struct matrices m =
                consecutive(nd_gamma(rec, rec->gamma, tile, symbol, begin), Q * C, factors[t - first], 1, count);
            struct coefficients c = {(const real *)(nd_popped(rec, from, t) + symbol) + lane, 1, S * LANES, C * LANES};
            add_products(Q, C, Q, nd_gamma(rec, rec->gamma, tile, symbol, t), scale[t - first], m, c);
        }
}

/* The same for any begin and end. */
INLINE void nd_add_all_pops(const struct nd_record *rec, int tile, int first, int last, int begin, int end) {
    while (begin < end) {
        int next = ((begin + 1) / LANES + 1) * LANES - 1;
        nd_add_pops(rec, tile, first, last, begin, next < end ? next : end);
        begin = next;
    }
}

/* The first line of (e) (Eq. 24, replace). */
INLINE void nd_add_replacements(const struct nd_record *rec, int tile, int t) {
    ivector *exponent = rec->gamma_exponent + nd_column(rec, tile, t), before = exponent[-1];
    const vector scale = nd_raise(rec, exponent, before), factor = nd_power(rec, before - *exponent);
    const ptrdiff_t next = nd_next_symbol(rec, tile);
    nd_replace(rec->Q, rec->S, nd_row_transitions(rec, t), nd_gamma(rec, rec->gamma, tile, 0, t - 1), next, factor,
               nd_gamma(rec, rec->gamma, tile, 0, t), next, scale);
}

/* A block's elements are exact if they are at least as large as this beside its sum: then whatever
 * underflowed is negligible beside them. In double, 0 is exact, too: nothing else becomes 0 where that is checked. */
#define LEAST_EXACT (sizeof(real) == 4 ? (real)0x1p-80 : (real)0x1p-800)

/* The sign bits are set in the lanes in which x is too small to be exact beside a sum of 1. */
INLINE ivector nd_is_too_small(vector x) {
    return sizeof(real) == 4 ? (ivector)(x - LEAST_EXACT) : (x > 0) & (x < LEAST_EXACT);
}

/* Section 4.1: makes the sum of each block be in [1, 2); returns the exponent that keeps its value. The sign bits of
 * `exact` are set in the lanes of living blocks with elements that are too small to be exact. */
INLINE ivector nd_normalise(vector *parts, ptrdiff_t step, int count, int size, ivector exponent, ivector *exact) {
    vector sum = {0};
    for (int part = 0; part < count; part++)
        for (int x = 0; x < size; x++) sum += parts[part * step + x];
    ivector shift = exponent_of(sum), dead = shift == DEAD, signs = {0};
    vector scale = power_of_two(~dead & -shift);
    for (int part = 0; part < count; part++)
        for (int x = 0; x < size; x++) {
            vector *element = &parts[part * step + x];
            *element *= scale;
            signs |= nd_is_too_small(*element);
        }
    *exact |= ~dead & signs;
    return (dead & DEAD) | (~dead & (exponent + shift));
}

/* (b) (Eq. 25): gamma'[k -> t] for the rows of a tile. */
INLINE void nd_fill_popped(const struct nd_record *rec, int tile, int t) {
    const int Q = rec->Q, C = rec->C;
    vector *popped = nd_popped(rec, tile, t);
    ivector *exponent = rec->popped_exponent + nd_column(rec, tile, t);
    memset(popped, 0, Q * C * sizeof(vector));
    *exponent = isplat(DEAD);
    if (t == tile * LANES) return;
    nd_pop(Q, rec->S, nd_row_transitions(rec, t), nd_gamma(rec, rec->gamma, tile, 0, t - 1), nd_next_symbol(rec, tile),
           popped);
    *exponent = nd_normalise(popped, 0, 1, Q * C, rec->gamma_exponent[nd_column(rec, tile, t - 1)], rec->exact);
}

/* Eq. 21 and Eq. 23: runs start in configuration 0, which alpha[-1] and alpha[0] hold; sources other than x = 0 have
 * alpha[-1][x] = 0. */
INLINE void nd_start(const struct nd_record *rec) {
    memset(rec->alpha, 0, rec->tiles * rec->C * sizeof(vector));
    for (int tile = 0; tile < rec->tiles; tile++) rec->alpha_exponent[tile] = isplat(DEAD);
    for (int row = 0; row <= 1 && row <= rec->n; row++) {
        rec->alpha[row / LANES * rec->C][row % LANES] = 1;
        rec->alpha_exponent[row / LANES][row % LANES] = 0;
    }
}

INLINE void nd_start_column(const struct nd_record *rec) {
    for (int x = 0; x < rec->C; x++) nd_gamma(rec, rec->gamma, 0, 0, 0)[x][0] = 1;
    rec->gamma_exponent[0][0] = 0;
}

/* (a) and (b) for the columns first <= t < last of a tile of rows, from those of the tiles below it and all earlier
 * columns, in the order of Section 5. */
INLINE void nd_fill(const struct nd_record *rec, int tile, int first, int last, int careful) {
    const int row = tile * LANES, next = row + LANES, S = rec->S, size = rec->Q * rec->C;
    const ptrdiff_t next_symbol = nd_next_symbol(rec, tile);
    if (first < row) first = row;
    for (int symbol = 0; symbol < S; symbol++)
        memset(nd_gamma(rec, rec->gamma, tile, symbol, first), 0, (last - first) * size * sizeof(vector));
    for (int t = first; t < last; t++) rec->gamma_exponent[nd_column(rec, tile, t)] = isplat(DEAD);
    nd_add_all_pops(rec, tile, first, last, next - 1, first);
    for (int t = first; t < last; t++) {
        nd_fill_popped(rec, tile, t);
        if (t == 0) {
            nd_start_column(rec);
            continue;
        }
        if (t > row) nd_add_replacements(rec, tile, t);
        nd_add_all_pops(rec, tile, t, t + 1, row, next - 1);
        nd_add_all_pops(rec, tile, t, t + 1, first > next - 1 ? first : next - 1, t - 1);
        ivector *exponent = rec->gamma_exponent + nd_column(rec, tile, t);
        if (t / LANES == tile) {
            const vector *alpha = careful ? rec->alpha + tile * rec->C : NULL;
            nd_push(rec->Q, S, nd_row_transitions(rec, t), alpha, t % LANES, nd_gamma(rec, rec->gamma, tile, 0, t),
                    next_symbol);
            (*exponent)[t % LANES] = 0;
        }
        *exponent = nd_normalise(nd_gamma(rec, rec->gamma, tile, 0, t), next_symbol, S, size, *exponent, rec->exact);
    }
}

/* A_t: gives all tops[tile][y] 2^exponents[tile] the exponent of the largest; returns it. */
INLINE integer nd_align_tops(vector *tops, const ivector *exponents, int tiles, int C, ivector lowest) {
    ivector most = isplat(DEAD);
    for (int tile = 0; tile < tiles; tile++) {
        vector sum = {0};
        for (int y = 0; y < C; y++) sum += tops[tile * C + y];
        most = ilarger(most, exponents[tile] + exponent_of(sum));
    }
    integer exponent = most[0];
    for (int lane = 1; lane < LANES; lane++) exponent = most[lane] > exponent ? most[lane] : exponent;
    for (int tile = 0; tile < tiles; tile++)
        for (int y = 0; y < C; y++) tops[tile * C + y] *= power_of_two(ilarger(exponents[tile] - exponent, lowest));
    return exponent;
}

/* a[t][y], the first sum of (c) (Eq. 27). */
INLINE real nd_sum_tops(const vector *tops, int tiles, int C, int y) {
    vector sum = {0};
    for (int tile = 0; tile < tiles; tile++) sum += tops[tile * C + y];
    return lane_sum(sum);
}

/* (c) (Eq. 27): N_t and alpha[t]. */
INLINE void nd_read_tops(const struct nd_record *rec, int t, struct nd_scratch scratch) {
    const int S = rec->S, C = rec->C, tiles = t / LANES + 1, next = (t + 1) / LANES, lane = (t + 1) % LANES;
    for (int tile = 0; tile < tiles; tile++) {
        for (int y = 0; y < C; y++)
            scratch.tops[tile * C + y] = nd_top(rec->Q, S, rec->alpha + tile * C, nd_gamma(rec, rec->gamma, tile, 0, t),
                                                nd_next_symbol(rec, tile), y);
        scratch.exponents[tile] = rec->gamma_exponent[nd_column(rec, tile, t)] + rec->alpha_exponent[tile];
    }
    const integer exponent = nd_align_tops(scratch.tops, scratch.exponents, tiles, C, rec->lowest);
    real total = 0;
    for (int y = 0; y < C; y++) {
        const real alpha = nd_sum_tops(scratch.tops, tiles, C, y);
        total += alpha;
        if (sizeof(real) == 8) *rec->exact |= nd_is_too_small(splat(alpha));
        if (t < rec->n) rec->alpha[next * C + y][lane] = alpha;
    }
    if (t < rec->n) rec->alpha_exponent[next][lane] = exponent;
    rec->total[t] = total > 0 ? total : 1;
    rec->total_exponent[t] = exponent;
}

/* (d) (Eq. 29): W_t, which goes to weights[y][i + 1]. */
INLINE void nd_read(const struct nd_record *rec, int t, struct nd_scratch scratch, real *weights) {
    const int C = rec->C, tiles = t / LANES + 1;
    for (int y = 0; y < C; y++)
        for (int tile = 0; tile < rec->tiles; tile++) {
            vector weight = tile < tiles ? scratch.tops[tile * C + y] / rec->total[t] : (vector){0};
            store(weights + y * rec->columns + tile * LANES, weight, rec->columns - tile * LANES);
        }
}
