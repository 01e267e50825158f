/* The nondeterministic stack, backward, one step at a time: the same as (g)-(m), in another order.
 *
 * When the backward pass comes to step t, all later steps have added to the adjoint of column t what they owe to it.
 * Step t adds its own share, and then all that it owes to the columns before it. So nothing of step t has to know what
 * came after it, and a state may be continued in several ways.
 */

/* The working memory of the backward pass of a step, in addition to the memory of the forward pass. */
struct nd_step_back {
    struct nd_step_adjoint own, *earlier; /* of the columns s.kept..t - 1; the arrays of constant ones are NULL */
    vector *reached;                      /* N_t[i][y], without exponents: [tile][y] */
    vector *cotangents;                   /* of W: [tile][y] */
    vector *top;                          /* h[i, t] B_t[i, y]: [tile][y] */
    vector *alpha;                        /* what they add to the adjoints of alpha, for one tile: [x] */
    vector *popped;                       /* P[k -> t] at row k + 1: [tile][r][x] */
    vector *sums;                         /* the same, to be summed over lanes: [lane][symbol][u, r] */
    vector *replaced, *pops; /* gradients of the transitions, to be summed over lanes: [symbol][symbol'][q, r] */
    real *defined;           /* cotangents of the readings, without undefined ones */
    size_t bytes;
};

INLINE struct nd_step_back nd_step_back_begin(const struct nd_one_step *s, char *memory) {
    struct nd_step_back b;
    size_t used = 0, tiles = s->tiles, C = s->C, Q = s->Q;
    TAKE(b.earlier, (size_t)(s->t - s->kept + 1))
    TAKE(b.reached, tiles * C)
    TAKE(b.cotangents, tiles * C)
    TAKE(b.top, tiles * C)
    TAKE(b.alpha, C)
    TAKE(b.popped, tiles * Q * C)
    TAKE(b.sums, LANES * Q * C)
    TAKE(b.replaced, C * C)
    TAKE(b.pops, Q * C)
    TAKE(b.defined, C * s->value_size)
    b.bytes = used;
    return b;
}

INLINE const struct nd_step_adjoint *nd_step_adjoint_of(const struct nd_one_step *s, const struct nd_step_back *b, int k) {
    return &b->earlier[k - s->kept];
}

INLINE vector *nd_step_outer(const struct nd_one_step *s, const struct nd_step_column *column, vector *outer, int tile,
                             int symbol) {
    return outer + ((size_t)(tile - column->tile) * s->S + symbol) * s->Q * s->C;
}

/* The cotangents of W_t[i][y], and the gradients of the vectors in the reading r_t; W is in `tops`. */
INLINE void nd_step_read_back(const struct nd_one_step *s, const struct nd_step_back *b, const real *cotangents) {
    const int C = s->C, size = s->value_size;
    nd_step_gather_values(s);
    memset(b->cotangents, 0, (size_t)s->tiles * C * sizeof(vector));
    for (int tile = 0; tile < s->tiles; tile++)
        for (int m = 0; m < size; m++) {
            const vector value = s->values[tile * size + m];
            vector gradient = {0};
            for (int y = 0; y < C; y++) {
                b->cotangents[tile * C + y] += value * cotangents[y * size + m];
                gradient += s->tops[tile * C + y] * cotangents[y * size + m];
            }
            s->values[tile * size + m] = gradient;
        }
    for (int row = s->row; row <= s->t; row++) {
        const real *lane = (const real *)(s->values + (row / LANES - s->tile) * size) + row % LANES;
        real *gradient = row < s->t ? nd_step_adjoint_of(s, b, row)->value : b->own.value;
        for (int m = 0; gradient && m < size; m++) gradient[m] += lane[m * LANES];
    }
}

