/* The nondeterministic stack one step at a time, for decoding: one new column, for one beam (Section 7).
 *
 * A column is what step t leaves, and is never changed. The beams of step t have their columns side by side; which
 * of them a beam descends from at each earlier step is in the table `ancestors`. Reordering beams moves rows of the
 * table, and no columns.
 */

/* Column t: rows 0..t of gamma[. -> t], alpha[t] and v_t. */
#define nd_step_column NAME(nd_step_column)
struct nd_step_column {
    vector *gamma; /* [tile][symbol][r][x] */
    ivector *exponent; /* [tile] */
    real *alpha;       /* [x] */
    integer *alpha_exponent;
    real *value;
    size_t bytes;
};

#define nd_step_lay_out NAME(nd_step_lay_out)
INLINE struct nd_step_column nd_step_lay_out(int t, int C, int value_size, char *memory) {
    struct nd_step_column column;
    size_t used = 0, tiles = t / LANES + 1;
    TAKE(column.gamma, tiles * C * C)
    TAKE(column.exponent, tiles)
    TAKE(column.alpha, (size_t)C)
    TAKE(column.alpha_exponent, (size_t)1)
    TAKE(column.value, (size_t)value_size)
    column.bytes = used;
    return column;
}

/* The working memory of a step. */
#define nd_step_scratch NAME(nd_step_scratch)
struct nd_step_scratch {
    vector *popped; /* gamma'[k -> t] at row k + 1: [tile][r][x] */
    ivector *popped_exponent;
    vector *alpha; /* alpha[i] at row i + 1: [tile][x] */
    ivector *alpha_exponent;
    vector *factors, *tops;
    struct nd_step_column *columns;
    const vector **gammas; /* those of the columns */
    real *transitions;     /* D_t: [x][C pushes, C replacements, Q pops] */
    size_t bytes;
};

#define nd_step_lay_out_scratch NAME(nd_step_lay_out_scratch)
INLINE struct nd_step_scratch nd_step_lay_out_scratch(int t, int Q, int C, char *memory) {
    struct nd_step_scratch scratch;
    size_t used = 0, tiles = t / LANES + 1;
    TAKE(scratch.popped, tiles * Q * C)
    TAKE(scratch.popped_exponent, tiles)
    TAKE(scratch.alpha, tiles * C)
    TAKE(scratch.alpha_exponent, tiles)
    TAKE(scratch.factors, (size_t)t + 1)
    TAKE(scratch.tops, tiles * C)
    TAKE(scratch.columns, (size_t)t + 1)
    TAKE(scratch.gammas, (size_t)t + 1)
    TAKE(scratch.transitions, (size_t)C * (2 * C + Q))
    scratch.bytes = used;
    return scratch;
}

/* Column 0, by Eqs. 21 and 23. */
#define nd_step_begin NAME(nd_step_begin)
INLINE void nd_step_begin(struct nd_step_column column, int C) {
    memset(column.gamma, 0, C * C * sizeof(vector));
    memset(column.alpha, 0, C * sizeof(real));
    column.exponent[0] = isplat(DEAD);
    column.gamma[0][0] = column.alpha[0] = 1;
    column.exponent[0][0] = column.alpha_exponent[0] = 0;
}

/* alpha[-1..t-1] in the lanes of their rows. */
#define nd_step_gather_alpha NAME(nd_step_gather_alpha)
INLINE void nd_step_gather_alpha(struct nd_step_scratch scratch, int t, int C) {
    memset(scratch.alpha, 0, (t / LANES + 1) * C * sizeof(vector));
    for (int tile = 0; tile <= t / LANES; tile++) scratch.alpha_exponent[tile] = isplat(DEAD);
    scratch.alpha[0][0] = 1;
    scratch.alpha_exponent[0][0] = 0;
    for (int row = 1; row <= t; row++) {
        const struct nd_step_column from = scratch.columns[row - 1];
        for (int x = 0; x < C; x++) scratch.alpha[row / LANES * C + x][row % LANES] = from.alpha[x];
        scratch.alpha_exponent[row / LANES][row % LANES] = *from.alpha_exponent;
    }
}

