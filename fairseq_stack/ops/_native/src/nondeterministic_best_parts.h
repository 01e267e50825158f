/* The best parts of the runs of the nondeterministic stack: (n)-(p) of Section 12 of docs/algorithm.md, in double.
 *
 * The lanes are the numbers t of steps in which a part ends. A row has all of them, filled up to a whole number of vectors;
 * -inf says that there is no such part, so that no sum needs a condition.
 */

#define larger NAME(larger)
INLINE vector larger(vector a, vector b) { return choose(a > b, a, b); }

#define nd_best NAME(nd_best)
struct nd_best {
    int n, Q, S, C;
    ptrdiff_t row;
    const real *push, *replace, *pop; /* of step j + 1: [j][x][y], and of pops [j][x][r] */
    real *removals, *excursions;      /* d and e: [j][x][r] */
    real *forward;                    /* f: [y] */
};

/* The row for configuration x after step j and state r. */
#define nd_best_row NAME(nd_best_row)
INLINE real *nd_best_row(const struct nd_best *b, real *parts, int j, int x, int r) {
    return parts + (((ptrdiff_t)j * b->C + x) * b->Q + r) * b->row;
}

/* The first lane of the vector with step t. */
#define nd_best_tile NAME(nd_best_tile)
INLINE int nd_best_tile(int t) { return t / LANES * LANES; }

/* (o), and (n) without excursions: a step from x, and then a removal. */
#define nd_best_step NAME(nd_best_step)
INLINE void nd_best_step(const struct nd_best *b, int j, int x, int r) {
    const ptrdiff_t place = (ptrdiff_t)j * b->C + x;
    const real *push = b->push + place * b->C, *replace = b->replace + place * b->C;
    real *removal = nd_best_row(b, b->removals, j, x, r), *excursion = nd_best_row(b, b->excursions, j, x, r);
    const int first = nd_best_tile(j + 1);
    for (int t = 0; t < first; t++) removal[t] = excursion[t] = -(real)INFINITY;
    for (int t = first; t < b->row; t += LANES) {
        vector replaced = splat(-(real)INFINITY), pushed = replaced;
        for (int w = 0; w < b->C; w++) {
            const vector later = load(nd_best_row(b, b->removals, j + 1, w, r) + t, LANES);
            replaced = larger(replaced, splat(replace[w]) + later);
            pushed = larger(pushed, splat(push[w]) + later);
        }
        store(removal + t, replaced, LANES);
        store(excursion + t, pushed, LANES);
    }
    removal[j + 1] = b->pop[place * b->Q + r];
}

/* The last line of (n), for `states` states from s on: an excursion, and then a removal. */
#define nd_best_leave_first NAME(nd_best_leave_first)
INLINE void nd_best_leave_first(const struct nd_best *b, int j, int s, int states, int z, int r) {
    const ptrdiff_t next = b->S * b->Q * b->row; /* from a state to the next, of d and of e */
    real *removals = nd_best_row(b, b->removals, j, s * b->S + z, r);
    const real *excursions = nd_best_row(b, b->excursions, j, s * b->S + z, 0);
    for (int t = nd_best_tile(j + 3); t <= b->n; t += LANES) {
        const int last = t + LANES - 1 < b->n ? t + LANES - 1 : b->n;
        vector best[4];
        for (int i = 0; i < states; i++) best[i] = load(removals + i * next + t, LANES);
        for (int k = j + 2; k < last; k++)
            for (int u = 0; u < b->Q; u++) {
                const vector later = load(nd_best_row(b, b->removals, k, u * b->S + z, r) + t, LANES);
                UNROLL for (int i = 0; i < states; i++)
                    best[i] = larger(best[i], splat(excursions[i * next + u * b->row + k]) + later);
            }
        for (int i = 0; i < states; i++) store(removals + i * next + t, best[i], LANES);
    }
}

/* The same for all states; the vectors of four of them fit into registers. */
#define nd_best_leave_first_of_all NAME(nd_best_leave_first_of_all)
static void nd_best_leave_first_of_all(const struct nd_best *b, int j, int z, int r) {
    int s = 0;
    for (; s + 4 <= b->Q; s += 4) nd_best_leave_first(b, j, s, 4, z, r);
    if (b->Q - s == 3) nd_best_leave_first(b, j, s, 3, z, r);
    else if (b->Q - s == 2) nd_best_leave_first(b, j, s, 2, z, r);
    else if (b->Q - s == 1) nd_best_leave_first(b, j, s, 1, z, r);
}

/* (p): what configuration y after step k contributes to those after later steps. */
#define nd_best_go_on NAME(nd_best_go_on)
INLINE void nd_best_go_on(const struct nd_best *b, int k, int y) {
    const vector weight = splat(b->forward[y * b->row + k]);
    const ptrdiff_t place = ((ptrdiff_t)k * b->C + y) * b->C;
    for (int w = 0; w < b->C; w++) {
        const real push = b->push[place + w], replace = b->replace[place + w];
        const real stepped = weight[0] + (push > replace ? push : replace);
        real *forward = b->forward + w * b->row + k + 1;
        if (stepped > *forward) *forward = stepped;
    }
    for (int r = 0; r < b->Q; r++) {
        real *forward = b->forward + (r * b->S + y % b->S) * b->row;
        const real *excursion = nd_best_row(b, b->excursions, k, y, r);
        for (int t = nd_best_tile(k + 2); t <= b->n; t += LANES)
            store(forward + t, larger(load(forward + t, LANES), weight + load(excursion + t, LANES)), LANES);
    }
}

static int NAME(nd_best_parts)(const void *given, int64_t sequence, char *scratch) {
    const struct nd_best_call *call = given;
    const int n = call->length, Q = call->num_states, S = call->num_symbols, C = Q * S;
    const size_t steps = (size_t)sequence * n * C, parts = (size_t)sequence * (n + 1) * C * Q * call->row;
    const struct nd_best b = {
        n, Q, S, C, call->row, (const real *)call->push + steps * C, (const real *)call->replace + steps * C,
        (const real *)call->pop + steps * Q, (real *)call->removals + parts, (real *)call->excursions + parts,
        (real *)call->forward + (size_t)sequence * C * call->row};
    (void)scratch;
    for (ptrdiff_t i = 0; i < C * Q * b.row; i++)
        nd_best_row(&b, b.removals, n, 0, 0)[i] = nd_best_row(&b, b.excursions, n, 0, 0)[i] = -(real)INFINITY;
    for (int j = n - 1; j >= 0; j--) {
        for (int x = 0; x < C; x++)
            for (int r = 0; r < Q; r++) nd_best_step(&b, j, x, r);
        for (int z = 0; z < S; z++)
            for (int r = 0; r < Q; r++) nd_best_leave_first_of_all(&b, j, z, r);
    }
    for (int y = 0; y < C; y++) {
        for (int t = 1; t < b.row; t++) b.forward[y * b.row + t] = -(real)INFINITY;
        b.forward[y * b.row] = ((const real *)call->start)[sequence * C + y];
    }
    for (int k = 0; k < n; k++)
        for (int y = 0; y < C; y++) nd_best_go_on(&b, k, y);
    return 1;
}