/* (h): B_t, centred as in nd_read_back, times h; and (i): what it adds to the adjoints of alpha. */
INLINE void nd_step_tops_back(const struct nd_one_step *s, const struct nd_step_back *b) {
    const int C = s->C, S = s->S, count = s->tiles * C;
    vector most = splat(-1), centre = {0}, mean = {0};
    for (int i = 0; i < count; i++) {
        ivector more = s->tops[i] > most;
        most = choose(more, s->tops[i], most);
        centre = choose(more, b->cotangents[i], centre);
    }
    int star = 0;
    for (int lane = 1; lane < LANES; lane++)
        if (most[lane] > most[star]) star = lane;
    for (int i = 0; i < count; i++) mean += s->tops[i] * (b->cotangents[i] - centre[star]);
    const real offset = lane_sum(mean), scale = 1 / *s->own.total;
    for (int tile = 0; tile < s->tiles; tile++) {
        const vector h = power_of_two(s->own.exponent[tile] + s->alpha_exponent[tile] - *s->own.alpha_exponent);
        memset(b->alpha, 0, C * sizeof(vector));
        for (int y = 0; y < C; y++) {
            const int i = tile * C + y;
            const vector *gamma = s->own.gamma + ((size_t)tile * C + y % S * s->Q + y / S) * C;
            const vector own = (b->cotangents[i] - centre[star] - offset) * scale + b->own.alpha[y];
            b->top[i] = keep_reached(own * h, b->reached[i]);
            for (int x = 0; x < C; x++) b->alpha[x] += gamma[x] * b->top[i];
        }
        for (int lane = 0; lane < LANES; lane++) {
            const int row = (s->tile + tile) * LANES + lane;
            if (row < 1 || row < s->row || row > s->t) continue;
            real *gradient = nd_step_adjoint_of(s, b, row - 1)->alpha;
            for (int x = 0; gradient && x < C; x++) gradient[x] += b->alpha[x][lane];
        }
    }
}

/* The pops of step t: P[k -> t] of (m), for k = row - 1 with the rows of a tile, and what O[i -> t] adds to O[i -> k].
 */
INLINE void nd_step_pops_back(const struct nd_one_step *s, const struct nd_step_back *b, int rows) {
    const int Q = s->Q, S = s->S, C = s->C, t = s->t;
    const vector *popped = s->own.popped + (size_t)(rows - s->tile) * Q * C, one = splat(1);
    const ivector popped_exponent = s->own.popped_exponent[rows - s->tile];
    const int first = rows * LANES - 1 > s->row ? rows * LANES - 1 : s->row;
    memset(b->sums, 0, LANES * Q * C * sizeof(vector));
    for (int k = first; k < t - 1 && k < (rows + 1) * LANES - 1; k++) {
        const int lane = (k + 1) % LANES;
        const struct nd_step_column *column = nd_step_of(s, k);
        vector *outer = nd_step_adjoint_of(s, b, k)->outer;
        for (int tile = s->tile; tile <= k / LANES; tile++) {
            const vector factor = power_of_two(column->exponent[tile - column->tile] + popped_exponent[lane] -
                                               s->own.exponent[tile - s->tile]);
            for (int symbol = 0; symbol < S; symbol++) {
                const vector *own = nd_step_outer(s, &s->own, b->own.outer, tile, symbol);
                struct matrices m = consecutive(nd_step_gamma(s, column, tile, symbol), 0, &factor, 0, 1);
                add_dots(Q, C, Q, b->sums + lane * Q * C + symbol * Q * Q, 0, m, own);
                if (!outer) continue;
                struct coefficients c = {(const real *)(popped + symbol) + lane, 0, C * LANES, S * LANES};
                add_products(Q, C, Q, nd_step_outer(s, column, outer, tile, symbol), one,
                             consecutive(own, 0, &factor, 0, 1), c);
            }
        }
    }
    nd_collect_popped(Q, S, b->sums, popped, b->popped + (size_t)(rows - s->tile) * Q * C);
}

/* Replacements and pops from column t - 1 for the rows of a tile: the sums of (l), and what O and P owe to O of
 * column t - 1, the first two lines of (j). */
INLINE void nd_step_last_back(const struct nd_one_step *s, const struct nd_step_back *b, int tile) {
    const int Q = s->Q, S = s->S, size = Q * s->C;
    const struct nd_step_column *last = nd_step_of(s, s->t - 1);
    const vector *popped = b->popped + (size_t)(tile - s->tile) * size;
    const vector *outer = nd_step_outer(s, &s->own, b->own.outer, tile, 0);
    vector *outer_before = nd_step_adjoint_of(s, b, s->t - 1)->outer;
    const ivector before = last->exponent[tile - last->tile];
    const vector by_replacement = power_of_two(before - s->own.exponent[tile - s->tile]),
                 by_pop = power_of_two(before - s->own.popped_exponent[tile - s->tile]);
    nd_transitions_back(Q, S, nd_step_gamma(s, last, tile, 0), size, outer, size, by_replacement, popped, by_pop,
                        b->replaced, b->pops);
    if (outer_before)
        nd_add_outer_of_next(Q, S, s->own.transitions, outer, size, by_replacement, popped, by_pop,
                             nd_step_outer(s, last, outer_before, tile, 0), size);
}

