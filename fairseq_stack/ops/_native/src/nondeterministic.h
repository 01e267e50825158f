/* The nondeterministic stack: all inner weights of one sequence, and the gradients of the transition weights.
 *
 * Notation as in docs/algorithm.md: n steps, Q states, S stack symbols, C = Q S configurations x = (q, s), and
 * gamma[i -> t][x -> y] = g[i -> t][x -> y] 2^e[i, t] for -1 <= i < t <= n. The lanes of a vector are LANES rows
 * j = i + 1 of one tile. Column t has the rows 0..t; what is stored for others is 0, with the exponent DEAD.
 * gamma'[k -> t][x -> r], which pops, is stored at row j = k + 1.
 */

/* Steps that one pass over the earlier columns serves. */
#undef TIME_TILE
#define TIME_TILE 16

/* What the forward pass leaves for the backward pass. Arrays of tiles begin with the tile's first column. */
#define nd_record NAME(nd_record)
struct nd_record {
    int n, Q, S, C, columns, tiles, width;
    real *transitions;       /* Delta_t up to a factor: [t - 1][x][C pushes, C replacements, Q pops] */
    vector *gamma;           /* [tile][s][t][r][x] for y = (r, s) */
    ivector *gamma_exponent; /* [tile][t] */
    vector *popped;          /* gamma'[k -> t][x -> r]: [tile][t][r][x] */
    ivector *popped_exponent;
    vector *alpha; /* alpha[i] at row i + 1: [tile][x] */
    ivector *alpha_exponent;
    real *total; /* sum_x alpha[t][x] without its exponent: [t] */
    integer *total_exponent;
    size_t bytes; /* of all arrays */
    ivector *exact; /* where the forward pass notes what is not: see nd_normalise */
};

/* Number of columns of all tiles before this one. */
#define nd_columns_before NAME(nd_columns_before)
INLINE size_t nd_columns_before(int n, int tile) {
    return (size_t)tile * (n + 1) - (size_t)LANES * tile * (tile - 1) / 2;
}

#define nd_column NAME(nd_column)
INLINE size_t nd_column(const struct nd_record *s, int tile, int t) {
    return nd_columns_before(s->n, tile) + t - tile * LANES;
}

/* gamma[. -> t][. -> (0, symbol)], followed by the other states, and then by the next columns of the tile. */
#define nd_gamma NAME(nd_gamma)
INLINE vector *nd_gamma(const struct nd_record *s, vector *base, int tile, int symbol, int t) {
    size_t length = s->columns - tile * LANES;
    size_t before = nd_columns_before(s->n, tile) * s->S + symbol * length + t - tile * LANES;
    return base + before * s->Q * s->C;
}

#define nd_popped NAME(nd_popped)
INLINE vector *nd_popped(const struct nd_record *s, int tile, int t) {
    return s->popped + nd_column(s, tile, t) * s->Q * s->C;
}

#define nd_row_transitions NAME(nd_row_transitions)
INLINE real *nd_row_transitions(const struct nd_record *s, int t) {
    return s->transitions + (size_t)(t - 1) * s->C * s->width;
}

/* Lays the arrays out in memory. */
#define nd_lay_out NAME(nd_lay_out)
INLINE struct nd_record nd_lay_out(int n, int Q, int S, char *memory) {
    struct nd_record s = {.n = n, .Q = Q, .S = S, .C = Q * S, .columns = n + 1, .tiles = n / LANES + 1};
    size_t all = nd_columns_before(n, s.tiles), C = s.C, used = 0;
    s.width = 2 * s.C + Q;
    TAKE(s.transitions, (size_t)n * C * s.width)
    TAKE(s.gamma, all * C * C)
    TAKE(s.gamma_exponent, all)
    TAKE(s.popped, all * Q * C)
    TAKE(s.popped_exponent, all)
    TAKE(s.alpha, s.tiles * C)
    TAKE(s.alpha_exponent, (size_t)s.tiles)
    TAKE(s.total, (size_t)s.columns)
    TAKE(s.total_exponent, (size_t)s.columns)
    s.bytes = used;
    return s;
}

/* ---------------------------------------------------------------- transitions */

/* How far apart the log weights of a step may be. If they are farther apart, or some are -inf, float is not precise
 * enough, and in double the inner weights of configurations that are out of reach have to be left out. */
#undef WIDEST_RANGE
#define WIDEST_RANGE (sizeof(real) == 4 ? 55 : 230)

/* Its exponential is still a normal number in double. */
#undef LOWEST_LOG
#define LOWEST_LOG (-690)

/* The log weights of a step: the largest, and the lowest which is not -inf, but 0 if all are; NaN and inf are neither. */
#define nd_extremes NAME(nd_extremes)
struct nd_extremes {
    real largest, lowest;
    int masked;    /* whether some are -inf */
    int undefined; /* whether some are NaN or inf */
};

#define nd_find_extremes NAME(nd_find_extremes)
INLINE struct nd_extremes nd_find_extremes(const real *logits, int count) {
    const real infinity = (real)INFINITY;
    vector largest = splat(-infinity), lowest = splat(infinity);
    ivector masked = {0}, undefined = {0};
    for (int i = 0; i < count; i += LANES) {
        vector x = load_beside(logits + i, count - i, splat(logits[0]));
        ivector defined = x < infinity;
        masked |= x == -infinity;
        undefined |= ~defined;
        largest = choose((x > largest) & defined, x, largest);
        lowest = choose((x < lowest) & (x > -infinity), x, lowest);
    }
    struct nd_extremes found = {largest[0], lowest[0], masked[0] != 0, undefined[0] != 0};
    for (int lane = 1; lane < LANES; lane++) {
        if (largest[lane] > found.largest) found.largest = largest[lane];
        if (lowest[lane] < found.lowest) found.lowest = lowest[lane];
        found.masked |= masked[lane] != 0;
        found.undefined |= undefined[lane] != 0;
    }
    if (!(found.largest > -infinity)) found.largest = found.lowest = 0;
    return found;
}

