/* The nondeterministic stack: what the passes over a sequence and a single step compute in the same way, each for one tile
 * of one column.
 *
 * A column of gamma or O begins with symbol 0. Each further symbol begins `next` vectors later.
 */

/* (a) (Eq. 24), replace: adds to a column, times `scale`, what comes from the column before it, times `factor`. */
INLINE void nd_replace(int Q, int S, const real *transitions, const vector *before, ptrdiff_t next_before, vector factor,
                       vector *gamma, ptrdiff_t next, vector scale) {
    const int C = Q * S, width = 2 * C + Q;
    const struct matrices m = consecutive(before, next_before, &factor, 0, S);
    for (int symbol = 0; symbol < S; symbol++)
        add_products(Q, C, Q, gamma + symbol * next, scale, m,
                     (struct coefficients){transitions + C + symbol, width, S * width, S});
}

/* (a) for i = t - 1 (Eq. 24, push): one row of column t; unless alpha is NULL, only for the configurations that can be on
 * top after step t - 1, since the inner weights of the others could outgrow all relevant ones. */
INLINE void nd_push(int Q, int S, const real *transitions, const vector *alpha, int lane, vector *gamma, ptrdiff_t next) {
    const int C = Q * S, width = 2 * C + Q;
    for (int x = 0; x < C; x++) {
        if (alpha && !(alpha[x][lane] > 0)) continue;
        for (int symbol = 0; symbol < S; symbol++)
            for (int r = 0; r < Q; r++)
                gamma[symbol * next + r * C + x][lane] = transitions[x * width + r * S + symbol];
    }
}

/* (b) (Eq. 25): adds gamma' that comes from the column before. */
INLINE void nd_pop(int Q, int S, const real *transitions, const vector *before, ptrdiff_t next, vector *popped) {
    const int C = Q * S, width = 2 * C + Q;
    const vector one = splat(1);
    add_products(Q, C, Q, popped, one, consecutive(before, next, &one, 0, S),
                 (struct coefficients){transitions + 2 * C, width, S * width, 1});
}

/* N_t[i][y] of (c) for one y, without exponents. */
INLINE vector nd_top(int Q, int S, const vector *alpha, const vector *gamma, ptrdiff_t next, int y) {
    const int C = Q * S;
    const vector *of_y = gamma + y % S * next + y / S * C;
    vector top = {0};
    for (int x = 0; x < C; x++) top += alpha[x] * of_y[x];
    return top;
}

/* The first two lines of (j): what O and P of a column owe to O of the column before it, each times its factor. */
INLINE void nd_add_outer_of_next(int Q, int S, const real *transitions, const vector *outer, ptrdiff_t next,
                                 vector by_replacement, const vector *popped, vector by_pop, vector *before,
                                 ptrdiff_t next_before) {
    const int C = Q * S, width = 2 * C + Q;
    const vector one = splat(1);
    const struct matrices o = consecutive(outer, next, &by_replacement, 0, S), p = consecutive(popped, 0, &by_pop, 0, 1);
    for (int symbol = 0; symbol < S; symbol++) {
        const real *from = transitions + symbol * width;
        add_products(Q, C, Q, before + symbol * next_before, one, o, (struct coefficients){from + C, 1, S, S * width});
        add_products(Q, C, Q, before + symbol * next_before, one, p,
                     (struct coefficients){from + 2 * C, 0, 1, S * width});
    }
}

/* The first term of O in (m), h a B: adds the runs that are read after the step, and clears what no run reaches. */
INLINE void nd_finish_outer(int Q, int S, const vector *alpha, const vector *top, const vector *gamma, vector *outer,
                            ptrdiff_t next) {
    const int C = Q * S;
    for (int symbol = 0; symbol < S; symbol++)
        for (int r = 0; r < Q; r++)
            for (int x = 0; x < C; x++) {
                const ptrdiff_t at = symbol * next + r * C + x;
                outer[at] = keep_reached(outer[at] + alpha[x] * top[r * S + symbol], gamma[at]);
            }
}

/* The sums over lanes of P[k -> t], each moved to the lane of its row k + 1. */
INLINE void nd_collect_popped(int Q, int S, const vector *sums, const vector *popped, vector *of_popped) {
    const int C = Q * S;
    for (int symbol = 0; symbol < S; symbol++)
        for (int u = 0; u < Q; u++)
            for (int r = 0; r < Q; r++) {
                vector parts[LANES];
                for (int lane = 0; lane < LANES; lane++) parts[lane] = sums[lane * Q * C + (symbol * Q + u) * Q + r];
                const int at = r * C + u * S + symbol;
                of_popped[at] = keep_reached(lane_sums(parts), popped[at]);
            }
}

/* The sums of (l), replace and pop: adds what the rows of a tile give, with O and P of a column, and gamma before it. */
INLINE void nd_transitions_back(int Q, int S, const vector *before, ptrdiff_t next_before, const vector *outer,
                                ptrdiff_t next, vector by_replacement, const vector *popped, vector by_pop,
                                vector *replaced, vector *pops) {
    const int C = Q * S;
    struct matrices m = consecutive(before, next_before, &by_replacement, 0, S);
    for (int symbol = 0; symbol < S; symbol++)
        add_dots(Q, C, Q, replaced + symbol * Q * Q, C * Q, m, outer + symbol * next);
    m.f = &by_pop;
    add_dots(Q, C, Q, pops, Q * Q, m, popped);
}

/* (l), push: gradients of the logarithms of the pushes of a step. */
INLINE void nd_push_back(int Q, int S, const vector *gamma, const vector *outer, ptrdiff_t next, int lane,
                         real *gradients) {
    const int C = Q * S, width = 2 * C + Q;
    for (int symbol = 0; symbol < S; symbol++)
        for (int r = 0; r < Q; r++)
            for (int x = 0; x < C; x++) {
                const ptrdiff_t at = symbol * next + r * C + x;
                gradients[x * width + r * S + symbol] = gamma[at][lane] * outer[at][lane];
            }
}

/* (l), replace and pop: gradients of the logarithms of the replacements and pops of a step. */
INLINE void nd_store_gradients(int Q, int S, const real *transitions, const vector *replaced, const vector *pops,
                               real *gradients) {
    const int C = Q * S, width = 2 * C + Q;
    for (int before = 0; before < S; before++)
        for (int q = 0; q < Q; q++)
            for (int r = 0; r < Q; r++) {
                const int at = (q * S + before) * width, pop = at + 2 * C + r;
                for (int after = 0; after < S; after++) {
                    const int replace = at + C + r * S + after;
                    const real sum = lane_sum(replaced[((before * S + after) * Q + q) * Q + r]);
                    gradients[replace] = sum * transitions[replace];
                }
                gradients[pop] = lane_sum(pops[(before * Q + q) * Q + r]) * transitions[pop];
            }
}
