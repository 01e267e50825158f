/* The nondeterministic stack, backward: the gradients of the transition weights of one sequence, (g)-(m). */

/* The working memory of the backward pass. Arrays of tiles are laid out as in the record. */
struct nd_adjoint {
    vector *outer;      /* O[i -> t][x -> y] = dL/dg[i -> t][x -> y], laid out like gamma */
    vector *top;        /* h[i, t] B_t[i, y]: [tile][t][y] */
    vector *alpha;      /* 2^A_i dL/dalpha[i][x], at row i + 1: [tile][x] */
    vector *popped_sum; /* P[k -> t], to be summed over lanes, k = row - 1: [worker][t - first][lane][symbol][u, r] */
    vector *popped;     /* P[k -> t] = dL/dg'[k -> t] for the column t that was done last: [tile][r][x] */
    vector *replaced;   /* gradients of replacements, to be summed over lanes: [t][symbol][symbol'][q, r] */
    vector *pops;       /* those of pops, likewise: [t][symbol][q, r]; one worker has t - first in place of t */
    real *gradients;    /* of the logarithms of the transitions, laid out like those */
    real *weights, *cotangents; /* W and its cotangents, if they have to be converted */
    int *begin, *end;           /* of the strips: see nd_backward_pass */
    atomic_int *done;
    size_t bytes;
};

INLINE struct nd_adjoint nd_lay_out_adjoint(const struct nd_record *rec, char *memory, int workers) {
    struct nd_adjoint a;
    size_t all = nd_columns_before(rec->n, rec->tiles), Q = rec->Q, C = rec->C, used = 0;
    const size_t steps = workers > 1 ? (size_t)(rec->n / TIME_TILE + 1) * TIME_TILE : TIME_TILE;
    TAKE(a.outer, all * C * C)
    TAKE(a.top, all * C)
    TAKE(a.alpha, rec->tiles * C)
    TAKE(a.popped_sum, workers * TIME_TILE * LANES * Q * C)
    TAKE(a.popped, rec->tiles * Q * C)
    TAKE(a.replaced, steps * C * C)
    TAKE(a.pops, steps * Q * C)
    TAKE(a.gradients, rec->n * C * rec->width)
    TAKE(a.weights, nd_weights_size(rec))
    TAKE(a.cotangents, nd_weights_size(rec))
    TAKE(a.begin, (size_t)rec->tiles + 1)
    TAKE(a.end, (size_t)rec->tiles + 1)
    TAKE(a.done, (size_t)rec->tiles + 1)
    a.bytes = used;
    return a;
}

INLINE real *nd_row_gradients(const struct nd_record *rec, const struct nd_adjoint *a, int t) {
    return a->gradients + (size_t)(t - 1) * rec->C * rec->width;
}

/* (h), and the first line of (m), which is (i): for column t, `top` and what it adds to `alpha`. The cotangents are
 * centred on the largest weight: where one weight is almost 1, the usual formula is a difference of two almost
 * equal numbers. */
INLINE void nd_read_back(const struct nd_record *rec, struct nd_adjoint *a, int t, const real *weights,
                         const real *cotangents) {
    const int S = rec->S, C = rec->C, last = t / LANES, width = rec->columns;
    vector most = splat(-1), centre = {0}, mean = {0};
    for (int y = 0; y < C; y++)
        for (int tile = 0; tile <= last; tile++) {
            int at = tile * LANES, count = width - at;
            vector weight = load(weights + y * width + at, count), own = load(cotangents + y * width + at, count);
            ivector more = weight > most;
            most = choose(more, weight, most);
            centre = choose(more, own, centre);
        }
    int star = 0;
    for (int lane = 1; lane < LANES; lane++)
        if (most[lane] > most[star]) star = lane;
    for (int y = 0; y < C; y++)
        for (int tile = 0; tile <= last; tile++) {
            int at = tile * LANES, count = width - at;
            vector own = load(cotangents + y * width + at, count) - centre[star];
            mean += load(weights + y * width + at, count) * own;
        }
    real offset = lane_sum(mean), scale = 1 / rec->total[t];
    for (int tile = 0; tile <= last; tile++) {
        int at = tile * LANES, count = width - at;
        size_t column = nd_column(rec, tile, t);
        vector h = power_of_two(rec->gamma_exponent[column] + rec->alpha_exponent[tile] - rec->total_exponent[t]);
        for (int y = 0; y < C; y++) {
            real after = t < rec->n ? a->alpha[(t + 1) / LANES * C + y][(t + 1) % LANES] : 0;
            vector own = (load(cotangents + y * width + at, count) - centre[star]) - offset;
            const vector *gamma = nd_gamma(rec, rec->gamma, tile, y % S, t) + y / S * C;
            /* W may be too small for a number, and the run may yet be the one that matters in the end. */
            vector reached = nd_top(rec->Q, S, rec->alpha + tile * C, nd_gamma(rec, rec->gamma, tile, 0, t),
                                    nd_next_symbol(rec, tile), y);
            vector top = keep_reached((own * scale + after) * h, reached);
            a->top[column * C + y] = top;
            for (int x = 0; x < C; x++) a->alpha[tile * C + x] += gamma[x] * top;
        }
    }
}

/* The line of (m) with f[i, t, t'], the last of (j): adds to O[. -> t] what comes from the pops to column k = t at the
 * times begin <= t' < end, t' >= t + 2. */
