/* The nondeterministic stack: what the forward pass leaves for the backward pass, and the transition weights.
 *
 * Notation as in docs/algorithm.md: n steps, Q states, S stack symbols, C = Q S configurations x = (q, s), and
 * gamma[i -> t][x -> y] = g[i -> t][x -> y] 2^e[i, t] for -1 <= i < t <= n. Equations with letters are in that
 * document, equations with numbers in the paper. x = (q, s) has the number q S + s everywhere; where arrays have
 * axes [s][r] for y = (r, s), symbols come first because (e) is one matrix product for each symbol.
 *
 * The lanes of a vector are LANES rows j = i + 1 of one tile. Column t has the rows 0..t; what is stored for others is
 * 0, with the exponent DEAD. gamma'[k -> t][x -> r], which pops, is stored at row j = k + 1.
 */

/* Steps that one pass over the earlier columns serves. */
#define TIME_TILE 16

/* What the forward pass leaves for the backward pass. Arrays of tiles begin with the tile's first column. */
struct nd_record {
    int n, Q, S, C, columns, tiles, width;
    real *transitions;       /* D_t: [t - 1][x][C pushes, C replacements, Q pops] */
    vector *gamma;           /* g[i -> t][x -> y]: [tile][s][t][r][x] for y = (r, s) */
    ivector *gamma_exponent; /* e[i, t]: [tile][t] */
    vector *popped;          /* g'[k -> t][x -> r]: [tile][t][r][x] */
    ivector *popped_exponent; /* e'[k, t] */
    vector *alpha;            /* a[i] at row i + 1: [tile][x] */
    ivector *alpha_exponent;  /* A_i */
    real *total;              /* z_t: [t] */
    integer *total_exponent;  /* A_t */
    size_t bytes; /* of all arrays */
    ivector *exact; /* where the forward pass notes what is not: see nd_normalise */
    ivector lowest; /* powers of two are taken to be at least this: see nd_power */
};

/* Number of columns of all tiles before this one. */
INLINE size_t nd_columns_before(int n, int tile) {
    return (size_t)tile * (n + 1) - (size_t)LANES * tile * (tile - 1) / 2;
}

INLINE size_t nd_column(const struct nd_record *rec, int tile, int t) {
    return nd_columns_before(rec->n, tile) + t - tile * LANES;
}

/* gamma[. -> t][. -> (0, symbol)], followed by the other states, and then by the next columns of the tile. */
INLINE vector *nd_gamma(const struct nd_record *rec, vector *base, int tile, int symbol, int t) {
    size_t length = rec->columns - tile * LANES;
    size_t before = nd_columns_before(rec->n, tile) * rec->S + symbol * length + t - tile * LANES;
    return base + before * rec->Q * rec->C;
}

/* From the column of one symbol to the column of the next. */
INLINE ptrdiff_t nd_next_symbol(const struct nd_record *rec, int tile) {
    return (ptrdiff_t)(rec->columns - tile * LANES) * rec->Q * rec->C;
}

INLINE vector *nd_popped(const struct nd_record *rec, int tile, int t) {
    return rec->popped + nd_column(rec, tile, t) * rec->Q * rec->C;
}

INLINE real *nd_row_transitions(const struct nd_record *rec, int t) {
    return rec->transitions + (size_t)(t - 1) * rec->C * rec->width;
}

/* Lays the arrays out in memory. */
INLINE struct nd_record nd_lay_out(int n, int Q, int S, char *memory) {
    struct nd_record rec = {.n = n, .Q = Q, .S = S, .C = Q * S, .columns = n + 1, .tiles = n / LANES + 1};
    size_t all = nd_columns_before(n, rec.tiles), C = rec.C, used = 0;
    rec.width = 2 * rec.C + Q;
    TAKE(rec.transitions, (size_t)n * C * rec.width)
    TAKE(rec.gamma, all * C * C)
    TAKE(rec.gamma_exponent, all)
    TAKE(rec.popped, all * Q * C)
    TAKE(rec.popped_exponent, all)
    TAKE(rec.alpha, rec.tiles * C)
    TAKE(rec.alpha_exponent, (size_t)rec.tiles)
    TAKE(rec.total, (size_t)rec.columns)
    TAKE(rec.total_exponent, (size_t)rec.columns)
    rec.bytes = used;
    return rec;
}