/* Raises log weights, relative to the largest, to where their exponential is not 0: those from one configuration
 * together, so that its largest push or replacement is at least LOWEST_LOG. So runs can go on from every configuration
 * from which they could before. */
#define nd_lift NAME(nd_lift)
INLINE void nd_lift(real *logits, int C, int width) {
    for (int x = 0; x < C; x++) {
        real *own = logits + x * width, largest = (real)-INFINITY;
        for (int y = 0; y < 2 * C; y++)
            if (own[y] > largest) largest = own[y];
        if (!(largest < LOWEST_LOG && largest > (real)-INFINITY)) continue;
        for (int y = 0; y < width; y++) {
            own[y] += LOWEST_LOG - largest;
            if (own[y] > 0) own[y] = 0;
        }
    }
}

/* How far the log weights of a step that are not -inf are apart, and whether some are -inf; and whether some are
 * NaN or inf. */
#define nd_spread NAME(nd_spread)
struct nd_spread {
    real range;
    int masked, undefined;
};

/* The transition weights of a step, up to a factor, in place of their logarithms (C, width). Those that are undefined
 * are given an ordinary weight: that what depends on them is undefined, too, is up to the caller. */
#define nd_exponentiate NAME(nd_exponentiate)
INLINE struct nd_spread nd_exponentiate(real *logits, int C, int width) {
    const struct nd_extremes found = nd_find_extremes(logits, C * width);
    const real range = found.largest - found.lowest;
    for (int i = 0; found.undefined && i < C * width; i++)
        if (!(logits[i] < (real)INFINITY)) logits[i] = found.largest;
    for (int i = 0; i < C * width; i++) logits[i] -= found.largest;
    if (range > -LOWEST_LOG) nd_lift(logits, C, width);
    for (int i = 0; i < C * width; i += LANES)
        store(logits + i, exponential(load(logits + i, C * width - i)), C * width - i);
    return (struct nd_spread){range, found.masked, found.undefined};
}

/* Whether the arrays of a call are of this kernel's type; else they are of float, and it is double. */
#define is_own NAME(is_own)
INLINE int is_own(const struct nd_call *call) { return sizeof(real) == 4 || call->is_double; }

#define from_array NAME(from_array)
INLINE void from_array(real *to, const struct nd_call *call, const void *array, size_t first, size_t count) {
    if (is_own(call)) memcpy(to, (const real *)array + first, count * sizeof(real));
    else
        for (size_t i = 0; i < count; i++) to[i] = ((const float *)array)[first + i];
}

#define to_array NAME(to_array)
INLINE void to_array(const struct nd_call *call, void *array, size_t first, size_t count, const real *from) {
    if (is_own(call)) memcpy((real *)array + first, from, count * sizeof(real));
    else
        for (size_t i = 0; i < count; i++) ((float *)array)[first + i] = (float)from[i];
}

/* Whether these log weights are as near to each other as they have to be. */
#define nd_is_near NAME(nd_is_near)
INLINE int nd_is_near(struct nd_spread spread) { return !spread.masked && spread.range <= WIDEST_RANGE; }

/* All transitions of a sequence; returns the largest spread, in which `undefined` is the first step that is so, or 0. In
 * float, they are not computed beyond a step whose log weights are not near. */
#define nd_prepare NAME(nd_prepare)
INLINE struct nd_spread nd_prepare(const struct nd_record *s, const struct nd_call *call, int64_t sequence) {
    const size_t C = s->C, Q = s->Q, first = sequence * s->n;
    struct nd_spread largest = {0};
    for (int t = 1; t <= s->n; t++) {
        real *step = nd_row_transitions(s, t);
        for (size_t x = 0, row = (first + t - 1) * C; x < C; x++, row++) {
            real *own = step + x * s->width;
            from_array(own, call, call->push, row * C, C);
            from_array(own + C, call, call->replace, row * C, C);
            from_array(own + 2 * C, call, call->pop, row * Q, Q);
        }
        const struct nd_spread spread = nd_exponentiate(step, C, s->width);
        if (spread.range > largest.range) largest.range = spread.range;
        largest.masked |= spread.masked;
        if (spread.undefined && !largest.undefined) largest.undefined = t;
        if (sizeof(real) == 4 && !nd_is_near(spread)) break;
    }
    return largest;
}

/* ---------------------------------------------------------------- forward */

/* What the forward pass works with. */
#define nd_scratch NAME(nd_scratch)
struct nd_scratch {
    vector *tops; /* a column of the numerators of W: [tile][y] */
    ivector *exponents;
    real *weights; /* W, if it has to be converted */
    size_t bytes;
};

/* Number of elements of W. */
#define nd_weights_size NAME(nd_weights_size)
INLINE size_t nd_weights_size(const struct nd_record *s) { return (size_t)s->n * s->C * s->columns; }

#define nd_lay_out_scratch NAME(nd_lay_out_scratch)
INLINE struct nd_scratch nd_lay_out_scratch(const struct nd_record *s, char *memory) {
    struct nd_scratch scratch;
    size_t used = 0;
    TAKE(scratch.tops, (size_t)s->tiles * s->C)
    TAKE(scratch.exponents, (size_t)s->tiles)
    TAKE(scratch.weights, nd_weights_size(s))
    scratch.bytes = used;
    return scratch;
}

/* Raises the exponent of the sums for (tile, t) to at least this; returns the factor that keeps their value. */
#define nd_raise NAME(nd_raise)
INLINE vector nd_raise(ivector *exponent, ivector least) {
    ivector old = *exponent;
    *exponent = ilarger(old, least);
    return power_of_two(old - *exponent);
}