INLINE void nd_add_outer_of_pops(const struct nd_record *rec, const struct nd_adjoint *a, int tile, int first, int last,
                                 int begin, int end) {
    const int Q = rec->Q, S = rec->S, C = rec->C;
    vector factors[TIME_TILE][TIME_TILE];
    const vector one = splat(1);
    for (int t = first; t < last; t++) {
        const int from = (t + 1) / LANES, lane = (t + 1) % LANES, start = begin > t + 2 ? begin : t + 2;
        if (start >= end) continue;
        ivector own = rec->gamma_exponent[nd_column(rec, tile, t)];
        const ivector *popped = rec->popped_exponent + nd_column(rec, from, start);
        const ivector *result = rec->gamma_exponent + nd_column(rec, tile, start);
        for (int k = 0; k < end - start; k++)
            factors[t - first][k] = power_of_two(own + popped[k][lane] - result[k]);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            const int from = (t + 1) / LANES, lane = (t + 1) % LANES, start = begin > t + 2 ? begin : t + 2;
            if (start >= end) continue;
            struct matrices m =
                consecutive(nd_gamma(rec, a->outer, tile, symbol, start), Q * C, factors[t - first], 1, end - start);
            struct coefficients c = {(const real *)(nd_popped(rec, from, start) + symbol) + lane, Q * C * LANES,
                                     C * LANES, S * LANES};
            add_products(Q, C, Q, nd_gamma(rec, a->outer, tile, symbol, t), one, m, c);
        }
}

INLINE void nd_add_outer_of_all_pops(const struct nd_record *rec, const struct nd_adjoint *a, int tile, int first,
                                     int last, int begin, int end) {
    for (; begin < end; begin += TIME_TILE)
        nd_add_outer_of_pops(rec, a, tile, first, last, begin, begin + TIME_TILE < end ? begin + TIME_TILE : end);
}

/* P of (m), which is (k): adds what the rows i + 1 of a tile give for the pops of the columns k = row - 1 of the rows
 * of tile `rows`, at the times first <= t < last; `sums` is that of the first time. */
INLINE void nd_add_popped_sums(const struct nd_record *rec, const struct nd_adjoint *a, int tile, int rows, int first,
                               int last, vector *sums) {
    const int Q = rec->Q, S = rec->S, C = rec->C, lane = tile == rows; /* k is a column of the tile */
    const int begin = rows * LANES - 1 + lane;
    vector factors[TIME_TILE][LANES];
    int counts[TIME_TILE];
    const ivector *kept = rec->gamma_exponent + nd_column(rec, tile, begin);
    for (int t = first; t < last; t++) {
        int count = t - 1 - begin;
        counts[t - first] = count = count < LANES - lane ? count : LANES - lane;
        const ivector popped = rec->popped_exponent[nd_column(rec, rows, t)];
        const ivector result = rec->gamma_exponent[nd_column(rec, tile, t)];
        for (int k = 0; k < count; k++) factors[t - first][k] = power_of_two(kept[k] + popped[lane + k] - result);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            if (counts[t - first] <= 0) continue;
            struct matrices m = consecutive(nd_gamma(rec, rec->gamma, tile, symbol, begin), Q * C, factors[t - first],
                                            1, counts[t - first]);
            vector *to = sums + ((t - first) * LANES + lane) * Q * C + symbol * Q * Q;
            add_dots(Q, C, Q, to, Q * C, m, nd_gamma(rec, a->outer, tile, symbol, t));
        }
}

/* (j)-(l) for the columns first <= t < last of a tile: O, and everything that follows from it. The sums of replacements
 * and pops are those of the first column. */
INLINE void nd_fill_back(const struct nd_record *rec, const struct nd_adjoint *a, int tile, int first, int last,
                         vector *replaced, vector *pops) {
    const int row = tile * LANES, Q = rec->Q, S = rec->S, size = Q * rec->C, start = first;
    const ptrdiff_t next = nd_next_symbol(rec, tile);
    vector *popped = a->popped + tile * size;
    if (first < row) first = row;
    for (int symbol = 0; symbol < S; symbol++)
        memset(nd_gamma(rec, a->outer, tile, symbol, first), 0, (last - first) * size * sizeof(vector));
    memset(a->popped_sum, 0, (last - first) * LANES * size * sizeof(vector));
    for (int below = 0; below < tile; below++) nd_add_popped_sums(rec, a, below, tile, first, last, a->popped_sum);
    nd_add_outer_of_all_pops(rec, a, tile, first, last, last, rec->columns);
    for (int t = last - 1; t >= first && t > 0; t--) {
        vector *sums = a->popped_sum + (t - first) * LANES * size;
        nd_add_outer_of_all_pops(rec, a, tile, t, t + 1, t + 2, last);
        const size_t column = nd_column(rec, tile, t);
        const ivector *exponent = rec->gamma_exponent + column, *popped_exponent = rec->popped_exponent + column;
        const vector *gamma = nd_gamma(rec, rec->gamma, tile, 0, t);
        vector *outer = nd_gamma(rec, a->outer, tile, 0, t);
        if (t < rec->n)
            nd_add_outer_of_next(Q, S, nd_row_transitions(rec, t + 1), outer + size, next,
                                 power_of_two(exponent[0] - exponent[1]), popped,
                                 power_of_two(exponent[0] - popped_exponent[1]), outer, next);
        nd_finish_outer(Q, S, rec->alpha + tile * rec->C, a->top + column * rec->C, gamma, outer, next);
        if (t / LANES == tile) nd_push_back(Q, S, gamma, outer, next, t % LANES, nd_row_gradients(rec, a, t));
        nd_add_popped_sums(rec, a, tile, tile, t, t + 1, sums);
        nd_collect_popped(Q, S, sums, nd_popped(rec, tile, t), popped);
        if (t > row)
            nd_transitions_back(Q, S, gamma - size, next, outer, next, power_of_two(exponent[-1] - exponent[0]), popped,
                                power_of_two(exponent[-1] - popped_exponent[0]),
                                replaced + (t - start) * rec->C * rec->C, pops + (t - start) * size);
    }
}