/* The same record. Where Q and S are constants, it is local, and it is handed to inlined functions alone, everything that
 * follows from them is constant. */
INLINE struct nd_record nd_of_size(const struct nd_record *given, int Q, int S) {
    struct nd_record rec = *given;
    rec.Q = Q, rec.S = S, rec.C = Q * S, rec.width = 2 * rec.C + Q;
    return rec;
}

/* Defines a function by its body for all sizes Q and S of `sized` and, except for the slowest instruction set, again for the
 * sizes that the papers use. */
#define FOR_SIZE(name, parameters, num_states, num_symbols, body)     \
    static __attribute__((noinline)) void name parameters {           \
        const int Q = num_states, S = num_symbols;                    \
        body;                                                         \
    }
#if VECTOR_BYTES > 16
#define FOR_SIZES(name, parameters, arguments, sized, body)           \
    FOR_SIZE(name##_2_3, parameters, 2, 3, body)                      \
    FOR_SIZE(name##_3_3, parameters, 3, 3, body)                      \
    FOR_SIZE(name##_any, parameters, (sized)->Q, (sized)->S, body)    \
    static void name parameters {                                     \
        if ((sized)->Q == 2 && (sized)->S == 3) name##_2_3 arguments; \
        else if ((sized)->Q == 3 && (sized)->S == 3) name##_3_3 arguments; \
        else name##_any arguments;                                    \
    }
#else
#define FOR_SIZES(name, parameters, arguments, sized, body) FOR_SIZE(name, parameters, (sized)->Q, (sized)->S, body)
#endif

/* ---------------------------------------------------------------- transitions */

/* How far apart the log weights of a step may be. If they are farther apart, or some are -inf, float is not precise
 * enough, and in double the inner weights of configurations that are out of reach have to be left out, and the result
 * has to be checked. */
#define WIDEST_RANGE (sizeof(real) == 4 ? 55 : 230)

/* Its exponential is still a normal number in double. */
#define LOWEST_LOG (-690)

/* The log weights of a step: the largest, and the lowest that is not -inf, but 0 if all are; NaN and inf are neither.
 * */
struct nd_extremes {
    real largest, lowest;
    int masked;    /* whether some are -inf */
    int undefined; /* whether some are NaN or inf */
};

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

/* How far the log weights of a step that are not -inf are apart, and whether some are -inf; and whether some are
 * NaN or inf. */
struct nd_spread {
    real range;
    int masked, undefined;
};

/* D_t of Section 3, in place of the logarithms of the weights of a step (C, width). Those that are undefined
 * are given an ordinary weight: that what depends on them is undefined, too, is up to the caller. */
INLINE struct nd_spread nd_exponentiate(real *logits, int C, int width) {
    const struct nd_extremes found = nd_find_extremes(logits, C * width);
    const real range = found.largest - found.lowest;
    for (int i = 0; found.undefined && i < C * width; i++)
        if (!(logits[i] < (real)INFINITY)) logits[i] = found.largest;
    for (int i = 0; i < C * width; i++) logits[i] -= found.largest;
    for (int i = 0; i < C * width; i += LANES)
        store(logits + i, exponential(load(logits + i, C * width - i)), C * width - i);
    return (struct nd_spread){range, found.masked, found.undefined};
}

/* Whether these log weights are close enough to each other. */
INLINE int nd_is_near(struct nd_spread spread) { return !spread.masked && spread.range <= WIDEST_RANGE; }

/* D_t for all steps of a sequence; returns the largest spread, in which `undefined` is the first undefined step,
 * or 0. In float, the computation stops at a step whose log weights are not close enough. */
INLINE struct nd_spread nd_prepare(const struct nd_record *rec, const struct nd_call *call, int64_t sequence) {
    const size_t size = (size_t)rec->C * rec->width, first = sequence * rec->n;
    struct nd_spread largest = {0};
    for (int t = 1; t <= rec->n; t++) {
        real *step = nd_row_transitions(rec, t);
        get_numbers(step, call->is_double, call->logits, (first + t - 1) * size, size);
        const struct nd_spread spread = nd_exponentiate(step, rec->C, rec->width);
        if (spread.range > largest.range) largest.range = spread.range;
        largest.masked |= spread.masked;
        if (spread.undefined && !largest.undefined) largest.undefined = t;
        if (sizeof(real) == 4 && !nd_is_near(spread)) break;
    }
    return largest;
}