/* Eq. 24, pop: adds sum_k gamma[i -> k] gamma'[k -> t] over begin <= k < end, k <= t - 2, to the columns
 * first <= t < last of a tile. All rows k + 1 are in one tile. */
#define nd_add_pops NAME(nd_add_pops)
INLINE void nd_add_pops(const struct nd_record *s, int tile, int first, int last, int begin, int end) {
    const int Q = s->Q, S = s->S, C = s->C;
    const int from = (begin + 1) / LANES, lane = (begin + 1) % LANES;
    vector factors[TIME_TILE][LANES], scale[TIME_TILE];
    for (int t = first; t < last; t++) {
        ivector *exponent = s->gamma_exponent + nd_column(s, tile, t), least = *exponent;
        const ivector *kept = s->gamma_exponent + nd_column(s, tile, begin);
        const integer *popped = (const integer *)(s->popped_exponent + nd_column(s, from, t)) + lane;
        int count = (end < t - 1 ? end : t - 1) - begin;
        for (int k = 0; k < count; k++) least = ilarger(least, kept[k] + popped[k]);
        scale[t - first] = nd_raise(exponent, least);
        for (int k = 0; k < count; k++) factors[t - first][k] = power_of_two(kept[k] + popped[k] - least);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            int count = (end < t - 1 ? end : t - 1) - begin;
            if (count <= 0) continue;
            struct matrices m =
                consecutive(nd_gamma(s, s->gamma, tile, symbol, begin), Q * C, factors[t - first], 1, count);
            struct coefficients c = {(const real *)(nd_popped(s, from, t) + symbol) + lane, 1, S * LANES, C * LANES};
            add_products(Q, C, Q, nd_gamma(s, s->gamma, tile, symbol, t), scale[t - first], m, c);
        }
}

/* The same for any begin and end. */
#define nd_add_all_pops NAME(nd_add_all_pops)
INLINE void nd_add_all_pops(const struct nd_record *s, int tile, int first, int last, int begin, int end) {
    while (begin < end) {
        int next = ((begin + 1) / LANES + 1) * LANES - 1;
        nd_add_pops(s, tile, first, last, begin, next < end ? next : end);
        begin = next;
    }
}

/* Eq. 24, replace. */
#define nd_add_replacements NAME(nd_add_replacements)
INLINE void nd_add_replacements(const struct nd_record *s, int tile, int t) {
    const int Q = s->Q, S = s->S, C = s->C, width = s->width;
    ivector *exponent = s->gamma_exponent + nd_column(s, tile, t), before = exponent[-1];
    vector scale = nd_raise(exponent, before), factor = power_of_two(before - *exponent);
    ptrdiff_t next_symbol = (ptrdiff_t)(s->columns - tile * LANES) * Q * C;
    struct matrices m = consecutive(nd_gamma(s, s->gamma, tile, 0, t - 1), next_symbol, &factor, 0, S);
    for (int symbol = 0; symbol < S; symbol++) {
        struct coefficients c = {nd_row_transitions(s, t) + C + symbol, width, S * width, S};
        add_products(Q, C, Q, nd_gamma(s, s->gamma, tile, symbol, t), scale, m, c);
    }
}

/* Eq. 24, push: row t of column t; if careful, only for the configurations that can be on top after step t - 1, since
 * the inner weights of the others could outgrow all that matter. */
#define nd_push NAME(nd_push)
INLINE void nd_push(const struct nd_record *s, int t, int careful) {
    const int Q = s->Q, S = s->S, C = s->C, tile = t / LANES, lane = t % LANES;
    const real *transitions = nd_row_transitions(s, t);
    for (int x = 0; x < C; x++) {
        if (careful && !(s->alpha[tile * C + x][lane] > 0)) continue;
        for (int symbol = 0; symbol < S; symbol++)
            for (int r = 0; r < Q; r++)
                nd_gamma(s, s->gamma, tile, symbol, t)[r * C + x][lane] = transitions[x * s->width + r * S + symbol];
    }
    s->gamma_exponent[nd_column(s, tile, t)][lane] = 0;
}

/* A block's elements are exact if they are at least as large as this beside its sum: then what has been lost because
 * it was too small for a number is nothing beside them. */
#undef LEAST_EXACT
#define LEAST_EXACT (sizeof(real) == 4 ? (real)0x1p-80 : (real)0x1p-900)

/* Makes the sum of each block be in [1, 2); returns the exponent that keeps its value. The sign bits of `exact` are
 * set in the lanes of living blocks with elements that are too small to be exact. */
#define nd_normalise NAME(nd_normalise)
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
            signs |= (ivector)(*element - LEAST_EXACT);
        }
    *exact |= ~dead & signs;
    return (dead & DEAD) | (~dead & (exponent + shift));
}

/* Eq. 25: gamma'[k -> t] for the rows of a tile. */
#define nd_pop NAME(nd_pop)
INLINE void nd_pop(const struct nd_record *s, int tile, int t) {
    const int Q = s->Q, S = s->S, C = s->C, width = s->width;
    vector *popped = nd_popped(s, tile, t), one = splat(1);
    ivector *exponent = s->popped_exponent + nd_column(s, tile, t);
    memset(popped, 0, Q * C * sizeof(vector));
    *exponent = isplat(DEAD);
    if (t == tile * LANES) return;
    ptrdiff_t next_symbol = (ptrdiff_t)(s->columns - tile * LANES) * Q * C;
    struct matrices m = consecutive(nd_gamma(s, s->gamma, tile, 0, t - 1), next_symbol, &one, 0, S);
    struct coefficients c = {nd_row_transitions(s, t) + 2 * C, width, S * width, 1};
    add_products(Q, C, Q, popped, one, m, c);
    *exponent = nd_normalise(popped, 0, 1, Q * C, s->gamma_exponent[nd_column(s, tile, t - 1)], s->exact);
}

