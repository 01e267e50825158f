/* The nondeterministic stack one step at a time: one new column, for one sequence (Section 7). */

/* Pushes are left out for configurations that no run is in, as in nd_push. In float no transition is forbidden, and
 * their inner weights are as good as any. */
#define IS_CAREFUL (sizeof(real) == 8)

/* nd_power: in double, nothing may be lost without a trace. */
INLINE vector nd_step_power(ivector x) {
    return power_of_two(IS_CAREFUL ? ilarger(x, isplat(1 - EXPONENT_BIAS)) : x);
}

/* nd_normalise, for the rows of a tile that are remembered. */
INLINE ivector nd_step_normalise(const struct nd_one_step *s, int tile, vector *elements, int size, ivector exponent) {
    ivector exact = {0};
    exponent = nd_normalise(elements, 0, 1, size, exponent, &exact);
    if (tile == s->tile) exact &= lane_numbers() >= s->row % LANES;
    *s->exact |= exact;
    return exponent;
}

/* Column 0, by Eqs. 21 and 23, but with these log weights of the configurations that runs start in, (C), if any. */
INLINE void nd_step_start(const struct nd_one_step *s, const real *start) {
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
        if (IS_CAREFUL) *s->exact |= nd_is_too_small(splat(weight));
        for (int x = 0; x < (IS_CAREFUL ? 1 : C); x++) own.gamma[(y % S * Q + y / S) * C + x][0] = weight;
    }
    *own.careful = start && found.largest - found.lowest > WIDEST_RANGE;
    if (IS_CAREFUL && found.largest - found.lowest > -LOWEST_LOG) *s->exact = isplat(-1);
    own.exponent[0][0] = *own.alpha_exponent = 0;
    own.exponent[0] = nd_normalise(own.gamma, 0, 1, C * C, own.exponent[0], &exact);
    *own.total = 1;
    *own.mark = found.undefined ? NAN : 0;
}

/* alpha[-1..t-1] in the lanes of their rows. */
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
INLINE void nd_step_pop(const struct nd_one_step *s) {
    const int Q = s->Q, S = s->S, C = s->C;
    const struct nd_step_column *last = nd_step_of(s, s->t - 1);
    memset(s->own.popped, 0, (size_t)s->tiles * Q * C * sizeof(vector));
    s->own.popped_exponent[s->tiles - 1] = isplat(DEAD);
    for (int tile = s->tile; tile <= (s->t - 1) / LANES; tile++) {
        vector *popped = s->own.popped + (size_t)(tile - s->tile) * Q * C;
        nd_pop(Q, S, s->own.transitions, nd_step_gamma(s, last, tile, 0), Q * C, popped);
        s->own.popped_exponent[tile - s->tile] =
            nd_step_normalise(s, tile, popped, Q * C, last->exponent[tile - last->tile]);
    }
}

/* Sets the rows that are no longer remembered to 0. */
INLINE void nd_step_forget(const struct nd_one_step *s) {
    const ivector remembered = lane_numbers() >= s->row % LANES;
    for (int i = 0; i < s->C * s->C; i++) s->own.gamma[i] = (vector)((ivector)s->own.gamma[i] & remembered);
    s->own.exponent[0] = (remembered & s->own.exponent[0]) | (~remembered & DEAD);
}

/* (a) (Eq. 24) for the rows of a tile, as (e). */
INLINE void nd_step_fill(const struct nd_one_step *s, int tile) {
    const int t = s->t, Q = s->Q, S = s->S, C = s->C, first = nd_step_first_pop(s, tile), lasts = tile * LANES < t;
    const integer *popped_exponent = (const integer *)s->own.popped_exponent - (ptrdiff_t)s->tile * LANES;
    const vector one = splat(1);
    vector *gamma = nd_step_gamma(s, &s->own, tile, 0), *factors = s->factors - s->kept;
    ivector exponent = isplat(DEAD);
    memset(gamma, 0, (size_t)C * C * sizeof(vector));
    if (lasts) exponent = nd_step_exponent(s, t - 1, tile);
    for (int k = first; k < t - 1; k++)
        exponent = ilarger(exponent, nd_step_exponent(s, k, tile) + popped_exponent[k + 1]);
    for (int k = first; k < t - 1; k++)
        factors[k] = nd_step_power(nd_step_exponent(s, k, tile) + popped_exponent[k + 1] - exponent);
    if (lasts)
        nd_replace(Q, S, s->own.transitions, nd_step_gamma(s, nd_step_of(s, t - 1), tile, 0), Q * C,
                   nd_step_power(nd_step_exponent(s, t - 1, tile) - exponent), gamma, Q * C, one);
    for (int symbol = 0; symbol < S; symbol++)
        for (int begin = first, end; begin < t - 1; begin = end) { /* the rows k + 1 of one tile */
            int from = (begin + 1) / LANES, lane = (begin + 1) % LANES;
            end = (from + 1) * LANES - 1 < t - 1 ? (from + 1) * LANES - 1 : t - 1;
            const ptrdiff_t offset = ((ptrdiff_t)tile * S + symbol) * Q * C;
            struct matrices m = listed(s->gammas + (begin - s->kept), offset, factors + begin, 1, end - begin);
            const real *popped = (const real *)(s->own.popped + (size_t)(from - s->tile) * Q * C + symbol) + lane;
            add_products(Q, C, Q, gamma + symbol * Q * C, one, m,
                         (struct coefficients){popped, 1, S * LANES, C * LANES});
        }
    if (t / LANES == tile) {
        const vector *alpha = IS_CAREFUL ? s->alpha + (tile - s->tile) * C : NULL;
        nd_push(Q, S, s->own.transitions, alpha, t % LANES, gamma, Q * C);
        exponent[t % LANES] = 0;
    }
    s->own.exponent[tile - s->tile] = nd_step_normalise(s, tile, gamma, C * C, exponent);
}

