/* The nondeterministic stack one step at a time: one new column, for one beam (Section 7).
 *
 * In decoding, the beams of step t have their columns side by side; which of them a beam descends from at each earlier
 * step is in the table `ancestors`. Reordering beams moves rows of the table, and no columns.
 */

/* Column 0, by Eqs. 21 and 23, but with these log weights of the configurations that runs start in, (C), if any. */
#define nd_step_start NAME(nd_step_start)
INLINE void nd_step_start(struct nd_one_step *s, const real *start) {
    const struct nd_step_column own = s->own;
    const int Q = s->Q, S = s->S, C = s->C;
    struct nd_extremes found = {0};
    ivector exact = {0};
    if (start) found = nd_find_extremes(start, C);
    memset(own.gamma, 0, (size_t)C * C * sizeof(vector));
    memset(own.popped, 0, (size_t)Q * C * sizeof(vector));
    memset(own.transitions, 0, (size_t)C * s->width * sizeof(real));
    own.popped_exponent[0] = own.exponent[0] = isplat(DEAD);
    for (int y = 0; y < C; y++) {
        real weight = y == 0;
        if (start) weight = start[y] < (real)INFINITY ? exponential(splat(start[y] - found.largest))[0] : 1;
        own.transitions[y] = own.alpha[y] = weight;
        own.gamma[(y % S * Q + y / S) * C][0] = weight;
    }
    own.exponent[0][0] = *own.alpha_exponent = 0;
    own.exponent[0] = nd_normalise(own.gamma, 0, 1, C * C, own.exponent[0], &exact);
    *own.total = 1;
    *own.mark = found.undefined ? NAN : 0;
}

/* alpha[-1..t-1] in the lanes of their rows. */
#define nd_step_gather_alpha NAME(nd_step_gather_alpha)
INLINE void nd_step_gather_alpha(const struct nd_one_step *s) {
    memset(s->alpha, 0, (size_t)s->tiles * s->C * sizeof(vector));
    for (int tile = 0; tile < s->tiles; tile++) s->alpha_exponent[tile] = isplat(DEAD);
    if (s->row == 0) {
        s->alpha[0][0] = 1;
        s->alpha_exponent[0][0] = 0;
    }
    for (int row = s->row > 1 ? s->row : 1; row <= s->t; row++) {
        const struct nd_step_column *from = nd_step_of(s, row - 1);
        const int tile = row / LANES - s->tile;
        for (int x = 0; x < s->C; x++) s->alpha[tile * s->C + x][row % LANES] = from->alpha[x];
        s->alpha_exponent[tile][row % LANES] = *from->alpha_exponent;
    }
}

/* (b) (Eq. 25) for all rows. */
#define nd_step_pop NAME(nd_step_pop)
INLINE void nd_step_pop(const struct nd_one_step *s) {
    const int Q = s->Q, S = s->S, C = s->C;
    const struct nd_step_column *last = nd_step_of(s, s->t - 1);
    const vector one = splat(1);
    ivector exact = {0};
    memset(s->own.popped, 0, (size_t)s->tiles * Q * C * sizeof(vector));
    s->own.popped_exponent[s->tiles - 1] = isplat(DEAD);
    for (int tile = s->tile; tile <= (s->t - 1) / LANES; tile++) {
        vector *popped = s->own.popped + (size_t)(tile - s->tile) * Q * C;
        struct matrices m = consecutive(nd_step_gamma(s, last, tile, 0), Q * C, &one, 0, S);
        struct coefficients c = {s->own.transitions + 2 * C, s->width, S * s->width, 1};
        add_products(Q, C, Q, popped, one, m, c);
        s->own.popped_exponent[tile - s->tile] =
            nd_normalise(popped, 0, 1, Q * C, last->exponent[tile - last->tile], &exact);
    }
}

/* Makes the rows that are no longer remembered 0. */
#define nd_step_forget NAME(nd_step_forget)
INLINE void nd_step_forget(const struct nd_one_step *s) {
    const ivector remembered = lane_numbers() >= s->row % LANES;
    for (int i = 0; i < s->C * s->C; i++) s->own.gamma[i] = (vector)((ivector)s->own.gamma[i] & remembered);
    s->own.exponent[0] = (remembered & s->own.exponent[0]) | (~remembered & DEAD);
}