/* The columns first <= t < last of a tile of rows, from those of the tiles below it and all earlier columns. */
#define nd_fill NAME(nd_fill)
INLINE void nd_fill(const struct nd_record *s, int tile, int first, int last, int careful) {
    const int row = tile * LANES, next = row + LANES, S = s->S, size = s->Q * s->C;
    const ptrdiff_t next_symbol = (ptrdiff_t)(s->columns - row) * size;
    if (first < row) first = row;
    for (int symbol = 0; symbol < S; symbol++)
        memset(nd_gamma(s, s->gamma, tile, symbol, first), 0, (last - first) * size * sizeof(vector));
    for (int t = first; t < last; t++) s->gamma_exponent[nd_column(s, tile, t)] = isplat(DEAD);
    nd_add_all_pops(s, tile, first, last, next - 1, first);
    for (int t = first; t < last; t++) {
        nd_pop(s, tile, t);
        if (t == 0) { /* Eq. 21; sources other than x = 0 have alpha[-1][x] = 0 */
            for (int x = 0; x < size / s->Q; x++) nd_gamma(s, s->gamma, 0, 0, 0)[x][0] = 1;
            s->gamma_exponent[0][0] = 0;
            continue;
        }
        if (t > row) nd_add_replacements(s, tile, t);
        nd_add_all_pops(s, tile, t, t + 1, row, next - 1);
        nd_add_all_pops(s, tile, t, t + 1, first > next - 1 ? first : next - 1, t - 1);
        if (t / LANES == tile) nd_push(s, t, careful);
        ivector *exponent = s->gamma_exponent + nd_column(s, tile, t);
        *exponent = nd_normalise(nd_gamma(s, s->gamma, tile, 0, t), next_symbol, S, size, *exponent, s->exact);
    }
}

/* sum_x alpha[i][x] gamma[i -> t][x -> y] for one y, a numerator of W_t, without exponents. */
#define nd_top NAME(nd_top)
INLINE vector nd_top(const vector *alpha, const vector *gamma, int C) {
    vector top = {0};
    for (int x = 0; x < C; x++) top += alpha[x] * gamma[x];
    return top;
}

/* Gives tops[tile][y] 2^exponents[tile] one exponent for all, that of the largest; returns it. */
#define nd_align_tops NAME(nd_align_tops)
INLINE integer nd_align_tops(vector *tops, const ivector *exponents, int tiles, int C) {
    ivector most = isplat(DEAD);
    for (int tile = 0; tile < tiles; tile++) {
        vector sum = {0};
        for (int y = 0; y < C; y++) sum += tops[tile * C + y];
        most = ilarger(most, exponents[tile] + exponent_of(sum));
    }
    integer exponent = most[0];
    for (int lane = 1; lane < LANES; lane++) exponent = most[lane] > exponent ? most[lane] : exponent;
    for (int tile = 0; tile < tiles; tile++)
        for (int y = 0; y < C; y++) tops[tile * C + y] *= power_of_two(exponents[tile] - exponent);
    return exponent;
}

/* alpha[t][y], Eq. 27. */
#define nd_sum_tops NAME(nd_sum_tops)
INLINE real nd_sum_tops(const vector *tops, int tiles, int C, int y) {
    vector sum = {0};
    for (int tile = 0; tile < tiles; tile++) sum += tops[tile * C + y];
    return lane_sum(sum);
}

/* Eqs. 27 and 29: alpha[t] and W_t, which goes to weights[y][i + 1]. */
#define nd_read NAME(nd_read)
INLINE void nd_read(const struct nd_record *s, int t, struct nd_scratch scratch, real *weights) {
    const int S = s->S, C = s->C, tiles = t / LANES + 1, next = (t + 1) / LANES, lane = (t + 1) % LANES;
    for (int tile = 0; tile < tiles; tile++) {
        for (int y = 0; y < C; y++)
            scratch.tops[tile * C + y] =
                nd_top(s->alpha + tile * C, nd_gamma(s, s->gamma, tile, y % S, t) + y / S * C, C);
        scratch.exponents[tile] = s->gamma_exponent[nd_column(s, tile, t)] + s->alpha_exponent[tile];
    }
    const integer exponent = nd_align_tops(scratch.tops, scratch.exponents, tiles, C);
    real total = 0;
    for (int y = 0; y < C; y++) {
        const real alpha = nd_sum_tops(scratch.tops, tiles, C, y);
        total += alpha;
        if (t < s->n) s->alpha[next * C + y][lane] = alpha;
    }
    if (t < s->n) s->alpha_exponent[next][lane] = exponent;
    s->total[t] = total = total > 0 ? total : 1;
    s->total_exponent[t] = exponent;
    for (int y = 0; y < C; y++)
        for (int tile = 0; tile < s->tiles; tile++) {
            vector weight = tile < tiles ? scratch.tops[tile * C + y] / total : (vector){0};
            store(weights + y * s->columns + tile * LANES, weight, s->columns - tile * LANES);
        }
}

/* All inner weights of a sequence, and W: [t - 1][y][i + 1]. */
#define nd_forward_body NAME(nd_forward_body)
INLINE void nd_forward_body(const struct nd_record *s, struct nd_scratch scratch, real *weights, int careful) {
    const int step = careful ? 1 : TIME_TILE; /* alpha[t - 1] is there before column t if it is needed */
    memset(s->alpha, 0, s->tiles * s->C * sizeof(vector));
    for (int tile = 0; tile < s->tiles; tile++) s->alpha_exponent[tile] = isplat(DEAD);
    for (int row = 0; row <= 1 && row <= s->n; row++) { /* Eq. 23 */
        s->alpha[row / LANES * s->C][row % LANES] = 1;
        s->alpha_exponent[row / LANES][row % LANES] = 0;
    }
    for (int first = 0; first <= s->n; first += step) {
        int last = first + step <= s->n ? first + step : s->n + 1;
        for (int tile = (last - 1) / LANES; tile >= 0; tile--) nd_fill(s, tile, first, last, careful);
        for (int t = first > 1 ? first : 1; t < last; t++)
            nd_read(s, t, scratch, weights + (size_t)(t - 1) * s->C * s->columns);
    }
}