/* (b) (Eq. 25) for all rows. */
#define nd_step_pop NAME(nd_step_pop)
INLINE void nd_step_pop(struct nd_step_scratch scratch, int t, int Q, int S) {
    const int C = Q * S, width = 2 * C + Q;
    const struct nd_step_column last = scratch.columns[t - 1];
    const vector one = splat(1);
    ivector exact = {0};
    memset(scratch.popped, 0, (t / LANES + 1) * Q * C * sizeof(vector));
    scratch.popped_exponent[t / LANES] = isplat(DEAD);
    for (int tile = 0; tile <= (t - 1) / LANES; tile++) {
        vector *popped = scratch.popped + tile * Q * C;
        struct matrices m = consecutive(last.gamma + tile * C * C, Q * C, &one, 0, S);
        struct coefficients c = {scratch.transitions + 2 * C, width, S * width, 1};
        add_products(Q, C, Q, popped, one, m, c);
        scratch.popped_exponent[tile] = nd_normalise(popped, 0, 1, Q * C, last.exponent[tile], &exact);
    }
}

/* (a) (Eq. 24) for the rows of a tile, as (e). */
#define nd_step_fill NAME(nd_step_fill)
INLINE void nd_step_fill(struct nd_step_scratch scratch, struct nd_step_column column, int tile, int t, int Q, int S) {
    const int C = Q * S, width = 2 * C + Q, first = tile * LANES;
    const integer *popped_exponent = (const integer *)scratch.popped_exponent;
    const vector one = splat(1);
    vector *gamma = column.gamma + tile * C * C;
    ivector exponent = isplat(DEAD), exact = {0};
    memset(gamma, 0, C * C * sizeof(vector));
    if (first < t) exponent = scratch.columns[t - 1].exponent[tile];
    for (int k = first; k < t - 1; k++)
        exponent = ilarger(exponent, scratch.columns[k].exponent[tile] + popped_exponent[k + 1]);
    for (int k = first; k < t - 1; k++)
        scratch.factors[k] = power_of_two(scratch.columns[k].exponent[tile] + popped_exponent[k + 1] - exponent);
    for (int symbol = 0; symbol < S; symbol++) {
        vector *sums = gamma + symbol * Q * C;
        if (first < t) {
            vector kept = power_of_two(scratch.columns[t - 1].exponent[tile] - exponent);
            struct matrices m = consecutive(scratch.columns[t - 1].gamma + tile * C * C, Q * C, &kept, 0, S);
            struct coefficients c = {scratch.transitions + C + symbol, width, S * width, S};
            add_products(Q, C, Q, sums, one, m, c);
        }
        for (int begin = first, end; begin < t - 1; begin = end) { /* the rows k + 1 of one tile */
            int from = (begin + 1) / LANES, lane = (begin + 1) % LANES;
            end = (from + 1) * LANES - 1 < t - 1 ? (from + 1) * LANES - 1 : t - 1;
            const ptrdiff_t offset = (tile * S + symbol) * Q * C;
            struct matrices m = listed(scratch.gammas + begin, offset, scratch.factors + begin, 1, end - begin);
            const real *popped = (const real *)(scratch.popped + from * Q * C + symbol) + lane;
            add_products(Q, C, Q, sums, one, m, (struct coefficients){popped, 1, S * LANES, C * LANES});
        }
        if (t / LANES == tile)
            for (int x = 0; x < C; x++)
                for (int r = 0; r < Q && scratch.alpha[tile * C + x][t % LANES] > 0; r++)
                    sums[r * C + x][t % LANES] = scratch.transitions[x * width + r * S + symbol];
    }
    if (t / LANES == tile) exponent[t % LANES] = 0;
    column.exponent[tile] = nd_normalise(gamma, 0, 1, C * C, exponent, &exact);
}