/* (a) (Eq. 24) for the rows of a tile, as (e). */
#define nd_step_fill NAME(nd_step_fill)
INLINE void nd_step_fill(const struct nd_one_step *s, int tile) {
    const int t = s->t, Q = s->Q, S = s->S, C = s->C, first = nd_step_first_pop(s, tile), lasts = tile * LANES < t;
    const integer *popped_exponent = (const integer *)s->own.popped_exponent - (ptrdiff_t)s->tile * LANES;
    const vector one = splat(1);
    vector *gamma = nd_step_gamma(s, &s->own, tile, 0), *factors = s->factors - s->kept;
    ivector exponent = isplat(DEAD), exact = {0};
    memset(gamma, 0, (size_t)C * C * sizeof(vector));
    if (lasts) exponent = nd_step_exponent(s, t - 1, tile);
    for (int k = first; k < t - 1; k++)
        exponent = ilarger(exponent, nd_step_exponent(s, k, tile) + popped_exponent[k + 1]);
    for (int k = first; k < t - 1; k++)
        factors[k] = power_of_two(nd_step_exponent(s, k, tile) + popped_exponent[k + 1] - exponent);
    for (int symbol = 0; symbol < S; symbol++) {
        vector *sums = gamma + symbol * Q * C;
        if (lasts) {
            vector replaced = power_of_two(nd_step_exponent(s, t - 1, tile) - exponent);
            struct matrices m =
                consecutive(nd_step_gamma(s, nd_step_of(s, t - 1), tile, 0), Q * C, &replaced, 0, S);
            struct coefficients c = {s->own.transitions + C + symbol, s->width, S * s->width, S};
            add_products(Q, C, Q, sums, one, m, c);
        }
        for (int begin = first, end; begin < t - 1; begin = end) { /* the rows k + 1 of one tile */
            int from = (begin + 1) / LANES, lane = (begin + 1) % LANES;
            end = (from + 1) * LANES - 1 < t - 1 ? (from + 1) * LANES - 1 : t - 1;
            const ptrdiff_t offset = ((ptrdiff_t)tile * S + symbol) * Q * C;
            struct matrices m = listed(s->gammas + (begin - s->kept), offset, factors + begin, 1, end - begin);
            const real *popped = (const real *)(s->own.popped + (size_t)(from - s->tile) * Q * C + symbol) + lane;
            add_products(Q, C, Q, sums, one, m, (struct coefficients){popped, 1, S * LANES, C * LANES});
        }
        if (t / LANES == tile) /* pushes, where a run can be: see nd_push */
            for (int x = 0; x < C; x++)
                for (int r = 0; r < Q && s->alpha[(tile - s->tile) * C + x][t % LANES] > 0; r++)
                    sums[r * C + x][t % LANES] = s->own.transitions[x * s->width + r * S + symbol];
    }
    if (t / LANES == tile) exponent[t % LANES] = 0;
    s->own.exponent[tile - s->tile] = nd_normalise(gamma, 0, 1, C * C, exponent, &exact);
}

/* N_t[i][y] of (c), without exponents: [tile][y]. */
#define nd_step_tops NAME(nd_step_tops)
INLINE void nd_step_tops(const struct nd_one_step *s) {
    for (int tile = 0; tile < s->tiles; tile++)
        for (int y = 0; y < s->C; y++)
            s->tops[tile * s->C + y] =
                nd_top(s->alpha + tile * s->C,
                       s->own.gamma + ((size_t)tile * s->C + y % s->S * s->Q + y / s->S) * s->C, s->C);
}