/* ---------------------------------------------------------------- backward */

/* What the backward pass works with. Arrays of tiles are laid out like those of the record. */
#define nd_adjoint NAME(nd_adjoint)
struct nd_adjoint {
    vector *outer;      /* O[i -> t][x -> y] = dL/dg[i -> t][x -> y], laid out like gamma */
    vector *top;        /* h[i, t] beta_t[i, y]: [tile][t][y] */
    vector *alpha;      /* 2^A_i dL/dalpha[i][x], at row i + 1: [tile][x] */
    vector *popped_sum; /* dL/dg'[k -> t], to be summed over lanes, k = row - 1: [t - first][lane][symbol][u, r] */
    vector *popped;     /* dL/dg'[k -> t] for the column t that was done last: [tile][r][x] */
    vector *replaced;   /* gradients of replacements, to be summed over lanes: [t - first][symbol][symbol'][q, r] */
    vector *pops;       /* those of pops, likewise: [t - first][symbol][q, r] */
    real *gradients;    /* of the logarithms of the transitions, laid out like those */
    real *weights, *cotangents; /* W and its cotangents, if they have to be converted */
    size_t bytes;
};

#define nd_lay_out_adjoint NAME(nd_lay_out_adjoint)
INLINE struct nd_adjoint nd_lay_out_adjoint(const struct nd_record *s, char *memory) {
    struct nd_adjoint a;
    size_t all = nd_columns_before(s->n, s->tiles), Q = s->Q, C = s->C, used = 0;
    TAKE(a.outer, all * C * C)
    TAKE(a.top, all * C)
    TAKE(a.alpha, s->tiles * C)
    TAKE(a.popped_sum, TIME_TILE * LANES * Q * C)
    TAKE(a.popped, s->tiles * Q * C)
    TAKE(a.replaced, TIME_TILE * C * C)
    TAKE(a.pops, TIME_TILE * Q * C)
    TAKE(a.gradients, s->n * C * s->width)
    TAKE(a.weights, nd_weights_size(s))
    TAKE(a.cotangents, nd_weights_size(s))
    a.bytes = used;
    return a;
}

#define nd_row_gradients NAME(nd_row_gradients)
INLINE real *nd_row_gradients(const struct nd_record *s, const struct nd_adjoint *a, int t) {
    return a->gradients + (size_t)(t - 1) * s->C * s->width;
}

/* Through Eqs. 27 and 29: for column t, `top` and what it adds to `alpha`. The cotangents are centred on that of the
 * largest weight: where one weight is almost 1, the usual formula is a difference of two almost equal numbers. */
#define nd_read_back NAME(nd_read_back)
INLINE void nd_read_back(const struct nd_record *s, struct nd_adjoint *a, int t, const real *weights,
                         const real *cotangents) {
    const int S = s->S, C = s->C, last = t / LANES, width = s->columns;
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
    real offset = lane_sum(mean), scale = 1 / s->total[t];
    for (int tile = 0; tile <= last; tile++) {
        int at = tile * LANES, count = width - at;
        size_t column = nd_column(s, tile, t);
        vector h = power_of_two(s->gamma_exponent[column] + s->alpha_exponent[tile] - s->total_exponent[t]);
        for (int y = 0; y < C; y++) {
            real after = t < s->n ? a->alpha[(t + 1) / LANES * C + y][(t + 1) % LANES] : 0;
            vector own = (load(cotangents + y * width + at, count) - centre[star]) - offset;
            const vector *gamma = nd_gamma(s, s->gamma, tile, y % S, t) + y / S * C;
            /* W may be too small for a number, and the run may yet be the one that matters in the end. */
            vector reached = nd_top(s->alpha + tile * C, gamma, C);
            vector top = keep_reached((own * scale + after) * h, reached);
            a->top[column * C + y] = top;
            for (int x = 0; x < C; x++) a->alpha[tile * C + x] += gamma[x] * top;
        }
    }
}

/* Adds what the pops to column k = t at the times begin <= t' < end, t' >= t + 2, need of O[. -> t]. */
#define nd_add_outer_of_pops NAME(nd_add_outer_of_pops)
INLINE void nd_add_outer_of_pops(const struct nd_record *s, const struct nd_adjoint *a, int tile, int first, int last,
                                 int begin, int end) {
    const int Q = s->Q, S = s->S, C = s->C;
    vector factors[TIME_TILE][TIME_TILE];
    const vector one = splat(1);
    for (int t = first; t < last; t++) {
        const int from = (t + 1) / LANES, lane = (t + 1) % LANES, start = begin > t + 2 ? begin : t + 2;
        if (start >= end) continue;
        ivector own = s->gamma_exponent[nd_column(s, tile, t)];
        const ivector *popped = s->popped_exponent + nd_column(s, from, start);
        const ivector *result = s->gamma_exponent + nd_column(s, tile, start);
        for (int k = 0; k < end - start; k++)
            factors[t - first][k] = power_of_two(own + popped[k][lane] - result[k]);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            const int from = (t + 1) / LANES, lane = (t + 1) % LANES, start = begin > t + 2 ? begin : t + 2;
            if (start >= end) continue;
            struct matrices m =
                consecutive(nd_gamma(s, a->outer, tile, symbol, start), Q * C, factors[t - first], 1, end - start);
            struct coefficients c = {(const real *)(nd_popped(s, from, start) + symbol) + lane, Q * C * LANES,
                                     C * LANES, S * LANES};
            add_products(Q, C, Q, nd_gamma(s, a->outer, tile, symbol, t), one, m, c);
        }
}