/* (h)-(m): the gradients of the log weights of a step (C, width), at step 0 of the start (C). The gradient of v_t is in
 * the adjoint. */
INLINE void nd_step_backward_body(const struct nd_one_step *s, const struct nd_step_back *b, const real *cotangents,
                             real *gradients) {
    const int C = s->C, Q = s->Q, S = s->S;
    if (s->t == 0) { /* (l), push; the start is what alpha[0] consists of, too */
        for (int y = 0; y < C; y++) {
            const size_t at = (size_t)(y % S * Q + y / S) * C;
            gradients[y] = s->own.gamma[at][0] * b->own.outer[at][0] + s->own.alpha[y] * b->own.alpha[y];
        }
        return;
    }
    nd_step_gather_alpha(s);
    nd_step_tops(s);
    memcpy(b->reached, s->tops, (size_t)s->tiles * C * sizeof(vector));
    for (int tile = 0; tile < s->tiles; tile++)
        for (int y = 0; y < C; y++)
            s->tops[tile * C + y] *=
                power_of_two(s->own.exponent[tile] + s->alpha_exponent[tile] - *s->own.alpha_exponent) / *s->own.total;
    nd_step_read_back(s, b, cotangents);
    nd_step_tops_back(s, b);
    for (int tile = 0; tile < s->tiles; tile++)
        nd_finish_outer(Q, S, s->alpha + tile * C, b->top + tile * C, s->own.gamma + (size_t)tile * C * C,
                        b->own.outer + (size_t)tile * C * C, Q * C);
    for (int rows = s->tile; rows < s->tile + s->tiles; rows++) nd_step_pops_back(s, b, rows);
    memset(b->replaced, 0, (size_t)C * C * sizeof(vector));
    memset(b->pops, 0, (size_t)Q * C * sizeof(vector));
    for (int tile = s->tile; tile <= (s->t - 1) / LANES; tile++) nd_step_last_back(s, b, tile);
    const size_t top = (size_t)(s->tiles - 1) * C * C;
    nd_push_back(Q, S, s->own.gamma + top, b->own.outer + top, Q * C, s->t % LANES, gradients);
    nd_store_gradients(Q, S, s->own.transitions, b->replaced, b->pops, gradients);
}

/* The cotangents, with 0 for undefined readings; returns whether the cotangent of an undefined reading is not 0. */
INLINE int nd_step_defined(const struct nd_one_step *s, const real *cotangents, real *defined) {
    int spoilt = 0;
    for (int y = 0; y < s->C; y++)
        for (int m = 0; m < s->value_size; m++) {
            const real own = cotangents ? cotangents[y * s->value_size + m] : 0;
            const int undefined = s->own.marks[m] != 0; /* NaN */
            spoilt |= undefined && own != 0;
            defined[y * s->value_size + m] = undefined ? 0 : own;
        }
    return spoilt;
}

FOR_SIZES(nd_step_gradients,
          (const struct nd_one_step *s, const struct nd_step_back *b, const real *cotangents, real *gradients),
          (s, b, cotangents, gradients), s,
          const struct nd_one_step sized = nd_step_of_size(s, Q, S);
          nd_step_backward_body(&sized, b, cotangents, gradients))

/* The gradients of a step as in nd_step_backward_body, and of v_t. All are NaN, and so are the gradients of earlier
 * steps, if the gradient of an undefined reading is not 0. */
static void nd_step_differentiate(const struct nd_one_step *s, const struct nd_step_back *b, const real *cotangents,
                                  real *gradients, real *value_gradients) {
    const int spoilt = nd_step_defined(s, cotangents, b->defined) || *b->own.mark != 0, t = s->t;
    nd_step_gradients(s, b, b->defined, gradients);
    for (int m = 0; m < s->value_size; m++) value_gradients[m] = b->own.value[m];
    if (!spoilt) return;
    for (int i = 0; i < s->C * (t > 0 ? s->width : 1); i++) gradients[i] = NAN;
    for (int m = 0; m < s->value_size; m++) value_gradients[m] = NAN;
    if (t > s->kept && nd_step_adjoint_of(s, b, t - 1)->mark) *nd_step_adjoint_of(s, b, t - 1)->mark = NAN;
}