/* (c) and (d) (Eqs. 27 and 29); readings (C, value_size). */
#define nd_step_read NAME(nd_step_read)
INLINE void nd_step_read(const struct nd_one_step *s, real *readings) {
    const int C = s->C, size = s->value_size;
    nd_step_tops(s);
    for (int tile = 0; tile < s->tiles; tile++) s->alpha_exponent[tile] += s->own.exponent[tile];
    *s->own.alpha_exponent = nd_align_tops(s->tops, s->alpha_exponent, s->tiles, C);
    real total = 0;
    for (int y = 0; y < C; y++) total += s->own.alpha[y] = nd_sum_tops(s->tops, s->tiles, C, y);
    *s->own.total = total = total > 0 ? total : 1;
    for (int y = 0; y < C; y++)
        for (int m = 0; m < size; m++) readings[y * size + m] = s->own.marks[m];
    for (int row = s->row; row <= s->t; row++) {
        const real *value = row < s->t ? nd_step_of(s, row)->value : s->own.value;
        for (int y = 0; y < C; y++) {
            const real weight = s->tops[(row / LANES - s->tile) * C + y][row % LANES] / total;
            for (int m = 0; m < size; m++) readings[y * size + m] += weight * value[m];
        }
    }
}

/* v_t, and the marks of all readings from now on. */
#define nd_step_set_value NAME(nd_step_set_value)
INLINE void nd_step_set_value(const struct nd_one_step *s, const real *value) {
    const struct nd_step_column *last = s->t > 0 ? nd_step_of(s, s->t - 1) : NULL;
    if (last) *s->own.mark += *last->mark;
    for (int m = 0; m < s->value_size; m++) {
        const real mark = value[m] - value[m]; /* 0, or else NaN */
        s->own.value[m] = mark == 0 ? value[m] : 0;
        s->own.marks[m] = mark + *s->own.mark + (last ? last->marks[m] : 0);
    }
}

/* Column t from the columns before it, the log weights of the step and v_t. */
#define nd_step_forward_body NAME(nd_step_forward_body)
INLINE void nd_step_forward_body(struct nd_one_step *s, const real *logits, const real *value, real *readings) {
    if (s->t == 0) nd_step_start(s, logits);
    else {
        memcpy(s->own.transitions, logits, (size_t)s->C * s->width * sizeof(real));
        *s->own.mark = nd_exponentiate(s->own.transitions, s->C, s->width).undefined ? NAN : 0;
    }
    nd_step_set_value(s, value);
    if (s->t == 0) return;
    nd_step_gather_alpha(s);
    nd_step_pop(s);
    for (int tile = s->tile; tile < s->tile + s->tiles; tile++) nd_step_fill(s, tile);
    if (s->row % LANES) nd_step_forget(s);
    nd_step_read(s, readings);
}

/* The step of a call for one beam. */
#define nd_step_of_beam NAME(nd_step_of_beam)
INLINE struct nd_one_step nd_step_of_beam(const struct nd_step_call *call, int64_t beam, char *memory, int Q, int S) {
    const int t = call->step, kept = call->kept, size = call->value_size;
    struct nd_one_step s = nd_step_begin(t, kept, call->window, Q, S, size, memory);
    for (int k = kept; k <= t; k++) {
        const size_t bytes = nd_step_lay_out(k, call->window, Q, S, size, NULL).bytes;
        const int64_t place = k < t ? call->ancestors[beam * (t - kept) + k - kept] : beam;
        char *own = (char *)call->columns[k - kept] + place * bytes;
        nd_step_use(&s, k, nd_step_lay_out(k, call->window, Q, S, size, own));
    }
    s.own = *nd_step_of(&s, t);
    return s;
}

#define nd_step_sized NAME(nd_step_sized)
INLINE int nd_step_sized(const struct nd_step_call *call, int64_t beam, char *memory, int Q, int S) {
    struct nd_one_step s = nd_step_of_beam(call, beam, memory, Q, S);
    const size_t logits = call->step > 0 ? (size_t)s.C * s.width : (size_t)s.C;
    nd_step_forward_body(&s, call->logits ? (const real *)call->logits + beam * logits : NULL,
                    (const real *)call->values + beam * s.value_size,
                    (real *)call->readings + beam * s.C * s.value_size);
    return 1;
}

COMPILE(nd_step, struct nd_step_call)