#define nd_add_outer_of_all_pops NAME(nd_add_outer_of_all_pops)
INLINE void nd_add_outer_of_all_pops(const struct nd_record *s, const struct nd_adjoint *a, int tile, int first,
                                     int last, int begin, int end) {
    for (; begin < end; begin += TIME_TILE)
        nd_add_outer_of_pops(s, a, tile, first, last, begin, begin + TIME_TILE < end ? begin + TIME_TILE : end);
}

/* Adds what the rows of a tile give for the pops of the columns k = row - 1 of the rows of tile `rows`, at the times
 * first <= t < last; `sums` is that of the first time. */
#define nd_add_popped_sums NAME(nd_add_popped_sums)
INLINE void nd_add_popped_sums(const struct nd_record *s, const struct nd_adjoint *a, int tile, int rows, int first,
                               int last, vector *sums) {
    const int Q = s->Q, S = s->S, C = s->C, lane = tile == rows; /* k is a column of the tile */
    const int begin = rows * LANES - 1 + lane;
    vector factors[TIME_TILE][LANES];
    int counts[TIME_TILE];
    const ivector *kept = s->gamma_exponent + nd_column(s, tile, begin);
    for (int t = first; t < last; t++) {
        int count = t - 1 - begin;
        counts[t - first] = count = count < LANES - lane ? count : LANES - lane;
        const ivector popped = s->popped_exponent[nd_column(s, rows, t)];
        const ivector result = s->gamma_exponent[nd_column(s, tile, t)];
        for (int k = 0; k < count; k++) factors[t - first][k] = power_of_two(kept[k] + popped[lane + k] - result);
    }
    for (int symbol = 0; symbol < S; symbol++)
        for (int t = first; t < last; t++) {
            if (counts[t - first] <= 0) continue;
            struct matrices m = consecutive(nd_gamma(s, s->gamma, tile, symbol, begin), Q * C, factors[t - first], 1,
                                 counts[t - first]);
            vector *to = sums + ((t - first) * LANES + lane) * Q * C + symbol * Q * Q;
            add_dots(Q, C, Q, to, Q * C, m, nd_gamma(s, a->outer, tile, symbol, t));
        }
}

/* Through the transitions from column t to column t + 1. */
#define nd_add_outer_of_next NAME(nd_add_outer_of_next)
INLINE void nd_add_outer_of_next(const struct nd_record *s, const struct nd_adjoint *a, int tile, int t) {
    const int Q = s->Q, S = s->S, C = s->C, width = s->width;
    const real *transitions = nd_row_transitions(s, t + 1);
    const size_t column = nd_column(s, tile, t);
    ptrdiff_t next_symbol = (ptrdiff_t)(s->columns - tile * LANES) * Q * C;
    vector one = splat(1);
    vector replaced = power_of_two(s->gamma_exponent[column] - s->gamma_exponent[column + 1]);
    vector popped = power_of_two(s->gamma_exponent[column] - s->popped_exponent[column + 1]);
    for (int symbol = 0; symbol < S; symbol++) {
        vector *outer = nd_gamma(s, a->outer, tile, symbol, t);
        struct matrices m = consecutive(nd_gamma(s, a->outer, tile, 0, t + 1), next_symbol, &replaced, 0, S);
        add_products(Q, C, Q, outer, one, m,
                     (struct coefficients){transitions + symbol * width + C, 1, S, S * width});
        struct matrices p = consecutive(a->popped + tile * Q * C, 0, &popped, 0, 1);
        add_products(Q, C, Q, outer, one, p,
                     (struct coefficients){transitions + symbol * width + 2 * C, 0, 1, S * width});
    }
}

/* Adds the runs that end at t, and clears what no run reaches. */
#define nd_finish_outer NAME(nd_finish_outer)
INLINE void nd_finish_outer(const struct nd_record *s, const struct nd_adjoint *a, int tile, int t) {
    const int Q = s->Q, S = s->S, C = s->C;
    const vector *top = a->top + nd_column(s, tile, t) * C;
    for (int symbol = 0; symbol < S; symbol++) {
        vector *outer = nd_gamma(s, a->outer, tile, symbol, t);
        const vector *gamma = nd_gamma(s, s->gamma, tile, symbol, t);
        for (int r = 0; r < Q; r++)
            for (int x = 0; x < C; x++)
                outer[r * C + x] = keep_reached(outer[r * C + x] + s->alpha[tile * C + x] * top[r * S + symbol],
                                                gamma[r * C + x]);
    }
}

/* The sums over lanes of dL/dg'[k -> t], each moved to the lane of its row k + 1. */
#define nd_collect_popped NAME(nd_collect_popped)
INLINE void nd_collect_popped(const struct nd_record *s, const struct nd_adjoint *a, int tile, int t,
                              const vector *sums) {
    const int Q = s->Q, S = s->S, C = s->C;
    const vector *popped = nd_popped(s, tile, t);
    for (int symbol = 0; symbol < S; symbol++)
        for (int u = 0; u < Q; u++)
            for (int r = 0; r < Q; r++) {
                vector parts[LANES];
                for (int lane = 0; lane < LANES; lane++) parts[lane] = sums[lane * Q * C + (symbol * Q + u) * Q + r];
                int at = r * C + u * S + symbol;
                a->popped[tile * Q * C + at] = keep_reached(lane_sums(parts), popped[at]);
            }
}