/* (c) and (d) (Eqs. 27 and 29); readings (C, value_size). */
#define nd_step_read NAME(nd_step_read)
INLINE void nd_step_read(struct nd_step_scratch scratch, struct nd_step_column column, int t, int S, int C,
                         int value_size, real *readings) {
    const int tiles = t / LANES + 1, Q = C / S;
    for (int tile = 0; tile < tiles; tile++) {
        for (int y = 0; y < C; y++)
            scratch.tops[tile * C + y] =
                nd_top(scratch.alpha + tile * C, column.gamma + (tile * C + y % S * Q + y / S) * C, C);
        scratch.alpha_exponent[tile] += column.exponent[tile];
    }
    *column.alpha_exponent = nd_align_tops(scratch.tops, scratch.alpha_exponent, tiles, C);
    real total = 0;
    for (int y = 0; y < C; y++) total += column.alpha[y] = nd_sum_tops(scratch.tops, tiles, C, y);
    if (!(total > 0)) total = 1;
    memset(readings, 0, (size_t)C * value_size * sizeof(real));
    for (int row = 0; row <= t; row++) {
        const real *value = row < t ? scratch.columns[row].value : column.value;
        for (int y = 0; y < C; y++) {
            const real weight = scratch.tops[row / LANES * C + y][row % LANES] / total;
            for (int m = 0; m < value_size; m++) readings[y * value_size + m] += weight * value[m];
        }
    }
}

#define nd_step_sized NAME(nd_step_sized)
INLINE int nd_step_sized(const struct nd_step_call *call, int64_t row, char *memory, int Q, int S) {
    const int t = call->step, C = Q * S, value_size = call->value_size;
    char *own = (char *)call->column + row * nd_step_lay_out(t, C, value_size, NULL).bytes;
    const struct nd_step_column column = nd_step_lay_out(t, C, value_size, own);
    memcpy(column.value, (const real *)call->values + row * value_size, value_size * sizeof(real));
    if (t == 0) {
        nd_step_begin(column, C);
        return 1;
    }
    const struct nd_step_scratch scratch = nd_step_lay_out_scratch(t, Q, C, memory);
    for (int k = 0; k < t; k++) {
        const size_t bytes = nd_step_lay_out(k, C, value_size, NULL).bytes;
        char *of_ancestor = (char *)call->columns[k] + call->ancestors[row * t + k] * bytes;
        scratch.columns[k] = nd_step_lay_out(k, C, value_size, of_ancestor);
        scratch.gammas[k] = scratch.columns[k].gamma;
    }
    const size_t count = (size_t)C * (2 * C + Q);
    memcpy(scratch.transitions, (const real *)call->logits + row * count, count * sizeof(real));
    const struct nd_spread spread = nd_exponentiate(scratch.transitions, C, 2 * C + Q);
    nd_step_gather_alpha(scratch, t, C);
    nd_step_pop(scratch, t, Q, S);
    for (int tile = 0; tile <= t / LANES; tile++) nd_step_fill(scratch, column, tile, t, Q, S);
    real *readings = (real *)call->readings + row * C * value_size;
    nd_step_read(scratch, column, t, S, C, value_size, readings);
    if (spread.undefined) { /* and so are later readings, by alpha[t] */
        for (int i = 0; i < C * value_size; i++) readings[i] = NAN;
        for (int x = 0; x < C; x++) column.alpha[x] = NAN;
    }
    return 1;
}

COMPILE(nd_step, struct nd_step_call)

static void NAME(nd_step_sizes)(int t, int Q, int S, int value_size, size_t sizes[2]) {
    sizes[0] = nd_step_lay_out(t, Q * S, value_size, NULL).bytes;
    sizes[1] = nd_step_lay_out_scratch(t, Q, Q * S, NULL).bytes;
}