/* N_t[i][y] of (c), without exponents: [tile][y]. */
INLINE void nd_step_tops(const struct nd_one_step *s) {
    for (int tile = 0; tile < s->tiles; tile++)
        for (int y = 0; y < s->C; y++)
            s->tops[tile * s->C + y] = nd_top(s->Q, s->S, s->alpha + tile * s->C,
                                              s->own.gamma + (size_t)tile * s->C * s->C, s->Q * s->C, y);
}

/* v_0..v_t in the lanes of their rows. */
INLINE void nd_step_gather_values(const struct nd_one_step *s) {
    const int size = s->value_size;
    memset(s->values, 0, (size_t)s->tiles * size * sizeof(vector));
    for (int row = s->row; row <= s->t; row++) {
        const real *value = row < s->t ? nd_step_of(s, row)->value : s->own.value;
        real *lane = (real *)(s->values + (row / LANES - s->tile) * size) + row % LANES;
        for (int m = 0; m < size; m++) lane[m * LANES] = value[m];
    }
}

/* (c) (Eq. 27): N_t and alpha[t]. */
INLINE void nd_step_read_tops(const struct nd_one_step *s) {
    const int C = s->C;
    nd_step_tops(s);
    for (int tile = 0; tile < s->tiles; tile++) s->alpha_exponent[tile] += s->own.exponent[tile];
    *s->own.alpha_exponent = nd_align_tops(s->tops, s->alpha_exponent, s->tiles, C,
                                           isplat(IS_CAREFUL ? 1 - EXPONENT_BIAS : 3 * DEAD));
    real total = 0;
    for (int y = 0; y < C; y++) {
        total += s->own.alpha[y] = nd_sum_tops(s->tops, s->tiles, C, y);
        if (IS_CAREFUL) *s->exact |= nd_is_too_small(splat(s->own.alpha[y]));
    }
    *s->own.total = total > 0 ? total : 1;
}

/* (d) (Eq. 29): readings (C, value_size). */
INLINE void nd_step_read(const struct nd_one_step *s, real *readings) {
    const int C = s->C, size = s->value_size;
    nd_step_gather_values(s);
    for (int i = 0; i < s->tiles * C; i++) s->tops[i] /= *s->own.total;
    for (int y = 0; y < C; y++)
        for (int m = 0; m < size; m++) {
            vector sum = {0};
            for (int tile = 0; tile < s->tiles; tile++) sum += s->tops[tile * C + y] * s->values[tile * size + m];
            readings[y * size + m] = lane_sum(sum) + s->own.marks[m];
        }
}

/* v_t, and the marks of all readings from now on. */
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
INLINE void nd_step_forward_body(const struct nd_one_step *s, const real *logits, const real *value, real *readings) {
    *s->exact = (ivector){0};
    if (s->t == 0) nd_step_start(s, logits);
    else {
        memcpy(s->own.transitions, logits, (size_t)s->C * s->width * sizeof(real));
        const struct nd_spread spread = nd_exponentiate(s->own.transitions, s->C, s->width);
        *s->own.mark = spread.undefined ? NAN : 0;
        *s->own.careful = !nd_is_near(spread) || *nd_step_of(s, s->t - 1)->careful != 0;
        if (IS_CAREFUL ? spread.range > -LOWEST_LOG : !nd_is_near(spread)) *s->exact = isplat(-1);
    }
    nd_step_set_value(s, value);
    if (s->t == 0) return;
    const int is_careful = IS_CAREFUL && *s->own.careful != 0, before = set_small_numbers(!is_careful);
    nd_step_gather_alpha(s);
    nd_step_pop(s);
    for (int tile = s->tile; tile < s->tile + s->tiles; tile++) nd_step_fill(s, tile);
    if (s->row % LANES) nd_step_forget(s);
    nd_step_read_tops(s);
    restore_small_numbers(before);
    if (IS_CAREFUL && !is_careful) *s->exact = (ivector){0};
    nd_step_read(s, readings);
}

FOR_SIZES(nd_step_forward, (const struct nd_one_step *s, const real *logits, const real *value, real *readings),
          (s, logits, value, readings), s,
          const struct nd_one_step sized = nd_step_of_size(s, Q, S);
          nd_step_forward_body(&sized, logits, value, readings))