/* Gradients of the logarithms of the pushes of step t. */
#define nd_push_back NAME(nd_push_back)
INLINE void nd_push_back(const struct nd_record *s, const struct nd_adjoint *a, int t) {
    const int Q = s->Q, S = s->S, C = s->C, tile = t / LANES, lane = t % LANES;
    real *gradients = nd_row_gradients(s, a, t);
    for (int symbol = 0; symbol < S; symbol++) {
        const vector *gamma = nd_gamma(s, s->gamma, tile, symbol, t), *outer = nd_gamma(s, a->outer, tile, symbol, t);
        for (int r = 0; r < Q; r++)
            for (int x = 0; x < C; x++)
                gradients[x * s->width + r * S + symbol] = gamma[r * C + x][lane] * outer[r * C + x][lane];
    }
}

/* Adds what the rows of a tile give for the gradients of the replacements and pops of step t. */
#define nd_transitions_back NAME(nd_transitions_back)
INLINE void nd_transitions_back(const struct nd_record *s, const struct nd_adjoint *a, int tile, int t,
                                vector *replaced, vector *pops) {
    const int Q = s->Q, S = s->S, C = s->C;
    const size_t column = nd_column(s, tile, t);
    ptrdiff_t next_symbol = (ptrdiff_t)(s->columns - tile * LANES) * Q * C;
    vector factor = power_of_two(s->gamma_exponent[column - 1] - s->gamma_exponent[column]);
    struct matrices m = consecutive(nd_gamma(s, s->gamma, tile, 0, t - 1), next_symbol, &factor, 0, S);
    for (int symbol = 0; symbol < S; symbol++)
        add_dots(Q, C, Q, replaced + symbol * Q * Q, C * Q, m, nd_gamma(s, a->outer, tile, symbol, t));
    factor = power_of_two(s->gamma_exponent[column - 1] - s->popped_exponent[column]);
    add_dots(Q, C, Q, pops, Q * Q, m, a->popped + tile * Q * C);
}

/* O for the columns first <= t < last of a tile, and all that follows from it. */
#define nd_fill_back NAME(nd_fill_back)
INLINE void nd_fill_back(const struct nd_record *s, const struct nd_adjoint *a, int tile, int first, int last,
                         int start) {
    const int row = tile * LANES, S = s->S, size = s->Q * s->C;
    if (first < row) first = row;
    for (int symbol = 0; symbol < S; symbol++)
        memset(nd_gamma(s, a->outer, tile, symbol, first), 0, (last - first) * size * sizeof(vector));
    memset(a->popped_sum, 0, (last - first) * LANES * size * sizeof(vector));
    for (int below = 0; below < tile; below++) nd_add_popped_sums(s, a, below, tile, first, last, a->popped_sum);
    nd_add_outer_of_all_pops(s, a, tile, first, last, last, s->columns);
    for (int t = last - 1; t >= first && t > 0; t--) {
        vector *sums = a->popped_sum + (t - first) * LANES * size;
        nd_add_outer_of_all_pops(s, a, tile, t, t + 1, t + 2, last);
        if (t < s->n) nd_add_outer_of_next(s, a, tile, t);
        nd_finish_outer(s, a, tile, t);
        if (t / LANES == tile) nd_push_back(s, a, t);
        nd_add_popped_sums(s, a, tile, tile, t, t + 1, sums);
        nd_collect_popped(s, a, tile, t, sums);
        if (t > row)
            nd_transitions_back(s, a, tile, t, a->replaced + (t - start) * s->C * s->C, a->pops + (t - start) * size);
    }
}

/* Gradients of the logarithms of the replacements and pops of step t. */
#define nd_store_gradients NAME(nd_store_gradients)
INLINE void nd_store_gradients(const struct nd_record *s, const struct nd_adjoint *a, int t, const vector *replaced,
                               const vector *pops) {
    const int Q = s->Q, S = s->S, C = s->C, width = s->width;
    const real *transitions = nd_row_transitions(s, t);
    real *gradients = nd_row_gradients(s, a, t);
    for (int before = 0; before < S; before++)
        for (int q = 0; q < Q; q++)
            for (int r = 0; r < Q; r++) {
                int at = (q * S + before) * width, pop = at + 2 * C + r;
                for (int after = 0; after < S; after++) {
                    int replace = at + C + r * S + after;
                    real sum = lane_sum(replaced[((before * S + after) * Q + q) * Q + r]);
                    gradients[replace] = sum * transitions[replace];
                }
                gradients[pop] = lane_sum(pops[(before * Q + q) * Q + r]) * transitions[pop];
            }
}

/* The gradients of the logarithms of the transition weights, from W and its cotangents, both [t - 1][y][i + 1]. */
#define nd_backward_body NAME(nd_backward_body)
INLINE void nd_backward_body(const struct nd_record *s, struct nd_adjoint *a, const real *weights,
                             const real *cotangents) {
    const int C = s->C, size = s->Q * s->C;
    memset(a->alpha, 0, s->tiles * C * sizeof(vector));
    for (int t = s->n; t > 0; t--) {
        const size_t top = (size_t)(t - 1) * C * s->columns;
        nd_read_back(s, a, t, weights + top, cotangents + top);
    }
    memset(a->popped, 0, s->tiles * size * sizeof(vector));
    for (int first = s->n / TIME_TILE * TIME_TILE; first >= 0; first -= TIME_TILE) {
        int last = first + TIME_TILE <= s->n ? first + TIME_TILE : s->columns;
        memset(a->replaced, 0, TIME_TILE * C * C * sizeof(vector));
        memset(a->pops, 0, TIME_TILE * size * sizeof(vector));
        for (int tile = 0; tile <= (last - 1) / LANES; tile++) nd_fill_back(s, a, tile, first, last, first);
        for (int t = first > 1 ? first : 1; t < last; t++)
            nd_store_gradients(s, a, t, a->replaced + (t - first) * C * C, a->pops + (t - first) * size);
    }
}

/* ---------------------------------------------------------------- calls */

/* The records are local and handed to inlined functions alone, so that constant sizes are constants everywhere. */
#define nd_of_sequence NAME(nd_of_sequence)
INLINE struct nd_record nd_of_sequence(const struct nd_call *call, int64_t sequence, int Q, int S) {
    return nd_lay_out(call->length, Q, S, (char *)call->workspace + sequence * call->workspace_bytes);
}

/* Makes W NaN from step t on; `first` is its place in the array. */
#define nd_undefine NAME(nd_undefine)
INLINE void nd_undefine(const struct nd_record *s, const struct nd_call *call, size_t first, int t) {
    const size_t step = (size_t)s->C * s->columns;
    for (size_t i = first + (t - 1) * step; i < first + s->n * step; i++)
        if (call->is_double) ((double *)call->weights)[i] = NAN;
        else ((float *)call->weights)[i] = NAN;
}

/* In float, declines sequences for which that is not precise enough. Log weights that are NaN or inf are undefined. What
 * depends on them is undefined, too; what does not is the same as if they were ordinary numbers, as is what the backward
 * pass finds in the record. */
#define nd_forward_sized NAME(nd_forward_sized)
INLINE int nd_forward_sized(const struct nd_call *call, int64_t sequence, char *memory, int Q, int S) {
    const int is_float = sizeof(real) == 4;
    struct nd_record s = nd_of_sequence(call, sequence, Q, S);
    const struct nd_scratch scratch = nd_lay_out_scratch(&s, memory);
    const size_t size = nd_weights_size(&s), first = sequence * size;
    const struct nd_spread spread = nd_prepare(&s, call, sequence);
    ivector exact = {0};
    s.exact = &exact;
    call->wide[sequence] = 1;
    call->far[sequence] = spread.range > WIDEST_RANGE;
    if (is_float && !nd_is_near(spread)) return 0;
    nd_forward_body(&s, scratch, is_own(call) ? (real *)call->weights + first : scratch.weights, !nd_is_near(spread));
    if (!is_own(call)) to_array(call, call->weights, first, size, scratch.weights);
    for (int lane = 0; is_float && lane < LANES; lane++)
        if (exact[lane] < 0) return 0;
    if (spread.undefined) nd_undefine(&s, call, first, spread.undefined);
    call->wide[sequence] = !is_float;
    return 1;
}

#define nd_backward_sized NAME(nd_backward_sized)
INLINE int nd_backward_sized(const struct nd_call *call, int64_t sequence, char *memory, int Q, int S) {
    if (call->wide[sequence] && sizeof(real) == 4) return 0;
    const struct nd_record s = nd_of_sequence(call, sequence, Q, S);
    struct nd_adjoint a = nd_lay_out_adjoint(&s, memory);
    const size_t size = nd_weights_size(&s), first = sequence * size;
    if (!is_own(call)) {
        from_array(a.weights, call, call->weights, first, size);
        from_array(a.cotangents, call, call->cotangents, first, size);
    }
    nd_backward_body(&s, &a, is_own(call) ? (const real *)call->weights + first : a.weights,
                     is_own(call) ? (const real *)call->cotangents + first : a.cotangents);
    const size_t rows = (size_t)s.n * s.C;
    for (size_t row = 0, to = sequence * rows; row < rows; row++, to++) {
        const real *own = a.gradients + row * s.width;
        to_array(call, call->push_gradients, to * s.C, s.C, own);
        to_array(call, call->replace_gradients, to * s.C, s.C, own + s.C);
        to_array(call, call->pop_gradients, to * s.Q, s.Q, own + 2 * s.C);
    }
    return 1;
}

/* Compiled for all sizes and, but for the slowest instruction set, once more for those that the papers use. */
#undef FOR_SIZES
#undef COMPILE
#define FOR_SIZES(pass, name, call_type, num_states, num_symbols)                                   \
    static __attribute__((noinline)) int name(const void *call, int64_t sequence, char *scratch) {  \
        const call_type *c = call;                                                                  \
        return pass(c, sequence, scratch, num_states, num_symbols);                                 \
    }
#if VECTOR_BYTES > 16
#define COMPILE(pass, call_type)                                                            \
    FOR_SIZES(pass##_sized, NAME(pass##_2_3), call_type, 2, 3)                              \
    FOR_SIZES(pass##_sized, NAME(pass##_3_3), call_type, 3, 3)                              \
    FOR_SIZES(pass##_sized, NAME(pass##_any), call_type, c->num_states, c->num_symbols)     \
    static kernel *NAME(pass)(int Q, int S) {                                               \
        if (Q == 2 && S == 3) return NAME(pass##_2_3);                                      \
        return Q == 3 && S == 3 ? NAME(pass##_3_3) : NAME(pass##_any);                      \
    }
#else
#define COMPILE(pass, call_type)                                                            \
    FOR_SIZES(pass##_sized, NAME(pass##_any), call_type, c->num_states, c->num_symbols)     \
    static kernel *NAME(pass)(int Q, int S) {                                               \
        return Q > 0 && S > 0 ? NAME(pass##_any) : NULL;                                    \
    }
#endif

COMPILE(nd_forward, struct nd_call)
COMPILE(nd_backward, struct nd_call)

static void NAME(nd_sizes)(int n, int Q, int S, size_t sizes[3]) {
    const struct nd_record s = nd_lay_out(n, Q, S, NULL);
    sizes[0] = s.bytes;
    sizes[1] = nd_lay_out_scratch(&s, NULL).bytes;
    sizes[2] = nd_lay_out_adjoint(&s, NULL).bytes;
}
